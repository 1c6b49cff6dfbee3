"""What `solve` does by itself, and what `method="auto"` stands for: the choice between methods."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from saddleslide.arrays.base import length_of
from saddleslide.certificates.certificate import judge_point
from saddleslide.certificates.foresight import possible_claim
from saddleslide.errors import raise_all
from saddleslide.facts import costs as estimates
from saddleslide.facts.facts import Facts
from saddleslide.functions.constants import takes_factor, takes_products
from saddleslide.functions.trust import gradient_aside, value_aside
from saddleslide.methods.base import Method
from saddleslide.methods.catalogue import by_name
from saddleslide.methods.metric_choice import choose_metric, first_curvature
from saddleslide.metrics.base import Entrywise
from saddleslide.oracles.calls import Calls
from saddleslide.planner import forecast
from saddleslide.planner.forecast import ADAPTIVE, Costs, Prediction, SolveRequest
from saddleslide.problem import SaddleProblem
from saddleslide.theory.plan import ADAPTIVE_SLIDING, RESTARTED_PRIMAL_DUAL, Plan
from saddleslide.watcher import note

INTERIOR, BUNDLE = "interior-point", "bundle"
# Of rough f and g: cuts a decade and unit of nu + 0.3; gradients that first-order methods take at least; what a step on
# cuts takes besides calls, an entry of x and y; and the dearest vectors of which so many are kept. Measured on
# |Ax - b|^p, p = 1 to 1.75 (benchmarks/rough.py). Gradients must be dearer than so much a entry, or steps on cuts are.
_CUTS, _FEWEST_ROUGH, _PROGRAM, _MOST_REMEMBERED, _DEAR, _BESIDE = 12.0, 500.0, 4e3, 1e5, 100.0, 5.5e6
# Products that restarted primal-dual steps take on simple f and g at a loose relative target, and by which power of it
# they grow, without curvature and with it; and at most (measured on games, transport, regression, linear programs and
# filtering: benchmarks/programs.py).
_LOOSE, _TIGHT, _FLAT, _CURVED, _AT_MOST = 1e-2, 1e-6, (800.0, 0.3), (100.0, 0.28), 1e4
# Of least squares and quadratics with a matrix: gradients of f that adaptive sliding takes at a loose relative target,
# by which power of it they grow, gradients of a costly g and products with each, and operations of a step besides;
# steps of an interior-point method there, and operations that one takes besides its factor.
_GRADIENTS, _GROWTH, _OF_G, _WITH_EACH, STEP = 30.0, 0.12, 4.0, 24.0, 2.5e6
_NEWTON_STEPS, _NEWTON_OVERHEAD = 10.0, 2.5e6
# Steps of an interior-point method, and operations that one takes besides its factor, and a primal-dual step besides
# its products; seconds that an operation took there.
_INTERIOR_STEPS, _INTERIOR_OVERHEAD, _OVERHEAD, _SECONDS = 20.0, 2.5e5, 4e5, 4e-10
Slopes = tuple[float, float]
# Interior points come first where they are predicted to be so many times cheaper than products.
_CLEARLY = 3.0
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
    given = None if request.costs is None else estimates.choose_costs(problem, request.costs, request.caller)
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
    # Whether interior points go on once they look cheaper than what is left to do.
    races: bool = False


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
    if simple and estimated:
        return _choose_simple(facts, tol, reduction, costs, start)
    # Newton's steps have no use for a start, and pictures a metric in which few gradients do.
    is_flat = start is None and max(len(problem.X.shape), len(problem.Y.shape)) == 1
    if estimated and is_flat and (newton := _choose_newton(facts, tol, reduction, costs)) is not None:
        return newton
    if (bundle := _choose_bundle(facts, tol, reduction, costs, estimated)) is not None:
        return bundle
    if estimated and any(takes_factor(rest.function) for rest in (facts.f.rest, facts.g.rest)):
        return Choice(ADAPTIVE, "the curvature takes a factor to bound, and adaptive sliding finds it on the way")
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
        said = f"predicted cost {best:.4g} against {own:.4g} of adaptive sliding"
        return Choice(name, said + _duration(best, estimated), rows)
    said = f"predicted cost {own:.4g} against at least {best:.4g} of {name}"
    return Choice(ADAPTIVE, said + _duration(own, estimated), rows)


def _duration(operations: float, estimated: bool) -> str:
    """Seconds as an order of magnitude, where costs are operations and not somebody's own."""
    known = estimated and math.isfinite(operations)
    return f"; expected to take about {operations * _SECONDS:.1g} s" if known else ""


def _choose_bundle(facts: Facts, tol: float, reduction: float, costs: Costs, estimated: bool) -> Choice | None:
    """Cutting planes, where f and g are costly and one is rough: by counts that were measured on such problems.

    Bounds of first-order methods say nothing here: with g slid inside, runs take a hundred times what is predicted.
    """
    sides, (c_f, c_g, c_B) = (facts.f, facts.g), costs
    size = facts.f.domain.size + facts.g.domain.size
    if any(side.rest.is_zero for side in sides) or not min(side.rest.exponent for side in sides) < 1.0:
        return None
    if (estimated and c_f + c_g < _DEAR * size) or size > _MOST_REMEMBERED or by_name[BUNDLE]().lacks(facts):
        return None
    nu, radii = min(side.rest.exponent for side in sides), facts.sizes.radii
    scale = forecast.start_scale(facts.with_distances(radii))
    part = min(max(reduction, tol / scale if 0.0 < scale < math.inf else 0.0), 1.0)
    if not part > 0.0:
        return None
    steps = _CUTS / (nu + 0.3) * (1.0 - math.log10(part))
    others = max(_FEWEST_ROUGH, _FEWEST_ROUGH * (_LOOSE / part) ** 0.2 * max(1.0, 1.4 * 50.0 ** (2.0 - 4.0 * nu)))
    own = steps * (c_f + c_g + 8.0 * c_B + estimated * (_PROGRAM * size + _BESIDE))
    first_order = others * (c_f + c_g + 3.0 * c_B + estimated * (_VECTOR_WORK * size + _OVERHEAD))
    if own * MARGIN >= first_order:
        return None
    made, usual = math.ceil(steps), math.ceil(others)
    rows = (
        Prediction(BUNDLE, Calls(made, made, 8 * made), cost=own),
        Prediction(ADAPTIVE, Calls(usual, usual, 3 * usual), cost=first_order),
    )
    why = f"f or g is rough: about {made} cuts of each against {usual} gradients without a memory"
    return Choice(BUNDLE, why, rows)


def _choose_newton(facts: Facts, tol: float, reduction: float, costs: Costs) -> Choice | None:
    """Interior points where f or g is least squares, or a quadratic with a matrix, by counts that were measured.

    Their cost is predicted from the pattern of the factor; None where it can not be, or is not worth its while. Where
    it is that of many gradients, and kinks or bounds take steps anyway, gradients come first (`courses.Race`): how many
    of them it takes depends on a conditioning that nobody knows.
    """
    c_f, c_g, c_B = costs
    interior = by_name[INTERIOR]()
    if interior.lacks_at_a_glance(facts):
        return None
    part = _part_of_values(facts, tol, reduction)
    each = c_f + c_g * (1.0 if facts.f.rest.is_zero else _OF_G) + _WITH_EACH * c_B + STEP
    others = _GRADIENTS * max(1.0, (_LOOSE / part) ** _GROWTH) * each
    if _NEWTON_STEPS * facts.least_newton_cost >= others:
        return None
    own = _NEWTON_STEPS * (facts.newton_cost + _NEWTON_OVERHEAD)
    rows = (
        Prediction(ADAPTIVE, Calls(math.ceil(_GRADIENTS), 0, 0), cost=others),
        Prediction(INTERIOR, Calls(0, 0, int(2 * _NEWTON_STEPS)), cost=own),
    )
    if own * MARGIN < others:
        why = f"all entries are at hand: predicted cost {own:.4g} against {others:.4g} of gradients"
        return Choice(INTERIOR, why + _duration(own, True), rows)
    if not _has_kinks(facts) or interior.lacks(facts):
        return None
    why = f"gradients first, interior points once these look cheaper: predicted cost {own:.4g}"
    return Choice(ADAPTIVE, why + _duration(others, True), rows, races=True)


def product_overhead(problem: SaddleProblem) -> float:
    """Operations of primal-dual steps on simple f and g beside each product."""
    return 0.5 * (_VECTOR_WORK * (problem.X.size + problem.Y.size) + _OVERHEAD)


def _part_of_values(facts: Facts, tol: float, reduction: float) -> float:
    """The target as a part of the values at the start: the gap there takes a solve."""
    problem, (x, y) = facts.problem, facts.problem.start()
    values = abs(value_aside(problem.f, x)) + abs(value_aside(problem.g, y)) if tol > 0.0 else math.inf
    return min(max(reduction, tol / values if values > 0.0 else 0.0), 1.0) or _TIGHT


def _has_kinks(facts: Facts) -> bool:
    """Whether what is costly stands beside kinks or bounds of the same block: else one factor may be the answer."""
    sides = [side.program for side in (facts.f, facts.g) if side.program is not None and side.program.squares]
    return any(said.kinks or np.isfinite(said.lower).any() or np.isfinite(said.upper).any() for said in sides)


def _choose_simple(facts: Facts, tol: float, reduction: float, costs: Costs, start: tuple[Any, Any] | None) -> Choice:
    """Interior points or products alone, where f and g are simple: by counts that were measured on such problems.

    What other methods would take is not asked: on these problems none of them was faster than both, and their bounds
    rest on norms that take longer to find than small problems to solve.
    """
    fewest, power = _CURVED if max(facts.moduli) > 0.0 else _FLAT
    work = costs[2] + product_overhead(facts.problem)
    overhead, own, part = _INTERIOR_STEPS * _INTERIOR_OVERHEAD, math.inf, reduction or _TIGHT

    def count(part: float) -> float:
        return float(min(max(fewest * (_LOOSE / part) ** power, fewest), _AT_MOST))

    if overhead < _AT_MOST * work and not by_name[INTERIOR]().lacks_at_a_glance(facts):
        own = _INTERIOR_STEPS * facts.newton_cost + overhead
        if tol > 0.0 and count(1.0) * work < own < count(_TIGHT) * work:
            # Two products show the gap at the start, where there is one.
            seen = judge_point(facts.problem, *facts.problem.start(start))
            note(seen.calls)
            part = max(reduction, tol / seen.gap if 0.0 < seen.gap < math.inf else 0.0) or _TIGHT
    products = count(part)
    others = products * work
    rows = (
        Prediction(ADAPTIVE, Calls(0, 0, math.ceil(products)), cost=others),
        Prediction(INTERIOR, Calls(0, 0, int(2 * _INTERIOR_STEPS)), cost=own),
    )
    # Else products come first, and interior points take over where they get on slowly.
    if own * _CLEARLY < others:
        why = f"predicted cost {own:.4g} against {others:.4g} of {products:.0f} products; the entries of B are at hand"
        return Choice(INTERIOR, f"{why}; expected to take about {own * _SECONDS:.1g} s", rows)
    why = f"f and g are simple: about {products:.0f} products, expected to take about {others * _SECONDS:.1g} s"
    return Choice(ADAPTIVE, why, rows, races=own < math.inf)


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
            sides.append([length_of(gradient_aside(block.function, point))])
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
