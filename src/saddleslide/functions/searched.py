"""Minima found by accelerated proximal gradients and certified by the linearisations met on the way."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from saddleslide.arrays import Array, as_floats
from saddleslide.domains import Domain
from saddleslide.errors import InputError, NoExactMinimumError
from saddleslide.functions.base import Function, Scaled, Sum
from saddleslide.functions.moduli import bounding_modulus
from saddleslide.functions.separable import has_prox, prox
from saddleslide.functions.simple import Zero

EPS = float(np.finfo(np.float64).eps)
# A declared curvature above this says that nothing is known.
_USELESS = 1e12


@dataclass
class Tally:
    """Gradients that a search has made so far, and the most that it may make: for whoever counts, whatever ends it.

    Examples
    --------
    >>> tally = Tally(most=2.0)
    >>> tally.count(1.5)
    >>> tally.gradients, tally.allows(1.0)
    (1.5, False)
    """

    most: float = math.inf
    gradients: float = 0

    def allows(self, count: float) -> bool:
        """Whether so many more may be made."""
        return self.gradients + count <= self.most

    def count(self, count: float) -> None:
        """Count what is about to be made."""
        self.gradients += count


@dataclass(frozen=True)
class TiltedMinimum:
    """Minimum of f(x) + <c, x>: the true one lies in [value - error, value]; `gradients` were spent on finding it.

    Values are included where they count (`Function.value_cost`).

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> found = ss.functions.tilted_minimum(ss.functions.Quadratic(1.0), np.array([2.0]), ss.domains.FullSpace(1))
    >>> round(found.value, 12), found.error < 1e-12
    (-2.0, True)
    """

    point: Array
    value: float
    error: float
    method: str
    gradients: float = 0

    @property
    def lower(self) -> float:
        """Certified lower bound of the minimum."""
        return self.value - self.error


ExactMinimum = Callable[[Function, Array, Domain], TiltedMinimum]


def searched_minimum(
    f: Function,
    c: Array,
    domain: Domain,
    start: Array | None,
    accuracy: float,
    exact: ExactMinimum,
    tally: Tally,
) -> TiltedMinimum:
    """Accelerated proximal gradients on rest + simple + <c, x>, where `simple` has an exact proximal step.

    Every gradient of `rest` at v gives the lower model rest(v) + <rest'(v), x - v> + mu/2 |x - v|^2 of rest; its
    minimum together with the simple part bounds the true minimum from below. So does the running average of the
    models (without mu), which is the better one on bounded domains with little curvature. `exact` minimises the simple
    part with a tilt.
    """
    rest, simple = split_simple(f, domain)
    exact = _once(exact)
    mu = bounding_modulus(rest, simple, domain)
    finite = domain.bounded or simple.certain_convexity(domain) > 0.0
    L = max(_curvature(rest, domain, accuracy), mu, 1e-300)
    x = domain.project(np.zeros_like(c) if start is None else as_floats(start))
    v, previous, theta = x, x, 1.0
    best, point, lower = math.inf, x, -math.inf
    average = _Model(0.0, np.zeros_like(c))
    rounding = 0.0
    while tally.allows(1.0):
        tally.count(1)
        value, gradient = rest.value_and_gradient(v)
        total = value + simple.value(v) + float(np.vdot(c, v))
        if total < best:
            best, point = total, v
        slope = gradient + c
        average = average.mixed(theta, value - float(np.vdot(gradient, v)), slope)
        lower = max(lower, _lower_bound(value + float(np.vdot(c, v)), slope, v, mu, finite, simple, domain, exact))
        lower = max(lower, average.minimum(finite, simple, domain, exact))
        rounding = 64.0 * EPS * (abs(total) + float(np.abs(slope * v).sum()))
        if best - lower <= max(accuracy, rounding):
            break
        x, L = _step(rest, simple, v, value, gradient, slope, L, domain, tally)
        if float(np.vdot(v - x, x - previous)) > 0.0:
            theta, previous = 1.0, x
        new_theta = 2.0 / (1.0 + math.sqrt(1.0 + 4.0 / theta**2))
        v = domain.project(x + new_theta * (1.0 / theta - 1.0) * (x - previous))
        previous, theta = x, new_theta
    if not math.isfinite(lower):
        raise NoExactMinimumError(f"{type(f).__name__} on {type(domain).__name__}: no finite lower bound was found.")
    return TiltedMinimum(point, best, max(best - lower, 0.0) + rounding, "proximal gradients", tally.gradients)


def _once(exact: ExactMinimum) -> ExactMinimum:
    """The same, asked once where the tilt is that of the last question: the first average is the first model itself."""
    last: tuple[Array, TiltedMinimum] | None = None

    def found(simple: Function, c: Array, domain: Domain) -> TiltedMinimum:
        nonlocal last
        if last is None or not np.array_equal(last[0], c):
            last = c, exact(simple, c, domain)
        return last[1]

    return found


def _curvature(rest: Function, domain: Domain, accuracy: float) -> float:
    """Declared curvature; backtracking starts from 1 where there is none, or none that is of use."""
    try:
        smoothness = rest.smoothness(domain)
    except InputError:
        return 1.0
    L = smoothness.H if smoothness.nu == 1.0 else smoothness.L(max(accuracy, 1e-9) / 4.0)
    return L if L < _USELESS else 1.0


def _step(
    rest: Function,
    simple: Function,
    v: Array,
    value: float,
    gradient: Array,
    slope: Array,
    L: float,
    domain: Domain,
    tally: Tally,
) -> tuple[Array, float]:
    """Proximal gradient step and the curvature it used: the smallest that the values allow, where that can vary."""
    if rest.quadratic:
        return prox(simple, v - slope / L, L, domain), L
    L = 0.7 * L
    cost = rest.value_cost
    while True:
        x = prox(simple, v - slope / L, L, domain)
        step = x - v
        model = value + float(np.vdot(gradient, step)) + 0.5 * L * float(np.vdot(step, step))
        if not tally.allows(cost):
            # No bound needs this step, and no other will be made.
            return x, L
        tally.count(cost)
        if not rest.value(x) > model + 1e-14 * abs(value) or L > 1e300:
            return x, L
        L *= 2.0


@dataclass(frozen=True)
class _Model:
    """A running average of linear lower models: constant + <slope, x>."""

    constant: float
    slope: Array

    def mixed(self, theta: float, constant: float, slope: Array) -> _Model:
        return _Model((1.0 - theta) * self.constant + theta * constant, (1.0 - theta) * self.slope + theta * slope)

    def minimum(self, finite: bool, simple: Function, domain: Domain, exact: ExactMinimum) -> float:
        if not finite:
            return -math.inf
        return self.constant + exact(simple, self.slope, domain).lower


def _lower_bound(
    value: float,
    slope: Array,
    v: Array,
    mu: float,
    finite: bool,
    simple: Function,
    domain: Domain,
    exact: ExactMinimum,
) -> float:
    """Minimum over the domain of value + <slope, x - v> + mu/2 |x - v|^2 + simple(x)."""
    if mu > 0.0:
        x = prox(simple, v - slope / mu, mu, domain)
        step = x - v
        return value + float(np.vdot(slope, step)) + 0.5 * mu * float(np.vdot(step, step)) + simple.value(x)
    if not finite:
        return -math.inf
    return value - float(np.vdot(slope, v)) + exact(simple, slope, domain).lower


def split_simple(f: Function, domain: Domain) -> tuple[Function, Function]:
    """Split f into rest + simple, where simple has an exact proximal step on the domain.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> loss, l1 = ss.functions.Logistic(np.eye(2), [1, -1]), ss.functions.Power(0.0)
    >>> split_simple(loss + l1, ss.domains.FullSpace(2))[1] is l1
    True
    """
    if has_prox(f, domain):
        return Zero(), f
    if isinstance(f, Sum):
        halves = [split_simple(part, domain) for part in f.parts]
        return _added(*(half[0] for half in halves)), _added(*(half[1] for half in halves))
    if isinstance(f, Scaled):
        rest, simple = split_simple(f.function, domain)
        return _scaled(f.factor, rest), _scaled(f.factor, simple)
    return f, Zero()


def _added(first: Function, second: Function) -> Function:
    if isinstance(first, Zero):
        return second
    return first if isinstance(second, Zero) else first + second


def _scaled(factor: float, function: Function) -> Function:
    return function if isinstance(function, Zero) else factor * function
