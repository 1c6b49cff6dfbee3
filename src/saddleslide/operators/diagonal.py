"""Operators that are one number an entry: the identity and diagonals."""

from __future__ import annotations

from functools import cached_property
from typing import Any, final

import numpy as np
import scipy

from saddleslide.arrays.base import Array, as_real, as_shape, beside, frozen, receive, to_complex, to_real
from saddleslide.arrays.kinds import to_host
from saddleslide.errors import InputError
from saddleslide.operators.base import COMPLEX, REAL, Operator
from saddleslide.operators.complex import is_complex
from saddleslide.operators.spectrum import NormBound, SmallestSingularValue, summation_error

_EPS = summation_error(1)


@final
class Identity(Operator):
    """The array itself, copied.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of x.
    dtype : float or complex, optional
        With `complex`, x is the view of a complex array of that shape: (*shape, 2).

    Examples
    --------
    >>> Identity(3).forward(np.array([1.0, 2.0, 3.0]))
    array([1., 2., 3.])
    """

    def __init__(self, shape: Any, dtype: Any = float) -> None:
        pairs = is_complex(dtype, "Identity")
        self.x_shape = self.y_shape = as_shape(shape, "Identity") + (2,) * pairs
        self.x_dtype = self.y_dtype = COMPLEX if pairs else REAL

    def __repr__(self) -> str:
        return f"Identity({self.x_shape})"

    def forward(self, x: Array, out: Array | None = None) -> Array:
        if out is None:
            return x.copy()
        np.copyto(out, x)
        return out

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        return self.forward(y, out)

    @cached_property
    def entries(self) -> Any:
        return scipy.sparse.eye_array(self.shape[1], format="csr")

    def gram_symbol(self, basis: str = "dct") -> Array:
        return np.ones(self.x_shape)

    @cached_property
    def norm(self) -> NormBound:
        size = float(0 not in self.x_shape)
        return NormBound(size, size, "closed form")

    @property
    def product_error(self) -> float:
        return 0.0

    def entry_errors(self, x: Array, product: Array) -> Array:
        return np.zeros_like(product)

    def smallest_singular_value(self, positive: bool = False) -> SmallestSingularValue:
        return SmallestSingularValue(self.norm.upper, self.norm.upper, "closed form")


@final
class Diagonal(Operator):
    """Every entry of x times a number of its own.

    Parameters
    ----------
    d : array of real or complex numbers
        The numbers, in the shape of x; complex ones make x complex.
    dtype : complex, optional
        x is complex, also beside real numbers.

    Examples
    --------
    >>> Diagonal([1.0, 2.0]).forward(np.array([3.0, 3.0]))
    array([3., 6.])
    >>> Diagonal([1j]) @ np.array([2.0 + 1.0j])
    array([-1.+2.j])
    """

    def __init__(self, d: Any, dtype: Any = None) -> None:
        given = np.asarray(d) if not hasattr(type(d), "__dlpack__") else d
        is_turning = getattr(given.dtype, "kind", "") == "c"
        pairs = is_turning or (dtype is not None and is_complex(dtype, "Diagonal"))
        if is_turning and dtype is not None and not is_complex(dtype, "Diagonal"):
            raise InputError(
                f"Diagonal: d has dtype {given.dtype}, dtype is {dtype!r}; expected real numbers beside it."
            )
        values = as_real(to_real(given) if is_turning else given, "Diagonal: d")
        if values.ndim == 0:
            raise InputError("Diagonal: d is one number; expected one for every entry of x. Use d * Identity(shape).")
        self.d: Any = to_complex(values) if is_turning else frozen(values[..., None]) if pairs else values
        self.x_shape = self.y_shape = values.shape if is_turning or not pairs else (*values.shape, 2)
        self.x_dtype = self.y_dtype = COMPLEX if pairs else REAL
        self._is_turning = is_turning

    def __repr__(self) -> str:
        return f"Diagonal({self.x_shape})"

    def _times(self, d: Any, x: Array, out: Array | None) -> Array:
        if not self._is_turning:
            found: Array = np.multiply(beside(x, d), x, out=out)
            return found
        return receive(to_real(d * to_complex(to_host(x))), self.x_shape, "Diagonal x", out, x)

    def forward(self, x: Array, out: Array | None = None) -> Array:
        return self._times(self.d, x, out)

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        return self._times(np.conj(self.d) if self._is_turning else self.d, y, out)

    @cached_property
    def entries(self) -> Any:
        return None if self.x_dtype == COMPLEX else scipy.sparse.diags_array(self.d.ravel(), format="csr")

    def gram_symbol(self, basis: str = "dct") -> Array:
        """The square of the largest number, which is an upper bound in any basis."""
        return np.full(self.x_shape, self.norm.upper**2 * (1.0 + 2.0 * _EPS))

    @cached_property
    def norm(self) -> NormBound:
        exact = float(np.abs(self.d).max(initial=0.0))
        return NormBound(exact * (1.0 + 4.0 * _EPS * self._is_turning), exact, "closed form")

    @property
    def product_error(self) -> float:
        return summation_error(4 if self._is_turning else 1) * self.norm.upper

    def smallest_singular_value(self, positive: bool = False) -> SmallestSingularValue:
        sizes = np.abs(self.d)
        counted = sizes[sizes > 0.0] if positive else sizes
        least = float(counted.min()) if counted.size else 0.0
        return SmallestSingularValue(least * (1.0 - 4.0 * _EPS * self._is_turning), least, "closed form")
