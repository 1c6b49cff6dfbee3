"""The judge of a run: cheap true bounds first, dearer ones only when they can decide.

Any feasible x bounds the saddle value from above by max_y F(x, y), any feasible y from below by min_x F(x, y); the best
of each are kept. Known gradients of f and of g bound the inner extrema for one product (residuals.py); on bounded sets
the averaged models of the run do the same without strong convexity; certified inner solves come last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from saddleslide.arrays.base import Array, read_only
from saddleslide.arrays.state import State
from saddleslide.certificates.candidate import Candidate, Linearisation, Split
from saddleslide.certificates.certificate import EPS, Side, product_shift
from saddleslide.certificates.guards import CONVEXITY, PairGuard, check_own_steps, check_pair, inconsistent
from saddleslide.certificates.levels import Growth, Level, level_sets, round_up
from saddleslide.certificates.residuals import ResidualBound
from saddleslide.certificates.verdict import ROUNDING, Certificate, Status
from saddleslide.certificates.within import separates_within
from saddleslide.domains import Domain
from saddleslide.errors import NoExactMinimumError
from saddleslide.functions.base import Function, errors_at, runs_own_code
from saddleslide.functions.constants import smoothness_at_hand
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.minimum import has_closed_minimum, tilted_minimum
from saddleslide.functions.roundings import FEW
from saddleslide.functions.searched import Tally, TiltedMinimum
from saddleslide.functions.separable import finite_slope, prox
from saddleslide.operators import Mirrored
from saddleslide.oracles.calls import Calls, RunEnded
from saddleslide.oracles.oracles import Gate, Oracles, always_open, no_limit
from saddleslide.problem import SaddleProblem
from saddleslide.theory.plan import Target

if TYPE_CHECKING:
    from saddleslide.arrays.state import XArray, YArray

    # Which block the linearisations inside belong to.
    XGuard: TypeAlias = PairGuard
    YGuard: TypeAlias = PairGuard
    XResidualBound: TypeAlias = ResidualBound
    YResidualBound: TypeAlias = ResidualBound

# Part of the target that an iterative inner maximum may leave open.
_INNER_PART = 0.05
# Rounding of a projection, relative to the entries.
_FEASIBILITY = 1e-12
# A certified inner solve may always take this many gradients; beyond, no more in all than the method itself.
_FEWEST_GRADIENTS = 25
# Rays speak of points so many times as far as claims within a radius do.
_FAR = 1e4
# A radius never falls below this part of the largest one.
_KEPT = 0.1
# Looks are at most 1 + seen // _RARER steps apart, and never more than 1 + _RAREST. A point whose bounds are expected
# to miss the target by less than this factor is looked at.
_RARER, _RAREST, _NEARLY = 4, 4, 1.01
# The gap at the start is only a scale.
_GRADIENTS_FOR_SCALE, _MORE_FOR_SCALE = 3, 8


@dataclass(eq=False, repr=False)
class JudgeState(State):
    """What a judge has found: the best bounds with their points, the scale of a relative target, and what was tried."""

    x: XArray
    y: YArray
    # The method's own point: the answer for a block that no bound speaks of.
    latest: tuple[XArray, YArray]
    # The last best response.
    response: YArray
    oracles: Oracles
    pair_f: XGuard
    pair_g: YGuard
    below: XResidualBound
    above: YResidualBound
    lower: float = -math.inf
    upper: float = math.inf
    kind: str = "none"
    reason: str = "no bound has been computed yet."
    # What rounding takes of the two bounds.
    margin_below: float = 0.0
    margin_above: float = 0.0
    # What the adjoint of B may differ from its transpose by, in norm, as far as pairs of products show it.
    mismatch: float = 0.0
    scale_above: float = math.nan
    scale_below: float = math.inf
    start_pull: XArray | None = None
    # Size of the terms of F at the last point: what rounding is relative to when the saddle value is near 0.
    magnitude: float = 0.0
    seen: int = 0
    next_try: int = 1
    # Until then a point is only looked at if it may meet the target; the last look with its gap; and whether the last
    # point was not looked at.
    next_look: int = 1
    last_look: tuple[int, float] = (0, math.inf)
    has_waited: bool = False
    allowance: Calls = field(default_factory=Calls)
    has_descended: bool = False
    is_open: bool = False
    # |F| at the start.
    start_size: float = 0.0
    # The point with the smallest gap within its radii, where no bound on the whole sets is known: bounds, what rounding
    # takes of them, radii, and the slopes that were met first, which give the scale of the radii.
    near: tuple[XArray, YArray] | None = None
    near_lower: float = -math.inf
    near_upper: float = math.inf
    near_margin: float = 0.0
    near_size: float = 0.0
    radii: tuple[float, float] = (math.inf, math.inf)
    first_slopes: tuple[float, float] | None = None
    largest: tuple[float, float] = (0.0, 0.0)
    # Where rays were last looked for: where there is no solution, points go on along one.
    passed: tuple[XArray, YArray] | None = None
    taus: tuple[float, float] = (math.nan, math.nan)
    looks: int = 0
    # Every solution has sum w |x| <= upper + k, and sum w |y| <= k - lower: w and k of each; and candidates so far.
    x_weights: XArray | None = None
    y_weights: YArray | None = None
    offsets: tuple[float, float] = (0.0, 0.0)
    referred: int = 0
    # What every solution obeys and the lower and the upper bound rest on.
    said: tuple[str, str] = ("", "")


class Judge(JudgeState):
    """Keeps the best bounds and points of a run.

    The target is the largest of those in `goal`. With `dry` nothing is called: the state will be restored. `gate` is
    asked before every call, and `left` how many calls of an oracle the limits still allow.
    """

    def __init__(
        self,
        problem: SaddleProblem,
        split: Split,
        goal: Target,
        start: tuple[Array, Array],
        dry: bool = False,
        gate: Gate = always_open,
        left: Callable[[str], float] = no_limit,
    ) -> None:
        oracles, (pair_f, pair_g, below, above) = Oracles(problem, gate, dry, guarded=True), _sides(problem, split)
        super().__init__(*start, start, start[1], oracles, pair_f, pair_g, below, above, is_open=goal.gap_share == 0.0)
        self.problem, self.split, self.goal, self._start, self._left = problem, split, goal, start, left
        self._f, self._g, self._assumes = Side(problem, "f"), Side(problem, "g"), problem.assumptions
        self._runs_own_code = {side.name: runs_own_code(side.function) for side in (self._f, self._g)}
        # Asked for now, and kept by the sides: later a function may be out of reach.
        self._moduli = self._f.modulus, self._g.modulus
        self._costly_g = not isinstance(split.g_rest, Zero)
        # Radii that a claim was made with, where a point is judged once more.
        self.given_radii: tuple[float, float] | None = None
        self._levels = level_sets(problem, split)
        # The best bounds, while a candidate is judged apart from them.
        self._best = -math.inf, math.inf
        # Bounds of the candidate under judgement alone, whose y is its own, and its gap within the radii.
        self._own, self._candidate_y, self._seen_within = (-math.inf, math.inf), start[1], math.inf

    def resplit(self, split: Split) -> None:
        """Other parts are simple from now on; the modulus and the old linearisations belong to the old split."""
        self.split, self._levels = split, level_sets(self.problem, split)
        self.pair_f, self.pair_g, self.below, self.above = _sides(self.problem, split)

    @property
    def calls(self) -> Calls:
        """What judging has taken."""
        return self.oracles.calls

    @property
    def gap(self) -> float:
        """Certified gap of the best pair; by how much its bounds contradict each other where they do."""
        known = math.isfinite(self.upper) and math.isfinite(self.lower)
        return abs(self.upper - self.lower) if known else math.inf

    @property
    def margins(self) -> float:
        """What rounding takes of the two bounds: no gap can be certified below."""
        return self.margin_above + self.margin_below

    @property
    def start_gap(self) -> float:
        """A certified lower bound on the gap at the start; it rises as smaller values of F(., y_0) are met."""
        gap = self.scale_above - self.scale_below
        return gap if math.isfinite(gap) and gap > 0.0 else 0.0

    @property
    def target(self) -> float:
        """The gap that ends the run."""
        return (
            self._target(self.near_lower, self.near_upper) if self.is_within else self._target(self.lower, self.upper)
        )

    def _target(self, lower: float, upper: float) -> float:
        target = self.goal.at(self.start_gap, lower, upper)
        # Where the gap at the start is not known, the size of F there stands for it: saddle values may be 0.
        return (
            target if self.start_gap > 0.0 else max(target, self.goal.gap_share * (self.start_size or self.near_size))
        )

    @property
    def first_target(self) -> float:
        """The target before anything is known: F at the start stands for the saddle value."""
        value = abs(self.scale_below) if math.isfinite(self.scale_below) else 0.0
        return max(self.target, self.goal.rtol * value)

    @property
    def near_gap(self) -> float:
        """Gap within the radii of the point that is the best by it; infinite where it was not asked for.

        Infinite too where a point beyond the radii is better than all within them: the problem may be unbounded.
        """
        if self.near is None or self.upper < self.near_lower or self.lower > self.near_upper:
            return math.inf
        return self.near_upper - self.near_lower

    @property
    def is_within(self) -> bool:
        """Whether the claim is the one within radii: the other, which says more, does not meet the target."""
        return self.near_gap < self.gap and not self.gap <= self._target(self.lower, self.upper)

    @property
    def known_gap(self) -> float:
        """The certified gap, or the one within the radii where that is smaller."""
        return min(self.gap, self.near_gap)

    @property
    def is_solved(self) -> bool:
        """Whether the certified gap meets the target."""
        return not self.lower > self.upper and self.known_gap <= self.target

    @property
    def at_rounding(self) -> bool:
        """Whether the gap can not be told from rounding of the bounds themselves."""
        if self.is_within:
            size = max(abs(self.near_upper) + abs(self.near_lower), self.magnitude)
            return self.near_gap <= max(ROUNDING * size, 1.5 * self.near_margin)
        size = max(abs(self.upper) + abs(self.lower), self.magnitude)
        return math.isfinite(self.gap) and self.gap <= max(ROUNDING * size, 1.5 * self.margins)

    @property
    def point(self) -> tuple[Array, Array]:
        """The x of the upper and the y of the lower bound; where there is none, the method's own."""
        if self.near is not None and self.is_within:
            return self.near
        x = self.x if math.isfinite(self.upper) else self.latest[0]
        y = self.y if math.isfinite(self.lower) else self.latest[1]
        return x, y

    def certificate(self) -> Certificate:
        """The bounds so far."""
        known = math.isfinite(self.gap)
        # Bounds that contradict each other within rounding are right up to that.
        lower, upper = (self.lower, self.upper) if self.lower <= self.upper else (self.upper, self.lower)
        found = Certificate(
            lower, upper, self.kind if known else "none", math.nan, "" if known else self.reason,
            self.oracles.calls.copy(), self._assumes if known or self.near is not None else "",
            solutions=" and ".join(filter(None, self.said)) if known else "",
        )  # fmt: skip
        near = self.near_lower, self.near_upper
        return replace(found, within=near, radii=self.radii) if self.is_within else found

    def judge(self, candidate: Candidate, may_wait: bool = False) -> bool:
        """Update the bounds with a candidate, by certified inner solves only where they decide; True at the target.

        With `may_wait` a candidate whose bounds can not meet the target is only judged now and then.
        """
        x, y, waits = candidate.x, candidate.y, may_wait and self.seen + 1 < self.next_look
        # Where nobody will look, points are only asked what a relative target needs.
        value, error = candidate.value + self.below.simple_value(x), 0.0
        start = math.inf if self.start_pull is None else value + float(np.vdot(self.start_pull, x))
        if not math.isfinite(value) or (not (waits and start >= self.scale_below) and not self._is_feasible(candidate)):
            return self.is_solved
        self._own, self._candidate_y = (-math.inf, math.inf), y
        if self.start_pull is not None:
            self.scale_below = min(self.scale_below, start)
            if self.start_gap == 0.0 and not self.has_descended:
                self._descend_from_start()
        self.seen += 1
        if candidate.earlier is not None:
            self.below.remember(candidate.earlier)
        self.has_waited = waits and self._is_hopeless(candidate)
        if self.has_waited or (waits and not self._is_feasible(candidate)):
            return self.is_solved
        value, error = self._evaluate(candidate)
        Bx = candidate.Bx if candidate.Bx is not None else self.oracles.forward(x)
        g_value = self.value_of("g", y) if candidate.g_value is None else candidate.g_value
        # Values and gradients that the method knows anyway must fit those of the last candidate.
        for guard, known in ((self.pair_f, candidate.linearisation), (self.pair_g, candidate.g_linearisation)):
            if known is not None:
                guard.look(known)
        self._raise_lower_by_gradient(candidate, Bx, g_value)
        shift = self._shift_of_product(candidate, Bx)
        if candidate.averaged is not None and self.problem.X.bounded and self.below.modulus == 0.0:
            self._raise_lower_by_average(*candidate.averaged)
        coupled = float(np.vdot(y, Bx))
        self._note_size(value, g_value, coupled)
        if candidate.g_linearisation is not None and self.above.possible:
            # As for the lower bound, a known gradient bounds the maximum over Y.
            least = self.above.minimum(-Bx, candidate.g_linearisation, shift)
            self._accept_upper(value - least, x, error, abs(value) + abs(least), self.above.margin)
        # F(x, y) never exceeds the upper bound at x, so a large difference already decides.
        rough = value + coupled - g_value
        decisive = max(self.target, ROUNDING * self.magnitude, 2.0 * (self.margin_below + error))
        decides = rough < self.upper and min(rough, self.upper) - self.lower <= decisive
        # A simple g costs no call. Else tries are spaced out; until there is any bound, some are unconditional.
        free = isinstance(self.split.g_rest, Zero)
        missing = not math.isfinite(self.upper) and self.seen & (self.seen - 1) == 0
        # A certificate must not cost more than the solution: whoever is behind goes on first.
        affordable = self.oracles.calls.g + 2 <= self.allowance.g
        # Where a lower bound is far off, the upper one can wait.
        if waits and math.isfinite(self._own[0]) and not decides:
            self._plan_look(min(rough, self.upper) - self._own[0])
            self._check_order()
            return self.is_solved
        if free or (self.seen >= self.next_try and (decides or missing) and affordable):
            self._lower_upper_exactly(x, value, error, Bx, shift)
            self.next_try = self.seen + 1 + self.seen // 4
        self._look_within(self._bound_by_levels(candidate, value, error, Bx, shift), value, error, Bx, shift)
        self._plan_look(self.known_gap)
        self._check_order()
        return self.is_solved

    def _plan_look(self, gap: float) -> None:
        """The next look is half way to where gaps that shrink as they did would meet the target."""
        (seen, before), self.last_look = self.last_look, (self.seen, gap)
        ahead = 0.0
        # Other bounds than those from all gradients together come and go: none is left out.
        if self.below.combines and 0.0 < self.target < gap < before < math.inf:
            rate = (math.log(before) - math.log(gap)) / (self.seen - seen)
            ahead = min(0.5 * (math.log(gap) - math.log(self.target)) / rate, self.seen // _RARER, _RAREST)
        # Where bounds can be expected at less than they cost, every second point is asked for that alone.
        self.next_look = self.seen + 1 + max(int(ahead), int(self.below.foresees))

    def _is_hopeless(self, candidate: Candidate) -> bool:
        """Whether the bound at this y is expected too far below all upper ones, F at this point included.

        So far that neither the target is met nor what rounding takes of bounds. Where nothing is ever expected, a look
        is not due yet.
        """
        known, pull = candidate.linearisation, candidate.BTy
        if known is not None:
            self.below.remember(known)
        if not self.below.foresees:
            return True
        if known is None or known.point is not candidate.x or pull is None:
            return False
        g_value = self.value_of("g", candidate.y) if candidate.g_value is None else candidate.g_value
        here, bound = self.below.expect(pull, known)
        decisive = max(self.target, ROUNDING * self.magnitude, 4.0 * self.margins)
        # A NaN is looked at.
        return bool(min(here - g_value, self.upper) - max(bound - g_value, self.lower) > _NEARLY * decisive)

    def _raise_lower_by_gradient(self, candidate: Candidate, Bx: Array, g_value: float) -> None:
        """The bound from the gradient of f that the method knows, for one product."""
        if candidate.linearisation is None:
            return
        if not self.below.possible:
            self.reason = "f has no known strong convexity and X is unbounded: no lower bound from gradients."
            return
        pull = self._pull(candidate, Bx)
        shift = product_shift(self.problem.coupling, candidate.y, pull, self.mismatch)
        bound = self.below.minimum(pull, candidate.linearisation, shift)
        error = candidate.g_error
        if candidate.g_value is None or error is None:
            error = errors_at(self.problem.g, candidate.y, g_value).value
        terms = abs(g_value) + abs(bound)
        self._accept_lower(bound - g_value, candidate.y, "residual", error, terms, self.below.margin)

    def _raise_lower_by_average(self, constant: float, slope: Array, y: Array) -> None:
        """The bound from an averaged lower model of f on a bounded set, which needs no strong convexity."""
        pull = self.oracles.adjoint(y)
        found = tilted_minimum(self.split.f_simple, slope + pull, self.problem.X)
        g_value = self.value_of("g", y)
        sizes = float(np.linalg.norm(slope)) + float(np.linalg.norm(pull))
        shift = product_shift(self.problem.coupling, y, pull, self.mismatch) + FEW * sizes
        margin = errors_at(self.problem.g, y, g_value).value + shift * self.problem.X.radius_at_zero
        terms = abs(constant) + abs(found.lower) + abs(g_value)
        self._accept_lower(constant + found.lower - g_value, y, "model", margin, terms, found.rounding)

    def _lower_upper_exactly(self, x: Array, value: float, error: float, Bx: Array, shift: float) -> None:
        """The bound from a certified best response to x."""
        most = int(max(self.allowance.g - self.oracles.calls.g - 1, 1)) if self._costly_g else _FEWEST_GRADIENTS
        found = self._best_response(Bx, _INNER_PART * self.target, most)
        if found is not None:
            margin = error + self._g.margin(-Bx, shift, found)
            self._accept_upper(value - found.lower, x, margin, abs(value) + abs(found.lower), found.rounding)

    def judge_exactly(self, candidate: Candidate, accuracy: float = 0.0, max_gradients: int = 1000) -> bool:
        """Both bounds of a candidate whatever they cost: certified inner solves on both sides."""
        if not self._is_feasible(candidate):
            # A bound at such a point is one of another problem.
            return self.is_solved
        self._own, self._candidate_y = (-math.inf, math.inf), candidate.y
        value, error = self._evaluate(candidate)
        Bx = candidate.Bx if candidate.Bx is not None else self.oracles.forward(candidate.x)
        pull, wrong = self._pull(candidate, Bx), self._shift_of_product(candidate, Bx)
        self._lower_upper_exactly(candidate.x, value, error, Bx, wrong)
        self._note_size(value, float(np.vdot(candidate.y, Bx)))
        found = self._minimum(self._f, pull, candidate.x, accuracy, max_gradients)
        candidate = replace(candidate, BTy=pull)
        if found is None:
            self._look_within(self._bound_by_levels(candidate, value, error, Bx, wrong), value, error, Bx, wrong)
            return self.is_solved
        if candidate.y is self._start[1]:
            self.scale_below = min(self.scale_below, found.value)
        g_value = self.value_of("g", candidate.y)
        g_error = errors_at(self.problem.g, candidate.y, g_value).value
        shift = product_shift(self.problem.coupling, candidate.y, pull, self.mismatch)
        margin = g_error + self._f.margin(pull, shift, found)
        terms = abs(g_value) + abs(found.lower)
        self._accept_lower(found.lower - g_value, candidate.y, "exact", margin, terms, found.rounding)
        self._look_within(self._bound_by_levels(candidate, value, error, Bx, wrong), value, error, Bx, wrong)
        self._check_order()
        return self.is_solved

    def _bound_by_levels(self, candidate: Candidate, value: float, error: float, Bx: Array, shift: float) -> Candidate:
        """Bounds over sets that contain every solution, from what is known of the candidate: see levels.py.

        Until one bounds the block, every candidate is a point to refer to; then the candidates 1, 2, 4, 8, ... are.
        """
        on_x, on_y = self._levels
        x_is_open = on_x.is_possible and not self.below.possible
        y_is_open = on_y.is_possible and not self.above.possible
        if not (x_is_open or y_is_open):
            return candidate
        self.referred += 1
        refers_x, refers_y = (
            one is None or self.referred & (self.referred - 1) == 0 for one in (self.x_weights, self.y_weights)
        )
        split, y = self.split, candidate.y
        known_f = _known(candidate.linearisation, split.f_rest, candidate.x)
        if y_is_open:
            if refers_y:
                self._refer(1, -Bx, shift, value + error)
            known_g = _known(candidate.g_linearisation, split.g_rest, y)
            levels = self._level_sets_of(1)
            if known_f is not None and on_y.is_onto(on_x):
                slope = known_f.sizes[1] + self.below.steepness * float(np.linalg.norm(candidate.x - known_f.point))
                slope += errors_at(split.f_rest, known_f.point, known_f.value, known_f.sizes[1]).gradient
                missed = float(np.linalg.norm(Bx - on_y.linear_part)) + shift
                levels.append(on_y.onto(on_x, value + error, slope, missed))
            if levels and known_g is not None:
                model = self.above.model_at(-Bx, known_g, y, shift)
                for level in levels:
                    least, margin = on_y.least(level, model, y)
                    self._accept_upper(value - least, candidate.x, error, abs(value) + abs(least), margin, level.words)
        if x_is_open and known_f is not None and (refers_x or self._reach_of(0) < math.inf):
            pull = self._pull(candidate, Bx)
            candidate = replace(candidate, BTy=pull)
            g_value = self.value_of("g", y) if candidate.g_value is None else candidate.g_value
            g_error = errors_at(self.problem.g, y, g_value).value if candidate.g_error is None else candidate.g_error
            wrong = product_shift(self.problem.coupling, y, pull, self.mismatch)
            if refers_x:
                self._refer(0, pull, wrong, g_value + g_error)
            if levels := self._level_sets_of(0):
                model = self.below.model_at(pull, known_f, candidate.x, wrong)
                for level in levels:
                    least, margin = on_x.least(level, model, candidate.x)
                    terms = abs(g_value) + abs(least)
                    self._accept_lower(least - g_value, y, "level set", g_error, terms, margin, level.words)
        return candidate

    def _reach_of(self, block: int) -> float:
        """What F is known to be at most for x of a solution; -F for y."""
        return min(self.upper, self._best[1]) if block == 0 else -max(self.lower, self._best[0])

    def _growth_of(self, block: int) -> Growth | None:
        weights = (self.x_weights, self.y_weights)[block]
        return None if weights is None else Growth(weights, self.offsets[block])

    def _level_sets_of(self, block: int) -> list[Level]:
        """Bounded sets that contain the solutions in one block; none where its bound is not known yet."""
        sets, most = self._levels[block], self._reach_of(block)
        if most == math.inf:
            return []
        growth = self._growth_of(block)
        found = [] if growth is None else [sets.level(growth, most)]
        return sets.smallest(found + sets.at_zero(most + self._at_zero[block]) + sets.by_rank(most))

    @cached_property
    def _at_zero(self) -> tuple[float, float]:
        """g(0) and f(0) from above, where they cost no call and 0 is a point of the set; else infinite."""
        found = []
        for side, rest in ((self._g, self.split.g_rest), (self._f, self.split.f_rest)):
            zero = np.zeros(side.domain.shape)
            if isinstance(rest, Zero) and not runs_own_code(side.function) and side.domain.violation(zero) == 0.0:
                value = side.function.value(zero)
                found.append(value + errors_at(side.function, zero, value).value)
            else:
                found.append(math.inf)
        return found[0], found[1]

    def _refer(self, block: int, tilt: Array, error: float, most: float) -> None:
        """Every solution has F(x, y) <= upper for this y, and F(x, y) >= lower for this x: keep the best of them.

        `tilt` is B^T y or -B x, and `most` bounds g(y) or f(x) from above.
        """
        sets = self._levels[block]
        growth = sets.growth(tilt, error)
        offset = round_up(growth.offset + most, abs(growth.offset) + abs(most))
        if sets.is_better(Growth(growth.weights, offset), self._growth_of(block), self._reach_of(block)):
            if block == 0:
                self.x_weights, self.offsets = growth.weights, (offset, self.offsets[1])
            else:
                self.y_weights, self.offsets = growth.weights, (self.offsets[0], offset)

    def _look_within(self, candidate: Candidate, value: float, error: float, Bx: Array, shift: float) -> None:
        """The gap within radii around a candidate that has no bound on a whole set: see certificates/within.py."""
        (lower, upper), (x, y) = self._own, (candidate.x, candidate.y)
        open_sides = [side for side, bound in ((self.below, lower), (self.above, upper)) if not math.isfinite(bound)]
        # Where a bound on the whole set is possible, it is waited for.
        if self.goal.radius == 0.0 or not open_sides or any(side.possible for side in open_sides):
            return
        split, problem = self.split, self.problem
        known_f, known_g = candidate.linearisation, candidate.g_linearisation
        if known_f is None:
            if not isinstance(split.f_rest, Zero):
                return
            known_f = Linearisation(x, 0.0, np.zeros_like(x))
        if known_g is None and (upper == math.inf or self.first_slopes is None):
            at_y = (0.0, np.zeros_like(y))
            if self._costly_g:
                at_y = self.oracles.made("g", 1, lambda: split.g_rest.value_and_gradient(read_only(y)))
            known_g = Linearisation(y, *at_y)
        pull = self._pull(candidate, Bx)
        if self.first_slopes is None and known_g is not None:
            slopes = known_f.gradient + pull, known_g.gradient - Bx
            simple = finite_slope(split.f_simple, x, problem.X), finite_slope(split.g_simple, y, problem.Y)
            f_slope, g_slope = (float(np.linalg.norm(a + b)) for a, b in zip(slopes, simple, strict=True))
            self.first_slopes = f_slope, g_slope
        sizes = self._sizes(x, y)
        radii = self.given_radii or self._radii(sizes, self._least_sizes(value, x, y, Bx, sizes))
        if not all(
            math.isfinite(bound) or 0.0 < radius < math.inf for bound, radius in zip(self._own, radii, strict=True)
        ):
            return
        margins, taus = [self.margin_below, self.margin_above], list(self.taus)
        if not math.isfinite(lower):
            wrong = product_shift(problem.coupling, y, pull, self.mismatch)
            found = self.below.least_within(pull, known_f, x, radii[0], wrong, taus[0])
            g_value = self.value_of("g", y) if candidate.g_value is None else candidate.g_value
            g_error = errors_at(problem.g, y, g_value).value if candidate.g_error is None else candidate.g_error
            margins[0] = found.margin + g_error + 16.0 * EPS * (abs(g_value) + abs(found.value))
            lower, taus[0] = found.value - g_value - g_error - 16.0 * EPS * (abs(g_value) + abs(found.value)), found.tau
        else:
            radii = math.inf, radii[1]
        if not math.isfinite(upper) and known_g is not None:
            found = self.above.least_within(-Bx, known_g, y, radii[1], shift, taus[1])
            margins[1] = found.margin + error + 16.0 * EPS * (abs(value) + abs(found.value))
            upper, taus[1] = value - found.value + error + 16.0 * EPS * (abs(value) + abs(found.value)), found.tau
        else:
            radii = radii[0], math.inf
        self.taus = taus[0], taus[1]
        # Written so that a NaN is never accepted; a bound above the other is rounding, or a contradiction.
        self._seen_within = abs(upper - lower) if math.isfinite(upper - lower) else math.inf
        if lower <= upper and self._seen_within < self.near_gap:
            self.near, self.near_lower, self.near_upper, self.near_margin = (x, y), lower, upper, sum(margins)
            self.radii, self.near_size = radii, self._linear_size(x, y, sizes, known_f, known_g)
        self.looks += 1
        if not self.is_solved and self.looks & (self.looks - 1) == 0:
            self._look_for_rays(x, y, Bx, pull, sizes)

    def _least_sizes(
        self, value: float, x: Array, y: Array, Bx: Array, sizes: tuple[float, float]
    ) -> tuple[float, float]:
        """Sizes of multipliers at which a constraint that is missed by as much as its terms costs as much as F.

        Within them a target relative to F asks for residuals that are small beside their terms, however large a
        constant F has, and whether or not multipliers of any size were met.
        """
        norm, found = self.problem.coupling.norm.upper, []
        for side, point, other in ((self._f, x, sizes[1]), (self._g, y, sizes[0])):
            function = side.function
            is_linear = function.linear and not runs_own_code(function)
            slope = float(np.linalg.norm(function.gradient(point))) if is_linear else 0.0
            found.append(1.0 / math.hypot(slope, norm * other) if slope > 0.0 else 0.0)
        # Costly functions are not linear.
        size = abs(value + float(np.vdot(y, Bx)) - self.value_of("g", y)) if any(found) and not self._costly_g else 0.0
        return size * found[0], size * found[1]

    def _linear_size(
        self, x: Array, y: Array, sizes: tuple[float, float], known_f: Linearisation, known_g: Linearisation | None
    ) -> float:
        """What slopes of f and g are worth: the scale of F where it is 0 at the start."""
        slopes = known_f.gradient, 0.0 if known_g is None else known_g.gradient
        sides = (self.split.f_simple, self._f.domain), (self.split.g_simple, self._g.domain)
        worth = 0.0
        for slope, (simple, domain), point, size in zip(slopes, sides, (x, y), sizes, strict=True):
            worth += size * float(np.linalg.norm(slope + finite_slope(simple, point, domain)))
        return worth

    def _look_for_rays(self, x: Array, y: Array, Bx: Array, pull: Array, sizes: tuple[float, float]) -> None:
        """End the run at a ray of Y along which F rises whatever x is, or of X along which it falls whatever y is."""
        problem, names = self.problem, ("INFEASIBLE", "UNBOUNDED")
        names = names[::-1] if isinstance(problem.coupling, Mirrored) else names
        far_x, far_y = (_FAR * radius for radius in self._radii(sizes))
        past, self.passed = self.passed, (x, y)
        ways = ([x], [y]) if past is None else ([x - past[0], x], [y - past[1], y])
        if self._has_ray(self._g, y, ways[1], Bx, self.oracles.adjoint, x, problem.X, far_x):
            raise RunEnded(names[0], f"The distance is {far_x:.4g} around {'x' if names[0] == 'INFEASIBLE' else 'y'}")
        if self._has_ray(self._f, x, ways[0], -pull, lambda ray: -self.oracles.forward(ray), y, problem.Y, far_y):
            raise RunEnded(names[1], f"The distance is {far_y:.4g} around {'y' if names[1] == 'UNBOUNDED' else 'x'}")

    def _has_ray(
        self,
        side: Side,
        point: Array,
        ways: Sequence[Array],
        product: Array,
        adjoint: Callable[[Array], Array],
        center: Array,
        other: Domain,
        radius: float,
    ) -> bool:
        """Whether a ray of one side, on which its function is linear, excludes all points of the other near a center.

        Points that run away go along such a ray, and so does what constraints are missed by.
        """
        function = side.function
        if side.domain.bounded or not function.linear or runs_own_code(function) or not radius > 0.0:
            return False
        slope = function.gradient(point)
        for direction in (*ways, product - slope):
            ray = side.domain.recession(direction)
            length = float(np.linalg.norm(ray))
            if 0.0 < length < math.inf:
                ray = ray / length
                tilt = adjoint(ray)
                error = product_shift(self.problem.coupling, ray, tilt, self.mismatch) + FEW * float(
                    np.linalg.norm(tilt)
                )
                level = float(np.vdot(slope, ray)) + FEW * float(np.abs(slope * ray).sum())
                if separates_within(tilt, level, error, center, radius, other):
                    return True
        return False

    def _radii(self, sizes: tuple[float, float], least: tuple[float, float] = (0.0, 0.0)) -> tuple[float, float]:
        """The lengths that a claim within a radius speaks of: multiples of the sizes of both blocks."""
        return self.goal.radius * max(sizes[0], least[0]), self.goal.radius * max(sizes[1], least[1])

    def _sizes(self, x: Array, y: Array) -> tuple[float, float]:
        """How large both blocks are, from the points, the first slopes, and a part of what was met on the way."""
        assert self.first_slopes is not None
        norm, sizes = self.problem.coupling.norm.upper, []
        f_slope, g_slope = self.first_slopes
        sides = (x, 0, self.below, f_slope, g_slope), (y, 1, self.above, g_slope, f_slope)
        for point, block, side, own, other in sides:
            size = max(float(np.linalg.norm(point)), float(np.linalg.norm(point - self._start[block])))
            # How far a first step would go, what the other block asks for, and a part of what was met on the way:
            # multipliers of a problem that is constraints alone may shrink for ever.
            size = max(size, own / side.steepness if 0.0 < side.steepness < math.inf else 0.0)
            sizes.append(max(size, other / norm if norm > 0.0 else 0.0, _KEPT * self.largest[block]))
        self.largest = max(self.largest[0], sizes[0]), max(self.largest[1], sizes[1])
        return sizes[0], sizes[1]

    def gap_at(self, candidate: Candidate, accuracy: float = 0.0, max_gradients: int = 1000) -> float:
        """Gap of this candidate alone, by `judge_exactly`."""
        return self.apart(lambda: self.judge_exactly(candidate, accuracy, max_gradients))

    def apart(self, work: Callable[[], object]) -> float:
        """Gap of the bounds that `work` finds on its own; the best bounds of the run are kept with their points."""
        upper, x, lower, y, kind = self.upper, self.x, self.lower, self.y, self.kind
        margins, trusted, said = (self.margin_above, self.margin_below), self.mismatch, self.said
        self._best = lower, upper
        self.upper, self.lower, self._seen_within = math.inf, -math.inf, math.inf
        try:
            work()
            gap = min(self.gap, self._seen_within)
        finally:
            # Also when an interrupt or an exception cuts the work short.
            if self.mismatch > trusted:
                upper, lower = math.inf, -math.inf
            if upper <= self.upper:
                self.upper, self.x, self.margin_above, self.said = upper, x, margins[0], (self.said[0], said[1])
            if lower >= self.lower:
                self.lower, self.y, self.kind, self.margin_below = lower, y, kind, margins[1]
                self.said = said[0], self.said[1]
            self._best = -math.inf, math.inf
        self._check_order()
        return gap

    def open(self) -> None:
        """What a relative target needs, once, before the first step: F(x_0, best y) - F(., y_0).

        Values of F(x, y_0) that are met on the way complete it.
        """
        if self.is_open:
            return
        x, y = self._start
        self.start_pull, Bx = self.oracles.pull(y), self.oracles.image(x)
        value = self.value_of("f", x)
        found = self._best_response(Bx, 0.0, _GRADIENTS_FOR_SCALE)
        if found is not None and np.array_equal(found.point, y):
            # Where no curvature is known the first gradients may go into finding a step.
            found = self._best_response(Bx, 0.0, _MORE_FOR_SCALE)
        self.scale_below = value + float(np.vdot(self.start_pull, x))
        if found is not None and np.isfinite(found.point).all():
            reply = float(np.vdot(found.point, Bx)) - self.value_of("g", found.point)
            self.scale_above = value + reply + self.value_of("g", y)
        else:
            size = abs(self.scale_below - self.value_of("g", y))
            self.start_size = size if size < math.inf else 0.0
        if self._levels[1].is_possible and not self.above.possible:
            wrong = product_shift(self.problem.coupling, x, Bx, self.mismatch)
            self._refer(1, -Bx, wrong, value + errors_at(self.problem.f, x, value).value)
        if self._levels[0].is_possible and not self.below.possible:
            g_value, wrong = (
                self.value_of("g", y),
                product_shift(self.problem.coupling, y, self.start_pull, self.mismatch),
            )
            self._refer(0, self.start_pull, wrong, g_value + errors_at(self.problem.g, y, g_value).value)
        self.is_open = True

    def _descend_from_start(self) -> None:
        """One proximal gradient step on F(., y_0) from x_0: lower than F(x_0, y_0) unless x_0 is its minimiser."""
        self.has_descended = True
        x, X, rest, pull = self._start[0], self.problem.X, self.split.f_rest, self.start_pull
        assert pull is not None
        slope = self.oracles.made("f", 1, lambda: rest.gradient(x)) + pull
        known = smoothness_at_hand(rest, X)
        L = max(known.H, 1e-300) if known is not None and known.nu == 1.0 else 1.0
        for _ in range(20):
            step = prox(self.split.f_simple, x - slope / L, L, X)
            self.scale_below = min(self.scale_below, self.value_of("f", step) + float(np.vdot(pull, step)))
            if self.start_gap > 0.0 or np.array_equal(step, x):
                return
            L *= 8.0

    def judge_start(self) -> None:
        """Bounds at the start, or where the method is, if a limit comes before anything was judged; on top of it."""
        self.oracles.gate, self._left = always_open, no_limit
        self.open()
        x, y = self.latest
        self.allowance = Calls(_FEWEST_GRADIENTS, self.oracles.calls.g + _FEWEST_GRADIENTS, 0)
        value = self.rest_value(x)
        if self.oracles.finite(x, y):
            self.judge_exactly(Candidate(x, y, value), 0.0, _FEWEST_GRADIENTS)

    def confirm(self) -> None:
        """Before a success is claimed: own code that was hardly compared is probed, as far as the limits allow."""
        try:
            check_own_steps(self.oracles)
            for guard, around in zip((self.pair_f, self.pair_g), self.point, strict=True):
                guard.probe(self.oracles, around, self._left(guard.name))
        except RunEnded as ended:
            # A limit, or an answer without numbers at a place where the run has never been, takes no bound away.
            if ended.status == Status.INCONSISTENT.name:
                raise

    def doubt(self, mismatch: float) -> None:
        """The adjoint of B is off by this much; bounds that trusted it more are dropped."""
        if mismatch > self.mismatch:
            self.mismatch = mismatch
            self.lower, self.upper, self.near = -math.inf, math.inf, None
            self._best, self.x_weights, self.y_weights = (-math.inf, math.inf), None, None
            self.said = "", ""
            self.near_lower, self.near_upper, self.radii = -math.inf, math.inf, (math.inf, math.inf)

    def value_of(self, name: str, point: Array) -> float:
        """f(x) or g(y); counts as its costly part does, or as a run of the caller's code."""
        side, rest = (self._f, self.split.f_rest) if name == "f" else (self._g, self.split.g_rest)
        cost = 1.0 if self._runs_own_code[name] else rest.lone_value_cost
        return self.oracles.made(name, cost, lambda: side.function.value(read_only(point)))

    def rest_value(self, x: Array) -> float:
        """The costly part of f at x, counted."""
        rest = self.split.f_rest
        return self.oracles.made("f", rest.lone_value_cost, lambda: rest.value(read_only(x)))

    def _evaluate(self, candidate: Candidate) -> tuple[float, float]:
        """F at the candidate, and what rounding can have done to it."""
        x, simple, error = candidate.x, self.below.simple_value(candidate.x), candidate.error
        if error is None:
            error = errors_at(self.split.f_rest, x, candidate.value).value
        error += errors_at(self.split.f_simple, x, simple).value
        return candidate.value + simple, error + FEW * (abs(candidate.value) + abs(simple))

    def _is_feasible(self, candidate: Candidate) -> bool:
        """A bound at an infeasible point is no bound."""
        return all(
            domain.violation(point) <= _FEASIBILITY * (1.0 + float(np.max(np.abs(point), initial=0.0)))
            for point, domain in ((candidate.x, self.problem.X), (candidate.y, self.problem.Y))
        )

    def _note_size(self, *terms: float) -> None:
        size = sum(abs(term) for term in terms)
        if math.isfinite(size):
            self.magnitude = size

    def _shift_of_product(self, candidate: Candidate, Bx: Array) -> float:
        term_size = candidate.term_size if candidate.Bx is not None else 0.0
        return product_shift(self.problem.coupling, candidate.x, Bx, self.mismatch, term_size)

    def _pull(self, candidate: Candidate, Bx: Array) -> Array:
        """B^T y, which must fit the product Bx."""
        pull = self.oracles.adjoint(candidate.y) if candidate.BTy is None else candidate.BTy
        self.doubt(check_pair(self.problem.coupling, candidate.x, Bx, candidate.y, pull))
        return pull

    def _minimum(self, side: Side, tilt: Array, start: Array, accuracy: float, most: int) -> TiltedMinimum | None:
        """The minimum of f or g with a tilt, by no more gradients than limits leave; None where none is known."""
        # Two values may come beside what the search counts itself.
        tally = Tally(self._left(side.name) - 2.0)
        if not (tally.allows(1.0) or has_closed_minimum(side.function, side.domain)):
            raise RunEnded(Status.CALL_LIMIT.name)
        try:
            return side.minimum(self.oracles, tilt, read_only(start), accuracy, most, tally)
        except NoExactMinimumError as missing:
            self.reason = str(missing)
            return None

    def _best_response(self, Bx: Array, accuracy: float, most: int) -> TiltedMinimum | None:
        """The minimum of g(y) - <y, Bx>, whose lower bound is an upper one of the best value over Y."""
        found = self._minimum(self._g, -Bx, self.response, accuracy, most)
        self.response = self.response if found is None else found.point
        return found

    def _accept_lower(
        self,
        bound: float,
        y: Array,
        kind: str,
        margin: float = 0.0,
        terms: float = 0.0,
        inside: float = 0.0,
        said: str = "",
    ) -> None:
        """A bound less its margin; `terms` are the sizes of what it was summed of, `inside` a margin it has already.

        One that rests on what every solution obeys is none on the whole set.
        """
        margin += 16.0 * EPS * (abs(bound) + terms)
        bound -= margin
        if y is self._candidate_y and bound > self._own[0] and not said:
            self._own = bound, self._own[1]
        # Comparisons are written so that a NaN is never accepted. Nor is a linearisation at an infinite value a bound.
        if self.lower < bound < math.inf:
            self.lower, self.y, self.kind, self.margin_below = bound, y, kind, margin + inside
            self.said = said, self.said[1]

    def _accept_upper(
        self, bound: float, x: Array, margin: float = 0.0, terms: float = 0.0, inside: float = 0.0, said: str = ""
    ) -> None:
        margin += 16.0 * EPS * (abs(bound) + terms)
        bound += margin
        if bound < self._own[1] and not said:
            self._own = self._own[0], bound
        if -math.inf < bound < self.upper:
            self.upper, self.x, self.margin_above = bound, x, margin + inside
            self.said = self.said[0], said

    def _check_order(self) -> None:
        """A lower bound above the upper one is no gap: what rounding can not explain, oracles have contradicted."""
        apart = self.lower - self.upper
        if not apart > 0.0:
            return
        reason = (
            f"the lower bound {self.lower:.6g} lies above the upper one {self.upper:.6g} by {apart:.3g}: values, "
            "gradients or products are less exact than they should be. Check f, g and B."
        )
        # As for other guards, oracles in single precision are no contradiction.
        size = max(abs(self.lower) + abs(self.upper), self.magnitude)
        rounding = apart <= max(self.margins, CONVEXITY * size)
        raise RunEnded("NUMERICAL_LIMIT", reason) if rounding else inconsistent(reason)


def _sides(problem: SaddleProblem, split: Split) -> tuple[PairGuard, PairGuard, ResidualBound, ResidualBound]:
    """What is known of the costly parts of f and g: what they have been asked, and bounds that follow."""
    said = ("g", "f") if isinstance(problem.coupling, Mirrored) else ("f", "g")
    return (
        PairGuard("f", split.f_rest, problem.X, said[0]),
        PairGuard("g", split.g_rest, problem.Y, said[1]),
        ResidualBound(split.f_rest, split.f_simple, problem.X),
        ResidualBound(split.g_rest, split.g_simple, problem.Y),
    )


def _known(known: Linearisation | None, rest: Function, point: Array) -> Linearisation | None:
    """What is known of the costly part; where there is none, that it is 0."""
    return Linearisation(point, 0.0, np.zeros_like(point)) if known is None and isinstance(rest, Zero) else known
