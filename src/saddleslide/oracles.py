"""Counted access to f', g', B and B^T: the only way the methods touch a problem."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from saddleslide.arrays import Array, read_only
from saddleslide.functions import Function
from saddleslide.functions.lifted import Lifted, PlainLift, lifted
from saddleslide.problem import SaddleProblem

_Answer = TypeVar("_Answer")


@dataclass
class Calls:
    """Calls of each oracle: gradients of f, gradients of g, products with B or B^T.

    Where f = loss(Ax), a product with A and one with A^T are half a gradient each; a value alone is half a gradient.

    Examples
    --------
    >>> Calls(f=2, g=3, B=8) + Calls(f=1, g=0, B=2)
    Calls(f=3, g=3, B=10)
    """

    f: float = 0
    g: float = 0
    B: int = 0

    def __post_init__(self) -> None:
        # Whole numbers are integers, so that counts print as counts.
        self.f, self.g = (int(count) if count == int(count) else count for count in (self.f, self.g))

    def __add__(self, other: Calls) -> Calls:
        return Calls(self.f + other.f, self.g + other.g, self.B + other.B)

    def copy(self) -> Calls:
        """A copy that further calls do not change."""
        return Calls(self.f, self.g, self.B)


@dataclass
class Seconds:
    """Time spent inside each oracle."""

    f: float = 0.0
    g: float = 0.0
    B: float = 0.0


class Oracles:
    """The oracles of one problem with their counters; one instance per run.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> box = ss.domains.Box(-1.0, 1.0, shape=2)
    >>> q = ss.functions.Quadratic(1.0)
    >>> oracles = Oracles(ss.SaddleProblem(f=q, g=q, B=np.eye(2), X=box, Y=box))
    >>> oracles.f_gradient(np.ones(2)), oracles.calls
    (array([1., 1.]), Calls(f=1, g=0, B=0))
    """

    def __init__(self, problem: SaddleProblem) -> None:
        self.problem = problem
        self.calls = Calls()
        self.seconds = Seconds()

    def f_gradient(self, x: Array, out: Array | None = None) -> Array:
        """A (sub)gradient of f at x."""
        began = time.perf_counter()
        gradient = self.problem.f.gradient(read_only(x), out)
        self.seconds.f += time.perf_counter() - began
        self.calls.f += 1
        return gradient

    def g_gradient(self, y: Array, out: Array | None = None) -> Array:
        """A (sub)gradient of g at y."""
        began = time.perf_counter()
        gradient = self.problem.g.gradient(read_only(y), out)
        self.seconds.g += time.perf_counter() - began
        self.calls.g += 1
        return gradient

    def forward(self, x: Array, out: Array | None = None) -> Array:
        """B x, in the shape of y."""
        coupling = self.problem.coupling
        began = time.perf_counter()
        target = None if out is None else out.reshape(coupling.y_shape)
        product = coupling.forward(x.reshape(coupling.x_shape), target)
        self.seconds.B += time.perf_counter() - began
        self.calls.B += 1
        return product.reshape(self.problem.Y.shape)

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        """B^T y, in the shape of x."""
        coupling = self.problem.coupling
        began = time.perf_counter()
        target = None if out is None else out.reshape(coupling.x_shape)
        product = coupling.adjoint(y.reshape(coupling.y_shape), target)
        self.seconds.B += time.perf_counter() - began
        self.calls.B += 1
        return product.reshape(self.problem.X.shape)

    @contextmanager
    def products(self, count: int) -> Iterator[None]:
        """Count and time products that a compiled loop makes by itself."""
        began = time.perf_counter()
        yield
        self.seconds.B += time.perf_counter() - began
        self.calls.B += count

    def f_value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        """Value and gradient of f at x: one call of f'."""
        began = time.perf_counter()
        found = self.problem.f.value_and_gradient(read_only(x), out)
        self.seconds.f += time.perf_counter() - began
        self.calls.f += 1
        return found

    def g_value_and_gradient(self, g: Function, y: Array, out: Array | None = None) -> tuple[float, Array]:
        """Value and gradient of (a part of) g at y: one call of g'."""
        began = time.perf_counter()
        found = g.value_and_gradient(read_only(y), out)
        self.seconds.g += time.perf_counter() - began
        self.calls.g += 1
        return found

    def lifted(self, f: Function) -> CountedLift:
        """(A part of) f through its lift, counted in gradients of f."""
        return CountedLift(lifted(f, np.zeros(self.problem.X.shape)), self)

    def finite(self, *arrays: Array) -> bool:
        """Whether all entries are finite numbers."""
        return all(bool(np.isfinite(array).all()) for array in arrays)


class CountedLift:
    """A lifted function whose products are counted and timed as calls of f'."""

    def __init__(self, inner: Lifted, oracles: Oracles) -> None:
        self._inner, self._oracles = inner, oracles
        self.affine_gradient, self.has_hessian = inner.affine_gradient, inner.has_hessian
        self.plain = isinstance(inner, PlainLift)

    def _counted(self, cost: float, work: Callable[[], _Answer]) -> _Answer:
        began = time.perf_counter()
        answer = work()
        self._oracles.seconds.f += time.perf_counter() - began
        # Whole numbers stay integers, so that counts print as counts.
        total = self._oracles.calls.f + cost
        self._oracles.calls.f = int(total) if total == int(total) else total
        return answer

    def lift(self, x: Array) -> Array:
        """The lift of x."""
        return self._counted(self._inner.lift_cost, lambda: self._inner.lift(x))

    def gradient(self, x: Array, q: Array) -> Array:
        """f'(x) from the lift of x."""
        return self._counted(self._inner.gradient_cost, lambda: self._inner.gradient(x, q))

    def value(self, x: Array, q: Array) -> float:
        """f(x) from the lift of x."""
        return self._inner.value(x, q)

    def bregman(self, x: Array, q: Array, v: Array, qv: Array, gradient: Array) -> float:
        """f(x) - f(v) - <f'(v), x - v> from lifts and f'(v)."""
        return self._counted(self._inner.bregman_cost, lambda: self._inner.bregman(x, q, v, qv, gradient))

    def hessian(self, q: Array) -> Callable[[Array], Array]:
        """Counted products with the Hessian at the point with this lift; only if `has_hessian`."""
        product = self._inner.hessian(q)
        return lambda v: self._counted(1.0, lambda: product(v))
