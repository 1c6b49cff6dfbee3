"""Orthonormal cosine and Hartley transforms where an array lies, as products with small matrices along each axis."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from saddleslide.arrays.remote.carried import Elsewhere
from saddleslide.arrays.remote.constants import constant


def cosine_transform(x: Elsewhere, inverse: bool = False) -> Elsewhere:
    """The orthonormal DCT-II along all axes, or its inverse.

    Examples
    --------
    >>> from saddleslide.arrays.kinds import ArrayKind
    >>> x = Elsewhere(ArrayKind("numpy"), np.ones((2, 2)))
    >>> cosine_transform(x).host().round(12).tolist()
    [[2.0, 0.0], [0.0, 0.0]]
    """
    return _along_axes(x, lambda n: _cosines(n, inverse))


def hartley_transform(x: Elsewhere) -> Elsewhere:
    """Real less imaginary part of the orthonormal Fourier transform along all axes; its own inverse.

    Examples
    --------
    >>> from saddleslide.arrays.kinds import ArrayKind
    >>> x = Elsewhere(ArrayKind("numpy"), np.array([1.0, 2.0]))
    >>> hartley_transform(hartley_transform(x)).host().round(12).tolist()
    [1.0, 2.0]
    """
    real, imaginary = x, None
    for axis, n in enumerate(x.shape):
        # (a + i b)(C - i S), one axis after the other.
        a, b = real, imaginary
        real, imaginary = _along(a, _waves(n, "cos"), axis), -_along(a, _waves(n, "sin"), axis)
        if b is not None:
            real = real + _along(b, _waves(n, "sin"), axis)
            imaginary = imaginary + _along(b, _waves(n, "cos"), axis)
    return real if imaginary is None else real - imaginary


def _along_axes(x: Elsewhere, matrix: Callable[[int], Any]) -> Elsewhere:
    for axis, n in enumerate(x.shape):
        x = _along(x, matrix(n), axis)
    return x


def _along(x: Elsewhere, matrix: Any, axis: int) -> Elsewhere:
    """Matrix times x along one axis: x as (before, n, after)."""
    before = int(np.prod(x.shape[:axis]))
    stacked = x.reshape(before, x.shape[axis], -1) if x.size else x
    product = x.made(lambda v: constant(x.kind, matrix) @ v, stacked.native)
    return product.reshape(x.shape)


@cache
def _cosines(n: int, inverse: bool) -> Any:
    k, j = np.arange(n)[:, None], np.arange(n)[None, :]
    # Angles modulo a whole turn are small, hence exact.
    matrix = np.sqrt(2.0 / n) * np.cos(np.pi * (k * (2 * j + 1) % (4 * n)) / (2 * n))
    matrix[:1] /= np.sqrt(2.0)
    return _closed(matrix.T.copy() if inverse else matrix)


@cache
def _waves(n: int, name: str) -> Any:
    angles = 2.0 * np.pi * (np.outer(np.arange(n), np.arange(n)) % n) / n
    return _closed((np.cos(angles) if name == "cos" else np.sin(angles)) / np.sqrt(n))


def _closed(matrix: Any) -> Any:
    matrix.flags.writeable = False
    return matrix
