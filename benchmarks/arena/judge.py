"""What a point is worth, by other code than the package's: the objective in plain arrays, and the least value known.

The least value is that of the best point that anybody has found, several tight solvers among them. A point
is judged by its objective less that, relative to the same at the start; a pair of strategies of a game by the
gap of the pair, both sides of which have a closed form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from benchmarks.arena.programs.form import Form
from benchmarks.arena.tuning import first_below


class Judge:
    """Relative gaps of points of one form."""

    def __init__(self, form: Form, least: float = math.inf) -> None:
        self.form, self.least, self.unit = form, least, 1.0
        self.is_game = form.X.kind == form.Y.kind == "simplex" and form.A is None
        self.start = self.value(np.zeros(form.c.size))
        self.settle()

    def settle(self) -> None:
        """Take the unit from what is known so far: what is to be gained from the start."""
        if self.is_game:
            m = self.form.h.size
            self.unit = self.start - self.form.lower(np.full(m, 1.0 / m))
        elif math.isfinite(self.least):
            self.unit = max(self.start - self.least, 1e-300)

    def value(self, x: np.ndarray) -> float:
        """The objective at the nearest point of X."""
        x = np.ravel(x)
        value = self.form.primal(self.form.X.project(x)) if np.isfinite(x).all() else math.inf
        self.least = min(self.least, value)
        return value

    def gap(self, x: np.ndarray, y: np.ndarray) -> float:
        value = self.value(x)
        if not self.is_game:
            return (value - self.least) / self.unit
        y = np.ravel(y)
        return (value - self.form.lower(self.form.Y.project(y))) / self.unit if np.isfinite(y).all() else math.inf

    def first(self, xs: Sequence[np.ndarray], ys: Sequence[np.ndarray], target: float) -> int | None:
        return first_below(lambda k: self.gap(xs[k], ys[k]), len(xs), target)
