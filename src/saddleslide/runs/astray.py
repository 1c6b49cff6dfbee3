"""Methods that have left their best point for good: told by certified gaps, or by where their points had settled."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from saddleslide.arrays.base import length_of
from saddleslide.arrays.state import State

if TYPE_CHECKING:
    from saddleslide.arrays.base import Array
    from saddleslide.arrays.state import XArray, YArray

# A point is far from the best one when its gap is so many times larger. A method is stopped when all points of so many
# inspections in a row are, and those of the second half are no better than those of the first.
_FAR, _ASTRAY = 1e4, 30
# Where no gap is finite, points say themselves how they get on. One has settled when it has moved by less than this
# part of its size since the last inspection. Points of so many inspections in a row are lost when each of them is
# further from the one that had settled best than so many times its size, and moves by `_FAR` times as much as that did.
_SETTLED, _REMOTE, _LOST = 0.03, 1e3, 12


@dataclass(eq=False, repr=False)
class Astray(State):
    """How far a method is from the best it has had, inspection after inspection."""

    # The smallest gap of any candidate, and the gaps since then while all of them are far larger.
    best_gap: float = math.inf
    gaps: list[float] = field(default_factory=list)
    # Without finite gaps: the point that had settled best, what it had moved by, and how far off points are since.
    settled: tuple[XArray, YArray] | None = None
    moved: float = math.inf
    distances: list[float] = field(default_factory=list)

    def by_gap(self, gap: float, exact: Callable[[], float] | None) -> str:
        """Why the method is stopped, if it goes on at points far worse than its best one, and does not come back."""
        self.best_gap = min(self.best_gap, gap)
        if gap <= _FAR * self.best_gap:
            self.gaps = []
            return ""
        self.gaps.append(gap)
        if not _stay_away(self.gaps, _ASTRAY):
            return ""
        # Cheap bounds may have been what was bad: a certified inner solve decides.
        if exact is not None and not exact() > _FAR * self.best_gap:
            self.gaps = []
            return ""
        return (
            f"The method has left its best point for good: for {len(self.gaps)} inspections in a row certified "
            f"gaps were at least {min(self.gaps):.3g}, after {self.best_gap:.3g}"
        )

    def by_distance(self, here: tuple[Array, Array], before: tuple[Array, Array]) -> str:
        """Why it is stopped, if points that nothing is proved of have left where they had settled, and stay away."""
        moved, size = _distance(here, before), max(_distance(here), _distance(before))
        if self.settled is not None:
            away = _distance(here, self.settled)
            if away > _REMOTE * _distance(self.settled) and moved > _FAR * self.moved:
                self.distances.append(away)
                if not _stay_away(self.distances, _LOST):
                    return ""
                return (
                    f"The method has left its best point for good: for {len(self.distances)} inspections in a row its "
                    f"points were at least {min(self.distances):.3g} away from one where it had moved by "
                    f"{self.moved:.3g} since the inspection before. That one is returned"
                )
        self.distances = []
        # A point that has not moved at all may be the start of a method that has not begun to move.
        if 0.0 < moved <= min(_SETTLED * size, self.moved):
            self.settled, self.moved = here, moved
        return ""


def _stay_away(numbers: list[float], most: int) -> bool:
    """Whether there are enough of them, and the second half came no nearer than the first."""
    half = len(numbers) // 2
    return len(numbers) >= most and min(numbers[half:]) >= min(numbers[:half])


def _distance(one: tuple[Array, Array], other: tuple[Array, Array] | None = None) -> float:
    """The norm of a point, or of the difference of two."""
    parts = one if other is None else [a - b for a, b in zip(one, other, strict=True)]
    return math.hypot(*(length_of(part) for part in parts))
