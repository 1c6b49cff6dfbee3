"""Proximal steps on balls and simplices against bisections of our own, at every scale and where entries jump."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import saddleslide as ss
from saddleslide.functions import prox, tilted_minimum
from support import points_of

F, D = ss.functions, ss.domains
UNTIMED, FEW = settings(deadline=None, max_examples=25), settings(deadline=None, max_examples=15)


def entrywise_slope(kind, scale, x):
    """Largest and smallest subgradient of the function, entry by entry, written from its definition."""
    if kind == "abs":
        return scale * np.where(x > 0, 1.0, -1.0) if np.all(x != 0) else None
    if kind == "power":
        return scale * np.sign(x) * np.abs(x) ** 0.5
    if kind == "huber":
        return scale * np.clip(x / 0.2, -1.0, 1.0)
    return scale * np.linspace(0.5, 2.0, x.size) * x


def function(kind, scale, n):
    return {
        "abs": lambda: F.Power(0.0, weight=scale),
        "power": lambda: F.Power(0.5, weight=scale),
        "huber": lambda: scale * F.Huber(0.2),
        "diagonal": lambda: F.Quadratic(scale * np.linspace(0.5, 2.0, n)),
    }[kind]()


def own_step(kind, scale, center, weight, low=-math.inf, high=math.inf):
    """argmin of the function + weight/2 |x - center|^2 on [low, high], entry by entry, by bisection on the slope."""
    left = np.minimum(0.0, center) if low == -math.inf else np.full(center.shape, low)
    right = np.maximum(0.0, center) if high == math.inf else np.full(center.shape, high)
    if kind == "abs":
        return np.clip(np.sign(center) * np.maximum(np.abs(center) - scale / weight, 0.0), low, high)
    for _ in range(100):
        middle = 0.5 * (left + right)
        rising = entrywise_slope(kind, scale, middle) + weight * (middle - center) > 0.0
        left, right = np.where(rising, left, middle), np.where(rising, middle, right)
    return 0.5 * (left + right)


def own_ball(kind, scale, center, weight, middle, radius):
    """Bisection on the logarithm of the multiplier of the ball."""

    def at(m):
        total = weight + m
        return own_step(kind, scale, (weight * center + m * middle) / total, total)

    if np.linalg.norm(at(0.0) - middle) <= radius:
        return at(0.0)
    low, high = -60.0, 60.0
    for _ in range(60):
        m = 0.5 * (low + high)
        low, high = (m, high) if np.linalg.norm(at(math.exp(m)) - middle) > radius else (low, m)
    return at(math.exp(high))


def own_simplex(kind, scale, center, weight):
    """Bisection on the shift of the center."""
    reach = 2.0 + float(np.abs(center).max()) + 4.0 * scale / weight
    low, high = -reach, reach
    for _ in range(80):
        shift = 0.5 * (low + high)
        low, high = (shift, high) if own_step(kind, scale, center - shift, weight, 0.0, 1.0).sum() > 1 else (low, shift)
    found = own_step(kind, scale, center - high, weight, 0.0, 1.0)
    # A long way from the centers the shift is coarse, and the sum is 1 up to that.
    return found / found.sum() if found.sum() > 0.0 else own_step(kind, scale, center - low, weight, 0.0, 1.0)


def objective(kind, scale, x, center, weight):
    return function(kind, scale, x.size).value(x) + 0.5 * weight * float(np.sum((x - center) ** 2))


def agree(kind, scale, weight, center, found, expected):
    """Points of equal value, and equal points up to what the rounding of values and centers can hide."""
    ours, theirs = (objective(kind, scale, x, center, weight) for x in (expected, found))
    size = abs(ours) + 0.5 * weight * float(center @ center)
    assert theirs <= ours + 1e-12 * size
    # Slopes of size `scale` hide a part EPS * scale / weight of every entry.
    hidden = 1e-13 * np.abs(center).max() + 4e-15 * scale / weight
    assert np.abs(found - expected).max() <= 1e-6 * (1.0 + np.abs(expected).max()) + hidden


KINDS = st.sampled_from(["abs", "power", "huber", "diagonal"])
SCALES = st.sampled_from([1e-6, 1e-3, 1.0, 1e3, 1e6])


@UNTIMED
@given(KINDS, SCALES, SCALES, st.integers(0, 10**6), st.sampled_from([1e-3, 1.0, 1e3]))
def test_steps_on_balls_that_are_off_centre(kind, scale, weight, seed, radius):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    middle, center = 3.0 * radius * rng.standard_normal(n), 10.0 * radius * rng.standard_normal(n)
    found = prox(function(kind, scale, n), center, weight, D.Ball(radius, center=middle))
    assert np.linalg.norm(found - middle) <= radius * (1.0 + 1e-12)
    expected = own_ball(kind, scale, center, weight, middle, radius)
    ours, theirs = (objective(kind, scale, x, center, weight) for x in (expected, found))
    assert abs(theirs - ours) <= 1e-9 * (abs(ours) + abs(theirs))
    assert np.abs(found - expected).max() <= 1e-4 * radius


@UNTIMED
@given(KINDS, SCALES, SCALES, st.integers(0, 10**6), st.sampled_from([1e-6, 1.0, 1e6]))
def test_steps_on_simplices(kind, scale, weight, seed, spread):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    center = spread * rng.standard_normal(n)
    found = prox(function(kind, scale, n), center, weight, D.Simplex(n))
    assert found.min() >= 0.0 and found.sum() == pytest.approx(1.0, abs=1e-14 * n)
    agree(kind, scale, weight, center, found, own_simplex(kind, scale, center, weight))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_flat_functions_have_their_solutions_at_vertices(scale):
    """On a simplex |x| is constant, so the step is the projection; a large spread puts it on a vertex."""
    for n in (1, 2, 5):
        center = np.arange(n, dtype=float)
        for spread in (1e-6, 0.1, 1.0, 1e6):
            found = prox(F.Power(0.0, weight=scale), spread * center, scale, D.Simplex(n))
            expected = D.Simplex(n).project(spread * center)
            assert np.abs(found - expected).max() <= 1e-9
        assert found.tolist() == [0.0] * (n - 1) + [1.0]
    ties = prox(F.Power(0.0, weight=scale), np.array([2.0, 2.0, 0.0]), scale, D.Simplex(3))
    np.testing.assert_allclose(ties, [0.5, 0.5, 0.0], atol=1e-9)


def test_a_kink_at_the_middle_of_a_ball_holds_the_point():
    """The step stays at 0 while the pull is below the weight of the kink, and moves to the sphere above."""
    ball = D.Ball(1.0, center=[0.5, 0.0])
    kinked = F.Power(0.0, weight=1.0)
    assert prox(kinked, np.array([0.9, -0.9]), 1.0, ball).tolist() == [0.0, 0.0]
    far = prox(kinked, np.array([100.0, 0.0]), 1.0, ball)
    np.testing.assert_allclose(far, [1.5, 0.0], atol=1e-12)
    # The kink lies outside of this ball, which is touched at the point nearest to it.
    np.testing.assert_allclose(prox(kinked, np.zeros(2), 1.0, D.Ball(1.0, center=[5.0, 0.0])), [4.0, 0.0], atol=1e-9)


@FEW
@given(KINDS, SCALES, st.integers(0, 10**6), st.booleans(), st.sampled_from([0.0, 1e-3, 1.0, 1e3]))
def test_tilted_minima_have_true_error_bars(kind, scale, seed, on_ball, tilt):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    f, c = function(kind, scale, n), tilt * scale * rng.standard_normal(n)
    domain = D.Ball(1.3, center=2.0 * rng.standard_normal(n)) if on_ball else D.Simplex(n)
    found = tilted_minimum(f, c, domain)
    size = f.value_and_magnitude(found.point)[1] + float(np.abs(c * found.point).sum())
    assert domain.violation(found.point) <= 1e-12 * (1.0 + np.abs(found.point).max())
    assert found.value == pytest.approx(f.value(found.point) + float(c @ found.point), rel=1e-12, abs=1e-15 * size)
    # Below every value that our own steps of growing precision and random points find, and not by much.
    values = [f.value(x) + float(c @ x) for x in points_of(domain, rng, 40)]
    for weight in (1e-2 * scale, 1e-6 * scale):
        if on_ball:
            x = domain.project(own_ball(kind, scale, -c / weight, weight, domain.center, 1.3))
        else:
            x = domain.project(own_simplex(kind, scale, -c / weight, weight))
        values.append(f.value(x) + float(c @ x))
    assert found.lower <= min(values) + 1e-15 * size
    # The small weight that finds the multiplier shows in the bar where there is no tilt to measure it by.
    assert 0.0 <= found.error <= 1e-8 * size + 1e-9 * (1.0 + scale)


@UNTIMED
@given(SCALES, st.integers(0, 10**6), st.sampled_from([1e-3, 1.0, 1e3]))
def test_error_bars_hold_the_closed_form_where_the_function_is_linear(scale, seed, tilt):
    """On a simplex, and on a ball of positive points, |x| is linear: the minimum is known, the search does not know."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    f, c = F.Power(0.0, weight=scale), tilt * scale * rng.standard_normal(n)
    middle = 3.0 + rng.uniform(size=n)
    ball = D.Ball(2.0, center=middle)
    slope = c + scale
    for domain, truth in (
        (D.Simplex(n), scale + c.min()),
        (ball, float(slope @ middle) - 2.0 * float(np.linalg.norm(slope))),
    ):
        found = tilted_minimum(f, c, domain)
        rounding = 1e-15 * (scale + np.abs(c).max()) * n * (1.0 + np.abs(found.point).max())
        assert found.lower <= truth + rounding and truth - rounding <= found.value


@UNTIMED
@given(SCALES, st.integers(0, 10**6))
def test_error_bars_hold_the_minimum_of_a_quadratic_in_rational_arithmetic(scale, seed):
    """On the simplex sum q_i x_i^2 / 2 has the minimum 1 / (2 sum 1/q_i), all entries positive."""
    rng = np.random.default_rng(seed)
    q = scale * rng.uniform(0.1, 10.0, int(rng.integers(2, 6)))
    found = tilted_minimum(F.Quadratic(q), np.zeros(q.size), D.Simplex(q.size))
    truth = 1 / (2 * sum(1 / Fraction(float(entry)) for entry in q))
    assert Fraction(found.lower) <= truth
    assert float(truth) - 1e-15 * scale <= found.value


@pytest.mark.parametrize("f", [F.Power(0.0), F.Huber(0.1), F.Power(0.5)])
def test_problems_on_these_domains_are_solved_without_a_gradient(f):
    """Simple on both sides: only products are made, and the value is that of the same problem written as costly."""
    B = np.random.default_rng(0).standard_normal((4, 3))
    problem = ss.SaddleProblem(f=f, g=F.Quadratic(1.0), B=B, X=D.Simplex(3), Y=D.Ball(0.5, center=np.ones(4)))
    result = ss.solve(problem, 1e-6)
    assert result.success and result.calls.f == result.calls.g == 0
    opaque = F.Custom(gradient=f.gradient, value=f.value)
    written = ss.SaddleProblem(f=opaque, g=problem.g, B=B, X=problem.X, Y=problem.Y)
    other = ss.solve(written, 1e-4, max_calls={"f": 2000})
    assert max(result.lower, other.lower) <= min(result.upper, other.upper) + 1e-12
