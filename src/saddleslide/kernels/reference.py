"""Vector updates of the recursion in plain NumPy, in place: the slow twins of every faster kernel."""

from __future__ import annotations

import numpy as np

from saddleslide.arrays import Array


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


def scale_blocks(out: Array, vector: Array, factors: Array, slices: list[slice]) -> None:
    """Write out = factor * vector block by block; one factor per block.

    Examples
    --------
    >>> out = np.zeros(3)
    >>> scale_blocks(out, np.ones(3), np.array([2.0, 5.0]), [slice(0, 1), slice(1, 3)])
    >>> out
    array([2., 5., 5.])
    """
    for factor, part in zip(factors, slices, strict=True):
        np.multiply(vector[part], factor, out=out[part])
