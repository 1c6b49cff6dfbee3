"""Rays that prove that there is no solution, and hyperplanes that leave a set on one side.

Along a ray d of Y on which g rises by a slope s at most, F(x, y + t d) >= F(x, y) + t (<B^T d, x> - s): where that is
positive for all x of the set within a distance, none of them has a finite maximum over y.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from saddleslide.arrays.base import Array, inner_product, length_of
from saddleslide.certificates.certificate import Side
from saddleslide.certificates.within import Block, least_in_blocks
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import Box
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.roundings import FEW, Errors, inner_error
from saddleslide.functions.trust import is_own_class, recession_of, runs_own_code
from saddleslide.operators.base import Mirrored, Operator
from saddleslide.oracles.calls import RunEnded

if TYPE_CHECKING:
    from saddleslide.certificates.inspection import Inspection, Questions
    from saddleslide.certificates.unbounded import Lengths, Rays

# Something is proved by more than this part of its terms.
_MARGIN = 1e-9
# A ray that does not even exclude the points within this part of the distance is not worth a product.
_CLOSER = 1e-3
Blocks = tuple[tuple[Block, ...], tuple[Block, ...]]


def seek(rays: Rays, at: Inspection, asked: Questions, blocks: Blocks, far: Lengths) -> None:
    """End the run at a ray of Y along which F rises whatever x is, or of X along which it falls whatever y is.

    Rays exclude points within the distances `far` of the candidate, one a block.
    """
    names = ("INFEASIBLE", "UNBOUNDED")
    names = names[::-1] if isinstance(asked.problem.coupling, Mirrored) else names
    # The way since the last try and the point itself, with their products as far as these are known.
    x_ways, y_ways = [(at.x, -at.Bx)], [(at.y, at.pull)]
    if rays.passed is not None and rays.products is not None:
        (x, y), (pull, Bx) = rays.passed, rays.products
        x_ways, y_ways = [(at.x - x, Bx - at.Bx), *x_ways], [(at.y - y, at.pull - pull), *y_ways]
    rays.passed, rays.products = (at.x, at.y), (at.pull, at.Bx)
    near_x, near_y = (Near(*each) for each in zip((at.x, at.y), far, blocks, strict=True))
    excluded = _exclude(asked, asked.g, at.y, y_ways, at.Bx, asked.oracles.adjoint, near_x, asked.f.domain)
    if excluded is not None:
        raise RunEnded(names[0], _distance(excluded, "x" if names[0] == "INFEASIBLE" else "y"))

    def push(ray: Array) -> Array:
        return -asked.oracles.forward(ray)

    excluded = _exclude(asked, asked.f, at.x, x_ways, -at.pull, push, near_y, asked.g.domain)
    if excluded is not None:
        raise RunEnded(names[1], _distance(excluded, "y" if names[1] == "UNBOUNDED" else "x"))


def _distance(excluded: Near | Domain, name: str) -> str:
    if isinstance(excluded, Domain):
        return f"The distance is infinite around {name}"
    far = excluded.radii
    if len(far) == 1:
        return f"The distance is {far[0]:.4g} around {name}"
    return f"The distances are {', '.join(f'{one:.4g}' for one in far)} around the blocks of {name}"


def _exclude(
    asked: Questions,
    side: Side,
    point: Array,
    ways: Sequence[tuple[Array, Array]],
    product: Array,
    adjoint: Callable[[Array], Array],
    near: Near,
    others: Domain,
) -> Near | Domain | None:
    """What a ray of one side, along which its function rises by no more than a slope, excludes of the other.

    That may be all of the other set, or its points near a center. Points that run away go along such a ray, and so does
    what constraints are missed by.
    """
    function, domain = side.function, side.domain
    # Of a bounded set the bound is exact.
    whole = (others,) if others.bounded and not others.own_code and not is_own_class(others) else ()
    is_near = all(0.0 < radius < math.inf for radius in near.radii)
    if domain.bounded or not (whole or is_near):
        return None
    is_linear = function.linear and not runs_own_code(function)
    misses = [(product - function.gradient(point), None)] if is_linear else []
    closer = near._replace(radii=tuple(_CLOSER * radius for radius in near.radii))
    # What is asked of a ray, and before a product is made.
    wanted: tuple[Near | Domain, ...] = (*whole, near) if is_near else whole
    least: tuple[Near | Domain, ...] = (*whole, closer) if is_near else whole
    for direction, expected in (*ways, *misses):
        along = domain.recession(direction)
        ray, slope, size = recession_of(function, along)
        length = length_of(ray)
        if not 0.0 < length < math.inf or not (
            np.array_equal(ray, along) or np.array_equal(domain.recession(ray), ray)
        ):
            continue
        level = (slope + (inner_error(ray.size) + FEW) * size) / length
        if expected is not None and np.array_equal(ray, direction):
            # A product that is known but for rounding may leave no chance that points much nearer are excluded.
            known = expected / length
            if not any(separates(known, level, 0.0, points) for points in least):
                continue
        ray = ray / length
        tilt = adjoint(ray)
        error = asked.product_error(ray, tilt) + FEW * length_of(tilt)
        for points in wanted:
            if separates(tilt, level, error, points):
                return points
    return None


class Near(NamedTuple):
    """The points of a set whose blocks lie within radii of those of a center."""

    center: Array
    radii: tuple[float, ...]
    blocks: tuple[Block, ...]


def separates(tilt: Array, level: float, error: float, points: Near | Domain) -> bool:
    """Whether <tilt, x> > level for all points of a set, or those near a center, whatever rounding has done.

    `error` bounds what the tilt is wrong by.
    """
    if isinstance(points, Near):
        center, radii, blocks = points
        base, here = inner_product(tilt, center), length_of(center)
        size = length_of(tilt) * (here + math.hypot(*radii))
        made, free = Errors((inner_error(tilt.size) + FEW) * size, error), (math.nan,) * len(blocks)
        least, _, _ = least_in_blocks(base, tilt, center, radii, Zero(), blocks, made, free)
        return least - level > _MARGIN * (abs(base) + abs(level)) + error * here
    distance = float(points.support(-tilt))
    # The support is a sum, of terms that may cancel.
    summed = (inner_error(tilt.size) + FEW) * length_of(tilt)
    if points.bounded:
        rounding = (error + summed) * points.radius_at_zero
    else:
        # Where the set has no end, a last bit of the tilt may be the difference between a proof and none.
        turned = (float(points.support(turn - tilt)) for turn in (-error, error))
        rounding = max(turned) - distance + summed * _reach(points) if distance < math.inf else math.inf
    return -distance - level > _MARGIN * (abs(distance) + abs(level)) + rounding


def _reach(domain: Domain) -> float:
    """How far the ends of boxes lie from 0, infinite ones left out; cones, the other sets without an end, are at 0."""
    boxes = [part for part in domain.blocks if isinstance(part, Box)]
    sides = [np.broadcast_to(side, part.shape) for part in boxes for side in (part.lower, part.upper)]
    return math.hypot(*(length_of(np.where(np.isfinite(side), side, 0.0)) for side in sides))


def excludes(A: Operator, b: Array, X: Domain, direction: Array, pull: Array) -> bool:
    """Whether <direction, A x - b> is positive on all of X, so that no x of it has A x = b; pull = A^T direction."""
    size = length_of(direction)
    level = inner_product(direction, b) + (inner_error(direction.size) + FEW) * size * length_of(b)
    return separates(pull, level, A.product_error * size, X)
