"""Universal primal-dual gradients (Yurtsever, Tran-Dinh and Cevher), accelerated: f enters by closed minima only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from saddleslide.arrays.base import length_of
from saddleslide.methods.base import Array, Calls, Description, Facts, Method, Oracles, Point, State, option

_LARGEST = 1e100
# Part of the first estimate of the curvature from which the search begins: it only ever grows.
_CAREFUL = 1e-2


@dataclass
class UniversalPrimalDualState(State):
    """The last y and its B^T y; the extrapolated one with the value d, the minimiser x and Bx there; the mean of the x.

    `weight` is that of the mean, t makes the momentum, M is the curvature, and eps the accuracy of the search.
    """

    y: Array
    pull: Array
    ahead: Array
    value: float
    minimiser: Array
    push: Array
    mean: Array
    weight: float
    t: float
    M: float
    eps: float


@final
@dataclass(frozen=True, repr=False)
class UniversalPrimalDual(Method):
    """Universal accelerated gradients on the dual d(y) = -min_x f(x) + <B^T y, x>; x is the mean of the minimisers.

    Linear constraints Bx = b are g = <b, y>; any g with a proximal step will do.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f, X = ss.functions.Quadratic([1.0, 2.0, 4.0]), ss.domains.Box(-5.0, 5.0, shape=3)
    >>> g, Y = ss.functions.Linear([3.0]), ss.domains.Ball(10.0, shape=1)
    >>> problem = ss.SaddleProblem(f=f, g=g, B=np.array([[1.0, 1.0, 1.0]]), X=X, Y=Y)
    >>> ss.solve(problem, tol=1e-4, method="universal-primal-dual").status.name
    'SOLVED'
    """

    description = Description(
        name="universal-primal-dual",
        needs=("closed minimum of f", "prox of g"),
        guarantee="O((M_nu / eps)^(2 / (1 + 3 nu))) products for the best Hölder exponent nu of the dual, unknown to "
        "the method: O(1 / sqrt(eps)) with f strongly convex, O(1 / eps^2) with X bounded.",
        reference="Yurtsever, Tran-Dinh and Cevher, A universal primal-dual convex optimization framework, NIPS 2015",
    )
    curvature: float | None = option(None, "first M; by default from the slope of the dual at the start")

    def lacks(self, facts: Facts) -> list[str]:
        found, X = super().lacks(facts), facts.f.domain
        if not (X.bounded or facts.f.modulus > 0.0):
            found.append(f"X = {X} is unbounded and f has no strong convexity: the dual may be infinite.")
        return found

    def init(self, oracles: Oracles, facts: Facts, start: Point, tol: float) -> UniversalPrimalDualState:
        y = start[1]
        pull = oracles.adjoint(y)
        value, x = _dual(oracles, pull)
        push = oracles.forward(x)
        if self.curvature is None:
            slope, radius = length_of(push - oracles.free_gradient("g", y)), facts.g.domain.radius(y)
            M = max(_CAREFUL * slope / (radius if 0.0 < radius < math.inf else 1.0), 1e-12)
        else:
            M = float(self.curvature)
        mean = facts.f.domain.project(x)
        return UniversalPrimalDualState(y, pull, y, value, x, push, mean, 0.0, 1.0, M, tol)

    def step(self, state: UniversalPrimalDualState, oracles: Oracles) -> UniversalPrimalDualState:
        M, t = state.M, state.t
        while True:
            # Double the curvature until the model holds up to eps / (2 t).
            y = oracles.prox_g(state.ahead + state.push / M, M)
            pull = oracles.adjoint(y)
            value, x = _dual(oracles, pull)
            way = y - state.ahead
            model = state.value - float(np.vdot(state.push, way)) + 0.5 * M * float(np.vdot(way, way))
            rounding = 1e-14 * (abs(state.value) + abs(value))
            if value <= model + 0.5 * state.eps / t + rounding or M > _LARGEST:
                break
            M *= 2.0
        share = t / M
        weight = state.weight + share
        mean = state.mean + (share / weight) * (state.minimiser - state.mean)
        t = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t**2))
        momentum = (state.t - 1.0) / t
        ahead = y + momentum * (y - state.y)
        if momentum != 0.0:
            value, x = _dual(oracles, pull + momentum * (pull - state.pull))
        return UniversalPrimalDualState(y, pull, ahead, value, x, oracles.forward(x), mean, weight, t, M, state.eps)

    def point(self, state: UniversalPrimalDualState, oracles: Oracles) -> Point:
        return oracles.problem.X.project(state.mean), state.y

    def notes(self, state: UniversalPrimalDualState, facts: Facts) -> tuple[str, ...]:
        return (f"first M = {state.M:.4g}, eps = {state.eps:.4g}",)

    def calls(self, facts: Facts, tol: float) -> Calls | None:
        D_y, X, mu = facts.distances[1], facts.f.domain, facts.f.modulus
        # Nesterov (2015), fast universal gradients: [2^((3+5nu)/2) M_nu / eps]^(2/(1+3nu)) D^((2+2nu)/(1+3nu)).
        smooth = math.sqrt(16.0 * facts.norm**2 / (mu * tol)) * D_y if mu > 0.0 else math.inf
        rough = (2.0**1.5 * facts.norm * X.diameter() / tol) ** 2 * D_y**2 if X.bounded else math.inf
        N = min(smooth, rough)
        # One product and one adjoint, and half an adjoint more for the search.
        return Calls(0, 0, math.ceil(2.5 * max(N, 1.0))) if math.isfinite(N) else None


def _dual(oracles: Oracles, pull: Array) -> tuple[float, Array]:
    """The value d and the minimiser at the y with this B^T y."""
    found = oracles.closed_minimum("f", pull)
    return -found.value, found.point
