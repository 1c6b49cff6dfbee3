"""The judge of a run: cheap true bounds first, dearer ones only when they can decide.

Any feasible x bounds the saddle value from above by max_y F(x, y), any feasible y from below by min_x F(x, y); the best
of each are kept. Known gradients of f and of g bound the inner extrema for one product (residuals.py); on bounded sets
the averaged models of the run do the same without strong convexity; certified inner solves come last.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from saddleslide.arrays.base import Array, read_only
from saddleslide.arrays.state import State
from saddleslide.certificates.candidate import Candidate, Split
from saddleslide.certificates.certificate import EPS, Side, product_shift
from saddleslide.certificates.guards import CONVEXITY, PairGuard, check_pair, inconsistent
from saddleslide.certificates.residuals import ResidualBound
from saddleslide.certificates.verdict import ROUNDING, Certificate, Status
from saddleslide.errors import NoExactMinimumError
from saddleslide.functions.base import errors_at, runs_own_code
from saddleslide.functions.constants import smoothness_at_hand
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.minimum import has_closed_minimum, tilted_minimum
from saddleslide.functions.roundings import FEW
from saddleslide.functions.searched import Tally, TiltedMinimum
from saddleslide.functions.separable import prox
from saddleslide.operators import Mirrored
from saddleslide.oracles.calls import Calls, RunEnded
from saddleslide.oracles.oracles import Gate, Oracles, always_open, no_limit
from saddleslide.problem import SaddleProblem

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
    allowance: Calls = field(default_factory=Calls)
    has_descended: bool = False
    is_open: bool = False


class Judge(JudgeState):
    """Keeps the best bounds and points of a run.

    The larger of `tol` and of `rtol` times the gap at the start is the target. With `dry` nothing is called: the state
    will be restored. `gate` is asked before every call, and `left` how many calls of an oracle the limits still allow.
    """

    def __init__(
        self,
        problem: SaddleProblem,
        split: Split,
        tol: float,
        rtol: float,
        start: tuple[Array, Array],
        dry: bool = False,
        gate: Gate = always_open,
        left: Callable[[str], float] = no_limit,
    ) -> None:
        oracles, (pair_f, pair_g, below, above) = Oracles(problem, gate, dry, guarded=True), _sides(problem, split)
        super().__init__(*start, start, start[1], oracles, pair_f, pair_g, below, above, is_open=rtol == 0.0)
        self.problem, self.split, self.tol, self.rtol, self._start, self._left = problem, split, tol, rtol, start, left
        self._f, self._g, self._assumes = Side(problem, "f"), Side(problem, "g"), problem.assumptions
        # Asked for now, and kept by the sides: later a function may be out of reach.
        self._moduli = self._f.modulus, self._g.modulus
        self._costly_g = not isinstance(split.g_rest, Zero)

    def resplit(self, split: Split) -> None:
        """Other parts are simple from now on; the modulus and the old linearisations belong to the old split."""
        self.split = split
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
        return max(self.tol, self.rtol * self.start_gap)

    @property
    def solved(self) -> bool:
        """Whether the certified gap meets the target."""
        return self.lower <= self.upper and self.gap <= self.target

    @property
    def at_rounding(self) -> bool:
        """Whether the gap can not be told from rounding of the bounds themselves."""
        size = max(abs(self.upper) + abs(self.lower), self.magnitude)
        return math.isfinite(self.gap) and self.gap <= max(ROUNDING * size, 1.5 * self.margins)

    @property
    def point(self) -> tuple[Array, Array]:
        """The x of the upper and the y of the lower bound; where there is none, the method's own."""
        x = self.x if math.isfinite(self.upper) else self.latest[0]
        y = self.y if math.isfinite(self.lower) else self.latest[1]
        return x, y

    def certificate(self) -> Certificate:
        """The bounds so far."""
        known = math.isfinite(self.gap)
        # Bounds that contradict each other within rounding are right up to that.
        lower, upper = (self.lower, self.upper) if self.lower <= self.upper else (self.upper, self.lower)
        return Certificate(
            lower, upper, self.kind if known else "none", math.nan, "" if known else self.reason,
            self.oracles.calls.copy(), self._assumes if known else "",
        )  # fmt: skip

    def consider(self, candidate: Candidate) -> bool:
        """Update the bounds with a candidate, by certified inner solves only where they decide; True at the target."""
        value, error = self._valued(candidate)
        if not (math.isfinite(value) and self._is_feasible(candidate)):
            return self.solved
        x, y = candidate.x, candidate.y
        if self.start_pull is not None:
            self.scale_below = min(self.scale_below, value + float(np.vdot(self.start_pull, x)))
            if self.start_gap == 0.0 and not self.has_descended:
                self._descend_from_start()
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
        self.seen += 1
        decisive = max(self.target, ROUNDING * self.magnitude, 2.0 * (self.margin_below + error))
        decides = rough < self.upper and min(rough, self.upper) - self.lower <= decisive
        # A simple g costs no call. Else tries are spaced out; until there is any bound, some are unconditional.
        free = isinstance(self.split.g_rest, Zero)
        missing = not math.isfinite(self.upper) and self.seen & (self.seen - 1) == 0
        # A certificate must not cost more than the solution: whoever is behind goes on first.
        affordable = self.oracles.calls.g + 2 <= self.allowance.g
        if free or (self.seen >= self.next_try and (decides or missing) and affordable):
            self._lower_upper_exactly(x, value, error, Bx, shift)
            self.next_try = self.seen + 1 + self.seen // 4
        self._check_order()
        return self.solved

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

    def settle(self, candidate: Candidate, accuracy: float = 0.0, max_gradients: int = 1000) -> bool:
        """Both bounds of a candidate whatever they cost: certified inner solves on both sides."""
        if not self._is_feasible(candidate):
            # A bound at such a point is one of another problem.
            return self.solved
        value, error = self._valued(candidate)
        Bx = candidate.Bx if candidate.Bx is not None else self.oracles.forward(candidate.x)
        pull = self._pull(candidate, Bx)
        self._lower_upper_exactly(candidate.x, value, error, Bx, self._shift_of_product(candidate, Bx))
        self._note_size(value, float(np.vdot(candidate.y, Bx)))
        found = self._minimum(self._f, pull, candidate.x, accuracy, max_gradients)
        if found is None:
            return self.solved
        if candidate.y is self._start[1]:
            self.scale_below = min(self.scale_below, found.value)
        g_value = self.value_of("g", candidate.y)
        g_error = errors_at(self.problem.g, candidate.y, g_value).value
        shift = product_shift(self.problem.coupling, candidate.y, pull, self.mismatch)
        margin = g_error + self._f.margin(pull, shift, found)
        terms = abs(g_value) + abs(found.lower)
        self._accept_lower(found.lower - g_value, candidate.y, "exact", margin, terms, found.rounding)
        self._check_order()
        return self.solved

    def gap_at(self, candidate: Candidate, accuracy: float = 0.0, max_gradients: int = 1000) -> float:
        """Gap of this candidate alone, by `settle`."""
        return self.apart(lambda: self.settle(candidate, accuracy, max_gradients))

    def apart(self, work: Callable[[], object]) -> float:
        """Gap of the bounds that `work` finds on its own; the best bounds of the run are kept with their points."""
        upper, x, lower, y, kind = self.upper, self.x, self.lower, self.y, self.kind
        margins, trusted = (self.margin_above, self.margin_below), self.mismatch
        self.upper, self.lower = math.inf, -math.inf
        try:
            work()
            gap = self.gap
        finally:
            # Also when an interrupt or an exception cuts the work short.
            if self.mismatch > trusted:
                upper, lower = math.inf, -math.inf
            if upper <= self.upper:
                self.upper, self.x, self.margin_above = upper, x, margins[0]
            if lower >= self.lower:
                self.lower, self.y, self.kind, self.margin_below = lower, y, kind, margins[1]
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
        if found is not None:
            reply = float(np.vdot(found.point, Bx)) - self.value_of("g", found.point)
            self.scale_above = value + reply + self.value_of("g", y)
            self.scale_below = value + float(np.vdot(self.start_pull, x))
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
            self.settle(Candidate(x, y, value), 0.0, _FEWEST_GRADIENTS)

    def confirm(self) -> None:
        """Before a success is claimed: own code that was hardly compared is probed, as far as the limits allow."""
        try:
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
            self.lower, self.upper = -math.inf, math.inf

    def value_of(self, name: str, point: Array) -> float:
        """f(x) or g(y); counts as its costly part does, or as a run of the caller's code."""
        side, rest = (self._f, self.split.f_rest) if name == "f" else (self._g, self.split.g_rest)
        cost = 1.0 if runs_own_code(side.function) else rest.lone_value_cost
        return self.oracles.made(name, cost, lambda: side.function.value(read_only(point)))

    def rest_value(self, x: Array) -> float:
        """The costly part of f at x, counted."""
        rest = self.split.f_rest
        return self.oracles.made("f", rest.lone_value_cost, lambda: rest.value(read_only(x)))

    def _valued(self, candidate: Candidate) -> tuple[float, float]:
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
        reach = candidate.reach if candidate.Bx is not None else 0.0
        return product_shift(self.problem.coupling, candidate.x, Bx, self.mismatch, reach)

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
        self, bound: float, y: Array, kind: str, margin: float = 0.0, terms: float = 0.0, inside: float = 0.0
    ) -> None:
        """A bound less its margin; `terms` are the sizes of what it was summed of, `inside` a margin it has already."""
        margin += 16.0 * EPS * (abs(bound) + terms)
        bound -= margin
        # Comparisons are written so that a NaN is never accepted. Nor is a linearisation at an infinite value a bound.
        if self.lower < bound < math.inf:
            self.lower, self.y, self.kind, self.margin_below = bound, y, kind, margin + inside

    def _accept_upper(
        self, bound: float, x: Array, margin: float = 0.0, terms: float = 0.0, inside: float = 0.0
    ) -> None:
        margin += 16.0 * EPS * (abs(bound) + terms)
        bound += margin
        if -math.inf < bound < self.upper:
            self.upper, self.x, self.margin_above = bound, x, margin + inside

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
