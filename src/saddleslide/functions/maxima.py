"""The least of a sum of maxima of affine functions, beside a quadratic of entries, on a box with equations.

    minimum over lower <= x <= upper, E x = e of   sum over the groups of max_i (a_i + <s_i, x>) + <c, x> + <x, q x> / 2

by a primal-dual interior-point method. All matrices are as large as there are affine functions and equations: a step is
linear in the entries of x. The weights that come with the point have the sum 1 in each group, and the maxima may be
replaced by the functions weighed with them: that is what bounds and proximal steps of cutting planes are made of.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

from saddleslide.arrays.base import Array, length_of
from saddleslide.domains.base import Domain
from saddleslide.domains.program import Program, program_of
from saddleslide.functions.base import Function

# A step goes this part of the way to the nearest bound, and there are so many at most.
_NEARLY, _STEPS = 0.995, 50
# A first point keeps this part of the width of the box away from its bounds.
_INSET = 0.1
# What the diagonal of the system has on top, relative to itself: functions may be the same.
_LIFT = 1e-13
# On other sets than boxes: rounds between the set and the functions, and proximal steps.
_ROUNDS, _PROXIMAL = 3, 8


class Affine(NamedTuple):
    """Affine functions a_i + <s_i, x>, one a row, group after group; `sizes` says how many each group has."""

    values: Array
    slopes: Array
    sizes: tuple[int, ...]

    def weigh(self, weights: Array) -> tuple[float, Array]:
        """The sum of all with these weights, value at 0 and slope: below the sum of the maxima."""
        return float(weights @ self.values), weights @ self.slopes

    def largest(self, x: Array) -> float:
        """The sum of the maxima at x."""
        at = self.values + self.slopes @ x
        return float(np.maximum.reduceat(at, np.cumsum((0, *self.sizes[:-1]))).sum())

    def shares(self, weights: Array) -> Array:
        """The weights without what is negative, each group with the sum 1."""
        parts = np.split(np.maximum(weights, 0.0), np.cumsum(self.sizes)[:-1])
        return np.concatenate([part / part.sum() for part in parts])


class Least(NamedTuple):
    """A point near the least one, and the weights there."""

    point: Array
    weights: Array


def least_maximum(functions: Affine, program: Program, start: Array, tol: float) -> Least:
    """The least of the sum of maxima plus the quadratic of a program, on its box with its equations.

    `tol` is what the value may be off by, roughly: weights are weights in any case. The kinks of a program are left
    out.
    """
    if (program.lower >= program.upper).any():
        return _beside_fixed(functions, program, start, tol)
    inside = _Interior(functions, program, start)
    for _ in range(_STEPS):
        if not inside.left() > tol or not inside.step():
            break
    return Least(inside.x, functions.shares(inside.multipliers[: functions.values.size]))


class _Interior:
    """A point strictly inside of everything: distances and what multiplies them are positive."""

    def __init__(self, functions: Affine, program: Program, start: Array) -> None:
        self.values, self.slopes, sizes = functions
        self.program, self.k = program, self.values.size
        self.rows = program.rows.toarray()
        self.G = np.vstack([self.slopes, self.rows]) if len(self.rows) else self.slopes
        self.member = np.repeat(np.arange(len(sizes)), sizes)
        self.border = np.zeros((len(self.G), len(sizes)))
        self.border[np.arange(self.k), self.member] = 1.0
        lower, upper = program.lower, program.upper
        self.has_lower, self.has_upper = np.isfinite(lower), np.isfinite(upper)
        self.pairs = self.k + int(self.has_lower.sum() + self.has_upper.sum())
        inset = _INSET * np.minimum(upper - lower, np.maximum(1.0, np.abs(start)))
        self.x = np.clip(start, lower + inset, upper - inset)
        # What an entry may move by: the unit in which a slope that is wrong is one of the value.
        self.reach = np.minimum(upper - lower, 2.0 * np.maximum(1.0, np.abs(self.x)))
        self.below = np.where(self.has_lower, self.x - lower, 1.0)
        self.above = np.where(self.has_upper, upper - self.x, 1.0)
        self.multipliers = np.concatenate([1.0 / np.repeat(sizes, sizes), np.zeros(len(self.rows))])
        at = self.values + self.slopes @ self.x
        tops = np.maximum.reduceat(at, np.cumsum((0, *sizes[:-1])))
        spread = float((tops[self.member] - at).max())
        self.tops = tops + (max(spread, 1e-3 * float(np.abs(self.slopes).max(initial=0.0))) or 1.0)
        self.room = self.tops[self.member] - at
        slope = self._slope()
        size = 0.1 * float(np.abs(slope).max(initial=0.0)) or 1.0
        self.z_lower = self.has_lower * (np.maximum(slope, 0.0) + size)
        self.z_upper = self.has_upper * (np.maximum(-slope, 0.0) + size)

    def _slope(self) -> Array:
        found: Array = self.program.linear + self.program.quadratic * self.x + self.G.T @ self.multipliers
        return found

    def left(self) -> float:
        """What the value may still be off by; what is missed in every equation is kept for the next step."""
        self.wrong = self.z_lower - self.z_upper - self._slope()
        heights = self.values + self.slopes @ self.x + self.room - self.tops[self.member]
        self.missed = np.concatenate([heights, self.rows @ self.x - self.program.totals])
        gap = self.z_lower @ self.below + self.z_upper @ self.above + self.multipliers[: self.k] @ self.room
        self.gap = float(gap)
        return self.gap + float(np.abs(self.wrong) @ self.reach) + float(np.abs(self.missed).max(initial=0.0))

    def step(self) -> bool:
        """Predictor and corrector by one factor; whether that went well."""
        weights = self.multipliers[: self.k]
        to_lower, to_upper, to_room = self.z_lower / self.below, self.z_upper / self.above, self.room / weights
        D = self.program.quadratic + to_lower + to_upper
        across = self.G / D
        normal = across @ self.G.T
        diagonal = np.einsum("ii->i", normal)
        diagonal[: self.k] += to_room
        diagonal *= 1.0 + _LIFT
        factor, failed = lapack.dpotrf(normal, lower=1, overwrite_a=1)
        if failed:
            return False
        bordered = lapack.dpotrs(factor, self.border, lower=1)[0]
        corner, unit = self.border.T @ bordered, 1.0 - self.border.T @ self.multipliers

        def direction(aim: float, pushes: tuple[Any, Any, Any]) -> tuple[Array, ...]:
            """Newton's step towards products of `aim`; the pushes are what the products of the predictor leave."""
            pull_lower = self.has_lower * (aim - pushes[0]) / self.below - self.z_lower
            pull_upper = self.has_upper * (aim - pushes[1]) / self.above - self.z_upper
            pull_room = (aim - pushes[2]) / weights - self.room
            right = self.wrong + pull_lower - pull_upper
            left = self.missed + across @ right
            left[: self.k] += pull_room
            v = lapack.dpotrs(factor, left, lower=1)[0]
            dt = np.linalg.solve(corner, self.border.T @ v - unit)
            dm = v - bordered @ dt
            dx = (right - self.G.T @ dm) / D
            dr, dl = pull_room - to_room * dm[: self.k], pull_lower - to_lower * dx
            return dx, dm, dt, dr, dl, pull_upper + to_upper * dx

        try:
            found = direction(0.0, (0.0, 0.0, 0.0))
            length, (dx, dm, dt, dr, dl, du) = min(1.0, self._longest(*found)), found
            left = float((self.z_lower + length * dl) @ (self.below + length * self.has_lower * dx))
            left += float((self.z_upper + length * du) @ (self.above - length * self.has_upper * dx))
            left += float((weights + length * dm[: self.k]) @ (self.room + length * dr))
            aim = (max(left, 0.0) / self.gap) ** 3 * self.gap / self.pairs
            found = direction(aim, (dl * dx, -du * dx, dr * dm[: self.k]))
        except np.linalg.LinAlgError:
            return False
        length = min(1.0, _NEARLY * self._longest(*found))
        dx, dm, dt, dr, dl, du = (length * part for part in found)
        if not np.isfinite(dx).all() or not np.isfinite(dm).all():
            return False
        # Distances are kept for themselves: what is left of x - lower has no digits near the bound.
        self.x, self.tops, self.multipliers = self.x + dx, self.tops + dt, self.multipliers + dm
        self.below, self.above = self.below + self.has_lower * dx, self.above - self.has_upper * dx
        self.room, self.z_lower, self.z_upper = self.room + dr, self.z_lower + dl, self.z_upper + du
        return True

    def _longest(self, dx: Array, dm: Array, dt: Array, dr: Array, dl: Array, du: Array) -> float:
        """How far one may go before a positive number is used up."""
        ways = (
            self.has_lower * dx / self.below, self.has_upper * -dx / self.above, dr / self.room,
            dm[: self.k] / self.multipliers[: self.k], _ratio(dl, self.z_lower), _ratio(du, self.z_upper),
        )  # fmt: skip
        return 1.0 / max(1e-300, *(-float(way.min(initial=0.0)) for way in ways))


def _beside_fixed(functions: Affine, program: Program, start: Array, tol: float) -> Least:
    """The same in the entries that can move."""
    free = program.lower < program.upper
    x, fixed = program.lower.copy(), ~free
    values, rows = functions.values + functions.slopes[:, fixed] @ x[fixed], program.rows.tocsc()
    inside = replace(
        program, quadratic=program.quadratic[free], linear=program.linear[free], lower=program.lower[free],
        upper=program.upper[free], rows=rows[:, free], totals=program.totals - rows[:, fixed] @ x[fixed],
    )  # fmt: skip
    x[free], weights = least_maximum(
        Affine(values, functions.slopes[:, free], functions.sizes), inside, start[free], tol
    )
    return Least(x, weights)


def _ratio(way: Array, from_: Array) -> Array:
    """Changes relative to what they change; 0 where there is nothing."""
    found: Array = np.divide(way, from_, out=np.zeros_like(way), where=from_ > 0.0)
    return found


def near_maximum(functions: Affine, domain: Domain, center: Array, weight: float, tol: float) -> Least:
    """The least of the sum of maxima plus weight/2 |x - center|^2 over a set with a projection; flat arrays.

    Exact to `tol` on boxes with equations; on others the better of a few rounds between the set and the functions.
    """
    program = domain.as_program()
    if program is not None:
        quadratic, linear = program.quadratic + weight, program.linear - weight * center
        return least_maximum(functions, replace(program, quadratic=quadratic, linear=linear), center, tol)
    free = Program.on(center.size)
    free.quadratic[:] = weight
    best, chosen = -np.inf, Least(center, functions.shares(np.ones(functions.values.size)))
    point, weights = chosen
    for _ in range(_ROUNDS):
        value, slope = functions.weigh(weights)
        point = domain.project((center - slope / weight).reshape(domain.shape)).ravel()
        step = point - center
        low = value + float(slope @ point) + 0.5 * weight * float(step @ step)
        if low > best:
            best, chosen = low, Least(point, weights)
        if functions.largest(point) - value - float(slope @ point) <= tol:
            break
        # The set pulls as it did at the last point: of the functions alone, that is another center.
        weights = least_maximum(functions, replace(free, linear=-weight * point - slope), point, tol).weights
    return chosen


def join_simple(functions: Affine, simple: Function, domain: Domain) -> tuple[Affine, Program | None]:
    """What stands for the functions beside a simple one: with its slope where it is linear, else with its program."""
    if simple.linear:
        slope = np.broadcast_to(simple.gradient(np.zeros(domain.shape)), domain.shape).ravel()
        slopes = functions.slopes.copy()
        slopes[: functions.sizes[0]] += slope
        return functions._replace(slopes=slopes), domain.as_program()
    return functions, program_of(simple, domain) or domain.as_program()


def best_weights(functions: Affine, simple: Function, domain: Domain, start: Array, tol: float) -> Array:
    """Weights at which the least of the weighed functions and a simple one over a bounded set is nearly the largest.

    Up to `tol` on boxes with equations; on others by a few proximal steps from the start. Kinks and curvature of a
    simple function beside no program are not seen.
    """
    functions, program = join_simple(functions, simple, domain)
    if program is not None:
        return least_maximum(functions, program, start, tol).weights
    best, chosen = -np.inf, functions.shares(np.ones(functions.values.size))
    steep = length_of(functions.weigh(chosen)[1])
    weight = steep / domain.radius(start.reshape(domain.shape)) or 1.0
    for _ in range(_PROXIMAL):
        start, weights = near_maximum(functions, domain, start, weight, tol)
        value, slope = functions.weigh(weights)
        low = value - domain.support(-slope.reshape(domain.shape))
        if low > best:
            best, chosen = low, weights
        if functions.largest(start) - best <= tol:
            break
    return chosen
