"""What happens inside one step on f: the coupling, and g where it has no proximal step.

Three ways, one verb. A g with a proximal step needs the coupling loop alone. A costly g is linearised, again and again
within a step if once is not enough; or, in entrywise metrics, slid in its own turn: adaptive sliding on g, the roles of
x and y exchanged, with momentum and curvature of its own, so that its gradients grow like the root of its condition.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, final

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.certificates.candidate import Linearisation
from saddleslide.functions import Function
from saddleslide.methods.sliding.coupling_loop import CouplingLoop
from saddleslide.methods.sliding.plain_steps import CouplingProblem, DualModel
from saddleslide.metrics import Entrywise
from saddleslide.oracles.calls import Calls, Seconds
from saddleslide.oracles.oracles import MOST_SHORTENED, SHORTER, Oracles

if TYPE_CHECKING:
    from saddleslide.methods.sliding.adaptive import AdaptiveSliding

_MOST_STEPS, _LEAST_TOLERANCE = 4096, 1e-3


@dataclass(frozen=True)
class LinearisedStep:
    """f replaced by <gradient, x> + L/2 |x - center|_P^2, in coordinates of the metric, from the point (x, y)."""

    gradient: Array
    center: Array
    L: float
    origin: tuple[Array, Array]
    rho: float


class Inner(ABC):
    """Approximate saddle point of a linearised step.

    Parameters
    ----------
    steps : int
        Most coupling steps in all: as many as cost one gradient of f.
    tolerance : float
        Enough when a step is below this part of the way from the origin.
    """

    def __init__(self, steps: int, tolerance: float) -> None:
        self.steps, self.tolerance = steps, tolerance
        self.g_error: float | None = None
        self.forward_product: Array | None = None
        self.adjoint_product: Array | None = None
        self.g_value: float | None = None
        self.g_linearisation: Linearisation | None = None
        # Curvature in y of a fixed model of f, where this is the inside of a step.
        self.curvature_of_y = 0.0

    @abstractmethod
    def solve(self, step: LinearisedStep) -> tuple[Array, Array, Array]:
        """Coordinates of x, x and y."""

    def work_harder(self) -> None:
        """Twice the work from now on, to half the tolerance."""
        self.steps = min(2 * self.steps, _MOST_STEPS)
        self.tolerance = max(0.5 * self.tolerance, min(self.tolerance, _LEAST_TOLERANCE))


@final
class Proximal(Inner):
    """g by its proximal step, possibly beside a fixed model: the coupling loop does it all."""

    def __init__(self, loop: CouplingLoop, steps: int, tolerance: float) -> None:
        super().__init__(steps, tolerance)
        self.loop = loop
        self.fixed: DualModel | None = None

    def beside(self, model: DualModel) -> None:
        """Add a model to g from now on."""
        self.fixed, self.curvature_of_y = model, float(np.mean(model.curvature))

    def solve(self, step: LinearisedStep) -> tuple[Array, Array, Array]:
        given = CouplingProblem(step.gradient, step.center, step.L, step.origin, step.origin, step.rho, self.fixed)
        X, x, y, _ = self.loop.solve(given, self.steps, self.tolerance)
        self.forward_product, self.adjoint_product = self.loop.forward_product, self.loop.adjoint_product
        return X, x, y


@final
class Linearised(Inner):
    """A costly g linearised at y, and again while the error of its model exceeds a part of the dual step."""

    def __init__(
        self, loop: CouplingLoop, oracles: Oracles, g: Function, y: Array, steps: int, tolerance: float, error: float
    ) -> None:
        super().__init__(steps, tolerance)
        self.loop, self.oracles, self.g, self.error = loop, oracles, g, error
        self.value, self.slope = oracles.g_value_and_gradient(g, y)
        self.curvature = 0.0

    def solve(self, step: LinearisedStep) -> tuple[Array, Array, Array]:
        (X, y), left, shortened = step.origin, self.steps, 0
        center = y
        while True:
            model = DualModel(self.slope, self.curvature, center)
            given = CouplingProblem(step.gradient, step.center, step.L, (X, y), step.origin, step.rho, model)
            X, x, y, taken = self.loop.solve(given, left, self.tolerance)
            left -= taken
            known = partial(self._known, y)
            found = self.oracles.tried(known) if shortened < MOST_SHORTENED else known()
            if found is None:
                # g overflows there, and is finite at the center: nearer to that.
                shortened, left, (X, y) = shortened + 1, self.steps, (step.origin[0], center)
                self.curvature = SHORTER * max(self.curvature, 1.0 / step.rho)
                continue
            error = self._linearise(y, center, *found)
            travelled = float(np.linalg.norm(y - step.origin[1]))
            center = y
            if left <= 0 or step.rho * error <= self.error * travelled:
                break
        self.forward_product, self.adjoint_product = self.loop.forward_product, self.loop.adjoint_product
        self.g_value = self.value
        self.g_linearisation = Linearisation(y, self.value, self.slope)
        return X, x, y

    def _known(self, y: Array) -> tuple[float, Array]:
        """Value and slope at y, both finite."""
        value, slope = self.oracles.g_value_and_gradient(self.g, y)
        if not math.isfinite(value):
            raise self.oracles.not_finite("g", y)
        return value, slope

    def _linearise(self, y: Array, center: Array, value: float, slope: Array) -> float:
        """Take value, slope and curvature at y; how wrong the old model was there."""
        way = y - center
        square = float(np.vdot(way, way))
        distance = max(value - self.value - float(np.vdot(self.slope, way)), 0.0)
        error = float(np.linalg.norm(slope - self.slope - self.curvature * way))
        self.curvature = max(2.0 * distance / square if square > 0.0 else 0.0, 0.5 * self.curvature)
        self.value, self.slope = value, slope
        return error


@final
class Slid(Inner):
    """A costly g as the outer function of adaptive sliding on the linearised step, seen from y."""

    def __init__(
        self,
        method: AdaptiveSliding,
        coupling: Proximal,
        oracles: Oracles,
        metric: Entrywise,
        steps: int,
        tolerance: float,
    ) -> None:
        super().__init__(steps, tolerance)
        self.method, self.coupling, self.oracles, self.metric = method, coupling, oracles, metric
        self._hand_over_counts()

    def solve(self, step: LinearisedStep) -> tuple[Array, Array, Array]:
        inside = self.method
        self.coupling.beside(DualModel(step.gradient, self.metric.weight(step.L, 0.0), step.center))
        for taken in range(1, self.steps + 1):
            x_before, y_before = inside.y, inside.here.x
            candidate = inside.advance()
            x, y = candidate.y, candidate.x
            if not self.oracles.finite(x, y):
                break
            change = step.L * self.metric.squared_norm(x - x_before) + inside.L * _square(y - y_before)
            way = step.L * self.metric.squared_norm(x - step.origin[0]) + inside.L * _square(y - step.origin[1])
            if taken >= 2 and change <= self.tolerance**2 * way:
                break
        self._hand_over_counts()
        self.g_value, self.g_linearisation, self.g_error = candidate.value, candidate.linearisation, candidate.error
        # From y's side the coupling is -B^T, and x is its dual variable.
        self.forward_product = None if candidate.BTy is None else -candidate.BTy
        self.adjoint_product = None if candidate.Bx is None else -candidate.Bx
        return x, x, y

    def work_harder(self) -> None:
        super().work_harder()
        self.coupling.work_harder()

    def _hand_over_counts(self) -> None:
        """Calls made from y's side, under the names that they have on this side."""
        inside, outside = self.method.oracles, self.oracles
        outside.calls += Calls(inside.calls.g, inside.calls.f, inside.calls.B)
        outside.seconds.g += inside.seconds.f
        outside.seconds.B += inside.seconds.B
        inside.calls, inside.seconds = Calls(), Seconds()


def _square(v: Array) -> float:
    return float(np.vdot(v, v))
