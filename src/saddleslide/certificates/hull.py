"""What recent points say together: cuts of f and of g over the convex hull of points that were called.

For any weights a of cuts c_i + <s_i, .> of f, and b of points y_j, both with the sum 1,

    min over x of F(x, sum b_j y_j)
        >=  sum a_i c_i - sum b_j g(y_j) + min over X of <sum a_i s_i + sum b_j B^T y_j, x>,

since f lies above its cuts and g is convex. No oracle is called: all is known from the points themselves. The best
weights are those of a linear program with one row a cut and a point (functions/maxima.py). From above it is the same
with the roles of f and g exchanged.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.certificates.candidate import Column, HullState, YColumn
from saddleslide.domains.base import Domain
from saddleslide.functions.base import Function
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.maxima import Affine, best_weights
from saddleslide.functions.minimum import tilted_minimum
from saddleslide.functions.roundings import FEW, Errors, inner_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from saddleslide.certificates.bounds import Bounds
    from saddleslide.certificates.inspection import Inspection
    from saddleslide.certificates.residuals import ResidualBound


# Columns that are kept, and what a use counts for after one look more.
_COLUMNS, _FADING = 20, 0.8
_NONE = Errors(0.0, 0.0)
# Looks are 1 + seen // _RARER candidates apart, and exact to this part of the gap.
_RARER, _EXACT = 10, 1e-2


_Column = TypeVar("_Column", bound=Column)


class Bound(NamedTuple):
    """A lower bound on the least of f(x) + <y, B x> - g(y) over X at a y of the hull, and the weights behind it.

    `margin` is what rounding takes of the value, `inside` of which is taken already; `terms` are the sizes of what it
    was summed of.
    """

    value: float
    margin: float
    inside: float
    terms: float
    point: Array
    cut_weights: Array
    point_weights: Array


def keep(columns: list[_Column], column: _Column, most: int) -> list[_Column]:
    """The columns with one more; of too many, the one that has been used least is left out."""
    if len(columns) >= most:
        idle = min(range(len(columns)), key=lambda i: columns[i].use)
        columns = [*columns[:idle], *columns[idle + 1 :]]
    return [*columns, column]


def note_use(columns: list[_Column], *weights: Array) -> list[_Column]:
    """The columns after a look at which they had these weights."""
    faded = np.array([_FADING * column.use for column in columns])
    uses = np.max([faded, *weights], axis=0).tolist()
    return [replace(column, use=use) for column, use in zip(columns, uses, strict=True)]


def stack(rows: Iterable[Array]) -> Array:
    """Arrays as the rows of a matrix."""
    return np.stack([row.ravel() for row in rows])


def least_over_hull(
    cuts: Sequence[Column], points: Sequence[Column], simple: Function, domain: Domain, start: Array, tol: float,
    product_error: Callable[[Array, Array], float], made: Errors = _NONE,
) -> Bound:  # fmt: skip
    """The best bound from the cuts of f and the points of y with their images.

    The set must be bounded. `tol` is what the bound may lie below the best one, roughly, `product_error` bounds the
    error of a product of a point, and `made` what all cuts may be off by besides.
    """
    slopes, images = stack(cut.slope for cut in cuts), stack(point.image for point in points)
    values = np.array([cut.constant for cut in cuts] + [-point.total for point in points])
    functions = Affine(values, np.vstack([slopes, images]), (len(cuts), len(points)))
    weights = best_weights(functions, simple, domain, start.ravel(), tol)
    value, slope = functions.weigh(weights)
    found = tilted_minimum(simple, slope.reshape(domain.shape), domain)
    a, b = np.split(weights, [len(cuts)])
    where, radius = stack(point.point for point in points), domain.radius_at_zero
    steep = np.linalg.norm(functions.slopes, axis=1)
    wrong = max(cut.wrong for cut in cuts) + max(product_error(point.point, point.image) for point in points)
    terms = float(weights @ (np.abs(functions.values) + steep * radius))
    lost = float(a @ [cut.lost for cut in cuts] + b @ [point.error for point in points])
    margin = lost + made.value + (wrong + made.gradient) * radius + (inner_error(weights.size) + FEW) * terms
    hull_point = (b @ where).reshape(points[0].point.shape)
    return Bound(value + found.lower, margin, found.rounding, terms + abs(found.lower), hull_point, a, b)


def look_over_hull(
    hull: HullState, at: Inspection, seen: int, bounds: Bounds, sides: tuple[ResidualBound, ResidualBound]
) -> None:
    """Keep what a candidate brings, unless its method remembers that itself; now and then both bounds.

    Where a costly f or g has no Lipschitz gradient, single gradients bound little.
    """
    asked, candidate, (below, above) = at.asked, at.candidate, sides
    f, g = candidate.columns or (hull.f, hull.g)
    if candidate.columns is None:
        pull = at.pull
        if (known := at.f_known) is not None:
            f = keep(f, Column.of(at.x, at.value, at.Bx, known, at.error, below.errors(known)), _COLUMNS)
        if (known := at.g_known) is not None:
            g = keep(g, YColumn.of(at.y, at.g_value, pull, known, at.g_error, above.errors(known)), _COLUMNS)
    if seen >= hull.next_look and f and g:
        hull.next_look = seen + 1 + seen // _RARER
        tol = _EXACT * (bounds.gap if math.isfinite(bounds.gap) else abs(at.value) + abs(at.g_value))
        f_made, g_made = below.own_errors_of(f), above.own_errors_of(g)
        f_weights, g_weights = [], []
        X, Y, split, error_of = asked.problem.X, asked.problem.Y, asked.split, asked.product_error
        if X.bounded:
            found = least_over_hull(f, g, split.f_simple, X, at.x, tol, error_of, f_made)
            bounds.accept_lower(found.value, found.point, "hull", found.margin, found.terms, found.inside)
            f_weights, g_weights = [found.cut_weights], [found.point_weights]
        if Y.bounded and not isinstance(split.g_rest, Zero):
            points = [replace(column, image=-column.image) for column in f]
            found = least_over_hull(g, points, split.g_simple, Y, at.y, tol, error_of, g_made)
            bounds.accept_upper(-found.value, found.point, found.margin, found.terms, found.inside)
            f_weights, g_weights = [*f_weights, found.point_weights], [*g_weights, found.cut_weights]
        f, g = note_use(f, *f_weights), note_use(g, *g_weights)
    hull.f, hull.g = f, g
