"""Products of sets."""

from __future__ import annotations

import math
from typing import final

import numpy as np

from saddleslide.arrays.base import Array, split
from saddleslide.domains.base import Domain
from saddleslide.domains.program import Program, join
from saddleslide.errors import InputError


@final
class Product(Domain):
    """Cartesian product; points are flat vectors, one factor after the other.

    Examples
    --------
    >>> import saddleslide as ss
    >>> Product(ss.domains.Box(-1.0, 1.0, shape=(2, 2)), ss.domains.Simplex(3)).shape
    (7,)
    """

    def __init__(self, *factors: Domain) -> None:
        wrong = [type(factor).__name__ for factor in factors if not isinstance(factor, Domain)]
        if wrong or not factors:
            raise InputError(f"Product: received {wrong or 'no factors'}; expected one or more domains.")
        self.factors = factors
        self.shape = (sum(factor.size for factor in factors),)

    def __repr__(self) -> str:
        return f"Product({', '.join(map(repr, self.factors))})"

    def shrunk(self, scale: float) -> Domain | None:
        parts = [factor.shrunk(scale) for factor in self.factors]
        known = [part for part in parts if part is not None]
        return Product(*known) if len(known) == len(parts) else None

    @property
    def blocks(self) -> tuple[Domain, ...]:
        return self.factors

    def split(self, point: Array) -> list[Array]:
        """Views of a flat point, one per factor, each in the shape of its factor."""
        return split(point, [factor.shape for factor in self.factors])

    def project(self, point: Array, out: Array | None = None) -> Array:
        out = self._out(out, point)
        for factor, part, target in zip(self.factors, self.split(point), self.split(out), strict=True):
            factor.project(part, out=target)
        return out

    def as_program(self) -> Program | None:
        found = [factor.as_program() for factor in self.factors]
        said = [part for part in found if part is not None]
        return join(said) if len(said) == len(found) else None

    def _parts(self, point: Array) -> zip[tuple[Domain, Array]]:
        return zip(self.factors, self.split(point), strict=True)

    def maximizer(self, direction: Array) -> Array:
        return np.concatenate([factor.maximizer(part).ravel() for factor, part in self._parts(direction)])

    def recession(self, direction: Array) -> Array:
        return np.concatenate([factor.recession(part).ravel() for factor, part in self._parts(direction)])

    def squared_radius(self, point: Array) -> float:
        return sum(factor.squared_radius(part) for factor, part in self._parts(point))

    def diameter(self) -> float:
        return math.hypot(*(factor.diameter() for factor in self.factors))

    def magnitude(self) -> float:
        return max(factor.magnitude() for factor in self.factors)

    def violation(self, point: Array) -> float:
        return max(factor.violation(part) for factor, part in self._parts(point))
