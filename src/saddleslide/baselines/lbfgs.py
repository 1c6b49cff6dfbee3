"""L-BFGS through SciPy on the primal, f(x) + max_y <y, Bx> - g(y), or on the dual, where one of them is smooth."""

from __future__ import annotations

from typing import final

import numpy as np
import scipy.optimize

from saddleslide.arrays import Array
from saddleslide.baselines.base import Description, Method, Option
from saddleslide.baselines.requirements import missing
from saddleslide.domains import Box, Domain, FullSpace
from saddleslide.functions import Zero, tilted_minimum
from saddleslide.oracles import Oracles
from saddleslide.problem import SaddleProblem

SIDES = ("auto", "primal", "dual")
_PRIMAL = ("smooth f", "strong convexity of g", "closed minimum of g")
_DUAL = ("smooth g", "strong convexity of f", "closed minimum of f")
# SciPy is run for this factor more iterations at a time.
_GROWTH = 1.1


@final
class Lbfgs(Method):
    """SciPy's L-BFGS-B on the outer block; the inner block is the exact maximiser (or minimiser).

    SciPy can not be paused, so it is run again for more iterations, and evaluations made before are looked up: the
    iterates are those of one long run, and no oracle is called twice.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f, g = ss.functions.Logistic(np.array([[2.0, 0.0], [1.0, 1.0]]), [1, -1]), ss.functions.Quadratic(1.0)
    >>> X, Y = ss.domains.Box(-5.0, 5.0, shape=2), ss.domains.Box(-0.5, 0.5, shape=1)
    >>> problem = ss.SaddleProblem(f=f, g=g, B=np.array([[1.0, -1.0]]), X=X, Y=Y)
    >>> ss.solve(problem, tol=1e-8, method="l-bfgs").status.name
    'SOLVED'
    """

    description = Description(
        name="l-bfgs",
        needs=("smooth primal or dual",),
        guarantee="Converges linearly on uniformly convex functions; no rate with constants is known.",
        reference="Liu and Nocedal, On the limited memory BFGS method for large scale optimization, Math. Program. 45 "
        "(1989); SciPy's L-BFGS-B",
        options=(
            Option("side", "auto", "which function is minimised; auto takes the primal where it is smooth", SIDES),
            Option("memory", 10, "pairs of steps and gradients that are kept", whole=True),
        ),
    )

    def lacks(self, problem: SaddleProblem) -> list[str]:
        wanted = self.options["side"]
        found = {side: _obstacles(problem, side) for side in SIDES[1:] if wanted in ("auto", side)}
        if not all(found.values()):
            return []
        return [f"{side}: {sentence}" for side, sentences in found.items() for sentence in sentences]

    def start(self, oracles: Oracles, origin: tuple[Array, Array], tol: float) -> None:
        self.oracles, self.problem = oracles, oracles.problem
        wanted = str(self.options["side"])
        self.side = wanted if wanted != "auto" else ("dual" if _obstacles(self.problem, "primal") else "primal")
        self.origin = origin[0] if self.side == "primal" else origin[1]
        self.known: list[tuple[Array, float, Array, Array]] = []
        self.points: list[Array] = [self.origin]
        self.steps = 0
        self.exhausted = False
        self.start_pair = origin

    def advance(self) -> None:
        self.steps += 1
        if self.steps >= len(self.points) and not self.exhausted:
            self._run(max(self.steps, int(_GROWTH * self.steps)))

    def _run(self, iterations: int) -> None:
        """SciPy from the start, with all that is known already looked up."""
        position = 0
        shape = self.origin.shape
        self.points = [self.origin]

        def evaluated(flat: Array) -> tuple[float, Array]:
            nonlocal position
            if position == len(self.known):
                self.known.append((flat.copy(), *self._evaluated(flat.reshape(shape))))
            _, value, gradient, _ = self.known[position]
            position += 1
            # SciPy may write into what it is given.
            return value, gradient.ravel().copy()

        found = scipy.optimize.minimize(
            evaluated,
            self.origin.ravel(),
            jac=True,
            method="L-BFGS-B",
            bounds=_bounds(self.problem.X if self.side == "primal" else self.problem.Y),
            callback=lambda flat: self.points.append(flat.reshape(shape).copy()),
            options={
                "maxiter": iterations, "maxfun": 10**9, "ftol": 0.0, "gtol": 0.0, "maxcor": self.options["memory"],
            },
        )  # fmt: skip
        self.exhausted = found.nit < iterations

    def _evaluated(self, point: Array) -> tuple[float, Array, Array]:
        """Value and gradient of the smooth function, and the inner point."""
        problem, oracles = self.problem, self.oracles
        if self.side == "primal":
            value, slope = self._f(point)
            inner = tilted_minimum(problem.g, -oracles.forward(point), problem.Y)
            return value - inner.value, slope + oracles.adjoint(inner.point), inner.point
        value, slope = 0.0, np.zeros_like(point)
        if not isinstance(problem.g, Zero):
            value, slope = oracles.g_value_and_gradient(problem.g, point)
        inner = tilted_minimum(problem.f, oracles.adjoint(point), problem.X)
        return value - inner.value, slope - oracles.forward(inner.point), inner.point

    def _f(self, x: Array) -> tuple[float, Array]:
        if isinstance(self.problem.f, Zero):
            return 0.0, np.zeros_like(x)
        lift = self.oracles.lifted(self.problem.f)
        q = lift.lift(x)
        slope = lift.gradient(x, q)
        return lift.value(x, q), slope

    def output(self) -> tuple[Array, Array]:
        if self.steps == 0:
            return self.start_pair
        point = self.points[min(self.steps, len(self.points) - 1)]
        flat = point.ravel()
        found = [inner for known, _, _, inner in reversed(self.known) if np.array_equal(known, flat)]
        inner = found[0] if found else self._evaluated(point)[2]
        return (point, inner) if self.side == "primal" else (inner, point)

    @property
    def finished(self) -> bool:
        return self.exhausted and self.steps >= len(self.points) - 1

    @property
    def notes(self) -> tuple[str, ...]:
        return (f"minimises the {self.side}, memory {self.options['memory']}", "no rate is promised")


def _obstacles(problem: SaddleProblem, side: str) -> list[str]:
    needs, name, domain = (_PRIMAL, "X", problem.X) if side == "primal" else (_DUAL, "Y", problem.Y)
    found = missing(needs, problem)
    if not isinstance(domain, Box | FullSpace):
        found.append(f"{name} = {domain}; expected a box or the full space.")
    return found


def _bounds(domain: Domain) -> list[tuple[float, float]] | None:
    if not isinstance(domain, Box):
        return None
    return list(zip(domain.lower.ravel().tolist(), domain.upper.ravel().tolist(), strict=True))
