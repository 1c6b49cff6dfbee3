"""The innermost level with primal-dual steps as one compiled loop: two products a step, nothing allocated.

For finite differences the products are part of the loops that use them; a picture is one long row, as in
`difference_sweeps`, and dual entries that no difference reaches are put right after each loop.
"""

from __future__ import annotations

from saddleslide.arrays import Array
from saddleslide.kernels.building import FLAT, FLOAT, INT, READ, fusing, helper, kernel
from saddleslide.kernels.difference_rows import settle, toward_x, without_product
from saddleslide.kernels.kinds import BALL, BOX, DIFFERENCES, NO_TERM, ZERO_Y
from saddleslide.kernels.products import COUPLING, CompiledCoupling, adjoint, forward
from saddleslide.kernels.sets import SET, CompiledSet, clipped, interval, project_further
from saddleslide.kernels.sweeps import advance, step_scalars
from saddleslide.kernels.terms import TERM, CompiledTerm, fold_levels, limits


@fusing
def _look_ahead(out: Array, y: Array, theta: float, lag: Array) -> None:
    for i in range(out.size):
        out[i] = y[i] + theta * lag[i]


@fusing
def _average(average: Array, z: Array, alpha: float) -> None:
    beta = 1.0 - alpha
    for i in range(z.size):
        average[i] = alpha * z[i] + beta * average[i]


@fusing
def _along(
    y: Array, lag: Array, a: float, fold: Array, b: float, x: Array, following: Array, low: float, high: float
) -> None:
    """Write y = a y + b (fold + following - x), clipped, and its step."""
    for i in range(y.size):
        new = clipped(a * y[i] + b * (fold[i] + (following[i] - x[i])), low, high)
        lag[i] = new - y[i]
        y[i] = new


@helper
def _difference_x(
    rows: int, columns: int, at_zero: bool, out: Array, x: Array, a: float, fold: Array, b: float, ahead: Array,
    inverse: Array, weight: float, X: CompiledSet, term: CompiledTerm, nothing: Array,
) -> None:  # fmt: skip
    """Write the base case of x with B^T of `ahead`, whose entries without a difference become 0."""
    n = rows * columns
    h, v = ahead[:n], ahead[n:]
    for k in range(columns - 1, n, columns):
        h[k] = 0.0
    v[n - columns :] = 0.0
    low, high = limits(X, term)
    if at_zero:
        without_product(out, x, a, fold, b, low, high)
    else:
        # Nothing stands above, and nothing to the left of the first pixel.
        toward_x(
            out[1:columns], x[1:columns], a, fold[1:columns], b, h[: columns - 1], h[1:columns], nothing[1:columns],
            v[1:columns], inverse[1:columns], low, high,
        )  # fmt: skip
        slope = -h[0] - v[0]
        out[0] = clipped(a * x[0] + b * (fold[0] - (inverse[0] * slope if inverse.size > 0 else slope)), low, high)
        toward_x(
            out[columns:], x[columns:], a, fold[columns:n], b, h[columns - 1 : n - 1], h[columns:], v[: n - columns],
            v[columns:], inverse[columns:], low, high,
        )  # fmt: skip
    settle(out, weight, term, X, 0)
    if X[0] >= BALL:
        project_further(out, X)


@helper
def _difference_y(
    rows: int, columns: int, x: Array, y: Array, lag: Array, a: float, fold: Array, b: float, low: float, high: float,
    ends: Array,
) -> None:  # fmt: skip
    """The step of y with B x, clipped to an interval, in place; `ends` are its entries that no difference reaches."""
    n = rows * columns
    for r in range(rows):
        k = (r + 1) * columns - 1
        ends[r] = y[k]
    _along(y[: n - 1], lag[: n - 1], a, fold[: n - 1], b, x[: n - 1], x[1:], low, high)
    for r in range(rows):
        k = (r + 1) * columns - 1
        y[k] = clipped(a * ends[r] + b * fold[k], low, high)
        lag[k] = y[k] - ends[r]
    inside = 2 * n - columns
    _along(y[n:inside], lag[n:inside], a, fold[n:inside], b, x[: n - columns], x[columns:], low, high)
    for k in range(inside, 2 * n):
        new = clipped(a * y[k] + b * fold[k], low, high)
        lag[k], y[k] = new - y[k], new


@kernel(
    FLOAT, COUPLING, SET, SET, TERM, TERM, READ, INT, INT, INT, FLOAT, FLOAT, FLOAT, READ, READ, READ, READ, READ,
    FLAT, FLAT, FLAT, FLAT, FLAT, FLAT,
)  # fmt: skip
def primal_dual_sweep(
    coupling: CompiledCoupling, X: CompiledSet, Y: CompiledSet, of_x: CompiledTerm, of_y: CompiledTerm, inverse: Array,
    n: int, T: int, spares: int, Gamma: float, step: float, before: float, alphas: Array, own: Array, above: Array,
    pull: Array, slope: Array, z: Array, average: Array, lag: Array, fold: Array, q: Array, margins: Array,
) -> float:  # fmt: skip
    """T steps; `lag` is the last step of y and `before` its eta, infinite at the beginning. Gives the last eta.

    For finite differences `margins` holds a row of zeros and then a number per row of the picture. `spares` are bits
    of `kinds`.
    """
    fold_levels(fold, pull, slope, of_x, of_y, n)
    x, y, q_x, q_y = z[:n], z[n:], q[:n], q[n:]
    kind, rows, columns = coupling[0], coupling[1], coupling[2]
    low, high = interval(Y)
    for j in range(T):
        eta = Gamma * alphas[j] * step
        a_x, a_y, b_x, b_y, weight_x, weight_y, _, _, alpha = step_scalars(alphas[j], Gamma, step, own, above)
        at_zero = j == 0 and spares & ZERO_Y > 0
        _look_ahead(q_y, y, eta / before, lag)
        if kind == DIFFERENCES:
            nothing, ends = margins[:columns], margins[columns:]
            _difference_x(rows, columns, at_zero, q_x, x, a_x, fold[:n], b_x, q_y, inverse, weight_x, X, of_x, nothing)
            x[:] = q_x
        else:
            if at_zero:
                q_x[:] = 0.0
            else:
                adjoint(coupling, q_y, q_x)
            for i in range(inverse.size):
                q_x[i] *= inverse[i]
            advance(x, a_x, fold[:n], b_x, q_x, weight_x, X, of_x)
        if kind == DIFFERENCES and Y[0] < BOX and of_y[0] == NO_TERM:
            _difference_y(rows, columns, x, y, lag, a_y, fold[n:], b_y, low, high, ends)
        else:
            forward(coupling, x, q_y)
            lag[:] = y
            advance(y, a_y, fold[n:], b_y, q_y, weight_y, Y, of_y)
            for i in range(lag.size):
                lag[i] = y[i] - lag[i]
        _average(average, z, alpha)
        before = eta
    return before
