"""The inner loop of the adaptive method: primal-dual steps on the coupling until more of them would not pay."""

from __future__ import annotations

import numpy as np

from saddleslide.arrays.base import Array, zeros
from saddleslide.certificates.candidate import Split
from saddleslide.methods.sliding.fused_steps import FusedSteps, workshop
from saddleslide.methods.sliding.plain_steps import CouplingProblem, PlainSteps, Steps
from saddleslide.metrics import Metric
from saddleslide.oracles.oracles import Oracles


class CouplingLoop:
    """Approximate solution of min_x max_y <G, x> + L/2 |x - C|_P^2 + f_simple + <y, Bx> - g_simple - model of g_rest.

    In the coupling metric diag(rho S, I/rho), with S an upper bound on B^T B that is diagonal in the metric's basis,
    the coupling has norm 1:

        x+ = argmin ... + rho/2 |x' - x|_S^2 with B^T (2 y - y_previous),   y+ = prox at y + rho B x+.

    A loop ends with B^T y, for the judge and for the first step of the next loop.
    """

    def __init__(self, oracles: Oracles, metric: Metric, split: Split) -> None:
        self.oracles, self.metric, self.split = oracles, metric, split
        self.steps = 0
        self.forward_product: Array | None = None
        # B^T y where the last loop ended, and where it began, in case that it is repeated.
        self.adjoint_product: Array | None = None
        self.known: list[tuple[Array, Array]] = []
        self.workshop = workshop(oracles, metric, split)

    def solve(
        self, given: CouplingProblem, most: int, tolerance: float, least: int = 2
    ) -> tuple[Array, Array, Array, int]:
        """Coordinates and point of x, y, and the steps taken.

        Stops after `most` steps, or when a step changes (x, y) by less than `tolerance` of the way from the origin.
        """
        steps: Steps
        if self.workshop is None:
            steps = PlainSteps(self.oracles, self.metric, self.split, given)
        else:
            steps = FusedSteps(self.workshop, given)
        start, taken = given.start[1], 0
        pull = known = self._known_pull(start)
        while True:
            change, way = steps.advance(pull)
            taken, pull = taken + 1, None
            if taken >= most or (taken >= least and change <= tolerance**2 * way):
                break
        self.steps += taken
        X, x, y, self.forward_product = steps.output()
        self.adjoint_product = steps.pull()
        self.known = [(y, self.adjoint_product)] if known is None else [(y, self.adjoint_product), (start, known)]
        return X, x, y, taken

    def _known_pull(self, y: Array) -> Array | None:
        for point, pull in self.known:
            if point is y or np.array_equal(point, y):
                return pull
        return None if y.any() else zeros(self.oracles.problem.X.shape, y)
