"""The innermost level for finite differences: the steps of `coupling_sweep`, fused, in one pass over the memory each.

A picture is one long row here: the neighbour below is a shift by its width, the neighbour across a shift by 1, which is
wrong only where a row ends and is put right there. So every long loop runs at stride 1 and becomes vector code. z~ and
z - z~ live in a strip of a few rows that moves down the picture: they are made for its rows, and one row behind, where
all neighbours are known, z is corrected in place. Row s of a strip that starts at row r of the picture is row
r - 2 + s.
"""

from __future__ import annotations

from saddleslide.arrays import Array
from saddleslide.kernels.building import FLAT, FLOAT, INT, NONE, READ, helper, kernel
from saddleslide.kernels.kinds import BALL, BOX
from saddleslide.kernels.sets import SET, CompiledSet, clipped, interval, project_further
from saddleslide.kernels.sweeps import fold_levels, look_back


@helper
def _along(
    out: Array, base: Array, a: float, fold: Array, b: float, x: Array, following: Array, c: float, low: float,
    high: float,
) -> None:  # fmt: skip
    """Write out = a base + b fold - c (following - x), clipped: one direction of B x."""
    for i in range(out.size):
        out[i] = clipped(a * base[i] + b * fold[i] - c * (following[i] - x[i]), low, high)


@helper
def _across(
    out: Array, base: Array, a: float, fold: Array, b: float, left: Array, right: Array, up: Array, down: Array,
    c: float, low: float, high: float,
) -> None:  # fmt: skip
    """Write out = a base + b fold + c ((left - right) + (up - down)), clipped: B^T y in the inside."""
    for i in range(out.size):
        slope = (left[i] - right[i]) + (up[i] - down[i])
        out[i] = clipped(a * base[i] + b * fold[i] + c * slope, low, high)


@helper
def _primal(
    out: Array, o: int, base: Array, a: float, fold: Array, b: float, p: int, h: Array, v: Array, q: int, rows: int,
    columns: int, first: bool, last: bool, c: float, low: float, high: float,
) -> None:  # fmt: skip
    """Write out = a base + b fold + c B^T (h, v), clipped, in some rows; they begin at o, at p and at q."""
    low_row, high_row = 1 if first else 0, rows - 1 if last else rows
    i, size = low_row * columns, (high_row - low_row) * columns
    if size > 0:
        # Entry q + i - 1 exists: a row stands above, or this is not the first one.
        _across(
            out[o + i : o + i + size], base[p + i : p + i + size], a, fold[p + i : p + i + size], b,
            h[q + i - 1 : q + i - 1 + size], h[q + i : q + i + size], v[q + i - columns : q + i - columns + size],
            v[q + i : q + i + size], c, low, high,
        )  # fmt: skip
    for row in range(rows):
        # Edges of the picture: the first and the last row, and both ends of every other.
        edge = (first and row == 0) or (last and row == rows - 1)
        step = 1 if edge or columns == 1 else columns - 1
        for j in range(0, columns, step):
            k = row * columns + j
            left = h[q + k - 1] if j > 0 else 0.0
            right = h[q + k] if j < columns - 1 else 0.0
            up = 0.0 if first and row == 0 else v[q + k - columns]
            down = 0.0 if last and row == rows - 1 else v[q + k]
            slope = (left - right) + (up - down)
            out[o + k] = clipped(a * base[p + k] + b * fold[p + k] + c * slope, low, high)


@helper
def _dual(
    out: Array, o: int, base: Array, a: float, fold: Array, b: float, p: int, x: Array, q: int, size: int, still: int,
    shift: int, c: float, low: float, high: float,
) -> None:  # fmt: skip
    """Write out = a base + b fold - c (x shifted - x), clipped; no difference in the last `still` entries."""
    moving = size - still
    _along(
        out[o : o + moving], base[p : p + moving], a, fold[p : p + moving], b, x[q : q + moving],
        x[q + shift : q + shift + moving], c, low, high,
    )  # fmt: skip
    for i in range(moving, size):
        out[o + i] = clipped(a * base[p + i] + b * fold[p + i], low, high)


@helper
def _clip_rows(out: Array, o: int, size: int, domain: CompiledSet, start: int) -> None:
    """Sides that differ from entry to entry; those of the rows begin at `start`."""
    if domain[0] == BOX:
        for i in range(size):
            out[o + i] = clipped(out[o + i], domain[1][start + i], domain[2][start + i])


@helper
def _rows(
    out: Array, out_size: int, o: int, base: Array, a: tuple[float, float], fold: Array, b: tuple[float, float],
    base_size: int, p: int, z: Array, z_size: int, q: int, c: tuple[float, float], row: int, count: int, rows: int,
    columns: int, X: CompiledSet, Y: CompiledSet,
) -> None:  # fmt: skip
    """Write out = a base + b fold + c Q(z) in `count` rows from `row` on, clipped.

    Each array has three planes of its own size, in which the rows begin at its own offset.
    """
    first, last, size, start = row == 0, row + count == rows, count * columns, row * columns
    x, h, v = z[:z_size], z[z_size : 2 * z_size], z[2 * z_size : 3 * z_size]
    low, high = interval(X)
    _primal(
        out[:out_size], o, base[:base_size], a[0], fold[:base_size], b[0], p, h, v, q, count, columns, first, last,
        c[0], low, high,
    )  # fmt: skip
    _clip_rows(out, o, size, X, start)
    low, high = interval(Y)
    for plane in range(1, 3):
        to, of = plane * out_size + o, plane * base_size + p
        still = 1 if plane == 1 else columns
        shift = 1 if plane == 1 else columns
        _dual(out, to, base, a[1], fold, b[1], of, x, q, size, still if last else 0, shift, c[1], low, high)
        if plane == 1:
            for i in range(columns - 1, size, columns):
                out[to + i] = clipped(a[1] * base[of + i] + b[1] * fold[of + i], low, high)
        _clip_rows(out, to, size, Y, (plane - 1) * rows * columns + start)


@helper
def _move_up(strip: Array, size: int, kept: int, columns: int) -> None:
    """Take the last two rows of each plane to its top, where the next rows find them."""
    for plane in range(3):
        top = plane * size
        for i in range(2 * columns):
            strip[top + i] = strip[top + kept + i]


@kernel(NONE, INT, INT, INT, SET, SET, INT, FLOAT, FLOAT, READ, READ, READ, READ, READ, FLAT, FLAT, FLAT, FLAT, FLAT)
def difference_sweep(
    rows: int, columns: int, height: int, X: CompiledSet, Y: CompiledSet, T: int, Gamma: float, step: float,
    alphas: Array, own: Array, above: Array, pull: Array, slope: Array, z: Array, average: Array, ahead: Array,
    moved: Array, fold: Array,
) -> None:  # fmt: skip
    """T steps of the level of finite differences; `z` and `average` are updated in place, the rest is scratch.

    `ahead` and `moved` are strips of `height` rows and two more, all rows at once where X couples its entries.
    """
    n, m = rows * columns, (height + 2) * columns
    fold_levels(fold, pull, slope)
    for j in range(T):
        alpha = alphas[j]
        eta_x, eta_y = Gamma * alpha * step * own[0], Gamma * alpha * step * own[1]
        over_x, over_y = 1.0 / (eta_x + above[0]), 1.0 / (eta_y + above[1])
        pulls, folds, minus = (eta_x * over_x, eta_y * over_y), (over_x, over_y), (-over_x, -over_y)
        back = (1.0 / eta_x, 1.0 / eta_y)
        for row in range(0, rows, height):
            count = min(height, rows - row)
            here, there, size = row * columns, 2 * columns, count * columns
            _rows(
                ahead, m, there, z, pulls, fold, folds, n, here, z, n, here, minus, row, count, rows, columns, X, Y
            )  # fmt: skip
            if X[0] >= BALL:
                project_further(ahead[there : there + n], X)
            for plane in range(3):
                whole, part = plane * n + here, plane * m + there
                look_back(
                    average[whole : whole + size], moved[part : part + size], z[whole : whole + size],
                    ahead[part : part + size], alpha,
                )  # fmt: skip
            # One row behind, and to the end at the end.
            begin = max(row - 1, 0)
            behind = row + count - begin if row + count == rows else row + count - 1 - begin
            at = (begin - row + 2) * columns
            _rows(
                z, n, begin * columns, ahead, (1.0, 1.0), ahead, (0.0, 0.0), m, at, moved, m, at, back, begin, behind,
                rows, columns, X, Y,
            )  # fmt: skip
            _move_up(ahead, m, size, columns)
            _move_up(moved, m, size, columns)
        if X[0] >= BALL:
            project_further(z[:n], X)
