"""A weighted running mean of points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from saddleslide.methods.base import State

if TYPE_CHECKING:
    from saddleslide.arrays.base import Array


@dataclass
class Mean(State):
    """The mean of all points so far, and the sum of their weights: 0 where there is none yet."""

    x: Array
    y: Array
    weight: float = 0.0

    def plus(self, x: Array, y: Array, weight: float = 1.0) -> Mean:
        """The mean with one more point."""
        total = self.weight + weight
        if total == weight:
            return Mean(x.copy(), y.copy(), total)
        part = weight / total
        return Mean(self.x + part * (x - self.x), self.y + part * (y - self.y), total)
