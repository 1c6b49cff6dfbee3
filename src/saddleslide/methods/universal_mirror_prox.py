"""Generalized (universal) Mirror-Prox (Stonyakin et al. 2022): no constant needed, steps by backtracking."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import final

import numpy as np

from saddleslide.arrays.state import XArray, YArray
from saddleslide.methods.base import Calls, Description, Facts, Mean, Oracles, Point, State, option
from saddleslide.methods.field import (
    BoundedMethod,
    Field,
    backtrack,
    calls_of,
    move,
    norm_option,
    note_unbounded,
    operator,
)
from saddleslide.oracles.calls import SHORTER


@dataclass
class UniversalMirrorProxState(State):
    """The last point, where F was asked last, the mean, and the last L; eps is that of the test."""

    z: Point
    asked: tuple[XArray, YArray] | None
    mean: Mean
    L: float
    eps: float
    weights: tuple[float, float]


@final
@dataclass(frozen=True, repr=False)
class UniversalMirrorProx(BoundedMethod):
    """Mirror-Prox with L_k halved at every iteration and doubled until the inexact test with slack eps/2 holds.

    F(z_k) is kept while backtracking. The output is the mean of the w_k with weights 1/L_k.

    Examples
    --------
    >>> import saddleslide as ss
    >>> problem = ss.gallery.synthetic(0.75, 0.25, seed=0)
    >>> result = ss.solve(problem, tol=1.0, method="universal-mirror-prox")
    >>> result.status.name, result.calls.f == result.calls.g
    ('SOLVED', True)
    """

    description = Description(
        name="universal-mirror-prox",
        needs=(),
        guarantee="Gap at most eps after 2 Omega (L_nu / eps)^(2 / (1 + nu)) iterations on bounded domains, for every "
        "nu for which the operator is Hölder, known or not.",
        reference="Stonyakin, Gasnikov, Dvurechensky, Titov and Alkousa, Generalized mirror prox algorithm for "
        "monotone variational inequalities: universality and inexact oracle, J. Optim. Theory Appl. 194 (2022)",
    )
    accuracy: float | None = option(None, "eps of the backtracking test; by default the target")
    L0: float = option(1.0, "first guess of the Lipschitz constant")
    metric: str = norm_option()

    def init(self, oracles: Oracles, facts: Facts, start: Point, tol: float) -> UniversalMirrorProxState:
        eps = tol if self.accuracy is None else float(self.accuracy)
        weights = Field.at(facts, start, self.metric).weights
        return UniversalMirrorProxState(start, None, Mean(*start), float(self.L0), eps, weights)

    def step(self, state: UniversalMirrorProxState, oracles: Oracles) -> UniversalMirrorProxState:
        z, L, asked, weights = state.z, state.L, state.asked, state.weights
        found = None if asked is None else oracles.try_out(partial(operator, oracles, z))
        if found is None and asked is not None:
            # An oracle overflows at z: begin where F was asked last.
            z, L = asked, SHORTER * L
        F_z = operator(oracles, z) if found is None else found

        def trial(L: float) -> tuple[bool, tuple[Point, Point]]:
            """Both halves of a step, and whether <F(w) - F(z), w - z+> <= L/2 (|w - z|^2 + |w - z+|^2) + eps/2."""
            w = move(oracles, z, F_z, 1.0 / L, weights)
            F_w = operator(oracles, w)
            ahead = move(oracles, z, F_w, 1.0 / L, weights)
            left = sum(float(np.vdot(b - a, u - v)) for a, b, u, v in zip(F_z, F_w, w, ahead, strict=True))
            squares = _distance_squared(w, z, weights) + _distance_squared(w, ahead, weights)
            # Distances that overflow prove nothing.
            return left <= 0.5 * L * squares + 0.5 * state.eps < math.inf, (w, ahead)

        L, (w, following) = backtrack(oracles, 0.5 * L, trial)
        return replace(state, z=following, asked=w, mean=state.mean.plus(*w, 1.0 / L), L=L)

    def point(self, state: UniversalMirrorProxState, oracles: Oracles) -> Point:
        return state.mean.x, state.mean.y

    def notes(self, state: UniversalMirrorProxState, facts: Facts) -> tuple[str, ...]:
        return (f"eps = {state.eps:.6g} in the backtracking test, L_0 = {self.L0}", *note_unbounded(facts))

    def calls(self, facts: Facts, tol: float) -> Calls | None:
        field = Field.at(facts, facts.problem.start(), self.metric)
        condition, Omega = field.holder, field.Omega
        if condition is None or not math.isfinite(Omega):
            return None
        N = max(1, math.ceil(2.0 * Omega * (condition.H / tol) ** (2.0 / (1.0 + condition.nu))))
        # One evaluation at z and, on average, two while backtracking.
        return calls_of(facts, 3 * N, 3 * N, 6 * N)


def _distance_squared(z: Point, w: Point, weights: tuple[float, float]) -> float:
    x, y = z[0] - w[0], z[1] - w[1]
    return weights[0] * float(np.vdot(x, x)) + weights[1] * float(np.vdot(y, y))
