"""The judge of a run: cheap true bounds first, dearer ones only when they can decide.

Any feasible x bounds the saddle value from above by max_y F(x, y), any feasible y from below by min_x F(x, y); the best
of each are kept (bounds.py). Known gradients of f and of g bound the inner extrema for one product (residuals.py); on
bounded sets the averaged models of the run do the same without strong convexity; certified inner solves come last.
Where nothing bounds a set, sets that contain every solution do (solutions.py), or the gap is one within radii
(nearby.py), and rays may prove that there is no solution (rays.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from saddleslide import certificates
from saddleslide.arrays.base import Array, length_of
from saddleslide.arrays.kinds import NUMPY
from saddleslide.certificates.bounds import Bounds
from saddleslide.certificates.candidate import Candidate, HullState, Split
from saddleslide.certificates.guards import PairGuard, check_own_steps
from saddleslide.certificates.inspection import Inspection, Questions
from saddleslide.certificates.looks import AscentState, Looks
from saddleslide.certificates.residuals import ResidualBound
from saddleslide.certificates.scale import Scale
from saddleslide.certificates.unbounded import Around, Rays, SolutionsState
from saddleslide.certificates.verdict import ROUNDING, Certificate, Status
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.minimum import tilted_minimum
from saddleslide.functions.roundings import FEW
from saddleslide.functions.trust import errors_at
from saddleslide.operators.base import Mirrored
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
# A point whose bounds are expected to miss the target by less than this factor is looked at.
_NEARLY = 1.01


@dataclass(eq=False, repr=False, kw_only=True)
class JudgeState(Bounds):
    """What a judge has found: the best bounds with their points, the scale of a relative target, and what was tried."""

    # The method's own point: the answer for a block that no bound speaks of.
    latest: tuple[XArray, YArray]
    asked: Questions
    pair_f: XGuard
    pair_g: YGuard
    below: XResidualBound
    above: YResidualBound
    solutions: SolutionsState
    nearby: Around
    rays: Rays
    scale: Scale
    looks: Looks
    hull: HullState
    ascent: AscentState


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
        self.problem, self.goal, self._start, self._assumes = problem, goal, start, problem.assumptions
        oracles = Oracles(problem, gate, dry, guarded=True)
        Bounds.__init__(self, *start)
        self.latest, self.rays, self.scale, self.looks = start, Rays(), Scale(goal.gap_share == 0.0), Looks()
        self.asked = Questions(problem, split, oracles, start[1], left, self._recant)
        # Where F(., y_0) is known, for a second look at the same point.
        self._fallen = start[0], math.inf
        self._divide()

    def _divide(self) -> None:
        """All that rests on which parts of f and g are simple."""
        asked, said = self.asked, ("g", "f") if isinstance(self.problem.coupling, Mirrored) else ("f", "g")
        split, X, Y = asked.split, self.problem.X, self.problem.Y
        self.pair_f, self.pair_g = PairGuard("f", split.f_rest, X, said[0]), PairGuard("g", split.g_rest, Y, said[1])
        self.below = ResidualBound(split.f_rest, split.f_simple, X)
        self.above = ResidualBound(split.g_rest, split.g_simple, Y)
        self.solutions, self.nearby, self.hull = SolutionsState(), Around(self), HullState()
        climbs = self.below.combines and isinstance(split.g_rest, Zero)
        self.ascent = certificates.Ascent(asked, self.below) if climbs else AscentState()
        if not (self.below.possible and self.above.possible):
            self.solutions = certificates.Solutions(asked, self, self.below, self.above)
            self.nearby = certificates.Nearby(asked, self, self.below, self.above, self._start, self.goal.radius)
        self._is_rough = (self.below.is_rough or self.above.is_rough) and self.problem.arrays is NUMPY

    def resplit(self, split: Split) -> None:
        """Other parts are simple from now on; the modulus and the old linearisations belong to the old split."""
        solutions, nearby = self.solutions, self.nearby
        self.asked.split = split
        self._divide()
        for new, old in ((self.solutions, solutions), (self.nearby, nearby)):
            for entry in fields(old):
                setattr(new, entry.name, getattr(old, entry.name))

    @property
    def oracles(self) -> Oracles:
        """What judging calls."""
        return self.asked.oracles

    @property
    def calls(self) -> Calls:
        """What judging has taken."""
        return self.oracles.calls

    @property
    def target(self) -> float:
        """The gap that ends the run."""
        claim = self.nearby if self.is_within else self
        return self._target_of(claim.fall, claim.lower, claim.upper)

    def target_at(self, value: float) -> float:
        """The same, were this the saddle value, as far as bounds allow: before there are any, nothing else says it."""
        value = min(max(value, self.lower), self.upper)
        return self.target if math.isnan(value) else self._target_of(value, value, value)

    def _target_of(self, fall: float, lower: float, upper: float) -> float:
        """That of a claim, the global one or the one within radii: its bounds, and F(x, y_0)."""
        scale = self.scale
        first = scale.gap_to(fall)
        target = max(self.goal.at(first, lower, upper), scale.rounding)
        # Where the gap at the start is not known, the size of F there stands for it: saddle values may be 0.
        return target if first > 0.0 else max(target, self.goal.gap_share * (scale.size or self.nearby.worth))

    def accept_start(self) -> bool:
        """Whether the start is a solution up to rounding: beside a saddle value of 0 no gap is small."""
        if self.goal.rtol > 0.0 and self.at_rounding and not self.is_within:
            self.scale.rounding = self.gap
        return self.is_solved

    @property
    def first_target(self) -> float:
        """The target before anything is known: F at the start stands for the saddle value."""
        value = abs(self.scale.below) if math.isfinite(self.scale.below) else 0.0
        return max(self.target, self.goal.rtol * value)

    @property
    def is_within(self) -> bool:
        """Whether the claim is the one within radii: the other, which says more, does not meet the target."""
        return self.nearby.gap < self.gap and not self.gap <= self._target_of(self.fall, self.lower, self.upper)

    @property
    def known_gap(self) -> float:
        """The certified gap, or the one within the radii where that is smaller."""
        return min(self.gap, self.nearby.gap)

    @property
    def is_solved(self) -> bool:
        """Whether the certified gap meets the target."""
        return not self.lower > self.upper and self.known_gap <= self.target

    @property
    def at_rounding(self) -> bool:
        """Whether the gap can not be told from rounding of the bounds themselves."""
        near = self.nearby
        if self.is_within:
            size = max(abs(near.upper) + abs(near.lower), self.magnitude)
            return near.gap <= max(ROUNDING * size, 1.5 * near.margin)
        size = max(abs(self.upper) + abs(self.lower), self.magnitude)
        return math.isfinite(self.gap) and self.gap <= max(ROUNDING * size, 1.5 * self.margins)

    @property
    def point(self) -> tuple[Array, Array]:
        """The x of the upper and the y of the lower bound; where there is none, the method's own."""
        if self.nearby.point is not None and self.is_within:
            return self.nearby.point
        x = self.x if math.isfinite(self.upper) else self.latest[0]
        y = self.y if math.isfinite(self.lower) else self.latest[1]
        return x, y

    def certificate(self) -> Certificate:
        """The bounds so far."""
        known, near = math.isfinite(self.gap), self.nearby
        # Bounds that contradict each other within rounding are right up to that.
        lower, upper = (self.lower, self.upper) if self.lower <= self.upper else (self.upper, self.lower)
        found = Certificate(
            lower, upper, self.kind if known else "none", math.nan, "" if known else self.asked.reason,
            self.calls.copy(), self._assumes if known or near.point is not None else "",
            solutions=" and ".join(filter(None, self.said)) if known else "",
        )  # fmt: skip
        if not self.is_within or near.radii is None:
            return found
        return replace(found, within=(near.lower, near.upper), radii=(*near.radii[0], *near.radii[1]))

    def open(self) -> None:
        """What a relative target needs, once, before the first step."""
        if self.scale.is_open:
            return
        x, y = self._start
        value, Bx = self.scale.open(self.asked, x, y)
        assert self.scale.pull is not None
        self.solutions.refer_to_start(x, value, Bx, y, self.scale.pull)

    def judge_start(self) -> None:
        """Bounds at the start, or where the method is, if a limit comes before anything was judged; on top of it."""
        self.oracles.gate, self.asked.left = always_open, no_limit
        self.open()
        x, y = self.latest
        self.asked.g_allowance = self.calls.g + _FEWEST_GRADIENTS
        value = self.asked.rest_value(x)
        if self.oracles.finite(x, y):
            self.judge_exactly(Candidate(x, y, value), 0.0, _FEWEST_GRADIENTS)

    def judge(self, candidate: Candidate, may_wait: bool = False) -> bool:
        """Update the bounds with a candidate, by certified inner solves only where they decide; True at the target.

        With `may_wait` a candidate whose bounds can not meet the target is only judged now and then.
        """
        looks, scale, x = self.looks, self.scale, candidate.x
        # Where many cuts are combined, every point brings some.
        waits = may_wait and looks.is_early() and not self._is_rough
        value = candidate.value + self.below.simple_value(x)
        at_start = scale.value_at(value, x)
        # Where nobody will look, points are only asked what a relative target needs.
        falls = at_start < scale.below and self.below.possible
        is_checked = falls or not waits
        if not math.isfinite(value) or (is_checked and not self._is_feasible(candidate)):
            return self.is_solved
        scale.note(self.asked, at_start, self._start[0], self.below.possible)
        looks.seen += 1
        if candidate.earlier is not None:
            self.below.remember(candidate.earlier)
        looks.has_waited = waits and self._is_hopeless(candidate)
        if looks.has_waited or (waits and not self._is_feasible(candidate)):
            return self.is_solved
        at, self._fallen = Inspection(candidate, self.asked), (x, at_start)
        at.fall = at_start
        # Values and gradients that the method knows anyway must fit those of the last candidate.
        for guard, known in ((self.pair_f, candidate.linearisation), (self.pair_g, candidate.g_linearisation)):
            if known is not None:
                guard.look(known)
        if may_wait and (self._is_rough or candidate.columns is not None):
            certificates.look_over_hull(self.hull, at, looks.seen, self, (self.below, self.above))
        self.raise_lower_by_gradient(at)
        if may_wait:
            self.ascent.raise_lower(self, at)
        if candidate.averaged is not None and self.problem.X.bounded and self.below.modulus == 0.0:
            self._raise_lower_by_average(*candidate.averaged, at)
        if candidate.g_averaged is not None and self.problem.Y.bounded and self.above.modulus == 0.0:
            self._lower_upper_by_average(*candidate.g_averaged, at)
        self.note_size(at.value, at.g_value, at.coupled)
        if candidate.g_linearisation is not None and self.above.possible:
            # As for the lower bound, a known gradient bounds the maximum over Y.
            least = self.above.minimum(-at.Bx, candidate.g_linearisation, at.Bx_error)
            self.accept_upper(at.value - least, at, at.error, abs(at.value) + abs(least), self.above.margin)
        gap = self._decide(at, waits)
        looks.plan(gap, self.target, not self.below.combines, self.below.foresees_at(candidate.linearisation))
        self.check_order()
        return self.is_solved

    def _decide(self, at: Inspection, waits: bool) -> float:
        """What follows where the bounds from gradients are known; the gap that looks are planned by."""
        # F(x, y) never exceeds the upper bound at x, so a large difference already decides.
        rough = at.value + at.coupled - at.g_value
        decisive = max(self.target, ROUNDING * self.magnitude, 2.0 * (self.margin_below + at.error))
        decides = rough < self.upper and min(rough, self.upper) - self.lower <= decisive
        # Where a lower bound is far off, the upper one can wait.
        if waits and math.isfinite(at.lower) and not decides:
            return min(rough, self.upper) - at.lower
        # A simple g costs no call. Else tries are spaced out; until there is any bound, some are unconditional.
        free, looks = isinstance(self.asked.split.g_rest, Zero), self.looks
        missing = not math.isfinite(self.upper) and looks.seen & (looks.seen - 1) == 0
        # A certificate must not cost more than the solution: whoever is behind goes on first.
        affordable = self.calls.g + 2 <= self.asked.g_allowance
        # Where a method remembers cuts of its own, these say more than one best response.
        spends = at.candidate.columns is None and affordable
        if free or (looks.seen >= looks.next_try and (decides or missing) and spends):
            self.lower_upper_exactly(at)
            looks.note_try()
        self._look_farther(at)
        return self.known_gap

    def judge_exactly(self, candidate: Candidate, accuracy: float = 0.0, max_gradients: int = 1000) -> bool:
        """Both bounds of a candidate whatever they cost: certified inner solves on both sides."""
        if not self._is_feasible(candidate):
            # A bound at such a point is one of another problem.
            return self.is_solved
        at, asked = Inspection(replace(candidate, g_value=None, g_error=None), self.asked), self.asked
        at.fall = self._fallen[1] if self._fallen[0] is at.x else at.fall
        # Asked for first: it may show that products are less exact than was believed.
        pull = at.pull
        self.lower_upper_exactly(at)
        self.note_size(at.value, at.coupled)
        found = asked.minimum(asked.f, pull, at.x, accuracy, max_gradients)
        if found is None:
            self._look_farther(at)
            return self.is_solved
        if at.y is self._start[1]:
            self.scale.below = min(self.scale.below, found.value)
        margin = at.g_error + asked.f.margin(pull, at.pull_error, found)
        terms = abs(at.g_value) + abs(found.lower)
        self.accept_lower(found.lower - at.g_value, at, "exact", margin, terms, found.rounding)
        self._look_farther(at)
        self.check_order()
        return self.is_solved

    def gap_at(self, candidate: Candidate, accuracy: float = 0.0, max_gradients: int = 1000) -> float:
        """Gap of this candidate alone, by `judge_exactly`."""
        return self.apart(lambda: self.judge_exactly(candidate, accuracy, max_gradients))

    def apart(self, work: Callable[[], object]) -> float:
        """Gap of the bounds that `work` finds on its own; the best bounds of the run are kept with their points."""
        upper, x, lower, y, kind, fall = self.upper, self.x, self.lower, self.y, self.kind, self.fall
        margins, trusted, said = (self.margin_above, self.margin_below), self.asked.mismatch, self.said
        self.aside, self.nearby.last_gap = (lower, upper), math.inf
        self.upper, self.lower = math.inf, -math.inf
        try:
            work()
            gap = min(self.gap, self.nearby.last_gap)
        finally:
            # Also when an interrupt or an exception cuts the work short.
            if self.asked.mismatch > trusted:
                upper, lower = math.inf, -math.inf
            if upper <= self.upper:
                self.upper, self.x, self.margin_above, self.fall = upper, x, margins[0], fall
                self.said = self.said[0], said[1]
            if lower >= self.lower:
                self.lower, self.y, self.kind, self.margin_below = lower, y, kind, margins[1]
                self.said = said[0], self.said[1]
            self.aside = -math.inf, math.inf
        self.check_order()
        return gap

    def confirm(self) -> None:
        """Before a success is claimed: own code that was hardly compared is probed, as far as the limits allow."""
        try:
            check_own_steps(self.oracles)
            for guard, around in zip((self.pair_f, self.pair_g), self.point, strict=True):
                guard.probe(self.oracles, around, self.asked.left(guard.name))
        except RunEnded as ended:
            # A limit, or an answer without numbers at a place where the run has never been, takes no bound away.
            if ended.status == Status.INCONSISTENT.name:
                raise

    def seek_rays(self, candidate: Candidate) -> None:
        """Points run away for good: end the run at a ray that proves that there is no solution, if there is one."""
        at = Inspection(candidate, self.asked)
        self.nearby.seek_rays(at, self.rays)

    def doubt(self, mismatch: float) -> None:
        """The adjoint of B is off by this much."""
        self.asked.doubt(mismatch)

    def _recant(self) -> None:
        """The adjoint of B is off by more than was believed."""
        self.drop_bounds()
        self.solutions.forget()
        self.nearby.forget()
        self.hull.forget()

    def _is_feasible(self, candidate: Candidate) -> bool:
        """A bound at an infeasible point is no bound."""
        for point, domain in ((candidate.x, self.problem.X), (candidate.y, self.problem.Y)):
            excess = domain.violation(point)
            # The size of a point takes a pass over it, and decides seldom.
            allowed = _FEASIBILITY
            if not excess <= allowed and not excess <= allowed * (1.0 + float(np.max(np.abs(point), initial=0.0))):
                return False
        return True

    def _is_hopeless(self, candidate: Candidate) -> bool:
        """Whether the bound at this y is expected too far below all upper ones, F at this point included.

        So far that neither the target is met nor what rounding takes of bounds. Where nothing is ever expected, a look
        is not due yet.
        """
        known, pull = candidate.linearisation, candidate.BTy
        if known is not None:
            self.below.remember(known)
        if not self.below.foresees_at(known):
            return True
        if known is None or known.point is not candidate.x or pull is None:
            return False
        g_value = self.asked.value_of("g", candidate.y) if candidate.g_value is None else candidate.g_value
        here, bound = self.below.expect(pull, known)
        decisive = max(self.target, ROUNDING * self.magnitude, 4.0 * self.margins)
        gap = min(here - g_value, self.upper) - max(bound - g_value, self.lower)
        # A NaN is looked at.
        return bool(gap > _NEARLY * decisive) and not self.ascent.hopes(gap / decisive, self.looks.rate)

    def part_of_target(self, upper: float) -> float:
        """The gap below an upper bound in units of the target."""
        return (upper - self.lower) / self.target if self.target > 0.0 else math.inf

    def raise_lower_by_gradient(self, at: Inspection) -> None:
        """The bound from the gradient of f that the method knows, for one product."""
        known = at.candidate.linearisation
        if known is None:
            return
        if not self.below.possible:
            self.asked.reason = "f has no known strong convexity and X is unbounded: no lower bound from gradients."
            return
        bound = self.below.minimum(at.pull, known, at.pull_error)
        terms = abs(at.g_value) + abs(bound)
        self.accept_lower(bound - at.g_value, at, "residual", at.g_error, terms, self.below.margin)

    def _raise_lower_by_average(self, constant: float, slope: Array, y: Array, at: Inspection) -> None:
        """The bound from an averaged lower model of f on a bounded set, which needs no strong convexity."""
        asked, X = self.asked, self.problem.X
        pull = asked.oracles.adjoint(y)
        found = tilted_minimum(asked.split.f_simple, slope + pull, X)
        g_value = asked.value_of("g", y)
        sizes = length_of(slope) + length_of(pull)
        shift = asked.product_error(y, pull) + FEW * sizes
        margin = errors_at(self.problem.g, y, g_value).value + shift * X.radius_at_zero
        terms = abs(constant) + abs(found.lower) + abs(g_value)
        own = at if y is at.y else y
        self.accept_lower(constant + found.lower - g_value, own, "model", margin, terms, found.rounding)

    def _lower_upper_by_average(self, constant: float, slope: Array, at: Inspection) -> None:
        """The same of g: the best response to x is known no worse than that of the model."""
        Y = self.problem.Y
        found = tilted_minimum(self.asked.split.g_simple, slope - at.Bx, Y)
        sizes = length_of(slope) + length_of(at.Bx)
        margin = at.error + (at.Bx_error + FEW * sizes) * Y.radius_at_zero
        terms = abs(at.value) + abs(constant) + abs(found.lower)
        self.accept_upper(at.value - constant - found.lower, at, margin, terms, found.rounding)

    def lower_upper_exactly(self, at: Inspection) -> None:
        """The bound from a certified best response to x."""
        asked, is_costly = self.asked, not isinstance(self.asked.split.g_rest, Zero)
        most = int(max(asked.g_allowance - self.calls.g - 1, 1)) if is_costly else _FEWEST_GRADIENTS
        found = asked.best_response(at.Bx, _INNER_PART * self.target, most)
        if found is not None:
            margin = at.error + asked.g.margin(-at.Bx, at.Bx_error, found, at.Bx_errors)
            self.accept_upper(at.value - found.lower, at, margin, abs(at.value) + abs(found.lower), found.rounding)

    def _look_farther(self, at: Inspection) -> None:
        """Where a set has no end: bounds that every solution obeys, the gap within radii, rays."""
        self.solutions.look(at)
        # Of two gaps the one that says more will do; where it is the smaller one, the other is asked for now and then.
        seen, near = self.looks.seen, self.nearby.gap
        if self.gap <= near < math.inf and seen & (seen - 1):
            return
        if self.nearby.look(at) and self.rays.is_due() and not self.is_solved:
            self.nearby.seek_rays(at, self.rays)
