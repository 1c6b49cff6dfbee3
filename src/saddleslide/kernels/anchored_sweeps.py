"""The innermost level with anchor terms as one compiled loop: products of averaged points are averages of products."""

from __future__ import annotations

from saddleslide.arrays.base import Array
from saddleslide.kernels.arguments import Above, Anchoring, Buffers, KnownCoupling, Level, Parts, Write
from saddleslide.kernels.building import dense_kernel, difference_kernel, fusing, helper, sparse_kernel
from saddleslide.kernels.kinds import LAST
from saddleslide.kernels.products import adjoint, forward, operator
from saddleslide.kernels.sweeps import copy, correct, first_operator, look_back, step_factors, toward
from saddleslide.kernels.terms import fold_levels


@helper
def _image_of(coupling: KnownCoupling, anchors: Anchoring, v: Array, n: int) -> None:
    """The parts of Q(v) that active anchors need."""
    if anchors.beta_x > 0.0:
        forward(coupling, v[:n], anchors.base[n:])
    if anchors.beta_y > 0.0:
        adjoint(coupling, v[n:], anchors.base[:n])


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
def _add_anchors(coupling: KnownCoupling, anchors: Anchoring, n: int, slope: Array, scratch: Array) -> None:
    """Add the gradient of p_3 to the slope, from Q at its point, which becomes scratch."""
    beta_x, beta_y, at_f, at_g = anchors.beta_x, anchors.beta_y, anchors.at_f, anchors.at_g
    if beta_x > 0.0:
        of_y = anchors.point[n:]
        for i in range(of_y.size):
            of_y[i] = -beta_x * (of_y[i] + at_g[i])
        adjoint(coupling, of_y, scratch[:n])
        for i in range(n):
            slope[i] += scratch[i]
    if beta_y > 0.0:
        of_x = anchors.point[:n]
        for i in range(n):
            of_x[i] = beta_y * (of_x[i] + at_f[i])
        forward(coupling, of_x, scratch[n:])
        for i in range(n, slope.size):
            slope[i] -= scratch[i]


def _anchored_sweep(
    parts: Parts, anchors: Anchoring, level: Level, above: Above, z: Write, average: Write, buffers: Buffers, entry: int
) -> None:
    """As `coupling_sweep`, with Q(average) and Q(base) in `anchors`, made at an entry of the level.

    `entry` is 0 within an entry, 1 at its beginning, and 2 at that of the run, where base is 0.
    """
    n, X, Y, f, g, _, coupling = parts
    fold, moved, q = buffers
    alphas, spares, here, image = level.alphas, level.spares, anchors.here, anchors.average
    fold_levels(fold, above, f, g, n)
    if entry == 1:
        _image_of(coupling, anchors, above.base, n)
    elif entry == 2:
        anchors.base[:] = 0.0
    for j in range(alphas.size):
        alpha = alphas[j]
        if entry == 2 and j == 0:
            first_operator(coupling, z, n, spares, here)
        else:
            operator(coupling, z, n, here)
        if entry and j == 0:
            copy(image, here)
        _mix(anchors.point, level.Gamma * alpha, here, level.Gamma * (1.0 - alpha), image, anchors.base)
        copy(q, here)
        _add_anchors(coupling, anchors, n, q, moved)
        by_x, by_y = step_factors(alpha, level, above)
        toward(moved[:n], z[:n], fold[:n], q[:n], by_x, X, f)
        toward(moved[n:], z[n:], fold[n:], q[n:], by_y, Y, g)
        look_back(average, moved, z, alpha)
        if spares & LAST and j == alphas.size - 1:
            break
        operator(coupling, moved, n, q)
        _average_image(image, alpha, here, q)
        correct(z[:n], moved[:n], q[:n], by_x.c, X)
        correct(z[n:], moved[n:], q[n:], by_y.c, Y)


anchored_sweep_dense, anchored_sweep_sparse = dense_kernel(_anchored_sweep), sparse_kernel(_anchored_sweep)
anchored_sweep_differences = difference_kernel(_anchored_sweep)
