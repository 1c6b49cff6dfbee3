"""Bounds within a radius, for sets on which nothing bounds a minimum: gap_R of docs/certificates.md.

With a gradient at p, h(x') + <pull, x'> is at least base + <slope, x' - x> + simple(x') for every x' in the set, base
and slope being those of the linear model at the center x. Over the points within a distance R of x, its minimum is at
least

    max over tau >= 0 of   min over x' in the set of  base + <slope, x' - x> + simple(x') + tau/2 (|x' - x|^2 - R^2),

since the last term is not positive there. The inner minimum is a proximal step, any tau gives a true bound, and the
whole is concave in tau with the slope (|x' - x|^2 - R^2) / 2. Over a product of balls, one per block of the point, the
minimum is the sum of those of the blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from saddleslide.arrays.base import Array, inner_product, length_of
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import Box, FullSpace
from saddleslide.functions.base import Function
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.roundings import FEW, Errors, inner_error
from saddleslide.functions.separable import finite_slope, prox
from saddleslide.functions.trust import errors_at, value_aside
from saddleslide.operators.base import Mirrored, Operator, is_own_code
from saddleslide.operators.explicit import Matrix
from saddleslide.operators.spectrum import power_estimate

# Steps of the search for tau, and when the step is as long as the radius to this part of it.
_STEPS, _CLOSE = 24, 1e-3
# Rounding of a projection by eigenvalues, beside that of one entry by entry.
_SPECTRAL = 32.0
# A part of a bound that rounding should not take.
_CLEAR = 1e-10
# Of the power method, for the norm of a matrix.
_POWER_STEPS = 4


class Least(NamedTuple):
    """A lower bound on a minimum within a radius, what rounding has taken of it, and the weight that gave it."""

    value: float
    margin: float
    tau: float


class Block(NamedTuple):
    """One block of a point: where it lies in the flat point (None: it is the whole), its set, and the norm of its B."""

    place: slice | None
    domain: Domain
    norm: float

    def of(self, point: Array) -> Array:
        """The block of a point."""
        return point if self.place is None else point.reshape(-1)[self.place].reshape(self.domain.shape)


def size_of(B: Operator) -> float:
    """The norm of B, for a scale alone: from below where a bound on it would take a factor."""
    original = B.original if isinstance(B, Mirrored) else B
    is_long = original.norm_takes_factor and not is_own_code(original)
    return power_estimate(original, _POWER_STEPS) if is_long else B.norm.upper


def blocks_of(domain: Domain, function: Function, B: Operator) -> tuple[Block, ...]:
    """The blocks of y that have units of their own: those of a product, or of a sum over blocks."""
    whole = (Block(None, domain, size_of(B)),)
    factors = tuple(factor for _, factor in function.blocks_on(domain)) or domain.blocks
    if len(factors) < 2:
        return whole
    stops = list(accumulate(factor.size for factor in factors))
    places = [slice(stop - factor.size, stop) for stop, factor in zip(stops, factors, strict=True)]
    parts = B.row_blocks
    if [math.prod(part.y_shape) for part, _ in parts] == [factor.size for factor in factors]:
        norms = [abs(scale) * size_of(part) for part, scale in parts]
    elif (entries := B.entries) is not None:
        norms = [size_of(Matrix(entries[place])) for place in places]
    else:
        return whole
    return tuple(Block(*block) for block in zip(places, factors, norms, strict=True))


def least_in_blocks(
    base: float,
    slope: Array,
    center: Array,
    radii: Sequence[float],
    simple: Function,
    blocks: Sequence[Block],
    made: Errors,
    taus: Sequence[float],
) -> tuple[float, float, tuple[float, ...]]:
    """`least_within` over a product of balls; where the simple part is no sum over the blocks, nothing is known."""
    if len(blocks) > 1:
        base, slope, simple, made = _without_linear(base, slope, center, simple, made)
    parts = _parts_of(simple, blocks)
    if parts is None:
        return -math.inf, 0.0, tuple(taus)
    value, margin, found = 0.0, 0.0, list[float]()
    for block, part, radius, tau in zip(blocks, parts, radii, taus, strict=True):
        least = least_within(base, block.of(slope), block.of(center), radius, part, block.domain, made, tau)
        value, margin = value + least.value, margin + least.margin + (FEW * abs(value) if found else 0.0)
        found.append(least.tau)
        # The first block has the constant.
        base, made = 0.0, Errors(0.0, made.gradient)
    lost = FEW * len(blocks) * abs(value) if len(blocks) > 1 else 0.0
    return value - lost, margin + lost, tuple(found)


def can_split(simple: Function, blocks: Sequence[Block]) -> bool:
    """Whether a simple part is a sum over the blocks."""
    return simple.linear or _parts_of(simple, blocks) is not None


def _parts_of(simple: Function, blocks: Sequence[Block]) -> tuple[Function, ...] | None:
    if len(blocks) == 1:
        return (simple,)
    if isinstance(simple, Zero):
        return tuple(simple for _ in blocks)
    sizes = [block.domain.size for block in blocks]
    parts = simple.blocks_on(FullSpace(sum(sizes)))
    return tuple(part for part, _ in parts) if [space.size for _, space in parts] == sizes else None


def least_within(
    base: float, slope: Array, center: Array, radius: float, simple: Function, domain: Domain, made: Errors, tau: float
) -> Least:
    """The least of base + <slope, x - center> + simple(x) over points of the set within the radius, from below.

    `made` bounds the rounding of base and slope; the search for the best weight begins at `tau`, or where a free step
    is as long as the radius.
    """
    base, slope, simple, made = _without_linear(base, slope, center, simple, made)
    size, inner = length_of(slope), inner_error(center.size) + FEW
    if isinstance(simple, Zero) and isinstance(domain, FullSpace):
        fall = (size + made.gradient) * radius
        margin = made.value + made.gradient * radius + inner * fall
        return Least(base - fall - inner * fall - made.value, margin, size / radius if radius > 0.0 else math.inf)
    # Without a slope 0 is a minimiser, however far one looks, if a step stays there: elsewhere rounding may be why.
    is_least = size == made.gradient == 0.0 and not center.any() and not prox(simple, center, 1.0, domain).any()
    if is_least or radius == 0.0:
        here = value_aside(simple, center)
        margin = made.value + FEW * (abs(base) + abs(here)) + errors_at(simple, center, here).value
        return Least(base + here - margin if math.isfinite(here) else -math.inf, margin, math.inf)
    here = length_of(center)
    # A projection is as accurate as the point that it is of; entries that are clipped are exact.
    is_clipped = all(isinstance(part, Box | FullSpace) for part in domain.blocks)
    # Eigenvalues and singular values are off by more units of rounding than sums are.
    coarse = 0.0 if is_clipped else _SPECTRAL if any(len(part.shape) > 1 for part in domain.blocks) else 1.0
    low, high, is_near = 0.0, math.inf, False
    best = Least(-math.inf, 0.0, tau)
    if not 0.0 < tau < math.inf:
        # Where a free step is as long as the radius; at a minimum any weight that costs nothing beside rounding.
        steep = length_of(slope + finite_slope(simple, center, domain))
        tau = max(steep / radius, FEW * abs(base) / radius**2, 1e-200)
    # One that suited another slope may leave the range of numbers with this one, as at a kink, where any weight suits.
    tau = max(tau, FEW * size / radius)
    for _ in range(_STEPS):
        x = prox(simple, center - slope / tau, tau, domain)
        step = x - center
        way, last = length_of(step), value_aside(simple, x)
        # The terms of the Lagrangian and what each may be off by; beside the minimiser the model rises by its slope.
        found = base + inner_product(slope, step) + last + 0.5 * tau * (way * way - radius * radius)
        far = length_of(x) + here + coarse * size / tau
        beside = FEW * (size + tau * way) * far
        terms = size * way + abs(last) + tau * (way * way + radius * radius)
        margin = (
            made.value + made.gradient * max(way, radius) + inner * terms + beside + errors_at(simple, x, last).value
        )
        if found - margin > best.value:
            best = Least(found - margin, margin, tau)
        # Inside, a larger weight may cost less than the rounding of a point that is far out; once, up to where both
        # are alike.
        lost = margin - made.value - made.gradient * max(way, radius)
        if way < radius and not is_near and lost > max(_CLEAR * (abs(base) + abs(found)), tau * radius * radius):
            is_near, tau = True, math.sqrt(lost * tau) / radius
            continue
        # Inside, a weight that costs no more than rounding is as good as none.
        if abs(way - radius) <= _CLOSE * radius or (
            way < radius and tau * radius * radius <= FEW * (abs(found) + terms)
        ):
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


def _without_linear(
    base: float, slope: Array, center: Array, simple: Function, made: Errors
) -> tuple[float, Array, Function, Errors]:
    """A simple part that is linear belongs to the model."""
    if not simple.linear or isinstance(simple, Zero):
        return base, slope, simple, made
    constant, tilt = value_aside(simple, center), simple.gradient(center)
    lost = errors_at(simple, center, constant, length_of(tilt))
    made = Errors(made.value + lost.value + FEW * (abs(base) + abs(constant)), made.gradient + lost.gradient)
    return base + constant, slope + tilt, Zero(), made
