"""Primal-dual steps of the innermost level for large pictures: several steps in one pass over memory.

As in `difference_sweeps` a picture is one long row, dual entries that no difference reaches are kept apart in `ends`,
and zeros stand in their places in y and in its last step. A band of rows makes x and the differences across, and those
down one row behind, where both of their pixels are new. So step j + 1 follows step j one row behind, and `together`
steps share a pass, with their rows in cache.
"""

from __future__ import annotations

from saddleslide.arrays.base import Array
from saddleslide.kernels.arguments import Above, Around, Bands, DualBuffers, Factors, Level, Parts, Write
from saddleslide.kernels.building import difference_kernel, fusing, helper
from saddleslide.kernels.difference_rows import Band, Limits, settle, toward_x, without_product
from saddleslide.kernels.difference_sweeps import exchange
from saddleslide.kernels.kinds import ZERO_Y
from saddleslide.kernels.primal_dual_sweeps import look_ahead
from saddleslide.kernels.sets import clipped
from saddleslide.kernels.sweeps import step_factors
from saddleslide.kernels.terms import fold_levels, limits


@fusing
def _take(x: Array, average: Array, new: Array, alpha: float) -> None:
    """Put new entries into x and into the average."""
    beta = 1.0 - alpha
    for i in range(x.size):
        average[i] = alpha * new[i] + beta * average[i]
        x[i] = new[i]


@fusing
def _toward_y(y: Array, lag: Array, fold: Array, x: Array, following: Array, by: Factors, within: Limits) -> None:
    """Write y = a y + b (fold + following - x), clipped; `lag` keeps what y was."""
    (low, high), a, b = within, by.a, by.b
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
    band: Band, at_zero: bool, theta: float, by: Factors, parts: Parts, z: Array, average: Array, buffers: DualBuffers
) -> None:
    """The step of x in some rows, with B^T (y + theta (y - y_previous)), unless y is 0."""
    n, columns, fold, strip = parts.n, parts.coupling.columns, buffers.fold, buffers.scratch
    begin, size = band.row * columns, band.height * columns
    end, within = begin + size, limits(parts.X, parts.f)
    h, v, lag_h, lag_v = z[n : 2 * n], z[2 * n :], buffers.lag[:n], buffers.lag[n:]
    # Nothing stands to the left of the first pixel, and at the end of a row there is no difference.
    across, down, new = strip[: size + 1], strip[size + 1 : 2 * size + columns + 1], strip[2 * size + columns + 1 :]
    if at_zero:
        without_product(new[:size], z[begin:end], fold[begin:end], by, within)
    else:
        across[0] = 0.0
        look_ahead(across[1:], h[begin:end], theta, lag_h[begin:end])
        if band.row == 0:
            down[:columns] = 0.0
        else:
            look_ahead(down[:columns], v[begin - columns : begin], theta, lag_v[begin - columns : begin])
        look_ahead(down[columns:], v[begin:end], theta, lag_v[begin:end])
        around = Around(across[:size], across[1:], down[:size], down[columns:])
        toward_x(new[:size], z[begin:end], fold[begin:end], around, parts.inverse[begin:end], by, within)
    settle(new[:size], by.weight, parts.X, parts.f, begin)
    _take(z[begin:end], average[begin:end], new[:size], by.alpha)


@helper
def _rows_across(band: Band, by: Factors, parts: Parts, z: Array, average: Array, buffers: DualBuffers) -> None:
    """The step of the differences across in some rows whose pixels are new."""
    n, columns, ends, within = parts.n, parts.coupling.columns, buffers.margins, limits(parts.Y, parts.g)
    begin, end = band.row * columns, (band.row + band.height) * columns
    y, step, heavy = z[n + begin : n + end], buffers.lag[begin:end], buffers.fold[n + begin : n + end]
    _toward_y(y, step, heavy, z[begin:end], z[begin + 1 : end + 1], by, within)
    for r in range(band.height):
        k = (r + 1) * columns - 1
        y[k] = clipped(by.a * ends[band.row + r] + by.b * heavy[k], within[0], within[1])
    settle(y, by.weight, parts.Y, parts.g, begin)
    _step_and_average(y, step, average[n + begin : n + end], by.alpha)
    for r in range(band.height):
        k = (r + 1) * columns - 1
        ends[band.row + r], y[k], step[k] = y[k], 0.0, 0.0


@helper
def _rows_down(band: Band, by: Factors, parts: Parts, z: Array, average: Array, buffers: DualBuffers) -> None:
    """The same for the differences down."""
    n, columns, last = parts.n, parts.coupling.columns, buffers.margins[parts.coupling.rows :]
    begin, end, within = band.row * columns, (band.row + band.height) * columns, limits(parts.Y, parts.g)
    y, step = z[2 * n + begin : 2 * n + end], buffers.lag[n + begin : n + end]
    heavy, inside = buffers.fold[2 * n + begin : 2 * n + end], min(end, n - columns)
    if inside > begin:
        here, below = z[begin:inside], z[begin + columns : inside + columns]
        size = inside - begin
        _toward_y(y[:size], step[:size], heavy[:size], here, below, by, within)
    top = end - begin - columns
    if end == n:
        for j in range(columns):
            y[top + j] = clipped(by.a * last[j] + by.b * heavy[top + j], within[0], within[1])
    settle(y, by.weight, parts.Y, parts.g, n + begin)
    _step_and_average(y, step, average[2 * n + begin : 2 * n + end], by.alpha)
    if end == n:
        for j in range(columns):
            last[j], y[top + j], step[top + j] = y[top + j], 0.0, 0.0


@difference_kernel
def picture_sweep(
    parts: Parts, bands: Bands, level: Level, above: Above, z: Write, average: Write, buffers: DualBuffers,
    before: float,
) -> float:  # fmt: skip
    """All steps as those of `primal_dual_sweep_differences`, on sets that clip entries; gives the last eta.

    `height` rows at a time, `together` steps a pass. The scratch holds three bands, and a row and an entry more. The
    margins are the dual entries at the ends: zero before and after.
    """
    rows, columns = parts.coupling.rows, parts.coupling.columns
    alphas, lag, ends = level.alphas, buffers.lag, buffers.margins
    fold_levels(buffers.fold, above, parts.f, parts.g, parts.n)
    exchange(rows, columns, z, ends)
    for r in range(rows):
        lag[(r + 1) * columns - 1] = 0.0
    lag[2 * rows * columns - columns :] = 0.0
    for first in range(0, alphas.size, bands.together):
        group = min(bands.together, alphas.size - first)
        for moment in range(0, rows + group - 1, bands.height):
            for k in range(group):
                row, end = max(moment - k, 0), min(moment - k + bands.height, rows)
                if end <= row:
                    continue
                j = first + k
                by_x, by_y = step_factors(alphas[j], level, above)
                last_eta = before if j == 0 else level.Gamma * alphas[j - 1] * level.step
                theta = level.Gamma * alphas[j] * level.step / last_eta
                band, at_zero = Band(row, end - row), j == 0 and level.spares & ZERO_Y > 0
                _rows_of_x(band, at_zero, theta, by_x, parts, z, average, buffers)
                _rows_across(band, by_y, parts, z, average, buffers)
                # One row behind, and to the end at the end.
                begin, close = max(row - 1, 0), rows if end == rows else end - 1
                if close > begin:
                    _rows_down(Band(begin, close - begin), by_y, parts, z, average, buffers)
    exchange(rows, columns, z, ends)
    eta: float = level.Gamma * alphas[alphas.size - 1] * level.step
    return eta
