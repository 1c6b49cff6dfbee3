"""The innermost level as one compiled loop: all its steps, products and projections included, nothing allocated.

Both products at z~ come from Q(z) - Q(z~) = Q(z - z~). The twin of these loops is that of `sliding.recursion` on the
kernels of `reference`.
"""

from __future__ import annotations

from typing import TypeAlias

from numba import types

from saddleslide.arrays import Array
from saddleslide.kernels.building import FLAT, FLOAT, INT, NONE, READ, helper, kernel
from saddleslide.kernels.products import COUPLING, CompiledCoupling, operator
from saddleslide.kernels.sets import SET, CompiledSet, clipped, interval, project_further

# beta_x, beta_y, f'(x_in) and g'(y_in).
ANCHORS = types.Tuple((FLOAT, FLOAT, READ, READ))
CompiledAnchors: TypeAlias = tuple[float, float, Array, Array]


@helper
def fold_levels(fold: Array, pull: Array, slope: Array) -> None:
    """All outer levels as one vector."""
    for i in range(fold.size):
        fold[i] = pull[i] - slope[i]


@helper
def look_back(average: Array, moved: Array, z: Array, ahead: Array, alpha: float) -> None:
    """The running average with z~, and the way back from z~ to z."""
    for i in range(z.size):
        average[i] = alpha * ahead[i] + (1.0 - alpha) * average[i]
        moved[i] = z[i] - ahead[i]


@helper
def _block(out: Array, base: Array, a: float, fold: Array, b: float, q: Array, c: float, domain: CompiledSet) -> None:
    """Write out = a base + b fold + c q, projected."""
    low, high = interval(domain)
    for i in range(out.size):
        out[i] = clipped(a * base[i] + b * fold[i] + c * q[i], low, high)
    project_further(out, domain)


@helper
def _add_anchors(
    coupling: CompiledCoupling, anchors: CompiledAnchors, n: int, q: Array, point: Array, pull: Array
) -> None:
    """Add the gradient of p_3 at `point` to q; `point` becomes scratch."""
    beta_x, beta_y, at_f, at_g = anchors
    operator(coupling, point, n, pull)
    for i in range(n):
        point[i] = beta_y * (pull[i] + at_f[i])
    for i in range(n, point.size):
        point[i] = -beta_x * (pull[i] + at_g[i - n])
    operator(coupling, point, n, pull)
    for i in range(n):
        q[i] += pull[i]
    for i in range(n, point.size):
        q[i] -= pull[i]


@kernel(
    NONE, COUPLING, SET, SET, INT, ANCHORS, INT, FLOAT, FLOAT, READ, READ, READ, READ, READ, READ, FLAT, FLAT, FLAT,
    FLAT, FLAT, FLAT, FLAT,
)  # fmt: skip
def coupling_sweep(
    coupling: CompiledCoupling, X: CompiledSet, Y: CompiledSet, n: int, anchors: CompiledAnchors, T: int, Gamma: float,
    step: float, alphas: Array, own: Array, above: Array, base: Array, pull: Array, slope: Array, z: Array,
    average: Array, ahead: Array, moved: Array, fold: Array, q: Array, point: Array,
) -> None:  # fmt: skip
    """T steps of the coupling's level; `average` and `z` are updated in place, the other vectors are scratch.

    `point` may be empty without anchors. `average` is z before the first step; a level may be swept in pieces.
    """
    fold_levels(fold, pull, slope)
    for j in range(T):
        alpha = alphas[j]
        eta_x, eta_y = Gamma * alpha * step * own[0], Gamma * alpha * step * own[1]
        over_x, over_y = 1.0 / (eta_x + above[0]), 1.0 / (eta_y + above[1])
        operator(coupling, z, n, q)
        if anchors[0] > 0.0 or anchors[1] > 0.0:
            for i in range(z.size):
                point[i] = Gamma * alpha * z[i] + (Gamma * (1.0 - alpha) * average[i] + base[i])
            _add_anchors(coupling, anchors, n, q, point, ahead)
        _block(ahead[:n], z[:n], eta_x * over_x, fold[:n], over_x, q[:n], -over_x, X)
        _block(ahead[n:], z[n:], eta_y * over_y, fold[n:], over_y, q[n:], -over_y, Y)
        look_back(average, moved, z, ahead, alpha)
        operator(coupling, moved, n, q)
        _block(z[:n], ahead[:n], 1.0, ahead[:n], 0.0, q[:n], 1.0 / eta_x, X)
        _block(z[n:], ahead[n:], 1.0, ahead[n:], 0.0, q[n:], 1.0 / eta_y, Y)
