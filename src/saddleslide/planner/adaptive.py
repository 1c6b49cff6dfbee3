"""The plan of `solve`: metric, orientation, inner work, and what all of it is expected to cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

from saddleslide.arrays.arguments import as_flag
from saddleslide.arrays.base import as_number
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
from saddleslide.methods.metric_choice import METRICS, choose_metric
from saddleslide.metrics import Entrywise, Metric
from saddleslide.planner.candidates import ADAPTIVE
from saddleslide.planner.forecast import predictions, start_scale
from saddleslide.problem import SaddleProblem
from saddleslide.theory.adaptive import METHODS, AdaptivePlan


def adaptive_plan(
    problem: SaddleProblem,
    tol: float | None = None,
    *,
    rtol: float | None = None,
    metric: str | Metric = "auto",
    start: tuple[Any, Any] | None = None,
    costs: Sequence[float] | str | None = None,
    rng: int = 0,
    predict: bool = True,
) -> AdaptivePlan:
    """What `solve` with adaptive sliding would do, and what it and the other methods are expected to cost.

    Arguments are those of `solve`. Predictions take one gradient of each costly function, outside of any run;
    `predict=False` leaves them out and calls nothing.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(3), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.eye(3), X=simplex, Y=simplex)
    >>> adaptive_plan(game, tol=1e-6).method
    'restarted primal-dual'
    """
    plan = planned(problem, tol, rtol, metric, start, costs, rng)
    if not as_flag(predict, "adaptive_plan: predict"):
        return plan
    return _predicted(problem, plan, chosen_costs(problem, plan.costs, "solve"))


def _predicted(problem: SaddleProblem, plan: AdaptivePlan, prices: tuple[float, float, float]) -> AdaptivePlan:
    """The plan with its expected calls and what other methods are expected to cost for the same target."""
    target = max(plan.tol, plan.rtol * start_scale(problem) if plan.rtol > 0.0 else 0.0)
    if not 0.0 < target < math.inf:
        return replace(plan, costs=prices)
    rows = {row.method: row for row in predictions(problem, target, prices, with_plan=False) if row.applies}
    own = rows.pop(ADAPTIVE)
    others = tuple((f"method {name}", row.cost) for name, row in rows.items() if math.isfinite(row.cost))
    expected = None if own.expected is None else {name: float(getattr(own.expected, name)) for name in "fgB"}
    return replace(plan, costs=prices, predicted=expected, alternatives=others)


def planned(
    problem: SaddleProblem,
    tol: float | None,
    rtol: float | None,
    metric: str | Metric,
    start: tuple[Any, Any] | None,
    costs: Sequence[float] | str | None,
    rng: int,
) -> AdaptivePlan:
    """The plan without predictions, which take a gradient of each costly function."""
    absolute, relative = targets(problem, tol, rtol, metric, rng)
    silent = [name for name, function in (("f", problem.f), ("g", problem.g)) if not function.has_value]
    raise_all(
        "solve",
        [f"{name} has no value, so no gap can be certified; pass value=, or run a plan of ss.plan." for name in silent],
    )
    if start is not None:
        problem.start(start)
    f_rest, f_simple = split_simple(problem.f, problem.X)
    g_rest, g_simple = split_simple(problem.g, problem.Y)
    mirrored = isinstance(f_rest, Zero) and not isinstance(g_rest, Zero)
    simple = tuple(
        f"{name} = {part!r} by its proximal step"
        for name, part in (("f", f_simple), ("g", g_simple))
        if not isinstance(part, Zero)
    )
    if isinstance(f_rest, Zero) and isinstance(g_rest, Zero):
        unused = not (isinstance(metric, str) and metric in ("auto", "blocks"))
        why_not = ", and the metric asked for has no use" if unused else ""
        reason = f"f and g are simple terms: no gradient is called{why_not}"
        return AdaptivePlan(METHODS[1], "blocks", False, 1, 1.0, absolute, relative, rng, simple, (reason,))
    seen = problem.mirrored() if mirrored else problem
    chosen, why = choose_metric(seen, f_rest if not mirrored else g_rest, metric)
    prices = None if costs is None else chosen_costs(problem, costs, "solve")
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
    return AdaptivePlan(
        METHODS[0], chosen, mirrored, steps, first_curvature(seen) if chosen == "blocks" else 1.0,
        absolute, relative, rng, simple, reasons, g_steps, steps_per_g,
        None if isinstance(metric, str) else metric, prices,
    )  # fmt: skip


def _declared(part: Function, domain: Domain) -> bool:
    try:
        exponent(part, domain)
    except UnknownConstantError:
        return False
    except InputError:
        return True
    return True


def _swapped(costs: tuple[float, float, float] | None) -> tuple[float, float, float] | None:
    """Prices as seen with the roles exchanged; None leaves the estimate to sizes."""
    return None if costs is None else (costs[1], costs[0], costs[2])


def targets(
    problem: SaddleProblem, tol: float | None, rtol: float | None, metric: str | Metric, rng: int
) -> tuple[float, float]:
    """Absolute and relative target, after refusing what can not be one."""
    if not isinstance(problem, SaddleProblem):
        raise InputError(f"solve: problem is {type(problem).__name__}; expected a SaddleProblem.")
    complaints = []
    if isinstance(rng, bool) or not isinstance(rng, Integral) or rng < 0:
        complaints.append(f"rng is {rng!r}; expected a seed >= 0 or a numpy.random.Generator.")
    if tol is None and rtol is None:
        complaints.append("tol and rtol are both missing; expected a target gap.")
    if not (isinstance(metric, Metric) or (isinstance(metric, str) and metric in METRICS)):
        complaints.append(f"metric is {metric!r}; expected one of {METRICS} or an object of ss.metrics.")
    raise_all("solve", complaints)
    absolute = 0.0 if tol is None else as_number(tol, "solve: tol", 0.0)
    relative = 0.0 if rtol is None else as_number(rtol, "solve: rtol", 0.0)
    if absolute == 0.0 and relative == 0.0:
        raise InputError("solve: tol and rtol are 0; expected a target > 0.")
    return absolute, relative
