"""OPAPC (Kovalev, Salim and Richtarik): smooth strongly convex f under Bx = b, with Chebyshev-accelerated products."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from saddleslide.methods.base import Array, Calls, Description, Facts, Method, Oracles, Point, State, option


@dataclass
class OPAPCState(State):
    """The last point with u = B^T y, that of the momentum, the right-hand side, and the constants of the steps.

    `largest` bounds the spectrum of W = B^T B, chi is its largest over its smallest positive eigenvalue. A polynomial P
    of degree T has P(0) = 0 and a spectrum in 1 +- 2 c^T / (1 + c^2T) elsewhere, c = (sqrt(chi) - 1) / (sqrt(chi) + 1);
    `top` is the largest eigenvalue of P(W), `condition` its chi.
    """

    x: Array
    y: Array
    pull: Array
    x_f: Array
    b: Array
    chi: float
    largest: float
    T: int
    top: float
    condition: float
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
    >>> problem = ss.gallery.constrained(ss.functions.Quadratic([1.0, 2.0, 4.0]), A=np.ones((1, 3)), b=[3.0])
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
        if not found and self.chi is None and not facts.condition < math.inf:
            found.append("the smallest positive singular value of B is not known; pass options={'chi': ...}.")
        return found

    def init(self, oracles: Oracles, facts: Facts, start: Point, tol: float) -> OPAPCState:
        x, y = start
        b = oracles.free_gradient("g", np.zeros_like(y))
        return OPAPCState(x, y, oracles.adjoint(y), x, b, *self._constants(facts))

    def step(self, state: OPAPCState, oracles: Oracles) -> OPAPCState:
        x, mu, tau = state.x, state.mu, state.tau
        eta = 1.0 / (4.0 * tau * state.L)
        theta = 1.0 / (eta * state.top)
        x_g = tau * x + (1.0 - tau) * state.x_f
        slope = oracles.f_gradient(x_g) - mu * x_g
        half = (x - eta * (slope + state.pull)) / (1.0 + eta * mu)
        w, change = apply_polynomial(state, oracles, half)
        y, pull = state.y + theta * w, state.pull + theta * change
        new = (x - eta * (slope + pull)) / (1.0 + eta * mu)
        return replace(state, x=new, y=y, pull=pull, x_f=x_g + (2.0 * tau / (2.0 - tau)) * (new - x))

    def point(self, state: OPAPCState, oracles: Oracles) -> Point:
        return state.x, oracles.problem.Y.project(state.y)

    def notes(self, state: OPAPCState, facts: Facts) -> tuple[str, ...]:
        kappa, chi_P = state.L / state.mu, state.condition
        return (f"kappa = {kappa:.4g}, chi = {state.chi:.4g}, T = {state.T}, chi_P = {chi_P:.4g}",)

    def calls(self, facts: Facts, tol: float) -> Calls | None:
        D_x, D_y = facts.distances
        if not (math.isfinite(D_x) and math.isfinite(D_y)):
            return None
        _, _, T, _, chi, L, mu, tau = self._constants(facts)
        rate = 0.25 * min(math.sqrt(mu / (L * chi)), 1.0 / chi)
        # Theorem 1 bounds |dx|^2 / eta; the gap is at most |Y| |B| |dx| to first order.
        start = D_x**2 + (facts.norm * D_y / (4.0 * tau * L)) ** 2 * 4.0
        wanted = (tol / max(2.0 * D_y * facts.norm, 1e-300)) ** 2
        N = max(1, math.ceil(math.log(max(start / wanted, 2.0)) / math.log1p(rate)))
        return Calls(N, 0, 2 * T * N)

    def _constants(self, facts: Facts) -> tuple[float, float, int, float, float, float, float, float]:
        """Those of a state, in its order."""
        # chi = 1 would divide by zero; this is 1 to all that matters.
        chi = max(1.0 + 1e-9, facts.condition if self.chi is None else float(self.chi))
        T = max(1, math.floor(math.sqrt(chi))) if self.degree is None else self.degree
        root, L, mu = math.sqrt(chi), facts.f.lipschitz, facts.f.modulus
        c_T = float(((root - 1.0) / (root + 1.0)) ** T)
        top, condition = (1.0 + c_T) ** 2 / (1.0 + c_T**2), ((1.0 + c_T) / (1.0 - c_T)) ** 2
        tau = min(1.0, 0.5 * math.sqrt(condition * mu / L))
        return chi, max(facts.norm**2, 1e-300), T, top, condition, L, mu, tau


def apply_polynomial(state: OPAPCState, oracles: Oracles, x: Array) -> tuple[Array, Array]:
    """The pair w, B^T w with P(W) (x - x_b) = B^T w for any x_b with B x_b = b: 2 T products."""
    chi, b = state.chi, state.b
    c_2, c_3 = (chi + 1.0) / (chi - 1.0), 2.0 * chi / ((1.0 + chi) * state.largest)
    before, now = np.zeros_like(b), c_3 * (oracles.forward(x) - b)
    pull = oracles.adjoint(now)
    # Ratios a_(i-1) / a_i of the Chebyshev values a_i: the values themselves overflow.
    ratio = 1.0 / c_2
    for _ in range(1, state.T):
        following = 1.0 / (2.0 * c_2 - ratio)
        residual = oracles.forward(x - pull) - b
        share = 2.0 * c_2 * following
        before, now = now, share * (now + c_3 * residual) - (ratio * following) * before
        ratio, pull = following, oracles.adjoint(now)
    return now, pull
