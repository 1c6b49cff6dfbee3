"""The instances: every part of the problem cheap or costly, smooth or not, with and without proximal steps.

Prices are in operations of one call, from sizes (`facts.costs.estimate_costs`) unless an instance names its own:
a function or product that stands for something larger than what is computed here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.linalg
import scipy.sparse

import saddleslide as ss
from saddleslide.domains import Ball, Box, FullSpace, NonNegative, Simplex
from saddleslide.functions import Custom, LeastSquares, Linear, Logistic, Power, Quadratic, Zero
from saddleslide.operators import FiniteDifferences
from saddleslide.problem import SaddleProblem


@dataclass(frozen=True)
class Instance:
    """A problem with its target and prices (c_f, c_g, c_B)."""

    name: str
    family: str
    make: Callable[[], SaddleProblem]
    reduction: float
    costs: tuple[float, float, float] | None = None


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def tomography() -> SaddleProblem:
    """The paper's standard regime: costly projections, cheap differences, g simple."""
    return ss.gallery.tomography(n=32, bounded=False)


def large_tomography() -> SaddleProblem:
    """The same at the paper's size, 64 x 64."""
    return ss.gallery.tomography(bounded=False)


def nonlocal_tomography() -> SaddleProblem:
    """The same with a costly g that has no proximal step."""
    return ss.gallery.tomography("nonlocal", n=32, bounded=False)


def blur(n: int, width: float) -> np.ndarray:
    """Gaussian blur of an n x n picture as a matrix of norm 1."""
    distance = np.arange(n)[:, None] - np.arange(n)[None]
    line = np.exp(-0.5 * (distance / width) ** 2)
    line /= np.linalg.norm(line, 2)
    return np.kron(line, line)


def deblurring() -> SaddleProblem:
    """Total variation on pictures in [0, 1]: the bounds are active, so no spectral metric."""
    n = 24
    A, D = blur(n, 1.5), FiniteDifferences((n, n))
    b = A @ ss.gallery.phantom(0, n).ravel() + 0.01 * normal(1, n * n)
    X, Y = Box(0.0, 1.0, shape=(n, n)), Box(-2e-3, 2e-3, shape=D.y_shape)
    return SaddleProblem(f=LeastSquares(A, b, x_shape=(n, n)), g=Zero(), B=D, X=X, Y=Y)


def denoising(n: int = 48, seed: int = 2, weight: float = 0.1) -> SaddleProblem:
    """Both functions simple: no gradient at all."""
    noisy = ss.gallery.phantom(0, n) + 0.1 * normal(seed, n, n)
    D = FiniteDifferences((n, n))
    f = Power(1.0, tilt=noisy)
    return SaddleProblem(f=f, g=Zero(), B=D, X=FullSpace((n, n)), Y=Box(-weight, weight, shape=D.y_shape))


def fused_logistic() -> SaddleProblem:
    """Logistic regression with neighbouring coefficients tied: costly f, cheap B."""
    A = normal(3, 400, 120)
    labels = np.sign(A @ np.repeat(normal(4, 6), 20) + normal(5, 400))
    B = scipy.sparse.csr_array(np.eye(120)[:-1] - np.eye(120, k=1)[:-1])
    f = Logistic(A, np.where(labels == 0, 1, labels), ridge=0.1)
    return SaddleProblem(f=f, g=Zero(), B=B, X=FullSpace(120), Y=Box(-3.0, 3.0, shape=119))


def matrix_game(rows: int = 60, columns: int = 80, seed: int = 6) -> SaddleProblem:
    """Two players, nothing but products."""
    return SaddleProblem(f=Zero(), g=Zero(), B=normal(seed, rows, columns), X=Simplex(columns), Y=Simplex(rows))


def regularised_game(rows: int = 60, columns: int = 80, seed: int = 7, price: float = 0.5) -> SaddleProblem:
    """Strategies with a price on their concentration: both functions simple and strongly convex."""
    q, B = Quadratic(price), normal(seed, rows, columns)
    return SaddleProblem(f=q, g=q, B=B, X=Simplex(columns), Y=Simplex(rows))


def two_players() -> SaddleProblem:
    """Two learners with data of their own and different conditioning, cheaply coupled."""
    f = LeastSquares(normal(8, 200, 60) / 10, normal(9, 200), ridge=0.05)
    g = LeastSquares(normal(10, 200, 40) / 20, normal(11, 200), ridge=0.5)
    # Uniform entries at random places; SciPy before 1.15 calls the generator of its own function otherwise.
    rng = np.random.default_rng(12)
    places = rng.choice(40 * 60, size=120, replace=False).astype(np.int32)
    B = scipy.sparse.coo_array((rng.uniform(size=120), (places % 40, places // 40)), shape=(40, 60)).tocsr()
    return SaddleProblem(f=f, g=g, B=B, X=FullSpace(60), Y=FullSpace(40))


def ring(nodes: int, size: int) -> scipy.sparse.csr_array:
    """Differences of neighbours on a ring, each with `size` numbers: B^T B is the Laplacian."""
    edges = np.eye(nodes) - np.roll(np.eye(nodes), 1, axis=1)
    return scipy.sparse.csr_array(scipy.sparse.kron(edges, scipy.sparse.eye_array(size)))


def consensus(nodes: int = 16, size: int = 10, seed: int = 20) -> SaddleProblem:
    """Nodes of a ring with least squares of their own, and a price on each product (a round of messages)."""
    blocks = [scipy.sparse.csr_array(normal(seed + i, 30, size) / 3) for i in range(nodes)]
    f = LeastSquares(scipy.sparse.block_diag(blocks, format="csr"), normal(13, 30 * nodes), ridge=0.1)
    return SaddleProblem(
        f=f, g=Zero(), B=ring(nodes, size), X=FullSpace(nodes * size), Y=Ball(100.0, shape=nodes * size)
    )


def logistic_consensus() -> SaddleProblem:
    """The same with logistic losses: no closed minima."""
    nodes, size = 12, 8
    blocks = [scipy.sparse.csr_array(normal(50 + i, 40, size)) for i in range(nodes)]
    A = scipy.sparse.block_diag(blocks, format="csr")
    truth = np.tile(normal(14, size), nodes)
    labels = np.where(A @ truth + normal(15, 40 * nodes) > 0, 1, -1)
    f = Logistic(A, labels, ridge=1.0)
    return SaddleProblem(
        f=f, g=Zero(), B=ring(nodes, size), X=FullSpace(nodes * size), Y=Ball(300.0, shape=nodes * size)
    )


def constrained(n: int = 150, rows: int = 20, seed: int = 16) -> SaddleProblem:
    """A quadratic with a full matrix under a few linear constraints."""
    H, A = normal(seed, n, n), normal(seed + 1, rows, n)
    f = Quadratic(H @ H.T / n + 0.1 * np.eye(n)) + Linear(normal(seed + 2, n))
    return SaddleProblem(f=f, g=Linear(A @ normal(seed + 3, n)), B=A, X=FullSpace(n), Y=Ball(20.0, shape=rows))


def transport(n: int = 24, centers: tuple[float, float] = (0.3, 0.6), price: float = 0.5) -> SaddleProblem:
    """Quadratically regularised optimal transport: plans >= 0, marginals as constraints."""
    place = np.linspace(0.0, 1.0, n)
    cost = (place[:, None] - place[None]) ** 2
    ones = np.ones((1, n))
    B = scipy.sparse.csr_array(np.vstack([np.kron(np.eye(n), ones), np.kron(ones, np.eye(n))]))
    marginals = [np.exp(-40.0 * (place - c) ** 2) for c in centers]
    b = np.concatenate([m / m.sum() for m in marginals])
    f = Quadratic(np.full(n * n, price)) + Linear(cost.ravel())
    return SaddleProblem(f=f, g=Linear(b), B=B, X=NonNegative(n * n), Y=Box(-2.0, 2.0, shape=2 * n))


def linear_program() -> SaddleProblem:
    """min <c, x>, Ax = b, 0 <= x <= 1, with bounded multipliers."""
    A = normal(30, 30, 60)
    inside = np.random.default_rng(31).uniform(0.0, 1.0, 60)
    return SaddleProblem(
        f=Linear(normal(32, 60)), g=Linear(A @ inside), B=A, X=Box(0.0, 1.0, shape=60), Y=Box(-3.0, 3.0, shape=30)
    )


def robust_regression(rows: int = 300, columns: int = 60, seed: int = 33) -> SaddleProblem:
    """|Ax - b|_1 + ridge: f simple, products costly."""
    A = normal(seed, rows, columns)
    b = A @ normal(seed + 1, columns) + np.random.default_rng(seed + 2).standard_t(2, rows)
    return SaddleProblem(f=Quadratic(3.0), g=Linear(b), B=A, X=FullSpace(columns), Y=Box(-1.0, 1.0, shape=rows))


def nonsmooth_costly(rows: int = 100, size: int = 40, seed: int = 36, weight: float = 0.5) -> SaddleProblem:
    """A costly nonsmooth f known by subgradients only, on a ball; B cheap."""
    A, b = normal(seed, rows, size) / 10, normal(seed + 1, rows)
    f = Custom(
        gradient=lambda x: A.T @ np.sign(A @ x - b),
        value=lambda x: float(np.abs(A @ x - b).sum()),
        smoothness=ss.Holder(0.0, 2.0 * float(np.linalg.norm(A, 2)) * rows**0.5),
    )
    B = scipy.sparse.csr_array(np.eye(size)[:-1] - np.eye(size, k=1)[:-1])
    return SaddleProblem(f=f, g=Zero(), B=B, X=Ball(2.0, shape=size), Y=Box(-weight, weight, shape=size - 1))


def holder_pair(nu_x: float = 0.75, nu_y: float = 0.25, d: int = 60, seed: int = 0) -> SaddleProblem:
    """The paper's synthetic pair (3/4, 1/4) with both functions known by gradients only."""
    made = ss.gallery.synthetic(nu_x, nu_y, d=d, seed=seed)
    f, g = (
        Custom(gradient=part.gradient, value=part.value, smoothness=part.smoothness(made.X))
        for part in (made.f, made.g)
    )
    return SaddleProblem(f=f, g=g, B=made.coupling, X=made.X, Y=made.Y)


def smooth_dear_products(n: int = 50, seed: int = 38, coupling: float = 1.0) -> SaddleProblem:
    """Cheap smooth functions and a product that costs a hundred gradients."""
    f = LeastSquares(normal(seed, 80, n) / 9, normal(seed + 1, 80), ridge=0.1)
    g = LeastSquares(normal(seed + 2, 70, n) / 9, normal(seed + 3, 70), ridge=0.2)
    return SaddleProblem(f=f, g=g, B=coupling * normal(seed + 4, n, n) / 7, X=FullSpace(n), Y=FullSpace(n))


def weak_coupling() -> SaddleProblem:
    """A costly least squares with more unknowns than data on a box, and a few weak constraints on differences."""
    A, b = normal(60, 80, 100), normal(61, 80)
    f = Custom(
        gradient=lambda x: A.T @ (A @ x - b),
        value=lambda x: 0.5 * float((A @ x - b) @ (A @ x - b)),
        smoothness=ss.Holder(1.0, float(np.linalg.norm(A, 2)) ** 2),
    )
    B = 0.01 * (np.eye(100)[:-1] - np.eye(100, k=1)[:-1])
    return SaddleProblem(f=f, g=Zero(), B=B, X=Box(-1.0, 1.0, shape=100), Y=Box(-1.0, 1.0, shape=99))


INSTANCES = (
    Instance("tomography", "imaging", tomography, 1e-4),
    Instance("nonlocal tomography", "imaging", nonlocal_tomography, 1e-4),
    Instance("deblurring", "imaging", deblurring, 1e-3),
    Instance("denoising", "imaging", denoising, 1e-4),
    Instance("fused logistic", "learning", fused_logistic, 1e-4),
    Instance("matrix game", "games", matrix_game, 1e-3),
    Instance("regularised game", "games", regularised_game, 1e-5),
    Instance("two players", "games", two_players, 1e-6),
    Instance("consensus", "consensus", consensus, 1e-6, (1000.0, 1.0, 30.0)),
    Instance("logistic consensus", "consensus", logistic_consensus, 1e-5, (100.0, 1.0, 30.0)),
    Instance("constrained", "constraints", constrained, 1e-6),
    Instance("transport", "transport", transport, 1e-4),
    Instance("linear program", "constraints", linear_program, 1e-4),
    Instance("robust regression", "learning", robust_regression, 1e-4),
    Instance("nonsmooth, f dear", "nonsmooth", nonsmooth_costly, 1e-2, (100.0, 1.0, 1.0)),
    Instance("Hölder pair", "nonsmooth", holder_pair, 1e-2, (10.0, 10.0, 1.0)),
    Instance("smooth, B dear", "learning", smooth_dear_products, 1e-5, (1.0, 1.0, 100.0)),
    Instance("weak coupling", "learning", weak_coupling, 1e-3, (1.0, 1.0, 10.0)),
)

# Other sizes, seeds and weights, on which the shares of the choice were measured: none of these is in INSTANCES.
CALIBRATION = (
    Instance("denoising 24", "imaging", partial(denoising, 24, 102, 0.05), 1e-4),
    Instance("denoising 32", "imaging", partial(denoising, 32, 103, 0.3), 1e-5),
    Instance("game 30", "games", partial(matrix_game, 30, 30, 106), 1e-3),
    Instance("game 100", "games", partial(matrix_game, 100, 50, 107), 1e-4),
    Instance("regularised game 40", "games", partial(regularised_game, 40, 40, 108, 0.1), 1e-4),
    Instance("regularised game 50", "games", partial(regularised_game, 50, 90, 109, 2.0), 1e-6),
    Instance("consensus 8", "consensus", partial(consensus, 8, 6, 120), 1e-5),
    Instance("consensus 24", "consensus", partial(consensus, 24, 4, 150), 1e-4),
    Instance("constrained 80", "constraints", partial(constrained, 80, 10, 116), 1e-5),
    Instance("constrained 60", "constraints", partial(constrained, 60, 25, 126), 1e-4),
    Instance("transport 12", "transport", partial(transport, 12, (0.2, 0.7), 0.3), 1e-4),
    Instance("transport 18", "transport", partial(transport, 18, (0.4, 0.5), 1.0), 1e-5),
    Instance("regression 150", "learning", partial(robust_regression, 150, 40, 133), 1e-4),
    Instance("regression 200", "learning", partial(robust_regression, 200, 100, 137), 1e-3),
    Instance("smooth 30", "learning", partial(smooth_dear_products, 30, 138, 0.5), 1e-5, (1.0, 1.0, 100.0)),
    Instance("smooth 60", "learning", partial(smooth_dear_products, 60, 148, 2.0), 1e-4, (1.0, 1.0, 20.0)),
    Instance("nonsmooth 60", "nonsmooth", partial(nonsmooth_costly, 60, 30, 166, 0.3), 2e-2, (100.0, 1.0, 1.0)),
    Instance("nonsmooth 150", "nonsmooth", partial(nonsmooth_costly, 150, 50, 176, 1.0), 1e-2, (20.0, 1.0, 1.0)),
    Instance("nonsmooth 80", "nonsmooth", partial(nonsmooth_costly, 80, 20, 186, 0.1), 5e-3, (5.0, 1.0, 1.0)),
    Instance("Hölder 40", "nonsmooth", partial(holder_pair, 0.5, 0.5, 40, 7), 1e-2, (10.0, 10.0, 1.0)),
    Instance("Hölder 30", "nonsmooth", partial(holder_pair, 0.25, 0.75, 30, 8), 2e-2, (20.0, 5.0, 1.0)),
    Instance("Hölder 50", "nonsmooth", partial(holder_pair, 0.9, 0.4, 50, 9), 1e-2, (5.0, 5.0, 1.0)),
)
