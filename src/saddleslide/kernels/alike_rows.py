"""Products with a sparse matrix whose rows are shifts of the rows before them: stencils, graph Laplacians of a grid.

Rows that are alike share one pattern, offsets from the diagonal and weights, so that next to nothing is read besides
the vectors, and neighbouring rows are summed side by side in vector code. `operators.sparse_rows` finds the patterns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saddleslide.kernels.arguments import TILE, Array, Patterns, Read, Write
from saddleslide.kernels.building import fusing, helper, shared_kernel


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


@shared_kernel
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
