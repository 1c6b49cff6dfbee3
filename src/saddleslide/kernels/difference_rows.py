"""Some rows of one step of the innermost level for finite differences; `difference_sweeps` says how they are used.

Loops run at stride 1 over flat slices, and write to one or two of them, so that they become vector code.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from saddleslide.arrays.base import Array
from saddleslide.kernels.arguments import Around, Factors, KnownSet, KnownTerm, Parts, PictureBuffers
from saddleslide.kernels.building import fusing, helper
from saddleslide.kernels.kinds import BALL, BOX, INTERVAL, NO_TERM, ZERO_X, ZERO_Y
from saddleslide.kernels.sets import clip, clipped, interval, project, project_further
from saddleslide.kernels.sweeps import look_back
from saddleslide.kernels.terms import limits, minimise

Limits: TypeAlias = tuple[float, float]


class Band(NamedTuple):
    """Some rows of a picture that are at work: the first, and how many."""

    row: int
    height: int


@fusing
def toward_x(out: Array, x: Array, fold: Array, around: Around, inverse: Array, by: Factors, within: Limits) -> None:
    """Write out = a x + b (fold - B^T y), clipped; with an inverse metric, its multiple of B^T y."""
    left, right, up, down = around
    (low, high), a, b = within, by.a, by.b
    if inverse.size == 0:
        for i in range(out.size):
            slope = (left[i] - right[i]) + (up[i] - down[i])
            out[i] = clipped(a * x[i] + b * (fold[i] - slope), low, high)
    else:
        for i in range(out.size):
            slope = (left[i] - right[i]) + (up[i] - down[i])
            out[i] = clipped(a * x[i] + b * (fold[i] - inverse[i] * slope), low, high)


@fusing
def without_product(out: Array, v: Array, fold: Array, by: Factors, within: Limits) -> None:
    """Write out = a v + b fold, clipped: a step where the other block is 0."""
    (low, high), a, b = within, by.a, by.b
    for i in range(out.size):
        out[i] = clipped(a * v[i] + b * fold[i], low, high)


@fusing
def _toward_y(out: Array, y: Array, fold: Array, x: Array, following: Array, by: Factors, within: Limits) -> None:
    """Write out = a y + b (fold + following - x), clipped: one direction of B x."""
    (low, high), a, b = within, by.a, by.b
    for i in range(out.size):
        out[i] = clipped(a * y[i] + b * (fold[i] + (following[i] - x[i])), low, high)


@fusing
def _correct_x(x: Array, moved: Array, around: Around, inverse: Array, c: float, within: Limits) -> None:
    """Write x = x~ + c B^T (y - y~), clipped."""
    left, right, up, down = around
    low, high = within
    if inverse.size == 0:
        for i in range(x.size):
            slope = (left[i] - right[i]) + (up[i] - down[i])
            x[i] = clipped((x[i] - moved[i]) + c * slope, low, high)
    else:
        for i in range(x.size):
            slope = (left[i] - right[i]) + (up[i] - down[i])
            x[i] = clipped((x[i] - moved[i]) + c * (inverse[i] * slope), low, high)


@fusing
def _correct_y(y: Array, moved: Array, x: Array, following: Array, c: float, within: Limits) -> None:
    """Write y = y~ - c B (x - x~) in one direction, clipped."""
    low, high = within
    for i in range(y.size):
        y[i] = clipped((y[i] - moved[i]) - c * (following[i] - x[i]), low, high)


@helper
def settle(v: Array, weight: float, domain: KnownSet, term: KnownTerm, start: int) -> None:
    """From centres to the base case for what entries do on their own; v begins at entry `start` of its block."""
    minimise(v, weight, term, start)
    if domain.kind == BOX:
        clip(v, domain.lower[start : start + v.size], domain.upper[start : start + v.size])
    elif term.kind != NO_TERM and domain.kind == INTERVAL:
        project(v, domain)


@helper
def ahead_x(
    band: Band, kept: int, spares: int, by: Factors, parts: Parts, z: Array, average: Array, strip: PictureBuffers
) -> None:
    """x~ in some rows, the average with it, and x - x~; the strip keeps rows above those at work."""
    X, term, inverse, fold, columns = parts.X, parts.f, parts.inverse, strip.fold, parts.coupling.columns
    n, begin, size = parts.n, band.row * columns, band.height * columns
    end, at, first = begin + size, kept * columns, 0
    within = limits(X, term)
    h, v, out = z[n : 2 * n], z[2 * n :], strip.moved[at : at + size]
    if spares & ZERO_Y:
        without_product(out, z[begin:end], fold[begin:end], by, within)
        first = size
    elif band.row == 0:
        # Nothing stands above, and nothing to the left of the first pixel.
        around = Around(z[n - 1 : n - 1 + columns], h[:columns], strip.nothing, v[:columns])
        toward_x(out[:columns], z[:columns], fold[:columns], around, inverse[:columns], by, within)
        slope = -h[0] - v[0]
        slope = inverse[0] * slope if inverse.size > 0 else slope
        out[0] = clipped(by.a * z[0] + by.b * (fold[0] - slope), within[0], within[1])
        first = columns
    if size > first:
        begin += first
        around = Around(h[begin - 1 : end - 1], h[begin:end], v[begin - columns : end - columns], v[begin:end])
        toward_x(out[first:], z[begin:end], fold[begin:end], around, inverse[begin:end], by, within)
        begin -= first
    settle(out, by.weight, X, term, begin)
    if X.kind >= BALL:
        project_further(out, X)
    look_back(average[begin:end], out, z[begin:end], by.alpha)


@helper
def ahead_y(
    band: Band, kept: int, spares: int, by: Factors, parts: Parts, z: Array, average: Array, strip: PictureBuffers
) -> None:
    """y~ in some rows of both directions, the average with it, and y - y~."""
    Y, term, n, moved, ends = parts.Y, parts.g, parts.n, strip.moved, strip.ends
    rows, columns = parts.coupling.rows, parts.coupling.columns
    row, count, m = band.row, band.height, moved.size // 3
    begin, size = row * columns, count * columns
    end, at, last = begin + size, kept * columns, ends[rows:]
    within = limits(Y, term)
    low, high = within
    inside = min(end, n - columns)
    across, down = moved[m + 1 + at : m + 1 + at + size], moved[2 * m + 1 + at : 2 * m + 1 + at + size]
    fold_h, fold_v = strip.fold[n : 2 * n], strip.fold[2 * n :]
    if spares & ZERO_X:
        without_product(across, z[n + begin : n + end], fold_h[begin:end], by, within)
        without_product(down, z[2 * n + begin : 2 * n + end], fold_v[begin:end], by, within)
        inside = begin
    else:
        x, following = z[begin:end], z[begin + 1 : end + 1]
        _toward_y(across, z[n + begin : n + end], fold_h[begin:end], x, following, by, within)
    for r in range(count):
        k = (r + 1) * columns - 1
        across[k] = clipped(by.a * ends[row + r] + by.b * fold_h[begin + k], low, high)
    if inside > begin:
        y, x, following = z[2 * n + begin : 2 * n + inside], z[begin:inside], z[begin + columns : inside + columns]
        _toward_y(down[: inside - begin], y, fold_v[begin:inside], x, following, by, within)
    if end == n:
        for j in range(columns):
            down[size - columns + j] = clipped(by.a * last[j] + by.b * fold_v[n - columns + j], low, high)
    settle(across, by.weight, Y, term, begin)
    settle(down, by.weight, Y, term, n + begin)
    if Y.kind >= BALL:
        project_further(moved[m + 1 :], Y)
    look_back(average[n + begin : n + end], across, z[n + begin : n + end], by.alpha)
    look_back(average[2 * n + begin : 2 * n + end], down, z[2 * n + begin : 2 * n + end], by.alpha)
    # The ends are 0 in z, so what stands here now is -y~; and y~ is their next iterate.
    for r in range(count):
        k = (r + 1) * columns - 1
        ends[row + r], across[k] = -across[k], 0.0
    if end == n:
        for j in range(columns):
            k = size - columns + j
            last[j], down[k] = -down[k], 0.0


@helper
def correct_rows(
    band: Band, at: int, factors: tuple[Factors, Factors], parts: Parts, z: Array, strip: PictureBuffers
) -> None:
    """The corrected iterate in some rows, in place; their entries of `moved` begin at `at`."""
    X, Y, n, inverse, moved, columns = parts.X, parts.Y, parts.n, parts.inverse, strip.moved, parts.coupling.columns
    begin, size, m = band.row * columns, band.height * columns, moved.size // 3
    end, first, inside = begin + size, 0, min(begin + size, n - columns) - begin
    (by_x, by_y), within = factors, interval(X)
    # The entry before the first one of h is a zero that never changes.
    h, v = moved[m:], moved[2 * m + 1 :]
    if band.row == 0:
        around = Around(h[at : at + columns], h[at + 1 : at + columns + 1], strip.nothing, v[at : at + columns])
        _correct_x(z[:columns], moved[at : at + columns], around, inverse[:columns], by_x.c, within)
        first = columns
    if size > first:
        around = Around(
            h[at + first : at + size], h[at + first + 1 : at + size + 1],
            v[at + first - columns : at + size - columns], v[at + first : at + size],
        )  # fmt: skip
        x, way = z[begin + first : end], moved[at + first : at + size]
        _correct_x(x, way, around, inverse[begin + first : end], by_x.c, within)
    within = interval(Y)
    y, way = z[n + begin : n + end], h[at + 1 : at + size + 1]
    _correct_y(y, way, moved[at : at + size], moved[at + 1 : at + size + 1], by_y.c, within)
    if inside > 0:
        y, way = z[2 * n + begin : 2 * n + begin + inside], v[at : at + inside]
        below = moved[at + columns : at + columns + inside]
        _correct_y(y, way, moved[at : at + inside], below, by_y.c, within)
    if X.kind == BOX:
        clip(z[begin:end], X.lower[begin:end], X.upper[begin:end])
    if Y.kind == BOX:
        clip(z[n + begin : n + end], Y.lower[begin:end], Y.upper[begin:end])
        if inside > 0:
            clip(z[2 * n + begin : 2 * n + begin + inside], Y.lower[n + begin :], Y.upper[n + begin :])
    for k in range(n + begin + columns - 1, n + end, columns):
        z[k] = 0.0
