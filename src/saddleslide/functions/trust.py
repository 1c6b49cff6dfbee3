"""What is taken from a function, whoever wrote it: of the caller's code nothing but what it returns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, TypeGuard, TypeVar

import numpy as np

from saddleslide.arrays.base import Array, Shape, length_of
from saddleslide.arrays.kinds import is_callers
from saddleslide.domains.base import Domain
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.functions.roundings import NO_ROUNDING, OWN_CODE, Errors, Rounding
from saddleslide.theory.holder import Holder
from saddleslide.watcher import made

_Answer = TypeVar("_Answer")
_Kind = TypeVar("_Kind")
# Rounding below these parts of a value and of a gradient decides nothing.
_SMALL_PART, _SMALL_TURN = 1e-11, 1e-9


@dataclass
class Memory:
    """The last point at which a value was heard, the value, and the gradient; no part of a run's state."""

    stored: ClassVar[bool] = False

    point: Array | None = None
    value: float = math.nan
    gradient: Array | None = None

    def keep(self, point: Array, value: float, gradient: Array) -> None:
        """Remember an answer."""
        self.point, self.value, self.gradient = point.copy(), value, gradient.copy()


def is_own_class(part: object) -> bool:
    """Whether a function or a domain is of a class of the caller's: what such a class says of itself is declared."""
    return is_callers(part)


def is_ours(part: object, kind: Callable[..., _Kind]) -> TypeGuard[_Kind]:
    """Whether it is of a class of ours and goes by what that class is made of; a class derived from it may not."""
    return isinstance(part, kind) and not is_own_class(part)  # type: ignore[arg-type]


def runs_own_code(f: Function) -> bool:
    """Whether a function is, or is made of, code of the caller's, whatever a class of theirs says."""
    return is_own_class(f) or f.own_code


def recession_of(f: Function, direction: Array) -> tuple[Array, float, float]:
    """`recession`, of which nothing is taken from a class of the caller's."""
    return (np.zeros_like(direction), 0.0, 0.0) if is_own_class(f) else f.recession(direction)


def run_aside(f: Function, work: Callable[[], _Answer]) -> _Answer:
    """A value or a gradient that is no call where f is ours: inside a closed form, of a simple term, for an estimate.

    Every run of the caller's code is a call, so there it is counted for the call under way.
    """
    return made(f, work) if runs_own_code(f) else work()


def envelope_gradient(f: Function, x: Array) -> Array:
    """A subgradient of f at the point of a short proximal step from x: of a function that offers none at x itself."""
    step = 1e-6 * (1.0 + float(np.max(np.abs(x), initial=0.0)))
    found: Array = (x - f.prox(x, step)) / step
    return found


def value_aside(f: Function, x: Array) -> float:
    """`run_aside` for a value."""
    return run_aside(f, lambda: f.value(x))


def gradient_aside(f: Function, x: Array) -> Array:
    """`run_aside` for a gradient."""
    return run_aside(f, lambda: f.gradient(x))


def certain_modulus(f: Function, domain: Domain) -> float:
    """The modulus of f that follows from what it is; nothing that a class of the caller's says is certain."""
    return 0.0 if is_own_class(f) else f.certain_convexity(domain)


def read_rounding(f: Function) -> Rounding:
    """What rounding can do to f; that of the caller's code, whatever its class says."""
    return OWN_CODE if is_own_class(f) else f.error_model


def takes_products(function: Function) -> bool:
    """Whether constants of the function take products with the caller's code to find out.

    It does not matter whether they have been found out before: a second solve decides as the first one did.
    """
    return any(not operator.norm_at_hand for operator, _ in function.operators)


def takes_factor(function: Function) -> bool:
    """Whether constants of the function take a factor of a matrix that is not small."""
    return any(operator.norm_takes_factor for operator, _ in function.operators)


def known_smoothness(function: Function, domain: Domain) -> Holder | None:
    """The Hölder condition of the gradient on the domain; None where none is known there."""
    try:
        return function.smoothness(domain)
    except InputError:
        return None


def exponent(function: Function, domain: Domain) -> float:
    """The Hölder exponent of the gradient: 1 of any function of a linear image of ours, whatever the norm of that map.

    Raises what `smoothness` raises.
    """
    if is_own_class(function):
        return Function.exponent(function, domain) if takes_products(function) else function.smoothness(domain).nu
    return function.exponent(domain)


def diagonal_of(f: Function, shape: Shape) -> Array | None:
    """Diagonal of f'' at 0, flat; of a class of the caller's what its form says."""
    return Function.hessian_diagonal(f, shape) if is_own_class(f) else f.hessian_diagonal(shape)


def inside(f: Function) -> Iterator[Function]:
    """The function and all that it is made of, as far as they are in this process."""
    yield f
    for part in f.components:
        yield from inside(part)


def terms_of(f: Function) -> list[tuple[float, Function]]:
    """The functions that f is a weighted sum of, with their weights; one of the caller's class is one function."""
    return [(1.0, f)] if is_own_class(f) else f.terms()


def errors_at(f: Function, x: Array, value: float, slope: float = 0.0) -> Errors:
    """Bounds on the errors of a value of f, and of a gradient of the size `slope`, that were computed at x."""
    if is_own_class(f):
        return OWN_CODE.at(length_of(x), value, slope, x.size)
    if f.error_model is NO_ROUNDING and math.isfinite(value):
        return Errors(0.0, 0.0)
    found = f.error_model.at(length_of(x), value, slope, x.size)
    if found.value <= _SMALL_PART * abs(value) and (slope == 0.0 or found.gradient <= _SMALL_TURN * slope):
        # Nothing sharper is worth a pass over the entries of a matrix.
        return found
    found, sharp = f.error_model.at(f.term_size(x), value, slope, x.size), f.entrywise_errors(x)
    if sharp is None or not math.isfinite(value):
        return found
    return Errors(min(found.value, sharp.value), min(found.gradient, sharp.gradient))
