"""What is known of a point: the outcome of a run in full sentences, and bounds on the saddle value."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum

from saddleslide.oracles.calls import Calls

# Gaps below this part of the bounds are rounding.
ROUNDING = 1e-13


class Status(Enum):
    """Outcome of a run. The value says what happened, what the numbers mean now, and what to try.

    Examples
    --------
    >>> Status.SOLVED.value.split(". ")[0]
    'The certified gap is at most the target'
    """

    SOLVED = "The certified gap is at most the target. The point is good to that gap. Nothing more to do."
    SOLVED_WITHIN = (
        "No points of the sets within certificate.radii are better than this one by more than the target. Nothing "
        "bounds the sets, so that over all of them no such gap is proved. For "
        "a global proof bound X or Y, or add a ridge."
    )
    MET_AS_DECLARED = (
        "The bounds meet the target provided that what was declared, and is named in certificate.assumes, is right. On "
        "an unbounded set nothing but a modulus bounds the gap, and what a class of the caller's says of itself nobody "
        "can check: where it is wrong, the gap is larger than it says. Bound X or Y, or build f and g of functions of "
        "known form."
    )
    EXPECTED = (
        "The plan was carried out, and its bound on the expected gap is at most the target. It holds on average over "
        "all draws; the gap of this point is not known. See certificate.reason for what is missing."
    )
    COMPLETED = (
        "The plan was carried out; it had no target or its target was not reached. The bounds are true as "
        "they stand. For a smaller gap use larger loops or a smaller tol."
    )
    RUNNING = "The run is under way. The point is the current one. Wait, or raise StopIteration to stop."
    BOUND_REACHED = (
        "The point solves the problem with the ball that was put around its multipliers, not the one that was meant: "
        "the constraints are not enforced, because nothing satisfies them or because the ball is too small. The lower "
        "bound is true, the upper one is that of the problem with the ball. Pass a larger bound=; where the residual "
        "stays, no point satisfies the constraints."
    )
    INFEASIBLE = (
        "No x within the stated distance satisfies the constraints: a ray proves it, a direction of y in which "
        "F(x, y) grows without end for every such x. The point is the method's last one. Look "
        "for constraints that contradict each other, or for a wrong sign."
    )
    UNBOUNDED = (
        "No y within the stated distance bounds the problem from below: a ray proves it, a direction of x in which "
        "F(x, y) falls without end for every such y. The point is the method's last one, and no "
        "x need satisfy the constraints. Bound X, or look for a wrong sign."
    )
    STOPPED = "The callback stopped the run. The point is the current one, its bounds are true. Run on with start=."
    INTERRUPTED = (
        "The run was interrupted from the keyboard. The point and its bounds are the best so far and true. Run on from "
        "the point with start=, or from a checkpoint with ss.resume."
    )
    CALL_LIMIT = (
        "The call budget was used up before the target. The point and its bounds are the best so far and true. Raise "
        "max_calls, or run on from the point with start=, or from a checkpoint with ss.resume."
    )
    TIME_LIMIT = (
        "The time limit was reached before the target. The point and its bounds are the best so far and true. Raise "
        "time_limit, run on from the point with start=, or go on from a checkpoint by ss.resume(time_limit=)."
    )
    STEP_LIMIT = (
        "The limit on steps was reached before the target. The point and its bounds are the best so far and true. "
        "Raise max_steps, or run on from the point with start=, or from a checkpoint with ss.resume."
    )
    NUMERICAL_LIMIT = (
        "The gap is as small as rounding allows and the target is smaller still, or numbers on the way left the range "
        "of double precision. The point and its bounds are true. "
        "Ask for a larger gap, or scale the problem so that its values are of order one."
    )
    UNREACHABLE = (
        "The cluster that holds a part of the problem does not answer any more. The point and its bounds are the best "
        "before that and true. Start the cluster again, and run on from a checkpoint with ss.resume or from the point "
        "with start=."
    )
    NON_FINITE = (
        "An oracle returned numbers that are not finite. The point is the last finite one. Check the oracles "
        "and the declared constants."
    )
    INCONSISTENT = (
        "The oracles contradict each other or what was declared of them. The point is the last one, its bounds can not "
        "be trusted and are left out. Mend what certificate.reason names."
    )
    NO_CERTIFICATE = (
        "The plan was carried out, but no bound on the gap is known. The point is the one that the method came to, its "
        "gap is unknown. See certificate.reason for what is missing."
    )


@dataclass(frozen=True)
class Certificate:
    """Bounds on the saddle value at a feasible point: lower <= min max <= upper, gap = upper - lower.

    Parameters
    ----------
    lower, upper : float
        -inf and inf where unknown.
    kind : str
        How the lower bound was found: "exact" (certified inner minimum), "residual" (gradient and strong convexity),
        "model" (averaged lower models), "level set" (over a bounded set that has every solution), or "none".
    error : float
        What the certified inner solves and rounding contributed to the gap.
    reason : str
        Why a bound is missing; empty otherwise.
    calls : Calls
        Oracle calls that judging cost.
    assumes : str
        What was declared and the bounds rest on, beyond convexity, true gradients and a true adjoint; see
        `SaddleProblem.assumptions`. Empty otherwise.
    within : (float, float)
        Bounds on F(., y) from below and on F(x, .) from above over the points of the sets within `radii`, where a bound
        on a whole set is infinite.
    radii : tuple of float
        Lengths around x and around each block of y; infinite where a bound is one on the whole set.
    solutions : str
        What every solution obeys and the bounds rest on, where the sets themselves have no end; empty otherwise.

    Examples
    --------
    >>> Certificate(lower=1.0, upper=1.5, kind="exact").gap
    0.5
    """

    lower: float = -math.inf
    upper: float = math.inf
    kind: str = "none"
    # NaN where nobody knows it, which equals nothing since Python 3.13.
    error: float = field(default=math.nan, compare=False)
    reason: str = ""
    calls: Calls = field(default_factory=Calls)
    assumes: str = ""
    within: tuple[float, float] = (-math.inf, math.inf)
    radii: tuple[float, ...] = (math.inf, math.inf)
    solutions: str = ""

    @property
    def claim(self) -> Status:
        """What a certificate that meets the target may call itself."""
        if self.assumes:
            return Status.MET_AS_DECLARED
        return Status.SOLVED_WITHIN if self.within_gap < self.gap else Status.SOLVED

    @property
    def within_gap(self) -> float:
        """The gap within `radii`; infinite where it was not asked for."""
        return self.within[1] - self.within[0]

    @property
    def known_gap(self) -> float:
        """The gap, or the one within `radii` where that is smaller."""
        return min(self.gap, self.within_gap)

    @property
    def at_rounding(self) -> bool:
        """Whether the gap can not be told from rounding of the bounds."""
        # Of exact minima the error is all rounding.
        error = 1.5 * self.error if self.kind == "exact" and math.isfinite(self.error) else 0.0
        return math.isfinite(self.gap) and self.gap <= max(ROUNDING * (abs(self.upper) + abs(self.lower)), error)

    @property
    def gap(self) -> float:
        """Upper minus lower bound; infinite when either is unknown."""
        return self.upper - self.lower if math.isfinite(self.upper) and math.isfinite(self.lower) else math.inf
