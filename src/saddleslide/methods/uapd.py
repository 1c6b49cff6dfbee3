"""Universal accelerated primal-dual gradients (Luo): f of any Hölder exponent, and a g with a proximal step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from saddleslide.functions.entrywise import Zero
from saddleslide.methods.base import Array, Calls, Description, Facts, Method, Oracles, Point, State, option
from saddleslide.methods.field import backtrack, calls_of

# Fixed-point steps for the length of a step: each at least halves what is missing.
_ROUNDS = 60


@dataclass
class UAPDState(State):
    """The output x with the mean of the guesses of y, the moving v and y, and Bv.

    S = 1/beta is the sum of all steps, Gamma = gamma/beta weighs |v - v_0|^2 / 2; M is the curvature of the search, mu
    the modulus of the costly rest of f, mu_simple that of its simple part.
    """

    x: Array
    mean: Array
    v: Array
    y: Array
    push: Array
    S: float
    Gamma: float
    M: float
    mu: float
    mu_simple: float
    norm: float
    eps: float


@final
@dataclass(frozen=True, repr=False)
class UAPD(Method):
    """Nesterov's momentum in x, a guess of y before each step and a correction after it; one B and one B^T a step.

    Linear constraints Bx = b are g = <b, y>; any g with a proximal step will do (docs/theory.md).

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> problem = ss.gallery.constrained(ss.functions.Quadratic([1.0, 2.0, 4.0]), A=np.ones((1, 3)), b=[3.0])
    >>> result = ss.solve(problem, tol=1e-4, method="uapd")
    >>> result.status.name, bool(abs(result.x.sum() - 3.0) < 1e-3)
    ('SOLVED', True)
    """

    description = Description(
        name="uapd",
        needs=("prox of g",),
        guarantee="O(|B| D_x D_y / eps + (H_nu D_x^(1 + nu) / eps)^(2 / (1 + 3 nu))) for the best Hölder condition "
        "(nu, H_nu) of f, unknown to the method; |B| D_y / sqrt(mu eps) products with f strongly convex.",
        reference="Luo, A universal accelerated primal-dual method for convex optimization problems, J. Optim. Theory "
        "Appl. 201 (2024)",
    )
    ratio: float | None = option(None, "D_y / D_x, the root of Gamma_0; by default from the sets, or what is seen")
    curvature: float = option(1.0, "first guess of the curvature of f")

    def init(self, oracles: Oracles, facts: Facts, start: Point, tol: float) -> UAPDState:
        x, y = start
        coupled = facts.norm > 0.0
        push = oracles.forward(x) if coupled else np.zeros_like(y)
        M = 0.0 if isinstance(oracles.problem.f_parts[0], Zero) and coupled else float(self.curvature)
        moduli = facts.f.rest.modulus, facts.f.simple.modulus
        return UAPDState(x, y, x, y, push, 0.0, self._ratio(facts) ** 2, M, *moduli, facts.norm, tol)

    def step(self, state: UAPDState, oracles: Oracles) -> UAPDState:
        S, Gamma, mu, lift = state.S, state.Gamma, state.mu, oracles.f_lift
        costly, coupled = not isinstance(oracles.problem.f_parts[0], Zero), state.norm > 0.0

        def trial(M: float) -> tuple[bool, tuple[float, Array, Array, Array]]:
            """A step, and whether f there is below its model and M/2 |step|^2 + eps a / (2 S)."""
            a = step_length(S, Gamma, state.norm, M)
            part = a / (S + a)
            middle = state.x + part * (state.v - state.x)
            guess = oracles.prox_g(state.y + a * state.push, 1.0 / a)
            slope, f_slope = oracles.adjoint(guess) if coupled else np.zeros_like(middle), np.zeros_like(middle)
            lifted = middle
            if costly:
                lifted = lift.lift(middle)
                f_slope = lift.gradient(middle, lifted)
            weight = Gamma / a + mu
            center = ((Gamma / a) * state.v + mu * middle - f_slope - slope) / weight
            v = oracles.prox_f(center, weight)
            x = state.x + part * (v - state.x)
            way, bent = x - middle, 0.0
            if costly:
                bent = lift.bregman(x, lift.lift(x), middle, lifted, f_slope)
                if not math.isfinite(bent):
                    raise oracles.not_finite("f", x)
            passed = bent <= 0.5 * M * float(np.vdot(way, way)) + 0.5 * state.eps * part < math.inf
            return passed or not costly, (a, guess, v, x)

        M, (a, guess, v, x) = backtrack(oracles, state.M, trial)
        push = oracles.forward(v) if coupled else state.push
        y = oracles.prox_g(state.y + a * push, 1.0 / a)
        mean = state.mean + a / (S + a) * (guess - state.mean)
        Gamma += (mu + state.mu_simple) * a
        return UAPDState(x, mean, v, y, push, S + a, Gamma, 0.5 * M, mu, state.mu_simple, state.norm, state.eps)

    def point(self, state: UAPDState, oracles: Oracles) -> Point:
        return state.x, state.mean

    def notes(self, state: UAPDState, facts: Facts) -> tuple[str, ...]:
        return (f"eps = {state.eps:.6g} in the search, Gamma_0 = {self._ratio(facts) ** 2:.4g}",)

    def _ratio(self, facts: Facts) -> float:
        D_x, D_y = facts.distances
        found = D_y / D_x if min(D_x, D_y) > 0.0 else 1.0
        return (found if math.isfinite(found) else 1.0) if self.ratio is None else float(self.ratio)

    def calls(self, facts: Facts, tol: float) -> Calls | None:
        (D_x, D_y), p, root = facts.distances, facts.f.rest.holder, self._ratio(facts)
        if p is None or not math.isfinite(D_x + D_y):
            return None
        # S_N = (Gamma_0 D_x^2 + D_y^2) / tol; steps short for B's sake, and those short for that of f (docs/theory.md).
        S, Gamma = (root**2 * D_x**2 + D_y**2) / tol, root**2
        kappa = (8.0 ** (1.0 + p.nu) * p.H**2 / (Gamma ** (1.0 + p.nu) * tol ** (1.0 - p.nu))) ** (
            1.0 / (1.0 + 3.0 * p.nu)
        )
        rough = (1.0 + 3.0 * p.nu) / (1.0 + p.nu) * kappa * S ** ((1.0 + p.nu) / (1.0 + 3.0 * p.nu))
        least = p.L(0.5 * tol) if p.H > 0.0 else 0.0
        wasted = max(0.0, math.log2(self.curvature / least)) if least > 0.0 else 0.0
        N = math.ceil(2.0 + 2.0 * facts.norm * S / root + rough + wasted)
        # Two trials a step on average.
        return calls_of(facts, 0 if facts.f.rest.is_zero else 3 * N, 0, 3 * N if facts.norm > 0.0 else 0)


def step_length(S: float, Gamma: float, norm: float, M: float) -> float:
    """The largest a with a^2 (|B|^2 + M / (S + a)) <= Gamma, from below.

    Examples
    --------
    >>> step_length(0.0, 4.0, 1.0, 0.0), round(step_length(0.0, 4.0, 0.0, 2.0), 12)
    (2.0, 2.0)
    """
    if M == 0.0:
        return math.sqrt(Gamma) / norm
    # From below the root steps increase towards it, so that each one before the last is allowed.
    a = 0.5 * min(Gamma / M, math.sqrt(Gamma) / norm if norm > 0.0 else math.inf)
    a = max(a, 0.5 * math.sqrt(Gamma / (norm * norm + M / S))) if S > 0.0 else a
    before = a
    for _ in range(_ROUNDS):
        before, a = a, math.sqrt(Gamma / (norm * norm + M / (S + a)))
        if a <= before * (1.0 + 1e-15):
            break
    return before
