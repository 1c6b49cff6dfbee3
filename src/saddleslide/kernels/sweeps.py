"""The innermost level as one compiled loop: all its steps, products and projections included, nothing allocated.

Both products at z~ come from Q(z) - Q(z~) = Q(z - z~). The twin of these loops is that of `sliding.recursion` on the
kernels of `reference`. The two halves of a step are kernels of their own, for products that are made elsewhere.
"""

from __future__ import annotations

from typing import TypeAlias

from numba import types

from saddleslide.arrays import Array
from saddleslide.kernels.building import FLAT, FLOAT, INT, NONE, READ, fusing, helper, kernel
from saddleslide.kernels.kinds import LAST, NO_TERM, ZERO_X, ZERO_Y
from saddleslide.kernels.products import COUPLING, CompiledCoupling, adjoint, forward, operator
from saddleslide.kernels.sets import SET, CompiledSet, clipped, interval, project, project_further
from saddleslide.kernels.terms import TERM, CompiledTerm, fold_levels, limits, minimise

# What `step_scalars` gives.
Scalars: TypeAlias = tuple[float, float, float, float, float, float, float, float, float]
SCALARS = types.UniTuple(FLOAT, 9)


@kernel(SCALARS, FLOAT, FLOAT, FLOAT, READ, READ)
def step_scalars(alpha: float, Gamma: float, step: float, own: Array, above: Array) -> Scalars:
    """Factors of z and of the fold, weights of the base case, factors of the correction, and alpha."""
    eta_x, eta_y = Gamma * alpha * step * own[0], Gamma * alpha * step * own[1]
    weight_x, weight_y = eta_x + above[0], eta_y + above[1]
    over_x, over_y = 1.0 / weight_x, 1.0 / weight_y
    return eta_x * over_x, eta_y * over_y, over_x, over_y, weight_x, weight_y, 1.0 / eta_x, 1.0 / eta_y, alpha


@fusing
def look_back(average: Array, moved: Array, z: Array, alpha: float) -> None:
    """The running average with z~, which `moved` holds, and the way back from z~ to z in its place."""
    beta = 1.0 - alpha
    for i in range(z.size):
        ahead = moved[i]
        average[i] = alpha * ahead + beta * average[i]
        moved[i] = z[i] - ahead


@helper
def _into(v: Array, weight: float, domain: CompiledSet, term: CompiledTerm) -> None:
    """From centres to the base case of a block, in place, for what has not been clipped already."""
    minimise(v, weight, term, 0)
    if term[0] == NO_TERM:
        project_further(v, domain)
    else:
        project(v, domain)


@fusing
def _toward(
    out: Array, z: Array, a: float, fold: Array, b: float, q: Array, weight: float, domain: CompiledSet,
    term: CompiledTerm,
) -> None:  # fmt: skip
    """Write out = a z + b (fold - q), taken through the simple term into the set."""
    low, high = limits(domain, term)
    for i in range(out.size):
        out[i] = clipped(a * z[i] + b * (fold[i] - q[i]), low, high)
    _into(out, weight, domain, term)


@fusing
def advance(
    z: Array, a: float, fold: Array, b: float, q: Array, weight: float, domain: CompiledSet, term: CompiledTerm
) -> None:
    """The same with z in the place of out: only one of the two loops can know that they are one array."""
    low, high = limits(domain, term)
    for i in range(z.size):
        z[i] = clipped(a * z[i] + b * (fold[i] - q[i]), low, high)
    _into(z, weight, domain, term)


@fusing
def _put_right(z: Array, moved: Array, q: Array, c: float, domain: CompiledSet) -> None:
    """Write z = z~ + c q, projected."""
    low, high = interval(domain)
    for i in range(z.size):
        z[i] = clipped((z[i] - moved[i]) + c * q[i], low, high)
    project_further(z, domain)


@kernel(NONE, INT, SET, SET, TERM, TERM, SCALARS, READ, FLAT, READ, READ, FLAT)
def approach(
    n: int, X: CompiledSet, Y: CompiledSet, of_x: CompiledTerm, of_y: CompiledTerm, scalars: Scalars, z: Array,
    average: Array, fold: Array, q: Array, moved: Array,
) -> None:  # fmt: skip
    """z~ from q = Q(z), the average with it, and moved = z - z~."""
    a_x, a_y, b_x, b_y, weight_x, weight_y, _, _, alpha = scalars
    _toward(moved[:n], z[:n], a_x, fold[:n], b_x, q[:n], weight_x, X, of_x)
    _toward(moved[n:], z[n:], a_y, fold[n:], b_y, q[n:], weight_y, Y, of_y)
    look_back(average, moved, z, alpha)


@kernel(NONE, INT, SET, SET, SCALARS, FLAT, READ, READ)
def put_right(n: int, X: CompiledSet, Y: CompiledSet, scalars: Scalars, z: Array, moved: Array, q: Array) -> None:
    """The next iterate from q = Q(z - z~), in place."""
    _put_right(z[:n], moved[:n], q[:n], scalars[6], X)
    _put_right(z[n:], moved[n:], q[n:], scalars[7], Y)


@kernel(NONE, FLAT, READ, READ, TERM, TERM, INT)
def folded(fold: Array, pull: Array, slope: Array, of_x: CompiledTerm, of_y: CompiledTerm, n: int) -> None:
    """All outer levels, and the linear part of simple terms, as one vector."""
    fold_levels(fold, pull, slope, of_x, of_y, n)


@helper
def first_operator(coupling: CompiledCoupling, v: Array, n: int, spares: int, out: Array) -> None:
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
def _dual_operator(coupling: CompiledCoupling, inverse: Array, v: Array, n: int, spares: int, out: Array) -> None:
    """Q(v), its x part in the norm of a diagonal metric."""
    if spares & (ZERO_X | ZERO_Y):
        first_operator(coupling, v, n, spares, out)
    else:
        operator(coupling, v, n, out)
    for i in range(inverse.size):
        out[i] *= inverse[i]


@kernel(
    NONE, COUPLING, SET, SET, TERM, TERM, READ, INT, INT, INT, FLOAT, FLOAT, READ, READ, READ, READ, READ, FLAT, FLAT,
    FLAT, FLAT, FLAT,
)  # fmt: skip
def coupling_sweep(
    coupling: CompiledCoupling, X: CompiledSet, Y: CompiledSet, of_x: CompiledTerm, of_y: CompiledTerm, inverse: Array,
    n: int, T: int, spares: int, Gamma: float, step: float, alphas: Array, own: Array, above: Array, pull: Array,
    slope: Array, z: Array, average: Array, fold: Array, moved: Array, q: Array,
) -> None:  # fmt: skip
    """T steps of the coupling's level; `average` and `z` are updated in place, the other vectors are scratch.

    `average` is z before the first step; a level may be swept in pieces. `spares` are bits of `kinds`.
    """
    fold_levels(fold, pull, slope, of_x, of_y, n)
    for j in range(T):
        scalars = step_scalars(alphas[j], Gamma, step, own, above)
        _dual_operator(coupling, inverse, z, n, spares if j == 0 else 0, q)
        approach(n, X, Y, of_x, of_y, scalars, z, average, fold, q, moved)
        if spares & LAST and j == T - 1:
            break
        _dual_operator(coupling, inverse, moved, n, 0, q)
        put_right(n, X, Y, scalars, z, moved, q)
