"""The Condat-Vu method: gradients of smooth parts, proximal steps of simple parts, two products an iteration."""

from __future__ import annotations

import math
from typing import final

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.domains import Domain
from saddleslide.functions import Function, Zero, prox, split_simple
from saddleslide.methods.base import Description, Method, Option
from saddleslide.methods.field import Mean
from saddleslide.methods.reach import counted_reach, reach_from_start, step_ratio
from saddleslide.methods.requirements import smoothness_of
from saddleslide.oracles.oracles import Calls, Oracles
from saddleslide.problem import SaddleProblem


@final
class CondatVu(Method):
    """x+ = prox of x - tau (f'(x) + B^T y), y+ = prox of y + sigma (B (2x+ - x) - g'(y)).

    Gradients are those of the parts of f and g without a proximal step.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f = ss.functions.LeastSquares(np.array([[2.0, 0.0], [1.0, 1.0]]), [1.0, -1.0])
    >>> X, Y = ss.domains.FullSpace(2), ss.domains.Box(-0.5, 0.5, shape=1)
    >>> problem = ss.SaddleProblem(f=f, g=ss.functions.Zero(), B=np.array([[1.0, -1.0]]), X=X, Y=Y)
    >>> ss.solve(problem, tol=1e-6, method="condat-vu", options={"output": "last"}).status.name
    'SOLVED'
    """

    description = Description(
        name="condat-vu",
        needs=(),
        guarantee="Gap of the average at most (|dx|^2 / tau + |dy|^2 / sigma) / (2 N) after N iterations with "
        "1/tau = L_f + |B| w and 1/sigma = L_g + |B| / w; the last point converges.",
        reference="Condat, A primal-dual splitting method for convex optimization involving Lipschitzian, proximable "
        "and linear composite terms, J. Optim. Theory Appl. 158 (2013); Vu, Adv. Comput. Math. 38 (2013)",
        options=(
            Option("output", "average", "the mean of the points, or the last one", ("average", "last")),
            Option("weight", None, "w = |dy| / |dx|; by default from what is known of both distances"),
        ),
    )

    def lacks(self, problem: SaddleProblem) -> list[str]:
        return [
            f"{name} has a part {part!r} without a proximal step and without a Lipschitz gradient on {domain}."
            for name, part, domain in _costly(problem)
            if not math.isfinite(_lipschitz(part, domain))
        ]

    def start(self, oracles: Oracles, origin: tuple[Array, Array], tol: float) -> None:
        problem = oracles.problem
        self.oracles, self.problem = oracles, problem
        self.f_rest, self.f_simple = split_simple(problem.f, problem.X)
        self.g_rest, self.g_simple = split_simple(problem.g, problem.Y)
        self.lift = oracles.lifted(self.f_rest)
        given = self.options["weight"]
        self.weight = step_ratio(counted_reach(oracles, origin)) if given is None else float(given)
        self.weight_x, self.weight_y = _weights(problem, self.weight)
        self.x, self.y = origin
        self.mean = Mean()
        self.mean.add(origin, 0.0)

    def advance(self) -> None:
        x, y, problem = self.x, self.y, self.problem
        slope = self.oracles.adjoint(y)
        if not isinstance(self.f_rest, Zero):
            slope = slope + self.lift.gradient(x, self.lift.lift(x))
        self.x = prox(self.f_simple, x - slope / self.weight_x, self.weight_x, problem.X)
        push = self.oracles.forward(2.0 * self.x - x)
        if not isinstance(self.g_rest, Zero):
            push = push - self.oracles.g_value_and_gradient(self.g_rest, y)[1]
        self.y = prox(self.g_simple, y + push / self.weight_y, self.weight_y, problem.Y)
        self.mean.add((self.x, self.y))

    def output(self) -> tuple[Array, Array]:
        if self.options["output"] == "last":
            return self.x, self.y
        x, y = self.mean.point
        return self.problem.X.project(x), self.problem.Y.project(y)

    @property
    def notes(self) -> tuple[str, ...]:
        about = f"1/tau = {self.weight_x:.6g}, 1/sigma = {self.weight_y:.6g}, w = {self.weight:.4g}"
        last = ("the last point: the rate is that of the average",) if self.options["output"] == "last" else ()
        return (about, *last)

    def predicted_calls(self, problem: SaddleProblem, tol: float) -> Calls | None:
        D_x, D_y = reach_from_start(problem)
        if not (math.isfinite(D_x) and math.isfinite(D_y)):
            return None
        given = self.options["weight"]
        weights = _weights(problem, step_ratio((D_x, D_y)) if given is None else float(given))
        N = max(1, math.ceil((weights[0] * D_x**2 + weights[1] * D_y**2) / (2.0 * tol)))
        f, g = (0 if isinstance(part, Zero) else N for _, part, _ in _costly(problem))
        return Calls(f, g, 2 * N)


def _costly(problem: SaddleProblem) -> tuple[tuple[str, Function, Domain], tuple[str, Function, Domain]]:
    """The parts of f and g that need gradients."""
    f_rest, _ = split_simple(problem.f, problem.X)
    g_rest, _ = split_simple(problem.g, problem.Y)
    return ("f", f_rest, problem.X), ("g", g_rest, problem.Y)


def _lipschitz(part: Function, domain: Domain) -> float:
    found = smoothness_of(part, domain)
    return found.H if found is not None and found.nu == 1.0 else math.inf


def _weights(problem: SaddleProblem, ratio: float) -> tuple[float, float]:
    """1/tau and 1/sigma: (1/tau - L_f) (1/sigma - L_g) = |B|^2."""
    norm = problem.coupling.norm.upper
    L_f, L_g = (_lipschitz(part, domain) for _, part, domain in _costly(problem))
    tiny = float(np.finfo(np.float64).tiny)
    return max(L_f + norm * ratio, tiny), max(L_g + norm / ratio, tiny)
