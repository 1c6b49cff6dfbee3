"""Operators with a closed form of their norm: differences on grids, marginals of matrices, gossip of agents."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, final

import numpy as np
import scipy

from saddleslide.arrays.arguments import as_whole
from saddleslide.arrays.base import Array, Shape, as_grid, as_real, as_shape, blank, frozen
from saddleslide.errors import InputError
from saddleslide.operators.base import COMPLEX, REAL, Operator
from saddleslide.operators.complex import is_complex
from saddleslide.operators.spectrum import (
    NormBound,
    SmallestSingularValue,
    margin_of_rounding,
    power_estimate,
    summation_error,
)

_CLOSED = "closed form"


def _channels(channels: int | None, name: str) -> Shape:
    return () if channels is None else (as_whole(channels, f"{name}: channels", 1),)


def _norm(exact: float, size: int = 4, method: str = _CLOSED) -> NormBound:
    return NormBound(exact * (1.0 + margin_of_rounding(size)), exact, method)


def _smallest(exact: float, why: str = "") -> SmallestSingularValue:
    return SmallestSingularValue(exact * (1.0 - margin_of_rounding(4)), exact, _CLOSED + why)


@final
class FiniteDifferences(Operator):
    """Unscaled forward differences on a grid, one block for every axis, that of the last axis first.

    Of a picture these are the horizontal differences, (D_h x)_{i,j} = x_{i,j+1} - x_{i,j}, and then the vertical ones,
    (D_v x)_{i,j} = x_{i+1,j} - x_{i,j}, with zero in the last column or row; the result has shape (2, rows, columns),
    and its ravel is the paper's vector. In general it has shape (axes, *shape[, channels]), and y[k] are differences
    along the axis -1 - k of the grid.

    Parameters
    ----------
    shape : int or tuple of int
        The grid: any number of axes.
    channels : int, optional
        x has so many numbers at every point of the grid, along its last axis.
    dtype : float or complex, optional
        With `complex`, x is the view of a complex array as pairs of real numbers, along one more axis.

    Examples
    --------
    >>> import numpy as np
    >>> FiniteDifferences((2, 2)).forward(np.array([[1.0, 2.0], [5.0, 9.0]])).tolist()
    [[[1.0, 0.0], [4.0, 0.0]], [[4.0, 7.0], [0.0, 0.0]]]
    >>> FiniteDifferences((8, 9, 10), channels=3).y_shape
    (3, 8, 9, 10, 3)
    """

    has_closed_spectrum = True

    def __init__(self, shape: Any, channels: int | None = None, dtype: Any = float) -> None:
        self.grid = as_grid(shape, "FiniteDifferences")
        pairs = is_complex(dtype, "FiniteDifferences")
        # Numbers at one point of the grid.
        self.trailing = _channels(channels, "FiniteDifferences")
        self.trailing += (2,) * pairs
        self.x_shape = (*self.grid, *self.trailing)
        self.y_shape = (len(self.grid), *self.x_shape)
        self.x_dtype = self.y_dtype = COMPLEX if pairs else REAL

    def __repr__(self) -> str:
        return f"FiniteDifferences({self.grid}{f', values of shape {self.trailing}' if self.trailing else ''})"

    @property
    def operations(self) -> float:
        return 2.0 * (math.prod(self.x_shape) + math.prod(self.y_shape))

    def of_pairs(self) -> Operator:
        channels = self.trailing[0] if self.trailing else None
        return super().of_pairs() if self.x_dtype == COMPLEX else FiniteDifferences(self.grid, channels, complex)

    @property
    def is_picture(self) -> bool:
        """Whether x is a picture with one real number a pixel."""
        return len(self.x_shape) == len(self.grid) == 2

    def forward(self, x: Array, out: Array | None = None) -> Array:
        out = blank(self.y_shape, x) if out is None else out
        for block, (ahead, behind, last) in enumerate(_neighbours(len(self.grid))):
            np.subtract(x[ahead], x[behind], out=out[(block, *behind)])
            out[(block, *last)] = 0.0
        return out

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        out = blank(self.x_shape, y) if out is None else out
        out.fill(0.0)
        for block, (ahead, behind, _) in enumerate(_neighbours(len(self.grid))):
            out[ahead] += y[(block, *behind)]
            out[behind] -= y[(block, *behind)]
        return out

    @cached_property
    def entries(self) -> Any:
        blocks = []
        for axis in reversed(range(len(self.grid))):
            n = self.grid[axis]
            step = scipy.sparse.diags_array([-np.ones(n), np.ones(n - 1)], offsets=[0, 1], shape=(n, n)).tolil()
            step[n - 1, n - 1] = 0.0
            before, after = math.prod(self.grid[:axis]), math.prod(self.x_shape[axis + 1 :])
            eyes = scipy.sparse.eye_array(before), scipy.sparse.eye_array(after)
            blocks.append(scipy.sparse.kron(scipy.sparse.kron(eyes[0], step), eyes[1], format="csr"))
        return scipy.sparse.vstack(blocks, format="csr")

    def eigenvalues(self, axis: int) -> Array:
        """Spectrum of D^T D along one axis in the order of the cosine transform: 4 sin^2(pi k / (2 n))."""
        n = self.grid[axis]
        return np.asarray(4.0 * np.sin(np.pi * np.arange(n) / (2 * n)) ** 2)

    def gram_symbol(self, basis: str = "dct") -> Array:
        """Exact in the cosine basis; in the Fourier basis that of periodic differences, which only add squares."""
        total: Any = 0.0
        for axis, n in enumerate(self.grid):
            one = self.eigenvalues(axis) if basis == "dct" else 4.0 * np.sin(np.pi * np.arange(n) / n) ** 2
            total = total + one.reshape(n, *(1,) * (len(self.x_shape) - axis - 1))
        return np.array(np.broadcast_to(total, self.x_shape))

    def scaled_gram_symbol(self, scale: Array, basis: str = "dct") -> Array:
        """From w' x' - w x = (w' + w)/2 (x' - x) + (w' - w) (x' + x)/2, split so that little is lost."""
        steps, symbol = self.forward(scale) ** 2, self.gram_symbol(basis)
        ends = np.zeros(self.x_shape)
        for block, (ahead, behind, _) in enumerate(_neighbours(len(self.grid))):
            for side in (ahead, behind):
                ends[side] += 0.5 * steps[(block, *behind)]
        smooth, rough = float(scale.max()) ** 2 * symbol, float(ends.max())
        ratio = math.sqrt(rough / mean) if (mean := float(smooth.mean())) > 0.0 else 1.0
        return (1.0 + ratio) * smooth + (rough + math.sqrt(rough * mean))

    @cached_property
    def norm(self) -> NormBound:
        return _norm(math.sqrt(sum(float(self.eigenvalues(axis)[-1]) for axis in range(len(self.grid)))))

    @property
    def product_error(self) -> float:
        return summation_error(2 * len(self.grid)) * self.norm.upper

    def entry_errors(self, x: Array, product: Array) -> Array:
        """A difference is rounded once."""
        return summation_error(2) * np.abs(product)

    def smallest_singular_value(self, positive: bool = False) -> SmallestSingularValue:
        if not positive or max(self.grid) == 1:
            return _smallest(0.0, ": constants are in the kernel")
        return _smallest(2.0 * math.sin(math.pi / (2 * max(self.grid))))


def _neighbours(axes: int) -> list[tuple[Any, Any, Any]]:
    """For every axis, the last one first: all points but the first along it, all but the last, and the last."""
    found = []
    for axis in reversed(range(axes)):
        lead = (slice(None),) * axis
        found.append(((*lead, slice(1, None)), (*lead, slice(None, -1)), (*lead, -1)))
    return found


@final
class SymmetricGradient(Operator):
    """The symmetric part of the differences of a vector field: the second operator of total generalised variation.

    A field w of shape (axes, *shape[, channels]), in the order of `FiniteDifferences`, has backward differences
    d_a w_b, zero at the first point along a. The result, of shape (axes (axes + 1) / 2, *shape[, channels]), has
    d_a w_a for every a, and then (d_a w_b + d_b w_a) / sqrt(2) for a < b: its norm is that of the symmetric matrices.

    Parameters
    ----------
    shape : int or tuple of int
        The grid: any number of axes.
    channels : int, optional
        The field has so many numbers at every point of the grid, along its last axis.

    Examples
    --------
    >>> import numpy as np
    >>> SymmetricGradient((1, 3)).forward(np.array([[[0.0, 1.0, 3.0]], [[0.0, 0.0, 0.0]]]))[0]
    array([[0., 1., 2.]])
    """

    def __init__(self, shape: Any, channels: int | None = None) -> None:
        self.grid = as_grid(shape, "SymmetricGradient")
        points, axes = (*self.grid, *_channels(channels, "SymmetricGradient")), len(self.grid)
        self.x_shape, self.y_shape = (axes, *points), (axes * (axes + 1) // 2, *points)

    def __repr__(self) -> str:
        return f"SymmetricGradient({self.x_shape[1:]})"

    def _terms(self) -> list[tuple[int, int, int, float]]:
        """The blocks of the result that d_a w_b is in, with its weight there."""
        axes, root = len(self.grid), math.sqrt(0.5)
        mixed = [(a, b) for a in range(axes) for b in range(a + 1, axes)]
        both = [(axes + k, *pair, root) for k, (a, b) in enumerate(mixed) for pair in ((a, b), (b, a))]
        return [(a, a, a, 1.0) for a in range(axes)] + both

    def forward(self, x: Array, out: Array | None = None) -> Array:
        out = blank(self.y_shape, x) if out is None else out
        out.fill(0.0)
        sides = _neighbours(len(self.grid))
        for block, a, b, weight in self._terms():
            ahead, behind, _ = sides[a]
            out[(block, *ahead)] += weight * (x[(b, *ahead)] - x[(b, *behind)])
        return out

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        out = blank(self.x_shape, y) if out is None else out
        out.fill(0.0)
        sides = _neighbours(len(self.grid))
        for block, a, b, weight in self._terms():
            ahead, behind, _ = sides[a]
            out[(b, *ahead)] += weight * y[(block, *ahead)]
            out[(b, *behind)] -= weight * y[(block, *ahead)]
        return out

    @cached_property
    def norm(self) -> NormBound:
        """That of all differences of all components, of which the symmetric part is a projection."""
        upper = FiniteDifferences(self.grid).norm.upper * (1.0 + margin_of_rounding(4))
        return NormBound(upper, min(power_estimate(self), upper), _CLOSED)

    @property
    def product_error(self) -> float:
        return summation_error(6 * len(self.grid)) * math.sqrt(2.0) * self.norm.upper

    def smallest_singular_value(self, positive: bool = False) -> SmallestSingularValue:
        return (
            super().smallest_singular_value(positive) if positive else _smallest(0.0, ": constants are in the kernel")
        )


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
        self.x_shape = as_grid(shape, "Marginals", 2)
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
    def entries(self) -> Any:
        m, n = self.x_shape
        rows = scipy.sparse.kron(scipy.sparse.eye_array(m), np.ones((1, n)))
        columns = scipy.sparse.kron(np.ones((1, m)), scipy.sparse.eye_array(n))
        return scipy.sparse.vstack([rows, columns], format="csr")

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
        error = margin_of_rounding(len(W)) * float(values[-1])
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
        error = margin_of_rounding(len(self._root)) * float(self._values[-1])
        above = self._values[self._values > error]
        value = float(above[0]) if above.size else 0.0
        return SmallestSingularValue(math.sqrt(max(value - error, 0.0)), math.sqrt(value), "eigenvalues of W")
