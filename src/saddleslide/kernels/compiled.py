"""Vector updates of the recursion, compiled: one pass each. Twins of `reference`; `switch` imports them when needed."""

from __future__ import annotations

from saddleslide.arrays import Array
from saddleslide.kernels.building import EDGES, FLAT, FLOAT, NONE, READ, kernel
from saddleslide.kernels.reference import Edges


@kernel(NONE, FLAT, FLOAT, READ, FLOAT, READ, FLAT)
def combine(out: Array, a: float, x: Array, b: float, y: Array, scratch: Array) -> None:
    """Write out = a x + b y; out may be x or y."""
    for i in range(out.size):
        out[i] = a * x[i] + b * y[i]


@kernel(NONE, FLAT, FLAT, FLOAT, READ, READ, FLOAT, READ, FLAT)
def compose(
    base: Array, point: Array, a: float, average: Array, above: Array, b: float, z: Array, scratch: Array
) -> None:
    """Write base = a average + above and point = b z + base."""
    for i in range(base.size):
        base[i] = a * average[i] + above[i]
        point[i] = b * z[i] + base[i]


@kernel(NONE, FLAT, FLAT, READ, FLOAT, FLAT)
def settle(average: Array, z: Array, ahead: Array, alpha: float, scratch: Array) -> None:
    """Write average = alpha ahead + (1 - alpha) average and z = ahead."""
    rest = 1.0 - alpha
    for i in range(z.size):
        average[i] = alpha * ahead[i] + rest * average[i]
        z[i] = ahead[i]


@kernel(NONE, FLAT, FLAT, READ, READ, READ, READ, READ, EDGES)
def collect(
    pull: Array, slope: Array, above: Array, above_slope: Array, z: Array, gradient: Array, weights: Array, edges: Edges
) -> None:
    """Write pull = above + weight * z block by block, and slope = above_slope + gradient."""
    for k in range(weights.size):
        weight = weights[k]
        for i in range(edges[k], edges[k + 1]):
            pull[i] = weight * z[i] + above[i]
            slope[i] = above_slope[i] + gradient[i]


@kernel(NONE, FLAT, READ, READ, READ, EDGES)
def resolve(out: Array, pull: Array, slope: Array, weights: Array, edges: Edges) -> None:
    """Write out = (pull - slope) / weight block by block."""
    for k in range(weights.size):
        inverse = 1.0 / weights[k]
        for i in range(edges[k], edges[k + 1]):
            out[i] = (pull[i] - slope[i]) * inverse


@kernel(NONE, FLAT, READ, READ, READ, READ, EDGES)
def correct(out: Array, ahead: Array, here: Array, there: Array, factors: Array, edges: Edges) -> None:
    """Write out = ahead + factor * (here - there) block by block."""
    for k in range(factors.size):
        factor = factors[k]
        for i in range(edges[k], edges[k + 1]):
            out[i] = factor * (here[i] - there[i]) + ahead[i]
