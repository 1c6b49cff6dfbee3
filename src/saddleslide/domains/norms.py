"""Balls: Euclidean, of groups of entries, of the sum of absolute values."""

from __future__ import annotations

import math
import string
from functools import cached_property
from numbers import Integral
from typing import Any, final

import numpy as np

from saddleslide.arrays.base import (
    Array,
    as_floats,
    as_number,
    as_pairs,
    as_real,
    as_shape,
    beside,
    length_of,
    on_host,
    zeros,
)
from saddleslide.domains.base import Domain
from saddleslide.domains.simplices import nearest_weights
from saddleslide.errors import InputError

# No ball is smaller, so that nothing is divided by 0; what has squares that are no longer exact; and what is so large
# that all norms beside it whose squares vanish are nothing.
_TINY, _SMALL, _EXACT = 1e-300, 1e-140, 1e-100


@final
class Ball(Domain):
    """Arrays within Euclidean distance `radius` of `center` (the origin unless given), complex if `center` is.

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
        middle, self.is_complex = (None, False) if center is None else as_pairs(center, "Ball: center")
        self.shape = as_shape(np.shape(center) if shape is None else shape, "Ball") + (2,) * self.is_complex
        self.center = None if middle is None else as_real(middle, "Ball: center", self.shape)

    def __repr__(self) -> str:
        return f"Ball({self.ball_radius}, shape={self.shape}{'' if self.center is None else ', center=array'})"

    def shrunk(self, scale: float) -> Domain:
        center = None if self.center is None else self.center / scale
        return Ball(self.ball_radius / scale, self.shape, center)

    def of_pairs(self) -> Domain:
        if self.is_complex:
            return self
        center = None if self.center is None else self.center.astype(np.complex128)
        made = Ball(self.ball_radius, self.shape if center is not None else (*self.shape, 2), center)
        made.is_complex = True
        return made

    def _offset(self, point: Array) -> Array:
        return point if self.center is None else point - self.center

    def project(self, point: Array, out: Array | None = None) -> Array:
        out = self._out(out, point)
        offset = self._offset(point)
        # An overflow is met below.
        with np.errstate(over="ignore"):
            norm = length_of(offset)
        if norm <= self.ball_radius:
            np.copyto(out, point)
            return out
        if math.isinf(norm):
            offset = offset / float(np.max(np.abs(offset)))
            norm = length_of(offset)
        np.multiply(offset, self.ball_radius / norm, out=out)
        if self.center is not None:
            out += self.center
        return out

    def maximizer(self, direction: Array) -> Array:
        # Divide by the largest entry first: the square of a huge direction would overflow.
        scale = float(np.max(np.abs(direction), initial=0.0))
        unit = direction / scale if scale > 0.0 else zeros(self.shape, direction)
        norm = length_of(unit)
        result: Array = unit * (self.ball_radius / norm) if norm > 0.0 else zeros(self.shape, direction)
        return result if self.center is None else result + self.center

    def squared_radius(self, point: Array) -> float:
        return (self.ball_radius + length_of(self._offset(point))) ** 2 if self.size else 0.0

    def diameter(self) -> float:
        return 2.0 * self.ball_radius if self.size else 0.0

    def magnitude(self) -> float:
        middle = 0.0 if self.center is None else float(np.max(np.abs(self.center), initial=0.0))
        return middle + self.ball_radius

    def violation(self, point: Array) -> float:
        return max(0.0, length_of(self._offset(point)) - self.ball_radius)


@final
class GroupBalls(Domain):
    """Arrays whose groups have a Euclidean norm of at most `radius`: |x_g| <= r_g for every group g.

    A group is what lies along an axis, or along several: with `axis=0`, y of shape (2, 512, 512) has a group of two
    numbers at every pixel. This is the dual set of isotropic total variation.

    Parameters
    ----------
    radius : float or array
        One number, or one for each group: an array over the axes that are left, >= 0.
    axis : int or tuple of int
        Axis or axes along which a group lies.
    shape : tuple of int
        Of the points.

    Examples
    --------
    >>> import numpy as np
    >>> GroupBalls(1.0, axis=0, shape=(2, 3)).project(np.array([[3.0, 0.3, 0.0], [4.0, 0.4, -2.0]]))
    array([[ 0.6,  0.3,  0. ],
           [ 0.8,  0.4, -1. ]])
    """

    def __init__(self, radius: Any, axis: int | tuple[int, ...] = 0, shape: Any = None) -> None:
        if shape is None:
            raise InputError("GroupBalls: shape is missing; pass shape=.")
        self.shape = as_shape(shape, "GroupBalls")
        axes, count = axis if isinstance(axis, tuple | list) else (axis,), len(self.shape)
        if not all(isinstance(k, Integral) and not isinstance(k, bool) and -count <= k < count for k in axes):
            raise InputError(f"GroupBalls: axis is {axis!r}; expected axes of an array of shape {self.shape}.")
        self.axis = tuple(sorted({int(k) % count for k in axes}))
        if not axes or len(self.axis) != len(axes):
            raise InputError(f"GroupBalls: axis is {axis!r}; expected one axis or several different ones.")
        groups = tuple(n for k, n in enumerate(self.shape) if k not in self.axis)
        radii = as_real(radius, "GroupBalls: radius")
        if radii.ndim and radii.shape != groups:
            raise InputError(f"GroupBalls: radius has shape {radii.shape}; expected a number or shape {groups}.")
        if (radii < 0.0).any():
            raise InputError("GroupBalls: radius has negative entries; expected numbers >= 0.")
        # A number makes every pass cheaper.
        self.radii: Array | float = radii if radii.ndim else float(radii)
        self._groups = math.prod(groups)
        letters = string.ascii_lowercase[:count]
        self._products = f"{letters},{letters}->{''.join(x for k, x in enumerate(letters) if k not in self.axis)}"

    def __repr__(self) -> str:
        axis = self.axis[0] if len(self.axis) == 1 else self.axis
        return f"GroupBalls({'array' if np.ndim(self.radii) else self.radii}, axis={axis}, shape={self.shape})"

    def shrunk(self, scale: float) -> Domain:
        return GroupBalls(self.radii / scale, self.axis, self.shape)

    def of_pairs(self) -> Domain:
        if self.is_complex:
            return self
        made = GroupBalls(self.radii, (*self.axis, len(self.shape)), (*self.shape, 2))
        made.is_complex = True
        return made

    def norms(self, point: Array) -> Array:
        """The norm of every group: an array over the axes that are left."""
        with np.errstate(over="ignore"):
            found = self._squares(point)
        if found.ndim and found.size and math.isinf(float(np.max(found))) and np.isfinite(point).all():
            # Squares overflow.
            scale = float(np.max(np.abs(point)))
            return np.asarray(np.sqrt(self._squares(point / scale)) * scale)
        return np.sqrt(found, out=found)

    def _squares(self, point: Array) -> Array:
        """Sums of squares, in one pass and without an array of the squares where NumPy has one."""
        if not on_host(point):
            return as_floats(np.sum(point * point, axis=self.axis))
        return np.asarray(np.einsum(self._products, point, point))

    def _spread(self, groups: Array) -> Array:
        """One number for each group, in a shape that goes with points."""
        return groups.reshape(tuple(1 if k in self.axis else n for k, n in enumerate(self.shape)))

    def _scale_groups(self, point: Array, factors: Array, out: Array | None = None) -> Array:
        return np.multiply(point, self._spread(factors), out=self._out(out, point))

    def project(self, point: Array, out: Array | None = None) -> Array:
        norms = self.norms(point)
        radii = beside(norms, self.radii)
        # Groups inside keep their bits: r / r is 1. A ball that is a point has no such quotient.
        np.maximum(norms, np.maximum(radii, _TINY), out=norms)
        return self._scale_groups(point, np.divide(radii, norms, out=norms), out)

    def support_terms(self, direction: Array) -> tuple[Array, int] | None:
        if not isinstance(self.radii, float):
            return None
        norms = self.norms(direction)
        if not _EXACT <= float(np.max(norms, initial=0.0)) < math.inf:
            return None
        norms *= self.radii
        return norms.reshape(-1), self.size // max(self._groups, 1) + 2

    def maximizer(self, direction: Array) -> Array:
        norms = self.norms(direction)
        if (
            float(np.max(norms, initial=0.0)) < _SMALL
            and (scale := float(np.max(np.abs(direction), initial=0.0))) > 0.0
        ):
            # Squares vanish.
            return self.maximizer(direction / scale)
        # Norms of long groups are rounded more than an error bar has room for.
        outward = 1.0 + 2.0**-53 * (self.size // max(self._groups, 1))
        norms = np.where(norms > 0.0, norms, 1.0)
        return self._scale_groups(direction, np.divide(outward * beside(norms, self.radii), norms, out=norms))

    def squared_radius(self, point: Array) -> float:
        norms = self.norms(point)
        return float(np.sum((norms + beside(norms, self.radii)) ** 2)) if self.size else 0.0

    def diameter(self) -> float:
        return self._sizes[0]

    def magnitude(self) -> float:
        return self._sizes[1]

    @cached_property
    def _sizes(self) -> tuple[float, float]:
        if self.size == 0:
            return 0.0, 0.0
        count = 1 if np.ndim(self.radii) else self._groups
        return 2.0 * math.sqrt(count) * length_of(self.radii), float(np.max(self.radii))

    def violation(self, point: Array) -> float:
        norms = self.norms(point)
        return float(np.max(norms - beside(norms, self.radii), initial=0.0))


@final
class L1Ball(Domain):
    """Arrays whose absolute values sum up to at most `radius`.

    Examples
    --------
    >>> import numpy as np
    >>> L1Ball(1.0, shape=3).project(np.array([2.0, -1.5, 0.1]))
    array([ 0.75, -0.25,  0.  ])
    """

    def __init__(self, radius: float, shape: Any) -> None:
        self.ball_radius = as_number(radius, "L1Ball: radius", 0.0)
        self.shape = as_shape(shape, "L1Ball")

    def __repr__(self) -> str:
        return f"L1Ball({self.ball_radius}, shape={self.shape})"

    def shrunk(self, scale: float) -> Domain:
        return L1Ball(self.ball_radius / scale, self.shape)

    def project(self, point: Array, out: Array | None = None) -> Array:
        out, sizes = self._out(out, point), np.abs(point)
        if float(np.sum(sizes)) <= self.ball_radius:
            np.copyto(out, point)
            return out
        return np.copysign(nearest_weights(sizes, self.ball_radius), point, out=out)

    def maximizer(self, direction: Array) -> Array:
        vertex = zeros(self.size, direction)
        if self.size:
            flat = direction.ravel()
            largest = int(np.argmax(np.abs(flat)))
            vertex[largest] = math.copysign(self.ball_radius, float(flat[largest]))
        return vertex.reshape(self.shape)

    def squared_radius(self, point: Array) -> float:
        # The farthest point of a polytope is a vertex.
        offset = point - self.maximizer(-point)
        return float(np.vdot(offset, offset))

    def diameter(self) -> float:
        return 2.0 * self.ball_radius if self.size else 0.0

    def magnitude(self) -> float:
        return self.ball_radius if self.size else 0.0

    def violation(self, point: Array) -> float:
        return max(float(np.sum(np.abs(point))) - self.ball_radius, 0.0)
