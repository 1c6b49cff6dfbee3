"""Rays that prove that there is no solution, and hyperplanes that leave a set on one side.

Along a ray d of Y on which g is linear, F(x, y + t d) = F(x, y) + t (<B^T d, x> - <g', d>): where that slope is
positive for all x of the set within a distance, none of them has a finite maximum over y.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.certificates.certificate import Side
from saddleslide.certificates.within import Block, least_in_blocks
from saddleslide.domains.base import Domain
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.roundings import FEW, Errors
from saddleslide.functions.trust import runs_own_code
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
    far_x, far_y = far
    # The way since the last try and the point itself, with their products as far as these are known.
    x_ways, y_ways = [(at.x, -at.Bx)], [(at.y, at.pull)]
    if rays.passed is not None and rays.products is not None:
        (x, y), (pull, Bx) = rays.passed, rays.products
        x_ways, y_ways = [(at.x - x, Bx - at.Bx), *x_ways], [(at.y - y, at.pull - pull), *y_ways]
    rays.passed, rays.products = (at.x, at.y), (at.pull, at.Bx)
    near_x, near_y = (Near(*each) for each in zip((at.x, at.y), far, blocks, strict=True))
    if _has_ray(asked, asked.g, at.y, y_ways, at.Bx, asked.oracles.adjoint, near_x):
        raise RunEnded(names[0], _distance(far_x, "x" if names[0] == "INFEASIBLE" else "y"))
    if _has_ray(asked, asked.f, at.x, x_ways, -at.pull, lambda ray: -asked.oracles.forward(ray), near_y):
        raise RunEnded(names[1], _distance(far_y, "y" if names[1] == "UNBOUNDED" else "x"))


def _distance(far: Sequence[float], name: str) -> str:
    if len(far) == 1:
        return f"The distance is {far[0]:.4g} around {name}"
    return f"The distances are {', '.join(f'{one:.4g}' for one in far)} around the blocks of {name}"


def _has_ray(
    asked: Questions,
    side: Side,
    point: Array,
    ways: Sequence[tuple[Array, Array]],
    product: Array,
    adjoint: Callable[[Array], Array],
    near: Near,
) -> bool:
    """Whether a ray of one side, on which its function is linear, excludes all points of the other near a center.

    Points that run away go along such a ray, and so does what constraints are missed by.
    """
    function = side.function
    if side.domain.bounded or not function.linear or runs_own_code(function) or not all(r > 0.0 for r in near.radii):
        return False
    slope = function.gradient(point)
    for direction, expected in (*ways, (product - slope, None)):
        ray = side.domain.recession(direction)
        length = float(np.linalg.norm(ray))
        if 0.0 < length < math.inf:
            if expected is not None and np.array_equal(ray, direction) and not _is_likely(ray, expected, slope, near):
                continue
            ray = ray / length
            tilt = adjoint(ray)
            error = asked.product_error(ray, tilt) + FEW * float(np.linalg.norm(tilt))
            level = float(np.vdot(slope, ray)) + FEW * float(np.abs(slope * ray).sum())
            if separates(tilt, level, error, near):
                return True
    return False


def _is_likely(ray: Array, tilt: Array, slope: Array, near: Near) -> bool:
    """Whether a product that is known but for rounding leaves a chance that points much nearer are excluded."""
    size = float(np.linalg.norm(ray))
    closer = near._replace(radii=tuple(_CLOSER * radius for radius in near.radii))
    return separates(tilt / size, float(np.vdot(slope, ray)) / size, 0.0, closer)


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
        base, here = float(np.vdot(tilt, center)), float(np.linalg.norm(center))
        size = float(np.linalg.norm(tilt)) * (here + math.hypot(*radii))
        made, free = Errors(FEW * size, error), (math.nan,) * len(blocks)
        least, _, _ = least_in_blocks(base, tilt, center, radii, Zero(), blocks, made, free)
        return least - level > _MARGIN * (abs(base) + abs(level)) + error * here
    distance = float(points.support(-tilt))
    if points.bounded:
        rounding = error * points.radius_at_zero
    else:
        # Where the set has no end, a last bit of the tilt may be the difference between a proof and none.
        turned = (float(points.support(turn - tilt)) for turn in (-error, error))
        rounding = max(turned) - distance if distance < math.inf else math.inf
    return -distance - level > _MARGIN * (abs(distance) + abs(level)) + rounding


def excludes(A: Operator, b: Array, X: Domain, direction: Array, pull: Array) -> bool:
    """Whether <direction, A x - b> is positive on all of X, so that no x of it has A x = b; pull = A^T direction."""
    return separates(pull, float(np.vdot(direction, b)), A.product_error * float(np.linalg.norm(direction)), X)
