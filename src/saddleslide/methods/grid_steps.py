"""Primal-dual steps on the differences of a grid, many in one compiled call, where f and g are of known kinds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from saddleslide.arrays.kinds import NUMPY
from saddleslide.domains.entrywise import Box, FullSpace
from saddleslide.domains.norms import GroupBalls
from saddleslide.kernels.arguments import APART, Grid
from saddleslide.kernels.switch import jit_enabled, load
from saddleslide.operators.structured import FiniteDifferences

if TYPE_CHECKING:
    from saddleslide.arrays.base import Array
    from saddleslide.oracles.oracles import Oracles
    from saddleslide.problem import SaddleProblem

# Weights of the steps of x and y, the part of the last step of x that is added before that of y, and the share of the
# first point in the next one: 0 where steps are not reflected.
Rates: TypeAlias = tuple[float, float, float, float]
# Entries that one compiled call may touch: some tenths of a second at most, since it sees no limit until it returns.
_MOST_ENTRIES = 2**25
# Lines of fewer numbers are one row, where that has at most so many numbers.
_SHORT_LINE, _LONGEST_ROW = 256, 2**13


class GridSteps:
    """Steps of one problem, and the room for them."""

    def __init__(self, oracles: Oracles, grid: Grid) -> None:
        self.oracles, self.grid, self.kernels = oracles, grid, load("grids")
        problem = oracles.problem
        self.shapes, self.most = (problem.X.shape, problem.Y.shape), _MOST_ENTRIES // (problem.X.size + problem.Y.size)
        self.room = np.empty(problem.X.size + int(grid.sizes[-1]) * grid.values * grid.lines * (1 + grid.sizes.size))

    def advance(
        self, rates: Sequence[Rates], x: Array, y: Array, pull: Array, first: tuple[Array, Array]
    ) -> tuple[Array, Array, Array]:
        """Points x and y and B^T y after some steps, as new arrays."""
        moved = [np.array(v, dtype=np.float64, order="C").reshape(-1) for v in (x, y, pull)]
        still = [np.ascontiguousarray(v, dtype=np.float64).reshape(-1) for v in first]
        steps = np.array(rates, dtype=np.float64).reshape(-1, 4)
        for begin in range(0, len(rates), max(self.most, 1)):
            part = steps[begin : begin + max(self.most, 1)]
            self.oracles.products(
                2 * len(part), partial(self.kernels.grid_steps, self.grid, part, *moved, *still, self.room)
            )
        if not self.oracles.finite(*moved[:2]):
            raise self.oracles.not_finite("B", moved[0] if self.oracles.finite(moved[1]) else moved[1])
        (x_shape, y_shape), (x, y, pull) = self.shapes, moved
        return x.reshape(x_shape), y.reshape(y_shape), pull.reshape(x_shape)


def known_steps(oracles: Oracles) -> GridSteps | None:
    """Compiled steps for a problem; None where it is of no known kind."""
    problem = oracles.problem
    if not (jit_enabled(problem.X.size + problem.Y.size) and problem.arrays == NUMPY):
        return None
    grid = known_grid(problem)
    return None if grid is None else GridSteps(oracles, grid)


def known_grid(problem: SaddleProblem) -> Grid | None:
    """A quadratic f on an interval, differences, and g = bend/2 |y|^2 on an interval around 0 or on balls of groups."""
    X, Y, B = problem.X, problem.Y, problem.coupling
    f, g = problem.f.separable_form(), problem.g.separable_form()
    if not isinstance(B, FiniteDifferences) or f is None or f.is_curved or g is None or not g.isotropic:
        return None
    if np.any(g.linear):
        return None
    limits = X.uniform if isinstance(X, Box) else (-math.inf, math.inf) if isinstance(X, FullSpace) else None
    values, axes = math.prod(B.trailing), len(B.grid)
    group, radius = APART, math.nan
    if isinstance(Y, GroupBalls) and isinstance(Y.radii, float) and Y.shape == B.y_shape:
        # Along all axes of the grid: each of the values by itself, or all of them together.
        group = 1 if Y.axis == (0,) else values if Y.axis == (0, *range(axes + 1, len(B.y_shape))) else APART
        radius = Y.radii if group else math.nan
    elif isinstance(Y, Box) and Y.uniform is not None and Y.uniform[0] == -Y.uniform[1]:
        radius = Y.uniform[1]
    if limits is None or not math.isfinite(radius):
        return None
    stiffness, linear = (
        np.ascontiguousarray(np.broadcast_to(part, X.shape), dtype=np.float64).reshape(-1)
        for part in (f.quadratic, f.linear)
    )
    line, lines = B.grid[-1] * values, B.grid[-2] if axes > 1 else 1
    lines = lines if line < _SHORT_LINE and line * lines <= _LONGEST_ROW else 1
    return Grid(np.array(B.grid), values, stiffness, linear, *limits, float(g.quadratic), radius, group, lines)
