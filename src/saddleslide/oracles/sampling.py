"""A problem whose sampled gradients are drawn afresh at every call, and the count of what was drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, final

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.domains.base import Domain
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.functions.scaled import without_silent_noise
from saddleslide.functions.trust import certain_modulus
from saddleslide.problem import SaddleProblem
from saddleslide.theory.holder import Holder


@dataclass
class Samples:
    """Samples drawn for gradients of f and of g: calls times batch, anchors included; exact gradients draw none."""

    f: int = 0
    g: int = 0

    def __add__(self, other: Samples) -> Samples:
        return Samples(self.f + other.f, self.g + other.g)

    @property
    def total(self) -> int:
        """Samples of both."""
        return self.f + self.g

    def copy(self) -> Samples:
        """A copy that further draws do not change."""
        return replace(self)


@final
class Drawn(Function):
    """A sampled function as a run sees it: its gradient is a fresh draw. It has no values: it proves nothing."""

    def __init__(self, function: Function, name: str, rng: np.random.Generator, counts: Samples) -> None:
        self._function, self._name, self._rng, self._counts = function, name, rng, counts
        self.shape, self.has_value = function.shape, False

    def gradient(self, x: Array, out: Array | None = None) -> Array:
        setattr(self._counts, self._name, getattr(self._counts, self._name) + self._function.batch)
        return self._function.sample(x, self._rng, out)

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        return math.nan, self.gradient(x, out)

    def smoothness(self, domain: Domain) -> Holder:
        return self._function.smoothness(domain)

    def strong_convexity(self, domain: Domain) -> float:
        return self._function.strong_convexity(domain)

    def certain_convexity(self, domain: Domain) -> float:
        return certain_modulus(self._function, domain)


def is_sampled(problem: SaddleProblem) -> bool:
    """Whether f or g has a sampled gradient."""
    return problem.f.sampled or problem.g.sampled


def quiet_problem(problem: SaddleProblem) -> SaddleProblem:
    """The problem without wrappers that never draw: it is the deterministic one, so it is solved with the same bits."""
    f, g = without_silent_noise(problem.f), without_silent_noise(problem.g)
    return problem if f is problem.f and g is problem.g else _with_functions(problem, f, g)


def drawn_problem(problem: SaddleProblem, rng: np.random.Generator, counts: Samples) -> SaddleProblem:
    """The problem with every sampled function replaced by its draws; the problem itself when there is none."""
    if not is_sampled(problem):
        return problem
    f = Drawn(problem.f, "f", rng, counts) if problem.f.sampled else problem.f
    g = Drawn(problem.g, "g", rng, counts) if problem.g.sampled else problem.g
    return _with_functions(problem, f, g)


def _with_functions(problem: SaddleProblem, f: Function, g: Function) -> SaddleProblem:
    return SaddleProblem(f=f, g=g, B=problem.coupling, X=problem.X, Y=problem.Y, arrays=problem.arrays)


def as_seed(rng: int | np.random.Generator) -> int:
    """A seed drawn from a generator, so that a plan can record it; anything else as it is."""
    return int(rng.integers(2**63)) if isinstance(rng, np.random.Generator) else rng


def as_generator(rng: Any, name: str) -> np.random.Generator:
    """A generator from a seed >= 0, or the given one."""
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, bool) or not isinstance(rng, Integral) or int(rng) < 0:
        raise InputError(f"{name}: rng is {rng!r}; expected a seed >= 0 or a numpy.random.Generator.")
    return np.random.default_rng(int(rng))
