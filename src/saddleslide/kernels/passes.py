"""Passes over a matrix by rows, which operators call. Sparse: one vector or two, A and A^T together; dense: the last.

Sums of a sparse row are made as in `products`: one vector or two, narrow indices or wide ones, give the same bits. Rows
of projectors and interpolations are kept in pairs of neighbouring columns, with one index and one vector load for two
entries. Everything here is compiled for either kind of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saddleslide.kernels.arguments import (
    Array,
    KnownRows,
    NewColumns,
    NewStarts,
    Offsets,
    Pairs,
    Read,
    ReadMatrix,
    Rows,
    Starts,
    Write,
    WriteMatrix,
)
from saddleslide.kernels.building import choose, helper, kernel, shared_kernel, summing
from saddleslide.kernels.pair_loops import add_pairs, pair_sum
from saddleslide.kernels.products import add_multiple, dot, row_sum


@helper
def _two_row_sums(data: Array, columns: Any, v: Array, k: Any, end: Any) -> tuple[float, float]:
    """`row_sum` of both columns of v: the second time, the row is in the cache."""
    return row_sum(data, columns, v[:, 0], k, end), row_sum(data, columns, v[:, 1], k, end)


@helper
def _add_row(data: Array, columns: Any, factor: float, out: Array, k: Any, end: Any) -> None:
    while k < end:
        out[columns[k]] += factor * data[k]
        k += np.uint64(1)


@helper
def _add_row_to_two(data: Array, columns: Any, factors: tuple[float, float], out: Array, k: Any, end: Any) -> None:
    left, right = factors
    while k < end:
        j, weight = columns[k], data[k]
        out[j, 0] += left * weight
        out[j, 1] += right * weight
        k += np.uint64(1)


def _sum(rows: KnownRows, v: Array, k: Any, end: Any) -> Any:
    """The product of v with entries k to end, which are those of a row: two numbers where v has two columns."""


def _add(rows: KnownRows, factor: Any, out: Array, k: Any, end: Any) -> None:
    """Add a multiple of such entries to `out`, or one to each of its two columns."""


# By the kind of rows and the columns of v or `out`.
_SUM: dict[Any, Any] = {
    (Rows, 1): lambda rows, v, k, end: row_sum(rows.data, rows.columns, v, k, end),
    (Rows, 2): lambda rows, v, k, end: _two_row_sums(rows.data, rows.columns, v, k, end),
    (Pairs, 1): lambda rows, v, k, end: pair_sum(rows.data, rows.columns, v, k, end),
}
_ADD: dict[Any, Any] = {
    (Rows, 1): lambda rows, factor, out, k, end: _add_row(rows.data, rows.columns, factor, out, k, end),
    (Rows, 2): lambda rows, factor, out, k, end: _add_row_to_two(rows.data, rows.columns, factor, out, k, end),
    (Pairs, 1): lambda rows, factor, out, k, end: add_pairs(rows.data, rows.columns, factor, out, k, end),
}
_SUM[Pairs, 2], _ADD[Pairs, 2] = _SUM[Pairs, 1], _ADD[Pairs, 1]
choose(_sum, lambda rows, v, k, end: _SUM[rows.instance_class, v.ndim])
choose(_add, lambda rows, factor, out, k, end: _ADD[rows.instance_class, out.ndim])


@shared_kernel
def product(rows: KnownRows, v: Read, out: Write, first: int, last: int) -> None:
    """Some rows of a sparse matrix times v."""
    for i in range(first, last):
        out[i] = _sum(rows, v, np.uint64(rows.starts[i]), np.uint64(rows.starts[i + 1]))


@shared_kernel
def two_products(rows: KnownRows, v: ReadMatrix, out: WriteMatrix, first: int, last: int) -> None:
    """Some rows times both columns of v."""
    for i in range(first, last):
        out[i, 0], out[i, 1] = _sum(rows, v, np.uint64(rows.starts[i]), np.uint64(rows.starts[i + 1]))


@shared_kernel
def there_and_back(rows: KnownRows, v: Read, shift: Read, out: Write, back: Write, first: int, last: int) -> None:
    """For some rows: out = A v, and back = A^T (A v - shift) of these rows alone, while a row is in the cache."""
    back[:] = 0.0
    for i in range(first, last):
        k, end = np.uint64(rows.starts[i]), np.uint64(rows.starts[i + 1])
        total = _sum(rows, v, k, end)
        out[i] = total
        _add(rows, total - shift[i], back, k, end)


@shared_kernel
def two_grams(rows: KnownRows, v: ReadMatrix, weights: Read, back: WriteMatrix, first: int, last: int) -> None:
    """A^T diag(weights) A times both columns of v, of some rows alone, in one pass."""
    back[:] = 0.0
    for i in range(first, last):
        k, end = np.uint64(rows.starts[i]), np.uint64(rows.starts[i + 1])
        left, right = _sum(rows, v, k, end)
        _add(rows, (weights[i] * left, weights[i] * right), back, k, end)


@kernel
def count_pairs(columns: Offsets, starts: Starts, pair_starts: NewStarts) -> int:
    """Where the pairs of each row begin; the number of all is returned.

    Branches on the columns would be guessed wrongly half of the time: there are none.
    """
    pairs = 0
    for i in range(starts.size - 1):
        pair_starts[i] = pairs
        second, before = 0, -2
        for k in range(starts[i], starts[i + 1]):
            # The second of a pair never begins one.
            second = (1 - second) & (columns[k] == before + 1)
            before = columns[k]
            pairs += 1 - second
    pair_starts[starts.size - 1] = pairs
    return pairs


@kernel
def pair_up(columns: Offsets, starts: Starts, data: Read, last: int, pair_columns: NewColumns, weights: Write) -> None:
    """Write the pairs; `weights` holds zeros. An entry alone is paired with a zero on its right.

    The one in the last column is paired with a zero on its left, so that no pair reaches beyond the vector.
    """
    pair = -1
    for i in range(starts.size - 1):
        second, before = 0, -2
        for k in range(starts[i], starts[i + 1]):
            second = (1 - second) & (columns[k] == before + 1)
            before = columns[k]
            pair += 1 - second
            right = second | (columns[k] == last)
            pair_columns[pair] = columns[k] - right
            weights[2 * pair + right] = data[k]


@summing
def _four_rows(A: Array, i: int, v: Array, shift: Array, out: Array, back: Array) -> None:
    """Both products with four rows at once: v and `back` are read for all of them together."""
    one, two, three, four = A[i], A[i + 1], A[i + 2], A[i + 3]
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for j in range(v.size):
        a += one[j] * v[j]
        b += two[j] * v[j]
        c += three[j] * v[j]
        d += four[j] * v[j]
    out[i], out[i + 1], out[i + 2], out[i + 3] = a, b, c, d
    a, b, c, d = a - shift[i], b - shift[i + 1], c - shift[i + 2], d - shift[i + 3]
    for j in range(v.size):
        back[j] += (a * one[j] + b * two[j]) + (c * three[j] + d * four[j])


@shared_kernel
def dense_there_and_back(A: ReadMatrix, v: Read, shift: Read, out: Write, back: Write) -> None:
    """Write out = A v and back = A^T (A v - shift) in one pass over a dense A."""
    rows = A.shape[0]
    back[:] = 0.0
    for i in range(0, rows - 3, 4):
        _four_rows(A, i, v, shift, out, back)
    for i in range(rows - rows % 4, rows):
        out[i] = dot(A[i], v)
        add_multiple(back, out[i] - shift[i], A[i])
