"""Primal-dual steps on a grid of any number of axes, compiled: differences, groups of them, and both proximal steps.

x is a stack of rows, those along the last axis of the grid, with all numbers at a point side by side. A step is one
pass over the rows for x, with B^T y of a row made just before, and one for y, with the norms of its groups. Loops run
at stride 1 along a row, so that they become vector code; they stand in a few long functions, since every function adds
to the time of compiling.
"""

from __future__ import annotations

import math

from saddleslide.kernels.arguments import APART, Array, Grid, ReadMatrix, Write
from saddleslide.kernels.building import fusing, helper, kernel


@fusing
def _pull_row(grid: Grid, row: int, y: Array, out: Array) -> None:
    """B^T y in one row: what comes from the points before, less what goes to the points after."""
    width, axes, stride = grid.sizes[grid.sizes.size - 1] * grid.values, grid.sizes.size, 1
    here, across = out[row * width : (row + 1) * width], y[row * width : (row + 1) * width]
    shifted, reach = here[grid.values :], width - grid.values
    for i in range(width):
        here[i] = -across[i] if i < reach else 0.0
    for i in range(reach):
        shifted[i] += across[i]
    for k in range(1, axes):
        size, begin = grid.sizes[axes - 1 - k], k * out.size + row * width
        place, sign = (row // stride) % size, 1.0
        for side in range(2):
            # The point before, and this one where it has a point after.
            if place > 0 if side == 0 else place < size - 1:
                flow = y[begin - (1 - side) * stride * width :]
                sign = 1.0 - 2.0 * side
                for i in range(width):
                    here[i] += sign * flow[i]
        stride *= size


@fusing
def _primal_row(grid: Grid, row: int, step: Array, x: Array, pull: Array, ahead: Array) -> None:
    """The proximal step of f from x - pull / weight in one row, and the point beyond it."""
    width = grid.sizes[grid.sizes.size - 1] * grid.values
    begin, end = row * width, (row + 1) * width
    x, pull, ahead, linear = x[begin:end], pull[begin:end], ahead[begin:end], grid.linear[begin:end]
    stiffness, weight, theta, low, high = grid.stiffness[begin:end], step[0], step[2], grid.low, grid.high
    for i in range(width):
        new = (weight * x[i] - pull[i] - linear[i]) / (weight + stiffness[i])
        new = low if new < low else new
        new = high if new > high else new
        ahead[i] = (1.0 + theta) * new - theta * x[i]
        x[i] = new


@fusing
def _dual_row(grid: Grid, row: int, step: Array, ahead: Array, y: Array, factors: Array) -> None:
    """The proximal step of g from y + B ahead / weight in one row, all of its blocks."""
    width, axes, rate, stride = factors.size, grid.sizes.size, 1.0 / step[1], 1
    shrink, radius, here = step[1] / (step[1] + grid.bend), grid.radius, ahead[row * width : (row + 1) * width]
    for i in range(width):
        factors[i] = 0.0
    for k in range(axes):
        v, shift, reach = y[k * ahead.size + row * width :], grid.values, width - grid.values
        if k > 0:
            size = grid.sizes[axes - 1 - k]
            shift, reach = stride * width, width if (row // stride) % size < size - 1 else 0
            stride *= size
        beyond = ahead[row * width + shift :]
        for i in range(reach):
            v[i] += rate * (beyond[i] - here[i])
        if grid.group == APART:
            for i in range(width):
                new = shrink * v[i]
                new = -radius if new < -radius else new
                v[i] = radius if new > radius else new
        else:
            for i in range(width):
                factors[i] += v[i] * v[i]
    if grid.group == APART:
        return
    if grid.group > 1:
        for i in range(0, width, grid.group):
            total = 0.0
            for j in range(grid.group):
                total += factors[i + j]
            for j in range(grid.group):
                factors[i + j] = total
    for i in range(width):
        # Squares of norms become what brings the groups into their balls.
        norm = shrink * math.sqrt(factors[i])
        factors[i] = shrink * radius / (norm if norm > radius else radius) if radius > 0.0 else 0.0
    for k in range(axes):
        v = y[k * ahead.size + row * width :]
        for i in range(width):
            v[i] *= factors[i]


@helper
def _average(mean: Array, v: Array, share: float) -> None:
    for i in range(mean.size):
        mean[i] += share * (v[i] - mean[i])


@kernel
def grid_steps(
    grid: Grid, steps: ReadMatrix, x: Write, y: Write, pull: Write, mean_x: Write, mean_y: Write, room: Write
) -> None:
    """Make steps from (x, y) with B^T y in `pull`: each has weights of x and y, theta, and its share in the mean."""
    width = grid.sizes[grid.sizes.size - 1] * grid.values
    rows, ahead, factors = x.size // width, room[: x.size], room[x.size :]
    for n in range(steps.shape[0] + 1):
        for row in range(rows):
            if n > 0:
                _pull_row(grid, row, y, pull)
            if n < steps.shape[0]:
                _primal_row(grid, row, steps[n], x, pull, ahead)
        if n == steps.shape[0]:
            return
        for row in range(rows):
            _dual_row(grid, row, steps[n], ahead, y, factors)
        if steps[n, 3] > 0.0:
            _average(mean_x, x, steps[n, 3])
            _average(mean_y, y, steps[n, 3])
