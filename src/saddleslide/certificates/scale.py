"""What targets are relative to: the gap at the start, F(x_0, best y) - min over x of F(x, y_0), from below."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from saddleslide.arrays.base import Array, inner_product
from saddleslide.arrays.state import State
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.lifted import rough_curvature
from saddleslide.functions.separable import prox

if TYPE_CHECKING:
    from saddleslide.arrays.state import XArray
    from saddleslide.certificates.inspection import Questions

# The gap at the start is only a scale.
_GRADIENTS, _MORE_GRADIENTS = 3, 8


@dataclass(eq=False, repr=False)
class Scale(State):
    """Values of F(x_0, .) from above and of F(., y_0) from below; the latter fall as points are met.

    Where nothing bounds F(., y_0) from below they might fall for ever, as far as bad steps lead: there a claim counts
    the value at its own point, and none of those on the way.
    """

    is_open: bool = False
    above: float = math.nan
    below: float = math.inf
    # B^T y_0.
    pull: XArray | None = None
    has_descended: bool = False
    # |F| at the start, where the gap there is not known.
    size: float = 0.0
    # The gap of a start that is a solution up to rounding.
    rounding: float = 0.0

    @property
    def gap(self) -> float:
        """A certified lower bound on the gap at the start."""
        return self.gap_to(math.inf)

    def gap_to(self, fall: float) -> float:
        """The same with one more value of F(., y_0)."""
        gap = self.above - min(self.below, fall)
        return gap if math.isfinite(gap) and gap > 0.0 else 0.0

    def open(self, asked: Questions, x: Array, y: Array) -> tuple[float, Array]:
        """What is known at the start itself: f and B x there."""
        self.pull, Bx = asked.oracles.pull(y), asked.oracles.image(x)
        value = asked.value_of("f", x)
        found = asked.best_response(Bx, 0.0, _GRADIENTS)
        costly = not isinstance(asked.split.g_rest, Zero)
        if found is not None and costly and np.array_equal(found.point, y):
            # Where no curvature is known the first gradients may go into finding a step.
            found = asked.best_response(Bx, 0.0, _MORE_GRADIENTS)
        self.below = value + inner_product(self.pull, x)
        if found is not None and np.isfinite(found.point).all():
            reply = inner_product(found.point, Bx) - asked.value_of("g", found.point)
            self.above = value + reply + asked.value_of("g", y)
        else:
            size = abs(self.below - asked.value_of("g", y))
            self.size = size if size < math.inf else 0.0
        self.is_open = True
        return value, Bx

    def value_at(self, value: float, x: Array) -> float:
        """f(x) + <B^T y_0, x>."""
        return math.inf if self.pull is None else value + inner_product(self.pull, x)

    def note(self, asked: Questions, value: float, x: Array, is_bounded: bool) -> None:
        """Hear of a value of F(., y_0), which has a minimum where it `is_bounded`."""
        if self.pull is not None:
            self.below = min(self.below, value) if is_bounded else self.below
            if self.gap == 0.0 and math.isfinite(self.above) and not self.has_descended:
                self._descend(asked, x, self.pull, is_bounded)

    def _descend(self, asked: Questions, x: Array, pull: Array, is_bounded: bool) -> None:
        """One proximal gradient step on F(., y_0) from x_0: lower than F(x_0, y_0) unless x_0 is its minimiser."""
        self.has_descended = True
        X, split = asked.problem.X, asked.split
        L = rough_curvature(split.f_rest, X)
        if not (L or is_bounded):
            # Where nothing bounds a fall, a step of any length would do, and be worth as much as one likes.
            return
        slope = asked.oracles.made("f", 1, lambda: split.f_rest.gradient(x)) + pull
        L = 1.0 if L is None else max(L, 1e-300)
        for _ in range(20):
            step = prox(split.f_simple, x - slope / L, L, X)
            self.below = min(self.below, asked.value_of("f", step) + inner_product(pull, step))
            if self.gap > 0.0 or np.array_equal(step, x):
                return
            L *= 8.0
