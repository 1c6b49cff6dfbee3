"""Passes over a sparse matrix kept in pairs of neighbouring columns: projectors, interpolations.

A pair has one index and one vector load for two entries. The functions are those of `passes`, by the same names,
written again: made by one function of their row sums they would be closures, which Numba does not keep on disk.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from saddleslide.arrays import Array
from saddleslide.kernels.building import FLAT, INT, NONE, READ, READ_INDEX, READ_MATRIX, kernel
from saddleslide.kernels.pair_loops import add_pairs, add_to_two, pair_sum, two_pair_sums
from saddleslide.kernels.passes import MATRIX, for_indices

_COLUMNS = types.Array(types.int32, 1, "C", readonly=True)
_STARTS = types.uint32[::1]


@kernel(INT, _COLUMNS, READ_INDEX, _STARTS)
def count_pairs(columns: Any, starts: Any, pair_starts: Any) -> int:
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


def _pair_up(columns: Any, starts: Any, data: Array, last: int, pair_columns: Any, weights: Array) -> None:
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


def _product(data: Array, indices: Any, starts: Any, v: Array, out: Array, first: int, last: int) -> None:
    for i in range(first, last):
        out[i] = pair_sum(data, indices, v, np.uint64(starts[i]), np.uint64(starts[i + 1]))


def _two_products(data: Array, indices: Any, starts: Any, v: Array, out: Array, first: int, last: int) -> None:
    for i in range(first, last):
        sums = two_pair_sums(data, indices, v, np.uint64(starts[i]), np.uint64(starts[i + 1]))
        out[i, 0], out[i, 1] = sums


def _there_and_back(
    data: Array, indices: Any, starts: Any, v: Array, shift: Array, out: Array, back: Array, first: int, last: int
) -> None:
    back[:] = 0.0
    for i in range(first, last):
        k, end = np.uint64(starts[i]), np.uint64(starts[i + 1])
        total = pair_sum(data, indices, v, k, end)
        out[i] = total
        add_pairs(data, indices, total - shift[i], back, k, end)


def _two_grams(
    data: Array, indices: Any, starts: Any, v: Array, rows: Array, back: Array, first: int, last: int
) -> None:
    back[:] = 0.0
    for i in range(first, last):
        k, end = np.uint64(starts[i]), np.uint64(starts[i + 1])
        one, two = two_pair_sums(data, indices, v, k, end)
        add_to_two(data, indices, (rows[i] * one, rows[i] * two), back, k, end)


pair_up = {
    name: kernel(NONE, _COLUMNS, READ_INDEX, READ, INT, index[::1], FLAT)(_pair_up)
    for name, index in (("uint16", types.uint16), ("uint32", types.uint32))
}
product = for_indices(_product, READ, FLAT)
two_products = for_indices(_two_products, READ_MATRIX, MATRIX)
there_and_back = for_indices(_there_and_back, READ, READ, FLAT, FLAT)
two_grams = for_indices(_two_grams, READ_MATRIX, READ, MATRIX)
