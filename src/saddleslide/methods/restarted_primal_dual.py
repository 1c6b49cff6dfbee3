"""Both functions simple: no gradient is ever called, only products. Restarted primal-dual steps (PDHG).

Applegate et al. (2021): restart to the average or the last point when the gap has fallen enough; the weight between the
blocks follows the distances travelled. Where the curvature of f is felt within some steps, the first stretches between
restarts are accelerated (Chambolle and Pock, 2011, Algorithm 2): there the last point is the better one, and no average
is made.
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
from saddleslide.methods.grid_steps import Rates, known_steps

if TYPE_CHECKING:
    from saddleslide.methods.base import Facts, Judge, Oracles

# Steps between two looks at the gap: at first, and at most.
CHUNK, _LONGEST_CHUNK = 16, 1024
# Restart when the gap has fallen by this factor, or rises again after one of the second, or after this part of all
# steps.
_SUFFICIENT, _NECESSARY, _LONGEST = 0.2, 0.8, 0.36
# Accelerate where the modulus of f is this part of the first weight of x, from a step so much longer than 1 / modulus,
# until so many restarts: near a solution it is these that pay.
_FELT, _FIRST_STEP, _ACCELERATED = 0.1, 10.0, 3


@dataclass
class PrimalDualState(State):
    """The last point with B^T y, the average since the last restart at `restarted`, and what decides the next one.

    `norm` is an upper bound on that of B, `weight` a guess of |dy| / |dx|, `modulus` that of f while steps are
    accelerated, else 0.
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
    modulus: float = 0.0

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
    >>> ss.solve(ss.gallery.matrix_game([[2.0, -1.0], [-1.0, 1.0]]), tol=1e-2).plans[0].method
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
        state, (modulus, other) = PrimalDualState.at(oracles, start, facts.norm, weight), facts.moduli
        # With a linear g, as of equations, plain steps converge linearly.
        if not facts.g.is_zero or other > 0.0 or not modulus >= _FELT * state.norm * weight > 0.0:
            return state
        return replace(state, modulus=modulus, weight=min(weight, modulus / (_FIRST_STEP * state.norm)))

    def step(self, state: PrimalDualState, oracles: Oracles) -> PrimalDualState:
        """`chunk` steps; the last point and the average since the restart are there to be judged."""
        x, y, pull, (mean_x, mean_y) = state.x, state.y, state.pull, state.average
        weight, rates = self._rates(state)
        compiled = oracles.workspace(lambda: known_steps(oracles))
        if compiled is not None:
            x, y, pull, mean_x, mean_y = compiled.advance(rates, x, y, pull, state.average)
        else:
            for step_x, step_y, theta, length in rates:
                new = oracles.prox_f(x - pull / step_x, step_x)
                beyond = (1.0 + theta) * new - (theta * x if theta < 1.0 else x)
                y = oracles.prox_g(y + oracles.forward(beyond) / step_y, step_y)
                x, pull = new, oracles.adjoint(y)
                if length > 0:
                    mean_x = mean_x + (x - mean_x) / length
                    mean_y = mean_y + (y - mean_y) / length
        X, Y, looks, length = oracles.problem.X, oracles.problem.Y, state.looks + 1, state.length + state.chunk
        # f is all simple: its costly part is 0.
        points: tuple[Candidate, ...] = (Candidate(x, y, 0.0, BTy=pull),)
        if state.modulus == 0.0:
            points += (Candidate(X.project(mean_x), Y.project(mean_y), 0.0),)
        state = replace(state, x=x, y=y, pull=pull, weight=weight, length=length, average=(mean_x, mean_y))
        return replace(state, points=points, looks=looks)

    def _rates(self, state: PrimalDualState) -> tuple[float, list[Rates]]:
        """The weight after a chunk of steps, and the rates of these."""
        step_x, step_y, rates = state.norm * state.weight, state.norm / state.weight, []
        if state.modulus == 0.0:
            counts = range(state.length + 1, state.length + state.chunk + 1)
            return state.weight, [(step_x, step_y, 1.0, count) for count in counts]
        for _ in range(state.chunk):
            theta = 1.0 / math.sqrt(1.0 + 2.0 * state.modulus / step_x)
            step_y *= theta
            rates.append((step_x, step_y, theta, 0))
            step_x /= theta
        return step_x / state.norm, rates

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
        # The weight that the last stretch suggests: all of it where acceleration has changed it on the way.
        before = dy / dx if state.modulus > 0.0 and dx > 0.0 else state.weight
        weight = math.sqrt(before * dy / dx) if dx > 0.0 and dy > 0.0 else state.weight
        pull, nothing = state.pull, (np.zeros_like(chosen.x), np.zeros_like(chosen.y))
        if chosen.y is not state.y:
            pull = oracles.pull(chosen.y)
        state = replace(
            state, x=chosen.x, y=chosen.y, pull=pull, weight=weight, restarted=best, average=nothing, best=best
        )
        restarts, modulus = state.restarts + 1, state.modulus if state.restarts + 1 < _ACCELERATED else 0.0
        state = replace(state, length=0, chunk=chunk, restarts=restarts, modulus=modulus)
        return replace(state, restart_gap=gap, previous=math.inf)
