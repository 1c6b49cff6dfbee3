"""Rounding inside f and g: bounds hold in exact arithmetic, however large the numbers that cancel."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse

import saddleslide as ss
from exact_minima import Bowl, fractions, product, times, transposed
from saddleslide.functions.minimum import tilted_minimum
from saddleslide.functions.remembered import Memory, Remembered
from saddleslide.functions.trust import errors_at

F, D = ss.functions, ss.domains


def offset_data(rng, rows, columns, size):
    """A, and b = A x0 + noise with |x0| about `size`: all but the noise cancels in A x - b."""
    A = rng.integers(-9, 10, (rows, columns)) / 1.0 if rng.random() < 0.5 else rng.standard_normal((rows, columns))
    x0 = size * rng.standard_normal(columns)
    return A, A @ x0 + rng.standard_normal(rows), x0


def held(found, truth, what):
    """A bracket contains the true value, and no gap is negative."""
    lower, upper = truth
    assert found.lower <= upper if math.isfinite(found.lower) else found.lower < 0, (what, found, float(upper))
    assert found.upper >= lower if math.isfinite(found.upper) else found.upper > 0, (what, found, float(lower))
    assert found.gap >= 0.0, (what, found)


def judged(problem, truth, start, tol, method="auto"):
    """A run and a certificate of its point; the status says no more than what is true."""
    result = ss.solve(problem, tol=tol, start=start, method=method, max_steps=60)
    held(result.certificate, truth, (method, result.status))
    held(ss.certify(problem, result.x, result.y, max_gradients=60), truth, "certify")
    if result.status is ss.Status.SOLVED:
        assert 0.0 <= result.gap <= tol
    return result


def minimise(f, domain):
    """A problem whose saddle value is min f."""
    return ss.SaddleProblem(f=f, g=F.Zero(), B=np.zeros((1, domain.size)), X=domain, Y=D.FullSpace(1))


def test_three_rows_far_from_zero():
    A = np.array([[1.0], [3.0], [7.0]])
    b = A[:, 0] * 1e10 / 3 + [1.0, -1.0, 0.5]
    whole = D.FullSpace(1)
    result = judged(minimise(F.LeastSquares(A, b), whole), Bowl.squares(A, b).minimum(whole), None, 1e-10)
    assert result.status is ss.Status.NUMERICAL_LIMIT and 1e-10 < result.gap < 1e-2


@pytest.mark.parametrize("method", ["accelerated-gradient", "universal-gradient", "condat-vu", "mirror-prox"])
def test_no_method_takes_rounding_of_a_true_function_for_a_contradiction(method):
    A = np.array([[1.0], [3.0], [7.0]])
    b = A[:, 0] * 1e10 / 3 + [1.0, -1.0, 0.5]
    for domain in (D.FullSpace(1), D.Box(-1e11, 1e11, shape=1)):
        for f, factor in ((F.LeastSquares(A, b), 1.0), (4.0 * F.LeastSquares(A, b), 4.0)):
            problem = ss.SaddleProblem(f=f, g=F.Zero(), B=np.zeros((1, 1)), X=domain, Y=D.Box(-1.0, 1.0, shape=1))
            result = ss.solve(problem, tol=1e-3, method=method, max_steps=200)
            held(result.certificate, (factor * Bowl.squares(A, b)).minimum(domain), method)
            assert result.status is not ss.Status.INCONSISTENT, result.certificate.reason


@pytest.mark.parametrize("size", [1e3, 1e6, 1e9])
def test_least_squares_of_offset_data_on_all_sets(size):
    rng = np.random.default_rng(int(size) % 97)
    for _ in range(3):
        rows, columns = int(rng.integers(2, 6)), int(rng.integers(1, 3))
        A, b, x0 = offset_data(rng, rows + 2, columns, size)
        ridge = float(rng.choice([0.0, 1e-3]))
        truth, f = Bowl.squares(A, b, ridge), F.LeastSquares(A, b, ridge)
        near = D.Box(x0 - rng.random(columns), x0 + 0.5 * rng.random(columns))
        ball = D.Ball(float(np.linalg.norm(x0)) * float(rng.choice([0.5, 2.0])), shape=columns)
        for domain in (D.FullSpace(columns), near, ball):
            tol = float(10.0 ** -rng.integers(2, 11))
            judged(minimise(f, domain), truth.minimum(domain), None, tol)


@pytest.mark.parametrize("method", ["auto", "adaptive", "mirror-prox"])
def test_sums_and_scalings_of_offset_data(method):
    rng = np.random.default_rng(7)
    for size in (1e3, 1e6):
        A, b, x0 = offset_data(rng, 5, 2, size)
        # The other data come from the same x0, so that all but the noise cancels in the sum too.
        C, c = rng.standard_normal((3, 2)), rng.standard_normal(2)
        d = C @ x0 + rng.standard_normal(3)
        f = 0.3 * F.LeastSquares(A, b) + 7.0 * (F.LeastSquares(C, d) + F.Linear(c))
        truth = 0.3 * Bowl.squares(A, b) + 7.0 * (Bowl.squares(C, d) + Bowl.form(np.zeros((2, 2)), c))
        for domain in (D.FullSpace(2), D.Box(x0 - 1.0, x0 + 1.0)):
            judged(minimise(f, domain), truth.minimum(domain), None, 1e-6, method)


def test_least_squares_on_both_sides_of_a_coupling():
    rng = np.random.default_rng(3)
    for size in (1e3, 1e6, 1e9):
        # A weak coupling leaves the noise alone to decide; a strong one pulls x away from x0.
        for strength in (1.0, 1e-6):
            A, b, _ = offset_data(rng, 5, 2, size)
            B, q = strength * rng.standard_normal((3, 2)), 2.0
            half = [[entry / 2 for entry in row] for row in times(transposed(fractions(B)), fractions(B))]
            truth = Bowl.squares(A, b) + Bowl(half, [Fraction(0)] * 2)
            whole, other = D.FullSpace(2), D.FullSpace(3)
            f, g = F.LeastSquares(A, b), F.Quadratic(q)
            lower, upper = truth.minimum(whole)
            # max over y of <y, Bx> - |y|^2 is |Bx|^2 / 4: half of |Bx|^2 / 2 with the weight 1/2.
            judged(ss.SaddleProblem(f=f, g=g, B=B, X=whole, Y=other), (lower, upper), None, 1e-8)
            mirrored = ss.SaddleProblem(f=g, g=f, B=-B.T, X=other, Y=whole)
            judged(mirrored, (-upper, -lower), None, 1e-8)


def test_quadratics_with_large_linear_terms_and_ill_conditioning():
    rng = np.random.default_rng(11)
    for digits in (2, 9, 13):
        for _ in range(2):
            n = int(rng.integers(2, 4))
            turn = np.linalg.qr(rng.standard_normal((n, n)))[0]
            Q = turn @ np.diag(np.logspace(0, -digits, n)) @ turn.T
            Q = (Q + Q.T) / 2
            c = 10.0 ** rng.integers(0, 7) * rng.standard_normal(n)
            truth = Bowl.form(Q, c)
            try:
                f = F.Quadratic(Q) + F.Linear(c)
            except ss.errors.InputError:
                continue
            for domain in (D.FullSpace(n), D.Ball(10.0, shape=n), D.Box(-1e3, 1e3, shape=n)):
                judged(minimise(f, domain), truth.minimum(domain), None, 1e-9)


def test_plans_of_the_theorems_and_their_models_hold_for_offset_data():
    rng = np.random.default_rng(5)
    for size in (1e3, 1e6):
        A, b, x0 = offset_data(rng, 5, 2, size)
        C, d, y0 = offset_data(rng, 4, 2, size)
        near, other = D.Box(x0 - 1.0, x0 + 1.0), D.Box(y0 - 1.0, y0 + 1.0)
        f, g = F.LeastSquares(A, b), F.LeastSquares(C, d)
        problem = ss.SaddleProblem(f=f, g=g, B=np.zeros((2, 2)), X=near, Y=other)
        low, high = (Bowl.squares(A, b).minimum(near)[0] - Bowl.squares(C, d).minimum(other)[0],) * 2
        result = ss.run(problem, ss.plan(problem, loops=(5, 5, 2), order="fgB"), start=(x0, y0))
        held(result.certificate, (low, high), result.status)


def test_the_size_of_the_minimiser_and_not_of_the_best_point_is_in_the_margin():
    # The terms of B^T y cancel, so that rounding is much of it. The point has x = 0, for which rounding in <x, B^T y>
    # would be none; but the minimiser of F(., y) has entries of the size 1.
    small, whole, box = F.Quadratic(1e-8), D.FullSpace(5), D.Box(-1.0, 1.0, shape=6)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        B = rng.standard_normal((6, 5))
        y = np.linalg.svd(B.T)[2][-1] + 1e-8 * rng.standard_normal(6)
        exact = product(transposed(fractions(B)), fractions(y))
        least = -sum(entry * entry for entry in exact) / (2 * Fraction(1e-8))
        below = ss.SaddleProblem(f=small, g=F.Zero(), B=B, X=whole, Y=box)
        above = ss.SaddleProblem(f=F.Zero(), g=small, B=-B.T, X=box, Y=whole)
        bounds = [
            Fraction(ss.certify(below, np.zeros(5), y).lower),
            -Fraction(ss.certify(above, y, np.zeros(5)).upper),
            Fraction(ss.solve(below, tol=1e-12, start=(np.zeros(5), y), max_steps=0).lower),
            -Fraction(ss.solve(above, tol=1e-12, start=(y, np.zeros(5)), max_steps=0).upper),
        ]
        assert max(bounds) <= least
        assert float((least - min(bounds)) / -least) < 1e-5


def test_a_constraint_met_to_the_bit_is_no_bound_over_the_whole_space():
    """Bx - b is known up to rounding, and any rest times a large y is as large as one likes."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        B, b = rng.standard_normal((2, 4)), rng.standard_normal(2)
        everywhere = ss.domains.FullSpace(2)
        problem = ss.SaddleProblem(
            f=ss.functions.Quadratic(1.0), g=ss.functions.Linear(b), B=B, X=ss.domains.FullSpace(4), Y=everywhere
        )
        x = np.linalg.lstsq(B, b, rcond=None)[0]
        assert ss.certify(problem, x, np.zeros(2)).upper == np.inf


@pytest.mark.parametrize("multiple", [lambda f: 2.0 * f, lambda f: f + f, lambda f: 3.0 * f + 0.5 * f])
def test_sums_and_multiples_reach_what_their_terms_reach(multiple):
    rng = np.random.default_rng(5)
    A = rng.standard_normal((8, 3))
    b = A @ (1e6 * rng.standard_normal(3)) + rng.standard_normal(8)
    box = D.Box(-1.0, 1.0, shape=1)
    problem = ss.SaddleProblem(
        f=multiple(F.LeastSquares(A, b)), g=F.Zero(), B=np.zeros((1, 3)), X=D.FullSpace(3), Y=box
    )
    assert ss.solve(problem, tol=1e-2, method="adaptive").status is ss.Status.SOLVED


@pytest.mark.parametrize("kind", ["own function", "own function beside a ridge", "own operator"])
def test_sums_with_own_code_that_cancel(kind):
    # The parts are of the size 1e12, their sum of the size of rounding: bounds must leave room for that of the parts.
    rng = np.random.default_rng(3)
    A, b = rng.standard_normal((6, 1)), 1e6 * rng.standard_normal(6)
    Af, bf = [Fraction(float(a)) for a in A[:, 0]], [Fraction(float(t)) for t in b]
    ridge, slope = (1.0 if "ridge" in kind else 0.0), float(np.linalg.norm(b))
    curved = sum(a * a for a in Af) + Fraction(ridge)
    pull = sum(a * t for a, t in zip(Af, bf, strict=True))
    offset = sum(t * t for t in bf) / 2
    if kind == "own operator":
        # With this slope the minimum is 0 but for rounding.
        slope = float(pull) - math.sqrt(float(2 * offset * curved))
        exact = offset - (pull - Fraction(slope)) ** 2 / (2 * curved)
        products = (lambda x: A @ x, lambda q: A.T @ q)
        f = ss.functions.LeastSquares(products, b, x_shape=(1,)) + ss.functions.Linear([slope])
    else:
        least = float(offset - pull**2 / (2 * curved))
        exact = offset - pull**2 / (2 * curved) - Fraction(least)
        f = ss.functions.LeastSquares(A, b, ridge=ridge) + ss.functions.Custom(np.zeros_like, lambda x: -least)
        slope = 0.0
    X, Y = ss.domains.Ball(1e8, shape=1), ss.domains.FullSpace(1)
    problem = ss.SaddleProblem(f=f, g=ss.functions.Quadratic(1.0), B=[[0.0]], X=X, Y=Y)
    middle = np.array([float((pull - Fraction(slope)) / curved)])
    for step in range(-8, 9):
        found = ss.certify(problem, middle * (1.0 + step * 2.0**-51), [0.0])
        assert found.lower <= exact <= found.upper
    result = ss.solve(problem, 1e-7, max_steps=100)
    assert not result.success and result.status is not ss.Status.INCONSISTENT
    assert result.lower <= exact <= result.upper


def test_sums_of_losses_work_in_every_metric():
    rng = np.random.default_rng(1)
    f = 2.0 * F.LeastSquares(rng.standard_normal((20, 16)), rng.standard_normal(20)) + F.LeastSquares(
        rng.standard_normal((5, 16)), rng.standard_normal(5), ridge=0.1
    )
    for metric in ("blocks", "spectral"):
        problem = ss.SaddleProblem(
            f=f, g=F.Zero(), B=rng.standard_normal((3, 16)), X=D.FullSpace(16), Y=D.Box(-1.0, 1.0, shape=3)
        )
        assert ss.solve(problem, 1e-6, metric=metric).success


def drifting(drift):
    """1 + |x|^2 / 2 over a box, as own code whose value is less by `drift` at every call."""
    calls = []

    def value(x):
        calls.append(None)
        return 1.0 + 0.5 * float(x @ x) - drift * len(calls)

    f = F.Custom(lambda x: x, value, smoothness=ss.Holder(1.0, 1.0), strong_convexity=1.0)
    X, Y = D.Box(-1.0, 1.0, shape=2), D.Box(-1.0, 1.0, shape=1)
    return ss.SaddleProblem(f=f, g=F.Zero(), B=np.zeros((1, 2)), X=X, Y=Y)


def test_a_lower_bound_above_the_upper_one_is_no_gap():
    found = ss.certify(drifting(1e-3), np.zeros(2), np.zeros(1))
    assert (found.lower, found.upper, found.kind) == (-np.inf, np.inf, "none")
    assert "the lower bound 0.999 lies above the upper one 0.998" in found.reason
    # As little as this may be rounding of the caller's code: each bound is trusted no further than that.
    found = ss.certify(drifting(1e-8), np.zeros(2), np.zeros(1))
    assert 1e-8 <= found.gap <= 1e-7
    result = ss.solve(drifting(1e-8), 1e-13, method="accelerated-gradient", start=(np.full(2, 0.5), np.zeros(1)))
    assert result.status is ss.Status.NUMERICAL_LIMIT and not result.success
    assert 1e-8 <= result.gap <= 1e-7


def test_a_value_that_was_heard_may_be_what_is_left_of_large_terms():
    bowl = F.Custom(lambda x: 2.0 * x - 2000.0, lambda x: float(x[0] ** 2 - 2000.0 * x[0] + 1e6), ss.Holder(1.0, 2.0))
    x, heard = np.array([1000.0 + 1.0 / 3.0]), Memory()
    heard.keep(x, *bowl.value_and_gradient(x))
    known = Remembered(bowl, heard, D.FullSpace(1))
    off = abs(Fraction(known.value(x)) - (Fraction(float(x[0])) - 1000) ** 2)
    assert 100 * errors_at(bowl, x, known.value(x)).value < off < errors_at(known, x, known.value(x)).value


def test_no_pass_over_a_matrix_where_rounding_decides_nothing():
    """The columns of A are looked at where a value is left of large terms, and there only."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 30))
    plain, cancelling = F.LeastSquares(A, rng.standard_normal(40)), F.LeastSquares(A, A @ np.full(30, 1e7))
    for f, point, looked in ((plain, np.ones(30), False), (cancelling, np.full(30, 1e7), True)):
        value, gradient = f.value_and_gradient(point)
        errors_at(f, point, value, float(np.linalg.norm(gradient)))
        assert ("_column_sizes" in f.__dict__) == looked


def test_no_norm_is_found_for_a_minimum_at_the_start():
    """120 products with g's matrix, for a step that is never made."""
    n = 2000
    q = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n), format="csr")
    g = F.Quadratic(q) + F.Quadratic(1.0)
    box = D.Box(-1.0, 1.0, shape=n)
    operator = g.operators[0][0]
    assert tilted_minimum(g, np.zeros(n), box).error <= 1e-12 and "norm" not in operator.__dict__
    # Where a step is made, it is asked for.
    assert tilted_minimum(g, np.ones(n), box, accuracy=1e-6).error <= 1e-5 and "norm" in operator.__dict__
