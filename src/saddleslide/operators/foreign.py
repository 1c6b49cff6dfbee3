"""Matrices that live in another library: the products run there, on its device."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, final

import numpy as np

from saddleslide.arrays.base import Array, Shape, as_real, received
from saddleslide.arrays.kinds import kind_of
from saddleslide.operators.base import Coupling
from saddleslide.operators.spectrum import summation_error


@final
class ForeignMatrix(Coupling):
    """A dense matrix of PyTorch, JAX, CuPy or another array-API library; its products run there.

    Examples
    --------
    >>> import numpy as np
    >>> ForeignMatrix(np.eye(2)).forward(np.ones(2))
    array([1., 1.])
    """

    def __init__(
        self, matrix: Any, x_shape: Shape | None = None, y_shape: Shape | None = None, name: str = "B"
    ) -> None:
        self.kind = kind_of(matrix)
        # Checked on the host; kept in double precision where it was.
        values = as_real(matrix, name)
        self.matrix = self.kind.wrap(values)
        rows, columns = values.shape
        self.x_shape = (columns,) if x_shape is None else x_shape
        self.y_shape = (rows,) if y_shape is None else y_shape

    def __repr__(self) -> str:
        return f"ForeignMatrix({self.kind}, {self.x_shape} -> {self.y_shape})"

    @property
    def entries(self) -> Any:
        """The numbers of the matrix on the host."""
        return self.dense()

    @property
    def stored(self) -> int:
        """Number of entries."""
        return int(np.prod(self.x_shape) * np.prod(self.y_shape))

    def forward(self, x: Array, out: Array | None = None) -> Array:
        product = self.kind.call(lambda v: self.matrix @ v, x.ravel())
        return received(product.reshape(self.y_shape), self.y_shape, "B x", out, x)

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        product = self.kind.call(lambda v: self.matrix.T @ v, y.ravel())
        return received(product.reshape(self.x_shape), self.x_shape, "B^T y", out, y)

    @cached_property
    def product_error(self) -> float:
        """From the entries, in any order of summation: see `Matrix`."""
        return summation_error(max(self.dense().shape)) * self.size_bound

    @cached_property
    def size_bound(self) -> float:
        """A bound on the norm of |B|: see `Matrix`."""
        sizes = np.abs(self.dense())
        if 0 in sizes.shape:
            return 0.0
        sums = math.sqrt(float(sizes.sum(axis=0).max())) * math.sqrt(float(sizes.sum(axis=1).max()))
        return (1.0 + summation_error(max(sizes.shape))) * min(sums, float(np.linalg.norm(sizes)))

    @property
    def norm_at_hand(self) -> bool:
        return True

    def dense(self) -> Array:
        return as_real(self.matrix, "B")
