"""Functions of one linear image of x, and their lifts."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, final

import numpy as np
import numpy.typing as npt
import scipy

from saddleslide.arrays.base import Array, Shape, as_number, frozen, inner_product, on_host, split, zeros
from saddleslide.arrays.kinds import ArrayKind
from saddleslide.domains.base import Domain
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.functions.lifted import Lifted
from saddleslide.operators.base import Operator, is_own_code
from saddleslide.operators.explicit import Matrix, Stored, as_operator
from saddleslide.operators.spectrum import SMALL

# Numbers of rows.
Rows = npt.NDArray[np.intp]


class LinearModel(Function):
    """A function loss(Ax) + ridge/2 |x|^2 of one linear image of x, with one number of the data per row."""

    def __init__(self, A: Any, data: Array, ridge: float, x_shape: Shape | None) -> None:
        name = type(self).__name__
        rows = A.shape[0] if len(getattr(A, "shape", ())) == 2 and not isinstance(A, Operator) else data.size
        if 0 <= rows != data.size:
            raise InputError(
                f"{name}: A: its shape is {tuple(A.shape)}, data have {data.size} entries; expected one for each row."
            )
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
        return self.loss_value(q) - self.loss_value(p) - inner_product(self.loss_gradient(p), q - p)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.A.x_shape} -> {self.data.shape}, ridge={self.ridge:g})"

    def exponent(self, domain: Domain) -> float:
        return 1.0

    def strong_convexity(self, domain: Domain) -> float:
        return self.ridge

    def hessian_diagonal(self, shape: Shape) -> Array | None:
        if not isinstance(self.A, Stored):
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
    def linear_image(self) -> Operator:
        return self.A

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
        rows = A.matrix
        if not A.sparse:
            return frozen(np.linalg.norm(rows, axis=0) / A.size_bound)
        squares = np.bincount(rows.indices, np.square(rows.data / A.size_bound), rows.shape[1])
        return frozen(np.sqrt(squares))

    def term_size(self, x: Array) -> float:
        # |A| |x| is at most the sum of the columns' sizes.
        size, columns = super().term_size(x), self._column_sizes
        if columns is None or not on_host(x):
            return size
        return min(size, 1.01 * inner_product(columns, np.abs(x).ravel()))

    def value(self, x: Array) -> float:
        """Value at x: one product with A, half a gradient."""
        return self.value_at(x, self.A.forward(x))

    def value_at(self, x: Array, q: Array) -> float:
        """Value at x, given q = A x."""
        return self.loss_value(q) + 0.5 * self.ridge * inner_product(x, x)

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

    def lift_of(self, f: Function, models: list[tuple[float, LinearModel]]) -> Lifted:
        """The lift of a weighted sum of models, of which this is one."""
        return LinearModelLift(self) if f is self else WeightedLift(f, models)


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
        return self.f.loss_bregman(q, qv) + 0.5 * self.f.ridge * inner_product(step, step)

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
