"""The square root of a gossip matrix: agents agree exactly when it maps their points to zero."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, final

import numpy as np
import scipy

from saddleslide.arrays.base import Array, as_real, as_shape, frozen
from saddleslide.errors import InputError
from saddleslide.operators.base import Coupling
from saddleslide.operators.spectrum import NormBound, SmallestSingularValue, rounding_margin, summation_error


@final
class Gossip(Coupling):
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
        matrix = as_real(W, "Gossip: W")
        self.x_shape = self.y_shape = (len(matrix), *as_shape(shape, "Gossip"))
        self._values, self._root = _square_root(matrix)

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
        largest = math.sqrt(float(self._values[-1]))
        return NormBound(largest * (1.0 + rounding_margin(len(self._root))), largest, "eigenvalues of W")

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


def _square_root(W: Array) -> tuple[Array, Array]:
    """Eigenvalues of W and its symmetric square root; refuses what is no gossip matrix."""
    if W.ndim != 2 or W.shape[0] != W.shape[1] or W.size == 0:
        raise InputError(f"Gossip: W has shape {W.shape}; expected a square matrix, one row per agent.")
    scale = float(np.abs(W).max())
    if float(np.abs(W - W.T).max()) > 1e-12 * scale:
        raise InputError("Gossip: W is not symmetric; expected a symmetric matrix. Pass (W + W.T) / 2.")
    if float(np.abs(W.sum(axis=1)).max()) > 1e-9 * scale:
        raise InputError(
            f"Gossip: rows of W sum to up to {np.abs(W.sum(axis=1)).max():.2g}; expected 0, so that W 1 = 0."
        )
    values, vectors = scipy.linalg.eigh(W)
    if values[0] < -rounding_margin(len(W)) * abs(float(values[-1])):
        raise InputError(f"Gossip: W has the eigenvalue {values[0]:g}; expected a positive semidefinite matrix.")
    # Rounding in the kernel would leave sqrt(1e-16) = 1e-8 in the root.
    values = np.where(values > rounding_margin(len(W)) * float(values[-1]), values, 0.0)
    return values, frozen((vectors * np.sqrt(values)) @ vectors.T)
