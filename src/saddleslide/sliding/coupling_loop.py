"""The inner loop of the adaptive method: primal-dual steps on the coupling, two products each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from saddleslide.arrays import Array
from saddleslide.candidate import Split
from saddleslide.functions import prox
from saddleslide.metrics import Entrywise, Metric
from saddleslide.oracles import Oracles


@dataclass(frozen=True)
class DualModel:
    """Model of a function of y: <slope, y> + <y - center, curvature (y - center)> / 2, curvature entry by entry."""

    slope: Array
    curvature: Array | float
    center: Array


class CouplingLoop:
    """Approximate solution of min_x max_y <G, x> + L/2 |x - C|_P^2 + f_simple + <y, Bx> - g_simple - model of g_rest.

    In the coupling metric diag(rho S, I/rho), with S an upper bound on B^T B that is diagonal in the metric's basis,
    the coupling has norm 1:

        x+ = argmin ... + rho/2 |x' - x|_S^2 with B^T (2 y - y_previous),   y+ = prox at y + rho B x+.
    """

    def __init__(self, oracles: Oracles, metric: Metric, split: Split) -> None:
        self.oracles, self.metric, self.split = oracles, metric, split
        self.steps = 0
        self.forward_product: Array | None = None

    def solve(
        self,
        gradient: Array,
        center: Array,
        L: float,
        start: tuple[Array, Array],
        origin: tuple[Array, Array],
        rho: float,
        model: DualModel | None,
        most: int,
        tolerance: float,
        least: int = 2,
    ) -> tuple[Array, Array, Array, int]:
        """Coordinates and point of x, y, and the steps taken.

        Stops after `most` steps, or when a step changes (x, y) by less than `tolerance` of the way from `origin`. The
        points x given are in the coordinates of the metric.
        """
        metric = self.metric
        X, y = start
        y_ahead = y
        base = L * metric.apply(center) - gradient
        taken = 0
        while True:
            target = base - metric.to_basis(self.oracles.adjoint(y_ahead)) + rho * metric.coupling_apply(X)
            X_new, x_new = self._primal(target, L, rho)
            Bx = self.oracles.forward(x_new)
            y_new = self._dual(y, Bx, rho, model)
            taken += 1
            step, way = y_new - y, y_new - origin[1]
            change = L * metric.squared_norm(X_new - X) + float(np.vdot(step, step)) / rho
            outer = L * metric.squared_norm(X_new - origin[0]) + float(np.vdot(way, way)) / rho
            y_ahead = y_new + step
            X, y = X_new, y_new
            if taken >= most or (taken >= least and change <= tolerance**2 * outer):
                break
        self.steps += taken
        self.forward_product = Bx
        return X, x_new, y, taken

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
