"""A function that is the sum, or the mean, of many parts, added along a fixed tree wherever the parts are."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, partial, reduce
from typing import Any, TypeVar, final

import numpy as np

from saddleslide.arrays.base import Array, Shape, as_shape
from saddleslide.domains import Domain
from saddleslide.errors import UnknownConstantError, raise_all
from saddleslide.functions.base import Function, is_own_class
from saddleslide.functions.part_questions import (
    PartConstants,
    PartFacts,
    built_part,
    evaluated,
    part_constants,
    part_facts,
    part_hessian,
    part_rounding,
)
from saddleslide.functions.roundings import Rounding
from saddleslide.functions.roundings import joined as joined_roundings
from saddleslide.functions.trees import Terms
from saddleslide.operators.spectrum import rounding_margin
from saddleslide.theory.holder import Holder

COMBINE = ("sum", "mean")
# Largest number of columns for which eigenvalues are worth their cost, and the most entries of all parts' Hessians.
_FACTORISE_COLUMNS, _MOST_ENTRIES = 400, 20_000_000
_Answer = TypeVar("_Answer")


class Partitioned(Function):
    """A sum or mean of parts that may be anywhere; `PartSum` has them here, `ss.distributed.DaskSum` on workers.

    Examples
    --------
    >>> import saddleslide as ss
    >>> issubclass(ss.functions.PartSum, Partitioned)
    True
    """

    def __init__(self, count: int, combine: str, shape: Any, name: str) -> None:
        self.count, self.combine, self._name = count, combine, name
        self._factor = 1.0 if combine == "sum" else 1.0 / max(count, 1)
        complaints = [] if combine in COMBINE else [f"combine is {combine!r}; expected 'sum' or 'mean'."]
        complaints += [] if count else ["received no parts; expected at least one."]
        raise_all(name, complaints)
        self._shape = None if shape is None else as_shape(shape, name)

    def _learn(self) -> None:
        """Ask every part what it is, once, when all of them are there."""
        facts = [PartFacts(*answer) for answer in self.over_parts(part_facts)]
        shapes = {fact.shape for fact in facts} - {None} | ({self._shape} - {None})
        complaints = [
            f"part {i} has a sampled gradient; expected exact parts. Sample parts with SampledParts."
            for i, fact in enumerate(facts)
            if fact.sampled
        ]
        if len(shapes) > 1:
            complaints.append(f"the parts take arrays of the shapes {sorted(map(str, shapes))}; expected one shape.")
        raise_all(self._name, complaints)
        self._shape = next(iter(shapes), None)
        self._has_value = all(fact.has_value for fact in facts)
        self.quadratic = all(fact.quadratic for fact in facts)
        self.linear = all(fact.linear for fact in facts)
        self._own_code = any(fact.own_code for fact in facts)
        self._on_trust = any(fact.convex_on_trust for fact in facts)

    @abstractmethod
    def over_parts(self, question: Callable[[Function], _Answer]) -> list[_Answer]:
        """The answers of all parts to a question about them, in their order."""

    @abstractmethod
    def reduced(self, operation: str, x: Array, chosen: Sequence[int] | None = None) -> Terms:
        """An operation summed over all parts, or the chosen ones; the array lasts until the next call."""

    @property
    def shape(self) -> Shape | None:
        return self._shape

    @property
    def has_value(self) -> bool:
        return self._has_value

    def _array(self, terms: Terms, out: Array | None) -> Array:
        assert terms[1] is not None
        # A copy in any case: the next call may write over the sum.
        return np.multiply(terms[1], self._factor, out=out)

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        terms = self.reduced("both", x)
        return self._factor * terms[0][0], self._array(terms, out)

    def gradient(self, x: Array, out: Array | None = None) -> Array:
        return self._array(self.reduced("gradient", x), out)

    def value(self, x: Array) -> float:
        return self._factor * self.reduced("value", x)[0][0]

    def value_and_magnitude(self, x: Array) -> tuple[float, float]:
        value, magnitude = self.reduced("sized", x)[0]
        return self._factor * value, self._factor * magnitude

    @property
    def own_code(self) -> bool:
        return is_own_class(self) or self._own_code

    @property
    def convex_on_trust(self) -> bool:
        return is_own_class(self) or self._on_trust

    @property
    def value_cost(self) -> float:
        return self.lone_value_cost

    def hessian_product(self, v: Array) -> Array:
        return self._array(self.reduced("hessian", v), None)

    def part_constants(self, domain: Domain) -> list[PartConstants]:
        """Constants of every part on a domain."""
        return [PartConstants(*answer) for answer in self.over_parts(partial(part_constants, domain=domain))]

    def smoothness(self, domain: Domain) -> Holder:
        """The sum of the parts' conditions."""
        found: list[Holder] = []
        for i, constants in enumerate(self.part_constants(domain)):
            if isinstance(constants.smoothness, str):
                raise UnknownConstantError(f"{self._name}: part {i} has no known smoothness: {constants.smoothness}")
            found.append(constants.smoothness)
        joined = self._factor * reduce(lambda first, second: first.plus(second, domain.diameter()), found)
        # Of a small quadratic sum all is known: its parts may lean on different directions.
        return Holder(1.0, min(joined.H, self._curvatures[1])) if joined.nu == 1.0 else joined

    def strong_convexity(self, domain: Domain) -> float:
        joined = self._factor * sum(constants.strong_convexity for constants in self.part_constants(domain))
        return max(joined, self._curvatures[0])

    def certain_convexity(self, domain: Domain) -> float:
        """What was declared of a part is no more certain in a sum."""
        joined = self._factor * sum(constants.certain_convexity for constants in self.part_constants(domain))
        return joined if self._own_code else max(joined, self._curvatures[0])

    @cached_property
    def rounding(self) -> Rounding:
        together = joined_roundings(self.over_parts(part_rounding))
        return together.added_up(self.count.bit_length()).times(self._factor)

    @cached_property
    def _curvatures(self) -> tuple[float, float]:
        """Bounds on the eigenvalues of the Hessian of the sum, where it is quadratic and small; else 0 and infinity."""
        shape = self._shape or ()
        size = math.prod(shape)
        if not (self.quadratic and shape and size <= _FACTORISE_COLUMNS and self.count * size**2 <= _MOST_ENTRIES):
            return 0.0, math.inf
        parts: list[Array] = self.over_parts(partial(part_hessian, shape=shape))
        hessian = self._factor * np.sum(parts, axis=0)
        values = np.linalg.eigvalsh(0.5 * (hessian + hessian.T))
        margin = rounding_margin(size) * float(np.abs(values).max())
        return max(float(values[0]) - margin, 0.0), float(values[-1]) + margin

    def stacked_norm(self, domain: Domain) -> float:
        """A bound on the norm of all A_i above each other, where every part is a loss of A_i x; NaN otherwise."""
        return float(np.sqrt(sum(constants.norm**2 for constants in self.part_constants(domain))))


@final
class PartSum(Partitioned):
    """f_1 + ... + f_n, or their mean, in this process; the bits of `ss.distributed.DaskSum` on the same parts.

    Parameters
    ----------
    parts : sequence of Function or callable
        Functions, or callables without arguments that build them.
    combine : "sum" or "mean", optional
        How the parts become one function.
    shape : int or tuple of int, optional
        Shape of x, where no part says it.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f = PartSum([ss.functions.Quadratic(1.0), ss.functions.Quadratic(3.0)], combine="mean")
    >>> f.value_and_gradient(np.array([1.0, 0.0]))
    (1.0, array([2., 0.]))
    """

    def __init__(self, parts: Sequence[Any], combine: str = "sum", shape: Any = None) -> None:
        super().__init__(len(parts), combine, shape, "PartSum")
        self.parts = tuple(built_part(part, i, "PartSum") for i, part in enumerate(parts))
        self._learn()

    def __repr__(self) -> str:
        return f"PartSum({self.combine} of {self.count} parts, shape {self._shape or 'any'})"

    @property
    def composed_of(self) -> tuple[Function, ...]:
        return self.parts

    def over_parts(self, question: Callable[[Function], _Answer]) -> list[_Answer]:
        return [question(part) for part in self.parts]

    def reduced(self, operation: str, x: Array, chosen: Sequence[int] | None = None) -> Terms:
        found = evaluated(self.parts.__getitem__, operation, x, (0, self.count), chosen)
        assert found is not None
        return found
