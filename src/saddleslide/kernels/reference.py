"""Vector updates of the recursion in plain NumPy, in place: the slow twins of every faster kernel."""

from __future__ import annotations

import numpy as np

from saddleslide.kernels.arguments import Array, Edges


def combine(out: Array, a: float, x: Array, b: float, y: Array, scratch: Array) -> None:
    """Write out = a x + b y; out may be x or y."""
    np.multiply(y, b, out=scratch)
    np.multiply(x, a, out=out)
    out += scratch


def compose(
    base: Array, point: Array, a: float, average: Array, above: Array, b: float, z: Array, scratch: Array
) -> None:
    """Write base = a average + above and point = b z + base."""
    combine(base, a, average, 1.0, above, scratch)
    combine(point, b, z, 1.0, base, scratch)


def settle(average: Array, z: Array, ahead: Array, alpha: float, scratch: Array) -> None:
    """Write average = alpha ahead + (1 - alpha) average and z = ahead."""
    combine(average, alpha, ahead, 1.0 - alpha, average, scratch)
    z[:] = ahead


def collect(
    pull: Array, slope: Array, above: Array, above_slope: Array, z: Array, gradient: Array, weights: Array, edges: Edges
) -> None:
    """Write pull = above + weight * z block by block, and slope = above_slope + gradient."""
    for weight, low, high in zip(weights, edges, edges[1:], strict=False):
        np.multiply(z[low:high], weight, out=pull[low:high])
    pull += above
    np.add(above_slope, gradient, out=slope)


def resolve(out: Array, pull: Array, slope: Array, weights: Array, edges: Edges) -> None:
    """Write out = (pull - slope) / weight block by block."""
    np.subtract(pull, slope, out=out)
    for weight, low, high in zip(weights, edges, edges[1:], strict=False):
        out[low:high] *= 1.0 / weight


def correct(out: Array, ahead: Array, here: Array, there: Array, factors: Array, edges: Edges) -> None:
    """Write out = ahead + factor * (here - there) block by block; out is none of the others."""
    np.subtract(here, there, out=out)
    for factor, low, high in zip(factors, edges, edges[1:], strict=False):
        out[low:high] *= factor
    out += ahead
