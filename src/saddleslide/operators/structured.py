"""Operators with a closed form of their norm: differences of images, marginals of matrices, gossip of agents."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, final

import numpy as np
import scipy

from saddleslide.arrays.base import Array, Shape, as_real, as_shape, blank, frozen
from saddleslide.errors import InputError
from saddleslide.operators.base import Operator
from saddleslide.operators.spectrum import NormBound, SmallestSingularValue, rounding_margin, summation_error

_CLOSED = "closed form"


def _grid(shape: Any, name: str) -> Shape:
    found = as_shape(shape, name)
    if len(found) != 2 or 0 in found:
        raise InputError(f"{name}: shape is {shape!r}; expected (rows, columns), both at least 1.")
    return found


def _norm(exact: float, size: int = 4, method: str = _CLOSED) -> NormBound:
    return NormBound(exact * (1.0 + rounding_margin(size)), exact, method)


def _smallest(exact: float, why: str = "") -> SmallestSingularValue:
    return SmallestSingularValue(exact * (1.0 - rounding_margin(4)), exact, _CLOSED + why)


@final
class FiniteDifferences(Operator):
    """Unscaled forward differences of an image: the horizontal block first, then the vertical one.

    (D_h x)_{i,j} = x_{i,j+1} - x_{i,j} and (D_v x)_{i,j} = x_{i+1,j} - x_{i,j}, with zero in the last column or row.
    The result has shape (2, rows, columns); its ravel is the paper's vector.

    Examples
    --------
    >>> import numpy as np
    >>> FiniteDifferences((2, 2)).forward(np.array([[1.0, 2.0], [5.0, 9.0]])).tolist()
    [[[1.0, 0.0], [4.0, 0.0]], [[4.0, 7.0], [0.0, 0.0]]]
    """

    def __init__(self, shape: Any) -> None:
        self.x_shape = _grid(shape, "FiniteDifferences")
        self.y_shape = (2, *self.x_shape)

    def __repr__(self) -> str:
        return f"FiniteDifferences({self.x_shape})"

    def forward(self, x: Array, out: Array | None = None) -> Array:
        out = blank(self.y_shape, x) if out is None else out
        np.subtract(x[:, 1:], x[:, :-1], out=out[0, :, :-1])
        np.subtract(x[1:, :], x[:-1, :], out=out[1, :-1, :])
        out[0, :, -1] = 0.0
        out[1, -1, :] = 0.0
        return out

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        out = blank(self.x_shape, y) if out is None else out
        out.fill(0.0)
        out[:, 1:] += y[0, :, :-1]
        out[:, :-1] -= y[0, :, :-1]
        out[1:, :] += y[1, :-1, :]
        out[:-1, :] -= y[1, :-1, :]
        return out

    def eigenvalues(self, axis: int) -> Array:
        """Spectrum of D^T D along one axis in the order of the cosine transform: 4 sin^2(pi k / (2 n))."""
        n = self.x_shape[axis]
        return np.asarray(4.0 * np.sin(np.pi * np.arange(n) / (2 * n)) ** 2)

    def gram_symbol(self, basis: str = "dct") -> Array:
        """Exact in the cosine basis; in the Fourier basis that of periodic differences, which only add squares."""
        if basis == "dct":
            return self.eigenvalues(0)[:, None] + self.eigenvalues(1)[None, :]
        rows, columns = (4.0 * np.sin(np.pi * np.arange(n) / n) ** 2 for n in self.x_shape)
        return np.asarray(rows[:, None] + columns[None, :])

    @cached_property
    def norm(self) -> NormBound:
        return _norm(math.sqrt(float(self.eigenvalues(0)[-1] + self.eigenvalues(1)[-1])))

    @property
    def product_error(self) -> float:
        return summation_error(4) * self.norm.upper

    def smallest_singular_value(self, positive: bool = False) -> SmallestSingularValue:
        if not positive or max(self.x_shape) == 1:
            return _smallest(0.0, ": constants are in the kernel")
        return _smallest(2.0 * math.sin(math.pi / (2 * max(self.x_shape))))


@final
class Marginals(Operator):
    """The sums of the rows of an m x n matrix, followed by the sums of its columns.

    Examples
    --------
    >>> import numpy as np
    >>> Marginals((2, 2)).forward(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([3., 7., 4., 6.])
    """

    def __init__(self, shape: Any) -> None:
        self.x_shape = _grid(shape, "Marginals")
        self.y_shape = (sum(self.x_shape),)

    def __repr__(self) -> str:
        return f"Marginals({self.x_shape})"

    def forward(self, x: Array, out: Array | None = None) -> Array:
        out = blank(self.y_shape, x) if out is None else out
        np.sum(x, axis=1, out=out[: self.x_shape[0]])
        np.sum(x, axis=0, out=out[self.x_shape[0] :])
        return out

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        rows = self.x_shape[0]
        return np.add(y[:rows, None], y[None, rows:], out=out)

    @cached_property
    def norm(self) -> NormBound:
        return _norm(math.sqrt(sum(self.x_shape)))

    @property
    def product_error(self) -> float:
        return summation_error(max(self.x_shape)) * self.norm.upper

    def smallest_singular_value(self, positive: bool = False) -> SmallestSingularValue:
        """B B^T has the eigenvalues m + n, n (m - 1 times), m (n - 1 times) and 0."""
        m, n = self.x_shape
        if not positive and min(m, n) > 1:
            return _smallest(0.0, ": matrices with zero sums are in the kernel")
        return _smallest(math.sqrt(min([m + n] + [n] * (m > 1) + [m] * (n > 1))))


@final
class Gossip(Operator):
    """B = sqrt(W) on the points of n agents, for a gossip matrix W: symmetric, W >= 0, W 1 = 0, zero where no edge is.

    Only u = B^T y ever leaves a method, and B^T B = W: an agent that keeps u needs no square root, and a product with B
    together with one with B^T is one round of communication. Here the root is formed once, from the n x n matrix W.

    Parameters
    ----------
    W : n x n array
        The gossip matrix, such as the Laplacian of a graph.
    shape : int or tuple of int
        Shape of the point of one agent.

    Examples
    --------
    >>> import numpy as np
    >>> B = Gossip([[1.0, -1.0], [-1.0, 1.0]], shape=1)
    >>> B.adjoint(B.forward(np.array([[3.0], [1.0]]))).round(12).tolist()
    [[2.0], [-2.0]]
    """

    def __init__(self, W: Any, shape: Any) -> None:
        W = as_real(W, "Gossip: W")
        self.x_shape = self.y_shape = (len(W), *as_shape(shape, "Gossip"))
        if W.ndim != 2 or W.shape[0] != W.shape[1] or W.size == 0:
            raise InputError(f"Gossip: W has shape {W.shape}; expected a square matrix, one row per agent.")
        scale = float(np.abs(W).max())
        if float(np.abs(W - W.T).max()) > 1e-12 * scale:
            raise InputError("Gossip: W is not symmetric; expected a symmetric matrix. Pass (W + W.T) / 2.")
        sums = float(np.abs(W.sum(axis=1)).max())
        if sums > 1e-9 * scale:
            raise InputError(f"Gossip: rows of W sum to up to {sums:.2g}; expected 0, so that W 1 = 0.")
        values, vectors = scipy.linalg.eigh(W)
        error = rounding_margin(len(W)) * float(values[-1])
        if values[0] < -abs(error):
            raise InputError(f"Gossip: W has the eigenvalue {values[0]:g}; expected a positive semidefinite matrix.")
        # Rounding in the kernel would leave sqrt(1e-16) = 1e-8 in the root.
        self._values = np.where(values > error, values, 0.0)
        self._root = frozen((vectors * np.sqrt(self._values)) @ vectors.T)

    def __repr__(self) -> str:
        return f"Gossip({self.x_shape[0]} agents, points of shape {self.x_shape[1:]})"

    def forward(self, x: Array, out: Array | None = None) -> Array:
        product = (self._root @ x.reshape(len(self._root), -1)).reshape(self.x_shape)
        if out is None:
            return product
        np.copyto(out, product)
        return out

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        return self.forward(y, out)

    @cached_property
    def norm(self) -> NormBound:
        return _norm(math.sqrt(float(self._values[-1])), len(self._root), "eigenvalues of W")

    @property
    def product_error(self) -> float:
        return summation_error(len(self._root)) * self.norm.upper

    def smallest_singular_value(self, positive: bool = False) -> SmallestSingularValue:
        if not positive:
            return SmallestSingularValue(0.0, 0.0, "equal points are in the kernel")
        error = rounding_margin(len(self._root)) * float(self._values[-1])
        above = self._values[self._values > error]
        value = float(above[0]) if above.size else 0.0
        return SmallestSingularValue(math.sqrt(max(value - error, 0.0)), math.sqrt(value), "eigenvalues of W")
