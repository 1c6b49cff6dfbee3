"""The minimum of f(x) + <c, x> over a domain, with a certified error: what a gap needs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from saddleslide import functions
from saddleslide.arrays.base import Array, as_floats, inner_product, length_of, on_host
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import Box, FullSpace
from saddleslide.domains.norms import Ball
from saddleslide.domains.simplices import Simplex
from saddleslide.errors import NoExactMinimumError
from saddleslide.functions.base import Function
from saddleslide.functions.constants import modulus_for_bounds
from saddleslide.functions.entries import minimal_entries
from saddleslide.functions.entrywise import Linear, Zero
from saddleslide.functions.factor import factor_of
from saddleslide.functions.roundings import EPS, FEW, Errors, inner_error
from saddleslide.functions.searched import Tally, TiltedMinimum, model_minimum, search_minimum, split_simple
from saddleslide.functions.separable import SeparableForm, form_beside, has_prox, multiplier_step, prox
from saddleslide.functions.sums import Sum
from saddleslide.functions.trust import (
    certain_modulus,
    errors_at,
    gradient_aside,
    is_ours,
    is_own_class,
    read_rounding,
    run_aside,
    runs_own_code,
    value_aside,
)
from saddleslide.watcher import late

# Part of a modulus that is given up for errors of gradients on unbounded sets.
SPARED = 1e-6


def keep_modulus(modulus: float, domain: Domain) -> float:
    """The modulus that models on a domain keep."""
    return modulus if domain.bounded else (1.0 - SPARED) * modulus


@dataclass(frozen=True)
class LowerModel:
    """A quadratic below a convex function everywhere on its domain.

    Gradients at points v_i with weights that sum to 1 give one: the average of
    value_i + <gradient_i, x - v_i> + mu/2 |x - v_i|^2. A run carries such averages along at no oracle call.
    """

    # Value and gradient at 0, and the modulus of strong convexity used.
    constant: float
    slope: Array
    curvature: float = 0.0

    @classmethod
    def from_gradient(
        cls, function: Function, domain: Domain, point: Array, value: float, gradient: Array, modulus: float
    ) -> LowerModel:
        """The model that one computed gradient gives, below the function on the domain whatever rounding has done."""
        size, slope = length_of(point), length_of(gradient)
        made = errors_at(function, point, value, slope)
        lost = made.value + (inner_error(point.size) + FEW) * (abs(value) + (slope + modulus * size) * size)
        wrong = made.gradient + FEW * (slope + modulus * size)
        if domain.bounded:
            lost += wrong * domain.radius(point)
        elif modulus > 0.0:
            # error |x - p| <= error^2 / (2 part mu) + part mu/2 |x - p|^2
            lost += wrong * wrong / (2.0 * SPARED * modulus)
        return cls.at(point, value - lost, gradient, keep_modulus(modulus, domain))

    @classmethod
    def at(cls, point: Array, value: float, gradient: Array, curvature: float = 0.0) -> LowerModel:
        """The model that one gradient gives."""
        if curvature == 0.0:
            return cls(value - inner_product(gradient, point), gradient.copy())
        square = 0.5 * curvature * inner_product(point, point)
        return cls(value - inner_product(gradient, point) + square, gradient - curvature * point, curvature)

    def tilted_minimum(self, c: Array, domain: Domain) -> TiltedMinimum:
        """Minimum of the model plus <c, x> over the domain, certified."""
        quadratic = functions.Quadratic(self.curvature) if self.curvature > 0.0 else Zero()
        found = tilted_minimum(quadratic, self.slope + c, domain)
        sizes = length_of(self.slope) + length_of(c)
        slope = FEW * sizes * (domain.radius_at_zero if domain.bounded else length_of(found.point))
        rounding = FEW * abs(self.constant) + slope
        value, error = found.value + self.constant, found.error + rounding
        return TiltedMinimum(found.point, value, error, "lower model", rounding=found.rounding + rounding)


# More terms are summed in rows, since lists of numbers take long; and so many to no more digits than others have.
_FEW_TERMS, _MANY, _COUNTLESS = 512, 4096, 2**18
# What cancels so little that it does no harm; whether the machine has numbers of 64 bits beside the exponent, or more.
_LITTLE = 0.1
_IS_EXTENDED = float(np.finfo(np.longdouble).eps) < 2.0**-62
_BY_SUPPORT = "support function"
CUT_OFF = "conjugate gradients, cut off by the ball"


def tilted_minimum(
    f: Function,
    c: Array,
    domain: Domain,
    start: Array | None = None,
    accuracy: float = 0.0,
    max_gradients: int = 1000,
    tally: Tally | None = None,
) -> TiltedMinimum:
    """Minimum of f(x) + <c, x> over the domain, with a certified error.

    Exact to rounding for linear f on every domain, for separable f on boxes and the full space (closed form or
    bisection) and for quadratic f on the full space or a ball (conjugate gradients). Any other f with a modulus of
    strong convexity or a bounded domain is minimised by accelerated proximal gradients, certified by its own
    linearisations.

    Parameters
    ----------
    f : Function
        Convex, with known values.
    c : array
        The tilt.
    domain : Domain
        Where to minimise.
    start : array, optional
        A good first guess; costs are lower from it.
    accuracy : float, optional
        The error at which an iterative search may stop; 0 asks for rounding accuracy.
    max_gradients : int, optional
        Where an iterative search stops in any case; the error bar is true all the same. A value alone of the caller's
        own code counts like a gradient.
    tally : Tally, optional
        Counts the gradients as they are made, whatever ends the search.

    Raises
    ------
    NoExactMinimumError
        When no finite bound is possible; the message says why.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> X = ss.domains.Simplex(3)
    >>> ss.functions.tilted_minimum(ss.functions.Zero(), np.array([3.0, 1.0, 2.0]), X).value
    1.0
    """
    if not f.has_value:
        raise NoExactMinimumError(f"{type(f).__name__}: its value is not known. Pass value= to bound the gap.")
    if f.linear:
        return _linear_minimum(f, c, domain)
    closed = f.closed_minimum(c, domain)
    if closed is not None:
        return closed
    form = form_beside(f, c)
    # Projecting the free minimiser is exact only where the scaling commutes with the projection.
    commutes = form is not None and (isinstance(domain, Box | FullSpace) or form.isotropic)
    if form is not None and commutes and not form.is_curved and np.all(form.quadratic > 0.0):
        return _diagonal_minimum(f, c, domain, form)
    if (f.separable or form is not None) and isinstance(domain, Box | FullSpace):
        return _separable_minimum(f, c, domain, accuracy)
    if form is not None and isinstance(domain, Ball | Simplex):
        return _minimise_coupled(f, form, c, domain)
    tally = tally or Tally()
    tally.most = min(tally.most, max(max_gradients, 1))
    mu = modulus_for_bounds(f, Zero(), domain)
    if f.quadratic and isinstance(domain, FullSpace | Ball) and mu > 0.0:
        found = _quadratic_minimum(f, c, domain, mu, start, accuracy, tally)
        if found.method != CUT_OFF or not tally.allows(1.0):
            return found
    if _is_bowl(f, domain):
        return _bowl_minimum(f, c, domain)
    # A search minimises linear models beside the simple part: there must be a rest.
    if (mu > 0.0 or domain.bounded) and not isinstance(split_simple(f, domain)[0], Zero):
        return search_minimum(f, c, domain, start, accuracy, tilted_minimum, tally)
    raise NoExactMinimumError(
        f"{type(f).__name__} on {type(domain).__name__}: no certified minimum is known. Expected a separable function, "
        "strong convexity, or a bounded domain."
    )


def minimiser_distance(
    f: Function, c: Array, domain: Domain, change: float, found: TiltedMinimum, modulus: float
) -> float:
    """A bound on |x| for minimisers of f(x) + <c + d, x> over the domain, |d| <= change; infinite where none is known.

    Within the radius of the set; by strong convexity beside the point that was found for c, up to its error; for
    separable f between the minimisers for larger and for smaller c, since every entry falls as its tilt rises.
    """
    if modulus == 0.0 and not is_own_class(f) and f.blocks_on(domain):
        return math.hypot(
            *(
                minimiser_distance(h, tilt, Y, change, replace(found, where=y), certain_modulus(h, Y))
                for h, Y, tilt, y in f.blocks_on(domain, c, found.point)
            )
        )
    radius = domain.radius_at_zero
    if modulus > 0.0 and math.isfinite(found.error):
        size = length_of(found.point) if np.isfinite(found.point).all() else 0.0
        return min(radius, size + math.sqrt(2.0 * max(found.error, 0.0) / modulus) + change / modulus)
    if math.isfinite(radius) or f.own_code or f.linear or not (f.separable and isinstance(domain, Box | FullSpace)):
        return radius
    # A wide bracket costs no precision; where minima end near c, as those of conjugates of barriers do, a narrow one.
    for step in (max(2.0 * change, 1e-3 * float(np.max(np.abs(c), initial=0.0))), 2.0 * change):
        ends = [tilted_minimum(f, c + shift, domain) for shift in (step, -step)]
        if all(math.isfinite(end.value) and np.isfinite(end.point).all() for end in ends):
            return length_of(np.maximum(np.abs(ends[0].point), np.abs(ends[1].point)))
    return math.inf


def entry_margin(f: Function, c: Array, domain: Domain, errors: Array, found: TiltedMinimum) -> float:
    """How far a tilt that is wrong by up to `errors` in its entries can move the minimum that was found for c.

    Where f is separable, entries of c that are exact count for nothing, however far out their minimisers lie.
    """
    if not is_own_class(f) and (blocks := f.blocks_on(domain, c, errors, found.point)):
        return sum(
            entry_margin(h, tilt, Y, wrong, TiltedMinimum(y, found.value, found.error, found.method))
            for h, Y, tilt, wrong, y in blocks
        )
    if not f.own_code and f.separable and isinstance(domain, Box | FullSpace):
        ends = [tilted_minimum(f, c + shift, domain) for shift in (2.0 * errors, -2.0 * errors)]
        if not all(math.isfinite(end.value) for end in ends):
            return math.inf
        sizes = np.maximum(np.abs(ends[0].point), np.abs(ends[1].point))
        return float(np.sum(errors * np.where(errors > 0.0, sizes, 0.0)))
    wrong = length_of(errors)
    if wrong == 0.0:
        return 0.0
    return wrong * minimiser_distance(f, c, domain, wrong, found, certain_modulus(f, domain))


def has_closed_minimum(f: Function, domain: Domain) -> bool:
    """Whether `tilted_minimum` needs no gradients: linear, separable on plain domains, or by one multiplier."""
    form = f.separable_form()
    entrywise = (f.separable or form is not None) and isinstance(domain, Box | FullSpace)
    if f.linear or entrywise or f.can_minimise(domain) or _is_bowl(f, domain):
        return True
    if form is None:
        return False
    bowl = form.isotropic and bool(np.all(np.asarray(form.quadratic) > 0.0))
    return bowl or isinstance(domain, Ball | Simplex)


def _is_bowl(f: Function, domain: Domain) -> bool:
    """Whether f is a function with a proximal step on the domain plus q/2 |x|^2 + <b, x>, q > 0: one step finds it."""
    if not is_ours(f, Sum) or f.bowl is None:
        return False
    part, form = f.bowl
    # A step of the caller's is asked as in a run: it gives a subgradient. What their code says of a form is not.
    if not part.has_value or any(runs_own_code(other) for other in f.parts if other is not part):
        return False
    return bool(form.quadratic > 0.0) and not form.is_curved and has_prox(part, domain)


def _bowl_minimum(f: Function, c: Array, domain: Domain) -> TiltedMinimum:
    assert isinstance(f, Sum) and f.bowl is not None
    part, form = f.bowl
    q, slope = float(np.max(form.quadratic)), c + form.linear
    point = prox(part, -slope / q, q, domain)
    value = value_aside(f, point) + inner_product(c, point)
    sizes = length_of(c) + length_of(np.broadcast_to(form.linear, c.shape))
    _, lost = model_minimum(0.0, slope, np.zeros_like(c), q, part, domain, Errors(0.0, FEW * sizes))
    lost += errors_at(f, point, value).value + (inner_error(c.size) + FEW) * float(np.abs(c * point).sum())
    return TiltedMinimum(point, value, lost, "closed form", rounding=lost)


def _linear_minimum(f: Function, c: Array, domain: Domain) -> TiltedMinimum:
    slope = c if isinstance(f, Zero) else gradient_aside(f, np.zeros_like(c)) + c
    downhill = -slope
    if isinstance(f, Linear | Zero) and (known := domain.support_terms(downhill)) is not None:
        size, roundings = _sum_of_sizes(known[0])
        error = (4.0 + known[1] + roundings) * EPS * size
        return TiltedMinimum(lambda: domain.maximizer(downhill), -size, error, _BY_SUPPORT, rounding=error)
    point = domain.maximizer(downhill)
    if domain.bounded:
        # Large arrays take longer to come by than to fill.
        terms = np.multiply(slope, point, out=downhill)
    else:
        terms = slope * np.where(slope == 0.0, 0.0, point)
    unbounded = not domain.bounded and np.isneginf(terms).any()
    value, roundings = (-math.inf, 0) if unbounded else careful_sum(terms.ravel())
    # Each product and the slope itself carry one rounding.
    error = (4.0 + roundings) * EPS * float(np.abs(terms, out=terms).sum()) if math.isfinite(value) else 0.0
    if math.isfinite(value) and not isinstance(f, Linear | Zero):
        # Slopes of several functions may cancel.
        distance = domain.radius_at_zero if domain.bounded else length_of(np.where(slope == 0.0, 0.0, point))
        error += read_rounding(f).at(0.0, 0.0, length_of(slope - c), c.size).gradient * distance
    return TiltedMinimum(point, value, error, _BY_SUPPORT, rounding=error)


def careful_sum(terms: Array) -> tuple[float, int]:
    """The sum of a vector, and by how many units of rounding of the sum of sizes it may be off.

    Exact for few terms on the host, and to the last bit for many. Of a remote array and of hundreds of thousands of
    terms sums of about sqrt(n) are summed, so that no order of summation does much harm.
    """
    if not on_host(terms) or terms.size > _COUNTLESS:
        length = math.isqrt(terms.size)
        square = terms[: length * length].reshape(length, length)
        return float(square.sum(axis=1).sum()) + float(terms[length * length :].sum()), 4 * length + 4
    if terms.size > _FEW_TERMS and _IS_EXTENDED:
        with np.errstate(over="ignore", invalid="ignore"):
            found, size = (np.add.reduce(part, dtype=np.longdouble) for part in (terms, np.abs(terms)))
            # Eleven bits more than a double has: where little cancels, what sums lose there is beyond its last bit.
            if abs(found) >= _LITTLE * size and math.isfinite(float(found)):
                return float(found), 1
    if terms.size <= _MANY:
        return math.fsum(terms.tolist()), 0
    # Row upon row, which stay in the cache, with what each addition has lost (Knuth's two-sum).
    rows = terms[: terms.size // _MANY * _MANY].reshape(-1, _MANY)
    total, lost = rows[0], np.zeros(_MANY)
    with np.errstate(over="ignore", invalid="ignore"):
        for row in rows[1:]:
            both = total + row
            added = both - total
            lost += (total - (both - added)) + (row - added)
            total = both
    left = [*total.tolist(), *terms[rows.size :].tolist(), *lost.tolist()]
    found = math.fsum(left) if np.isfinite(lost).all() else math.nan
    # Sums of rows may overflow where the whole does not.
    return found if math.isfinite(found) else math.fsum(terms.tolist()), 1


def _sum_of_sizes(terms: Array) -> tuple[float, int]:
    """The same of a vector of numbers >= 0, where nothing cancels: NumPy adds up pairs of sums, and these of 128."""
    if not on_host(terms) or terms.size <= _MANY:
        return careful_sum(terms)
    return float(terms.sum()), 16 + terms.size.bit_length()


def _separable_minimum(f: Function, c: Array, domain: Box | FullSpace, accuracy: float = 0.0) -> TiltedMinimum:
    lower = domain.lower if isinstance(domain, Box) else np.full_like(c, -np.inf, dtype=np.float64)
    upper = domain.upper if isinstance(domain, Box) else np.full_like(c, np.inf, dtype=np.float64)
    found = minimal_entries(f, c, lower, upper, accuracy)
    point = found.point
    if point is None:
        return TiltedMinimum(np.clip(np.zeros_like(c), lower, upper), -math.inf, 0.0, found.method)
    # The terms of a value may cancel, so its rounding is relative to their sizes and not to the value.
    value, size = run_aside(f, lambda: f.value_and_magnitude(point))
    value += inner_product(c, point)
    slope = gradient_aside(f, point)
    magnitude = size + float(np.abs(c * point).sum()) + float(np.abs(slope * point).sum())
    margin = (inner_error(c.size) + FEW) * magnitude
    return TiltedMinimum(point, value, float(found.missed.sum()) + margin, found.method, rounding=margin)


def _minimise_coupled(f: Function, form: SeparableForm, c: Array, domain: Ball | Simplex) -> TiltedMinimum:
    """Separable f on a ball or a simplex: the Lagrangian at any multiplier is a true lower bound, and separable."""
    # A proximal step of vanishing weight finds the multiplier; what that weight costs shows in the error.
    weight = 1e-10 * (float(np.max(np.abs(c), initial=0.0)) or 1.0)
    point, multiplier = multiplier_step(form, -c / weight, weight, domain)
    value = value_aside(f, point) + inner_product(c, point)
    if isinstance(domain, Simplex):
        total = float(domain.scale)
        dual = _separable_minimum(f, c + multiplier, Box(0.0, total, shape=c.shape)).lower - total * multiplier
        rounding = total * abs(multiplier)
    else:
        penalised = f + functions.Quadratic(multiplier) if multiplier > 0.0 else f
        middle = np.zeros_like(c) if domain.center is None else domain.center
        half = 0.5 * multiplier * domain.ball_radius**2
        offset = 0.5 * multiplier * inner_product(middle, middle)
        dual = _separable_minimum(penalised, c - multiplier * middle, FullSpace(c.shape)).lower + offset - half
        rounding = half + offset
    margin = (inner_error(c.size) + FEW) * (abs(value) + rounding + float(np.linalg.norm(c) * np.linalg.norm(point)))
    margin += errors_at(f, point, value).value
    return TiltedMinimum(point, value, max(value - dual, 0.0) + margin, "multiplier", rounding=margin)


def _diagonal_minimum(f: Function, c: Array, domain: Domain, form: SeparableForm) -> TiltedMinimum:
    pull = -(form.linear + c)
    point = domain.project(np.divide(pull, form.quadratic))
    value, size = run_aside(f, lambda: f.value_and_magnitude(point))
    value += inner_product(c, point)
    # Where the point is interior, its slope is rounding; the strong convexity bounds what that can hide.
    inside = form.quadratic * point
    inside -= pull
    inside /= form.quadratic
    np.subtract(point, inside, out=inside)
    inside = domain.project(inside, out=inside)
    inside -= point
    left = float(np.sum(form.quadratic * inside * inside))
    magnitude = size + float(np.abs(c * point).sum())
    margin = (inner_error(c.size) + FEW) * magnitude
    if not isinstance(domain, Box | FullSpace):
        # A point beside the projected one is off along the slope.
        slope = length_of(form.quadratic * point - pull)
        free = length_of(np.divide(pull, form.quadratic))
        margin += FEW * slope * (length_of(point) + min(domain.magnitude(), free))
    return TiltedMinimum(point, value, left + margin, "closed form", rounding=margin)


def _quadratic_minimum(
    f: Function, c: Array, domain: FullSpace | Ball, mu: float, start: Array | None, accuracy: float, tally: Tally
) -> TiltedMinimum:
    """Solves with a factor where there is one, else conjugate gradients, until the true residual stops improving."""
    factor = factor_of(f, domain, c)
    x = np.zeros_like(c) if start is None else as_floats(start).copy()
    best_x, best = x, math.inf
    for _ in range(20):
        if late() and math.isfinite(best):
            break
        tally.count(1)
        residual = -(f.gradient(x) + c)
        square = inner_product(residual, residual)
        if not square < 0.25 * best:
            break
        best_x, best = x, square
        if square <= 2.0 * mu * accuracy or tally.gradients >= tally.most:
            break
        if factor is not None:
            x = x + factor.solve(residual)
        else:
            x = _conjugate_gradients(f, x, residual, 2.0 * mu * accuracy, tally)
    point = domain.project(best_x)
    inside = np.array_equal(point, best_x)
    tally.count(f.lone_value_cost * (1.0 if inside else 2.0))
    at_best = f.value(best_x)
    at_point = at_best if inside else f.value(point)
    value_at_best, value = at_best + inner_product(c, best_x), at_point + inner_product(c, point)
    left, tilt = math.sqrt(best), length_of(c)
    made = errors_at(f, best_x, at_best, left + tilt)
    noise = made.gradient + FEW * (left + tilt)
    tilted = (inner_error(c.size) + FEW) * float(np.abs(c * best_x).sum() + np.abs(c * point).sum())
    margin = made.value + errors_at(f, point, at_point).value + tilted + noise * (2.0 * left + noise) / (2.0 * mu)
    # When the ball cuts the minimiser off, the free minimum still bounds from below.
    error = max(value - value_at_best, 0.0) + best / (2.0 * mu) + margin
    method = ("conjugate gradients" if factor is None else "factor") if inside else CUT_OFF
    return TiltedMinimum(point, value, error, method, tally.gradients, margin)


def _conjugate_gradients(f: Function, x: Array, residual: Array, target: float, tally: Tally) -> Array:
    """Plain CG from x; stops when the squared residual has fallen by 26 digits or to `target`."""
    x, r, p = x.copy(), residual.copy(), residual.copy()
    rr = inner_product(r, r)
    target = max(target, 1e-26 * rr)
    while tally.gradients < tally.most and not late():
        tally.count(1)
        Hp = f.hessian_product(p)
        curvature = inner_product(p, Hp)
        if not curvature > 0.0 or rr <= target:
            break
        step = rr / curvature
        x += step * p
        r -= step * Hp
        new_rr = inner_product(r, r)
        p = r + (new_rr / rr) * p
        rr = new_rr
    return x
