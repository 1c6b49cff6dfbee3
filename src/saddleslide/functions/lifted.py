"""A function through its lift q: what one product gives, so that extrapolations cost nothing.

For f(x) = loss(Ax) + ridge/2 |x|^2 the lift is q = Ax: half a gradient; the other half is A^T. So it is for sums and
multiples of such functions. For any other quadratic it is the gradient itself. In all cases the lift of an affine
combination is the same combination of lifts.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, final

import numpy as np
import numpy.typing as npt
import scipy

from saddleslide.arrays.base import Array, Shape, as_number, frozen, on_host, split, zeros
from saddleslide.arrays.kinds import ArrayKind
from saddleslide.domains import Domain
from saddleslide.errors import InputError
from saddleslide.functions.base import Function, Scaled, Sum, errors_at, inside, is_ours, read_rounding, runs_own_code
from saddleslide.functions.roundings import FEW, Errors, inner_error
from saddleslide.operators import ForeignMatrix, Matrix, Operator, as_operator
from saddleslide.operators.base import is_own_code
from saddleslide.operators.spectrum import SMALL

# Numbers of rows; and the last points of a function with their values, under the name of the function.
Rows = npt.NDArray[np.intp]
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
        fresh = term_size <= float(np.linalg.norm(x))
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


class LinearModel(Function):
    """A function loss(Ax) + ridge/2 |x|^2 of one linear image of x, with one number of the data per row."""

    def __init__(self, A: Any, data: Array, ridge: float, x_shape: Shape | None) -> None:
        name = type(self).__name__
        self.data, self.A = data, as_operator(A, x_shape, data.shape, name=f"{name}: A")
        self.ridge, self.shape = as_number(ridge, f"{name}: ridge", 0.0), self.A.x_shape

    @abstractmethod
    def loss_value(self, q: Array) -> float:
        """loss(q)."""

    @abstractmethod
    def slopes(self, q: Array, data: Array) -> Array:
        """Entries of loss', from those of q and of the data beside them."""

    def loss_gradient(self, q: Array) -> Array:
        """loss'(q)."""
        return self.slopes(q, self.data.reshape(q.shape))

    def loss_slopes(self, rows: Rows, q: Array) -> Array:
        """loss'(q) for some rows alone: their numbers and their entries of q, both flat."""
        return self.slopes(q, self.data.ravel()[rows])

    @abstractmethod
    def loss_hessian(self, q: Array) -> Array:
        """Diagonal of loss''(q)."""

    def loss_bregman(self, q: Array, p: Array) -> float:
        """loss(q) - loss(p) - <loss'(p), q - p>."""
        return self.loss_value(q) - self.loss_value(p) - float(np.vdot(self.loss_gradient(p), q - p))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.A.x_shape} -> {self.data.shape}, ridge={self.ridge:g})"

    def exponent(self, domain: Domain) -> float:
        return 1.0

    def strong_convexity(self, domain: Domain) -> float:
        return self.ridge

    def hessian_diagonal(self, shape: Shape) -> Array | None:
        if not isinstance(self.A, Matrix | ForeignMatrix):
            return None
        weights = self.loss_hessian(np.zeros(self.A.y_shape)).ravel()
        A = self.A.entries
        squares = A.multiply(A) if scipy.sparse.issparse(A) else np.square(A)
        return np.asarray(squares.T @ weights).ravel() + self.ridge

    def stays_on_host(self, kind: ArrayKind) -> tuple[str, ...]:
        return self.A.stays_on_host(kind)

    @property
    def operators(self) -> tuple[tuple[Operator, float], ...]:
        return ((self.A, 0.5),)

    @property
    def value_cost(self) -> float:
        return 0.5 if is_own_code(self.A) else 0.0

    @cached_property
    def product_sizes(self) -> tuple[float, float]:
        """C with |computed A x - A x| <= c |x|, and a bound on the norm of A; NaN where both would take products."""
        if not self.A.norm_at_hand:
            # No product is made to learn how large they are.
            return math.nan, math.nan
        small = min(math.prod(self.A.x_shape), math.prod(self.A.y_shape)) <= SMALL
        norm = self.A.norm.upper if small else self.A.size_bound
        # An adjoint that is not quite the transpose makes a gradient that is not quite that of the value.
        return self.A.bound_rounding(1.0, norm) + self.A.adjoint_test.bound, norm

    @cached_property
    def _column_sizes(self) -> Array | None:
        """Norms of the columns of A relative to the bound on its norm, where they are at hand."""
        A = self.A
        if not isinstance(A, Matrix) or A.size_bound == 0.0:
            return None
        columns = scipy.sparse.linalg.norm(A.matrix, axis=0) if A.sparse else np.linalg.norm(A.matrix, axis=0)
        return frozen(np.asarray(columns) / A.size_bound)

    def term_size(self, x: Array) -> float:
        # |A| |x| is at most the sum of the columns' sizes.
        size, columns = super().term_size(x), self._column_sizes
        if columns is None or not on_host(x):
            return size
        return min(size, 1.01 * float(np.vdot(columns, np.abs(x).ravel())))

    def value(self, x: Array) -> float:
        """Value at x: one product with A, half a gradient."""
        return self.value_at(x, self.A.forward(x))

    def value_at(self, x: Array, q: Array) -> float:
        """Value at x, given q = A x."""
        return self.loss_value(q) + 0.5 * self.ridge * float(np.vdot(x, x))

    @property
    def one_pass(self) -> bool:
        """Whether A x and the gradient together are cheaper than one after the other."""
        return False

    def lift_and_gradient(self, x: Array, out: Array | None = None) -> tuple[Array, Array]:
        """A x and the gradient."""
        q = self.A.forward(x)
        gradient = self.A.adjoint(self.loss_gradient(q), out)
        gradient += self.ridge * x
        return q, gradient

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        q, gradient = self.lift_and_gradient(x, out)
        return self.value_at(x, q), gradient


def inner_operators(f: Function) -> list[Operator]:
    """The operators A inside f."""
    return [part.A for part in inside(f) if isinstance(part, LinearModel)]


@final
class LinearModelLift(Lifted):
    """q = Ax: half a gradient; A^T is the other half."""

    lift_cost = gradient_cost = 0.5
    linear = True

    def __init__(self, f: LinearModel) -> None:
        self.f: LinearModel = f
        self.affine_gradient = f.quadratic
        # A dense matrix gains less than a repeated step loses.
        self.one_pass = f.one_pass and isinstance(f.A, Matrix) and f.A.sparse

    def lift(self, x: Array) -> Array:
        return self.f.A.forward(x)

    def lift_and_gradient(self, x: Array) -> tuple[Array, Array]:
        return self.f.lift_and_gradient(x)

    def blank(self, x: Array) -> Array:
        return zeros(self.f.A.y_shape, x)

    def gradient(self, x: Array, q: Array) -> Array:
        return self.f.A.adjoint(self.f.loss_gradient(q)) + self.f.ridge * x

    def value(self, x: Array, q: Array) -> float:
        return self.f.value_at(x, q)

    def bregman(self, x: Array, q: Array, v: Array, qv: Array, gradient: Array) -> float:
        step = x - v
        return self.f.loss_bregman(q, qv) + 0.5 * self.f.ridge * float(np.vdot(step, step))

    def hessian(self, q: Array) -> Callable[[Array], Array]:
        diagonal = self.f.loss_hessian(q)
        return lambda v: self.f.A.adjoint(diagonal * self.f.A.forward(v)) + self.f.ridge * v

    def hessian_stack(self, q: Array) -> Callable[[Array], Array]:
        diagonal, A = self.f.loss_hessian(q), self.f.A
        return lambda stack: A.gram_stack(stack, diagonal) + self.f.ridge * stack


@final
class WeightedLift(Lifted):
    """A sum of w_i f_i with lifts A_i x, kept end to end: values come from products, where nothing large cancels."""

    lift_cost = gradient_cost = 0.5
    linear = True

    def __init__(self, f: Function, parts: list[tuple[float, LinearModel]]) -> None:
        self.f, self.weights = f, [weight for weight, _ in parts]
        self.lifts = [LinearModelLift(part) for _, part in parts]
        self.affine_gradient = all(lift.affine_gradient for lift in self.lifts)
        self.shapes = [part.A.y_shape for _, part in parts]

    def _parts(self, q: Array) -> list[tuple[float, LinearModelLift, Array]]:
        return list(zip(self.weights, self.lifts, split(q, self.shapes), strict=True))

    def lift(self, x: Array) -> Array:
        return np.concatenate([lift.lift(x).ravel() for lift in self.lifts])

    def blank(self, x: Array) -> Array:
        return zeros((sum(math.prod(shape) for shape in self.shapes),), x)

    def gradient(self, x: Array, q: Array) -> Array:
        found = zeros(x.shape, x)
        for weight, lift, part in self._parts(q):
            found += weight * lift.gradient(x, part)
        return found

    def value(self, x: Array, q: Array) -> float:
        return sum(weight * lift.value(x, part) for weight, lift, part in self._parts(q))

    def bregman(self, x: Array, q: Array, v: Array, qv: Array, gradient: Array) -> float:
        pairs = zip(self._parts(q), split(qv, self.shapes), strict=True)
        return sum(weight * lift.bregman(x, part, v, other, gradient) for (weight, lift, part), other in pairs)

    def hessian(self, q: Array) -> Callable[[Array], Array]:
        products = [(weight, lift.hessian(part)) for weight, lift, part in self._parts(q)]
        return lambda v: np.sum([weight * product(v) for weight, product in products], axis=0)


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
        return self.constant + 0.5 * float(np.vdot(x, q + self.slope))

    def errors(self, x: Array, q: Array, value: float, slope: float, term_size: float) -> Errors:
        """Values come from gradients here, and so does their error."""
        rounding, size = read_rounding(self.f), float(np.linalg.norm(x))
        tilt = float(np.linalg.norm(self.slope))
        origin = rounding.at(0.0, self.constant, tilt, x.size)
        terms = 0.5 * size * (float(np.linalg.norm(q)) + tilt) + abs(self.constant) + abs(value)
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
        return 0.5 * float(np.vdot(x - v, q - qv))

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
        return self.value(x, q) - at_v - float(np.vdot(gradient, x - v))


def make_lift(f: Function, origin: Array, known: Known | None = None, name: str = "") -> Lifted:
    """The cheapest lift that f allows; `origin` is any zero point of its shape.

    Values of the caller's own f are remembered in `known` under a name.
    """
    if is_ours(f, LinearModel):
        return LinearModelLift(f)
    models = linear_models(f)
    if models:
        return WeightedLift(f, models)
    return QuadraticLift(f, np.zeros_like(origin)) if f.quadratic else PlainLift(f, known, name)


def linear_models(f: Function) -> list[tuple[float, LinearModel]]:
    """The (weight, model) pairs that f is the sum of; none where it has any other part."""
    if is_ours(f, LinearModel):
        return [(1.0, f)]
    if is_ours(f, Scaled):
        return [(f.factor * weight, model) for weight, model in linear_models(f.function)]
    if is_ours(f, Sum):
        first, second = map(linear_models, f.parts)
        return first + second if first and second else []
    return []
