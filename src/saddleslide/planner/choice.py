"""The choice between methods: what `method="auto"` stands for."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from saddleslide.certificates.certificate import judged
from saddleslide.errors import raise_all
from saddleslide.facts.costs import (
    FEWEST_ON_G,
    chosen_costs,
    estimated_costs,
    g_steps_per_gradient,
    inner_steps_per_gradient,
)
from saddleslide.facts.facts import Facts
from saddleslide.functions.base import gradient_aside
from saddleslide.functions.constants import takes_products
from saddleslide.methods.adaptive_sliding import first_curvature
from saddleslide.methods.base import Method
from saddleslide.methods.catalogue import by_name
from saddleslide.methods.metric_choice import choose_metric
from saddleslide.metrics import Entrywise
from saddleslide.operators.spectrum import note
from saddleslide.planner.forecast import (
    ADAPTIVE,
    Prediction,
    Prices,
    SolveRequest,
    at_least,
    attainable,
    foretell,
    free_distances,
    predict_adaptive,
    promised_on,
    rivals_on,
    start_scale,
    within_scale,
)
from saddleslide.theory.plan import ADAPTIVE_SLIDING, RESTARTED_PRIMAL_DUAL, Plan


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


@dataclass(frozen=True)
class Choice:
    """What `method="auto"` stands for, why, and all predictions that were made; what that took is in the call's books.

    Examples
    --------
    >>> Choice("adaptive", "nothing else applies").alternatives
    ()
    """

    method: str
    reason: str
    rows: tuple[Prediction, ...] = ()

    @property
    def predicted(self) -> dict[str, float] | None:
        """Calls that the method is expected to take, judging included; None where nothing was predicted."""
        own = next((row for row in self.rows if row.method == self.method), None)
        if own is None or own.expected is None:
            return None
        calls = own.expected + own.judging
        return {"f": float(calls.f), "g": float(calls.g), "B": float(calls.B)}

    @property
    def alternatives(self) -> tuple[tuple[str, float], ...]:
        """The other methods with their predicted costs, cheapest first; without what has none."""
        others = [(row.method, row.cost) for row in self.rows if row.method != self.method]
        return tuple(sorted((pair for pair in others if math.isfinite(pair[1])), key=lambda pair: pair[1]))


def choose(
    facts: Facts, tol: float, rtol: float, costs: Prices, estimated: bool, start: tuple[Any, Any] | None = None
) -> Choice:
    """The method of `method="auto"`: the cheapest by prediction; "adaptive" unless another is clearly cheaper.

    Every method that applies is predicted, the plans of the theorems among them ("proved-sliding"). Where distances
    would take a call and no method with a measured share applies, they are tried over eight powers of ten first: no
    call is made where adaptive sliding is the cheapest at all of them. Prices that were estimated from sizes are in
    operations, so the vector work of the methods is added to them.
    """
    problem = facts.problem
    if not (problem.f.has_value and problem.g.has_value):
        return Choice(ADAPTIVE, "values are missing")
    if any(takes_products(rest.function) for rest in (facts.f.rest, facts.g.rest)):
        return Choice(ADAPTIVE, "the curvature takes products to bound, and adaptive sliding finds it on the way")
    rivals, promised = ([by_name[name]() for name in found] for found in (rivals_on(facts), promised_on(facts)))
    if not (rivals or promised):
        return Choice(ADAPTIVE, "no other method applies")
    if not (rivals or free_distances(facts)) and _adaptive_anyway(facts, tol, rtol, costs, estimated, promised):
        return Choice(ADAPTIVE, "the cheapest by prediction, however far the solution is")
    # Distances from the start may take one gradient of each function, and two products away from 0.
    scale, certain = _first_gap(facts, start) if rtol > 0.0 else (0.0, True)
    target = attainable(facts, max(tol, rtol * scale))
    if not 0.0 < target < math.inf:
        return Choice(ADAPTIVE, "no target in absolute terms is known beforehand")
    # A whole bound must hold its own where sizes overstate the target.
    strict = target if certain or tol >= rtol * scale else _OVERSTATED * target
    try:
        rows = _predictions(facts, (target, strict), costs, estimated, rivals, promised)
    except ArithmeticError:
        # Powers of sizes such as 1e150. Predictions call no oracle, so no error of the caller's is hidden.
        return Choice(ADAPTIVE, "the numbers of the predictions leave the range of double precision")
    own, *others = (_total(row, facts, estimated) for row in rows)
    best = min(others)
    name, known = rows[1 + others.index(best)].method, tuple(rows)
    if best * MARGIN < own:
        return Choice(name, f"predicted cost {best:.4g} against {own:.4g} of adaptive sliding", known)
    return Choice(ADAPTIVE, f"predicted cost {own:.4g} against at least {best:.4g} of {name}", known)


def _predictions(
    facts: Facts,
    targets: tuple[float, float],
    costs: Prices,
    estimated: bool,
    rivals: list[Method],
    promised: list[Method],
) -> list[Prediction]:
    """Predictions for adaptive sliding, and for the others in their order.

    A method that is sure to cost more than adaptive sliding stands there with what is sure.
    """
    target, strict = targets
    rows = [predict_adaptive(facts, target, costs)]
    own = _total(rows[0], facts, estimated)
    rows += [foretell(method, facts, target, costs) for method in rivals]
    for method in promised:
        sure = at_least(method, facts, strict, costs)
        dear = _total(sure, facts, estimated) >= own
        rows.append(sure if dear else foretell(method, facts, strict, costs))
    return rows


def _total(row: Prediction, facts: Facts, estimated: bool) -> float:
    """The cost that decides: prices that were estimated are in operations, and vector work is added to them."""
    size = facts.f.domain.size + facts.g.domain.size
    return row.cost + (_vector_work(row, size) if estimated else 0.0)


def _adaptive_anyway(
    facts: Facts, tol: float, rtol: float, costs: Prices, estimated: bool, promised: list[Method]
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
        assumed = facts.assuming(facts.sizes.within(slopes))
        if not asked or assumed.distances in tried:
            continue
        tried.add(assumed.distances)
        scale = start_scale(assumed)
        wanted = rtol * scale if rtol > 0.0 else 0.0
        target = within_scale(max(tol, wanted), scale)
        if not 0.0 < target < math.inf:
            continue
        strict = target if tol >= wanted else _OVERSTATED * target
        try:
            rows = _predictions(assumed, (target, strict), costs, estimated, [], asked)
        except ArithmeticError:
            continue
        own, *others = (_total(row, facts, estimated) for row in rows)
        if min(others) * MARGIN < own:
            return False
        near += [
            method
            for method, cost in zip(asked, others, strict=True)
            if cost < _FAR_TOO_DEAR * own and method not in near
        ]
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


def _first_gap(facts: Facts, start: tuple[Any, Any] | None) -> tuple[float, bool]:
    """The gap at the start, and whether it is certified: only where no costly function is called."""
    scale = start_scale(facts)
    if facts.f.rest.is_zero and facts.g.rest.is_zero:
        seen = judged(facts.problem, *facts.problem.start(start))
        note(seen.calls)
        if math.isfinite(seen.gap):
            return min(seen.gap, scale), True
    return scale, False


def _vector_work(row: Prediction, size: int) -> float:
    """Operations outside the oracles on points of a size, at two products an iteration."""
    if row.bound is None:
        return 0.0
    each = _LBFGS_WORK if row.method == "l-bfgs" else _VECTOR_WORK
    return each * size * row.share * row.bound.B / 2.0
