"""Some rows of one step of the innermost level for finite differences; `difference_sweeps` says how they are used.

Loops run at stride 1 over flat slices, and write to one or two of them, so that they become vector code.
"""

from __future__ import annotations

from typing import TypeAlias

from saddleslide.arrays import Array
from saddleslide.kernels.building import fusing, helper
from saddleslide.kernels.kinds import BALL, BOX, INTERVAL, NO_TERM, ZERO_X, ZERO_Y
from saddleslide.kernels.sets import CompiledSet, clip, clipped, interval, project, project_further
from saddleslide.kernels.sweeps import Scalars, look_back
from saddleslide.kernels.terms import CompiledTerm, limits, minimise

# Rows and columns of the picture, rows above those at work that a strip keeps, and the size of its planes.
Shape: TypeAlias = tuple[int, int, int, int]


@fusing
def toward_x(
    out: Array, x: Array, a: float, fold: Array, b: float, left: Array, right: Array, up: Array, down: Array,
    inverse: Array, low: float, high: float,
) -> None:  # fmt: skip
    """Write out = a x + b (fold - B^T y), clipped; with an inverse metric, its multiple of B^T y."""
    if inverse.size == 0:
        for i in range(out.size):
            slope = (left[i] - right[i]) + (up[i] - down[i])
            out[i] = clipped(a * x[i] + b * (fold[i] - slope), low, high)
    else:
        for i in range(out.size):
            slope = (left[i] - right[i]) + (up[i] - down[i])
            out[i] = clipped(a * x[i] + b * (fold[i] - inverse[i] * slope), low, high)


@fusing
def without_product(out: Array, v: Array, a: float, fold: Array, b: float, low: float, high: float) -> None:
    """Write out = a v + b fold, clipped: a step where the other block is 0."""
    for i in range(out.size):
        out[i] = clipped(a * v[i] + b * fold[i], low, high)


@fusing
def _toward_y(
    out: Array, y: Array, a: float, fold: Array, b: float, x: Array, following: Array, low: float, high: float
) -> None:
    """Write out = a y + b (fold + following - x), clipped: one direction of B x."""
    for i in range(out.size):
        out[i] = clipped(a * y[i] + b * (fold[i] + (following[i] - x[i])), low, high)


@fusing
def _correct_x(
    x: Array, moved: Array, left: Array, right: Array, up: Array, down: Array, c: float, inverse: Array, low: float,
    high: float,
) -> None:  # fmt: skip
    """Write x = x~ + c B^T (y - y~), clipped."""
    if inverse.size == 0:
        for i in range(x.size):
            slope = (left[i] - right[i]) + (up[i] - down[i])
            x[i] = clipped((x[i] - moved[i]) + c * slope, low, high)
    else:
        for i in range(x.size):
            slope = (left[i] - right[i]) + (up[i] - down[i])
            x[i] = clipped((x[i] - moved[i]) + c * (inverse[i] * slope), low, high)


@fusing
def _correct_y(y: Array, moved: Array, x: Array, following: Array, c: float, low: float, high: float) -> None:
    """Write y = y~ - c B (x - x~) in one direction, clipped."""
    for i in range(y.size):
        y[i] = clipped((y[i] - moved[i]) - c * (following[i] - x[i]), low, high)


@helper
def settle(v: Array, weight: float, term: CompiledTerm, domain: CompiledSet, start: int) -> None:
    """From centres to the base case for what entries do on their own; v begins at entry `start` of its block."""
    minimise(v, weight, term, start)
    if domain[0] == BOX:
        clip(v, domain[1][start : start + v.size], domain[2][start : start + v.size])
    elif term[0] != NO_TERM and domain[0] == INTERVAL:
        project(v, domain)


@helper
def ahead_x(
    row: int, count: int, shape: Shape, spares: int, scalars: Scalars, X: CompiledSet, term: CompiledTerm,
    inverse: Array, z: Array, average: Array, fold: Array, moved: Array, nothing: Array,
) -> None:  # fmt: skip
    """x~ in some rows, the average with it, and x - x~."""
    rows, columns, kept, _ = shape
    a, _, b, _, weight, _, _, _, alpha = scalars
    n, begin, size = rows * columns, row * columns, count * columns
    end, at, first = begin + size, kept * columns, 0
    low, high = limits(X, term)
    h, v, out = z[n : 2 * n], z[2 * n :], moved[at : at + size]
    if spares & ZERO_Y:
        without_product(out, z[begin:end], a, fold[begin:end], b, low, high)
        first = size
    elif row == 0:
        # Nothing stands above, and nothing to the left of the first pixel.
        toward_x(
            out[:columns], z[:columns], a, fold[:columns], b, z[n - 1 : n - 1 + columns], h[:columns], nothing,
            v[:columns], inverse[:columns], low, high,
        )  # fmt: skip
        slope = -h[0] - v[0]
        out[0] = clipped(a * z[0] + b * (fold[0] - (inverse[0] * slope if inverse.size > 0 else slope)), low, high)
        first = columns
    if size > first:
        begin += first
        toward_x(
            out[first:], z[begin:end], a, fold[begin:end], b, h[begin - 1 : end - 1], h[begin:end],
            v[begin - columns : end - columns], v[begin:end], inverse[begin:end], low, high,
        )  # fmt: skip
        begin -= first
    settle(out, weight, term, X, begin)
    if X[0] >= BALL:
        project_further(out, X)
    look_back(average[begin:end], out, z[begin:end], alpha)


@helper
def ahead_y(
    row: int, count: int, shape: Shape, spares: int, scalars: Scalars, Y: CompiledSet, term: CompiledTerm, z: Array,
    average: Array, fold: Array, moved: Array, ends: Array,
) -> None:  # fmt: skip
    """y~ in some rows of both directions, the average with it, and y - y~."""
    rows, columns, kept, m = shape
    _, a, _, b, _, weight, _, _, alpha = scalars
    n, begin, size = rows * columns, row * columns, count * columns
    end, at, last = begin + size, kept * columns, ends[rows:]
    low, high = limits(Y, term)
    inside = min(end, n - columns)
    across, down = moved[m + 1 + at : m + 1 + at + size], moved[2 * m + 1 + at : 2 * m + 1 + at + size]
    fold_h, fold_v = fold[n : 2 * n], fold[2 * n :]
    if spares & ZERO_X:
        without_product(across, z[n + begin : n + end], a, fold_h[begin:end], b, low, high)
        without_product(down, z[2 * n + begin : 2 * n + end], a, fold_v[begin:end], b, low, high)
        inside = begin
    else:
        x, following = z[begin:end], z[begin + 1 : end + 1]
        _toward_y(across, z[n + begin : n + end], a, fold_h[begin:end], b, x, following, low, high)
    for r in range(count):
        k = (r + 1) * columns - 1
        across[k] = clipped(a * ends[row + r] + b * fold_h[begin + k], low, high)
    if inside > begin:
        _toward_y(
            down[: inside - begin], z[2 * n + begin : 2 * n + inside], a, fold_v[begin:inside], b, z[begin:inside],
            z[begin + columns : inside + columns], low, high,
        )  # fmt: skip
    if end == n:
        for j in range(columns):
            down[size - columns + j] = clipped(a * last[j] + b * fold_v[n - columns + j], low, high)
    settle(across, weight, term, Y, begin)
    settle(down, weight, term, Y, n + begin)
    if Y[0] >= BALL:
        project_further(moved[m + 1 :], Y)
    look_back(average[n + begin : n + end], across, z[n + begin : n + end], alpha)
    look_back(average[2 * n + begin : 2 * n + end], down, z[2 * n + begin : 2 * n + end], alpha)
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
    row: int, count: int, at: int, shape: Shape, scalars: Scalars, X: CompiledSet, Y: CompiledSet, inverse: Array,
    z: Array, moved: Array, nothing: Array,
) -> None:  # fmt: skip
    """The corrected iterate in some rows, in place; their entries of `moved` begin at `at`."""
    rows, columns, _, m = shape
    _, _, _, _, _, _, c_x, c_y, _ = scalars
    n, begin, size = rows * columns, row * columns, count * columns
    end, first, inside = begin + size, 0, min((row + count) * columns, n - columns) - begin
    low, high = interval(X)
    # The entry before the first one of h is a zero that never changes.
    h, v = moved[m:], moved[2 * m + 1 :]
    if row == 0:
        _correct_x(
            z[:columns], moved[at : at + columns], h[at : at + columns], h[at + 1 : at + columns + 1], nothing,
            v[at : at + columns], c_x, inverse[:columns], low, high,
        )  # fmt: skip
        first = columns
    if size > first:
        _correct_x(
            z[begin + first : end], moved[at + first : at + size], h[at + first : at + size],
            h[at + first + 1 : at + size + 1], v[at + first - columns : at + size - columns],
            v[at + first : at + size], c_x, inverse[begin + first : end], low, high,
        )  # fmt: skip
    low, high = interval(Y)
    _correct_y(
        z[n + begin : n + end], h[at + 1 : at + size + 1], moved[at : at + size], moved[at + 1 : at + size + 1], c_y,
        low, high,
    )  # fmt: skip
    if inside > 0:
        _correct_y(
            z[2 * n + begin : 2 * n + begin + inside], v[at : at + inside], moved[at : at + inside],
            moved[at + columns : at + columns + inside], c_y, low, high,
        )  # fmt: skip
    if X[0] == BOX:
        clip(z[begin:end], X[1][begin:end], X[2][begin:end])
    if Y[0] == BOX:
        clip(z[n + begin : n + end], Y[1][begin:end], Y[2][begin:end])
        if inside > 0:
            clip(z[2 * n + begin : 2 * n + begin + inside], Y[1][n + begin :], Y[2][n + begin :])
    for k in range(n + begin + columns - 1, n + end, columns):
        z[k] = 0.0
