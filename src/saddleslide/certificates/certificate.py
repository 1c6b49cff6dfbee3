"""Bounds on the gap of a point, whoever found it. This module knows no method."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from saddleslide.arrays.arguments import as_mapping, as_whole
from saddleslide.arrays.base import Array, as_number, as_real, coarseness
from saddleslide.arrays.remote import Remote
from saddleslide.certificates.books import counted
from saddleslide.certificates.guards import (
    CONVEXITY,
    PairGuard,
    adjoint_complaint,
    check_inner_adjoints,
    known_mismatch,
)
from saddleslide.certificates.verdict import Certificate
from saddleslide.domains import Domain
from saddleslide.errors import InputError, NoExactMinimumError, raise_all
from saddleslide.functions.base import Function, errors_at
from saddleslide.functions.constants import bounding_modulus
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.minimum import LowerModel, minimiser_reach, tilted_minimum
from saddleslide.functions.searched import Tally
from saddleslide.operators.base import is_own_code, pair_mismatch
from saddleslide.oracles.calls import RunEnded
from saddleslide.oracles.oracles import Oracles
from saddleslide.problem import SaddleProblem

EPS = float(np.finfo(np.float64).eps)
# Averages of projected points leave a set by rounding only.
FEASIBILITY_TOLERANCE = 1e-9
# Error bars below this part of the values count as rounding.
EXACT_ERROR = 1e-10


def certify(
    problem: SaddleProblem,
    x: Any,
    y: Any,
    models: Mapping[str, LowerModel] | None = None,
    accuracy: float = 0.0,
    max_gradients: int = 1000,
) -> Certificate:
    """Bounds on the saddle value at a point from any solver, and so on its gap.

    From above by max over Y of F(x, .), from below by min over X of F(., y). Each side is tried by a certified inner
    solve and by the lower model of f or g, where one is given; the tighter bound counts.

    Parameters
    ----------
    problem : SaddleProblem
        The problem.
    x, y : array
        Feasible points.
    models : mapping, optional
        Lower models of "f" and "g", as `run` carries them along (`saddleslide.methods.sliding.carried_models`).
    accuracy : float, optional
        Error at which an iterative inner solve may stop.
    max_gradients : int, optional
        Most gradients of f, and of g, that the inner solves may take; 0 uses the models alone where there are any.

    Returns
    -------
    Certificate
        Rounding and the errors of the inner solves are included in the bounds. `kind` is "exact" (error bars at
        rounding level), "searched" (an inner solve stopped earlier), "model", or "none" with a `reason`. `calls` are
        all calls that were made, those that look whether your own code is convex included: five of f and of g.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(2), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.array([[1.0, -1.0], [-1.0, 1.0]]), X=simplex, Y=simplex)
    >>> certificate = ss.certify(game, [0.5, 0.5], [1.0, 0.0])
    >>> round(certificate.gap, 12), certificate.kind
    (1.0, 'exact')
    """
    if not isinstance(problem, SaddleProblem):
        raise InputError(f"certificate: problem is {type(problem).__name__}; expected a SaddleProblem.")
    models = as_mapping(models, "certificate: models", "{'f': model}")
    wrong = [name for name, model in models.items() if not isinstance(model, LowerModel)]
    raise_all(
        "certificate", [f"models[{name!r}] is no lower model; expected those that a run carries." for name in wrong]
    )
    accuracy = as_number(accuracy, "certificate: accuracy", 0.0)
    max_gradients = as_whole(max_gradients, "certificate: max_gradients", 0)
    point, oracles = feasible(problem, x, y), Oracles(problem)
    with counted(problem) as books:
        found = certified(oracles, *point, models, accuracy, max_gradients)
        complaint = _probed(oracles, point) if math.isfinite(found.gap) else ""
    spent = oracles.calls + books.calls
    return Certificate(reason=complaint, calls=spent) if complaint else replace(found, calls=spent)


def _probed(oracles: Oracles, point: tuple[Array, Array]) -> str:
    """What is wrong with the caller's own functions at a few points around this one; see `PairGuard.probe`."""
    problem = oracles.problem
    sides = ("f", problem.f, problem.X), ("g", problem.g, problem.Y)
    try:
        for (name, function, domain), around in zip(sides, point, strict=True):
            PairGuard(name, function, domain).probe(oracles, around, math.inf)
    except RunEnded as ended:
        return ended.reason
    return ""


def judged(
    problem: SaddleProblem,
    x: Any,
    y: Any,
    models: Mapping[str, LowerModel] | None = None,
    accuracy: float = 0.0,
    max_gradients: int = 1000,
) -> Certificate:
    """`certify` inside another call, which has the books and looks at the caller's functions itself.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> q, box = ss.functions.Quadratic(1.0), ss.domains.Box(-1.0, 1.0, shape=1)
    >>> judged(ss.SaddleProblem(f=q, g=q, B=np.eye(1), X=box, Y=box), [0.0], [0.0]).gap < 1e-12
    True
    """
    return certified(Oracles(problem), *feasible(problem, x, y), models or {}, accuracy, max_gradients)


def certified(
    oracles: Oracles,
    x: Array,
    y: Array,
    models: Mapping[str, LowerModel],
    accuracy: float,
    max_gradients: int,
) -> Certificate:
    """`certify` at a feasible point through oracles that count every call, whatever ends it.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(2), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.array([[1.0, -1.0], [-1.0, 1.0]]), X=simplex, Y=simplex)
    >>> certified(Oracles(game), np.full(2, 0.5), np.full(2, 0.5), {}, 0.0, 25).calls
    Calls(f=0, g=0, B=2)
    """
    problem = oracles.problem
    Bx, BTy = oracles.forward(x), oracles.adjoint(y)
    if not oracles.finite(Bx, BTy):
        return Certificate(reason="B x or B^T y is not finite.", calls=oracles.calls)
    complaint = adjoint_complaint(problem.coupling, x, Bx, y, BTy)
    if complaint:
        return Certificate(reason=complaint, calls=oracles.calls)
    try:
        check_inner_adjoints(oracles)
        mismatch = known_mismatch(oracles)
    except RunEnded as ended:
        return Certificate(reason=ended.reason, calls=oracles.calls)
    if is_own_code(problem.coupling):
        mismatch = max(mismatch, pair_mismatch(x, Bx, y, BTy))
    above = _side(oracles, "g", -Bx, y, models.get("g"), accuracy, max_gradients)
    below = _side(oracles, "f", BTy, x, models.get("f"), accuracy, max_gradients)
    f = oracles.made("f", problem.f.value_cost, lambda: problem.f.value(x))
    g = oracles.made("g", problem.g.value_cost, lambda: problem.g.value(y))
    sizes = abs(f) + abs(g)
    # A side that is unknown says nothing about the rounding of the other.
    rounding = 16.0 * EPS * (sizes + sum(abs(side.lower) for side in (below, above) if math.isfinite(side.lower)))
    from_x = errors_at(problem.f, x, f).value + _product_rounding(
        problem, x, Bx, mismatch, problem.g, -Bx, problem.Y, above
    )
    from_y = errors_at(problem.g, y, g).value + _product_rounding(
        problem, y, BTy, mismatch, problem.f, BTy, problem.X, below
    )
    upper, lower = f - above.lower + rounding + from_x, below.lower - g - rounding - from_y
    # A NaN anywhere must read as unknown, never as a small gap.
    known = math.isfinite(lower) and math.isfinite(upper)
    reasons = [side.reason for side in (above, below) if side.reason]
    if known and lower > upper:
        contradiction = _contradiction(lower, upper, sizes)
        if contradiction:
            return Certificate(reason=contradiction, calls=oracles.calls)
        # Each may be wrong by what they contradict each other by.
        lower, upper = 2.0 * upper - lower, 2.0 * lower - upper
    if not known and not reasons:
        reasons.append("an inner minimum is unbounded or a value is not finite.")
    return Certificate(
        lower if math.isfinite(lower) else -math.inf,
        upper if math.isfinite(upper) else math.inf,
        _kind(above, below, abs(upper) + abs(lower) + sizes) if known else "none",
        above.error + below.error + 2.0 * rounding + from_x + from_y,
        "" if known else " ".join(reasons),
        oracles.calls,
        problem.assumptions if known else "",
    )


@dataclass(frozen=True)
class _Side:
    """A certified lower bound on one inner minimum, and what it took."""

    lower: float = -math.inf
    error: float = math.inf
    point: Array | None = None
    method: str = "none"
    reason: str = ""


def _side(
    oracles: Oracles,
    name: str,
    tilt: Array,
    start: Array,
    model: LowerModel | None,
    accuracy: float,
    max_gradients: int,
) -> _Side:
    """The tighter of the inner solve and the model."""
    problem, best = oracles.problem, _Side()
    function, domain = (problem.f, problem.X) if name == "f" else (problem.g, problem.Y)
    if model is not None:
        found = model.tilted_minimum(tilt, domain)
        best = _Side(found.lower, found.error, found.point, "model")
    if model is not None and max_gradients == 0:
        return best
    tally = Tally()
    try:
        most = max(max_gradients, 1)
        found = oracles.made(name, 0, lambda: tilted_minimum(function, tilt, domain, start, accuracy, most, tally))
    except NoExactMinimumError as missing:
        return best if best.lower > -math.inf else _Side(reason=str(missing))
    finally:
        oracles.add(name, tally.gradients)
    if found.lower >= best.lower or math.isnan(found.lower):
        return _Side(found.lower, found.error, found.point, found.method)
    return best


def _product_rounding(
    problem: SaddleProblem,
    point: Array,
    product: Array,
    mismatch: float,
    function: Function,
    tilt: Array,
    domain: Domain,
    side: _Side,
) -> float:
    """What a wrong product with B can do to the minimum over the other block, by the size of its minimiser."""
    size = float(np.linalg.norm(point))
    shift = problem.coupling.rounding(size, float(np.linalg.norm(product))) + mismatch * size
    if shift == 0.0 or side.point is None:
        return 0.0
    modulus = bounding_modulus(function, Zero(), domain)
    return shift * minimiser_reach(function, tilt, domain, shift, side.point, side.error, modulus)


def _contradiction(lower: float, upper: float, sizes: float) -> str:
    """What is wrong with a lower bound above the upper one; nothing, where that may be rounding of oracles."""
    if lower - upper <= CONVEXITY * (abs(lower) + abs(upper) + sizes):
        return ""
    return (
        f"the lower bound {lower:.6g} lies above the upper one {upper:.6g}: values, gradients or products contradict "
        "each other. Check f, g and B."
    )


def _kind(above: _Side, below: _Side, size: float) -> str:
    if "model" in (above.method, below.method):
        return "model"
    return "exact" if above.error + below.error <= EXACT_ERROR * size else "searched"


def feasible(problem: SaddleProblem, x: Any, y: Any) -> tuple[Array, Array]:
    """The point itself, the last rounding projected away; refused where it lies outside."""
    points = []
    for name, point, domain in (("x", x, problem.X), ("y", y, problem.Y)):
        # What a run hands over lies where its arrays lie; a point of a caller is checked, and brought there.
        own = isinstance(point, Remote)
        array = point if own else problem.arrays.placed(as_real(point, f"certificate: {name}", domain.shape))
        outside = domain.violation(array)
        if outside > 0.0 and outside > max(FEASIBILITY_TOLERANCE, coarseness(point)) * _size(array):
            raise InputError(
                f"certificate: {name} lies outside {domain} by {outside:.1e}; expected a "
                "feasible point. Project it first."
            )
        # A gap at an infeasible point can be negative, so the last rounding is projected away.
        points.append(array if outside == 0.0 else domain.project(array))
    return points[0], points[1]


def _size(array: Array) -> float:
    return 1.0 + float(np.max(np.abs(array), initial=0.0))
