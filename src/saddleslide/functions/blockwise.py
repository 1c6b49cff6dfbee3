"""A sum of functions, each of its own block of x: what the agents of a network hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, reduce
from typing import Any, final

from saddleslide.arrays.base import Array, as_shape, blank
from saddleslide.arrays.kinds import ArrayKind
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import FullSpace
from saddleslide.errors import InputError, raise_all
from saddleslide.functions.base import Function
from saddleslide.functions.roundings import Rounding, join
from saddleslide.functions.sums import Composite
from saddleslide.functions.trust import certain_modulus, read_rounding
from saddleslide.operators.base import Operator
from saddleslide.theory.holder import Holder


@final
class Blockwise(Composite):
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
        wrong = {i: part for i, part in enumerate(functions) if not isinstance(part, Function)}
        complaints = [
            f"function {i} is {type(part).__name__}; expected a function from ss.functions."
            for i, part in wrong.items()
        ]
        complaints += [
            f"function {i} takes arrays of shape {part.shape}; expected {block}."
            for i, part in enumerate(functions)
            if i not in wrong and part.shape not in (None, block)
        ]
        raise_all("Blockwise", complaints)
        super().__init__(*functions)
        self.functions, self._block = tuple(functions), FullSpace(block)
        self.shape = self._shape = (len(functions), *block)
        # Never called quadratic: a metric fitted to the joint Hessian would mix blocks that belong to different owners.
        self.separable = self.quadratic = False

    def __repr__(self) -> str:
        return f"Blockwise({len(self.functions)} functions, blocks of shape {self._block.shape})"

    def stays_on_host(self, kind: ArrayKind) -> tuple[str, ...]:
        return tuple(dict.fromkeys(super().stays_on_host(kind)))

    @property
    def components(self) -> tuple[Function, ...]:
        return self.functions

    @property
    def operators(self) -> tuple[tuple[Operator, float], ...]:
        each = 1.0 / len(self.functions)
        return tuple((operator, each * part) for operator, part in super().operators)

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        out = blank(self._shape, x) if out is None else out
        values = [part.value_and_gradient(x[i], out[i])[0] for i, part in enumerate(self.functions)]
        return math.fsum(values), out

    def value(self, x: Array) -> float:
        return math.fsum(part.value(x[i]) for i, part in enumerate(self.functions))

    def gradient(self, x: Array, out: Array | None = None) -> Array:
        out = blank(self._shape, x) if out is None else out
        for i, part in enumerate(self.functions):
            part.gradient(x[i], out[i])
        return out

    def value_and_magnitude(self, x: Array) -> tuple[float, float]:
        values, sizes = zip(*(part.value_and_magnitude(x[i]) for i, part in enumerate(self.functions)), strict=True)
        return math.fsum(values), math.fsum(sizes)

    @property
    def value_cost(self) -> float:
        return self.lone_value_cost

    @property
    def lone_value_cost(self) -> float:
        return 1.0 if self.own_code else 0.5

    def smoothness(self, domain: Domain) -> Holder:
        """Valid on the full space of each block, so on every domain; blocks of one exponent by Hölder's inequality."""
        return join_smoothness([part.smoothness(self._block) for part in self.functions], domain)

    def strong_convexity(self, domain: Domain) -> float:
        return min(part.strong_convexity(self._block) for part in self.functions)

    def certain_convexity(self, domain: Domain) -> float:
        return min(certain_modulus(part, self._block) for part in self.functions)

    @cached_property
    def error_model(self) -> Rounding:
        return join(map(read_rounding, self.functions))


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
