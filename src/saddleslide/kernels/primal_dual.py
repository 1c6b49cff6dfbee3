"""One primal-dual step on the coupling, compiled: update, clipping and progress in one pass a block."""

from __future__ import annotations

import math

from numba import types

from saddleslide.arrays import Array
from saddleslide.kernels.building import FLAT, FLOAT, READ, helper, kernel, summing
from saddleslide.kernels.kinds import BOX, INTERVAL
from saddleslide.kernels.sets import SET, CompiledSet, clipped, interval

_TWO = types.UniTuple(FLOAT, 2)


@summing
def _progress(new: Array, old: Array, origin: Array, weight: Array) -> tuple[float, float]:
    """Weighted squares of the step and of the way from the origin."""
    step, way = 0.0, 0.0
    for i in range(new.size):
        d, e = new[i] - old[i], new[i] - origin[i]
        step += weight[i] * d * d
        way += weight[i] * e * e
    return step, way


@summing
def _plain_progress(new: Array, old: Array, origin: Array) -> tuple[float, float]:
    step, way = 0.0, 0.0
    for i in range(new.size):
        d, e = new[i] - old[i], new[i] - origin[i]
        step += d * d
        way += e * e
    return step, way


@helper
def _clip(v: Array, domain: CompiledSet) -> None:
    low, high = interval(domain)
    if domain[0] == INTERVAL:
        for i in range(v.size):
            v[i] = clipped(v[i], low, high)
    if domain[0] == BOX:
        lower, upper = domain[1], domain[2]
        for i in range(v.size):
            v[i] = clipped(v[i], lower[i], upper[i])


@helper
def _bend(v: Array, inverse: Array, threshold: float, root: float) -> None:
    """Solve x / inverse + threshold sign(x) + root sign(x) |x|^(1/2) = v entry by entry, in place."""
    for i in range(v.size):
        size = abs(v[i]) - threshold
        size = 0.0 if size < 0.0 else size
        part = 2.0 * size / (root + math.sqrt(root * root + 4.0 * size / inverse[i]) + (1.0 if size == 0.0 else 0.0))
        found = part * part if root > 0.0 else size * inverse[i]
        v[i] = math.copysign(found, v[i])


@helper
def _solve(v: Array, inverse: Array, curve: tuple[float, float], domain: CompiledSet) -> None:
    """The proximal step whose linear part v is, in place."""
    if curve[0] > 0.0 or curve[1] > 0.0:
        _bend(v, inverse, curve[0], curve[1])
    else:
        for i in range(v.size):
            v[i] *= inverse[i]
    _clip(v, domain)


@summing
def _straight_primal(
    out: Array, base: Array, pulled: Array, X: Array, origin: Array, near: Array, inverse: Array, weight: Array,
    low: float, high: float,
) -> tuple[float, float]:  # fmt: skip
    """The primal step where nothing bends and one interval holds every entry: all of it in one loop."""
    step, way = 0.0, 0.0
    for i in range(out.size):
        new = clipped((base[i] - pulled[i] + near[i] * X[i]) * inverse[i], low, high)
        d, e = new - X[i], new - origin[i]
        out[i] = new
        step += weight[i] * d * d
        way += weight[i] * e * e
    return step, way


@summing
def _straight_dual(
    out: Array, ahead: Array, y: Array, origin: Array, Bx: Array, constant: Array, inverse: Array, weight: float,
    low: float, high: float,
) -> tuple[float, float]:  # fmt: skip
    """The dual step in one loop, where that is possible."""
    step, way = 0.0, 0.0
    for i in range(out.size):
        new = clipped((weight * y[i] + Bx[i] + constant[i]) * inverse[i], low, high)
        d, e = new - y[i], new - origin[i]
        out[i] = new
        ahead[i] = new + d
        step += d * d
        way += e * e
    return step, way


@helper
def _is_straight(curve: tuple[float, float], domain: CompiledSet) -> bool:
    return not (curve[0] > 0.0 or curve[1] > 0.0) and domain[0] != BOX


@kernel(_TWO, FLAT, READ, READ, READ, READ, READ, READ, READ, _TWO, SET)
def primal_step(
    out: Array, base: Array, pulled: Array, X: Array, origin: Array, near: Array, inverse: Array, weight: Array,
    curve: tuple[float, float], domain: CompiledSet,
) -> tuple[float, float]:  # fmt: skip
    """Proximal step from base - pulled + near X; squares of the step and of the way, weighted."""
    if _is_straight(curve, domain):
        low, high = interval(domain)
        return _straight_primal(out, base, pulled, X, origin, near, inverse, weight, low, high)
    for i in range(out.size):
        out[i] = base[i] - pulled[i] + near[i] * X[i]
    _solve(out, inverse, curve, domain)
    return _progress(out, X, origin, weight)


@kernel(_TWO, FLAT, FLAT, READ, READ, READ, READ, READ, FLOAT, _TWO, SET)
def dual_step(
    out: Array, ahead: Array, y: Array, origin: Array, Bx: Array, constant: Array, inverse: Array, weight: float,
    curve: tuple[float, float], domain: CompiledSet,
) -> tuple[float, float]:  # fmt: skip
    """Proximal step from weight y + Bx + constant, and ahead = 2 out - y; squares of the step and of the way."""
    if _is_straight(curve, domain):
        low, high = interval(domain)
        step, way = _straight_dual(out, ahead, y, origin, Bx, constant, inverse, weight, low, high)
        return weight * step, weight * way
    for i in range(out.size):
        out[i] = weight * y[i] + Bx[i] + constant[i]
    _solve(out, inverse, curve, domain)
    for i in range(out.size):
        ahead[i] = 2.0 * out[i] - y[i]
    step, way = _plain_progress(out, y, origin)
    return weight * step, weight * way
