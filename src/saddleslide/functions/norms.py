"""Norms: l1, l2, groups of entries, the largest entry, singular values. Their dual sets are balls."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, final

import numpy as np

from saddleslide.arrays.base import Array, Shape, as_real
from saddleslide.domains import Ball, Box, Domain
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.roundings import FEW, Rounding
from saddleslide.functions.separable import SeparableForm
from saddleslide.theory.holder import Holder


class Norm(Function):
    """A function with h(t x) = t h(x) for t >= 0: its conjugate is 0 on a set, `dual_set`."""

    def gauge(self, y: Array) -> float:
        """The smallest t with y in t times the dual set."""
        raise InputError(f"{type(self).__name__}: has no gauge.")

    def dual_set(self, shape: Shape, factor: float) -> Domain:
        """The set on which the conjugate of `factor` times the function is 0."""
        raise InputError(f"{type(self).__name__}: has no dual set.")

    def strong_convexity(self, domain: Domain) -> float:
        return 0.0

    def conjugate_value(self, y: Array) -> float:
        # A point on the boundary of the set may have been rounded.
        return 0.0 if self.gauge(y) <= 1.0 + 8.0 * FEW else math.inf

    def dual(self, shape: Shape, factor: float = 1.0) -> tuple[Function, Domain]:
        return Zero(), self.dual_set(shape, factor)

    @property
    def rounding(self) -> Rounding:
        return Rounding(entrywise=FEW)


@final
class L1(Norm):
    """sum_i w_i |x_i|.

    Parameters
    ----------
    weights : float or array, optional
        w >= 0.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> ss.functions.L1().prox(np.array([3.0, -0.5]), 1.0)
    array([ 2., -0.])
    """

    separable = has_entry_steps = True

    def __init__(self, weights: Any = 1.0) -> None:
        self.weights = as_real(weights, "L1: weights")
        if (self.weights < 0.0).any():
            raise InputError(f"L1: weights has a negative entry {self.weights.min():g}; expected weights >= 0.")
        self.shape = self.weights.shape or None

    def __repr__(self) -> str:
        return (
            "L1()" if self.shape is None and self.weights == 1.0 else f"L1(weights={self.shape or float(self.weights)})"
        )

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        out = np.sign(x, out=out)
        out *= self.weights
        return float(np.vdot(out, x)), out

    def separable_form(self) -> SeparableForm:
        weight: Array | float = self.weights if self.weights.ndim else float(self.weights)
        return SeparableForm(powers=((weight, 0.0),))

    def smoothness(self, domain: Domain) -> Holder:
        size = math.sqrt(domain.size) * float(self.weights) if self.weights.ndim == 0 else np.linalg.norm(self.weights)
        return Holder(0.0, 2.0 * float(size))

    def gauge(self, y: Array) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.max(np.where(y == 0.0, 0.0, np.abs(y) / self.weights), initial=0.0))

    def dual_set(self, shape: Shape, factor: float) -> Domain:
        return Box(-factor * self.weights, factor * self.weights, shape=shape)

    @cached_property
    def rounding(self) -> Rounding:
        return Rounding(entrywise=FEW * float(np.max(self.weights, initial=0.0)))


@final
class L2(Norm):
    """The Euclidean norm |x|.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> ss.functions.L2().prox(np.array([3.0, 4.0]), 1.0)
    array([2.4, 3.2])
    """

    def __repr__(self) -> str:
        return "L2()"

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        size = float(np.linalg.norm(x))
        return size, np.divide(x, size or 1.0, out=out)

    def smoothness(self, domain: Domain) -> Holder:
        return Holder(0.0, 2.0)

    def prox(self, center: Array, step: Array | float) -> Array:
        size = float(np.linalg.norm(center))
        shrunk: Array = center * (max(size - float(step), 0.0) / size if size > 0.0 else 0.0)
        return shrunk

    def gauge(self, y: Array) -> float:
        return float(np.linalg.norm(y))

    def dual_set(self, shape: Shape, factor: float) -> Domain:
        return Ball(factor, shape=shape)
