"""The innermost level for finite differences: the steps of `coupling_sweep` with products, steps and clipping fused.

A picture is one long row here: the neighbour below is a shift by its width, the neighbour across a shift by 1, which is
wrong only where a row ends and is put right there. So every long loop runs at stride 1 and becomes vector code.
"""

from __future__ import annotations

from saddleslide.arrays import Array
from saddleslide.kernels.building import FLAT, FLOAT, INT, NONE, READ, helper, kernel
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
def _at_edge(
    out: Array, base: Array, a: float, fold: Array, b: float, h: Array, v: Array, i: int, j: int, rows: int,
    columns: int, c: float, low: float, high: float,
) -> None:  # fmt: skip
    """The same for one pixel, with the neighbours that it has."""
    k = i * columns + j
    left = h[k - 1] if j > 0 else 0.0
    right = h[k] if j < columns - 1 else 0.0
    up = v[k - columns] if i > 0 else 0.0
    down = v[k] if i < rows - 1 else 0.0
    slope = (left - right) + (up - down)
    out[k] = clipped(a * base[k] + b * fold[k] + c * slope, low, high)


@helper
def _primal(
    out: Array, base: Array, a: float, fold: Array, b: float, h: Array, v: Array, rows: int, columns: int, c: float,
    low: float, high: float,
) -> None:  # fmt: skip
    """Write out = a base + b fold + c B^T (h, v), clipped."""
    n = rows * columns
    if rows > 2:
        first, last = columns, n - columns
        _across(
            out[first:last], base[first:last], a, fold[first:last], b, h[first - 1 : last - 1], h[first:last],
            v[: last - first], v[first:last], c, low, high,
        )  # fmt: skip
    for j in range(columns):
        _at_edge(out, base, a, fold, b, h, v, 0, j, rows, columns, c, low, high)
        _at_edge(out, base, a, fold, b, h, v, rows - 1, j, rows, columns, c, low, high)
    for i in range(rows):
        _at_edge(out, base, a, fold, b, h, v, i, 0, rows, columns, c, low, high)
        _at_edge(out, base, a, fold, b, h, v, i, columns - 1, rows, columns, c, low, high)


@helper
def _dual(
    out: Array, base: Array, a: float, fold: Array, b: float, x: Array, shift: int, c: float, low: float, high: float
) -> None:
    """Write out = a base + b fold - c (x shifted - x), clipped; without the difference in the last `shift` entries."""
    last = x.size - shift
    _along(out[:last], base[:last], a, fold[:last], b, x[:last], x[shift:], c, low, high)
    for i in range(last, x.size):
        out[i] = clipped(a * base[i] + b * fold[i], low, high)


@helper
def _stencil(
    out: Array, base: Array, a: tuple[float, float], fold: Array, b: tuple[float, float], z: Array,
    c: tuple[float, float], rows: int, columns: int, X: CompiledSet, Y: CompiledSet,
) -> None:  # fmt: skip
    """Write out = a base + b fold + c Q(z), a, b and c per block, projected."""
    n = rows * columns
    x, h, v = z[:n], z[n : 2 * n], z[2 * n :]
    low, high = interval(X)
    _primal(out[:n], base[:n], a[0], fold[:n], b[0], h, v, rows, columns, c[0], low, high)
    project_further(out[:n], X)
    low, high = interval(Y)
    out_h, base_h, fold_h = out[n : 2 * n], base[n : 2 * n], fold[n : 2 * n]
    _dual(out_h, base_h, a[1], fold_h, b[1], x, 1, c[1], low, high)
    for i in range(columns - 1, n, columns):
        out_h[i] = clipped(a[1] * base_h[i] + b[1] * fold_h[i], low, high)
    _dual(out[2 * n :], base[2 * n :], a[1], fold[2 * n :], b[1], x, columns, c[1], low, high)
    project_further(out[n:], Y)


@kernel(NONE, INT, INT, SET, SET, INT, FLOAT, FLOAT, READ, READ, READ, READ, READ, FLAT, FLAT, FLAT, FLAT, FLAT)
def difference_sweep(
    rows: int, columns: int, X: CompiledSet, Y: CompiledSet, T: int, Gamma: float, step: float, alphas: Array,
    own: Array, above: Array, pull: Array, slope: Array, z: Array, average: Array, ahead: Array, moved: Array,
    fold: Array,
) -> None:  # fmt: skip
    """T steps of the level of finite differences; `z` and `average` are updated in place, the rest is scratch."""
    fold_levels(fold, pull, slope)
    for j in range(T):
        alpha = alphas[j]
        eta_x, eta_y = Gamma * alpha * step * own[0], Gamma * alpha * step * own[1]
        over_x, over_y = 1.0 / (eta_x + above[0]), 1.0 / (eta_y + above[1])
        pulls, folds = (eta_x * over_x, eta_y * over_y), (over_x, over_y)
        _stencil(ahead, z, pulls, fold, folds, z, (-over_x, -over_y), rows, columns, X, Y)
        look_back(average, moved, z, ahead, alpha)
        _stencil(z, ahead, (1.0, 1.0), ahead, (0.0, 0.0), moved, (1.0 / eta_x, 1.0 / eta_y), rows, columns, X, Y)
