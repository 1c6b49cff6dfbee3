"""Universal primal-dual gradients (Yurtsever, Tran-Dinh and Cevher), accelerated: f enters by closed minima only."""

from __future__ import annotations

import math
from typing import final

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.functions import prox
from saddleslide.methods.base import Description, Method, Option
from saddleslide.methods.reach import reach_from_start
from saddleslide.oracles.calls import Calls
from saddleslide.oracles.oracles import Oracles
from saddleslide.problem import SaddleProblem

_LARGEST = 1e100
# Part of the first estimate of the curvature from which the search begins: it only ever grows.
_CAREFUL = 1e-2


@final
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
        options=(Option("curvature", None, "first M; by default from the slope of the dual at the start"),),
    )

    def lacks(self, problem: SaddleProblem) -> list[str]:
        found = super().lacks(problem)
        if not (problem.X.bounded or problem.f.strong_convexity(problem.X) > 0.0):
            found.append(f"X = {problem.X} is unbounded and f has no strong convexity: the dual may be infinite.")
        return found

    def start(self, oracles: Oracles, origin: tuple[Array, Array], tol: float) -> None:
        self.oracles, self.problem = oracles, oracles.problem
        self.epsilon = tol
        self.y = self.ahead = origin[1]
        self.pull = self.pull_ahead = oracles.adjoint(self.y)
        self.value, self.minimiser = self._dual(self.pull)
        self.t, self.weight = 1.0, 0.0
        self.mean = self.problem.X.project(self.minimiser)
        self.push = oracles.forward(self.minimiser)
        given = self.options["curvature"]
        self.M = self._first_curvature() if given is None else float(given)

    def _first_curvature(self) -> float:
        slope = float(np.linalg.norm(self.push - self.oracles.free_gradient("g", self.y)))
        radius = self.problem.Y.radius(self.y)
        return max(_CAREFUL * slope / (radius if 0.0 < radius < math.inf else 1.0), 1e-12)

    def _dual(self, pull: Array) -> tuple[float, Array]:
        """The value d and the minimiser at the y with this B^T y."""
        found = self.oracles.closed_minimum("f", pull)
        return -found.value, found.point

    def advance(self) -> None:
        y, pull, value, minimiser = self._search()
        share = self.t / self.M
        self.weight += share
        self.mean = self.mean + (share / self.weight) * (self.minimiser - self.mean)
        t = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * self.t**2))
        momentum = (self.t - 1.0) / t
        self.ahead, self.pull_ahead = y + momentum * (y - self.y), pull + momentum * (pull - self.pull)
        self.y, self.pull, self.t = y, pull, t
        self.value, self.minimiser = (value, minimiser) if momentum == 0.0 else self._dual(self.pull_ahead)
        self.push = self.oracles.forward(self.minimiser)

    def _search(self) -> tuple[Array, Array, float, Array]:
        """The step from the extrapolated point, with the curvature doubled until the model holds up to eps / (2 t)."""
        while True:
            y = prox(self.problem.g, self.ahead + self.push / self.M, self.M, self.problem.Y)
            pull = self.oracles.adjoint(y)
            value, minimiser = self._dual(pull)
            step = y - self.ahead
            model = self.value - float(np.vdot(self.push, step)) + 0.5 * self.M * float(np.vdot(step, step))
            rounding = 1e-14 * (abs(self.value) + abs(value))
            if value <= model + 0.5 * self.epsilon / self.t + rounding or self.M > _LARGEST:
                return y, pull, value, minimiser
            self.M *= 2.0

    def output(self) -> tuple[Array, Array]:
        return self.problem.X.project(self.mean), self.y

    @property
    def notes(self) -> tuple[str, ...]:
        return (f"first M = {self.M:.4g}, eps = {self.epsilon:.4g}",)

    def predicted_calls(self, problem: SaddleProblem, tol: float) -> Calls | None:
        D_y, norm = reach_from_start(problem)[1], problem.coupling.norm.upper
        mu = problem.f.strong_convexity(problem.X)
        # Nesterov (2015), fast universal gradients: [2^((3+5nu)/2) M_nu / eps]^(2/(1+3nu)) D^((2+2nu)/(1+3nu)).
        smooth = math.sqrt(16.0 * norm**2 / (mu * tol)) * D_y if mu > 0.0 else math.inf
        rough = (2.0**1.5 * norm * problem.X.diameter() / tol) ** 2 * D_y**2 if problem.X.bounded else math.inf
        N = min(smooth, rough)
        # One product and one adjoint, and half an adjoint more for the search.
        return Calls(0, 0, math.ceil(2.5 * max(N, 1.0))) if math.isfinite(N) else None
