"""A sum of functions, each of its own block of x: what the agents of a network hold."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property, reduce
from typing import Any, final

import numpy as np

from saddleslide.arrays.base import Array, Shape, as_shape, blank
from saddleslide.arrays.kinds import ArrayKind
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import FullSpace
from saddleslide.errors import InputError, raise_all
from saddleslide.functions.base import Function
from saddleslide.functions.roundings import Rounding, join
from saddleslide.functions.sums import Composite
from saddleslide.functions.trust import certain_modulus, read_rounding, recession_of
from saddleslide.operators.base import Operator
from saddleslide.theory.holder import Holder


class OverBlocks(Composite):
    """A sum of functions, each of its own block of x."""

    def __init__(self, functions: Sequence[Function], shapes: Sequence[Shape]) -> None:
        complaints = []
        for i, (part, shape) in enumerate(zip(functions, shapes, strict=True)):
            if not isinstance(part, Function):
                complaints.append(f"function {i} is {type(part).__name__}; expected a function from ss.functions.")
            elif part.shape not in (None, shape):
                complaints.append(f"function {i} takes arrays of shape {part.shape}; expected {shape}.")
        raise_all(type(self).__name__, complaints)
        super().__init__(*functions)
        self.functions, self.quadratic = tuple(functions), False

    @property
    def components(self) -> tuple[Function, ...]:
        return self.functions

    @abstractmethod
    def split(self, x: Array) -> list[Array]:
        """Views of x, one per block, each in its shape."""

    @abstractmethod
    def factors(self, domain: Domain) -> list[Domain]:
        """Sets that the blocks are in, on this domain."""

    def _parts(self, x: Array) -> Iterator[tuple[Function, Array]]:
        return zip(self.functions, self.split(x), strict=True)

    def value(self, x: Array) -> float:
        return math.fsum(part.value(block) for part, block in self._parts(x))

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        out = blank(x.shape, x) if out is None else out
        pairs = zip(self._parts(x), self.split(out), strict=True)
        return math.fsum(part.value_and_gradient(block, target)[0] for (part, block), target in pairs), out

    def value_and_magnitude(self, x: Array) -> tuple[float, float]:
        values, sizes = zip(*(part.value_and_magnitude(block) for part, block in self._parts(x)), strict=True)
        return math.fsum(values), math.fsum(sizes)

    def smoothness(self, domain: Domain) -> Holder:
        """From those of the blocks; of one exponent by Hölder's inequality."""
        pairs = zip(self.functions, self.factors(domain), strict=True)
        return join_smoothness([part.smoothness(factor) for part, factor in pairs], domain)

    def strong_convexity(self, domain: Domain) -> float:
        pairs = zip(self.functions, self.factors(domain), strict=True)
        return min(part.strong_convexity(factor) for part, factor in pairs)

    def certain_convexity(self, domain: Domain) -> float:
        return min(certain_modulus(*pair) for pair in zip(self.functions, self.factors(domain), strict=True))

    def recession(self, direction: Array) -> tuple[Array, float, float]:
        rays, slopes, sizes = zip(*(recession_of(part, block) for part, block in self._parts(direction)), strict=True)
        ray = blank(direction.shape, direction)
        for target, one in zip(self.split(ray), rays, strict=True):
            np.copyto(target, one)
        return ray, math.fsum(slopes), math.fsum(sizes)

    @cached_property
    def error_model(self) -> Rounding:
        return join(map(read_rounding, self.functions))


@final
class Blockwise(OverBlocks):
    """f_1(x[0]) + ... + f_n(x[n - 1]) for an x of shape (n, *shape).

    Parameters
    ----------
    functions : sequence of Function
        One per block.
    shape : int or tuple of int
        Shape of one block.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f = Blockwise([ss.functions.Quadratic(1.0), ss.functions.Quadratic(3.0)], shape=1)
    >>> f.value_and_gradient(np.array([[2.0], [1.0]]))
    (3.5, array([[2.], [3.]]))
    """

    def __init__(self, functions: Sequence[Function], shape: Any) -> None:
        block = as_shape(shape, "Blockwise")
        if not functions:
            raise InputError("Blockwise: received no functions; expected one per block.")
        # Never called quadratic: a metric fitted to the joint Hessian would mix blocks that belong to different owners.
        super().__init__(functions, [block] * len(functions))
        self._block, self.shape, self.separable = FullSpace(block), (len(functions), *block), False

    def __repr__(self) -> str:
        return f"Blockwise({len(self.functions)} functions, blocks of shape {self._block.shape})"

    def stays_on_host(self, kind: ArrayKind) -> tuple[str, ...]:
        return tuple(dict.fromkeys(super().stays_on_host(kind)))

    @property
    def operators(self) -> tuple[tuple[Operator, float], ...]:
        each = 1.0 / len(self.functions)
        return tuple((operator, each * part) for operator, part in super().operators)

    def split(self, x: Array) -> list[Array]:
        return [x[i] for i in range(len(self.functions))]

    def factors(self, domain: Domain) -> list[Domain]:
        # What holds on the full space of each block does on every domain.
        return [self._block] * len(self.functions)

    def gradient(self, x: Array, out: Array | None = None) -> Array:
        out = blank(x.shape, x) if out is None else out
        for (part, block), target in zip(self._parts(x), self.split(out), strict=True):
            part.gradient(block, target)
        return out

    @property
    def value_cost(self) -> float:
        return self.lone_value_cost

    @property
    def lone_value_cost(self) -> float:
        return 1.0 if self.own_code else 0.5


def join_smoothness(parts: Sequence[Holder], domain: Domain) -> Holder:
    """The condition of a sum of functions, each of its own block, from those of the blocks."""
    joined = []
    for nu in sorted({part.nu for part in parts}):
        constants = [part.H for part in parts if part.nu == nu]
        if nu == 1.0:
            joined.append(Holder(nu, max(constants)))
        else:
            joined.append(Holder(nu, float(sum(H ** (2.0 / (1.0 - nu)) for H in constants) ** ((1.0 - nu) / 2.0))))
    return reduce(lambda first, second: first.plus(second, domain.diameter()), joined)
