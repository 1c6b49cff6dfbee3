"""What `solve` does by itself, and what `method="auto"` stands for: the choice between methods."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from saddleslide.certificates.certificate import judge_point
from saddleslide.certificates.foresight import possible_claim
from saddleslide.errors import raise_all
from saddleslide.facts import costs as estimates
from saddleslide.facts.facts import Facts
from saddleslide.functions.base import gradient_aside
from saddleslide.functions.constants import takes_products
from saddleslide.methods.adaptive_sliding import first_curvature
from saddleslide.methods.base import Method
from saddleslide.methods.catalogue import by_name
from saddleslide.methods.interior_point import step_cost
from saddleslide.methods.metric_choice import choose_metric
from saddleslide.metrics import Entrywise
from saddleslide.operators.spectrum import note
from saddleslide.planner import forecast
from saddleslide.planner.forecast import ADAPTIVE, Costs, Prediction, SolveRequest
from saddleslide.theory.plan import ADAPTIVE_SLIDING, RESTARTED_PRIMAL_DUAL, Plan

INTERIOR = "interior-point"
# Products that first-order methods take on simple f and g at a loose relative target, without curvature and with it,
# and at most; between them by the square root of the target (measured on games, transport, regression and filtering).
_LOOSE, _TIGHT, _AT_LOOSE, _CURVED_AT_LOOSE, _AT_TIGHT = 1e-2, 1e-6, 1000.0, 300.0, 1e4
# Steps of an interior-point method, and what one takes besides its factor; what a primal-dual step takes besides.
_INTERIOR_STEPS, _INTERIOR_OVERHEAD, _OVERHEAD = 20.0, 5.5e6, 2e4
Slopes = tuple[float, float]
# A rival must be predicted to be cheaper by this factor: predictions are no better than that.
MARGIN = 1.25
# The gap at the start may be so small a part of what the sizes of a problem allow.
_OVERSTATED = 0.1
# Distances at which predictions are tried before a gradient is spent on the true one.
_FAR = (1.0, 1e2, 1e4, 1e6, 1e8)
_NEAR_AND_FAR = (1e-6, 1e-4, 1e-2, 1.0, 1e2, 1e4, 1e6)
# A method that is so many times too dear at both ends is not asked between them.
_FAR_TOO_DEAR = 100.0
# Operations per iteration and entry of x and y outside the oracles; L-BFGS-B with 10 pairs and bounds.
_VECTOR_WORK, _LBFGS_WORK = 10.0, 120.0


def adaptive_plan(facts: Facts, request: SolveRequest) -> Plan:
    """What adaptive sliding does on a problem; nothing is called."""
    problem, metric, target = facts.problem, request.metric, request.target(facts.problem)
    blocks = (("f", facts.f), ("g", facts.g))
    silent = [name for name, block in blocks if not block.function.has_value]
    missing = "has no value, so no gap can be certified; pass value=, or run a plan of ss.plan."
    raise_all(request.caller, [f"{name} {missing}" for name in silent])
    problem.start(request.start)
    f_rest, g_rest = facts.f.rest, facts.g.rest
    mirrored = f_rest.is_zero and not g_rest.is_zero
    # Costs that were given or are to be measured; None leaves the estimate to sizes, and counts vector work.
    given = None if request.costs is None else estimates.chosen_costs(problem, request.costs, request.caller)
    costs = given or estimates.estimate_costs(problem)
    simple = [f"{name} = {block.simple.function!r}" for name, block in blocks if not block.simple.is_zero]
    made = Plan(
        method=RESTARTED_PRIMAL_DUAL, settings={"metric": "blocks"}, **target._asdict(), seed=request.seed,
        shapes=(problem.X.shape, problem.Y.shape), mirrored=mirrored, costs=costs,
        proximal=tuple(f"{part} by its proximal step" for part in simple), certificate=possible_claim(problem),
    )  # fmt: skip
    if f_rest.is_zero and g_rest.is_zero:
        unused = not (isinstance(metric, str) and metric in ("auto", "blocks"))
        why_not = ", and the metric asked for has no use" if unused else ""
        return replace(made, reasons=(f"f and g are simple terms: no gradient is called{why_not}",))
    seen = problem.mirrored() if mirrored else problem
    # The same with the roles of x and y exchanged.
    swapped = None if given is None else (given[1], given[0], given[2])
    chosen, reasons = choose_metric(seen, (g_rest if mirrored else f_rest).function, metric)
    reasons = (*reasons, *(("g is costly and f is simple: the roles of x and y are exchanged",) if mirrored else ()))
    reasons += tuple(
        f"smoothness of {name} was not declared: its curvature is found by backtracking"
        for name, block in blocks
        if block.rest.is_undeclared
    )
    g_steps = steps_per_g = 0
    entrywise = chosen in ("blocks", "diagonal") or isinstance(metric, Entrywise)
    if entrywise and not (f_rest.is_zero or g_rest.is_zero):
        g_steps = estimates.g_steps_per_gradient(costs)
        steps_per_g = estimates.inner_steps_per_gradient(problem.mirrored(), swapped, "blocks", estimates.FEWEST_ON_G)
        reasons = (*reasons, "f and g are costly: g is slid inside the steps on f")
    settings = {
        "metric": chosen,
        "inner_steps": estimates.inner_steps_per_gradient(seen, swapped if mirrored else given, chosen),
        "curvature": first_curvature(seen) if chosen == "blocks" else 1.0,
        "g_steps": g_steps,
        "steps_per_g": steps_per_g,
        "given": None if isinstance(metric, str) else metric,
    }
    return replace(made, method=ADAPTIVE_SLIDING, settings=settings, reasons=reasons)


@dataclass(frozen=True)
class Choice:
    """What `method="auto"` stands for, why, and all predictions that were made."""

    method: str
    reason: str
    rows: tuple[Prediction, ...] = ()


def choose(
    facts: Facts, tol: float, reduction: float, costs: Costs, estimated: bool, start: tuple[Any, Any] | None = None
) -> Choice:
    """The method of `method="auto"`: the cheapest by prediction; "adaptive" unless another is clearly cheaper.

    Where distances would take a call and no method with a measured share applies, they are tried over eight powers of
    ten first: no call is made where adaptive sliding is the cheapest at all of them.
    """
    problem, simple = facts.problem, facts.f.rest.is_zero and facts.g.rest.is_zero
    if not (problem.f.has_value and problem.g.has_value):
        return Choice(ADAPTIVE, "values are missing")
    if any(takes_products(rest.function) for rest in (facts.f.rest, facts.g.rest)):
        return Choice(ADAPTIVE, "the curvature takes products to bound, and adaptive sliding finds it on the way")
    if simple and estimated and (why := _prefer_interior_points(facts, tol, reduction, costs)):
        return Choice(INTERIOR, why)
    rivals = [by_name[name]() for name in forecast.rivals_on(facts)]
    promised = [by_name[name]() for name in forecast.list_promised(facts)]
    if not (rivals or promised):
        return Choice(ADAPTIVE, "no other method applies")
    # Whether distances, on which all bounds rest, are known without calling a costly function.
    known = max(facts.moduli) == 0.0 or simple
    if not (rivals or known) and _adaptive_anyway(facts, tol, reduction, costs, estimated, promised):
        return Choice(ADAPTIVE, "the cheapest by prediction, however far the solution is")
    # The gap at the start. Distances from there may take one gradient of each function, and two products away from 0.
    scale, certain = forecast.start_scale(facts) if reduction > 0.0 else 0.0, reduction == 0.0
    if reduction > 0.0 and simple:
        # Certified where no costly function is called for that.
        seen = judge_point(problem, *problem.start(start))
        note(seen.calls)
        if math.isfinite(seen.gap):
            scale, certain = min(seen.gap, scale), True
    target = forecast.within_scale(max(tol, reduction * scale), forecast.start_scale(facts))
    if not 0.0 < target < math.inf:
        return Choice(ADAPTIVE, "no target in absolute terms is known beforehand")
    # A whole bound must hold its own where sizes overstate the target.
    strict = target if certain or tol >= reduction * scale else _OVERSTATED * target
    try:
        rows, (own, *others) = _predictions(facts, target, strict, costs, estimated, rivals, promised)
    except ArithmeticError:
        # Powers of sizes such as 1e150. Predictions call no oracle, so no error of the caller's is hidden.
        return Choice(ADAPTIVE, "the numbers of the predictions leave the range of double precision")
    best = min(others)
    name = rows[1 + others.index(best)].method
    if best * MARGIN < own:
        return Choice(name, f"predicted cost {best:.4g} against {own:.4g} of adaptive sliding", rows)
    return Choice(ADAPTIVE, f"predicted cost {own:.4g} against at least {best:.4g} of {name}", rows)


def _prefer_interior_points(facts: Facts, tol: float, reduction: float, costs: Costs) -> str:
    """Why an interior-point method is predicted to be cheaper than products alone; empty where it is not."""
    method = by_name[INTERIOR]()
    if method.lacks_at_a_glance(facts):
        return ""
    # Of the gap at the start, roughly: a norm would take longer than the method.
    entries = facts.problem.coupling.entries
    norm = scipy.sparse.linalg.norm(entries) if scipy.sparse.issparse(entries) else np.linalg.norm(entries)
    scale = float(norm) * facts.f.domain.diameter() * facts.g.domain.diameter()
    part = max(reduction, tol / scale if 0.0 < scale < math.inf else 0.0) or _TIGHT
    fewest = _CURVED_AT_LOOSE if max(facts.moduli) > 0.0 else _AT_LOOSE
    products = min(max(fewest * (_LOOSE / part) ** 0.5, fewest), _AT_TIGHT)
    size = facts.f.domain.size + facts.g.domain.size
    others = products * (costs[2] + 0.5 * (_VECTOR_WORK * size + _OVERHEAD))
    own = _INTERIOR_STEPS * (step_cost(facts.problem) + _INTERIOR_OVERHEAD)
    if own >= others:
        return ""
    return f"predicted cost {own:.4g} against {others:.4g} of {products:.0f} products; the entries of B are at hand"


def _predictions(
    facts: Facts, target: float, strict: float, costs: Costs, estimated: bool, rivals: list[Method],
    promised: list[Method],
) -> tuple[tuple[Prediction, ...], list[float]]:  # fmt: skip
    """Predictions for adaptive sliding, and for the others in their order, with the costs that decide.

    A method that is sure to cost more than adaptive sliding stands there with what is sure.
    """
    size = facts.f.domain.size + facts.g.domain.size

    def total(row: Prediction) -> float:
        """Costs estimated from sizes are in operations: those outside the oracles too, at two products an iteration."""
        if not estimated or row.bound is None:
            return row.cost
        each = _LBFGS_WORK if row.method == "l-bfgs" else _VECTOR_WORK
        return row.cost + each * size * row.share * row.bound.B / 2.0

    rows = [forecast.predict_adaptive(facts, target, costs)]
    own = total(rows[0])
    rows += [forecast.foretell(method, facts, target, costs) for method in rivals]
    for method in promised:
        sure = forecast.at_least(method, facts, strict, costs)
        rows.append(sure if total(sure) >= own else forecast.foretell(method, facts, strict, costs))
    return tuple(rows), [total(row) for row in rows]


def _adaptive_anyway(
    facts: Facts, tol: float, reduction: float, costs: Costs, estimated: bool, promised: list[Method]
) -> bool:
    """Whether adaptive sliding is the cheapest at all distances that are tried; nothing is called.

    Methods that are far too dear at both the nearest and the farthest are not asked between these.
    """
    ends, between = _possible_slopes(facts, tol)
    near: list[Method] = []
    tried: set[tuple[float, float]] = set()
    for slopes in (*ends, *between):
        asked = promised if slopes in ends else near
        # Beyond the radii of the domains all distances are the same.
        assumed = facts.with_distances(facts.sizes.within(slopes))
        if not asked or assumed.distances in tried:
            continue
        tried.add(assumed.distances)
        scale = forecast.start_scale(assumed)
        wanted = reduction * scale if reduction > 0.0 else 0.0
        target = forecast.within_scale(max(tol, wanted), scale)
        if not 0.0 < target < math.inf:
            continue
        strict = target if tol >= wanted else _OVERSTATED * target
        try:
            _, (own, *others) = _predictions(assumed, target, strict, costs, estimated, [], asked)
        except ArithmeticError:
            continue
        if min(others) * MARGIN < own:
            return False
        not_far = [method for method, cost in zip(asked, others, strict=True) if cost < _FAR_TOO_DEAR * own]
        near += [method for method in not_far if method not in near]
    return True


def _possible_slopes(facts: Facts, tol: float) -> tuple[list[Slopes], list[Slopes]]:
    """Norms of both parts of the operator at the start: known without a call, or those of distances far apart.

    The ends of what is possible, the farthest first, and what lies between. Where neither norm is known, distances
    between are near or far together.
    """
    (x, y), sides = facts.problem.start(), []
    for block, point, other in ((facts.f, x, y), (facts.g, y, x)):
        if block.rest.is_zero and not other.any():
            sides.append([float(np.linalg.norm(gradient_aside(block.function, point)))])
            continue
        H = block.holder.H if block.holder is not None and block.holder.H > 0.0 else 1.0
        # Below the first distance the curvature alone keeps f within the target.
        unit = math.sqrt(tol / H) if tol > 0.0 else 1.0
        sides.append([(block.modulus or H) * unit * far for far in (_FAR if tol > 0.0 else _NEAR_AND_FAR)])
    f_side, g_side = sides
    ends = [(f, g) for f in dict.fromkeys((f_side[-1], f_side[0])) for g in dict.fromkeys((g_side[-1], g_side[0]))]
    known = min(len(f_side), len(g_side)) == 1
    inner = itertools.product(f_side, g_side) if known else zip(f_side, g_side, strict=True)
    return ends, [slopes for slopes in inner if slopes not in ends]
