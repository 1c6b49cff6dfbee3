"""Bounds over sets that contain every solution, from the points that a run meets: rules in levels.py."""

from __future__ import annotations

import math
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from saddleslide.arrays.base import Array, length_of
from saddleslide.certificates.levels import Growth, Level, level_sets, round_up
from saddleslide.certificates.unbounded import SolutionsState
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.trust import errors_at, runs_own_code

if TYPE_CHECKING:
    from saddleslide.certificates.bounds import Bounds
    from saddleslide.certificates.inspection import Inspection, Questions
    from saddleslide.certificates.residuals import ResidualBound


class Solutions(SolutionsState):
    """What every solution obeys in the blocks whose sets have no end."""

    def __init__(self, asked: Questions, bounds: Bounds, below: ResidualBound, above: ResidualBound) -> None:
        super().__init__()
        self._asked, self._bounds, self._sides = asked, bounds, (below, above)
        self._sets = level_sets(asked.problem, asked.split)
        self._is_open = tuple(
            sets.is_possible and not side.possible for sets, side in zip(self._sets, self._sides, strict=True)
        )

    def refer_to_start(self, x: Array, value: float, Bx: Array, y: Array, pull: Array) -> None:
        asked = self._asked
        if self._is_open[1]:
            self._refer(1, -Bx, asked.product_error(x, Bx), value + errors_at(asked.problem.f, x, value).value)
        if self._is_open[0]:
            g_value, wrong = asked.value_of("g", y), asked.product_error(y, pull)
            self._refer(0, pull, wrong, g_value + errors_at(asked.problem.g, y, g_value).value)
            self._refer_far()

    def _refer_far(self) -> None:
        """A point of Y at which <y, Bx> - g(y) grows with Bx, where g knows one that is as good as any other to ask."""
        asked, Y = self._asked, self._asked.problem.Y
        y = None if runs_own_code(asked.problem.g) or self.x_weights is not None else asked.problem.g.far_point(Y.shape)
        if y is not None and Y.violation(y) == 0.0:
            pull, value = asked.oracles.adjoint(y), asked.value_of("g", y)
            self._refer(0, pull, asked.product_error(y, pull), value + errors_at(asked.problem.g, y, value).value)

    def look(self, at: Inspection) -> None:
        # Until one bounds the block, every candidate is a point to refer to; then the candidates 1, 2, 4, 8, ... are.
        if not any(self._is_open):
            return
        self.referred += 1
        refers_x, refers_y = (
            one is None or self.referred & (self.referred - 1) == 0 for one in (self.x_weights, self.y_weights)
        )
        if self._is_open[1]:
            if refers_y:
                self._refer(1, -at.Bx, at.Bx_error, at.value + at.error)
            self._lower_upper(at)
        if self._is_open[0] and at.f_known is not None and (refers_x or self._reach_of(0) < math.inf):
            if refers_x:
                self._refer(0, at.pull, at.pull_error, at.g_value + at.g_error)
            self._raise_lower(at)

    def _lower_upper(self, at: Inspection) -> None:
        (on_x, on_y), above, known = self._sets, self._sides[1], at.f_known
        levels = self._level_sets_of(1)
        if known is not None and on_y.is_onto(on_x):
            slope, moved = known.sizes[1], length_of(at.x - known.point)
            slope += errors_at(self._asked.split.f_rest, known.point, known.value, known.sizes[1]).gradient
            missed = length_of(at.Bx - on_y.linear_part) + at.Bx_error
            levels.append(on_y.onto(on_x, at.value + at.error, slope, moved, missed))
        if levels and at.g_known is not None:
            model = above.model_at(-at.Bx, at.g_known, at.y, at.Bx_error)
            for level in levels:
                least, margin = on_y.least(level, model, at.y)
                terms = abs(at.value) + abs(least)
                self._bounds.accept_upper(at.value - least, at, at.error, terms, margin, level.words)

    def _raise_lower(self, at: Inspection) -> None:
        levels = self._level_sets_of(0)
        if levels and at.f_known is not None:
            below, known, t = self._sides[0], at.f_known, self._sets[0].best_scale(at.f_known, at.pull)
            cuts = [known] if t == 1.0 else [known, below.scaled(known, t)]
            models = [below.model_at(at.pull, cut, at.x, at.pull_error) for cut in cuts]
            for level, model in product(levels, models):
                least, margin = self._sets[0].least(level, model, at.x)
                terms = abs(at.g_value) + abs(least)
                bound, doubt = least - at.g_value, at.g_error
                self._bounds.accept_lower(bound, at, "level set", doubt, terms, margin, level.words)

    def _reach_of(self, block: int) -> float:
        """What F is known to be at most for x of a solution; -F for y."""
        return self._bounds.known_upper if block == 0 else -self._bounds.known_lower

    def _growth_of(self, block: int) -> Growth | None:
        weights = (self.x_weights, self.y_weights)[block]
        return None if weights is None else Growth(weights, self.offsets[block])

    def _level_sets_of(self, block: int) -> list[Level]:
        """Bounded sets that contain the solutions in one block; none where its bound is not known yet."""
        sets, most = self._sets[block], self._reach_of(block)
        if most == math.inf:
            return []
        growth = self._growth_of(block)
        found = [] if growth is None else [sets.level(growth, most)]
        return sets.smallest(found + sets.at_zero(most + self._at_zero[block]) + sets.by_rank(most))

    @cached_property
    def _at_zero(self) -> tuple[float, float]:
        """g(0) and f(0) from above, where they cost no call and 0 is a point of the set; else infinite."""
        asked, found = self._asked, []
        for side, rest in ((asked.g, asked.split.g_rest), (asked.f, asked.split.f_rest)):
            zero = np.zeros(side.domain.shape)
            if isinstance(rest, Zero) and not runs_own_code(side.function) and side.domain.violation(zero) == 0.0:
                value = side.function.value(zero)
                found.append(value + errors_at(side.function, zero, value).value)
            else:
                found.append(math.inf)
        return found[0], found[1]

    def _refer(self, block: int, tilt: Array, error: float, most: float) -> None:
        """Every solution has F(x, y) <= upper for this y, and F(x, y) >= lower for this x: keep the best of them.

        `tilt` is B^T y or -B x, and `most` bounds g(y) or f(x) from above.
        """
        sets = self._sets[block]
        growth = sets.growth(tilt, error)
        offset = round_up(growth.offset + most, abs(growth.offset) + abs(most))
        if sets.is_better(Growth(growth.weights, offset), self._growth_of(block), self._reach_of(block)):
            if block == 0:
                self.x_weights, self.offsets = growth.weights, (offset, self.offsets[1])
            else:
                self.y_weights, self.offsets = growth.weights, (self.offsets[0], offset)
