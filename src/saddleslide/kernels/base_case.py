"""The base case of a block for compiled loops: simple terms entry by entry, and projections."""

from __future__ import annotations

import math

from saddleslide.kernels.arguments import ALIKE, BALL, BOX, INTERVAL, NO_TERM, SIMPLEX, Array, KnownSet, KnownTerm
from saddleslide.kernels.building import helper
from saddleslide.kernels.products import dot


@helper
def clip_number(value: float, low: float, high: float) -> float:
    """The value in an interval; comparisons leave a NaN as it is."""
    value = low if value < low else value
    return high if value > high else value


@helper
def interval(domain: KnownSet) -> tuple[float, float]:
    """Limits that hold for every entry alike."""
    if domain.kind == INTERVAL:
        return domain.lower[0], domain.upper[0]
    return -math.inf, math.inf


@helper
def limits(domain: KnownSet, term: KnownTerm) -> tuple[float, float]:
    """What may be clipped at once: a simple term comes before the sides."""
    return interval(domain) if term.kind == NO_TERM else (-math.inf, math.inf)


@helper
def clip(v: Array, lower: Array, upper: Array) -> None:
    """Sides that differ from entry to entry, in place."""
    for i in range(v.size):
        v[i] = clip_number(v[i], lower[i], upper[i])


@helper
def clip_into(v: Array, domain: KnownSet) -> None:
    """The sides of an interval or a box, in place."""
    if domain.kind == INTERVAL:
        low, high = interval(domain)
        for i in range(v.size):
            v[i] = clip_number(v[i], low, high)
    elif domain.kind == BOX:
        clip(v, domain.lower, domain.upper)


@helper
def _into_ball(v: Array, radius: float, center: Array) -> None:
    for i in range(center.size):
        v[i] -= center[i]
    norm = math.sqrt(dot(v, v))
    if not norm <= radius:
        if math.isinf(norm):
            # The square overflowed: divide by the largest entry first.
            largest = 0.0
            for i in range(v.size):
                largest = max(largest, abs(v[i]))
            for i in range(v.size):
                v[i] /= largest
            norm = math.sqrt(dot(v, v))
        factor = radius / norm
        for i in range(v.size):
            v[i] *= factor
    for i in range(center.size):
        v[i] += center[i]


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
def project_whole(v: Array, domain: KnownSet) -> None:
    """Nearest point of a set that couples all entries, in place."""
    if domain.kind == BALL:
        _into_ball(v, domain.radius, domain.center)
    elif domain.kind == SIMPLEX:
        _into_simplex(v)


@helper
def bent(pull: float, stiffness: float, threshold: float, root: float) -> float:
    """Solve stiffness x + threshold sign(x) + root sign(x) |x|^(1/2) = pull."""
    size = abs(pull) - threshold
    size = 0.0 if size < 0.0 else size
    part = 2.0 * size / (root + math.sqrt(root * root + 4.0 * stiffness * size) + (1.0 if size == 0.0 else 0.0))
    return math.copysign(part * part if root > 0.0 else size / stiffness, pull)


@helper
def settle(v: Array, weight: float, domain: KnownSet, term: KnownTerm, start: int) -> None:
    """From centres to minimisers of the term plus weight/2 |x - center|^2, with the sides, in place.

    That is the base case for what entries do on their own; v begins at entry `start` of its block.
    """
    kind, stiffness, threshold, root, _ = term
    end = start + v.size
    if kind == ALIKE:
        total, bend, curve = weight + stiffness[0], threshold[0], root[0]
        if bend == 0.0 and curve == 0.0:
            factor = weight / total
            for i in range(v.size):
                v[i] *= factor
        else:
            for i in range(v.size):
                v[i] = bent(weight * v[i], total, bend, curve)
    elif kind != NO_TERM:
        own, bends, curves = stiffness[start:end], threshold[start:end], root[start:end]
        for i in range(v.size):
            v[i] = bent(weight * v[i], weight + own[i], bends[i], curves[i])
    if domain.kind == BOX:
        clip(v, domain.lower[start:end], domain.upper[start:end])
    elif term.kind != NO_TERM:
        clip_into(v, domain)
