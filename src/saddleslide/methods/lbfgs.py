"""L-BFGS through SciPy on the primal, f(x) + max_y <y, Bx> - g(y), or on the dual, where one of them is smooth."""

from __future__ import annotations

import math
from functools import partial
from typing import final

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.domains import Box, Domain, FullSpace
from saddleslide.functions import Zero
from saddleslide.methods.base import Description, Method, Option
from saddleslide.methods.paused import PausedLbfgs
from saddleslide.methods.reach import reach_from_start
from saddleslide.methods.requirements import missing
from saddleslide.oracles.calls import Calls
from saddleslide.oracles.oracles import MOST_SHORTENED, Oracles
from saddleslide.problem import SaddleProblem

SIDES = ("auto", "primal", "dual")
_PRIMAL = ("smooth f", "strong convexity of g", "closed minimum of g")
# How far above the last finite value an overflow is told to be.
_HEIGHT = 1e3
_DUAL = ("smooth g", "strong convexity of f", "closed minimum of f")


@final
class LBFGS(Method):
    """SciPy's L-BFGS-B on the outer block; the inner block is the exact maximiser (or minimiser).

    The iterates are those of one uninterrupted run of SciPy.

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

    storable = False
    on_host = True

    def lacks(self, problem: SaddleProblem) -> list[str]:
        wanted = self.options["side"]
        found = {side: _obstacles(problem, side) for side in SIDES[1:] if wanted in ("auto", side)}
        if not all(found.values()):
            return []
        return [f"{side}: {sentence}" for side, sentences in found.items() for sentence in sentences]

    def start(self, oracles: Oracles, origin: tuple[Array, Array], tol: float) -> None:
        problem, wanted = oracles.problem, str(self.options["side"])
        self.side = wanted if wanted != "auto" else ("dual" if _obstacles(problem, "primal") else "primal")
        primal = self.side == "primal"
        self.start_pair = origin
        self.point = origin[0] if primal else origin[1]
        # The thread holds this and not the method, so that both end together.
        self.smooth = _Smooth(oracles, primal)
        bounds = _bounds(problem.X if primal else problem.Y)
        self.paused = PausedLbfgs(self.smooth.flat, self.point.ravel(), bounds, int(self.options["memory"] or 10))

    def advance(self) -> None:
        flat = self.paused.advance()
        if flat is not None:
            self.point = flat.reshape(self.point.shape)

    def output(self) -> tuple[Array, Array]:
        inner = self.smooth.inner_point(self.point)
        if inner is None:
            return self.start_pair
        return (self.point, inner) if self.side == "primal" else (inner, self.point)

    @property
    def finished(self) -> bool:
        return self.paused.finished

    @property
    def notes(self) -> tuple[str, ...]:
        return (f"minimises the {self.side}, memory {self.options['memory']}", "no rate is promised")

    def predicted_calls(self, problem: SaddleProblem, tol: float) -> Calls | None:
        """What accelerated gradients would need at most; L-BFGS is not proved to be as fast.

        The smaller of 2 sqrt(L D^2 / eps) and, with a modulus mu, sqrt(L / mu) log(L D^2 / eps).
        """
        primal = self.options["side"] == "primal" or not _obstacles(problem, "primal")
        outer, inner = ("f", "g") if primal else ("g", "f")
        sides = {"f": (problem.f, problem.X), "g": (problem.g, problem.Y)}
        L = sides[outer][0].smoothness(sides[outer][1]).H
        L += problem.coupling.norm.upper**2 / sides[inner][0].strong_convexity(sides[inner][1])
        D = reach_from_start(problem)[0 if primal else 1]
        if not math.isfinite(D):
            return None
        rate, mu = 2.0 * D * math.sqrt(L / tol), sides[outer][0].strong_convexity(sides[outer][1])
        if mu > 0.0:
            rate = min(rate, math.sqrt(L / mu) * math.log(max(L * D**2 / tol, math.e)))
        N = max(1, math.ceil(rate))
        costly = 0 if isinstance(sides[outer][0], Zero) else N
        return Calls(costly if primal else 0, 0 if primal else costly, 2 * N)


class _Smooth:
    """f(x) + max_y <y, Bx> - g(y) as a function of x, or its mirror image in y; the inner points are remembered."""

    def __init__(self, oracles: Oracles, primal: bool) -> None:
        self.oracles, self.problem, self.primal = oracles, oracles.problem, primal
        self.lift = oracles.lifted(self.problem.f)
        self.recent: list[tuple[Array, Array]] = []
        # The last point with finite answers and the value there; how often oracles have overflown since.
        self.finite: tuple[Array, float] | None = None
        self.refused = 0

    def flat(self, point: Array) -> tuple[float, Array]:
        """Value and gradient for SciPy."""
        shape = (self.problem.X if self.primal else self.problem.Y).shape
        ask = partial(self._evaluated, point.reshape(shape))
        found = self.oracles.tried(ask) if self.finite is not None and self.refused < MOST_SHORTENED else ask()
        if found is None:
            self.refused += 1
            return self._steep(point)
        value, gradient, inner = found
        self.finite, self.refused = (point.copy(), value), 0
        # The next iterate is among the last few points: a line search rarely takes more.
        self.recent = [*self.recent[-7:], (point.copy(), inner)]
        return value, gradient.ravel()

    def _steep(self, point: Array) -> tuple[float, Array]:
        """Where an oracle overflows: a bowl around the last finite point, which the line search leaves for that point.

        SciPy interpolates what it is told, so that infinities would end its search.
        """
        assert self.finite is not None
        center, value = self.finite
        way = point - center
        square = float(np.vdot(way, way)) or 1.0
        height = _HEIGHT * (1.0 + abs(value))
        return value + height, (2.0 * height / square) * way

    def inner_point(self, point: Array) -> Array | None:
        """The inner point that belongs to an iterate; None before the first evaluation."""
        if not self.recent:
            return None
        found = [inner for known, inner in reversed(self.recent) if np.array_equal(known, point.ravel())]
        return found[0] if found else self._evaluated(point)[2]

    def _evaluated(self, point: Array) -> tuple[float, Array, Array]:
        oracles = self.oracles
        value, slope = self._outer(point)
        value = self._checked(value, point)
        if self.primal:
            inner = oracles.closed_minimum("g", -oracles.forward(point))
            return value - inner.value, slope + oracles.adjoint(inner.point), inner.point
        inner = oracles.closed_minimum("f", oracles.adjoint(point))
        return value - inner.value, slope - oracles.forward(inner.point), inner.point

    def _outer(self, point: Array) -> tuple[float, Array]:
        function = self.problem.f if self.primal else self.problem.g
        if isinstance(function, Zero):
            return 0.0, np.zeros_like(point)
        if not self.primal:
            return self.oracles.g_value_and_gradient(function, point)
        q = self.lift.lift(point)
        slope = self.lift.gradient(point, q)
        return self.lift.value(point, q), slope

    def _checked(self, value: float, point: Array) -> float:
        if not math.isfinite(value):
            raise self.oracles.not_finite("f" if self.primal else "g", point)
        return value


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
