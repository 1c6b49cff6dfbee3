"""Complex operators as real ones: C^n is R^2n, pairs of real numbers with the inner product Re <z, w>."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy

from saddleslide.arrays.base import Array, Shape, to_complex, to_real
from saddleslide.errors import InputError
from saddleslide.operators.base import Operator

_Product = Callable[[Any], Any]


def is_complex(dtype: Any, name: str) -> bool:
    """Whether a dtype is one of complex numbers; other ones than real and complex are refused."""
    try:
        kind = np.dtype(dtype).kind
    except (TypeError, ValueError):
        kind = "?"
    if kind not in "fc":
        raise InputError(f"{name}: dtype is {dtype!r}; expected float or complex.")
    return bool(kind == "c")


class Sides(NamedTuple):
    """Whether x and y are complex, and their shapes as the caller's code has them."""

    x_pairs: bool
    y_pairs: bool
    x_shape: Shape | None
    y_shape: Shape | None

    @property
    def any(self) -> bool:
        """Whether one of them is complex."""
        return self.x_pairs or self.y_pairs

    def real_shapes(self, x_shape: Shape, y_shape: Shape) -> tuple[Shape, Shape]:
        """Shapes of the real arrays."""
        return x_shape + (2,) * self.x_pairs, y_shape + (2,) * self.y_pairs


def read_dtype(dtype: Any, name: str) -> tuple[bool, bool] | None:
    """Whether x and y are complex, by one dtype or a pair of them; None where nothing is said."""
    if dtype is None:
        return None
    pair = dtype if isinstance(dtype, tuple | list) else (dtype, dtype)
    if len(pair) != 2:
        raise InputError(f"{name}: dtype is {dtype!r}; expected float, complex, or a pair of them for x and y.")
    x_pairs, y_pairs = (is_complex(one, name) for one in pair)
    if x_pairs and not y_pairs:
        raise InputError(f"{name}: dtype is {dtype!r}; expected no complex x beside a real y.")
    return x_pairs, y_pairs


def sides_of(
    found: Any, size: Shape, x_shape: Shape | None, y_shape: Shape | None, said: tuple[bool, bool] | None, name: str
) -> Sides:
    """Which sides of an operator are complex: as `said`, else by the dtype that was `found` and the shapes.

    With a dtype, shapes are those of the caller's arrays. Without, they are those of real arrays, as sets have them:
    (*s, 2) is that of complex numbers, and x may be real beside a complex y.
    """
    is_found = np.dtype(found or float).kind == "c"
    if said is not None:
        if is_found and not said[1]:
            raise InputError(f"{name}: dtype is {found}; expected real numbers.")
        return Sides(*said, x_shape, y_shape)
    if not is_found:
        return Sides(False, False, x_shape, y_shape)
    pairs = []
    for shape, count in ((x_shape, size[1]), (y_shape, size[0])):
        pairs.append(shape is None or (shape[-1] == 2 and math.prod(shape) == 2 * count))
    is_real_x = x_shape is not None and y_shape is not None and math.prod(x_shape) == size[1]
    if not pairs[1] or not (pairs[0] or is_real_x):
        raise InputError(
            f"{name}: dtype is {found}; expected real numbers, for x of shape {x_shape} and y of shape {y_shape}. "
            "Complex arrays are pairs of real ones, of shape (*s, 2); pass dtype=complex for shapes s of complex ones, "
            "or dtype=(float, complex) for a real x."
        )
    return Sides(
        pairs[0],
        True,
        x_shape[:-1] if x_shape is not None and pairs[0] else x_shape,
        None if y_shape is None else y_shape[:-1],
    )


def has_complex_values(A: Any) -> bool:
    """Whether A x is complex, as far as an operator or a matrix of numbers says."""
    dtype = A.y_dtype if isinstance(A, Operator) else getattr(A, "dtype", None)
    return bool(getattr(dtype, "kind", "") == "c")


def dtype_beside_complex(A: Any) -> Any:
    """The `dtype` of `as_operator` beside complex data: of an operator what it is; x is complex if nothing says more.

    PyLops says by `clinear` that an operator takes a real x.
    """
    if isinstance(A, Operator):
        return (A.x_dtype, A.y_dtype)
    return (float, complex) if getattr(A, "clinear", True) is False else complex


def pair_matrix(matrix: Any, sides: Sides, name: str) -> Any:
    """The real matrix of a complex one: every entry a + ib becomes ((a, -b), (b, a)), or (a, b) for a real x."""
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    one, other = (np.eye(2), turn) if sides.x_pairs else (np.eye(2)[:, :1], turn[:, :1])
    if scipy.sparse.issparse(matrix):
        return scipy.sparse.csr_array(scipy.sparse.kron(matrix.real, one) + scipy.sparse.kron(matrix.imag, other))
    dense = np.asarray(matrix)
    if dense.ndim != 2 or dense.dtype.kind not in "biufc":
        raise InputError(f"{name}: received shape {dense.shape}, dtype {dense.dtype}; expected a matrix of numbers.")
    return np.kron(dense.real, one) + np.kron(dense.imag, other)


def pair_products(forward: _Product, adjoint: _Product, sides: Sides) -> tuple[_Product, _Product]:
    """Products on pairs from products on complex arrays; the adjoint, a conjugate transpose, is real where x is."""

    def as_pairs(product: _Product, of_pairs: bool, to_pairs: bool) -> _Product:
        def work(v: Array) -> Any:
            # What is given to code of the caller's stays read-only.
            found = np.asarray(product(to_complex(v) if of_pairs else v))
            return to_real(found) if to_pairs else found

        return work

    def real_adjoint(y: Any) -> Any:
        found = np.asarray(adjoint(y))
        return found if sides.x_pairs else found.real

    ahead = as_pairs(forward, sides.x_pairs, sides.y_pairs)
    return ahead, as_pairs(real_adjoint, sides.y_pairs, sides.x_pairs)
