"""The innermost level as one compiled loop: all its steps, products and projections included, nothing allocated.

Both products at z~ come from Q(z) - Q(z~) = Q(z - z~). The twin of these loops is that of `sliding.recursion` on the
kernels of `reference`. The two halves of a step are kernels of their own, for products that are made elsewhere. With
anchor terms the products of averaged points are averages of products. A primal-dual step takes two products.
"""

from __future__ import annotations

from saddleslide.kernels.arguments import (
    BOX,
    LAST,
    ZERO_Y,
    Above,
    Anchoring,
    Array,
    Buffers,
    DualBuffers,
    Factors,
    KnownOperator,
    KnownSet,
    KnownTerm,
    Level,
    Parts,
    Read,
    SomeBlocks,
    Write,
)
from saddleslide.kernels.base_case import clip, clip_number, interval, limits, project_whole, settle
from saddleslide.kernels.building import fusing, helper, kernel
from saddleslide.kernels.products import adjoint, first_operator, forward, operator


@helper
def factors(level: Level, above: Above, alpha: float, block: int) -> Factors:
    """What a step does to x, block 0, or to y."""
    eta = level.Gamma * alpha * level.step * level.own[block]
    weight = eta + above.weights[block]
    over = 1.0 / weight
    return Factors(eta * over, over, 1.0 / eta, weight, alpha)


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
        out[i] = clip_number(a * z[i] + b * (fold[i] - q[i]), low, high)
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
        z[i] = clip_number((z[i] - moved[i]) + c * q[i], low, high)
    if domain.kind == BOX:
        clip(z, domain.lower, domain.upper)
    project_whole(z, domain)


@kernel
def fold_above(blocks: SomeBlocks, above: Above, fold: Write) -> None:
    """All outer levels, and the linear part of simple terms, as one vector: what comes before a level's first step."""
    pull, slope = above.pull, above.slope
    for i in range(fold.size):
        fold[i] = pull[i] - slope[i]
    for linear, first in ((blocks.f.linear, 0), (blocks.g.linear, blocks.n)):
        for i in range(linear.size):
            fold[first + i] -= linear[i]


@kernel
def approach(blocks: SomeBlocks, level: Level, above: Above, j: int, z: Read, average: Write, buffers: Buffers) -> None:
    """The first half of step j: z~ from q = Q(z), the average with it, and moved = z - z~."""
    n, (fold, moved, q) = blocks.n, buffers
    by_x, by_y = factors(level, above, level.alphas[j], 0), factors(level, above, level.alphas[j], 1)
    toward(moved[:n], z[:n], fold[:n], q[:n], by_x, blocks.X, blocks.f)
    toward(moved[n:], z[n:], fold[n:], q[n:], by_y, blocks.Y, blocks.g)
    look_back(average, moved, z, level.alphas[j])


@kernel
def put_right(blocks: SomeBlocks, level: Level, above: Above, j: int, z: Write, buffers: Buffers) -> None:
    """The second half: the next iterate from q = Q(z - z~), in place."""
    n, (_, moved, q) = blocks.n, buffers
    _correct_block(z[:n], moved[:n], q[:n], factors(level, above, level.alphas[j], 0).c, blocks.X)
    _correct_block(z[n:], moved[n:], q[n:], factors(level, above, level.alphas[j], 1).c, blocks.Y)


@kernel
def sweep_operator(parts: Parts, level: Level, above: Above, z: Write, average: Write, buffers: Buffers) -> None:
    """All steps of a level; `average` and `z` are updated in place, the buffers are scratch.

    `average` is z before the first step; a level may be swept in pieces. In a diagonal norm P the x part of Q has P^-1.
    """
    n, inverse, coupling, (fold, moved, q) = parts.n, parts.inverse, parts.coupling, buffers
    T, spares = level.alphas.size, level.spares
    fold_above(parts, above, fold)
    for j in range(T):
        first_operator(coupling, z, n, spares if j == 0 else 0, q)
        scale(q, inverse)
        approach(parts, level, above, j, z, average, buffers)
        if spares & LAST and j == T - 1:
            break
        operator(coupling, moved, n, q)
        scale(q, inverse)
        put_right(parts, level, above, j, z, buffers)


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
def _add_anchors(coupling: KnownOperator, anchors: Anchoring, n: int, slope: Array, scratch: Array) -> None:
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
def sweep_anchored(
    parts: Parts, anchors: Anchoring, level: Level, above: Above, z: Write, average: Write, buffers: Buffers, entry: int
) -> None:
    """As `sweep_operator`, with Q(average) and Q(base) in `anchors`, made at an entry of the level.

    `entry` is 0 within an entry, 1 at its beginning, and 2 at that of the run, where base is 0.
    """
    n, coupling, (fold, moved, q) = parts.n, parts.coupling, buffers
    alphas, spares, here, image = level.alphas, level.spares, anchors.here, anchors.average
    fold_above(parts, above, fold)
    if entry == 1:
        # The parts of Q that active anchors need.
        if anchors.beta_x > 0.0:
            forward(coupling, above.base[:n], anchors.base[n:])
        if anchors.beta_y > 0.0:
            adjoint(coupling, above.base[n:], anchors.base[:n])
    elif entry == 2:
        anchors.base[:] = 0.0
    for j in range(alphas.size):
        alpha = alphas[j]
        first_operator(coupling, z, n, spares if entry == 2 and j == 0 else 0, here)
        if entry and j == 0:
            copy(image, here)
        _mix(anchors.point, level.Gamma * alpha, here, level.Gamma * (1.0 - alpha), image, anchors.base)
        copy(q, here)
        _add_anchors(coupling, anchors, n, q, moved)
        approach(parts, level, above, j, z, average, buffers)
        if spares & LAST and j == alphas.size - 1:
            break
        operator(coupling, moved, n, q)
        _average_image(image, alpha, here, q)
        put_right(parts, level, above, j, z, buffers)


@fusing
def look_ahead(out: Array, y: Array, theta: float, lag: Array) -> None:
    """Write out = y + theta times the last step of y."""
    for i in range(out.size):
        out[i] = y[i] + theta * lag[i]


@fusing
def _advance(z: Array, fold: Array, q: Array, by: Factors, domain: KnownSet, term: KnownTerm) -> None:
    """As `toward`, in place: only one of the two loops can know that they are one array."""
    (low, high), a, b = limits(domain, term), by.a, by.b
    for i in range(z.size):
        z[i] = clip_number(a * z[i] + b * (fold[i] - q[i]), low, high)
    settle(z, by.weight, domain, term, 0)
    project_whole(z, domain)


@helper
def advance_y(parts: Parts, z: Array, buffers: DualBuffers, by: Factors) -> None:
    """The base case of y with q = -B x, and its step."""
    n, (lag, fold, q, _) = parts.n, buffers
    y = z[n:]
    forward(parts.coupling, z[:n], q[n:])
    copy(lag, y)
    _advance(y, fold[n:], q[n:], by, parts.Y, parts.g)
    for i in range(lag.size):
        lag[i] = y[i] - lag[i]


@fusing
def average_with(average: Array, z: Array, alpha: float) -> None:
    """The running average with z."""
    beta = 1.0 - alpha
    for i in range(z.size):
        average[i] = alpha * z[i] + beta * average[i]


@kernel
def primal_dual_sweep(
    parts: Parts, level: Level, above: Above, z: Write, average: Write, buffers: DualBuffers, before: float
) -> float:
    """All steps; `lag` is the last step of y and `before` its eta, infinite at the beginning. Gives the last eta."""
    n, alphas, (lag, fold, q, _) = parts.n, level.alphas, buffers
    fold_above(parts, above, fold)
    for j in range(alphas.size):
        eta = level.Gamma * alphas[j] * level.step
        by_x, by_y = factors(level, above, alphas[j], 0), factors(level, above, alphas[j], 1)
        if j == 0 and level.spares & ZERO_Y > 0:
            q[:n] = 0.0
        else:
            look_ahead(q[n:], z[n:], eta / before, lag)
            adjoint(parts.coupling, q[n:], q[:n])
        scale(q, parts.inverse)
        _advance(z[:n], fold[:n], q[:n], by_x, parts.X, parts.f)
        advance_y(parts, z, buffers, by_y)
        average_with(average, z, alphas[j])
        before = eta
    return before
