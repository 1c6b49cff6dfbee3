"""Recursive sliding as a method: Algorithm 1 stage after stage, one outermost step after the other.

`recursion.py` is Algorithm 1 itself. Here is what its methods have in common: the state, and one step of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from saddleslide.arrays.base import split
from saddleslide.methods.base import Method, State
from saddleslide.oracles.calls import RunEnded

if TYPE_CHECKING:
    from saddleslide.arrays.base import Array
    from saddleslide.arrays.state import ZVector
    from saddleslide.methods.sliding.innermost import Anchors
    from saddleslide.methods.sliding.recursion import Recursion, RecursionState
    from saddleslide.oracles.oracles import Oracles
    from saddleslide.theory.levels import Level


@dataclass
class SlidingState(State):
    """Where stages of Algorithm 1 stand.

    Parameters
    ----------
    point : Array
        The running average of the outermost level: x and y in one vector.
    center : Array
        Where the run began.
    eps : float
        Target of the stage, where the method chooses it.
    stages : tuple of tuples of Level
        Levels of the stage under way and of those that are known to follow.
    done, step : int
        Stages that are done, and outermost steps of the one under way.
    within : RecursionState or None
        Iterates and averages of the stage under way; None between two stages.
    anchors : Anchors or None
        Those of the stage under way.
    models : mapping of "f" and "g" to (constant, slope)
        Averaged lower models at the end of the last stage.
    gap, raises : float and int
        Certified gap after the last stage that was judged, and how often budgets were raised.
    note : str
        What a theorem promises, for people.
    """

    point: ZVector
    center: ZVector
    eps: float = math.nan
    stages: tuple[tuple[Level, ...], ...] = ()
    done: int = 0
    step: int = 0
    within: RecursionState | None = None
    anchors: Anchors | None = None
    models: dict[str, tuple[float, Array]] = field(default_factory=dict)
    gap: float = math.inf
    raises: int = 0
    note: str = ""


def begin(start: tuple[Array, Array], eps: float = math.nan) -> SlidingState:
    """The state at a start."""
    z = np.concatenate([start[0].ravel(), start[1].ravel()])
    return SlidingState(z, z, eps)


def blocks(z: Array, oracles: Oracles) -> tuple[Array, Array]:
    """X and y of one vector."""
    x, y = split(z, [oracles.problem.X.shape, oracles.problem.Y.shape])
    return x.copy(), y.copy()


def advance(state: SlidingState, oracles: Oracles, build: Callable[[], Recursion], *key: object) -> SlidingState:
    """One outermost step of the stage under way; `build` makes its recursion, and `key` is the stage's alone."""
    recursion = oracles.workspace(build, *key)
    within = recursion.go_on(state.within, state.step)
    if not np.isfinite(within.average).all():
        # Oracles are asked first, so these numbers are our own.
        raise RunEnded("NUMERICAL_LIMIT")
    return replace(state, point=within.average, step=state.step + 1, within=within)


class Sliding(Method):
    """What all methods of recursive sliding return: the running average of the outermost level."""

    def point(self, state: SlidingState, oracles: Oracles) -> tuple[Array, Array]:
        return blocks(state.point, oracles)

    def left_behind(self, state: SlidingState, oracles: Oracles) -> tuple[tuple[Array, Array], ...]:
        """Running averages of the inner levels, where an outermost step was cut short."""
        recursion: Recursion | None = oracles.last_workspace
        if recursion is None or recursion.held is not None:
            return ()
        return tuple(blocks(rung.average, oracles) for rung in recursion.rungs[1:])
