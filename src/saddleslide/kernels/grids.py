"""Primal-dual steps on a grid of any number of axes, compiled: differences, groups of them, and both proximal steps.

x is a stack of rows, lines along the last axis of the grid, with all numbers at a point side by side; where these are
short, a row is all lines of the last two axes. A step is one pass over the rows of x, with B^T y of a row made just
before, and a little behind it those of y, with the norms of their groups. Loops run at stride 1 along a row, so that
they become vector code; they stand in a few long functions, since every function adds to the time of compiling.
"""

from __future__ import annotations

import math

from saddleslide.kernels.arguments import APART, Array, Grid, Read, ReadMatrix, Write
from saddleslide.kernels.building import fusing, kernel

# Numbers that stay in the cache from one step to the next.
_CACHED = 2**16


@fusing
def _pull_row(grid: Grid, row: int, y: Array, out: Array) -> None:
    """B^T y in one row: what comes from the points before, less what goes to the points after."""
    line, axes, stride = grid.sizes[grid.sizes.size - 1] * grid.values, grid.sizes.size, 1
    width, reach = line * grid.lines, line - grid.values
    here, across = out[row * width : (row + 1) * width], y[row * width : (row + 1) * width]
    for begin in range(0, width, line):
        first, flow = here[begin : begin + line], across[begin : begin + line]
        shifted = first[grid.values :]
        for i in range(line):
            first[i] = -flow[i] if i < reach else 0.0
        for i in range(reach):
            shifted[i] += flow[i]
    for k in range(1, axes):
        size, begin = grid.sizes[axes - 1 - k], k * out.size + row * width
        if k == 1 and grid.lines > 1:
            within, below = y[begin : begin + width], here[line:]
            for i in range(width - line):
                here[i] -= within[i]
            for i in range(width - line):
                below[i] += within[i]
            continue
        place = (row // stride) % size
        # The point before, and this one where it has a point after.
        if place > 0:
            flow = y[begin - stride * width :]
            for i in range(width):
                here[i] += flow[i]
        if place < size - 1:
            flow = y[begin:]
            for i in range(width):
                here[i] -= flow[i]
        stride *= size


@fusing
def _primal_row(grid: Grid, row: int, step: Array, x: Array, pull: Array, ahead: Array, anchor: Array) -> None:
    """The proximal step of f from x - pull / weight in one row, and the point beyond it; x goes on from there."""
    width = grid.sizes[grid.sizes.size - 1] * grid.values * grid.lines
    begin, end = row * width, (row + 1) * width
    x, pull, ahead, linear = x[begin:end], pull[begin:end], ahead[begin:end], grid.linear[begin:end]
    stiffness, weight, theta, low, high = grid.stiffness[begin:end], step[0], step[2], grid.low, grid.high
    anchor, share = anchor[begin:end], step[3]
    for i in range(width):
        new = (weight * x[i] - pull[i] - linear[i]) / (weight + stiffness[i])
        new = low if new < low else new
        new = high if new > high else new
        beyond = (1.0 + theta) * new - theta * x[i]
        ahead[i] = beyond
        x[i] = (1.0 - share) * beyond + share * anchor[i] if share > 0.0 else new


@fusing
def _dual_row(grid: Grid, row: int, step: Array, ahead: Array, y: Array, room: Array, anchor: Array) -> None:
    """The proximal step of g from y + B ahead / weight in one row, all of its blocks; y goes on from there."""
    axes, rate, stride, share = grid.sizes.size, 1.0 / step[1], 1, step[3]
    width, line = room.size // (1 + axes), grid.sizes[grid.sizes.size - 1] * grid.values
    factors, old = room[:width], room[width:]
    shrink, radius, here = step[1] / (step[1] + grid.bend), grid.radius, ahead[row * width : (row + 1) * width]
    for i in range(width):
        factors[i] = 0.0
    for k in range(axes):
        v, shift, reach = y[k * ahead.size + row * width :], line, width - line
        if k > 1 or (k == 1 and grid.lines == 1):
            size = grid.sizes[axes - 1 - k]
            shift, reach = stride * width, width if (row // stride) % size < size - 1 else 0
            stride *= size
        if share > 0.0:
            before = old[k * width :]
            for i in range(width):
                before[i] = v[i]
        if k == 0:
            for begin in range(0, width, line):
                beyond, point, flow = ahead[row * width + begin + grid.values :], here[begin:], v[begin:]
                for i in range(line - grid.values):
                    flow[i] += rate * (beyond[i] - point[i])
        else:
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
    if grid.group > 1:
        for i in range(0, width, grid.group):
            total = 0.0
            for j in range(grid.group):
                total += factors[i + j]
            for j in range(grid.group):
                factors[i + j] = total
    if grid.group != APART:
        for i in range(width):
            # Squares of norms become what brings the groups into their balls.
            norm = shrink * math.sqrt(factors[i])
            factors[i] = shrink * radius / (norm if norm > radius else radius) if radius > 0.0 else 0.0
    for k in range(axes):
        begin = k * ahead.size + row * width
        v, before, first = y[begin:], old[k * width :], anchor[begin:]
        if grid.group != APART:
            for i in range(width):
                v[i] *= factors[i]
        if share > 0.0:
            for i in range(width):
                v[i] = (1.0 - share) * (2.0 * v[i] - before[i]) + share * first[i]


@kernel
def grid_steps(
    grid: Grid, steps: ReadMatrix, x: Write, y: Write, pull: Write, first_x: Read, first_y: Read, room: Write
) -> None:
    """Make steps from (x, y) with B^T y in `pull`, each with weights of x and y, theta, and the first point's share.

    Rows of y follow those of x that they look at, and the next step follows them: numbers are met again while they are
    in the cache.
    """
    axes = grid.sizes.size
    count, width = steps.shape[0], grid.sizes[axes - 1] * grid.values * grid.lines
    rows, ahead, rest = x.size // width, room[: x.size], room[x.size :]
    behind = rows // grid.sizes[0] if rows > 1 else 0
    together = max(1, _CACHED // max((axes + 5) * behind * width, 1))
    for first in range(0, count + 1, together):
        last = min(first + together, count + 1)
        for lead in range(rows + (last - first) * behind):
            for n in range(first, last):
                row = lead - (n - first) * behind
                if 0 <= row < rows:
                    if n > 0:
                        _pull_row(grid, row, y, pull)
                    if n < count:
                        _primal_row(grid, row, steps[n], x, pull, ahead, first_x)
                if n < count and 0 <= row - behind < rows:
                    _dual_row(grid, row - behind, steps[n], ahead, y, rest, first_y)
