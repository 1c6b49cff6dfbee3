"""A sparse matrix by rows as the compiled passes take it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np

from saddleslide.arrays import Array, Shape
from saddleslide.kernels.switch import load
from saddleslide.kernels.threads import WORTHWHILE, over_rows, together

# Columns that indices of 16 bits can tell apart: products read a sixth less.
_NARROW = 2**16
# Sums over all rows are made in so many parts, whatever the number of threads, so that it changes no bit.
_PARTS = 4


def written(v: Array, shape: Shape, out: Array | None, work: Callable[[Array, Array], None]) -> Array:
    """What `work` makes of v, both flat, in a shape; in `out` where it is given, whatever its strides.

    Examples
    --------
    >>> def double(source, into):
    ...     into[:] = 2.0 * source
    >>> written(np.ones(2), (2, 1), None, double).tolist()
    [[2.0], [2.0]]
    """
    target = out if out is not None and out.flags.c_contiguous else np.empty(shape)
    work(np.ascontiguousarray(v).reshape(-1), target.reshape(-1))
    if out is None or target is out:
        return target
    np.copyto(out, target)
    return out


@final
class SparseRows:
    """Entries, columns and row starts of a CSR matrix with 32-bit indices.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> rows = SparseRows(scipy.sparse.csr_array(np.array([[1.0, 2.0], [0.0, 3.0]])))
    >>> rows.product(np.ones(2), (2,), None)
    array([3., 3.])
    >>> rows.there_and_back(np.ones(2), np.ones(2))
    (array([3., 3.]), array([ 2., 10.]))
    """

    def __init__(self, matrix: Any) -> None:
        self.data, self.shape = matrix.data, matrix.shape
        narrow = matrix.shape[1] <= _NARROW
        self.indices = matrix.indices.astype(np.uint16) if narrow else matrix.indices.astype(np.int32).view(np.uint32)
        self.starts = matrix.indptr.astype(np.int32, copy=False).view(np.uint32)
        self.kind = str(self.indices.dtype)

    def product(self, v: Array, shape: Shape, out: Array | None) -> Array:
        """The matrix times v, in a shape."""
        work, rows = load("passes").product[self.kind], (self.data, self.indices, self.starts)
        return written(
            v, shape, out, lambda source, into: over_rows(
                lambda first, last: work(*rows, source, into, first, last), self.starts
            )
        )  # fmt: skip

    def products(self, stack: Array) -> Array:
        """The matrix times every row of a stack, two at once; the same bits as one by one."""
        flat = stack.reshape(len(stack), -1)
        made = np.empty((len(stack), self.shape[0]))
        work, rows = load("passes").two_products[self.kind], (self.data, self.indices, self.starts)
        for begin in range(0, len(stack), 2):
            some = flat[begin : begin + 2]
            source, into = np.zeros((self.shape[1], 2)), np.empty((self.shape[0], 2))
            source[:, : len(some)] = some.T
            over_rows(lambda first, last, s=source, t=into: work(*rows, s, t, first, last), self.starts)  # type: ignore[misc]
            made[begin : begin + 2] = into.T[: len(some)]
        return made

    def there_and_back(self, v: Array, shift: Array) -> tuple[Array, Array]:
        """A v and A^T (A v - shift), flat, in one pass over A."""
        size, entries = self.shape[0], int(self.starts[-1])
        parts = _PARTS if entries >= WORTHWHILE else 1
        edges = [0, *np.searchsorted(self.starts, np.arange(1, parts) * (entries / parts)).tolist(), size]
        source, minus = np.ascontiguousarray(v).reshape(-1), np.ascontiguousarray(shift).reshape(-1)
        out, back = np.empty(size), np.empty((parts, self.shape[1]))
        work, rows = load("passes").there_and_back[self.kind], (self.data, self.indices, self.starts)
        together([
            lambda i=i: work(*rows, source, minus, out, back[i], edges[i], edges[i + 1])  # type: ignore[misc]
            for i in range(parts)
        ])  # fmt: skip
        return out, back.sum(axis=0) if parts > 1 else back[0]
