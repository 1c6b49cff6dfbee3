"""Passes over a matrix by rows. Sparse: narrow indices, two vectors at once, A and A^T together; dense: the last.

Sums of a sparse row are made as in `products`: one vector or two, narrow indices or wide ones, give the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.kernels.arguments import Read, ReadMatrix, Rows, Write, WriteMatrix
from saddleslide.kernels.building import helper, narrow_kernel, shared_kernel, summing
from saddleslide.kernels.products import row_sum


def _product(rows: Rows, v: Read, out: Write, first: int, last: int) -> None:
    """Some rows of a sparse matrix times v."""
    data, columns, starts = rows
    for i in range(first, last):
        out[i] = row_sum(data, columns, v, np.uint64(starts[i]), np.uint64(starts[i + 1]))


@helper
def _two_sums(data: Array, columns: Any, v: Array, k: Any, end: Any) -> tuple[float, float]:
    """`row_sum` of both columns of v: the second time, the row is in the cache."""
    return row_sum(data, columns, v[:, 0], k, end), row_sum(data, columns, v[:, 1], k, end)


def _two_products(rows: Rows, v: ReadMatrix, out: WriteMatrix, first: int, last: int) -> None:
    """The same for both columns of v."""
    data, columns, starts = rows
    for i in range(first, last):
        sums = _two_sums(data, columns, v, np.uint64(starts[i]), np.uint64(starts[i + 1]))
        out[i, 0], out[i, 1] = sums


def _there_and_back(rows: Rows, v: Read, shift: Read, out: Write, back: Write, first: int, last: int) -> None:
    """For some rows: out = A v, and back = A^T (A v - shift) of these rows alone, while a row is in the cache."""
    (data, columns, starts), one = rows, np.uint64(1)
    back[:] = 0.0
    for i in range(first, last):
        k, end = np.uint64(starts[i]), np.uint64(starts[i + 1])
        total = row_sum(data, columns, v, k, end)
        out[i] = total
        weight = total - shift[i]
        while k < end:
            back[columns[k]] += weight * data[k]
            k += one


def _two_grams(rows: Rows, v: ReadMatrix, weights: Read, back: WriteMatrix, first: int, last: int) -> None:
    """A^T diag(weights) A times both columns of v, of some rows alone, in one pass."""
    (data, columns, starts), one = rows, np.uint64(1)
    back[:] = 0.0
    for i in range(first, last):
        k, end = np.uint64(starts[i]), np.uint64(starts[i + 1])
        left, right = _two_sums(data, columns, v, k, end)
        left, right = weights[i] * left, weights[i] * right
        while k < end:
            j, weight = columns[k], data[k]
            back[j, 0] += left * weight
            back[j, 1] += right * weight
            k += one


@summing
def _four_rows(A: Array, i: int, v: Array, shift: Array, out: Array, back: Array) -> None:
    """The same for four dense rows at once: v and `back` are read for all of them together."""
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


@summing
def _one_row(A: Array, i: int, v: Array, shift: Array, out: Array, back: Array) -> None:
    row, total = A[i], 0.0
    for j in range(v.size):
        total += row[j] * v[j]
    out[i] = total
    for j in range(v.size):
        back[j] += (total - shift[i]) * row[j]


@shared_kernel
def dense_there_and_back(A: ReadMatrix, v: Read, shift: Read, out: Write, back: Write) -> None:
    """Write out = A v and back = A^T (A v - shift) in one pass over a dense A."""
    rows = A.shape[0]
    back[:] = 0.0
    for i in range(0, rows - 3, 4):
        _four_rows(A, i, v, shift, out, back)
    for i in range(rows - rows % 4, rows):
        _one_row(A, i, v, shift, out, back)


# By the type of the columns, which is the end of the name.
product_uint16, product_uint32 = narrow_kernel(_product), shared_kernel(_product)
two_products_uint16, two_products_uint32 = narrow_kernel(_two_products), shared_kernel(_two_products)
there_and_back_uint16, there_and_back_uint32 = narrow_kernel(_there_and_back), shared_kernel(_there_and_back)
two_grams_uint16, two_grams_uint32 = narrow_kernel(_two_grams), shared_kernel(_two_grams)
