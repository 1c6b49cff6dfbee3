"""Minima of separable functions entry by entry: how many slopes they take, and error bars in rational arithmetic."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import saddleslide as ss
from saddleslide.functions import Function, Huber, Linear, Power, Quadratic, tilted_minimum
from saddleslide.functions.entries import minimal_entries
from saddleslide.theory.holder import Holder
from support import gathered

D = ss.domains
INF = math.inf


class Own(Function):
    """A caller's separable function that counts how often it is asked for slopes."""

    separable = True

    def __init__(self, slope, value):
        self.asked, self.slope, self.of = 0, slope, value

    def value_and_gradient(self, x, out=None):
        self.asked += 1
        return float(np.sum(self.of(x))), self.slope(x)

    def smoothness(self, domain):
        return Holder(1.0, 1e6)

    def strong_convexity(self, domain):
        return 0.0


def counted(monkeypatch, kind):
    asked, gradient = [], kind.gradient
    monkeypatch.setattr(kind, "gradient", lambda self, x, out=None: asked.append(1) or gradient(self, x, out))
    return asked


@gathered("domain", [D.Box(-3.0, 3.0, shape=3), D.FullSpace(3), D.NonNegative(3), D.Box(0.0, 1e150, shape=3)])
@gathered("c", [[0.5, -0.5, 0.0], [1.0, -1.0, 0.25], [0.5, -3.0, 1e-300]])
def test_a_kink_beside_a_tilt_is_found_without_a_search(domain, c, monkeypatch):
    """It was bisected through the denormals, about a thousand times."""
    asked = counted(monkeypatch, Power)
    found = tilted_minimum(Power(0.0), np.array(c), domain)
    assert len(asked) <= 2
    if max(map(abs, c)) <= 1.0:
        assert (found.value, found.error, found.point.tolist()) == (0.0, 0.0, [0.0] * 3)
    elif not domain.bounded:
        assert found.value == -INF
    else:
        side = domain.upper[1]
        assert found.value == pytest.approx(-2.0 * side, rel=1e-15) and found.point.tolist() == [0.0, side, 0.0]
        assert found.error <= 1e-14 * side


@gathered("sides", [(-1.0, 1.0), (-1e300, 1e300), (-INF, INF), (1e-320, 1.0), (-1.0, 0.0), (0.0, 1e150)])
def test_a_callers_own_function_is_searched_in_the_order_of_doubles(sides):
    """Its kink lies at 0 for one tilt and at no double for another; either way the last bit is some 70 slopes away."""
    kink = Own(np.sign, np.abs)
    curved = Own(lambda x: x / (1.0 + np.abs(x)), lambda x: np.abs(x) - np.log1p(np.abs(x)))
    for f, c in ((kink, -0.5), (kink, 0.25), (curved, -1e-200), (curved, -1e-100), (curved, 0.3), (curved, -0.999)):
        f.asked = 0
        found = tilted_minimum(f, np.array([c]), D.Box(*sides, shape=1))
        assert f.asked <= 100
        inside = 0.0 if f is kink else -c / (1.0 - abs(c))
        best = min(max(inside, sides[0]), sides[1])
        truth, size = float(f.of(np.float64(best))) + c * best, abs(c * best)
        assert found.value - found.error <= truth + 1e-15 * size and found.value <= truth + 1e-15 * size
        assert found.error <= 1e-14 * size, (sides, c)


def test_a_search_ends_at_the_accuracy_asked_for():
    f, box = Own(np.arctan, lambda x: x * np.arctan(x) - 0.5 * np.log1p(x * x)), D.Box(-9.0, 7.0, shape=3)
    c, asked, errors = np.array([0.3, -0.7, 1.1]), [], []
    for accuracy in (1e-2, 1e-6, 0.0):
        f.asked = 0
        found = tilted_minimum(f, c, box, accuracy=accuracy)
        asked.append(f.asked)
        errors.append(found.error)
        assert found.error <= max(accuracy, 1e-13)
        truth = f.of(-np.tan(c)).sum() - c @ np.tan(c)
        assert found.lower <= truth <= found.value + 1e-15
    assert asked[0] + 3 <= asked[1] <= asked[2] - 3
    assert errors[0] > errors[1] > errors[2]


def exact_minimum(q, b, w, hubers, lower, upper):
    """Minimum of q x^2 / 2 + b x + w |x| + Huber functions on an interval, in rational arithmetic."""
    q, b, w = map(Fraction, (q, b, w))
    hubers = [(Fraction(v), Fraction(d)) for v, d in hubers]
    bends = sorted({Fraction(0), *(d for _, d in hubers), *(-d for _, d in hubers)})

    def value(x):
        total = q * x * x / 2 + b * x + w * abs(x)
        for v, d in hubers:
            inside = min(abs(x), d)
            total += v * (inside * inside / (2 * d) + abs(x) - inside)
        return total

    far = sum(v for v, _ in hubers) + w
    if q == 0 and ((upper == INF and b + far < 0) or (lower == -INF and b - far > 0)):
        return -INF
    candidates = set(bends) | {Fraction(side) for side in (lower, upper) if math.isfinite(side)}
    # The slope is linear between neighbouring bends: where it vanishes, from two of its values.
    ends = [bends[0] - 1, *bends, bends[-1] + 1]
    for left, right in itertools.pairwise(ends):
        inside = [left + (right - left) * Fraction(part, 3) for part in (1, 2)]
        slopes = []
        for x in inside:
            slope = q * x + b + (w if x > 0 else -w)
            slopes.append(slope + sum(v * max(-1, min(1, x / d)) for v, d in hubers))
        if slopes[0] != slopes[1]:
            candidates.add(inside[0] - slopes[0] * (inside[1] - inside[0]) / (slopes[1] - slopes[0]))
    low, high = (side if not math.isfinite(side) else Fraction(side) for side in (lower, upper))
    return min(value(x) for x in candidates if low <= x <= high)


SIZES = st.sampled_from([0.0, 1.0, 0.3, 0.1, 1e-9, 7e5, 1.0 + 2**-52])
SIDES = st.sampled_from([-INF, -1e150, -2.0, -1e-320, 0.0, 1e-310, 0.7, 2.0, 3e8, INF])


@settings(deadline=None, max_examples=100)
@given(st.tuples(SIZES, SIZES, SIZES, SIZES, st.sampled_from([0.5, 1e-8, 30.0])), st.floats(-2.0, 2.0), st.booleans(),
       st.tuples(SIDES, SIDES), st.sampled_from([1.0, 2.0**-480, 2.0**480]))  # fmt: skip
def test_error_bars_are_true_in_rational_arithmetic(parts, tilt, balanced, sides, scale):
    q, w, v, more, delta = parts
    q, w, v, more = (scale * part for part in (q, w, v, more))
    # Tilts that cancel the other slopes to the last bit, or nearly.
    b = math.copysign(w + v + more, tilt) if balanced else scale * tilt
    lower, upper = sorted(sides)
    if lower == upper and math.isinf(lower):
        return
    f = Power(0.0, weight=w, quadratic=q, tilt=-0.25 * scale) + v * Huber(delta) + more * Huber(2.0 * delta)
    found = minimal_entries(f, np.array([b]), np.array([lower]), np.array([upper]))
    truth = exact_minimum(
        q, Fraction(0.25 * scale) + Fraction(b), w, [(v, delta), (more, 2.0 * delta)], lower, upper
    )  # fmt: skip
    if found.point is None:
        assert truth == -INF
        return
    x = Fraction(float(found.point[0]))
    at_point = exact_minimum(q, Fraction(0.25 * scale) + Fraction(b), w, [(v, delta), (more, 2.0 * delta)], x, x)
    assert lower <= x <= upper
    missed = Fraction(float(found.missed[0]))
    assert at_point - missed <= truth
    size = abs(x) * (abs(x) * Fraction(q) + Fraction(scale) + abs(Fraction(b)) + sum(map(Fraction, (w, v, more))))
    assert missed <= Fraction(4e-16) * size + Fraction(5e-324)


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_slopes_that_cancel_to_the_last_bit_are_told_apart_on_wide_boxes(scale):
    """A slope of one unit of rounding is worth 1e-16 of a box; neither is it lost, nor is a flat box given away."""
    for pull in (1.0, 1.0 + 2**-52, 1.0 - 2**-53):
        found = tilted_minimum(Power(0.0, weight=scale), np.array([-pull * scale]), D.Box(-1e12, 1e12, shape=1))
        truth = -max(pull - 1.0, 0.0) * 1e12 * scale
        assert found.lower <= truth and found.value <= truth + 1e-3 * scale
        if pull <= 1.0:
            assert (found.value, found.error) == (0.0, 0.0)


def test_quadratics_that_are_flat_in_some_entries_go_to_the_sides():
    f, c = Quadratic([2.0, 0.0, 0.0, 0.0]) + Linear([0.0, 0.0, 1.0, -1.0]), np.array([-2.0, 3.0, -1.0, 0.5])
    found = tilted_minimum(f, c, D.Box(-5.0, 5.0, shape=4))
    assert found.point.tolist() == [1.0, -5.0, 0.0, 5.0]
    assert found.lower <= -1.0 - 15.0 - 2.5 <= found.value + 1e-14
