"""SciPy's sparse matrices: looked at as callers hand them over, and laid out as compiled passes take them.

Their arrays are public and can be changed after SciPy has checked them. Neither its conversions nor compiled loops look
at bounds, so one wrong index reads or writes memory that belongs to others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from numbers import Integral
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
import scipy

from saddleslide.arrays.base import Array, Shape, as_real
from saddleslide.errors import InputError
from saddleslide.kernels.arguments import TILE, Pairs, Patterns, Rows
from saddleslide.kernels.switch import load
from saddleslide.kernels.threads import WORTHWHILE, equal_parts, over_rows, together
from saddleslide.operators.explicit import flat


def read_sparse(matrix: Any, name: str) -> Any:
    """A sparse matrix of any format as new CSR rows of finite doubles, or an error that names the argument."""
    check_sparse(matrix, name)
    rows = scipy.sparse.csr_array(matrix, dtype=np.float64, copy=True)
    # Now, and not in place when SciPy needs it: compiled passes hold these arrays.
    rows.sum_duplicates()
    as_real(rows.data, name)
    return with_small_indices(rows)


def with_small_indices(rows: Any) -> Any:
    """Indices of 32 bits where they are enough: products read a quarter less."""
    if rows.nnz < 2**31 and max(rows.shape) < 2**31:
        rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return rows


def largest_row(rows: Any) -> float:
    """The largest sum of the sizes of a row's entries."""
    begins = rows.indptr[:-1][np.diff(rows.indptr) > 0]
    return float(np.add.reduceat(np.abs(rows.data), begins).max()) if begins.size else 0.0


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


def _check_coordinates(matrix: Any) -> None:
    count = len(_values(matrix, 1))
    for places, what, side in ((matrix.row, "row", matrix.shape[0]), (matrix.col, "column", matrix.shape[1])):
        found = _whole_numbers(places, f"{what}s")
        if len(found) != count:
            raise ValueError(f"{len(found)} {what}s for {count} values")
        _inside(found, what, side)


def _check_compressed(matrix: Any) -> None:
    """Starts and places of CSR, of CSC, and of blocks, by the sides across which and along which they run."""
    (across, along), blocks = matrix.shape[::-1] if matrix.format == "csc" else matrix.shape, matrix.format == "bsr"
    data = _values(matrix, 3 if blocks else 1)
    if blocks:
        _, high, wide = data.shape
        if not high or not wide or across % high or along % wide:
            raise ValueError(f"blocks of {high} x {wide}")
        across, along = across // high, along // wide
    starts, places = _whole_numbers(matrix.indptr, "starts"), _whole_numbers(matrix.indices, "places")
    if len(starts) != across + 1 or starts[0] != 0 or (starts[1:] < starts[:-1]).any():
        raise ValueError(f"its {len(starts)} starts are not {across + 1} that begin with 0 and never decrease")
    if starts[-1] > len(data) or len(places) != len(data):
        raise ValueError(f"{int(starts[-1])} entries from {len(places)} places and {len(data)} values")
    _inside(places, "place", along)


def _check_diagonals(matrix: Any) -> None:
    offsets, data = _whole_numbers(matrix.offsets, "offsets"), _values(matrix, 2)
    # A diagonal outside of the matrix is SciPy's own, and left out; it counts them in 32 bits.
    most = max(np.iinfo(np.int32).max, *matrix.shape)
    if len(offsets) and not (-most <= int(offsets.min()) and int(offsets.max()) <= most):
        raise ValueError(f"offsets from {int(offsets.min())} to {int(offsets.max())}")
    if not len(np.unique(offsets)) == len(offsets) == len(data):
        raise ValueError(f"{len(offsets)} offsets, {len(np.unique(offsets))} of them different, for {len(data)} rows")


def _check_lists(matrix: Any) -> None:
    rows, columns = matrix.shape
    for part, what in ((matrix.rows, "places"), (matrix.data, "values")):
        if not isinstance(part, np.ndarray) or part.shape != (rows,) or not all(isinstance(one, list) for one in part):
            raise ValueError(f"its {what} are not {rows} lists")
    for places, values in zip(matrix.rows, matrix.data, strict=True):
        if len(places) != len(values):
            raise ValueError(f"{len(places)} places for {len(values)} values")
        _check_pairs((((0, place), value) for place, value in zip(places, values, strict=True)), (1, columns))


def _check_pairs(pairs: Iterable[tuple[Any, Any]], shape: tuple[int, int]) -> None:
    """Entries of a format that keeps Python's own numbers."""
    for key, value in pairs:
        if not isinstance(key, tuple) or len(key) != 2 or not all(isinstance(place, Integral) for place in key):
            raise ValueError(f"the place {key!r}")
        if not all(0 <= int(place) < side for place, side in zip(key, shape, strict=True)):
            raise ValueError(f"the place {tuple(int(place) for place in key)} of {shape}")
        if np.asarray(value).dtype.kind not in "biuf" or np.ndim(value):
            raise ValueError(f"the value {value!r}")


_CHECKS: dict[str, Callable[[Any], None]] = {
    "coo": _check_coordinates,
    **dict.fromkeys(("csr", "csc", "bsr"), _check_compressed),
    "dia": _check_diagonals,
    "lil": _check_lists,
    "dok": lambda matrix: _check_pairs(matrix.items(), matrix.shape),
}


# Columns that indices of 16 bits can tell apart: products read a sixth less.
_NARROW = 2**16
# Sums over all rows are made in so many parts, whatever the number of threads, so that it changes no bit.
_PARTS = 4
# Pairs are kept where there are at most so many for each entry; there are half as many where every column has one.
_PAIRED = 0.65


def written(v: Array, size: int, shape: Shape, out: Array | None, work: Callable[[Array, Array], None]) -> Array:
    """What `work` makes of v of a size, both flat, in a shape; in `out` where it is given, whatever its strides."""
    source = flat(v, size)
    target = out
    # A pass writes into `out` itself where that is as many doubles in a row, none of them still read.
    plain = out is not None and out.flags.c_contiguous and out.dtype == np.float64 and out.size == math.prod(shape)
    if target is None or not plain or np.may_share_memory(target, source):
        target = np.empty(shape)
    work(source, target.reshape(-1))
    if out is None or target is out:
        return target
    np.copyto(out, target.reshape(out.shape))
    return out


@final
class SparseRows:
    """A CSR matrix as compiled passes take it, in pairs of neighbouring columns where most entries have a neighbour."""

    def __init__(self, matrix: Any) -> None:
        self.shape, starts = matrix.shape, matrix.indptr.astype(np.int32, copy=False).view(np.uint32)
        narrow = np.dtype(np.uint16 if matrix.shape[1] <= _NARROW else np.uint32)
        self.kind = narrow.name
        self.rows = _pairs(matrix, starts, narrow) or Rows(matrix.data, matrix.indices.astype(narrow), starts)

    @property
    def one_by_one(self) -> Self:
        """These rows, since they are read one by one."""
        return self

    @property
    def is_paired(self) -> bool:
        """Whether neighbouring columns are kept in pairs."""
        return isinstance(self.rows, Pairs)

    def product(self, v: Array, shape: Shape, out: Array | None) -> Array:
        """The matrix times v, in a shape."""
        work, starts = partial(self._work("product"), self.rows), self.rows.starts
        return written(v, self.shape[1], shape, out, lambda *vectors: over_rows(partial(work, *vectors), starts))

    def products(self, stack: Array) -> Array:
        """The matrix times every row of a stack, two at once; the same bits as one by one."""
        work, made = self._work("two_products"), np.empty((len(stack), self.shape[0]))
        for begin, source in _by_two(stack, self.shape[1]):
            into = np.empty((self.shape[0], 2))
            over_rows(partial(work, self.rows, source, into), self.rows.starts)
            made[begin : begin + 2] = into.T[: len(stack) - begin]
        return made

    def there_and_back(self, v: Array, shift: Array) -> tuple[Array, Array]:
        """A v and A^T (A v - shift), flat, in one pass over A."""
        source, minus, out = flat(v, self.shape[1]), flat(shift, self.shape[0]), np.empty(self.shape[0])
        return out, self._add_up("there_and_back", (self.shape[1],), source, minus, out)

    def grams(self, stack: Array, weights: Array) -> Array:
        """A^T diag(weights) A times every row of a stack, two at once, each in one pass over A."""
        made, heavy = np.empty((len(stack), self.shape[1])), flat(weights, self.shape[0])
        for begin, source in _by_two(stack, self.shape[1]):
            back = self._add_up("two_grams", (self.shape[1], 2), source, heavy)
            made[begin : begin + 2] = back.T[: len(stack) - begin]
        return made

    def _work(self, name: str) -> Callable[..., None]:
        rows: Any = type(self.rows)
        work: Callable[..., None] = getattr(load("passes", rows=rows, columns=self.kind), name)
        return work

    def _add_up(self, name: str, shape: Shape, *given: Array) -> Array:
        """What a pass adds up over all rows."""
        parts = _PARTS if self.rows.starts[-1] >= WORTHWHILE else 1
        edges, back = equal_parts(self.rows.starts, parts), np.empty((parts, *shape))
        work = partial(self._work(name), self.rows, *given)
        together([partial(work, back[i], edges[i], edges[i + 1]) for i in range(parts)])
        total: Array = back.sum(axis=0) if parts > 1 else back[0]
        return total


def _pairs(matrix: Any, starts: Any, narrow: np.dtype[Any]) -> Pairs | None:
    """Pairs of neighbouring columns, where there are few enough of them."""
    if matrix.shape[1] < 2 or matrix.nnz == 0:
        return None
    last, pair_starts, given = matrix.shape[1] - 1, np.empty_like(starts), matrix.indices.astype(np.int32, copy=False)
    pair_up = partial(load("passes", columns=narrow.name).pair_up, given, starts, matrix.data, last, pair_starts)
    count = pair_up(np.empty(0, narrow), np.empty(0))
    if count > _PAIRED * matrix.nnz:
        return None
    columns, weights = np.empty(count, narrow), np.zeros(2 * count)
    pair_up(columns, weights)
    return Pairs(weights, columns, pair_starts)


def _by_two(stack: Array, size: int) -> Iterator[tuple[int, Array]]:
    """Two vectors of a stack at a time, side by side, with the number of the first; zeros beside a last one."""
    rows = flat(stack, len(stack) * size).reshape(len(stack), size)
    for begin in range(0, len(stack), 2):
        source = np.zeros((size, 2))
        source[:, : len(stack) - begin] = rows[begin : begin + 2].T
        yield begin, source


# Rows of which one looks first whether they are like those before them.
_LOOKS = 64


@final
class AlikeRows:
    """Runs of rows that have one pattern of offsets from the diagonal and weights; the patterns are kept once."""

    def __init__(self, matrix: Any, begins: npt.NDArray[np.int64], models: npt.NDArray[np.int64]) -> None:
        # Patterns are those of the models, the first rows that have them.
        firsts, numbers = np.unique(models, return_inverse=True)
        rows = [slice(*matrix.indptr[row : row + 2]) for row in firsts.tolist()]
        offsets = [matrix.indices[part] - np.int32(row) for part, row in zip(rows, firsts.tolist(), strict=True)]
        weights = [matrix.data[part] for part in rows]
        starts = np.cumsum([0, *map(len, offsets)], dtype=np.int64)
        runs = np.append(begins, matrix.shape[0]), numbers.astype(np.int64)
        self.columns = matrix.shape[1]
        self.patterns = Patterns(*runs, starts, np.concatenate(offsets), np.concatenate(weights))
        # Entries before every run, to share the runs out.
        self.entries = matrix.indptr[self.patterns.begins].astype(np.int64)

    @property
    def one_by_one(self) -> None:
        """None: patterns are read in place of rows."""

    def product(self, v: Array, shape: Shape, out: Array | None) -> Array:
        """The matrix times v, in a shape."""
        work = load("passes").alike_product

        def make(source: Array, into: Array) -> None:
            # Every thread sums in a tile of its own.
            over_rows(lambda *rows: work(self.patterns, source, into, np.empty(TILE), *rows), self.entries)

        return written(v, self.columns, shape, out, make)


def alike_rows(matrix: Any) -> AlikeRows | None:
    """The patterns of a CSR matrix with 32-bit indices; None where most rows are unlike those around them."""
    count = matrix.shape[0]
    some = np.unique(np.linspace(1, count - 1, _LOOKS).astype(np.int64)) if count > TILE else np.zeros(0, np.int64)
    # A look at a few rows spares most matrices the comparison of all.
    if 2 * int(_find_shifted(matrix, some, some - 1).sum()) <= len(some):
        return None
    later = np.arange(1, count)
    begins = np.flatnonzero(np.concatenate([[True], ~_find_shifted(matrix, later, later - 1)]))
    lengths = np.diff(begins, append=count)
    if 2 * int(lengths[lengths >= TILE].sum()) < count:
        return None
    marks = np.empty(len(begins), np.uint32)
    words = matrix.data.view(np.int32)
    load("passes").mark_rows(matrix.indices, matrix.indptr.view(np.uint32), words, begins, marks)
    _, firsts, numbers = np.unique(marks, return_index=True, return_inverse=True)
    models = begins[firsts[numbers]]
    # Two patterns with one mark would be one in about 2^32 pairs.
    return AlikeRows(matrix, begins, models) if _find_shifted(matrix, begins, models).all() else None


def _find_shifted(matrix: Any, rows: npt.NDArray[np.int64], models: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Whether each of these rows is its model, shifted along the diagonal."""
    found = np.empty(len(rows), np.uint32)
    load("passes").find_shifted(matrix.indices, matrix.indptr.view(np.uint32), matrix.data, rows, models, found)
    return found > 0


def passes_of(matrix: Any) -> AlikeRows | SparseRows:
    """A CSR matrix with 32-bit indices as compiled products take it, by patterns where rows are alike."""
    return alike_rows(matrix) or SparseRows(matrix)
