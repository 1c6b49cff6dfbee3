"""The function that is 0 on a set and infinite outside: a constraint as a term."""

from __future__ import annotations

import math
from typing import final

import numpy as np

from saddleslide.arrays.base import Array, Shape
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import Box, FullSpace
from saddleslide.domains.matrices import SpectralBall
from saddleslide.domains.norms import Ball, GroupBalls, L1Ball
from saddleslide.domains.program import Program
from saddleslide.domains.simplices import Weights
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.functions.entrywise import Linear, Zero
from saddleslide.functions.norms import L1, L2, L21, LInf, Max, Nuclear
from saddleslide.functions.roundings import NO_ROUNDING, OWN_CODE, Rounding
from saddleslide.functions.searched import TiltedMinimum
from saddleslide.functions.trust import is_own_class
from saddleslide.theory.holder import Holder

# How far beside a set a point counts as in it, relative to its entries: projections are rounded.
_NEAR = 1e-12


@final
class Indicator(Function):
    """0 on a set, infinite outside. Its proximal step is the projection, its conjugate the support function.

    Parameters
    ----------
    domain : Domain
        The set, from ss.domains.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> h = ss.functions.Indicator(ss.domains.Box(0.0, 1.0, shape=2))
    >>> h.value(np.array([0.5, 2.0])), h.prox(np.array([0.5, 2.0]), 1.0), h.conjugate_value(np.array([3.0, -1.0]))
    (inf, array([0.5, 1. ]), 3.0)
    """

    has_gradient = False

    def __init__(self, domain: Domain) -> None:
        if not isinstance(domain, Domain):
            raise InputError(f"Indicator: received {type(domain).__name__}; expected a set from ss.domains.")
        self.domain, self.shape, self.is_complex = domain, domain.shape, domain.is_complex
        self.separable = self.has_entry_steps = isinstance(domain, Box | FullSpace)

    def __repr__(self) -> str:
        return f"Indicator({self.domain!r})"

    def of_pairs(self) -> Function:
        return Indicator(self.domain.of_pairs())

    @property
    def own_code(self) -> bool:
        return is_own_class(self.domain) or self.domain.own_code

    def value(self, x: Array) -> float:
        near = _NEAR * (1.0 + float(np.max(np.abs(x), initial=0.0))) * math.sqrt(max(x.size, 1))
        return 0.0 if self.domain.violation(x) <= near else math.inf

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        """0 is a subgradient wherever there is one."""
        return self.value(x), np.multiply(x, 0.0, out=out)

    def smoothness(self, domain: Domain) -> Holder:
        raise InputError(f"{self!r}: has no Hölder condition; expected its proximal step to be used, or X = the set.")

    def strong_convexity(self, domain: Domain) -> float:
        return 0.0

    @property
    def error_model(self) -> Rounding:
        return OWN_CODE if self.own_code else NO_ROUNDING

    def as_program(self, size: int) -> Program | None:
        return self.domain.as_program()

    def prox(self, center: Array, step: Array | float) -> Array:
        return self.domain.project(center)

    def conjugate_value(self, y: Array) -> float:
        return self.domain.support(y)

    def effective_domain(self, shape: Shape) -> Domain:
        return self.domain

    def can_minimise(self, domain: Domain) -> bool:
        return isinstance(domain, FullSpace) or (self.separable and isinstance(domain, Box))

    def closed_minimum(self, c: Array, domain: Domain) -> TiltedMinimum | None:
        from saddleslide.functions.minimum import tilted_minimum

        if not self.can_minimise(domain):
            return None
        both: Domain | None = self.domain
        if isinstance(domain, Box):
            both = domain.meet(both) if isinstance(both, Box) else domain
        if both is None:
            return TiltedMinimum(domain.project(0.0 * c), math.inf, 0.0, "no common point")
        return tilted_minimum(Zero(), c, both)

    def dual(self, shape: Shape, factor: float = 1.0) -> tuple[Function, Domain]:
        """The support function: any multiple of the indicator is the indicator."""
        domain, everywhere = self.domain, FullSpace(shape)
        if is_own_class(domain):
            return self.conjugate(), everywhere
        if isinstance(domain, FullSpace):
            return Zero(), Box(0.0, 0.0, shape=shape)
        if isinstance(domain, Box):
            return _of_box(domain)
        if isinstance(domain, Ball):
            norm = domain.ball_radius * L2()
            return norm if domain.center is None else norm + Linear(domain.center), everywhere
        if isinstance(domain, Weights):
            return domain.scale * Max(), everywhere
        if isinstance(domain, GroupBalls):
            return L21(domain.axis, domain.radii), everywhere
        if isinstance(domain, L1Ball):
            return domain.ball_radius * LInf(), everywhere
        if isinstance(domain, SpectralBall):
            return domain.ball_radius * Nuclear(), everywhere
        polar = domain.polar()
        if polar is not None:
            return Zero(), polar
        return self.conjugate(), everywhere


def _of_box(box: Box) -> tuple[Function, Domain]:
    """Entry by entry: upper y for y > 0, lower y for y < 0; a side that is infinite forbids its sign."""
    lower, upper = np.isfinite(box.lower), np.isfinite(box.upper)
    Y: Domain = FullSpace(box.shape)
    if not (lower.all() and upper.all()):
        low, high = (np.where(side, sign * np.inf, 0.0) for side, sign in ((lower, -1.0), (upper, 1.0)))
        # Numbers where all entries are alike: clipping is cheaper.
        sides = [side.flat[0] if (side == side.flat[0]).all() else side for side in (low, high)]
        Y = Box(sides[0], sides[1], shape=box.shape)
    # Of two finite sides the middle and half the width, of one that side.
    low, high = np.where(lower, box.lower, 0.0), np.where(upper, box.upper, 0.0)
    middle = np.where(lower & upper, 0.5 * low + 0.5 * high, low + high)
    width = np.where(lower & upper, 0.5 * high - 0.5 * low, 0.0)
    parts = [part for part in (Linear(middle), L1(width)) if np.any(middle if isinstance(part, Linear) else width)]
    return (Zero() if not parts else sum(parts[1:], start=parts[0])), Y
