"""Pictures from the user's own projections, with (Huber) total variation; what any tomography's solution says."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np

from saddleslide.arrays.base import Array, Shape, as_number, as_real
from saddleslide.domains import Box, FullSpace
from saddleslide.errors import InputError
from saddleslide.functions import Function, LeastSquares, PoissonTransmission, Quadratic, Zero
from saddleslide.gallery.keeping import keeping_kind
from saddleslide.gallery.picture_solution import PictureSolution
from saddleslide.gallery.projectors import parallel_beam
from saddleslide.gallery.solution import Fact
from saddleslide.operators import FiniteDifferences
from saddleslide.problem import SaddleProblem
from saddleslide.runs.plot import fill_reconstruction
from saddleslide.runs.result import Result

# Curvature in the directions that the projections do not see, relative to |A|^2; without it no gap is certified.
_RIDGE = 1e-4
_HUBER = 1e-3


@final
@dataclass(frozen=True, eq=False)
class Reconstruction(PictureSolution):
    """The picture, the projections it was made from, and how good it is.

    Examples
    --------
    >>> import saddleslide as ss
    >>> problem = ss.gallery.realistic_tomography("strong_tv", n=16)
    >>> solution = problem.read(ss.solve(problem, rtol=1e-6))
    >>> solution.image.shape, round(solution.psnr(), 1)
    ((16, 16), 35.2)
    """

    sinogram: Array
    angles: Array
    scale: float
    f: LeastSquares | PoissonTransmission
    weight: float
    huber: float
    truth: Array | None
    result: Result

    @property
    def residual(self) -> Array:
        """What the picture leaves unexplained of the sinogram; for counts in standard deviations."""
        seen = self.f.A.forward(self.image).reshape(self.sinogram.shape)
        if isinstance(self.f, LeastSquares):
            return self.scale * seen - self.sinogram
        expected = self.f.intensity * np.exp(-self.f.attenuation * seen)
        return np.asarray((expected - self.sinogram) / np.sqrt(expected))

    def psnr(self, truth: Any = None) -> float:
        """Peak signal-to-noise ratio in decibels, against the object of the instance or against a truth of yours.

        Examples
        --------
        >>> import saddleslide as ss
        >>> problem = ss.gallery.realistic_tomography("poisson", n=16)
        >>> round(problem.read(ss.solve(problem, rtol=1e-6)).psnr(), 1)
        41.4
        """
        if truth is None and self.truth is None:
            raise InputError("psnr: the object is not known; expected the true picture, as in psnr(truth).")
        return super().psnr(self.truth if truth is None else truth)

    def facts(self) -> dict[str, Fact]:
        root_mean_square = float(np.sqrt(np.mean(self.residual**2)))
        unit = "" if isinstance(self.f, LeastSquares) else ", in standard deviations"
        known: dict[str, Fact] = {} if self.truth is None else {"PSNR against the object, dB": self.psnr()}
        return known | {
            f"misfit (root mean square{unit})": root_mean_square,
            "weight of the total variation": self.weight,
            "total variation": self.variation,
        }

    def arrays(self) -> dict[str, Array]:
        known = {} if self.truth is None else {"truth": self.truth}
        return {"image": self.image, "sinogram": self.sinogram, "angles": self.angles} | known

    def draw(self, figure: Any) -> None:
        if self.truth is not None:
            fill_reconstruction(figure, self.truth, self.image, f"reconstruction, {self.psnr():.1f} dB")
            return
        left, right = figure.subplots(1, 2)
        left.imshow(self.sinogram, cmap="gray", aspect="auto")
        left.set(title="sinogram", xlabel="detector bin", ylabel="angle")
        figure.colorbar(right.imshow(self.image, cmap="gray"), ax=right)
        right.set(title="reconstruction", xticks=[], yticks=[])


@keeping_kind
def reconstruct(
    sinogram: Any,
    angles: Any,
    weight: float,
    *,
    shape: int | Shape | None = None,
    spacing: float | None = None,
    intensity: float | None = None,
    attenuation: float = 1.0,
    huber: float = _HUBER,
    ridge: float = _RIDGE,
    truth: Any = None,
) -> SaddleProblem:
    """A picture from its parallel-beam projections: min 1/2 |A x - sinogram|^2 / |A|^2 + ridge/2 |x|^2 + weight TV(x).

    Parameters
    ----------
    sinogram : array (angles, bins)
        Line integrals in units of the pixel width; photon counts when `intensity` is given.
    angles : array
        Radians, one per row of the sinogram; see `ss.gallery.parallel_beam` for the directions.
    weight : float
        Weight of the total variation, > 0. `ss.gallery.choose_weight` finds one from the noise.
    shape : int or (rows, columns), optional
        Pixels of the picture. When missing it is a square that the detector covers: with `spacing` as wide as the
        detector, without it with a diagonal as long as the detector.
    spacing : float, optional
        Width of a detector bin in pixels (1 for scikit-image's sinograms); see `ss.gallery.parallel_beam`.
    intensity : float, optional
        Photons per bin without an object. The misfit is then the Poisson likelihood of the counts.
    attenuation : float, optional
        What a pixel of value 1 absorbs, per pixel width; for counts.
    huber : float, optional
        Differences of pixels below this are squared (Huber-TV); 0 is plain TV.
    ridge : float, optional
        Weight of |x|^2 / 2, > 0.
    truth : array, optional
        The true picture, where it is known: for PSNR and pictures.

    Returns
    -------
    SaddleProblem
        `problem.read(result)` is a Reconstruction.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> angles = np.linspace(0.0, np.pi, 12, endpoint=False)
    >>> sinogram = ss.gallery.parallel_beam(16, angles, bins=23).project(ss.gallery.phantom(1, 16))
    >>> problem = reconstruct(sinogram, angles, weight=1e-4, truth=ss.gallery.phantom(1, 16))
    >>> problem.X, problem.read(ss.solve(problem, rtol=1e-6)).psnr() > 20.0
    (FullSpace((16, 16)), True)
    """
    data = as_real(sinogram, "reconstruct: sinogram")
    turns = as_real(angles, "reconstruct: angles")
    if data.ndim != 2 or turns.shape != data.shape[:1] or data.shape[1] < 2:
        raise InputError(
            f"reconstruct: sinogram has shape {data.shape} and angles {turns.shape}; expected (angles, bins) with at "
            "least two bins, and one angle for each row."
        )
    strength = _positive(weight, "reconstruct: weight")
    scanner = parallel_beam(_default_side(data.shape[1], spacing) if shape is None else shape, turns, data.shape[1],
                            spacing)  # fmt: skip
    damping = _positive(ridge, "reconstruct: ridge")
    f: LeastSquares | PoissonTransmission
    if intensity is None:
        f = LeastSquares(scanner.A, data.ravel() / scanner.scale, ridge=damping)
    else:
        f = PoissonTransmission(scanner.A, data.ravel(), intensity, attenuation * scanner.scale, ridge=damping)
    known = None if truth is None else as_real(truth, "reconstruct: truth", scanner.A.x_shape)
    threshold = as_number(huber, "reconstruct: huber", 0.0)
    return huber_tomography(f, data, turns, scanner.scale, strength, threshold, known)


def huber_tomography(
    f: LeastSquares | PoissonTransmission,
    sinogram: Array,
    angles: Array,
    scale: float,
    weight: float,
    huber: float,
    truth: Array | None,
) -> SaddleProblem:
    """A misfit plus weight times (Huber) total variation; `scale` times f's products are in the sinogram's units."""
    shape = f.A.x_shape
    # On |y| <= weight, the maximum of y t - huber / (2 weight) y^2 is weight times the Huber function of t.
    g: Function = Quadratic(huber / weight) if huber > 0.0 else Zero()
    return SaddleProblem(
        f=f,
        g=g,
        B=FiniteDifferences(shape),
        X=FullSpace(shape),
        Y=Box(-weight, weight, shape=(2, *shape)),
        reader=partial(Reconstruction, sinogram, angles, scale, f, weight, huber, truth),
    )


def _default_side(bins: int, spacing: float | None) -> int:
    side = bins / np.sqrt(2.0) if spacing is None else bins * as_number(spacing, "reconstruct: spacing", 0.0)
    return max(2, round(float(side)))


def _positive(value: Any, name: str) -> float:
    number = as_number(value, name, 0.0)
    if number == 0.0:
        raise InputError(f"{name} is 0; expected a number > 0.")
    return number
