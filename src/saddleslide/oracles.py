"""Counted access to f', g', B and B^T: the only way the methods touch a problem."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from saddleslide.arrays import Array, read_only
from saddleslide.problem import SaddleProblem


@dataclass
class Calls:
    """Calls of each oracle: gradients of f, gradients of g, products with B or B^T.

    Examples
    --------
    >>> Calls(f=2, g=3, B=8) + Calls(f=1, g=0, B=2)
    Calls(f=3, g=3, B=10)
    """

    f: int = 0
    g: int = 0
    B: int = 0

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

    def finite(self, *arrays: Array) -> bool:
        """Whether all entries are finite numbers."""
        return all(bool(np.isfinite(array).all()) for array in arrays)
