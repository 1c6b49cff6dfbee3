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

from saddleslide.certificates.candidate import Candidate
from saddleslide.methods.base import EXACTLY, Description, Method, State

if TYPE_CHECKING:
    from saddleslide.arrays.base import Array
    from saddleslide.certificates.judge import Judge
    from saddleslide.facts.facts import Facts
    from saddleslide.oracles.oracles import Oracles

# Steps between two looks at the gap: at first, and at most.
CHUNK, _LONGEST_CHUNK = 16, 1024
# Restart when the gap has fallen by this factor, or rises again after one of the second, or after this part of all
# steps.
_SUFFICIENT, _NECESSARY, _LONGEST = 0.2, 0.8, 0.36


@dataclass
class PrimalDualState(State):
    """The last point with B^T y, the average since the last restart at `origin`, and what decides the next one."""

    x: Array
    y: Array
    pull: Array
    norm: float
    weight: float
    origin: tuple[Array, Array]
    average: tuple[Array, Array]
    points: tuple[Candidate, ...]
    best: tuple[Array, Array]
    length: int = 0
    chunk: int = CHUNK
    looks: int = 0
    restarts: int = 0
    restart_gap: float = math.inf
    previous: float = math.inf


def begin(oracles: Oracles, start: tuple[Array, Array], norm: float, weight: float) -> PrimalDualState:
    """The state at a start, with an upper bound on the norm of B and a first guess of |dy| / |dx|."""
    nothing = (np.zeros_like(start[0]), np.zeros_like(start[1]))
    points = (Candidate(*start, 0.0),)
    return PrimalDualState(*start, oracles.pull(start[1]), max(norm, 1e-300), weight, start, nothing, points, start)


def advance(state: PrimalDualState, oracles: Oracles) -> PrimalDualState:
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
    problem = oracles.problem
    # f is all simple: its costly part is 0.
    points = (
        Candidate(x, y, 0.0, BTy=pull),
        Candidate(problem.X.project(mean_x), problem.Y.project(mean_y), 0.0),
    )
    return replace(
        state, x=x, y=y, pull=pull, length=length, average=(mean_x, mean_y), points=points, looks=state.looks + 1
    )


def restart(state: PrimalDualState, gaps: Sequence[float], oracles: Oracles) -> PrimalDualState:
    """Begin again from the better of the last points where it has come far enough, turns back, or has taken long."""
    gap = min(gaps)
    chosen = state.points[list(gaps).index(gap)]
    chunk = min(_LONGEST_CHUNK, max(CHUNK, state.looks))
    state = replace(state, best=(chosen.x, chosen.y))
    stalled = state.previous < gap < _NECESSARY * state.restart_gap
    long = state.length >= _LONGEST * state.chunk * state.looks
    if not (gap <= _SUFFICIENT * state.restart_gap or stalled or long):
        return replace(state, chunk=chunk, previous=gap)
    dx = float(np.linalg.norm(chosen.x - state.origin[0]))
    dy = float(np.linalg.norm(chosen.y - state.origin[1]))
    return replace(
        state,
        x=chosen.x,
        y=chosen.y,
        pull=state.pull if chosen.y is state.y else oracles.pull(chosen.y),
        # The weight that the last stretch suggests.
        weight=math.sqrt(state.weight * dy / dx) if dx > 0.0 and dy > 0.0 else state.weight,
        origin=state.best,
        average=(np.zeros_like(chosen.x), np.zeros_like(chosen.y)),
        length=0,
        chunk=chunk,
        restarts=state.restarts + 1,
        restart_gap=gap,
        previous=math.inf,
    )


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

    def init(self, oracles: Oracles, facts: Facts, start: tuple[Array, Array], tol: float) -> PrimalDualState:
        radii = facts.f.domain.radius(start[0]), facts.g.domain.radius(start[1])
        usable = all(math.isfinite(radius) and radius > 0.0 for radius in radii)
        return begin(oracles, start, facts.norm, radii[1] / radii[0] if usable else 1.0)

    def step(self, state: PrimalDualState, oracles: Oracles) -> PrimalDualState:
        return advance(state, oracles)

    def point(self, state: PrimalDualState, oracles: Oracles) -> tuple[Array, Array]:
        return state.best

    def candidates(self, state: PrimalDualState, oracles: Oracles) -> tuple[Candidate, ...]:
        return state.points

    def learn(self, state: PrimalDualState, gaps: Sequence[float], judge: Judge, oracles: Oracles) -> PrimalDualState:
        return restart(state, gaps, oracles)
