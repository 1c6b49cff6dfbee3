"""Gradient sliding (Lan 2016): accelerated gradients of f, subgradients of h(x) = max_y <y, Bx> - g(y) slid inside."""

from __future__ import annotations

import math
from typing import final

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.functions import Zero, prox, split_simple
from saddleslide.methods.base import Description, Method
from saddleslide.methods.reach import counted_reach, reach_from_start
from saddleslide.methods.requirements import smoothness_of
from saddleslide.oracles.calls import Calls
from saddleslide.oracles.oracles import Oracles
from saddleslide.problem import SaddleProblem

# Inner steps after which `advance` hands control back, so that limits hold inside a long outer step too.
_MOST_AT_ONCE = 512


@final
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

    def lacks(self, problem: SaddleProblem) -> list[str]:
        found = super().lacks(problem)
        rest, _ = split_simple(problem.f, problem.X)
        smoothness = _smooth(problem)
        if not math.isfinite(smoothness):
            found.append(f"f has a part {rest!r} without a Lipschitz gradient; expected one.")
        if not (problem.X.bounded or problem.f.strong_convexity(problem.X) > 0.0):
            found.append(f"X = {problem.X} is unbounded and f has no known strong convexity: no distance is known.")
        return found

    def start(self, oracles: Oracles, origin: tuple[Array, Array], tol: float) -> None:
        problem = oracles.problem
        self.oracles, self.problem = oracles, problem
        self.f_rest, self.f_simple = split_simple(problem.f, problem.X)
        self.lift = oracles.lifted(self.f_rest)
        self.costly = not isinstance(self.f_rest, Zero)
        self.D = counted_reach(oracles, origin)[0]
        self.L, self.M = _curvature(problem, self.D, tol), _steepness(problem)
        self.planned = _outer_steps(self.L, self.D, tol)
        self._begin(origin)

    def _begin(self, origin: tuple[Array, Array]) -> None:
        self.x, (self.x_mean, self.y_mean) = origin[0], origin
        self.k = self.t = self.T = 0

    def advance(self) -> None:
        """One outer step, or a part of a long one."""
        if self.t == self.T:
            self._open()
        for _ in range(min(_MOST_AT_ONCE, self.T - self.t)):
            self._inner_step()
        if self.t == self.T:
            gamma = 2.0 / (self.k + 1)
            self.x = self.u
            self.x_mean = (1.0 - gamma) * self.x_mean + gamma * self.u_mean
            self.y_mean = (1.0 - gamma) * self.y_mean + gamma * self.v_mean

    def _open(self) -> None:
        """The gradient of an outer step, and the start of its inner loop."""
        if self.k == self.planned:
            # The target was not met: the plan was for another distance. Begin again from the average, for longer.
            self.planned *= 2
            self._begin(self.output())
        self.k += 1
        gamma = 2.0 / (self.k + 1)
        v = (1.0 - gamma) * self.x_mean + gamma * self.x
        self.slope = self.lift.gradient(v, self.lift.lift(v)) if self.costly else np.zeros_like(v)
        self.t, self.T = 0, inner_steps(self.k, self.planned, self.L, self.M, self.D)
        self.u = self.u_mean = self.x
        self.v_mean = self.y_mean

    def _inner_step(self) -> None:
        """One step of the prox-sliding procedure: last point, average point, average maximiser."""
        self.t += 1
        t, beta = self.t, 2.0 * self.L / self.k
        y = self.oracles.closed_minimum("g", -self.oracles.forward(self.u)).point
        p, theta = 0.5 * t, 2.0 * (t + 1) / (t * (t + 3))
        weight = beta * (1.0 + p)
        middle = (self.x + p * self.u) / (1.0 + p) - (self.slope + self.oracles.adjoint(y)) / weight
        self.u = prox(self.f_simple, middle, weight, self.problem.X)
        self.u_mean = (1.0 - theta) * self.u_mean + theta * self.u
        self.v_mean = (1.0 - theta) * self.v_mean + theta * y

    def output(self) -> tuple[Array, Array]:
        return self.problem.X.project(self.x_mean), self.problem.Y.project(self.y_mean)

    @property
    def notes(self) -> tuple[str, ...]:
        return (f"L = {self.L:.6g}, M = {self.M:.6g}, D = {self.D:.4g}, planned for N = {self.planned}",)

    def predicted_calls(self, problem: SaddleProblem, tol: float) -> Calls | None:
        D, M = reach_from_start(problem)[0], _steepness(problem)
        L = _curvature(problem, D, tol)
        N = _outer_steps(L, D, tol)
        # T_k grows like k^2: its sum is a third of N T_N, and no less than N.
        last = M**2 * N**3 / (0.75 * D**2 * L**2) if D > 0.0 else 1.0
        inner = N * max(1.0, last / 3.0)
        rest, _ = split_simple(problem.f, problem.X)
        return Calls(0 if isinstance(rest, Zero) else N, 0, 2 * math.ceil(inner)) if math.isfinite(inner) else None


def inner_steps(k: int, N: int, L: float, M: float, D: float) -> int:
    """T_k of Corollary 2: ceil(M^2 N k^2 / (D~ L^2)), D~ = 3 D^2 / 4, at least 1.

    Examples
    --------
    >>> inner_steps(2, N=3, L=1.0, M=1.0, D=2.0)
    4
    """
    wanted = M**2 * N * k**2 / (0.75 * D**2 * L**2) if D > 0.0 else 1.0
    return max(1, math.ceil(wanted))


def _smooth(problem: SaddleProblem) -> float:
    """Lipschitz constant of the gradient of the costly part of f; 0 when there is no such part."""
    rest, _ = split_simple(problem.f, problem.X)
    found = smoothness_of(rest, problem.X)
    return found.H if found is not None and found.nu == 1.0 else math.inf


def _curvature(problem: SaddleProblem, D: float, tol: float) -> float:
    """L; a function with L = 0 is treated as one whose bound costs a single outer step."""
    return max(_smooth(problem), tol / (6.0 * D**2) if D > 0.0 else 1.0, 1e-300)


def _steepness(problem: SaddleProblem) -> float:
    """M = |B| times the diameter of Y: subgradients of h are B^T y, and vary by no more."""
    return problem.coupling.norm.upper * problem.Y.diameter()


def _outer_steps(L: float, D: float, tol: float) -> int:
    """Smallest N with 6 L D^2 / (N (N + 1)) <= tol; 16 where no target is known yet."""
    if tol <= 0.0:
        return 16
    return max(1, math.ceil(0.5 * (math.sqrt(1.0 + 24.0 * L * D**2 / tol) - 1.0)))
