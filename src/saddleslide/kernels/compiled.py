"""Vector updates of the recursion, compiled: one pass each. Twins of `reference`; `switch` imports them when needed."""

from __future__ import annotations

from saddleslide.kernels.arguments import Edges, Read, Write
from saddleslide.kernels.building import kernel


@kernel
def combine(out: Write, a: float, x: Read, b: float, y: Read, scratch: Write) -> None:
    """Write out = a x + b y; out may be x or y."""
    for i in range(out.size):
        out[i] = a * x[i] + b * y[i]


@kernel
def compose(base: Write, point: Write, a: float, average: Read, above: Read, b: float, z: Read, scratch: Write) -> None:
    """Write base = a average + above and point = b z + base."""
    for i in range(base.size):
        base[i] = a * average[i] + above[i]
        point[i] = b * z[i] + base[i]


@kernel
def settle(average: Write, z: Write, ahead: Read, alpha: float, scratch: Write) -> None:
    """Write average = alpha ahead + (1 - alpha) average and z = ahead."""
    rest = 1.0 - alpha
    for i in range(z.size):
        average[i] = alpha * ahead[i] + rest * average[i]
        z[i] = ahead[i]


@kernel
def collect(
    pull: Write, slope: Write, above: Read, above_slope: Read, z: Read, gradient: Read, weights: Read, edges: Edges
) -> None:
    """Write pull = above + weight * z block by block, and slope = above_slope + gradient."""
    for k in range(weights.size):
        weight = weights[k]
        for i in range(edges[k], edges[k + 1]):
            pull[i] = weight * z[i] + above[i]
            slope[i] = above_slope[i] + gradient[i]


@kernel
def resolve(out: Write, pull: Read, slope: Read, weights: Read, edges: Edges) -> None:
    """Write out = (pull - slope) / weight block by block."""
    for k in range(weights.size):
        inverse = 1.0 / weights[k]
        for i in range(edges[k], edges[k + 1]):
            out[i] = (pull[i] - slope[i]) * inverse


@kernel
def correct(out: Write, ahead: Read, here: Read, there: Read, factors: Read, edges: Edges) -> None:
    """Write out = ahead + factor * (here - there) block by block."""
    for k in range(factors.size):
        factor = factors[k]
        for i in range(edges[k], edges[k + 1]):
            out[i] = factor * (here[i] - there[i]) + ahead[i]
