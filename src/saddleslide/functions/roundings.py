"""What rounding can do to a computed value and gradient, from the sizes of their terms.

A small value may be what is left of large terms, as of 1/2 |A x - b|^2 where b = A x_0 + noise: its error follows
eps |A| |x| |A x - b| and not the value. The sizes of the terms follow from |x| and from the value itself, so that no
bound costs a product.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple, TypeAlias

from saddleslide.arrays.base import Array, length_of

EPS = 2.0**-52
# Operations on a whole value or gradient after its terms are summed: eight of them, as scalings and sums of functions.
FEW = 4.0 * EPS
# The caller's own code: as accurate as sums of some dozens of terms of the sizes that show.
_OWN = 64.0 * EPS

# Coefficients of |x|^i v^(j/2), rows i = 0, 1, 2, columns j = 0, 1, 2.
Table: TypeAlias = tuple[tuple[float, float, float], tuple[float, float, float], tuple[float, float, float]]
_Row: TypeAlias = tuple[float, float, float]
_NONE: _Row = (0.0, 0.0, 0.0)
EXACTLY: Table = (_NONE, _NONE, _NONE)
UNKNOWN: _Row = (math.inf, math.inf, math.inf)


def inner_error(terms: int) -> float:
    """Error of an inner product relative to the sizes of its terms; long ones are summed in 16 lanes."""
    return EPS * min(0.5 * (1.0 + terms), 8.0 + terms / 32.0)


class Errors(NamedTuple):
    """Bounds on the errors of a computed value and, in norm, of a computed gradient."""

    value: float
    gradient: float


@dataclass(frozen=True)
class Rounding:
    """Bounds on rounding as polynomials in |x| and the root of v, the value above its floor."""

    # Coefficients of |x|^i v^(j/2) in the bounds on both errors.
    value: Table = EXACTLY
    gradient: Table = EXACTLY
    # The value is at least -(a + (b + c sqrt(n)) |x|) for n entries; infinite where nothing is known.
    floor: _Row = _NONE
    # v is at most a + b |x| + c |x|^2, whatever the value; infinite where nothing is known.
    most: _Row = UNKNOWN
    # Error of every entry of the gradient on top.
    entrywise: float = 0.0
    # Errors relative to value, gradient and their product with x, of the caller's own code.
    own: float = 0.0
    # The other functions of a sum with code whose floor is unknown are at most a + b |x| + c |x|^2 in size: the
    # caller's code may cancel as much, and the sum does not show it.
    beside: _Row = _NONE

    def at(self, size: float, value: float, slope: float = 0.0, entries: int = 1) -> Errors:
        """The bounds at a point with |x| <= size, from the computed value and the size of the computed gradient."""
        if not math.isfinite(value):
            return Errors(math.inf, math.inf)
        below = self.floor[0] + (self.floor[1] + self.floor[2] * math.sqrt(entries)) * size
        above = value + below if math.isfinite(below) else math.inf
        largest = _along(self.most, size) if math.isfinite(self.most[0]) else math.inf
        # Rounding may have left a value that is 0 or more below its floor.
        v = max(min(above, largest), 0.0)
        v = abs(value) + _along(self.beside, size) if math.isinf(v) else v
        terms = v + below if math.isfinite(below) else max(v, abs(value))
        found = _at(self.value, size, v) + (inner_error(entries) + FEW) * terms
        turned = _at(self.gradient, size, v) + self.entrywise * math.sqrt(entries)
        found, turned = found + self.own * (max(terms, abs(value)) + slope * size), turned + self.own * slope
        return Errors(found if found == found else math.inf, turned if turned == turned else math.inf)

    def plus(self, other: Rounding) -> Rounding:
        """Of a sum: the parts share v, so roots of it add up as lengths do."""
        return Rounding(
            _add(self.value, other.value),
            _add(self.gradient, other.gradient),
            _plus(self.floor, other.floor),
            _plus(self.most, other.most),
            self.entrywise + other.entrywise,
            max(self.own, other.own),
            _plus(self._largest, other._largest),
        )

    @property
    def _largest(self) -> _Row:
        """The largest size of the part that is known; what nobody knows counts for nothing."""
        if not math.isfinite(self.floor[0]):
            return self.beside
        most = self.most if math.isfinite(self.most[0]) else self.beside
        return most[0] + self.floor[0], most[1] + self.floor[1], most[2]

    def over_levels(self, levels: int) -> Rounding:
        """Of a sum along a tree of so many levels: each of them rounds once more."""
        more, each = 1.0 + 0.25 * levels, levels * EPS
        value, gradient = ([_times(more, row) for row in table] for table in (self.value, self.gradient))
        # Where no floor is known, what own code rounds is all that can be told.
        floor = [part if math.isfinite(part) else 0.0 for part in self.floor]
        summed = _plus(value[0], (each * floor[0], 0.0, each))
        tilted_sums = _plus(value[1], (each * floor[1], 0.0, 0.0))
        return replace(
            self,
            value=(summed, tilted_sums, value[2]),
            gradient=(gradient[0], gradient[1], gradient[2]),
            entrywise=more * self.entrywise,
        )

    def times(self, factor: float) -> Rounding:
        """Of a multiple."""
        if factor == 0.0:
            return NO_ROUNDING
        return Rounding(
            _scale(self.value, factor),
            _scale(self.gradient, factor),
            _times(factor, self.floor),
            _times(factor, self.most),
            factor * self.entrywise,
            self.own,
            _times(factor, self.beside),
        )


NO_ROUNDING = Rounding(most=(0.0, 0.0, 0.0))
OWN_CODE = Rounding(floor=UNKNOWN, own=_OWN)


def round_linear(c: Array) -> Rounding:
    """Of <c, x>; a number c stands for as many entries as x has."""
    size = length_of(c)
    if c.ndim == 0:
        return Rounding(floor=(0.0, 0.0, size), entrywise=FEW * size)
    gradient = ((FEW * size, 0.0, 0.0), _NONE, _NONE)
    return Rounding(gradient=gradient, floor=(0.0, size, 0.0), most=(0.0, 2.0 * size, 0.0))


def join(parts: Iterable[Rounding]) -> Rounding:
    """Of a sum of many."""
    return reduce(Rounding.plus, parts, NO_ROUNDING)


def _along(row: _Row, size: float) -> float:
    return row[0] + row[1] * size + row[2] * size * size


def _at(table: Table, size: float, v: float) -> float:
    root, (first, second, third) = math.sqrt(v), table
    found = first[0] + first[1] * root + first[2] * v
    found += size * (second[0] + second[1] * root + second[2] * v)
    return found + size * size * (third[0] + third[1] * root + third[2] * v)


def _add(first: Table, second: Table) -> Table:
    rows = [(a[0] + b[0], math.hypot(a[1], b[1]), max(a[2], b[2])) for a, b in zip(first, second, strict=True)]
    return rows[0], rows[1], rows[2]


def _scale(table: Table, factor: float) -> Table:
    """What is left of the factor where v has it already."""
    rows = [(factor * row[0], math.sqrt(factor) * row[1], row[2]) for row in table]
    return rows[0], rows[1], rows[2]


def _plus(first: _Row, second: _Row) -> _Row:
    return first[0] + second[0], first[1] + second[1], first[2] + second[2]


def _times(factor: float, row: _Row) -> _Row:
    return factor * row[0], factor * row[1], factor * row[2]
