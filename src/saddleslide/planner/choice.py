"""The choice between methods: what `method="auto"` stands for."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from saddleslide.certificates.certificate import judged
from saddleslide.facts.facts import Facts
from saddleslide.functions.at_hand import takes_products
from saddleslide.functions.base import gradient_aside
from saddleslide.methods.base import Method
from saddleslide.methods.catalogue import by_name
from saddleslide.operators.call import note
from saddleslide.planner.candidates import ADAPTIVE, free_distances, promised_on, rivals_on
from saddleslide.planner.forecast import (
    Prediction,
    Prices,
    at_least,
    attainable,
    foretell,
    predict_adaptive,
    start_scale,
    within_scale,
)

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
