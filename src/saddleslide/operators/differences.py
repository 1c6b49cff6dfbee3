"""Forward differences of an image, exactly as in the paper's tomography section."""

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
class FiniteDifferences(Coupling):
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
        self.x_shape = as_shape(shape, "FiniteDifferences")
        if len(self.x_shape) != 2 or 0 in self.x_shape:
            raise InputError(f"FiniteDifferences: shape is {shape!r}; expected (rows, columns), both at least 1.")
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
        """Spectrum of D^T D along one axis in the order of the cosine transform: 4 sin^2(pi k / (2 n)).

        Examples
        --------
        >>> FiniteDifferences((2, 2)).eigenvalues(0).round(12).tolist()
        [0.0, 2.0]
        """
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
        exact = math.sqrt(float(self.eigenvalues(0)[-1] + self.eigenvalues(1)[-1]))
        return NormBound(exact * (1.0 + rounding_margin(4)), exact, "closed form")

    @property
    def product_error(self) -> float:
        return summation_error(4) * self.norm.upper

    def smallest_singular_value(self, positive: bool = False) -> SmallestSingularValue:
        if not positive or max(self.x_shape) == 1:
            return SmallestSingularValue(0.0, 0.0, "closed form: constants are in the kernel")
        exact = 2.0 * math.sin(math.pi / (2 * max(self.x_shape)))
        return SmallestSingularValue(exact * (1.0 - rounding_margin(4)), exact, "closed form")
