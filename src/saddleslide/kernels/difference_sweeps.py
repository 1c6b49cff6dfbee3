"""The innermost level for finite differences: the steps of `coupling_sweep`, fused, several in one pass over memory.

A picture is one long row here: the neighbour below is a shift by its width, the neighbour across a shift by 1. Dual
entries that no difference reaches, at the end of every row and in the last row, are kept apart in `ends`; zeros stand
in their places in z and in `moved`, which is what the neighbours should see.

`moved` holds z - z~ for the rows that are at work. z is put right in place one row behind z~, where all neighbours are
known. Step j + 1 follows step j two rows behind, so that `together` steps share one pass, with their rows in cache.
"""

from __future__ import annotations

from saddleslide.arrays import Array
from saddleslide.kernels.building import FLAT, FLOAT, INT, NONE, READ, helper, kernel
from saddleslide.kernels.difference_rows import ahead_x, ahead_y, correct_rows
from saddleslide.kernels.kinds import BALL, LAST
from saddleslide.kernels.sets import SET, CompiledSet, project_further
from saddleslide.kernels.sweeps import step_scalars
from saddleslide.kernels.terms import TERM, CompiledTerm, fold_levels


@helper
def _move_up(moved: Array, count: int, columns: int, m: int) -> None:
    """Take the last two rows of each plane to its top, where the next rows find them."""
    for plane in range(3):
        top = plane * m + (1 if plane > 0 else 0)
        to, of = moved[top : top + 2 * columns], moved[top + count * columns : top + (count + 2) * columns]
        for i in range(to.size):
            to[i] = of[i]


@helper
def _exchange(rows: int, columns: int, z: Array, ends: Array) -> None:
    """Take the entries that no difference reaches out of z, or put them back: zeros change places with them."""
    n = rows * columns
    for r in range(rows):
        k = n + (r + 1) * columns - 1
        z[k], ends[r] = ends[r], z[k]
    for j in range(columns):
        k = 3 * n - columns + j
        z[k], ends[rows + j] = ends[rows + j], z[k]


@helper
def _project_further(rows: int, columns: int, X: CompiledSet, Y: CompiledSet, z: Array, ends: Array) -> None:
    """Sets that couple all entries of a block."""
    n = rows * columns
    if X[0] >= BALL:
        project_further(z[:n], X)
    if Y[0] >= BALL:
        _exchange(rows, columns, z, ends)
        project_further(z[n:], Y)
        _exchange(rows, columns, z, ends)


@kernel(
    NONE, INT, INT, INT, INT, SET, SET, TERM, TERM, READ, INT, INT, FLOAT, FLOAT, READ, READ, READ, READ, READ, FLAT,
    FLAT, FLAT, FLAT, FLAT, FLAT,
)  # fmt: skip
def difference_sweep(
    rows: int, columns: int, height: int, together: int, X: CompiledSet, Y: CompiledSet, of_x: CompiledTerm,
    of_y: CompiledTerm, inverse: Array, T: int, spares: int, Gamma: float, step: float, alphas: Array, own: Array,
    above: Array, pull: Array, slope: Array, z: Array, average: Array, fold: Array, moved: Array, ends: Array,
    nothing: Array,
) -> None:  # fmt: skip
    """T steps of the level of finite differences; `z` and `average` are updated in place, the rest is scratch.

    `together` steps make one pass, `height` rows at a time; all rows, and one step, where a set couples entries. Per
    step `moved` holds three planes of these rows, two more rows in each unless these are all, and one entry. `nothing`
    is a row of zeros, and `ends` is zero before and after. `spares` are bits of `kinds`.
    """
    kept = 0 if height == rows else 2
    m = (height + kept) * columns
    shape = (rows, columns, kept, m)
    fold_levels(fold, pull, slope, of_x, of_y, rows * columns)
    _exchange(rows, columns, z, ends)
    for first in range(0, T, together):
        group = min(together, T - first)
        for moment in range(0, rows + 2 * (group - 1), height):
            for k in range(group):
                # Behind the corrected rows of the step before.
                row, end = max(moment - 2 * k, 0), min(moment - 2 * k + height, rows)
                if end <= row:
                    continue
                scalars = step_scalars(alphas[first + k], Gamma, step, own, above)
                strip = moved[k * (3 * m + 1) : (k + 1) * (3 * m + 1)]
                at_start = spares if first + k == 0 else 0
                ahead_x(row, end - row, shape, at_start, scalars, X, of_x, inverse, z, average, fold, strip, nothing)
                ahead_y(row, end - row, shape, at_start, scalars, Y, of_y, z, average, fold, strip, ends)
                # One row behind, and to the end at the end.
                begin, close = max(row - 1, 0), rows if end == rows else end - 1
                at = (kept + begin - row) * columns
                if close > begin and not (spares & LAST and first + k == T - 1):
                    correct_rows(begin, close - begin, at, shape, scalars, X, Y, inverse, z, strip, nothing)
                if kept:
                    _move_up(strip, end - row, columns, m)
        _project_further(rows, columns, X, Y, z, ends)
    _exchange(rows, columns, z, ends)
