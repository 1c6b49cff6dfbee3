"""OPAPC (Kovalev, Salim and Richtarik): smooth strongly convex f under Bx = b, with Chebyshev-accelerated products."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final
from weakref import WeakKeyDictionary

import numpy as np

from saddleslide.arrays.base import Array, zeros
from saddleslide.methods.base import Description, Method, Option
from saddleslide.methods.reach import reach_from_start
from saddleslide.oracles.calls import Calls
from saddleslide.oracles.oracles import Oracles
from saddleslide.problem import SaddleProblem


@dataclass(frozen=True)
class Chebyshev:
    """Polynomial P of W = B^T B with P(0) = 0 and a spectrum in 1 +- 2 c^T / (1 + c^2T) elsewhere.

    Parameters
    ----------
    chi : float
        Largest over smallest positive eigenvalue of W.
    largest : float
        Upper bound on the spectrum of W.
    degree : int
        T; two products each.

    Examples
    --------
    >>> round(Chebyshev(chi=100.0, largest=1.0, degree=10).condition, 3)
    1.718
    """

    chi: float
    largest: float
    degree: int

    @property
    def c_T(self) -> float:
        """c_1 to the power T with c_1 = (sqrt(chi) - 1) / (sqrt(chi) + 1)."""
        root = math.sqrt(self.chi)
        return float(((root - 1.0) / (root + 1.0)) ** self.degree)

    @property
    def top(self) -> float:
        """Largest eigenvalue of P(W)."""
        return (1.0 + self.c_T) ** 2 / (1.0 + self.c_T**2)

    @property
    def condition(self) -> float:
        """Largest over smallest positive eigenvalue of P(W)."""
        return ((1.0 + self.c_T) / (1.0 - self.c_T)) ** 2

    def weights(self, oracles: Oracles, x: Array, b: Array) -> tuple[Array, Array]:
        """The pair w, B^T w with P(W) (x - x_b) = B^T w for any x_b with B x_b = b: 2 T products."""
        c_2 = (self.chi + 1.0) / (self.chi - 1.0)
        c_3 = 2.0 * self.chi / ((1.0 + self.chi) * self.largest)
        before, now = np.zeros_like(b), c_3 * (oracles.forward(x) - b)
        pull = oracles.adjoint(now)
        # Ratios a_(i-1) / a_i of the Chebyshev values a_i: the values themselves overflow.
        ratio = 1.0 / c_2
        for _ in range(1, self.degree):
            following = 1.0 / (2.0 * c_2 - ratio)
            residual = oracles.forward(x - pull) - b
            share = 2.0 * c_2 * following
            before, now = now, share * (now + c_3 * residual) - (ratio * following) * before
            ratio = following
            pull = oracles.adjoint(now)
        return now, pull


@final
class OPAPC(Method):
    """Accelerated gradients of f with a dual variable u = B^T y, moved by a Chebyshev polynomial of B^T B.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f, Y = ss.functions.Quadratic([1.0, 2.0, 4.0]), ss.domains.Ball(10.0, shape=1)
    >>> g, B = ss.functions.Linear([3.0]), np.array([[1.0, 1.0, 1.0]])
    >>> problem = ss.SaddleProblem(f=f, g=g, B=B, X=ss.domains.FullSpace(3), Y=Y)
    >>> result = ss.solve(problem, tol=1e-8, method="opapc")
    >>> result.status.name, bool(abs(result.x.sum() - 3.0) < 1e-8)
    ('SOLVED', True)
    """

    description = Description(
        name="opapc",
        needs=("smooth f", "strong convexity of f", "linear g", "free X"),
        guarantee="Squared distance falls by 1 / (1 + min(1 / sqrt(kappa chi_P), 1 / chi_P) / 4) per gradient of f, "
        "chi_P < 4, with 2 floor(sqrt(chi)) products each: optimal in both. The solution in y must lie inside Y.",
        reference="Kovalev, Salim and Richtarik, Optimal and practical algorithms for smooth and strongly convex "
        "decentralized optimization, NeurIPS 2020",
        options=(
            Option("degree", None, "T, the degree of the polynomial; by default floor(sqrt(chi))", whole=True),
            Option("chi", None, "condition number of B^T B on its range; by default from the singular values of B"),
        ),
    )

    def lacks(self, problem: SaddleProblem) -> list[str]:
        found = super().lacks(problem)
        # The singular values are asked for only where all else is there.
        if not found and self.options["chi"] is None and not _condition(problem) < math.inf:
            found.append("the smallest positive singular value of B is not known; pass options={'chi': ...}.")
        return found

    def start(self, oracles: Oracles, origin: tuple[Array, Array], tol: float) -> None:
        problem = oracles.problem
        self.oracles, self.problem = oracles, problem
        self.polynomial = self._polynomial(problem)
        self.L, self.mu = problem.f.smoothness(problem.X).H, problem.f.strong_convexity(problem.X)
        self.tau = min(1.0, 0.5 * math.sqrt(self.polynomial.condition * self.mu / self.L))
        self.eta = 1.0 / (4.0 * self.tau * self.L)
        self.theta = 1.0 / (self.eta * self.polynomial.top)
        self.b = oracles.free_gradient("g", zeros(problem.Y.shape, origin[1]))
        self.x, self.y = origin
        self.x_f = self.x
        self.pull = oracles.adjoint(self.y)

    def _polynomial(self, problem: SaddleProblem) -> Chebyshev:
        given, degree = self.options["chi"], self.options["degree"]
        # chi = 1 would divide by zero; this is 1 to all that matters.
        chi = max(1.0 + 1e-9, _condition(problem) if given is None else float(given))
        T = max(1, math.floor(math.sqrt(chi))) if degree is None else int(degree)
        return Chebyshev(chi, max(problem.coupling.norm.upper**2, 1e-300), T)

    def advance(self) -> None:
        eta, mu, tau = self.eta, self.mu, self.tau
        x_g = tau * self.x + (1.0 - tau) * self.x_f
        slope = self.oracles.f_gradient(x_g) - mu * x_g
        half = (self.x - eta * (slope + self.pull)) / (1.0 + eta * mu)
        weights, change = self.polynomial.weights(self.oracles, half, self.b)
        self.y = self.y + self.theta * weights
        self.pull = self.pull + self.theta * change
        new = (self.x - eta * (slope + self.pull)) / (1.0 + eta * mu)
        self.x_f = x_g + (2.0 * tau / (2.0 - tau)) * (new - self.x)
        self.x = new

    def output(self) -> tuple[Array, Array]:
        return self.x, self.problem.Y.project(self.y)

    @property
    def notes(self) -> tuple[str, ...]:
        P = self.polynomial
        return (f"kappa = {self.L / self.mu:.4g}, chi = {P.chi:.4g}, T = {P.degree}, chi_P = {P.condition:.4g}",)

    def predicted_calls(self, problem: SaddleProblem, tol: float) -> Calls | None:
        D_x, D_y = reach_from_start(problem)
        if not (math.isfinite(D_x) and math.isfinite(D_y)):
            return None
        polynomial = self._polynomial(problem)
        L, mu = problem.f.smoothness(problem.X).H, problem.f.strong_convexity(problem.X)
        chi = polynomial.condition
        rate = 0.25 * min(math.sqrt(mu / (L * chi)), 1.0 / chi)
        tau = min(1.0, 0.5 * math.sqrt(chi * mu / L))
        norm = problem.coupling.norm.upper
        # Theorem 1 bounds |dx|^2 / eta; the gap is at most |Y| |B| |dx| to first order.
        start = D_x**2 + (norm * D_y / (4.0 * tau * L)) ** 2 * 4.0
        wanted = (tol / max(2.0 * D_y * norm, 1e-300)) ** 2
        N = max(1, math.ceil(math.log(max(start / wanted, 2.0)) / math.log1p(rate)))
        return Calls(N, 0, 2 * polynomial.degree * N)


_KNOWN: WeakKeyDictionary[SaddleProblem, float] = WeakKeyDictionary()


def _condition(problem: SaddleProblem) -> float:
    """Condition number chi of B^T B; infinite where the smallest positive singular value is not known."""
    if problem not in _KNOWN:
        _KNOWN[problem] = _computed_condition(problem)
    return _KNOWN[problem]


def _computed_condition(problem: SaddleProblem) -> float:
    smallest = problem.coupling.smallest_singular_value(positive=True).lower
    return (problem.coupling.norm.upper / smallest) ** 2 if smallest > 0.0 else math.inf
