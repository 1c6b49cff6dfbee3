"""One primal-dual step on the coupling, compiled: update, clipping and progress in one pass a block."""

from __future__ import annotations

import math

from saddleslide.kernels.arguments import BOX, Array, Curve, DualUpdate, KnownSet, PrimalUpdate, Read, Write
from saddleslide.kernels.base_case import clip_into, clip_number, interval
from saddleslide.kernels.building import helper, kernel, summing


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
def _solve(v: Array, inverse: Array, curve: Curve, domain: KnownSet) -> None:
    """Solve x / inverse + threshold sign(x) + root sign(x) |x|^(1/2) = v entry by entry in the set, in place."""
    threshold, root = curve
    if threshold > 0.0 or root > 0.0:
        for i in range(v.size):
            size = abs(v[i]) - threshold
            size = 0.0 if size < 0.0 else size
            under = math.sqrt(root * root + 4.0 * size / inverse[i])
            part = 2.0 * size / (root + under + (1.0 if size == 0.0 else 0.0))
            v[i] = math.copysign(part * part if root > 0.0 else size * inverse[i], v[i])
    else:
        for i in range(v.size):
            v[i] *= inverse[i]
    clip_into(v, domain)


@summing
def _straight_primal(
    out: Array, pulled: Array, X: Array, update: PrimalUpdate, limits: tuple[float, float]
) -> tuple[float, float]:
    """The primal step where nothing bends and one interval holds every entry: all of it in one loop."""
    base, origin, near, inverse, weight = update
    (low, high), step, way = limits, 0.0, 0.0
    for i in range(out.size):
        new = clip_number((base[i] - pulled[i] + near[i] * X[i]) * inverse[i], low, high)
        d, e = new - X[i], new - origin[i]
        out[i] = new
        step += weight[i] * d * d
        way += weight[i] * e * e
    return step, way


@summing
def _straight_dual(
    out: Array, ahead: Array, y: Array, Bx: Array, update: DualUpdate, limits: tuple[float, float]
) -> tuple[float, float]:
    """The dual step in one loop, where that is possible."""
    constant, origin, inverse, weight = update
    (low, high), step, way = limits, 0.0, 0.0
    for i in range(out.size):
        new = clip_number((weight * y[i] + Bx[i] + constant[i]) * inverse[i], low, high)
        d, e = new - y[i], new - origin[i]
        out[i] = new
        ahead[i] = new + d
        step += d * d
        way += e * e
    return step, way


@helper
def _is_straight(curve: Curve, domain: KnownSet) -> bool:
    return not (curve.threshold > 0.0 or curve.root > 0.0) and domain.kind != BOX


@kernel
def primal_step(
    out: Write, pulled: Read, X: Read, update: PrimalUpdate, curve: Curve, domain: KnownSet
) -> tuple[float, float]:
    """Proximal step from base - pulled + near X; squares of the step and of the way, weighted."""
    if _is_straight(curve, domain):
        return _straight_primal(out, pulled, X, update, interval(domain))
    base, origin, near, inverse, weight = update
    for i in range(out.size):
        out[i] = base[i] - pulled[i] + near[i] * X[i]
    _solve(out, inverse, curve, domain)
    return _progress(out, X, origin, weight)


@kernel
def dual_step(
    out: Write, ahead: Write, y: Read, Bx: Read, update: DualUpdate, curve: Curve, domain: KnownSet
) -> tuple[float, float]:
    """Proximal step from weight y + Bx + constant, and ahead = 2 out - y; squares of the step and of the way."""
    constant, origin, inverse, weight = update
    if _is_straight(curve, domain):
        step, way = _straight_dual(out, ahead, y, Bx, update, interval(domain))
        return weight * step, weight * way
    for i in range(out.size):
        out[i] = weight * y[i] + Bx[i] + constant[i]
    _solve(out, inverse, curve, domain)
    for i in range(out.size):
        ahead[i] = 2.0 * out[i] - y[i]
    step, way = _plain_progress(out, y, origin)
    return weight * step, weight * way
