"""Row sums and column sums of a matrix: the coupling of optimal transport."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, final

import numpy as np

from saddleslide.arrays.base import Array, as_shape, blank
from saddleslide.errors import InputError
from saddleslide.operators.base import Coupling
from saddleslide.operators.spectrum import NormBound, SmallestSingularValue, rounding_margin, summation_error


@final
class Marginals(Coupling):
    """The sums of the rows of an m x n matrix, followed by the sums of its columns.

    Examples
    --------
    >>> import numpy as np
    >>> Marginals((2, 2)).forward(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([3., 7., 4., 6.])
    """

    def __init__(self, shape: Any) -> None:
        self.x_shape = as_shape(shape, "Marginals")
        if len(self.x_shape) != 2 or 0 in self.x_shape:
            raise InputError(f"Marginals: shape is {shape!r}; expected (rows, columns), both at least 1.")
        self.y_shape = (sum(self.x_shape),)

    def __repr__(self) -> str:
        return f"Marginals({self.x_shape})"

    def forward(self, x: Array, out: Array | None = None) -> Array:
        out = blank(self.y_shape, x) if out is None else out
        rows = self.x_shape[0]
        np.sum(x, axis=1, out=out[:rows])
        np.sum(x, axis=0, out=out[rows:])
        return out

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        rows = self.x_shape[0]
        return np.add(y[:rows, None], y[None, rows:], out=out)

    @cached_property
    def norm(self) -> NormBound:
        exact = math.sqrt(sum(self.x_shape))
        return NormBound(exact * (1.0 + rounding_margin(4)), exact, "closed form")

    @property
    def product_error(self) -> float:
        return summation_error(max(self.x_shape)) * self.norm.upper

    def smallest_singular_value(self, positive: bool = False) -> SmallestSingularValue:
        """B B^T has the eigenvalues m + n, n (m - 1 times), m (n - 1 times) and 0."""
        m, n = self.x_shape
        if not positive and min(m, n) > 1:
            return SmallestSingularValue(0.0, 0.0, "closed form: matrices with zero sums are in the kernel")
        exact = math.sqrt(min([m + n] + [n] * (m > 1) + [m] * (n > 1)))
        return SmallestSingularValue(exact * (1.0 - rounding_margin(4)), exact, "closed form")
