"""Universal fast gradient method (Nesterov 2015) on phi(x) = f(x) + max over y: any Hölder exponent, no constant."""

from __future__ import annotations

import math
from functools import partial
from typing import final

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.methods.base import Description, Method, Option
from saddleslide.methods.field import calls_of, unpromised
from saddleslide.methods.primal import Primal, Response, is_coupled, primal_smoothness
from saddleslide.methods.reach import sizes_of
from saddleslide.oracles.calls import Calls
from saddleslide.oracles.oracles import MOST_SHORTENED, SHORTER, Oracles
from saddleslide.problem import SaddleProblem

_MOST_DOUBLINGS = 200


@final
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
        options=(
            Option("accuracy", None, "eps of the backtracking test; by default the target"),
            Option("L0", 1.0, "first guess of the curvature"),
        ),
    )

    def start(self, oracles: Oracles, origin: tuple[Array, Array], tol: float) -> None:
        self.primal = Primal(oracles)
        given = self.options["accuracy"]
        self.eps = tol if given is None else float(given)
        self.L, self.A = float(self.options["L0"] or 1.0), 0.0
        self.origin, (self.x, self.y) = origin[0], origin
        # The estimating function is 1/2 |x - origin|^2 + <slopes, x>.
        self.v, self.slopes = origin[0], np.zeros_like(origin[0])

    def advance(self) -> None:
        X, oracles, shortened = self.primal.problem.X, self.primal.oracles, 0
        for _ in range(_MOST_DOUBLINGS):
            a = (1.0 + math.sqrt(1.0 + 4.0 * self.L * self.A)) / (2.0 * self.L)
            tau = a / (self.A + a)
            trial = partial(self._trial, a, tau)
            found = oracles.tried(trial) if shortened < MOST_SHORTENED else trial()
            if found is None:
                # f overflows there: a larger L keeps nearer to x, where it is finite.
                shortened, self.L = shortened + 1, SHORTER * self.L
                continue
            accepted, response, slope, ahead = found
            if accepted:
                break
            self.L *= 2.0
        self.A += a
        self.slopes = self.slopes + a * slope
        self.v = X.project(self.origin - self.slopes)
        self.x, self.y = ahead, (1.0 - tau) * self.y + tau * response.y
        self.L *= 0.5

    def _trial(self, a: float, tau: float) -> tuple[bool, Response, Array, Array]:
        """The step with these weights: whether it passes, the response and the slope that it is made with, its end."""
        middle = tau * self.v + (1.0 - tau) * self.x
        response = self.primal.response(middle)
        lifted = self._lift(middle)
        slope_f = self._f_slope(middle, lifted)
        slope = slope_f + self.primal.pull(response)
        ahead = tau * self.primal.problem.X.project(self.v - a * slope) + (1.0 - tau) * self.x
        return self._accepted(middle, response, lifted, slope_f, ahead, tau), response, slope, ahead

    def _lift(self, x: Array) -> Array:
        return self.primal.lift.lift(x) if self.primal.smooth else x

    def _f_slope(self, x: Array, lifted: Array) -> Array:
        return self.primal.lift.gradient(x, lifted) if self.primal.smooth else np.zeros_like(x)

    def _accepted(
        self, middle: Array, response: Response, lifted: Array, slope_f: Array, ahead: Array, tau: float
    ) -> bool:
        """phi(ahead) - its linear model at middle <= L/2 |ahead - middle|^2 + eps tau / 2."""
        step = ahead - middle
        beyond = self.primal.response(ahead)
        # Of the maximum: its model at middle is <y, B .> - g(y) with the y found there.
        distance = beyond.value - response.value - float(np.vdot(response.y, beyond.Bx - response.Bx))
        if self.primal.smooth:
            bent = self.primal.lift.bregman(ahead, self._lift(ahead), middle, lifted, slope_f)
            if not math.isfinite(bent):
                raise self.primal.oracles.not_finite("f", ahead)
            distance += bent
        # Distances that overflow prove nothing.
        return distance <= 0.5 * self.L * float(np.vdot(step, step)) + 0.5 * self.eps * tau < math.inf

    def output(self) -> tuple[Array, Array]:
        return self.x, self.y

    @property
    def notes(self) -> tuple[str, ...]:
        about = f"eps = {self.eps:.6g} in the backtracking test, L_0 = {self.options['L0']}"
        return (about, *unpromised(self.primal.problem, "X"))

    def predicted_calls(self, problem: SaddleProblem, tol: float) -> Calls | None:
        condition, Omega = primal_smoothness(problem), sizes_of(problem).squared_radii[0]
        if condition is None or not math.isfinite(Omega):
            return None
        nu, H = condition.nu, condition.H
        needed = (Omega / tol) ** (1.0 + nu) * 2.0 ** (2.0 + 4.0 * nu) * H * H / tol ** (1.0 - nu)
        N = max(1, math.ceil(needed ** (1.0 / (1.0 + 3.0 * nu))))
        # Two trials an iteration on average, each with a gradient, a value at most, and three products.
        return calls_of(problem, 3 * N, 0, 6 * N if is_coupled(problem) else 0)
