"""Pictures: from files, test pictures with values in [0, 1], what blurs them, and how good they are."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from saddleslide.arrays.arguments import as_flag
from saddleslide.arrays.base import Array, Shape, as_real
from saddleslide.errors import InputError
from saddleslide.operators.base import Operator
from saddleslide.operators.explicit import Matrix, as_operator
from saddleslide.plots import require_matplotlib

# Pixels of the largest picture that is read from a file: 7,000 x 7,000.
MOST_PIXELS = 49_000_000


def blur(kernel: Any, shape: Shape, colour: bool = False) -> Operator:
    """The convolution of pictures of a shape with a kernel, the picture reflected at its sides.

    With `colour` the last axis of the shape holds colours, which are blurred alike.

    Examples
    --------
    >>> import numpy as np
    >>> blur([[0.25, 0.5, 0.25]], (1, 3)).forward(np.array([[4.0, 0.0, 0.0]]))
    array([[3., 1., 0.]])
    """
    weights, grid = as_real(kernel, "blur: kernel"), shape[:-1] if colour else shape
    if weights.ndim != len(grid) or any(side % 2 == 0 for side in weights.shape):
        sides = "two" if len(grid) == 2 else str(len(grid))
        raise InputError(f"blur: kernel has shape {weights.shape}; expected {sides} odd sides.")
    size = math.prod(grid)
    index = np.pad(np.arange(size).reshape(grid), [(side // 2, side // 2) for side in weights.shape], "symmetric")
    picked, values = [], []
    # A convolution turns the kernel around.
    for place, value in np.ndenumerate(np.flip(weights)):
        window = tuple(slice(start, start + side) for start, side in zip(place, grid, strict=True))
        picked.append(index[window].ravel())
        values.append(np.full(size, value))
    entries = (np.concatenate(values), (np.tile(np.arange(size), weights.size), np.concatenate(picked)))
    matrix = scipy.sparse.csr_array(entries, shape=(size, size))
    sums = [float(abs(matrix).sum(axis=axis).max()) for axis in (0, 1)]
    if colour:
        matrix = scipy.sparse.kron(matrix, scipy.sparse.eye_array(shape[-1]), format="csr")
    # |A|^2 <= (largest column sum) (largest row sum) of the absolute values.
    return as_operator(Matrix(matrix, shape, shape), norm=float(np.sqrt(sums[0] * sums[1])) * (1.0 + 1e-12))


def _check_pixels(path: str | Path) -> None:
    """Open a picture without decoding it: its header says how large it is."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(path) as picture:
                width, height = picture.size
        size = f"it has {width} x {height} pixels" if width * height > MOST_PIXELS else ""
    except Image.DecompressionBombError as error:
        # Pillow has a limit of its own, above ours.
        size = str(error)
    if size:
        raise ValueError(f"{size}; expected at most {MOST_PIXELS:,} pixels. Make it smaller, or cut it")


def read_picture(path: str | Path, colour: bool = False) -> Array:
    """Read a picture file (PNG, and whatever Matplotlib reads) as grey values from 0 to 1; at most 49,000,000 of them.

    With `colour=True`, as red, green and blue: (rows, columns, 3).

    Examples
    --------
    >>> read_picture("missing.png")
    Traceback (most recent call last):
    ...
    saddleslide.errors.InputError: read_picture: 'missing.png' can not be read: ...
    """
    require_matplotlib()
    from matplotlib.image import imread

    try:
        _check_pixels(path)
        pixels = np.asarray(imread(path))
    except Exception as error:
        raise InputError(f"read_picture: {str(path)!r} can not be read: {error}. Expected a picture file.") from error
    full = 255.0 if pixels.dtype == np.uint8 else 1.0
    if as_flag(colour, "read_picture: colour"):
        # Grey values, also with an alpha channel, are three equal colours.
        channels = np.atleast_3d(pixels)
        channels = channels[..., : 3 if channels.shape[2] >= 3 else 1] / full
        return as_real(np.broadcast_to(channels, (*pixels.shape[:2], 3)), "read_picture")
    if pixels.ndim == 2:
        return as_real(pixels / full, "read_picture")
    # Rec. 709 weights of red, green and blue; an alpha channel is ignored. One row after the other: in doubles all
    # channels together take three times as much memory as the picture.
    weights = np.array([0.2126, 0.7152, 0.0722] if pixels.shape[2] >= 3 else [1.0])
    values = np.empty(pixels.shape[:2])
    for row, seen in zip(values, pixels, strict=True):
        row[:] = (seen[:, : len(weights)] / full) @ weights
    return as_real(values, "read_picture")


def psnr(image: Array, truth: Array) -> float:
    """Peak signal-to-noise ratio of a picture with values in [0, 1], in decibels."""
    error = float(np.mean((image - truth) ** 2))
    return 10.0 * math.log10(1.0 / error) if error > 0.0 else math.inf


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
