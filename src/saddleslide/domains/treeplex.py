"""Strategies of games in sequence form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, final

import numpy as np

from saddleslide.arrays.arguments import as_whole
from saddleslide.arrays.base import Array, beside
from saddleslide.arrays.kinds import to_host
from saddleslide.domains.base import Domain
from saddleslide.errors import InputError, raise_all


class Curve(NamedTuple):
    """A function of one number that is 0 up to a first knot, then rises along straight lines, without end."""

    knots: Array
    values: Array
    # Slope beyond the last knot.
    slope: float

    def at(self, places: Array) -> Array:
        """Values at places."""
        inside: Array = np.interp(places, self.knots, self.values)
        beyond: Array = self.slope * np.maximum(places - self.knots[-1], 0.0)
        return inside + beyond


@final
class Treeplex(Domain):
    """Strategies in sequence form, of a player with perfect recall.

    x >= 0 has one entry for every action of every information set, in order: those of the first set, those of the
    second, and so on. The actions of a set share the weight of the action that leads there: with p the parent of the
    set, the sum of x over its actions is x_p, or 1 where it has no parent.

    Parameters
    ----------
    parents : sequence of int
        For each information set the index in x of the last action that the player took before it; -1 for none.
        Parents come before their sets.
    actions : sequence of int
        How many actions each information set has.

    Examples
    --------
    >>> import numpy as np
    >>> bet_then_answer = Treeplex(parents=[-1, 0], actions=[2, 2])
    >>> bet_then_answer.project(np.array([0.5, 0.5, 1.25, 0.0]))
    array([0.75, 0.25, 0.75, 0.  ])
    >>> bet_then_answer.support(np.array([1.0, 2.0, 0.5, 3.0]))
    4.0
    """

    projects_on_host = True

    def __init__(self, parents: Sequence[int], actions: Sequence[int]) -> None:
        try:
            counts = [as_whole(count, "Treeplex: actions", 1) for count in actions]
            above = [as_whole(parent, "Treeplex: parents", -1) for parent in parents]
        except TypeError:
            raise InputError("Treeplex: parents or actions is no sequence; expected one number for each set.") from None
        complaints = []
        if len(counts) != len(above) or not counts:
            complaints.append(f"{len(above)} parents and {len(counts)} actions; expected one each for every set.")
        starts = np.concatenate([[0], np.cumsum(counts, dtype=np.intp)])
        late = [j for j, (parent, start) in enumerate(zip(above, starts, strict=False)) if parent >= start]
        complaints += [f"parents[{j}] is {above[j]}; expected an action of an earlier set, or -1." for j in late]
        raise_all("Treeplex", complaints)
        self.shape = (int(starts[-1]),)
        self._starts, self._parents = starts[:-1], above
        self._sets = [slice(int(a), int(b)) for a, b in pairwise(starts)]
        # The sets that follow each action.
        self._following: list[list[int]] = [[] for _ in range(self.size)]
        for j, parent in enumerate(above):
            if parent >= 0:
                self._following[parent].append(j)

    def __repr__(self) -> str:
        return f"Treeplex({len(self._sets)} information sets, {self.size} sequences)"

    def project(self, point: Array, out: Array | None = None) -> Array:
        # With multipliers m, the weight t of a set as a function of m has straight pieces, and so has each action's.
        # From the last set to the first these are added up; then the weight 1 is shared out from the first to the last.
        out, target = self._out(out, point), to_host(point)
        weights: dict[int, Curve] = {}
        shares: dict[int, Array] = {}
        for j in reversed(range(len(self._sets))):
            indices = self._sets[j]
            below = {k: self._curve(float(target[k]), k, weights) for k in self._indices(j) if self._following[k]}
            knots = np.unique(np.concatenate([-target[indices], *(curve.knots for curve in below.values())]))
            # One row for every knot, and one on the way to infinity.
            table = np.ones((knots.size + 1, indices.stop - indices.start))
            np.maximum(knots[:, None] + target[indices], 0.0, out=table[:-1])
            for k, curve in below.items():
                table[:-1, k - indices.start], table[-1, k - indices.start] = curve.at(knots), curve.slope
            totals = table.sum(axis=1)
            # No set has a weight above 1.
            last = min(int(np.searchsorted(totals[:-1], 1.0)) + 1, knots.size)
            weights[j] = Curve(knots[:last], totals[:last], float(totals[-1]))
            shares[j] = np.vstack([table[:last], table[-1]])
        found = np.empty(self.shape)
        for j, indices in enumerate(self._sets):
            weight = 1.0 if self._parents[j] < 0 else float(found[self._parents[j]])
            found[indices] = _share_out(weight, shares[j], weights[j])
        np.copyto(out, found)
        return out

    def _indices(self, j: int) -> range:
        return range(self._sets[j].start, self._sets[j].stop)

    def _curve(self, target: float, action: int, weights: dict[int, Curve]) -> Curve:
        """The weight of an action by the multiplier m of its set: where x - target + what the sets below add is m."""
        below = [weights[j] for j in self._following[action]]
        places = np.unique(np.concatenate([curve.values for curve in below]))
        inverse = [Curve(curve.values, curve.knots, 1.0 / curve.slope) for curve in below]
        knots = places - target + np.sum([curve.at(places) for curve in inverse], axis=0)
        return Curve(knots, places, 1.0 / (1.0 + sum(curve.slope for curve in inverse)))

    def maximizer(self, direction: Array) -> Array:
        # The best of each set, from the last to the first, in twice the precision: sums of branches may nearly tie.
        best, lost = to_host(direction).astype(np.float64), np.zeros(self.shape)
        choice = np.zeros(len(self._sets), dtype=np.intp)
        for j in reversed(range(len(self._sets))):
            a = max(self._indices(j), key=lambda a: (best[a], lost[a]))
            choice[j], parent = a, self._parents[j]
            if parent >= 0:
                total, rest = _two_sum(float(best[parent]), float(best[a]))
                best[parent], lost[parent] = _two_sum(total, rest + float(lost[parent]) + float(lost[a]))
        vertex = np.zeros(self.shape)
        for j, parent in enumerate(self._parents):
            vertex[choice[j]] = 1.0 if parent < 0 else vertex[parent]
        found: Array = beside(direction, vertex)
        return found

    def squared_radius(self, point: Array) -> float:
        # Vertices are pure strategies, of zeros and ones: |v - p|^2 = |p|^2 + <1 - 2 p, v>.
        offset = self.maximizer(1.0 - 2.0 * point) - point
        return float(np.vdot(offset, offset))

    def diameter(self) -> float:
        return self._diameter

    @cached_property
    def _diameter(self) -> float:
        # Most ones that a pure strategy has below each action, and most entries in which two differ.
        ones, apart = np.ones(self.size), np.zeros(self.size)
        total = 0.0
        for j in reversed(range(len(self._sets))):
            two = np.sort(ones[self._sets[j]])[::-1][:2]
            widest = max(float(np.max(apart[self._sets[j]])), float(two.sum()) if two.size == 2 else 0.0)
            parent = self._parents[j]
            if parent < 0:
                total += widest
            else:
                ones[parent] += two[0]
                apart[parent] += widest
        return math.sqrt(total)

    def magnitude(self) -> float:
        return 1.0

    def violation(self, point: Array) -> float:
        here = to_host(point)
        given = np.append(here, 1.0)[self._parents]
        return max(float(np.max(-here)), float(np.max(np.abs(np.add.reduceat(here, self._starts) - given))), 0.0)


def _share_out(weight: float, shares: Array, curve: Curve) -> Array:
    """The weight of a set shared out to its actions: between two knots along a straight line."""
    # No multiplier is computed: beside large entries it would be rounding.
    k = int(np.searchsorted(curve.values, weight, side="right")) - 1
    way, length = shares[-1], curve.slope
    if k + 1 < curve.values.size:
        way, length = shares[k + 1] - shares[k], float(curve.values[k + 1] - curve.values[k])
    found: Array = np.maximum(shares[k] + (weight - float(curve.values[k])) / length * way, 0.0)
    size = float(found.sum())
    return found * (weight / size) if size > 0.0 else found


def _two_sum(a: float, b: float) -> tuple[float, float]:
    """A sum and what its rounding has lost (Knuth)."""
    total = a + b
    added = total - a
    return total, (a - (total - added)) + (b - added)
