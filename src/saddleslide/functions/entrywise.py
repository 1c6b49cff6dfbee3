"""Functions that are sums over entries: zero, linear, powers with tilt and diagonal quadratic, Huber."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, final

import numpy as np

from saddleslide import functions
from saddleslide.arrays.base import (
    Array,
    Shape,
    as_number,
    as_pairs,
    as_real,
    as_shape,
    frozen,
    inner_product,
    length_of,
    to_complex,
)
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import Box
from saddleslide.domains.norms import GroupBalls
from saddleslide.errors import InputError
from saddleslide.functions.base import Function, on_pairs
from saddleslide.functions.groups import as_axes, group_norms, pair_axes
from saddleslide.functions.roundings import EPS, EXACTLY, FEW, NO_ROUNDING, Errors, Rounding, inner_error, round_linear
from saddleslide.functions.separable import SeparableForm
from saddleslide.operators.base import COMPLEX, Operator, is_own_code
from saddleslide.theory.holder import Holder


class Flat(Function):
    """A function with a constant gradient."""

    separable = quadratic = linear = True

    def smoothness(self, domain: Domain) -> Holder:
        return Holder(1.0, 0.0)

    def strong_convexity(self, domain: Domain) -> float:
        return 0.0

    def hessian_product(self, v: Array) -> Array:
        return np.zeros_like(v)

    def recession(self, direction: Array) -> tuple[Array, float, float]:
        terms = self.gradient(direction) * direction
        return direction, float(np.sum(terms)), float(np.sum(np.abs(terms)))


@final
class Zero(Flat):
    """The zero function, of any shape.

    Examples
    --------
    >>> import numpy as np
    >>> Zero().value_and_gradient(np.ones(2))
    (0.0, array([0., 0.]))
    """

    def __repr__(self) -> str:
        return "Zero()"

    def of_pairs(self) -> Function:
        return self

    @property
    def lone_value_cost(self) -> float:
        return 0.0

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        out = np.empty_like(x) if out is None else out
        out.fill(0.0)
        return 0.0, out

    @property
    def error_model(self) -> Rounding:
        return NO_ROUNDING

    def entrywise_errors(self, x: Array) -> Errors:
        return Errors(0.0, 0.0)

    def separable_form(self) -> SeparableForm:
        return SeparableForm()


@final
class Linear(Flat):
    """<c, x>; a number c stands for the constant array. Of complex numbers Re <c, x>.

    Examples
    --------
    >>> import numpy as np
    >>> Linear([1.0, 2.0]).value(np.array([3.0, 4.0]))
    11.0
    """

    def __init__(self, c: Any) -> None:
        self.c, self.is_complex = as_pairs(c, "Linear: c")
        self.shape = self.c.shape or None

    def __repr__(self) -> str:
        return f"Linear({self.c.shape})"

    def of_pairs(self) -> Function:
        return Linear(self.c.astype(np.complex128)) if self.c.ndim and not self.is_complex else super().of_pairs()

    def after(self, K: Any) -> Function:
        """<c, K x> = <K^T c, x>: no gradient is called. A product with the caller's code is left to the run."""
        if not isinstance(K, Operator) or is_own_code(K):
            return super().after(K)
        slope = K.adjoint(np.broadcast_to(self.c, K.y_shape).copy())
        return Linear(to_complex(slope) if K.x_dtype == COMPLEX else slope)

    def value(self, x: Array) -> float:
        # Points that run away have an infinite value, whatever the caller's settings of NumPy say of that.
        with np.errstate(over="ignore"):
            return float(np.sum(self.c * x))

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        out = np.empty_like(x) if out is None else out
        np.copyto(out, self.c)
        return Linear.value(self, x), out

    @cached_property
    def error_model(self) -> Rounding:
        return round_linear(self.c)

    def growth(self, domain: Domain) -> float:
        # Squares of large numbers would overflow.
        largest = float(np.max(np.abs(self.c), initial=0.0))
        if not 0.0 < largest < math.inf:
            return -largest
        entries = math.sqrt(domain.size) if self.c.ndim == 0 else 1.0
        return -largest * length_of(self.c / largest) * entries

    def separable_form(self) -> SeparableForm:
        return SeparableForm(linear=self.c)


def as_weights(weights: Any, shape: Shape, is_complex: bool = False) -> Array:
    """Weights of the entries of b, checked: numbers >= 0 of its shape, or one for all; twice for pairs."""
    if is_complex and np.ndim(weights):
        weights = np.repeat(as_weights(weights, shape[:-1]), 2)
    found = as_real(weights, "LeastSquares: weights")
    if found.ndim and found.size != math.prod(shape):
        raise InputError(f"LeastSquares: weights have shape {found.shape}; expected {shape}, one for every entry of b.")
    if (found < 0).any():
        raise InputError(f"LeastSquares: weights has a negative entry {found.min():g}; expected weights >= 0.")
    return frozen(np.array(np.broadcast_to(found, shape)) if found.ndim == 0 else found.reshape(shape))


@final
class SquaredDistance(Function):
    """1/2 sum w_i (x_i - b_i)^2 + ridge/2 |x|^2; written `LeastSquares(None, b)`."""

    separable = quadratic = True

    def __init__(self, b: Any, ridge: float = 0.0, x_shape: Shape | None = None, weights: Any = None) -> None:
        b, self.is_complex = as_pairs(b, "LeastSquares: b")
        pair = (2,) * self.is_complex
        self.shape = b.shape if x_shape is None else as_shape(x_shape, "LeastSquares: x_shape") + pair
        if math.prod(self.shape) != b.size:
            raise InputError(
                f"LeastSquares: x_shape is {x_shape}, but b has shape {b.shape}; expected as many entries."
            )
        self.b, self.ridge = b.reshape(self.shape), as_number(ridge, "LeastSquares: ridge", 0.0)
        found = None if weights is None else as_weights(weights, b.shape, self.is_complex)
        self.weights: Array | float = 1.0 if found is None else found.reshape(self.shape)
        self._range = float(np.min(self.weights, initial=math.inf)), float(np.max(self.weights, initial=0.0))

    def __repr__(self) -> str:
        return f"LeastSquares(None, {self.shape}, ridge={self.ridge:g})"

    def of_pairs(self) -> Function:
        weights = self.weights if np.ndim(self.weights) else None
        return self if self.is_complex else SquaredDistance(self.b.astype(np.complex128), self.ridge, weights=weights)

    def gradient(self, x: Array, out: Array | None = None) -> Array:
        gradient: Array = np.subtract(x, self.b, out=out)
        gradient *= self.weights
        if self.ridge > 0.0:
            gradient += self.ridge * x
        return gradient

    def value(self, x: Array) -> float:
        residual = x - self.b
        weighed = residual if self._range == (1.0, 1.0) else self.weights * residual
        value = 0.5 * inner_product(residual, weighed)
        return value + 0.5 * self.ridge * inner_product(x, x) if self.ridge > 0.0 else value

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        return self.value(x), self.gradient(x, out)

    def hessian_product(self, v: Array) -> Array:
        product: Array = np.multiply(self.weights + self.ridge, v)
        return product

    def separable_form(self) -> SeparableForm:
        # But for the constant: forms say where minima are, and never how large.
        return SeparableForm(self.weights + self.ridge, -(self.weights * self.b))

    def after(self, K: Any) -> Function:
        if self.ridge > 0.0:
            return super().after(K)
        return functions.LeastSquares(K, self.b, weights=None if np.ndim(self.weights) == 0 else self.weights)

    def value_and_magnitude(self, x: Array) -> tuple[float, float]:
        # No term is negative. The products in the form are rounded, so that its minimiser is beside the true one.
        value = self.value(x)
        return value, value + 4.0 * EPS * float(np.sum(self.weights * (self.b * self.b + x * x) + self.ridge * x * x))

    def entrywise_errors(self, x: Array) -> Errors | None:
        return Errors((inner_error(x.size) + FEW) * self.value(x), math.inf)

    @cached_property
    def error_model(self) -> Rounding:
        heaviest, data = self._range[1], length_of(self.b)
        steep = FEW * math.sqrt(2.0) * (math.sqrt(heaviest) + math.sqrt(self.ridge))
        return Rounding(
            gradient=((0.0, steep, 0.0), *EXACTLY[1:]), most=(heaviest * data**2, 0.0, heaviest + 0.5 * self.ridge)
        )

    def smoothness(self, domain: Domain) -> Holder:
        return Holder(1.0, self._range[1] + self.ridge)

    def strong_convexity(self, domain: Domain) -> float:
        return self._range[0] + self.ridge if math.isfinite(self._range[0]) else self.ridge


@final
class Power(Function):
    """1/2 sum q_i x_i^2 + sum w_i |x_i|^(1+nu) / (1+nu) - <tilt, x>.

    Parameters
    ----------
    nu : float
        Exponent in [0, 1]. At nu = 0 the subgradient of |x_i| at 0 is 0.
    weight : float or array, optional
        w >= 0.
    tilt, quadratic : array or float, optional
        Linear and diagonal quadratic parts (quadratic >= 0).

    Examples
    --------
    >>> import numpy as np
    >>> Power(nu=0.5, tilt=[1.0, 0.0]).gradient(np.array([4.0, -4.0]))
    array([ 1., -2.])
    """

    separable = True

    def __init__(self, nu: float, weight: Any = 1.0, tilt: Any = None, quadratic: Any = None) -> None:
        self.nu = as_number(nu, "Power: nu", 0.0)
        if self.nu > 1.0:
            raise InputError(f"Power: nu is {nu!r}; expected a number in [0, 1].")
        self.weight = as_real(weight, "Power: weight")
        self.tilt = None if tilt is None else as_real(tilt, "Power: tilt")
        self.curvature = None if quadratic is None else as_real(quadratic, "Power: quadratic")
        for name, part in (("weight", self.weight), ("quadratic", self.curvature)):
            if part is not None and (part < 0).any():
                raise InputError(f"Power: {name} has a negative entry {part.min():g}; expected {name} >= 0.")
        shapes = {part.shape for part in (self.weight, self.tilt, self.curvature) if part is not None and part.ndim}
        if len(shapes) > 1:
            raise InputError(f"Power: weight, tilt and quadratic have shapes {sorted(shapes)}; expected equal shapes.")
        self.shape = shapes.pop() if shapes else None
        self._heaviest = float(np.max(self.weight, initial=0.0))
        self._steepest = 0.0 if self.curvature is None else float(np.max(self.curvature, initial=0.0))

    def __repr__(self) -> str:
        return f"Power(nu={self.nu}, {'any shape' if self.shape is None else self.shape})"

    def gradient(self, x: Array, out: Array | None = None) -> Array:
        out = self._power_gradient(x, out)
        if self.curvature is not None:
            out += self.curvature * x
        if self.tilt is not None:
            out -= self.tilt
        return out

    def _power_gradient(self, x: Array, out: Array | None) -> Array:
        out = np.empty_like(x) if out is None else out
        if self.nu == 1.0:
            return np.multiply(self.weight, x, out=out)
        if self.nu == 0.0:
            np.sign(x, out=out)
            out *= self.weight
            return out
        np.abs(x, out=out)
        # A root takes half as long as a power, and is exact to the last bit.
        _ = np.sqrt(out, out=out) if self.nu == 0.5 else np.power(out, self.nu, out=out)
        out *= self.weight
        return np.copysign(out, x, out=out)

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        """Both from one power: x times the gradient of |x|^(1+nu)/(1+nu) is |x|^(1+nu)."""
        out = self._power_gradient(x, out)
        value = inner_product(x, out) / (1.0 + self.nu)
        if self.curvature is not None:
            bent = self.curvature * x
            value += 0.5 * inner_product(x, bent)
            out += bent
        if self.tilt is not None:
            value -= float(np.sum(self.tilt * x))
            out -= self.tilt
        return value, out

    @cached_property
    def error_model(self) -> Rounding:
        """Powers and squares are >= 0, so that the value without its tilt is their size."""
        # Entries of a power's gradient are at most w (1 + |x_i|).
        heaviest, steep = FEW * self._heaviest, FEW * math.sqrt(2.0 * self._steepest)
        bent = Rounding(gradient=((0.0, steep, 0.0), (heaviest, 0.0, 0.0), EXACTLY[2]), entrywise=heaviest)
        return bent if self.tilt is None else bent.plus(round_linear(self.tilt))

    def separable_form(self) -> SeparableForm:
        weight: Array | float = self.weight if self.weight.ndim else float(self.weight)
        curvature: Array | float = 0.0 if self.curvature is None else self.curvature
        linear: Array | float = 0.0 if self.tilt is None else -self.tilt
        if self.nu == 1.0:
            return SeparableForm(curvature + weight, linear)
        return SeparableForm(curvature, linear, powers=((weight, self.nu),))

    def smoothness(self, domain: Domain) -> Holder:
        """Two parts: scalar constant 2^(1-nu) summed over entries, and the quadratic on a set of this diameter."""
        spread = self._heaviest
        if self.weight.ndim == 0:
            spread = float(self.weight) * domain.size ** ((1.0 - self.nu) / 2.0)
        elif self.nu < 1.0:
            # Hölder's inequality over entries; the constant weight above is its equality case.
            largest = self._heaviest or 1.0
            powers = (self.weight / largest) ** (2.0 / (1.0 - self.nu))
            spread = largest * float(np.sum(powers)) ** ((1.0 - self.nu) / 2.0)
        power = Holder(self.nu, 2.0 ** (1.0 - self.nu) * spread)
        return power.plus(Holder(1.0, self._steepest), domain.diameter())

    def strong_convexity(self, domain: Domain) -> float:
        """Second derivative of the power at the largest entry of the domain, plus the quadratic part."""
        magnitude, power = domain.magnitude(), float(self.nu == 1.0)
        if 0.0 < self.nu < 1.0 and 0.0 < magnitude < math.inf:
            power = self.nu * magnitude ** (self.nu - 1.0)
        smallest = 0.0 if self.curvature is None else self.curvature
        return float(np.min(smallest + power * self.weight, initial=math.inf)) if domain.size else 0.0


@final
class Huber(Function):
    """sum_i h(x_i) with h(t) = t^2 / (2 delta) for |t| <= delta and |t| - delta/2 beyond; with `axis` of norms.

    Parameters
    ----------
    delta : float
        Where the parabola ends.
    axis : int or tuple of int, optional
        Axis, or axes, along which a group lies: then the sum is that of h(|x_g|) over groups.

    Examples
    --------
    >>> import numpy as np
    >>> Huber(0.5).value_and_gradient(np.array([0.25, -2.0]))
    (1.8125, array([ 0.5, -1. ]))
    >>> Huber(1.0, axis=0).value(np.array([[3.0, 0.6], [4.0, 0.8]]))
    5.0
    """

    def __init__(self, delta: float, axis: Any = None) -> None:
        self.delta = as_number(delta, "Huber: delta")
        if self.delta <= 0.0:
            raise InputError(f"Huber: delta is {delta!r}; expected a number > 0. For |x| use Power(nu=0.0).")
        self.axis = None if axis is None else as_axes(axis, "Huber")
        self.separable, self.shrinks = axis is None, axis is not None

    def __repr__(self) -> str:
        if self.axis is None:
            return f"Huber({self.delta:g})"
        return f"Huber({self.delta:g}, axis={self.axis[0] if len(self.axis) == 1 else self.axis})"

    def of_pairs(self) -> Function:
        return self if self.is_complex else on_pairs(Huber(self.delta, pair_axes(self.axis or ())))

    def _sizes(self, x: Array) -> Array:
        return np.abs(x) if self.axis is None else group_norms(x, self.axis, "Huber")

    def gradient(self, x: Array, out: Array | None = None) -> Array:
        if self.axis is not None:
            return np.divide(x, np.maximum(self._sizes(x), self.delta), out=out)
        out = np.divide(x, self.delta, out=out)
        return np.clip(out, -1.0, 1.0, out=out)

    def value(self, x: Array) -> float:
        size = self._sizes(x)
        inside = np.minimum(size, self.delta)
        return float(np.sum(inside * inside / (2.0 * self.delta) + (size - inside)))

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        return self.value(x), self.gradient(x, out)

    @property
    def error_model(self) -> Rounding:
        # Long groups are summed in lanes.
        return Rounding(most=(0.0, 0.0, 0.5 / self.delta), entrywise=FEW if self.axis is None else 8.0 * FEW)

    def separable_form(self) -> SeparableForm | None:
        return SeparableForm(hubers=((1.0, self.delta),)) if self.axis is None else None

    def smoothness(self, domain: Domain) -> Holder:
        return Holder(1.0, 1.0 / self.delta)

    def strong_convexity(self, domain: Domain) -> float:
        # Of a group no entry, and no ball around 0, may leave the parabola.
        largest = domain.magnitude() if self.axis is None else domain.radius_at_zero
        return 1.0 / self.delta if largest <= self.delta else 0.0

    def prox(self, center: Array, step: Array | float) -> Array:
        if self.axis is None:
            return super().prox(center, step)
        sizes = self._sizes(center)
        # No difference from 1: a long step would leave nothing but its rounding.
        moved: Array = center * (np.maximum(sizes - step, self.delta) / np.maximum(sizes, step + self.delta))
        return moved

    def conjugate_value(self, y: Array) -> float:
        # A point on the boundary of the set may have been rounded.
        inside = float(np.max(self._sizes(y), initial=0.0)) <= 1.0 + 8.0 * FEW
        return 0.5 * self.delta * inner_product(y, y) if inside else math.inf

    def dual(self, shape: Shape, factor: float = 1.0) -> tuple[Function, Domain]:
        if factor == 0.0:
            return Zero(), Box(0.0, 0.0, shape=shape)
        Y = Box(-factor, factor, shape=shape) if self.axis is None else GroupBalls(factor, self.axis, shape)
        return Power(1.0, weight=self.delta / factor), Y
