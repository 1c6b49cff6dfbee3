"""Zero and Linear: the neutral element, and the constant gradient."""

from __future__ import annotations

from functools import cached_property
from typing import Any, final

import numpy as np

from saddleslide.arrays.base import Array, Shape, as_real
from saddleslide.domains import Domain
from saddleslide.functions.base import Function
from saddleslide.functions.roundings import NO_ROUNDING, Rounding, tilted
from saddleslide.functions.separable import SeparableForm
from saddleslide.theory.holder import Holder


@final
class Zero(Function):
    """The zero function, of any shape.

    Examples
    --------
    >>> import numpy as np
    >>> Zero().value_and_gradient(np.ones(2))
    (0.0, array([0., 0.]))
    """

    separable = quadratic = linear = True

    def __repr__(self) -> str:
        return "Zero()"

    @property
    def lone_value_cost(self) -> float:
        return 0.0

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        out = np.empty_like(x) if out is None else out
        out.fill(0.0)
        return 0.0, out

    def smoothness(self, domain: Domain) -> Holder:
        return Holder(1.0, 0.0)

    def strong_convexity(self, domain: Domain) -> float:
        return 0.0

    @property
    def rounding(self) -> Rounding:
        return NO_ROUNDING

    def separable_form(self) -> SeparableForm:
        return SeparableForm()

    def hessian_product(self, v: Array) -> Array:
        return np.zeros_like(v)


@final
class Linear(Function):
    """<c, x>; a number c stands for the constant array.

    Examples
    --------
    >>> import numpy as np
    >>> Linear([1.0, 2.0]).value(np.array([3.0, 4.0]))
    11.0
    """

    separable = quadratic = linear = True

    def __init__(self, c: Any) -> None:
        self.c = as_real(c, "Linear: c")

    def __repr__(self) -> str:
        return f"Linear({self.c.shape})"

    @property
    def shape(self) -> Shape | None:
        return self.c.shape or None

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        out = np.empty_like(x) if out is None else out
        np.copyto(out, self.c)
        return float(np.sum(self.c * x)), out

    def smoothness(self, domain: Domain) -> Holder:
        return Holder(1.0, 0.0)

    def strong_convexity(self, domain: Domain) -> float:
        return 0.0

    @cached_property
    def rounding(self) -> Rounding:
        return tilted(self.c)

    def separable_form(self) -> SeparableForm:
        return SeparableForm(linear=self.c)

    def hessian_product(self, v: Array) -> Array:
        return np.zeros_like(v)
