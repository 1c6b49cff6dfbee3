"""The plan of adaptive sliding: metric, orientation and inner work."""

from __future__ import annotations

from typing import Any

from saddleslide.domains import Domain
from saddleslide.errors import InputError, UnknownConstantError, raise_all
from saddleslide.facts.costs import (
    FEWEST_ON_G,
    chosen_costs,
    estimated_costs,
    g_steps_per_gradient,
    inner_steps_per_gradient,
)
from saddleslide.functions import Function, Zero, split_simple
from saddleslide.functions.at_hand import exponent
from saddleslide.methods.adaptive_sliding import first_curvature
from saddleslide.methods.metric_choice import choose_metric
from saddleslide.metrics import Entrywise
from saddleslide.planner.request import SolveRequest
from saddleslide.problem import SaddleProblem
from saddleslide.theory.adaptive import METHODS, AdaptivePlan

Prices = tuple[float, float, float]


def adaptive_plan(problem: SaddleProblem, request: SolveRequest) -> AdaptivePlan:
    """What adaptive sliding does on a problem; nothing is called.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(3), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.eye(3), X=simplex, Y=simplex)
    >>> adaptive_plan(game, SolveRequest(1e-6)).method
    'restarted primal-dual'
    """
    (absolute, relative), metric = request.targets(problem), request.metric
    silent = [name for name, function in (("f", problem.f), ("g", problem.g)) if not function.has_value]
    raise_all(
        request.caller,
        [f"{name} has no value, so no gap can be certified; pass value=, or run a plan of ss.plan." for name in silent],
    )
    problem.start(request.start)
    f_rest, f_simple = split_simple(problem.f, problem.X)
    g_rest, g_simple = split_simple(problem.g, problem.Y)
    mirrored = isinstance(f_rest, Zero) and not isinstance(g_rest, Zero)
    simple = tuple(
        f"{name} = {part!r} by its proximal step"
        for name, part in (("f", f_simple), ("g", g_simple))
        if not isinstance(part, Zero)
    )
    shared: dict[str, Any] = {
        "tol": absolute,
        "rtol": relative,
        "seed": request.seed,
        "shapes": (problem.X.shape, problem.Y.shape),
        "proximal": simple,
    }
    if isinstance(f_rest, Zero) and isinstance(g_rest, Zero):
        unused = not (isinstance(metric, str) and metric in ("auto", "blocks"))
        why_not = ", and the metric asked for has no use" if unused else ""
        reason = f"f and g are simple terms: no gradient is called{why_not}"
        costs = _prices(problem, request) or estimated_costs(problem)
        return AdaptivePlan(METHODS[1], "blocks", False, 1, 1.0, reasons=(reason,), costs=costs, **shared)
    seen = problem.mirrored() if mirrored else problem
    chosen, why = choose_metric(seen, f_rest if not mirrored else g_rest, metric)
    prices = _prices(problem, request)
    steps = inner_steps_per_gradient(seen, _swapped(prices) if mirrored else prices, chosen)
    reasons = (*why, *(("g is costly and f is simple: the roles of x and y are exchanged",) if mirrored else ()))
    reasons += tuple(
        f"smoothness of {name} was not declared: its curvature is found by backtracking"
        for name, part, domain in (("f", f_rest, problem.X), ("g", g_rest, problem.Y))
        if not _declared(part, domain)
    )
    g_steps = steps_per_g = 0
    entrywise = chosen in ("blocks", "diagonal") or isinstance(metric, Entrywise)
    if entrywise and not (isinstance(f_rest, Zero) or isinstance(g_rest, Zero)):
        g_steps = g_steps_per_gradient(prices or estimated_costs(problem))
        steps_per_g = inner_steps_per_gradient(problem.mirrored(), _swapped(prices), "blocks", FEWEST_ON_G)
        reasons = (*reasons, "f and g are costly: g is slid inside the steps on f")
    curvature = first_curvature(seen) if chosen == "blocks" else 1.0
    given = None if isinstance(metric, str) else metric
    settings = (METHODS[0], chosen, mirrored, steps, curvature, g_steps, steps_per_g)
    costs = prices or estimated_costs(problem)
    return AdaptivePlan(*settings, given=given, reasons=reasons, costs=costs, **shared)


def _prices(problem: SaddleProblem, request: SolveRequest) -> Prices | None:
    """Prices that were given or are to be measured; None leaves the estimate to sizes, and counts vector work."""
    return None if request.costs is None else chosen_costs(problem, request.costs, request.caller)


def _declared(part: Function, domain: Domain) -> bool:
    try:
        exponent(part, domain)
    except UnknownConstantError:
        return False
    except InputError:
        return True
    return True


def _swapped(costs: Prices | None) -> Prices | None:
    """Prices as seen with the roles exchanged; None leaves the estimate to sizes."""
    return None if costs is None else (costs[1], costs[0], costs[2])
