"""Data-fitting functions of A x: least squares and logistic loss; and the Huber function."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from saddleslide.arrays import Array, Shape, as_number, as_real
from saddleslide.couplings import as_coupling
from saddleslide.domains import Domain
from saddleslide.errors import InputError
from saddleslide.functions.base import Function, total
from saddleslide.holder import Holder

# Largest number of columns for which the smallest singular value of A is worth its cost.
_FACTORISE_COLUMNS = 400


@final
class LeastSquares(Function):
    """1/2 |A x - b|^2 + ridge/2 |x|^2.

    Parameters
    ----------
    A : array, sparse matrix, LinearOperator, pair of callables or Coupling
        The forward operator.
    b : array
        Data, of the shape of A x.
    ridge : float, optional
        Weight of the quadratic term, >= 0.
    x_shape : tuple of int, optional
        Shape of x when it is an image; flat otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> LeastSquares(np.eye(2), [1.0, 0.0], ridge=1.0).value_and_gradient(np.array([1.0, 1.0]))
    (1.5, array([1., 2.]))
    """

    quadratic = True

    def __init__(self, A: Any, b: Any, ridge: float = 0.0, x_shape: Shape | None = None) -> None:
        self.b = as_real(b, "LeastSquares: b")
        self.A = as_coupling(A, x_shape, self.b.shape)
        self.ridge = as_number(ridge, "LeastSquares: ridge", 0.0)

    def __repr__(self) -> str:
        return f"LeastSquares({self.A.x_shape} -> {self.b.shape}, ridge={self.ridge:g})"

    @property
    def shape(self) -> Shape | None:
        return self.A.x_shape

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        residual = self.A.forward(x).reshape(self.b.shape) - self.b
        gradient = self.A.adjoint(residual.reshape(self.A.y_shape), out)
        gradient += self.ridge * x
        return 0.5 * float(np.vdot(residual, residual)) + 0.5 * self.ridge * float(np.vdot(x, x)), gradient

    def hessian_product(self, v: Array) -> Array:
        return self.A.adjoint(self.A.forward(v)) + self.ridge * v

    def smoothness(self, domain: Domain) -> Holder:
        return Holder(1.0, self.A.norm.upper**2 + self.ridge)

    def strong_convexity(self, domain: Domain) -> float:
        matrix = self.A.dense()
        if matrix is None or matrix.shape[1] > _FACTORISE_COLUMNS:
            return self.ridge
        return self.ridge + self.A.smallest_singular_value().lower ** 2


@final
class Logistic(Function):
    """sum_i log(1 + exp(-label_i (A x)_i)) + ridge/2 |x|^2.

    Parameters
    ----------
    A : array, sparse matrix, LinearOperator, pair of callables or Coupling
        One row per sample.
    labels : array
        -1 and 1 (or 0 and 1), one per row.
    ridge : float, optional
        Weight of the quadratic term, >= 0.

    Examples
    --------
    >>> import numpy as np
    >>> round(Logistic(np.eye(2), [1, -1]).value(np.zeros(2)), 6)
    1.386294
    """

    def __init__(self, A: Any, labels: Any, ridge: float = 0.0, x_shape: Shape | None = None) -> None:
        labels = as_real(labels, "Logistic: labels")
        kinds = set(np.unique(labels).tolist())
        if not (kinds <= {-1.0, 1.0} or kinds <= {0.0, 1.0}):
            raise InputError(f"Logistic: labels take the values {sorted(kinds)[:5]}; expected -1 and 1, or 0 and 1.")
        self.labels = labels if -1.0 in kinds or kinds == {1.0} else 2.0 * labels - 1.0
        self.A = as_coupling(A, x_shape, self.labels.shape)
        self.ridge = as_number(ridge, "Logistic: ridge", 0.0)

    def __repr__(self) -> str:
        return f"Logistic({self.A.x_shape} -> {self.labels.shape}, ridge={self.ridge:g})"

    @property
    def shape(self) -> Shape | None:
        return self.A.x_shape

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        margins = self.labels * self.A.forward(x).reshape(self.labels.shape)
        # 1 / (1 + exp(m)) without overflow for large margins of either sign.
        decay = np.exp(-np.abs(margins))
        probability = np.where(margins >= 0, decay, 1.0) / (1.0 + decay)
        gradient = self.A.adjoint((-self.labels * probability).reshape(self.A.y_shape), out)
        gradient += self.ridge * x
        loss = total(np.logaddexp(0.0, -margins))
        return loss + 0.5 * self.ridge * float(np.vdot(x, x)), gradient

    def smoothness(self, domain: Domain) -> Holder:
        return Holder(1.0, self.A.norm.upper**2 / 4.0 + self.ridge)

    def strong_convexity(self, domain: Domain) -> float:
        return self.ridge


@final
class Huber(Function):
    """sum_i h(x_i) with h(t) = t^2 / (2 delta) for |t| <= delta and |t| - delta/2 beyond.

    Examples
    --------
    >>> import numpy as np
    >>> Huber(0.5).value_and_gradient(np.array([0.25, -2.0]))
    (1.8125, array([ 0.5, -1. ]))
    """

    separable = True

    def __init__(self, delta: float) -> None:
        self.delta = as_number(delta, "Huber: delta")
        if self.delta <= 0.0:
            raise InputError(f"Huber: delta is {delta!r}; expected a number > 0. For |x| use Power(nu=0.0).")

    def __repr__(self) -> str:
        return f"Huber({self.delta:g})"

    def gradient(self, x: Array, out: Array | None = None) -> Array:
        out = np.divide(x, self.delta, out=out)
        return np.clip(out, -1.0, 1.0, out=out)

    def value(self, x: Array) -> float:
        size = np.abs(x)
        inside = np.minimum(size, self.delta)
        return total(inside * inside / (2.0 * self.delta) + (size - inside))

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        return self.value(x), self.gradient(x, out)

    def smoothness(self, domain: Domain) -> Holder:
        return Holder(1.0, 1.0 / self.delta)

    def strong_convexity(self, domain: Domain) -> float:
        return 1.0 / self.delta if domain.magnitude() <= self.delta else 0.0
