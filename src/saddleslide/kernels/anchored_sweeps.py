"""The innermost level with anchor terms as one compiled loop: products of averaged points are averages of products."""

from __future__ import annotations

from typing import TypeAlias

from numba import types

from saddleslide.arrays import Array
from saddleslide.kernels.building import FLAT, FLOAT, INT, NONE, READ, fusing, helper, kernel
from saddleslide.kernels.kinds import LAST
from saddleslide.kernels.products import COUPLING, CompiledCoupling, adjoint, forward, operator
from saddleslide.kernels.sets import SET, CompiledSet
from saddleslide.kernels.sweeps import approach, first_operator, put_right, step_scalars
from saddleslide.kernels.terms import TERM, CompiledTerm, fold_levels

# beta_x, beta_y, f'(x_in) and g'(y_in).
ANCHORS = types.Tuple((FLOAT, FLOAT, READ, READ))
CompiledAnchors: TypeAlias = tuple[float, float, Array, Array]


@helper
def _image_of(coupling: CompiledCoupling, anchors: CompiledAnchors, v: Array, n: int, out: Array) -> None:
    """The parts of Q(v) that active anchors need."""
    if anchors[0] > 0.0:
        forward(coupling, v[:n], out[n:])
    if anchors[1] > 0.0:
        adjoint(coupling, v[n:], out[:n])


@fusing
def _mix(out: Array, a: float, u: Array, b: float, v: Array, w: Array) -> None:
    for i in range(out.size):
        out[i] = a * u[i] + (b * v[i] + w[i])


@fusing
def _average_image(image: Array, alpha: float, here: Array, moved: Array) -> None:
    """Q(average) with Q(z~) = Q(z) - Q(z - z~)."""
    beta = 1.0 - alpha
    for i in range(image.size):
        image[i] = alpha * (here[i] - moved[i]) + beta * image[i]


@helper
def _add_anchors(
    coupling: CompiledCoupling, anchors: CompiledAnchors, n: int, slope: Array, point: Array, scratch: Array
) -> None:
    """Add the gradient of p_3 to the slope, from Q at its point, which becomes scratch."""
    beta_x, beta_y, at_f, at_g = anchors
    if beta_x > 0.0:
        of_y = point[n:]
        for i in range(of_y.size):
            of_y[i] = -beta_x * (of_y[i] + at_g[i])
        adjoint(coupling, of_y, scratch[:n])
        for i in range(n):
            slope[i] += scratch[i]
    if beta_y > 0.0:
        of_x = point[:n]
        for i in range(n):
            of_x[i] = beta_y * (of_x[i] + at_f[i])
        forward(coupling, of_x, scratch[n:])
        for i in range(n, slope.size):
            slope[i] -= scratch[i]


@kernel(
    NONE, COUPLING, SET, SET, TERM, TERM, INT, ANCHORS, INT, INT, INT, FLOAT, FLOAT, READ, READ, READ, READ, READ,
    READ, FLAT, FLAT, FLAT, FLAT, FLAT, FLAT, FLAT, FLAT, FLAT,
)  # fmt: skip
def anchored_sweep(
    coupling: CompiledCoupling, X: CompiledSet, Y: CompiledSet, of_x: CompiledTerm, of_y: CompiledTerm, n: int,
    anchors: CompiledAnchors, entry: int, T: int, spares: int, Gamma: float, step: float, alphas: Array, own: Array,
    above: Array, base: Array, pull: Array, slope: Array, z: Array, average: Array, fold: Array, moved: Array,
    here: Array, q: Array, point: Array, image: Array, base_image: Array,
) -> None:  # fmt: skip
    """T steps; `image` is Q(average) and `base_image` Q(base), made at an entry of the level, all else is scratch.

    `entry` is 0 within an entry, 1 at its beginning, and 2 at that of the run, where base is 0. `spares` are bits of
    `kinds`.
    """
    fold_levels(fold, pull, slope, of_x, of_y, n)
    if entry == 1:
        _image_of(coupling, anchors, base, n, base_image)
    elif entry == 2:
        base_image[:] = 0.0
    for j in range(T):
        alpha = alphas[j]
        if entry == 2 and j == 0:
            first_operator(coupling, z, n, spares, here)
        else:
            operator(coupling, z, n, here)
        if entry and j == 0:
            image[:] = here
        _mix(point, Gamma * alpha, here, Gamma * (1.0 - alpha), image, base_image)
        q[:] = here
        _add_anchors(coupling, anchors, n, q, point, moved)
        scalars = step_scalars(alpha, Gamma, step, own, above)
        approach(n, X, Y, of_x, of_y, scalars, z, average, fold, q, moved)
        if spares & LAST and j == T - 1:
            break
        operator(coupling, moved, n, q)
        _average_image(image, alpha, here, q)
        put_right(n, X, Y, scalars, z, moved, q)
