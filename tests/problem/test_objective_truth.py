"""Claims about objectives of random terms, factors and sets, against an interior-point solver."""

from __future__ import annotations

import numpy as np
import pytest

import saddleslide as ss
from support import gathered, need

F, D = ss.functions, ss.domains
N = 6


def _simple(cp, rng, m):
    """A function of m entries, and the same for the other solver."""
    c, q = rng.standard_normal(m), float(rng.uniform(0.05, 0.95))
    catalogue = [
        (F.L1(), cp.norm1),
        (F.L2(), cp.norm),
        (F.LInf(), cp.norm_inf),
        (F.PNorm(3.0), lambda z: cp.pnorm(z, 3)),
        (F.Quantile(q), lambda z: cp.sum(cp.maximum(q * z, (q - 1.0) * z))),
        (F.Hinge(), lambda z: cp.sum(cp.pos(1.0 - z))),
        (F.SquaredHinge(), lambda z: 0.5 * cp.sum_squares(cp.pos(1.0 - z))),
        (F.PositivePart(), lambda z: cp.sum(cp.pos(z))),
        (F.EpsilonInsensitive(0.1), lambda z: cp.sum(cp.pos(cp.abs(z) - 0.1))),
        (F.Huber(1.0), lambda z: 0.5 * cp.sum(cp.huber(z, 1.0))),
        (F.Quadratic(0.5), lambda z: 0.25 * cp.sum_squares(z)),
    ]
    mine, theirs = catalogue[rng.integers(len(catalogue))]
    return mine.translated(c), lambda z: theirs(z - c)


def _sets(cp, rng):
    c, (low, high) = rng.standard_normal(N), np.sort(rng.standard_normal((2, N)), 0)
    catalogue = [
        (D.FullSpace(N), lambda z: []),
        (D.NonNegative(N), lambda z: [z >= 0]),
        (D.Box(low, high), lambda z: [z >= low, z <= high]),
        (D.Simplex(N), lambda z: [z >= 0, cp.sum(z) == 1]),
        (D.L1Ball(0.7, N), lambda z: [cp.norm1(z) <= 0.7]),
        (D.Ball(0.5, center=c), lambda z: [cp.norm(z - c) <= 0.5]),
    ]
    return catalogue[rng.integers(len(catalogue))]


@gathered("seed", range(15))
def test_claims_are_true(seed):
    cp, rng = need("cvxpy"), np.random.default_rng(seed)
    z = cp.Variable(N)
    A, b = rng.standard_normal((9, N)), rng.standard_normal(9)
    objective, trusted = F.LeastSquares(A, b), 0.5 * cp.sum_squares(A @ z - b)
    for _ in range(2):
        factor = float(10.0 ** rng.uniform(-3.0, 3.0))
        K = 10.0 ** rng.uniform(-1.0, 1.0) * rng.standard_normal((int(rng.integers(1, 9)), N))
        (on_x, theirs), (behind, also) = _simple(cp, rng, N), _simple(cp, rng, K.shape[0])
        is_behind = rng.random() < 0.6
        objective = objective + factor * (behind @ K if is_behind else on_x)
        trusted = trusted + factor * (also(K @ z) if is_behind else theirs(z))
    over, constraints = _sets(cp, rng)
    program = cp.Problem(cp.Minimize(trusted), constraints(z))
    program.solve(solver="CLARABEL")
    result = ss.minimize(objective, over=over)
    value, slack = program.value, 1e-6 * max(abs(program.value), 1.0)
    assert result.success, result.message
    z.value = result.x
    assert result.objective == pytest.approx(trusted.value, rel=1e-9, abs=1e-9)
    assert result.lower <= value + slack
    assert value - slack <= result.objective <= value + result.gap + slack


def test_norms_behind_operators_bound_their_problem():
    """Far points of the ball of a dual norm were projected to 0, which was read as a ray that falls for ever."""
    rng = np.random.default_rng(1)
    A, b = rng.standard_normal((9, N)), rng.standard_normal(9)
    assert ss.minimize(F.PNorm(3.0).translated(b) @ A).success


@pytest.mark.parametrize("p", [1.05, 1.5, 2.0, 3.0, 10.0])
def test_far_points_are_projected_to_all_digits(p):
    rng = np.random.default_rng(2)
    for size in 10.0 ** np.arange(-2.0, 21.0):
        center = size * rng.standard_normal(5) * (rng.random(5) < 0.8)
        ball = F.PNorm(p).dual((5,), 1.4)[1]
        y, x = ball.project(center), F.PNorm(p).prox(center, 1.4)
        assert np.allclose(x + y, center, rtol=1e-13, atol=1e-13 * size)
        # y is the normal of the ball there: <x, y> = 1.4 |x|.
        assert np.vdot(x, y) == pytest.approx(1.4 * F.PNorm(p).value(x), rel=1e-12, abs=1e-12)


def test_minima_of_0_at_the_start_have_a_claim():
    """Nothing has a size there: a gap of 0 is one within any radius. A ball for y of radius 0 has its own point."""
    own = F.Custom(prox=F.L1().prox, value=F.L1().value)
    rng = np.random.default_rng(2)
    K = rng.standard_normal((7, N))
    small = F.Indicator(D.L1Ball(0.1, 7)) @ K
    for objective in (430.0 * own, 0.01 * own + small, 0.02 * F.Quadratic(0.5) @ K + F.Indicator(D.Ball(9.0, 7)) @ K):
        result = ss.minimize(objective, over=D.NonNegative(N) if "Quad" in repr(objective) else D.FullSpace(N))
        assert result.status is ss.Status.SOLVED_WITHIN and result.gap == 0.0 == result.objective, result
        assert 0.0 < result.radius < np.inf
    # Beside a minimum of 0, at a point that a step leaves, there is no such claim.
    beside = ss.minimize(own + F.Linear(3.0 * np.ones(N)), over=D.FullSpace(N), max_steps=50)
    assert not beside.success
    constraint = F.Indicator(D.L1Ball(0.1, 1)) @ rng.standard_normal((1, N))
    assert ss.minimize(constraint, over=D.Simplex(N), max_steps=300).status is ss.Status.SOLVED


@pytest.mark.parametrize(
    "objective",
    [
        57.0 * F.Max(),
        F.LogSumExp(),
        F.PositivePart() + F.Linear(np.full(N, -2.0)),
        F.Huber(0.1) + F.Linear(np.full(N, 3.0)),
    ],
)
def test_objectives_that_fall_for_ever_are_named(objective):
    assert ss.minimize(objective, over=D.FullSpace(N), max_steps=500).status is ss.Status.UNBOUNDED


@pytest.mark.parametrize("term", [F.Quantile(0.8), F.Hinge(), F.PositivePart(), F.EpsilonInsensitive(0.2)])
def test_losses_of_margins_on_x_itself_are_programs(term):
    """Piecewise linear terms of x beside badly scaled squares: 20,000 gradients of sliding left a gap of 2 in 1."""
    cp, rng = need("cvxpy"), np.random.default_rng(5)
    A, b = rng.standard_normal((5, N)) * np.array([1e3, 1.0, 1e2, 1.0, 10.0])[:, None], rng.standard_normal(5)
    c, z = rng.standard_normal(N), cp.Variable(N)
    theirs = {
        "Quantile(0.8)": lambda v: cp.sum(cp.maximum(0.8 * v, -0.2 * v)),
        "Hinge()": lambda v: cp.sum(cp.pos(1.0 - v)),
        "PositivePart()": lambda v: cp.sum(cp.pos(v)),
        "EpsilonInsensitive(0.2)": lambda v: cp.sum(cp.pos(cp.abs(v) - 0.2)),
    }[repr(term)]
    least = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(A @ z - b) + 0.1 * theirs(z - c))).solve(solver="CLARABEL")
    result = ss.minimize(F.LeastSquares(A, b) + 0.1 * term.translated(c), over=D.Box(-50.0, 50.0, N), rtol=1e-5)
    assert result.plans[-1].method == "interior-point" and result.success
    assert result.objective == pytest.approx(least, rel=2e-5, abs=1e-8)


def test_an_unbounded_objective_is_no_success():
    rng = np.random.default_rng(3)
    slope = 5.0 * rng.standard_normal(N)
    objective = 0.4 * F.LogSumExp() + F.Linear(slope) @ np.eye(N) + 0.1 * F.L2()
    assert not ss.minimize(objective, over=D.FullSpace(N), time_limit=1.0).success


def test_counts_of_rays_that_see_nothing():
    """Rows of zeros, counts of 0, x = 0: products there are exact zeros, at which the likelihood is still finite."""
    cp, rng = need("cvxpy"), np.random.default_rng(4)
    x = np.kron(np.array([[0.0, 3.0], [1.0, 0.0]]), np.ones((4, 4))).ravel()
    A = rng.random((40, 64)) * (rng.random((40, 64)) < 0.15)
    A[:5], A[5:12, x > 0.0] = 0.0, 0.0
    counts = rng.poisson(A @ x).astype(float)
    tv = 0.5 * F.L21(axis=0) @ ss.operators.FiniteDifferences((8, 8))
    K = ss.operators.as_operator(A, x_shape=(8, 8))
    result = ss.minimize(F.KullbackLeibler(counts) @ K + tv, over=D.NonNegative((8, 8)), max_steps=4000)
    z = cp.Variable((8, 8), nonneg=True)
    ahead = [cp.diff(z, axis=k) for k in (0, 1)]
    pairs = [cp.vstack([ahead[0], np.zeros((1, 8))]), cp.hstack([ahead[1], np.zeros((8, 1))])]
    lengths = cp.norm(cp.vstack([cp.vec(part, order="C") for part in pairs]), 2, axis=0)
    trusted = cp.Problem(cp.Minimize(cp.sum(cp.kl_div(counts, A @ cp.vec(z, order="C"))) + 0.5 * cp.sum(lengths)))
    trusted.solve(solver="CLARABEL")
    assert (A @ result.x.ravel() == 0.0).any() and (result.x == 0.0).any()
    assert result.success and result.objective == pytest.approx(trusted.value, rel=1.1e-4)
    assert result.lower <= trusted.value * (1.0 + 1e-7)
    assert ss.certify(result.problem, result.x, result.y).upper == pytest.approx(trusted.value, rel=1e-3)


def test_what_grows_with_its_image_bounds_the_solutions():
    """At y = 1/2 counts give A^T y > 0, so that sum w x is bounded although no point met on the way says so."""
    rng = np.random.default_rng(5)
    A, counts = rng.random((9, 5)), rng.poisson(5.0, 9).astype(float)
    for factor in (1.0, 3.0):
        g, Y = (factor * F.KullbackLeibler(counts)).dual((9,))
        y = g.far_point(Y.shape)
        assert Y.violation(y) == 0.0 and np.isfinite(g.value(y)) and (A.T @ y > 0.0).all()
    result = ss.minimize(F.KullbackLeibler(counts) @ A, over=D.NonNegative(5), rtol=1e-3)
    assert result.status.name == "SOLVED" and result.certificate.solutions


def test_an_entropy_that_a_set_pushes_to_zero():
    x = ss.minimize(F.Linear(np.array([-9.0, 0.0, 4.0])) + 0.1 * F.Entropy(), over=D.L1Ball(0.7, 3), max_steps=2000)
    assert x.success and x.x == pytest.approx([0.7, 0.0, 0.0], abs=1e-3)


def _far_apart(distance):
    """Terms that are infinite beside each other's sets by a distance, < 0 where they meet, and what x is in."""
    rng = np.random.default_rng(6)
    K, c = rng.standard_normal((3, N)), np.array([3.0, -2.0, 1.0])
    # Sets in the whole space of K x, so that one of them moves by the distance along a normal.
    normal = c / np.linalg.norm(c)
    ball = F.Indicator(D.Ball(1.0, center=(2.0 + distance) * normal)) @ K
    line = np.zeros(N)
    own = F.Custom(prox=F.L1().prox, value=F.L1().value)
    box = D.Box(line - 2.0, line - distance)
    return [
        (F.Indicator(D.Ball(1.0, center=np.zeros(3))) @ K + ball, None),
        (F.Indicator(D.HalfSpace(normal, 1.0)) @ K + ball + F.L1() @ K, None),
        (F.Indicator(D.Ball(1.0, shape=3)) @ K + own @ K + ball, D.Ball(9.0, shape=N)),
        (F.Indicator(D.SpectralBall(1.0, (1, 3))) @ ss.operators.as_operator(K, y_shape=(1, 3)) + ball, None),
        (F.Entropy() @ np.eye(N), box),
        (F.KullbackLeibler(np.ones(N)) @ np.eye(N), box),
        (F.Indicator(D.SecondOrderCone(N)) @ np.eye(N), D.Box(line - 9.0, np.append(-distance, line[1:] + 9.0))),
    ]


@gathered("case", range(7))
def test_objectives_that_are_infinite_everywhere_are_named_after_few_products(case):
    for distance in (0.1, 1.0):
        f = F.LeastSquares(None, np.ones(N)) if distance == 1.0 else F.Linear(np.zeros(N))
        terms, over = _far_apart(distance)[case]
        result = ss.minimize(f + terms, over=over, max_calls={"B": 1500})
        assert result.status is ss.Status.INFEASIBLE and "around x" in result.message, (distance, result)
        # The point means nothing, so that its value is not shown; what it breaks is.
        assert "This point breaks " in result.message and "minimum:" not in repr(result), result
    # Sets that meet, however little, are not excluded.
    terms, over = _far_apart(-1e-3)[case]
    assert ss.minimize(f + terms, over=over, max_calls={"B": 1500}).status is not ss.Status.INFEASIBLE


def test_objectives_of_moved_sets_and_conjugates_are_finite_beside_their_sets():
    """K x misses a simplex by less than the gap; what is moved is judged at the nearest of its points."""
    rng = np.random.default_rng(9)
    K, c = rng.standard_normal((4, N)), rng.standard_normal(4)
    entropy, f = F.LogSumExp().conjugate(), F.LeastSquares(None, np.ones(N))
    for h in (entropy, F.Indicator(D.Ball(0.3, shape=4)), F.L2().conjugate()):
        result = ss.minimize(f + h.translated(c) @ K, rtol=1e-3)
        closer = ss.minimize(f + h.translated(c) @ K, rtol=1e-6)
        assert result.success and result.objective == pytest.approx(closer.objective, rel=2e-3)
        assert result.violation < 1e-3


def test_steps_of_moved_functions_end_where_values_are_finite():
    """Near 0 counts have finite values; what is left of 1e-20 beside 1 is 0, where they are infinite."""
    center, moved = np.array([-4.0, 2.0, -1e9]), np.array([1.0, -3.0, 1e8])
    inside = F.KullbackLeibler(np.array([1.0, 0.0, 2.0]))
    h = inside.translated(moved)
    for step in (1e-20, 1e-6, 1.0):
        point = h.prox(center, step)
        assert np.isfinite(h.value(point))
        assert np.allclose(point, moved + inside.prox(center - moved, step), rtol=1e-15, atol=0.0)


def test_an_objective_above_the_bounds_within_radii_is_said_to_be():
    """Of a steep own term nobody knows how long y may be: its value counts a y that lies beyond the radii."""
    rng = np.random.default_rng(8)
    A, b, K = rng.standard_normal((10, N)), rng.standard_normal(10), rng.standard_normal((3, N))
    own = F.Custom(prox=F.L1().prox, value=F.L1().value).translated(np.ones(3)) @ K
    for weight, is_beyond in ((1.0, False), (300.0, True)):
        result = ss.minimize(F.LeastSquares(A, b) + weight * own)
        above = result.objective - result.lower
        assert result.status is ss.Status.SOLVED_WITHIN and (result.objective > result.upper + 1e-9) is is_beyond
        assert (f"The objective is {above:.4g} above the lower bound" in result.message) is is_beyond


@pytest.mark.parametrize("shape", [(6,), (2, 3)])
def test_rays_bound_how_functions_rise(shape):
    rng = np.random.default_rng(7)
    c, counts = rng.standard_normal(shape), np.arange(6.0).reshape(shape)
    half = F.Indicator(D.HalfSpace(c, 0.3)).conjugate()
    catalogue = [F.L1(np.abs(c)), F.L2(), F.LInf(), F.Max(), F.PNorm(1.5), F.L21(axis=0), F.Linear(c), F.Quadratic(1.0)]
    catalogue += [F.Entropy().conjugate(), F.KullbackLeibler(counts).dual(shape)[0], half, F.Huber(0.3), 2.0 * half]
    catalogue += [F.Hinge(), F.Quantile(0.3), F.EpsilonInsensitive(0.2), F.LogSumExp(), 3.0 * F.Huber(0.3)]
    catalogue += [one + F.Linear(c) for one in catalogue] + [F.L2().translated(c), F.L1() + F.LInf()]
    rises = 0
    for f in catalogue:
        domain = f.effective_domain(shape)
        for _ in range(5):
            x, direction = domain.project(rng.standard_normal(shape)), rng.standard_normal(shape)
            if not np.isfinite(f.value(x)):
                x = 0.0 * x
            ray, slope, _ = f.recession(direction)
            for t in (0.1, 1.0, 30.0):
                assert f.value(x + t * ray) <= f.value(x) + t * slope + 1e-9 * (1.0 + t), f
            rises += bool(ray.any())
    assert rises >= 160


def _constraints_behind_operators(cp):
    """Terms whose blocks of y are unbounded sets of their own, and the same for the other solver; x has 6 entries."""
    rng = np.random.default_rng(3)
    A, K, M, a = rng.standard_normal((3, 5)), rng.standard_normal((5, N)), rng.standard_normal((4, N)), rng.random(5)
    sides, c = A @ K @ np.full(N, 0.1), rng.standard_normal(4)
    matrix = ss.operators.as_operator(M, y_shape=(2, 2))
    soft = F.Custom(prox=lambda z, t: np.sign(z) * np.maximum(abs(z) - t, 0.0), value=lambda z: abs(z).sum())

    def whole(z):
        return cp.reshape(M @ z, (2, 2), order="C")

    return {
        "half-space": (F.Indicator(D.HalfSpace(a, -0.5)) @ K, lambda z: (0.0, [a @ (K @ z) <= -0.5])),
        "of x": (F.Indicator(D.HalfSpace(np.ones(N), -0.5)) + F.L2(), lambda z: (cp.norm(z), [cp.sum(z) <= -0.5])),
        "equations": (F.Indicator(D.Affine(A, sides)) @ K, lambda z: (0.0, [A @ K @ z == sides])),
        "second order": (F.Indicator(D.SecondOrderCone(4)) @ M, lambda z: (0.0, [cp.norm((M @ z)[1:]) <= (M @ z)[0]])),
        "semidefinite": (
            F.Indicator(D.PSDCone(2)) @ matrix,
            lambda z: (0.0, [whole(z) == whole(z).T, whole(z) >> 0]),
        ),
        "nuclear": (F.Indicator(D.NuclearBall(0.3, (2, 2))) @ matrix, lambda z: (0.0, [cp.normNuc(whole(z)) <= 0.3])),
        "support": (
            0.3 * F.Indicator(D.CappedSimplex(5, cap=0.5)).conjugate() @ K,
            lambda z: (0.15 * cp.sum_largest(K @ z, 2), []),
        ),
        "two soft maxima": (
            30.0 * F.LogSumExp() @ K + 0.2 * F.LogSumExp().translated(c) @ M,
            lambda z: (30.0 * cp.log_sum_exp(K @ z) + 0.2 * cp.log_sum_exp(M @ z - c), []),
        ),
        "two own norms": (
            3.0 * soft @ K + 0.3 * soft @ M,
            lambda z: (3.0 * cp.norm1(K @ z) + 0.3 * cp.norm1(M @ z), []),
        ),
        "conjugate": (
            F.Quadratic(np.arange(1.0, 6.0)).conjugate() @ K,
            lambda z: (0.5 * cp.sum(cp.multiply(1.0 / np.arange(1.0, 6.0), (K @ z) ** 2)), []),
        ),
    }  # fmt: skip


@gathered("name", _constraints_behind_operators(None))
def test_sets_without_an_end_behind_operators(name):
    """Success at the true minimum, and multipliers that make x stationary."""
    cp, rng = need("cvxpy"), np.random.default_rng(1)
    data = rng.standard_normal(N)
    term, theirs = _constraints_behind_operators(cp)[name]
    z = cp.Variable(N)
    value, rows = theirs(z)
    least = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(z - data) + value), rows).solve(solver="CLARABEL")
    r = ss.minimize(F.LeastSquares(None, data) + term, max_steps=20000)
    assert r.success, r.message
    assert r.objective == pytest.approx(least, rel=2e-4) and r.lower <= least + 1e-6 * abs(least)
    assert r.violation <= 1e-3
    if name != "of x":
        # x - data + sum of K^T dual is 0; the gap allows sqrt(2 gap).
        operators = [getattr(part, "K", None) or part.function.K for part in getattr(term, "parts", (term,))]
        pull = sum(K.adjoint(dual.reshape(K.y_shape)) for K, dual in zip(operators, r.duals, strict=True))
        assert np.linalg.norm(r.x - data + pull) <= 3.0 * np.sqrt(2.0 * r.gap) + 1e-6


def test_a_long_step_of_group_hubers_is_no_rounding():
    """A claim within radii takes such steps; lower bounds above the minimum came of them."""
    h, slope = 20.0 * F.Huber(0.6, axis=-1), np.random.default_rng(0).standard_normal((3, 2))
    found = ss.functions.prox(h, np.ones((3, 2)) - slope * 1e15, 1e-15, D.FullSpace((3, 2)))
    np.testing.assert_allclose(found, -slope * 0.6 / 20.0, rtol=1e-12)
