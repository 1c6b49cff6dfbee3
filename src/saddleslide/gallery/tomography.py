"""Tomography with (Huber) total variation, as a saddle problem: the paper's three regimes and realistic ones."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import scipy

from saddleslide.arrays import Array
from saddleslide.couplings import FiniteDifferences, Matrix, as_coupling
from saddleslide.domains import Ball, Box, Domain, FullSpace
from saddleslide.errors import InputError
from saddleslide.functions import Function, LeastSquares, PoissonTransmission, Power, Quadratic
from saddleslide.gallery.phantoms import phantom, pixel_grid, shaded_phantom
from saddleslide.problem import SaddleProblem

# The paper's parameters: ridge mu, dual curvature beta, TV weight lambda, nonlocal weight tau, Hölder coefficient c.
RIDGE, BETA, TV_WEIGHT, NONLOCAL, HOLDER_COEFFICIENT, HOLDER_EXPONENT = 1e-3, 0.05, 5e-5, 0.05, 7.955e-3, 0.5
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
def projector(n: int, angles: int = 180) -> Matrix:
    """Parallel-beam projector of an n x n picture, pixel-driven, divided by its spectral norm.

    Every pixel is splatted linearly onto its two neighbouring detector bins; angles are k pi / angles.

    Examples
    --------
    >>> projector(8, 6).y_shape
    (66,)
    """
    x, y = (grid.ravel() for grid in pixel_grid(n))
    bins = np.linspace(-np.sqrt(2.0), np.sqrt(2.0), round(n * np.sqrt(2.0)))
    spacing = bins[1] - bins[0]
    rows, weights = [], []
    for k in range(angles):
        turn = k * np.pi / angles
        position = (x * np.cos(turn) + y * np.sin(turn) - bins[0]) / spacing
        left = np.clip(np.floor(position).astype(np.intp), 0, bins.size - 2)
        rows += [k * bins.size + left, k * bins.size + left + 1]
        weights += [1.0 - (position - left), position - left]
    columns = np.tile(np.arange(n * n), 2 * angles)
    entries = (np.concatenate(weights), (np.concatenate(rows), columns))
    matrix = scipy.sparse.csr_array(entries, shape=(angles * bins.size, n * n))
    scaled = matrix / _perron_norm(matrix)
    coupling = as_coupling(scaled, (n, n), (angles * bins.size,), norm=1.0 + 1e-9)
    assert isinstance(coupling, Matrix)
    return coupling


def _perron_norm(matrix: Any) -> float:
    """Spectral norm of a matrix with entries >= 0 by power iterations from the all-ones vector."""
    v = np.ones(matrix.shape[1]) / np.sqrt(matrix.shape[1])
    square = 0.0
    for _ in range(200):
        image = matrix.T @ (matrix @ v)
        square = float(np.linalg.norm(image))
        v = image / square
    return float(np.sqrt(square))


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

    Examples
    --------
    >>> problem = tomography("nonlocal", n=16)
    >>> problem.X.shape, problem.Y.shape
    ((16, 16), (2, 16, 16))
    """
    if regime not in REGIMES:
        raise InputError(f"tomography: regime is {regime!r}; expected one of {REGIMES}.")
    A = projector(n)
    truth = phantom(picture, n) if isinstance(picture, int) else np.asarray(picture, dtype=np.float64)
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
    return SaddleProblem(f=f, g=g, B=FiniteDifferences((n, n)), X=X, Y=Box(-TV_WEIGHT, TV_WEIGHT, shape=(2, n, n)))


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
    clean = A.forward(shaded_phantom(side))
    rng = np.random.default_rng(seed)
    ridge, huber_threshold = 1e-4, 1e-3
    f: Function
    if name == "poisson":
        intensity, attenuation = 1000.0, 3.0 / float(clean.max())
        counts = rng.poisson(intensity * np.exp(-attenuation * clean)).astype(np.float64)
        f = PoissonTransmission(A, counts, intensity, attenuation, ridge=ridge)
    else:
        data = clean + noise * np.linalg.norm(clean) / np.sqrt(clean.size) * rng.standard_normal(clean.size)
        f = LeastSquares(A, data, ridge=ridge)
    shape = (2, side, side)
    return SaddleProblem(
        f=f,
        g=Quadratic(huber_threshold / weight),
        B=FiniteDifferences((side, side)),
        X=FullSpace((side, side)),
        Y=Box(-weight, weight, shape=shape),
    )
