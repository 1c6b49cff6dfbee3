"""Functions through their lifts, each product counted as a call of f'."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from saddleslide.arrays.base import Array, length_of, read_only, zeros
from saddleslide.functions.base import Function
from saddleslide.functions.lifted import Lifted, PlainLift, QuadraticLift, linear_models, make_lift
from saddleslide.functions.trust import runs_own_code
from saddleslide.operators.base import is_own_code

if TYPE_CHECKING:
    from saddleslide.oracles.oracles import Oracles


class CountedLift:
    """A lifted function whose products are counted and timed as calls of f'; with `own` they run the caller's code."""

    def __init__(self, inner: Lifted, oracles: Oracles, own: bool = False) -> None:
        self._inner, self._oracles, self._own = inner, oracles, own
        self.affine_gradient, self.has_hessian = inner.affine_gradient, inner.has_hessian
        self.one_pass = inner.one_pass
        self.plain = isinstance(inner, PlainLift)

    def blank(self, x: Array) -> Array:
        """Zeros in the shape of a lift."""
        return self._inner.blank(x)

    def lift(self, x: Array) -> Array:
        """The lift of x."""
        inner = self._inner
        if inner.linear and not x.any():
            return inner.blank(x)
        return self._oracles.made("f", inner.lift_cost, lambda: inner.lift(read_only(x)), lambda: inner.blank(x), x)

    def gradient(self, x: Array, q: Array) -> Array:
        """f'(x) from the lift of x."""
        made, inner = self._oracles.made, self._inner
        return made("f", inner.gradient_cost, lambda: inner.gradient(read_only(x), q), lambda: zeros(x.shape, x), x)

    def lift_and_gradient(self, x: Array) -> tuple[Array, Array]:
        """The lift of x, and f'(x)."""
        inner = self._inner
        cost = inner.lift_cost + inner.gradient_cost
        return self._oracles.made(
            "f", cost, lambda: inner.lift_and_gradient(read_only(x)), lambda: (inner.blank(x), np.zeros(x.shape)), x
        )

    def value(self, x: Array, q: Array) -> float:
        """f(x) from the lift of x; a call only where the caller's own code is run for it."""
        inner = self._inner
        cost = inner.run_cost(x)
        return self._oracles.made("f", cost, lambda: inner.value(read_only(x), q)) if cost > 0.0 else inner.value(x, q)

    def errors(self, x: Array, q: Array, value: float, gradient: Array | None, term_size: float) -> tuple[float, float]:
        """Bounds on the rounding of a value and a gradient that were made from the lift of x; no call."""
        if self._oracles.dry:
            return 0.0, 0.0
        slope = 0.0 if gradient is None else length_of(gradient)
        found = self._inner.errors(x, q, value, slope, max(term_size, length_of(x)))
        return found.value, found.gradient

    def bregman(self, x: Array, q: Array, v: Array, qv: Array, gradient: Array) -> float:
        """f(x) - f(v) - <f'(v), x - v> from lifts and f'(v)."""
        made, inner = self._oracles.made, self._inner
        cost = inner.run_cost(x, v) if inner.own_code else inner.bregman_cost
        return made("f", cost, lambda: inner.bregman(read_only(x), q, read_only(v), qv, gradient), lambda: 0.0)

    def hessian(self, q: Array) -> Callable[[Array], Array]:
        """Counted products with the Hessian at the point with this lift; only if `has_hessian`."""
        product = self._inner.hessian(q)
        return lambda v: self._oracles.made("f", 1.0, lambda: product(read_only(v)), lambda: zeros(v.shape, v))

    def hessian_stack(self, q: Array) -> Callable[[Array], Array]:
        """The same for every vector of a stack, each counted; limits are looked at before each that may be slow."""
        if self._own:
            product = self.hessian(q)
            return lambda stack: np.stack([product(v) for v in stack])
        products = self._inner.hessian_stack(q)
        return lambda stack: self._oracles.made("f", len(stack), lambda: products(stack), lambda: np.zeros(stack.shape))


def count_lift(oracles: Oracles, f: Function) -> CountedLift:
    """(A part of) f through its lift, counted in gradients of f."""
    zero = np.zeros(oracles.problem.X.shape)
    own = runs_own_code(f) or any(is_own_code(operator) for operator, _ in f.operators)
    if linear_models(f) or not (f.quadratic and own):
        name = oracles.side if f is oracles.problem.f_parts[0] else f"whole {oracles.side}"
        return CountedLift(make_lift(f, zero, oracles.values, name), oracles, own)
    # What a quadratic is at 0 takes products here.
    known = oracles.at_zero
    if known is None:
        known = oracles.made("f", 1, lambda: f.value_and_gradient(read_only(zero)), lambda: (0.0, zero))
        oracles.at_zero = None if oracles.dry else known
    return CountedLift(QuadraticLift(f, zero, known), oracles, own)
