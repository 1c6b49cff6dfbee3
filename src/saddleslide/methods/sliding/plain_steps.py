"""What a primal-dual step on the coupling is, two products each, and such steps in NumPy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.certificates.candidate import Split
from saddleslide.functions import prox
from saddleslide.metrics import Entrywise, Metric
from saddleslide.oracles.oracles import Oracles


@dataclass(frozen=True)
class DualModel:
    """Model of a function of y: <slope, y> + <y - center, curvature (y - center)> / 2, curvature entry by entry."""

    slope: Array
    curvature: Array | float
    center: Array


@dataclass(frozen=True)
class CouplingProblem:
    """min_x max_y <gradient, x> + L/2 |x - center|_P^2 + f_simple + <y, Bx> - g_simple - model, and where to begin.

    Points x are in the coordinates of the metric. The way travelled is measured from `origin`.
    """

    gradient: Array
    center: Array
    L: float
    start: tuple[Array, Array]
    origin: tuple[Array, Array]
    rho: float
    model: DualModel | None


class Steps(ABC):
    """Primal-dual steps on one coupling problem: `advance` makes one and says how far it went."""

    @abstractmethod
    def advance(self, pull: Array | None = None) -> tuple[float, float]:
        """Squares of the step and of the way from the origin, in the norm L P + I / rho.

        `pull` is B^T y at the start, for a first step that need not make this product.
        """

    @abstractmethod
    def pull(self) -> Array:
        """B^T at the last y; valid for good."""

    @abstractmethod
    def output(self) -> tuple[Array, Array, Array, Array]:
        """Coordinates and point of x, y, and B x; valid for good."""


@final
class PlainSteps(Steps):
    """Steps in NumPy, for every metric, function and domain with proximal steps: the twin of compiled ones."""

    def __init__(self, oracles: Oracles, metric: Metric, split: Split, given: CouplingProblem) -> None:
        self.oracles, self.metric, self.split, self.given = oracles, metric, split, given
        self.X, self.y = given.start
        self.y_ahead = self.y
        self.base = given.L * metric.apply(given.center) - given.gradient

    def advance(self, pull: Array | None = None) -> tuple[float, float]:
        metric, L, rho, origin = self.metric, self.given.L, self.given.rho, self.given.origin
        pull = self.oracles.adjoint(self.y_ahead) if pull is None else pull
        target = self.base - metric.to_basis(pull) + rho * metric.coupling_apply(self.X)
        X, self.x = self._primal(target, L, rho)
        self.Bx = self.oracles.forward(self.x)
        y = self._dual(self.y, self.Bx, rho, self.given.model)
        step, way = y - self.y, y - origin[1]
        change = L * metric.squared_norm(X - self.X) + float(np.vdot(step, step)) / rho
        outer = L * metric.squared_norm(X - origin[0]) + float(np.vdot(way, way)) / rho
        self.y_ahead = y + step
        self.X, self.y = X, y
        return change, outer

    def pull(self) -> Array:
        return self.oracles.adjoint(self.y)

    def output(self) -> tuple[Array, Array, Array, Array]:
        return self.X, self.x, self.y, self.Bx

    def _primal(self, target: Array, L: float, rho: float) -> tuple[Array, Array]:
        if isinstance(self.metric, Entrywise):
            weight = self.metric.weight(L, rho)
            x = prox(self.split.f_simple, target / weight, weight, self.oracles.problem.X)
            return x, x
        X = self.metric.solve(target, L, rho)
        return X, self.metric.from_basis(X)

    def _dual(self, y: Array, Bx: Array, rho: float, model: DualModel | None) -> Array:
        weight = 1.0 / rho
        if model is None:
            return prox(self.split.g_simple, y + rho * Bx, weight, self.oracles.problem.Y)
        total = weight + model.curvature
        center = (weight * y + model.curvature * model.center + Bx - model.slope) / total
        return prox(self.split.g_simple, center, total, self.oracles.problem.Y)
