"""Quadratic programs with all entries at hand: a primal-dual interior-point method (Mehrotra 1992).

Each step of Newton's method on the conditions of optimality (`methods/optimality.py`) aims at equal products of
distances to bounds and multipliers, smaller and smaller ones. Where no bound is met the first system alone is the
solution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

import numpy as np

from saddleslide.certificates.verdict import Status
from saddleslide.facts.newton import MOST_ROWS
from saddleslide.methods.base import BOUNDS, LATE, Array, Candidate, Description, Method, Point, State
from saddleslide.methods.field import linearise
from saddleslide.methods.optimality import System, grams_of
from saddleslide.operators.explicit import Matrix
from saddleslide.operators.factor import COLUMNS

if TYPE_CHECKING:
    from saddleslide.methods.base import Facts, Judge, Oracles

# A step goes this part of the way to the nearest bound.
_NEARLY = 0.995
# Steps without a smaller gap after which rounding has taken over.
_PATIENCE = 8
_STEPS = 200
# Pictures have a factor where it takes so many operations, and the curvatures of f are so many times apart.
_BANDED, _UNEVEN = 1e8, 100.0
# What part of what is left gaps are, before the first look: less than they are, so that it may come in vain, where a
# step takes more than so many operations, which is what a look takes.
_EAGER, _WARY, _CHEAP = 0.2, 1.5, 1e6
# A value is believed that has changed by no more than this part of it in a step.
_SETTLED = 0.5


@dataclass
class InteriorState(State):
    """A point strictly between its bounds with the multipliers of these, and the best point seen."""

    u: Array
    z: Array
    best: Point
    best_gap: float = math.inf
    idle: int = 0
    steps: int = 0
    # Whether u solves the equations of a problem whose bounds are not met: then the first step is there already.
    is_exact: bool = False
    # What bounds and equations leave open, times what that can cost, whether the last step made it less, and what part
    # of it gaps are, by the last look.
    left: float = math.inf
    falls: bool = True
    ratio: float = _EAGER
    # F at the point before the last step, but for constants, and whether that is about what it was a step before:
    # values of constraints alone shrink with the gap.
    value: float = math.nan
    is_settled: bool = False


@final
@dataclass(frozen=True, repr=False)
class InteriorPoint(Method):
    """Predictor and corrector steps of Mehrotra, with one factorisation each.

    Examples
    --------
    >>> import saddleslide as ss
    >>> result = ss.solve(ss.gallery.matrix_game([[2.0, -1.0], [-1.0, 1.0]]), tol=1e-9, method="interior-point")
    >>> result.status.name, len(result.history) < 20
    ('SOLVED', True)
    """

    description = Description(
        name="interior-point",
        needs=("quadratic program of f", "quadratic program of g", "entries of B"),
        guarantee="None for predictor and corrector steps; in practice 10 to 40 of them, whatever the conditioning.",
        reference="Mehrotra, On the implementation of a primal-dual interior point method, SIAM J. Optim. 2 (1992)",
    )
    on_host = True
    has_dear_steps = True

    def lacks(self, facts: Facts) -> list[str]:
        found = super().lacks(facts)
        return found or _without_inside(facts) or _too_large(facts)

    def lacks_at_a_glance(self, facts: Facts) -> list[str]:
        # Writing out the entries of a picture's differences takes longer than all of its plan.
        return _too_large(facts) if _is_wide(facts) else super().lacks_at_a_glance(facts)

    def init(self, oracles: Oracles, facts: Facts, start: Point, tol: float) -> InteriorState:
        f, g, parts = facts.f.program, facts.g.program, facts.programs
        assert f is not None and g is not None and parts is not None
        grams = grams_of(facts.problem)
        system = oracles.workspace(lambda: System(f, g, facts.entries, parts, grams), InteriorPoint)
        exact = system.solution()
        ratio = _WARY if facts.newton_cost < _CHEAP else _EAGER
        return InteriorState(*(exact or system.begin()), start, is_exact=exact is not None, ratio=ratio)

    def judgement(self, facts: Facts) -> str:
        # Of a simple term both bounds have a closed form; else gradients bound the other.
        return LATE if facts.f.rest.is_zero and facts.g.rest.is_zero else BOUNDS

    def step(self, state: InteriorState, oracles: Oracles) -> InteriorState:
        if state.is_exact:
            return replace(state, steps=1, is_exact=False, left=0.0)
        try:
            return self._advance(state, oracles)
        except FloatingPointError:
            # Numbers tell no more: the point that has been reached is looked at, and is the last one.
            return replace(state, steps=state.steps + 1, left=math.nan)

    def _advance(self, state: InteriorState, oracles: Oracles) -> InteriorState:
        """Predictor and corrector."""
        system, u, z = self._system(oracles), state.u, state.z
        room = system.room(u)
        ratio, products = z / room, z * room
        solve = system.factorise(system.q + system.gather(ratio, 1.0))
        wrong = -system.residual(u, oracles)
        gap, pairs = float(products.sum()), max(z.size, 1)

        def direction(aims: Array | float) -> tuple[Array, Array, Array, float]:
            """Newton's step towards products, and how far one may go before a distance or a multiplier is used up.

            The ways of these two are parts of what they are.
            """
            du = solve(wrong + system.gather(aims / room, -1.0))
            way = system.signs * du[system.bounded] / room
            dz = aims / products - 1.0 - way
            steepest = -float(min(way.min(initial=0.0), dz.min(initial=0.0)))
            return du, way, dz, 1.0 / steepest if steepest > 0.0 else math.inf

        _, way, dz, length = direction(0.0)
        length = min(1.0, length)
        left = float(products @ ((1.0 + length * way) * (1.0 + length * dz)))
        center = (max(left, 0.0) / gap) ** 3 if gap > 0.0 else 0.0
        # What the products of the predictor leave is taken off.
        du, _, dz, length = direction(center * gap / pairs - products * way * dz)
        length = min(1.0, _NEARLY * length)
        # Of the equations with the multipliers of the bounds, block by block: each product is in the unit of F.
        missed = (1.0 - length) * (wrong + system.gather(z, -1.0))
        u, z = u + length * du, z + length * dz * z
        missed = np.sqrt(np.add.reduceat(missed * missed, system.starts) * np.add.reduceat(u * u, system.starts))
        left = float(system.room(u) @ z) + float(missed.sum())
        value, falls = system.value(state.u, wrong), left < state.left
        settled = abs(value - state.value) <= _SETTLED * abs(state.value)
        return replace(state, u=u, z=z, steps=state.steps + 1, left=left, falls=falls, value=value, is_settled=settled)

    def _system(self, oracles: Oracles) -> System:
        system: System = oracles.workspace(lambda: System.of(oracles.problem), InteriorPoint)
        return system

    def point(self, state: InteriorState, oracles: Oracles) -> Point:
        return state.best

    def candidates(self, state: InteriorState, oracles: Oracles) -> tuple[Candidate, ...]:
        return (linearise(oracles, *self._system(oracles).point(state.u, oracles.problem)),)

    def learn(
        self, state: InteriorState, gaps: Sequence[float], judge: Judge, oracles: Oracles
    ) -> InteriorState | Status:
        """Keep the best point; end where steps no longer come nearer."""
        if math.isnan(state.left) or not np.isfinite(state.u).all():
            return Status.NUMERICAL_LIMIT
        (gap,) = gaps
        if gap < math.inf and state.left > 0.0:
            # A look that misses costs as much as one that comes a step late.
            state = replace(state, ratio=1.5 * gap / state.left)
        idle = 0 if gap < state.best_gap else state.idle + 1
        if idle and math.isfinite(state.best_gap):
            return replace(state, idle=idle)
        best = self._system(oracles).point(state.u, oracles.problem)
        return replace(state, best=best, best_gap=gap, idle=idle)

    def expects(self, state: InteriorState) -> tuple[float, float]:
        gap = state.ratio * state.left if state.falls else 0.0
        return gap, state.value if state.is_settled else math.nan

    def is_finished(self, state: InteriorState) -> bool:
        stands = math.isfinite(state.best_gap) and state.idle >= _PATIENCE
        return stands or state.steps >= _STEPS or math.isnan(state.left)


def _without_inside(facts: Facts) -> list[str]:
    """Which sets fix entries, so that no point lies between their bounds."""
    found = [
        (name, int((said.lower >= said.upper).sum()))
        for name, said in (("X", facts.f.program), ("Y", facts.g.program))
        if said is not None
    ]
    return [f"{name} fixes {count} entries; expected lower < upper everywhere." for name, count in found if count]


def _is_wide(facts: Facts) -> bool:
    """Pictures and volumes: the band of their factors is too wide, and it takes longer than a solution to see that.

    Not so of small pictures where a simple f hardly sees some entries, as of holes: first-order steps take long there.
    """
    B, grid = facts.problem.coupling, [n for n in facts.problem.coupling.x_shape if n > 1]
    if len(grid) < 2 or isinstance(B, Matrix) or min(B.shape) <= COLUMNS:
        return False
    if not facts.f.rest.is_zero or not _UNEVEN * facts.f.modulus < facts.f.lipschitz < math.inf:
        return True
    width = math.prod(grid) / max(grid)
    return math.prod(grid) * width * width > _BANDED


def _too_large(facts: Facts) -> list[str]:
    """Why the factor would be too dear; nothing where it is not."""
    rows, columns = facts.problem.coupling.shape
    if min(rows, columns) == 0 and not any(
        side.program is not None and side.program.squares for side in (facts.f, facts.g)
    ):
        return ["B has no entries; expected x and y with at least one each."]
    if _is_wide(facts) or not math.isfinite(facts.newton_cost):
        return [
            f"the factor of a system of {min(rows, columns)} unknowns would be too large; expected at most {COLUMNS}, "
            f"or a narrow band, and at most {MOST_ROWS} equations in X and Y."
        ]
    return []
