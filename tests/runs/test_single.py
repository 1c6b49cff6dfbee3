"""Single precision in, single precision out: what is certified is the point that is returned, rounding included."""

import numpy as np
import pytest
import scipy.sparse

import saddleslide as ss
from saddleslide.arrays.kinds import precision_of
from saddleslide.runs.answer import single

F, D = ss.functions, ss.domains
RNG = np.random.default_rng(4)
A, b, B, c = (RNG.standard_normal(shape).astype(np.float32) for shape in ((9, 6), 9, (5, 6), 5))
SETS = {
    "box": (lambda n: D.Box(-0.1, 0.3, shape=n), lambda v: np.clip(v, -0.1, 0.3)),
    "ball": (lambda n: D.Ball(0.7, shape=n), lambda v: v * min(1.0, 0.7 / max(np.linalg.norm(v), 1e-300))),
    "simplex": (D.Simplex, None),
    "full": (D.FullSpace, lambda v: v),
}


def simplex_of(v):
    """By bisection, unlike the package."""
    low, high = v.min() - 1.0, v.max()
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.maximum(v - middle, 0.0).sum() > 1.0 else (low, middle)
    return np.maximum(v - high, 0.0) / np.maximum(v - high, 0.0).sum()


def problem_on(name, matrix=B):
    domain = SETS[name][0]
    f = F.LeastSquares(A, b, ridge=0.1)
    return ss.SaddleProblem(f=f, g=F.Quadratic(0.5) + F.Linear(c), B=matrix, X=domain(6), Y=domain(5))


def true_gap(name, x, y):
    """Both inner problems in double precision by many projected gradients: a lower bound of the gap, very near it."""
    project = SETS[name][1] or simplex_of
    A_, b_, B_, c_, x, y = (np.asarray(v, dtype=np.float64) for v in (A, b, B, c, x, y))
    u, v = project(np.zeros(6)), project(np.zeros(5))
    step = 1.0 / (np.linalg.norm(A_, 2) ** 2 + 0.1)
    for _ in range(500):
        u = project(u - step * (A_.T @ (A_ @ u - b_) + 0.1 * u + B_.T @ y))
        v = project(v - (0.5 * v + c_ - B_ @ x))

    def F_(x, y):
        f = 0.5 * np.sum((A_ @ x - b_) ** 2) + 0.05 * x @ x
        return f + y @ (B_ @ x) - 0.25 * y @ y - c_ @ y

    return F_(x, v) - F_(u, y), F_(x, v), F_(u, y)


@pytest.mark.parametrize("method", ["auto", "adaptive", "mirror-prox"])
@pytest.mark.parametrize("name", SETS)
def test_the_certified_point_is_the_rounded_one(name, method):
    problem = problem_on(name)
    # Mirror-prox takes steps in proportion to the accuracy.
    tol = 5e-3 if method == "mirror-prox" else 1e-3
    result = ss.solve(problem, tol=tol, method=method)
    assert result.x.dtype == result.y.dtype == np.float32 and result.status is ss.Status.SOLVED
    assert result.gap <= tol
    # A simplex has next to no feasible points in single precision: there the projection is what is certified.
    x, y = (simplex_of(v.astype(float)) if name == "simplex" else v.astype(float) for v in (result.x, result.y))
    assert np.abs(x - result.x).max() <= 1e-7 and np.abs(y - result.y).max() <= 1e-7
    gap, upper, lower = true_gap(name, x, y)
    assert gap <= result.gap + 1e-12 and upper <= result.upper + 1e-12 and lower >= result.lower - 1e-12
    assert problem.X.violation(x) <= 1e-15 and problem.Y.violation(y) <= 1e-15


@pytest.mark.parametrize("name", ["box", "ball"])
def test_bounds_belong_to_the_rounded_point_where_its_last_bits_matter(name):
    """Near the solution the gap in double precision is far below what rounding to single precision does."""
    problem = problem_on(name)
    fine = ss.solve(problem_on(name, B.astype(np.float64)), tol=1e-12)
    result = ss.solve(problem, tol=1e-12)
    assert fine.status is ss.Status.SOLVED and fine.x.dtype == np.float64
    assert result.status is ss.Status.NUMERICAL_LIMIT and not result.success
    gap, upper, lower = true_gap(name, result.x, result.y)
    assert 1e-12 < gap <= result.gap <= 1e-4
    assert result.lower <= lower + 1e-12 and upper - 1e-12 <= result.upper
    assert result.lower <= fine.upper and result.upper >= fine.lower


def test_runs_of_plans_and_resumed_runs_are_rounded_too(tmp_path):
    problem = problem_on("box")
    made = ss.run(problem, ss.plan(problem, order="fgB", loops=(20, 1, 4)))
    assert made.x.dtype == np.float32 and true_gap("box", made.x, made.y)[0] <= made.gap
    whole = ss.solve(problem, 1e-4, method="adaptive")
    ss.solve(problem, 1e-4, method="adaptive", max_steps=2, checkpoint=tmp_path / "run.npz")
    resumed = ss.resume(tmp_path / "run.npz", problem, max_steps=1000)
    assert resumed.x.dtype == np.float32 and resumed.x.tobytes() == whole.x.tobytes() and resumed.gap == whole.gap


def test_what_the_judging_of_the_rounded_point_calls_is_counted():
    seen = {"f": 0, "B": 0}

    def counted(name, product):
        def call(v):
            seen[name] += 1
            return product(v)

        return call

    pair = counted("B", lambda x: B @ x), counted("B", lambda y: B.T @ y)
    coupling = ss.operators.as_operator(pair, (6,), (5,), norm=float(np.linalg.norm(B, 2)) * 1.01)
    given = problem_on("box", coupling)
    assert given.precision == "float32"
    result = ss.solve(given, tol=1e-3, method="adaptive")
    assert seen["B"] == result.calls.B and result.x.dtype == np.float32


def test_precision_follows_the_arrays_as_in_numpy():
    one, two = np.ones(2, np.float32), np.ones(2)
    assert precision_of(one, 1.0, [1.0, 2.0], np.arange(2), np.float64(3.0)) == "float32"
    assert precision_of(one, two) == precision_of([one, two]) == precision_of({"a": two}) == "float64"
    assert precision_of(scipy.sparse.csr_array(np.eye(2, dtype=np.float32))) == "float32"
    box = D.Box(-1.0, 1.0, shape=2)

    def precision(**parts):
        given = {"f": F.Zero(), "g": F.Zero(), "B": np.eye(2, dtype=np.float32), "X": box, "Y": box, **parts}
        return ss.SaddleProblem(**given).precision

    assert precision() == precision(f=F.Linear(one)) == precision(f=2.0 * (F.Linear(one) + F.Power(1.0))) == "float32"
    assert precision(f=F.Linear(two)) == precision(X=D.Box(-two, two)) == precision(B=np.eye(2)) == "float64"
    assert precision(f=F.Linear([1.0, 2.0])) == "float32" and precision(arrays=two) == "float64"
    assert precision(B=((1.0, 0.0), (0.0, 1.0))) == "float64"


def test_rounding_stays_inside_where_it_can():
    for n in (1, 3, 50):
        for scale in (1e-30, 1.0, 1e30):
            point = scale * RNG.standard_normal(n)
            for domain in (D.Box(-0.1 * scale, 0.1 * scale, shape=n), D.Ball(0.3 * scale, shape=n)):
                rounded = single(domain.project(point), domain)
                assert rounded.dtype == np.float32 and domain.violation(rounded.astype(np.float64)) == 0.0
                np.testing.assert_allclose(rounded, domain.project(point), rtol=3e-7)
    assert np.isinf(single(np.array([1e60]), D.FullSpace(1))).all()


def test_numbers_beyond_single_precision_stay_double():
    box = D.Box(-1e60, 1e60, shape=2)
    problem = ss.SaddleProblem(f=F.Linear(np.ones(2, np.float32)), g=F.Zero(), B=np.zeros((2, 2)), X=box, Y=box)
    assert problem.precision == "float64"
    problem = ss.SaddleProblem(
        f=F.Linear(np.ones(2, np.float32)), g=F.Zero(), B=np.zeros((2, 2), np.float32), X=box, Y=box
    )
    result = ss.solve(problem, reduction=1e-6)
    assert result.x.dtype == np.float64 and result.status is ss.Status.SOLVED
    assert result.x[0] == pytest.approx(-1e60, rel=1e-5)
