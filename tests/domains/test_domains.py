"""Domains against optimality conditions, brute force and SciPy; nothing here uses their own formulas."""

import itertools
import math

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

import saddleslide as ss
from saddleslide.domains import Ball, Box, FullSpace, NonNegative, Product, Simplex
from saddleslide.problem import Enclosure
from support import gathered, inner, points_of

INF = math.inf
DOMAINS = {
    "full space": FullSpace(3),
    "full space of images": FullSpace((2, 3)),
    "box": Box(-1.0, 2.0, shape=4),
    "box with arrays": Box([-1.0, 0.0, 0.5], [1.0, 0.0, 3.0]),
    "box of images": Box(np.full((2, 3), -0.5), 1.0),
    "box with infinite sides": Box([-INF, 0.0, -1.0, -INF], [0.0, INF, 1.0, INF]),
    "one-point box": Box([1.0, -2.0], [1.0, -2.0]),
    "nonnegative": NonNegative(3),
    "ball": Ball(1.5, shape=3),
    "ball of images": Ball(0.7, center=np.array([[1.0, 2.0], [-1.0, 0.5]])),
    "one-point ball": Ball(0.0, center=[1.0, -1.0]),
    "simplex": Simplex(4),
    "simplex of images": Simplex((2, 2)),
    "one-point simplex": Simplex(1),
    "product": Product(Box(-1.0, 1.0, shape=(2, 2)), Simplex(3), Ball(2.0, shape=2)),
    "unbounded product": Product(NonNegative(2), Ball(1.0, shape=2)),
    "nested product": Product(Product(Simplex(2), Box(0.0, 1.0, shape=1)), FullSpace(1)),
}
BOUNDED = {name: domain for name, domain in DOMAINS.items() if domain.bounded}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def every(domains):
    return gathered("domain", domains.values(), ids=domains.keys())


def is_member(domain, point, tolerance=1e-12):
    """Membership from the definitions alone."""
    if isinstance(domain, Product):
        return all(is_member(f, p, tolerance) for f, p in zip(domain.factors, domain.split(point), strict=True))
    if isinstance(domain, Box):
        return bool(np.all(point >= domain.lower - tolerance) and np.all(point <= domain.upper + tolerance))
    if isinstance(domain, Ball):
        center = 0.0 if domain.center is None else domain.center
        return math.sqrt(inner(point - center, point - center)) <= domain.ball_radius + tolerance
    if isinstance(domain, Simplex):
        return bool(np.all(point >= -tolerance)) and abs(math.fsum(point.ravel().tolist()) - 1.0) <= tolerance
    return True


@every(DOMAINS)
def test_projection_is_a_member_and_satisfies_the_variational_inequality(domain, rng):
    others = points_of(domain, rng, 60)
    for scale in (0.1, 1.0, 10.0):
        for _ in range(10):
            p = scale * rng.standard_normal(domain.shape)
            nearest = domain.project(p)
            assert nearest.shape == domain.shape
            assert is_member(domain, nearest)
            for z in others:
                assert inner(p - nearest, z - nearest) <= 1e-12 * (1.0 + scale**2)


@every(DOMAINS)
def test_members_are_their_own_projection(domain, rng):
    for z in points_of(domain, rng, 10):
        np.testing.assert_allclose(domain.project(z), z, rtol=0.0, atol=1e-15)


@gathered("n", [2, 3, 5])
def test_simplex_projection_against_a_general_solver(n, rng):
    for _ in range(5):
        p = rng.standard_normal(n)
        found = scipy.optimize.minimize(
            lambda x, p=p: 0.5 * np.sum((x - p) ** 2),
            np.full(n, 1.0 / n),
            jac=lambda x, p=p: x - p,
            bounds=[(0.0, None)] * n,
            constraints={"type": "eq", "fun": lambda x: x.sum() - 1.0, "jac": lambda x: np.ones(n)},
            options={"ftol": 1e-15},
        )
        np.testing.assert_allclose(Simplex(n).project(p), found.x, atol=1e-6)


def test_ball_projection_against_a_general_solver(rng):
    center = np.array([1.0, -1.0])
    for _ in range(5):
        p = 3.0 * rng.standard_normal(2)
        found = scipy.optimize.minimize(
            lambda x, p=p: 0.5 * np.sum((x - p) ** 2),
            center,
            constraints={"type": "ineq", "fun": lambda x: 0.49 - np.sum((x - center) ** 2)},
            options={"ftol": 1e-15},
        )
        np.testing.assert_allclose(Ball(0.7, center=center).project(p), found.x, atol=1e-5)


@every(DOMAINS)
def test_projection_may_overwrite_its_argument(domain, rng):
    p = 3.0 * rng.standard_normal(domain.shape)
    expected = domain.project(p)
    kept = p.copy()
    other = np.empty(domain.shape)
    assert domain.project(p, out=other) is other
    np.testing.assert_array_equal(p, kept)
    np.testing.assert_array_equal(other, expected)
    domain.project(p, out=p)
    np.testing.assert_array_equal(p, expected)


@every(DOMAINS)
def test_projection_never_returns_its_argument(domain, rng):
    inside = points_of(domain, rng, 1)[0]
    assert not np.shares_memory(domain.project(inside), inside)


@every(BOUNDED)
def test_support_is_not_beaten_by_any_point_and_is_attained(domain, rng):
    others = points_of(domain, rng, 100)
    for direction in [*rng.standard_normal((10, *domain.shape)), np.zeros(domain.shape)]:
        support = domain.support(direction)
        best = domain.maximizer(direction)
        assert is_member(domain, best)
        assert inner(direction, best) == pytest.approx(support, abs=1e-12)
        assert max(inner(direction, z) for z in others) <= support + 1e-12


def test_support_of_unbounded_sets_is_infinite_exactly_where_it_must_be():
    box = DOMAINS["box with infinite sides"]
    assert box.support(np.array([1.0, 0.0, 0.0, 0.0])) == 0.0
    assert box.support(np.array([-1.0, 0.0, 0.0, 0.0])) == INF
    assert box.support(np.array([2.0, -3.0, -4.0, 0.0])) == 4.0
    # Where the direction is 0 any member will do, so a finite one is given.
    np.testing.assert_array_equal(box.maximizer(np.array([2.0, -3.0, -4.0, 0.0])), [0.0, 0.0, -1.0, 0.0])
    assert NonNegative(2).support(np.array([-1.0, 0.0])) == 0.0
    assert NonNegative(2).support(np.array([-1.0, 1e-30])) == INF
    assert FullSpace(2).support(np.zeros(2)) == 0.0
    assert FullSpace(2).support(np.array([0.0, -1e-30])) == INF
    assert Product(NonNegative(1), Ball(2.0, shape=1)).support(np.array([-1.0, 3.0])) == 6.0


def corners(domain):
    """Points among which the farthest and the largest of a polytope lie."""
    if isinstance(domain, Product):
        pieces = itertools.product(*(corners(factor) for factor in domain.factors))
        return [np.concatenate([piece.ravel() for piece in choice]) for choice in pieces]
    if isinstance(domain, Simplex):
        return [unit.reshape(domain.shape) for unit in np.eye(domain.size)]
    sides = zip(domain.lower.ravel(), domain.upper.ravel(), strict=True)
    return [np.array(corner).reshape(domain.shape) for corner in itertools.product(*sides)]


POLYTOPES = {
    "box": DOMAINS["box"],
    "box with a zero side": DOMAINS["box with arrays"],
    "one-point box": DOMAINS["one-point box"],
    "box of images": Box(np.arange(4.0).reshape(2, 2) - 3.0, 1.0),
    "simplex": Simplex(4),
    "one-point simplex": Simplex(1),
    "simplex of images": Simplex((2, 2)),
    "product": Product(Box(-1.0, 0.5, shape=(1, 2)), Simplex(3)),
}


@every(POLYTOPES)
def test_radius_diameter_and_magnitude_over_all_corners(domain, rng):
    ends = corners(domain)
    for p in (np.zeros(domain.shape), 2.0 * rng.standard_normal(domain.shape), ends[0]):
        farthest = max(float(np.linalg.norm(end - p)) for end in ends)
        assert domain.radius(p) == pytest.approx(farthest, abs=1e-14)
        assert domain.squared_radius(p) == pytest.approx(farthest**2, abs=1e-14)
    widest = max(float(np.linalg.norm(a - b)) for a in ends for b in ends)
    assert domain.diameter() == pytest.approx(widest, abs=1e-14)
    assert domain.magnitude() == max(float(np.abs(end).max()) for end in ends)


@gathered("center", [None, [3.0, -1.0]])
def test_radius_diameter_and_magnitude_of_a_ball_from_its_rim(center):
    ball = Ball(1.5, shape=2, center=center)
    angles = np.linspace(0.0, 2.0 * np.pi, 4001)
    rim = 1.5 * np.stack([np.cos(angles), np.sin(angles)], axis=1) + (0.0 if center is None else np.array(center))
    p = np.array([0.3, 0.4])
    assert ball.radius(p) == pytest.approx(np.linalg.norm(rim - p, axis=1).max(), rel=1e-5)
    assert ball.diameter() == pytest.approx(np.linalg.norm(rim - rim[0], axis=1).max(), rel=1e-5)
    assert ball.magnitude() == pytest.approx(np.abs(rim).max(), rel=1e-5)


def test_unbounded_sets_have_infinite_extent():
    for name in ("full space", "nonnegative", "box with infinite sides", "unbounded product"):
        domain = DOMAINS[name]
        p = domain.project(np.zeros(domain.shape))
        assert (domain.radius(p), domain.diameter(), domain.magnitude(), domain.bounded) == (INF, INF, INF, False)


def test_violation_is_the_largest_broken_constraint():
    assert Box([0.0, 0.0], [1.0, 2.0]).violation(np.array([-0.25, 2.125])) == 0.25
    assert Box(-INF, 1.0, shape=2).violation(np.array([-1e9, 1.5])) == 0.5
    assert Ball(1.0, center=[1.0, 1.0]).violation(np.array([4.0, 5.0])) == 4.0
    assert Simplex(3).violation(np.array([0.5, -0.25, 0.75])) == 0.25
    assert Simplex(2).violation(np.array([0.5, 1.5])) == 1.0
    assert FullSpace(1).violation(np.array([1e300])) == 0.0
    pair = Product(Box(0.0, 1.0, shape=2), Ball(1.0, shape=2))
    assert pair.violation(np.array([1.5, 0.0, 0.0, 3.0])) == 2.0


@every(DOMAINS)
def test_membership_agrees_with_the_definition(domain, rng):
    for p in [*rng.standard_normal((30, *domain.shape)), *points_of(domain, rng, 10)]:
        assert domain.contains(p, 1e-12) == is_member(domain, p)
        assert (domain.violation(p) <= 1e-12) == is_member(domain, p)
    assert not domain.contains(np.full(domain.shape, np.nan))
    assert not domain.contains(np.full(domain.shape, INF))
    assert not domain.contains(np.zeros((*domain.shape, 1)))


@every(DOMAINS)
def test_huge_entries_are_projected_exactly(domain):
    signs = np.where(np.arange(domain.size) % 2, -1.0, 1.0).reshape(domain.shape)
    nearest = domain.project(1e150 * signs)
    assert np.isfinite(nearest).all()
    assert is_member(domain, nearest, tolerance=1e-12 if domain.bounded else 1e140)
    # Nothing in the set reaches further in this direction, since the point itself is all but at infinity.
    if domain.bounded:
        assert inner(signs, nearest) == pytest.approx(domain.support(signs), abs=1e-12)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_ball_projection_survives_an_overflowing_norm():
    np.testing.assert_allclose(Ball(1.0, shape=2).project(np.array([3e200, 4e200])), [0.6, 0.8], rtol=1e-15)
    np.testing.assert_allclose(Ball(5.0, center=[1.0, 1.0]).project(np.array([3e200, -4e200])), [4.0, -3.0], rtol=1e-15)


def test_simplex_projection_of_large_equal_entries_keeps_the_unit_mass():
    np.testing.assert_allclose(Simplex(3).project(np.full(3, 1e20)), np.full(3, 1.0 / 3.0), rtol=1e-15)
    np.testing.assert_allclose(Simplex(3).project(np.array([1e9 + 0.5, 1e9, -1e9])), [0.75, 0.25, 0.0], atol=1e-7)


def test_support_of_a_ball_survives_huge_and_tiny_directions():
    ball = Ball(2.0, shape=2)
    assert ball.support(np.array([3e200, 4e200])) == pytest.approx(1e201)
    assert ball.support(np.array([3e-200, 4e-200])) == pytest.approx(1e-199)


def test_product_acts_factor_by_factor(rng):
    image, simplex = Box(-1.0, 1.0, shape=(2, 2)), Simplex(3)
    both = Product(image, simplex)
    p = 2.0 * rng.standard_normal(7)
    expected = np.concatenate([image.project(p[:4].reshape(2, 2)).ravel(), simplex.project(p[4:])])
    np.testing.assert_array_equal(both.project(p), expected)
    assert both.support(p) == pytest.approx(image.support(p[:4].reshape(2, 2)) + simplex.support(p[4:]))
    assert both.blocks == (image, simplex)
    assert image.blocks == (image,)


def test_sides_given_as_arrays_are_copied():
    lower, center = np.zeros(2), np.ones(2)
    box, ball = Box(lower, 1.0), Ball(1.0, center=center)
    lower += 5.0
    center += 5.0
    assert box.contains(np.zeros(2))
    assert ball.contains(np.ones(2))


vectors = st.lists(st.floats(-1e3, 1e3), min_size=4, max_size=4).map(np.array)
RANDOM = [Box(-1.0, 2.0, shape=4), Box([-INF, 0.0, 1.0, -1.0], [0.0, INF, 1.0, 1.0]), Ball(2.0, shape=4), Simplex(4)]
RANDOM += [Ball(0.5, center=[1.0, 2.0, 3.0, 4.0]), Product(Simplex(2), Ball(1.0, shape=2)), FullSpace(4)]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(RANDOM), vectors, vectors)
def test_projections_are_idempotent_and_never_spread_points_apart(domain, p, q):
    a, b = domain.project(p), domain.project(q)
    np.testing.assert_allclose(domain.project(a), a, rtol=0.0, atol=1e-14)
    assert np.linalg.norm(a - b) <= np.linalg.norm(p - q) + 1e-12
    # Firm nonexpansiveness: what projections onto convex sets satisfy and other retractions do not.
    assert inner(a - b, a - b) <= inner(a - b, p - q) + 1e-10 * (1.0 + np.abs(p - q).max())


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([domain for domain in RANDOM if domain.bounded]), vectors, vectors)
def test_support_is_sublinear_and_bounds_every_member(domain, c, p):
    member = domain.project(p)
    tolerance = 1e-9 * (1.0 + np.abs(c).max())
    assert inner(c, member) <= domain.support(c) + tolerance
    assert domain.support(3.0 * c) == pytest.approx(3.0 * domain.support(c), abs=tolerance)
    assert domain.support(c + p) <= domain.support(c) + domain.support(p) + 1e-9 * (
        1.0 + np.abs(c).max() + np.abs(p).max()
    )


def test_small_answers_of_sets_and_problems():
    D, zero = ss.domains, ss.functions.Zero()
    assert D.Box(-1.0, 2.0, shape=3).uniform == (-1.0, 2.0) and D.Box(-1.0, 1.0, shape=4).radius(np.zeros(4)) == 2.0
    assert [part.shape for part in D.Product(D.FullSpace((2, 3)), D.FullSpace(4)).split(np.zeros(10))] == [(2, 3), (4,)]
    box = D.Box(1.0, 2.0, shape=2)
    problem = ss.SaddleProblem(f=zero, g=ss.functions.Huber(1.0), B=np.eye(2), X=box, Y=box)
    assert repr(problem.mirrored().f) == "Huber(1)" and problem.on_host == ()
    assert problem.place(problem.start())[1].tolist() == [1.0, 1.0]
    assert Enclosure(10.0, "the multipliers", "A x = b").holds(np.full(4, 2.0))


def test_the_rooms_show_what_people_call_and_no_machinery():
    assert set(dir(ss)) == {*ss.__all__, "__version__"}
    for room in (ss.functions, ss.domains, ss.operators, ss.metrics, ss.errors):
        assert set(dir(room)) == set(room.__all__)
        assert {"np", "math", "Any", "base", "annotations"}.isdisjoint(dir(room))
