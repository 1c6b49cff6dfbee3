"""Factors of matrices at hand: moduli never above the truth, minima and proximal steps against other code."""

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp

import saddleslide as ss
from saddleslide.facts.costs import gradient_cost
from saddleslide.functions.factor import factor_of
from saddleslide.operators.factor import SymmetricMatrix, gram_matrix
from support import gathered

F, D = ss.functions, ss.domains


def exact_least(matrix):
    """The smallest eigenvalue in 60 digits."""
    with mpmath.workdps(60):
        return float(min(mpmath.eigsy(mpmath.matrix(matrix.tolist()), eigvals_only=True)))


@gathered("seed", range(4))
@pytest.mark.parametrize("condition", [1e1, 1e6, 1e11, 1e15, 1e18])
def test_no_modulus_exceeds_the_smallest_eigenvalue(condition, seed):
    rng, n = np.random.default_rng(seed), 6
    Q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    H = Q * np.geomspace(1.0, 1.0 / condition, n) @ Q.T
    H = 0.5 * (H + H.T)
    true, found = exact_least(H), SymmetricMatrix(H).modulus
    assert found <= max(true, 0.0)
    assert condition > 1e7 or found >= 0.6 * true


@gathered("seed", range(4))
def test_the_modulus_of_a_gram_matrix_is_below_that_of_exact_products(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((7, 5)) * np.geomspace(1.0, 10.0 ** -(2 * seed), 5)
    weights = rng.random(7) + 0.1
    with mpmath.workdps(60):
        M = mpmath.matrix(A.tolist())
        gram = M.T * mpmath.diag(weights.tolist()) * M
        true = float(min(mpmath.eigsy(gram, eigvals_only=True)))
    assert gram_matrix(A, weights).modulus <= true


def test_an_indefinite_matrix_has_no_modulus():
    assert SymmetricMatrix(np.diag([1.0, -1e-8])).modulus == 0.0
    assert SymmetricMatrix(np.ones((3, 3))).modulus == 0.0


@pytest.mark.parametrize("condition", [10.0, 1e8])
@pytest.mark.parametrize("shift", [0.0, 0.3])
@pytest.mark.parametrize("rows", [5, 12])
def test_inverse_forms_are_bounded_from_above(condition, shift, rows):
    rng = np.random.default_rng(1)
    A, ridge = rng.standard_normal((rows, 8)) * np.geomspace(1.0, condition**-0.5, 8), 1e-3
    for _ in range(5):
        r = rng.standard_normal(8)
        with mpmath.workdps(60):
            M = mpmath.matrix(A.tolist())
            H = M.T * M + (mpmath.mpf(ridge) + mpmath.mpf(shift)) * mpmath.eye(8)
            v = mpmath.matrix(r.tolist())
            true = (v.T * mpmath.lu_solve(H, v))[0]
            found = gram_matrix(A, 1.0, ridge).inverse_form(r, shift)
            assert true <= found <= true * (1 + mpmath.mpf("1e-6"))


def test_bands_are_factorised_far_beyond_dense_sizes_and_expanders_are_not():
    n = 20000
    rng = np.random.default_rng(0)
    A = sp.diags_array([np.full(n, 2.0), np.ones(n - 1)], offsets=[0, 1]).tocsr()[:, rng.permutation(n)]
    found = F.LeastSquares(A, np.zeros(n)).strong_convexity(D.FullSpace(n))
    # |A x| >= 2 |x| - |x|.
    assert 0.8 < found <= 1.0 + 1e-6
    wild = sp.random_array((8000, 4000), density=5e-3, random_state=rng, format="csr")
    assert gram_matrix(wild) is None
    assert F.LeastSquares(wild, np.zeros(8000)).strong_convexity(D.FullSpace(4000)) == 0.0


def test_a_minimum_by_a_factor_is_that_of_a_solver():
    rng, n = np.random.default_rng(3), 1300
    A, b, c = rng.standard_normal((1500, n)), rng.standard_normal(1500), rng.standard_normal(n)
    f = F.LeastSquares(A, b)
    found = F.tilted_minimum(f, c, D.FullSpace(n))
    x = np.linalg.solve(A.T @ A, A.T @ b - c)
    truth = f.value(x) + c @ x
    assert found.method == "factor" and found.gradients < 8
    assert abs(found.value - truth) <= 1e-9 * abs(truth) and found.lower <= truth + 1e-12 * abs(truth)
    assert found.error <= 1e-6 * abs(truth)


@pytest.mark.parametrize("rows", [4, 9])
def test_proximal_steps_solve_their_equation(rows):
    rng = np.random.default_rng(4)
    A, b, center = rng.standard_normal((rows, 6)), rng.standard_normal(rows), rng.standard_normal(6)
    weights = rng.random(rows)
    f = F.LeastSquares(A, b, weights=weights)
    for step in (0.1, 3.0):
        x = f.prox(center, step)
        assert np.allclose(f.gradient(x) + (x - center) / step, 0.0, atol=1e-10)
    q = F.Quadratic(A.T @ A)
    x = q.prox(center, 0.5)
    assert np.allclose(q.gradient(x) + (x - center) / 0.5, 0.0, atol=1e-10)


def test_weights_are_rows_times_their_roots():
    rng = np.random.default_rng(5)
    A, b, w, x = rng.standard_normal((6, 3)), rng.standard_normal(6), rng.random(6), rng.standard_normal(3)
    f, same = F.LeastSquares(A, b, 0.1, weights=w), F.LeastSquares(np.sqrt(w)[:, None] * A, np.sqrt(w) * b, 0.1)
    assert np.isclose(f.value(x), same.value(x)) and np.allclose(f.gradient(x), same.gradient(x))
    assert np.allclose(f.hessian_product(x), same.hessian_product(x))
    free = D.FullSpace(3)
    assert f.strong_convexity(free) <= same.strong_convexity(free) * (1 + 1e-9)
    assert f.smoothness(free).H >= same.smoothness(free).H * (1 - 1e-9)
    rows = np.array([4, 1])
    assert np.allclose(f.loss_slopes(rows, (A @ x)[rows]), (w * (A @ x - b))[rows])
    with pytest.raises(ss.errors.InputError, match="negative"):
        F.LeastSquares(A, b, weights=-w)


def test_without_a_matrix_least_squares_is_a_sum_over_entries_with_its_constant():
    rng = np.random.default_rng(6)
    b, w, c, x = (rng.standard_normal(5) for _ in range(4))
    w = np.abs(w) + 0.1
    f, same = F.LeastSquares(None, b, 0.2, weights=w), F.LeastSquares(np.eye(5), b, 0.2, weights=w)
    assert np.isclose(f.value(x), same.value(x)) and np.allclose(f.gradient(x), same.gradient(x))
    assert F.has_prox(f, D.FullSpace(5))
    for domain in (D.FullSpace(5), D.Box(-0.1, 0.1, shape=5), D.Ball(0.3, shape=5)):
        found, other = (F.tilted_minimum(one, c, domain) for one in (f, same))
        assert abs(found.value - other.value) <= found.error + other.error + 1e-12
    # Entries of x, some of them with a factor, are a sum over entries too; one that is met twice is not.
    chosen = sp.csr_array(([2.0, -0.5], ([0, 1], [3, 1])), shape=(2, 5))
    f, same = (F.LeastSquares(A, b[:2], 0.2, weights=w[:2]) for A in (chosen, chosen.toarray()))
    assert np.isclose(f.value(x), same.value(x)) and np.allclose(f.gradient(x), same.gradient(x))
    twice = sp.csr_array(([2.0, -0.5], ([0, 1], [3, 3])), shape=(2, 5))
    assert F.has_prox(f, D.FullSpace(5)) and not F.has_prox(F.LeastSquares(twice, b[:2], 0.2), D.FullSpace(5))
    # Of a minimum at the data themselves nothing is claimed beyond 0.
    assert F.tilted_minimum(F.LeastSquares(None, 1e8 * b, weights=w), np.zeros(5), D.FullSpace(5)).lower <= 0.0


def test_a_factor_is_made_where_nothing_else_bounds_minima_and_else_where_it_is_cheap():
    rng = np.random.default_rng(7)
    A, b, x = rng.standard_normal((1500, 1400)), np.zeros(1500), np.zeros(1400)
    free, box = D.FullSpace(1400), D.Box(-1.0, 1.0, shape=1400)
    f = F.LeastSquares(A, b)
    assert f.strong_convexity(box) == 0.0 and "hessian" not in vars(f)
    assert factor_of(F.LeastSquares(A, b, ridge=1.0), free, x) is None
    scaled = factor_of(2.0 * f + F.Linear(x), free, x)
    assert scaled is not None and scaled.scale == 2.0 and scaled.hessian is f.hessian


def test_a_matrix_costs_its_entries():
    assert gradient_cost(F.Quadratic(np.eye(300)), 300) == 2 * 300**2
    assert gradient_cost(F.Quadratic(sp.eye_array(300).tocsr()), 300) == 2 * 300


@pytest.mark.parametrize("kind", ["least squares", "quadratic"])
def test_a_problem_without_a_ridge_is_solved_on_the_whole_space(kind):
    rng, n = np.random.default_rng(8), 1300
    A, b = rng.standard_normal((1700, n)) / 40.0, rng.standard_normal(1700)
    f = F.LeastSquares(A, b) if kind == "least squares" else F.Quadratic(A.T @ A) + F.Linear(-(A.T @ b))
    B = sp.diags_array([-np.ones(n - 1), np.ones(n - 1)], offsets=[0, 1], shape=(n - 1, n)).tocsr()
    problem = ss.SaddleProblem(f, F.Zero(), B, D.FullSpace(n), D.Box(-0.1, 0.1, shape=n - 1))
    result = ss.solve(problem, rtol=1e-3)
    assert result.status.name == "SOLVED" and np.isinf(result.radius)
    least = f.value(x := np.linalg.solve(A.T @ A, A.T @ b - B.T @ result.y)) + result.y @ (B @ x)
    assert result.lower <= least * (1 + 1e-9 * np.sign(least)) and result.calls.f < 100
