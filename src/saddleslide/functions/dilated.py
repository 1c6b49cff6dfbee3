"""g(s y): a function of a scaled argument, and the set where that is finite."""

from __future__ import annotations

from typing import final

import numpy as np

from saddleslide.arrays.base import Array, Shape
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import FullSpace
from saddleslide.functions.base import Function
from saddleslide.functions.entrywise import Linear, Zero
from saddleslide.functions.roundings import Rounding
from saddleslide.functions.scaled import Wrapper
from saddleslide.functions.searched import TiltedMinimum
from saddleslide.functions.separable import SeparableForm
from saddleslide.functions.trust import certain_modulus, read_rounding, recession_of
from saddleslide.theory.holder import Holder


def dilate(g: Function, Y: Domain, scale: float) -> tuple[Function, Domain] | None:
    """g(s y) on the set of y with s y in Y; None where that set has no class of its own."""
    if scale == 1.0:
        return g, Y
    smaller = Y.shrunk(scale)
    if smaller is None:
        return None
    if isinstance(g, Zero):
        return g, smaller
    return (Linear(scale * g.c) if isinstance(g, Linear) else Dilated(g, scale)), smaller


@final
class Dilated(Wrapper):
    """g(s y) with a number s > 0."""

    has_moved_argument = True

    def __init__(self, function: Function, scale: float) -> None:
        super().__init__(function)
        self.scale = scale

    def __repr__(self) -> str:
        return f"{self.function!r} at {self.scale:g} y"

    def value(self, x: Array) -> float:
        return self.function.value(self.scale * x)

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        value, gradient = self.function.value_and_gradient(self.scale * x, out)
        gradient *= self.scale
        return value, gradient

    def gradient(self, x: Array, out: Array | None = None) -> Array:
        return self.value_and_gradient(x, out)[1]

    def value_and_magnitude(self, x: Array) -> tuple[float, float]:
        return self.function.value_and_magnitude(self.scale * x)

    def _there(self, domain: Domain) -> Domain:
        """The set of s y."""
        return domain.shrunk(1.0 / self.scale) or FullSpace(domain.shape)

    def smoothness(self, domain: Domain) -> Holder:
        known = self.function.smoothness(self._there(domain))
        return Holder(known.nu, self.scale ** (1.0 + known.nu) * known.H)

    def strong_convexity(self, domain: Domain) -> float:
        return self.scale**2 * self.function.strong_convexity(self._there(domain))

    def certain_convexity(self, domain: Domain) -> float:
        return self.scale**2 * certain_modulus(self.function, self._there(domain))

    @property
    def error_model(self) -> Rounding:
        # As of the function itself at s y: what rounds relative to |y| there does so s times as much here.
        return _rescale(read_rounding(self.function), self.scale)

    def term_size(self, x: Array) -> float:
        return self.function.term_size(self.scale * x) / self.scale

    def entrywise_errors(self, x: Array) -> None:
        return None

    def separable_form(self) -> SeparableForm | None:
        form, s = self.function.separable_form(), self.scale
        if form is None:
            return None
        powers = tuple((s ** (1.0 + nu) * weight, nu) for weight, nu in form.powers)
        hubers = tuple((s * weight, delta / s) for weight, delta in form.hubers)
        return SeparableForm(s * s * form.quadratic, s * form.linear, powers, hubers)

    def prox(self, center: Array, step: Array | float) -> Array:
        found: Array = self.function.prox(self.scale * center, self.scale**2 * step) / self.scale
        return found

    def prox_on(self, domain: Domain, center: Array, weight: Array | float) -> Array:
        there = self._there(domain)
        found: Array = self.function.prox_on(there, self.scale * center, weight / self.scale**2) / self.scale
        return domain.project(found)

    def can_prox(self, domain: Domain) -> bool:
        return self.function.can_prox(self._there(domain))

    def conjugate_value(self, y: Array) -> float:
        return self.function.conjugate_value(y / self.scale)

    def can_minimise(self, domain: Domain) -> bool:
        there = domain.shrunk(1.0 / self.scale)
        return there is not None and self.function.can_minimise(there)

    def closed_minimum(self, c: Array, domain: Domain) -> TiltedMinimum | None:
        if not self.can_minimise(domain):
            return None
        found = self.function.closed_minimum(c / self.scale, self._there(domain))
        if found is None:
            return None
        moved = found.shifted(2e-16 * np.abs(c) / self.scale)
        point = domain.project(moved.point / self.scale)
        return TiltedMinimum(point, moved.value, moved.error, moved.method, rounding=moved.rounding)

    def recession(self, direction: Array) -> tuple[Array, float, float]:
        ray, slope, size = recession_of(self.function, direction)
        return ray, self.scale * slope, self.scale * size

    def far_point(self, shape: Shape) -> Array | None:
        point = self.function.far_point(shape)
        return None if point is None else point / self.scale

    def hessian_product(self, v: Array) -> Array:
        return self.scale**2 * self.function.hessian_product(v)


def _rescale(found: Rounding, s: float) -> Rounding:
    def rows(table: tuple[tuple[float, float, float], ...], more: float) -> tuple[tuple[float, float, float], ...]:
        return tuple(tuple(more * s**i * part for part in row) for i, row in enumerate(table))  # type: ignore[misc]

    return Rounding(
        rows(found.value, 1.0),  # type: ignore[arg-type]
        rows(found.gradient, s),  # type: ignore[arg-type]
        (found.floor[0], s * found.floor[1], s * found.floor[2]),
        (found.most[0], s * found.most[1], s * s * found.most[2]),
        s * found.entrywise,
        found.own,
        (found.beside[0], s * found.beside[1], s * s * found.beside[2]),
    )
