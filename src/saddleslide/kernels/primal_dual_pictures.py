"""Primal-dual steps of the innermost level for large pictures: several steps in one pass over memory.

As in `difference_sweeps` a picture is one long row, dual entries that no difference reaches are kept apart in `ends`,
and zeros stand in their places in y and in its last step. A band of rows makes x and the differences across, and those
down one row behind, where both of their pixels are new. So step j + 1 follows step j one row behind, and `together`
steps share a pass, with their rows in cache.
"""

from __future__ import annotations

from saddleslide.arrays import Array
from saddleslide.kernels.building import FLAT, FLOAT, INT, READ, fusing, helper, kernel
from saddleslide.kernels.difference_rows import settle, toward_x, without_product
from saddleslide.kernels.difference_sweeps import _exchange
from saddleslide.kernels.kinds import ZERO_Y
from saddleslide.kernels.sets import SET, CompiledSet, clipped
from saddleslide.kernels.sweeps import Scalars, step_scalars
from saddleslide.kernels.terms import TERM, CompiledTerm, fold_levels, limits


@fusing
def _look_ahead(out: Array, y: Array, theta: float, lag: Array) -> None:
    for i in range(out.size):
        out[i] = y[i] + theta * lag[i]


@fusing
def _take(x: Array, average: Array, new: Array, alpha: float) -> None:
    """Put new entries into x and into the average."""
    beta = 1.0 - alpha
    for i in range(x.size):
        average[i] = alpha * new[i] + beta * average[i]
        x[i] = new[i]


@fusing
def _toward_y(
    y: Array, lag: Array, a: float, fold: Array, b: float, x: Array, following: Array, low: float, high: float
) -> None:
    """Write y = a y + b (fold + following - x), clipped; `lag` keeps what y was."""
    for i in range(y.size):
        old = y[i]
        y[i] = clipped(a * old + b * (fold[i] + (following[i] - x[i])), low, high)
        lag[i] = old


@fusing
def _step_and_average(y: Array, lag: Array, average: Array, alpha: float) -> None:
    """From what y was to its step, and the average with y."""
    beta = 1.0 - alpha
    for i in range(y.size):
        lag[i] = y[i] - lag[i]
        average[i] = alpha * y[i] + beta * average[i]


@helper
def _rows_of_x(
    row: int, count: int, shape: tuple[int, int], at_zero: bool, scalars: Scalars, theta: float, X: CompiledSet,
    term: CompiledTerm, inverse: Array, z: Array, average: Array, lag: Array, fold: Array, strip: Array,
) -> None:  # fmt: skip
    """The step of x in some rows, with B^T (y + theta (y - y_previous)), unless y is 0."""
    rows, columns = shape
    n, begin, size = rows * columns, row * columns, count * columns
    end = begin + size
    h, v, lag_h, lag_v = z[n : 2 * n], z[2 * n :], lag[:n], lag[n:]
    # Nothing stands to the left of the first pixel, and at the end of a row there is no difference.
    across, down, new = strip[: size + 1], strip[size + 1 : 2 * size + columns + 1], strip[2 * size + columns + 1 :]
    low, high = limits(X, term)
    if at_zero:
        without_product(new[:size], z[begin:end], scalars[0], fold[begin:end], scalars[2], low, high)
    else:
        across[0] = 0.0
        _look_ahead(across[1:], h[begin:end], theta, lag_h[begin:end])
        if row == 0:
            down[:columns] = 0.0
        else:
            _look_ahead(down[:columns], v[begin - columns : begin], theta, lag_v[begin - columns : begin])
        _look_ahead(down[columns:], v[begin:end], theta, lag_v[begin:end])
        toward_x(
            new[:size], z[begin:end], scalars[0], fold[begin:end], scalars[2], across[:size], across[1:], down[:size],
            down[columns:], inverse[begin:end], low, high,
        )  # fmt: skip
    settle(new[:size], scalars[4], term, X, begin)
    _take(z[begin:end], average[begin:end], new[:size], scalars[8])


@helper
def _rows_across(
    row: int, count: int, shape: tuple[int, int], scalars: Scalars, Y: CompiledSet, term: CompiledTerm, z: Array,
    average: Array, lag: Array, fold: Array, ends: Array,
) -> None:  # fmt: skip
    """The step of the differences across in some rows whose pixels are new."""
    rows, columns = shape
    n, begin, end = rows * columns, row * columns, (row + count) * columns
    low, high = limits(Y, term)
    y, step, heavy = z[n + begin : n + end], lag[begin:end], fold[n + begin : n + end]
    _toward_y(y, step, scalars[1], heavy, scalars[3], z[begin:end], z[begin + 1 : end + 1], low, high)
    for r in range(count):
        k = (r + 1) * columns - 1
        y[k] = clipped(scalars[1] * ends[row + r] + scalars[3] * heavy[k], low, high)
    settle(y, scalars[5], term, Y, begin)
    _step_and_average(y, step, average[n + begin : n + end], scalars[8])
    for r in range(count):
        k = (r + 1) * columns - 1
        ends[row + r], y[k], step[k] = y[k], 0.0, 0.0


@helper
def _rows_down(
    row: int, count: int, shape: tuple[int, int], scalars: Scalars, Y: CompiledSet, term: CompiledTerm, z: Array,
    average: Array, lag: Array, fold: Array, ends: Array,
) -> None:  # fmt: skip
    """The same for the differences down."""
    rows, columns = shape
    n, begin, end = rows * columns, row * columns, (row + count) * columns
    low, high = limits(Y, term)
    y, step, heavy = z[2 * n + begin : 2 * n + end], lag[n + begin : n + end], fold[2 * n + begin : 2 * n + end]
    inside, last = min(end, n - columns), ends[rows:]
    if inside > begin:
        here, below = z[begin:inside], z[begin + columns : inside + columns]
        size = inside - begin
        _toward_y(y[:size], step[:size], scalars[1], heavy[:size], scalars[3], here, below, low, high)
    top = end - begin - columns
    if end == n:
        for j in range(columns):
            y[top + j] = clipped(scalars[1] * last[j] + scalars[3] * heavy[top + j], low, high)
    settle(y, scalars[5], term, Y, n + begin)
    _step_and_average(y, step, average[2 * n + begin : 2 * n + end], scalars[8])
    if end == n:
        for j in range(columns):
            last[j], y[top + j], step[top + j] = y[top + j], 0.0, 0.0


@kernel(
    FLOAT, INT, INT, INT, INT, SET, SET, TERM, TERM, READ, INT, INT, FLOAT, FLOAT, FLOAT, READ, READ, READ, READ, READ,
    FLAT, FLAT, FLAT, FLAT, FLAT, FLAT,
)  # fmt: skip
def picture_sweep(
    rows: int, columns: int, height: int, together: int, X: CompiledSet, Y: CompiledSet, of_x: CompiledTerm,
    of_y: CompiledTerm, inverse: Array, T: int, spares: int, Gamma: float, step: float, before: float, alphas: Array,
    own: Array, above: Array, pull: Array, slope: Array, z: Array, average: Array, lag: Array, fold: Array,
    strip: Array, ends: Array,
) -> float:  # fmt: skip
    """T steps as those of `primal_dual_sweep`, on sets that clip entries; gives the last eta.

    `height` rows at a time, `together` steps a pass. `strip` holds three bands, and a row and an entry more. `ends` is
    zero before and after. `spares` are bits of `kinds`.
    """
    shape = (rows, columns)
    fold_levels(fold, pull, slope, of_x, of_y, rows * columns)
    _exchange(rows, columns, z, ends)
    for r in range(rows):
        lag[(r + 1) * columns - 1] = 0.0
    lag[2 * rows * columns - columns :] = 0.0
    for first in range(0, T, together):
        group = min(together, T - first)
        for moment in range(0, rows + group - 1, height):
            for k in range(group):
                row, end = max(moment - k, 0), min(moment - k + height, rows)
                if end <= row:
                    continue
                j = first + k
                scalars = step_scalars(alphas[j], Gamma, step, own, above)
                last_eta = before if j == 0 else Gamma * alphas[j - 1] * step
                theta = Gamma * alphas[j] * step / last_eta
                at_zero = j == 0 and spares & ZERO_Y > 0
                _rows_of_x(
                    row, end - row, shape, at_zero, scalars, theta, X, of_x, inverse, z, average, lag, fold, strip,
                )  # fmt: skip
                _rows_across(row, end - row, shape, scalars, Y, of_y, z, average, lag, fold, ends)
                # One row behind, and to the end at the end.
                begin, close = max(row - 1, 0), rows if end == rows else end - 1
                if close > begin:
                    _rows_down(begin, close - begin, shape, scalars, Y, of_y, z, average, lag, fold, ends)
    _exchange(rows, columns, z, ends)
    eta: float = Gamma * alphas[T - 1] * step
    return eta
