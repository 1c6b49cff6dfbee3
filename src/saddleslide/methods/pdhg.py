"""Primal-dual hybrid gradients (Chambolle and Pock): plain, accelerated, linear, or restarted on the gap."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

from saddleslide.certificates.candidate import Candidate
from saddleslide.methods.base import Array, Calls, Description, Facts, Mean, Method, Oracles, Point, State, option
from saddleslide.methods.restarted_primal_dual import PrimalDualState, RestartedPrimalDual

VARIANTS = ("auto", "plain", "accelerated", "linear", "restarted")
_RESTARTED = RestartedPrimalDual()


@dataclass
class PDHGState(State):
    """u is the block that goes second and is extrapolated: x, or y where the acceleration comes from g.

    `modulus` is that of the function of u, `share` the weight of the next point in the mean.
    """

    variant: str
    swapped: bool
    u: Array
    v: Array
    ahead: Array
    mean: Mean
    tau: float
    sigma: float
    theta: float
    share: float
    modulus: float
    norm: float
    weight: float


@final
@dataclass(frozen=True, repr=False)
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
    )
    variant: str = option("auto", "auto takes what the moduli allow, and restarts where there are none", VARIANTS)
    output: str = option("average", "the weighted average, or the last point", ("average", "last"))
    weight: float | None = option(None, "|dy| / |dx|; by default from what is known of both distances")

    def lacks(self, facts: Facts) -> list[str]:
        found, moduli = super().lacks(facts), facts.moduli
        if self.variant == "accelerated" and max(moduli) == 0.0:
            found.append("neither f nor g is known to be strongly convex; expected one modulus > 0.")
        if self.variant == "linear" and min(moduli) == 0.0:
            found.append(f"the moduli of f and g are {moduli[0]:g} and {moduli[1]:g}; expected both > 0.")
        return found

    def init(self, oracles: Oracles, facts: Facts, start: Point, tol: float) -> State:
        variant, (mu_x, mu_y) = self._variant(facts), facts.moduli
        if variant == "restarted":
            state = _RESTARTED.init(oracles, facts, start, tol)
            return state if self.weight is None else replace(state, weight=float(self.weight), modulus=0.0)
        # With B = 0 any step will do; one from the smallest norm would overflow.
        norm = facts.norm or 1.0
        weight = facts.step_ratio(oracles, start) if self.weight is None else float(self.weight)
        # Acceleration comes from the modulus of the block that goes second.
        swapped = variant == "accelerated" and mu_x == 0.0
        (u, v), modulus = ((start[1], start[0]), mu_y) if swapped else (start, mu_x)
        if variant == "linear":
            m = _contraction(norm, mu_x, mu_y)
            tau, sigma, theta = m / mu_x, m / mu_y, 1.0 / (1.0 + m)
        else:
            ratio = 1.0 / weight if swapped else weight
            tau, sigma, theta = 1.0 / (norm * ratio), ratio / norm, 1.0
        return PDHGState(variant, swapped, u, v, u, Mean(u, v), tau, sigma, theta, 1.0, modulus, norm, weight)

    def step(self, state: PDHGState | PrimalDualState, oracles: Oracles) -> State:
        if isinstance(state, PrimalDualState):
            return _RESTARTED.step(state, oracles)
        weight_v, weight_u = 1.0 / state.sigma, 1.0 / state.tau
        if state.swapped:
            v = oracles.prox_f(state.v - oracles.adjoint(state.ahead) / weight_v, weight_v)
            u = oracles.prox_g(state.u + oracles.forward(v) / weight_u, weight_u)
        else:
            v = oracles.prox_g(state.v + oracles.forward(state.ahead) / weight_v, weight_v)
            u = oracles.prox_f(state.u - oracles.adjoint(v) / weight_u, weight_u)
        theta, tau, sigma = state.theta, state.tau, state.sigma
        mean, share = state.mean.plus(u, v, state.share), state.share
        if state.variant == "accelerated":
            theta = 1.0 / math.sqrt(1.0 + 2.0 * state.modulus * tau)
            tau, sigma = theta * tau, sigma / theta
        ahead = u + theta * (u - state.u)
        if state.variant != "plain":
            share /= theta
        if state.variant == "linear" and share > 1e200:
            # Only ratios of the weights matter.
            mean, share = replace(mean, weight=mean.weight / share), 1.0
        return replace(state, u=u, v=v, ahead=ahead, mean=mean, tau=tau, sigma=sigma, theta=theta, share=share)

    def point(self, state: PDHGState | PrimalDualState, oracles: Oracles) -> Point:
        if isinstance(state, PrimalDualState):
            return _RESTARTED.point(state, oracles)
        u, v = (state.u, state.v) if self.output == "last" else (state.mean.x, state.mean.y)
        x, y = (v, u) if state.swapped else (u, v)
        return oracles.problem.X.project(x), oracles.problem.Y.project(y)

    def candidates(self, state: PDHGState | PrimalDualState, oracles: Oracles) -> tuple[Candidate, ...]:
        return state.points if isinstance(state, PrimalDualState) else super().candidates(state, oracles)

    def notes(self, state: PDHGState | PrimalDualState, facts: Facts) -> tuple[str, ...]:
        variant = "restarted" if isinstance(state, PrimalDualState) else state.variant
        notes = [f"variant {variant}, |B| = {state.norm:.6g}, first weight {state.weight:.4g}"]
        if variant == "restarted":
            notes.append("restarts on the gap: no rate is promised")
        elif self.output == "last":
            notes.append("the last point: the guarantee is for the average")
        return tuple(notes)

    def calls(self, facts: Facts, tol: float) -> Calls | None:
        (D_x, D_y), norm, (mu_x, mu_y), variant = facts.distances, facts.norm, facts.moduli, self._variant(facts)
        if not (math.isfinite(D_x) and math.isfinite(D_y)):
            return None
        if norm == 0.0 or D_x * D_y == 0.0:
            return Calls(0, 0, 2)
        N = plain = norm * D_x * D_y / tol
        if variant == "accelerated":
            near, far, mu = (D_y, D_x, mu_y) if mu_x == 0.0 else (D_x, D_y, mu_x)
            tau = near / (norm * far)
            growth = 2.0 * mu * tau / (2.0 + mu * tau)
            # T_N >= N + growth N (N - 1) / 2 must reach the plain N: s_n = 1/tau_n grows by at least
            # mu 2 / (2 + mu tau).
            b = 1.0 - 0.5 * growth
            N = 2.0 * plain / (b + math.sqrt(b * b + 2.0 * growth * plain))
        elif variant == "linear":
            m = _contraction(norm, mu_x, mu_y)
            start = 0.5 * (mu_x * D_x**2 + mu_y * D_y**2) / m
            # T_N = (theta^-N - 1) / (theta^-1 - 1), theta^-1 = 1 + m.
            N = math.log1p(m * start / tol) / math.log1p(m)
        return Calls(0, 0, 2 * max(1, math.ceil(N)))

    def _variant(self, facts: Facts) -> str:
        if self.variant != "auto":
            return self.variant
        return ("restarted", "accelerated", "linear")[sum(modulus > 0.0 for modulus in facts.moduli)]


def _contraction(norm: float, mu_x: float, mu_y: float) -> float:
    """The m with tau mu_x = sigma mu_y = m and tau sigma |B|^2 = 1 + m: the largest that Theorem 5 of 2016 allows."""
    q = mu_x * mu_y / norm**2
    return 0.5 * (q + math.sqrt(q * q + 4.0 * q))
