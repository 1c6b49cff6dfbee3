"""SciPy's sparse matrices as callers hand them over: looked at before any compiled code reads them.

Their arrays are public and can be changed after SciPy has checked them. Neither its conversions nor compiled loops look
at bounds, so one wrong index reads or writes memory that belongs to others.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
import scipy

from saddleslide.arrays.base import as_real
from saddleslide.errors import InputError


def read_sparse(matrix: Any, name: str) -> Any:
    """A sparse matrix of any format as new CSR rows of finite doubles, or an error that names the argument."""
    check_sparse(matrix, name)
    rows = scipy.sparse.csr_array(matrix, dtype=np.float64, copy=True)
    # Now, and not in place when SciPy needs it: compiled passes hold these arrays.
    rows.sum_duplicates()
    as_real(rows.data, name)
    return rows


def check_sparse(matrix: Any, name: str) -> None:
    """Refuse a sparse matrix that is not of real numbers, or has entries outside; nothing of it is changed."""
    if len(matrix.shape) != 2 or min(matrix.shape) < 0:
        raise InputError(f"{name}: received a sparse array of shape {matrix.shape}; expected a matrix.")
    # SciPy asks the values, which may be anything.
    kind = getattr(matrix, "dtype", None)
    if kind is not None and kind.kind not in "biuf":
        raise InputError(f"{name}: dtype is {kind}; expected real numbers.")
    try:
        _CHECKS[matrix.format](matrix)
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        raise InputError(
            f"{name}: the {matrix.format} matrix of shape {matrix.shape} is damaged ({error}); expected every entry "
            "inside. Build it from rows, columns and values with scipy.sparse.coo_array."
        ) from None


def _whole_numbers(values: Any, what: str) -> np.ndarray[Any, Any]:
    array = np.asarray(values)
    if not isinstance(values, np.ndarray) or array.dtype.kind not in "iu" or array.ndim != 1:
        raise ValueError(f"its {what} are {type(values).__name__} of {array.dtype}, shape {array.shape}")
    return array


def _inside(places: Any, what: str, count: int) -> None:
    if len(places) and not (0 <= (low := places.min()) <= (high := places.max()) < count):
        raise ValueError(f"{what} {int(low) if low < 0 else int(high)} of {count}")


def _values(matrix: Any, dimensions: int) -> Any:
    data = matrix.data
    if not isinstance(data, np.ndarray) or data.dtype.kind not in "biuf" or data.ndim != dimensions:
        raise ValueError(f"its values are {type(data).__name__} of shape {np.shape(data)}")
    return data


def _coordinates(matrix: Any) -> None:
    count = len(_values(matrix, 1))
    for places, what, side in ((matrix.row, "row", matrix.shape[0]), (matrix.col, "column", matrix.shape[1])):
        found = _whole_numbers(places, f"{what}s")
        if len(found) != count:
            raise ValueError(f"{len(found)} {what}s for {count} values")
        _inside(found, what, side)


def _compressed(matrix: Any, dimensions: int, sides: tuple[int, int]) -> None:
    """Starts and places of CSR, of CSC, and of blocks; `sides` are those across which and along which they run."""
    count = len(_values(matrix, dimensions))
    starts, places = _whole_numbers(matrix.indptr, "starts"), _whole_numbers(matrix.indices, "places")
    if len(starts) != sides[0] + 1 or starts[0] != 0 or (starts[1:] < starts[:-1]).any():
        raise ValueError(f"its {len(starts)} starts are not {sides[0] + 1} that begin with 0 and never decrease")
    if starts[-1] > min(count, len(places)) or len(places) != count:
        raise ValueError(f"{int(starts[-1])} entries from {len(places)} places and {count} values")
    _inside(places, "place", sides[1])


def _blocks(matrix: Any) -> None:
    _, high, wide = _values(matrix, 3).shape
    rows, columns = matrix.shape
    if not high or not wide or rows % high or columns % wide:
        raise ValueError(f"blocks of {high} x {wide}")
    _compressed(matrix, 3, (rows // high, columns // wide))


def _diagonals(matrix: Any) -> None:
    offsets, data = _whole_numbers(matrix.offsets, "offsets"), _values(matrix, 2)
    # A diagonal outside of the matrix is SciPy's own, and left out; it counts them in 32 bits.
    most = max(np.iinfo(np.int32).max, *matrix.shape)
    if len(offsets) and not (-most <= int(offsets.min()) and int(offsets.max()) <= most):
        raise ValueError(f"offsets from {int(offsets.min())} to {int(offsets.max())}")
    if len(offsets) != len(data) or len(np.unique(offsets)) != len(offsets):
        raise ValueError(f"{len(offsets)} offsets, {len(np.unique(offsets))} of them different, for {len(data)} rows")


def _lists(matrix: Any) -> None:
    rows, columns = matrix.shape
    for part, what in ((matrix.rows, "places"), (matrix.data, "values")):
        if not isinstance(part, np.ndarray) or part.shape != (rows,) or not all(isinstance(one, list) for one in part):
            raise ValueError(f"its {what} are not {rows} lists")
    for places, values in zip(matrix.rows, matrix.data, strict=True):
        if len(places) != len(values):
            raise ValueError(f"{len(places)} places for {len(values)} values")
        for place, value in zip(places, values, strict=True):
            _pair((0, place), value, (1, columns))


def _keys(matrix: Any) -> None:
    for key, value in matrix.items():
        _pair(key, value, matrix.shape)


def _pair(key: Any, value: Any, shape: tuple[int, int]) -> None:
    """One entry of a format that keeps Python's own numbers."""
    if not isinstance(key, tuple) or len(key) != 2 or not all(isinstance(place, Integral) for place in key):
        raise ValueError(f"the place {key!r}")
    if not all(0 <= int(place) < side for place, side in zip(key, shape, strict=True)):
        raise ValueError(f"the place {tuple(int(place) for place in key)} of {shape}")
    if np.asarray(value).dtype.kind not in "biuf" or np.ndim(value):
        raise ValueError(f"the value {value!r}")


_CHECKS: dict[str, Callable[[Any], None]] = {
    "coo": _coordinates,
    "csr": lambda matrix: _compressed(matrix, 1, matrix.shape),
    "csc": lambda matrix: _compressed(matrix, 1, matrix.shape[::-1]),
    "bsr": _blocks,
    "dia": _diagonals,
    "lil": _lists,
    "dok": _keys,
}
