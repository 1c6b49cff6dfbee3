"""Problems by name and settings, as the specifications write them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.domains.entrywise import Box, FullSpace
from saddleslide.domains.norms import Ball
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.functions.entrywise import Linear, Power, Zero
from saddleslide.functions.losses import LeastSquares
from saddleslide.functions.quadratic import Quadratic
from saddleslide.functions.sampled import Noisy
from saddleslide.gallery import phantom, synthetic, tomography
from saddleslide.gallery.projectors import projector
from saddleslide.gallery.tomography import BETA, HOLDER_COEFFICIENT, HOLDER_EXPONENT, NONLOCAL, RIDGE
from saddleslide.gallery.tomography import nonlocal_laplacian as laplacian_of
from saddleslide.operators.explicit import as_operator
from saddleslide.problem import SaddleProblem

# The paper's bound on the squared norm of the projector is 1.01 times the measured one.
PROJECTOR_MARGIN = 1.01


@dataclass(frozen=True)
class Instance:
    """A problem with what its experiment declares about it: the picture behind the data, the saddle point.

    `judged` is the problem whose gap counts, where it is another than the one that the method sees.
    """

    problem: SaddleProblem
    truth: Array | None = None
    judged: SaddleProblem | None = None
    solution: tuple[Array, Array] | None = None

    def Psi(self, x: Array, y: Array) -> float:
        """The Lyapunov function |z - z*|_P^2 + 12 D_f + 12 D_g with P = diag(mu_x, mu_y) (eq. Psi_s without beta)."""
        assert self.solution is not None
        problem = self.problem
        blocks = ((problem.f, problem.X, x, self.solution[0]), (problem.g, problem.Y, y, self.solution[1]))
        parts = []
        for function, domain, point, solution in blocks:
            step = point - solution
            bregman = function.value(point) - function.value(solution) - float(function.gradient(solution) @ step)
            parts.append(function.strong_convexity(domain) * float(step @ step) + 12.0 * bregman)
        return math.fsum(parts)


def instance(data: dict[str, Any]) -> Instance:
    """The instance that a specification describes: its family, and the settings of that family."""
    settings = dict(data)
    family = settings.pop("family", None)
    if family not in FAMILIES:
        raise InputError(f"paper: family is {family!r}; expected one of {sorted(FAMILIES)}.")
    return FAMILIES[family](**settings)


@lru_cache(maxsize=2)
def _tomography(
    regime: str = "standard", seed: int = 1, picture: int = 0, n: int = 64, power: float = 1.0, without_g: bool = False,
    free: bool = False,
) -> Instance:  # fmt: skip
    """The paper's benchmark with the norms that it declares; `power` scales c.

    `without_g` hides g from the method, `free` the ball of x, which is never active. The gap is the whole problem's.
    """
    bare = tomography(regime, seed=seed, picture=picture, n=n)
    assert isinstance(bare.f, LeastSquares)
    A = as_operator(projector(n).matrix, (n, n), bare.f.A.y_shape, norm=math.sqrt(PROJECTOR_MARGIN))
    f = LeastSquares(A, bare.f.b, ridge=RIDGE)
    g: Function = Quadratic(BETA)
    if regime != "standard":
        laplacian = NONLOCAL * laplacian_of(n)
        g = g + Quadratic(as_operator(laplacian, (2, n, n), (2, n, n), norm=2.0 * NONLOCAL))
    if regime == "holder":
        g = g + Power(HOLDER_EXPONENT, weight=power * HOLDER_COEFFICIENT)
    problem = SaddleProblem(f=f, g=g, B=bare.coupling, X=bare.X, Y=bare.Y)
    if without_g or free:
        X = FullSpace((n, n)) if free else bare.X
        seen = SaddleProblem(f=f, g=Zero() if without_g else g, B=bare.coupling, X=X, Y=bare.Y)
        return Instance(seen, phantom(picture, n), problem)
    return Instance(problem, phantom(picture, n))


@dataclass(frozen=True)
class _Curved:
    """Powers (weights alpha times_x, alpha times_y) plus quadratics with spectra [mu, kappa mu], |B|^2 = kappa_xy."""

    nu_x: float = 1.0
    nu_y: float = 1.0
    seed: int = 0
    d: int = 20
    alpha: float = 1.0
    mu_x: float = 1.0
    mu_y: float = 1.0
    kappa_x: float = 1.0
    kappa_y: float = 1.0
    kappa_xy: float = 4.0
    bounded: bool = True
    times_x: float = 1.0
    times_y: float = 1.0

    def problem(self) -> SaddleProblem:
        """The problem, the same at every call."""
        rng, d = np.random.default_rng(self.seed), self.d
        U, V = (np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(2))
        c_x, c_y = rng.standard_normal(d), rng.standard_normal(d)
        norm = math.sqrt(self.kappa_xy)
        B = (U * np.geomspace(0.25 * norm, norm, d)) @ V.T
        domain = Box(-1.0, 1.0, shape=d) if self.bounded else FullSpace(d)
        quadratics = self.mu_x * np.geomspace(1.0, self.kappa_x, d), self.mu_y * np.geomspace(1.0, self.kappa_y, d)
        f = Power(self.nu_x, weight=self.alpha * self.times_x, tilt=c_x, quadratic=quadratics[0])
        g = Power(self.nu_y, weight=self.alpha * self.times_y, tilt=c_y, quadratic=quadratics[1])
        return SaddleProblem(f=f, g=g, B=as_operator(B, norm=norm), X=domain, Y=domain)


def _noisy(sigma_x: float = 1.0, sigma_y: float = 1.0, d: int = 6, kappa_xy: float = 1.0, **curved: Any) -> Instance:
    """Quadratics of `curved` seen through Gaussian noise of variance sigma^2; without bounds the solution is known."""
    exact = _Curved(d=d, alpha=0.0, kappa_xy=kappa_xy, **curved).problem()
    f, g = Noisy(exact.f, sigma_x), Noisy(exact.g, sigma_y)
    problem = SaddleProblem(f=f, g=g, B=exact.coupling, X=exact.X, Y=exact.Y)
    return Instance(problem, solution=None if curved.get("bounded", True) else _linear_solution(exact))


def _linear_solution(problem: SaddleProblem) -> tuple[Array, Array]:
    """The saddle point of quadratics without bounds: one linear system."""
    x, y = problem.start()
    B = np.asarray(problem.coupling.dense())
    H, G = (np.diag(p.gradient(np.ones_like(z)) - p.gradient(z)) for p, z in ((problem.f, x), (problem.g, y)))
    slopes = np.concatenate([problem.f.gradient(x), problem.g.gradient(y)])
    z = np.linalg.solve(np.block([[H, B.T], [-B, G]]), -slopes)
    return z[: x.size], z[x.size :]


def _noisy_game(sigma: float = 2.0, d: int = 6, seed: int = 0) -> Instance:
    """A game on balls with a planted solution well inside them, where noise dominates the gap."""
    rng = np.random.default_rng(seed)
    U, V = (np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(2))
    B = (U * np.geomspace(0.4, 1.0, d)) @ V.T
    x, y = (0.6 * v / np.linalg.norm(v) for v in rng.standard_normal((2, d)))
    f, g, ball = Noisy(Linear(-B.T @ y), sigma), Noisy(Linear(B @ x), sigma), Ball(1.0, shape=d)
    return Instance(SaddleProblem(f=f, g=g, B=as_operator(B, norm=1.0), X=ball, Y=ball))


FAMILIES: dict[str, Callable[..., Instance]] = {
    "synthetic": lambda **settings: Instance(synthetic(**settings)),
    "tomography": _tomography,
    "curved": lambda **settings: Instance(_Curved(**settings).problem()),
    "noisy": _noisy,
    "noisy game": _noisy_game,
}
