"""Conjugates, with proximal steps by Moreau's identity, and translations."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import Any, final

import numpy as np

from saddleslide.arrays.base import Array, Shape, as_pairs, beside
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import Box, FullSpace
from saddleslide.domains.program import Program
from saddleslide.errors import InputError, NoExactMinimumError
from saddleslide.functions.base import Function
from saddleslide.functions.entrywise import Linear, Zero
from saddleslide.functions.indicator import Indicator
from saddleslide.functions.roundings import EPS, FEW, OWN_CODE, Rounding, inner_error
from saddleslide.functions.scaled import Wrapper
from saddleslide.functions.searched import TiltedMinimum
from saddleslide.functions.separable import SeparableForm, shift_form
from saddleslide.functions.sums import Composite
from saddleslide.functions.trust import (
    envelope_gradient,
    errors_at,
    is_own_class,
    known_smoothness,
    read_rounding,
    run_aside,
    runs_own_code,
)
from saddleslide.theory.holder import Holder

# Points whose values are known from their own proximal steps.
_KEPT = 8


@final
class Conjugate(Composite):
    """h*(y) = sup over x of <y, x> - h(x).

    Its proximal step is Moreau's identity, y = center - step prox_h(center / step, 1 / step). With p that point of h, y
    is a subgradient of h at p, so that h*(y) = <y, p> - h(p): a value is known at every point that a step has found,
    also where h has no closed conjugate.

    Parameters
    ----------
    function : Function
        h, with a proximal step.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> g = ss.functions.L2().conjugate()
    >>> g.prox(np.array([3.0, 4.0]), 1.0), g.value(np.array([0.6, 0.8]))
    (array([0.6, 0.8]), 0.0)
    """

    def __init__(self, function: Function) -> None:
        if not function.is_proximable:
            raise InputError(
                f"Conjugate: {function!r} has no proximal step; expected one, or a function that is linearised: add it "
                "to f in place of composing it."
            )
        super().__init__(function)
        self.function, self.shape, self.separable = function, function.shape, function.separable
        self.quadratic = self.linear = self.has_gradient = False
        self.has_value = function.has_value
        self._known: list[tuple[Array, Array]] = []
        self._lacking: bool | None = None

    def __repr__(self) -> str:
        return f"conjugate of {self.function!r}"

    @property
    def components(self) -> tuple[Function, ...]:
        return (self.function,)

    @property
    def has_entry_steps(self) -> bool:  # type: ignore[override]
        return self.function.has_entry_steps

    def conjugate(self) -> Function:
        return self.function

    def dual(self, shape: Shape, factor: float = 1.0) -> tuple[Function, Domain]:
        # (factor h*)*(x) = factor h(x / factor).
        if isinstance(self.function, Indicator) and not self.function.own_code:
            domain = self.function.domain
            where = domain if factor == 1.0 else domain.shrunk(1.0 / factor)
            if where is not None:
                return Zero(), where
        return (self.function, FullSpace(shape)) if factor == 1.0 else super().dual(shape, factor)

    def conjugate_value(self, y: Array) -> float:
        return self.function.value(y)

    def prox(self, center: Array, step: Array | float) -> Array:
        scaled = center / step
        point = self.function.prox(scaled, np.divide(1.0, step) if np.ndim(step) else 1.0 / step)
        # In this order it is 0, and no rounding of the center, where a set has the point already.
        y: Array = step * (scaled - point)
        if self.lacks_values(y):
            self._known = [*self._known, (y.copy(), point)][-_KEPT:]
        return y

    def lacks_values(self, y: Array) -> bool:
        """Whether h* has no closed form, so that points of proximal steps alone have values."""
        if self._lacking is None:
            self._lacking = runs_own_code(self.function) or math.isnan(self.function.conjugate_value(0.0 * y))
        return self._lacking

    def value(self, y: Array) -> float:
        if not self.lacks_values(y):
            return self.function.conjugate_value(y)
        point = next((point for known, point in reversed(self._known) if np.array_equal(known, y)), None)
        return math.inf if point is None else float(np.vdot(y, point)) - self.function.value(point)

    def value_and_gradient(self, y: Array, out: Array | None = None) -> tuple[float, Array]:
        gradient = envelope_gradient(self, y)
        if out is None:
            return self.value(y), gradient
        np.copyto(out, gradient)
        return self.value(y), out

    def smoothness(self, domain: Domain) -> Holder:
        modulus = self.function.certain_convexity(FullSpace(domain.shape)) if not is_own_class(self.function) else 0.0
        if modulus > 0.0:
            return Holder(1.0, 1.0 / modulus)
        raise InputError(f"{self!r}: has no known Hölder condition; expected its proximal step to be used.")

    def strong_convexity(self, domain: Domain) -> float:
        """1 / L where h has an L-Lipschitz gradient."""
        known = known_smoothness(self.function, FullSpace(domain.shape))
        return 1.0 / known.H if known is not None and known.nu == 1.0 and known.H > 0.0 else 0.0

    def certain_convexity(self, domain: Domain) -> float:
        return 0.0 if runs_own_code(self.function) else self.strong_convexity(domain)

    @property
    def error_model(self) -> Rounding:
        return OWN_CODE

    def effective_domain(self, shape: Shape) -> Domain:
        return self.function.dual(shape)[1]

    def recession(self, direction: Array) -> tuple[Array, float, float]:
        # What a set without an end leaves of a direction is bounded there, and h* rises by no more than that bound.
        if runs_own_code(self.function):
            return super().recession(direction)
        where = self.function.effective_domain(direction.shape)
        ray = direction - where.recession(direction)
        slope = where.support(ray)
        return ray, slope, abs(slope)

    def far_point(self, shape: Shape) -> Array | None:
        return self.function.far_slope(shape)

    def can_minimise(self, domain: Domain) -> bool:
        return isinstance(domain, FullSpace) and self.function.has_value

    def closed_minimum(self, c: Array, domain: Domain) -> TiltedMinimum | None:
        """The minimum of h* + <c, .> over the whole space is -h(-c), attained at a subgradient of h there."""
        if not self.can_minimise(domain):
            return None
        h, x = self.function, -c
        value, point = run_aside(h, lambda: h.value_and_gradient(x))
        if math.isnan(value):
            raise NoExactMinimumError(f"{h!r}: its value is not known. Pass value= to bound the gap.")
        if math.isinf(value):
            return TiltedMinimum(np.zeros_like(c), -math.inf, 0.0, "conjugate")
        made = errors_at(h, x, value).value
        return TiltedMinimum(point, -value, made, "conjugate", rounding=made)


@final
class Translated(Wrapper):
    """h(x - b); written `h.translated(b)`.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> ss.functions.L1().translated([1.0, 1.0]).prox(np.array([3.0, 0.5]), 1.0)
    array([2., 1.])
    """

    has_moved_argument = True

    def __init__(self, function: Function, b: Any) -> None:
        self.b, is_complex = as_pairs(b, "translated: b")
        if is_complex:
            function = function.of_pairs()
        if function.shape is not None and self.b.shape not in ((), function.shape):
            raise InputError(f"translated: b has shape {self.b.shape}; expected {function.shape}, equal.")
        super().__init__(function)
        self.shape = function.shape or self.b.shape or None
        self.linear = False

    @property
    def shrinks(self) -> bool:  # type: ignore[override]
        return False

    def __repr__(self) -> str:
        return f"{self.function!r}.translated({self.b.shape or float(self.b)})"

    def of_pairs(self) -> Function:
        if self.b.ndim == 0 and self.b != 0.0:
            return super().of_pairs()
        return self if self.is_complex else Translated(self.function, self.b.astype(np.complex128))

    def _offset(self, x: Array) -> Array:
        moved: Array = x - beside(x, self.b)
        return moved

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        return self.function.value_and_gradient(self._offset(x), out)

    def value(self, x: Array) -> float:
        return self.function.value(self._offset(x))

    def gradient(self, x: Array, out: Array | None = None) -> Array:
        return self.function.gradient(self._offset(x), out)

    def value_and_magnitude(self, x: Array) -> tuple[float, float]:
        return self.function.value_and_magnitude(self._offset(x))

    def smoothness(self, domain: Domain) -> Holder:
        return self.function.smoothness(FullSpace(domain.shape))

    def strong_convexity(self, domain: Domain) -> float:
        return self.function.strong_convexity(FullSpace(domain.shape))

    def certain_convexity(self, domain: Domain) -> float:
        return 0.0 if is_own_class(self.function) else self.function.certain_convexity(FullSpace(domain.shape))

    @cached_property
    def error_model(self) -> Rounding:
        # x - b is rounded entry by entry: a change of eps |x_i - b_i| moves the value by its slope.
        found = read_rounding(self.function)
        return replace(found, own=max(found.own, FEW)) if self.b.any() else found

    def term_size(self, x: Array) -> float:
        return self.function.term_size(self._offset(x))

    def entrywise_errors(self, x: Array) -> None:
        return None

    def separable_form(self) -> SeparableForm | None:
        form = self.function.separable_form()
        return None if form is None else shift_form(form, self.b)

    def as_program(self, size: int) -> Program | None:
        found = self.function.as_program(size)
        return None if found is None else found.translated(self.b.ravel())

    def prox(self, center: Array, step: Array | float) -> Array:
        point, b = self.function.prox(self._offset(center), step), beside(center, self.b)
        moved: Array = point + b
        if isinstance(self.function.effective_domain(moved.shape), Box):
            # What is lost beside b may be all that keeps a point off the end of a half-line, where values are infinite.
            moved = np.where((moved == b) & (point > 0.0), moved + 2.0 * EPS * np.abs(b), moved)
        return moved

    def can_prox(self, domain: Domain) -> bool:
        return self.is_proximable and (isinstance(domain, FullSpace) or (self.separable and isinstance(domain, Box)))

    def prox_on(self, domain: Domain, center: Array, weight: Array | float) -> Array:
        return Function.prox_on(self, domain, center, weight)

    def conjugate_value(self, y: Array) -> float:
        return self.function.conjugate_value(y) + float(np.sum(self.b * y))

    def dual(self, shape: Shape, factor: float = 1.0) -> tuple[Function, Domain]:
        g, Y = self.function.dual(shape, factor)
        return Linear(self.b) if isinstance(g, Zero) else g + Linear(self.b), Y

    def effective_domain(self, shape: Shape) -> Domain:
        where = self.function.effective_domain(shape)
        return Box(where.lower + self.b, where.upper + self.b) if isinstance(where, Box) else FullSpace(shape)

    def _there(self, domain: Domain) -> Domain | None:
        """The set of x - b, where it is a box."""
        if isinstance(domain, FullSpace):
            return domain
        return Box(domain.lower - self.b, domain.upper - self.b) if isinstance(domain, Box) else None

    def can_minimise(self, domain: Domain) -> bool:
        from saddleslide.functions.minimum import has_closed_minimum

        there = self._there(domain)
        return there is not None and not self.function.own_code and has_closed_minimum(self.function, there)

    def closed_minimum(self, c: Array, domain: Domain) -> TiltedMinimum | None:
        from saddleslide.functions.minimum import tilted_minimum

        there = self._there(domain)
        if there is None or not self.can_minimise(domain):
            return None
        found = tilted_minimum(self.function, c, there)
        b = beside(c, self.b)
        point, terms = domain.project(found.point + b), c * b
        # Sides of the box are moved, each with a rounding.
        moved = np.abs(b) if isinstance(domain, Box) else 0.0
        steep = np.abs(c) + np.abs(self.gradient(point)) if isinstance(domain, Box) else 0.0
        lost = (inner_error(c.size) + FEW) * float(np.sum(np.abs(terms))) + FEW * float(np.sum(moved * steep))
        value = found.value + float(np.sum(terms))
        return TiltedMinimum(point, value, found.error + lost, found.method, rounding=found.rounding + lost)

    def hessian_product(self, v: Array) -> Array:
        return self.function.hessian_product(v)
