"""Entropies: x log x, the divergence of Kullback and Leibler, and log-sum-exp, the conjugate of the former."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, final

import numpy as np
import scipy

from saddleslide.arrays.base import Array, Shape, as_real, beside, length_of
from saddleslide.arrays.kinds import to_host
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import Box, FullSpace, NonNegative
from saddleslide.domains.simplices import Simplex, Weights
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.functions.closed import SLACK, EntrySum
from saddleslide.functions.entrywise import Linear
from saddleslide.functions.norms import Max
from saddleslide.functions.roundings import EPS, FEW, Errors, Rounding, inner_error
from saddleslide.functions.searched import TiltedMinimum
from saddleslide.theory.holder import Holder

# The logarithm of no double is larger in size.
_LOGARITHM = 745.0
_NEWTON_STEPS = 200


@final
class Entropy(EntrySum):
    """sum_i x_i log x_i for x >= 0, the negative entropy; 0 log 0 is 0, and outside it is infinite.

    On a simplex it has a proximal step and a closed minimum too: its conjugate there is `LogSumExp`.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> h = ss.functions.Entropy()
    >>> h.value(np.array([0.5, 0.5])), h.prox(np.array([1.0, 2.0]), 1.0).round(6)
    (-0.6931471805599453, array([0.567143, 1.      ]))
    """

    def __repr__(self) -> str:
        return "Entropy()"

    def value_and_magnitude(self, x: Array) -> tuple[float, float]:
        if bool(np.any(x < 0.0)):
            return math.inf, math.inf
        terms = x * np.log(np.where(x > 0.0, x, 1.0))
        return float(np.sum(terms)), float(np.sum(np.abs(terms)) + np.sum(x))

    def value(self, x: Array) -> float:
        return self.value_and_magnitude(x)[0]

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        """At 0 there is no subgradient: the slope is minus infinity."""
        slopes = np.where(x > 0.0, np.log(np.where(x > 0.0, x, 1.0)) + 1.0, -np.inf)
        if out is not None:
            np.copyto(out, slopes)
        return self.value(x), slopes if out is None else out

    def smoothness(self, domain: Domain) -> Holder:
        return _curvature_above(self, domain, 1.0, 1.0)

    def strong_convexity(self, domain: Domain) -> float:
        """1 / x is at least 1 over the largest entry."""
        largest = domain.magnitude()
        return 1.0 / largest if largest > 0.0 else 0.0

    @property
    def error_model(self) -> Rounding:
        return Rounding(floor=(0.0, 0.0, _LOGARITHM), entrywise=_LOGARITHM * FEW)

    def entrywise_errors(self, x: Array) -> Errors:
        size = self.value_and_magnitude(x)[1]
        return Errors((inner_error(x.size) + FEW) * size, math.inf)

    def effective_domain(self, shape: Shape) -> Domain:
        return NonNegative(shape)

    def far_slope(self, shape: Shape) -> Array:
        """That at 1."""
        return np.ones(shape)

    def prox(self, center: Array, step: Array | float) -> Array:
        # With u = x / step: u + log u = center / step - 1 - log step.
        found: Array = step * _omega(center / step - 1.0 - np.log(step))
        return found

    def maximizer(self, y: Array) -> Array:
        with np.errstate(over="ignore"):
            found: Array = np.exp(y - 1.0)
        return found

    def conjugate_value(self, y: Array) -> float:
        return float(np.sum(self.maximizer(y)))

    def can_prox(self, domain: Domain) -> bool:
        return super().can_prox(domain) or isinstance(domain, Weights)

    def prox_on(self, domain: Domain, center: Array, weight: Array | float) -> Array:
        if not isinstance(domain, Weights):
            return super().prox_on(domain, center, weight)
        # With the multiplier m of the sum, the sum of omega(a - m) is convex and falls: Newton's method rises to the
        # root from a point below it, where the largest entry alone makes up the sum.
        step = 1.0 / float(weight)
        total = domain.scale / step
        if total == 0.0:
            return domain.project(center)
        a = center / step
        m = float(np.max(a)) - total - math.log(total)
        for _ in range(_NEWTON_STEPS):
            u = _omega(a - m)
            following = m + (float(np.sum(u)) - total) / float(np.sum(u / (1.0 + u)))
            if not following > m + EPS * abs(m):
                break
            m = following
        return u * (domain.scale / float(np.sum(u)))

    def can_minimise(self, domain: Domain) -> bool:
        return super().can_minimise(domain) or isinstance(domain, Weights)

    def closed_minimum(self, c: Array, domain: Domain) -> TiltedMinimum | None:
        if not isinstance(domain, Weights):
            return super().closed_minimum(c, domain)
        # s softmax(-c), with the value s log s - s LogSumExp(-c).
        s, (top, point) = domain.scale, LogSumExp().value_and_gradient(-c)
        value = s * math.log(s) - s * top if s > 0.0 else 0.0
        made = LogSumExp().error_model.at(length_of(c), top, 1.0, c.size).value
        margin = s * made + FEW * (abs(s * math.log(s)) + abs(s * top) if s > 0.0 else 0.0)
        return TiltedMinimum(s * point, value + margin, 2.0 * margin, "softmax", rounding=2.0 * margin)


def _omega(a: Array) -> Array:
    """The u > 0 with u + log u = a."""
    found: Array = beside(a, scipy.special.wrightomega(to_host(a)))
    return found


def _curvature_above(f: Function, domain: Domain, top: Array | float, power: float) -> Holder:
    """The Hölder condition of a function with the second derivative top / x^power where all entries are above 0."""
    if isinstance(domain, Box) and bool((domain.lower > 0.0).all()):
        return Holder(1.0, float(np.max(top / domain.lower**power, initial=0.0)))
    raise InputError(
        f"{f!r}: has no Hölder condition where entries may be 0; expected its proximal step to be used, or a Box with "
        "lower > 0."
    )


@final
class KullbackLeibler(EntrySum):
    """sum_i z_i - b_i + b_i log(b_i / z_i) for z >= 0: the likelihood of counts b with the Poisson means z.

    Parameters
    ----------
    b : array
        Counts >= 0.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> h = ss.functions.KullbackLeibler([1.0, 0.0])
    >>> h.value(np.array([1.0, 2.0])), h.prox(np.array([1.0, 2.0]), 1.0)
    (2.0, array([1., 1.]))
    """

    def __init__(self, b: Any) -> None:
        self.b = as_real(b, "KullbackLeibler: b")
        if self.b.ndim == 0 or (self.b < 0.0).any():
            given = "a number" if self.b.ndim == 0 else f"an array with the entry {self.b.min():g}"
            raise InputError(f"KullbackLeibler: b is {given}; expected an array of counts >= 0.")
        self.shape = self.b.shape

    def __repr__(self) -> str:
        return f"KullbackLeibler({self.shape})"

    def value(self, x: Array) -> float:
        b = beside(x, self.b)
        if bool(np.any(x < 0.0)) or bool(np.any((x == 0.0) & (b > 0.0))):
            return math.inf
        safe = np.where(b > 0.0, b, 1.0)
        part = np.where(b > 0.0, (x - b) / safe, 0.0)
        # A divergence near its minimum is small: t - log(1 + t) has an error relative to t. Near 0, 1 + t is rounded.
        far = part < -0.5
        logs = np.where(far, np.log(np.where(far, x, 1.0)) - np.log(safe), np.log1p(np.where(far, 0.0, part)))
        return float(np.sum(np.where(b > 0.0, b * (part - logs), x)))

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        """At 0 the slope is minus infinity where there are counts."""
        b = beside(x, self.b)
        with np.errstate(divide="ignore", over="ignore"):
            slopes = np.where(b > 0.0, 1.0 - np.divide(b, np.where(b > 0.0, np.maximum(x, 0.0), 1.0)), 1.0)
        if out is not None:
            np.copyto(out, slopes)
        return self.value(x), slopes if out is None else out

    def value_and_magnitude(self, x: Array) -> tuple[float, float]:
        value = self.value(x)
        return value, value + 2.0 * float(np.sum(np.abs(x))) + 2.0 * self._count

    @cached_property
    def _count(self) -> float:
        return float(np.sum(self.b))

    def smoothness(self, domain: Domain) -> Holder:
        return _curvature_above(self, domain, self.b, 2.0)

    def strong_convexity(self, domain: Domain) -> float:
        largest = domain.magnitude()
        return float(np.min(self.b, initial=math.inf)) / largest**2 if 0.0 < largest < math.inf and self.b.size else 0.0

    @property
    def error_model(self) -> Rounding:
        # The sizes of the terms add up to at most the value and twice the sums of z and of b; slopes are 1 - b / z.
        return Rounding(floor=(2.0 * self._count, 0.0, 2.0), entrywise=FEW, own=FEW)

    def effective_domain(self, shape: Shape) -> Domain:
        return NonNegative(shape)

    def far_slope(self, shape: Shape) -> Array:
        """That at twice the counts."""
        return np.where(np.broadcast_to(self.b, shape) > 0.0, 0.5, 1.0)

    def prox(self, center: Array, step: Array | float) -> Array:
        # x^2 - (center - step) x - step b = 0, without cancellation.
        shift = 0.5 * (center - step)
        sizes = np.abs(shift) + np.sqrt(shift * shift + step * beside(center, self.b))
        small = step * beside(center, self.b) / np.maximum(sizes, 1e-300)
        found: Array = np.where(shift > 0.0, sizes, small)
        return found

    def maximizer(self, y: Array) -> Array:
        b, rest = beside(y, self.b), 1.0 - y
        with np.errstate(over="ignore"):
            inside = b / np.where(rest > 0.0, rest, 1.0)
        return np.where((rest < 0.0) | ((rest == 0.0) & (b > 0.0)), np.inf, inside)

    def conjugate_value(self, y: Array) -> float:
        b = beside(y, self.b)
        if bool(np.any(y > np.where(b > 0.0, 1.0, 1.0 + SLACK))) or bool(np.any((y == 1.0) & (b > 0.0))):
            return math.inf
        return -float(np.sum(b * np.log1p(-np.where(b > 0.0, y, 0.0))))


@final
class LogSumExp(Function):
    """log(sum_i exp(x_i)), a smooth maximum. Its conjugate is `Entropy` on the simplex.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> ss.functions.LogSumExp().value_and_gradient(np.array([1000.0, 1000.0]))
    (1000.6931471805599, array([0.5, 0.5]))
    """

    def __repr__(self) -> str:
        return "LogSumExp()"

    def value(self, x: Array) -> float:
        top = float(np.max(x))
        return top + math.log(float(np.sum(np.exp(x - top))))

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        top = float(np.max(x))
        weights = np.exp(x - top)
        total = float(np.sum(weights))
        return top + math.log(total), np.divide(weights, total, out=out)

    def recession(self, direction: Array) -> tuple[Array, float, float]:
        slope = float(np.max(direction))
        return direction, slope, abs(slope)

    @property
    def error_model(self) -> Rounding:
        # An exponent x - max x is rounded, and moves its weight by as much.
        none, moved = (0.0, 0.0, 0.0), (2.0 * FEW, 0.0, 0.0)
        few, many = (FEW, 0.0, 0.0), (16.0 * FEW, 0.0, 0.0)
        return Rounding(value=(few, moved, none), gradient=(many, moved, none), floor=(2.0, 2.0, 0.0))

    def smoothness(self, domain: Domain) -> Holder:
        # diag(p) - p p^T is at most 1/2.
        return Holder(1.0, 0.5)

    def strong_convexity(self, domain: Domain) -> float:
        return 0.0

    def prox(self, center: Array, step: Array | float) -> Array:
        # Moreau's identity: the conjugate of step times it is the entropy on a scaled simplex, up to a constant.
        moved: Array = center - Entropy().prox_on(Simplex(center.shape, scale=float(step)), center, 1.0)
        return moved

    def conjugate_value(self, y: Array) -> float:
        return Entropy().value(y) if Max().gauge(y) <= 1.0 else math.inf

    def dual(self, shape: Shape, factor: float = 1.0) -> tuple[Function, Domain]:
        # factor sum (y / factor) log(y / factor) for sum y = factor.
        g = Entropy() if factor in (0.0, 1.0) else Entropy() + Linear(-math.log(factor))
        return g, Simplex(shape, scale=factor)

    def can_minimise(self, domain: Domain) -> bool:
        return isinstance(domain, FullSpace)

    def closed_minimum(self, c: Array, domain: Domain) -> TiltedMinimum | None:
        """Along x + t it is linear: bounded for sum c = -1 alone, which no rounded number is known to be."""
        return TiltedMinimum(0.0 * c, -math.inf, 0.0, "unbounded below") if self.can_minimise(domain) else None
