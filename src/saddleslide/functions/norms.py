"""Norms: l1, l2, groups of entries, the largest entry, singular values. Their dual sets are balls."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, final

import numpy as np
import scipy

from saddleslide.arrays.base import Array, Shape, as_number, as_real, inner_product, length_of, zeros
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import Box, FullSpace
from saddleslide.domains.matrices import SpectralBall
from saddleslide.domains.norms import Ball, GroupBalls, L1Ball
from saddleslide.domains.simplices import Simplex
from saddleslide.errors import InputError
from saddleslide.functions.base import Function, on_pairs
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.groups import as_axes, axes_in, group_norms, pair_axes, shorten_groups, spread
from saddleslide.functions.roundings import EPS, FEW, Rounding, inner_error
from saddleslide.functions.searched import TiltedMinimum
from saddleslide.functions.separable import SeparableForm, balance_size
from saddleslide.theory.holder import Holder

# Norms below this part of 1, and above its inverse, are taken in units of their own.
_TINY = 1e-100


class Norm(Function):
    """A function with h(t x) = t h(x) for t >= 0: its conjugate is 0 on a set, `dual_set`."""

    def gauge(self, y: Array) -> float:
        """The smallest t with y in t times the dual set."""
        raise InputError(f"{type(self).__name__}: has no gauge.")

    def dual_set(self, shape: Shape, factor: float) -> Domain:
        """The set on which the conjugate of `factor` times the function is 0."""
        raise InputError(f"{type(self).__name__}: has no dual set.")

    def strong_convexity(self, domain: Domain) -> float:
        return 0.0

    def conjugate_value(self, y: Array) -> float:
        # A point on the boundary of the set may have been rounded.
        return 0.0 if self.gauge(y) <= 1.0 + 8.0 * FEW else math.inf

    def dual(self, shape: Shape, factor: float = 1.0) -> tuple[Function, Domain]:
        return Zero(), self.dual_set(shape, factor)

    @property
    def error_model(self) -> Rounding:
        return Rounding(entrywise=FEW)

    def recession(self, direction: Array) -> tuple[Array, float, float]:
        slope = self.value(direction)
        return direction, slope, abs(slope)

    def can_prox(self, domain: Domain) -> bool:
        return super().can_prox(domain) or (self.shrinks and is_orthant(domain))

    def prox_on(self, domain: Domain, center: Array, weight: Array | float) -> Array:
        # A step that shortens groups of entries leaves them in the cone.
        return (
            self.prox(domain.project(center), 1.0 / weight) if self.shrinks else super().prox_on(domain, center, weight)
        )

    def can_minimise(self, domain: Domain) -> bool:
        return not self.separable and (isinstance(domain, FullSpace) or (self.shrinks and is_orthant(domain)))

    def closed_minimum(self, c: Array, domain: Domain) -> TiltedMinimum | None:
        """0 where -c is in the dual set for certain; where x >= 0, only what falls counts."""
        if not self.can_minimise(domain):
            return None
        pull = -c if isinstance(domain, FullSpace) else np.maximum(-c, 0.0)
        inside = self.gauge(pull) * (1.0 + 8.0 * (inner_error(c.size) + FEW)) <= 1.0
        return TiltedMinimum(zeros(c.shape, c), 0.0 if inside else -math.inf, 0.0, "dual set")


def is_orthant(domain: Domain) -> bool:
    """Whether a set is x >= 0."""
    return isinstance(domain, Box) and domain.uniform == (0.0, math.inf)


@final
class L1(Norm):
    """sum_i w_i |x_i|; of complex numbers the moduli.

    Parameters
    ----------
    weights : float or array, optional
        w >= 0.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> ss.functions.L1().prox(np.array([3.0, -0.5]), 1.0)
    array([ 2., -0.])
    """

    separable = has_entry_steps = True

    def __init__(self, weights: Any = 1.0) -> None:
        self.weights = as_real(weights, "L1: weights")
        if (self.weights < 0.0).any():
            raise InputError(f"L1: weights has a negative entry {self.weights.min():g}; expected weights >= 0.")
        self.shape = self.weights.shape or None

    def __repr__(self) -> str:
        return (
            "L1()" if self.shape is None and self.weights == 1.0 else f"L1(weights={self.shape or float(self.weights)})"
        )

    def of_pairs(self) -> Function:
        made = on_pairs(L21(axis=-1, weights=self.weights))
        made.shape = None if self.shape is None else (*self.shape, 2)
        return made

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        out = np.sign(x, out=out)
        out *= self.weights
        return inner_product(out, x), out

    def separable_form(self) -> SeparableForm:
        weight: Array | float = self.weights if self.weights.ndim else float(self.weights)
        return SeparableForm(powers=((weight, 0.0),))

    def growth(self, domain: Domain) -> float:
        return float(np.min(self.weights))

    def smoothness(self, domain: Domain) -> Holder:
        size = math.sqrt(domain.size) * float(self.weights) if self.weights.ndim == 0 else np.linalg.norm(self.weights)
        return Holder(0.0, 2.0 * float(size))

    def gauge(self, y: Array) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.max(np.where(y == 0.0, 0.0, np.abs(y) / self.weights), initial=0.0))

    def dual_set(self, shape: Shape, factor: float) -> Domain:
        return Box(-factor * self.weights, factor * self.weights, shape=shape)

    @cached_property
    def error_model(self) -> Rounding:
        return Rounding(entrywise=FEW * float(np.max(self.weights, initial=0.0)))


@final
class L2(Norm):
    """The Euclidean norm |x|.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> ss.functions.L2().prox(np.array([3.0, 4.0]), 1.0)
    array([2.4, 3.2])
    """

    shrinks = True

    def __repr__(self) -> str:
        return "L2()"

    def of_pairs(self) -> Function:
        return on_pairs(L2())

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        size = length_of(x)
        return size, np.divide(x, size or 1.0, out=out)

    def growth(self, domain: Domain) -> float:
        return 1.0

    def smoothness(self, domain: Domain) -> Holder:
        return Holder(0.0, 2.0)

    def prox(self, center: Array, step: Array | float) -> Array:
        size = length_of(center)
        shrunk: Array = center * (max(size - float(step), 0.0) / size if size > 0.0 else 0.0)
        return shrunk

    def gauge(self, y: Array) -> float:
        return length_of(y)

    def dual_set(self, shape: Shape, factor: float) -> Domain:
        return Ball(factor, shape=shape)


@final
class L21(Norm):
    """The sum over groups of w_g |x_g|, the Euclidean norms of the groups: isotropic and colour total variation.

    Parameters
    ----------
    axis : int or tuple of int
        Axis, or axes, along which a group lies: with `axis=0`, y of shape (2, 512, 512) has two numbers in each group.
    weights : float or array, optional
        w >= 0, one number or one for each group: an array over the axes that are left.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> h = ss.functions.L21(axis=0)
    >>> x = np.array([[3.0, 0.3], [4.0, 0.4]])
    >>> h.value(x), h.prox(x, 1.0)
    (5.5, array([[2.4, 0. ],
           [3.2, 0. ]]))
    """

    shrinks = True

    def __init__(self, axis: Any = 0, weights: Any = 1.0) -> None:
        self.axis, given = as_axes(axis, "L21"), as_real(weights, "L21: weights")
        if (given < 0.0).any():
            raise InputError(f"L21: weights has a negative entry {given.min():g}; expected weights >= 0.")
        self.weights: Array | float = given if given.ndim else float(given)

    def __repr__(self) -> str:
        axis = self.axis[0] if len(self.axis) == 1 else self.axis
        weights = "array" if np.ndim(self.weights) else self.weights
        return f"L21(axis={axis})" if weights == 1.0 else f"L21(axis={axis}, weights={weights})"

    def of_pairs(self) -> Function:
        return self if self.is_complex else on_pairs(L21(pair_axes(self.axis), self.weights))

    def value(self, x: Array) -> float:
        norms = group_norms(x, self.axis, "L21")
        return float(np.sum(spread(self.weights, norms, "L21") * norms))

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        norms = group_norms(x, self.axis, "L21")
        weights = spread(self.weights, norms, "L21")
        value = float(np.sum(weights * norms))
        return value, np.multiply(x, weights / np.where(norms > 0.0, norms, 1.0), out=out)

    def growth(self, domain: Domain) -> float:
        return float(np.min(self.weights))

    def smoothness(self, domain: Domain) -> Holder:
        if isinstance(self.weights, np.ndarray):
            return Holder(0.0, 2.0 * length_of(self.weights))
        length = math.prod(domain.shape[k] for k in axes_in(self.axis, domain.shape, "L21"))
        return Holder(0.0, 2.0 * self.weights * math.sqrt(domain.size / max(length, 1)))

    def prox(self, center: Array, step: Array | float) -> Array:
        norms = group_norms(center, self.axis, "L21")
        return shorten_groups(center, norms, step * spread(self.weights, norms, "L21"))

    def gauge(self, y: Array) -> float:
        norms = group_norms(y, self.axis, "L21")
        with np.errstate(divide="ignore", invalid="ignore"):
            sizes = np.where(norms == 0.0, 0.0, np.divide(norms, spread(self.weights, norms, "L21")))
        return float(np.max(sizes, initial=0.0))

    def dual_set(self, shape: Shape, factor: float) -> Domain:
        return GroupBalls(factor * self.weights, axis=self.axis, shape=shape)

    @cached_property
    def error_model(self) -> Rounding:
        # Long groups are summed in lanes.
        return Rounding(entrywise=8.0 * FEW * float(np.max(self.weights, initial=0.0)))


@final
class LInf(Norm):
    """The largest absolute value max_i |x_i|.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> ss.functions.LInf().prox(np.array([3.0, -2.5, 1.0]), 1.5)
    array([ 2., -2.,  1.])
    """

    def __repr__(self) -> str:
        return "LInf()"

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        return float(np.max(np.abs(x), initial=0.0)), _copy(L1Ball(1.0, x.shape).maximizer(x), out)

    def growth(self, domain: Domain) -> float:
        return 1.0 / math.sqrt(domain.size)

    def smoothness(self, domain: Domain) -> Holder:
        return Holder(0.0, 2.0)

    def prox(self, center: Array, step: Array | float) -> Array:
        moved: Array = center - L1Ball(float(step), center.shape).project(center)
        return moved

    def gauge(self, y: Array) -> float:
        return float(np.sum(np.abs(y)))

    def dual_set(self, shape: Shape, factor: float) -> Domain:
        return L1Ball(factor, shape)


@final
class Max(Norm):
    """The largest entry max_i x_i.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> ss.functions.Max().prox(np.array([3.0, 2.0, -4.0]), 2.0)
    array([ 1.5,  1.5, -4. ])
    """

    def __repr__(self) -> str:
        return "Max()"

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        return float(np.max(x)), _copy(Simplex(x.shape).maximizer(x), out)

    def growth(self, domain: Domain) -> float:
        is_nonnegative = isinstance(domain, Box) and bool(np.all(domain.lower >= 0.0))
        return 1.0 / math.sqrt(domain.size) if is_nonnegative else -1.0

    @property
    def error_model(self) -> Rounding:
        # At least -|x|, and exact.
        return Rounding(floor=(0.0, 1.0, 0.0))

    def smoothness(self, domain: Domain) -> Holder:
        return Holder(0.0, math.sqrt(2.0))

    def prox(self, center: Array, step: Array | float) -> Array:
        moved: Array = center - Simplex(center.shape, scale=float(step)).project(center)
        return moved

    def gauge(self, y: Array) -> float:
        """1 on the simplex, up to rounding of its sum, infinite elsewhere: no multiple of it holds 0."""
        off = abs(float(np.sum(y)) - 1.0)
        return 1.0 if off <= inner_error(y.size) + FEW and float(np.min(y)) >= 0.0 else math.inf

    def dual_set(self, shape: Shape, factor: float) -> Domain:
        simplex: Domain = Simplex(shape, scale=factor)
        return simplex


@final
class Nuclear(Norm):
    """The sum of the singular values of a matrix.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> ss.functions.Nuclear().prox(np.diag([3.0, 0.5]), 1.0).round(12)
    array([[2., 0.],
           [0., 0.]])
    """

    def __repr__(self) -> str:
        return "Nuclear()"

    def value(self, x: Array) -> float:
        return float(np.sum(np.linalg.svd(x, compute_uv=False)))

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        left, values, right = np.linalg.svd(x, full_matrices=False)
        return float(np.sum(values)), np.matmul(left, right, out=out)

    def growth(self, domain: Domain) -> float:
        return 1.0

    @property
    def error_model(self) -> Rounding:
        # Each singular value is off by some units of rounding of the largest; so are the singular vectors' products.
        return Rounding(floor=(0.0, 0.0, 4.0), entrywise=32.0 * FEW)

    def smoothness(self, domain: Domain) -> Holder:
        return Holder(0.0, 2.0 * math.sqrt(min(domain.shape)))

    def prox(self, center: Array, step: Array | float) -> Array:
        left, values, right = np.linalg.svd(center, full_matrices=False)
        moved: Array = (left * np.maximum(values - float(step), 0.0)) @ right
        return moved

    def gauge(self, y: Array) -> float:
        return float(np.max(np.linalg.svd(y, compute_uv=False), initial=0.0))

    def dual_set(self, shape: Shape, factor: float) -> Domain:
        return SpectralBall(factor, shape)


@final
class PNorm(Norm):
    """(sum_i |x_i|^p)^(1/p) for 1 < p < infinity. Its dual set is the ball of the norm with 1/p + 1/q = 1.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> h = ss.functions.PNorm(3.0)
    >>> round(h.value(np.array([3.0, 4.0, 5.0])), 9), h.prox(np.array([0.3, -0.4]), 1.0)
    (6.0, array([ 0., -0.]))
    """

    def __init__(self, p: float) -> None:
        self.p = as_number(p, "PNorm: p", 1.0, finite=False)
        if not 1.0 < self.p < math.inf:
            raise InputError(f"PNorm: p is {p!r}; expected 1 < p < infinity. Use L1() for p = 1, LInf() for infinity.")
        self.q = self.p / (self.p - 1.0)

    def __repr__(self) -> str:
        return f"PNorm({self.p:g})"

    def value(self, x: Array) -> float:
        return _power_norm(x, self.p)

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        value = _power_norm(x, self.p)
        sizes = (np.abs(x) / (value or 1.0)) ** (self.p - 1.0)
        return value, np.multiply(np.sign(x), sizes, out=out)

    def growth(self, domain: Domain) -> float:
        return math.pow(domain.size, min(1.0 / self.p - 0.5, 0.0))

    @property
    def error_model(self) -> Rounding:
        return Rounding(entrywise=8.0 * self.p * FEW)

    def steepest(self, entries: int) -> float:
        """The largest Euclidean norm of a subgradient: one of the norm q is at most 1."""
        return math.pow(max(entries, 1), max(0.5 - 1.0 / self.q, 0.0))

    def smoothness(self, domain: Domain) -> Holder:
        return Holder(0.0, 2.0 * self.steepest(domain.size))

    def prox(self, center: Array, step: Array | float) -> Array:
        N, u = self.balance(center, float(step))
        found: Array = np.copysign(N * u, center)
        return found

    def balance(self, center: Array, step: float) -> tuple[float, Array]:
        """N >= 0 and u >= 0 of norm 1 with N u + step u^(p-1) = |center|: the step is N u; 0 and 0 where that is 0."""
        sizes, power = np.abs(center), self.p - 1.0
        largest = _power_norm(center, self.p)
        if _power_norm(center, self.q) <= step:
            return 0.0, 0.0 * sizes
        if not _TINY < largest < 1.0 / _TINY and math.isfinite(largest):
            # Products with numbers far out would leave the range of numbers.
            scale = 2.0 ** math.frexp(largest)[1]
            N, u = self.balance(center / scale, step / scale)
            return N * scale, u

        def unit(N: float) -> Array:
            if N == 0.0:
                return (sizes / step) ** (1.0 / power)
            if power <= 1.0:
                return balance_size(SeparableForm(powers=((step, power),)), sizes, N)
            taken = balance_size(SeparableForm(powers=((N, 1.0 / power),)), sizes, step)
            # Small entries lose too little for their powers to tell.
            return np.where(step * taken < 0.5 * sizes, (sizes - step * taken) / N, taken ** (1.0 / power))

        # The norm of step u^(p-1) is at most this; beside rounding, N is between.
        rest = step * math.pow(sizes.size, max(1.0 / self.p - 1.0 / self.q, 0.0))
        low, high = max(0.0, largest - rest) * (1.0 - 1e-12), largest * (1.0 + 1e-12)
        if not _power_norm(unit(low), self.p) > 1.0:
            return low, unit(low)
        N, _ = scipy.optimize.brentq(
            lambda N: _power_norm(unit(N), self.p) - 1.0, low, high, xtol=1e-300, rtol=4.0 * EPS, maxiter=500,
            full_output=True, disp=False,
        )  # fmt: skip
        return N, unit(N)

    def gauge(self, y: Array) -> float:
        return _power_norm(y, self.q)

    def dual_set(self, shape: Shape, factor: float) -> Domain:
        return DualBall(self, factor, shape)


def _power_norm(x: Array, p: float) -> float:
    """(sum |x|^p)^(1/p), also where powers overflow."""
    largest = float(np.max(np.abs(x), initial=0.0))
    return largest * math.pow(float(np.sum((np.abs(x) / largest) ** p)), 1.0 / p) if largest > 0.0 else 0.0


def _copy(gradient: Array, out: Array | None) -> Array:
    if out is None:
        return gradient
    np.copyto(out, gradient)
    return out


@final
class DualBall(Domain):
    """The points y with a gauge of at most `radius` of the norm: where the conjugate of radius times the norm is 0."""

    def __init__(self, norm: PNorm, radius: float, shape: Shape) -> None:
        self.gauged, self.ball_radius, self.shape = norm, radius, shape

    def __repr__(self) -> str:
        return f"DualBall({self.gauged!r}, {self.ball_radius}, shape={self.shape})"

    def project(self, point: Array, out: Array | None = None) -> Array:
        if self.gauged.gauge(point) <= self.ball_radius:
            return _copy(point.copy(), out)
        if self.ball_radius == 0.0:
            return _copy(0.0 * point, out)
        # What a proximal step takes away; the difference to the step would lose the digits of far points.
        _, u = self.gauged.balance(point, self.ball_radius)
        found: Array = np.copysign(self.ball_radius * u ** (self.gauged.p - 1.0), point)
        found *= self.ball_radius / max(self.gauged.gauge(found), self.ball_radius)
        return _copy(found, out)

    def maximizer(self, direction: Array) -> Array:
        found: Array = self.ball_radius * self.gauged.gradient(direction)
        return found

    @property
    def _farthest(self) -> float:
        return self.ball_radius * self.gauged.steepest(self.size)

    def squared_radius(self, point: Array) -> float:
        return (self._farthest + length_of(point)) ** 2

    def diameter(self) -> float:
        return 2.0 * self._farthest

    def magnitude(self) -> float:
        return self.ball_radius

    def violation(self, point: Array) -> float:
        return max(self.gauged.gauge(point) - self.ball_radius, 0.0)
