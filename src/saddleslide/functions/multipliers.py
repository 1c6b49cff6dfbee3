"""Separable functions on a ball or a simplex: one multiplier couples the entries, found by bisection."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from saddleslide.arrays import Array
from saddleslide.domains import Ball, Box, Domain, FullSpace, Simplex

# Solves the separable step on a box or the full space: (center, weight, domain) -> point.
SeparableStep = Callable[[Array, float, Domain], Array]
# Below rounding of any multiplier that matters.
_HALVINGS = 200


def couples_entries(domain: Domain) -> bool:
    """Whether the domain is a centred ball or a simplex.

    Examples
    --------
    >>> couples_entries(Ball(1.0, shape=2)), couples_entries(Box(0.0, 1.0, shape=2))
    (True, False)
    """
    return isinstance(domain, Simplex) or (isinstance(domain, Ball) and domain.center is None)


def coupled_step(step: SeparableStep, center: Array, weight: float, domain: Domain) -> tuple[Array, float]:
    """The step of a separable function on a ball or a simplex, and the multiplier, from steps on a free set or a box.

    Ball: |x|^2 <= R^2 with multiplier m is the free step with weight + m. Simplex: sum x = 1 with multiplier m is the
    step on the box with center - m / weight.
    """
    if isinstance(domain, Ball):
        return _ball_step(step, center, weight, domain)
    return _simplex_step(step, center, weight, domain)


def _ball_step(step: SeparableStep, center: Array, weight: float, domain: Ball) -> tuple[Array, float]:
    free = FullSpace(domain.shape)

    def at(multiplier: float) -> Array:
        total = weight + multiplier
        return step(center * (weight / total), total, free)

    x = at(0.0)
    if float(np.linalg.norm(x)) <= domain.ball_radius:
        return x, 0.0
    low, high = 0.0, max(weight, 1e-300)
    while float(np.linalg.norm(at(high))) > domain.ball_radius and high < 1e290:
        low, high = high, 8.0 * high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if float(np.linalg.norm(at(middle))) > domain.ball_radius:
            low = middle
        else:
            high = middle
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
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if float(at(middle).sum()) >= 1.0:
            low = middle
        else:
            high = middle
    below, above = at(high), at(low)
    # Between two neighbouring shifts the entries may jump: take the mixture with sum 1.
    rest = float(above.sum() - below.sum())
    part = (1.0 - float(below.sum())) / rest if rest > 0.0 else 0.0
    mixed = below + min(max(part, 0.0), 1.0) * (above - below)
    return np.asarray(mixed / mixed.sum()), weight * low
