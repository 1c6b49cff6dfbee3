"""The innermost level for finite differences: the steps of `coupling_sweep`, fused, several in one pass over memory.

A picture is one long row here: the neighbour below is a shift by its width, the neighbour across a shift by 1. Dual
entries that no difference reaches, at the end of every row and in the last row, are kept apart in `ends`; zeros stand
in their places in z and in `moved`, which is what the neighbours should see.

`moved` holds z - z~ for the rows that are at work. z is put right in place one row behind z~, where all neighbours are
known. Step j + 1 follows step j two rows behind, so that `together` steps share one pass, with their rows in cache.
"""

from __future__ import annotations

from saddleslide.arrays.base import Array
from saddleslide.kernels.arguments import Above, Bands, KnownSet, Level, Parts, PictureBuffers, Write
from saddleslide.kernels.building import difference_kernel, helper
from saddleslide.kernels.difference_rows import Band, ahead_x, ahead_y, correct_rows
from saddleslide.kernels.kinds import BALL, LAST
from saddleslide.kernels.sets import project_further
from saddleslide.kernels.sweeps import step_factors
from saddleslide.kernels.terms import fold_levels


@helper
def _move_up(moved: Array, count: int, columns: int, m: int) -> None:
    """Take the last two rows of each plane to its top, where the next rows find them."""
    for plane in range(3):
        top = plane * m + (1 if plane > 0 else 0)
        to, of = moved[top : top + 2 * columns], moved[top + count * columns : top + (count + 2) * columns]
        for i in range(to.size):
            to[i] = of[i]


@helper
def exchange(rows: int, columns: int, z: Array, ends: Array) -> None:
    """Take the entries that no difference reaches out of z, or put them back: zeros change places with them."""
    n = rows * columns
    for r in range(rows):
        k = n + (r + 1) * columns - 1
        z[k], ends[r] = ends[r], z[k]
    for j in range(columns):
        k = 3 * n - columns + j
        z[k], ends[rows + j] = ends[rows + j], z[k]


@helper
def _project_further(rows: int, columns: int, X: KnownSet, Y: KnownSet, z: Array, ends: Array) -> None:
    """Sets that couple all entries of a block."""
    n = rows * columns
    if X.kind >= BALL:
        project_further(z[:n], X)
    if Y.kind >= BALL:
        exchange(rows, columns, z, ends)
        project_further(z[n:], Y)
        exchange(rows, columns, z, ends)


@difference_kernel
def difference_sweep(
    parts: Parts, bands: Bands, level: Level, above: Above, z: Write, average: Write, buffers: PictureBuffers
) -> None:
    """All steps of a level of finite differences; `z` and `average` are updated in place, the rest is scratch.

    `together` steps make one pass, `height` rows at a time; all rows, and one step, where a set couples entries. Per
    step `moved` holds three planes of these rows, two more rows in each unless these are all, and one entry. `nothing`
    is a row of zeros, and `ends` is zero before and after.
    """
    rows, columns = parts.coupling.rows, parts.coupling.columns
    T, spares, ends, moved = level.alphas.size, level.spares, buffers.ends, buffers.moved
    kept = 0 if bands.height == rows else 2
    m = (bands.height + kept) * columns
    fold_levels(buffers.fold, above, parts.f, parts.g, parts.n)
    exchange(rows, columns, z, ends)
    for first in range(0, T, bands.together):
        group = min(bands.together, T - first)
        for moment in range(0, rows + 2 * (group - 1), bands.height):
            for k in range(group):
                # Behind the corrected rows of the step before.
                row, end = max(moment - 2 * k, 0), min(moment - 2 * k + bands.height, rows)
                if end <= row:
                    continue
                factors = step_factors(level.alphas[first + k], level, above)
                own = moved[k * (3 * m + 1) : (k + 1) * (3 * m + 1)]
                strip = PictureBuffers(buffers.fold, own, ends, buffers.nothing)
                band, at_start = Band(row, end - row), spares if first + k == 0 else 0
                ahead_x(band, kept, at_start, factors[0], parts, z, average, strip)
                ahead_y(band, kept, at_start, factors[1], parts, z, average, strip)
                # One row behind, and to the end at the end.
                begin, close = max(row - 1, 0), rows if end == rows else end - 1
                if close > begin and not (spares & LAST and first + k == T - 1):
                    at = (kept + begin - row) * columns
                    correct_rows(Band(begin, close - begin), at, factors, parts, z, strip)
                if kept:
                    _move_up(own, end - row, columns, m)
        _project_further(rows, columns, parts.X, parts.Y, z, ends)
    exchange(rows, columns, z, ends)
