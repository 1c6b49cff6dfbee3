"""Projections for compiled loops."""

from __future__ import annotations

import math

from saddleslide.arrays.base import Array
from saddleslide.kernels.arguments import KnownSet
from saddleslide.kernels.building import helper, summing
from saddleslide.kernels.kinds import BALL, BOX, INTERVAL, SIMPLEX


@helper
def clipped(value: float, low: float, high: float) -> float:
    """The value in an interval; comparisons leave a NaN as it is."""
    value = low if value < low else value
    return high if value > high else value


@helper
def interval(domain: KnownSet) -> tuple[float, float]:
    """Limits that hold for every entry alike."""
    if domain.kind == INTERVAL:
        return domain.lower[0], domain.upper[0]
    return -math.inf, math.inf


@summing
def _square(v: Array) -> float:
    square = 0.0
    for i in range(v.size):
        square += v[i] * v[i]
    return square


@helper
def clip(v: Array, lower: Array, upper: Array) -> None:
    """Sides that differ from entry to entry, in place."""
    for i in range(v.size):
        v[i] = clipped(v[i], lower[i], upper[i])


@helper
def _shift(v: Array, center: Array, sign: float) -> None:
    for i in range(center.size):
        v[i] += sign * center[i]


@helper
def _into_ball(v: Array, radius: float, center: Array) -> None:
    _shift(v, center, -1.0)
    norm = math.sqrt(_square(v))
    if not norm <= radius:
        if math.isinf(norm):
            # The square overflowed: divide by the largest entry first.
            largest = 0.0
            for i in range(v.size):
                largest = max(largest, abs(v[i]))
            for i in range(v.size):
                v[i] /= largest
            norm = math.sqrt(_square(v))
        factor = radius / norm
        for i in range(v.size):
            v[i] *= factor
    _shift(v, center, 1.0)


@helper
def _into_simplex(v: Array) -> None:
    """Michelot's method: drop what lies below the threshold until nothing does; no sorting, no memory."""
    largest = v[0]
    for i in range(v.size):
        largest = max(largest, v[i])
    for i in range(v.size):
        v[i] -= largest
    count, threshold = v.size + 1, -math.inf
    while True:
        total, active = 0.0, 0
        for i in range(v.size):
            if v[i] > threshold:
                total += v[i]
                active += 1
        # In exact arithmetic it can only fall; a tie at the threshold may bring one back by rounding.
        if active == 0 or active >= count:
            break
        count, threshold = active, (total - 1.0) / active
    total = 0.0
    for i in range(v.size):
        entry = v[i] - threshold
        v[i] = 0.0 if entry < 0.0 else entry
        total += v[i]
    for i in range(v.size):
        v[i] /= total


@helper
def project_further(v: Array, domain: KnownSet) -> None:
    """Nearest point of the set, in place, for what `interval` has not done."""
    if domain.kind == BOX:
        clip(v, domain.lower, domain.upper)
    elif domain.kind == BALL:
        _into_ball(v, domain.radius, domain.center)
    elif domain.kind == SIMPLEX:
        _into_simplex(v)


@helper
def project(v: Array, domain: KnownSet) -> None:
    """Nearest point of the set, in place."""
    if domain.kind == INTERVAL:
        low, high = interval(domain)
        for i in range(v.size):
            v[i] = clipped(v[i], low, high)
    project_further(v, domain)
