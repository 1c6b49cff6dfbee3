"""The exact minimum of f(x) + <c, x> over a domain, with a certified error: what an exact gap needs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from saddleslide.arrays import Array
from saddleslide.domains import Ball, Box, Domain, FullSpace
from saddleslide.errors import NoExactMinimumError
from saddleslide.functions.base import Function

EPS = float(np.finfo(np.float64).eps)
# Doubles between two neighbours of any bracket: 2100 halvings reach the last bit from 1e308.
_HALVINGS = 2200
_LARGEST_BRACKET = 1e150


@dataclass(frozen=True)
class TiltedMinimum:
    """Minimum of f(x) + <c, x>: the true one lies in [value - error, value].

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> found = ss.functions.tilted_minimum(ss.functions.Quadratic(1.0), np.array([2.0]), ss.domains.FullSpace(1))
    >>> round(found.value, 12), found.error < 1e-12
    (-2.0, True)
    """

    point: Array
    value: float
    error: float
    method: str

    @property
    def lower(self) -> float:
        """Certified lower bound of the minimum."""
        return self.value - self.error


def tilted_minimum(f: Function, c: Array, domain: Domain, start: Array | None = None) -> TiltedMinimum:
    """Minimum of f(x) + <c, x> over the domain, with a certified error.

    Linear f on every domain, separable f on boxes and the full space (bisection to machine precision), quadratic f on
    the full space or a ball (conjugate gradients, bounded by the residual and the strong convexity).

    Raises
    ------
    NoExactMinimumError
        When none of these applies; the message says why.

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
    if f.separable and isinstance(domain, Box | FullSpace):
        return _separable_minimum(f, c, domain)
    if f.quadratic and isinstance(domain, FullSpace | Ball) and f.strong_convexity(domain) > 0.0:
        return _quadratic_minimum(f, c, domain, start)
    raise NoExactMinimumError(
        f"{type(f).__name__} on {type(domain).__name__}: no certified minimum is known. Expected a linear function on "
        "any domain, a separable one on a box or the full space, or a strongly convex quadratic on the full space or "
        "a ball."
    )


def _linear_minimum(f: Function, c: Array, domain: Domain) -> TiltedMinimum:
    slope = f.gradient(np.zeros_like(c)) + c
    point = domain.maximizer(-slope)
    terms = slope * np.where(slope == 0.0, 0.0, point)
    value = -math.inf if np.isneginf(terms).any() else math.fsum(terms.ravel().tolist())
    # Each product and the slope itself carry one rounding.
    error = 4.0 * EPS * float(np.abs(terms).sum()) if math.isfinite(value) else 0.0
    return TiltedMinimum(point, value, error, "support function")


def _separable_minimum(f: Function, c: Array, domain: Box | FullSpace) -> TiltedMinimum:
    def slope(x: Array) -> Array:
        return f.gradient(x) + c

    low, high, unbounded = _bracket(slope, c, domain)
    if unbounded:
        return TiltedMinimum(low, -math.inf, 0.0, "unbounded below")
    for _ in range(_HALVINGS):
        middle = low + 0.5 * (high - low)
        if not ((low < middle) & (middle < high)).any():
            break
        rising = slope(middle) >= 0.0
        high = np.where(rising, middle, high)
        low = np.where(rising, low, middle)
    ends = np.stack([low, high])
    slopes = np.stack([slope(low), slope(high)])
    better = np.argmin(np.abs(slopes), axis=0)[None]
    point = np.take_along_axis(ends, better, axis=0)[0]
    # The minimiser lies in the bracket, so convexity bounds what is left by |slope| * width.
    left = np.take_along_axis(np.abs(slopes), better, axis=0)[0] * (high - low)
    value = f.value(point) + float(np.vdot(c, point))
    magnitude = abs(f.value(point)) + float(np.abs(c * point).sum()) + float(np.abs(f.gradient(point) * point).sum())
    return TiltedMinimum(point, value, float(left.sum()) + 8.0 * EPS * magnitude, "bisection")


def _bracket(slope: object, c: Array, domain: Box | FullSpace) -> tuple[Array, Array, bool]:
    """Ends with slope <= 0 and >= 0, or the sides of the box where the minimum is at a side."""
    assert callable(slope)
    lower = domain.lower if isinstance(domain, Box) else np.full(c.shape, -np.inf)
    upper = domain.upper if isinstance(domain, Box) else np.full(c.shape, np.inf)
    middle = np.clip(np.zeros_like(c), lower, upper)
    reach = 1.0
    low, high = np.maximum(lower, middle - reach), np.minimum(upper, middle + reach)
    while True:
        short_low = (slope(low) > 0.0) & (low > lower)
        short_high = (slope(high) < 0.0) & (high < upper)
        if not (short_low.any() or short_high.any()):
            break
        if reach > _LARGEST_BRACKET:
            return low, high, True
        reach *= 4.0
        low = np.where(short_low, np.maximum(lower, middle - reach), low)
        high = np.where(short_high, np.minimum(upper, middle + reach), high)
    at_low, at_high = slope(low) >= 0.0, slope(high) <= 0.0
    return np.where(at_high, high, low), np.where(at_low, low, high), False


def _quadratic_minimum(f: Function, c: Array, domain: FullSpace | Ball, start: Array | None) -> TiltedMinimum:
    """Conjugate gradients with restarts on the true residual until the residual bound stops improving."""
    mu = f.strong_convexity(domain)
    x = np.zeros_like(c) if start is None else np.array(start, dtype=np.float64)
    best_x, best = x, math.inf
    for _ in range(20):
        residual = -(f.gradient(x) + c)
        square = float(np.vdot(residual, residual))
        if not square < 0.25 * best:
            break
        best_x, best = x, square
        x = _conjugate_gradients(f, x, residual, steps=10 * c.size + 10)
    lower_gap = best / (2.0 * mu)
    point = domain.project(best_x)
    value_at_best = f.value(best_x) + float(np.vdot(c, best_x))
    value = f.value(point) + float(np.vdot(c, point))
    magnitude = abs(f.value(point)) + float(np.abs(c * point).sum())
    # When the ball cuts the minimiser off, the free minimum still bounds from below.
    error = max(value - value_at_best, 0.0) + lower_gap + 64.0 * EPS * magnitude
    return TiltedMinimum(point, value, error, "conjugate gradients")


def _conjugate_gradients(f: Function, x: Array, residual: Array, steps: int) -> Array:
    """Plain CG from x; stops when the recursive residual has fallen by twelve digits."""
    x, r, p = x.copy(), residual.copy(), residual.copy()
    rr = float(np.vdot(r, r))
    target = 1e-26 * rr
    for _ in range(steps):
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
