"""The user's own sets, given by their projection."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, final

from saddleslide.arrays.base import Array, as_number, as_shape, length_of, receive
from saddleslide.arrays.kinds import NUMPY
from saddleslide.domains.base import Domain, infinite
from saddleslide.errors import raise_all
from saddleslide.watcher import lend


@final
class Custom(Domain):
    """A closed convex set given by its projection.

    Bounds rest on the set being what this code says, so they name it: a result is `MET_AS_DECLARED` and never `SOLVED`.

    Parameters
    ----------
    project : callable
        point -> the nearest point of the set. The argument is read-only.
    shape : int or tuple of int
        Of the points.
    support : callable, optional
        direction -> a point of the set where <direction, x> is largest. Without it the support function is unknown, and
        no linear function has a certified minimum on the set.
    radius : float, optional
        No point of the set has a larger norm. Without it the set counts as unbounded.

    Examples
    --------
    >>> import numpy as np
    >>> ordered = Custom(project=lambda x: np.sort(x) if x[0] <= x[1] else np.full(2, x.mean()), shape=2)
    >>> ordered.project(np.array([3.0, 1.0])), ordered.bounded
    (array([2., 2.]), False)
    """

    projects_on_host = True

    def __init__(
        self,
        project: Callable[[Array], Any],
        shape: Any,
        support: Callable[[Array], Any] | None = None,
        radius: float | None = None,
    ) -> None:
        given = (("project", project, "point -> nearest point"), ("support", support, "direction -> farthest point"))
        raise_all(
            "Custom",
            [
                f"{name} is {type(part).__name__}; expected a function {expected}."
                for name, part, expected in given
                if not (callable(part) or (name == "support" and part is None))
            ],
        )
        self.shape = as_shape(shape, "Custom")
        self._project, self._support = project, support
        self._radius = math.inf if radius is None else as_number(radius, "Custom: radius", 0.0)

    def __repr__(self) -> str:
        return f"Custom(shape={self.shape}, radius={self._radius:g})"

    @property
    def own_code(self) -> bool:
        return True

    def project(self, point: Array, out: Array | None = None) -> Array:
        return receive(lend(lambda: NUMPY.hand(self._project, point)), self.shape, "Custom: project", out, point)

    def maximizer(self, direction: Array) -> Array:
        if self._support is None:
            return infinite(direction)
        own = self._support
        return receive(lend(lambda: NUMPY.hand(own, direction)), self.shape, "Custom: support", None, direction)

    def squared_radius(self, point: Array) -> float:
        return (self._radius + length_of(point)) ** 2

    def diameter(self) -> float:
        return 2.0 * self._radius

    def magnitude(self) -> float:
        return self._radius

    def violation(self, point: Array) -> float:
        return length_of(point - self.project(point))
