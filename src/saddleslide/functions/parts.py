"""A function that is the sum, or the mean, of many parts, added along a fixed tree wherever the parts are."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial, reduce
from typing import Any, NamedTuple, TypeAlias, TypeVar, final

import numpy as np

from saddleslide.arrays.base import Array, Shape, as_shape
from saddleslide.domains.base import Domain
from saddleslide.errors import InputError, UnknownConstantError, raise_all
from saddleslide.functions.base import Function
from saddleslide.functions.linear_model import LinearModel
from saddleslide.functions.roundings import Rounding
from saddleslide.functions.roundings import join as joined_roundings
from saddleslide.functions.trust import certain_modulus, is_own_class, read_rounding, runs_own_code
from saddleslide.operators.spectrum import margin_of_rounding
from saddleslide.theory.holder import Holder

# Numbers and an array (or none) that are added together, and a range of terms: first, and one past the last.
Terms: TypeAlias = tuple[tuple[float, ...], Array | None]
Block: TypeAlias = tuple[int, int]
# Entries that are added at a time: of several arrays such pieces fit in a processor's own cache.
_PIECE = 1 << 15


def halves(block: Block) -> tuple[Block, Block]:
    """The two blocks below a block of at least two terms: the first one has the largest power of two that leaves some.

    A tree that depends on the number of terms alone: the sum has the same bits wherever they are.
    """
    first, last = block
    cut = first + (1 << (last - first - 1).bit_length() - 1)
    return (first, cut), (cut, last)


def sum_block(block: Block, known: Callable[[Block], Terms | None], out: Array | None = None) -> Terms | None:
    """The sum over a block: what is `known` of it, or the sum of its halves; None where all of it is left out.

    What is known may belong to a part and is never written to; sums of it are added in place, the last ones in `out`
    where it is given. A sum of one term is that term, wherever it is.
    """

    def along(block: Block, out: Array | None) -> tuple[Terms, bool] | None:
        """The sum over a block, and whether its array may be written to."""
        found = known(block)
        if found is not None or block[1] - block[0] == 1:
            return None if found is None else (found, False)
        left, right = (along(half, None) for half in halves(block))
        if left is None or right is None:
            return right if left is None else left
        return add_terms(left[0], right[0], left[0][1] if left[1] and out is None else out), True

    found = along(block, out)
    return None if found is None else found[0]


def sum_in_pieces(block: Block, terms: Mapping[Block, Terms], out: Array) -> Terms:
    """The sum over a block of terms with arrays of one dimension, in `out`: piece by piece, and to the same bits."""
    numbers: tuple[float, ...] = ()
    for first in range(0, max(out.size, 1), _PIECE):
        cut = slice(first, first + _PIECE)
        pieces = {key: (found[0], None if found[1] is None else found[1][cut]) for key, found in terms.items()}
        target = out[cut]
        total = sum_block(block, pieces.get, target)
        assert total is not None
        numbers = total[0]
        if total[1] is not target:
            target[...] = total[1]
    return numbers, out


def add_terms(left: Terms, right: Terms, out: Array | None = None) -> Terms:
    """Both together; the array in `out` where it is given, which may be the left one's."""
    numbers = tuple(a + b for a, b in zip(left[0], right[0], strict=True))
    if left[1] is None or right[1] is None:
        return numbers, None
    return numbers, np.add(left[1], right[1], out=out)


def whole_blocks(total: int, held: Iterable[int]) -> list[Block]:
    """The largest blocks of the tree over `total` terms of which every term is held, in order."""
    terms = set(held)
    found: list[Block] = []
    waiting: list[Block] = [(0, total)]
    while waiting:
        block = waiting.pop()
        if terms.issuperset(range(*block)):
            found.append(block)
        elif block[1] - block[0] > 1:
            waiting += reversed(halves(block))
    return found


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


def evaluate_parts(
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

    return sum_block(block, known, out)


def built_part(part: Any, index: int, name: str) -> Function:
    """A part from a function or from what builds one."""
    made = part() if callable(part) and not isinstance(part, Function) else part
    if not isinstance(made, Function):
        raise InputError(
            f"{name}: part {index} gave {type(made).__name__}; expected a function from ss.functions, or a callable "
            "without arguments that builds one."
        )
    return made


class PartFacts(NamedTuple):
    """What is asked of a part once."""

    shape: Shape | None
    has_value: bool
    quadratic: bool
    linear: bool
    sampled: bool
    own_code: bool
    convex_on_trust: bool


def part_facts(part: Function) -> PartFacts:
    """What a part is."""
    own_code = runs_own_code(part)
    on_trust = own_code or part.convex_on_trust
    return PartFacts(part.shape, part.has_value, part.quadratic, part.linear, part.sampled, own_code, on_trust)


def part_hessian(part: Function, shape: Shape) -> Array:
    """The Hessian of a quadratic part, as a matrix."""
    return np.stack([part.hessian_product(row.reshape(shape)).ravel() for row in np.eye(math.prod(shape))])


part_rounding = read_rounding


def part_constants(part: Function, domain: Domain) -> PartConstants:
    """Constants of a part on a domain."""
    smoothness: Holder | str
    try:
        smoothness = part.smoothness(domain)
    except UnknownConstantError as unknown:
        smoothness = str(unknown)
    norm = part.A.norm.upper if isinstance(part, LinearModel) else float("nan")
    return PartConstants(smoothness, part.strong_convexity(domain), norm, certain_modulus(part, domain))


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
        complaints = [] if combine in ("sum", "mean") else [f"combine is {combine!r}; expected 'sum' or 'mean'."]
        complaints += [] if count else ["received no parts; expected at least one."]
        raise_all(name, complaints)
        self.shape = None if shape is None else as_shape(shape, name)

    def _learn(self) -> None:
        """Ask every part what it is, once, when all of them are there."""
        facts = [PartFacts(*answer) for answer in self.over_parts(part_facts)]
        shapes = ({fact.shape for fact in facts} | {self.shape}) - {None}
        complaints = [
            f"part {i} has a sampled gradient; expected exact parts. Sample parts with SampledParts."
            for i, fact in enumerate(facts)
            if fact.sampled
        ]
        if len(shapes) > 1:
            complaints.append(f"the parts take arrays of the shapes {sorted(map(str, shapes))}; expected one shape.")
        raise_all(self._name, complaints)
        self.shape = next(iter(shapes), None)
        self.has_value = all(fact.has_value for fact in facts)
        self.quadratic = all(fact.quadratic for fact in facts)
        self.linear = all(fact.linear for fact in facts)
        self._own_code = any(fact.own_code for fact in facts)
        self._on_trust = any(fact.convex_on_trust for fact in facts)

    @abstractmethod
    def over_parts(self, question: Callable[[Function], _Answer]) -> list[_Answer]:
        """The answers of all parts to a question about them, in their order."""

    @abstractmethod
    def sum_parts(self, operation: str, x: Array, chosen: Sequence[int] | None = None) -> Terms:
        """An operation summed over all parts, or the chosen ones; the array lasts until the next call."""

    def _array(self, terms: Terms, out: Array | None) -> Array:
        assert terms[1] is not None
        # A copy in any case: the next call may write over the sum.
        return np.multiply(terms[1], self._factor, out=out)

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        terms = self.sum_parts("both", x)
        return self._factor * terms[0][0], self._array(terms, out)

    def gradient(self, x: Array, out: Array | None = None) -> Array:
        return self._array(self.sum_parts("gradient", x), out)

    def value(self, x: Array) -> float:
        return self._factor * self.sum_parts("value", x)[0][0]

    def value_and_magnitude(self, x: Array) -> tuple[float, float]:
        value, magnitude = self.sum_parts("sized", x)[0]
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
        return self._array(self.sum_parts("hessian", v), None)

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
    def error_model(self) -> Rounding:
        together = joined_roundings(self.over_parts(part_rounding))
        return together.over_levels(self.count.bit_length()).times(self._factor)

    @cached_property
    def _curvatures(self) -> tuple[float, float]:
        """Bounds on the eigenvalues of the Hessian of the sum, where it is quadratic and small; else 0 and infinity."""
        shape = self.shape or ()
        size = math.prod(shape)
        if not (self.quadratic and shape and size <= _FACTORISE_COLUMNS and self.count * size**2 <= _MOST_ENTRIES):
            return 0.0, math.inf
        parts: list[Array] = self.over_parts(partial(part_hessian, shape=shape))
        hessian = self._factor * np.sum(parts, axis=0)
        values = np.linalg.eigvalsh(0.5 * (hessian + hessian.T))
        margin = margin_of_rounding(size) * float(np.abs(values).max())
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
        return f"PartSum({self.combine} of {self.count} parts, shape {self.shape or 'any'})"

    @property
    def components(self) -> tuple[Function, ...]:
        return self.parts

    def over_parts(self, question: Callable[[Function], _Answer]) -> list[_Answer]:
        return [question(part) for part in self.parts]

    def sum_parts(self, operation: str, x: Array, chosen: Sequence[int] | None = None) -> Terms:
        found = evaluate_parts(self.parts.__getitem__, operation, x, (0, self.count), chosen)
        assert found is not None
        return found
