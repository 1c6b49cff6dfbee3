"""Matrices with bounded singular values."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, final

import numpy as np

from saddleslide.arrays.base import Array, as_number, as_shape, beside
from saddleslide.arrays.kinds import to_host
from saddleslide.domains.base import Domain
from saddleslide.domains.simplices import nearest_weights
from saddleslide.errors import InputError

_EPS = 2.0**-52


class SingularBall(Domain):
    """Matrices whose singular values have a norm of at most `radius`."""

    projects_on_host = True

    def __init__(self, radius: float, shape: Any) -> None:
        name = type(self).__name__
        self.ball_radius = as_number(radius, f"{name}: radius", 0.0)
        self.shape = as_shape(shape, name)
        if len(self.shape) != 2 or self.size == 0:
            raise InputError(f"{name}: shape is {shape!r}; expected (rows, columns), both at least 1.")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.ball_radius}, shape={self.shape})"

    def shrunk(self, scale: float) -> Domain:
        return type(self)(self.ball_radius / scale, self.shape)

    @abstractmethod
    def norm(self, values: Array) -> float:
        """The norm of singular values that the radius bounds; at most their sum."""

    @abstractmethod
    def nearest_values(self, values: Array) -> Array:
        """The nearest singular values with a norm of at most the radius."""

    def project(self, point: Array, out: Array | None = None) -> Array:
        out = self._out(out, point)
        if not np.isfinite(point).all():
            out.fill(math.nan)
            return out
        left, values, right = np.linalg.svd(point, full_matrices=False)
        inside = self.norm(values) <= self.ball_radius
        np.copyto(out, point if inside else (left * self.nearest_values(values)) @ right)
        return out

    def magnitude(self) -> float:
        return self.ball_radius

    def violation(self, point: Array) -> float:
        return max(self.norm(_singular_values(point)) - self.ball_radius, 0.0)


@final
class SpectralBall(SingularBall):
    """Matrices whose largest singular value is at most `radius`.

    Examples
    --------
    >>> import numpy as np
    >>> SpectralBall(1.0, shape=(2, 2)).project(np.diag([3.0, 0.5])).round(12)
    array([[1. , 0. ],
           [0. , 0.5]])
    """

    def norm(self, values: Array) -> float:
        return float(np.max(values))

    def nearest_values(self, values: Array) -> Array:
        return np.minimum(values, self.ball_radius)

    def maximizer(self, direction: Array) -> Array:
        left, _, right = np.linalg.svd(direction, full_matrices=False)
        # Larger by what the decomposition may have lost of the sum of the singular values.
        outward = self.ball_radius * (1.0 + 2.0 * sum(self.shape) * _EPS)
        found: Array = beside(direction, (outward * left) @ right)
        return found

    def squared_radius(self, point: Array) -> float:
        return float(np.sum((_singular_values(point) + self.ball_radius) ** 2))

    def diameter(self) -> float:
        return 2.0 * self.ball_radius * math.sqrt(min(self.shape))


@final
class NuclearBall(SingularBall):
    """Matrices whose singular values sum up to at most `radius`.

    Examples
    --------
    >>> import numpy as np
    >>> NuclearBall(1.0, shape=(2, 2)).project(np.diag([3.0, 0.5])).round(12)
    array([[1., 0.],
           [0., 0.]])
    """

    def norm(self, values: Array) -> float:
        return float(np.sum(values))

    def nearest_values(self, values: Array) -> Array:
        return nearest_weights(values, self.ball_radius)

    def maximizer(self, direction: Array) -> Array:
        left, _, right = np.linalg.svd(direction, full_matrices=False)
        outward = self.ball_radius * (1.0 + 2.0 * sum(self.shape) * _EPS)
        found: Array = beside(direction, np.outer(outward * left[:, 0], right[0]))
        return found

    def squared_radius(self, point: Array) -> float:
        # From the largest singular pair, of the other sign.
        values = _singular_values(point)
        values[0] += self.ball_radius
        return float(np.vdot(values, values))

    def diameter(self) -> float:
        return 2.0 * self.ball_radius


def _singular_values(point: Array) -> Array:
    matrix = to_host(point)
    values: Array = np.linalg.svd(matrix, compute_uv=False) if np.isfinite(matrix).all() else np.full(1, math.inf)
    return values
