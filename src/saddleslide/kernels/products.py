"""Q(x, y) = (B^T y, -B x) for compiled loops, chosen by the type of the coupling when a loop is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from saddleslide.kernels.arguments import ZERO_X, ZERO_Y, Array, Dense, Differences, Edges, Read, Rows, Sparse, Write
from saddleslide.kernels.building import chosen, helper, inlined, kernel, summing


@summing
def dot(u: Array, v: Array) -> float:
    """The inner product."""
    total = 0.0
    for i in range(v.size):
        total += u[i] * v[i]
    return total


@summing
def add_multiple(out: Array, weight: float, v: Array) -> None:
    """Add a multiple of v to `out`."""
    for i in range(v.size):
        out[i] += weight * v[i]


@inlined
def row_sum(data: Array, indices: Any, v: Array, k: Any, end: Any) -> float:
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


@kernel
def difference_forward(rows: int, columns: int, sign: float, x: Read, out: Write) -> None:
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


@kernel
def difference_adjoint(rows: int, columns: int, y: Read, out: Write) -> None:
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


@kernel
def grid_forward(grid: Edges, width: int, sign: float, x: Read, out: Write) -> None:
    """Write out = sign * B x on a grid with `width` numbers at every point, the block of the last axis first."""
    size, stride = x.size, width
    for block in range(grid.size):
        length = stride * grid[grid.size - 1 - block]
        inside = length - stride
        for start in range(0, size, length):
            here, ahead = x[start : start + inside], x[start + stride : start + length]
            target = out[block * size + start : block * size + start + length]
            for i in range(inside):
                target[i] = sign * (ahead[i] - here[i])
            target[inside:] = 0.0
        stride = length


@kernel
def grid_adjoint(grid: Edges, width: int, y: Read, out: Write) -> None:
    """Write out = B^T y on a grid, the sums in the order of `FiniteDifferences.adjoint`, its twin in NumPy."""
    size, stride = out.size, width
    out[:] = 0.0
    for block in range(grid.size):
        length = stride * grid[grid.size - 1 - block]
        inside = length - stride
        for start in range(0, size, length):
            here, ahead = out[start : start + inside], out[start + stride : start + length]
            difference = y[block * size + start : block * size + start + inside]
            for i in range(inside):
                ahead[i] += difference[i]
            for i in range(inside):
                here[i] -= difference[i]
        stride = length


@helper
def _dense_forward(matrix: Array, x: Array, out: Array) -> None:
    for i in range(matrix.shape[0]):
        out[i] = -dot(matrix[i], x)


@helper
def _sparse_product(rows: Rows, v: Array, out: Array, sign: float) -> None:
    data, columns, starts = rows
    for i in range(out.size):
        out[i] = sign * row_sum(data, columns, v, np.uint64(starts[i]), np.uint64(starts[i + 1]))


@chosen
def forward(coupling: Any, x: Any, out: Any) -> Any:
    """Write out = -B x."""
    return {
        Dense: lambda coupling, x, out: _dense_forward(coupling.matrix, x, out),
        Sparse: lambda coupling, x, out: _sparse_product(coupling.matrix, x, out, -1.0),
        Differences: lambda coupling, x, out: difference_forward(coupling.rows, coupling.columns, -1.0, x, out),
    }[coupling.instance_class]


@helper
def _dense_adjoint(matrix: Array, y: Array, out: Array) -> None:
    out[:] = 0.0
    for i in range(matrix.shape[0]):
        add_multiple(out, y[i], matrix[i])


@chosen
def adjoint(coupling: Any, y: Any, out: Any) -> Any:
    """Write out = B^T y."""
    return {
        Dense: lambda coupling, y, out: _dense_adjoint(coupling.matrix, y, out),
        Sparse: lambda coupling, y, out: _sparse_product(coupling.transpose, y, out, 1.0),
        Differences: lambda coupling, y, out: difference_adjoint(coupling.rows, coupling.columns, y, out),
    }[coupling.instance_class]


@helper
def _dense_operator(matrix: Array, v: Array, n: int, out: Array) -> None:
    """Both products in one pass over the matrix."""
    x, y, out_x, out_y = v[:n], v[n:], out[:n], out[n:]
    out_x[:] = 0.0
    for i in range(matrix.shape[0]):
        out_y[i] = -dot(matrix[i], x)
        add_multiple(out_x, y[i], matrix[i])


@helper
def _one_by_one(coupling: Any, v: Array, n: int, out: Array) -> None:
    adjoint(coupling, v[n:], out[:n])
    forward(coupling, v[:n], out[n:])


@chosen
def operator(coupling: Any, v: Any, n: Any, out: Any) -> Any:
    """Write out = (B^T y, -B x) for v = (x, y), where x has n entries."""
    if coupling.instance_class is Dense:
        return lambda coupling, v, n, out: _dense_operator(coupling.matrix, v, n, out)
    return lambda coupling, v, n, out: _one_by_one(coupling, v, n, out)


@helper
def first_operator(coupling: Any, v: Array, n: int, spares: int, out: Array) -> None:
    """Q(v), at a start without the products that are known there."""
    if not spares & (ZERO_X | ZERO_Y):
        operator(coupling, v, n, out)
        return
    if spares & ZERO_Y:
        out[:n] = 0.0
    else:
        adjoint(coupling, v[n:], out[:n])
    if spares & ZERO_X:
        out[n:] = 0.0
    else:
        forward(coupling, v[:n], out[n:])
