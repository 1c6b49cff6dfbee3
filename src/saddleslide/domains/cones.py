"""Cones of conic programs: of second order, and of semidefinite matrices."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, final

import numpy as np

from saddleslide.arrays.arguments import as_whole
from saddleslide.arrays.base import Array, length_of, zeros
from saddleslide.arrays.kinds import to_host
from saddleslide.domains.base import Domain, Unbounded, infinite

_EPS = 2.0**-52


class Cone(Unbounded):
    """A closed convex cone."""

    @abstractmethod
    def is_polar(self, direction: Array) -> bool:
        """Whether <direction, x> <= 0 for all points of the cone, whatever rounding has done."""

    def maximizer(self, direction: Array) -> Array:
        return zeros(self.shape, direction) if self.is_polar(direction) else infinite(direction)

    def recession(self, direction: Array) -> Array:
        return self.project(direction)

    def shrunk(self, scale: float) -> Domain:
        return self

    def polar(self) -> Domain:
        return Polar(self)


@final
class Polar(Cone):
    """The y with <y, x> <= 0 for all x of a cone: where the multipliers of a constraint lie.

    Examples
    --------
    >>> import numpy as np
    >>> Polar(SecondOrderCone(3)).project(np.array([0.0, 3.0, 4.0]))
    array([-2.5,  1.5,  2. ])
    """

    def __init__(self, cone: Cone) -> None:
        self.cone, self.shape, self.projects_on_host = cone, cone.shape, cone.projects_on_host

    def __repr__(self) -> str:
        return f"Polar({self.cone!r})"

    def project(self, point: Array, out: Array | None = None) -> Array:
        # Moreau: a point is the sum of its projections onto both cones.
        return np.subtract(point, self.cone.project(point), out=self._out(out, point))

    def is_polar(self, direction: Array) -> bool:
        return self.cone.violation(direction) <= 0.0

    def violation(self, point: Array) -> float:
        return _norm(self.cone.project(point))


@final
class SecondOrderCone(Cone):
    """Vectors of length n with |(x_1, ..., x_(n-1))| <= x_0: the first entry bounds the norm of the others.

    Examples
    --------
    >>> import numpy as np
    >>> SecondOrderCone(3).project(np.array([0.0, 3.0, 4.0]))
    array([2.5, 1.5, 2. ])
    """

    def __init__(self, n: Any) -> None:
        self.shape = (as_whole(n, "SecondOrderCone: n", 1),)

    def __repr__(self) -> str:
        return f"SecondOrderCone({self.size})"

    def project(self, point: Array, out: Array | None = None) -> Array:
        out = self._out(out, point)
        first, norm = float(point[0]), _norm(point[1:])
        if norm <= first:
            np.copyto(out, point)
        elif norm <= -first:
            out.fill(0.0)
        else:
            half = 0.5 * first + 0.5 * norm
            np.multiply(point, half / norm if norm > 0.0 else 0.0, out=out)
            out[0] = half
        return out

    def is_polar(self, direction: Array) -> bool:
        return _norm(direction[1:]) * (1.0 + self.size * _EPS) <= -float(direction[0])

    def violation(self, point: Array) -> float:
        return max(_norm(point[1:]) - float(point[0]), 0.0)


@final
class PSDCone(Cone):
    """Symmetric matrices of n rows without negative eigenvalues.

    Points are full matrices; the projection symmetrises them first.

    Examples
    --------
    >>> import numpy as np
    >>> PSDCone(2).project(np.array([[2.0, 0.0], [0.0, -3.0]]))
    array([[2., 0.],
           [0., 0.]])
    """

    projects_on_host = True

    def __init__(self, n: Any) -> None:
        rows = as_whole(n, "PSDCone: n", 1)
        self.shape = (rows, rows)

    def __repr__(self) -> str:
        return f"PSDCone({self.shape[0]})"

    def project(self, point: Array, out: Array | None = None) -> Array:
        out, matrix = self._out(out, point), _symmetric(point)
        if not np.isfinite(matrix).all():
            out.fill(math.nan)
            return out
        values, vectors = np.linalg.eigh(matrix)
        if values[0] < 0.0:
            matrix = _symmetric((vectors * np.maximum(values, 0.0)) @ vectors.T)
        np.copyto(out, matrix)
        return out

    def is_polar(self, direction: Array) -> bool:
        values = np.linalg.eigvalsh(_symmetric(direction))
        return float(values[-1]) <= -4.0 * self.shape[0] * _EPS * float(np.max(np.abs(values)))

    def violation(self, point: Array) -> float:
        matrix, point = _symmetric(point), to_host(point)
        if not np.isfinite(matrix).all():
            return math.inf
        return max(-float(np.linalg.eigvalsh(matrix)[0]), float(np.max(np.abs(point - matrix))), 0.0)


def _symmetric(point: Array) -> Array:
    matrix: Array = to_host(point)
    return 0.5 * matrix + 0.5 * matrix.T


def _norm(vector: Array) -> float:
    """Euclidean norm, also where squares overflow."""
    scale = float(np.max(np.abs(vector), initial=0.0))
    return scale * length_of(vector / scale) if 0.0 < scale < math.inf else scale
