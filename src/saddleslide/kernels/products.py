"""Q(x, y) = (B^T y, -B x) for compiled loops: a coupling is a tuple (kind, rows, columns, matrix, CSR, CSR of B^T)."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba import types

from saddleslide.arrays import Array
from saddleslide.kernels.building import FLAT, FLOAT, INT, NONE, READ, READ_INDEX, READ_MATRIX, helper, kernel, summing
from saddleslide.kernels.kinds import DENSE, DIFFERENCES

COUPLING = types.Tuple(
    (INT, INT, INT, READ_MATRIX, READ, READ_INDEX, READ_INDEX, READ, READ_INDEX, READ_INDEX)
)  # fmt: skip
CompiledCoupling: TypeAlias = tuple[int, int, int, Array, Array, Any, Any, Array, Any, Any]


@summing
def _dense(matrix: Array, x: Array, y: Array, out_x: Array, out_y: Array) -> None:
    """Both products in one pass over the matrix."""
    out_x[:] = 0.0
    for i in range(matrix.shape[0]):
        row, weight, total = matrix[i], y[i], 0.0
        for j in range(row.size):
            total += row[j] * x[j]
        for j in range(row.size):
            out_x[j] += weight * row[j]
        out_y[i] = -total


@helper
def _row_sum(data: Array, indices: Any, v: Array, k: Any, end: Any) -> float:
    """Sum of data[k] v[indices[k]] up to `end`, in eight parts: one sum would wait for itself at every term."""
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    five, six, seven, eight = np.uint64(5), np.uint64(6), np.uint64(7), np.uint64(8)
    a, b, c, d, e, f, g, h = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    while k + seven < end:
        a += data[k] * v[indices[k]]
        b += data[k + one] * v[indices[k + one]]
        c += data[k + two] * v[indices[k + two]]
        d += data[k + three] * v[indices[k + three]]
        e += data[k + four] * v[indices[k + four]]
        f += data[k + five] * v[indices[k + five]]
        g += data[k + six] * v[indices[k + six]]
        h += data[k + seven] * v[indices[k + seven]]
        k += eight
    while k + three < end:
        a += data[k] * v[indices[k]]
        b += data[k + one] * v[indices[k + one]]
        c += data[k + two] * v[indices[k + two]]
        d += data[k + three] * v[indices[k + three]]
        k += four
    while k < end:
        a += data[k] * v[indices[k]]
        k += one
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


@helper
def _sparse(
    data: Array, indices: Any, starts: Any, v: Array, out: Array, sign: float, first: int, last: int
) -> None:  # fmt: skip
    for i in range(first, last):
        out[i] = sign * _row_sum(data, indices, v, np.uint64(starts[i]), np.uint64(starts[i + 1]))


@kernel(NONE, READ, READ_INDEX, READ_INDEX, READ, FLAT, INT, INT, nogil=True)
def sparse_product(data: Array, indices: Any, starts: Any, v: Array, out: Array, first: int, last: int) -> None:
    """Some rows of a sparse matrix times v."""
    _sparse(data, indices, starts, v, out, 1.0, first, last)


@kernel(NONE, INT, INT, FLOAT, READ, FLAT)
def difference_forward(rows: int, columns: int, sign: float, x: Array, out: Array) -> None:
    """Write out = sign * B x, a picture being one long row; the last column and the last row of differences are 0."""
    size, inside = rows * columns, (rows - 1) * columns
    across, below = out[:size], out[size:]
    right, lower = x[1:], x[columns:]
    for i in range(size - 1):
        across[i] = sign * (right[i] - x[i])
    for i in range(columns - 1, size, columns):
        across[i] = 0.0
    for i in range(inside):
        below[i] = sign * (lower[i] - x[i])
    below[inside:] = 0.0


@kernel(NONE, INT, INT, READ, FLAT)
def difference_adjoint(rows: int, columns: int, y: Array, out: Array) -> None:
    """Write out = B^T y, row by row across, then in one long row down."""
    size, inside = rows * columns, (rows - 1) * columns
    across, below, lower, upper = y[:size], y[size:], out[columns:], out[:inside]
    for i in range(size):
        out[i] = -across[i]
    shifted = out[1:]
    for i in range(size - 1):
        shifted[i] += across[i]
    for i in range(columns - 1, size, columns):
        # A row has no difference beyond its end: neither here nor into the next row.
        out[i] = across[i - 1] if columns > 1 else 0.0
        if i + 1 < size and columns > 1:
            out[i + 1] = -across[i + 1]
    for i in range(inside):
        upper[i] -= below[i]
    for i in range(inside):
        lower[i] += below[i]


@summing
def _dense_forward(matrix: Array, x: Array, out: Array) -> None:
    for i in range(matrix.shape[0]):
        row, total = matrix[i], 0.0
        for j in range(row.size):
            total += row[j] * x[j]
        out[i] = -total


@summing
def _dense_adjoint(matrix: Array, y: Array, out: Array) -> None:
    out[:] = 0.0
    for i in range(matrix.shape[0]):
        row, weight = matrix[i], y[i]
        for j in range(row.size):
            out[j] += weight * row[j]


@helper
def forward(coupling: CompiledCoupling, x: Array, out: Array) -> None:
    """Write out = -B x."""
    kind, rows, columns, matrix, data, indices, starts, _, _, _ = coupling
    if kind == DIFFERENCES:
        difference_forward(rows, columns, -1.0, x, out)
    elif kind == DENSE:
        _dense_forward(matrix, x, out)
    else:
        _sparse(data, indices, starts, x, out, -1.0, 0, out.size)


@helper
def adjoint(coupling: CompiledCoupling, y: Array, out: Array) -> None:
    """Write out = B^T y."""
    kind, rows, columns, matrix, _, _, _, data, indices, starts = coupling
    if kind == DIFFERENCES:
        difference_adjoint(rows, columns, y, out)
    elif kind == DENSE:
        _dense_adjoint(matrix, y, out)
    else:
        _sparse(data, indices, starts, y, out, 1.0, 0, out.size)


@helper
def operator(coupling: CompiledCoupling, v: Array, n: int, out: Array) -> None:
    """Write out = (B^T y, -B x) for v = (x, y), where x has n entries."""
    if coupling[0] == DENSE:
        _dense(coupling[3], v[:n], v[n:], out[:n], out[n:])
    else:
        adjoint(coupling, v[n:], out[:n])
        forward(coupling, v[:n], out[n:])
