"""Universal fast gradient method (Nesterov 2015) on phi(x) = f(x) + max over y: any Hölder exponent, no constant."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from saddleslide.methods.base import Array, Calls, Description, Facts, Method, Oracles, Point, State, option
from saddleslide.methods.field import backtrack, calls_of, note_unbounded, primal_smoothness, pull, respond


@dataclass
class UniversalGradientState(State):
    """The last points, and the estimating function 1/2 |x - start|^2 + <slopes, x> with its minimiser v."""

    x: Array
    y: Array
    v: Array
    slopes: Array
    start: Array
    A: float
    L: float
    eps: float


@final
@dataclass(frozen=True, repr=False)
class UniversalGradient(Method):
    """Estimating sequences with a_k^2 = A_(k+1) / L_k, L_k by backtracking with slack eps tau_k / 2.

    y is the mean of the best responses with weights a_k: the lower model of phi that the method carries is one of the
    saddle function at that y.

    Examples
    --------
    >>> import saddleslide as ss
    >>> problem = ss.gallery.synthetic(0.5, 0.5, seed=0)
    >>> ss.solve(problem, tol=1.0, method="universal-gradient").status.name
    'SOLVED'
    """

    description = Description(
        name="universal-gradient",
        needs=("best response of g",),
        guarantee="Gap at most eps once A_N >= Omega_x / eps on a bounded X, and A_N >= (eps^(1 - nu) N^(1 + 3 nu) / "
        "(2^(2 + 4 nu) H_nu^2))^(1 / (1 + nu)) for every Hölder condition (nu, H_nu) of phi, known or not.",
        reference="Nesterov, Universal gradient methods for convex optimization problems, Math. Program. 152 (2015)",
    )
    accuracy: float | None = option(None, "eps of the backtracking test; by default the target")
    L0: float = option(1.0, "first guess of the curvature")

    def init(self, oracles: Oracles, facts: Facts, start: Point, tol: float) -> UniversalGradientState:
        (x, y), eps = start, tol if self.accuracy is None else float(self.accuracy)
        return UniversalGradientState(x, y, x, np.zeros_like(x), x, 0.0, float(self.L0), eps)

    def step(self, state: UniversalGradientState, oracles: Oracles) -> UniversalGradientState:
        X, A, x, v = oracles.problem.X, state.A, state.x, state.v
        lift, costly = oracles.whole_f_lift, not oracles.is_zero("f")

        def trial(L: float) -> tuple[bool, tuple[float, float, Array, Array, Array]]:
            """A step, and whether phi(ahead) - its model at middle <= L/2 |ahead - middle|^2 + eps tau / 2."""
            a = (1.0 + math.sqrt(1.0 + 4.0 * L * A)) / (2.0 * L)
            tau = a / (A + a)
            middle = tau * v + (1.0 - tau) * x
            y, maximum, image = respond(oracles, middle)
            lifted, f_slope = middle, np.zeros_like(x)
            if costly:
                lifted = lift.lift(middle)
                f_slope = lift.gradient(middle, lifted)
            slope = f_slope + pull(oracles, y)
            ahead = tau * X.project(v - a * slope) + (1.0 - tau) * x
            way, (_, beyond, image_ahead) = ahead - middle, respond(oracles, ahead)
            # Of the maximum: its model at middle is <y, B .> - g(y) with the y found there.
            distance = beyond - maximum - float(np.vdot(y, image_ahead - image))
            if costly:
                bent = lift.bregman(ahead, lift.lift(ahead), middle, lifted, f_slope)
                if not math.isfinite(bent):
                    raise oracles.not_finite("f", ahead)
                distance += bent
            # Distances that overflow prove nothing.
            passed = distance <= 0.5 * L * float(np.vdot(way, way)) + 0.5 * state.eps * tau < math.inf
            return passed, (a, tau, y, slope, ahead)

        L, (a, tau, y, slope, ahead) = backtrack(oracles, state.L, trial)
        slopes, y = state.slopes + a * slope, (1.0 - tau) * state.y + tau * y
        v = X.project(state.start - slopes)
        return UniversalGradientState(ahead, y, v, slopes, state.start, A + a, 0.5 * L, state.eps)

    def point(self, state: UniversalGradientState, oracles: Oracles) -> Point:
        return state.x, state.y

    def notes(self, state: UniversalGradientState, facts: Facts) -> tuple[str, ...]:
        return (f"eps = {state.eps:.6g} in the backtracking test, L_0 = {self.L0}", *note_unbounded(facts, "X"))

    def calls(self, facts: Facts, tol: float) -> Calls | None:
        condition, Omega = primal_smoothness(facts), facts.sizes.squared_radii[0]
        if condition is None or not math.isfinite(Omega):
            return None
        nu, H = condition.nu, condition.H
        needed = (Omega / tol) ** (1.0 + nu) * 2.0 ** (2.0 + 4.0 * nu) * H * H / tol ** (1.0 - nu)
        N = max(1, math.ceil(needed ** (1.0 / (1.0 + 3.0 * nu))))
        # Two trials an iteration on average, each with a gradient, a value at most, and three products.
        return calls_of(facts, 3 * N, 0, 6 * N if facts.norm > 0.0 else 0)
