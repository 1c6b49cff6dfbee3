"""The same judge for every point: `ss.certify`, relative to the certified gap at the start."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import saddleslide as ss

# Inner solves of a certificate may stop at this part of the smallest target.
ACCURACY = 0.02


@dataclass(frozen=True)
class Point:
    """What a program returned, at one iteration count or tolerance."""

    x: np.ndarray
    y: np.ndarray
    seconds: float
    iterations: float
    counts: dict[str, float]
    setting: float


def read(path: Any) -> tuple[list[Point], str]:
    """Points in the order of their times, and the note of the program."""
    with np.load(path) as data:
        names = ("f", "B", "own_f", "own_B")
        columns = {name: data[name] for name in ("x", "y", "seconds", "iterations", "setting", *names)}
        note = str(data["note"])
    points = [
        Point(
            columns["x"][i], columns["y"][i], float(columns["seconds"][i]), float(columns["iterations"][i]),
            {name: float(columns[name][i]) for name in names}, float(columns["setting"][i]),
        )
        for i in range(len(columns["seconds"]))
    ]  # fmt: skip
    return sorted(points, key=lambda point: point.seconds), note


class Judge:
    """Certified relative gaps; remembers the best bounds on the saddle value, which all programs must share."""

    def __init__(self, problem: ss.SaddleProblem, targets: tuple[float, ...]) -> None:
        self.problem, self.targets = problem, targets
        self.start = ss.certify(problem, *problem.start()).gap
        self.lower, self.upper = -math.inf, math.inf

    def gap(self, x: np.ndarray, y: np.ndarray) -> float:
        """Relative gap of the nearest feasible point."""
        if not (np.isfinite(x).all() and np.isfinite(y).all()):
            return math.inf
        X, Y = self.problem.X, self.problem.Y
        feasible = X.project(x.reshape(X.shape)), Y.project(y.reshape(Y.shape))
        found = ss.certify(self.problem, *feasible, accuracy=ACCURACY * min(self.targets) * self.start)
        self.lower, self.upper = max(self.lower, found.lower), min(self.upper, found.upper)
        return found.gap / self.start

    def hits(self, points: list[Point]) -> tuple[dict[float, tuple[Point, float]], float]:
        """For every target the first point in time that meets it, with its gap; and the smallest gap seen."""
        found: dict[float, tuple[Point, float]] = {}
        best = math.inf
        for point in points:
            gap = self.gap(point.x, point.y)
            best = min(best, gap)
            found |= {target: (point, gap) for target in self.targets if gap <= target and target not in found}
            if len(found) == len(self.targets):
                break
        return found, best
