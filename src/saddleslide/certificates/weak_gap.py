"""The weak gap of a point of a variational inequality, bounded from above by what is known of its components.

gap(z) = sup over u in Z of p(z) - p(u) + <Q(u), z - u>. Q is monotone, so <Q(u), z - u> is at most <Q(z), z - u>, and
where z is an average of points w_j with the weights a_j it is at most the sum of a_j <Q(w_j), w_j - u>. So two affine
functions of u are above what the sup is of: one from p'(z) and Q(z), one from averaged lower models of p and averaged
values of Q that a run has carried along. Their suprema over Z are closed forms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from saddleslide.arrays.base import Array, length_of, zeros
from saddleslide.domains.base import Domain
from saddleslide.errors import NoExactMinimumError
from saddleslide.functions.minimum import LowerModel
from saddleslide.functions.roundings import FEW


class Seen(NamedTuple):
    """What one component says at a point z.

    `slope` is p'(z) + Q(z), flat, where it has both; `value` p(z), NaN where unknown, and `error` what both may be off
    by, a declared delta included. `gradient` and `field` are p'(z) and Q(z) apart, None where absent; `carried` are an
    averaged lower model of p, and the averages of <Q(w), w> and Q(w), where a run has them.
    """

    gradient: Array | None
    field: Array | None
    value: float
    error: float
    model: LowerModel | None = None
    fields: LowerModel | None = None


def bound_weak_gap(seen: Sequence[Seen], z: Array, domain: Domain) -> tuple[float, str]:
    """The smaller of both bounds and what it came from: "gradients" or "models"; infinite on most unbounded sets."""
    here = _supremum([_at_the_point(one, z) for one in seen], z, domain)
    if not any(one.model is not None or one.fields is not None for one in seen):
        return here, "gradients"
    carried = _supremum([_from_averages(one, z) for one in seen], z, domain)
    return (carried, "models") if carried < here else (here, "gradients")


# A bound c - <s, u> on what one component adds: c, s, and the sizes of the terms of c.
_Piece = tuple[float, Array, float]


def _at_the_point(one: Seen, z: Array) -> _Piece:
    """p(z) - p(u) + <Q(u), z - u> <= <p'(z) + Q(z), z - u>."""
    parts = [part for part in (one.gradient, one.field) if part is not None]
    products = [float(np.vdot(part, z)) for part in parts]
    return sum(products) + one.error, _add_up(parts, z), sum(map(abs, products)) + one.error


def _from_averages(one: Seen, z: Array) -> _Piece:
    """P(z) less the model of p, and <average of Q(w)>, where they are known; else as at the point."""
    known, slopes, sizes = 0.0, [], 0.0
    if one.model is not None:
        known, sizes = one.value - one.model.constant + one.error, abs(one.value) + abs(one.model.constant) + one.error
        slopes.append(one.model.slope)
    elif one.gradient is not None:
        known = float(np.vdot(one.gradient, z)) + one.error
        sizes = abs(known) + one.error
        slopes.append(one.gradient)
    if one.fields is not None:
        known, sizes = known + one.fields.constant, sizes + abs(one.fields.constant)
        slopes.append(one.fields.slope)
    elif one.field is not None:
        product = float(np.vdot(one.field, z))
        known, sizes = known + product, sizes + abs(product)
        slopes.append(one.field)
    return known, _add_up(slopes, z), sizes


def _add_up(parts: Sequence[Array], z: Array) -> Array:
    total = zeros(z.shape, z)
    for part in parts:
        total += part
    return total


def _supremum(pieces: Sequence[_Piece], z: Array, domain: Domain) -> float:
    """The sup over u in the domain of the sum of c_i - <s_i, u>, rounded upwards; a gap is never below 0."""
    constant = sum(piece[0] for piece in pieces)
    slope = _add_up([piece[1] for piece in pieces], z)
    # Long averages and products round in every step.
    lost = 8.0 * FEW * (sum(piece[2] for piece in pieces) + length_of(slope) * length_of(z))
    try:
        found = LowerModel(-constant, slope.reshape(domain.shape)).tilted_minimum(zeros(domain.shape, z), domain)
    except NoExactMinimumError:
        return math.inf
    gap = -(found.value - found.error) + lost
    return max(gap, 0.0) if gap == gap else math.inf
