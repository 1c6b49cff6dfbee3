"""Mirror-Prox (Nemirovski 2004) with Euclidean projections: the extragradient method, averaged or last iterate."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

from saddleslide.methods.base import Calls, Description, Facts, Mean, Method, Oracles, Point, State, option
from saddleslide.methods.field import Field, calls_of, fewest_on_bounded, move, norm_option, note_unbounded, operator

# Steps of at most 1/L are proved for the average; the last iterate needs room below 1/L to contract.
_AVERAGE, _LAST = 1.0, 0.5


@dataclass
class MirrorProxState(State):
    """The last point, the mean of the extrapolated ones, and the step in the norm with these weights."""

    z: Point
    mean: Mean
    eta: float
    weights: tuple[float, float]


@final
@dataclass(frozen=True, repr=False)
class MirrorProx(Method):
    """w = P(z - eta F(z)), z <- P(z - eta F(w)); the output is the mean of the w, or the last z.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> q, box = ss.functions.Quadratic(1.0), ss.domains.Box(-1.0, 1.0, shape=3)
    >>> problem = ss.SaddleProblem(f=q + ss.functions.Linear(1.0), g=q, B=np.eye(3), X=box, Y=box)
    >>> ss.solve(problem, tol=1e-6, method=ss.methods.MirrorProx(output="last")).status.name
    'SOLVED'
    """

    description = Description(
        name="mirror-prox",
        needs=("smooth f", "smooth g"),
        guarantee="Averaged: gap at most L Omega / (2 N) after N iterations of step 1/L on bounded domains. Last "
        "iterate, f and g strongly convex: squared distance falls by 1 - 3 mu / (8 L) per iteration of step 1/(2L).",
        reference="Nemirovski, Prox-method with rate of convergence O(1/t) for variational inequalities, SIAM J. "
        "Optim. 15 (2004)",
    )
    output: str = option("average", "the mean of the extrapolated points, or the last point", ("average", "last"))
    eta: float | None = option(None, "length of a step; by default 1/L for the average, 1/(2L) for the last point")
    metric: str = norm_option()

    def init(self, oracles: Oracles, facts: Facts, start: Point, tol: float) -> MirrorProxState:
        field = Field.at(facts, start, self.metric)
        return MirrorProxState(start, Mean(*start), self._eta(field), field.weights)

    def step(self, state: MirrorProxState, oracles: Oracles) -> MirrorProxState:
        w = move(oracles, state.z, operator(oracles, state.z), state.eta, state.weights)
        z = move(oracles, state.z, operator(oracles, w), state.eta, state.weights)
        return replace(state, z=z, mean=state.mean.plus(*w))

    def point(self, state: MirrorProxState, oracles: Oracles) -> Point:
        return (state.mean.x, state.mean.y) if self.output == "average" else state.z

    def notes(self, state: MirrorProxState, facts: Facts) -> tuple[str, ...]:
        (w_x, w_y), L = state.weights, Field(facts, state.z, state.weights).lipschitz
        over = state.eta * L > 1.0 + 1e-12
        return (
            f"eta = {state.eta:.6g}, L = {L:.6g}, weights {w_x:.4g} and {w_y:.4g}",
            *(("the step is longer than 1/L: not covered by the guarantee",) if over else ()),
            *(note_unbounded(facts) if self.output == "average" else ()),
        )

    def fewest_calls(self, facts: Facts, tol: float) -> Calls | None:
        # The last point converges linearly, and a step of the caller's may be any: no budget bounds these from below.
        return fewest_on_bounded(facts, tol) if self.output == "average" and self.eta is None else Calls()

    def calls(self, facts: Facts, tol: float) -> Calls | None:
        field = Field.at(facts, facts.problem.start(), self.metric)
        L, Omega, mu, steps = field.lipschitz, field.Omega, field.modulus, math.inf
        if self.output == "average" and math.isfinite(Omega):
            steps = max(1.0, Omega / (2.0 * self._eta(field) * tol))
        elif self.output == "last" and mu > 0.0 and self.eta is None:
            # The gap at distance d of the saddle point is at most (L + L^2 / mu) d^2 / 2: both partial minima are
            # smooth.
            distance = 2.0 * tol / (L + L * L / mu)
            steps = math.log(max(Omega / distance, 2.0)) / -math.log1p(-3.0 * mu / (8.0 * L))
        N = math.ceil(steps) if math.isfinite(steps) else math.inf
        return calls_of(facts, 2 * N, 2 * N, 4 * N)

    def _eta(self, field: Field) -> float:
        if self.eta is not None:
            return float(self.eta)
        return (_AVERAGE if self.output == "average" else _LAST) / field.lipschitz if field.lipschitz > 0.0 else 1.0
