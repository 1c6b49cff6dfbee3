"""The gap from outside: no code of the package, no clock of anybody.

max over y by a closed form, or by accelerated proximal gradients run to rounding. min over x by Newton steps with a
dense Cholesky factor, made once per geometry, and |gradient|^2 / (2 ridge), which bounds what is left, is subtracted:
the minimum is bounded from below, so the gap from above.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
import scipy.linalg

from benchmarks.arena.tuning import first_below
from benchmarks.tournament.programs.picture import Picture

# What may be left of the minimum over x, relative to the gap at the start; the smallest target is 1e-6.
EXACT = 1e-8
MOST_STEPS = 60
Solve = Callable[[np.ndarray], np.ndarray]


def factored(picture: Picture, x: np.ndarray | None = None) -> Solve:
    """Inverse of the Hessian of f: exact for least squares; for counts at x, or where the model fits them."""
    A, ridge, weights = picture.A, picture.ridge, np.ones(picture.A.shape[0])
    if picture.intensity > 0.0:
        seen = np.maximum(picture.data, 1.0) / picture.intensity
        weights = seen if x is None else picture.loss_hessian(A @ x)
    # Woodbury where A has few rows.
    few = A.shape[0] < A.shape[1] and picture.intensity == 0.0
    gram = (A @ A.T).toarray() if few else (A.T @ A.multiply(weights[:, None])).toarray()
    gram[np.diag_indices_from(gram)] += ridge
    factor = scipy.linalg.cho_factor(gram, overwrite_a=True, check_finite=False)
    solve = functools.partial(scipy.linalg.cho_solve, factor, check_finite=False)
    return (lambda r: (r - picture.AT @ solve(A @ r)) / ridge) if few else solve


class Judge:
    """Gaps of points of one problem, relative to the gap at 0."""

    def __init__(self, picture: Picture, solve: Solve) -> None:
        self.p, self.solve = picture, solve
        self.near = np.zeros(picture.n**2)
        self.start, self.allowed = 1.0, math.inf
        zero = np.zeros(picture.n**2), np.zeros(2 * picture.n**2)
        self.start = self.gap(*zero)
        self.allowed = EXACT * self.start
        if picture.intensity > 0.0:
            # The minimiser of f is near all that will be asked for.
            self.solve = factored(picture, self.near)
        self.start = self.gap(*zero) * self.start

    def gap(self, x: np.ndarray, y: np.ndarray) -> float:
        """Relative gap of the feasible point (x, y clipped to the box)."""
        if not (np.isfinite(x).all() and np.isfinite(y).all()):
            return math.inf
        p = self.p
        x, y = np.ravel(x), np.clip(np.ravel(y), -p.weight, p.weight)
        slope = p.D @ x
        reply = p.reply(slope, y, 1e-13)
        above = p.loss(p.A @ x)[0] + 0.5 * p.ridge * float(x @ x) + float(reply @ slope) - p.dual_value(reply)
        below = self.minimum(p.DT @ y) - p.dual_value(y)
        return (above - below) / self.start

    def minimum(self, pull: np.ndarray) -> float:
        """A lower bound on min f + <pull, .>."""
        p, x, best = self.p, self.near, -math.inf
        for _ in range(MOST_STEPS):
            loss, residual = p.loss(p.A @ x)
            value = loss + 0.5 * p.ridge * float(x @ x) + float(pull @ x)
            gradient = p.AT @ residual + p.ridge * x + pull
            left = float(gradient @ gradient) / (2.0 * p.ridge)
            best, self.near = max(best, value - left), x
            # Before the first gap is known, 1e-9 of the value is exact enough.
            if left <= (self.allowed if math.isfinite(self.allowed) else 1e-9 * abs(value)):
                break
            x = x - self.solve(gradient)
        return best

    def first(self, xs: Sequence[np.ndarray], ys: Sequence[np.ndarray], target: float) -> int | None:
        return first_below(lambda k: self.gap(xs[k], ys[k]), len(xs), target)
