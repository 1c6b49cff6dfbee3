"""Tomography with (Huber) total variation, as a saddle problem: the paper's three regimes and realistic ones."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np
import scipy

from saddleslide.arrays.arguments import as_flag, as_whole, as_word
from saddleslide.arrays.base import Array, as_real
from saddleslide.domains import Ball, Box, Domain, FullSpace
from saddleslide.errors import InputError
from saddleslide.functions import Function, LeastSquares, PoissonTransmission, Power, Quadratic
from saddleslide.gallery.pictures import phantom, shaded_phantom
from saddleslide.gallery.projectors import paper_angles, pixel_units, projector
from saddleslide.gallery.reconstruction import Reconstruction
from saddleslide.gallery.solution import keep_kind
from saddleslide.gallery.total_variation import tv_problem
from saddleslide.operators import FiniteDifferences, Matrix
from saddleslide.problem import SaddleProblem

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
) -> SaddleProblem:
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
    X: Domain = Ball(_radius(f, n), shape=(n, n)) if bounded else FullSpace((n, n))
    Y = Box(-TV_WEIGHT, TV_WEIGHT, shape=(2, n, n))
    scale = pixel_units(A, _ANGLES)
    sinogram = scale * data.reshape(_ANGLES, -1)
    reader = partial(Reconstruction, sinogram, paper_angles(_ANGLES), scale, f, TV_WEIGHT, BETA * TV_WEIGHT, truth)
    return SaddleProblem(f=f, g=g, B=FiniteDifferences((n, n)), X=X, Y=Y, reader=reader)


def _radius(f: LeastSquares, n: int) -> float:
    """R = 1.05 (|xhat(0)| + |D| lambda sqrt(2 d) / mu): no primal minimiser leaves the ball."""
    size = n * n
    operator = scipy.sparse.linalg.LinearOperator(
        (size, size), matvec=lambda v: f.hessian_product(v.reshape(n, n)).ravel(), dtype=float
    )
    ridge_solution, _ = scipy.sparse.linalg.cg(operator, f.A.adjoint(f.b).ravel(), rtol=1e-10, maxiter=2000)
    reach = np.sqrt(8.0) * TV_WEIGHT * np.sqrt(2.0 * size) / RIDGE
    return float(1.05 * (np.linalg.norm(ridge_solution) + reach))


def realistic_tomography(name: str, *, seed: int = 1, n: int | None = None) -> SaddleProblem:
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
    ridge, huber_threshold = 1e-4, 1e-3
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
    reader = partial(Reconstruction, sinogram, paper_angles(angles), scale, f, weight, huber_threshold, truth)
    return tv_problem(f, weight, huber_threshold, FullSpace(A.x_shape), reader)
