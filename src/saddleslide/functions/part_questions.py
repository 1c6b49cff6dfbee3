"""What can be asked of one part of a sum, wherever it is: facts, constants, and terms to be added."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np

from saddleslide.arrays.base import Array, Shape
from saddleslide.domains import Domain
from saddleslide.errors import InputError, UnknownConstantError
from saddleslide.functions.base import Function, certain_modulus, rounding_of, runs_own_code
from saddleslide.functions.lifted import LinearModel
from saddleslide.functions.trees import Block, Terms, summed
from saddleslide.theory.holder import Holder


class PartFacts(NamedTuple):
    """What is asked of a part once."""

    shape: Shape | None
    has_value: bool
    quadratic: bool
    linear: bool
    sampled: bool
    own_code: bool
    convex_on_trust: bool


class PartConstants(NamedTuple):
    """Constants of a part on a domain: smoothness (or why it is unknown), modulus, norm of A where it has one.

    Of the modulus, `certain_convexity` is what follows from what the part is, declared numbers left out.
    """

    smoothness: Holder | str
    strong_convexity: float
    norm: float
    certain_convexity: float


def _both(part: Function, x: Array, out: Array | None) -> Terms:
    value, gradient = part.value_and_gradient(x, out)
    return (value,), gradient


def _spread(part: Function, x: Array, out: Array | None) -> Terms:
    gradient = part.gradient(x, out)
    return (float(np.vdot(gradient, gradient)),), gradient


# What can be asked of all parts together: numbers and an array, to be added; a part may write the array to `out`.
OPERATIONS: dict[str, Callable[[Function, Array, Array | None], Terms]] = {
    "both": _both,
    "gradient": lambda part, x, out: ((), part.gradient(x, out)),
    "value": lambda part, x, out: ((part.value(x),), None),
    "sized": lambda part, x, out: (part.value_and_magnitude(x), None),
    "hessian": lambda part, v, out: ((), part.hessian_product(v)),
    "spread": _spread,
}
# Those of them with an array.
WITH_ARRAY = ("both", "gradient", "hessian", "spread")


def evaluated(
    part_at: Callable[[int], Function],
    operation: str,
    x: Array,
    block: Block,
    chosen: Collection[int] | None = None,
    out: Array | None = None,
) -> Terms | None:
    """The sum of an operation over a block of parts, of those that are chosen; its array may be `out`, or another."""

    def known(inner: Block) -> Terms | None:
        index = inner[0]
        if inner[1] - index > 1 or not (chosen is None or index in chosen):
            return None
        terms = OPERATIONS[operation](part_at(index), x, out if inner == block else None)
        # Arrays of another shape would be stretched to fit when they are added.
        if terms[1] is not None and np.shape(terms[1]) != x.shape:
            raise InputError(
                f"part {index}: {operation} gave an array of shape {np.shape(terms[1])} at a point of shape {x.shape}; "
                "expected the same shape."
            )
        return terms

    return summed(block, known, out)


def built_part(part: Any, index: int, name: str) -> Function:
    """A part from a function or from what builds one."""
    made = part() if callable(part) and not isinstance(part, Function) else part
    if not isinstance(made, Function):
        raise InputError(
            f"{name}: part {index} gave {type(made).__name__}; expected a function from ss.functions, or a callable "
            "without arguments that builds one."
        )
    return made


def part_hessian(part: Function, shape: Shape) -> Array:
    """The Hessian of a quadratic part, as a matrix."""
    basis = np.eye(math.prod(shape))
    return np.stack([part.hessian_product(row.reshape(shape)).ravel() for row in basis])


def part_facts(part: Function) -> PartFacts:
    """What a part is."""
    own_code = runs_own_code(part)
    on_trust = own_code or part.convex_on_trust
    return PartFacts(part.shape, part.has_value, part.quadratic, part.linear, part.sampled, own_code, on_trust)


part_rounding = rounding_of


def part_constants(part: Function, domain: Domain) -> PartConstants:
    """Constants of a part on a domain."""
    smoothness: Holder | str
    try:
        smoothness = part.smoothness(domain)
    except UnknownConstantError as unknown:
        smoothness = str(unknown)
    norm = part.A.norm.upper if isinstance(part, LinearModel) else float("nan")
    return PartConstants(smoothness, part.strong_convexity(domain), norm, certain_modulus(part, domain))
