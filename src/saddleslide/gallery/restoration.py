"""Pictures cleaned of noise, blur and holes with (Huber) total variation; what solutions that are pictures share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np

import saddleslide as ss
from saddleslide.arrays.arguments import as_path
from saddleslide.arrays.base import Array, as_number, as_real
from saddleslide.arrays.kinds import to_host
from saddleslide.domains import Box, Domain, FullSpace
from saddleslide.errors import InputError
from saddleslide.functions import Function, LeastSquares, Linear, Quadratic, Zero
from saddleslide.gallery.pictures import blur, psnr
from saddleslide.gallery.solution import Fact, ResultArray, Solution, keep_kind
from saddleslide.operators import FiniteDifferences
from saddleslide.plots import require_matplotlib
from saddleslide.problem import SaddleProblem

# What a picture may be written as.
_FORMATS = (".png", ".pdf", ".svg", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".eps", ".ps")
# Curvature of the deblurring problem in the directions that the blur wipes out.
_RIDGE = 1e-4


class PictureSolution(Solution):
    """A result whose x is a picture.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> problem = ss.gallery.denoise(np.full((2, 2), 0.1), weight=0.1)
    >>> isinstance(problem.read(ss.solve(problem, tol=1e-9)), ss.gallery.PictureSolution)
    True
    """

    huber: float
    image = ResultArray("x", "The picture.")

    @property
    def variation(self) -> float:
        """Sum of the (Huber) absolute differences of neighbours, in rows and in columns."""
        size = np.abs(FiniteDifferences(self.image.shape).forward(self.image))
        if self.huber == 0.0:
            return float(size.sum())
        inside = np.minimum(size, self.huber)
        return float((inside * inside / (2.0 * self.huber) + size - inside).sum())

    def psnr(self, truth: Any) -> float:
        """Peak signal-to-noise ratio against the true picture with values in [0, 1], in decibels."""
        return psnr(self.image, as_real(truth, "psnr: truth", self.image.shape))

    def save(self, path: str | Path) -> None:
        """Write the picture as a file; values below 0 are black, above 1 white."""
        require_matplotlib()
        from matplotlib.image import imsave

        place = as_path(path, "save: path", "picture.png")
        if place.suffix.lower() not in _FORMATS:
            raise InputError(f"save: path is {str(place)!r}; expected a name that ends in one of {_FORMATS}.")
        imsave(place, np.clip(self.image, 0.0, 1.0), cmap="gray", vmin=0.0, vmax=1.0)


def tv_problem(
    f: Function, weight: float, huber: float, X: Domain, reader: Callable[[ss.Result], PictureSolution]
) -> SaddleProblem:
    """Min f(x) + weight TV(x) over pictures x in X; differences below `huber` are squared."""
    # On |y| <= weight, the maximum of y t - huber / (2 weight) y^2 is weight times the Huber function of t.
    g = Quadratic(huber / weight) if huber > 0.0 else Zero()
    Y = Box(-weight, weight, shape=(2, *X.shape))
    return SaddleProblem(f=f, g=g, B=FiniteDifferences(X.shape), X=X, Y=Y, reader=reader)


def as_positive(value: Any, name: str) -> float:
    """A finite number > 0, or what is wrong with it."""
    number = as_number(value, name, 0.0)
    if number == 0.0:
        raise InputError(f"{name} is 0; expected a number > 0.")
    return number


@final
@dataclass(frozen=True, eq=False)
class RestoredPicture(PictureSolution):
    """The picture, what it was made from, and how good it is.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> noisy = np.array([[0.0, 0.1, 0.9, 1.0]] * 4)
    >>> problem = ss.gallery.denoise(noisy, weight=0.1)
    >>> problem.read(ss.solve(problem, tol=1e-9)).image[0].round(3).tolist()
    [0.1, 0.1, 0.9, 0.9]
    """

    given: Array
    offset: float
    weight: float
    huber: float
    f: Function
    result: ss.Result

    @property
    def objective(self) -> float:
        """Misfit plus weight times (Huber) total variation, at the picture; the minimum is at least `lower`."""
        return self.f.value(self.image) + self.offset + self.weight * self.variation

    @property
    def lower(self) -> float:
        """Certified lower bound on the minimum."""
        return self.result.lower + self.offset

    def facts(self) -> dict[str, Fact]:
        return {"objective": self.objective, "minimum at least": self.lower, "total variation": self.variation}

    def draw(self, figure: Any) -> None:
        pictures = {"given": self.given, "restored": self.image}
        for ax, (title, picture) in zip(figure.subplots(1, 2), pictures.items(), strict=True):
            ax.imshow(picture, cmap="gray", vmin=0.0, vmax=1.0)
            ax.set(title=title, xticks=[], yticks=[])


@keep_kind
def denoise(picture: Any, weight: float, *, huber: float = 0.0) -> SaddleProblem:
    """Remove noise: min 1/2 |x - picture|^2 + weight TV(x).

    Parameters
    ----------
    picture : 2-D array
        Grey values, about 0 to 1. `ss.gallery.read_picture` reads files.
    weight : float
        Weight of the total variation (anisotropic: rows plus columns), > 0.
    huber : float, optional
        Differences below this are squared instead (Huber-TV), which avoids flat patches; 0 is plain TV.

    Returns
    -------
    SaddleProblem
        `problem.read(result)` is a RestoredPicture.

    Examples
    --------
    >>> import numpy as np
    >>> denoise(np.zeros((8, 8)), weight=0.1, huber=0.01).g
    Quadratic(diagonal, any shape)
    """
    given = _picture(picture, "denoise")
    f, offset = Quadratic(1.0) + Linear(-given), 0.5 * float(np.vdot(given, given))
    return _problem(f, given, offset, weight, huber, FullSpace(given.shape), "denoise")


@keep_kind
def inpaint(picture: Any, known: Any, weight: float, *, huber: float = 0.0) -> SaddleProblem:
    """Fill holes: min 1/2 |known (x - picture)|^2 + weight TV(x).

    Parameters
    ----------
    picture : 2-D array
        Grey values; what stands in the holes does not matter, NaN included.
    known : array of bool
        True where the picture is known.
    weight, huber : float
        As for `denoise`.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> picture = np.array([[1.0, np.nan, 1.0]])
    >>> problem = inpaint(picture, ~np.isnan(picture), weight=0.01)
    >>> problem.read(ss.solve(problem, tol=1e-9)).image.round(3)
    array([[1., 1., 1.]])
    """
    for name, part in (("known", known), ("picture", picture)):
        if np.ma.is_masked(part):
            raise InputError(f"inpaint: {name} is a masked array; expected known=~picture.mask and picture.filled(0).")
    mask, picture = to_host(known), to_host(picture)
    if mask.dtype != bool or mask.shape != np.shape(picture) or not mask.any():
        raise InputError(
            f"inpaint: known has shape {mask.shape}, dtype {mask.dtype}, {int(np.count_nonzero(mask))} known pixels; "
            f"expected booleans of shape {np.shape(picture)}, some of them True."
        )
    given = _picture(np.where(mask, picture, 0.0), "inpaint")
    f = Quadratic(mask.astype(np.float64), diagonal=True) + Linear(-given)
    # A minimiser never leaves the range of the known values: clipping to it lowers both terms.
    sides = Box(float(given[mask].min()), float(given[mask].max()), shape=given.shape)
    return _problem(f, given, 0.5 * float(np.vdot(given, given)), weight, huber, sides, "inpaint")


@keep_kind
def deblur(picture: Any, kernel: Any, weight: float, *, huber: float = 0.0, ridge: float = _RIDGE) -> SaddleProblem:
    """Remove blur: min 1/2 |kernel * x - picture|^2 + ridge/2 |x|^2 + weight TV(x).

    Parameters
    ----------
    picture : 2-D array
        Grey values.
    kernel : 2-D array with odd sides
        What the blur makes of one bright pixel. The picture is reflected at its sides.
    weight, huber : float
        As for `denoise`.
    ridge : float, optional
        Weight of |x|^2 / 2, > 0: without it the gap could not be certified.

    Examples
    --------
    >>> import numpy as np
    >>> deblur(np.zeros((8, 8)), np.full((3, 3), 1 / 9), weight=0.01).f
    LeastSquares((8, 8) -> (8, 8), ridge=0.0001)
    """
    given = _picture(picture, "deblur")
    f = LeastSquares(blur(kernel, given.shape), given, ridge=as_positive(ridge, "deblur: ridge"))
    return _problem(f, given, 0.0, weight, huber, FullSpace(given.shape), "deblur")


def _problem(
    f: Function, given: Array, offset: float, weight: float, huber: float, X: Domain, name: str
) -> SaddleProblem:
    strength, threshold = as_positive(weight, f"{name}: weight"), as_number(huber, f"{name}: huber", 0.0)
    return tv_problem(f, strength, threshold, X, partial(RestoredPicture, given, offset, strength, threshold, f))


def _picture(picture: Any, name: str) -> Array:
    given = as_real(picture, f"{name}: picture")
    if given.ndim != 2 or given.size == 0:
        raise InputError(f"{name}: picture has shape {given.shape}; expected grey values (rows, columns).")
    return given
