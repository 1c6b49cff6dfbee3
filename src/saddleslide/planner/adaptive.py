"""The plan of adaptive sliding: metric, orientation and inner work."""

from __future__ import annotations

from typing import Any

from saddleslide.errors import raise_all
from saddleslide.facts.costs import (
    FEWEST_ON_G,
    chosen_costs,
    estimated_costs,
    g_steps_per_gradient,
    inner_steps_per_gradient,
)
from saddleslide.facts.facts import Facts
from saddleslide.methods.adaptive_sliding import first_curvature
from saddleslide.methods.metric_choice import choose_metric
from saddleslide.metrics import Entrywise
from saddleslide.planner.request import SolveRequest
from saddleslide.theory.plan import ADAPTIVE_SLIDING, RESTARTED_PRIMAL_DUAL, Plan

Prices = tuple[float, float, float]


def adaptive_plan(facts: Facts, request: SolveRequest) -> Plan:
    """What adaptive sliding does on a problem; nothing is called."""
    problem = facts.problem
    (absolute, relative), metric = request.targets(problem), request.metric
    silent = [name for name, function in (("f", problem.f), ("g", problem.g)) if not function.has_value]
    raise_all(
        request.caller,
        [f"{name} has no value, so no gap can be certified; pass value=, or run a plan of ss.plan." for name in silent],
    )
    problem.start(request.start)
    f_rest, g_rest = facts.f.rest, facts.g.rest
    mirrored = f_rest.is_zero and not g_rest.is_zero
    shared: dict[str, Any] = {
        "tol": absolute,
        "rtol": relative,
        "seed": request.seed,
        "shapes": (problem.X.shape, problem.Y.shape),
        "proximal": tuple(
            f"{name} = {block.simple.function!r} by its proximal step"
            for name, block in (("f", facts.f), ("g", facts.g))
            if not block.simple.is_zero
        ),
        "mirrored": mirrored,
    }
    # Prices that were given or are to be measured; None leaves the estimate to sizes, and counts vector work.
    prices = None if request.costs is None else chosen_costs(problem, request.costs, request.caller)
    shared["costs"] = prices or estimated_costs(problem)
    if f_rest.is_zero and g_rest.is_zero:
        unused = not (isinstance(metric, str) and metric in ("auto", "blocks"))
        why_not = ", and the metric asked for has no use" if unused else ""
        reason = f"f and g are simple terms: no gradient is called{why_not}"
        return Plan(method=RESTARTED_PRIMAL_DUAL, settings={"metric": "blocks"}, reasons=(reason,), **shared)
    seen = problem.mirrored() if mirrored else problem
    chosen, why = choose_metric(seen, (g_rest if mirrored else f_rest).function, metric)
    reasons = (*why, *(("g is costly and f is simple: the roles of x and y are exchanged",) if mirrored else ()))
    reasons += tuple(
        f"smoothness of {name} was not declared: its curvature is found by backtracking"
        for name, rest in (("f", f_rest), ("g", g_rest))
        if rest.is_undeclared
    )
    g_steps = steps_per_g = 0
    entrywise = chosen in ("blocks", "diagonal") or isinstance(metric, Entrywise)
    if entrywise and not (f_rest.is_zero or g_rest.is_zero):
        g_steps = g_steps_per_gradient(shared["costs"])
        steps_per_g = inner_steps_per_gradient(problem.mirrored(), _swapped(prices), "blocks", FEWEST_ON_G)
        reasons = (*reasons, "f and g are costly: g is slid inside the steps on f")
    settings = {
        "metric": chosen,
        "inner_steps": inner_steps_per_gradient(seen, _swapped(prices) if mirrored else prices, chosen),
        "curvature": first_curvature(seen) if chosen == "blocks" else 1.0,
        "g_steps": g_steps,
        "steps_per_g": steps_per_g,
        "given": None if isinstance(metric, str) else metric,
    }
    return Plan(method=ADAPTIVE_SLIDING, settings=settings, reasons=reasons, **shared)


def _swapped(costs: Prices | None) -> Prices | None:
    """Prices as seen with the roles exchanged; None leaves the estimate to sizes."""
    return None if costs is None else (costs[1], costs[0], costs[2])
