"""Simple terms for compiled loops: what the base case minimises beside its quadratic, entry by entry.

A term is a tuple (kind, stiffness, threshold, root, linear) and stands for the sum of stiffness/2 x^2 + threshold |x| +
root |x|^(3/2) / (3/2) + linear x, all of it divided by the metric's weight of the entry.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from numba import types

from saddleslide.arrays import Array
from saddleslide.kernels.building import INT, READ, helper
from saddleslide.kernels.kinds import ALIKE, NO_TERM
from saddleslide.kernels.sets import CompiledSet, interval

TERM = types.Tuple((INT, READ, READ, READ, READ))
CompiledTerm: TypeAlias = tuple[int, Array, Array, Array, Array]


@helper
def bent(pull: float, stiffness: float, threshold: float, root: float) -> float:
    """Solve stiffness x + threshold sign(x) + root sign(x) |x|^(1/2) = pull."""
    size = abs(pull) - threshold
    size = 0.0 if size < 0.0 else size
    part = 2.0 * size / (root + math.sqrt(root * root + 4.0 * stiffness * size) + (1.0 if size == 0.0 else 0.0))
    return math.copysign(part * part if root > 0.0 else size / stiffness, pull)


@helper
def limits(domain: CompiledSet, term: CompiledTerm) -> tuple[float, float]:
    """What may be clipped at once: a simple term comes before the sides."""
    return interval(domain) if term[0] == NO_TERM else (-math.inf, math.inf)


@helper
def minimise(v: Array, weight: float, term: CompiledTerm, start: int) -> None:
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
def fold_levels(fold: Array, pull: Array, slope: Array, of_x: CompiledTerm, of_y: CompiledTerm, n: int) -> None:
    """All outer levels, and the linear part of simple terms, as one vector."""
    for i in range(fold.size):
        fold[i] = pull[i] - slope[i]
    for term, first in ((of_x, 0), (of_y, n)):
        linear = term[4]
        for i in range(linear.size):
            fold[first + i] -= linear[i]
