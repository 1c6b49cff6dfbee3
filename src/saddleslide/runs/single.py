"""Single precision: what is returned is rounded first and certified afterwards, in double precision."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.arrays.kinds import SINGLE
from saddleslide.certificates.certificate import EPS, judged
from saddleslide.certificates.verdict import Certificate, Status
from saddleslide.domains import Domain
from saddleslide.functions.base import Function, errors_at
from saddleslide.operators import Coupling
from saddleslide.oracles.calls import Calls, RunEnded
from saddleslide.oracles.oracles import Oracles
from saddleslide.problem import SaddleProblem
from saddleslide.runs.result import Result

# A certificate of the rounded point, where its gap does not follow from that of the point, may take so many gradients.
_GRADIENTS = 100


def returned(result: Result, problem: SaddleProblem) -> Result:
    """The result as its caller gets it: in the precision and the kind of the arrays that the problem is made of.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> game = ss.gallery.matrix_game(np.array([[2.0, -1.0], [-1.0, 1.0]], np.float32))
    >>> result = ss.solve(game, tol=1e-3)
    >>> result.x.dtype.name, result.status.name
    ('float32', 'SOLVED')
    """
    return (rounded_off(result, problem) if problem.precision == SINGLE else result).of_kind(problem.arrays)


def rounded_off(result: Result, problem: SaddleProblem) -> Result:
    """The result with x and y in single precision, and bounds that are true for these."""
    x, y = single(result.x, problem.X), single(result.y, problem.Y)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        # Beyond the range of single precision.
        return result
    try:
        seen = _certificate(result, problem, _feasible(x, problem.X), _feasible(y, problem.Y))
    except RunEnded:
        seen = Certificate(reason="the time was up before the rounded point was judged.")
    spent = replace(seen, calls=result.certificate_calls + seen.calls)
    calls = result.calls + seen.calls
    return replace(result, x=x, y=y, certificate=spent, calls=calls, status=_status(result, seen))


def single(point: Array, domain: Domain) -> Array:
    """The point in single precision, a last bit further in where rounding has left the domain.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> box = ss.domains.Box(-0.1, 0.1, shape=1)
    >>> float(np.float32(0.1)) > 0.1, float(single(np.array([0.1]), box)[0]) <= 0.1
    (True, True)
    """
    with np.errstate(over="ignore", under="ignore"):
        rounded: Array = point.astype(np.float32)
    if not np.isfinite(rounded).all() or domain.violation(rounded.astype(np.float64)) == 0.0:
        return rounded
    inside = domain.project(rounded.astype(np.float64))
    towards = np.where(inside > rounded, np.inf, -np.inf).astype(np.float32)
    nearer = np.where(inside == rounded, rounded, np.nextafter(rounded, towards))
    return min((nearer, rounded), key=lambda tried: domain.violation(tried.astype(np.float64)))


def _feasible(point: Array, domain: Domain) -> Array:
    """The point itself, or its projection where single precision can not be feasible, as on a simplex."""
    return domain.project(point.astype(np.float64))


def _status(result: Result, seen: Certificate) -> Status:
    """A target that the point meets in double precision alone is below what single precision can hold."""
    met = result.status in (Status.SOLVED, Status.MET_AS_DECLARED) and not seen.gap <= result.known_target
    return Status.NUMERICAL_LIMIT if met else result.status


def _certificate(result: Result, problem: SaddleProblem, x: Array, y: Array) -> Certificate:
    old = result.certificate
    if not math.isfinite(old.gap):
        return Certificate(reason=old.reason)
    if not (problem.X.bounded and problem.Y.bounded):
        # Ctrl-C is answered at once: without a search.
        most = 1 if result.status is Status.INTERRUPTED else _GRADIENTS
        return judged(problem, x, y, accuracy=0.1 * max(result.known_target, 0.0), max_gradients=most)
    oracles = Oracles(problem)
    step, pull = x - result.x, result.y - y
    above = _reach(oracles.forward(step), step, problem.Y, problem.coupling)
    below = _reach(oracles.adjoint(pull), pull, problem.X, problem.coupling)
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


def _reach(change: Array, step: Array, domain: Domain, coupling: Coupling) -> float:
    """How much a change of a product can raise the best value over the other block: its support function."""
    raised = domain.support(change)
    shift = coupling.rounding(float(np.linalg.norm(step)), float(np.linalg.norm(change)))
    rounding = shift * domain.radius_at_zero
    return raised + rounding + 16.0 * EPS * abs(raised)
