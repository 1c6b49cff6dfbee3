"""Test pictures with values in [0, 1]: the modified Shepp-Logan head, disks, and rectangles."""

from __future__ import annotations

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.errors import InputError

# Toft's modified Shepp-Logan phantom: intensity, half axes, centre, angle in degrees.
_HEAD = (
    (1.0, 0.69, 0.92, 0.0, 0.0, 0.0),
    (-0.8, 0.6624, 0.874, 0.0, -0.0184, 0.0),
    (-0.2, 0.11, 0.31, 0.22, 0.0, -18.0),
    (-0.2, 0.16, 0.41, -0.22, 0.0, 18.0),
    (0.1, 0.21, 0.25, 0.0, 0.35, 0.0),
    (0.1, 0.046, 0.046, 0.0, 0.1, 0.0),
    (0.1, 0.046, 0.046, 0.0, -0.1, 0.0),
    (0.1, 0.046, 0.023, -0.08, -0.605, 0.0),
    (0.1, 0.023, 0.023, 0.0, -0.606, 0.0),
    (0.1, 0.023, 0.046, 0.06, -0.605, 0.0),
)
# Intensity, centre, radius.
_DISKS = (
    (0.35, 0.0, 0.0, 0.85),
    (0.4, -0.3, 0.3, 0.3),
    (-0.2, 0.35, 0.25, 0.25),
    (0.6, 0.3, -0.35, 0.2),
    (0.25, -0.35, -0.4, 0.15),
    (0.5, -0.05, 0.05, 0.08),
    (0.3, 0.05, 0.65, 0.1),
)
# Intensity, left, right, bottom, top.
_RECTANGLES = (
    (0.3, -0.8, 0.8, -0.6, 0.6),
    (0.5, -0.6, -0.2, -0.4, 0.3),
    (0.3, 0.1, 0.6, 0.1, 0.5),
    (-0.2, 0.2, 0.7, -0.5, -0.1),
    (0.2, -0.1, 0.05, -0.55, 0.55),
)


def pixel_grid(n: int) -> tuple[Array, Array]:
    """Coordinates of the pixel centres: linspace(-1, 1, n) in both directions, the first row on top."""
    centres = np.linspace(-1.0, 1.0, n)
    x, y = np.meshgrid(centres, -centres)
    return x, y


def phantom(number: int, n: int) -> Array:
    """Picture 0 (Shepp-Logan head), 1 (disks) or 2 (rectangles and a bar), n x n.

    Examples
    --------
    >>> picture = phantom(0, 64)
    >>> picture.shape, float(picture.max())
    ((64, 64), 1.0)
    """
    x, y = pixel_grid(n)
    picture = np.zeros((n, n))
    if number == 0:
        for intensity, a, b, x0, y0, degrees in _HEAD:
            turn = np.deg2rad(degrees)
            u = (x - x0) * np.cos(turn) + (y - y0) * np.sin(turn)
            v = (y - y0) * np.cos(turn) - (x - x0) * np.sin(turn)
            picture[(u / a) ** 2 + (v / b) ** 2 <= 1.0] += intensity
    elif number == 1:
        for intensity, x0, y0, radius in _DISKS:
            picture[(x - x0) ** 2 + (y - y0) ** 2 <= radius**2] += intensity
    elif number == 2:
        for intensity, left, right, bottom, top in _RECTANGLES:
            picture[(x >= left) & (x <= right) & (y >= bottom) & (y <= top)] += intensity
        picture[(np.abs(x + y) < 0.12) & (np.abs(x - y) < 0.7)] += 0.4
    else:
        raise InputError(f"phantom: number is {number!r}; expected 0, 1 or 2.")
    return np.clip(picture, 0.0, 1.0)


def shaded_phantom(n: int) -> Array:
    """The head with a smooth shading, so that total variation is not the perfect prior.

    Examples
    --------
    >>> shaded_phantom(16).shape
    (16, 16)
    """
    x, y = pixel_grid(n)
    return np.clip(phantom(0, n) * (0.9 + 0.1 * np.cos(2.0 * x + y)), 0.0, 1.0)
