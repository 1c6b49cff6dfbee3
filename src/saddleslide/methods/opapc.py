"""OPAPC (Kovalev, Salim and Richtarik): smooth strongly convex f under Bx = b, with Chebyshev-accelerated products."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from saddleslide.methods.base import Array, Calls, Description, Facts, Method, Oracles, Point, State, option


@dataclass
class Chebyshev(State):
    """Polynomial P of W = B^T B with P(0) = 0 and a spectrum in 1 +- 2 c^T / (1 + c^2T) elsewhere.

    chi is the largest over the smallest positive eigenvalue of W, `largest` bounds the spectrum, T is the degree.
    """

    chi: float
    largest: float
    T: int

    @property
    def c_T(self) -> float:
        """c_1 to the power T with c_1 = (sqrt(chi) - 1) / (sqrt(chi) + 1)."""
        root = math.sqrt(self.chi)
        return float(((root - 1.0) / (root + 1.0)) ** self.T)

    @property
    def top(self) -> float:
        """Largest eigenvalue of P(W)."""
        return (1.0 + self.c_T) ** 2 / (1.0 + self.c_T**2)

    @property
    def condition(self) -> float:
        """Largest over smallest positive eigenvalue of P(W)."""
        return ((1.0 + self.c_T) / (1.0 - self.c_T)) ** 2

    def apply(self, oracles: Oracles, x: Array, b: Array) -> Point:
        """The pair w, B^T w with P(W) (x - x_b) = B^T w for any x_b with B x_b = b: 2 T products."""
        c_2 = (self.chi + 1.0) / (self.chi - 1.0)
        c_3 = 2.0 * self.chi / ((1.0 + self.chi) * self.largest)
        before, now = np.zeros_like(b), c_3 * (oracles.forward(x) - b)
        pull = oracles.adjoint(now)
        # Ratios a_(i-1) / a_i of the Chebyshev values a_i: the values themselves overflow.
        ratio = 1.0 / c_2
        for _ in range(1, self.T):
            following = 1.0 / (2.0 * c_2 - ratio)
            residual = oracles.forward(x - pull) - b
            share = 2.0 * c_2 * following
            before, now = now, share * (now + c_3 * residual) - (ratio * following) * before
            ratio, pull = following, oracles.adjoint(now)
        return now, pull


@dataclass
class OPAPCState(State):
    """The last point with u = B^T y, that of the momentum, the right-hand side, and the constants of the steps."""

    x: Array
    y: Array
    pull: Array
    x_f: Array
    b: Array
    polynomial: Chebyshev
    L: float
    mu: float
    tau: float


@final
@dataclass(frozen=True, repr=False)
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
    )
    degree: int | None = option(None, "T, the degree of the polynomial; by default floor(sqrt(chi))", whole=True)
    chi: float | None = option(None, "condition number of B^T B on its range; by default from the singular values of B")

    def lacks(self, facts: Facts) -> list[str]:
        found = super().lacks(facts)
        # The singular values are asked for only where all else is there.
        if not found and self.chi is None and not facts.B.condition < math.inf:
            found.append("the smallest positive singular value of B is not known; pass options={'chi': ...}.")
        return found

    def init(self, oracles: Oracles, facts: Facts, start: Point, tol: float) -> OPAPCState:
        (x, y), (polynomial, L, mu, tau) = start, self._constants(facts)
        b = oracles.free_gradient("g", np.zeros_like(y))
        return OPAPCState(x, y, oracles.adjoint(y), x, b, polynomial, L, mu, tau)

    def step(self, state: OPAPCState, oracles: Oracles) -> OPAPCState:
        x, mu, tau = state.x, state.mu, state.tau
        eta = 1.0 / (4.0 * tau * state.L)
        theta = 1.0 / (eta * state.polynomial.top)
        x_g = tau * x + (1.0 - tau) * state.x_f
        slope = oracles.f_gradient(x_g) - mu * x_g
        half = (x - eta * (slope + state.pull)) / (1.0 + eta * mu)
        w, change = state.polynomial.apply(oracles, half, state.b)
        y, pull = state.y + theta * w, state.pull + theta * change
        new = (x - eta * (slope + pull)) / (1.0 + eta * mu)
        return replace(state, x=new, y=y, pull=pull, x_f=x_g + (2.0 * tau / (2.0 - tau)) * (new - x))

    def point(self, state: OPAPCState, oracles: Oracles) -> Point:
        return state.x, oracles.problem.Y.project(state.y)

    def notes(self, state: OPAPCState, facts: Facts) -> tuple[str, ...]:
        P = state.polynomial
        return (f"kappa = {state.L / state.mu:.4g}, chi = {P.chi:.4g}, T = {P.T}, chi_P = {P.condition:.4g}",)

    def calls(self, facts: Facts, tol: float) -> Calls | None:
        D_x, D_y = facts.distances
        if not (math.isfinite(D_x) and math.isfinite(D_y)):
            return None
        polynomial, L, mu, tau = self._constants(facts)
        chi, norm = polynomial.condition, facts.norm
        rate = 0.25 * min(math.sqrt(mu / (L * chi)), 1.0 / chi)
        # Theorem 1 bounds |dx|^2 / eta; the gap is at most |Y| |B| |dx| to first order.
        start = D_x**2 + (norm * D_y / (4.0 * tau * L)) ** 2 * 4.0
        wanted = (tol / max(2.0 * D_y * norm, 1e-300)) ** 2
        N = max(1, math.ceil(math.log(max(start / wanted, 2.0)) / math.log1p(rate)))
        return Calls(N, 0, 2 * polynomial.T * N)

    def _constants(self, facts: Facts) -> tuple[Chebyshev, float, float, float]:
        """The polynomial, L, mu and tau."""
        # chi = 1 would divide by zero; this is 1 to all that matters.
        chi = max(1.0 + 1e-9, facts.B.condition if self.chi is None else float(self.chi))
        T = max(1, math.floor(math.sqrt(chi))) if self.degree is None else self.degree
        polynomial, L, mu = Chebyshev(chi, max(facts.norm**2, 1e-300), T), facts.f.lipschitz, facts.f.modulus
        return polynomial, L, mu, min(1.0, 0.5 * math.sqrt(polynomial.condition * mu / L))
