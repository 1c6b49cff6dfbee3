"""A sparse matrix by rows as the compiled passes take it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, final

import numpy as np

from saddleslide.arrays.base import Array, Shape
from saddleslide.errors import InputError
from saddleslide.kernels.arguments import Pairs, Rows
from saddleslide.kernels.switch import load
from saddleslide.kernels.threads import WORTHWHILE, over_rows, together

# Columns that indices of 16 bits can tell apart: products read a sixth less.
_NARROW = 2**16
# Sums over all rows are made in so many parts, whatever the number of threads, so that it changes no bit.
_PARTS = 4
# Pairs are kept where there are at most so many for each entry; there are half as many where every column has one.
_PAIRED = 0.65


def flat(v: Array, size: int) -> Array:
    """A vector as compiled passes take it, which look at no bounds: flat, of doubles, of this size.

    Examples
    --------
    >>> flat(np.arange(4).reshape(2, 2), 4)
    array([0., 1., 2., 3.])
    """
    made = np.ascontiguousarray(v, dtype=np.float64).reshape(-1)
    if made.size != size:
        raise InputError(f"product with a matrix: received {np.shape(v)}, {made.size} numbers; expected {size}.")
    return made


def written(v: Array, size: int, shape: Shape, out: Array | None, work: Callable[[Array, Array], None]) -> Array:
    """What `work` makes of v of a size, both flat, in a shape; in `out` where it is given, whatever its strides.

    Examples
    --------
    >>> def double(source, into):
    ...     into[:] = 2.0 * source
    >>> written(np.ones(2), 2, (2, 1), None, double).tolist()
    [[2.0], [2.0]]
    """
    source = flat(v, size)
    target = out if out is not None and _takes(out, shape, source) else np.empty(shape)
    work(source, target.reshape(-1))
    if out is None or target is out:
        return target
    np.copyto(out, target.reshape(out.shape))
    return out


def _takes(out: Array, shape: Shape, source: Array) -> bool:
    """Whether a pass can write into `out` itself: doubles in a row, as many as it makes, none of them still read."""
    plain = out.flags.c_contiguous and out.dtype == np.float64
    return plain and out.size == math.prod(shape) and not np.may_share_memory(out, source)


@final
class SparseRows:
    """A CSR matrix as compiled passes take it, in pairs of neighbouring columns where most entries have a neighbour.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> rows = SparseRows(scipy.sparse.csr_array(np.array([[1.0, 2.0], [0.0, 3.0]])))
    >>> rows.product(np.ones(2), (2,), None)
    array([3., 3.])
    >>> rows.there_and_back(np.ones(2), np.ones(2))
    (array([3., 3.]), array([ 2., 10.]))
    >>> rows.grams(np.ones((1, 2)), np.array([1.0, 2.0]))
    array([[ 3., 24.]])
    """

    def __init__(self, matrix: Any) -> None:
        self.shape, starts = matrix.shape, matrix.indptr.astype(np.int32, copy=False).view(np.uint32)
        narrow = np.dtype(np.uint16 if matrix.shape[1] <= _NARROW else np.uint32)
        self.kind = narrow.name
        self.rows = _pairs(matrix, starts, narrow) or Rows(matrix.data, matrix.indices.astype(narrow), starts)

    @property
    def paired(self) -> bool:
        """Whether neighbouring columns are kept in pairs."""
        return isinstance(self.rows, Pairs)

    def product(self, v: Array, shape: Shape, out: Array | None) -> Array:
        """The matrix times v, in a shape."""
        work, rows = self._work("product"), self.rows
        return written(
            v, self.shape[1], shape, out, lambda source, into: over_rows(
                lambda first, last: work(rows, source, into, first, last), rows.starts
            )
        )  # fmt: skip

    def products(self, stack: Array) -> Array:
        """The matrix times every row of a stack, two at once; the same bits as one by one."""
        work, rows = self._work("two_products"), self.rows
        made = np.empty((len(stack), self.shape[0]))
        for begin, source in _by_two(stack, self.shape[1]):
            into = np.empty((self.shape[0], 2))
            over_rows(lambda first, last, s=source, t=into: work(rows, s, t, first, last), rows.starts)  # type: ignore[misc]
            made[begin : begin + 2] = into.T[: len(stack) - begin]
        return made

    def there_and_back(self, v: Array, shift: Array) -> tuple[Array, Array]:
        """A v and A^T (A v - shift), flat, in one pass over A."""
        source, minus = flat(v, self.shape[1]), flat(shift, self.shape[0])
        out = np.empty(self.shape[0])
        return out, self._added("there_and_back", (self.shape[1],), source, minus, out)

    def grams(self, stack: Array, weights: Array) -> Array:
        """A^T diag(weights) A times every row of a stack, two at once, each in one pass over A."""
        made, heavy = np.empty((len(stack), self.shape[1])), flat(weights, self.shape[0])
        for begin, source in _by_two(stack, self.shape[1]):
            back = self._added("two_grams", (self.shape[1], 2), source, heavy)
            made[begin : begin + 2] = back.T[: len(stack) - begin]
        return made

    def _work(self, name: str) -> Callable[..., None]:
        rows: Any = type(self.rows)
        work: Callable[..., None] = getattr(load("passes", rows=rows, columns=self.kind), name)
        return work

    def _added(self, name: str, shape: Shape, *given: Array) -> Array:
        """What a pass adds up over all rows."""
        entries = int(self.rows.starts[-1])
        parts = _PARTS if entries >= WORTHWHILE else 1
        cuts = np.searchsorted(self.rows.starts, np.arange(1, parts) * (entries / parts)).tolist()
        edges, back = [0, *cuts, self.shape[0]], np.empty((parts, *shape))
        work, rows = self._work(name), self.rows
        together([
            lambda i=i: work(rows, *given, back[i], edges[i], edges[i + 1])  # type: ignore[misc]
            for i in range(parts)
        ])  # fmt: skip
        total: Array = back.sum(axis=0) if parts > 1 else back[0]
        return total


def _pairs(matrix: Any, starts: Any, narrow: np.dtype[Any]) -> Pairs | None:
    """Pairs of neighbouring columns, where there are few enough of them."""
    if matrix.shape[1] < 2 or matrix.nnz == 0:
        return None
    pair_starts, given = np.empty_like(starts), matrix.indices.astype(np.int32, copy=False)
    count = load("passes").count_pairs(given, starts, pair_starts)
    if count > _PAIRED * matrix.nnz:
        return None
    columns, weights = np.empty(count, narrow), np.zeros(2 * count)
    pair_up = load("passes", columns=narrow.name).pair_up
    pair_up(given, starts, matrix.data, matrix.shape[1] - 1, columns, weights)
    return Pairs(weights, columns, pair_starts)


def _by_two(stack: Array, size: int) -> Iterator[tuple[int, Array]]:
    """Two vectors of a stack at a time, side by side, with the number of the first; zeros beside a last one."""
    rows = flat(stack, len(stack) * size).reshape(len(stack), size)
    for begin in range(0, len(stack), 2):
        some = rows[begin : begin + 2]
        source = np.zeros((size, 2))
        source[:, : len(some)] = some.T
        yield begin, source
