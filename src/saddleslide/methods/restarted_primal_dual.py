"""Both functions simple: no gradient is ever called, only products. Restarted primal-dual steps (PDHG).

Applegate et al. (2021): restart to the average or the last point when the gap has fallen enough; the weight between the
blocks follows the distances travelled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

import numpy as np

from saddleslide.functions.separable import finite_slope
from saddleslide.methods.base import EXACTLY, Array, Candidate, Description, Method, Point, State
from saddleslide.methods.field import Field

if TYPE_CHECKING:
    from saddleslide.methods.base import Facts, Judge, Oracles

# Steps between two looks at the gap: at first, and at most.
CHUNK, _LONGEST_CHUNK = 16, 1024
# Restart when the gap has fallen by this factor, or rises again after one of the second, or after this part of all
# steps.
_SUFFICIENT, _NECESSARY, _LONGEST = 0.2, 0.8, 0.36


@dataclass
class PrimalDualState(State):
    """The last point with B^T y, the average since the last restart at `restarted`, and what decides the next one.

    `norm` is an upper bound on that of B, `weight` a guess of |dy| / |dx|.
    """

    x: Array
    y: Array
    pull: Array
    norm: float
    weight: float
    restarted: Point
    average: Point
    points: tuple[Candidate, ...]
    best: Point
    length: int = 0
    chunk: int = CHUNK
    looks: int = 0
    restarts: int = 0
    restart_gap: float = math.inf
    previous: float = math.inf

    @classmethod
    def at(cls, oracles: Oracles, start: Point, norm: float, weight: float) -> PrimalDualState:
        """At a start, with a first guess of the weight."""
        nothing, points = (np.zeros_like(start[0]), np.zeros_like(start[1])), (Candidate(*start, 0.0),)
        return cls(*start, oracles.pull(start[1]), max(norm, 1e-300), weight, start, nothing, points, start)


@final
@dataclass(frozen=True, repr=False)
class RestartedPrimalDual(Method):
    """What `solve` makes of simple f and g: the iteration, judged exactly after every chunk.

    Examples
    --------
    >>> import saddleslide as ss
    >>> ss.solve(ss.gallery.matrix_game([[2.0, -1.0], [-1.0, 1.0]]), tol=1e-6).plans[0].method
    'restarted primal-dual'
    """

    description = Description(
        name="restarted primal-dual",
        needs=("prox of f", "prox of g"),
        guarantee="None in advance; linear on problems with sharp gaps.",
        reference="Applegate, Hinder, Lu and Lubin, Math. Program. 201 (2023)",
    )
    judged = EXACTLY

    def init(self, oracles: Oracles, facts: Facts, start: Point, tol: float) -> PrimalDualState:
        weight, problem = Field.at(facts, start, "balanced").weights[0], oracles.problem
        if not ((problem.X.bounded and problem.Y.bounded) or all(map(math.isfinite, facts.distances))):
            # A distance is not known: the slopes at the start say in which units x and y are.
            rise = float(np.linalg.norm(finite_slope(problem.f, start[0], problem.X) + oracles.pull(start[1])))
            fall = float(np.linalg.norm(finite_slope(problem.g, start[1], problem.Y) - oracles.image(start[0])))
            weight = rise / fall if rise > 0.0 and fall > 0.0 else weight
        return PrimalDualState.at(oracles, start, facts.norm, weight)

    def step(self, state: PrimalDualState, oracles: Oracles) -> PrimalDualState:
        """`chunk` steps; the last point and the average since the restart are there to be judged."""
        x, y, pull, length = state.x, state.y, state.pull, state.length
        step_x, step_y = state.norm * state.weight, state.norm / state.weight
        mean_x, mean_y = state.average
        for _ in range(state.chunk):
            new = oracles.prox_f(x - pull / step_x, step_x)
            y = oracles.prox_g(y + oracles.forward(2.0 * new - x) / step_y, step_y)
            x, pull, length = new, oracles.adjoint(y), length + 1
            mean_x = mean_x + (x - mean_x) / length
            mean_y = mean_y + (y - mean_y) / length
        X, Y, looks = oracles.problem.X, oracles.problem.Y, state.looks + 1
        # f is all simple: its costly part is 0.
        points = Candidate(x, y, 0.0, BTy=pull), Candidate(X.project(mean_x), Y.project(mean_y), 0.0)
        return replace(state, x=x, y=y, pull=pull, length=length, average=(mean_x, mean_y), points=points, looks=looks)

    def point(self, state: PrimalDualState, oracles: Oracles) -> Point:
        return state.best

    def candidates(self, state: PrimalDualState, oracles: Oracles) -> tuple[Candidate, ...]:
        return state.points

    def learn(self, state: PrimalDualState, gaps: Sequence[float], judge: Judge, oracles: Oracles) -> PrimalDualState:
        """Begin again from the better of the last points where it has come far enough, turns back, or took long."""
        gap = min(gaps)
        chosen = state.points[list(gaps).index(gap)]
        stalled = state.previous < gap < _NECESSARY * state.restart_gap
        long = state.length >= _LONGEST * state.chunk * state.looks
        best, chunk = (chosen.x, chosen.y), min(_LONGEST_CHUNK, max(CHUNK, state.looks))
        if not (gap <= _SUFFICIENT * state.restart_gap or stalled or long):
            return replace(state, best=best, chunk=chunk, previous=gap)
        dx, dy = (float(np.linalg.norm(new - old)) for new, old in zip(best, state.restarted, strict=True))
        # The weight that the last stretch suggests.
        weight = math.sqrt(state.weight * dy / dx) if dx > 0.0 and dy > 0.0 else state.weight
        pull, nothing = state.pull, (np.zeros_like(chosen.x), np.zeros_like(chosen.y))
        if chosen.y is not state.y:
            pull = oracles.pull(chosen.y)
        state = replace(
            state, x=chosen.x, y=chosen.y, pull=pull, weight=weight, restarted=best, average=nothing, best=best
        )
        restarts = state.restarts + 1
        return replace(state, length=0, chunk=chunk, restarts=restarts, restart_gap=gap, previous=math.inf)
