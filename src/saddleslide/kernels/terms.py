"""Simple terms for compiled loops: what the base case minimises beside its quadratic, entry by entry."""

from __future__ import annotations

import math

from saddleslide.arrays.base import Array
from saddleslide.kernels.arguments import Above, KnownSet, KnownTerm
from saddleslide.kernels.building import helper
from saddleslide.kernels.kinds import ALIKE, NO_TERM
from saddleslide.kernels.sets import interval


@helper
def bent(pull: float, stiffness: float, threshold: float, root: float) -> float:
    """Solve stiffness x + threshold sign(x) + root sign(x) |x|^(1/2) = pull."""
    size = abs(pull) - threshold
    size = 0.0 if size < 0.0 else size
    part = 2.0 * size / (root + math.sqrt(root * root + 4.0 * stiffness * size) + (1.0 if size == 0.0 else 0.0))
    return math.copysign(part * part if root > 0.0 else size / stiffness, pull)


@helper
def limits(domain: KnownSet, term: KnownTerm) -> tuple[float, float]:
    """What may be clipped at once: a simple term comes before the sides."""
    return interval(domain) if term.kind == NO_TERM else (-math.inf, math.inf)


@helper
def minimise(v: Array, weight: float, term: KnownTerm, start: int) -> None:
    """Turn centres into minimisers of the term plus weight/2 |x - center|^2, in place; v begins at entry `start`."""
    kind, stiffness, threshold, root, _ = term
    if kind == NO_TERM:
        return
    if kind == ALIKE:
        total, bend, curve = weight + stiffness[0], threshold[0], root[0]
        if bend == 0.0 and curve == 0.0:
            factor = weight / total
            for i in range(v.size):
                v[i] *= factor
        else:
            for i in range(v.size):
                v[i] = bent(weight * v[i], total, bend, curve)
        return
    end = start + v.size
    own, bends, curves = stiffness[start:end], threshold[start:end], root[start:end]
    for i in range(v.size):
        v[i] = bent(weight * v[i], weight + own[i], bends[i], curves[i])


@helper
def fold_levels(fold: Array, above: Above, f: KnownTerm, g: KnownTerm, n: int) -> None:
    """All outer levels, and the linear part of simple terms, as one vector."""
    pull, slope = above.pull, above.slope
    for i in range(fold.size):
        fold[i] = pull[i] - slope[i]
    for linear, first in ((f.linear, 0), (g.linear, n)):
        for i in range(linear.size):
            fold[first + i] -= linear[i]
