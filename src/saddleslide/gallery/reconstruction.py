"""Pictures from the user's own projections, with (Huber) total variation, and the weight of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, final

import numpy as np

import saddleslide as ss
from saddleslide.arrays.base import Array, Shape, as_number, as_real
from saddleslide.domains import FullSpace
from saddleslide.errors import InputError
from saddleslide.functions import LeastSquares, PoissonTransmission
from saddleslide.gallery.projectors import parallel_beam
from saddleslide.gallery.solution import Fact, keep_kind
from saddleslide.gallery.total_variation import PictureSolution, as_positive, tv_problem
from saddleslide.oracles.calls import Calls
from saddleslide.plots import fill_reconstruction
from saddleslide.problem import SaddleProblem

if TYPE_CHECKING:
    from saddleslide.runs.result import Result

# Curvature in the directions that the projections do not see, relative to |A|^2; without it no gap is certified.
_RIDGE = 1e-4
_HUBER = 1e-3
_RTOL = 1e-4
# Standard deviation over median absolute value of a normal variable.
_MAD = 1.4826


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
        """Peak signal-to-noise ratio in decibels, against the object of the instance or against a truth of yours."""
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


@keep_kind
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
    strength, bins = as_positive(weight, "reconstruct: weight"), data.shape[1]
    if shape is None:
        side = bins / np.sqrt(2.0) if spacing is None else bins * as_number(spacing, "reconstruct: spacing", 0.0)
        shape = max(2, round(float(side)))
    scanner = parallel_beam(shape, turns, bins, spacing)
    damping = as_positive(ridge, "reconstruct: ridge")
    f: LeastSquares | PoissonTransmission
    if intensity is None:
        f = LeastSquares(scanner.A, data.ravel() / scanner.scale, ridge=damping)
    else:
        f = PoissonTransmission(scanner.A, data.ravel(), intensity, attenuation * scanner.scale, ridge=damping)
    known = None if truth is None else as_real(truth, "reconstruct: truth", scanner.A.x_shape)
    threshold = as_number(huber, "reconstruct: huber", 0.0)
    reader = partial(Reconstruction, data, turns, scanner.scale, f, strength, threshold, known)
    return tv_problem(f, strength, threshold, FullSpace(f.A.x_shape), reader)


@final
@dataclass(frozen=True)
class ChosenWeight:
    """A weight, the rule that chose it, what was tried (pairs of weight and score), and the calls of all solves.

    Examples
    --------
    >>> ChosenWeight(1e-4, "noise 0.1", ((1e-4, 0.1),)).weight
    0.0001
    """

    weight: float
    rule: str
    tried: tuple[tuple[float, float], ...]
    calls: Calls = field(default_factory=Calls)


def choose_weight(
    make: Callable[[float], SaddleProblem],
    *,
    noise: float | None = None,
    truth: Any = None,
    between: tuple[float, float] = (1e-6, 1e-1),
    steps: int = 12,
) -> ChosenWeight:
    """Choose the weight of a tomography problem.

    Parameters
    ----------
    make : callable
        weight -> problem, such as `lambda w: ss.gallery.reconstruct(sinogram, angles, w)`.
    noise : float, optional
        Standard deviation of one number of the sinogram. The weight is the one whose misfit is that large. When missing
        it is estimated from the sinogram's second differences, along bins or along angles; with few angles and bins the
        object itself bends more than the noise, the estimate is too large and the picture too smooth. For counts it is
        1 by definition.
    truth : array, optional
        The true picture: the weight with the best PSNR is searched instead.
    between : (float, float), optional
        Where to search, 0 < low < high.
    steps : int, optional
        Problems to solve, each to a relative gap of 1e-4.

    Returns
    -------
    ChosenWeight
        `weight`, every weight that was tried with its misfit or PSNR, and the calls of all solves.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> angles, truth = np.linspace(0.0, np.pi, 20, endpoint=False), ss.gallery.phantom(1, 16)
    >>> clean = ss.gallery.parallel_beam(16, angles, bins=23).project(truth)
    >>> sinogram = clean + 0.1 * np.random.default_rng(0).standard_normal(clean.shape)
    >>> chosen = choose_weight(lambda w: ss.gallery.reconstruct(sinogram, angles, w), noise=0.1, steps=6)
    >>> 1e-6 < chosen.weight < 1e-1
    True
    """
    low, high = (as_number(end, "choose_weight: between", 0.0) for end in between)
    if not 0.0 < low < high or steps < 3:
        raise InputError(
            f"choose_weight: between is {between}, steps is {steps}; expected 0 < low < high and at least 3 steps."
        )
    tried: list[tuple[float, float]] = []
    made: list[Calls] = []

    def score(logarithm: float) -> float:
        """The PSNR at a weight where the truth is known, else the misfit."""
        problem = make(math.exp(logarithm))
        result = ss.solve(problem, rtol=_RTOL)
        made.append(result.calls)
        found = problem.read(result)
        if not isinstance(found, Reconstruction):
            raise InputError(
                f"choose_weight: make returned a problem that reads as {type(found).__name__}; expected tomography."
            )
        value = float(np.sqrt(np.mean(found.residual**2))) if truth is None else found.psnr(truth)
        tried.append((math.exp(logarithm), value))
        return value

    ends = (math.log(low), math.log(high))
    if truth is not None:
        return ChosenWeight(_golden(score, ends, steps), "best PSNR", tuple(tried), sum(made, Calls()))
    target = _noise_of(make(low), noise)
    found = _bisect(score, ends, target, steps)
    reached = min(value for _, value in tried) <= target
    rule = f"misfit {target:.4g}" if reached else f"the smallest: no weight brings the misfit down to {target:.4g}"
    return ChosenWeight(found, rule, tuple(tried), sum(made, Calls()))


def estimate_noise(sinogram: Array) -> float:
    """Standard deviation of the noise: the smaller of two medians of second differences, along bins and along angles.

    The object bends the sinogram too, so either is too large rather than too small.
    """
    bends = [np.diff(sinogram, n=2, axis=axis) for axis in (0, 1) if sinogram.shape[axis] >= 3]
    # Rays beside the object bend nothing in data without noise: their exact zeros say nothing of it.
    sizes = [np.abs(bend[bend != 0.0]) for bend in bends]
    if not sizes:
        raise InputError(f"choose_weight: the sinogram has shape {sinogram.shape}; expected 3 angles or bins.")
    # The weights 1, -2, 1 make the variance six times as large.
    return min(float(_MAD * np.median(size) / math.sqrt(6.0)) if size.size else 0.0 for size in sizes)


def _noise_of(problem: SaddleProblem, noise: float | None) -> float:
    if noise is not None:
        return as_number(noise, "choose_weight: noise", 0.0)
    if not isinstance(problem.f, LeastSquares):
        return 1.0
    reader: Any = problem.reader
    return estimate_noise(reader.args[0])


def _bisect(misfit: Callable[[float], float], ends: tuple[float, float], target: float, steps: int) -> float:
    """The largest weight that was tried and whose misfit is at most the target: misfits grow with the weight."""
    low, high = ends
    for _ in range(steps):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if misfit(middle) <= target else (low, middle)
    return math.exp(low)


def _golden(quality: Callable[[float], float], ends: tuple[float, float], steps: int) -> float:
    """Golden-section search for the maximum, on logarithms."""
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    low, high = ends
    points = [high - ratio * (high - low), low + ratio * (high - low)]
    values = [quality(point) for point in points]
    for _ in range(steps - 2):
        if values[0] > values[1]:
            high = points[1]
            points, values = [high - ratio * (high - low), points[0]], [math.nan, values[0]]
        else:
            low = points[0]
            points, values = [points[1], low + ratio * (high - low)], [values[1], math.nan]
        values = [quality(point) if math.isnan(value) else value for point, value in zip(points, values, strict=True)]
    return math.exp(points[int(np.argmax(values))])
