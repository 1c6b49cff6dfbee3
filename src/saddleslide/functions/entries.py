"""Minimisers of separable functions on boxes, entry by entry, with what each of them may leave open.

A known form has its minimiser in closed form, or by Newton's method: the kink at 0, a stationary point, or an end of
the box. Its slopes are added up without rounding, so that their signs are those of the form as it is stored, also where
its terms cancel. A function of the caller's own has slopes alone: brackets are halved in the order of doubles, where
some seventy halvings lead from any bracket to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.functions.base import Function
from saddleslide.functions.roundings import EPS
from saddleslide.functions.separable import SeparableForm, balance_size, form_beside
from saddleslide.functions.trust import gradient_aside

_SMALLEST = 5e-324
_LARGEST = float(np.finfo(np.float64).max)
# About eleven halvings find the order of size, 53 more the last bit.
_HALVINGS = 80
_LARGEST_BRACKET = 1e150
# Half the width of the bracket around a closed form: slopes at its ends stand out from rounding, while what it may hide
# is this part of the rounding of the value.
_NEAR = 2.0**-20


class Entries(NamedTuple):
    """A minimiser, by how much each entry of it may miss the minimum, and how it was found; no point if unbounded."""

    point: Array | None
    missed: Array
    method: str


class _Slope(NamedTuple):
    """Slopes to the left and to the right, how far off rounding may have put them, and the size of their terms."""

    left: Array
    right: Array
    margin: Array
    size: Array


_Slopes = Callable[[Array], _Slope]


def minimal_entries(f: Function, c: Array, lower: Array, upper: Array, accuracy: float = 0.0) -> Entries:
    """Minimise f(x) + <c, x> over lower <= x <= upper, entry by entry; `accuracy` is what all may miss together."""
    share = 0.5 * accuracy / max(c.size, 1)
    form = form_beside(f, c)
    # What a class of the caller's says of its form is not believed: its slopes decide.
    if form is None or f.own_code:

        def own_slopes(x: Array) -> _Slope:
            gradient = gradient_aside(f, x)
            slope = gradient + c
            return _Slope(slope, slope, np.zeros_like(slope), np.abs(gradient) + np.abs(c))

        return _search(own_slopes, c, lower, upper, share)
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        point = np.clip(_balance_point(form, c), lower, upper)
        if np.isinf(point).any():
            return Entries(None, np.zeros_like(c), "unbounded below")
        slopes = partial(_form_slopes, form, c)
        missed, rounding = _bound_miss(slopes, point, lower, upper, share)
        unclear = missed > np.maximum(share, rounding)
        if unclear.any():
            other = _search(slopes, c, lower, upper, share).point
            if other is not None:
                point = np.where(unclear, other, point)
                missed, _ = _bound_miss(slopes, point, lower, upper, share)
    return Entries(point, missed, "closed form")


def _balance_point(form: SeparableForm, c: Array) -> Array:
    """Where the form's own slope balances its linear part and c; infinite where it never does."""
    pull, lost = _two_sum(np.zeros_like(c) - form.linear, -c)
    size = np.abs(pull), np.where(pull < 0.0, -lost, lost)
    for weight, nu in form.powers:
        size = _plus(size, -weight) if nu == 0.0 else size
    # A pull that the kinks at 0 hold back leaves the point there.
    beyond = np.maximum(size[0] + size[1], 0.0)
    for weight, _ in form.hubers:
        size = _plus(size, -weight)
    bounded = form.quadratic + sum((weight for weight, nu in form.powers if nu > 0.0), start=0.0) == 0.0
    endless = bounded & (size[0] + size[1] > 0.0)
    found = balance_size(form, np.where(endless, 0.0, beyond), form.quadratic)
    found = np.where(beyond > 0.0, found, 0.0)
    # Where the slope is 0 from the last bend on, that bend is a minimiser.
    last = max((delta for weight, delta in form.hubers if weight > 0.0), default=0.0)
    found = np.where(bounded & (beyond > 0.0), np.minimum(found, last), found)
    return np.copysign(np.where(endless, np.inf, found), pull)


def _two_sum(a: Array, b: Array | float) -> tuple[Array, Array]:
    """The sum, and what its rounding has lost (Knuth)."""
    both = a + b
    part = both - a
    return both, (a - (both - part)) + (b - part)


def _plus(both: tuple[Array, Array], term: Array | float) -> tuple[Array, Array]:
    """One more term of a sum that is kept with what was lost."""
    total, lost = _two_sum(both[0], term)
    return total, both[1] + lost


def _form_slopes(form: SeparableForm, c: Array, x: Array) -> _Slope:
    """Slopes of the form plus <c, x>; of their terms only products and powers are rounded."""
    away = np.abs(x)
    # Sizes of the smooth terms, where they are inexact, and by how many roundings.
    terms: list[tuple[Array, Any, float]] = []
    if np.ndim(form.quadratic) or form.quadratic:
        terms.append((form.quadratic * away, (form.quadratic > 0.0) & (away > 0.0), 1.0))
    for weight, nu in form.powers:
        if nu > 0.0:
            terms.append((weight * away**nu, (weight > 0.0) & (away > 0.0), 4.0))
    for height, delta in form.hubers:
        terms.append((height * np.minimum(away / delta, 1.0), (away > 0.0) & (away < delta), 2.0))
    total = _two_sum(form.linear + np.zeros_like(c), c)
    size, margin = np.abs(form.linear) + np.abs(c), np.zeros_like(c)
    for term, inexact, units in terms:
        total, size = _plus(total, np.copysign(term, x)), size + term
        margin = margin + np.where(inexact, units * EPS * term + _SMALLEST, 0.0)
    left = right = total
    for weight, nu in form.powers:
        if nu == 0.0:
            left = _plus(left, np.where(x > 0.0, weight, -weight))
            right = _plus(right, np.where(x >= 0.0, weight, -weight))
            size = size + weight
    return _Slope(left[0] + left[1], right[0] + right[1], margin, size)


def _bound_miss(slopes: _Slopes, x: Array, lower: Array, upper: Array, share: float) -> tuple[Array, Array]:
    """By how much each entry may miss its minimum, by convexity, and what rounding of its value is of the order of."""
    here = slopes(x)
    rounding = EPS * np.abs(x) * here.size
    # The last sum of a slope is rounded, which does not change its sign.
    falling = np.maximum(here.margin - here.right + EPS * np.abs(here.right), 0.0)
    rising = np.maximum(here.margin + here.left + EPS * np.abs(here.left), 0.0)
    missed = _most(falling, upper - x, rising, x - lower)
    if (missed > share).any():
        # The minimiser lies nearby wherever slopes there say so, beyond their own rounding.
        width = _NEAR * np.abs(x) + 4.0 * _SMALLEST
        left, right = np.maximum(x - width, lower), np.minimum(x + width, upper)
        at_left, at_right = slopes(left), slopes(right)
        low = np.where(at_left.left <= -at_left.margin, left, lower)
        high = np.where(at_right.right >= at_right.margin, right, upper)
        missed = _most(falling, high - x, rising, x - low)
    return missed, rounding


def _most(falling: Array, ahead: Array, rising: Array, behind: Array) -> Array:
    """The larger of what a step to the right and one to the left could gain; what is no number is unknown."""
    gained = np.maximum(np.where(falling == 0.0, 0.0, falling * ahead), np.where(rising == 0.0, 0.0, rising * behind))
    return np.where(gained <= _LARGEST, gained, np.inf)


def _search(slopes: _Slopes, c: Array, lower: Array, upper: Array, share: float) -> Entries:
    """From slopes alone: the minimiser lies between the ends of a bracket, so what is missed is |slope| times width."""
    bracket = _bracket(slopes, c, lower, upper)
    if bracket is None:
        return Entries(None, np.zeros_like(c), "unbounded below")
    low, high = bracket
    at_low, at_high = slopes(low), slopes(high)
    for _ in range(_HALVINGS):
        middle = _between(low, high)
        missed = _gain(at_low, at_high, high - low)
        enough = np.maximum(share, EPS * np.abs(middle) * np.minimum(at_low.size, at_high.size))
        wide = (low < middle) & (middle < high) & ~(missed <= enough)
        if not wide.any():
            break
        at_middle = slopes(np.where(wide, middle, low))
        rising = at_middle.right >= 0.0
        right, left = wide & ~rising, wide & rising
        low, high = np.where(right, middle, low), np.where(left, middle, high)
        at_low = _Slope(*(np.where(right, new, old) for new, old in zip(at_middle, at_low, strict=True)))
        at_high = _Slope(*(np.where(left, new, old) for new, old in zip(at_middle, at_high, strict=True)))
    steep = np.abs(at_low.right), np.abs(at_high.left)
    return Entries(np.where(steep[1] < steep[0], high, low), _gain(at_low, at_high, high - low), "bisection")


def _gain(at_low: _Slope, at_high: _Slope, width: Array) -> Array:
    """What a step across a bracket can gain: nothing where it is a point, however steep the function is there."""
    steep = np.minimum(np.abs(at_low.right), np.abs(at_high.left))
    return np.multiply(steep, width, where=width > 0.0, out=np.zeros_like(width))


def _between(low: Array, high: Array) -> Array:
    """Between two numbers, in the order of doubles: 0, the geometric mean, or the middle of what is close together."""
    small, large = np.minimum(np.abs(low), np.abs(high)), np.maximum(np.abs(low), np.abs(high))
    mean = np.copysign(np.sqrt(np.maximum(small, _SMALLEST)) * np.sqrt(large), np.where(high > 0.0, 1.0, -1.0))
    # Halves first: the difference of the largest doubles overflows.
    middle = np.where(large > 4.0 * small, mean, low + (0.5 * high - 0.5 * low))
    return np.where((low < 0.0) & (high > 0.0), 0.0, middle)


def _bracket(slopes: _Slopes, c: Array, lower: Array, upper: Array) -> tuple[Array, Array] | None:
    """Ends with slope <= 0 and >= 0, or the sides of the box where the minimum is at a side; None if there are none."""
    middle = np.clip(np.zeros_like(c), lower, upper)
    distance = 1.0
    low, high = np.maximum(lower, middle - distance), np.minimum(upper, middle + distance)
    while True:
        at_low, at_high = slopes(low).left, slopes(high).right
        short_low = (at_low > 0.0) & (low > lower)
        short_high = (at_high < 0.0) & (high < upper)
        if not (short_low.any() or short_high.any()):
            break
        if distance > _LARGEST_BRACKET:
            # Nothing is left but the sides themselves.
            distance = np.inf
        distance *= 4.0
        low = np.where(short_low, np.maximum(lower, middle - distance), low)
        high = np.where(short_high, np.minimum(upper, middle + distance), high)
        if np.isinf(low).any() or np.isinf(high).any():
            return None
    return np.where(at_high <= 0.0, high, low), np.where(at_low >= 0.0, low, high)
