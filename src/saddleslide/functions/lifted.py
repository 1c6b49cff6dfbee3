"""A function through its lift q: what one product gives, so that extrapolations cost nothing.

For f(x) = loss(Ax) + ridge/2 |x|^2 the lift is q = Ax: half a gradient; the other half is A^T. So it is for sums and
multiples of such functions. For any other quadratic it is the gradient itself. In all cases the lift of an affine
combination is the same combination of lifts.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, final

import numpy as np

from saddleslide.arrays.base import Array, Shape, frozen, inner_product, length_of, zeros
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.functions.constants import smoothness_at_hand
from saddleslide.functions.roundings import FEW, Errors, inner_error
from saddleslide.functions.trust import errors_at, is_own_class, read_rounding, runs_own_code, takes_factor, terms_of
from saddleslide.operators.adjoint_test import sign_vector

if TYPE_CHECKING:
    from saddleslide.domains.base import Domain
    from saddleslide.functions.linear_model import LinearModel

# Steps of the power method for a first curvature.
_POWER_STEPS = 3
# The last points of a function with their values, under the name of the function.
Known = dict[str, list[tuple[Array, float]]]


class Lifted(ABC):
    """Value, gradient and Bregman distance of a function f from lifts. Costs are in gradients."""

    f: Function
    lift_cost: float
    gradient_cost: float
    bregman_cost: float = 0.0
    affine_gradient: bool = False
    has_hessian: bool = True
    # Whether the lift of 0 is 0, hence known without a product.
    linear: bool = False
    # Whether values run code of the caller's: then `run_cost` counts them.
    own_code: bool = False
    # Whether a step of a method takes a lift and its gradient at once, though it needs the lift alone when repeated.
    one_pass: bool = False

    @abstractmethod
    def lift(self, x: Array) -> Array:
        """The lift of x."""

    def blank(self, x: Array) -> Array:
        """Zeros in the shape of a lift."""
        return zeros(x.shape, x)

    @abstractmethod
    def gradient(self, x: Array, q: Array) -> Array:
        """f'(x), given the lift of x."""

    def lift_and_gradient(self, x: Array) -> tuple[Array, Array]:
        """The lift of x, and f'(x)."""
        q = self.lift(x)
        return q, self.gradient(x, q)

    @abstractmethod
    def value(self, x: Array, q: Array) -> float:
        """f(x), given the lift of x."""

    def errors(self, x: Array, q: Array, value: float, slope: float, term_size: float) -> Errors:
        """Bounds on the errors of f(x), computed as `value`, and of a gradient of size `slope`.

        A combination of lifts carries the rounding of them all: `term_size` is the same combination of the sizes of
        their points, all signs taken as +.
        """
        # Of a point with a lift of its own, the entries may say more than its size.
        fresh = term_size <= length_of(x)
        return (
            errors_at(self.f, x, value, slope) if fresh else read_rounding(self.f).at(term_size, value, slope, x.size)
        )

    @abstractmethod
    def bregman(self, x: Array, q: Array, v: Array, qv: Array, gradient: Array) -> float:
        """f(x) - f(v) - <f'(v), x - v>, given both lifts and f'(v)."""

    def run_cost(self, *points: Array) -> float:
        """Runs of the caller's own code that values at these points take."""
        return 0.0

    def hessian(self, q: Array) -> Callable[[Array], Array]:
        """Product with the Hessian at the point with this lift (one gradient each); only if `has_hessian`."""
        raise InputError(f"{type(self).__name__}: offers no products with a Hessian.")

    def hessian_stack(self, q: Array) -> Callable[[Array], Array]:
        """The same for every vector of a stack."""
        product = self.hessian(q)
        return lambda stack: np.stack([product(v) for v in stack])


@final
class QuadraticLift(Lifted):
    """q = f'(x): a whole gradient, after which all else is free."""

    lift_cost, gradient_cost, affine_gradient = 1.0, 0.0, True

    def __init__(self, f: Function, origin: Array, known: tuple[float, Array] | None = None) -> None:
        self.f = f
        self.constant, slope = f.value_and_gradient(origin) if known is None else known
        self.slope = frozen(slope)

    def lift(self, x: Array) -> Array:
        return self.f.gradient(x)

    def gradient(self, x: Array, q: Array) -> Array:
        return q

    def value(self, x: Array, q: Array) -> float:
        return self.constant + 0.5 * inner_product(x, q + self.slope)

    def errors(self, x: Array, q: Array, value: float, slope: float, term_size: float) -> Errors:
        """Values come from gradients here, and so does their error."""
        rounding, size = read_rounding(self.f), length_of(x)
        tilt = length_of(self.slope)
        origin = rounding.at(0.0, self.constant, tilt, x.size)
        terms = 0.5 * size * (length_of(q) + tilt) + abs(self.constant) + abs(value)
        summed = (inner_error(x.size) + FEW) * terms
        error = 0.0
        for _ in range(2):
            # The value says how large the terms are, up to its own error.
            known = value + error
            found = (
                errors_at(self.f, x, known, slope)
                if term_size <= size
                else rounding.at(term_size, known, slope, x.size)
            )
            error = origin.value + 0.5 * size * (found.gradient + origin.gradient) + summed
        if term_size <= size and not np.any(self.slope) and self.constant == 0.0:
            # 1/2 <x, f'(x)> is what a quadratic without further terms computes itself.
            error = min(error, found.value)
        return Errors(error, found.gradient)

    def bregman(self, x: Array, q: Array, v: Array, qv: Array, gradient: Array) -> float:
        return 0.5 * inner_product(x - v, q - qv)

    def hessian(self, q: Array) -> Callable[[Array], Array]:
        return self.f.hessian_product


@final
class PlainLift(Lifted):
    """No structure: the lift is x itself. A Bregman distance costs a value: half a gradient, or runs of own code."""

    lift_cost, gradient_cost, bregman_cost = 0.0, 1.0, 0.5
    has_hessian = False

    def __init__(self, f: Function, known: Known | None = None, name: str = "") -> None:
        self.f = f
        self.own_code = runs_own_code(f)
        self._all, self._name = {} if known is None else known, name

    def run_cost(self, *points: Array) -> float:
        new: list[Array] = []
        for x in points if self.own_code else ():
            # The same point twice is run once.
            if self._kept(x) is None and not any(other is x or np.array_equal(other, x) for other in new):
                new.append(x)
        return float(len(new))

    def lift(self, x: Array) -> Array:
        return x

    def gradient(self, x: Array, q: Array) -> Array:
        value, gradient = self.f.value_and_gradient(x)
        self._remember(x, value)
        return gradient

    def value(self, x: Array, q: Array) -> float:
        value = self._kept(x)
        if value is None:
            value = self.f.value(x)
            self._remember(x, value)
        return value

    def _kept(self, x: Array) -> float | None:
        known = self._all.get(self._name, [])
        return next((value for point, value in known if point is x or np.array_equal(point, x)), None)

    def _remember(self, x: Array, value: float) -> None:
        self._all[self._name] = [*self._all.get(self._name, [])[-3:], (x.copy(), value)]

    def errors(self, x: Array, q: Array, value: float, slope: float, term_size: float) -> Errors:
        return errors_at(self.f, x, value, slope)

    def bregman(self, x: Array, q: Array, v: Array, qv: Array, gradient: Array) -> float:
        # The older one first, before a new one takes its place.
        at_v = self.value(v, qv)
        return self.value(x, q) - at_v - inner_product(gradient, x - v)


def make_lift(f: Function, origin: Array, known: Known | None = None, name: str = "") -> Lifted:
    """The cheapest lift that f allows; `origin` is any zero point of its shape.

    Values of the caller's own f are remembered in `known` under a name.
    """
    if models := linear_models(f):
        return models[0][1].lift_of(f, models)
    return QuadraticLift(f, np.zeros_like(origin)) if f.quadratic else PlainLift(f, known, name)


def linear_models(f: Function) -> list[tuple[float, LinearModel]]:
    """The (weight, model) pairs that f is the sum of; none where it has any other part."""
    found: list[tuple[float, Any]] = terms_of(f)
    return found if all(part.linear_image is not None and not is_own_class(part) for _, part in found) else []


def rough_curvature(f: Function, domain: Domain) -> float | None:
    """About the curvature of f, for a scale alone: its bound, or one from below where that takes a factor."""
    if takes_factor(f) and (f.quadratic or linear_models(f)):
        return curvature_below(f, domain.shape)
    known = smoothness_at_hand(f, domain)
    return known.H if known is not None and known.nu == 1.0 else None


def curvature_below(f: Function, shape: Shape) -> float:
    """The curvature of a quadratic or of losses of linear images at 0, from below, by products with numbers at hand."""
    v = sign_vector(shape)
    lift = None if f.quadratic else make_lift(f, v)
    product = f.hessian_product if lift is None else lift.hessian(lift.blank(v))
    for _ in range(_POWER_STEPS):
        v = product(v / (length_of(v) or 1.0))
    size = length_of(v)
    return size if size < math.inf else 0.0
