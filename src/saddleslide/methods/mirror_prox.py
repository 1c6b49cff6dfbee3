"""Mirror-Prox (Nemirovski 2004) with Euclidean projections: the extragradient method, averaged or last iterate."""

from __future__ import annotations

import math
from typing import final

from saddleslide.arrays.base import Array
from saddleslide.methods.base import Description, Method, Option
from saddleslide.methods.fewest import fewest_on_bounded
from saddleslide.methods.field import METRIC, Field, Mean, Point, calls_of, field_of, unpromised
from saddleslide.oracles.calls import Calls
from saddleslide.oracles.oracles import Oracles
from saddleslide.problem import SaddleProblem

# Steps of at most 1/L are proved for the average; the last iterate needs room below 1/L to contract.
_AVERAGE, _LAST = 1.0, 0.5


@final
class MirrorProx(Method):
    """w = P(z - eta F(z)), z <- P(z - eta F(w)); the output is the mean of the w, or the last z.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> q, box = ss.functions.Quadratic(1.0), ss.domains.Box(-1.0, 1.0, shape=3)
    >>> problem = ss.SaddleProblem(f=q + ss.functions.Linear(1.0), g=q, B=np.eye(3), X=box, Y=box)
    >>> ss.solve(problem, tol=1e-6, method="mirror-prox", options={"output": "last"}).status.name
    'SOLVED'
    """

    description = Description(
        name="mirror-prox",
        needs=("smooth f", "smooth g"),
        guarantee="Averaged: gap at most L Omega / (2 N) after N iterations of step 1/L on bounded domains. Last "
        "iterate, f and g strongly convex: squared distance falls by 1 - 3 mu / (8 L) per iteration of step 1/(2L).",
        reference="Nemirovski, Prox-method with rate of convergence O(1/t) for variational inequalities, SIAM J. "
        "Optim. 15 (2004)",
        options=(
            Option("output", "average", "the mean of the extrapolated points, or the last point", ("average", "last")),
            Option("step", None, "eta; by default 1/L for the average, 1/(2L) for the last point"),
            METRIC,
        ),
    )

    def start(self, oracles: Oracles, origin: tuple[Array, Array], tol: float) -> None:
        self.field = field_of(oracles, origin, self.options)
        self.eta = self._step(self.field)
        self.z: Point = origin
        self.mean = Mean()
        self.mean.add(origin, 0.0)

    def _step(self, field: Field) -> float:
        given = self.options["step"]
        if given is not None:
            return float(given)
        L = field.lipschitz
        return (_AVERAGE if self.options["output"] == "average" else _LAST) / L if L > 0.0 else 1.0

    def advance(self) -> None:
        w = self.field.step(self.z, self.field(self.z), self.eta)
        self.z = self.field.step(self.z, self.field(w), self.eta)
        self.mean.add(w)

    def output(self) -> tuple[Array, Array]:
        return self.mean.point if self.options["output"] == "average" else self.z

    @property
    def notes(self) -> tuple[str, ...]:
        L = self.field.lipschitz
        over = self.eta * L > 1.0 + 1e-12
        return (
            f"eta = {self.eta:.6g}, L = {L:.6g}, weights {self.field.norm.x:.4g} and {self.field.norm.y:.4g}",
            *(("the step is longer than 1/L: not covered by the guarantee",) if over else ()),
            *(unpromised(self.field.problem) if self.options["output"] == "average" else ()),
        )

    def fewest_calls(self, problem: SaddleProblem, tol: float) -> Calls | None:
        # The last point converges linearly, and a step of the caller's may be any: no budget bounds these from below.
        budgeted = self.options["output"] == "average" and self.options["step"] is None
        return fewest_on_bounded(problem, tol) if budgeted else Calls()

    def predicted_calls(self, problem: SaddleProblem, tol: float) -> Calls | None:
        origin = problem.start()
        steps = self._steps(field_of(Oracles(problem), origin, self.options), origin, tol)
        return calls_of(problem, 2 * steps, 2 * steps, 4 * steps)

    def _steps(self, field: Field, origin: Point, tol: float) -> float:
        """Iterations after which the guarantee promises `tol`."""
        L, Omega, mu = field.lipschitz, field.size(origin), field.modulus
        if self.options["output"] == "average":
            return max(1.0, math.ceil(Omega / (2.0 * self._step(field) * tol))) if math.isfinite(Omega) else math.inf
        if mu == 0.0 or self.options["step"] is not None:
            return math.inf
        # The gap at distance d of the saddle point is at most (L + L^2 / mu) d^2 / 2 (both partial minima are smooth).
        distance = 2.0 * tol / (L + L * L / mu)
        steps = math.log(max(Omega / distance, 2.0)) / -math.log1p(-3.0 * mu / (8.0 * L))
        return math.ceil(steps) if math.isfinite(steps) else math.inf
