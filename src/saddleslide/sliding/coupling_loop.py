"""The inner loop of the adaptive method: primal-dual steps on the coupling until more of them would not pay."""

from __future__ import annotations

from saddleslide.arrays import Array
from saddleslide.candidate import Split
from saddleslide.metrics import Metric
from saddleslide.oracles import Oracles
from saddleslide.sliding.fused_steps import FusedSteps, workshop
from saddleslide.sliding.plain_steps import CouplingProblem, PlainSteps, Steps


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
        taken = 0
        while True:
            change, way = steps.advance()
            taken += 1
            if taken >= most or (taken >= least and change <= tolerance**2 * way):
                break
        self.steps += taken
        X, x, y, self.forward_product = steps.output()
        return X, x, y, taken
