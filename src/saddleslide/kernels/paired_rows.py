"""Passes over a sparse matrix kept in pairs of neighbouring columns: projectors, interpolations.

A pair has one index and one vector load for two entries. The functions are those of `passes`, by the same names,
written again: made by one function of their row sums they would be closures, which Numba does not keep on disk.
"""

from __future__ import annotations

import numpy as np

from saddleslide.kernels.arguments import (
    NewColumns,
    NewStarts,
    Offsets,
    Read,
    ReadMatrix,
    Rows,
    Starts,
    Write,
    WriteMatrix,
)
from saddleslide.kernels.building import kernel, narrow_kernel, shared_kernel
from saddleslide.kernels.pair_loops import add_pairs, add_to_two, pair_sum, two_pair_sums


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


def _pair_up(columns: Offsets, starts: Starts, data: Read, last: int, pair_columns: NewColumns, weights: Write) -> None:
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


def _product(rows: Rows, v: Read, out: Write, first: int, last: int) -> None:
    data, columns, starts = rows
    for i in range(first, last):
        out[i] = pair_sum(data, columns, v, np.uint64(starts[i]), np.uint64(starts[i + 1]))


def _two_products(rows: Rows, v: ReadMatrix, out: WriteMatrix, first: int, last: int) -> None:
    data, columns, starts = rows
    for i in range(first, last):
        sums = two_pair_sums(data, columns, v, np.uint64(starts[i]), np.uint64(starts[i + 1]))
        out[i, 0], out[i, 1] = sums


def _there_and_back(rows: Rows, v: Read, shift: Read, out: Write, back: Write, first: int, last: int) -> None:
    data, columns, starts = rows
    back[:] = 0.0
    for i in range(first, last):
        k, end = np.uint64(starts[i]), np.uint64(starts[i + 1])
        total = pair_sum(data, columns, v, k, end)
        out[i] = total
        add_pairs(data, columns, total - shift[i], back, k, end)


def _two_grams(rows: Rows, v: ReadMatrix, weights: Read, back: WriteMatrix, first: int, last: int) -> None:
    data, columns, starts = rows
    back[:] = 0.0
    for i in range(first, last):
        k, end = np.uint64(starts[i]), np.uint64(starts[i + 1])
        one, two = two_pair_sums(data, columns, v, k, end)
        add_to_two(data, columns, (weights[i] * one, weights[i] * two), back, k, end)


pair_up_uint16, pair_up_uint32 = narrow_kernel(_pair_up), shared_kernel(_pair_up)
product_uint16, product_uint32 = narrow_kernel(_product), shared_kernel(_product)
two_products_uint16, two_products_uint32 = narrow_kernel(_two_products), shared_kernel(_two_products)
there_and_back_uint16, there_and_back_uint32 = narrow_kernel(_there_and_back), shared_kernel(_there_and_back)
two_grams_uint16, two_grams_uint32 = narrow_kernel(_two_grams), shared_kernel(_two_grams)
