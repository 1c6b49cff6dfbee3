"""Sums over entries of functions whose minimum with a tilt has a closed form."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from saddleslide.arrays.base import Array, zeros
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import Box, FullSpace
from saddleslide.functions.base import Function
from saddleslide.functions.roundings import FEW, inner_error
from saddleslide.functions.searched import TiltedMinimum

# What rounding may have done to a subgradient that a proximal step gives, relative to its sizes.
SLACK = 8.0 * FEW


class EntrySum(Function):
    """sum_i h_i(x_i) with a proximal step of each entry, and the point where y_i x_i - h_i(x_i) is largest."""

    separable = has_entry_steps = True

    @abstractmethod
    def maximizer(self, y: Array) -> Array:
        """A point where <y, x> - h(x) is largest; infinite entries where it has no largest value."""

    def strong_convexity(self, domain: Domain) -> float:
        return 0.0

    def can_minimise(self, domain: Domain) -> bool:
        return isinstance(domain, Box | FullSpace)

    def closed_minimum(self, c: Array, domain: Domain) -> TiltedMinimum | None:
        """Of one variable, a convex function is smallest on an interval nearest to its free minimiser."""
        if not isinstance(domain, Box | FullSpace):
            return None
        point = self.maximizer(-c)
        if isinstance(domain, Box):
            point = domain.project(point)
        if not np.isfinite(point).all():
            return TiltedMinimum(domain.project(zeros(c.shape, c)), -math.inf, 0.0, "unbounded below")
        value, size = self.value_and_magnitude(point)
        if not math.isfinite(value):
            return TiltedMinimum(point, math.inf, 0.0, "no finite value")
        terms = c * point
        margin = (inner_error(c.size) + FEW) * (size + 2.0 * float(np.sum(np.abs(terms))))
        return TiltedMinimum(point, value + float(np.sum(terms)), margin, "closed form", rounding=margin)


def is_between(y: Array, lower: Array | float, upper: Array | float) -> bool:
    """Whether lower <= y <= upper, up to what rounding does to subgradients at the ends."""
    return bool(((y >= lower - SLACK * np.abs(lower)) & (y <= upper + SLACK * np.abs(upper))).all())
