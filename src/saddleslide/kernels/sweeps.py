"""The innermost level as one compiled loop: all its steps, products and projections included, nothing allocated.

Both products at z~ come from Q(z) - Q(z~) = Q(z - z~). The twin of these loops is that of `sliding.recursion` on the
kernels of `reference`. The two halves of a step are kernels of their own, for products that are made elsewhere. With
anchor terms the products of averaged points are averages of products.
"""

from __future__ import annotations

from typing import TypeAlias

from saddleslide.kernels.arguments import (
    LAST,
    Above,
    Anchoring,
    Array,
    Blocks,
    Buffers,
    Factors,
    KnownCoupling,
    KnownSet,
    KnownTerm,
    Level,
    Parts,
    Read,
    Write,
)
from saddleslide.kernels.base_case import clipped, interval, limits, project_further, project_whole, settle
from saddleslide.kernels.building import fusing, helper, kernel
from saddleslide.kernels.products import adjoint, first_operator, forward, operator

BothFactors: TypeAlias = tuple[Factors, Factors]
# Of `Parts` a step takes what `Blocks` has as well.
_Blocks: TypeAlias = Blocks | Parts


@helper
def step_factors(alpha: float, level: Level, above: Above) -> BothFactors:
    """What a step does to x and to y."""
    eta_x, eta_y = level.Gamma * alpha * level.step * level.own[0], level.Gamma * alpha * level.step * level.own[1]
    weight_x, weight_y = eta_x + above.weights[0], eta_y + above.weights[1]
    over_x, over_y = 1.0 / weight_x, 1.0 / weight_y
    return (
        Factors(eta_x * over_x, over_x, 1.0 / eta_x, weight_x, alpha),
        Factors(eta_y * over_y, over_y, 1.0 / eta_y, weight_y, alpha),
    )


@helper
def copy(out: Array, v: Array) -> None:
    """Write out = v; an assignment to a slice would take seconds to compile, for what it says of wrong shapes."""
    for i in range(out.size):
        out[i] = v[i]


@helper
def scale(v: Array, factors: Array) -> None:
    """Multiply entries of v, in place; there may be no factors at all."""
    for i in range(factors.size):
        v[i] *= factors[i]


@fusing
def toward(out: Array, z: Array, fold: Array, q: Array, by: Factors, domain: KnownSet, term: KnownTerm) -> None:
    """Write out = a z + b (fold - q), taken through the simple term into the set."""
    (low, high), a, b = limits(domain, term), by.a, by.b
    for i in range(out.size):
        out[i] = clipped(a * z[i] + b * (fold[i] - q[i]), low, high)
    settle(out, by.weight, domain, term, 0)
    project_whole(out, domain)


@fusing
def look_back(average: Array, moved: Array, z: Array, alpha: float) -> None:
    """The running average with z~, which `moved` holds, and the way back from z~ to z in its place."""
    beta = 1.0 - alpha
    for i in range(z.size):
        ahead = moved[i]
        average[i] = alpha * ahead + beta * average[i]
        moved[i] = z[i] - ahead


@fusing
def _correct_block(z: Array, moved: Array, q: Array, c: float, domain: KnownSet) -> None:
    """Write z = z~ + c q, projected."""
    low, high = interval(domain)
    for i in range(z.size):
        z[i] = clipped((z[i] - moved[i]) + c * q[i], low, high)
    project_further(z, domain)


@helper
def _ahead(blocks: _Blocks, by: BothFactors, z: Array, average: Array, buffers: Buffers) -> None:
    """The first half of a step: z~ from q = Q(z), the average with it, and moved = z - z~."""
    n, (fold, moved, q) = blocks.n, buffers
    toward(moved[:n], z[:n], fold[:n], q[:n], by[0], blocks.X, blocks.f)
    toward(moved[n:], z[n:], fold[n:], q[n:], by[1], blocks.Y, blocks.g)
    look_back(average, moved, z, by[0].alpha)


@helper
def _correct(blocks: _Blocks, by: BothFactors, z: Array, buffers: Buffers) -> None:
    """The second half: the next iterate from q = Q(z - z~), in place."""
    n, (_, moved, q) = blocks.n, buffers
    _correct_block(z[:n], moved[:n], q[:n], by[0].c, blocks.X)
    _correct_block(z[n:], moved[n:], q[n:], by[1].c, blocks.Y)


@helper
def fold_levels(blocks: _Blocks, above: Above, fold: Array) -> None:
    """All outer levels, and the linear part of simple terms, as one vector."""
    pull, slope = above.pull, above.slope
    for i in range(fold.size):
        fold[i] = pull[i] - slope[i]
    for linear, first in ((blocks.f.linear, 0), (blocks.g.linear, blocks.n)):
        for i in range(linear.size):
            fold[first + i] -= linear[i]


@kernel
def fold_above(blocks: Blocks, above: Above, fold: Write) -> None:
    """What comes before the first half of a level's first step."""
    fold_levels(blocks, above, fold)


@kernel
def approach(blocks: Blocks, level: Level, above: Above, z: Read, average: Write, buffers: Buffers) -> None:
    """The first half of one step, where q is Q(z)."""
    _ahead(blocks, step_factors(level.alphas[0], level, above), z, average, buffers)


@kernel
def put_right(blocks: Blocks, level: Level, above: Above, z: Write, buffers: Buffers) -> None:
    """The second half, where q is Q(z - z~)."""
    _correct(blocks, step_factors(level.alphas[0], level, above), z, buffers)


@kernel
def coupling_sweep(parts: Parts, level: Level, above: Above, z: Write, average: Write, buffers: Buffers) -> None:
    """All steps of a level; `average` and `z` are updated in place, the buffers are scratch.

    `average` is z before the first step; a level may be swept in pieces. In a diagonal norm P the x part of Q has P^-1.
    """
    n, inverse, coupling, (fold, moved, q) = parts.n, parts.inverse, parts.coupling, buffers
    T, spares = level.alphas.size, level.spares
    fold_levels(parts, above, fold)
    for j in range(T):
        by = step_factors(level.alphas[j], level, above)
        first_operator(coupling, z, n, spares if j == 0 else 0, q)
        scale(q, inverse)
        _ahead(parts, by, z, average, buffers)
        if spares & LAST and j == T - 1:
            break
        operator(coupling, moved, n, q)
        scale(q, inverse)
        _correct(parts, by, z, buffers)


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


@kernel
def anchored_sweep(
    parts: Parts, anchors: Anchoring, level: Level, above: Above, z: Write, average: Write, buffers: Buffers, entry: int
) -> None:
    """As `coupling_sweep`, with Q(average) and Q(base) in `anchors`, made at an entry of the level.

    `entry` is 0 within an entry, 1 at its beginning, and 2 at that of the run, where base is 0.
    """
    n, coupling, (fold, moved, q) = parts.n, parts.coupling, buffers
    alphas, spares, here, image = level.alphas, level.spares, anchors.here, anchors.average
    fold_levels(parts, above, fold)
    if entry == 1:
        _image_of(coupling, anchors, above.base, n)
    elif entry == 2:
        anchors.base[:] = 0.0
    for j in range(alphas.size):
        alpha, by = alphas[j], step_factors(alphas[j], level, above)
        first_operator(coupling, z, n, spares if entry == 2 and j == 0 else 0, here)
        if entry and j == 0:
            copy(image, here)
        _mix(anchors.point, level.Gamma * alpha, here, level.Gamma * (1.0 - alpha), image, anchors.base)
        copy(q, here)
        _add_anchors(coupling, anchors, n, q, moved)
        _ahead(parts, by, z, average, buffers)
        if spares & LAST and j == alphas.size - 1:
            break
        operator(coupling, moved, n, q)
        _average_image(image, alpha, here, q)
        _correct(parts, by, z, buffers)
