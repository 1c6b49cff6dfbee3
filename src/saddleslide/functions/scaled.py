"""A number times a function, and all that pass one on with a change: the base of sampled and moved functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar, final

import numpy as np

from saddleslide.arrays.base import Array, Shape, as_number
from saddleslide.domains.base import Domain
from saddleslide.domains.program import Program
from saddleslide.functions.base import Function
from saddleslide.functions.roundings import EPS, Errors, Rounding
from saddleslide.functions.separable import SeparableForm
from saddleslide.functions.sums import Composite, Sum
from saddleslide.functions.trust import (
    certain_modulus,
    diagonal_of,
    exponent,
    is_ours,
    is_own_class,
    read_rounding,
    recession_of,
    terms_of,
)
from saddleslide.functions.variance import EXACT, Variance
from saddleslide.theory.holder import Holder

if TYPE_CHECKING:
    from saddleslide.functions.searched import TiltedMinimum

_Answer = TypeVar("_Answer")


class Wrapper(Composite):
    """A number times one function, passed on as it is: `Scaled` has another number, `Sampled` another `sample`."""

    factor: float = 1.0
    # Whether the function is taken at another point than x: moved, or scaled.
    has_moved_argument: bool = False

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.function, self.shape = function, function.shape
        self.inexactness = self.factor * function.inexactness

    @property
    def components(self) -> tuple[Function, ...]:
        return (self.function,)

    def over_parts(self, question: Callable[[Function], _Answer]) -> list[_Answer]:
        # What a class of the caller's draws from is its own business.
        return [] if is_own_class(self) or self.has_moved_argument else [question(self.function)]

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        value, gradient = self.function.value_and_gradient(x, out)
        return self.factor * value, self._scale(gradient)

    def value(self, x: Array) -> float:
        return self.factor * self.function.value(x)

    def gradient(self, x: Array, out: Array | None = None) -> Array:
        return self._scale(self.function.gradient(x, out))

    def _scale(self, gradient: Array) -> Array:
        if self.factor != 1.0:
            gradient *= self.factor
        return gradient

    def value_and_magnitude(self, x: Array) -> tuple[float, float]:
        value, magnitude = self.function.value_and_magnitude(x)
        return self.factor * value, self.factor * magnitude

    def smoothness(self, domain: Domain) -> Holder:
        return self.factor * self.function.smoothness(domain)

    def strong_convexity(self, domain: Domain) -> float:
        return self.factor * self.function.strong_convexity(domain)

    def certain_convexity(self, domain: Domain) -> float:
        return self.factor * certain_modulus(self.function, domain)

    @cached_property
    def error_model(self) -> Rounding:
        return read_rounding(self.function).times(self.factor)

    def term_size(self, x: Array) -> float:
        return self.function.term_size(x)

    def entrywise_errors(self, x: Array) -> Errors | None:
        found = None if is_own_class(self.function) else self.function.entrywise_errors(x)
        if found is None or self.factor == 0.0:
            return found
        return Errors(self.factor * found.value, self.factor * found.gradient)

    def separable_form(self) -> SeparableForm | None:
        form = self.function.separable_form()
        return form if form is None or self.factor == 1.0 else form.times(self.factor)

    @property
    def is_proximable(self) -> bool:
        return not is_own_class(self) and self.function.is_proximable

    @property
    def has_entry_steps(self) -> bool:  # type: ignore[override]
        return self.function.has_entry_steps

    @property
    def shrinks(self) -> bool:  # type: ignore[override]
        return not is_own_class(self) and self.function.shrinks

    def can_prox(self, domain: Domain) -> bool:
        return not is_own_class(self) and self.function.can_prox(domain)

    def prox(self, center: Array, step: Array | float) -> Array:
        return self.function.prox(center, self.factor * step) if self.factor > 0.0 else center.copy()

    def prox_on(self, domain: Domain, center: Array, weight: Array | float) -> Array:
        if self.factor == 0.0:
            return domain.project(center)
        return self.function.prox_on(domain, center, weight / self.factor)

    def conjugate_value(self, y: Array) -> float:
        if self.factor == 0.0:
            return math.inf if y.any() else 0.0
        return self.factor * self.function.conjugate_value(y / self.factor)

    def dual(self, shape: Shape, factor: float = 1.0) -> tuple[Function, Domain]:
        return self.function.dual(shape, factor * self.factor)

    def effective_domain(self, shape: Shape) -> Domain:
        return self.function.effective_domain(shape)

    def recession(self, direction: Array) -> tuple[Array, float, float]:
        ray, slope, size = recession_of(self.function, direction)
        return ray, self.factor * slope, self.factor * size

    def far_slope(self, shape: Shape) -> Array | None:
        slope = None if is_own_class(self) else self.function.far_slope(shape)
        return None if slope is None else self.factor * slope

    def can_minimise(self, domain: Domain) -> bool:
        return not is_own_class(self) and self.factor > 0.0 and self.function.can_minimise(domain)

    def closed_minimum(self, c: Array, domain: Domain) -> TiltedMinimum | None:
        found = self.function.closed_minimum(c / self.factor, domain) if self.factor > 0.0 else None
        return None if found is None else found.times(self.factor, EPS * np.abs(c) / self.factor)

    def hessian_product(self, v: Array) -> Array:
        return self.factor * self.function.hessian_product(v)


@final
class Scaled(Wrapper):
    """A number >= 0 times a function; written `2.0 * f`.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> (0.5 * ss.functions.Quadratic(2.0)).gradient(np.array([3.0]))
    array([3.])
    """

    def __init__(self, factor: float, function: Function) -> None:
        self.factor = as_number(factor, "factor * f: factor", minimum=0.0)
        super().__init__(function)
        self.sampled = self.factor > 0.0 and function.sampled
        self.batch = function.batch if self.sampled else 0

    def __repr__(self) -> str:
        one = repr(self.function)
        if self.factor == 1.0:
            return one
        # A call of one constructor needs no brackets of its own.
        is_call = one.endswith(")") and one.split("(")[0].isidentifier() and ") + " not in one
        return f"{self.factor:.6g} * {one if is_call else f'({one})'}"

    def of_pairs(self) -> Function:
        return Scaled(self.factor, self.function.of_pairs())

    def terms(self) -> list[tuple[float, Function]]:
        return [(self.factor * weight, part) for weight, part in terms_of(self.function)]

    def sample(self, x: Array, rng: np.random.Generator, out: Array | None = None) -> Array:
        return self._scale(self.function.sample(x, rng, out) if self.sampled else self.function.gradient(x, out))

    def variance(self, domain: Domain, start: Array | None = None) -> Variance:
        return self.factor * self.function.variance(domain, start) if self.sampled else EXACT

    def exponent(self, domain: Domain) -> float:
        return exponent(self.function, domain)

    def as_program(self, size: int) -> Program | None:
        found = self.function.as_program(size) if self.factor > 0.0 else Program.on(size)
        return None if found is None else found.times(self.factor or 1.0)

    def hessian_diagonal(self, shape: Shape) -> Array | None:
        inside = diagonal_of(self.function, shape)
        return None if inside is None else self.factor * inside


def without_silent_noise(f: Function) -> Function:
    """The function with every wrapper taken off that never draws (sigma = 0, all rows); itself where there is none."""
    if is_ours(f, Sum):
        first, second = map(without_silent_noise, f.parts)
        return f if first is f.parts[0] and second is f.parts[1] else first + second
    if is_ours(f, Scaled):
        bare = without_silent_noise(f.function)
        return f if bare is f.function else f.factor * bare
    is_silent = is_ours(f, Wrapper) and not f.sampled and not f.has_moved_argument
    return without_silent_noise(f.function) if is_silent and isinstance(f, Wrapper) else f
