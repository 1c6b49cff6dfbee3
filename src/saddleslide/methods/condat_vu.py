"""The Condat-Vu method: gradients of smooth parts, proximal steps of simple parts, two products an iteration."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import final

from saddleslide.methods.base import Array, Calls, Description, Facts, Mean, Method, Oracles, Point, State, option


@dataclass
class CondatVuState(State):
    """The last point, the mean of all, and the two steps: 1/tau and 1/sigma with the ratio w behind them."""

    x: Array
    y: Array
    mean: Mean
    weight_x: float
    weight_y: float
    ratio: float


@final
@dataclass(frozen=True, repr=False)
class CondatVu(Method):
    """x+ = prox of x - tau (f'(x) + B^T y), y+ = prox of y + sigma (B (2x+ - x) - g'(y)).

    Gradients are those of the parts of f and g without a proximal step.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f = ss.functions.LeastSquares(np.array([[2.0, 0.0], [1.0, 1.0]]), [1.0, -1.0])
    >>> X, Y = ss.domains.FullSpace(2), ss.domains.Box(-0.5, 0.5, shape=1)
    >>> problem = ss.SaddleProblem(f=f, g=ss.functions.Zero(), B=np.array([[1.0, -1.0]]), X=X, Y=Y)
    >>> ss.solve(problem, tol=1e-6, method=ss.methods.CondatVu(output="last")).status.name
    'SOLVED'
    """

    description = Description(
        name="condat-vu",
        needs=(),
        guarantee="Gap of the average at most (|dx|^2 / tau + |dy|^2 / sigma) / (2 N) after N iterations with "
        "1/tau = L_f + |B| w and 1/sigma = L_g + |B| / w; the last point converges.",
        reference="Condat, A primal-dual splitting method for convex optimization involving Lipschitzian, proximable "
        "and linear composite terms, J. Optim. Theory Appl. 158 (2013); Vu, Adv. Comput. Math. 38 (2013)",
    )
    output: str = option("average", "the mean of the points, or the last one", ("average", "last"))
    weight: float | None = option(None, "w = |dy| / |dx|; by default from what is known of both distances")

    def lacks(self, facts: Facts) -> list[str]:
        blocks = (("f", facts.f.rest), ("g", facts.g.rest))
        return [
            f"{name} has a part {rest.function!r} without a proximal step and without a Lipschitz gradient on "
            f"{rest.domain}."
            for name, rest in blocks
            if not math.isfinite(rest.lipschitz)
        ]

    def init(self, oracles: Oracles, facts: Facts, start: Point, tol: float) -> CondatVuState:
        ratio = facts.step_ratio(oracles, start) if self.weight is None else float(self.weight)
        return CondatVuState(*start, Mean(*start), *_weights(facts, ratio), ratio)

    def step(self, state: CondatVuState, oracles: Oracles) -> CondatVuState:
        slope = oracles.adjoint(state.y) + oracles.f_rest_gradient(state.x)
        x = oracles.prox_f(state.x - slope / state.weight_x, state.weight_x)
        push = oracles.forward(2.0 * x - state.x) - oracles.g_rest_gradient(state.y)
        y = oracles.prox_g(state.y + push / state.weight_y, state.weight_y)
        return CondatVuState(x, y, state.mean.plus(x, y), state.weight_x, state.weight_y, state.ratio)

    def point(self, state: CondatVuState, oracles: Oracles) -> Point:
        if self.output == "last":
            return state.x, state.y
        return oracles.problem.X.project(state.mean.x), oracles.problem.Y.project(state.mean.y)

    def notes(self, state: CondatVuState, facts: Facts) -> tuple[str, ...]:
        about = f"1/tau = {state.weight_x:.6g}, 1/sigma = {state.weight_y:.6g}, w = {state.ratio:.4g}"
        last = ("the last point: the rate is that of the average",) if self.output == "last" else ()
        return (about, *last)

    def calls(self, facts: Facts, tol: float) -> Calls | None:
        D_x, D_y = facts.distances
        if not (math.isfinite(D_x) and math.isfinite(D_y)):
            return None
        weights = _weights(facts, facts.ratio if self.weight is None else float(self.weight))
        N = max(1, math.ceil((weights[0] * D_x**2 + weights[1] * D_y**2) / (2.0 * tol)))
        return Calls(0 if facts.f.rest.is_zero else N, 0 if facts.g.rest.is_zero else N, 2 * N)


def _weights(facts: Facts, ratio: float) -> tuple[float, float]:
    """1/tau and 1/sigma: (1/tau - L_f) (1/sigma - L_g) = |B|^2."""
    L_f, L_g, tiny = facts.f.rest.lipschitz, facts.g.rest.lipschitz, sys.float_info.min
    return max(L_f + facts.norm * ratio, tiny), max(L_g + facts.norm / ratio, tiny)
