"""Primal-dual hybrid gradients (Chambolle and Pock): plain, accelerated, linear, or restarted on the gap."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from saddleslide.arrays.base import Array
from saddleslide.certificates.candidate import Candidate
from saddleslide.certificates.judge import Judge
from saddleslide.domains import Domain
from saddleslide.functions import Function, prox
from saddleslide.methods.base import Description, Method, Option
from saddleslide.methods.field import Mean
from saddleslide.methods.reach import counted_reach, reach_from_start, step_ratio
from saddleslide.methods.sliding.primal_dual import PrimalDual
from saddleslide.oracles.oracles import Calls, Oracles
from saddleslide.problem import SaddleProblem

VARIANTS = ("auto", "plain", "accelerated", "linear", "restarted")


@dataclass
class _Side:
    """A block with its function, and the signed product that leads to the other block."""

    function: Function
    domain: Domain
    point: Array
    product: Callable[[Array], Array]

    def step(self, slope: Array, weight: float) -> Array:
        return prox(self.function, self.point - slope / weight, weight, self.domain)


@final
class PDHG(Method):
    """v <- prox of v + sigma K (2u - u_old), u <- prox of u - tau K^T v, on the block u with the larger modulus first.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f = ss.functions.Power(nu=0.0, tilt=[2.0, -0.3], quadratic=1.0)
    >>> X, Y = ss.domains.FullSpace(2), ss.domains.Box(-1.0, 1.0, shape=1)
    >>> problem = ss.SaddleProblem(f=f, g=ss.functions.Zero(), B=np.array([[1.0, -1.0]]), X=X, Y=Y)
    >>> ss.solve(problem, tol=1e-6, method="pdhg").status.name
    'SOLVED'
    """

    description = Description(
        name="pdhg",
        needs=("prox of f", "prox of g"),
        guarantee="Gap of the weighted average after N iterations, |dx| <= D_x and |dy| <= D_y: plain |B| D_x D_y / N; "
        "accelerated O(1 / N^2) with one strongly convex function; linear theta^N with both. Restarted: no rate is "
        "promised here, linear on problems with sharp gaps.",
        reference="Chambolle and Pock, On the ergodic convergence rates of a first-order primal-dual algorithm, Math. "
        "Program. 159 (2016); restarts: Applegate, Hinder, Lu and Lubin, Math. Program. 201 (2023)",
        options=(
            Option("variant", "auto", "auto takes what the moduli allow, and restarts where there are none", VARIANTS),
            Option("output", "average", "the weighted average, or the last point", ("average", "last")),
            Option("weight", None, "|dy| / |dx|; by default from what is known of both distances"),
        ),
    )

    def lacks(self, problem: SaddleProblem) -> list[str]:
        found = super().lacks(problem)
        moduli = _moduli(problem)
        variant = self.options["variant"]
        if variant == "accelerated" and max(moduli) == 0.0:
            found.append("neither f nor g is known to be strongly convex; expected one modulus > 0.")
        if variant == "linear" and min(moduli) == 0.0:
            found.append(f"the moduli of f and g are {moduli[0]:g} and {moduli[1]:g}; expected both > 0.")
        return found

    def start(self, oracles: Oracles, origin: tuple[Array, Array], tol: float) -> None:
        problem = oracles.problem
        self.variant = _variant(self.options["variant"], problem)
        # With B = 0 any step will do; one from the smallest norm would overflow.
        self.norm = problem.coupling.norm.upper or 1.0
        given = self.options["weight"]
        self.weight = step_ratio(counted_reach(oracles, origin)) if given is None else float(given)
        self.restarting: PrimalDual | None = None
        if self.variant == "restarted":
            self.restarting = PrimalDual(oracles, origin, self.norm, self.weight)
            return
        x = _Side(problem.f, problem.X, origin[0], oracles.forward)
        y = _Side(problem.g, problem.Y, origin[1], oracles.adjoint)
        mu_x, mu_y = _moduli(problem)
        # Acceleration comes from the modulus of the first block.
        self.swapped = self.variant == "accelerated" and mu_x == 0.0
        self.u, self.v = (y, x) if self.swapped else (x, y)
        self.sign = -1.0 if self.swapped else 1.0
        self.modulus = mu_y if self.swapped else mu_x
        weight = 1.0 / self.weight if self.swapped else self.weight
        self.tau, self.sigma, self.theta = _steps(self.variant, self.norm, weight, self.modulus, mu_y)
        self.ahead = self.u.point
        self.share = 1.0
        self.mean = Mean()
        self.mean.add((self.u.point, self.v.point), 0.0)

    def advance(self) -> None:
        if self.restarting is not None:
            self.restarting.advance()
            return
        u, v, sign = self.u, self.v, self.sign
        v.point = v.step(-sign * u.product(self.ahead), 1.0 / self.sigma)
        new = u.step(sign * v.product(v.point), 1.0 / self.tau)
        if self.variant == "accelerated":
            self.theta = 1.0 / math.sqrt(1.0 + 2.0 * self.modulus * self.tau)
        self.ahead = new + self.theta * (new - u.point)
        u.point = new
        self.mean.add((u.point, v.point), self.share)
        self._next_weights()

    def _next_weights(self) -> None:
        if self.variant == "accelerated":
            self.tau, self.sigma = self.theta * self.tau, self.sigma / self.theta
            self.share /= self.theta
        elif self.variant == "linear":
            self.share /= self.theta
            if self.share > 1e200:
                # Only ratios of the weights matter.
                self.mean.weight /= self.share
                self.share = 1.0

    def output(self) -> tuple[Array, Array]:
        if self.restarting is not None:
            return self.restarting.best
        last = self.options["output"] == "last"
        u, v = (self.u.point, self.v.point) if last else self.mean.point
        u, v = self.u.domain.project(u), self.v.domain.project(v)
        return (v, u) if self.swapped else (u, v)

    def candidates(self) -> tuple[Candidate, ...]:
        return super().candidates() if self.restarting is None else self.restarting.points

    def learn(self, gaps: Sequence[float], judge: Judge) -> None:
        if self.restarting is not None:
            self.restarting.learn(gaps)

    @property
    def notes(self) -> tuple[str, ...]:
        about = f"variant {self.variant}, |B| = {self.norm:.6g}, first weight {self.weight:.4g}"
        free = ("restarts on the gap: no rate is promised",) if self.variant == "restarted" else ()
        last = self.options["output"] == "last" and self.variant != "restarted"
        return (about, *free, *(("the last point: the guarantee is for the average",) if last else ()))

    def predicted_calls(self, problem: SaddleProblem, tol: float) -> Calls | None:
        D_x, D_y = reach_from_start(problem)
        if not (math.isfinite(D_x) and math.isfinite(D_y)):
            return None
        N = _iterations(_variant(self.options["variant"], problem), problem, D_x, D_y, tol)
        return Calls(0, 0, 2 * max(1, math.ceil(N)))


def _moduli(problem: SaddleProblem) -> tuple[float, float]:
    return problem.f.strong_convexity(problem.X), problem.g.strong_convexity(problem.Y)


def _variant(wanted: object, problem: SaddleProblem) -> str:
    if wanted != "auto":
        return str(wanted)
    strong = sum(modulus > 0.0 for modulus in _moduli(problem))
    return ("restarted", "accelerated", "linear")[strong]


def _contraction(norm: float, mu_x: float, mu_y: float) -> float:
    """The m with tau mu_x = sigma mu_y = m and tau sigma |B|^2 = 1 + m: the largest that Theorem 5 of 2016 allows."""
    q = mu_x * mu_y / norm**2
    return 0.5 * (q + math.sqrt(q * q + 4.0 * q))


def _steps(variant: str, norm: float, weight: float, mu_x: float, mu_y: float) -> tuple[float, float, float]:
    """tau, sigma, theta."""
    if variant == "linear":
        m = _contraction(norm, mu_x, mu_y)
        return m / mu_x, m / mu_y, 1.0 / (1.0 + m)
    return 1.0 / (norm * weight), weight / norm, 1.0


def _iterations(variant: str, problem: SaddleProblem, D_x: float, D_y: float, tol: float) -> float:
    """Iterations after which the bound on the average is `tol`."""
    norm, (mu_x, mu_y) = problem.coupling.norm.upper, _moduli(problem)
    if norm == 0.0 or D_x * D_y == 0.0:
        return 1.0
    plain = norm * D_x * D_y / tol
    if variant == "accelerated":
        near, far, mu = (D_y, D_x, mu_y) if mu_x == 0.0 else (D_x, D_y, mu_x)
        tau = near / (norm * far)
        growth = 2.0 * mu * tau / (2.0 + mu * tau)
        # T_N >= N + growth N (N - 1) / 2 must reach the plain N: s_n = 1/tau_n grows by at least mu 2 / (2 + mu tau).
        b = 1.0 - 0.5 * growth
        return 2.0 * plain / (b + math.sqrt(b * b + 2.0 * growth * plain))
    if variant == "linear":
        m = _contraction(norm, mu_x, mu_y)
        start = 0.5 * (mu_x * D_x**2 + mu_y * D_y**2) / m
        # T_N = (theta^-N - 1) / (theta^-1 - 1), theta^-1 = 1 + m.
        return math.log1p(m * start / tol) / math.log1p(m)
    return plain
