"""The innermost level with primal-dual steps as one compiled loop: two products a step, nothing allocated.

For finite differences the products are part of the loops that use them; a picture is one long row, as in
`difference_sweeps`, and dual entries that no difference reaches are put right after each loop.
"""

from __future__ import annotations

from saddleslide.arrays.base import Array
from saddleslide.kernels.arguments import Above, Around, DualBuffers, Factors, KnownSet, KnownTerm, Level, Parts, Write
from saddleslide.kernels.building import dense_kernel, difference_kernel, fusing, helper, sparse_kernel
from saddleslide.kernels.difference_rows import Limits, settle, toward_x, without_product
from saddleslide.kernels.kinds import BALL, BOX, NO_TERM, ZERO_Y
from saddleslide.kernels.products import adjoint, forward
from saddleslide.kernels.sets import clipped, interval, project_further
from saddleslide.kernels.sweeps import advance, copy, step_factors
from saddleslide.kernels.terms import fold_levels, limits


@fusing
def look_ahead(out: Array, y: Array, theta: float, lag: Array) -> None:
    """Write out = y + theta times the last step of y."""
    for i in range(out.size):
        out[i] = y[i] + theta * lag[i]


@fusing
def _average(average: Array, z: Array, alpha: float) -> None:
    beta = 1.0 - alpha
    for i in range(z.size):
        average[i] = alpha * z[i] + beta * average[i]


@helper
def _advance_y(y: Array, lag: Array, fold: Array, q: Array, by: Factors, Y: KnownSet, term: KnownTerm) -> None:
    """The base case of y with q = -B x, and its step."""
    copy(lag, y)
    advance(y, fold, q, by, Y, term)
    for i in range(lag.size):
        lag[i] = y[i] - lag[i]


def _primal_dual_sweep(
    parts: Parts, level: Level, above: Above, z: Write, average: Write, buffers: DualBuffers, before: float
) -> float:
    """All steps; `lag` is the last step of y and `before` its eta, infinite at the beginning. Gives the last eta."""
    n, X, Y, f, g, inverse, coupling = parts
    lag, fold, q, _ = buffers
    alphas, x, y, q_x, q_y = level.alphas, z[:n], z[n:], q[:n], q[n:]
    fold_levels(fold, above, f, g, n)
    for j in range(alphas.size):
        eta = level.Gamma * alphas[j] * level.step
        by_x, by_y = step_factors(alphas[j], level, above)
        if j == 0 and level.spares & ZERO_Y > 0:
            q_x[:] = 0.0
        else:
            look_ahead(q_y, y, eta / before, lag)
            adjoint(coupling, q_y, q_x)
        for i in range(inverse.size):
            q_x[i] *= inverse[i]
        advance(x, fold[:n], q_x, by_x, X, f)
        forward(coupling, x, q_y)
        _advance_y(y, lag, fold[n:], q_y, by_y, Y, g)
        _average(average, z, alphas[j])
        before = eta
    return before


@fusing
def _along(y: Array, lag: Array, fold: Array, x: Array, following: Array, by: Factors, within: Limits) -> None:
    """Write y = a y + b (fold + following - x), clipped, and its step."""
    (low, high), a, b = within, by.a, by.b
    for i in range(y.size):
        new = clipped(a * y[i] + b * (fold[i] + (following[i] - x[i])), low, high)
        lag[i] = new - y[i]
        y[i] = new


@helper
def _difference_x(parts: Parts, x: Array, ahead: Array, out: Array, buffers: DualBuffers, by: Factors) -> None:
    """Write the base case of x with B^T of `ahead`, whose entries without a difference become 0."""
    n, columns, inverse, fold = parts.n, parts.coupling.columns, parts.inverse, buffers.fold
    h, v, within = ahead[:n], ahead[n:], limits(parts.X, parts.f)
    for k in range(columns - 1, n, columns):
        h[k] = 0.0
    v[n - columns :] = 0.0
    # Nothing stands above, and nothing to the left of the first pixel.
    around = Around(h[: columns - 1], h[1:columns], buffers.margins[1:columns], v[1:columns])
    toward_x(out[1:columns], x[1:columns], fold[1:columns], around, inverse[1:columns], by, within)
    slope = -h[0] - v[0]
    slope = inverse[0] * slope if inverse.size > 0 else slope
    out[0] = clipped(by.a * x[0] + by.b * (fold[0] - slope), within[0], within[1])
    around = Around(h[columns - 1 : n - 1], h[columns:], v[: n - columns], v[columns:])
    toward_x(out[columns:], x[columns:], fold[columns:n], around, inverse[columns:], by, within)


@helper
def _difference_y(parts: Parts, x: Array, y: Array, buffers: DualBuffers, by: Factors) -> None:
    """The step of y with B x, clipped to an interval, in place."""
    n, rows, columns = parts.n, parts.coupling.rows, parts.coupling.columns
    lag, fold, within = buffers.lag, buffers.fold[n:], interval(parts.Y)
    (low, high), a, b = within, by.a, by.b
    # Entries of y that no difference reaches.
    ends = buffers.margins[columns:]
    for r in range(rows):
        k = (r + 1) * columns - 1
        ends[r] = y[k]
    _along(y[: n - 1], lag[: n - 1], fold[: n - 1], x[: n - 1], x[1:], by, within)
    for r in range(rows):
        k = (r + 1) * columns - 1
        y[k] = clipped(a * ends[r] + b * fold[k], low, high)
        lag[k] = y[k] - ends[r]
    inside = 2 * n - columns
    _along(y[n:inside], lag[n:inside], fold[n:inside], x[: n - columns], x[columns:], by, within)
    for k in range(inside, 2 * n):
        new = clipped(a * y[k] + b * fold[k], low, high)
        lag[k], y[k] = new - y[k], new


@difference_kernel
def primal_dual_sweep_differences(
    parts: Parts, level: Level, above: Above, z: Write, average: Write, buffers: DualBuffers, before: float
) -> float:
    """The same for finite differences; `margins` holds a row of zeros and then a number per row of the picture."""
    n, X, Y, f, g, _, coupling = parts
    lag, fold, q, _ = buffers
    alphas, x, y, q_x, q_y = level.alphas, z[:n], z[n:], q[:n], q[n:]
    fold_levels(fold, above, f, g, n)
    for j in range(alphas.size):
        eta = level.Gamma * alphas[j] * level.step
        by_x, by_y = step_factors(alphas[j], level, above)
        if j == 0 and level.spares & ZERO_Y > 0:
            without_product(q_x, x, fold[:n], by_x, limits(X, f))
        else:
            look_ahead(q_y, y, eta / before, lag)
            _difference_x(parts, x, q_y, q_x, buffers, by_x)
        settle(q_x, by_x.weight, X, f, 0)
        if X.kind >= BALL:
            project_further(q_x, X)
        copy(x, q_x)
        if Y.kind < BOX and g.kind == NO_TERM:
            _difference_y(parts, x, y, buffers, by_y)
        else:
            forward(coupling, x, q_y)
            _advance_y(y, lag, fold[n:], q_y, by_y, Y, g)
        _average(average, z, alphas[j])
        before = eta
    return before


primal_dual_sweep_dense = dense_kernel(_primal_dual_sweep)
primal_dual_sweep_sparse = sparse_kernel(_primal_dual_sweep)
