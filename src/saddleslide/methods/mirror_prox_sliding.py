"""Mirror-Prox Sliding (Lan and Ouyang 2021): gradients outside, extragradient steps on the coupling inside."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

from saddleslide.errors import InputError
from saddleslide.methods.base import Calls, Description, Facts, Mean, Oracles, Point, State
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
class MirrorProxSlidingState(State):
    """The last inner point, the average, outer steps made, and L of the gradients and M of the coupling in the norm."""

    z: Point
    average: Point
    k: int
    L: float
    M: float
    weights: tuple[float, float]


@final
@dataclass(frozen=True, repr=False)
class MirrorProxSliding(BoundedMethod):
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
    )
    metric: str = norm_option()

    def init(self, oracles: Oracles, facts: Facts, start: Point, tol: float) -> MirrorProxSlidingState:
        field = Field.at(facts, start, self.metric)
        if not math.isfinite(field.smooth):
            raise InputError("mirror-prox-sliding: no finite curvature of f and g is known; expected bounded domains.")
        return MirrorProxSlidingState(start, start, 0, field.smooth, field.coupling, field.weights)

    def step(self, state: MirrorProxSlidingState, oracles: Oracles) -> MirrorProxSlidingState:
        k, L, centre, z = state.k + 1, state.L, state.z, state.z
        gamma, beta, T = 2.0 / (k + 1.0), 2.0 * L / k, max(1, math.ceil(k * state.M / L))
        slope, mean = oracles.gradients(*mix(state.average, z, gamma)), Mean(*z)
        for t in range(1, T + 1):
            # Two prox terms, to where the outer step began and to the last inner point, are one to a point between.
            eta = beta * (t - 1) + L * T / k
            weight = beta + eta
            middle = (beta * centre[0] + eta * z[0]) / weight, (beta * centre[1] + eta * z[1]) / weight
            ahead = move(oracles, middle, add(slope, apply_coupling(oracles, z)), 1.0 / weight, state.weights)
            z = move(oracles, middle, add(slope, apply_coupling(oracles, ahead)), 1.0 / weight, state.weights)
            mean = mean.plus(*ahead)
        return replace(state, z=z, average=mix(state.average, (mean.x, mean.y), gamma), k=k)

    def point(self, state: MirrorProxSlidingState, oracles: Oracles) -> Point:
        return state.average

    def notes(self, state: MirrorProxSlidingState, facts: Facts) -> tuple[str, ...]:
        about = f"L = {state.L:.6g}, M = {state.M:.6g}: {state.M / state.L:.4g} more inner steps at every outer step"
        return (about, *note_unbounded(facts))

    def calls(self, facts: Facts, tol: float) -> Calls | None:
        field = Field.at(facts, facts.problem.start(), self.metric)
        L, M, Omega = field.smooth, field.coupling, field.Omega
        if not (math.isfinite(Omega) and L > 0.0):
            return None
        N = max(math.ceil(0.5 * (math.sqrt(1.0 + 12.0 * L * Omega / tol) - 1.0)), 1)
        return calls_of(facts, N, N, 4.0 * (0.5 * N * (N + 1.0) * M / L + N))
