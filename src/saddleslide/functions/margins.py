"""Losses of margins and residuals, entry by entry: hinges, pinball and epsilon-insensitive losses."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import final

import numpy as np

from saddleslide.arrays.base import Array, Shape, as_number
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import Box
from saddleslide.domains.program import Kink, Program
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.functions.closed import EntrySum, is_between
from saddleslide.functions.entrywise import Linear, Zero
from saddleslide.functions.norms import L1
from saddleslide.functions.quadratic import Quadratic
from saddleslide.functions.roundings import FEW, Rounding
from saddleslide.theory.holder import Holder


class Kinked(EntrySum):
    """A sum of piecewise linear functions of each entry.

    `jump` is between the least and the largest slope, `lean` their mean; the slope rises at `corners` by equal parts.
    """

    jump, lean = 1.0, 0.0
    corners: tuple[float, ...] = (0.0,)

    def as_program(self, size: int) -> Program:
        weight = np.full(size, 0.5 * self.jump / len(self.corners))
        kinks = tuple(Kink(weight, np.full(size, corner), np.zeros(size)) for corner in self.corners)
        return replace(Program.on(size), linear=np.full(size, self.lean), kinks=kinks)

    def recession(self, direction: Array) -> tuple[Array, float, float]:
        level, rise = self.lean * direction, 0.5 * self.jump * np.abs(direction)
        return direction, float(np.sum(level + rise)), float(np.sum(np.abs(level) + rise))

    def smoothness(self, domain: Domain) -> Holder:
        return Holder(0.0, self.jump * math.sqrt(domain.size))

    @property
    def error_model(self) -> Rounding:
        return Rounding(entrywise=FEW)


@final
class Hinge(Kinked):
    """sum_i max(0, 1 - z_i): the loss of support vector machines, z being labels times scores.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> h = ss.functions.Hinge()
    >>> h.value(np.array([2.0, 0.5])), h.prox(np.array([2.0, 0.5, -1.0]), 1.0)
    (0.5, array([2., 1., 0.]))
    """

    lean, corners = -0.5, (1.0,)

    def __repr__(self) -> str:
        return "Hinge()"

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        value = float(np.sum(np.maximum(1.0 - x, 0.0)))
        return value, np.negative(np.less(x, 1.0) * 1.0, out=out)

    def prox(self, center: Array, step: Array | float) -> Array:
        moved: Array = np.maximum(center, np.minimum(center + step, 1.0))
        return moved

    def maximizer(self, y: Array) -> Array:
        return np.where(y > 0.0, np.inf, np.where(y < -1.0, -np.inf, 1.0))

    def conjugate_value(self, y: Array) -> float:
        return float(np.sum(y)) if is_between(y, -1.0, 0.0) else math.inf

    def dual(self, shape: Shape, factor: float = 1.0) -> tuple[Function, Domain]:
        return Linear(1.0), Box(-factor, 0.0, shape=shape)


@final
class SquaredHinge(EntrySum):
    """1/2 sum_i max(0, 1 - z_i)^2: half of what some libraries call squared hinge, so that its curvature is 1.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> ss.functions.SquaredHinge().value_and_gradient(np.array([3.0, -1.0]))
    (2.0, array([-0., -2.]))
    """

    def __repr__(self) -> str:
        return "SquaredHinge()"

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        lacking = np.maximum(1.0 - x, 0.0)
        return 0.5 * float(np.vdot(lacking, lacking)), np.negative(lacking, out=out)

    def smoothness(self, domain: Domain) -> Holder:
        return Holder(1.0, 1.0)

    def strong_convexity(self, domain: Domain) -> float:
        return 1.0 if isinstance(domain, Box) and bool((domain.upper <= 1.0).all()) else 0.0

    @property
    def error_model(self) -> Rounding:
        # The gradient is as large as the root of twice the value.
        none = (0.0, 0.0, 0.0)
        return Rounding(gradient=((0.0, 2.0 * FEW, 0.0), none, none))

    def prox(self, center: Array, step: Array | float) -> Array:
        moved: Array = np.maximum(center, (center + step) / (1.0 + step))
        return moved

    def maximizer(self, y: Array) -> Array:
        return np.where(y > 0.0, np.inf, 1.0 + y)

    def conjugate_value(self, y: Array) -> float:
        return float(np.sum(y)) + 0.5 * float(np.vdot(y, y)) if is_between(y, -np.inf, 0.0) else math.inf

    def dual(self, shape: Shape, factor: float = 1.0) -> tuple[Function, Domain]:
        if factor == 0.0:
            return Zero(), Box(0.0, 0.0, shape=shape)
        return Quadratic(1.0 / factor) + Linear(1.0), Box(-np.inf, 0.0, shape=shape)


class Bent(Kinked):
    """sum_i max(a z_i, b z_i) with the slopes a <= b, on the left of 0 and on its right."""

    slopes: tuple[float, float]

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        out = np.multiply(np.greater(x, 0.0), self.slopes[1], out=out)
        out += np.less(x, 0.0) * self.slopes[0]
        return float(np.vdot(out, x)), out

    def prox(self, center: Array, step: Array | float) -> Array:
        moved: Array = np.maximum(center - step * self.slopes[1], np.minimum(center - step * self.slopes[0], 0.0))
        return moved

    def maximizer(self, y: Array) -> Array:
        return np.where(y > self.slopes[1], np.inf, np.where(y < self.slopes[0], -np.inf, 0.0))

    def conjugate_value(self, y: Array) -> float:
        return 0.0 if is_between(y, *self.slopes) else math.inf

    def dual(self, shape: Shape, factor: float = 1.0) -> tuple[Function, Domain]:
        return Zero(), Box(factor * self.slopes[0], factor * self.slopes[1], shape=shape)


@final
class PositivePart(Bent):
    """sum_i max(z_i, 0): what inequalities z <= 0 are broken by, as a penalty; `Quantile(1.0)` by its usual name.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> h = ss.functions.PositivePart()
    >>> h.value(np.array([2.0, -4.0])), h.prox(np.array([2.0, 0.5, -4.0]), 1.0)
    (2.0, array([ 1.,  0., -4.]))
    """

    slopes, lean = (0.0, 1.0), 0.5

    def __repr__(self) -> str:
        return "PositivePart()"


@final
class Quantile(Bent):
    """sum_i max(q z_i, (q - 1) z_i): the pinball loss, whose sum over residuals z = b - a is least at the q-quantile a.

    Parameters
    ----------
    q : float
        Between 0 and 1; 1/2 is half the sum of absolute values.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> ss.functions.Quantile(0.75).value_and_gradient(np.array([2.0, -4.0]))
    (2.5, array([ 0.75, -0.25]))
    """

    def __init__(self, q: float) -> None:
        self.q = as_number(q, "Quantile: q")
        if not 0.0 <= self.q <= 1.0:
            raise InputError(f"Quantile: q is {q!r}; expected a number in [0, 1].")
        # The slope on the left as it is stored: bounds are those of this function.
        self.slopes = self.q - 1.0, self.q
        self.lean = 0.5 * sum(self.slopes)

    def __repr__(self) -> str:
        return f"Quantile({self.q:g})"


@final
class EpsilonInsensitive(Kinked):
    """sum_i max(|z_i| - epsilon, 0): the loss of support vector regression, z being residuals.

    Parameters
    ----------
    epsilon : float
        Residuals up to this size cost nothing.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> h = ss.functions.EpsilonInsensitive(0.5)
    >>> h.value(np.array([0.25, -2.0])), h.prox(np.array([0.25, -2.0, 1.0]), 1.0)
    (1.5, array([ 0.25, -1.  ,  0.5 ]))
    """

    jump = 2.0

    def __init__(self, epsilon: float) -> None:
        self.epsilon = as_number(epsilon, "EpsilonInsensitive: epsilon", 0.0)
        self.corners = -self.epsilon, self.epsilon

    def __repr__(self) -> str:
        return f"EpsilonInsensitive({self.epsilon:g})"

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        size = np.abs(x)
        value = float(np.sum(np.maximum(size - self.epsilon, 0.0)))
        return value, np.multiply(np.sign(x), np.greater(size, self.epsilon), out=out)

    def prox(self, center: Array, step: Array | float) -> Array:
        size = np.abs(center)
        moved: Array = np.copysign(np.minimum(size, np.maximum(size - step, self.epsilon)), center)
        return moved

    def maximizer(self, y: Array) -> Array:
        return np.sign(y) * np.where(np.abs(y) > 1.0, np.inf, self.epsilon)

    def conjugate_value(self, y: Array) -> float:
        return self.epsilon * float(np.sum(np.abs(y))) if is_between(y, -1.0, 1.0) else math.inf

    def dual(self, shape: Shape, factor: float = 1.0) -> tuple[Function, Domain]:
        return L1(self.epsilon) if self.epsilon > 0.0 else Zero(), Box(-factor, factor, shape=shape)
