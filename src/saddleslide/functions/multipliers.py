"""Separable functions on a ball or a simplex: one multiplier couples the entries, found by a root search."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy

from saddleslide.arrays.base import Array, as_floats, beside
from saddleslide.domains import Ball, Box, Domain, FullSpace, Simplex

# Solves the separable step on a box or the full space: (center, weight, domain) -> point.
SeparableStep = Callable[[Array, float, Domain], Array]
_MOST_STEPS = 500
_EPS = float(np.finfo(np.float64).eps)


def couples_entries(domain: Domain) -> bool:
    """Whether the domain is a ball or a simplex.

    Examples
    --------
    >>> couples_entries(Ball(1.0, shape=2)), couples_entries(Box(0.0, 1.0, shape=2))
    (True, False)
    """
    return isinstance(domain, Simplex | Ball)


def coupled_step(step: SeparableStep, center: Array, weight: float, domain: Domain) -> tuple[Array, float]:
    """The step of a separable function on a ball or a simplex, and the multiplier, from steps on a free set or a box.

    Ball: |x - a|^2 <= R^2 with multiplier m is the free step with weight + m, its center moved towards a. Simplex:
    sum x = 1 with multiplier m is the step on the box with center - m / weight.
    """
    if isinstance(domain, Ball):
        return _ball_step(step, center, weight, domain)
    return _simplex_step(step, center, weight, domain)


def _ball_step(step: SeparableStep, center: Array, weight: float, domain: Ball) -> tuple[Array, float]:
    free = FullSpace(domain.shape)
    middle = 0.0 if domain.center is None else beside(center, domain.center)

    def at(multiplier: float) -> Array:
        total = weight + multiplier
        return step(center * (weight / total) + middle * (multiplier / total), total, free)

    def excess(multiplier: float) -> float:
        return float(np.linalg.norm(at(multiplier) - middle)) - domain.ball_radius

    if excess(0.0) <= 0.0:
        return at(0.0), 0.0
    low, high = 0.0, max(weight, 1e-300)
    while excess(high) > 0.0 and high < 1e290:
        low, high = high, 8.0 * high
    _, high = _crossing(excess, low, high)
    return domain.project(at(high)), high


def _simplex_step(step: SeparableStep, center: Array, weight: float, domain: Domain) -> tuple[Array, float]:
    box = Box(0.0, 1.0, shape=domain.shape)

    def at(shift: float) -> Array:
        return step(center - shift, weight, box)

    reach = 1.0 + float(np.max(np.abs(center), initial=0.0))
    low, high = -reach, reach
    # The sum of the entries falls with the shift; widen until 1 lies between.
    while float(at(low).sum()) < 1.0 and low > -1e290:
        low *= 4.0
    while float(at(high).sum()) > 1.0 and high < 1e290:
        high *= 4.0
    low, high = _crossing(lambda shift: float(at(shift).sum()) - 1.0, low, high)
    below, above = at(high), at(low)
    # Between two neighbouring shifts the entries may jump: take the mixture with sum 1.
    rest = float(above.sum() - below.sum())
    part = (1.0 - float(below.sum())) / rest if rest > 0.0 else 0.0
    mixed = below + min(max(part, 0.0), 1.0) * (above - below)
    return as_floats(mixed / mixed.sum()), weight * low


def _crossing(excess: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """Neighbouring numbers, or nearly so, between which a falling function changes its sign."""
    if not excess(low) > 0.0 >= excess(high):
        return low, high
    root, _ = scipy.optimize.brentq(
        excess, low, high, xtol=1e-300, rtol=4.0 * _EPS, maxiter=_MOST_STEPS, full_output=True, disp=False
    )
    if excess(root) == 0.0:
        return root, root
    low, high = _around(excess, root, low, high)
    while low < (middle := 0.5 * (low + high)) < high:
        if excess(middle) > 0.0:
            low = middle
        else:
            high = middle
    return low, high


def _around(excess: Callable[[float], float], root: float, low: float, high: float) -> tuple[float, float]:
    """A bracket of a few units of rounding around a root; wider where the function is flat or rounding hides it."""
    if root == 0.0:
        return low, high
    width = 2.0 * _EPS * abs(root)
    while root - width > low and excess(root - width) <= 0.0:
        width *= 8.0
    left = max(low, root - width)
    width = 2.0 * _EPS * abs(root)
    while root + width < high and excess(root + width) > 0.0:
        width *= 8.0
    return left, min(high, root + width)
