"""Vector updates of the recursion in plain NumPy, in place: the slow twins of every faster kernel."""

from __future__ import annotations

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.kernels.arguments import Edges


def combine(out: Array, a: float, x: Array, b: float, y: Array, scratch: Array) -> None:
    """Write out = a x + b y; out may be x or y.

    Examples
    --------
    >>> out = np.zeros(2)
    >>> combine(out, 2.0, np.ones(2), -1.0, np.array([1.0, 3.0]), np.empty(2))
    >>> out
    array([ 1., -1.])
    """
    np.multiply(y, b, out=scratch)
    np.multiply(x, a, out=out)
    out += scratch


def compose(
    base: Array, point: Array, a: float, average: Array, above: Array, b: float, z: Array, scratch: Array
) -> None:
    """Write base = a average + above and point = b z + base.

    Examples
    --------
    >>> base, point, ones = np.zeros(2), np.zeros(2), np.ones(2)
    >>> compose(base, point, 0.5, ones, ones, 2.0, ones, np.empty(2))
    >>> base, point
    (array([1.5, 1.5]), array([3.5, 3.5]))
    """
    combine(base, a, average, 1.0, above, scratch)
    combine(point, b, z, 1.0, base, scratch)


def settle(average: Array, z: Array, ahead: Array, alpha: float, scratch: Array) -> None:
    """Write average = alpha ahead + (1 - alpha) average and z = ahead.

    Examples
    --------
    >>> average, z = np.zeros(2), np.zeros(2)
    >>> settle(average, z, np.ones(2), 0.25, np.empty(2))
    >>> average, z
    (array([0.25, 0.25]), array([1., 1.]))
    """
    combine(average, alpha, ahead, 1.0 - alpha, average, scratch)
    z[:] = ahead


def collect(
    pull: Array, slope: Array, above: Array, above_slope: Array, z: Array, gradient: Array, weights: Array, edges: Edges
) -> None:
    """Write pull = above + weight * z block by block, and slope = above_slope + gradient.

    Examples
    --------
    >>> pull, slope, ones = np.zeros(3), np.zeros(3), np.ones(3)
    >>> collect(pull, slope, ones, ones, ones, 2.0 * ones, np.array([2.0, 5.0]), np.array([0, 1, 3]))
    >>> pull, slope
    (array([3., 6., 6.]), array([3., 3., 3.]))
    """
    for weight, low, high in zip(weights, edges, edges[1:], strict=False):
        np.multiply(z[low:high], weight, out=pull[low:high])
    pull += above
    np.add(above_slope, gradient, out=slope)


def resolve(out: Array, pull: Array, slope: Array, weights: Array, edges: Edges) -> None:
    """Write out = (pull - slope) / weight block by block.

    Examples
    --------
    >>> out = np.zeros(2)
    >>> resolve(out, np.array([3.0, 5.0]), np.ones(2), np.array([2.0, 4.0]), np.array([0, 1, 2]))
    >>> out
    array([1., 1.])
    """
    np.subtract(pull, slope, out=out)
    for weight, low, high in zip(weights, edges, edges[1:], strict=False):
        out[low:high] *= 1.0 / weight


def correct(out: Array, ahead: Array, here: Array, there: Array, factors: Array, edges: Edges) -> None:
    """Write out = ahead + factor * (here - there) block by block; out is none of the others.

    Examples
    --------
    >>> out = np.zeros(2)
    >>> correct(out, np.ones(2), np.array([3.0, 5.0]), np.ones(2), np.array([2.0, 0.5]), np.array([0, 1, 2]))
    >>> out
    array([5., 3.])
    """
    np.subtract(here, there, out=out)
    for factor, low, high in zip(factors, edges, edges[1:], strict=False):
        out[low:high] *= factor
    out += ahead
