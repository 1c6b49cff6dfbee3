"""Parallel-beam projectors: line integrals of a picture, as sparse matrices of norm 1."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, final

import numpy as np
import scipy

from saddleslide.arrays.base import Array, Shape, as_number, as_real, as_shape
from saddleslide.errors import InputError
from saddleslide.gallery.pictures import pixel_grid
from saddleslide.operators.explicit import Matrix, as_operator

# Larger angles than these are degrees by mistake.
_LARGEST_ANGLE = 4.0 * np.pi


@lru_cache(maxsize=4)
def projector(n: int, angles: int = 180) -> Matrix:
    """The paper's projector of an n x n picture, pixel-driven, divided by its spectral norm.

    Every pixel is splatted linearly onto its two neighbouring detector bins; angles are k pi / angles.

    Examples
    --------
    >>> projector(8, 6).y_shape
    (66,)
    """
    bins = np.linspace(-np.sqrt(2.0), np.sqrt(2.0), round(n * np.sqrt(2.0)))
    turns = (k * np.pi / angles for k in range(angles))
    matrix = _splat(*pixel_grid(n), turns, bins)
    # Entries are >= 0, so that power iterations from the all-ones vector find the norm.
    v, square = np.ones(n * n) / np.sqrt(n * n), 0.0
    for _ in range(200):
        image = matrix.T @ (matrix @ v)
        square = float(np.linalg.norm(image))
        v = image / square
    coupling = as_operator(matrix / float(np.sqrt(square)), (n, n), (angles * bins.size,), norm=1.0 + 1e-9)
    assert isinstance(coupling, Matrix)
    return coupling


def paper_angles(count: int) -> Array:
    """Angles of the paper's projector, in radians."""
    return np.arange(count) * np.pi / count


def pixel_units(A: Matrix, angles: int) -> float:
    """What turns products with the paper's projector into line integrals in units of the pixel width."""
    sums = A.forward(np.ones(A.x_shape)).reshape(angles, -1)
    width = math.hypot(*(side - 1 for side in A.x_shape)) / (sums.shape[1] - 1)
    # A projection keeps the mass of the picture, one for each pixel here.
    return float(np.prod(A.x_shape)) / (width * float(sums[0].sum()))


@final
@dataclass(frozen=True, eq=False)
class Scanner:
    """Line integrals of pictures of a shape: `A`, of norm 1, times `scale` gives them in units of the pixel width.

    Examples
    --------
    >>> import numpy as np
    >>> scanner = parallel_beam((2, 3), np.array([0.0, np.pi / 2]), bins=5, spacing=1.0)
    >>> scanner.project(np.array([[1.0, 2.0, 3.0], [1.0, 1.0, 1.0]]))[0].round(9)
    array([0., 2., 3., 4., 0.])
    """

    A: Matrix
    scale: float
    angles: Array
    bins: int

    def project(self, picture: Any) -> Array:
        """The sinogram of a picture: (angles, bins)."""
        values = self.A.forward(as_real(picture, "project: picture", self.A.x_shape))
        return self.scale * values.reshape(self.angles.size, self.bins)


def parallel_beam(shape: int | Shape, angles: Any, bins: int, spacing: float | None = None) -> Scanner:
    """A scanner for pictures of any shape, any angles and any detector.

    Parameters
    ----------
    shape : int or (rows, columns)
        Pixels, square ones; a number is both sides.
    angles : array
        Radians. At angle 0 the detector lies along the rows of the picture (sums over columns); at pi / 2 it points
        upwards. These are the conventions of scikit-image, which counts in degrees.
    bins : int
        Detector bins, centred on the picture's centre.
    spacing : float, optional
        Width of a bin in pixels; when missing the detector spans the picture's diagonal.

    Examples
    --------
    >>> parallel_beam(8, np.linspace(0.0, np.pi, 6, endpoint=False), bins=11).A
    Matrix(sparse, (8, 8) -> (66,))
    """
    sides = as_shape(shape, "parallel_beam")
    sides = sides * 2 if np.isscalar(shape) else sides
    if len(sides) != 2 or min(sides) < 2:
        raise InputError(f"parallel_beam: shape is {shape!r}; expected (rows, columns), at least 2 each.")
    rows, columns = sides
    turns = as_real(angles, "parallel_beam: angles")
    if turns.ndim != 1 or turns.size == 0 or float(np.abs(turns).max()) > _LARGEST_ANGLE:
        raise InputError(
            f"parallel_beam: angles have shape {turns.shape}, the largest is {np.abs(turns).max(initial=0.0):g}; "
            "expected a list of radians. numpy.deg2rad turns degrees into radians."
        )
    if bins < 2:
        raise InputError(f"parallel_beam: bins is {bins}; expected at least 2.")
    width = math.hypot(rows - 1, columns - 1) / (bins - 1) if spacing is None else spacing
    width = as_number(width, "parallel_beam: spacing", 0.0)
    if width == 0.0:
        raise InputError("parallel_beam: spacing is 0; expected the width of a bin in pixels, > 0.")
    return _scanner(rows, columns, turns.tobytes(), bins, width)


@lru_cache(maxsize=4)
def _scanner(rows: int, columns: int, angles: bytes, bins: int, width: float) -> Scanner:
    """Kept for the next problem of the same geometry: the search for a weight makes a dozen of them."""
    turns = np.frombuffer(angles)
    x, y = np.meshgrid(np.arange(columns) - (columns - 1) / 2, (rows - 1) / 2 - np.arange(rows))
    centres: Array = (np.arange(bins, dtype=np.float64) - (bins - 1) / 2) * width
    # A pixel's mass is spread over bins of this width.
    matrix = _splat(x, y, (float(t) for t in turns), centres) / width
    scale = _norm_bound(matrix)
    coupling = as_operator(matrix / scale, (rows, columns), (turns.size * bins,), norm=1.0 + 1e-12)
    assert isinstance(coupling, Matrix)
    return Scanner(coupling, scale, turns, bins)


def _splat(x: Array, y: Array, turns: Iterable[float], bins: Array) -> Any:
    """Pixels at (x, y) shared linearly between their two neighbouring bins; what misses the detector is lost."""
    x, y, spacing = x.ravel(), y.ravel(), bins[1] - bins[0]
    rows, weights, count = [], [], 0
    for k, turn in enumerate(turns):
        position = (x * np.cos(turn) + y * np.sin(turn) - bins[0]) / spacing
        left = np.clip(np.floor(position).astype(np.intp), 0, bins.size - 2)
        offset = position - left
        rows += [k * bins.size + left, k * bins.size + left + 1]
        hats = (np.where(offset >= 0.0, 1.0 - offset, 1.0 + offset), np.where(offset <= 1.0, offset, 2.0 - offset))
        weights += [np.maximum(hat, 0.0) for hat in hats]
        count = k + 1
    columns = np.tile(np.arange(x.size), 2 * count)
    entries = (np.concatenate(weights), (np.concatenate(rows), columns))
    return scipy.sparse.csr_array(entries, shape=(count * bins.size, x.size))


def _norm_bound(matrix: Any) -> float:
    """Upper bound on the spectral norm of a matrix with entries >= 0: Collatz and Wielandt's, from power iterations."""
    transpose = matrix.T.tocsr()
    v = (transpose @ np.ones(matrix.shape[0]) > 0.0).astype(np.float64)
    if not v.any():
        raise InputError("parallel_beam: no pixel falls onto the detector; expected more bins or a larger spacing.")
    seen, upper = v > 0.0, np.inf
    for _ in range(200):
        image = transpose @ (matrix @ v)
        upper = float((image[seen] / v[seen]).max())
        if upper <= (1.0 + 1e-9) * float(image @ v) / float(v @ v):
            break
        v = image / np.linalg.norm(image)
    return float(np.sqrt(upper))
