"""Both functions simple: no gradient is ever called, only products. Restarted primal-dual steps (PDHG).

Applegate et al. (2021): restart to the average or the last point when the gap has fallen enough; the weight between the
blocks follows the distances travelled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.certificates.candidate import Candidate
from saddleslide.certificates.inspector import ExactInspector
from saddleslide.certificates.judge import Judge
from saddleslide.functions import prox
from saddleslide.methods.base import Description, Method
from saddleslide.oracles.oracles import Oracles

# Steps between two looks at the gap: at first, and at most.
CHUNK, _LONGEST_CHUNK = 16, 1024
# Restart when the gap has fallen by this factor, or rises again after one of the second, or after this part of all
# steps.
_SUFFICIENT, _NECESSARY, _LONGEST = 0.2, 0.8, 0.36


class PrimalDual:
    """The iteration: `advance()` makes a bounded number of steps, `learn(gaps)` restarts where their gaps say so.

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
        self.points: tuple[Candidate, ...] = (Candidate(*start, 0.0),)
        self.best = start
        self.restart_gap = self.previous = math.inf
        self.pull = oracles.pull(self.y)
        self._begin()

    def _begin(self) -> None:
        self.origin = (self.x, self.y)
        self.average = (np.zeros_like(self.x), np.zeros_like(self.y))
        self.length = 0

    def advance(self) -> tuple[Candidate, ...]:
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
        self.points = (last, Candidate(mean_x, mean_y, 0.0))
        return self.points

    def learn(self, gaps: Sequence[float]) -> None:
        """Restart from the better of the last points where it has come far enough, turns back, or has taken long."""
        best = min(gaps)
        chosen = self.points[list(gaps).index(best)]
        self.best = (chosen.x, chosen.y)
        stalled = self.previous < best < _NECESSARY * self.restart_gap
        long = self.length >= _LONGEST * self.chunk * self.outer_steps
        if best <= _SUFFICIENT * self.restart_gap or stalled or long:
            self.restart(self.best)
            self.restart_gap, self.previous = best, math.inf
        else:
            self.previous = best
        self.chunk = min(_LONGEST_CHUNK, max(CHUNK, self.outer_steps))

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


@final
class RestartedPrimalDual(Method):
    """What `solve` makes of simple f and g: the iteration, judged exactly after every chunk.

    Examples
    --------
    >>> import saddleslide as ss
    >>> ss.solve(ss.gallery.matrix_game([[2.0, -1.0], [-1.0, 1.0]]), tol=1e-6).plans[0].method
    'restarted primal-dual'
    """

    description = Description(
        name="restarted primal-dual",
        needs=("prox of f", "prox of g"),
        guarantee="None in advance; linear on problems with sharp gaps.",
        reference="Applegate, Hinder, Lu and Lubin, Math. Program. 201 (2023)",
    )
    inspection = ExactInspector

    def start(self, oracles: Oracles, origin: tuple[Array, Array], tol: float) -> None:
        problem = oracles.problem
        radii = problem.X.radius(origin[0]), problem.Y.radius(origin[1])
        usable = all(math.isfinite(radius) and radius > 0.0 for radius in radii)
        weight = radii[1] / radii[0] if usable else 1.0
        self.iteration = PrimalDual(oracles, origin, problem.coupling.norm.upper, weight)

    def advance(self) -> None:
        self.iteration.advance()

    def output(self) -> tuple[Array, Array]:
        return self.iteration.best

    def candidates(self) -> tuple[Candidate, ...]:
        return self.iteration.points

    def learn(self, gaps: Sequence[float], judge: Judge) -> None:
        self.iteration.learn(gaps)
