"""The innermost level for finite differences: the steps of `sweeps`, fused, several in one pass over memory.

A picture is one long row here: the neighbour below is a shift by its width, the neighbour across a shift by 1. Dual
entries that no difference reaches, at the end of every row and in the last row, are kept apart in `ends`; zeros stand
in their places in z and in `moved`, which is what the neighbours should see. Loops run at stride 1 over flat slices,
and write to one or two of them, so that they become vector code.

`moved` holds z - z~ for the rows that are at work. z is put right in place one row behind z~, where all neighbours are
known. Step j + 1 follows step j two rows behind, so that `together` steps share one pass, with their rows in cache.

With primal-dual steps, zeros stand for the ends in y and in its last step. A band of rows makes x and the differences
across, and those down one row behind, where both of their pixels are new. So step j + 1 follows step j one row behind.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from saddleslide.kernels.arguments import (
    BALL,
    BOX,
    LAST,
    NO_TERM,
    ZERO_X,
    ZERO_Y,
    Above,
    Array,
    Bands,
    Differences,
    DualBuffers,
    Factors,
    Level,
    Parts,
    PictureBuffers,
    Write,
)
from saddleslide.kernels.base_case import clip, clip_number, interval, limits, project_whole, settle
from saddleslide.kernels.building import fusing, helper, kernel
from saddleslide.kernels.sweeps import advance_y, average_with, copy, factors, fold_above, look_ahead, look_back

Limits: TypeAlias = tuple[float, float]
# Dual entries beside some pixels: their differences with the pixels to the left, right, above and below.
Around: TypeAlias = tuple[Array, Array, Array, Array]


class Band(NamedTuple):
    """Some rows of a picture that are at work: the first, and how many."""

    row: int
    height: int


class Stretch(NamedTuple):
    """The differences of some rows in one direction.

    Their pixels from `begin` on, their place in z, how many they are, those of them that may have a difference, and the
    shift to its other pixel. End i of `number` is the entry first + i stride, and is kept in ends[where + i].
    """

    begin: int
    place: int
    size: int
    inside: int
    shift: int
    first: int
    stride: int
    where: int
    number: int


@helper
def stretch(picture: Differences, band: Band, down: int) -> Stretch:
    """The differences across, or with `down` 1 those down, of some rows."""
    rows, columns = picture
    n, begin, size = rows * columns, band.row * columns, band.height * columns
    if down == 0:
        inside = min(size, n - 1 - begin)
        return Stretch(begin, n + begin, size, inside, 1, columns - 1, columns, band.row, band.height)
    inside, number = max(min(size, n - columns - begin), 0), columns if begin + size == n else 0
    return Stretch(begin, 2 * n + begin, size, inside, columns, size - columns, 1, rows, number)


@helper
def exchange(picture: Differences, z: Array, ends: Array) -> None:
    """Take the entries that no difference reaches out of z, or put them back: zeros change places with them."""
    for down in range(2):
        at = stretch(picture, Band(0, picture.rows), down)
        for i in range(at.number):
            k = at.place + at.first + i * at.stride
            z[k], ends[at.where + i] = ends[at.where + i], z[k]


@fusing
def toward_x(out: Array, x: Array, fold: Array, around: Around, inverse: Array, by: Factors, within: Limits) -> None:
    """Write out = a x + b (fold - B^T y), clipped; with an inverse metric, its multiple of B^T y."""
    left, right, up, down = around
    (low, high), a, b = within, by.a, by.b
    if inverse.size == 0:
        for i in range(out.size):
            slope = (left[i] - right[i]) + (up[i] - down[i])
            out[i] = clip_number(a * x[i] + b * (fold[i] - slope), low, high)
    else:
        for i in range(out.size):
            slope = (left[i] - right[i]) + (up[i] - down[i])
            out[i] = clip_number(a * x[i] + b * (fold[i] - inverse[i] * slope), low, high)


@fusing
def without_product(out: Array, v: Array, fold: Array, by: Factors, within: Limits) -> None:
    """Write out = a v + b fold, clipped: a step where the other block is 0."""
    (low, high), a, b = within, by.a, by.b
    for i in range(out.size):
        out[i] = clip_number(a * v[i] + b * fold[i], low, high)


@fusing
def _toward_y(out: Array, y: Array, fold: Array, x: Array, following: Array, by: Factors, within: Limits) -> None:
    """Write out = a y + b (fold + following - x), clipped: one direction of B x."""
    (low, high), a, b = within, by.a, by.b
    for i in range(out.size):
        out[i] = clip_number(a * y[i] + b * (fold[i] + (following[i] - x[i])), low, high)


@fusing
def _correct_x(x: Array, moved: Array, around: Around, inverse: Array, c: float, within: Limits) -> None:
    """Write x = x~ + c B^T (y - y~), clipped."""
    left, right, up, down = around
    low, high = within
    if inverse.size == 0:
        for i in range(x.size):
            slope = (left[i] - right[i]) + (up[i] - down[i])
            x[i] = clip_number((x[i] - moved[i]) + c * slope, low, high)
    else:
        for i in range(x.size):
            slope = (left[i] - right[i]) + (up[i] - down[i])
            x[i] = clip_number((x[i] - moved[i]) + c * (inverse[i] * slope), low, high)


@fusing
def _correct_y(y: Array, moved: Array, x: Array, following: Array, c: float, within: Limits) -> None:
    """Write y = y~ - c B (x - x~) in one direction, clipped."""
    low, high = within
    for i in range(y.size):
        y[i] = clip_number((y[i] - moved[i]) - c * (following[i] - x[i]), low, high)


@helper
def rows_of_x(
    out: Array, band: Band, by: Factors, parts: Parts, z: Array, dual: Array, fold: Array, nothing: Array
) -> None:
    """The base case of x in some rows, before its simple term, with B^T of the y in `dual`, which is laid out as z."""
    n, columns, inverse, within = parts.n, parts.coupling.columns, parts.inverse, limits(parts.X, parts.f)
    begin, end = band.row * columns, (band.row + band.height) * columns
    h, v, start = dual[n : 2 * n], dual[2 * n :], begin
    if band.row == 0:
        # Nothing stands above, and nothing to the left of the first pixel.
        around = dual[n - 1 : n - 1 + columns], h[:columns], nothing, v[:columns]
        toward_x(out[:columns], z[:columns], fold[:columns], around, inverse[:columns], by, within)
        slope = -h[0] - v[0]
        slope = inverse[0] * slope if inverse.size > 0 else slope
        out[0] = clip_number(by.a * z[0] + by.b * (fold[0] - slope), within[0], within[1])
        start = columns
    if end > start:
        around = h[start - 1 : end - 1], h[start:end], v[start - columns : end - columns], v[start:end]
        toward_x(out[start - begin :], z[start:end], fold[start:end], around, inverse[start:end], by, within)


@helper
def rows_of_y(
    out: Array, at: Stretch, by: Factors, parts: Parts, z: Array, fold: Array, ends: Array, spares: int
) -> None:
    """The base case of y in some rows, for what entries do on their own, with B of the x in z unless that is spared."""
    within, begin, inside = limits(parts.Y, parts.g), at.begin, at.inside
    y, own = z[at.place : at.place + at.size], fold[at.place : at.place + at.size]
    if spares & ZERO_X:
        without_product(out, y, own, by, within)
    else:
        x, following = z[begin : begin + inside], z[begin + at.shift : begin + at.shift + inside]
        _toward_y(out[:inside], y[:inside], own[:inside], x, following, by, within)
    for i in range(at.number):
        k = at.first + i * at.stride
        out[k] = clip_number(by.a * ends[at.where + i] + by.b * own[k], within[0], within[1])
    settle(out, by.weight, parts.Y, parts.g, at.place - parts.n)


@helper
def _ahead_x(
    band: Band, kept: int, spares: int, by: Factors, parts: Parts, z: Array, average: Array, strip: PictureBuffers
) -> None:
    """x~ in some rows, the average with it, and x - x~; the strip keeps rows above those at work."""
    columns, fold = parts.coupling.columns, strip.fold
    begin, size, at = band.row * columns, band.height * columns, kept * columns
    end, out = begin + size, strip.moved[at : at + size]
    if spares & ZERO_Y:
        without_product(out, z[begin:end], fold[begin:end], by, limits(parts.X, parts.f))
    else:
        rows_of_x(out, band, by, parts, z, z, fold, strip.nothing)
    settle(out, by.weight, parts.X, parts.f, begin)
    project_whole(out, parts.X)
    look_back(average[begin:end], out, z[begin:end], by.alpha)


@helper
def _ahead_y(
    band: Band, kept: int, spares: int, by: Factors, parts: Parts, z: Array, average: Array, strip: PictureBuffers
) -> None:
    """y~ in some rows of both directions, the average with it, and y - y~."""
    moved, ends, m, top = strip.moved, strip.ends, strip.moved.size // 3, kept * parts.coupling.columns + 1
    for down in range(2):
        at, first = stretch(parts.coupling, band, down), (1 + down) * m + top
        rows_of_y(moved[first : first + at.size], at, by, parts, z, strip.fold, ends, spares)
    project_whole(moved[m + 1 :], parts.Y)
    for down in range(2):
        at, first = stretch(parts.coupling, band, down), (1 + down) * m + top
        out, end = moved[first : first + at.size], at.place + at.size
        look_back(average[at.place : end], out, z[at.place : end], by.alpha)
        # The ends are 0 in z, so what stands here now is -y~; and y~ is their next iterate.
        for i in range(at.number):
            k = at.first + i * at.stride
            ends[at.where + i], out[k] = -out[k], 0.0


@helper
def _correct_rows(band: Band, top: int, c_x: float, c_y: float, parts: Parts, z: Array, strip: PictureBuffers) -> None:
    """The corrected iterate in some rows, in place; their entries of `moved` begin at `top`."""
    X, Y, n, inverse, moved, columns = parts.X, parts.Y, parts.n, parts.inverse, strip.moved, parts.coupling.columns
    begin, size, m, first = band.row * columns, band.height * columns, moved.size // 3, 0
    # The entry before the first one of h is a zero that never changes.
    h, v, end = moved[m + top :], moved[2 * m + 1 :], begin + size
    if band.row == 0:
        around = h[:columns], h[1 : columns + 1], strip.nothing, v[top : top + columns]
        _correct_x(z[:columns], moved[top : top + columns], around, inverse[:columns], c_x, interval(X))
        first = columns
    if size > first:
        low, high = top + first, top + size
        around = h[first:size], h[first + 1 : size + 1], v[low - columns : high - columns], v[low:high]
        _correct_x(z[begin + first : end], moved[low:high], around, inverse[begin + first : end], c_x, interval(X))
    if X.kind == BOX:
        clip(z[begin:end], X.lower[begin:end], X.upper[begin:end])
    for down in range(2):
        at, x = stretch(parts.coupling, band, down), moved[top : top + size]
        y, way = z[at.place : at.place + at.inside], moved[(1 + down) * m + 1 + top :]
        _correct_y(y, way, x, moved[top + at.shift :], c_y, interval(Y))
        if Y.kind == BOX:
            clip(y, Y.lower[at.place - n :], Y.upper[at.place - n :])
        for i in range(at.number):
            z[at.place + at.first + i * at.stride] = 0.0


@kernel
def difference_sweep(
    parts: Parts, bands: Bands, level: Level, above: Above, z: Write, average: Write, buffers: PictureBuffers
) -> None:
    """All steps of a level of finite differences; `z` and `average` are updated in place, the rest is scratch.

    `together` steps make one pass, `height` rows at a time; all rows, and one step, where a set couples entries. Per
    step `moved` holds three planes of these rows, two more rows in each unless these are all, and one entry. `nothing`
    is a row of zeros, and `ends` is zero before and after.
    """
    rows, columns = parts.coupling
    T, spares, ends, moved = level.alphas.size, level.spares, buffers.ends, buffers.moved
    kept = 0 if bands.height == rows else 2
    m = (bands.height + kept) * columns
    fold_above(parts, above, buffers.fold)
    exchange(parts.coupling, z, ends)
    for first in range(0, T, bands.together):
        group = min(bands.together, T - first)
        for moment in range(0, rows + 2 * (group - 1), bands.height):
            for k in range(group):
                # Behind the corrected rows of the step before.
                row, end = max(moment - 2 * k, 0), min(moment - 2 * k + bands.height, rows)
                if end <= row:
                    continue
                alpha = level.alphas[first + k]
                by_x, by_y = factors(level, above, alpha, 0), factors(level, above, alpha, 1)
                own = moved[k * (3 * m + 1) : (k + 1) * (3 * m + 1)]
                strip = PictureBuffers(buffers.fold, own, ends, buffers.nothing)
                band, at_start = Band(row, end - row), spares if first + k == 0 else 0
                _ahead_x(band, kept, at_start, by_x, parts, z, average, strip)
                _ahead_y(band, kept, at_start, by_y, parts, z, average, strip)
                # One row behind, and to the end at the end.
                begin, close = max(row - 1, 0), rows if end == rows else end - 1
                if close > begin and not (spares & LAST and first + k == T - 1):
                    top = (kept + begin - row) * columns
                    _correct_rows(Band(begin, close - begin), top, by_x.c, by_y.c, parts, z, strip)
                for plane in range(3 if kept else 0):
                    # The last two rows go to the top, where the next rows find them.
                    top = plane * m + (1 if plane > 0 else 0)
                    copy(own[top : top + 2 * columns], own[top + (end - row) * columns :])
        # Sets that couple all entries of a block.
        project_whole(z[: parts.n], parts.X)
        if parts.Y.kind >= BALL:
            exchange(parts.coupling, z, ends)
            project_whole(z[parts.n :], parts.Y)
            exchange(parts.coupling, z, ends)
    exchange(parts.coupling, z, ends)


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
        look_ahead(scratch[n:], z[n:], theta, lag)
        rows_of_x(new, band, by, parts, z, scratch, fold, margins[rows + columns :])
    else:
        h, v = z[n : 2 * n], z[2 * n :]
        # Nothing stands to the left of the first pixel, and at the end of a row there is no difference.
        across, down = scratch[size : 2 * size + 1], scratch[2 * size + 1 : 3 * size + columns + 1]
        across[0] = 0.0
        look_ahead(across[1:], h[begin:end], theta, lag[begin:end])
        if band.row == 0:
            down[:columns] = 0.0
        else:
            look_ahead(down[:columns], v[begin - columns : begin], theta, lag[n + begin - columns : n + begin])
        look_ahead(down[columns:], v[begin:end], theta, lag[n + begin : n + end])
        around, within = (across[:size], across[1:], down[:size], down[columns:]), limits(parts.X, parts.f)
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
    fold_above(parts, above, buffers.fold)
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
                by_x, by_y = factors(level, above, alphas[j], 0), factors(level, above, alphas[j], 1)
                last_eta = before if j == 0 else level.Gamma * alphas[j - 1] * level.step
                theta = level.Gamma * alphas[j] * level.step / last_eta
                band, at_zero = Band(row, end - row), j == 0 and level.spares & ZERO_Y > 0
                _picture_x(band, at_zero, theta, by_x, parts, z, average, buffers)
                if band.height == rows and not straight:
                    # On any set, and with any term.
                    exchange(parts.coupling, z, buffers.margins)
                    advance_y(parts, z, buffers, by_y)
                    average_with(average[parts.n :], z[parts.n :], by_y.alpha)
                    exchange(parts.coupling, z, buffers.margins)
                    _clear_ends(parts.coupling, buffers.lag)
                    continue
                _picture_y(band, 0, by_y, parts, z, average, buffers)
                # One row behind, and to the end at the end.
                begin, close = max(row - 1, 0), rows if end == rows else end - 1
                if close > begin:
                    _picture_y(Band(begin, close - begin), 1, by_y, parts, z, average, buffers)
    exchange(parts.coupling, z, buffers.margins)
    eta: float = level.Gamma * alphas[alphas.size - 1] * level.step
    return eta
