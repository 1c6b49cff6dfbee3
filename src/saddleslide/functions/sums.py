"""Functions made of others: what is true of all of them or of one; and the sum of two."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar, final

import numpy as np

from saddleslide.arrays.base import Array, Shape
from saddleslide.arrays.kinds import ArrayKind
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import Box, FullSpace
from saddleslide.domains.program import Program
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.functions.roundings import FEW, Errors, Rounding
from saddleslide.functions.separable import SeparableForm, free_step
from saddleslide.functions.trust import (
    certain_modulus,
    diagonal_of,
    exponent,
    is_own_class,
    read_rounding,
    recession_of,
    runs_own_code,
    terms_of,
)
from saddleslide.functions.variance import Variance
from saddleslide.operators.base import Operator
from saddleslide.theory.holder import Holder

if TYPE_CHECKING:
    from saddleslide.functions.searched import TiltedMinimum

_Answer = TypeVar("_Answer")


class Composite(Function):
    """A function that is made of others (`components`): what is true of all of them, or of one."""

    def __init__(self, *parts: Function) -> None:
        self.separable = all(part.separable for part in parts)
        self.quadratic = all(part.quadratic for part in parts)
        self.linear = all(part.linear for part in parts)
        self.is_complex = any(part.is_complex for part in parts)
        self.has_value = all(part.has_value for part in parts)
        self.has_gradient = all(part.has_gradient for part in parts)

    def stays_on_host(self, kind: ArrayKind) -> tuple[str, ...]:
        return tuple(word for part in self.components for word in part.stays_on_host(kind))

    @property
    def operators(self) -> tuple[tuple[Operator, float], ...]:
        return tuple(pair for part in self.components for pair in part.operators)

    @property
    def own_code(self) -> bool:
        return is_own_class(self) or any(map(runs_own_code, self.components))

    @property
    def convex_on_trust(self) -> bool:
        return is_own_class(self) or any(is_own_class(part) or part.convex_on_trust for part in self.components)

    @property
    def value_cost(self) -> float:
        return max(part.value_cost for part in self.components)

    @property
    def lone_value_cost(self) -> float:
        return max(part.lone_value_cost for part in self.components)


@final
class Sum(Composite):
    """f1 + f2; written `f1 + f2`.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> (ss.functions.Quadratic(1.0) + ss.functions.Huber(0.5)).value(np.array([1.0]))
    1.25
    """

    def __init__(self, first: Function, second: Function) -> None:
        if first.is_complex != second.is_complex and None not in (first.shape, second.shape):
            # What has the shape of the complex arrays becomes one of pairs.
            if first.shape == (*second.shape, 2):  # type: ignore[misc]
                second = second.of_pairs()
            elif second.shape == (*first.shape, 2):  # type: ignore[misc]
                first = first.of_pairs()
        if len({first.shape, second.shape} - {None}) > 1:
            raise InputError(
                f"f1 + f2: shapes are {first.shape} and {second.shape}; expected equal shapes. Pass x_shape= to what "
                "takes flat arrays, as LeastSquares(A, b, x_shape=(rows, columns)), or channels= to differences of "
                "colours."
            )
        super().__init__(first, second)
        self.parts, self.shape = (first, second), first.shape or second.shape
        self.sampled, self.batch = first.sampled or second.sampled, first.batch + second.batch
        self.inexactness = first.inexactness + second.inexactness

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))

    def of_pairs(self) -> Function:
        return Sum(self.parts[0].of_pairs(), self.parts[1].of_pairs())

    @property
    def components(self) -> tuple[Function, ...]:
        return self.parts

    def over_parts(self, question: Callable[[Function], _Answer]) -> list[_Answer]:
        return [question(part) for part in self.parts]

    def terms(self) -> list[tuple[float, Function]]:
        return [pair for part in self.parts for pair in terms_of(part)]

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        first, gradient = self.parts[0].value_and_gradient(x, out)
        second, other = self.parts[1].value_and_gradient(x)
        gradient += other
        return first + second, gradient

    def value(self, x: Array) -> float:
        return self.parts[0].value(x) + self.parts[1].value(x)

    def gradient(self, x: Array, out: Array | None = None) -> Array:
        gradient = self.parts[0].gradient(x, out)
        gradient += self.parts[1].gradient(x)
        return gradient

    def sample(self, x: Array, rng: np.random.Generator, out: Array | None = None) -> Array:
        estimate = self.parts[0].sample(x, rng, out)
        estimate += self.parts[1].sample(x, rng)
        return estimate

    def variance(self, domain: Domain, start: Array | None = None) -> Variance:
        return self.parts[0].variance(domain, start) + self.parts[1].variance(domain, start)

    def value_and_magnitude(self, x: Array) -> tuple[float, float]:
        first, second = (part.value_and_magnitude(x) for part in self.parts)
        return first[0] + second[0], first[1] + second[1]

    def smoothness(self, domain: Domain) -> Holder:
        first, second = (part.smoothness(domain) for part in self.parts)
        return first.plus(second, domain.diameter())

    def exponent(self, domain: Domain) -> float:
        return min(exponent(part, domain) for part in self.parts)

    def strong_convexity(self, domain: Domain) -> float:
        return sum(part.strong_convexity(domain) for part in self.parts)

    def certain_convexity(self, domain: Domain) -> float:
        return sum(certain_modulus(part, domain) for part in self.parts)

    @cached_property
    def error_model(self) -> Rounding:
        return read_rounding(self.parts[0]).plus(read_rounding(self.parts[1]))

    def entrywise_errors(self, x: Array) -> Errors | None:
        first, second = (None if is_own_class(part) else part.entrywise_errors(x) for part in self.parts)
        if first is None or second is None:
            return None
        return Errors(first.value + second.value, first.gradient + second.gradient)

    def separable_form(self) -> SeparableForm | None:
        first, second = (part.separable_form() for part in self.parts)
        return None if first is None or second is None else first.plus(second)

    def as_program(self, size: int) -> Program | None:
        first, second = (part.as_program(size) for part in self.parts)
        return None if first is None or second is None else first.plus(second)

    @cached_property
    def bowl(self) -> tuple[Function, SeparableForm] | None:
        """A part with a proximal step beside one that is q/2 |x|^2 + <b, x>; None where there is no such pair.

        That one may have w |x| on top where the step of the part shortens groups, as in the sparse group lasso: the
        entries that it keeps have their signs. The step of any other sum is not that of one part after the other.
        """
        for part, other in (self.parts, self.parts[::-1]):
            form = other.separable_form()
            if form is None or not part.is_proximable or form.hubers or np.ndim(form.quadratic):
                continue
            if not form.powers or (part.shrinks and all(nu == 0.0 for _, nu in form.powers)):
                return part, form
        return None

    @property
    def is_proximable(self) -> bool:
        return self.separable_form() is not None or self.bowl is not None

    @property
    def has_entry_steps(self) -> bool:  # type: ignore[override]
        return all(part.has_entry_steps or part.separable_form() is not None for part in self.parts)

    def can_prox(self, domain: Domain) -> bool:
        return self.bowl is not None and self.bowl[0].can_prox(domain)

    def prox(self, center: Array, step: Array | float) -> Array:
        if self.bowl is None:
            return super().prox(center, step)
        part, form = self.bowl
        moved = free_step(form.beside(center), center, np.divide(1.0, step))
        return part.prox(moved, step / (1.0 + step * form.quadratic))

    def prox_on(self, domain: Domain, center: Array, weight: Array | float) -> Array:
        assert self.bowl is not None
        part, form = self.bowl
        return part.prox_on(domain, free_step(form.beside(center), center, weight), weight + form.quadratic)

    def conjugate_value(self, y: Array) -> float:
        for linear, other in (self.parts, self.parts[::-1]):
            if linear.linear and not runs_own_code(linear):
                return other.conjugate_value(y - linear.gradient(np.zeros_like(y)))
        return super().conjugate_value(y)

    def effective_domain(self, shape: Shape) -> Domain:
        first, second = (part.effective_domain(shape) for part in self.parts)
        if isinstance(first, Box) and isinstance(second, Box):
            return first.meet(second) or first
        return second if isinstance(first, FullSpace) else first

    def recession(self, direction: Array) -> tuple[Array, float, float]:
        ray = recession_of(self.parts[1], recession_of(self.parts[0], direction)[0])[0]
        found = [recession_of(part, ray) for part in self.parts]
        if not all(np.array_equal(own, ray) for own, _, _ in found):
            return super().recession(direction)
        return ray, sum(slope for _, slope, _ in found), sum(size for _, _, size in found)

    def can_minimise(self, domain: Domain) -> bool:
        return any(one.linear and other.can_minimise(domain) for one, other in (self.parts, self.parts[::-1]))

    def closed_minimum(self, c: Array, domain: Domain) -> TiltedMinimum | None:
        for linear, other in (self.parts, self.parts[::-1]):
            if linear.linear and other.can_minimise(domain) and not runs_own_code(linear):
                slope = linear.gradient(np.zeros_like(c))
                found = other.closed_minimum(slope + c, domain)
                return None if found is None else found.shifted(FEW * (np.abs(slope) + np.abs(c)))
        return None

    def hessian_product(self, v: Array) -> Array:
        return self.parts[0].hessian_product(v) + self.parts[1].hessian_product(v)

    def hessian_diagonal(self, shape: Shape) -> Array | None:
        first, second = (diagonal_of(part, shape) for part in self.parts)
        return None if first is None or second is None else np.sum([first, second], axis=0)
