"""Accelerated primal-dual gradients (Kovalev, Gasnikov and Richtarik): smooth, strongly convex, both blocks free."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from saddleslide.methods.base import Array, Calls, Description, Facts, Method, Oracles, Point, State


@dataclass
class Constants(State):
    """Moduli, smoothness and the parameters of Algorithm 1 with beta = 0 (both functions strongly convex).

    theta = 1 - 1/rho with rho = 4 + 4 max(sqrt(L/2mu) of both, |B| / sqrt(mu_x mu_y) - 1).
    """

    mu_x: float
    mu_y: float
    L_x: float
    L_y: float
    norm: float
    sigma_x: float
    sigma_y: float
    eta_x: float
    eta_y: float
    theta: float

    @classmethod
    def of(cls, facts: Facts) -> Constants:
        """Those of a problem."""
        (mu_x, mu_y), L_x, L_y, limit = facts.moduli, facts.f.lipschitz, facts.g.lipschitz, 4.0 * facts.norm
        sigma_x, sigma_y, delta = math.sqrt(mu_x / (2.0 * L_x)), math.sqrt(mu_y / (2.0 * L_y)), math.sqrt(mu_y / mu_x)
        eta_x, eta_y = 0.25 / (mu_x + L_x * sigma_x), 0.25 / (mu_y + L_y * sigma_y)
        if limit > 0.0:
            eta_x, eta_y = min(eta_x, delta / limit), min(eta_y, 1.0 / (limit * delta))
        theta = 1.0 - min(eta_x * mu_x, eta_y * mu_y)
        return cls(mu_x, mu_y, L_x, L_y, facts.norm, sigma_x, sigma_y, eta_x, eta_y, theta)


@dataclass
class APDGState(State):
    """The last point, that of the momentum, and B^T y of the last two."""

    x: Array
    y: Array
    x_f: Array
    y_f: Array
    pull: Array
    pull_before: Array
    constants: Constants


@final
@dataclass(frozen=True, repr=False)
class APDG(Method):
    """Nesterov's momentum in both blocks, and an extrapolated y in the coupling; one f', one g', two products.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f, free = ss.functions.Quadratic([1.0, 9.0]) + ss.functions.Linear([1.0, -2.0]), ss.domains.FullSpace(2)
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

    def init(self, oracles: Oracles, facts: Facts, start: Point, tol: float) -> APDGState:
        pull = oracles.adjoint(start[1])
        return APDGState(*start, *start, pull, pull, Constants.of(facts))

    def step(self, state: APDGState, oracles: Oracles) -> APDGState:
        c, x, y = state.constants, state.x, state.y
        tau_x, tau_y = 1.0 / (1.0 / c.sigma_x + 0.5), 1.0 / (1.0 / c.sigma_y + 0.5)
        x_g = tau_x * x + (1.0 - tau_x) * state.x_f
        y_g = tau_y * y + (1.0 - tau_y) * state.y_f
        # B^T at y + theta (y - y_before), from products already made.
        pull = state.pull + c.theta * (state.pull - state.pull_before)
        new_x = x + c.eta_x * c.mu_x * (x_g - x) - c.eta_x * (oracles.f_gradient(x_g) + pull)
        push = oracles.forward(new_x)
        new_y = y + c.eta_y * c.mu_y * (y_g - y) - c.eta_y * (oracles.g_gradient(y_g) - push)
        x_f, y_f = x_g + c.sigma_x * (new_x - x), y_g + c.sigma_y * (new_y - y)
        return APDGState(new_x, new_y, x_f, y_f, oracles.adjoint(new_y), state.pull, c)

    def point(self, state: APDGState, oracles: Oracles) -> Point:
        return state.x, state.y

    def notes(self, state: APDGState, facts: Facts) -> tuple[str, ...]:
        c = state.constants
        curvatures = f"mu = {c.mu_x:.4g}, {c.mu_y:.4g}, L = {c.L_x:.4g}, {c.L_y:.4g}"
        return (f"{curvatures}, |B| = {c.norm:.4g}, theta = {c.theta:.6g}",)

    def calls(self, facts: Facts, tol: float) -> Calls | None:
        c, (D_x, D_y) = Constants.of(facts), facts.distances
        # The gap at distances dx, dy is at most (L + |B|^2 / mu) / 2 of their squares; Theorem 1 bounds |d|^2 / eta.
        steep = max((c.L_x + c.norm**2 / c.mu_y) * c.eta_x, (c.L_y + c.norm**2 / c.mu_x) * c.eta_y)
        start = D_x**2 * (1.0 / c.eta_x + c.L_x) + D_y**2 * (1.0 / c.eta_y + c.L_y)
        N = max(1, math.ceil(math.log(max(steep * start / tol, 2.0)) / -math.log(c.theta)))
        return Calls(N, N, 2 * N)
