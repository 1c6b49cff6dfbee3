"""Accelerated gradient (Nesterov 1983, 2005) on phi(x) = f(x) + max over y: minimisation where phi is smooth."""

from __future__ import annotations

import math
from typing import final

from saddleslide.arrays.base import Array
from saddleslide.methods.base import Description, Method
from saddleslide.methods.field import calls_of, unpromised
from saddleslide.methods.primal import Primal, is_coupled, primal_smoothness
from saddleslide.methods.reach import sizes_of
from saddleslide.oracles.calls import Calls
from saddleslide.oracles.oracles import Oracles
from saddleslide.problem import SaddleProblem


@final
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

    def start(self, oracles: Oracles, origin: tuple[Array, Array], tol: float) -> None:
        self.primal = Primal(oracles)
        condition = primal_smoothness(self.primal.problem)
        assert condition is not None
        self.L = condition.H
        self.z, (self.x, self.y) = origin[0], origin
        self.t = 0

    def advance(self) -> None:
        self.t += 1
        alpha = 2.0 / (self.t + 1.0)
        middle = (1.0 - alpha) * self.x + alpha * self.z
        response = self.primal.response(middle)
        slope = self.primal.gradient(middle, response)
        step = 0.5 * self.t / self.L if self.L > 0.0 else self.t
        self.z = self.primal.problem.X.project(self.z - step * slope)
        self.x = (1.0 - alpha) * self.x + alpha * self.z
        self.y = (1.0 - alpha) * self.y + alpha * response.y

    def output(self) -> tuple[Array, Array]:
        return self.x, self.y

    @property
    def notes(self) -> tuple[str, ...]:
        return (f"L = {self.L:.6g}", *unpromised(self.primal.problem, "X"))

    def predicted_calls(self, problem: SaddleProblem, tol: float) -> Calls | None:
        condition, Omega = primal_smoothness(problem), sizes_of(problem).squared_radii[0]
        if condition is None or condition.nu < 1.0 or not math.isfinite(Omega):
            return None
        N = max(1, math.ceil(0.5 * (math.sqrt(1.0 + 8.0 * condition.H * Omega / tol) - 1.0)))
        return calls_of(problem, N, 0, 2 * N if is_coupled(problem) else 0)
