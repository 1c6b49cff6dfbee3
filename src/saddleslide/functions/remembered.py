"""A function that is out of reach, as far as one answer of it is remembered."""

from __future__ import annotations

from dataclasses import replace
from typing import final

from saddleslide.arrays.base import Array, length_of
from saddleslide.domains.base import Domain
from saddleslide.functions.base import Function
from saddleslide.functions.roundings import FEW, OWN_CODE, Rounding
from saddleslide.functions.trust import Memory, certain_modulus
from saddleslide.theory.holder import Holder

# Sizes of the terms of a remembered value are not known: they may cancel to a millionth.
_CANCELLED = 1e6


@final
class Remembered(Function):
    """A function that can not be called any more, bounded from above close to the point where it was called last.

    It says nothing of its minimum: bounds from below are left to lower models.
    """

    has_value = False

    def __init__(self, function: Function, memory: Memory, domain: Domain) -> None:
        self.function, self.memory, self.domain = function, memory, domain

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        raise NotImplementedError("Remembered: only bounds on values are known.")

    def value(self, x: Array) -> float:
        """An upper bound: the value that was heard, and what a Hölder condition allows on the way to x."""
        assert self.memory.point is not None and self.memory.gradient is not None
        distance = length_of((x - self.memory.point).ravel())
        if distance == 0.0:
            return self.memory.value
        condition, slope = self.smoothness(self.domain), length_of(self.memory.gradient.ravel())
        return self.memory.value + (slope + condition.H * float(distance**condition.nu)) * distance

    @property
    def error_model(self) -> Rounding:
        return replace(OWN_CODE, own=_CANCELLED * FEW)

    def value_and_magnitude(self, x: Array) -> tuple[float, float]:
        return self.value(x), _CANCELLED * abs(self.memory.value)

    def smoothness(self, domain: Domain) -> Holder:
        return self.function.smoothness(domain)

    def strong_convexity(self, domain: Domain) -> float:
        return self.function.strong_convexity(domain)

    def certain_convexity(self, domain: Domain) -> float:
        return certain_modulus(self.function, domain)
