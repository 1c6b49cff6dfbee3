"""Scales from 1e-150 to 1e150, domains and parts that are nearly nothing, and arrays that lie oddly in memory."""

import numpy as np
import pytest
import scipy.sparse

import saddleslide as ss
from small_problems import bits
from support import gathered

F, D = ss.functions, ss.domains
RNG = np.random.default_rng(0)
A, b, C = RNG.standard_normal((8, 5)), RNG.standard_normal(8), RNG.standard_normal((7, 4))
B, c_x, c_y = RNG.standard_normal((4, 5)), RNG.standard_normal(5), RNG.standard_normal(4)
# Values are scaled by s, points by t.
SCALES = ((1e150, 1.0), (1e-150, 1.0), (1e100, 1e20), (1.0, 1e70), (1.0, 1e-70), (1e150, 1e150), (1e-150, 1e-150))


def scaled(kind, s, t):
    """The problem whose values are s and whose points are t times those of the plain one."""
    q = s / t / t
    X, Y = D.Box(-t, t, shape=5), D.Box(-t, t, shape=4)
    squares = F.LeastSquares(A * np.sqrt(q), b * np.sqrt(s), ridge=0.1 * q)
    quadratic = F.Quadratic(q) + F.Linear(0.3 * s / t * np.ones(4))
    if kind == "custom":
        f = F.Custom(
            lambda x: q * (A.T @ (A @ x)) - 0.5 * s / t,
            lambda x: float(0.5 * q * (A @ x) @ (A @ x) - 0.5 * s / t * x.sum()),
            ss.Holder(1.0, float(q * np.linalg.norm(A, 2) ** 2)),
        )
        g = F.Custom(
            lambda y: q * (C.T @ (C @ y)) + 0.2 * s / t,
            lambda y: float(0.5 * q * (C @ y) @ (C @ y) + 0.2 * s / t * y.sum()),
            ss.Holder(1.0, float(q * np.linalg.norm(C, 2) ** 2)),
        )
        return ss.SaddleProblem(f=f, g=g, B=B * q, X=X, Y=Y)
    parts = {
        "least squares": (squares, quadratic, X, Y),
        "huber": (squares, (s / t) * F.Huber(0.5 * t), X, Y),
        "power": (squares + (s / t**1.5) * F.Power(0.5), quadratic, X, Y),
        "linear": (F.Linear(c_x * (s / t)), F.Linear(c_y * (s / t)), X, Y),
        "free": (squares, quadratic, D.FullSpace(5), D.FullSpace(4)),
        "ball": (squares, quadratic, D.Ball(t, shape=5), D.Ball(t, shape=4)),
    }
    f, g, X, Y = parts[kind]
    return ss.SaddleProblem(f=f, g=g, B=B * q, X=X, Y=Y)


def outcomes(kind, s, t):
    """Status and bounds in units of s, by three doors."""
    problem = scaled(kind, s, t)
    plan = ss.plan(problem, order="fgB", loops=(12, 2, 3))
    results = (
        ss.solve(problem, reduction=1e-3, method="adaptive"),
        ss.solve(problem, reduction=1e-3, max_steps=2000),
        ss.run(problem, plan),
    )
    assert all(np.isfinite(result.x).all() and np.isfinite(result.y).all() for result in results)
    return [(result.status, result.lower / s, result.upper / s) for result in results]


KINDS = ["least squares", "huber", "power", "linear", "free", "ball", "custom"]


@pytest.mark.parametrize("kind", KINDS)
def test_scales_change_nothing_but_the_scale(kind):
    plain = outcomes(kind, 1.0, 1.0)
    assert [row[0] for row in plain] == [ss.Status.SOLVED, ss.Status.SOLVED, ss.Status.COMPLETED]
    # Every scale meets some kinds, and every kind four scales.
    for s, t in (SCALES * 2)[KINDS.index(kind) :][:4]:
        for (status, lower, upper), (wanted, low, high) in zip(outcomes(kind, s, t), plain, strict=True):
            assert status is wanted, (s, t)
            # Two enclosures of the same number overlap, and are about as wide.
            assert lower <= high * (1.0 + 1e-12) + 1e-12 and low <= upper * (1.0 + 1e-12) + 1e-12, (s, t)
            assert upper - lower <= 10.0 * (high - low) + 1e-12, (s, t)


@pytest.mark.parametrize("s", [1e-150, 1.0, 1e150])
def test_games_with_payoffs_of_any_size(s):
    """Rock, paper, scissors with stakes: the value is 0, and that of the shifted game is the shift."""
    game = np.array([[0.0, -2.0, 1.0], [2.0, 0.0, -1.0], [-1.0, 1.0, 0.0]])
    result = ss.solve(ss.gallery.matrix_game((game + 0.5) * s), reduction=1e-9)
    assert result.status is ss.Status.SOLVED
    assert result.lower <= 0.5 * s * (1.0 + 1e-12) and result.upper >= 0.5 * s * (1.0 - 1e-12)
    assert result.gap <= 1e-8 * s


def test_numbers_out_of_range_are_a_status_or_an_error_never_a_crash():
    for s, t in ((1.0, 1e140), (1.0, 1e-140), (1e300, 1.0), (1e-300, 1.0)):
        with np.errstate(all="ignore"):
            result = ss.solve(scaled("least squares", s, t), reduction=1e-3, method="adaptive", max_steps=20)
            value = ss.solve(scaled("least squares", 1.0, 1.0), reduction=1e-6, method="adaptive")
        assert result.lower <= s * value.upper and result.upper >= s * value.lower
        assert not np.isnan(result.lower) and not np.isnan(result.upper)


LS, Q = F.LeastSquares(A, b, ridge=0.1), F.Quadratic(0.5) + F.Linear(np.ones(4))
BOX_X, BOX_Y = D.Box(-1.0, 1.0, shape=5), D.Box(-1.0, 1.0, shape=4)
THIN = D.Box(np.array([-1.0, 0.2, -1.0, 0.0, -1.0]), np.array([1.0, 0.2, 1.0, 0.0, 1.0]))
POINT = D.Box(np.full(5, 0.3), np.full(5, 0.3))
NONE_X, NONE_Y = np.zeros((4, 0)), np.zeros((0, 5))


def plain_custom():
    return F.Custom(lambda x: A.T @ (A @ x - b) + 0.1 * x, lambda x: LS.value(x), ss.Holder(1.0, 30.0))


NEARLY_NOTHING = {
    "X a point": (LS, Q, B, POINT, BOX_Y),
    "X a point, own function": (plain_custom(), Q, B, POINT, BOX_Y),
    "X and Y points": (LS, Q, B, POINT, D.Box(np.zeros(4), np.zeros(4))),
    "a ball of radius 0": (LS, Q, B, D.Ball(0.0, shape=5), BOX_Y),
    "sides of width 0": (LS, Q, B, THIN, BOX_Y),
    "sides of width 0, own function": (plain_custom(), Q, B, THIN, D.Box(np.zeros(4), np.array([0.0, 1.0, 0.0, 1.0]))),
    "B = 0": (LS, Q, np.zeros((4, 5)), BOX_X, BOX_Y),
    "B = 0, free": (LS, Q, np.zeros((4, 5)), D.FullSpace(5), D.FullSpace(4)),
    "f = 0, B = 0": (F.Zero(), Q, np.zeros((4, 5)), BOX_X, BOX_Y),
    "f = 0": (F.Zero(), Q, B, BOX_X, BOX_Y),
    "g = 0": (LS, F.Zero(), B, BOX_X, BOX_Y),
    "f = g = 0": (F.Zero(), F.Zero(), B, THIN, BOX_Y),
    "nothing at all": (F.Zero(), F.Zero(), np.zeros((4, 5)), BOX_X, BOX_Y),
    "one and one": (F.Quadratic(2.0) + F.Linear([1.0]), F.Quadratic(1), [[1.0]], D.Ball(1.0, shape=1), D.FullSpace(1)),
    "simplices of one point": (F.Zero(), F.Zero(), [[3.0]], D.Simplex(1), D.Simplex(1)),
    "y empty": (LS, F.Zero(), NONE_Y, BOX_X, D.Box(-1.0, 1.0, shape=0)),
    "y empty, own function": (plain_custom(), F.Zero(), NONE_Y, BOX_X, D.FullSpace(0)),
    "x empty": (F.Zero(), Q, NONE_X, D.Box(-1.0, 1.0, shape=0), BOX_Y),
    "both empty": (F.Zero(), F.Zero(), np.zeros((0, 0)), D.FullSpace(0), D.FullSpace(0)),
}  # fmt: skip


def value_of(f, g, matrix, X, Y):
    """The saddle value by many extragradient steps; only values, gradients and projections are used."""
    matrix, x, y, step = np.asarray(matrix), X.project(np.zeros(X.shape)), Y.project(np.zeros(Y.shape)), 0.03
    for _ in range(8000):
        before = x, y
        u = X.project(x - step * (f.gradient(x) + matrix.T @ y))
        v = Y.project(y - step * (g.gradient(y) - matrix @ x))
        x, y = (
            X.project(x - step * (f.gradient(u) + matrix.T @ v)),
            Y.project(y - step * (g.gradient(v) - matrix @ u)),
        )
        if all(np.abs(new - old).max(initial=0.0) <= 1e-12 for new, old in zip((x, y), before, strict=True)):
            break
    return f.value(x) + y @ (matrix @ x) - g.value(y)


@gathered("name", NEARLY_NOTHING)
def test_domains_and_parts_that_are_nearly_nothing(name):
    f, g, matrix, X, Y = NEARLY_NOTHING[name]
    problem = ss.SaddleProblem(f=f, g=g, B=matrix, X=X, Y=Y)
    value, results = value_of(f, g, matrix, X, Y), []
    for method in ("auto", "adaptive", "universal-mirror-prox"):
        # The last one needs 1 / tol^2 steps where nothing is curved.
        tol = 0.1 if method == "universal-mirror-prox" else 1e-2
        results.append(ss.solve(problem, tol=tol, method=method))
        assert results[-1].status is ss.Status.SOLVED, method
    if name not in ("nothing at all", "both empty", "f = 0, B = 0"):
        results.append(ss.run(problem, ss.plan(problem, order="fgB", loops=(20, 2, 4))))
    for result in results:
        assert result.lower <= value + 1e-4 and value - 1e-4 <= result.upper
        assert X.violation(result.x) <= 1e-12 and Y.violation(result.y) <= 1e-12
        assert result.x.shape == X.shape and result.y.shape == Y.shape


def test_a_plan_for_nothing_at_all_is_refused_by_name():
    problem = ss.SaddleProblem(f=F.Zero(), g=F.Zero(), B=np.zeros((4, 5)), X=BOX_X, Y=BOX_Y)
    with pytest.raises(ss.errors.InputError, match="total curvature per block"):
        ss.run(problem, ss.plan(problem, order="fgB", loops=(1, 1, 1)))


def oddly(array, kind, folder):
    """The same numbers, lying otherwise in memory."""
    if kind == "strided":
        wide = np.empty(tuple(2 * n for n in array.shape))
        wide[tuple(slice(None, None, 2) for _ in array.shape)] = array
        return wide[tuple(slice(None, None, 2) for _ in array.shape)]
    if kind == "backwards":
        turned = tuple(slice(None, None, -1) for _ in array.shape)
        return np.ascontiguousarray(array[turned])[turned]
    if kind == "Fortran":
        return np.asfortranarray(array)
    if kind == "read-only":
        kept = array.copy()
        kept.flags.writeable = False
        return kept
    if kind == "foreign bytes":
        return array.astype(">f8")
    path = folder / f"{abs(hash(array.tobytes()))}.npy"
    np.save(path, array)
    return np.load(path, mmap_mode="r")


@pytest.mark.parametrize("sparse", [False, True])
@gathered("kind", ["strided", "backwards", "Fortran", "read-only", "foreign bytes", "memory-mapped"])
def test_arrays_that_lie_oddly_in_memory_give_the_same_bits(kind, sparse, tmp_path):
    upper = RNG.uniform(0.5, 1.0, 5)

    def problem(seen):
        matrix = scipy.sparse.csr_array(seen(B).astype(float)) if sparse else seen(B)
        f, g = F.LeastSquares(seen(A), seen(b), ridge=0.1), F.Quadratic(0.5) + F.Linear(seen(c_y))
        return ss.SaddleProblem(f=f, g=g, B=matrix, X=D.Box(-seen(upper), seen(upper)), Y=BOX_Y)

    start = RNG.uniform(-0.4, 0.4, 5), RNG.uniform(-0.4, 0.4, 4)
    given = [oddly(array, kind, tmp_path) for array in (A, b, B, c_y, upper, *start)]
    before = [array.tobytes() for array in given]
    odd = problem(lambda array: next(o for o in given if np.array_equal(o, array)))
    plain = problem(lambda array: array)
    for method in ("adaptive", "mirror-prox"):
        found = ss.solve(odd, 1e-4, method=method, start=tuple(given[-2:]), max_steps=50)
        assert bits(found) == bits(ss.solve(plain, 1e-4, method=method, start=start, max_steps=50))
    plan = ss.plan(plain, order="gfB", loops=(4, 2, 3))
    assert bits(ss.run(odd, plan, start=tuple(given[-2:]))) == bits(ss.run(plain, plan, start=start))
    assert [array.tobytes() for array in given] == before


@gathered("names", ["no coupling", "no y", "no x"])
@gathered("method", ["pdhg", "adaptive", "auto"])
def test_named_methods_solve_what_has_no_coupling(names, method):
    m, n = {"no coupling": (4, 5), "no y": (0, 5), "no x": (4, 0)}[names]
    f, g = (ss.functions.Quadratic(1.0) + ss.functions.Linear(np.ones(k)) for k in (n, m))
    boxes = (ss.domains.Box(-2.0, 2.0, shape=k) for k in (n, m))
    problem = ss.SaddleProblem(f, g, np.zeros((m, n)), *boxes)
    result = ss.solve(problem, 1e-6, method=method)
    assert result.status is ss.Status.SOLVED
    np.testing.assert_allclose(result.x, -np.ones(n), atol=2e-3)


@pytest.mark.parametrize(("b", "c", "status"), [(1e150, 1.0, "SOLVED"), (1e75, 1e-75, "SOLVED"), (1e150, 1e-150, "")])
def test_the_choice_between_methods_survives_any_scale(b, c, status):
    """x in units of b and y in units of c: predictions take powers of such numbers."""
    rng = np.random.default_rng(1)
    d, p, q, B = rng.uniform(0.1, 3.0, 5), rng.standard_normal(5), rng.standard_normal(4), rng.standard_normal((4, 5))
    problem = ss.SaddleProblem(
        f=ss.functions.Quadratic(d / b / b) + ss.functions.Linear(p / b),
        g=ss.functions.Linear(q / c),
        B=B * (1.0 / b / c),
        X=ss.domains.Box(-b, b, shape=5),
        Y=ss.domains.Box(-c, c, shape=4),
    )
    result = ss.solve(problem, 1e-6, max_steps=50)
    assert result.status.name in ((status,) if status else ("NUMERICAL_LIMIT", "STEP_LIMIT"))
    # The value in units of one is the same.
    assert result.lower <= 0.476079 + 1e-5 and result.upper >= 0.476079 - 1e-5


APART = ((1e100, 1e-100), (1e-100, 1e100), (1e-120, 1e120), (1e150, 1e-150), (1e-150, 1e150), (1e-50, 1e150))


@pytest.mark.parametrize("kind", ["box", "free", "huber", "custom"])
@gathered(("tx", "ty"), APART, ids=str)
def test_blocks_of_far_apart_scales_blame_no_oracle(kind, tx, ty):
    """By 1e200 and more: no warning, true bounds, and where double precision ends the status says so."""

    def problem(tx, ty):
        X, Y = (D.FullSpace(5), D.FullSpace(4)) if kind == "free" else (D.Box(-tx, tx, 5), D.Box(-ty, ty, 4))
        f = F.LeastSquares(A / tx, b, ridge=0.1 / tx / tx)
        if kind == "custom":
            H = float(np.linalg.norm(A, 2) ** 2 / tx / tx)
            f = F.Custom(
                lambda x: A.T @ (A @ (x / tx)) / tx - 0.5 / tx,
                lambda x: float(0.5 * (A @ (x / tx)) @ (A @ (x / tx)) - 0.5 * (x / tx).sum()),
                ss.Holder(1.0, H),
            )
        g = (
            (1.0 / ty) * F.Huber(0.5 * ty)
            if kind == "huber"
            else F.Quadratic(1.0 / ty / ty) + F.Linear(np.full(4, 0.3 / ty))
        )
        return ss.SaddleProblem(f=f, g=g, B=B / tx / ty, X=X, Y=Y)

    plain, scaled = ss.solve(problem(1.0, 1.0), 1e-6, method="adaptive"), problem(tx, ty)
    results = [
        ss.solve(scaled, reduction=1e-3, method=name, max_steps=20) for name in ("adaptive", "auto", "mirror-prox")
    ]
    if tx > ty or kind != "free":
        results.append(ss.run(scaled, ss.plan(scaled, order="fgB", loops=(6, 2, 3))))
    for result in results:
        assert result.status not in (ss.Status.NON_FINITE, ss.Status.INCONSISTENT), result
        assert result.lower <= plain.upper and plain.lower <= result.upper, result
