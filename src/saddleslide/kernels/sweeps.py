"""The innermost level as one compiled loop: all its steps, products and projections included, nothing allocated.

Both products at z~ come from Q(z) - Q(z~) = Q(z - z~). The twin of these loops is that of `sliding.recursion` on the
kernels of `reference`. The two halves of a step are kernels of their own, for products that are made elsewhere.
"""

from __future__ import annotations

from saddleslide.arrays.base import Array
from saddleslide.kernels.arguments import (
    Above,
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
from saddleslide.kernels.building import dense_kernel, fusing, helper, kernel, sparse_kernel
from saddleslide.kernels.kinds import LAST, NO_TERM, ZERO_X, ZERO_Y
from saddleslide.kernels.products import adjoint, forward, operator
from saddleslide.kernels.sets import clipped, interval, project, project_further
from saddleslide.kernels.terms import fold_levels, limits, minimise


@helper
def step_factors(alpha: float, level: Level, above: Above) -> tuple[Factors, Factors]:
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


@fusing
def look_back(average: Array, moved: Array, z: Array, alpha: float) -> None:
    """The running average with z~, which `moved` holds, and the way back from z~ to z in its place."""
    beta = 1.0 - alpha
    for i in range(z.size):
        ahead = moved[i]
        average[i] = alpha * ahead + beta * average[i]
        moved[i] = z[i] - ahead


@helper
def _into(v: Array, weight: float, domain: KnownSet, term: KnownTerm) -> None:
    """From centres to the base case of a block, in place, for what has not been clipped already."""
    minimise(v, weight, term, 0)
    if term.kind == NO_TERM:
        project_further(v, domain)
    else:
        project(v, domain)


@fusing
def toward(out: Array, z: Array, fold: Array, q: Array, by: Factors, domain: KnownSet, term: KnownTerm) -> None:
    """Write out = a z + b (fold - q), taken through the simple term into the set."""
    (low, high), a, b = limits(domain, term), by.a, by.b
    for i in range(out.size):
        out[i] = clipped(a * z[i] + b * (fold[i] - q[i]), low, high)
    _into(out, by.weight, domain, term)


@fusing
def advance(z: Array, fold: Array, q: Array, by: Factors, domain: KnownSet, term: KnownTerm) -> None:
    """The same with z in the place of out: only one of the two loops can know that they are one array."""
    (low, high), a, b = limits(domain, term), by.a, by.b
    for i in range(z.size):
        z[i] = clipped(a * z[i] + b * (fold[i] - q[i]), low, high)
    _into(z, by.weight, domain, term)


@fusing
def correct(z: Array, moved: Array, q: Array, c: float, domain: KnownSet) -> None:
    """Write z = z~ + c q, projected."""
    low, high = interval(domain)
    for i in range(z.size):
        z[i] = clipped((z[i] - moved[i]) + c * q[i], low, high)
    project_further(z, domain)


@kernel
def fold_above(blocks: Blocks, above: Above, fold: Write) -> None:
    """All outer levels, and the linear part of simple terms, as one vector."""
    fold_levels(fold, above, blocks.f, blocks.g, blocks.n)


@kernel
def approach(blocks: Blocks, level: Level, above: Above, z: Read, average: Write, buffers: Buffers) -> None:
    """The first half of one step: z~ from q = Q(z), the average with it, and moved = z - z~."""
    n, (fold, moved, q), alpha = blocks.n, buffers, level.alphas[0]
    by_x, by_y = step_factors(alpha, level, above)
    toward(moved[:n], z[:n], fold[:n], q[:n], by_x, blocks.X, blocks.f)
    toward(moved[n:], z[n:], fold[n:], q[n:], by_y, blocks.Y, blocks.g)
    look_back(average, moved, z, alpha)


@kernel
def put_right(blocks: Blocks, level: Level, above: Above, z: Write, buffers: Buffers) -> None:
    """The second half: the next iterate from q = Q(z - z~), in place."""
    n, (_, moved, q) = blocks.n, buffers
    by_x, by_y = step_factors(level.alphas[0], level, above)
    correct(z[:n], moved[:n], q[:n], by_x.c, blocks.X)
    correct(z[n:], moved[n:], q[n:], by_y.c, blocks.Y)


@helper
def first_operator(coupling: KnownCoupling, v: Array, n: int, spares: int, out: Array) -> None:
    """Q(v) at a start whose zeros are known."""
    if spares & ZERO_Y:
        out[:n] = 0.0
    else:
        adjoint(coupling, v[n:], out[:n])
    if spares & ZERO_X:
        out[n:] = 0.0
    else:
        forward(coupling, v[:n], out[n:])


@helper
def _dual_operator(coupling: KnownCoupling, inverse: Array, v: Array, n: int, spares: int, out: Array) -> None:
    """Q(v), its x part in the norm of a diagonal metric."""
    if spares & (ZERO_X | ZERO_Y):
        first_operator(coupling, v, n, spares, out)
    else:
        operator(coupling, v, n, out)
    for i in range(inverse.size):
        out[i] *= inverse[i]


def _coupling_sweep(parts: Parts, level: Level, above: Above, z: Write, average: Write, buffers: Buffers) -> None:
    """All steps of a level; `average` and `z` are updated in place, the buffers are scratch.

    `average` is z before the first step; a level may be swept in pieces.
    """
    n, X, Y, f, g, inverse, coupling = parts
    fold, moved, q = buffers
    alphas, spares = level.alphas, level.spares
    fold_levels(fold, above, f, g, n)
    for j in range(alphas.size):
        by_x, by_y = step_factors(alphas[j], level, above)
        _dual_operator(coupling, inverse, z, n, spares if j == 0 else 0, q)
        toward(moved[:n], z[:n], fold[:n], q[:n], by_x, X, f)
        toward(moved[n:], z[n:], fold[n:], q[n:], by_y, Y, g)
        look_back(average, moved, z, alphas[j])
        if spares & LAST and j == alphas.size - 1:
            break
        _dual_operator(coupling, inverse, moved, n, 0, q)
        correct(z[:n], moved[:n], q[:n], by_x.c, X)
        correct(z[n:], moved[n:], q[n:], by_y.c, Y)


coupling_sweep_dense, coupling_sweep_sparse = dense_kernel(_coupling_sweep), sparse_kernel(_coupling_sweep)
