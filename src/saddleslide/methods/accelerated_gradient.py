"""Accelerated gradient (Nesterov 1983, 2005) on phi(x) = f(x) + max over y: minimisation where phi is smooth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from saddleslide.methods.base import Array, Calls, Description, Facts, Method, Oracles, Point, State
from saddleslide.methods.field import calls_of, note_unbounded, primal_smoothness, pull, respond


@dataclass
class AcceleratedGradientState(State):
    """The point that takes the steps, the averages, steps made, and the Lipschitz constant of phi'."""

    z: Array
    x: Array
    y: Array
    t: int
    L: float


@final
@dataclass(frozen=True, repr=False)
class AcceleratedGradient(Method):
    """Gradients of phi at (1 - alpha) average + alpha z, alpha_t = 2/(t+1), steps t / (2L); y averages the responses.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> q, box = ss.functions.Quadratic(1.0), ss.domains.Box(-1.0, 1.0, shape=3)
    >>> problem = ss.SaddleProblem(f=q + ss.functions.Linear(1.0), g=q, B=np.eye(3), X=box, Y=box)
    >>> ss.solve(problem, tol=1e-3, method="accelerated-gradient").status.name
    'SOLVED'
    """

    description = Description(
        name="accelerated-gradient",
        needs=("smooth f", "best response of g", "strong convexity of g or B = 0"),
        guarantee="Gap at most 2 L Omega_x / (N (N + 1)) with L = L_f + |B|^2 / mu_g on a bounded X.",
        reference="Nesterov, Smooth minimization of non-smooth functions, Math. Program. 103 (2005)",
    )

    def init(self, oracles: Oracles, facts: Facts, start: Point, tol: float) -> AcceleratedGradientState:
        condition = primal_smoothness(facts)
        assert condition is not None
        return AcceleratedGradientState(start[0], *start, 0, condition.H)

    def step(self, state: AcceleratedGradientState, oracles: Oracles) -> AcceleratedGradientState:
        t, L = state.t + 1, state.L
        alpha = 2.0 / (t + 1.0)
        middle = (1.0 - alpha) * state.x + alpha * state.z
        response = respond(oracles, middle)[0]
        slope = pull(oracles, response)
        if not oracles.is_zero("f"):
            slope = slope + oracles.f_gradient(middle)
        z = oracles.problem.X.project(state.z - (0.5 * t / L if L > 0.0 else t) * slope)
        x = (1.0 - alpha) * state.x + alpha * z
        return AcceleratedGradientState(z, x, (1.0 - alpha) * state.y + alpha * response, t, L)

    def point(self, state: AcceleratedGradientState, oracles: Oracles) -> Point:
        return state.x, state.y

    def notes(self, state: AcceleratedGradientState, facts: Facts) -> tuple[str, ...]:
        return (f"L = {state.L:.6g}", *note_unbounded(facts, "X"))

    def calls(self, facts: Facts, tol: float) -> Calls | None:
        condition, Omega = primal_smoothness(facts), facts.sizes.squared_radii[0]
        if condition is None or condition.nu < 1.0 or not math.isfinite(Omega):
            return None
        N = max(1, math.ceil(0.5 * (math.sqrt(1.0 + 8.0 * condition.H * Omega / tol) - 1.0)))
        return calls_of(facts, N, 0, 2 * N if facts.norm > 0.0 else 0)
