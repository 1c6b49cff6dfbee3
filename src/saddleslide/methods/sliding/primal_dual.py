"""Both functions simple: no gradient is ever called, only products. Restarted primal-dual steps (PDHG).

Applegate et al. (2021): restart to the average or the last point when the gap has fallen enough; the weight between the
blocks follows the distances travelled.
"""

from __future__ import annotations

import math

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.certificates.candidate import Candidate
from saddleslide.functions import prox
from saddleslide.oracles.oracles import Oracles

# Steps between two looks at the gap.
CHUNK = 16


class PrimalDual:
    """The method as an iterator: `advance()` makes a bounded number of steps and returns candidates for the judge.

    Parameters
    ----------
    oracles : Oracles
        Counted access to a problem whose f and g both have exact proximal steps.
    start : (x, y)
        Feasible.
    norm : float
        Upper bound on the norm of B.
    weight : float
        First guess of |dy| / |dx|.
    """

    def __init__(self, oracles: Oracles, start: tuple[Array, Array], norm: float, weight: float) -> None:
        self.oracles, self.norm, self.weight = oracles, max(norm, 1e-300), weight
        self.x, self.y = start
        self.chunk = CHUNK
        self.restarts = self.outer_steps = 0
        self.pull = oracles.pull(self.y)
        self._begin()

    def _begin(self) -> None:
        self.origin = (self.x, self.y)
        self.average = (np.zeros_like(self.x), np.zeros_like(self.y))
        self.length = 0

    def advance(self) -> tuple[Candidate, Candidate]:
        """`chunk` steps; the last point and the average since the restart."""
        problem = self.oracles.problem
        step_x, step_y = self.norm * self.weight, self.norm / self.weight
        average_x, average_y = self.average
        for _ in range(self.chunk):
            x = prox(problem.f, self.x - self.pull / step_x, step_x, problem.X)
            Bx = self.oracles.forward(2.0 * x - self.x)
            self.y = prox(problem.g, self.y + Bx / step_y, step_y, problem.Y)
            self.x = x
            self.pull = self.oracles.adjoint(self.y)
            self.length += 1
            average_x = average_x + (x - average_x) / self.length
            average_y = average_y + (self.y - average_y) / self.length
        self.average = (average_x, average_y)
        self.outer_steps += 1
        # f is all simple: its costly part is 0.
        last = Candidate(self.x, self.y, 0.0, BTy=self.pull)
        mean_x, mean_y = problem.X.project(average_x), problem.Y.project(average_y)
        return last, Candidate(mean_x, mean_y, 0.0)

    def restart(self, point: tuple[Array, Array]) -> None:
        """Begin again from `point`, with the weight that the last stretch suggests."""
        dx = float(np.linalg.norm(point[0] - self.origin[0]))
        dy = float(np.linalg.norm(point[1] - self.origin[1]))
        if dx > 0.0 and dy > 0.0:
            self.weight = math.sqrt(self.weight * dy / dx)
        if point[1] is not self.y:
            self.pull = self.oracles.pull(point[1])
        self.x, self.y = point
        self.restarts += 1
        self._begin()
