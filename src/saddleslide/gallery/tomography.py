"""Tomography with (Huber) total variation: from projections of one's own, the paper's three regimes, realistic ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, final

import numpy as np
import scipy

import saddleslide as ss
from saddleslide.arrays.arguments import as_flag, as_whole, as_word
from saddleslide.arrays.base import Array, Shape, as_number, as_real
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import Box, FullSpace, NonNegative
from saddleslide.domains.norms import Ball
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.functions.entrywise import Power
from saddleslide.functions.losses import LeastSquares, PoissonTransmission
from saddleslide.functions.quadratic import Quadratic
from saddleslide.gallery.pictures import phantom, shaded_phantom
from saddleslide.gallery.projectors import paper_angles, parallel_beam, pixel_units, projector
from saddleslide.gallery.restoration import (
    TV,
    PictureSolution,
    Variation,
    as_positive,
    as_weights,
    check_data,
    misfit,
    restoration,
    total_variation,
    tv_problem,
)
from saddleslide.gallery.solution import Fact, keep_kind
from saddleslide.operators.base import Operator
from saddleslide.operators.explicit import Matrix
from saddleslide.operators.structured import FiniteDifferences
from saddleslide.oracles.calls import Calls
from saddleslide.plots import fill_reconstruction
from saddleslide.problem import SaddleProblem

# Curvature in the directions that the projections do not see, relative to |A|^2; without it no gap is certified.
_RIDGE = 1e-4
_HUBER = 1e-3
_REDUCTION = 1e-4
# Standard deviation over median absolute value of a normal variable.
_MAD = 1.4826
# The paper's parameters: ridge mu, dual curvature beta, TV weight lambda, nonlocal weight tau, Hölder coefficient c.
RIDGE, BETA, TV_WEIGHT, NONLOCAL, HOLDER_COEFFICIENT, HOLDER_EXPONENT = 1e-3, 0.05, 5e-5, 0.05, 7.955e-3, 0.5
# Views of the paper's benchmark.
_ANGLES = 180
REGIMES = ("standard", "nonlocal", "holder")
# name: pixels per side, angles, relative noise, TV weight
_REALISTIC = {
    "low_dose": (64, 360, 0.10, 2.5e-4),
    "low_dose_128": (128, 360, 0.10, 2e-4),
    "strong_tv": (64, 360, 0.01, 5e-4),
    "sparse_view": (128, 30, 0.02, 2e-4),
    "poisson": (64, 180, 0.0, 5e-5),
}


@final
@dataclass(frozen=True, eq=False, repr=False)
class Reconstruction(PictureSolution):
    """The picture, the projections it was made from, and how good it is.

    Examples
    --------
    >>> import saddleslide as ss
    >>> problem = ss.gallery.realistic_tomography("strong_tv", n=16)
    >>> solution = problem.read(ss.solve(problem, reduction=1e-6))
    >>> solution.image.shape, round(solution.psnr(), 1)
    ((16, 16), 35.2)
    """

    sinogram: Array
    angles: Array
    scale: float
    A: Operator
    f: Function
    weight: float
    huber: float
    tv: Variation
    truth: Array | None
    result: ss.Result

    @property
    def residual(self) -> Array:
        """What the picture leaves unexplained of the sinogram; for counts in standard deviations."""
        seen = self.A.forward(self.image).reshape(self.sinogram.shape)
        if not isinstance(self.f, PoissonTransmission):
            return self.scale * seen - self.sinogram
        expected = self.f.intensity * np.exp(-self.f.attenuation * seen)
        return np.asarray((expected - self.sinogram) / np.sqrt(expected))

    def psnr(self, truth: Any = None) -> float:
        """Peak signal-to-noise ratio in decibels, against the object of the instance or against a truth of yours."""
        if truth is None and self.truth is None:
            raise InputError("psnr: the object is not known; expected the true picture, as in psnr(truth).")
        return super().psnr(self.truth if truth is None else truth)

    def facts(self) -> dict[str, Fact]:
        unit = ", in standard deviations" if isinstance(self.f, PoissonTransmission) else ""
        known: dict[str, Fact] = {} if self.truth is None else {"PSNR against the object, dB": self.psnr()}
        return known | {
            f"misfit (root mean square{unit})": float(np.sqrt(np.mean(self.residual**2))),
            "weight of the total variation": self.weight,
            "total variation": self.variation,
        }

    def arrays(self) -> dict[str, Array]:
        known = {} if self.truth is None else {"truth": self.truth}
        return super().arrays() | {"sinogram": self.sinogram, "angles": self.angles} | known

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
    sinogram: Any, angles: Any, weight: float, *, shape: int | Shape | None = None, spacing: float | None = None,
    intensity: float | None = None, attenuation: float = 1.0, huber: float = _HUBER, ridge: float = _RIDGE,
    truth: Any = None, tv: str = "anisotropic", data: str = "squares", weights: Any = None, nonnegative: bool = False,
) -> SaddleProblem[Reconstruction]:  # fmt: skip
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
    tv : "anisotropic", "isotropic" or "tgv", optional
        Absolute differences of neighbours, lengths of gradients, or the total generalised variation: see `denoise`.
    data : "squares", "l1" or "kl", optional
        How A x and the sinogram, both divided by |A|, are compared: with squares, absolute values (outliers), or the
        divergence of counts along rays that emit (emission tomography); without `intensity`, which has a likelihood.
    weights : array like the sinogram, optional
        Weights >= 0 of its numbers in the misfit; 1 when missing.
    nonnegative : bool, optional
        Demand x >= 0.

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
    >>> problem.X, problem.read(ss.solve(problem, reduction=1e-6)).psnr() > 20.0
    (FullSpace((16, 16)), True)
    """
    rays = as_real(sinogram, "reconstruct: sinogram")
    turns = as_real(angles, "reconstruct: angles")
    if rays.ndim != 2 or turns.shape != rays.shape[:1] or rays.shape[1] < 2:
        raise InputError(
            f"reconstruct: sinogram has shape {rays.shape} and angles {turns.shape}; expected (angles, bins) with at "
            "least two bins, and one angle for each row."
        )
    check_data(data, rays, "reconstruct")
    w = as_weights(weights, rays.shape, "reconstruct")
    if intensity is not None and (data != "squares" or w is not None):
        raise InputError("reconstruct: intensity is given with data or weights; expected counts with their likelihood.")
    strength, bins = as_positive(weight, "reconstruct: weight"), rays.shape[1]
    if shape is None:
        side = bins / np.sqrt(2.0) if spacing is None else bins * as_number(spacing, "reconstruct: spacing", 0.0)
        shape = max(2, round(float(side)))
    scanner = parallel_beam(shape, turns, bins, spacing)
    damping = as_positive(ridge, "reconstruct: ridge")
    if intensity is None:
        f, _ = misfit(data, rays.ravel() / scanner.scale, None if w is None else w.ravel(), scanner.A, damping)
    else:
        f = PoissonTransmission(scanner.A, rays.ravel(), intensity, attenuation * scanner.scale, ridge=damping)
    x_shape = scanner.A.x_shape
    known = None if truth is None else as_real(truth, "reconstruct: truth")
    if known is not None and known.shape != x_shape:
        raise InputError(
            f"reconstruct: truth has shape {known.shape}, and the picture {x_shape}; expected equal ones. Where the "
            "picture is not the square that the detector covers, pass shape=."
        )
    threshold = as_number(huber, "reconstruct: huber", 0.0)
    variation = total_variation(x_shape, threshold, as_word(tv, "reconstruct: tv", TV))
    reader = partial(Reconstruction, rays, turns, scanner.scale, scanner.A, f, strength, threshold, variation, known)
    X = NonNegative(x_shape) if as_flag(nonnegative, "reconstruct: nonnegative") else FullSpace(x_shape)
    return restoration(f, strength, threshold, variation, data, X, reader)


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
    make: Callable[[float], SaddleProblem], *, noise: float | None = None, truth: Any = None,
    between: tuple[float, float] = (1e-6, 1e-1), steps: int = 12,
) -> ChosenWeight:  # fmt: skip
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
        result = ss.solve(problem, reduction=_REDUCTION)
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
    first: Any = make(low)
    if noise is not None:
        target = as_number(noise, "choose_weight: noise", 0.0)
    else:
        target = 1.0 if isinstance(first.f, PoissonTransmission) else estimate_noise(first.reader.args[0])
    # Misfits grow with the weight: the largest weight that was tried and whose misfit is at most the target.
    smallest, largest = ends
    for _ in range(steps):
        middle = 0.5 * (smallest + largest)
        smallest, largest = (middle, largest) if score(middle) <= target else (smallest, middle)
    reached = min(value for _, value in tried) <= target
    rule = f"misfit {target:.4g}" if reached else f"the smallest: no weight brings the misfit down to {target:.4g}"
    return ChosenWeight(math.exp(smallest), rule, tuple(tried), sum(made, Calls()))


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


@lru_cache(maxsize=4)
def nonlocal_laplacian(n: int, reach: int = 5, width: float = 2.5) -> Any:
    """Graph Laplacian of pixels within `reach` rows and columns, Gaussian weights, divided by the largest degree.

    Twice on the diagonal, for the horizontal and the vertical differences.

    Examples
    --------
    >>> nonlocal_laplacian(8).shape
    (128, 128)
    """
    index = np.arange(n * n).reshape(n, n)
    rows, columns, weights = [], [], []
    for i in range(-reach, reach + 1):
        for j in range(-reach, reach + 1):
            if (i, j) == (0, 0):
                continue
            here = index[max(0, -i) : n - max(0, i), max(0, -j) : n - max(0, j)]
            there = index[max(0, i) : n + min(0, i), max(0, j) : n + min(0, j)]
            rows.append(here.ravel())
            columns.append(there.ravel())
            weights.append(np.full(here.size, np.exp(-(i * i + j * j) / (2.0 * width**2))))
    entries = (np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns)))
    graph = scipy.sparse.csr_array(entries, shape=(n * n, n * n))
    degree = np.asarray(graph.sum(axis=1)).ravel()
    laplacian = (scipy.sparse.diags_array(degree) - graph) / degree.max()
    return scipy.sparse.block_diag([laplacian, laplacian], format="csr")


@keep_kind
def tomography(
    regime: str = "standard", *, seed: int = 1, picture: int | Array = 0, n: int = 64, bounded: bool = True
) -> SaddleProblem[Reconstruction]:
    """The paper's tomography benchmark (eq. ct_saddle).

    Parameters
    ----------
    regime : "standard", "nonlocal" or "holder"
        The dual function.
    seed : int
        Seed of the measurement noise (1 %).
    picture : int or n x n array
        The object: a phantom by number, or a picture of your own.
    n : int
        Pixels per side.
    bounded : bool
        Use the paper's ball for x, which is never active; False takes the full space.

    Returns
    -------
    SaddleProblem
        `problem.read(result)` is a Reconstruction. For your own sinogram use `ss.gallery.reconstruct`.

    Examples
    --------
    >>> problem = tomography("nonlocal", n=16)
    >>> problem.X.shape, problem.Y.shape
    ((16, 16), (2, 16, 16))
    """
    as_word(regime, "tomography: regime", REGIMES)
    n, seed = as_whole(n, "tomography: n", 2), as_whole(seed, "tomography: seed", 0)
    bounded = as_flag(bounded, "tomography: bounded")
    A = projector(n, _ANGLES)
    truth = phantom(picture, n) if isinstance(picture, int) else as_real(picture, "tomography: picture", (n, n))
    clean = A.forward(truth)
    noise = np.random.default_rng(seed).standard_normal(clean.size)
    data = clean + 0.01 * np.linalg.norm(clean) / np.sqrt(clean.size) * noise
    f = LeastSquares(A, data, ridge=RIDGE)
    g: Function = Quadratic(BETA)
    if regime != "standard":
        g = g + Quadratic(Matrix(NONLOCAL * nonlocal_laplacian(n), (2, n, n), (2, n, n)))
    if regime == "holder":
        g = g + Power(HOLDER_EXPONENT, weight=HOLDER_COEFFICIENT)
    X: Domain = FullSpace((n, n))
    if bounded:
        # R = 1.05 (|xhat(0)| + |D| lambda sqrt(2 d) / mu): no primal minimiser leaves the ball.
        normal = scipy.sparse.linalg.LinearOperator(
            (n * n, n * n), matvec=lambda v: f.hessian_product(v.reshape(n, n)).ravel(), dtype=float
        )
        ridge_solution, _ = scipy.sparse.linalg.cg(normal, f.A.adjoint(f.b).ravel(), rtol=1e-10, maxiter=2000)
        distance = np.sqrt(8.0) * TV_WEIGHT * np.sqrt(2.0 * n * n) / RIDGE
        X = Ball(float(1.05 * (np.linalg.norm(ridge_solution) + distance)), shape=(n, n))
    Y = Box(-TV_WEIGHT, TV_WEIGHT, shape=(2, n, n))
    scale = pixel_units(A, _ANGLES)
    sinogram = scale * data.reshape(_ANGLES, -1)
    huber = BETA * TV_WEIGHT
    tv = total_variation((n, n), huber)
    reader = partial(Reconstruction, sinogram, paper_angles(_ANGLES), scale, A, f, TV_WEIGHT, huber, tv, truth)
    return SaddleProblem(f=f, g=g, B=FiniteDifferences((n, n)), X=X, Y=Y, reader=reader)


def realistic_tomography(name: str, *, seed: int = 1, n: int | None = None) -> SaddleProblem[Reconstruction]:
    """Instances where the coupling matters: low dose, strong TV, sparse view, Poisson counts.

    Parameters
    ----------
    name : str
        "low_dose", "low_dose_128", "strong_tv", "sparse_view" or "poisson".
    seed : int
        Seed of the noise.
    n : int, optional
        Pixels per side, in place of the instance's own.

    Examples
    --------
    >>> realistic_tomography("poisson", n=16).f
    PoissonTransmission((16, 16) -> (4140,), ridge=0.0001)
    """
    if name not in _REALISTIC:
        raise InputError(f"realistic_tomography: name is {name!r}; expected one of {sorted(_REALISTIC)}.")
    side, angles, noise, weight = _REALISTIC[name]
    side = side if n is None else n
    A = projector(side, angles)
    truth = shaded_phantom(side)
    clean = A.forward(truth)
    rng = np.random.default_rng(seed)
    ridge, huber = 1e-4, 1e-3
    f: LeastSquares | PoissonTransmission
    if name == "poisson":
        intensity, attenuation = 1000.0, 3.0 / float(clean.max())
        data = rng.poisson(intensity * np.exp(-attenuation * clean)).astype(np.float64)
        f = PoissonTransmission(A, data, intensity, attenuation, ridge=ridge)
    else:
        data = clean + noise * np.linalg.norm(clean) / np.sqrt(clean.size) * rng.standard_normal(clean.size)
        f = LeastSquares(A, data, ridge=ridge)
    scale = pixel_units(A, angles)
    sinogram = data.reshape(angles, -1) * (1.0 if name == "poisson" else scale)
    tv = total_variation(A.x_shape, huber)
    reader = partial(Reconstruction, sinogram, paper_angles(angles), scale, A, f, weight, huber, tv, truth)
    return tv_problem(f, weight, huber, tv, FullSpace(A.x_shape), reader)
