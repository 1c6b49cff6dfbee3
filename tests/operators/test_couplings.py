"""Couplings: every way to give B is the same map, wrong ones are refused, and norms are bounds."""

import math

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import saddleslide as ss
from saddleslide.errors import InputError, MissingAdjointError
from saddleslide.operators import FiniteDifferences, adjoint_mismatch, as_operator, check_adjoint
from saddleslide.operators.spectrum import FAILURE_PROBABILITY, lanczos_norm_bound
from support import Counter, gathered, matrix_free, need, with_spectrum

ROWS, COLUMNS = 6, 4
A = np.random.default_rng(5).standard_normal((ROWS, COLUMNS))


@pytest.fixture
def rng():
    return np.random.default_rng(1)


class WithRmatvec:
    """The least an operator can be: a shape and two products."""

    shape = A.shape

    def matvec(self, x):
        return A @ x

    def rmatvec(self, y):
        return A.T @ y


FORMS = {
    "dense": lambda: A,
    "nested list": lambda: A.tolist(),
    "Fortran order": lambda: np.asfortranarray(A),
    "strided": lambda: np.repeat(A, 2, axis=1)[:, ::2],
    "csr_array": lambda: scipy.sparse.csr_array(A),
    "csc_matrix": lambda: scipy.sparse.csc_matrix(A),
    "coo_array": lambda: scipy.sparse.coo_array(A),
    "scipy operator of a matrix": lambda: aslinearoperator(A),
    "scipy operator of callables": lambda: LinearOperator(
        A.shape, matvec=lambda x: A @ x, rmatvec=lambda y: A.T @ y, dtype=float
    ),
    "scaled scipy operator": lambda: 2.0 * aslinearoperator(0.5 * A),
    "transposed scipy operator": lambda: aslinearoperator(np.array(A.T)).T,
    "pylops": lambda: need("pylops").MatrixMult(A),
    "pylops function operator": lambda: need("pylops").FunctionOperator(lambda x: A @ x, lambda y: A.T @ y, *A.shape),
    "scaled pylops": lambda: 2.0 * need("pylops").MatrixMult(0.5 * A),
    "duck-typed operator": WithRmatvec,
    "pair of callables": lambda: (lambda x: A @ x.ravel(), lambda y: A.T @ y.ravel()),
    "coupling": lambda: as_operator(A),
}


@gathered("form", FORMS.values(), ids=FORMS.keys())
def test_every_form_gives_the_same_products(form, rng):
    B = as_operator(form(), x_shape=(COLUMNS,), y_shape=(ROWS,))
    x, y = rng.standard_normal(COLUMNS), rng.standard_normal(ROWS)
    np.testing.assert_allclose(B.forward(x), A @ x, rtol=1e-14)
    np.testing.assert_allclose(B.adjoint(y), A.T @ y, rtol=1e-14)
    out_y, out_x = np.full(ROWS, np.nan), np.full(COLUMNS, np.nan)
    assert B.forward(x, out_y) is out_y
    assert B.adjoint(y, out_x) is out_x
    np.testing.assert_allclose(out_y, A @ x, rtol=1e-14)
    np.testing.assert_allclose(out_x, A.T @ y, rtol=1e-14)


MATRICES = {name: form for name, form in FORMS.items() if name not in ("pair of callables", "coupling")}


@gathered("form", MATRICES.values(), ids=MATRICES.keys())
def test_images_are_the_same_as_their_ravel(form, rng):
    B = as_operator(form(), x_shape=(2, 2), y_shape=(3, 2))
    x, y = rng.standard_normal((2, 2)), rng.standard_normal((3, 2))
    np.testing.assert_allclose(B.forward(x), (A @ x.ravel()).reshape(3, 2), rtol=1e-14)
    np.testing.assert_allclose(B.adjoint(y), (A.T @ y.ravel()).reshape(2, 2), rtol=1e-14)
    strided = np.empty((3, 4))[:, ::2]
    np.testing.assert_allclose(B.forward(x, strided), B.forward(x), rtol=1e-14)


def test_flat_shapes_may_be_numbers():
    B = as_operator((lambda x: A @ x, lambda y: A.T @ y), x_shape=COLUMNS, y_shape=ROWS)
    assert (B.x_shape, B.y_shape) == ((COLUMNS,), (ROWS,))


def test_finite_differences_agree_with_pylops_blocks(rng):
    pylops, shape = need("pylops"), (4, 5)
    horizontal = pylops.FirstDerivative(shape, axis=1, kind="forward")
    vertical = pylops.FirstDerivative(shape, axis=0, kind="forward")
    stacked, D = as_operator(pylops.VStack([horizontal, vertical]), shape, (2, *shape)), FiniteDifferences(shape)
    x, y = rng.standard_normal(shape), rng.standard_normal((2, *shape))
    np.testing.assert_allclose(stacked.forward(x), D.forward(x), atol=1e-14)
    np.testing.assert_allclose(stacked.adjoint(y), D.adjoint(y), atol=1e-14)


def test_the_matrix_is_copied(rng):
    for form in (np.array, scipy.sparse.csr_array):
        mine = form(A)
        B = as_operator(mine)
        mine *= 0.0
        x = rng.standard_normal(COLUMNS)
        np.testing.assert_allclose(B.forward(x), A @ x)


def test_user_callables_can_not_write_to_their_argument():
    def greedy(x):
        x[:] = 0.0
        return x

    with pytest.raises(ValueError, match="read-only"):
        as_operator((greedy, greedy), x_shape=(2,), y_shape=(2,)).forward(np.ones(2))


def test_products_never_alias_their_argument_or_a_buffer_of_the_user():
    x, buffer = np.ones(2), np.zeros(2)
    same = as_operator((lambda x: x, lambda y: buffer), x_shape=(2,), y_shape=(2,))
    assert not np.shares_memory(same.forward(x), x)
    assert not np.shares_memory(same.adjoint(x), buffer)


# --- adjoints ---------------------------------------------------------------------------------------------------


@gathered(
    "wrong",
    [0.999 * A.T, -A.T, np.roll(A.T, 1, axis=0), 0.0 * A.T, A.T + np.nan],
    ids=["scaled", "sign", "rolled", "zero", "nan"],
)
def test_adjoint_test_catches_wrong_adjoints(wrong):
    B = as_operator((lambda x: A @ x, lambda y: wrong @ y), x_shape=(COLUMNS,), y_shape=(ROWS,))
    with pytest.raises(InputError, match="not the transpose"):
        check_adjoint(B)


def test_adjoint_test_catches_a_wrong_boundary():
    D = FiniteDifferences((6, 7))

    def periodic(y):
        return np.roll(y[0], 1, axis=1) - y[0] + np.roll(y[1], 1, axis=0) - y[1]

    with pytest.raises(InputError, match="boundary"):
        check_adjoint(as_operator((D.forward, periodic), D.x_shape, D.y_shape))


def test_adjoint_test_accepts_true_adjoints_with_one_product_each_way():
    forward, adjoint = Counter(lambda x: A @ x), Counter(lambda y: A.T @ y)
    B = as_operator((forward, adjoint), x_shape=(COLUMNS,), y_shape=(ROWS,))
    check_adjoint(B)
    assert (forward.count, adjoint.count) == (1, 1)
    assert adjoint_mismatch(B) < 1e-14
    assert adjoint_mismatch(as_operator(np.zeros((2, 3)))) == 0.0
    assert adjoint_mismatch(FiniteDifferences((5, 3))) < 1e-14


class MatvecOnly(LinearOperator):
    def __init__(self):
        super().__init__(float, A.shape)

    def _matvec(self, x):
        return A @ x


class WithoutRmatvec:
    shape = A.shape

    def matvec(self, x):
        return A @ x


NO_ADJOINT = {
    "scipy operator of one callable": lambda: LinearOperator(A.shape, matvec=lambda x: A @ x, dtype=float),
    "scipy subclass": MatvecOnly,
    "multiple of such": lambda: 2.0 * MatvecOnly(),
    "sum with such": lambda: MatvecOnly() + aslinearoperator(A),
    "product with such": lambda: MatvecOnly() @ aslinearoperator(np.eye(COLUMNS)),
    "pylops function operator": lambda: need("pylops").FunctionOperator(lambda x: A @ x, *A.shape),
    "duck-typed operator": WithoutRmatvec,
    "one callable": lambda: lambda x: A @ x,
}


@gathered("form", NO_ADJOINT.values(), ids=NO_ADJOINT.keys())
def test_operators_without_an_adjoint_are_refused(form):
    with pytest.raises(MissingAdjointError, match=r"^B: .*expected a"):
        as_operator(form(), x_shape=(COLUMNS,), y_shape=(ROWS,))


COMPLEX = {
    "dense": lambda: 1j * A,
    "sparse": lambda: scipy.sparse.csr_array(1j * A),
    "scipy operator": lambda: aslinearoperator(1j * A),
    "pylops": lambda: need("pylops").MatrixMult(1j * A, dtype="complex128"),
}


@gathered("form", COMPLEX.values(), ids=COMPLEX.keys())
def test_complex_operators_are_refused_between_real_arrays(form):
    for shapes in ((COLUMNS, ROWS), (COLUMNS, None), ((COLUMNS, 2), ROWS)):
        with pytest.raises(InputError, match=r"^B: dtype is complex128; expected real.*dtype=complex"):
            as_operator(form(), *shapes)


def test_complex_products_are_refused():
    B = as_operator((lambda x: 1j * (A @ x), lambda y: A.T @ y), x_shape=(COLUMNS,), y_shape=(ROWS,))
    with pytest.raises(InputError, match=r"B x: received shape \(6,\), dtype complex128; expected real"):
        B.forward(np.ones(COLUMNS))


# --- finite differences -----------------------------------------------------------------------------------------

SHAPES = [(1, 1), (1, 7), (6, 1), (2, 2), (3, 5), (5, 4), (8, 8)]


def literal_differences(x):
    """The definition in the paper, one entry at a time."""
    rows, columns = x.shape
    horizontal, vertical = np.zeros(x.shape), np.zeros(x.shape)
    for i in range(rows):
        for j in range(columns):
            if j + 1 < columns:
                horizontal[i, j] = x[i, j + 1] - x[i, j]
            if i + 1 < rows:
                vertical[i, j] = x[i + 1, j] - x[i, j]
    return np.concatenate([horizontal.ravel(), vertical.ravel()])


def dense_differences(shape):
    n = math.prod(shape)
    return np.array([literal_differences(unit.reshape(shape)) for unit in np.eye(n)]).T


@gathered("shape", SHAPES)
def test_finite_differences_are_the_paper_s(shape, rng):
    D = FiniteDifferences(shape)
    x, y = rng.standard_normal(shape), rng.standard_normal((2, *shape))
    np.testing.assert_array_equal(D.forward(x).ravel(), literal_differences(x))
    np.testing.assert_allclose(D.adjoint(y).ravel(), dense_differences(shape).T @ y.ravel(), atol=1e-14)
    filled_y, filled_x = np.full((2, *shape), 9.0), np.full(shape, 9.0)
    np.testing.assert_array_equal(D.forward(x, filled_y), D.forward(x))
    np.testing.assert_array_equal(D.adjoint(y, filled_x), D.adjoint(y))


@gathered("shape", SHAPES)
def test_spectrum_of_finite_differences_is_known_in_closed_form(shape):
    D = FiniteDifferences(shape)
    true = np.linalg.svd(dense_differences(shape), compute_uv=False)
    rows, columns = D.eigenvalues(0), D.eigenvalues(1)
    closed = np.sort(np.add.outer(rows, columns).ravel())[::-1]
    np.testing.assert_allclose(closed, true**2, atol=1e-12)
    assert D.norm.upper >= true[0] - 1e-15
    assert D.norm.estimate == pytest.approx(true[0], abs=1e-13)
    assert D.smallest_singular_value().lower == 0.0
    positive = true[true > 1e-10]
    expected = positive[-1] if positive.size else 0.0
    found = D.smallest_singular_value(positive=True)
    assert found.estimate == pytest.approx(expected, rel=1e-12)
    assert found.lower <= expected


# --- norms ------------------------------------------------------------------------------------------------------


def spectra(rng, k):
    """One spectrum of each awkward kind: clustered at the top, one spike, low rank, log-spaced, flat, random."""
    top = 10.0 ** rng.uniform(-3.0, 3.0)
    yield top * (1.0 - 1e-3 * rng.random(k))
    yield np.concatenate([[top], top * rng.uniform(0.1, 0.99) * np.ones(k - 1)])
    yield np.concatenate([top * rng.uniform(0.5, 1.0, size=3), np.zeros(k - 3)])
    yield np.geomspace(top, 1e-8 * top, k)
    yield np.full(k, top)
    yield top * rng.random(k)


def norm_cases():
    """12 sizes times 6 kinds of spectra: 72 matrices with known norms, all sides above the dense limit."""
    rng = np.random.default_rng(11)
    for _ in range(12):
        rows, columns = rng.integers(65, 150, size=2)
        for values in spectra(rng, min(rows, columns)):
            yield with_spectrum(values, rows, columns, rng), float(values.max())


def test_norm_bounds_are_never_below_known_norms_and_never_far_above():
    count = 0
    for matrix, true in norm_cases():
        searched, factorised = matrix_free(matrix).norm, as_operator(matrix).norm
        assert searched.method.startswith("Lanczos")
        assert factorised.method == "singular values"
        # 1e-14 is how well the matrix itself has the norm that it was built to have.
        for bound in (searched, factorised):
            assert true * (1.0 - 1e-14) <= bound.upper <= 1.1 * true
            assert bound.estimate <= true * (1.0 + 1e-13)
            assert bound.upper == pytest.approx(bound.estimate * (1.0 + bound.margin), rel=1e-14)
        assert searched.failure_probability == FAILURE_PROBABILITY
        assert factorised.failure_probability == 0.0
        assert factorised.upper <= true * (1.0 + 1e-11)
        count += 1
    assert count == 72


def test_lanczos_bound_covers_a_top_that_few_steps_can_not_find():
    # With 12 steps the Ritz value is visibly low; only the stated margin makes the bound true.
    rng = np.random.default_rng(2)
    low, covered = 0, 0
    for _ in range(20):
        n = 400
        diagonal = np.linspace(0.0, 1.0, n) ** 2
        rng.shuffle(diagonal)
        pair = (lambda x, d=diagonal: d * x, lambda y, d=diagonal: d * y)
        bound = lanczos_norm_bound(as_operator(pair, x_shape=(n,), y_shape=(n,)), steps=20)
        low += bound.estimate < 1.0 - 1e-6
        covered += bound.upper >= 1.0
    assert (low, covered) == (20, 20)


def test_norm_bound_spends_the_products_it_says():
    n = 100
    forward, adjoint = Counter(lambda x: np.arange(n) * x), Counter(lambda y: np.arange(n) * y)
    B = as_operator((forward, adjoint), x_shape=(n,), y_shape=(n,))
    assert B.norm is B.norm
    assert forward.count == adjoint.count == int(B.norm.method.split()[1])


@gathered("shape", [(3, 5), (70, 5), (5, 70), (64, 64), (1, 1)])
def test_small_operators_are_bounded_exactly_from_their_columns_or_rows(shape, rng):
    matrix = rng.standard_normal(shape)
    bound = matrix_free(matrix).norm
    assert bound.estimate == pytest.approx(np.linalg.norm(matrix, 2), rel=1e-13)
    assert np.linalg.norm(matrix, 2) <= bound.upper <= bound.estimate * (1.0 + 1e-12)


@gathered("n", [3, 80])
def test_zero_operators_have_norm_zero(n):
    assert matrix_free(np.zeros((n, n))).norm.upper == 0.0


@gathered("n", [3, 80])
def test_operators_that_return_nan_have_no_finite_norm(n):
    B = as_operator((lambda x: x * np.nan, lambda y: y), x_shape=(n,), y_shape=(n,))
    assert B.norm.upper == math.inf


def test_a_declared_norm_costs_nothing_and_leaves_the_original_alone():
    forward, adjoint = Counter(lambda x: A @ x), Counter(lambda y: A.T @ y)
    original = as_operator((forward, adjoint), x_shape=(COLUMNS,), y_shape=(ROWS,))
    declared = as_operator(original, norm=7.0)
    assert (declared.norm.upper, declared.norm.estimate, declared.norm.method) == (7.0, 7.0, "declared")
    assert (forward.count, adjoint.count) == (0, 0)
    assert original.norm.upper == pytest.approx(np.linalg.norm(A, 2))


@gathered("shape", [(5, 5), (9, 4), (4, 9)])
def test_smallest_singular_values_bound_the_true_ones(shape, rng):
    full = rng.standard_normal(shape)
    true = np.linalg.svd(full, compute_uv=False)[-1] if shape[0] >= shape[1] else 0.0
    for B in (as_operator(full), matrix_free(full)):
        found = B.smallest_singular_value()
        assert found.lower <= true <= found.lower + 1e-12
        assert found.estimate == pytest.approx(true)
    deficient = with_spectrum([3.0, 2.0, 0.5], *shape, rng)
    assert as_operator(deficient).smallest_singular_value().lower == 0.0
    positive = as_operator(deficient).smallest_singular_value(positive=True)
    assert positive.lower <= 0.5 + 1e-15
    assert positive.lower == pytest.approx(0.5)
    assert positive.estimate == pytest.approx(0.5)


def test_unknown_smallest_singular_value_is_nan_not_zero():
    n = 1300
    B = as_operator((lambda x: x, lambda y: y), x_shape=(n,), y_shape=(n,))
    found = B.smallest_singular_value()
    assert found.lower == 0.0
    assert math.isnan(found.estimate)


def test_singular_values_are_computed_once(monkeypatch, rng):
    made = []
    monkeypatch.setattr(
        scipy.linalg, "svdvals", lambda matrix, whole=scipy.linalg.svdvals: made.append(1) or whole(matrix)
    )
    f = ss.functions.LeastSquares(rng.standard_normal((7, 5)), rng.standard_normal(7))
    moduli = {f.strong_convexity(ss.domains.FullSpace(5)) for _ in range(5)}
    assert len(moduli) == 1
    assert f.smoothness(ss.domains.FullSpace(5)).H >= moduli.pop() > 0.0
    assert len(made) == 1


def test_a_product_that_is_not_finite_leaves_the_smallest_singular_value_unknown():
    B = ss.operators.as_operator((lambda x: np.nan * x, lambda y: np.nan * y), x_shape=(3,), y_shape=(3,))
    found = B.smallest_singular_value()
    assert found.lower == 0.0
    assert math.isnan(found.estimate)


@gathered("kind", [scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.csr_matrix])
@gathered(("places", "starts"), [((0, -1, 1), (0, 2, 3)), ((0, 2, 1), (0, 2, 3)), ((0, 1, 1), (0, 4, 3))])
def test_sparse_matrices_with_entries_outside_are_refused(kind, places, starts):
    damaged = kind((np.ones(3), np.array(places), np.array(starts)), shape=(2, 2))
    with pytest.raises(InputError, match=r"^B: the cs[rc] matrix of shape \(2, 2\) is damaged \(.*coo_array"):
        as_operator(damaged)


@gathered("twice", [False, True])
@gathered("kind", [scipy.sparse.csr_array, scipy.sparse.csc_array])
def test_products_of_rows_out_of_order_stay_the_same_whatever_is_asked_between(twice, kind, rng):
    """SciPy sorts and sums such rows in place, where it needs that, for one in the sizes that certificates ask for."""
    places = np.concatenate([rng.choice(30, size=9, replace=twice) for _ in range(30)])
    given = kind((rng.standard_normal(270), places, np.arange(0, 271, 9)), shape=(30, 30))
    dense, x = given.copy().toarray(), rng.standard_normal(30)
    B = as_operator(given)

    def agree():
        np.testing.assert_allclose(B.forward(x), dense @ x, rtol=0.0, atol=1e-13)
        np.testing.assert_allclose(B.adjoint(x), dense.T @ x, rtol=0.0, atol=1e-13)
        np.testing.assert_allclose(B.there_and_back(x, x)[1], dense.T @ (dense @ x - x), rtol=0.0, atol=1e-12)

    agree()
    assert B.product_error > 0.0 and B.norm.upper > 0.0
    agree()
    given.sum_duplicates()
    agree()
    problem = ss.SaddleProblem(
        f=ss.functions.LeastSquares(given, x, ridge=0.1), g=ss.functions.Quadratic(1.0), B=given,
        X=ss.domains.FullSpace(30), Y=ss.domains.Box(-1.0, 1.0, shape=30),
    )  # fmt: skip
    assert ss.solve(problem, reduction=1e-6).success
