"""The bound of a certificate: lower <= min max F <= upper at any feasible point, whoever found it. Knows no method.

F(x, y) = f(x) + <Bx, y> - g(y). From above, max over Y of F(x, .) is f(x) less the minimum of g - <Bx, .>; from below,
min over X of F(., y) is the minimum of f + <B^T y, .> less g(y). Both minima are certified (`Side.minimum`), and what
rounding and a wrong adjoint can have done to them is given away.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from saddleslide.arrays.base import Array, as_real, coarseness, length_of
from saddleslide.arrays.kinds import Remote
from saddleslide.certificates.guards import CONVEXITY, check_inner_adjoints, check_pair, known_mismatch
from saddleslide.certificates.verdict import Certificate
from saddleslide.errors import InputError, NoExactMinimumError
from saddleslide.functions.constants import modulus_for_bounds
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.minimum import LowerModel, entry_margin, minimiser_distance, tilted_minimum
from saddleslide.functions.searched import Tally, TiltedMinimum
from saddleslide.functions.trust import errors_at
from saddleslide.operators.base import Operator
from saddleslide.oracles.calls import RunEnded
from saddleslide.oracles.oracles import Oracles
from saddleslide.problem import SaddleProblem

EPS = float(np.finfo(np.float64).eps)
# Averages of projected points leave a set by rounding only.
FEASIBILITY_TOLERANCE = 1e-9
# Error bars below this part of the values count as rounding.
EXACT_ERROR = 1e-10
# How a minimum was found: by the lower model of a run (`LowerModel.tilted_minimum`), or not at all.
_MODEL, _UNKNOWN = "lower model", "unknown"


def judge_point(
    problem: SaddleProblem,
    x: Any,
    y: Any,
    models: Mapping[str, LowerModel] | None = None,
    accuracy: float = 0.0,
    max_gradients: int = 1000,
) -> Certificate:
    """`ss.certify` inside another call, which has the books and looks at the caller's functions itself."""
    return certify_counted(Oracles(problem), *feasible(problem, x, y), models or {}, accuracy, max_gradients)


def feasible(problem: SaddleProblem, x: Any, y: Any) -> tuple[Array, Array]:
    """The point itself, the last rounding projected away; refused where it lies outside."""
    points = []
    for name, point, domain in (("x", x, problem.X), ("y", y, problem.Y)):
        # What a run hands over lies where its arrays lie; a point of a caller is checked, and brought there.
        own = isinstance(point, Remote)
        array = point if own else problem.arrays.place(as_real(point, f"certificate: {name}", domain.shape))
        outside, size = domain.violation(array), 1.0 + float(np.max(np.abs(array), initial=0.0))
        if outside > 0.0 and outside > max(FEASIBILITY_TOLERANCE, coarseness(point)) * size:
            raise InputError(
                f"certificate: {name} lies outside {domain} by {outside:.1e}; expected a "
                "feasible point. Project it first."
            )
        # A gap at an infeasible point can be negative, so the last rounding is projected away.
        points.append(array if outside == 0.0 else domain.project(array))
    return points[0], points[1]


def certify_counted(
    oracles: Oracles, x: Array, y: Array, models: Mapping[str, LowerModel], accuracy: float, max_gradients: int
) -> Certificate:
    """`ss.certify` at a feasible point through oracles that count every call, whatever ends it."""
    problem, B = oracles.problem, oracles.problem.coupling
    Bx, BTy = oracles.forward(x), oracles.adjoint(y)
    if not oracles.finite(Bx, BTy):
        return Certificate(reason="B x or B^T y is not finite.", calls=oracles.calls)
    try:
        mismatch = check_pair(B, x, Bx, y, BTy)
        check_inner_adjoints(oracles)
        mismatch = max(known_mismatch(oracles), mismatch)
    except RunEnded as ended:
        return Certificate(reason=ended.reason, calls=oracles.calls)
    on_X, on_Y = sides_of(problem)
    above, missing_above = _tightest(on_Y, oracles, -Bx, y, models.get("g"), accuracy, max_gradients)
    below, missing_below = _tightest(on_X, oracles, BTy, x, models.get("f"), accuracy, max_gradients)
    f = oracles.made("f", problem.f.value_cost, lambda: problem.f.value(x))
    g = oracles.made("g", problem.g.value_cost, lambda: problem.g.value(y))
    sizes = abs(f) + abs(g)
    # A side that is unknown says nothing about the rounding of the other.
    rounding = 16.0 * EPS * (sizes + sum(abs(side.lower) for side in (below, above) if math.isfinite(side.lower)))
    wrong_Bx, wrong_BTy = product_shift(B, x, Bx, mismatch), product_shift(B, y, BTy, mismatch)
    from_x = errors_at(problem.f, x, f).value
    from_x += on_Y.margin(-Bx, wrong_Bx, above, lambda: B.entry_errors(x, Bx) if mismatch == 0.0 else None)
    from_y = errors_at(problem.g, y, g).value + on_X.margin(BTy, wrong_BTy, below)
    upper, lower = f - above.lower + rounding + from_x, below.lower - g - rounding - from_y
    # A NaN anywhere must read as unknown, never as a small gap.
    known, reason = math.isfinite(lower) and math.isfinite(upper), ""
    if not known:
        reason = " ".join(filter(None, (missing_above, missing_below)))
        reason = reason or "an inner minimum is unbounded or a value is not finite."
    elif lower > upper:
        if not lower - upper <= CONVEXITY * (abs(lower) + abs(upper) + sizes):
            contradiction = (
                f"the lower bound {lower:.6g} lies above the upper one {upper:.6g}: values, gradients or products "
                "contradict each other. Check value, gradient and prox of each function, and B."
            )
            return Certificate(reason=contradiction, calls=oracles.calls)
        # Rounding of oracles: each may be wrong by what they contradict each other by.
        lower, upper = 2.0 * upper - lower, 2.0 * lower - upper
    searched = known and not above.error + below.error <= EXACT_ERROR * (abs(upper) + abs(lower) + sizes)
    kind = "model" if _MODEL in (above.method, below.method) else "searched" if searched else "exact"
    return Certificate(
        lower if math.isfinite(lower) else -math.inf,
        upper if math.isfinite(upper) else math.inf,
        kind if known else "none",
        above.error + below.error + 2.0 * rounding + from_x + from_y,
        reason,
        oracles.calls,
        problem.assumptions if known else "",
    )


class Side:
    """One block of a problem, f on X or g on Y, and the minimum of the function plus <tilt, .> over the set."""

    def __init__(self, problem: SaddleProblem, name: str) -> None:
        self.name = name
        self.function, self.domain = (problem.f, problem.X) if name == "f" else (problem.g, problem.Y)

    @cached_property
    def modulus(self) -> float:
        """Of strong convexity, as far as bounds may use it."""
        return modulus_for_bounds(self.function, Zero(), self.domain)

    def minimum(
        self, oracles: Oracles, tilt: Array, start: Array, accuracy: float, most: int, tally: Tally
    ) -> TiltedMinimum:
        """The certified minimum by at most so many gradients, counted whatever ends it."""
        function, domain = self.function, self.domain
        try:
            return oracles.made(
                self.name, 0, lambda: tilted_minimum(function, tilt, domain, start, accuracy, most, tally)
            )
        finally:
            oracles.add(self.name, tally.gradients)

    def margin(
        self,
        tilt: Array,
        shift: float,
        found: TiltedMinimum,
        entry_errors: Callable[[], Array | None] = lambda: None,
    ) -> float:
        """What a tilt that is wrong by up to `shift` can do to the minimum, by the size of its minimisers.

        `entry_errors` bounds what every entry is wrong by, where that is known.
        """
        if shift == 0.0 or found.method == _UNKNOWN:
            return 0.0
        margin = shift * minimiser_distance(self.function, tilt, self.domain, shift, found, self.modulus)
        if margin <= EXACT_ERROR * abs(found.value) or (errors := entry_errors()) is None:
            return margin
        return min(margin, entry_margin(self.function, tilt, self.domain, errors, found))


def sides_of(problem: SaddleProblem) -> tuple[Side, Side]:
    """F on X, and g on Y."""
    return Side(problem, "f"), Side(problem, "g")


def _tightest(
    side: Side, oracles: Oracles, tilt: Array, start: Array, model: LowerModel | None, accuracy: float, most: int
) -> tuple[TiltedMinimum, str]:
    """The inner minimum by the solve or by the model, whichever is tighter; without either the reason why."""
    by_model = None if model is None else model.tilted_minimum(tilt, side.domain)
    if by_model is not None and most == 0:
        return by_model, ""
    try:
        found = side.minimum(oracles, tilt, start, accuracy, max(most, 1), Tally())
    except NoExactMinimumError as missing:
        if by_model is not None and by_model.lower > -math.inf:
            return by_model, ""
        return TiltedMinimum(start, -math.inf, math.inf, _UNKNOWN), str(missing)
    if by_model is None or found.lower >= by_model.lower or math.isnan(found.lower):
        return found, ""
    return by_model, ""


def product_shift(coupling: Operator, point: Array, product: Array, mismatch: float, term_size: float = 0.0) -> float:
    """A bound on what a product with B is wrong by; `term_size` is that of points whose products were added up."""
    size = max(length_of(point), term_size)
    return coupling.bound_rounding(size, length_of(product)) + mismatch * size
