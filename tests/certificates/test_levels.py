"""Sets that contain every solution: problems built around a solution, of which no rule may cut anything off."""

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.certificates.levels import LevelSets, enclose, growth_of
from support import need

F, D = ss.functions, ss.domains


def saddle(f, g, B, X, Y):
    return ss.SaddleProblem(f=f, g=g, B=B, X=X, Y=Y)


def sparse(rng, n, scale):
    return scale * rng.standard_normal(n) * (rng.random(n) < 0.4)


def l1_weights(rng, slope, x):
    """Weights w and a sign of x with 0 in slope + w d|x|: w = |slope| where x is not 0, at least that elsewhere."""
    return np.abs(slope) * np.where(x != 0.0, 1.0, rng.uniform(1.0, 2.0, x.size)), -np.sign(slope) * np.abs(x)


def lasso_with_variation(rng, scale):
    """A weighted l1 norm bounds x; half of the time some entries have ends of their own."""
    n, B = 12, np.eye(12)[:-1] - np.eye(12, k=1)[:-1]
    A, r, y = rng.standard_normal((6, n)) / scale, rng.standard_normal(6), rng.uniform(-0.3, 0.3, n - 1)
    y[::2] = 0.3 * np.sign(y[::2])
    slope = A.T @ r + B.T @ y
    x = np.repeat(scale * rng.standard_normal(4), 3)
    weights, signed = l1_weights(rng, slope, x)
    # One value on each stretch between two jumps where |y| < 0.3, so that y is a subgradient: x is piecewise 0 here.
    x = np.zeros(n)
    j = int(rng.integers(n))
    x[j] = signed[j]
    steps = B @ x
    y = np.where(steps != 0.0, 0.3 * np.sign(steps), y)
    slope = A.T @ r + B.T @ y
    weights = np.abs(slope) + np.where(x != 0.0, 0.0, rng.random(n)) / scale
    b = A @ x - r
    # At the jump the slope has to pull against the sign of x: a linear term sees to that.
    c = np.where(x != 0.0, -slope - weights * np.sign(x), 0.0)
    weights = weights + np.where(x != 0.0, np.abs(c), 0.0) * 2.0
    c = np.where(x != 0.0, -slope - weights * np.sign(x), 0.0)
    lower = np.where(rng.random(n) < 0.3 * rng.integers(2), x - scale * rng.random(n), -np.inf)
    upper = np.where(rng.random(n) < 0.3 * rng.integers(2), x + scale * rng.random(n), np.inf)
    f = F.LeastSquares(A, b) + F.Power(0.0, weight=weights, tilt=-c)
    value = 0.5 * r @ r + weights @ np.abs(x) + c @ x + 0.3 * np.abs(B @ x).sum()
    return saddle(f, F.Zero(), B, D.Box(lower, upper), D.Box(-0.3, 0.3, shape=n - 1)), x, y, value


def counts_on_the_orthant(rng, scale):
    """Least squares with A >= 0 and x >= 0."""
    n = 10
    A, r, y = rng.random((7, n)) / scale, -rng.random(7), rng.uniform(-0.1, 0.1, 3)
    B = rng.standard_normal((3, n)) * 0.1 / scale
    x = np.abs(sparse(rng, n, scale))
    c = -(A.T @ r) - B.T @ y + np.where(x == 0.0, rng.random(n) / scale, 0.0)
    f = F.LeastSquares(A, A @ x - r) + F.Linear(np.maximum(c, 0.0))
    # What is left of a negative slope is a kink of g: y maximises <y, Bx - b> on the box.
    b = B @ x
    value = 0.5 * r @ r + np.maximum(c, 0.0) @ x
    fits = bool(np.all(c >= 0.0))
    return saddle(f, F.Linear(b), B, D.NonNegative(n), D.Box(-0.5, 0.5, shape=3)), x, y, value if fits else None


def residuals_in_l1(rng, scale):
    """|Bx - b|_1 with B of full column rank and no f at all."""
    n, m = 4, 15
    B = rng.standard_normal((m, n)) / scale
    on = np.arange(m) < n
    y = np.where(on, 0.0, np.sign(rng.standard_normal(m)))
    # B^T y = 0 with |y| <= 1 on the n rows that x meets.
    y[on] = -np.linalg.solve(B[on].T, B[~on].T @ y[~on])
    largest = max(1.0, float(np.abs(y[on]).max()) * 1.1)
    y, high = y / largest, 1.0 / largest
    side = np.where(on, 1.0, high)
    x = scale * rng.standard_normal(n)
    miss = np.where(on, 0.0, np.sign(y) * rng.random(m))
    value = float(side @ np.abs(miss))
    return saddle(F.Zero(), F.Linear(B @ x - miss), B, D.FullSpace(n), D.Box(-side, side)), x, y, value


def equalities(rng, scale):
    """Least squares and a weighted l1 norm under Bx = b, B onto."""
    n, m = 12, 3
    A, r = rng.standard_normal((5, n)) / scale, rng.standard_normal(5) * rng.integers(2)
    B, y = rng.standard_normal((m, n)), rng.standard_normal(m) / scale
    slope, x = A.T @ r + B.T @ y, sparse(rng, n, scale)
    weights, x = l1_weights(rng, slope, x)
    f = F.LeastSquares(A, A @ x - r) + F.Power(0.0, weight=weights)
    value = 0.5 * r @ r + weights @ np.abs(x)
    return saddle(f, F.Linear(B @ x), B, D.FullSpace(n), D.FullSpace(m)), x, y, value


def inequalities(rng, scale):
    """Least squares of full column rank under Gx <= h, with a point inside: 0 has a margin in every row."""
    n, m = 6, 9
    A, G = rng.standard_normal((9, n)) / scale, rng.standard_normal((m, n)) / scale
    x = scale * rng.standard_normal(n)
    G[G @ x < 0.0] *= -1.0
    y = np.abs(rng.standard_normal(m)) * (rng.random(m) < 0.4)
    h = G @ x + np.where(y > 0.0, 0.0, rng.random(m))
    r = np.linalg.lstsq(A.T, -G.T @ y, rcond=None)[0]
    f = F.LeastSquares(A, A @ x - r)
    return saddle(f, F.Linear(h), G, D.FullSpace(n), D.NonNegative(m)), x, y, 0.5 * r @ r


def packing(rng, scale):
    """min -<p, x> + <w, x> over Gx <= h, x >= 0, where every price of the dual start is above its cost."""
    n, m = 8, 5
    G, x = rng.random((m, n)) / scale, np.abs(sparse(rng, n, scale))
    y = rng.random(m) * (rng.random(m) < 0.6)
    h = G @ x + np.where(y > 0.0, 0.0, rng.random(m))
    c = -G.T @ y + np.where(x > 0.0, 0.0, rng.random(n) / scale)
    return saddle(F.Linear(c), F.Linear(h), G, D.NonNegative(n), D.NonNegative(m)), x, y, float(c @ x)


FAMILIES = (lasso_with_variation, counts_on_the_orthant, residuals_in_l1, equalities, inequalities, packing)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_no_rule_cuts_a_solution_off_and_bounds_hold(family, monkeypatch):
    least, seen = LevelSets.least, []
    monkeypatch.setattr(
        LevelSets, "least", lambda self, level, *rest: seen.append((self, level)) or least(self, level, *rest)
    )
    used = solved = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        problem, x, y, value = family(rng, 10.0 ** rng.uniform(-3, 3))
        if value is None:
            continue
        seen.clear()
        result = ss.solve(problem, rtol=1e-3, max_steps=120)
        for sets, level in seen:
            # A mirrored run has the roles exchanged; the names are those of the problem.
            point = x if sets.name == "x" else y
            size = np.sqrt(level.weights @ point**2) if level.is_square else level.weights @ np.abs(point)
            assert size <= level.size * (1.0 + 1e-12), (seed, level)
        slack = 1e-12 * (abs(value) + abs(result.lower) + 1e-300)
        lower, upper = result.certificate.lower, result.certificate.upper
        assert lower - slack <= value <= upper + slack, (seed, result)
        used, solved = (
            used + bool(seen),
            solved + bool(result.certificate.solutions and result.status is ss.Status.SOLVED),
        )
    assert used >= 3 and solved >= 2, (used, solved)


# Norms as ours and as those of cvxpy, with a point at which they are as small beside |x| as they can be.
SHAPE = (4, 6)
ROW, EVEN, POINT = np.zeros(SHAPE), np.where(np.arange(24.0) % 3.0 < 1.0, -1.0, 1.0).reshape(SHAPE), np.zeros(SHAPE)
ROW[1], POINT[2, 3] = [1.0, 2.0, 0.0, 1.0, -1.0, 3.0], 2.0
WEIGHTS = np.array([2.0, 0.7, 1.0, 3.0])
NORMS = {
    "group lasso": (F.L21(axis=1, weights=WEIGHTS), lambda x, cp: WEIGHTS @ cp.norm(x, 2, axis=1), ROW),
    "sparse group": (2.0 * F.L1() + F.L21(axis=1), lambda x, cp: cp.mixed_norm(x, 2, 1) + 2.0 * cp.norm1(x), POINT),
    "l2": (F.L2(), lambda x, cp: cp.norm(x, "fro"), ROW),
    "largest size": (F.LInf(), lambda x, cp: cp.max(cp.abs(x)), EVEN),
    "largest": (F.Max(), lambda x, cp: cp.max(x), np.abs(EVEN)),
    "nuclear": (F.Nuclear(), lambda x, cp: cp.normNuc(x), np.outer([1.0, 2.0, -1.0, 0.5], ROW[1])),
    "p = 3": (F.PNorm(3.0), lambda x, cp: cp.norm(cp.vec(x, "C"), 3), EVEN),
    "p = 1.5": (F.PNorm(1.5), lambda x, cp: cp.norm(cp.vec(x, "C"), 1.5), POINT),
    "with a slope": (
        3.0 * F.L2() + F.Linear(-ROW / 2.0),
        lambda x, cp: 3.0 * cp.norm(x, "fro") - cp.sum(cp.multiply(ROW, x)) / 2.0,
        ROW,
    ),
}


@pytest.mark.parametrize("name", NORMS)
def test_functions_grow_as_they_say(name):
    norm, _, least = NORMS[name]
    X = D.NonNegative(SHAPE) if name == "largest" else D.FullSpace(SHAPE)
    slope, offset = growth_of(norm, X)
    rng = np.random.default_rng(1)
    for _ in range(200):
        x = X.project(rng.standard_normal(SHAPE) * rng.random(SHAPE) ** rng.uniform(0.0, 9.0))
        assert norm.value(x) >= slope * np.linalg.norm(x)
    assert offset == 0.0 and norm.value(least) == pytest.approx(slope * np.linalg.norm(least), rel=1e-12)


@pytest.mark.parametrize("name", NORMS)
def test_balls_of_growth_hold_the_solutions_of_clarabel(name, monkeypatch):
    cp = need("cvxpy")
    least, seen = LevelSets.least, []
    monkeypatch.setattr(LevelSets, "least", lambda self, level, *rest: seen.append(level) or least(self, level, *rest))
    norm, theirs, tight = NORMS[name]
    X = D.NonNegative(SHAPE) if name == "largest" else D.FullSpace(SHAPE)
    for seed in range(2):
        rng = np.random.default_rng(seed)
        scale = 10.0 ** rng.uniform(-2, 2)
        A, B = rng.standard_normal((8, *SHAPE)), 0.01 * rng.standard_normal((3, *SHAPE))
        b = scale * np.tensordot(A, tight, 2)
        factor = 0.5 * scale
        flat = A.reshape(8, -1)
        problem = saddle(
            F.LeastSquares(flat, b, x_shape=SHAPE) + factor * norm, F.Zero(),
            ss.operators.as_operator(B.reshape(3, -1), x_shape=SHAPE), X, D.Box(-scale, scale, shape=3),
        )  # fmt: skip
        assert ss.plan(problem, rtol=1e-3).certificate.kind == "made global"
        seen.clear()
        result = ss.solve(problem, rtol=1e-2, max_steps=150)
        # In units of the scale, so that Clarabel's tolerances mean something.
        x = cp.Variable(SHAPE)
        terms = 0.5 * cp.sum_squares(flat @ cp.vec(x, "C") - b / scale) + 0.5 * theirs(x, cp)
        terms += cp.norm1(B.reshape(3, -1) @ cp.vec(x, "C"))
        cp.Problem(cp.Minimize(terms), [x >= 0.0] if name == "largest" else []).solve(solver="CLARABEL")
        value, length = float(terms.value) * scale**2, scale * float(np.linalg.norm(x.value))
        assert result.certificate.solutions.startswith("|x| <= "), result
        assert result.status is ss.Status.SOLVED or "largest" in name, result
        assert seen and all(length <= level.size * (1.0 + 1e-6) for level in seen)
        assert result.lower <= value * (1.0 + 1e-6) and value * (1.0 - 1e-6) <= result.upper, name


def test_what_own_code_declares_bounds_nothing():
    class Mine(F.Function):
        separable = True

        def value_and_gradient(self, x, out=None):
            return float(np.abs(x).sum()), np.sign(x)

        def smoothness(self, domain):
            return ss.Holder(0.0, 2.0)

        def strong_convexity(self, domain):
            return 0.0

        def separable_form(self):
            return F.Power(0.0).separable_form()

        def growth(self, domain):
            return 1.0

    assert growth_of(Mine(), D.FullSpace(2))[0] == -np.inf
    assert growth_of(F.LeastSquares(np.eye(2), np.ones(2)) + Mine(), D.FullSpace(2))[0] == -np.inf
    space, box = D.FullSpace(2), D.Box(-1.0, 1.0, shape=2)
    sets = LevelSets(
        F.LeastSquares(np.eye(2), np.ones(2)), Mine(), space, F.Zero(), box, ss.operators.as_operator(np.eye(2)), "x"
    )
    assert not sets.is_possible
    turned = F.Quadratic((lambda v: -v, lambda v: -v), x_shape=2)
    assert growth_of(turned, space)[0] == -np.inf


def test_boxes_enclose_their_sets():
    rng = np.random.default_rng(3)
    sets = (D.Ball(2.0, center=[1.0, 2.0]), D.Simplex(3), D.Box(-1.0, [1.0, np.inf]), D.FullSpace(2))
    for domain in (*sets, D.Product(*sets)):
        lower, upper = enclose(domain)
        for _ in range(50):
            point = domain.project(5.0 * rng.standard_normal(domain.shape))
            assert np.all(lower <= point) and np.all(point <= upper)


def test_rows_with_weights_of_their_own_bound_no_column():
    rng = np.random.default_rng(3)
    A, b = rng.uniform(0.1, 1.0, (12, 6)), rng.uniform(0.0, 5.0, 12)
    weights = np.geomspace(1e-4, 1.0, 12)
    problem = ss.SaddleProblem(
        f=ss.functions.LeastSquares(A, b, weights=weights),
        g=ss.functions.Zero(),
        B=np.eye(6)[:5] - np.eye(6)[1:],
        X=ss.domains.NonNegative(6),
        Y=ss.domains.Box(-1e-4, 1e-4, shape=5),
    )
    result = ss.solve(problem, rtol=1e-6)
    scaled, data = np.sqrt(weights)[:, None] * A, np.sqrt(weights) * b
    same = ss.SaddleProblem(
        f=ss.functions.LeastSquares(scaled, data), g=problem.g, B=problem.B, X=problem.X, Y=problem.Y
    )
    other = ss.solve(same, rtol=1e-6)
    assert result.success and other.success
    assert max(result.lower, other.lower) <= min(result.upper, other.upper)
    assert "|x_j| <=" not in result.certificate.solutions


def test_residuals_times_a_number_bound_a_lasso_earlier_and_never_beyond_its_minimum(monkeypatch):
    rng = np.random.default_rng(27)
    A, signs = rng.standard_normal((40, 160)), np.sign(rng.standard_normal(8))
    b = A[:, :8] @ signs + 0.1 * rng.standard_normal(40)
    weight = 0.05 * float(np.abs(A.T @ b).max())

    def short_by(upper):
        f, X = F.LeastSquares(A, b) + weight * F.L1(), D.Box(-np.inf, upper, shape=160)
        most = ss.minimize(f, over=X, reduction=1e-9).certificate.upper
        early = [ss.minimize(f, over=X, method="adaptive", max_steps=k).certificate.lower for k in (4, 8, 16)]
        assert all(-np.inf < lower <= most for lower in early)
        return most - np.array(early)

    scaled = [short_by(upper) for upper in (np.inf, 0.0)]
    monkeypatch.setattr(LevelSets, "best_scale", lambda *_: 1.0)
    plain = [short_by(upper) for upper in (np.inf, 0.0)]
    assert (np.array(scaled) < 0.9 * np.array(plain)).all(), (scaled, plain)
