"""Sets entry by entry: everything, boxes, x >= 0."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, final

import numpy as np

from saddleslide.arrays.base import Array, as_real, as_shape, frozen, length_of
from saddleslide.domains.base import Domain, Unbounded, infinite
from saddleslide.domains.program import Program
from saddleslide.errors import InputError, raise_all


@final
class FullSpace(Unbounded):
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

    def shrunk(self, scale: float) -> Domain:
        return self

    def of_pairs(self) -> Domain:
        if self.is_complex:
            return self
        made = FullSpace((*self.shape, 2))
        made.is_complex = True
        return made

    def project(self, point: Array, out: Array | None = None) -> Array:
        out = self._out(out, point)
        np.copyto(out, point)
        return out

    def maximizer(self, direction: Array) -> Array:
        return infinite(direction)

    def as_program(self) -> Program:
        return Program.on(self.size)

    def diameter(self) -> float:
        return math.inf if self.size else 0.0

    def recession(self, direction: Array) -> Array:
        return direction

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

    def shrunk(self, scale: float) -> Domain:
        return Box(self.lower / scale, self.upper / scale)

    def meet(self, other: Box) -> Box | None:
        """What two boxes have in common; None where that is nothing.

        Examples
        --------
        >>> Box(0.0, 2.0, shape=3).meet(Box(1.0, 3.0, shape=3))
        Box(1.0, 2.0, shape=(3,))
        """
        lower, upper = np.maximum(self._clip[0], other._clip[0]), np.minimum(self._clip[1], other._clip[1])
        return None if np.any(lower > upper) else Box(lower, upper, shape=self.shape)

    def project(self, point: Array, out: Array | None = None) -> Array:
        out = self._out(out, point)
        np.maximum(point, self._clip[0], out=out)
        np.minimum(out, self._clip[1], out=out)
        return out

    def as_program(self) -> Program:
        return Program.on(self.size, self.lower, self.upper)

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
        return length_of(self.upper - self.lower), float(largest)

    def recession(self, direction: Array) -> Array:
        endless = np.where(direction > 0.0, self.upper == np.inf, self.lower == -np.inf)
        return np.where(endless, direction, 0.0)

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
