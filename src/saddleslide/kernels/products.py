"""Q(x, y) = (B^T y, -B x) for compiled loops: a coupling is a tuple (kind, rows, columns, matrix, CSR, CSR of B^T)."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba import types

from saddleslide.arrays import Array
from saddleslide.kernels.building import FLAT, INT, NONE, READ, READ_INDEX, READ_MATRIX, helper, kernel, summing
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
    """Sum of data[k] v[indices[k]] up to `end`, in four parts: one sum would wait for itself at every term."""
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    while k + three < end:
        a += data[k] * v[indices[k]]
        b += data[k + one] * v[indices[k + one]]
        c += data[k + two] * v[indices[k + two]]
        d += data[k + three] * v[indices[k + three]]
        k += four
    while k < end:
        a += data[k] * v[indices[k]]
        k += one
    return (a + b) + (c + d)


@helper
def _sparse(data: Array, indices: Any, starts: Any, v: Array, out: Array, sign: float) -> None:
    for i in range(out.size):
        out[i] = sign * _row_sum(data, indices, v, np.uint64(starts[i]), np.uint64(starts[i + 1]))


@kernel(NONE, READ, READ_INDEX, READ_INDEX, READ, FLAT)
def sparse_product(data: Array, indices: Any, starts: Any, v: Array, out: Array) -> None:
    """A sparse matrix, given by rows, times v."""
    _sparse(data, indices, starts, v, out, 1.0)


@helper
def _differences(rows: int, columns: int, x: Array, y: Array, out_x: Array, out_y: Array) -> None:
    """Row by row; the last column and the last row of differences are 0."""
    size = rows * columns
    out_x[:] = 0.0
    for i in range(rows):
        here, there = i * columns, (i + 1) * columns
        inner = there - 1
        right, left, across = x[here + 1 : there], x[here:inner], y[here:inner]
        flow, low, high = out_y[here:inner], out_x[here:inner], out_x[here + 1 : there]
        for j in range(flow.size):
            flow[j] = left[j] - right[j]
        for j in range(flow.size):
            low[j] -= across[j]
        for j in range(flow.size):
            high[j] += across[j]
        out_y[inner] = 0.0
        below = out_y[size + here : size + there]
        if i + 1 == rows:
            below[:] = 0.0
            continue
        upper, lower = x[here:there], x[there : there + columns]
        down, to_upper, to_lower = y[size + here : size + there], out_x[here:there], out_x[there : there + columns]
        for j in range(columns):
            below[j] = upper[j] - lower[j]
        for j in range(columns):
            to_upper[j] -= down[j]
        for j in range(columns):
            to_lower[j] += down[j]


@helper
def operator(coupling: CompiledCoupling, v: Array, n: int, out: Array) -> None:
    """Write out = (B^T y, -B x) for v = (x, y), where x has n entries."""
    kind, rows, columns, matrix, data, indices, starts, data_t, indices_t, starts_t = coupling
    x, y, out_x, out_y = v[:n], v[n:], out[:n], out[n:]
    if kind == DIFFERENCES:
        _differences(rows, columns, x, y, out_x, out_y)
    elif kind == DENSE:
        _dense(matrix, x, y, out_x, out_y)
    else:
        _sparse(data, indices, starts, x, out_y, -1.0)
        _sparse(data_t, indices_t, starts_t, y, out_x, 1.0)
