"""The indicator of a set: 0 inside, infinite outside."""

from __future__ import annotations

import math
from typing import final

import numpy as np

from saddleslide.arrays.base import Array, Shape
from saddleslide.domains import Box, Domain, FullSpace
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.functions.entrywise import Linear, Zero
from saddleslide.functions.roundings import NO_ROUNDING, Rounding
from saddleslide.theory.holder import Holder


@final
class Indicator(Function):
    """0 on a set and infinite elsewhere: the constraint that x, or K x, lies in it.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> h = ss.functions.Indicator(ss.domains.Ball(1.0, shape=2))
    >>> h.value(np.array([3.0, 4.0])), h.prox(np.array([3.0, 4.0]), 1.0)
    (inf, array([0.6, 0.8]))
    """

    has_gradient = False

    def __init__(self, domain: Domain) -> None:
        if not isinstance(domain, Domain):
            raise InputError(f"Indicator: received {type(domain).__name__}; expected a set of ss.domains.")
        self.domain, self.shape = domain, domain.shape
        self.separable = self.has_entry_steps = isinstance(domain, Box | FullSpace)

    def __repr__(self) -> str:
        return f"Indicator({self.domain})"

    def value(self, x: Array) -> float:
        size = 1.0 + float(np.max(np.abs(x), initial=0.0))
        return 0.0 if self.domain.violation(x) <= 1e-12 * size else math.inf

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        out = np.empty_like(x) if out is None else out
        out.fill(0.0)
        return self.value(x), out

    def smoothness(self, domain: Domain) -> Holder:
        raise InputError(f"{self!r}: has no gradient; expected its projection to be used.")

    def strong_convexity(self, domain: Domain) -> float:
        return 0.0

    @property
    def rounding(self) -> Rounding:
        return NO_ROUNDING

    def prox(self, center: Array, step: Array | float) -> Array:
        return self.domain.project(center)

    def conjugate_value(self, y: Array) -> float:
        return self.domain.support(y)

    def dual(self, shape: Shape, factor: float = 1.0) -> tuple[Function, Domain]:
        """The support function: of a point and of one-sided boxes it is linear on a set of signs."""
        if isinstance(self.domain, Box):
            lower, upper = self.domain.lower, self.domain.upper
            ends = np.where(np.isfinite(upper), upper, lower)
            if np.all((lower == upper) | np.isinf(lower) | np.isinf(upper)) and np.isfinite(ends).all():
                signs = Box(
                    np.where(np.isinf(upper) | (lower == upper), -np.inf, 0.0),
                    np.where(np.isinf(lower) | (lower == upper), np.inf, 0.0),
                )
                free = bool(np.all(lower == upper))
                return Linear(ends) if ends.any() else Zero(), FullSpace(shape) if free else signs
        return self.conjugate(), FullSpace(shape)
