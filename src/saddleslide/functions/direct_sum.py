"""A sum of functions, each of its own factor of a product: g where y has several blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from saddleslide.arrays.base import Array, Shape, as_shape, blank, split
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import Box, FullSpace
from saddleslide.domains.product import Product
from saddleslide.domains.program import Program
from saddleslide.domains.program import join as join_programs
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.functions.blockwise import OverBlocks
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.searched import Tally, TiltedMinimum
from saddleslide.functions.separable import has_prox, prox


@final
class DirectSum(OverBlocks):
    """h_1(x_1) + ... + h_n(x_n) for a flat x that is made of x_1, ..., x_n, each in its own shape, as in `Product`.

    Parameters
    ----------
    functions : sequence of Function
        One per block.
    shapes : sequence of shapes
        Those of the blocks.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> h = DirectSum([ss.functions.Quadratic(1.0), ss.functions.L1()], [(1,), (2,)])
    >>> h.value(np.array([2.0, 1.0, -3.0])), h.prox(np.array([2.0, 1.5, -3.0]), 1.0)
    (6.0, array([ 1. ,  0.5, -2. ]))
    """

    def __init__(self, functions: Sequence[Function], shapes: Sequence[Any]) -> None:
        if not functions or len(functions) != len(shapes):
            raise InputError(f"DirectSum: received {len(functions)} functions, {len(shapes)} shapes; expected as many.")
        self.shapes: list[Shape] = [as_shape(shape, "DirectSum: shape") for shape in shapes]
        super().__init__(functions, self.shapes)
        self.shape = (sum(math.prod(shape) for shape in self.shapes),)

    def __repr__(self) -> str:
        return f"DirectSum({', '.join(map(repr, self.functions))})"

    def __add__(self, other: Function) -> Function:
        """Block by block, where the other one has the same blocks."""
        if not isinstance(other, DirectSum) or other.shapes != self.shapes:
            return super().__add__(other)
        pairs = zip(self.functions, other.functions, strict=True)
        both = [b if isinstance(a, Zero) else a if isinstance(b, Zero) else a + b for a, b in pairs]
        return DirectSum(both, self.shapes)

    def parts_in(self, shape: Shape) -> list[tuple[Function, Shape]]:
        return list(zip(self.functions, self.shapes, strict=True))

    def blocks_on(self, domain: Domain, *arrays: Array) -> list[tuple[Any, ...]]:
        if not self.fits(domain):
            return []
        return list(zip(self.functions, self.factors(domain), *map(self.split, arrays), strict=True))

    def split(self, x: Array) -> list[Array]:
        return split(x, self.shapes)

    def far_point(self, shape: Shape) -> Array | None:
        """That of the blocks that have one, and 0 in the others."""
        points = [part.far_point(block) for part, block in zip(self.functions, self.shapes, strict=True)]
        if all(point is None for point in points):
            return None
        found = [np.zeros(block) if point is None else point for point, block in zip(points, self.shapes, strict=True)]
        return np.concatenate([point.ravel() for point in found])

    def factors(self, domain: Domain) -> list[Domain]:
        """The factors of the domain that the blocks are in; whole spaces where it has none of these shapes."""
        if isinstance(domain, Product) and [factor.shape for factor in domain.factors] == self.shapes:
            return list(domain.factors)
        if isinstance(domain, Box) and domain.uniform is not None:
            return [Box(*domain.uniform, shape=shape) for shape in self.shapes]
        if isinstance(domain, Box):
            return [Box(*sides) for sides in zip(self.split(domain.lower), self.split(domain.upper), strict=True)]
        return [FullSpace(shape) for shape in self.shapes]

    def fits(self, domain: Domain) -> bool:
        """Whether the domain has one factor per block, or is a box or the whole space."""
        return isinstance(domain, FullSpace | Box) or (
            isinstance(domain, Product) and [factor.shape for factor in domain.factors] == self.shapes
        )

    def as_program(self, size: int) -> Program | None:
        found = [part.as_program(math.prod(shape)) for part, shape in zip(self.functions, self.shapes, strict=True)]
        said = [part for part in found if part is not None]
        return join_programs(said) if len(said) == len(found) else None

    @property
    def is_proximable(self) -> bool:
        return all(part.is_proximable for part in self.functions)

    def can_prox(self, domain: Domain) -> bool:
        pairs = zip(self.functions, self.factors(domain), strict=True)
        return self.fits(domain) and all(has_prox(part, factor) for part, factor in pairs)

    def prox(self, center: Array, step: Array | float) -> Array:
        return self.prox_on(FullSpace(center.shape), center, np.divide(1.0, step))

    def prox_on(self, domain: Domain, center: Array, weight: Array | float) -> Array:
        out = blank(center.shape, center)
        weights = self.split(np.asarray(weight)) if np.ndim(weight) else [weight] * len(self.functions)
        for part, block, each, factor, target in zip(
            self.functions, self.split(center), weights, self.factors(domain), self.split(out), strict=True
        ):
            prox(part, block, each, factor, out=target)
        return out

    def can_minimise(self, domain: Domain) -> bool:
        from saddleslide.functions.minimum import has_closed_minimum

        pairs = zip(self.functions, self.factors(domain), strict=True)
        return self.fits(domain) and all(has_closed_minimum(part, factor) for part, factor in pairs)

    def closed_minimum(self, c: Array, domain: Domain) -> TiltedMinimum | None:
        from saddleslide.functions.minimum import tilted_minimum

        if not self.can_minimise(domain):
            return None
        found = [
            tilted_minimum(part, tilt, factor, tally=Tally())
            for part, tilt, factor in zip(self.functions, self.split(c), self.factors(domain), strict=True)
        ]
        point = np.concatenate([one.point.ravel() for one in found])
        value, error = math.fsum(one.value for one in found), math.fsum(one.error for one in found)
        return TiltedMinimum(point, value, error, found[0].method, rounding=math.fsum(one.rounding for one in found))
