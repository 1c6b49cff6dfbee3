"""Steps that a Hessian has answered, and a metric that is exact along them.

With steps S, images Y = H S and a metric P let

    P_k = P - P S (S^T P S)^-1 S^T P + Y (S^T Y)^-1 Y^T,

the block update of Broyden, Fletcher, Goldfarb and Shanno. P_k S = Y = H S, and P >= H implies P_k >= H.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from saddleslide.arrays.base import Array, inner_product, on_host
from saddleslide.arrays.state import State

if TYPE_CHECKING:
    from saddleslide.arrays.state import XArray
    from saddleslide.metrics.base import Metric

# Steps that are kept.
_MOST = 5
# Squares of combinations of steps, and of a step beyond them, below this part of the largest one are rounding.
_SAME = 1e-8


@dataclass
class Memory(State):
    """The last steps, in the coordinates of a metric, and the Hessian along them; each of curvature 1."""

    steps: tuple[XArray, ...] = ()
    images: tuple[XArray, ...] = ()

    def with_step(self, step: Array, image: Array, curvature: float) -> Memory:
        """One more, instead of the oldest."""
        size = curvature**-0.5
        return Memory((*self.steps[1 - _MOST :], size * step), (*self.images[1 - _MOST :], size * image))


class Remembered:
    """L P with what is remembered of H put in its place: L P - V^T V + Y^T Y, where V and Y have few rows."""

    def __init__(self, metric: Metric, L: float, memory: Memory) -> None:
        self.metric, self.L, self.seen = metric, L, 0
        if memory.steps:
            steps, images = Rows(memory.steps), Rows(memory.images)
            weights = _inverse_root(steps.products(images))
            # Combinations with <S_i, Y_j> = 1 if i = j and else 0.
            self.steps, self.images = (Rows([rows.combine(w) for w in weights.T]) for rows in (steps, images))
            turned = Rows([metric.apply(step) for step in self.steps.parts])
            weights = math.sqrt(L) * _inverse_root(self.steps.products(turned))
            replaced = [turned.combine(w) for w in weights.T]
            self.seen, self.rows = len(self.images.parts), Rows([*self.images.parts, *replaced])
            self.signs = np.array([1.0] * self.seen + [-1.0] * len(replaced))

    def beyond(self, step: Array, image: Array) -> tuple[Array, float]:
        """The part of a step that is H-orthogonal to all that is remembered, and its curvature; 0 if only rounding."""
        if not self.seen:
            return step, inner_product(step, image)
        whole = inner_product(step, image)
        # Twice: what is left may be small.
        for _ in range(2):
            along, across = self.images.along(step), self.steps.along(image)
            step, image = step - self.steps.combine(along), image - self.images.combine(across)
        curvature = inner_product(step, image)
        return step, curvature if curvature > _SAME * whole else 0.0

    def apply(self, X: Array) -> Array:
        """P_k X."""
        found = self.L * self.metric.apply(X)
        return found + self.rows.combine(self.signs * self.rows.along(X)) if self.seen else found

    def square_beyond(self, X: Array) -> float:
        """|X|^2 in the part that is L P, per L."""
        along = self.rows.along(X)[self.seen :] if self.seen else np.zeros(1)
        return max(self.metric.norm_squared(X) - float(along @ along) / self.L, 0.0)

    def solver(self, rho: float, sigma: Array | float) -> Solver:
        """Solves with P_k + rho S + sigma."""
        return Solver(self, rho, sigma)


def _inverse_root(gram: Array) -> Array:
    """W with W^T G W = 1, for a positive semidefinite G; combinations that can not be told from 0 are left out."""
    values, vectors = np.linalg.eigh(0.5 * (gram + gram.T))
    good = values > _SAME * values[-1]
    return np.asarray(vectors[:, good] / np.sqrt(values[good]))


class Solver:
    """Solves with L P + rho S + sigma - V^T V + Y^T Y, by Woodbury's formula: two thin products beside the diagonal."""

    def __init__(self, model: Remembered, rho: float, sigma: Array | float) -> None:
        self.remembers, self.model, self.weights = bool(model.seen), model, (rho, sigma)
        if self.remembers:
            self.rows = model.rows
            self.solved = Rows(tuple(self.solve_plainly(row) for row in model.rows.parts))
            self.inner = np.linalg.inv(np.diag(model.signs) + self.rows.products(self.solved))

    def solve_plainly(self, T: Array) -> Array:
        """As if nothing were remembered."""
        return self.model.metric.solve(T, self.model.L, *self.weights)

    def correction(self, T: Array) -> Array:
        """What to take from T so that a plain solve gives the whole."""
        return self.rows.combine(self.inner @ self.solved.along(T))

    def solve(self, T: Array) -> Array:
        found = self.solve_plainly(T)
        return found - self.solved.combine(self.inner @ self.rows.along(found)) if self.remembers else found


class Rows:
    """A few arrays of one shape, as the rows of a thin matrix."""

    def __init__(self, parts: Sequence[Array]) -> None:
        self.parts = parts
        self.matrix = np.stack([part.reshape(-1) for part in parts]) if parts and on_host(parts[0]) else None

    def along(self, X: Array) -> Array:
        """Inner products with X, on the host wherever the rows lie."""
        if self.matrix is not None:
            return np.asarray(self.matrix @ X.reshape(-1))
        return np.array([inner_product(part, X) for part in self.parts])

    def combine(self, weights: Array) -> Array:
        """The sum of the rows with these weights."""
        if self.matrix is not None:
            return np.asarray((weights @ self.matrix).reshape(self.parts[0].shape))
        total: Array = weights[0].item() * self.parts[0]
        for weight, part in zip(weights[1:].tolist(), self.parts[1:], strict=True):
            total = total + weight * part
        return total

    def products(self, others: Rows) -> Array:
        """Inner products of all rows with all others."""
        return np.stack([self.along(other) for other in others.parts], axis=1)
