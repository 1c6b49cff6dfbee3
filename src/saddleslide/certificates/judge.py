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
from saddleslide.certificates.candidate import Candidate, Linearisation, Split
from saddleslide.certificates.guards import CONVEXITY, PairGuard, adjoint_complaint, inconsistent
from saddleslide.certificates.residuals import EPS, ResidualBound
from saddleslide.certificates.verdict import ROUNDING, Certificate, Status
from saddleslide.domains import Domain
from saddleslide.errors import NoExactMinimumError
from saddleslide.functions.base import Function, errors_at, runs_own_code
from saddleslide.functions.constants import bounding_modulus, smoothness_at_hand
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.minimum import has_closed_minimum, minimiser_reach, tilted_minimum
from saddleslide.functions.roundings import FEW
from saddleslide.functions.searched import Tally, TiltedMinimum
from saddleslide.functions.separable import prox
from saddleslide.operators import Mirrored
from saddleslide.operators.base import is_own_code, pair_mismatch
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

    Parameters
    ----------
    problem : SaddleProblem
        The problem.
    split : Split
        Costly and simple parts of f and g, as the method uses them.
    tol, rtol : float
        Absolute target, and target relative to the gap at the start; the larger one counts.
    start : (x, y)
        Where the run begins.
    dry : bool
        Call nothing: the state will be restored.
    gate, left : callable
        Asked before every call, and how many calls of an oracle the limits still allow.
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
        self._left = left
        self.problem, self.split, self.tol, self.rtol = problem, split, tol, rtol
        self._own_products, self._costly_g = is_own_code(problem.coupling), not isinstance(split.g_rest, Zero)
        sides = (problem.f, problem.X), (problem.g, problem.Y)
        self._moduli = [bounding_modulus(function, Zero(), domain) for function, domain in sides]
        self._assumes = problem.assumptions
        self._start = start

    def open(self) -> None:
        """What a relative target needs, once, before the first step."""
        if not self.is_open:
            self._open_scale()
            self.is_open = True

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
    def within_reach(self) -> float:
        """The gap that is asked for, or the least that rounding allows."""
        return max(self.target, 1.5 * self.margins)

    @property
    def target(self) -> float:
        """The gap that ends the run."""
        return max(self.tol, self.rtol * self.start_gap)

    @property
    def start_gap(self) -> float:
        """A certified lower bound on the gap at the start; it rises as smaller values of F(., y_0) are met."""
        gap = self.scale_above - self.scale_below
        return gap if math.isfinite(gap) and gap > 0.0 else 0.0

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

    def _open_scale(self) -> None:
        """F(x_0, best y) - F(., y_0): values of F(x, y_0) met on the way complete it."""
        x, y = self._start
        self.start_pull, Bx = self.oracles.pull(y), self.oracles.image(x)
        value = self._f_value(x)
        found = self._best_response(Bx, 0.0, _GRADIENTS_FOR_SCALE)
        if found is not None and np.array_equal(found.point, y):
            # Where no curvature is known the first gradients may go into finding a step.
            found = self._best_response(Bx, 0.0, _MORE_FOR_SCALE)
        if found is not None:
            best = found.point
            reply = float(np.vdot(best, Bx)) - self.g_value(best)
            self.scale_above = value + reply + self.g_value(y)
            self.scale_below = value + float(np.vdot(self.start_pull, x))

    def _descend_from_start(self) -> None:
        """One proximal gradient step on F(., y_0) from x_0: lower than F(x_0, y_0) unless x_0 is its minimiser."""
        self.has_descended = True
        x, X = self._start[0], self.problem.X
        rest, simple, pull = self.split.f_rest, self.split.f_simple, self.start_pull
        assert pull is not None
        slope = self.oracles.made("f", 1, lambda: rest.gradient(x)) + pull
        L = _first_curvature(rest, X)
        for _ in range(20):
            step = prox(simple, x - slope / L, L, X)
            self.scale_below = min(self.scale_below, self._f_value(step) + float(np.vdot(pull, step)))
            if self.start_gap > 0.0 or np.array_equal(step, x):
                return
            L *= 8.0

    def consider(self, candidate: Candidate) -> bool:
        """Update the bounds with a candidate; True when the target is met."""
        value, error = self._valued(candidate)
        if not (math.isfinite(value) and self._feasible(candidate)):
            return self.solved
        if self.start_pull is not None:
            self.scale_below = min(self.scale_below, value + float(np.vdot(self.start_pull, candidate.x)))
            if self.start_gap == 0.0 and not self.has_descended:
                self._descend_from_start()
        Bx = candidate.Bx if candidate.Bx is not None else self.oracles.forward(candidate.x)
        g_value = self.g_value(candidate.y) if candidate.g_value is None else candidate.g_value
        self._guard(candidate)
        self._raise_lower(candidate, Bx, g_value)
        shift = self._shift(candidate, Bx)
        if candidate.averaged is not None and self.problem.X.bounded and self.below.modulus == 0.0:
            self._raise_lower_by_average(candidate.averaged)
        self._note_size(value, g_value, float(np.vdot(candidate.y, Bx)))
        self._lower_upper_cheaply(candidate.x, value, error, Bx, shift, candidate.g_linearisation)
        # F(x, y) never exceeds the upper bound at x, so a large difference already decides.
        rough = value + float(np.vdot(candidate.y, Bx)) - g_value
        self.seen += 1
        decisive = max(self.target, ROUNDING * self.magnitude, 2.0 * (self.margin_below + error))
        decides = rough < self.upper and min(rough, self.upper) - self.lower <= decisive
        # A simple g costs no call. Else tries are spaced out; until there is any bound, some are unconditional.
        free = isinstance(self.split.g_rest, Zero)
        missing = not math.isfinite(self.upper) and self.seen & (self.seen - 1) == 0
        # A certificate must not cost more than the solution: whoever is behind goes on first.
        affordable = self.oracles.calls.g + 2 <= self.allowance.g
        due = self.seen >= self.next_try and (decides or missing) and affordable
        if free or due:
            self._lower_upper(candidate.x, value, error, Bx, shift)
            self.next_try = self.seen + 1 + self.seen // 4
        self._check_order()
        return self.solved

    def settle(self, candidate: Candidate, accuracy: float = 0.0, max_gradients: int = 1000) -> bool:
        """Both bounds of a candidate whatever they cost: certified inner solves on both sides."""
        if not self._feasible(candidate):
            # A bound at such a point is one of another problem.
            return self.solved
        value, error = self._valued(candidate)
        Bx = candidate.Bx if candidate.Bx is not None else self.oracles.forward(candidate.x)
        pull = self._pull(candidate, Bx)
        self._lower_upper(candidate.x, value, error, Bx, self._shift(candidate, Bx))
        self._note_size(value, float(np.vdot(candidate.y, Bx)))
        try:
            found = self._minimum("f", pull, candidate.x, accuracy, max_gradients)
        except NoExactMinimumError as missing:
            self.reason = str(missing)
            return self.solved
        if candidate.y is self._start[1]:
            self.scale_below = min(self.scale_below, found.value)
        g_value = self.g_value(candidate.y)
        g_error = errors_at(self.problem.g, candidate.y, g_value).value
        shift = self._product_rounding(candidate.y, pull)
        margin = g_error + self._product_margin("f", pull, shift, found)
        terms = abs(g_value) + abs(found.lower)
        self._accept_lower(found.lower - g_value, candidate.y, "exact", margin, terms, found.rounding)
        self._check_order()
        return self.solved

    def judge_start(self) -> None:
        """Bounds at the start, or where the method is, if a limit comes before anything was judged; on top of it."""
        self.oracles.gate, self._left = always_open, no_limit
        self.open()
        x, y = self.latest
        self.allowance = Calls(_FEWEST_GRADIENTS, self.oracles.calls.g + _FEWEST_GRADIENTS, 0)
        rest = self.split.f_rest
        value = self.oracles.made("f", rest.lone_value_cost, lambda: rest.value(read_only(x)))
        if self.oracles.finite(x, y):
            self.settle(Candidate(x, y, value), 0.0, _FEWEST_GRADIENTS)

    def confirm(self) -> None:
        """Before a success is claimed: own code that was hardly compared is probed, as far as the limits allow."""
        x, y = self.point
        try:
            for guard, around in ((self.pair_f, x), (self.pair_g, y)):
                guard.probe(self.oracles, around, self._left(guard.name))
        except RunEnded as ended:
            # A limit, or an answer without numbers at a place where the run has never been, takes no bound away.
            if ended.status == Status.INCONSISTENT.name:
                raise

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

    def _minimum(self, name: str, tilt: Array, start: Array, accuracy: float, most: int) -> TiltedMinimum:
        """The minimum of f or g with a tilt, its gradients counted whatever ends it; no more than limits leave."""
        problem = self.problem
        function, domain = (problem.f, problem.X) if name == "f" else (problem.g, problem.Y)
        # Two values may come beside what the search counts itself.
        tally = Tally(self._left(name) - 2.0)
        if not (tally.allows(1.0) or has_closed_minimum(function, domain)):
            raise RunEnded(Status.CALL_LIMIT.name)
        try:
            return self.oracles.made(
                name, 0, lambda: tilted_minimum(function, tilt, domain, read_only(start), accuracy, most, tally)
            )
        finally:
            self.oracles.add(name, tally.gradients)

    def _feasible(self, candidate: Candidate) -> bool:
        """A bound at an infeasible point is no bound."""
        pairs = ((candidate.x, self.problem.X), (candidate.y, self.problem.Y))
        return all(
            domain.violation(point) <= _FEASIBILITY * (1.0 + float(np.max(np.abs(point), initial=0.0)))
            for point, domain in pairs
        )

    def _note_size(self, *terms: float) -> None:
        size = sum(abs(term) for term in terms)
        if math.isfinite(size):
            self.magnitude = size

    def g_value(self, y: Array) -> float:
        """g(y), counted."""
        g = self.problem.g
        return self.oracles.made("g", _value_cost(g, self.split.g_rest), lambda: g.value(read_only(y)))

    def _f_value(self, x: Array) -> float:
        f = self.problem.f
        return self.oracles.made("f", _value_cost(f, self.split.f_rest), lambda: f.value(read_only(x)))

    def _valued(self, candidate: Candidate) -> tuple[float, float]:
        """F at the candidate, and what rounding can have done to it."""
        simple, rest = self.below.simple_value(candidate.x), self.split.f_rest
        error = candidate.error
        if error is None:
            error = errors_at(rest, candidate.x, candidate.value).value
        error += errors_at(self.split.f_simple, candidate.x, simple).value
        return candidate.value + simple, error + FEW * (abs(candidate.value) + abs(simple))

    def _product_rounding(self, point: Array, product: Array, reach: float = 0.0) -> float:
        """A bound on the rounding of a product with B."""
        size = max(float(np.linalg.norm(point)), reach)
        return self.problem.coupling.rounding(size, float(np.linalg.norm(product))) + self.mismatch * size

    def _shift(self, candidate: Candidate, Bx: Array) -> float:
        return self._product_rounding(candidate.x, Bx, candidate.reach if candidate.Bx is not None else 0.0)

    def _product_margin(self, name: str, tilt: Array, shift: float, found: TiltedMinimum) -> float:
        """What a wrong product can do to a minimum over the other block, by the size of its minimisers."""
        if shift == 0.0:
            return 0.0
        problem = self.problem
        function, domain, modulus = (
            (problem.f, problem.X, self._moduli[0]) if name == "f" else (problem.g, problem.Y, self._moduli[1])
        )
        return shift * minimiser_reach(function, tilt, domain, shift, found.point, found.error, modulus)

    def _accept_lower(
        self, bound: float, y: Array, kind: str, margin: float = 0.0, terms: float = 0.0, inside: float = 0.0
    ) -> None:
        """A bound less its margin; `terms` are the sizes of what it was summed of, `inside` a margin it has already."""
        margin += 16.0 * EPS * (abs(bound) + terms)
        bound -= margin
        # Comparisons are written so that a NaN is never accepted. Nor is a linearisation at an infinite value a bound.
        if self.lower < bound < math.inf:
            self.lower, self.y, self.kind, self.margin_below = bound, y, kind, margin + inside

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

    def _guard(self, candidate: Candidate) -> None:
        """Values and gradients that the method knows anyway must fit those of the last candidate."""
        for guard, known in (
            (self.pair_f, candidate.linearisation),
            (self.pair_g, candidate.g_linearisation),
        ):
            if known is not None:
                guard.look(known)

    def _pull(self, candidate: Candidate, Bx: Array) -> Array:
        """B^T y, which must fit the product Bx."""
        pull = self.oracles.adjoint(candidate.y) if candidate.BTy is None else candidate.BTy
        complaint = adjoint_complaint(self.problem.coupling, candidate.x, Bx, candidate.y, pull)
        if complaint:
            raise inconsistent(complaint)
        if self._own_products:
            self.doubt(pair_mismatch(candidate.x, Bx, candidate.y, pull))
        return pull

    def doubt(self, mismatch: float) -> None:
        """The adjoint of B is off by this much; bounds that trusted it more are dropped."""
        if mismatch > self.mismatch:
            self.mismatch = mismatch
            self.lower, self.upper = -math.inf, math.inf

    def _raise_lower(self, candidate: Candidate, Bx: Array, g_value: float) -> None:
        known = candidate.linearisation
        if known is None:
            return
        if not self.below.possible:
            self.reason = "f has no known strong convexity and X is unbounded: no lower bound from gradients."
            return
        pull = self._pull(candidate, Bx)
        bound = self.below.minimum(pull, known, self._product_rounding(candidate.y, pull))
        error = candidate.g_error
        if candidate.g_value is None or error is None:
            error = errors_at(self.problem.g, candidate.y, g_value).value
        terms = abs(g_value) + abs(bound)
        self._accept_lower(bound - g_value, candidate.y, "residual", error, terms, self.below.margin)

    def _lower_upper_cheaply(
        self, x: Array, value: float, error: float, Bx: Array, shift: float, known: Linearisation | None
    ) -> None:
        """The mirror image of the residual bound: a known gradient of g bounds the maximum over Y."""
        if known is not None and self.above.possible:
            least = self.above.minimum(-Bx, known, shift)
            self._accept_upper(value - least, x, error, abs(value) + abs(least), self.above.margin)

    def _raise_lower_by_average(self, averaged: tuple[float, Array, Array]) -> None:
        constant, slope, y = averaged
        pull = self.oracles.adjoint(y)
        found = tilted_minimum(self.split.f_simple, slope + pull, self.problem.X)
        g_value = self.g_value(y)
        sizes = float(np.linalg.norm(slope)) + float(np.linalg.norm(pull))
        shift = self._product_rounding(y, pull) + FEW * sizes
        margin = errors_at(self.problem.g, y, g_value).value + shift * self.problem.X.radius_at_zero
        terms = abs(constant) + abs(found.lower) + abs(g_value)
        self._accept_lower(constant + found.lower - g_value, y, "model", margin, terms, found.rounding)

    def _best_response(self, Bx: Array, accuracy: float, most: int) -> TiltedMinimum | None:
        """The minimum of g(y) - <y, Bx>, whose lower bound is an upper one of the best value over Y."""
        try:
            found = self._minimum("g", -Bx, self.response, accuracy, most)
        except NoExactMinimumError as missing:
            self.reason = str(missing)
            return None
        self.response = found.point
        return found

    def _lower_upper(self, x: Array, value: float, error: float, Bx: Array, shift: float) -> None:
        most = int(max(self.allowance.g - self.oracles.calls.g - 1, 1)) if self._costly_g else _FEWEST_GRADIENTS
        found = self._best_response(Bx, _INNER_PART * self.target, most)
        if found is None:
            return
        margin = error + self._product_margin("g", -Bx, shift, found)
        self._accept_upper(value - found.lower, x, margin, abs(value) + abs(found.lower), found.rounding)

    def _accept_upper(
        self, bound: float, x: Array, margin: float = 0.0, terms: float = 0.0, inside: float = 0.0
    ) -> None:
        margin += 16.0 * EPS * (abs(bound) + terms)
        bound += margin
        if -math.inf < bound < self.upper:
            self.upper, self.x, self.margin_above = bound, x, margin + inside


def _sides(problem: SaddleProblem, split: Split) -> tuple[PairGuard, PairGuard, ResidualBound, ResidualBound]:
    """What is known of the costly parts of f and g: what they have been asked, and bounds that follow."""
    said = ("g", "f") if isinstance(problem.coupling, Mirrored) else ("f", "g")
    return (
        PairGuard("f", split.f_rest, problem.X, said[0]),
        PairGuard("g", split.g_rest, problem.Y, said[1]),
        ResidualBound(split.f_rest, split.f_simple, problem.X),
        ResidualBound(split.g_rest, split.g_simple, problem.Y),
    )


def _value_cost(function: Function, rest: Function) -> float:
    """What a value counts: that of its costly part, or a run of the caller's code."""
    return 1.0 if runs_own_code(function) else rest.lone_value_cost


def _first_curvature(f: Function, X: Domain) -> float:
    smoothness = smoothness_at_hand(f, X)
    if smoothness is None:
        return 1.0
    return max(smoothness.H, 1e-300) if smoothness.nu == 1.0 else 1.0
