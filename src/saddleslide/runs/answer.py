"""The answer of a run as its caller gets it: of the problem that was meant, in the precision and kind of its arrays.

Multipliers may lie in a ball that the caller's problem does not have. With x in X and A x = b, f(x) + <y, A x - b> is
maximised over |y| <= R in place of all y. At a point with a certified gap, R |A x - b| - <y, A x - b> is at most that
gap, hence |A x - b| <= gap / (R - |y|): a y well inside the ball proves that the constraints hold, one on its surface
proves nothing.

In single precision what is returned is rounded first and certified afterwards, in double precision.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from saddleslide import certificates
from saddleslide.arrays.base import Array, length_of
from saddleslide.arrays.kinds import SINGLE
from saddleslide.certificates.certificate import EPS, judge_point
from saddleslide.certificates.verdict import Certificate, Status
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import FullSpace
from saddleslide.functions.base import Function
from saddleslide.functions.trust import errors_at
from saddleslide.operators.base import Operator
from saddleslide.oracles.calls import Calls, RunEnded
from saddleslide.oracles.oracles import Oracles
from saddleslide.problem import Enclosure, SaddleProblem
from saddleslide.runs.result import Result
from saddleslide.theory.plan import Target

# Constraints that are missed by more than this part of their right side are open.
_OPEN = 0.1
# A certificate of the rounded point, where its gap does not follow from that of the point, may take so many gradients.
_GRADIENTS = 100


def as_meant(result: Result, problem: SaddleProblem) -> Result:
    """The result of the problem that the caller meant: no success where y lies on a ball that was put there for it."""
    around = problem.enclosure
    if around is None or not (result.success or result.status is Status.MET_AS_DECLARED):
        return result
    oracles, size, reason = Oracles(problem), length_of(result.y), ""
    if _excludes(oracles, around, result):
        reason = f"no x in X satisfies {around.constraint}: a separating hyperplane proves it"
    elif not around.holds(result.y):
        reason = f"{around.name} have norm {size:.4g}, their bound is {around.radius:.4g}; {around.constraint} is open"
    elif missed := _measure_miss(oracles, around, result):
        reason = (
            f"{around.constraint} is missed by {missed:.4g}, and the gap allows it: the bound of {around.name} is "
            f"{around.radius:.4g}; ask for a smaller gap too"
        )
    seen = replace(result.certificate, calls=result.certificate_calls + oracles.calls)
    counted = replace(result, certificate=seen, calls=result.calls + oracles.calls)
    if not reason:
        return counted
    return replace(counted, status=Status.BOUND_REACHED, certificate=replace(seen, reason=reason))


def _measure_miss(oracles: Oracles, around: Enclosure, result: Result) -> float:
    """|B x - b| where that is no small part of |b|, or of |B| |x|, else 0; asked where the gap does not prove it."""
    coupling = oracles.problem.coupling
    if around.b is None and not coupling.norm_at_hand:
        return 0.0
    size = coupling.norm.upper * length_of(result.x) if around.b is None else np.linalg.norm(around.b)
    allowed = _OPEN * float(size)
    if allowed == 0.0 or result.gap <= allowed * (around.radius - length_of(result.y)):
        return 0.0
    missed = length_of(oracles.forward(result.x) - (0.0 if around.b is None else around.b))
    return missed if missed > allowed else 0.0


def _excludes(oracles: Oracles, around: Enclosure, result: Result) -> bool:
    """Whether y, or what is left of A x - b, proves that no x in X satisfies the constraints."""
    problem = oracles.problem
    if around.b is None or isinstance(problem.X, FullSpace):
        return False
    miss = oracles.forward(result.x) - around.b
    return any(
        certificates.excludes(problem.coupling, around.b, problem.X, direction, oracles.adjoint(direction))
        for direction in (result.y, miss)
    )


def convert(result: Result, problem: SaddleProblem) -> Result:
    """The result as its caller gets it: in the precision and the kind of the arrays that the problem is made of."""
    return (round_off(result, problem) if problem.precision == SINGLE else result).of_kind(problem.arrays)


def round_off(result: Result, problem: SaddleProblem) -> Result:
    """The result with x and y in single precision, and bounds that are true for these."""
    x, y = single(result.x, problem.X), single(result.y, problem.Y)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        # Beyond the range of single precision.
        return result
    try:
        # At the point itself, or at its projection where single precision can not be feasible, as on a simplex.
        inside = problem.X.project(x.astype(np.float64)), problem.Y.project(y.astype(np.float64))
        seen = _certificate(result, problem, *inside)
    except RunEnded:
        seen = Certificate(reason="the time was up before the rounded point was judged.")
    # A target that the point meets in double precision alone is below what single precision can hold.
    missed = (
        result.status in (Status.SOLVED, Status.SOLVED_WITHIN, Status.MET_AS_DECLARED)
        and not seen.known_gap <= result.known_target
    )
    claimed = seen.claim if result.status in (Status.SOLVED, Status.SOLVED_WITHIN) else result.status
    status = Status.NUMERICAL_LIMIT if missed else claimed
    spent = replace(seen, calls=result.certificate_calls + seen.calls)
    return replace(result, x=x, y=y, certificate=spent, calls=result.calls + seen.calls, status=status)


def single(point: Array, domain: Domain) -> Array:
    """The point in single precision, a last bit further in where rounding has left the domain."""
    with np.errstate(over="ignore", under="ignore"):
        rounded: Array = point.astype(np.float32)
    if not np.isfinite(rounded).all() or domain.violation(rounded.astype(np.float64)) == 0.0:
        return rounded
    inside = domain.project(rounded.astype(np.float64))
    towards = np.where(inside > rounded, np.inf, -np.inf).astype(np.float32)
    nearer = np.where(inside == rounded, rounded, np.nextafter(rounded, towards))
    return min((nearer, rounded), key=lambda tried: domain.violation(tried.astype(np.float64)))


def _certificate(result: Result, problem: SaddleProblem, x: Array, y: Array) -> Certificate:
    old = result.certificate
    if result.status is Status.SOLVED_WITHIN or old.solutions:
        radii = old.radii if result.status is Status.SOLVED_WITHIN else None
        return certificates.certify_within(
            problem, (x, y), Target(result.known_target, radius=result.plans[-1].radius), radii
        )
    if not math.isfinite(old.gap):
        return Certificate(reason=old.reason)
    if not (problem.X.bounded and problem.Y.bounded):
        # Ctrl-C is answered at once: without a search.
        most = 1 if result.status is Status.INTERRUPTED else _GRADIENTS
        return judge_point(problem, x, y, accuracy=0.1 * max(result.known_target, 0.0), max_gradients=most)
    oracles = Oracles(problem)
    step, pull = x - result.x, result.y - y
    above = _bound_rise(oracles.forward(step), step, problem.Y, problem.coupling)
    below = _bound_rise(oracles.adjoint(pull), pull, problem.X, problem.coupling)
    upper, lower = old.upper + _rise(problem.f, result.x, x) + above, old.lower - _rise(problem.g, result.y, y) - below
    calls = Calls(_values(problem.f), _values(problem.g), oracles.calls.B)
    if not (math.isfinite(upper) and math.isfinite(lower)):
        return Certificate(reason="values at the rounded point are not finite.", calls=calls)
    return replace(old, lower=lower, upper=upper, calls=calls)


def _values(function: Function) -> float:
    """Two values; those of a separable function of ours are no calls."""
    return 0.0 if function.separable and not function.own_code else 2.0 * function.lone_value_cost


def _rise(function: Function, point: Array, rounded: Array) -> float:
    """How much the function can be higher at the rounded point, rounding of both values included."""
    before, after = function.value(point), function.value(rounded)
    made = errors_at(function, point, before).value + errors_at(function, rounded, after).value
    return after - before + made + 16.0 * EPS * (abs(before) + abs(after))


def _bound_rise(change: Array, step: Array, domain: Domain, coupling: Operator) -> float:
    """How much a change of a product can raise the best value over the other block: its support function."""
    raised, sizes = domain.support(change), (length_of(step), length_of(change))
    return raised + coupling.bound_rounding(*sizes) * domain.radius_at_zero + 16.0 * EPS * abs(raised)
