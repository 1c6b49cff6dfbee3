"""Bounds on the gap of a point, whoever found it. This module knows no method."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saddleslide.arrays import Array, as_real
from saddleslide.errors import InputError, NoExactMinimumError
from saddleslide.functions import tilted_minimum
from saddleslide.oracles import Oracles
from saddleslide.problem import SaddleProblem
from saddleslide.result import Certificate

EPS = float(np.finfo(np.float64).eps)
# Averages of projected points leave a set by rounding only.
FEASIBILITY_TOLERANCE = 1e-9


def exact_gap(problem: SaddleProblem, x: Any, y: Any) -> Certificate:
    """The primal-dual gap of (x, y): max over Y of F(x, .) minus min over X of F(., y), each with its error bar.

    Needs both inner extrema in certified form (see `ss.functions.tilted_minimum`); says why when one is missing.

    Parameters
    ----------
    problem : SaddleProblem
        The problem.
    x, y : array
        Feasible points, from any solver.

    Returns
    -------
    Certificate
        Rounding and the errors of the inner solves are included in the bounds.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(2), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.array([[1.0, -1.0], [-1.0, 1.0]]), X=simplex, Y=simplex)
    >>> round(ss.exact_gap(game, [0.5, 0.5], [1.0, 0.0]).gap, 12)
    1.0
    """
    x, y = _feasible(problem, x, y)
    oracles = Oracles(problem)
    Bx, BTy = oracles.forward(x), oracles.adjoint(y)
    if not oracles.finite(Bx, BTy):
        return Certificate(reason="B x or B^T y is not finite.", calls=oracles.calls)
    reasons = []
    lower, upper, error = -math.inf, math.inf, math.nan
    try:
        best_y = tilted_minimum(problem.g, -Bx, problem.Y)
        oracles.calls.g += best_y.gradients
        best_x = tilted_minimum(problem.f, BTy, problem.X)
        oracles.calls.f += best_x.gradients
    except NoExactMinimumError as missing:
        reasons.append(str(missing))
    else:
        f, g = problem.f.value(x), problem.g.value(y)
        rounding = 16.0 * EPS * (abs(f) + abs(g) + abs(best_x.value) + abs(best_y.value))
        upper = f - best_y.lower + rounding
        lower = best_x.lower - g - rounding
        error = best_x.error + best_y.error + 2.0 * rounding
    # A NaN anywhere must read as unknown, never as a small gap.
    known = math.isfinite(lower) and math.isfinite(upper)
    if not known and not reasons:
        reasons.append("an inner minimum is unbounded or a value is not finite.")
    return Certificate(
        lower if math.isfinite(lower) else -math.inf,
        upper if math.isfinite(upper) else math.inf,
        "exact" if known else "none",
        error,
        " ".join(reasons),
        oracles.calls,
    )


def _feasible(problem: SaddleProblem, x: Any, y: Any) -> tuple[Array, Array]:
    points = []
    for name, point, domain in (("x", x, problem.X), ("y", y, problem.Y)):
        array = as_real(point, f"certificate: {name}", domain.shape)
        scale = 1.0 + float(np.max(np.abs(array), initial=0.0))
        if domain.violation(array) > FEASIBILITY_TOLERANCE * scale:
            raise InputError(
                f"certificate: {name} lies outside {domain} by {domain.violation(array):.1e}; expected a "
                "feasible point. Project it first."
            )
        # A gap at an infeasible point can be negative, so the last rounding is projected away.
        points.append(array if domain.violation(array) == 0.0 else domain.project(array))
    return points[0], points[1]
