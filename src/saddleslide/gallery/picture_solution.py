"""What solutions that are pictures have in common: quality against a truth, total variation, files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from saddleslide.arrays.arguments import as_path
from saddleslide.arrays.base import Array, as_real
from saddleslide.errors import InputError
from saddleslide.gallery.pictures import psnr
from saddleslide.gallery.solution import Solution
from saddleslide.operators import FiniteDifferences
from saddleslide.runs.plot import require_matplotlib

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
        """Peak signal-to-noise ratio against the true picture with values in [0, 1], in decibels.

        Examples
        --------
        >>> import numpy as np, saddleslide as ss
        >>> problem = ss.gallery.denoise(np.full((2, 2), 0.1), weight=0.1)
        >>> round(problem.read(ss.solve(problem, tol=1e-9)).psnr(np.zeros((2, 2))), 1)
        20.0
        """
        return psnr(self.image, as_real(truth, "psnr: truth", self.image.shape))

    def save(self, path: str | Path) -> None:
        """Write the picture as a file; values below 0 are black, above 1 white.

        Examples
        --------
        >>> import numpy as np, saddleslide as ss, tempfile, pathlib
        >>> problem = ss.gallery.denoise(np.full((2, 2), 0.5), weight=0.1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder) / "clean.png"
        ...     problem.read(ss.solve(problem, tol=1e-6)).save(file)
        ...     ss.gallery.read_picture(file).round(2).tolist()
        [[0.5, 0.5], [0.5, 0.5]]
        """
        require_matplotlib()
        from matplotlib.image import imsave

        place = as_path(path, "save: path", "picture.png")
        if place.suffix.lower() not in _FORMATS:
            raise InputError(f"save: path is {str(place)!r}; expected a name that ends in one of {_FORMATS}.")
        imsave(place, np.clip(self.image, 0.0, 1.0), cmap="gray", vmin=0.0, vmax=1.0)

    def arrays(self) -> dict[str, Array]:
        return {"image": self.image}
