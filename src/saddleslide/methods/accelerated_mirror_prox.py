"""Accelerated Mirror-Prox (Chen, Lan and Ouyang 2017): gradients at averaged points, the coupling by extragradient."""

from __future__ import annotations

import math
from typing import final

from saddleslide.arrays.base import Array
from saddleslide.methods.base import Description, Method, Option
from saddleslide.methods.fewest import fewest_on_bounded
from saddleslide.methods.field import METRIC, Point, calls_of, field_of, unpromised
from saddleslide.oracles.calls import Calls
from saddleslide.oracles.oracles import Oracles
from saddleslide.problem import SaddleProblem


@final
class AcceleratedMirrorProx(Method):
    """One gradient of f and g at (1 - alpha) average + alpha r, two steps with the coupling, alpha_t = 2 / (t + 1).

    Steps: gamma_t = t / (2 (L + M t)) for bounded domains; with a horizon N, gamma_t = t / (2 L + N M). Both meet the
    condition 1 - L alpha gamma - M^2 gamma^2 >= 0 of the paper's analysis.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> q, box = ss.functions.Quadratic(1.0), ss.domains.Box(-1.0, 1.0, shape=3)
    >>> problem = ss.SaddleProblem(f=q + ss.functions.Linear(1.0), g=q, B=np.eye(3), X=box, Y=box)
    >>> ss.solve(problem, tol=1e-2, method="accelerated-mirror-prox").status.name
    'SOLVED'
    """

    description = Description(
        name="accelerated-mirror-prox",
        needs=("smooth f", "smooth g"),
        guarantee="Gap at most (2 L / (N (N + 1)) + 2 |B| / (N + 1)) D^2 on domains of diameter D; with a horizon N, "
        "(2 L / (N (N + 1)) + |B| / (N + 1)) Omega.",
        reference="Chen, Lan and Ouyang, Accelerated schemes for a class of variational inequalities, Math. Program. "
        "165 (2017)",
        options=(
            Option("horizon", None, "number of iterations the steps are made for; None: any number", whole=True),
            Option("curvature", None, "L in place of the declared constants, also where a gradient is only Hölder"),
            Option("scale", 1.0, "factor on the prox weight 1/gamma; below 1 leaves the theory"),
            METRIC,
        ),
    )

    def lacks(self, problem: SaddleProblem) -> list[str]:
        """A given curvature stands in for the constants."""
        return super().lacks(problem) if self.options["curvature"] is None else []

    def start(self, oracles: Oracles, origin: tuple[Array, Array], tol: float) -> None:
        self.field = field_of(oracles, origin, self.options)
        given = self.options["curvature"]
        self.L = self.field.smooth_part if given is None else float(given)
        self.M = self.field.coupling_part
        self.r: Point = origin
        self.average: Point = origin
        self.t = 0

    def advance(self) -> None:
        self.t += 1
        alpha, gamma = 2.0 / (self.t + 1.0), self._gamma(self.t)
        middle = _mixed(self.average, self.r, alpha)
        slope = self.field.gradients(middle)
        w = self.field.step(self.r, _sum(slope, self.field.coupling(self.r)), gamma)
        self.r = self.field.step(self.r, _sum(slope, self.field.coupling(w)), gamma)
        self.average = _mixed(self.average, w, alpha)

    def _gamma(self, t: int) -> float:
        horizon, scale = self.options["horizon"], float(self.options["scale"] or 1.0)
        weight = 2.0 * (self.L + self.M * t) if horizon is None else 2.0 * self.L + float(horizon) * self.M
        return t / (scale * weight) if weight > 0.0 else 1.0

    def output(self) -> tuple[Array, Array]:
        return self.average

    @property
    def finished(self) -> bool:
        """After its horizon the steps are no longer covered, and the method stops."""
        horizon = self.options["horizon"]
        return horizon is not None and self.t >= float(horizon)

    @property
    def notes(self) -> tuple[str, ...]:
        scale = float(self.options["scale"] or 1.0)
        short = scale < 1.0 or self.field.smooth_part > self.L
        outside = ("prox weight below that of the theory: not covered by the guarantee",) if short else ()
        about = f"L = {self.L:.6g}, M = {self.M:.6g}, prox weight times {scale:g}"
        return (about, *outside, *unpromised(self.field.problem))

    def fewest_calls(self, problem: SaddleProblem, tol: float) -> Calls | None:
        return fewest_on_bounded(problem, tol)

    def predicted_calls(self, problem: SaddleProblem, tol: float) -> Calls | None:
        origin = problem.start()
        field = field_of(Oracles(problem), origin, self.options)
        # The smallest N with (a / N + b) / (N + 1) <= tol, from a quadratic equation.
        fixed = self.options["horizon"] is not None
        size = field.size(origin) if fixed else field.diameter_squared()
        a, b = 2.0 * field.smooth_part * size, (1.0 if fixed else 2.0) * field.coupling_part * size
        N = _iterations(a, b, tol)
        return calls_of(problem, N, N, 4 * N)


def _iterations(a: float, b: float, tol: float) -> float:
    """Smallest whole N >= 1 with a / (N (N + 1)) + b / (N + 1) <= tol."""
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.inf
    p = 1.0 - b / tol
    return max(1.0, math.ceil(0.5 * (-p + math.sqrt(p * p + 4.0 * a / tol))))


def _mixed(z: Point, w: Point, alpha: float) -> Point:
    return (1.0 - alpha) * z[0] + alpha * w[0], (1.0 - alpha) * z[1] + alpha * w[1]


def _sum(z: Point, w: Point) -> Point:
    return z[0] + w[0], z[1] + w[1]
