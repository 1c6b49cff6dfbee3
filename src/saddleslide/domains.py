"""Closed convex sets: projection, support function, radius, diameter, membership.

A block of the metric carries one weight, so the projection in the P-norm is the Euclidean one block by block.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, final

import numpy as np

from saddleslide.arrays.base import Array, Shape, as_floats, as_number, as_real, as_shape, blank, frozen, split, zeros
from saddleslide.arrays.kinds import Built
from saddleslide.errors import InputError, raise_all

__all__ = ["Ball", "Box", "Domain", "FullSpace", "NonNegative", "Product", "Simplex"]


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

    @abstractmethod
    def project(self, point: Array, out: Array | None = None) -> Array:
        """Nearest point of the set; `out` may be `point` itself."""

    @abstractmethod
    def maximizer(self, direction: Array) -> Array:
        """A point where <direction, x> is largest; infinite entries where it is not attained."""

    @abstractmethod
    def squared_radius(self, point: Array) -> float:
        """Omega: the largest squared distance from `point` to a point of the set."""

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

    def contains(self, point: Array, tolerance: float = 0.0) -> bool:
        """Whether `point` lies in the set, up to `tolerance`."""
        point = as_floats(point)
        return point.shape == self.shape and bool(np.isfinite(point).all()) and self.violation(point) <= tolerance

    def _out(self, out: Array | None, point: Array) -> Array:
        return blank(self.shape, point) if out is None else out


@final
class FullSpace(Domain):
    """All real arrays of a shape.

    Examples
    --------
    >>> FullSpace((4, 4)).bounded
    False
    """

    def __init__(self, shape: Any) -> None:
        self.shape = as_shape(shape, "FullSpace")

    def __repr__(self) -> str:
        return f"FullSpace({self.shape})"

    def project(self, point: Array, out: Array | None = None) -> Array:
        out = self._out(out, point)
        np.copyto(out, point)
        return out

    def maximizer(self, direction: Array) -> Array:
        with np.errstate(invalid="ignore"):
            return np.where(direction == 0.0, 0.0, np.sign(direction) * np.inf)

    def squared_radius(self, point: Array) -> float:
        return self.diameter()

    def diameter(self) -> float:
        return math.inf if self.size else 0.0

    def magnitude(self) -> float:
        return self.diameter()

    def violation(self, point: Array) -> float:
        return 0.0


@final
class Box(Domain):
    """Arrays with lower <= x <= upper, entry by entry. Sides may be scalars, arrays or infinite.

    Examples
    --------
    >>> import numpy as np
    >>> Box(-1.0, [1.0, 2.0]).project(np.array([-3.0, 1.5]))
    array([-1. ,  1.5])
    """

    def __init__(self, lower: Any, upper: Any, shape: Any = None) -> None:
        low, high = as_real(lower, "Box: lower", finite=False), as_real(upper, "Box: upper", finite=False)
        if shape is None and not (low.ndim or high.ndim):
            raise InputError("Box: shape is missing and both sides are numbers; pass shape=.")
        if shape is None and low.ndim and high.ndim and low.shape != high.shape:
            raise InputError(f"Box: lower has shape {low.shape}, upper {high.shape}; expected equal shapes or numbers.")
        self.shape = as_shape((low.shape or high.shape) if shape is None else shape, "Box")
        for name, side in (("lower", low), ("upper", high)):
            if side.ndim and side.shape != self.shape:
                raise InputError(f"Box: {name} has shape {side.shape}; expected a number or shape {self.shape}.")
        self.lower, self.upper = np.broadcast_to(low, self.shape), np.broadcast_to(high, self.shape)
        # Scalars make clipping several times cheaper, so keep them as they came.
        self._clip = (float(low) if low.ndim == 0 else low, float(high) if high.ndim == 0 else high)
        complaints = []
        if worst := int((self.lower > self.upper).sum()):
            complaints.append(f"lower > upper in {worst} of {self.size} entries; expected lower <= upper.")
        if empty := int(((self.lower == np.inf) | (self.upper == -np.inf)).sum()):
            complaints.append(f"{empty} sides leave no finite point; expected lower < inf and upper > -inf.")
        raise_all("Box", complaints)

    @property
    def uniform(self) -> tuple[float, float] | None:
        """Both sides where they are numbers, the same for all entries; else None."""
        low, high = self._clip
        return (low, high) if isinstance(low, float) and isinstance(high, float) else None

    def __repr__(self) -> str:
        low, high = (side if isinstance(side, float) else "array" for side in self._clip)
        return f"Box({low}, {high}, shape={self.shape})"

    def project(self, point: Array, out: Array | None = None) -> Array:
        out = self._out(out, point)
        np.maximum(point, self._clip[0], out=out)
        np.minimum(out, self._clip[1], out=out)
        return out

    def maximizer(self, direction: Array) -> Array:
        return np.where(direction > 0, self.upper, np.where(direction < 0, self.lower, self._nearest_to_zero))

    @cached_property
    def _nearest_to_zero(self) -> Array:
        return frozen(np.clip(0.0, self.lower, self.upper))

    def squared_radius(self, point: Array) -> float:
        low, high = self._clip
        farthest, other = np.abs(high - point), point - low
        np.maximum(farthest, np.abs(other, out=other), out=farthest)
        return float(np.sum(np.multiply(farthest, farthest, out=farthest)))

    def diameter(self) -> float:
        return self._sizes[0]

    def magnitude(self) -> float:
        return self._sizes[1]

    @cached_property
    def _sizes(self) -> tuple[float, float]:
        # Every forecast asks for both, many times.
        largest = np.max(np.maximum(np.abs(self.lower), np.abs(self.upper)), initial=0.0)
        return float(np.linalg.norm(self.upper - self.lower)), float(largest)

    def violation(self, point: Array) -> float:
        return float(np.max(np.maximum(self.lower - point, point - self.upper), initial=0.0))


def NonNegative(shape: Any) -> Box:
    """Arrays with x >= 0, entry by entry.

    Examples
    --------
    >>> import numpy as np
    >>> NonNegative(3).project(np.array([1.0, -2.0, 0.0]))
    array([1., 0., 0.])
    """
    return Box(0.0, np.inf, shape=shape)


@final
class Ball(Domain):
    """Arrays within Euclidean distance `radius` of `center` (the origin unless given).

    Examples
    --------
    >>> import numpy as np
    >>> Ball(1.0, shape=2).project(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """

    def __init__(self, radius: float, shape: Any = None, center: Any = None) -> None:
        self.ball_radius = as_number(radius, "Ball: radius", minimum=0.0)
        if shape is None and center is None:
            raise InputError("Ball: shape is missing; pass shape= or center=.")
        self.shape = as_shape(np.shape(center) if shape is None else shape, "Ball")
        self.center = None if center is None else as_real(center, "Ball: center", self.shape)

    def __repr__(self) -> str:
        return f"Ball({self.ball_radius}, shape={self.shape}{'' if self.center is None else ', center=array'})"

    def _offset(self, point: Array) -> Array:
        return point if self.center is None else point - self.center

    def project(self, point: Array, out: Array | None = None) -> Array:
        out = self._out(out, point)
        offset = self._offset(point)
        # An overflow is met below.
        with np.errstate(over="ignore"):
            norm = float(np.linalg.norm(offset))
        if norm <= self.ball_radius:
            np.copyto(out, point)
            return out
        if math.isinf(norm):
            offset = offset / float(np.max(np.abs(offset)))
            norm = float(np.linalg.norm(offset))
        np.multiply(offset, self.ball_radius / norm, out=out)
        if self.center is not None:
            out += self.center
        return out

    def maximizer(self, direction: Array) -> Array:
        # Divide by the largest entry first: the square of a huge direction would overflow.
        scale = float(np.max(np.abs(direction), initial=0.0))
        unit = direction / scale if scale > 0.0 else zeros(self.shape, direction)
        norm = float(np.linalg.norm(unit))
        result: Array = unit * (self.ball_radius / norm) if norm > 0.0 else zeros(self.shape, direction)
        return result if self.center is None else result + self.center

    def squared_radius(self, point: Array) -> float:
        return (self.ball_radius + float(np.linalg.norm(self._offset(point)))) ** 2 if self.size else 0.0

    def diameter(self) -> float:
        return 2.0 * self.ball_radius if self.size else 0.0

    def magnitude(self) -> float:
        middle = 0.0 if self.center is None else float(np.max(np.abs(self.center), initial=0.0))
        return middle + self.ball_radius

    def violation(self, point: Array) -> float:
        return max(0.0, float(np.linalg.norm(self._offset(point))) - self.ball_radius)


@final
class Simplex(Domain):
    """Probability vectors of length n: x >= 0 with sum 1.

    Examples
    --------
    >>> import numpy as np
    >>> Simplex(3).project(np.array([0.5, 0.5, 3.0]))
    array([0., 0., 1.])
    """

    def __init__(self, n: Any) -> None:
        self.shape = as_shape(n, "Simplex")
        if self.size == 0:
            raise InputError(f"Simplex: n is {n!r}; expected at least 1 entry.")

    def __repr__(self) -> str:
        return f"Simplex({self.shape})"

    def project(self, point: Array, out: Array | None = None) -> Array:
        out = self._out(out, point)
        flat = point.ravel()
        descending = np.sort(flat)[::-1]
        # Shift by the largest entry: cumulative sums of huge equal entries would lose the 1.
        partial = np.cumsum(descending - descending[0])
        thresholds = (partial - 1.0) / self._counts
        active = int(np.count_nonzero(descending - descending[0] > thresholds))
        np.maximum(point - descending[0] - thresholds[max(active, 1) - 1], 0.0, out=out)
        out /= out.sum()
        return out

    @cached_property
    def _counts(self) -> Array:
        return frozen(np.arange(1.0, self.size + 1.0))

    def maximizer(self, direction: Array) -> Array:
        vertex = zeros(self.size, direction)
        vertex[int(np.argmax(direction))] = 1.0
        return vertex.reshape(self.shape)

    def squared_radius(self, point: Array) -> float:
        # The farthest point of a polytope is a vertex: |e_i - p|^2 = |p - e_j|^2 + 2 (p_j - p_i).
        offset = point.ravel().copy()
        offset[int(np.argmin(offset))] -= 1.0
        return float(np.vdot(offset, offset))

    def diameter(self) -> float:
        return math.sqrt(2.0) if self.size > 1 else 0.0

    def magnitude(self) -> float:
        return 1.0

    def violation(self, point: Array) -> float:
        return max(float(np.max(-point)), abs(float(point.sum()) - 1.0), 0.0)


@final
class Product(Domain):
    """Cartesian product; points are flat vectors, one factor after the other.

    Examples
    --------
    >>> Product(Box(-1.0, 1.0, shape=(2, 2)), Simplex(3)).shape
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

    def _parts(self, point: Array) -> zip[tuple[Domain, Array]]:
        return zip(self.factors, self.split(point), strict=True)

    def maximizer(self, direction: Array) -> Array:
        return np.concatenate([factor.maximizer(part).ravel() for factor, part in self._parts(direction)])

    def squared_radius(self, point: Array) -> float:
        return sum(factor.squared_radius(part) for factor, part in self._parts(point))

    def diameter(self) -> float:
        return math.hypot(*(factor.diameter() for factor in self.factors))

    def magnitude(self) -> float:
        return max(factor.magnitude() for factor in self.factors)

    def violation(self, point: Array) -> float:
        return max(factor.violation(part) for factor, part in self._parts(point))


def __dir__() -> list[str]:
    return __all__
