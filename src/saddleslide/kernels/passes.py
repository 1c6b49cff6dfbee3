"""Passes over a matrix by rows, which operators call. Sparse: one vector or two, A and A^T together; dense: the last.

Sums of a sparse row are made as in `products`: one vector or two, narrow indices or wide ones, give the same bits. Rows
of projectors and interpolations are kept in pairs of neighbouring columns, with one index and one vector load for two
entries; these passes are compiled for either kind of rows. Rows that are shifts of the rows before them, those of
stencils, share one pattern, offsets from the diagonal and weights: next to nothing is read besides the vectors, and
neighbouring rows are summed side by side in vector code. `operators.sparse` finds pairs and patterns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saddleslide.kernels.arguments import (
    TILE,
    Array,
    Edges,
    KnownRows,
    NewColumns,
    NewStarts,
    Offsets,
    Pairs,
    Patterns,
    Read,
    ReadMatrix,
    Starts,
    Write,
    WriteMatrix,
)
from saddleslide.kernels.building import chosen, fusing, helper, kernel, parallel_kernel, summing
from saddleslide.kernels.pair_loops import add_pairs, pair_sum
from saddleslide.kernels.products import add_multiple, dot, row_sum


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


@chosen
def _sum(rows: Any, v: Any, k: Any, end: Any) -> Any:
    """The product of v with entries k to end, which are those of a row: two numbers where v has two columns."""
    if rows.instance_class is Pairs:
        return lambda rows, v, k, end: pair_sum(rows.data, rows.columns, v, k, end)
    if v.ndim == 1:
        return lambda rows, v, k, end: row_sum(rows.data, rows.columns, v, k, end)
    # The second time, the row is in the cache.
    return lambda rows, v, k, end: (
        row_sum(rows.data, rows.columns, v[:, 0], k, end),
        row_sum(rows.data, rows.columns, v[:, 1], k, end),
    )


@chosen
def _add(rows: Any, factor: Any, out: Any, k: Any, end: Any) -> Any:
    """Add a multiple of such entries to `out`, or one to each of its two columns."""
    if rows.instance_class is Pairs:
        return lambda rows, factor, out, k, end: add_pairs(rows.data, rows.columns, factor, out, k, end)
    if out.ndim == 1:
        return lambda rows, factor, out, k, end: _add_row(rows.data, rows.columns, factor, out, k, end)
    return lambda rows, factor, out, k, end: _add_row_to_two(rows.data, rows.columns, factor, out, k, end)


@parallel_kernel
def product(rows: KnownRows, v: Read, out: Write, first: int, last: int) -> None:
    """Some rows of a sparse matrix times v."""
    for i in range(first, last):
        out[i] = _sum(rows, v, np.uint64(rows.starts[i]), np.uint64(rows.starts[i + 1]))


@parallel_kernel
def two_products(rows: KnownRows, v: ReadMatrix, out: WriteMatrix, first: int, last: int) -> None:
    """Some rows times both columns of v."""
    for i in range(first, last):
        out[i, 0], out[i, 1] = _sum(rows, v, np.uint64(rows.starts[i]), np.uint64(rows.starts[i + 1]))


@parallel_kernel
def there_and_back(rows: KnownRows, v: Read, shift: Read, out: Write, back: Write, first: int, last: int) -> None:
    """For some rows: out = A v, and back = A^T (A v - shift) of these rows alone, while a row is in the cache."""
    back[:] = 0.0
    for i in range(first, last):
        k, end = np.uint64(rows.starts[i]), np.uint64(rows.starts[i + 1])
        total = _sum(rows, v, k, end)
        out[i] = total
        _add(rows, total - shift[i], back, k, end)


@parallel_kernel
def two_grams(rows: KnownRows, v: ReadMatrix, weights: Read, back: WriteMatrix, first: int, last: int) -> None:
    """A^T diag(weights) A times both columns of v, of some rows alone, in one pass."""
    back[:] = 0.0
    for i in range(first, last):
        k, end = np.uint64(rows.starts[i]), np.uint64(rows.starts[i + 1])
        left, right = _sum(rows, v, k, end)
        _add(rows, (weights[i] * left, weights[i] * right), back, k, end)


@kernel
def pair_up(
    columns: Offsets, starts: Starts, data: Read, last: int, pair_starts: NewStarts, pair_columns: NewColumns,
    weights: Write,
) -> int:  # fmt: skip
    """Where the pairs of each row begin, and the number of all; with room for them, in zeros, the pairs as well.

    An entry alone is paired with a zero on its right; the one in the last column with a zero on its left, so that no
    pair reaches beyond the vector. Branches on the columns would be guessed wrongly half of the time: there are none.
    """
    pair = -1
    for i in range(starts.size - 1):
        pair_starts[i] = pair + 1
        second, before = 0, -2
        for k in range(starts[i], starts[i + 1]):
            # The second of a pair never begins one.
            second = (1 - second) & (columns[k] == before + 1)
            before = columns[k]
            pair += 1 - second
            if weights.size > 0:
                right = second | (columns[k] == last)
                pair_columns[pair] = columns[k] - right
                weights[2 * pair + right] = data[k]
    pair_starts[starts.size - 1] = pair + 1
    return pair + 1


@helper
def _is_shifted(columns: Any, starts: Any, data: Array, i: int, j: int) -> bool:
    """Whether row i has the offsets from the diagonal and the weights of row j."""
    here, before = np.int64(starts[i]), np.int64(starts[j])
    length = np.int64(starts[i + 1]) - here
    if np.int64(starts[j + 1]) - before != length:
        return False
    for k in range(length):
        if columns[here + k] - i != columns[before + k] - j or data[here + k] != data[before + k]:
            return False
    return True


@kernel
def find_shifted(columns: Offsets, starts: Starts, data: Read, rows: Edges, models: Edges, found: NewStarts) -> None:
    """Whether each of these rows is like its model, but for a shift: 1 or 0."""
    for k in range(rows.size):
        found[k] = 1 if _is_shifted(columns, starts, data, rows[k], models[k]) else 0


@helper
def _mix(mark: int, part: Any) -> int:
    """A step of Fowler, Noll and Vo's hash on 32 bits, a word at a time."""
    mixed: int = ((mark ^ (part & 0xFFFFFFFF)) * 16777619) & 0xFFFFFFFF
    return mixed


@kernel
def mark_rows(columns: Offsets, starts: Starts, words: Offsets, rows: Edges, marks: NewStarts) -> None:
    """A number for each of these rows, the same for the same offsets and weights, whose halves are the `words`."""
    for k in range(rows.size):
        row, mark = rows[k], 2166136261
        for entry in range(np.int64(starts[row]), np.int64(starts[row + 1])):
            mark = _mix(mark, columns[entry] - row)
            mark = _mix(mark, np.int64(words[2 * entry]))
            mark = _mix(mark, np.int64(words[2 * entry + 1]))
        marks[k] = mark


@fusing
def _tile(row: int, offsets: Any, weights: Array, v: Array, sums: Array) -> None:
    """Sums of a pattern over a tile of rows from `row` on, four entries at a time."""
    for i in range(TILE):
        sums[i] = 0.0
    k = 0
    while k + 3 < offsets.size:
        a, b = v[np.uint64(row + offsets[k]) :], v[np.uint64(row + offsets[k + 1]) :]
        c, d = v[np.uint64(row + offsets[k + 2]) :], v[np.uint64(row + offsets[k + 3]) :]
        first, second, third, fourth = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        for i in range(TILE):
            sums[i] += (first * a[i] + second * b[i]) + (third * c[i] + fourth * d[i])
        k += 4
    while k < offsets.size:
        a, weight = v[np.uint64(row + offsets[k]) :], weights[k]
        for i in range(TILE):
            sums[i] += weight * a[i]
        k += 1


@helper
def _lone(row: int, offsets: Any, weights: Array, v: Array) -> float:
    """The sum of one row, in four parts: one sum would wait for itself at every term."""
    a, b, c, d, k = 0.0, 0.0, 0.0, 0.0, 0
    while k + 3 < offsets.size:
        a += weights[k] * v[np.uint64(row + offsets[k])]
        b += weights[k + 1] * v[np.uint64(row + offsets[k + 1])]
        c += weights[k + 2] * v[np.uint64(row + offsets[k + 2])]
        d += weights[k + 3] * v[np.uint64(row + offsets[k + 3])]
        k += 4
    while k < offsets.size:
        a += weights[k] * v[np.uint64(row + offsets[k])]
        k += 1
    return (a + b) + (c + d)


@parallel_kernel
def alike_product(patterns: Patterns, v: Read, out: Write, sums: Write, first: int, last: int) -> None:
    """Write out = A v for the rows of some runs.

    The last tile of a run ends where the run does, over rows that are done already: they come out the same.
    """
    begins, numbers, starts, offsets, weights = patterns
    for r in range(first, last):
        row, end, p = begins[r], begins[r + 1], numbers[r]
        own, heavy = offsets[starts[p] : starts[p + 1]], weights[starts[p] : starts[p + 1]]
        if end - row < TILE:
            for i in range(row, end):
                out[i] = _lone(i, own, heavy, v)
            continue
        while row < end:
            row = min(row, end - TILE)
            _tile(row, own, heavy, v, sums)
            for i in range(TILE):
                out[row + i] = sums[i]
            row += TILE


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


@parallel_kernel
def dense_there_and_back(A: ReadMatrix, v: Read, shift: Read, out: Write, back: Write) -> None:
    """Write out = A v and back = A^T (A v - shift) in one pass over a dense A."""
    rows = A.shape[0]
    back[:] = 0.0
    for i in range(0, rows - 3, 4):
        _four_rows(A, i, v, shift, out, back)
    for i in range(rows - rows % 4, rows):
        out[i] = dot(A[i], v)
        add_multiple(back, out[i] - shift[i], A[i])
