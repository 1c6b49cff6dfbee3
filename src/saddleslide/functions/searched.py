"""Minima found by accelerated proximal gradients and certified by the linearisations met on the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from saddleslide.arrays.base import Array, as_floats, inner_product, length_of
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import FullSpace
from saddleslide.errors import NoExactMinimumError
from saddleslide.functions.base import Function
from saddleslide.functions.constants import modulus_for_bounds, smoothness_at_hand, takes_products
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.roundings import EPS, FEW, Errors, inner_error
from saddleslide.functions.scaled import Scaled
from saddleslide.functions.separable import has_prox, prox
from saddleslide.functions.sums import Sum
from saddleslide.functions.trust import certain_modulus, errors_at, is_ours, runs_own_code, value_aside
from saddleslide.watcher import late

# A declared curvature above this says that nothing is known.
_USELESS = 1e12


@dataclass
class Tally:
    """Gradients that a search has made so far, and the most that it may make: for whoever counts, whatever ends it."""

    most: float = math.inf
    gradients: float = 0

    def allows(self, count: float) -> bool:
        """Whether so many more may be made: none once the time of the call is up."""
        return self.gradients + count <= self.most and not late()

    def count(self, count: float) -> None:
        """Count what is about to be made."""
        self.gradients += count


@dataclass(frozen=True)
class TiltedMinimum:
    """Minimum of f(x) + <c, x>: the true one lies in [value - error, value]; `gradients` were spent on finding it.

    Values are included where they count (`Function.value_cost`). `where` is the point, or makes it when it is first
    asked for: bounds seldom ask.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> found = ss.functions.tilted_minimum(ss.functions.Quadratic(1.0), np.array([2.0]), ss.domains.FullSpace(1))
    >>> round(found.value, 12), found.error < 1e-12
    (-2.0, True)
    """

    where: Array | Callable[[], Array]
    value: float
    error: float
    method: str
    gradients: float = 0
    # Part of the error that is rounding: no search will lower it.
    rounding: float = 0.0

    @cached_property
    def point(self) -> Array:
        """Where the value is taken."""
        return self.where() if callable(self.where) else self.where

    @property
    def lower(self) -> float:
        """Certified lower bound of the minimum."""
        return self.value - self.error

    def times(self, factor: float, wrong: Array | float = 0.0) -> TiltedMinimum:
        """Of a multiple of the function; `wrong` is what rounding has done to the tilt that was asked for."""
        found = self.shifted(wrong)
        value, error, rounding = (factor * part for part in (found.value, found.error, found.rounding))
        lost = FEW * abs(value)
        return replace(found, value=value, error=error + lost, rounding=rounding + lost)

    def shifted(self, wrong: Array | float) -> TiltedMinimum:
        """Where the tilt may be off by `wrong`, entry by entry: a change counts as far as the minimisers reach.

        At the minimiser of one tilt the other's value is off by at most <wrong, |x|>; twice that covers the minimisers
        between.
        """
        if not np.isfinite(self.point).all():
            return self
        lost = 2.0 * float(np.sum(wrong * np.abs(self.point)))
        return replace(self, error=self.error + lost, rounding=self.rounding + lost)


ExactMinimum = Callable[[Function, Array, Domain], TiltedMinimum]


def search_minimum(
    f: Function, c: Array, domain: Domain, start: Array | None, accuracy: float, exact: ExactMinimum, tally: Tally
) -> TiltedMinimum:
    """Accelerated proximal gradients on rest + simple + <c, x>, where `simple` has an exact proximal step.

    Every gradient of `rest` at v gives the lower model rest(v) + <rest'(v), x - v> + mu/2 |x - v|^2 of rest; its
    minimum together with the simple part bounds the true minimum from below. So does the running average of the
    models (without mu), which is the better one on bounded domains with little curvature. `exact` minimises the simple
    part with a tilt.
    """
    rest, simple = split_simple(f, domain)
    search = _Search(rest, simple, domain, exact, tally)
    L: float | None = None
    x = domain.project(np.zeros_like(c) if start is None else as_floats(start))
    v, previous, theta = x, x, 1.0
    best, point, lower = math.inf, x, -math.inf
    average = _Average(0.0, np.zeros_like(c), 0.0)
    rounding = margin = 0.0
    while tally.allows(1.0):
        tally.count(1)
        value, gradient = rest.value_and_gradient(v)
        if not (math.isfinite(value) and np.isfinite(gradient).all()):
            # Beyond x, where its value was finite: go on from there, or end with what is known.
            if v is x:
                break
            v, previous, theta = x, x, 1.0
            continue
        total = value + value_aside(simple, v) + inner_product(c, v)
        if total < best:
            best, point = total, v
        slope = length_of(gradient)
        made, sizes = errors_at(rest, v, value, slope), slope + length_of(c)
        products = (inner_error(v.size) + FEW) * sizes * length_of(v)
        made = Errors(made.value + products + FEW * abs(value), made.gradient + FEW * sizes)
        cut = _Cut(v, value, gradient, gradient + c, made)
        average = average.mix(theta, cut)
        for found, lost in search.lower_bounds(cut, value + inner_product(c, v), average):
            lower, margin = (found, lost) if found > lower else (lower, margin)
        rounding = cut.made.value + 64.0 * EPS * (abs(total) + float(np.abs(cut.slope * v).sum()))
        if best - lower <= max(accuracy, rounding + 1.5 * margin):
            break
        # Not asked for where the start is a minimum: to bound it may take many products.
        x, L = search.step(cut, search.curvature(accuracy) if L is None else L)
        if inner_product(v - x, x - previous) > 0.0:
            theta, previous = 1.0, x
        new_theta = 2.0 / (1.0 + math.sqrt(1.0 + 4.0 / theta**2))
        v = domain.project(x + new_theta * (1.0 / theta - 1.0) * (x - previous))
        previous, theta = x, new_theta
    if not math.isfinite(lower):
        raise NoExactMinimumError(f"{type(f).__name__} on {type(domain).__name__}: no finite lower bound was found.")
    error = max(best - lower, 0.0) + rounding
    return TiltedMinimum(point, best, error, "proximal gradients", tally.gradients, rounding + margin)


class _Cut(NamedTuple):
    """Value and gradient of `rest` at a point, the slope with the tilt, and what rounding has done to both."""

    point: Array
    value: float
    gradient: Array
    slope: Array
    made: Errors


@dataclass(frozen=True)
class _Average:
    """A running average of linear lower models: constant + <slope, x>, the slope up to an error in norm."""

    constant: float
    slope: Array
    error: float

    def mix(self, theta: float, cut: _Cut) -> _Average:
        v, made, keep = cut.point, cut.made, 1.0 - theta
        constant = cut.value - inner_product(cut.gradient, v) - made.value - made.gradient * length_of(v)
        mixed = keep * self.slope + theta * cut.slope
        # Every mixing rounds once more; what was rounded before fades with its weight.
        error = keep * self.error + theta * made.gradient + 2.0 * EPS * length_of(mixed)
        numbers = keep * self.constant, theta * constant
        return _Average(sum(numbers) - 4.0 * EPS * sum(map(abs, numbers)), mixed, error)


class _Search:
    """Steps and lower bounds of a search for the minimum of rest + simple over a domain."""

    def __init__(self, rest: Function, simple: Function, domain: Domain, exact: ExactMinimum, tally: Tally) -> None:
        self.rest, self.simple, self.domain, self.exact, self.tally = rest, simple, domain, exact, tally
        self.mu = modulus_for_bounds(rest, simple, domain)
        # Of a bounded set the largest distance, of another the modulus of the simple part limits what a wrong slope
        # costs.
        self.distance = domain.radius_at_zero if domain.bounded else math.inf
        self.curved = certain_modulus(simple, domain)
        self.finite = domain.bounded or self.curved > 0.0
        self.norms_at_hand = not takes_products(rest)
        # The last tilt with its minimum: the first average is the first model itself.
        self.last: tuple[Array, TiltedMinimum] | None = None

    def curvature(self, accuracy: float) -> float:
        """Declared curvature; backtracking starts from 1 where there is none, or none that is of use.

        NaN where it takes products to bound: the first step shows it.
        """
        if not self.norms_at_hand:
            return math.nan
        smoothness, L = smoothness_at_hand(self.rest, self.domain), math.inf
        if smoothness is not None:
            L = smoothness.H if smoothness.nu == 1.0 else smoothness.L(max(accuracy, 1e-9) / 4.0)
            if smoothness.nu == 1.0 and math.isfinite(L) and not runs_own_code(self.rest):
                # That of a function of ours is what it is, in any units.
                return max(L, self.mu, 1e-300)
        return max(L if L < _USELESS else 1.0, self.mu, 1e-300)

    def step(self, cut: _Cut, L: float) -> tuple[Array, float]:
        """Proximal gradient step and the curvature it used: the smallest that the values allow, where that can vary."""
        rest, simple, domain, tally, cost = self.rest, self.simple, self.domain, self.tally, self.rest.value_cost
        v, value, gradient, slope, made = cut
        if rest.quadratic and self.norms_at_hand:
            return prox(simple, v - slope / L, L, domain), L
        if math.isnan(L):
            if not tally.allows(cost):
                return v, L
            tally.count(cost)
            step = prox(simple, v - slope, 1.0, domain) - v
            square = inner_product(step, step)
            excess = rest.value(v + step) - value - inner_product(gradient, step)
            L = max(2.0 * excess / square, 1e-300) / 0.7 if square > 0.0 and math.isfinite(excess) else 1.0
        L = 0.7 * L
        while True:
            x = prox(simple, v - slope / L, L, domain)
            step = x - v
            model = value + inner_product(gradient, step) + 0.5 * L * inner_product(step, step)
            if not tally.allows(cost):
                # No bound needs this step, and no other will be made.
                return x, L
            tally.count(cost)
            found = rest.value(x)
            # What may be rounding of both values says nothing about the curvature.
            if found <= model + max(1e-14 * abs(value), min(2.0 * made.value, 1e300)) or L > 1e300:
                return x, L
            L *= 2.0 if math.isfinite(found) else 16.0

    def linear_bound(
        self, constant: float, slope: Array, error: float, middle: Array | float, distance: float, lost: float = 0.0
    ) -> tuple[float, float]:
        """The minimum of constant + <slope, x> + simple(x), less what is lost to rounding; and that part.

        The slope is wrong by `error` in norm, `middle` is where that counts for nothing, points are within `distance`.
        """
        if self.last is None or not np.array_equal(self.last[0], slope):
            self.last = slope, self.exact(self.simple, slope, self.domain)
        found = self.last[1]
        lost += wrong_slope_cost(error, length_of(found.point - middle), distance, self.curved)
        return constant + found.lower - lost, lost + found.rounding

    def lower_bounds(self, cut: _Cut, value: float, average: _Average) -> Iterator[tuple[float, float]]:
        """Bounds from the average and from value + <slope, x - v> + mu/2 |x - v|^2, and what rounding took of each."""
        v, slope, made = cut.point, cut.slope, cut.made
        if self.finite:
            yield self.linear_bound(average.constant, average.slope, average.error, 0.0, self.distance)
        if self.mu > 0.0:
            yield model_minimum(value, slope, v, self.mu, self.simple, self.domain, made)
        elif self.finite:
            distance = self.domain.radius(v) if self.domain.bounded else math.inf
            yield self.linear_bound(value - inner_product(slope, v), slope, made.gradient, v, distance, made.value)


def wrong_slope_cost(error: float, way: float, distance: float, modulus: float) -> float:
    """What a slope that is wrong by `error` in norm can do to a minimum found `way` from where it is measured.

    At most `distance` away whatever the slope is; or, where the function is strongly convex with the modulus, within
    error / modulus of the point that was found.
    """
    near = error * way + error * error / (2.0 * modulus) if modulus > 0.0 else math.inf
    return min(near, error * distance) if error > 0.0 else 0.0


def model_minimum(
    value: float, slope: Array, v: Array, mu: float, simple: Function, domain: Domain, made: Errors
) -> tuple[float, float]:
    """Minimum of value + <slope, x - v> + mu/2 |x - v|^2 + simple(x), less what rounding took; and that part."""
    size, inner = length_of(slope), inner_error(v.size) + FEW
    if isinstance(simple, Zero) and isinstance(domain, FullSpace):
        gain = size * size / (2.0 * mu)
        lost = made.value + made.gradient * (2.0 * size + made.gradient) / (2.0 * mu) + inner * gain
        return value - gain - lost, lost
    x = prox(simple, v - slope / mu, mu, domain)
    step = x - v
    way, last = length_of(step), value_aside(simple, x)
    found = value + inner_product(slope, step) + 0.5 * mu * way * way + last
    # Of a point beside the minimiser the slope along the set is lost, and no more than the model rises.
    beside = FEW * (size + mu * way) * (length_of(x) + length_of(v))
    lost = made.value + inner * (size * way + mu * way * way + abs(last)) + beside + errors_at(simple, x, last).value
    distance = domain.radius(v) if domain.bounded else math.inf
    lost += wrong_slope_cost(made.gradient, way, distance, mu)
    return found - lost, lost


def split_simple(f: Function, domain: Domain) -> tuple[Function, Function]:
    """Split f into rest + simple, where simple has an exact proximal step on the domain."""
    if has_prox(f, domain):
        return Zero(), f
    if is_ours(f, Sum):
        (rest, simple), (other_rest, other) = (split_simple(part, domain) for part in f.parts)
        both = _add(simple, other)
        if has_prox(both, domain):
            return _add(rest, other_rest), both
        # Of two simple terms without a common step, the one with the smoother gradient is left to gradients.
        if _is_rougher(other, simple, domain):
            simple, other = other, simple
        return _add(_add(rest, other_rest), other), simple
    if is_ours(f, Scaled):
        rest, simple = (
            part if isinstance(part, Zero) else f.factor * part for part in split_simple(f.function, domain)
        )
        return rest, simple
    return f, Zero()


def _is_rougher(first: Function, second: Function, domain: Domain) -> bool:
    """Whether the first one has the smaller Hölder exponent, or none at all."""
    exponents = []
    for part in (first, second):
        known = smoothness_at_hand(part, domain)
        exponents.append(-2.0 if not part.has_gradient else -1.0 if known is None else known.nu)
    return exponents[0] < exponents[1]


def _add(first: Function, second: Function) -> Function:
    if isinstance(first, Zero):
        return second
    return first if isinstance(second, Zero) else first + second
