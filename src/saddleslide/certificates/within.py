"""Bounds within a radius, for sets on which nothing bounds a minimum: gap_R of docs/certificates.md.

With a gradient at p, h(x') + <pull, x'> is at least base + <slope, x' - x> + simple(x') for every x' in the set, base
and slope being those of the linear model at the center x. Over the points within a distance R of x, its minimum is at
least

    max over tau >= 0 of   min over x' in the set of  base + <slope, x' - x> + simple(x') + tau/2 (|x' - x|^2 - R^2),

since the last term is not positive there. The inner minimum is a proximal step, any tau gives a true bound, and the
whole is concave in tau with the slope (|x' - x|^2 - R^2) / 2.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.domains import Domain, FullSpace
from saddleslide.functions.base import Function, errors_at, value_aside
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.roundings import FEW, Errors, inner_error
from saddleslide.functions.separable import finite_slope, prox

# Steps of the search for tau, and when the step is as long as the radius to this part of it.
_STEPS, _CLOSE = 24, 1e-3


# A ray proves something where it does by more than this part of its terms.
_MARGIN = 1e-9


class Least(NamedTuple):
    """A lower bound on a minimum within a radius, what rounding has taken of it, and the weight that gave it."""

    value: float
    margin: float
    tau: float


def least_within(
    base: float, slope: Array, center: Array, radius: float, simple: Function, domain: Domain, made: Errors, tau: float
) -> Least:
    """The least of base + <slope, x - center> + simple(x) over points of the set within the radius, from below.

    `made` bounds the rounding of base and slope; the search for the best weight begins at `tau`, or where a free step
    is as long as the radius.
    """
    if simple.linear and not isinstance(simple, Zero):
        constant, tilt = value_aside(simple, center), simple.gradient(center)
        lost = errors_at(simple, center, constant, float(np.linalg.norm(tilt)))
        made = Errors(made.value + lost.value + FEW * (abs(base) + abs(constant)), made.gradient + lost.gradient)
        base, slope, simple = base + constant, slope + tilt, Zero()
    size, inner = float(np.linalg.norm(slope)), inner_error(center.size) + FEW
    if isinstance(simple, Zero) and isinstance(domain, FullSpace):
        fall = (size + made.gradient) * radius
        margin = made.value + made.gradient * radius + inner * fall
        return Least(base - fall - inner * fall - made.value, margin, size / radius if radius > 0.0 else math.inf)
    here = float(np.linalg.norm(center))
    low, high = 0.0, math.inf
    best = Least(-math.inf, 0.0, tau)
    if not 0.0 < tau < math.inf:
        # Where a free step is as long as the radius; at a minimum any weight that costs nothing beside rounding.
        steep = float(np.linalg.norm(slope + finite_slope(simple, center, domain)))
        tau = max(steep / radius, FEW * abs(base) / radius**2, 1e-200)
    for _ in range(_STEPS):
        x = prox(simple, center - slope / tau, tau, domain)
        step = x - center
        way, last = float(np.linalg.norm(step)), value_aside(simple, x)
        # The terms of the Lagrangian and what each may be off by; beside the minimiser the model rises by its slope.
        found = base + float(np.vdot(slope, step)) + last + 0.5 * tau * (way * way - radius * radius)
        beside = FEW * (size + tau * way) * (float(np.linalg.norm(x)) + here)
        terms = size * way + abs(last) + tau * (way * way + radius * radius)
        margin = (
            made.value + made.gradient * max(way, radius) + inner * terms + beside + errors_at(simple, x, last).value
        )
        if found - margin > best.value:
            best = Least(found - margin, margin, tau)
        if abs(way - radius) <= _CLOSE * radius:
            break
        low, high = (tau, high) if way > radius else (low, tau)
        # The step of a free minimum is as long as 1 / tau; between two weights that do not suit, their mean.
        following = tau * min(max(way / radius, 1e-3), 1e3)
        inside = low < following < high
        tau = (
            following
            if inside
            else (math.sqrt(low * high) if low > 0.0 and high < math.inf else 8.0 * low or high / 8.0)
        )
        if not 1e-290 < tau < 1e290:
            break
    return best


def separates_within(tilt: Array, level: float, error: float, center: Array, radius: float, domain: Domain) -> bool:
    """Whether <tilt, x> > level for all points of the set within the radius of the center, whatever rounding has done.

    Along a ray d of Y on which g is linear, F(x, y + t d) = F(x, y) + t (<B^T d, x> - <g', d>): where that slope is
    positive for all such x, none of them has a finite maximum over y. `error` bounds what the tilt is wrong by.
    """
    size = float(np.linalg.norm(tilt)) * (float(np.linalg.norm(center)) + radius)
    base = float(np.vdot(tilt, center))
    found = least_within(base, tilt, center, radius, Zero(), domain, Errors(FEW * size, error), math.nan)
    return found.value - level > _MARGIN * (abs(base) + abs(level)) + error * float(np.linalg.norm(center))
