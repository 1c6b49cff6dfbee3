"""Mirror-Prox Sliding (Lan and Ouyang 2021): gradients outside, extragradient steps on the coupling inside."""

from __future__ import annotations

import math
from typing import final

from saddleslide.arrays.base import Array
from saddleslide.errors import InputError
from saddleslide.methods.base import Description, Method
from saddleslide.methods.fewest import fewest_on_bounded
from saddleslide.methods.field import METRIC, Mean, Point, calls_of, field_of, unpromised
from saddleslide.oracles.oracles import Calls, Oracles
from saddleslide.problem import SaddleProblem


@final
class MirrorProxSliding(Method):
    """Outer step k: one gradient of f and g, then T_k = ceil(k M / L) extragradient steps on the coupling.

    gamma_k = 2/(k+1), beta_k = 2L/k, eta_k^t = beta_k (t - 1) + L T_k / k, so that beta_k + eta_k^t = eta_k^(t+1) and
    the inner distances telescope (docs/methods.md).

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> q, box = ss.functions.Quadratic(1.0), ss.domains.Box(-1.0, 1.0, shape=3)
    >>> problem = ss.SaddleProblem(f=q + ss.functions.Linear(1.0), g=q, B=np.eye(3), X=box, Y=box)
    >>> ss.solve(problem, tol=1e-2, method="mirror-prox-sliding").status.name
    'SOLVED'
    """

    description = Description(
        name="mirror-prox-sliding",
        needs=("smooth f", "smooth g", "curvature of f or g"),
        guarantee="Gap at most 3 L Omega / (N (N + 1)) after N gradients and at most 2 (|B| / L) N (N + 1) + 4 N "
        "products on bounded domains.",
        reference="Lan and Ouyang, Mirror-prox sliding methods for solving a class of monotone variational "
        "inequalities, arXiv:2111.00996 (2021)",
        options=(METRIC,),
    )

    def start(self, oracles: Oracles, origin: tuple[Array, Array], tol: float) -> None:
        self.field = field_of(oracles, origin, self.options)
        self.L, self.M = self.field.smooth_part, self.field.coupling_part
        if not math.isfinite(self.L):
            raise InputError("mirror-prox-sliding: no finite curvature of f and g is known; expected bounded domains.")
        self.z: Point = origin
        self.average: Point = origin
        self.k = 0

    def advance(self) -> None:
        self.k += 1
        k, gamma = self.k, 2.0 / (self.k + 1.0)
        under = tuple((1.0 - gamma) * a + gamma * z for a, z in zip(self.average, self.z, strict=True))
        slope = self.field.gradients((under[0], under[1]))
        inner = self._inner_steps(slope, 2.0 * self.L / k, inner_count(k, self.M, self.L))
        x, y = self.average
        self.average = ((1.0 - gamma) * x + gamma * inner[0], (1.0 - gamma) * y + gamma * inner[1])

    def _inner_steps(self, slope: Point, beta: float, T: int) -> Point:
        """T extragradient steps towards the prox-centre of the outer step; the mean of their first halves."""
        centre, mean = self.z, Mean()
        for t in range(1, T + 1):
            eta = beta * (t - 1) + self.L * T / self.k
            z = self.z
            ahead = self._prox(slope, self.field.coupling(z), centre, beta, z, eta)
            self.z = self._prox(slope, self.field.coupling(ahead), centre, beta, z, eta)
            mean.add(ahead)
        return mean.point

    def _prox(self, slope: Point, pull: Point, centre: Point, beta: float, z: Point, eta: float) -> Point:
        """Minimiser over X x Y of <slope + pull, .> + beta/2 |. - centre|^2 + eta/2 |. - z|^2."""
        weight = beta + eta
        middle = ((beta * centre[0] + eta * z[0]) / weight, (beta * centre[1] + eta * z[1]) / weight)
        return self.field.step(middle, (slope[0] + pull[0], slope[1] + pull[1]), 1.0 / weight)

    def output(self) -> tuple[Array, Array]:
        return self.average

    @property
    def notes(self) -> tuple[str, ...]:
        about = f"L = {self.L:.6g}, M = {self.M:.6g}: {self.M / self.L:.4g} more inner steps at every outer step"
        return (about, *unpromised(self.field.problem))

    def fewest_calls(self, problem: SaddleProblem, tol: float) -> Calls | None:
        return fewest_on_bounded(problem, tol)

    def predicted_calls(self, problem: SaddleProblem, tol: float) -> Calls | None:
        origin = problem.start()
        field = field_of(Oracles(problem), origin, self.options)
        L, M, Omega = field.smooth_part, field.coupling_part, field.size(origin)
        N = math.ceil(0.5 * (math.sqrt(1.0 + 12.0 * L * Omega / tol) - 1.0)) if math.isfinite(Omega) else math.inf
        N = max(N, 1)
        inner = 0.5 * N * (N + 1.0) * M / L + N if L > 0.0 else math.inf
        return calls_of(problem, N, N, 4.0 * inner)


def inner_count(k: int, M: float, L: float) -> int:
    """T_k = ceil(k M / L), at least one.

    Examples
    --------
    >>> inner_count(3, 2.0, 4.0)
    2
    """
    return max(1, math.ceil(k * M / L))
