"""Passes over a matrix by rows. Sparse: narrow indices, two vectors at once, A and A^T together; dense: the last.

Sums of a sparse row are made as in `products`: one vector or two, narrow indices or wide ones, give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from saddleslide.arrays import Array
from saddleslide.kernels.building import FLAT, INT, NONE, READ, READ_INDEX, READ_MATRIX, helper, kernel, summing
from saddleslide.kernels.products import _row_sum, sparse_product

_NARROW = types.Array(types.uint16, 1, "C", readonly=True)
MATRIX = types.float64[:, ::1]


def _product(data: Array, indices: Any, starts: Any, v: Array, out: Array, first: int, last: int) -> None:
    """Some rows of a sparse matrix times v."""
    for i in range(first, last):
        out[i] = _row_sum(data, indices, v, np.uint64(starts[i]), np.uint64(starts[i + 1]))


@helper
def _two_sums(data: Array, indices: Any, v: Array, k: Any, end: Any) -> tuple[float, float]:
    """`_row_sum` of both columns of v: the second time, the row is in the cache."""
    return _row_sum(data, indices, v[:, 0], k, end), _row_sum(data, indices, v[:, 1], k, end)


def _two_products(data: Array, indices: Any, starts: Any, v: Array, out: Array, first: int, last: int) -> None:
    """The same for both columns of v."""
    for i in range(first, last):
        sums = _two_sums(data, indices, v, np.uint64(starts[i]), np.uint64(starts[i + 1]))
        out[i, 0], out[i, 1] = sums


def _there_and_back(
    data: Array, indices: Any, starts: Any, v: Array, shift: Array, out: Array, back: Array, first: int, last: int
) -> None:
    """For some rows: out = A v, and back = A^T (A v - shift) of these rows alone, while a row is in the cache."""
    one = np.uint64(1)
    back[:] = 0.0
    for i in range(first, last):
        k, end = np.uint64(starts[i]), np.uint64(starts[i + 1])
        total = _row_sum(data, indices, v, k, end)
        out[i] = total
        weight = total - shift[i]
        while k < end:
            back[indices[k]] += weight * data[k]
            k += one


def _two_grams(
    data: Array, indices: Any, starts: Any, v: Array, rows: Array, back: Array, first: int, last: int
) -> None:
    """A^T diag(rows) A times both columns of v, of some rows alone, in one pass."""
    one = np.uint64(1)
    back[:] = 0.0
    for i in range(first, last):
        k, end = np.uint64(starts[i]), np.uint64(starts[i + 1])
        left, right = _two_sums(data, indices, v, k, end)
        left, right = rows[i] * left, rows[i] * right
        while k < end:
            j, weight = indices[k], data[k]
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


@kernel(NONE, READ_MATRIX, READ, READ, FLAT, FLAT, nogil=True)
def dense_there_and_back(A: Array, v: Array, shift: Array, out: Array, back: Array) -> None:
    """Write out = A v and back = A^T (A v - shift) in one pass over a dense A."""
    rows = A.shape[0]
    back[:] = 0.0
    for i in range(0, rows - 3, 4):
        _four_rows(A, i, v, shift, out, back)
    for i in range(rows - rows % 4, rows):
        _one_row(A, i, v, shift, out, back)


def for_indices(function: Callable[..., None], *vectors: Any) -> dict[str, Callable[..., None]]:
    """The function of rows, vectors and a range of rows for indices of 16 and of 32 bits, by the name of their type."""
    return {
        str(index.dtype): kernel(NONE, READ, index, READ_INDEX, *vectors, INT, INT, nogil=True)(function)
        for index in (_NARROW, READ_INDEX)
    }


product = {"uint16": kernel(NONE, READ, _NARROW, READ_INDEX, READ, FLAT, INT, INT, nogil=True)(_product)}
product["uint32"] = sparse_product
two_products = for_indices(_two_products, READ_MATRIX, MATRIX)
there_and_back = for_indices(_there_and_back, READ, READ, FLAT, FLAT)
two_grams = for_indices(_two_grams, READ_MATRIX, READ, MATRIX)
