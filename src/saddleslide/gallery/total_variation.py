"""Problems with (Huber) total variation, and what solutions that are pictures have in common."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from saddleslide.arrays.arguments import as_path
from saddleslide.arrays.base import Array, as_number, as_real
from saddleslide.domains import Box, Domain
from saddleslide.errors import InputError
from saddleslide.functions import Function, Quadratic, Zero
from saddleslide.gallery.pictures import psnr
from saddleslide.gallery.solution import Solution
from saddleslide.operators import FiniteDifferences
from saddleslide.plots import require_matplotlib
from saddleslide.problem import SaddleProblem

if TYPE_CHECKING:
    from saddleslide.runs.result import Result

# What a picture may be written as.
_FORMATS = (".png", ".pdf", ".svg", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".eps", ".ps")


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

    @property
    def image(self) -> Array:
        """The picture."""
        return self.result.x

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

    def arrays(self) -> dict[str, Array]:
        return {"image": self.image}


def tv_problem(
    f: Function, weight: float, huber: float, X: Domain, reader: Callable[[Result], PictureSolution]
) -> SaddleProblem:
    """Min f(x) + weight TV(x) over pictures x in X; differences below `huber` are squared."""
    return SaddleProblem(
        f=f,
        # On |y| <= weight, the maximum of y t - huber / (2 weight) y^2 is weight times the Huber function of t.
        g=Quadratic(huber / weight) if huber > 0.0 else Zero(),
        B=FiniteDifferences(X.shape),
        X=X,
        Y=Box(-weight, weight, shape=(2, *X.shape)),
        reader=reader,
    )


def as_positive(value: Any, name: str) -> float:
    """A finite number > 0, or what is wrong with it."""
    number = as_number(value, name, 0.0)
    if number == 0.0:
        raise InputError(f"{name} is 0; expected a number > 0.")
    return number
