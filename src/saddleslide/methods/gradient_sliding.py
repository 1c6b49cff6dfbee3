"""Gradient sliding (Lan 2016): accelerated gradients of f, subgradients of h(x) = max_y <y, Bx> - g(y) slid inside."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

from saddleslide.arrays.state import XArray, YArray
from saddleslide.methods.base import Calls, Description, Facts, Method, Oracles, Point, State

# Inner steps after which a step hands control back, so that limits hold inside a long outer step too.
_MOST_AT_ONCE = 512


@dataclass
class GradientSlidingState(State):
    """Outer step k of `planned` with inner step t of T: u slides from x; its average is u_mean, that of y is v_mean."""

    x: XArray
    x_mean: XArray
    y_mean: YArray
    u: XArray
    u_mean: XArray
    v_mean: YArray
    slope: XArray | float
    planned: int
    L: float
    M: float
    D: float
    k: int = 0
    t: int = 0
    T: int = 0


@final
@dataclass(frozen=True, repr=False)
class GradientSliding(Method):
    """One gradient of f per outer step; T_k subgradient steps on h inside, each with a product and an adjoint.

    The averages of the maximisers y follow the averages of x, and make the dual point.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f = ss.functions.LeastSquares(np.array([[2.0, 0.0], [1.0, 1.0]]), [1.0, -1.0])
    >>> X, Y = ss.domains.Ball(1.0, shape=2), ss.domains.Box(-0.1, 0.1, shape=1)
    >>> problem = ss.SaddleProblem(f=f, g=ss.functions.Zero(), B=np.array([[1.0, -1.0]]), X=X, Y=Y)
    >>> ss.solve(problem, tol=1e-2, method="gradient-sliding").status.name
    'SOLVED'
    """

    description = Description(
        name="gradient-sliding",
        needs=("closed minimum of g", "bounded Y"),
        guarantee="Gap at most 6 L D^2 / (N (N + 1)) after N gradients of f and O(M^2 D^2 / eps^2) products, "
        "|x_0 - x*| <= D, M = |B| diam Y. N is planned from the target and doubled where it was not enough.",
        reference="Lan, Gradient sliding for composite optimization, Math. Program. 159 (2016)",
    )

    def lacks(self, facts: Facts) -> list[str]:
        found, X = super().lacks(facts), facts.f.domain
        if not math.isfinite(facts.f.rest.lipschitz):
            found.append(f"f has a part {facts.f.rest.function!r} without a Lipschitz gradient; expected one.")
        if not (X.bounded or facts.f.modulus > 0.0):
            found.append(f"X = {X} is unbounded and f has no known strong convexity: no distance is known.")
        return found

    def init(self, oracles: Oracles, facts: Facts, start: Point, tol: float) -> GradientSlidingState:
        D = facts.distances_from(oracles, start)[0]
        (x, y), (L, M, N) = start, _constants(facts, D, tol)
        return GradientSlidingState(x, x, y, x, x, y, 0.0, N, L, M, D)

    def step(self, state: GradientSlidingState, oracles: Oracles) -> GradientSlidingState:
        """One outer step, or a part of a long one."""
        if state.t == state.T:
            # The gradient of an outer step, and the start of its inner loop.
            if state.k == state.planned:
                # The target was not met: the plan was for another distance. Begin again from the average, for longer.
                x, y = self.point(state, oracles)
                state = replace(state, x=x, x_mean=x, y_mean=y, planned=2 * state.planned, k=0)
            k, x = state.k + 1, state.x
            gamma = 2.0 / (k + 1)
            slope = oracles.f_rest_gradient((1.0 - gamma) * state.x_mean + gamma * x)
            # T_k of Corollary 2, with D~ = 3 D^2 / 4.
            wanted = state.M**2 * state.planned * k**2 / (0.75 * state.D**2 * state.L**2) if state.D > 0.0 else 1.0
            T = max(1, math.ceil(wanted))
            state = replace(state, u=x, u_mean=x, v_mean=state.y_mean, slope=slope, k=k, t=0, T=T)
        x, u, u_mean, v_mean = state.x, state.u, state.u_mean, state.v_mean
        beta, last = 2.0 * state.L / state.k, min(state.t + _MOST_AT_ONCE, state.T)
        for t in range(state.t + 1, last + 1):
            y = oracles.closed_minimum("g", -oracles.forward(u)).point
            p, theta = 0.5 * t, 2.0 * (t + 1) / (t * (t + 3))
            weight = beta * (1.0 + p)
            middle = (x + p * u) / (1.0 + p) - (state.slope + oracles.adjoint(y)) / weight
            u = oracles.prox_f(middle, weight)
            u_mean = (1.0 - theta) * u_mean + theta * u
            v_mean = (1.0 - theta) * v_mean + theta * y
        state = replace(state, u=u, u_mean=u_mean, v_mean=v_mean, t=last)
        if last < state.T:
            return state
        gamma = 2.0 / (state.k + 1)
        x_mean = (1.0 - gamma) * state.x_mean + gamma * u_mean
        return replace(state, x=u, x_mean=x_mean, y_mean=(1.0 - gamma) * state.y_mean + gamma * v_mean)

    def point(self, state: GradientSlidingState, oracles: Oracles) -> Point:
        return oracles.problem.X.project(state.x_mean), oracles.problem.Y.project(state.y_mean)

    def notes(self, state: GradientSlidingState, facts: Facts) -> tuple[str, ...]:
        return (f"L = {state.L:.6g}, M = {state.M:.6g}, D = {state.D:.4g}, planned for N = {state.planned}",)

    def calls(self, facts: Facts, tol: float) -> Calls | None:
        D = facts.distances[0]
        L, M, N = _constants(facts, D, tol)
        # T_k grows like k^2: its sum is a third of N T_N, and no less than N.
        last = M**2 * N**3 / (0.75 * D**2 * L**2) if D > 0.0 else 1.0
        inner = N * max(1.0, last / 3.0)
        return Calls(0 if facts.f.rest.is_zero else N, 0, 2 * math.ceil(inner)) if math.isfinite(inner) else None


def _constants(facts: Facts, D: float, tol: float) -> tuple[float, float, int]:
    """L and M of f and h, and the smallest N with 6 L D^2 / (N (N + 1)) <= tol; 16 where no target is known yet."""
    # A function with L = 0 is treated as one whose bound costs a single outer step.
    L = max(facts.f.rest.lipschitz, tol / (6.0 * D**2) if D > 0.0 else 1.0, 1e-300)
    # Subgradients of h are B^T y, and vary by no more than |B| times the diameter of Y.
    M = facts.norm * facts.g.domain.diameter()
    if tol <= 0.0:
        return L, M, 16
    return L, M, max(1, math.ceil(0.5 * (math.sqrt(1.0 + 24.0 * L * D**2 / tol) - 1.0)))
