"""Closed convex sets: projection, support function, radius, diameter, membership.

A block of the metric carries one weight, so the projection in the P-norm is the Euclidean one block by block.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from saddleslide.arrays.base import Array, Shape, as_floats, blank, zeros
from saddleslide.arrays.kinds import ArrayKind, Built
from saddleslide.errors import InputError

if TYPE_CHECKING:
    from saddleslide.domains.program import Program


class Domain(Built, ABC):
    """A closed convex set of arrays of one shape.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> box = ss.domains.Box(0.0, 1.0, shape=2)
    >>> box.contains(np.array([0.5, 1.5])), box.support(np.array([3.0, -4.0]))
    (False, 3.0)
    """

    shape: Shape
    # Whether the projection is NumPy's or SciPy's alone, also for arrays of other libraries.
    projects_on_host = False
    # Whether its points are complex: pairs of real numbers along the last axis.
    is_complex: bool = False

    @property
    def size(self) -> int:
        """Number of entries of a point."""
        return math.prod(self.shape)

    @property
    def bounded(self) -> bool:
        """Whether the diameter is finite."""
        return math.isfinite(self.diameter())

    @property
    def blocks(self) -> tuple[Domain, ...]:
        """The factors that may carry metric weights of their own: the set itself unless it is a Product."""
        return (self,)

    def stays_on_host(self, kind: ArrayKind) -> tuple[str, ...]:
        return (f"{type(self).__name__}: its projection",) if self.projects_on_host else ()

    @property
    def own_code(self) -> bool:
        """Whether functions of the caller's say what the set is."""
        return False

    def of_pairs(self) -> Domain:
        """The same set of complex arrays of its shape s, as real ones of shape (*s, 2)."""
        if self.is_complex:
            return self
        raise InputError(
            f"{self!r}: is no set of complex arrays; expected FullSpace, Ball or GroupBalls for a complex x or K x."
        )

    @abstractmethod
    def project(self, point: Array, out: Array | None = None) -> Array:
        """Nearest point of the set; `out` may be `point` itself."""

    @abstractmethod
    def maximizer(self, direction: Array) -> Array:
        """A point where <direction, x> is largest; infinite entries where it is not attained.

        Bounds rest on it: it makes up for what a decomposition may have lost, and may lie beside the set by as much.
        """

    @abstractmethod
    def squared_radius(self, point: Array) -> float:
        """Omega: the largest squared distance from `point` to a point of the set, or a bound where none is known."""

    @cached_property
    def radius_at_zero(self) -> float:
        """Largest norm of a point of the set, computed once: every certificate asks."""
        return self.radius(np.zeros(self.shape))

    def radius(self, point: Array) -> float:
        """Largest distance from `point` to a point of the set."""
        return math.sqrt(self.squared_radius(point))

    @abstractmethod
    def diameter(self) -> float:
        """Largest distance between two points of the set."""

    @abstractmethod
    def magnitude(self) -> float:
        """Largest absolute entry of any point."""

    @abstractmethod
    def violation(self, point: Array) -> float:
        """Largest amount by which `point` breaks a constraint; 0 inside."""

    def support(self, direction: Array) -> float:
        """Support function: sup of <direction, x> over the set."""
        maximizer = self.maximizer(direction)
        return math.fsum((direction * np.where(direction == 0.0, 0.0, maximizer)).ravel().tolist())

    def support_terms(self, direction: Array) -> tuple[Array, int] | None:
        """Numbers >= 0 whose sum is the support function, and how many roundings are in each of them.

        None where they are no cheaper than a maximizer, or squares vanish or overflow.
        """
        return None

    def recession(self, direction: Array) -> Array:
        """A direction along which the set has no end, as much as possible of the given one; 0 where there is none."""
        return zeros(self.shape, direction)

    def shrunk(self, scale: float) -> Domain | None:
        """The points y with scale * y in the set, scale > 0; None where they have no class of their own."""
        return None

    def polar(self) -> Domain | None:
        """The y with <y, x> <= 0 for all x of a cone; None of other sets."""
        return None

    def as_rows(self) -> tuple[Any, Domain] | None:
        """A matrix and a box, where the set is all x that the matrix takes into the box; else None."""
        return None

    def as_program(self) -> Program | None:
        """The set as a box with equations, where it is one."""
        return None

    def contains(self, point: Array, tolerance: float = 0.0) -> bool:
        """Whether `point` lies in the set, up to `tolerance`."""
        point = as_floats(point)
        return point.shape == self.shape and bool(np.isfinite(point).all()) and self.violation(point) <= tolerance

    def _out(self, out: Array | None, point: Array) -> Array:
        return blank(self.shape, point) if out is None else out


class Unbounded(Domain):
    """A set without end."""

    def squared_radius(self, point: Array) -> float:
        return self.diameter()

    def diameter(self) -> float:
        return math.inf

    def magnitude(self) -> float:
        return self.diameter()


def infinite(direction: Array) -> Array:
    """What `maximizer` returns where <direction, x> has no largest value."""
    with np.errstate(invalid="ignore"):
        return np.where(direction == 0.0, 0.0, np.sign(direction) * np.inf)
