"""The minimum of f(x) + <c, x> over a domain, with a certified error: what a gap needs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from saddleslide.arrays import Array, as_floats, on_host
from saddleslide.domains import Ball, Box, Domain, FullSpace, Simplex
from saddleslide.errors import NoExactMinimumError
from saddleslide.functions.base import Function
from saddleslide.functions.moduli import bounding_modulus
from saddleslide.functions.quadratic import Quadratic
from saddleslide.functions.searched import Tally, TiltedMinimum, searched_minimum
from saddleslide.functions.separable import SeparableForm, form_beside, free_minimiser, multiplier_step
from saddleslide.functions.simple import Zero

EPS = float(np.finfo(np.float64).eps)
# Doubles between two neighbours of any bracket: 2100 halvings reach the last bit from 1e308.
_HALVINGS = 2200
_LARGEST_BRACKET = 1e150
# A few of the smallest doubles, for a bracket around 0.
_LAST_BITS = 2e-323
# More terms are summed by halves: lists of numbers take long.
_MANY = 4096
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
    form = form_beside(f, c)
    # Projecting the free minimiser is exact only where the scaling commutes with the projection.
    commutes = form is not None and (isinstance(domain, Box | FullSpace) or form.isotropic)
    if form is not None and commutes and not form.curved and np.all(form.quadratic > 0.0):
        return _diagonal_minimum(f, c, domain, form)
    if f.separable and isinstance(domain, Box | FullSpace):
        return _separable_minimum(f, c, domain)
    if form is not None and isinstance(domain, Ball | Simplex):
        return _coupled_minimum(f, form, c, domain)
    tally = tally or Tally()
    tally.most = min(tally.most, max(max_gradients, 1))
    mu = bounding_modulus(f, Zero(), domain)
    if f.quadratic and isinstance(domain, FullSpace | Ball) and mu > 0.0:
        found = _quadratic_minimum(f, c, domain, start, accuracy, tally)
        if found.method != CUT_OFF or not tally.allows(1.0):
            return found
    if mu > 0.0 or domain.bounded:
        return searched_minimum(f, c, domain, start, accuracy, tilted_minimum, tally)
    raise NoExactMinimumError(
        f"{type(f).__name__} on {type(domain).__name__}: no certified minimum is known. Expected a separable function, "
        "strong convexity, or a bounded domain."
    )


def has_closed_minimum(f: Function, domain: Domain) -> bool:
    """Whether `tilted_minimum` needs no gradients: linear, separable on plain domains, or by one multiplier.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f, ball = ss.functions.LeastSquares(np.eye(2), [1.0, 2.0]), ss.domains.Ball(1.0, shape=2)
    >>> has_closed_minimum(f, ball), has_closed_minimum(ss.functions.Quadratic(1.0), ball)
    (False, True)
    """
    form = f.separable_form()
    if f.linear or (f.separable and isinstance(domain, Box | FullSpace)):
        return True
    if form is None:
        return False
    bowl = form.isotropic and bool(np.all(np.asarray(form.quadratic) > 0.0))
    return bowl or isinstance(domain, Ball | Simplex)


def _linear_minimum(f: Function, c: Array, domain: Domain) -> TiltedMinimum:
    slope = f.gradient(np.zeros_like(c)) + c
    point = domain.maximizer(-slope)
    terms = slope * np.where(slope == 0.0, 0.0, point)
    value, roundings = (-math.inf, 0) if np.isneginf(terms).any() else careful_sum(terms.ravel())
    # Each product and the slope itself carry one rounding.
    error = (4.0 + roundings) * EPS * float(np.abs(terms).sum()) if math.isfinite(value) else 0.0
    return TiltedMinimum(point, value, error, "support function")


def careful_sum(terms: Array) -> tuple[float, int]:
    """The sum of a vector, and by how many units of rounding of the sum of sizes it may be off.

    Exact on the host, and to the last bit for many terms. Elsewhere sums of about sqrt(n) terms are summed, so that no
    order of summation does much harm.

    Examples
    --------
    >>> careful_sum(np.array([1e16, 1.0, -1e16]))
    (1.0, 0)
    """
    if on_host(terms):
        return (math.fsum(terms.tolist()), 0) if terms.size <= _MANY else (_halved_sum(terms), 1)
    length = math.isqrt(terms.size)
    square = terms[: length * length].reshape(length, length)
    return float(square.sum(axis=1).sum()) + float(terms[length * length :].sum()), 4 * length + 4


def _halved_sum(terms: Array) -> float:
    """The sum of two halves, again and again, with what each addition has lost (Knuth's two-sum)."""
    rest, lost = terms, 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        while rest.size > _MANY:
            half = rest.size // 2
            a, b, odd = rest[:half], rest[half : 2 * half], rest[2 * half :]
            both = a + b
            added = both - a
            lost += float(((a - (both - added)) + (b - added)).sum())
            rest = np.concatenate([both, odd])
    found = math.fsum([*rest.tolist(), lost]) if math.isfinite(lost) else math.nan
    # Sums of halves may overflow where the whole does not.
    return found if math.isfinite(found) else math.fsum(terms.tolist())


def _separable_minimum(f: Function, c: Array, domain: Box | FullSpace) -> TiltedMinimum:
    def slope(x: Array) -> Array:
        return f.gradient(x) + c

    low, high, unbounded = _bracket(slope, c, domain)
    if unbounded:
        return TiltedMinimum(low, -math.inf, 0.0, "unbounded below")
    low, high = _bisected(f, c, *_narrowed(f, slope, c, low, high))
    at_low, at_high = np.abs(slope(low)), np.abs(slope(high))
    point = np.where(at_high < at_low, high, low)
    # The minimiser lies in the bracket, so convexity bounds what is left by |slope| * width.
    left = np.minimum(at_low, at_high) * (high - low)
    # The terms of a value may cancel, so its rounding is relative to their sizes and not to the value.
    value, size = f.value_and_magnitude(point)
    value += float(np.vdot(c, point))
    magnitude = size + float(np.abs(c * point).sum()) + float(np.abs(f.gradient(point) * point).sum())
    return TiltedMinimum(point, value, float(left.sum()) + 8.0 * EPS * magnitude, "bisection")


def _narrowed(f: Function, slope: Callable[[Array], Array], c: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """A tight bracket around the closed form of the minimiser, entry by entry where the slopes confirm it."""
    form = form_beside(f, c)
    if form is None or not np.all(form.quadratic > 0.0):
        return low, high
    guess = np.clip(free_minimiser(form, c), low, high)
    width = 16.0 * EPS * np.abs(guess) + _LAST_BITS
    left, right = np.maximum(guess - width, low), np.minimum(guess + width, high)
    return np.where(slope(left) <= 0.0, left, low), np.where(slope(right) >= 0.0, right, high)


def _bisected(f: Function, c: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Brackets halved until no number lies between their ends; those alone that are open, where entries are alike."""
    form = f.separable_form()
    # A caller's function may name no shape and have weights of its own for every entry.
    if f.shape is not None or form is None or not form.alike or not on_host(c):
        return _halved(f, c, low, high)
    middle = low + 0.5 * (high - low)
    wide = (low < middle) & (middle < high)
    low[wide], high[wide] = _halved(f, c[wide], low[wide], high[wide])
    return low, high


def _halved(f: Function, c: Array, low: Array, high: Array) -> tuple[Array, Array]:
    for _ in range(_HALVINGS):
        middle = low + 0.5 * (high - low)
        if not ((low < middle) & (middle < high)).any():
            break
        rising = f.gradient(middle) + c >= 0.0
        high = np.where(rising, middle, high)
        low = np.where(rising, low, middle)
    return low, high


def _coupled_minimum(f: Function, form: SeparableForm, c: Array, domain: Ball | Simplex) -> TiltedMinimum:
    """Separable f on a ball or a simplex: the Lagrangian at any multiplier is a true lower bound, and separable."""
    # A proximal step of vanishing weight finds the multiplier; what that weight costs shows in the error.
    weight = 1e-10 * (float(np.max(np.abs(c), initial=0.0)) or 1.0)
    point, multiplier = multiplier_step(form, -c / weight, weight, domain)
    value = f.value(point) + float(np.vdot(c, point))
    if isinstance(domain, Simplex):
        dual = _separable_minimum(f, c + multiplier, Box(0.0, 1.0, shape=c.shape)).lower - multiplier
        rounding = abs(multiplier)
    else:
        penalised = f + Quadratic(multiplier) if multiplier > 0.0 else f
        middle = np.zeros_like(c) if domain.center is None else domain.center
        half = 0.5 * multiplier * domain.ball_radius**2
        offset = 0.5 * multiplier * float(np.vdot(middle, middle))
        dual = _separable_minimum(penalised, c - multiplier * middle, FullSpace(c.shape)).lower + offset - half
        rounding = half + offset
    error = max(value - dual, 0.0) + 16.0 * EPS * (abs(value) + rounding)
    return TiltedMinimum(point, value, error, "multiplier")


def _diagonal_minimum(f: Function, c: Array, domain: Domain, form: SeparableForm) -> TiltedMinimum:
    pull = -(form.linear + c)
    point = domain.project(np.divide(pull, form.quadratic))
    value = f.value(point) + float(np.vdot(c, point))
    # Where the point is interior, its slope is rounding; the strong convexity bounds what that can hide.
    inside = domain.project(point - (form.quadratic * point - pull) / form.quadratic) - point
    left = float(np.sum(form.quadratic * inside * inside))
    magnitude = form.size(point) + float(np.abs(c * point).sum())
    return TiltedMinimum(point, value, left + 16.0 * EPS * magnitude, "closed form")


def _bracket(slope: object, c: Array, domain: Box | FullSpace) -> tuple[Array, Array, bool]:
    """Ends with slope <= 0 and >= 0, or the sides of the box where the minimum is at a side."""
    assert callable(slope)
    lower = domain.lower if isinstance(domain, Box) else np.full_like(c, -np.inf, dtype=np.float64)
    upper = domain.upper if isinstance(domain, Box) else np.full_like(c, np.inf, dtype=np.float64)
    middle = np.clip(np.zeros_like(c), lower, upper)
    reach = 1.0
    low, high = np.maximum(lower, middle - reach), np.minimum(upper, middle + reach)
    while True:
        at_low, at_high = slope(low), slope(high)
        short_low = (at_low > 0.0) & (low > lower)
        short_high = (at_high < 0.0) & (high < upper)
        if not (short_low.any() or short_high.any()):
            break
        if reach > _LARGEST_BRACKET:
            return low, high, True
        reach *= 4.0
        low = np.where(short_low, np.maximum(lower, middle - reach), low)
        high = np.where(short_high, np.minimum(upper, middle + reach), high)
    return np.where(at_high <= 0.0, high, low), np.where(at_low >= 0.0, low, high), False


def _quadratic_minimum(
    f: Function,
    c: Array,
    domain: FullSpace | Ball,
    start: Array | None,
    accuracy: float,
    tally: Tally,
) -> TiltedMinimum:
    """Conjugate gradients with restarts on the true residual until the residual bound stops improving."""
    mu = bounding_modulus(f, Zero(), domain)
    x = np.zeros_like(c) if start is None else as_floats(start).copy()
    best_x, best = x, math.inf
    for _ in range(20):
        tally.count(1)
        residual = -(f.gradient(x) + c)
        square = float(np.vdot(residual, residual))
        if not square < 0.25 * best:
            break
        best_x, best = x, square
        if square <= 2.0 * mu * accuracy or tally.gradients >= tally.most:
            break
        x = _conjugate_gradients(f, x, residual, 2.0 * mu * accuracy, tally)
    lower_gap = best / (2.0 * mu)
    point = domain.project(best_x)
    inside = np.array_equal(point, best_x)
    tally.count(f.lone_value_cost * (1.0 if inside else 2.0))
    at_best = f.value(best_x)
    at_point = at_best if inside else f.value(point)
    value_at_best, value = at_best + float(np.vdot(c, best_x)), at_point + float(np.vdot(c, point))
    magnitude = abs(at_point) + float(np.abs(c * point).sum())
    # When the ball cuts the minimiser off, the free minimum still bounds from below.
    error = max(value - value_at_best, 0.0) + lower_gap + 64.0 * EPS * magnitude
    method = "conjugate gradients" if inside else CUT_OFF
    return TiltedMinimum(point, value, error, method, tally.gradients)


def _conjugate_gradients(f: Function, x: Array, residual: Array, target: float, tally: Tally) -> Array:
    """Plain CG from x; stops when the squared residual has fallen by 26 digits or to `target`."""
    x, r, p = x.copy(), residual.copy(), residual.copy()
    rr = float(np.vdot(r, r))
    target = max(target, 1e-26 * rr)
    while tally.gradients < tally.most:
        tally.count(1)
        Hp = f.hessian_product(p)
        curvature = float(np.vdot(p, Hp))
        if not curvature > 0.0 or rr <= target:
            break
        step = rr / curvature
        x += step * p
        r -= step * Hp
        new_rr = float(np.vdot(r, r))
        p = r + (new_rr / rr) * p
        rr = new_rr
    return x
