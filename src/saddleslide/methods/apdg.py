"""Accelerated primal-dual gradients (Kovalev, Gasnikov and Richtarik): smooth, strongly convex, both blocks free."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from saddleslide.arrays.base import Array
from saddleslide.methods.base import Description, Method
from saddleslide.methods.reach import reach_from_start
from saddleslide.oracles.calls import Calls
from saddleslide.oracles.oracles import Oracles
from saddleslide.problem import SaddleProblem


@dataclass(frozen=True)
class _Constants:
    """Moduli, smoothness and the parameters of Algorithm 1 with beta = 0 (both functions strongly convex)."""

    mu_x: float
    mu_y: float
    L_x: float
    L_y: float
    norm: float

    @property
    def sigmas(self) -> tuple[float, float]:
        return math.sqrt(self.mu_x / (2.0 * self.L_x)), math.sqrt(self.mu_y / (2.0 * self.L_y))

    @property
    def etas(self) -> tuple[float, float]:
        sigma_x, sigma_y = self.sigmas
        delta = math.sqrt(self.mu_y / self.mu_x)
        limit = 4.0 * self.norm
        eta_x, eta_y = 0.25 / (self.mu_x + self.L_x * sigma_x), 0.25 / (self.mu_y + self.L_y * sigma_y)
        return (min(eta_x, delta / limit), min(eta_y, 1.0 / (limit * delta))) if limit > 0.0 else (eta_x, eta_y)

    @property
    def theta(self) -> float:
        """1 - 1/rho with rho = 4 + 4 max(sqrt(L/2mu) of both, |B| / sqrt(mu_x mu_y) - 1)."""
        eta_x, eta_y = self.etas
        return 1.0 - min(eta_x * self.mu_x, eta_y * self.mu_y)


@final
class APDG(Method):
    """Nesterov's momentum in both blocks, and an extrapolated y in the coupling; one f', one g', two products.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f = ss.functions.Quadratic([1.0, 9.0]) + ss.functions.Linear([1.0, -2.0])
    >>> free = ss.domains.FullSpace(2)
    >>> problem = ss.SaddleProblem(f=f, g=ss.functions.Quadratic(1.0), B=np.eye(2), X=free, Y=free)
    >>> ss.solve(problem, tol=1e-8, method="apdg").status.name
    'SOLVED'
    """

    description = Description(
        name="apdg",
        needs=("smooth f", "smooth g", "strong convexity of f", "strong convexity of g", "free X", "free Y"),
        guarantee="Squared distance falls by 1 - 1/rho per iteration, rho = max(4 + sqrt(8 L_x / mu_x), "
        "4 + sqrt(8 L_y / mu_y), 4 |B| / sqrt(mu_x mu_y)).",
        reference="Kovalev, Gasnikov and Richtarik, Accelerated primal-dual gradient method for smooth and "
        "convex-concave saddle-point problems with bilinear coupling, NeurIPS 2022",
    )

    def start(self, oracles: Oracles, origin: tuple[Array, Array], tol: float) -> None:
        self.oracles = oracles
        self.constants = _constants(oracles.problem)
        self.x, self.y = self.x_f, self.y_f = origin
        self.pull = self.pull_before = oracles.adjoint(self.y)

    def advance(self) -> None:
        c, oracles, (x, y) = self.constants, self.oracles, (self.x, self.y)
        (sigma_x, sigma_y), (eta_x, eta_y) = c.sigmas, c.etas
        tau_x, tau_y = 1.0 / (1.0 / sigma_x + 0.5), 1.0 / (1.0 / sigma_y + 0.5)
        x_g = tau_x * x + (1.0 - tau_x) * self.x_f
        y_g = tau_y * y + (1.0 - tau_y) * self.y_f
        # B^T at y + theta (y - y_before), from products already made.
        pull = self.pull + c.theta * (self.pull - self.pull_before)
        self.x = x + eta_x * c.mu_x * (x_g - x) - eta_x * (oracles.f_gradient(x_g) + pull)
        push = oracles.forward(self.x)
        self.y = y + eta_y * c.mu_y * (y_g - y) - eta_y * (oracles.g_gradient(y_g) - push)
        self.x_f = x_g + sigma_x * (self.x - x)
        self.y_f = y_g + sigma_y * (self.y - y)
        self.pull_before, self.pull = self.pull, oracles.adjoint(self.y)

    def output(self) -> tuple[Array, Array]:
        return self.x, self.y

    @property
    def notes(self) -> tuple[str, ...]:
        c = self.constants
        return (
            f"mu = {c.mu_x:.4g}, {c.mu_y:.4g}, L = {c.L_x:.4g}, {c.L_y:.4g}, |B| = {c.norm:.4g}, theta = {c.theta:.6g}",
        )

    def predicted_calls(self, problem: SaddleProblem, tol: float) -> Calls | None:
        c = _constants(problem)
        D_x, D_y = reach_from_start(problem)
        eta_x, eta_y = c.etas
        # The gap at distances dx, dy is at most (L + |B|^2 / mu) / 2 of their squares; Theorem 1 bounds |d|^2 / eta.
        steep = max((c.L_x + c.norm**2 / c.mu_y) * eta_x, (c.L_y + c.norm**2 / c.mu_x) * eta_y)
        start = D_x**2 * (1.0 / eta_x + c.L_x) + D_y**2 * (1.0 / eta_y + c.L_y)
        N = max(1, math.ceil(math.log(max(steep * start / tol, 2.0)) / -math.log(c.theta)))
        return Calls(N, N, 2 * N)


def _constants(problem: SaddleProblem) -> _Constants:
    return _Constants(
        problem.f.strong_convexity(problem.X),
        problem.g.strong_convexity(problem.Y),
        problem.f.smoothness(problem.X).H,
        problem.g.smoothness(problem.Y).H,
        problem.coupling.norm.upper,
    )
