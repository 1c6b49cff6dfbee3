"""The catalogue of sets against optimality conditions with supports of other code, mpmath, HiGHS and Clarabel."""

import itertools
import math
import pickle

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import saddleslide as ss
from saddleslide.arrays.kinds import ArrayKind, to_host
from saddleslide.arrays.remote import RemoteArray
from saddleslide.domains import (
    Affine,
    Ball,
    Box,
    CappedSimplex,
    Custom,
    GroupBalls,
    HalfSpace,
    L1Ball,
    NuclearBall,
    Product,
    PSDCone,
    SecondOrderCone,
    Simplex,
    SpectralBall,
    Treeplex,
)
from saddleslide.errors import InputError
from support import gathered, inner, need, points_of
from trusted import conic_program, linear_program

F, INF = ss.functions, math.inf
CAPS, RADII = np.array([0.5, 0.2, 0.9, 0.0, 0.4]), np.array([[0.5, 2.0, 0.0], [1.0, 0.1, 3.0]])
# One bet, then two answers to it; another set beside, with one set after one of its actions and one after that.
PARENTS, ACTIONS = [-1, 0, 0, -1, 8, 9], [2, 3, 2, 2, 2, 3]
rng = np.random.default_rng(7)
ROWS, NORMAL = rng.standard_normal((2, 4)), rng.standard_normal((2, 3))
SIDES = ROWS @ rng.standard_normal(4)
# Two equations, and their sum.
DEPENDENT = np.vstack([ROWS, ROWS.sum(axis=0)]), np.append(SIDES, SIDES.sum())


def tree_equations():
    """E x = e from the definition."""
    E, e, first = np.zeros((len(ACTIONS), sum(ACTIONS))), np.zeros(len(ACTIONS)), 0
    for j, (parent, count) in enumerate(zip(PARENTS, ACTIONS, strict=True)):
        E[j, first : first + count] = 1.0
        first += count
        if parent >= 0:
            E[j, parent] = -1.0
        else:
            e[j] = 1.0
    return E, e


def broken(values):
    return max(0.0, float(np.max(values)))


def group_norms(x, axis):
    return np.sqrt(np.sum(x * x, axis=axis))


def by_program(equations, sides, upper):
    return lambda c: -linear_program(-c, equations, sides, bounds=[(0.0, u) for u in upper])[0]


E, e = tree_equations()
# How far a point is outside, and the largest <c, x>, by formulas that the package does not use.
BOUNDED = {
    "groups": (
        GroupBalls(0.7, axis=0, shape=(2, 3, 2)),
        lambda x: broken(group_norms(x, 0) - 0.7),
        lambda c: 0.7 * group_norms(c, 0).sum(),
    ),
    "groups of two axes": (
        GroupBalls(RADII, axis=(0, -1), shape=(2, 2, 3, 2)),
        lambda x: broken(group_norms(x, (0, 3)) - RADII),
        lambda c: (RADII * group_norms(c, (0, 3))).sum(),
    ),
    "sum of sizes": (L1Ball(1.3, shape=5), lambda x: broken(abs(x).sum() - 1.3), lambda c: 1.3 * abs(c).max()),
    "scaled simplex": (
        Simplex((2, 2), scale=3.5),
        lambda x: max(broken(-x), abs(x.sum() - 3.5)),
        lambda c: 3.5 * c.max(),
    ),
    "capped simplex": (
        CappedSimplex(4, 0.3),
        lambda x: max(broken(-x), broken(x - 0.3), abs(x.sum() - 1.0)),
        by_program(np.ones((1, 4)), [1.0], [0.3] * 4),
    ),
    "caps": (
        CappedSimplex(5, CAPS, total=1.2),
        lambda x: max(broken(-x), broken(x - CAPS), abs(x.sum() - 1.2)),
        by_program(np.ones((1, 5)), [1.2], CAPS),
    ),
    "caps that leave a point": (
        CappedSimplex(3, 1.0 / 3.0),
        lambda x: max(broken(-x), broken(x - 1.0 / 3.0), abs(x.sum() - 1.0)),
        lambda c: c.sum() / 3.0,
    ),
    "spectral": (
        SpectralBall(0.8, shape=(3, 4)),
        lambda x: broken(np.linalg.norm(x, 2) - 0.8),
        lambda c: 0.8 * np.linalg.norm(c, "nuc"),
    ),
    "nuclear": (
        NuclearBall(1.5, shape=(4, 3)),
        lambda x: broken(np.linalg.norm(x, "nuc") - 1.5),
        lambda c: 1.5 * np.linalg.norm(c, 2),
    ),
    "treeplex": (
        Treeplex(PARENTS, ACTIONS),
        lambda x: max(broken(-x), abs(E @ x - e).max()),
        by_program(E, e, [None] * E.shape[1]),
    ),
    "own": (
        Custom(
            project=lambda x: np.clip(x, -1.0, 1.0), shape=3, support=lambda c: np.where(c > 0, 1.0, -1.0), radius=1.8
        ),
        lambda x: np.linalg.norm(x - np.clip(x, -1.0, 1.0)),
        lambda c: abs(c).sum(),
    ),
}


def polar_of_rows(A):
    """What is left of a direction without its part in the span of the rows."""
    return lambda c: np.linalg.norm(c - A.T @ np.linalg.lstsq(A.T, c, rcond=None)[0])


def half_space_polar(c):
    factor = max(float((c * NORMAL).sum() / (NORMAL * NORMAL).sum()), 0.0)
    return float(np.linalg.norm(c - factor * NORMAL))


# How far a point is outside; how far a direction is from those where <c, x> is bounded; a point where it is largest.
UNBOUNDED = {
    "half-space": (HalfSpace(NORMAL, -0.4), lambda x: broken((x * NORMAL).sum() + 0.4), half_space_polar),
    "equations": (Affine(ROWS, SIDES), lambda x: abs(ROWS @ x - SIDES).max(), polar_of_rows(ROWS)),
    "sparse equations": (
        Affine(sp.csr_array(DEPENDENT[0]), DEPENDENT[1]),
        lambda x: abs(ROWS @ x - SIDES).max(),
        polar_of_rows(ROWS),
    ),
    "dependent equations": (Affine(*DEPENDENT), lambda x: abs(ROWS @ x - SIDES).max(), polar_of_rows(ROWS)),
    "second order": (
        SecondOrderCone(4),
        lambda x: broken(np.linalg.norm(x[1:]) - x[0]),
        lambda c: broken(np.linalg.norm(c[1:]) + c[0]),
    ),
    "polar": (
        SecondOrderCone(4).polar(),
        lambda x: broken(np.linalg.norm(x[1:]) + x[0]),
        lambda c: broken(np.linalg.norm(c[1:]) - c[0]),
    ),
    "semidefinite": (
        PSDCone(3),
        lambda x: max(broken(-np.linalg.eigvalsh((x + x.T) / 2)), abs(x - x.T).max()),
        lambda c: broken(np.linalg.eigvalsh((c + c.T) / 2)),
    ),
}
SETS = {name: (row[0], row[1]) for name, row in {**BOUNDED, **UNBOUNDED}.items()}
vectors = st.lists(st.floats(-1e3, 1e3), min_size=60, max_size=60)


def every(table):
    return gathered(("domain", *("outside", "other")[: len(next(iter(table.values()))) - 1]), table.values(), ids=table)


@every(BOUNDED)
def test_projections_and_farthest_points_by_the_support_of_other_code(domain, outside, other):
    """x is the nearest point to p just where x is inside and <p - x, x> is the support in the direction p - x."""
    rng = np.random.default_rng(0)
    for scale in (0.1, 1.0, 30.0):
        for _ in range(6):
            p = scale * rng.standard_normal(domain.shape)
            x = domain.project(p)
            assert outside(x) <= 2e-15 and domain.violation(x) <= 2e-15
            assert inner(p - x, x) == pytest.approx(other(p - x), rel=1e-9, abs=1e-12 * scale)
            best = domain.maximizer(p)
            assert outside(best) <= 2e-14 and inner(p, best) == pytest.approx(other(p), rel=1e-9, abs=1e-12)
            assert domain.support(p) == pytest.approx(other(p), rel=1e-9, abs=1e-12)
            assert domain.violation(p) == pytest.approx(outside(p), rel=1e-9, abs=1e-15)
    assert domain.support(np.zeros(domain.shape)) == 0.0


@gathered("name", SETS)
def test_sets_of_multiples_and_rows(name):
    """What 2.5 y in the set means: of another class of the catalogue; and rows in a box, where a set is that."""
    domain, _ = SETS[name]
    smaller, rows = domain.shrunk(2.5), domain.as_rows()
    assert (smaller is None) == (name in ("own", "treeplex"))
    assert (rows is not None) == (name == "half-space" or "equations" in name)
    for p in np.random.default_rng(2).standard_normal((8, *domain.shape)):
        inside = domain.project(p)
        if smaller is not None:
            np.testing.assert_allclose(smaller.project(p), domain.project(2.5 * p) / 2.5, atol=1e-13)
        if rows is not None:
            assert rows[1].contains(rows[0] @ inside.ravel(), 1e-12)
            assert rows[1].violation(rows[0] @ p.ravel()) == pytest.approx(domain.violation(p), abs=1e-12)


@every(UNBOUNDED)
def test_projections_onto_unbounded_sets_leave_a_direction_that_they_bound(domain, outside, other):
    rng = np.random.default_rng(0)
    inside = points_of(domain, rng, 20)
    for scale in (0.1, 1.0, 30.0):
        for _ in range(6):
            p = scale * rng.standard_normal(domain.shape)
            x = domain.project(p)
            assert outside(x) <= 3e-15 * (1.0 + scale)
            assert other(p - x) <= 1e-13 * (1.0 + scale)
            assert max(inner(p - x, z - x) for z in inside) <= 1e-12 * (1.0 + scale) ** 2
            assert domain.support(p) in (INF, 0.0)
            # A ray of the set: it is never left, and no other is nearer to the direction.
            ray = domain.recession(p)
            for z in inside:
                assert outside(z + 1e3 * ray) <= 1e-11 * (1.0 + scale)
            assert inner(p - ray, ray) == pytest.approx(0.0, abs=1e-12 * (1.0 + scale) ** 2)
    assert (domain.radius(np.zeros(domain.shape)), domain.diameter(), domain.magnitude()) == (INF, INF, INF)
    assert domain.support(np.zeros(domain.shape)) == 0.0 and not domain.bounded


def test_supports_of_unbounded_sets_are_finite_exactly_where_they_must_be():
    half = HalfSpace([1.0, 2.0], 3.0)
    assert half.support(np.array([2.0, 4.0])) == pytest.approx(6.0) and half.support(np.array([-1.0, -2.0])) == INF
    assert half.support(np.array([2.0, np.nextafter(4.0, 5.0)])) == INF
    assert HalfSpace([2.0], 3.0).support(np.array([1.0])) == 1.5 and HalfSpace([2.0], 3.0).support(-np.ones(1)) == INF
    cone = SecondOrderCone(3)
    assert cone.support(np.array([-5.1, 3.0, 4.0])) == 0.0 and cone.support(np.array([-4.9, 3.0, 4.0])) == INF
    matrices = PSDCone(2)
    assert matrices.support(np.array([[-1.0, 0.5], [0.5, -1.0]])) == 0.0
    assert matrices.support(np.array([[-1.0, 2.0], [0.0, 0.5]])) == INF
    point = Affine([[1.0, 1.0], [1.0, -1.0]], [3.0, 1.0])
    assert point.bounded and point.support(np.array([1.0, 10.0])) == pytest.approx(12.0)
    assert (point.diameter(), point.magnitude(), point.radius(np.zeros(2))) == pytest.approx((0.0, 2.0, math.sqrt(5.0)))
    # What is left of a normal is rounding, and no ray.
    assert not HalfSpace(NORMAL, 1.0).recession(3.0 * NORMAL).any() and not point.recession(np.ones(2)).any()


@every(SETS)
def test_projections_write_where_they_are_told_and_keep_what_is_inside(domain, outside):
    rng = np.random.default_rng(1)
    p = 3.0 * rng.standard_normal(domain.shape)
    expected, kept, other = domain.project(p), p.copy(), np.empty(domain.shape)
    assert domain.project(p, out=other) is other
    np.testing.assert_array_equal(p, kept)
    np.testing.assert_array_equal(other, expected)
    domain.project(p, out=p)
    np.testing.assert_array_equal(p, expected)
    for z in points_of(domain, rng, 10):
        again = domain.project(z)
        assert not np.shares_memory(again, z)
        np.testing.assert_allclose(again, z, rtol=0.0, atol=2e-15 * (1.0 + float(np.abs(z).max())))
    assert domain.contains(expected, 1e-13) and not domain.contains(np.full(domain.shape, np.nan))
    assert not domain.contains(np.full(domain.shape, INF)) and domain.blocks == (domain,)


@every(BOUNDED)
def test_no_point_is_farther_away_than_the_sizes_say(domain, outside, other):
    rng = np.random.default_rng(2)
    ends = [domain.maximizer(c) for c in rng.standard_normal((300, *domain.shape))]
    for p in (np.zeros(domain.shape), 0.5 * rng.standard_normal(domain.shape), ends[0]):
        farthest = max(float(np.linalg.norm(end - p)) for end in ends)
        assert domain.radius(p) >= farthest * (1.0 - 1e-12)
        # Sampled ends, or a bound that is not far off.
        assert domain.radius(p) <= 1.6 * farthest + 1e-12
    flat = np.reshape(ends, (len(ends), -1))
    widest = max(float(np.linalg.norm(flat - end, axis=1).max()) for end in flat)
    assert widest * (1.0 - 1e-12) - 1e-15 <= domain.diameter() <= 1.8 * widest + 1e-12
    assert max(float(np.abs(end).max()) for end in ends) <= domain.magnitude() * (1.0 + 1e-13)


def test_sizes_with_a_closed_form():
    p = np.array([0.3, -0.2, 0.1])
    assert L1Ball(2.0, shape=3).squared_radius(p) == pytest.approx(2.3**2 + 0.05)
    assert Simplex(3, scale=2.0).squared_radius(p) == pytest.approx(0.09 + 2.2**2 + 0.01)
    pure = Treeplex(PARENTS, ACTIONS)
    ends = {tuple(pure.maximizer(c)) for c in rng.standard_normal((4000, pure.size))}
    # Pure strategies in reduced form: 3 * 2 + 1 below the bet, and 1 + 1 + 3 beside it.
    assert len(ends) == 7 * 5
    ends = np.array(sorted(ends))
    for p in (np.zeros(pure.size), rng.standard_normal(pure.size)):
        assert pure.squared_radius(p) == pytest.approx(((ends - p) ** 2).sum(axis=1).max())
    assert pure.diameter() ** 2 == pytest.approx(((ends[:, None] - ends[None]) ** 2).sum(axis=2).max())
    matrix = rng.standard_normal((3, 2))
    u, _, v = np.linalg.svd(matrix, full_matrices=False)
    assert SpectralBall(0.7, (3, 2)).radius(matrix) == pytest.approx(np.linalg.norm(matrix + 0.7 * u @ v))
    assert NuclearBall(0.7, (3, 2)).radius(matrix) == pytest.approx(
        np.linalg.norm(matrix + 0.7 * np.outer(u[:, 0], v[0]))
    )
    balls = GroupBalls([1.0, 2.0], axis=0, shape=(3, 2))
    assert (balls.diameter(), balls.magnitude()) == (pytest.approx(2.0 * math.sqrt(5.0)), 2.0)
    assert balls.squared_radius(np.array([[3.0, 0.0], [4.0, 0.0], [0.0, 0.0]])) == pytest.approx(36.0 + 4.0)


@pytest.mark.parametrize("size", [1.0, 1e-90, 1e-160, 1e200])
def test_the_support_of_group_balls_is_the_sum_of_norms(size):
    """The sum is summed without the point where it is attained; that is made when it is asked for."""
    c, balls = size * np.random.default_rng(5).standard_normal((3, 5000)), GroupBalls(0.7, axis=0, shape=(3, 5000))
    c[:, 1:4] *= 1e-8
    found = ss.functions.tilted_minimum(ss.functions.Zero(), c, balls)
    norms = size * np.hypot.reduce(c / size, axis=0)
    true = -math.fsum(mpmath.mpf(0.7) * mpmath.mpf(norm) for norm in norms)
    assert found.lower <= true <= found.value + found.error
    assert 0.0 < found.error <= 1e-10 * abs(true)
    point, tilt = found.point, c.copy()
    c[:] = 0.0
    assert balls.violation(point) <= 1e-15 and found.point is point
    assert np.vdot(tilt / size, point) == pytest.approx(true / size, rel=1e-12)


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(sorted(SETS)), vectors, vectors)
def test_projections_are_firmly_nonexpansive(name, p, q):
    domain, outside = SETS[name]
    p, q = (np.array(part[: domain.size]).reshape(domain.shape) for part in (p, q))
    a, b = domain.project(p), domain.project(q)
    size = 1.0 + max(np.abs(p).max(), np.abs(q).max())
    assert outside(a) <= 1e-14 * (size if not domain.bounded else 1.0)
    np.testing.assert_allclose(domain.project(a), a, rtol=0.0, atol=1e-14 * size)
    assert inner(a - b, a - b) <= inner(a - b, p - q) + 1e-11 * size**2


@gathered("name", [name for name in BOUNDED if name != "own"])
def test_huge_and_tied_entries_are_projected_exactly(name):
    domain, outside, other = BOUNDED[name]
    signs = np.where(np.arange(domain.size) % 3, -1.0, 1.0).reshape(domain.shape)
    for p in (1e150 * signs, 1e200 * signs, np.full(domain.shape, 1e20), np.zeros(domain.shape), np.ones(domain.shape)):
        x = domain.project(p)
        assert np.isfinite(x).all() and outside(x) <= 4e-15
        size = float(np.abs(p).max()) or 1.0
        assert inner(p / size - x / size, x) == pytest.approx(other(p / size - x / size), abs=1e-12)


# -- rounding ------------------------------------------------------------------------------------------------------


def exact_support(domain, c):
    """The largest <c, x> in fifty digits."""
    with mpmath.workdps(50):
        if isinstance(domain, SpectralBall | NuclearBall):
            # Computed from the eigenvalues of the smaller Gram matrix.
            M = mpmath.matrix(c.tolist() if c.shape[0] <= c.shape[1] else c.T.tolist())
            values = [mpmath.sqrt(max(v, 0)) for v in mpmath.eigsy(M * M.T, eigvals_only=True)]
            return domain.ball_radius * (mpmath.fsum(values) if isinstance(domain, SpectralBall) else max(values))
        best = [mpmath.mpf(v) for v in c.tolist()]
        total = mpmath.mpf(0)
        first = len(best)
        for parent, count in zip(
            reversed(domain._parents), (s.stop - s.start for s in reversed(domain._sets)), strict=True
        ):
            first -= count
            value = max(best[first : first + count])
            if parent >= 0:
                best[parent] += value
            else:
                total += value
        return total


def directions_of(domain, rng):
    """Plain ones, of low rank, of very different sizes, and with branches that nearly cancel."""
    plain = rng.standard_normal(domain.shape)
    yield plain
    yield plain * 10.0 ** rng.uniform(-8.0, 8.0, domain.shape)
    if len(domain.shape) == 2:
        yield np.outer(plain[:, 0], plain[0])
        yield np.ones(domain.shape)
    else:
        yield np.where(rng.random(domain.shape) < 0.5, 1e16, -1e16) + plain
        yield 0.1 * rng.integers(-3, 4, domain.shape)


ROUNDED = [SpectralBall(0.3, (n, m)) for n, m in ((2, 2), (7, 5), (12, 20))]
ROUNDED += [NuclearBall(0.3, (n, m)) for n, m in ((2, 2), (7, 5), (12, 20))]
DEEP = Treeplex([-1, *(3 * j for j in range(30)), *(3 * j + 1 for j in range(30))], [3] * 61)
ROUNDED += [Treeplex(PARENTS, ACTIONS), DEEP]


@gathered("domain", ROUNDED)
def test_linear_minima_have_error_bars_that_cover_decompositions_and_recursions(domain):
    rng = np.random.default_rng(3)
    for c in directions_of(domain, rng):
        found = F.tilted_minimum(F.Zero(), c, domain)
        true = -exact_support(domain, -c)
        assert mpmath.mpf(found.value) - mpmath.mpf(found.error) <= true, (c.shape, found, true)
        assert abs(found.value - true) <= 1e-12 * np.abs(c).sum()


@gathered("name", [name for name in BOUNDED if name != "own"])
def test_minima_over_the_sets_are_certified(name):
    domain, _, other = BOUNDED[name]
    rng = np.random.default_rng(4)
    for scale in (1.0, 100.0):
        c = scale * rng.standard_normal(domain.shape)
        found = F.tilted_minimum(F.Zero(), c, domain)
        assert found.lower <= -other(-c) + 1e-9 * scale and found.error <= 1e-13 * np.abs(c).sum() * (
            1 + domain.magnitude()
        )
        bowl = F.tilted_minimum(F.Quadratic(2.0), c, domain)
        # Fenchel: any z bounds the minimum of |x|^2 + <c, x> from below by -|z|^2/4 - support(-c - z).
        z = 2.0 * bowl.point
        dual = -0.25 * inner(z, z) - other(-c - z)
        assert bowl.method == "closed form" and bowl.error <= 1e-11 * scale
        assert bowl.lower <= dual + 1e-9 * scale and bowl.value == pytest.approx(dual, rel=1e-8, abs=1e-10)


# -- solved problems -----------------------------------------------------------------------------------------------


def conic_rows(name, domain):
    """The set as rows of Clarabel's: (A, b, cone) over x, and how many further variables they use."""
    n = domain.size
    unit = np.eye(n)
    index = np.arange(n).reshape(domain.shape)
    if name == "groups":
        groups = index.reshape(2, -1).T
        return [(np.vstack([np.zeros((1, n)), -unit[g]]), [0.7, 0.0, 0.0], "SecondOrder") for g in groups], 0
    if name == "sum of sizes":
        both = np.block([[unit, -unit], [-unit, -unit], [np.zeros((1, n)), np.ones((1, n))]])
        return [(both, np.append(np.zeros(2 * n), 1.3), "Nonnegative")], n
    if name in ("scaled simplex", "capped simplex", "caps"):
        total, cap = (3.5, np.full(n, 3.5)) if name == "scaled simplex" else (domain.total, domain.cap.ravel())
        return [
            (np.ones((1, n)), [total], "Zero"),
            (np.vstack([-unit, unit]), np.append(np.zeros(n), cap), "Nonnegative"),
        ], 0
    if name == "treeplex":
        return [(E, e, "Zero"), (-unit, np.zeros(n), "Nonnegative")], 0
    if name == "half-space":
        return [(NORMAL.reshape(1, -1), [-0.4], "Nonnegative")], 0
    if "equations" in name:
        return [(ROWS, SIDES, "Zero")], 0
    if name == "second order":
        return [(-unit, np.zeros(n), "SecondOrder")], 0
    if name == "semidefinite":
        skew = np.array([unit[index[i, j]] - unit[index[j, i]] for i, j in ((0, 1), (0, 2), (1, 2))])
        return [(skew, np.zeros(3), "Zero"), (-unit, np.zeros(n), "PSDTriangle")], 0
    rows, columns = domain.shape
    whole, size = rows + columns, (rows + columns) ** 2
    block = np.arange(size).reshape(whole, whole)
    A = np.zeros((size, n))
    A[block[:rows, rows:].ravel(), np.arange(n)] = A[block[rows:, :rows].T.ravel(), np.arange(n)] = -1.0
    if name == "spectral":
        return [(A, 0.8 * np.eye(whole).ravel(), "PSDTriangle")], 0
    # |X|_* <= r where [[V, X], [X^T, W]] is semidefinite with a trace of 2 r.
    free = [(i, j) for i in range(whole) for j in range(i, whole) if (i < rows) == (j < rows)]
    more = np.zeros((size, len(free)))
    for k, (i, j) in enumerate(free):
        more[block[i, j], k] = more[block[j, i], k] = -1.0
    trace = np.array([[1.0 if i == j else 0.0 for i, j in free]])
    return [
        (np.hstack([A, more]), np.zeros(size), "PSDTriangle"),
        (np.hstack([np.zeros((1, n)), trace]), [3.0], "Nonnegative"),
    ], len(free)


SOLVED = [name for name in SETS if name not in ("own", "polar", "groups of two axes", "caps that leave a point")]


@gathered("name", SOLVED)
def test_least_squares_with_a_sum_of_sizes_is_solved_as_by_clarabel(name):
    """min over X of 1/2 |A x - b|^2 + |B x|_1."""
    domain, outside = SETS[name]
    rng = np.random.default_rng(5)
    n = domain.size
    A, b, B = rng.standard_normal((n + 3, n)), 2.0 * rng.standard_normal(n + 3), 0.3 * rng.standard_normal((3, n))
    f = F.LeastSquares(A, b) if len(domain.shape) == 1 else F.LeastSquares(shaped(A, domain.shape), b)
    problem = ss.SaddleProblem(f, F.Zero(), shaped(B, domain.shape), domain, Box(-1.0, 1.0, shape=3))
    result = ss.solve(problem, rtol=1e-5)
    assert result.success and result.status is (ss.Status.SOLVED if domain.bounded else result.status), (
        name,
        result.status,
    )
    assert outside(result.x) <= 1e-12
    rows, more = conic_rows(name, domain)
    count = n + more + 3
    padded = [(np.hstack([R, np.zeros((R.shape[0], count - R.shape[1]))]), side, kind) for R, side, kind in rows]
    sizes = np.hstack([np.zeros((3, n + more)), np.eye(3)])
    across = np.hstack([B, np.zeros((3, count - n))])
    padded.append((np.vstack([across - sizes, -across - sizes]), np.zeros(6), "Nonnegative"))
    Q, c = np.zeros((count, count)), np.zeros(count)
    Q[:n, :n], c[:n], c[-3:] = A.T @ A, -A.T @ b, 1.0
    value = conic_program(Q, c, padded)[0] + 0.5 * b @ b
    lower, upper = result.certificate.lower, result.certificate.upper
    assert lower - 1e-6 * abs(value) <= value <= upper + 1e-6 * abs(value), (name, lower, value, upper)
    assert upper - lower <= 1e-5 * max(abs(lower), abs(upper)) * 1.01


def shaped(matrix, shape):
    return ss.operators.as_operator(
        (lambda x: matrix @ x.ravel(), lambda y: (matrix.T @ y).reshape(shape)),
        x_shape=shape,
        y_shape=(matrix.shape[0],),
    )


def test_kuhn_poker_has_its_value():
    """One card each of three, an ante of 1 and one bet: the first player loses 1/18 a hand."""
    # Sets in the order jack, queen, king: bet or check first; after a check that was bet at, call or fold.
    first = Treeplex([-1, -1, -1, 1, 3, 5], [2] * 6)
    # By card: after a bet, call or fold; after a check, bet or check.
    second = Treeplex([-1] * 6, [2] * 6)
    payoff = np.zeros((12, 12))
    for i, j in itertools.permutations(range(3), 2):
        sign = 1.0 if i > j else -1.0
        bet, check, call, fold = 2 * i, 2 * i + 1, 6 + 2 * i, 7 + 2 * i
        payoff[bet, 2 * j] += 2.0 * sign / 6.0
        payoff[bet, 2 * j + 1] += 1.0 / 6.0
        payoff[call, 6 + 2 * j] += 2.0 * sign / 6.0
        payoff[fold, 6 + 2 * j] -= 1.0 / 6.0
        payoff[check, 7 + 2 * j] += sign / 6.0
    # The second player minimises.
    game = ss.SaddleProblem(F.Zero(), F.Zero(), payoff, second, first)
    result = ss.solve(game, tol=1e-5)
    assert result.status is ss.Status.SOLVED
    assert result.certificate.lower <= -1.0 / 18.0 <= result.certificate.upper


# -- sets of one's own ---------------------------------------------------------------------------------------------


def own(**options):
    return Custom(project=lambda x: np.clip(x, -1.0, 1.0), shape=3, **options)


def test_an_own_set_is_used_and_named_and_never_solved():
    farthest = BOUNDED["own"][0]._support
    for X in (own(support=farthest, radius=1.8), Product(own(support=farthest, radius=1.8)), own(radius=1.8), own()):
        problem = ss.SaddleProblem(
            F.LeastSquares(np.eye(3), [3.0, -0.5, 0.2]), F.Zero(), np.eye(3), X, Box(-0.1, 0.1, shape=3)
        )
        assert problem.assumptions == "X is the set that its code declares"
        result = ss.solve(problem, rtol=1e-6, max_steps=500)
        assert result.status is not ss.Status.SOLVED
        np.testing.assert_allclose(result.x, [1.0, -0.4, 0.1], atol=1e-2)
        assert result.certificate.assumes or not math.isfinite(result.gap)
    assert own().support(np.array([1.0, 0.0, 0.0])) == INF and not own().bounded
    assert own(radius=2.0).radius(np.array([3.0, 0.0, 4.0])) == 7.0
    assert own(radius=2.0).diameter() == 4.0 and own(radius=2.0).magnitude() == 2.0


def test_own_code_can_not_write_and_returns_the_right_shape():
    def spoil(x):
        x += 1.0
        return x

    with pytest.raises((ValueError, InputError), match="read-only"):
        Custom(project=spoil, shape=2).project(np.zeros(2))
    with pytest.raises(InputError, match=r"Custom: project: received shape \(3,\)"):
        Custom(project=lambda x: np.zeros(3), shape=2).project(np.zeros(2))
    with pytest.raises(InputError, match="Custom: support: received shape"):
        Custom(project=lambda x: x, shape=2, support=lambda c: 1.0).maximizer(np.ones(2))


# -- input ---------------------------------------------------------------------------------------------------------

REFUSED = {
    "groups without a shape": (lambda: GroupBalls(1.0, axis=0), "GroupBalls: shape is missing"),
    "an axis too many": (lambda: GroupBalls(1.0, axis=2, shape=(2, 3)), "GroupBalls: axis is 2; expected axes of"),
    "one axis twice": (lambda: GroupBalls(1.0, axis=(0, -2), shape=(2, 3)), "expected one axis or several different"),
    "radii of another shape": (lambda: GroupBalls(np.ones(2), axis=0, shape=(2, 3)), r"radius has shape \(2,\)"),
    "negative radii": (lambda: GroupBalls(-1.0, axis=0, shape=(2, 3)), "radius has negative entries"),
    "a negative radius": (lambda: L1Ball(-1.0, shape=2), "L1Ball: radius is -1.0; expected a finite number >= 0"),
    "a scale that is none": (lambda: Simplex(3, scale="2"), "Simplex: scale is '2'"),
    "no entries": (lambda: Simplex(0, scale=2.0), "Simplex: n is 0"),
    "caps too small": (lambda: CappedSimplex(3, 0.3), "the caps sum up to 0.9, total is 1; expected caps whose sum"),
    "caps of another shape": (lambda: CappedSimplex(3, [0.5, 1.0]), r"cap has shape \(2,\)"),
    "negative caps": (lambda: CappedSimplex(2, [-1.0, 3.0]), "cap has negative entries"),
    "a normal of 0": (lambda: HalfSpace([0.0, 0.0], 1.0), "HalfSpace: a is 0 or a number"),
    "a side that is no number": (lambda: HalfSpace([1.0], np.nan), "HalfSpace: b is nan"),
    "equations without a solution": (lambda: Affine([[1.0, 1.0]] * 2, [1.0, 2.0]), "Affine: A x = b has no solution"),
    "sparse ones": (lambda: Affine(sp.csr_array([[1.0, 1.0]] * 2), [1.0, 2.0]), "Affine: A x = b has no solution"),
    "0 x = 1": (lambda: Affine([[0.0, 0.0]], [1.0]), "Affine: A x = b has no solution"),
    "sides of another length": (lambda: Affine(np.ones((2, 3)), [1.0]), r"Affine: b: shape is \(1,\); expected \(2,\)"),
    "no matrix": (lambda: Affine([1.0, 2.0], [1.0]), "Affine: A has shape"),
    "a cone of nothing": (lambda: SecondOrderCone(0), "SecondOrderCone: n is 0"),
    "a cone of half a row": (lambda: PSDCone(1.5), "PSDCone: n is 1.5"),
    "a matrix of one axis": (lambda: SpectralBall(1.0, shape=3), "SpectralBall: shape is 3; expected"),
    "a matrix without columns": (lambda: NuclearBall(1.0, shape=(3, 0)), "NuclearBall: shape is"),
    "a parent that comes later": (lambda: Treeplex([-1, 3], [2, 2]), r"parents\[1\] is 3; expected an action of an"),
    "a parent too few": (lambda: Treeplex([-1], [2, 2]), "1 parents and 2 actions"),
    "sets without actions": (lambda: Treeplex([-1], [0]), "Treeplex: actions is 0"),
    "numbers for lists": (lambda: Treeplex(-1, 2), "expected one number for each set"),
    "a projection that is none": (lambda: Custom(project=3, shape=2), "project is int; expected a function point"),
    "a support that is none": (lambda: Custom(project=abs, shape=2, support=3), "support is int; expected a function"),
}


@gathered(("build", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_set_is_refused(build, message):
    with pytest.raises(InputError, match=message):
        build()


def test_a_scaled_simplex_is_none_that_closed_forms_take_for_one_of_sum_1():
    scaled = Simplex(3, scale=2.0)
    assert not isinstance(scaled, Simplex) and isinstance(Simplex(3, scale=1.0), Simplex)
    assert repr(scaled) == "Simplex((3,), scale=2.0)" and repr(Simplex(3)) == "Simplex((3,))"
    f = F.Power(0.0) + F.Linear(np.array([1.0, -1.0, 0.5]))
    assert F.tilted_minimum(f, np.zeros(3), scaled).lower <= 0.0 + 1e-9
    problem = ss.SaddleProblem(f, F.Zero(), np.eye(3), scaled, Ball(1.0, shape=3))
    # |x|_1 = 2, and <(1, -1, 0.5), x> + |x| is least at one vertex or between: at 2 e_2 it is -2 + 2 + 2.
    result = ss.solve(problem, tol=1e-5)
    best = min(x @ [1.0, -1.0, 0.5] + 2.0 + np.linalg.norm(x) for x in 2.0 * rng.dirichlet([0.3] * 3, 20000))
    assert result.status is ss.Status.SOLVED and result.certificate.lower <= best
    assert best <= result.certificate.upper + 1e-2
    assert pickle.loads(pickle.dumps(scaled)).scale == 2.0 and pickle.loads(pickle.dumps(Simplex(3))).shape == (3,)


POINTS = [
    Simplex(3, scale=0.0),
    L1Ball(0.0, shape=3),
    GroupBalls(0.0, axis=0, shape=(3,)),
    CappedSimplex(3, 1.0, total=0.0),
]
POINTS += [SpectralBall(0.0, (1, 3)), NuclearBall(0.0, (3, 1))]


@gathered("domain", POINTS)
def test_sets_that_are_one_point_are_projected_onto(domain):
    assert not domain.project(np.arange(1.0, 4.0).reshape(domain.shape)).any() and domain.diameter() == 0.0


def test_sets_answer_for_tensors_as_for_arrays():
    need("torch")
    kind = ArrayKind("torch", "cpu")
    for domain, _ in SETS.values():
        p = 3.0 * np.random.default_rng(0).standard_normal(domain.shape)
        there = kind.place(p)
        for name in ("project", "maximizer", "recession"):
            answer = getattr(domain, name)(there)
            assert isinstance(answer, RemoteArray)
            np.testing.assert_allclose(to_host(answer), getattr(domain, name)(p), atol=1e-13)
        assert domain.violation(there) == pytest.approx(domain.violation(p))


@gathered("name", list(SETS))
def test_every_set_says_what_it_is(name):
    domain = SETS[name][0]
    text = repr(domain)
    assert text.startswith(type(domain).__name__.replace("Scaled", "")) and len(text) < 100 and "object at" not in text
