"""Accelerated Mirror-Prox (Chen, Lan and Ouyang 2017): gradients at averaged points, the coupling by extragradient."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

from saddleslide.methods.base import Calls, Description, Facts, Oracles, Point, State, option
from saddleslide.methods.field import (
    BoundedMethod,
    Field,
    add,
    apply_coupling,
    calls_of,
    mix,
    move,
    norm_option,
    note_unbounded,
)


@dataclass
class AcceleratedMirrorProxState(State):
    """The last point, the average, steps made, and L of the gradients and M of the coupling in the norm."""

    r: Point
    average: Point
    t: int
    L: float
    M: float
    weights: tuple[float, float]


@final
@dataclass(frozen=True, repr=False)
class AcceleratedMirrorProx(BoundedMethod):
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
    )
    horizon: int | None = option(None, "number of iterations the steps are made for; None: any number", whole=True)
    curvature: float | None = option(None, "L in place of the declared constants, also where a gradient is only Hölder")
    scale: float = option(1.0, "factor on the prox weight 1/gamma; below 1 leaves the theory")
    metric: str = norm_option()

    def lacks(self, facts: Facts) -> list[str]:
        # A given curvature stands in for the constants.
        return super().lacks(facts) if self.curvature is None else []

    def init(self, oracles: Oracles, facts: Facts, start: Point, tol: float) -> AcceleratedMirrorProxState:
        field = Field.at(facts, start, self.metric)
        L = field.smooth if self.curvature is None else float(self.curvature)
        return AcceleratedMirrorProxState(start, start, 0, L, field.coupling, field.weights)

    def step(self, state: AcceleratedMirrorProxState, oracles: Oracles) -> AcceleratedMirrorProxState:
        t, L, M, N = state.t + 1, state.L, state.M, self.horizon
        weight = 2.0 * (L + M * t) if N is None else 2.0 * L + N * M
        gamma, alpha = t / (self.scale * weight) if weight > 0.0 else 1.0, 2.0 / (t + 1.0)
        slope = oracles.gradients(*mix(state.average, state.r, alpha))
        w = move(oracles, state.r, add(slope, apply_coupling(oracles, state.r)), gamma, state.weights)
        r = move(oracles, state.r, add(slope, apply_coupling(oracles, w)), gamma, state.weights)
        return replace(state, r=r, average=mix(state.average, w, alpha), t=t)

    def point(self, state: AcceleratedMirrorProxState, oracles: Oracles) -> Point:
        return state.average

    def is_finished(self, state: AcceleratedMirrorProxState) -> bool:
        # Beyond its horizon the steps are not covered.
        return self.horizon is not None and state.t >= self.horizon

    def notes(self, state: AcceleratedMirrorProxState, facts: Facts) -> tuple[str, ...]:
        short = self.scale < 1.0 or Field(facts, state.r, state.weights).smooth > state.L
        outside = ("prox weight below that of the theory: not covered by the guarantee",) if short else ()
        about = f"L = {state.L:.6g}, M = {state.M:.6g}, prox weight times {self.scale:g}"
        return (about, *outside, *note_unbounded(facts))

    def calls(self, facts: Facts, tol: float) -> Calls | None:
        field, fixed = Field.at(facts, facts.problem.start(), self.metric), self.horizon is not None
        size = field.Omega if fixed else field.diameter_squared
        a, b = 2.0 * field.smooth * size, (1.0 if fixed else 2.0) * field.coupling * size
        if not (math.isfinite(a) and math.isfinite(b)):
            return None
        # The smallest N with (a / N + b) / (N + 1) <= tol.
        p = 1.0 - b / tol
        N = max(1.0, math.ceil(0.5 * (-p + math.sqrt(p * p + 4.0 * a / tol))))
        return calls_of(facts, N, N, 4 * N)
