"""Weights with a given sum: simplices, also scaled and capped."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, final

import numpy as np

from saddleslide.arrays.base import Array, as_number, as_real, as_shape, beside, zeros
from saddleslide.arrays.kinds import to_host
from saddleslide.domains.base import Domain
from saddleslide.domains.program import Program
from saddleslide.errors import InputError, raise_all


def nearest_weights(point: Array, total: float = 1.0, out: Array | None = None) -> Array:
    """The nearest x >= 0 with a sum of `total`, in the shape of the point."""
    descending = np.sort(point.ravel())[::-1]
    # Shift by the largest entry: cumulative sums of huge equal entries would lose the total.
    partial = np.cumsum(descending - descending[0])
    thresholds = (partial - total) / np.cumsum(np.ones_like(descending))
    active = int(np.count_nonzero(descending - descending[0] > thresholds))
    found: Array = np.maximum(point - descending[0] - thresholds[max(active, 1) - 1], 0.0, out=out)
    if total == 0.0:
        found.fill(0.0)
        return found
    # The sum is right to the last bits.
    found /= found.sum()
    if total != 1.0:
        found *= total
    return found


class Weights(Domain):
    """x >= 0 with sum `scale`."""

    scale = 1.0

    def __init__(self, n: Any, scale: float = 1.0) -> None:
        self.shape = as_shape(n, "Simplex")
        if self.size == 0:
            raise InputError(f"Simplex: n is {n!r}; expected at least 1 entry.")
        self.scale = scale

    def shrunk(self, scale: float) -> Domain:
        smaller: Domain = Simplex(self.shape, self.scale / scale)
        return smaller

    def project(self, point: Array, out: Array | None = None) -> Array:
        return nearest_weights(point, self.scale, self._out(out, point))

    def as_program(self) -> Program:
        return Program.on(self.size, 0.0, rows=np.ones((1, self.size)), totals=self.scale)

    def maximizer(self, direction: Array) -> Array:
        vertex = zeros(self.size, direction)
        vertex[int(np.argmax(direction))] = self.scale
        return vertex.reshape(self.shape)

    def squared_radius(self, point: Array) -> float:
        # The farthest point of a polytope is a vertex: |s e_i - p|^2 = |p - s e_j|^2 + 2 s (p_j - p_i).
        offset = point.ravel().copy()
        offset[int(np.argmin(offset))] -= self.scale
        return float(np.vdot(offset, offset))

    def diameter(self) -> float:
        return math.sqrt(2.0) * self.scale if self.size > 1 else 0.0

    def magnitude(self) -> float:
        return self.scale

    def violation(self, point: Array) -> float:
        return max(float(np.max(-point)), abs(float(point.sum()) - self.scale), 0.0)


@final
class Simplex(Weights):
    """Arrays with x >= 0 and sum `scale`: probability vectors of length n unless another sum is given.

    Examples
    --------
    >>> import numpy as np
    >>> Simplex(3).project(np.array([0.5, 0.5, 3.0]))
    array([0., 0., 1.])
    >>> Simplex(3, scale=6.0).project(np.zeros(3))
    array([2., 2., 2.])
    """

    # Compiled loops and closed forms know the sum 1 alone, so that another one makes a set of another class.
    def __new__(cls, n: Any = None, scale: float = 1.0) -> Any:
        scale = as_number(scale, "Simplex: scale", 0.0)
        return super().__new__(cls, n) if scale == 1.0 else ScaledSimplex(n, scale)

    def __repr__(self) -> str:
        return f"Simplex({self.shape})"


@final
class ScaledSimplex(Weights):
    """What `Simplex` makes of a scale other than 1."""

    def __repr__(self) -> str:
        return f"Simplex({self.shape}, scale={self.scale})"


@final
class CappedSimplex(Domain):
    """Arrays with 0 <= x <= cap and sum `total`.

    With cap = 1 / (alpha n) these are the weights of the conditional value at risk, the mean of the worst part alpha.

    Parameters
    ----------
    n : int or tuple of int
        Shape of the points.
    cap : float or array
        Largest value of the entries, of all or of each.
    total : float, optional
        The sum; at most that of the caps.

    Examples
    --------
    >>> import numpy as np
    >>> CappedSimplex(3, 0.5).project(np.array([0.1, 5.0, 0.3]))
    array([0.15, 0.5 , 0.35])
    """

    def __init__(self, n: Any, cap: Any, total: float = 1.0) -> None:
        self.shape = as_shape(n, "CappedSimplex")
        caps = as_real(cap, "CappedSimplex: cap")
        self.total = as_number(total, "CappedSimplex: total", 0.0)
        complaints = []
        if caps.ndim and caps.shape != self.shape:
            complaints.append(f"cap has shape {caps.shape}; expected a number or shape {self.shape}.")
        elif (caps < 0.0).any():
            complaints.append("cap has negative entries; expected numbers >= 0.")
        raise_all("CappedSimplex", complaints)
        self._alike = caps.ndim == 0
        self.cap = np.broadcast_to(caps, self.shape)
        self._room = math.fsum(self.cap.ravel().tolist()) - self.total
        # Caps of total / n are meant to leave one point.
        if self.size == 0 or self._room < -1e-14 * self.total:
            raise InputError(
                f"CappedSimplex: the caps sum up to {self._room + self.total:g}, total is {self.total:g}; expected "
                "caps whose sum is at least the total."
            )

    def __repr__(self) -> str:
        return f"CappedSimplex({self.shape}, {float(self.cap.flat[0]) if self._alike else 'array'}, total={self.total})"

    def shrunk(self, scale: float) -> Domain:
        cap = self.cap.flat[0] if self._alike else self.cap
        return CappedSimplex(self.shape, cap / scale, self.total / scale)

    def as_program(self) -> Program:
        return Program.on(self.size, 0.0, self.cap, np.ones((1, self.size)), self.total)

    def project(self, point: Array, out: Array | None = None) -> Array:
        cap = beside(point, self.cap)

        def at(shift: float) -> Array:
            clipped: Array = np.minimum(np.maximum(point - shift, 0.0), cap)
            return clipped

        # The sum falls with the shift, along straight lines between those where an entry leaves its cap or meets 0.
        shifts = np.sort(np.concatenate([point.ravel(), (point - cap).ravel()]))
        low, high = -1, 2 * self.size
        while high - low > 1:
            middle = (low + high) // 2
            if float(at(float(shifts[middle])).sum()) >= self.total:
                low = middle
            else:
                high = middle
        above = at(float(shifts[low])) if low >= 0 else cap
        below = at(float(shifts[high])) if high < 2 * self.size else zeros(self.shape, point)
        # No shift is computed: beside large entries it would be rounding.
        rest = float((above - below).sum())
        part = (self.total - float(below.sum())) / rest if rest > 0.0 else 0.0
        found = below + min(max(part, 0.0), 1.0) * (above - below)
        size, out = float(found.sum()), self._out(out, point)
        np.minimum(found * (self.total / size if size > 0.0 else 0.0), cap, out=out)
        return out

    def maximizer(self, direction: Array) -> Array:
        # The largest entries of the direction get their caps, the next one what is left.
        order, caps = np.argsort(-to_host(direction).ravel(), kind="stable"), self.cap.ravel()
        full = int(np.searchsorted(np.cumsum(caps[order]), self.total))
        vertex = np.zeros(self.size)
        vertex[order[:full]] = caps[order[:full]]
        if full < self.size:
            vertex[order[full]] = min(max(self.total - math.fsum(caps[order[:full]].tolist()), 0.0), caps[order[full]])
        found: Array = beside(direction, vertex.reshape(self.shape))
        return found

    def squared_radius(self, point: Array) -> float:
        if self._alike:
            # All vertices have the same norm, so that the farthest one is the least along the point.
            offset = self.maximizer(-point) - point
            return float(np.vdot(offset, offset))
        # x^2 <= cap x.
        return max(self.support(self._largest - 2.0 * point) + float(np.vdot(point, point)), 0.0)

    @cached_property
    def _largest(self) -> Array:
        return np.minimum(self.cap, self.total)

    def diameter(self) -> float:
        # Of x and x' >= 0, |x - x'|^2 <= |x|^2 + |x'|^2; the same holds of cap - x; and no entry moves farther.
        rest = max(self._room, 0.0)
        widths = np.minimum(self._largest, rest)
        sizes = (self.squared_radius(np.zeros(self.shape)), rest * float(np.max(widths)))
        return math.sqrt(min(2.0 * min(sizes), float(np.vdot(widths, widths))))

    def magnitude(self) -> float:
        return float(np.max(self._largest))

    def violation(self, point: Array) -> float:
        over = np.maximum(-point, point - beside(point, self.cap))
        return max(float(np.max(over)), abs(float(point.sum()) - self.total), 0.0)
