"""The innermost level with primal-dual steps as one compiled loop: two products a step, nothing allocated.

On pictures the products are part of the loops that use them, and dual entries at the ends are kept apart, as in
`pictures`; zeros stand in their places in y and in its last step. A band of rows makes x and the differences across,
and those down one row behind, where both of their pixels are new. So step j + 1 follows step j one row behind, and
`together` steps share a pass, with their rows in cache.
"""

from __future__ import annotations

from saddleslide.kernels.arguments import (
    BOX,
    NO_TERM,
    ZERO_Y,
    Above,
    Around,
    Array,
    Bands,
    Differences,
    DualBuffers,
    Factors,
    KnownSet,
    KnownTerm,
    Level,
    Parts,
    Write,
)
from saddleslide.kernels.base_case import clipped, limits, project_whole, settle
from saddleslide.kernels.building import fusing, helper, kernel
from saddleslide.kernels.pictures import Band, exchange, rows_of_x, rows_of_y, stretch, toward_x, without_product
from saddleslide.kernels.products import adjoint, forward
from saddleslide.kernels.sweeps import copy, fold_levels, scale, step_factors


@fusing
def _look_ahead(out: Array, y: Array, theta: float, lag: Array) -> None:
    """Write out = y + theta times the last step of y."""
    for i in range(out.size):
        out[i] = y[i] + theta * lag[i]


@fusing
def _advance(z: Array, fold: Array, q: Array, by: Factors, domain: KnownSet, term: KnownTerm) -> None:
    """As `toward`, in place: only one of the two loops can know that they are one array."""
    (low, high), a, b = limits(domain, term), by.a, by.b
    for i in range(z.size):
        z[i] = clipped(a * z[i] + b * (fold[i] - q[i]), low, high)
    settle(z, by.weight, domain, term, 0)
    project_whole(z, domain)


@helper
def _advance_y(parts: Parts, z: Array, buffers: DualBuffers, by: Factors) -> None:
    """The base case of y with q = -B x, and its step."""
    n, (lag, fold, q, _) = parts.n, buffers
    y = z[n:]
    forward(parts.coupling, z[:n], q[n:])
    copy(lag, y)
    _advance(y, fold[n:], q[n:], by, parts.Y, parts.g)
    for i in range(lag.size):
        lag[i] = y[i] - lag[i]


@fusing
def _average(average: Array, z: Array, alpha: float) -> None:
    beta = 1.0 - alpha
    for i in range(z.size):
        average[i] = alpha * z[i] + beta * average[i]


@kernel
def primal_dual_sweep(
    parts: Parts, level: Level, above: Above, z: Write, average: Write, buffers: DualBuffers, before: float
) -> float:
    """All steps; `lag` is the last step of y and `before` its eta, infinite at the beginning. Gives the last eta."""
    n, alphas, (lag, fold, q, _) = parts.n, level.alphas, buffers
    fold_levels(parts, above, fold)
    for j in range(alphas.size):
        eta = level.Gamma * alphas[j] * level.step
        by_x, by_y = step_factors(alphas[j], level, above)
        if j == 0 and level.spares & ZERO_Y > 0:
            q[:n] = 0.0
        else:
            _look_ahead(q[n:], z[n:], eta / before, lag)
            adjoint(parts.coupling, q[n:], q[:n])
        scale(q, parts.inverse)
        _advance(z[:n], fold[:n], q[:n], by_x, parts.X, parts.f)
        _advance_y(parts, z, buffers, by_y)
        _average(average, z, alphas[j])
        before = eta
    return before


@fusing
def _take(z: Array, average: Array, new: Array, alpha: float) -> None:
    """Put new entries into z and into the average; their steps stay in their place."""
    beta = 1.0 - alpha
    for i in range(z.size):
        ahead = new[i]
        average[i] = alpha * ahead + beta * average[i]
        new[i] = ahead - z[i]
        z[i] = ahead


@helper
def _clear_ends(picture: Differences, lag: Array) -> None:
    """What has no difference makes no step that x could see."""
    for down in range(2):
        at = stretch(picture, Band(0, picture.rows), down)
        for i in range(at.number):
            lag[at.place - picture.rows * picture.columns + at.first + i * at.stride] = 0.0


@helper
def _picture_x(
    band: Band, at_zero: bool, theta: float, by: Factors, parts: Parts, z: Array, average: Array, buffers: DualBuffers
) -> None:
    """The step of x in some rows, with B^T (y + theta (y - y_previous)), unless y is 0."""
    n, (rows, columns), (lag, fold, scratch, margins) = parts.n, parts.coupling, buffers
    begin, size = band.row * columns, band.height * columns
    end, new = begin + size, scratch[:size]
    if at_zero:
        without_product(new, z[begin:end], fold[begin:end], by, limits(parts.X, parts.f))
    elif band.height == rows:
        _look_ahead(scratch[n:], z[n:], theta, lag)
        rows_of_x(new, band, by, parts, z, scratch, fold, margins[rows + columns :])
    else:
        h, v = z[n : 2 * n], z[2 * n :]
        # Nothing stands to the left of the first pixel, and at the end of a row there is no difference.
        across, down = scratch[size : 2 * size + 1], scratch[2 * size + 1 : 3 * size + columns + 1]
        across[0] = 0.0
        _look_ahead(across[1:], h[begin:end], theta, lag[begin:end])
        if band.row == 0:
            down[:columns] = 0.0
        else:
            _look_ahead(down[:columns], v[begin - columns : begin], theta, lag[n + begin - columns : n + begin])
        _look_ahead(down[columns:], v[begin:end], theta, lag[n + begin : n + end])
        around = Around(across[:size], across[1:], down[:size], down[columns:])
        within = limits(parts.X, parts.f)
        toward_x(new, z[begin:end], fold[begin:end], around, parts.inverse[begin:end], by, within)
    settle(new, by.weight, parts.X, parts.f, begin)
    project_whole(new, parts.X)
    _take(z[begin:end], average[begin:end], new, by.alpha)


@helper
def _picture_y(
    band: Band, down: int, by: Factors, parts: Parts, z: Array, average: Array, buffers: DualBuffers
) -> None:
    """The step of y in some rows whose pixels are new, in one direction."""
    at, ends = stretch(parts.coupling, band, down), buffers.margins
    end, step = at.place + at.size, buffers.lag[at.place - parts.n : at.place - parts.n + at.size]
    y = z[at.place : end]
    rows_of_y(step, at, by, parts, z, buffers.fold, ends, 0)
    _take(y, average[at.place : end], step, by.alpha)
    for i in range(at.number):
        k = at.first + i * at.stride
        ends[at.where + i], y[k], step[k] = y[k], 0.0, 0.0


@helper
def _whole_picture_y(by: Factors, parts: Parts, z: Array, average: Array, buffers: DualBuffers) -> None:
    """The step of y in all rows, on any set and with any term."""
    exchange(parts.coupling, z, buffers.margins)
    _advance_y(parts, z, buffers, by)
    _average(average[parts.n :], z[parts.n :], by.alpha)
    exchange(parts.coupling, z, buffers.margins)
    _clear_ends(parts.coupling, buffers.lag)


@kernel
def picture_sweep(
    parts: Parts, bands: Bands, level: Level, above: Above, z: Write, average: Write, buffers: DualBuffers,
    before: float,
) -> float:  # fmt: skip
    """All steps of `primal_dual_sweep` for finite differences; gives the last eta.

    `height` rows at a time, `together` steps a pass; all rows, and one step, where a set couples entries. The margins
    are the dual entries at the ends, zero before and after, and a row of zeros. The scratch is of the size of z.
    """
    rows, alphas, straight = parts.coupling.rows, level.alphas, parts.Y.kind < BOX and parts.g.kind == NO_TERM
    fold_levels(parts, above, buffers.fold)
    exchange(parts.coupling, z, buffers.margins)
    _clear_ends(parts.coupling, buffers.lag)
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
                _picture_x(band, at_zero, theta, by_x, parts, z, average, buffers)
                if band.height == rows and not straight:
                    _whole_picture_y(by_y, parts, z, average, buffers)
                    continue
                _picture_y(band, 0, by_y, parts, z, average, buffers)
                # One row behind, and to the end at the end.
                begin, close = max(row - 1, 0), rows if end == rows else end - 1
                if close > begin:
                    _picture_y(Band(begin, close - begin), 1, by_y, parts, z, average, buffers)
    exchange(parts.coupling, z, buffers.margins)
    eta: float = level.Gamma * alphas[alphas.size - 1] * level.step
    return eta
