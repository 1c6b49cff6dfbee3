"""The innermost level with primal-dual steps as one compiled loop: two products a step, nothing allocated."""

from __future__ import annotations

from saddleslide.arrays import Array
from saddleslide.kernels.building import FLAT, FLOAT, INT, READ, fusing, kernel
from saddleslide.kernels.products import COUPLING, CompiledCoupling, adjoint, forward
from saddleslide.kernels.sets import SET, CompiledSet
from saddleslide.kernels.sweeps import step_scalars, toward
from saddleslide.kernels.terms import TERM, CompiledTerm, fold_levels


@fusing
def _look_ahead(out: Array, y: Array, theta: float, lag: Array) -> None:
    for i in range(out.size):
        out[i] = y[i] + theta * lag[i]


@fusing
def _average(average: Array, z: Array, alpha: float) -> None:
    beta = 1.0 - alpha
    for i in range(z.size):
        average[i] = alpha * z[i] + beta * average[i]


@kernel(
    FLOAT, COUPLING, SET, SET, TERM, TERM, READ, INT, INT, FLOAT, FLOAT, FLOAT, READ, READ, READ, READ, READ, FLAT,
    FLAT, FLAT, FLAT, FLAT,
)  # fmt: skip
def primal_dual_sweep(
    coupling: CompiledCoupling, X: CompiledSet, Y: CompiledSet, of_x: CompiledTerm, of_y: CompiledTerm, inverse: Array,
    n: int, T: int, Gamma: float, step: float, before: float, alphas: Array, own: Array, above: Array, pull: Array,
    slope: Array, z: Array, average: Array, lag: Array, fold: Array, q: Array,
) -> float:  # fmt: skip
    """T steps; `lag` is the last step of y and `before` its eta, infinite at the beginning. Gives the last eta."""
    fold_levels(fold, pull, slope, of_x, of_y, n)
    x, y, q_x, q_y = z[:n], z[n:], q[:n], q[n:]
    for j in range(T):
        eta = Gamma * alphas[j] * step
        a_x, a_y, b_x, b_y, weight_x, weight_y, _, _, alpha = step_scalars(alphas[j], Gamma, step, own, above)
        _look_ahead(q_y, y, eta / before, lag)
        adjoint(coupling, q_y, q_x)
        for i in range(inverse.size):
            q_x[i] *= inverse[i]
        toward(x, x, a_x, fold[:n], b_x, q_x, weight_x, X, of_x)
        forward(coupling, x, q_y)
        lag[:] = y
        toward(y, y, a_y, fold[n:], b_y, q_y, weight_y, Y, of_y)
        for i in range(lag.size):
            lag[i] = y[i] - lag[i]
        _average(average, z, alpha)
        before = eta
    return before
