"""Metrics: P and S are what they claim, the choice gives its reasons, and each metric pays where it should."""

import json
import math

import numpy as np
import pytest
import scipy.fft
import scipy.linalg
import scipy.optimize
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import saddleslide as ss
from saddleslide.errors import InputError
from saddleslide.functions.constants import hessian_diagonal
from saddleslide.kernels.switch import jit
from saddleslide.metrics import Blocks, Diagonal, Operator, Spectral, fit_spectral, fits, from_dict
from saddleslide.metrics.fits import shell_average
from saddleslide.operators import FiniteDifferences, as_operator
from support import Counter, gathered

F, D = ss.functions, ss.domains


def columns_of(linear, shape):
    """The matrix of a linear map on arrays of a shape."""
    unit = np.eye(math.prod(shape)).reshape(-1, *shape)
    return np.stack([np.ravel(linear(e)) for e in unit], axis=1)


def even(values):
    """The symbol of a real symmetric periodic operator with these values."""
    reflected = values
    for axis in range(values.ndim):
        reflected = np.roll(np.flip(reflected, axis), 1, axis)
    return 0.5 * (values + reflected)


def periodic_operator(symbol):
    return lambda x: scipy.fft.ifftn(symbol * scipy.fft.fftn(x)).real


SHAPE = (3, 4)
RNG = np.random.default_rng(5)
POSITIVE = RNG.uniform(0.5, 9.0, SHAPE)
DENSE = (lambda M: M @ M.T + np.eye(12))(RNG.standard_normal((12, 12)))


def operator(matrix, shape, **changes):
    parts = {
        "apply": lambda x: (matrix @ x.ravel()).reshape(shape),
        "solve": lambda x: np.linalg.solve(matrix, x.ravel()).reshape(shape),
        "largest": float(np.linalg.norm(matrix, 2)),
    }
    return Operator(**{**parts, **changes})


# What P is, by an independent definition.
EXPECTED = {
    "blocks": (Blocks(2.5, 0.0), 2.5 * np.eye(12)),
    "diagonal": (Diagonal(POSITIVE), np.diag(POSITIVE.ravel())),
    "dct": (
        Spectral(POSITIVE),
        columns_of(lambda e: scipy.fft.idctn(POSITIVE * scipy.fft.dctn(e, norm="ortho"), norm="ortho"), SHAPE),
    ),
    "fft": (Spectral(even(POSITIVE), basis="fft"), columns_of(periodic_operator(even(POSITIVE)), SHAPE)),
    "operator": (operator(DENSE, SHAPE), DENSE),
}


@pytest.mark.parametrize("coupling", [FiniteDifferences(SHAPE), None], ids=["differences", "matrix"])
@gathered("name", EXPECTED)
def test_every_metric_is_its_matrix_with_a_bound_on_the_coupling(name, coupling):
    metric, P = EXPECTED[name]
    B = coupling or ss.operators.Matrix(np.random.default_rng(1).standard_normal((5, 12)), SHAPE, (5,))
    metric = metric.with_coupling(B)

    def seen(linear):
        return columns_of(lambda e: metric.from_basis(linear(metric.to_basis(e))), SHAPE)

    S = seen(metric.apply_coupling)
    BB = columns_of(lambda e: B.adjoint(B.forward(e)), SHAPE)
    np.testing.assert_allclose(seen(metric.apply), P, atol=1e-12 * np.abs(P).max())
    assert np.linalg.eigvalsh(S - BB).min() >= -1e-12 * np.abs(BB).max()
    np.testing.assert_allclose(seen(lambda X: metric.solve(X, 0.7, 1.3)) @ (0.7 * P + 1.3 * S), np.eye(12), atol=1e-9)
    basis = columns_of(metric.to_basis, SHAPE)
    np.testing.assert_allclose(basis.T @ basis, np.eye(12), atol=1e-13)
    x = np.random.default_rng(2).standard_normal(SHAPE)
    assert metric.norm_squared(metric.to_basis(x)) == pytest.approx(x.ravel() @ P @ x.ravel(), rel=1e-12)
    assert metric.product_norm_squared(metric.to_basis(x)) >= float(np.sum(B.forward(x) ** 2)) * (1 - 1e-12)
    assert metric.largest >= np.linalg.eigvalsh(P).max() * (1.0 - 1e-12)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 7), st.integers(1, 7))
def test_the_fourier_symbol_of_differences_lies_above_them_and_the_cosine_one_is_exact(rows, columns):
    B = FiniteDifferences((rows, columns))
    gram = columns_of(lambda e: B.adjoint(B.forward(e)), B.x_shape)
    symbol = B.gram_symbol("fft")
    above = columns_of(periodic_operator(symbol), B.x_shape)
    np.testing.assert_allclose(above, above.T, atol=1e-12)
    assert np.linalg.eigvalsh(above - gram).min() >= -1e-12
    # Not a lazy bound: a constant costs nothing, and it never exceeds the norm of periodic differences.
    assert symbol[0, 0] == 0.0 and symbol.max() <= 8.0
    exact = columns_of(
        lambda e: scipy.fft.idctn(B.gram_symbol("dct") * scipy.fft.dctn(e, norm="ortho"), norm="ortho"), B.x_shape
    )
    np.testing.assert_allclose(exact, gram, atol=1e-12)


@gathered("shape", [(16, 16), (15, 12), (33,)])
@gathered("basis", ["dct", "fft"])
def test_a_radial_hessian_is_found_from_a_few_probes(shape, basis):
    """The Hessian is diagonal in the basis, so probes carry no noise, and only smoothing over shells is left."""
    axes = np.meshgrid(*(np.arange(n) / n for n in shape), indexing="ij")
    radius = np.sqrt(sum((np.minimum(a, 1 - a) * 2 if basis == "fft" else a) ** 2 for a in axes))
    symbol = 0.1 + np.exp(-3.0 * radius)
    forward, back = (
        (lambda x: scipy.fft.dctn(x, norm="ortho"), lambda X: scipy.fft.idctn(X, norm="ortho"))
        if basis == "dct"
        else (scipy.fft.fftn, lambda X: scipy.fft.ifftn(X).real)
    )
    coupling = as_operator((lambda x: 0.0 * x, lambda y: 0.0 * y), x_shape=shape, y_shape=shape, norm=1.0)
    calls = Counter(lambda x: back(symbol * forward(x)))

    def stacked(stack):
        return np.stack([calls(x) for x in stack])

    metric = fit_spectral(stacked, shape, coupling, 0.05, np.random.default_rng(0), probes=3, basis=basis)
    assert calls.count == 3
    np.testing.assert_allclose(metric.symbol, symbol, rtol=0.06)
    assert metric.basis == basis


@pytest.mark.parametrize("compiled", [True, False])
def test_a_vector_takes_the_grid_that_the_coupling_knows(compiled):
    picture = ss.gallery.tomography("standard", n=16, bounded=False)
    A, b, ridge = picture.f.A.matrix, picture.f.b, picture.f.ridge
    flat = ss.SaddleProblem(
        f=F.LeastSquares(A, b, ridge=ridge), g=picture.g, B=picture.B, X=D.FullSpace(256), Y=picture.Y
    )
    with jit(compiled):
        one, other = (ss.solve(problem, reduction=1e-6) for problem in (picture, flat))
    assert one.plans[0].metric == other.plans[0].metric == "spectral" and one.success
    assert one.calls == other.calls and other.x.shape == (256,)
    np.testing.assert_allclose(other.x.reshape(16, 16), one.x, atol=1e-9)


def test_slices_that_know_nothing_of_each_other_are_seen():
    """The Hessian has one round symbol in every slice: shells along all axes would mix what belongs apart."""
    shape = (6, 12, 12)
    radius = np.hypot(*np.meshgrid(np.arange(12), np.arange(12), indexing="ij")) / 12
    symbol = np.broadcast_to(0.01 + np.exp(-6.0 * radius), shape)

    def stacked(stack):
        return np.stack([scipy.fft.idctn(symbol * scipy.fft.dctn(x, norm="ortho"), norm="ortho") for x in stack])

    metric = fit_spectral(stacked, shape, FiniteDifferences(shape), 0.005, np.random.default_rng(0))
    assert np.array_equal(metric.symbol, np.broadcast_to(metric.symbol[:1], shape))
    np.testing.assert_allclose(metric.symbol, symbol, rtol=0.2)


def test_evidence_finds_what_masks_and_unequal_rows_do():
    """A mask is diagonal in the pixels; a smooth weight on both sides of a round symbol is one of the entries."""
    rng, shape, B = np.random.default_rng(3), (16, 16), FiniteDifferences((16, 16))
    known = (rng.random(shape) > 0.5) + 1e-3
    mask = fit_spectral(lambda stack: known * stack, shape, B, 1e-3, np.random.default_rng(0))
    assert mask.basis == "entries"
    np.testing.assert_allclose(mask.symbol, np.maximum(known, 2e-3), rtol=1e-9)
    # Few data of a small picture look like no mask, whatever chance says of two probes.
    for seed in (91, 112, 143, 147, 157, 186):
        A = np.random.default_rng(seed).standard_normal((6, 12))
        few_data = A.T @ A + 1e-3 * np.eye(12)

        def product(stack, H=few_data):
            return (stack.reshape(-1, 12) @ H).reshape(-1, 4, 3)

        few = fit_spectral(product, (4, 3), FiniteDifferences((4, 3)), 1e-3, np.random.default_rng(0))
        assert few.basis == "dct"
    radius = np.hypot(*np.meshgrid(np.arange(16), np.arange(16), indexing="ij")) / 16
    symbol = 0.02 + np.exp(-4.0 * radius)
    K = np.exp(-2.0 * np.linspace(0.0, 1.0, 16))[:, None] * np.ones(shape)

    def weighted(stack):
        return np.stack(
            [K * scipy.fft.idctn(symbol * scipy.fft.dctn(K * x, norm="ortho"), norm="ortho") for x in stack]
        )

    dense = weighted(np.eye(256).reshape(256, *shape)).reshape(256, 256)
    found = fit_spectral(weighted, shape, B, 1e-4, np.random.default_rng(0), diagonal=lambda: dense.diagonal())
    assert found.basis == "dct" and not isinstance(found.scale, float)
    plain = fit_spectral(weighted, shape, B, 1e-4, np.random.default_rng(0))
    spreads = []
    for metric in (found, plain):
        P = np.stack([metric.product(e.reshape(shape)).ravel() for e in np.eye(256)])
        values = scipy.linalg.eigh(dense, P, eigvals_only=True)
        spreads.append(values[-1] / values[0])
    assert spreads[0] < 0.5 * spreads[1]


@pytest.mark.parametrize("basis", ["dct", "fft", "entries"])
def test_weights_of_entries_keep_inner_products_inverses_and_the_bound_on_the_coupling(basis):
    rng, shape = np.random.default_rng(1), (5, 6)
    radius = np.hypot(*np.meshgrid(*(np.minimum(np.arange(n), n - np.arange(n)) for n in shape), indexing="ij"))
    B, metric = FiniteDifferences(shape), Spectral(0.5 + radius, basis=basis, scale=rng.uniform(0.5, 2.0, shape))
    metric = metric.with_coupling(B)
    x, g = rng.standard_normal(shape), rng.standard_normal(shape)
    X = metric.to_basis(x)
    assert np.vdot(metric.to_dual(g), X) == pytest.approx(np.vdot(g, x))
    np.testing.assert_allclose(metric.from_basis(X), x)
    np.testing.assert_allclose(metric.inverse(metric.product(x)), x)
    assert metric.norm_squared(X) == pytest.approx(np.vdot(x, metric.product(x)))
    assert np.vdot(x, x) <= np.vdot(X, metric.spread * X)
    columns = np.stack([B.forward(metric.from_basis(e.reshape(shape))).ravel() for e in np.eye(30)])
    room = np.diag(np.broadcast_to(metric.coupling_symbol, shape).ravel()) - columns @ columns.T
    assert np.linalg.eigvalsh(room)[0] >= -1e-12
    P = np.stack([metric.product(e.reshape(shape)).ravel() for e in np.eye(30)])
    assert np.linalg.eigvalsh(P)[-1] <= metric.largest * (1.0 + 1e-12)


def test_a_metric_of_functions_beside_a_multiple_of_the_square_solves_the_same_problem():
    """The identity is no multiple of such a P: what is simple in x must not be bent into it."""
    rng = np.random.default_rng(0)
    A, b, B = rng.standard_normal((20, 12)), rng.standard_normal(20), rng.standard_normal((8, 12))
    H = A.T @ A + 0.1 * np.eye(12)
    P = Operator(lambda x: H @ x, lambda t: np.linalg.solve(H, t), largest=float(np.linalg.eigvalsh(H)[-1]))
    f, Y = F.LeastSquares(A, b, ridge=0.1) + F.Quadratic(5.0), D.Box(-0.3, 0.3, shape=8)
    problem = ss.SaddleProblem(f=f, g=F.Quadratic(1.0), B=B, X=D.FullSpace(12), Y=Y)
    one, other = (ss.solve(problem, reduction=1e-8, metric=metric, method="adaptive") for metric in (P, "blocks"))
    assert one.success and one.upper == pytest.approx(other.upper, rel=1e-6)
    assert one.calls.f < other.calls.f


@pytest.mark.parametrize("X", [D.FullSpace((24, 24)), D.NonNegative((24, 24))])
@pytest.mark.parametrize("simple", [F.Zero(), F.Power(0.0, 0.01)])
def test_a_mask_is_left_to_the_copy_of_x(X, simple):
    """The steps are in the basis of B, f and what is simple in x in that of the pixels: hardly a step on f is left."""
    rng, answers = np.random.default_rng(0), []
    known = (rng.random((24, 24)) > 0.4).astype(float)
    A = as_operator((lambda x: known * x, lambda r: known * r), x_shape=(24, 24), y_shape=(24, 24), norm=1.0)
    data = known * (ss.gallery.phantom(0, 24) + 0.1 * rng.standard_normal((24, 24)))
    problem = ss.SaddleProblem(
        f=F.LeastSquares(A, data, ridge=1e-3) + simple, g=F.Quadratic(0.1), B=FiniteDifferences((24, 24)), X=X,
        Y=D.Box(-0.1, 0.1, shape=(2, 24, 24)),
    )  # fmt: skip
    for compiled in (True, False):
        with jit(compiled):
            found = ss.solve(problem, reduction=1e-4)
        assert found.success and found.calls.f <= 12 and found.state.metric[3] == 2.0
        answers.append(found.upper)
    other = ss.solve(problem, reduction=1e-4, metric="blocks", method="adaptive")
    assert answers[0] == pytest.approx(answers[1], rel=1e-9)
    assert abs(answers[0] - other.upper) <= other.gap + found.gap


def test_fitted_weights_of_entries_are_handed_on():
    known = (np.random.default_rng(0).random((12, 12)) > 0.4).astype(float)
    A = as_operator((lambda x: known * x, lambda r: known * r), x_shape=(12, 12), y_shape=(12, 12), norm=1.0)
    f, B = F.LeastSquares(A, known, ridge=1e-3), FiniteDifferences((12, 12))
    problems = [
        ss.SaddleProblem(f=f, g=F.Quadratic(0.1), B=B, X=D.FullSpace((12, 12)), Y=D.Box(-w, w, shape=(2, 12, 12)))
        for w in (0.1, 0.08)
    ]
    first, second = ss.path(problems, rtol=1e-6)
    assert first.success and second.success and second.state.metric[3] == first.state.metric[3] == 2.0
    assert np.array_equal(second.state.metric[0], first.state.metric[0])
    assert second.calls.f < first.calls.f - 1


def test_a_fitted_symbol_stays_above_the_modulus_and_the_floor():
    """Noise of few probes may be negative; a metric may not."""
    H = (lambda M: M @ M.T / 100.0)(np.random.default_rng(0).standard_normal((64, 2)))
    coupling = FiniteDifferences((8, 8))

    def hessian(stack):
        return np.stack([(H @ x.ravel() + 1e-3 * x.ravel()).reshape(8, 8) for x in stack])

    metric = fit_spectral(hessian, (8, 8), coupling, 1e-3, np.random.default_rng(1), probes=1)
    assert metric.symbol.min() >= 1e-3 and metric.symbol.max() / metric.symbol.min() <= 1.1e3


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 6), st.integers(1, 6), st.sampled_from(["dct", "fft"]))
def test_averages_over_shells_keep_constants_and_bounds_and_are_even(rows, columns, basis):
    values = np.random.default_rng(rows + 7 * columns).uniform(1.0, 2.0, (rows, columns))
    mean = shell_average(values, basis)
    assert values.min() - 1e-12 <= mean.min() and mean.max() <= values.max() + 1e-12
    np.testing.assert_allclose(shell_average(np.full((rows, columns), 3.0), basis), 3.0, rtol=1e-14)
    if basis == "fft":
        np.testing.assert_allclose(mean, even(mean), rtol=1e-14)


# Diagonals


def test_diagonals_are_those_of_the_dense_hessian():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((7, 4)) * np.array([1.0, 0.5, 3.0, 0.3])
    M = A.T @ A
    labels = np.sign(rng.standard_normal(7))
    logistic, steps = M.diagonal() / 4.0, np.arange(1.0, 5.0)
    cases = [
        (F.LeastSquares(A, np.zeros(7), ridge=0.3), M.diagonal() + 0.3),
        (F.LeastSquares(scipy.sparse.csr_array(A), np.zeros(7)), M.diagonal()),
        (F.Logistic(A, labels), logistic),
        (2.0 * F.LeastSquares(A, np.zeros(7)) + F.Quadratic(steps), 2.0 * M.diagonal() + steps),
        (F.Quadratic(M) + F.Linear(np.ones(4)), M.diagonal()),
    ]
    for f, expected in cases:
        np.testing.assert_allclose(hessian_diagonal(f, (4,)), expected, rtol=1e-12, err_msg=repr(f))


def test_diagonals_have_a_floor_and_are_not_guessed():
    f = F.LeastSquares(np.diag([1.0, 1e-8]), np.zeros(2))
    assert hessian_diagonal(f, (2,)).tolist() == [1.0, 1e-4]
    opaque = F.Custom(gradient=lambda x: x, value=lambda x: 0.5 * float(x @ x), smoothness=ss.Holder(1.0, 1.0))
    assert hessian_diagonal(opaque, (2,)) is None
    assert hessian_diagonal(f + opaque, (2,)) is None
    assert hessian_diagonal(F.Linear(np.ones(2)), (2,)) is None
    hidden = as_operator((lambda x: x, lambda y: y), x_shape=(2,), y_shape=(2,))
    assert hessian_diagonal(F.LeastSquares(hidden, np.zeros(2)), (2,)) is None


# Three problems made for three metrics, each with a truth from elsewhere


def uneven_columns(n=20, spread=1e2, seed=0):
    """Columns of A with norms over `spread`, on a box that is active; the truth by bounded least squares."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((3 * n, n)) * rng.permutation(np.geomspace(1.0 / spread, 1.0, n))
    b, B = 3.0 * rng.standard_normal(3 * n), 0.01 * rng.standard_normal((5, n))
    problem = ss.SaddleProblem(
        f=F.LeastSquares(A, b), g=F.Quadratic(1.0), B=B, X=D.Box(-1.0, 1.0, shape=n), Y=D.FullSpace(5)
    )
    truth = scipy.optimize.lsq_linear(np.vstack([A, B]), np.concatenate([b, np.zeros(5)]), (-1.0, 1.0), tol=1e-14)
    assert 0 < np.count_nonzero(np.abs(truth.x) > 1 - 1e-9) < n
    return problem, truth.cost


def periodic_deblurring(n=16):
    """Circular blur of an image, differences of 0.05 in g; the truth by a dense solve."""
    rng = np.random.default_rng(1)
    k = np.minimum(np.arange(n), n - np.arange(n))
    symbol = np.exp(-0.06 * (k[:, None] ** 2 + k[None, :] ** 2))
    blur = periodic_operator(symbol)
    A = as_operator((blur, blur), x_shape=(n, n), y_shape=(n, n), norm=1.0)
    b = blur(rng.uniform(0.0, 1.0, (n, n))) + 0.01 * rng.standard_normal((n, n))
    B, ridge, beta = FiniteDifferences((n, n)), 1e-3, 2e3
    problem = ss.SaddleProblem(
        f=F.LeastSquares(A, b, ridge=ridge), g=F.Quadratic(beta), B=B, X=D.FullSpace((n, n)), Y=D.FullSpace((2, n, n))
    )
    dense, difference = columns_of(blur, (n, n)), columns_of(B.forward, (n, n))
    H = dense.T @ dense + ridge * np.eye(n * n) + difference.T @ difference / beta
    x = np.linalg.solve(H, dense.T @ b.ravel())
    return problem, 0.5 * float(np.sum(b * b)) - 0.5 * float(x @ H @ x)


def correlated(n=40):
    """A^T A close to singular and far from diagonal; the truth by bounded least squares on the dual."""
    rng = np.random.default_rng(2)
    H = scipy.linalg.toeplitz(0.97 ** np.arange(n))
    A = scipy.linalg.cholesky(H)
    b, B, q = rng.standard_normal(n), rng.standard_normal((8, n)) / math.sqrt(n), 0.5
    problem = ss.SaddleProblem(
        f=F.LeastSquares(A, b), g=F.Quadratic(q), B=B, X=D.FullSpace(n), Y=D.Box(-0.2, 0.2, shape=8)
    )
    # max over y of min over x: x = H^-1 (A^T b - B^T y), a concave quadratic in y with Hessian B H^-1 B^T + q.
    inverse = np.linalg.inv(H)
    Q, c = B @ inverse @ B.T + q * np.eye(8), B @ inverse @ A.T @ b
    R = scipy.linalg.cholesky(Q)
    goal = scipy.linalg.solve_triangular(R.T, c, lower=True)
    dual = scipy.optimize.lsq_linear(R, goal, (-0.2, 0.2), tol=1e-14)
    free = 0.5 * float(b @ b) - 0.5 * float(b @ A @ inverse @ A.T @ b)
    return problem, free - dual.cost + 0.5 * float(goal @ goal), H


def solved_value(problem, truth, metric, reduction=1e-7):
    """Calls of f' of a run whose certified bounds hold the truth."""
    result = ss.solve(problem, reduction=reduction, metric=metric)
    assert result.success, (metric, result.message)
    slack = 1e-11 * (1.0 + abs(truth))
    assert result.lower - slack <= truth <= result.upper + slack, metric
    assert result.plans[-1].metric == result.plans[0].metric
    return result.calls.f


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_uneven_columns_on_a_box_need_far_fewer_gradients_in_the_diagonal_metric(seed):
    problem, truth = uneven_columns(seed=seed)
    blocks = solved_value(problem, truth, "blocks")
    weights = hessian_diagonal(problem.f, (20,))
    for metric in ("auto", "diagonal", Diagonal(weights), Diagonal(1e6 * weights), Diagonal(1e-6 * weights)):
        assert 3 * solved_value(problem, truth, metric) <= blocks
    assert ss.plan(problem, 1e-6, method="adaptive").metric == "diagonal"


def test_periodic_deblurring_needs_far_fewer_gradients_in_the_fourier_metric():
    problem, truth = periodic_deblurring()
    calls = {name: solved_value(problem, truth, name) for name in ("blocks", "spectral", "fft", "auto")}
    assert 3 * calls["fft"] <= calls["blocks"]
    assert calls["fft"] <= calls["spectral"]
    # The choice between methods looks at one gradient.
    assert calls["spectral"] <= calls["auto"] <= calls["spectral"] + 1
    k = np.minimum(np.arange(16), 16 - np.arange(16))
    exact = np.exp(-0.12 * (k[:, None] ** 2 + k[None, :] ** 2)) + 1e-3
    # No probes to pay for, and no smoothing.
    assert solved_value(problem, truth, Spectral(exact, basis="fft")) <= calls["fft"] - 4


def test_a_correlated_hessian_needs_far_fewer_gradients_in_a_given_operator():
    problem, truth, H = correlated()
    calls = {name: solved_value(problem, truth, name) for name in ("blocks", "diagonal")}
    for factor in (1.0, 1e4):
        given_one = operator(factor * H, (40,))
        assert 3 * solved_value(problem, truth, given_one) <= min(calls.values())
    weighted = Diagonal(np.linspace(1.0, 2.0, 40))
    assert solved_value(problem, truth, weighted) <= 2 * calls["blocks"]


def test_a_bad_metric_costs_calls_and_never_truth():
    problem, truth, H = correlated()
    wrong = operator(np.linalg.inv(H), (40,))
    result = ss.solve(problem, reduction=1e-7, metric=wrong, max_calls={"f": 300})
    assert result.lower <= truth + 1e-11 and result.upper >= truth - 1e-11
    box, truth = uneven_columns()
    upside_down = Diagonal(1.0 / hessian_diagonal(box.f, (20,)))
    result = ss.solve(box, reduction=1e-7, metric=upside_down, max_calls={"f": 300})
    assert result.lower <= truth * (1 + 1e-11) and result.upper >= truth * (1 - 1e-11)


# Choice and refusals


def image(X=None, f=None, n=4):
    """An image problem with a Hessian."""
    shape = (n, n)
    f = f or F.LeastSquares(ss.operators.Matrix(np.eye(n * n), shape, (n * n,)), np.ones(n * n))
    Y = D.Box(-1e-2, 1e-2, shape=(2, n, n))
    return ss.SaddleProblem(f=f, g=F.Zero(), B=FiniteDifferences(shape), X=X or D.FullSpace(shape), Y=Y)


def opaque(nu=1.0):
    """|x|^2 / 2 with a declared exponent and no more structure."""
    return F.Custom(
        gradient=lambda x: x, value=lambda x: 0.5 * float(np.vdot(x, x)), smoothness=ss.Holder(nu, 1.0),
        strong_convexity=1.0,
    )  # fmt: skip


def test_the_choice_is_explained():
    plan = ss.plan(image(), 1e-3, method="adaptive")
    assert plan.metric == "spectral" and "cosine basis" in plan.reasons[0]
    assert ss.plan(image(X=D.Box(0.0, 1.0, shape=(4, 4))), 1e-3, method="adaptive").metric == "spectral"
    simplex = ss.plan(image(X=D.Simplex((4, 4))), 1e-3, method="adaptive")
    assert simplex.metric == "blocks"
    assert "constraint couples the entries" in simplex.reasons[0] and "mixes the entries" in simplex.reasons[1]
    hidden = ss.plan(image(f=opaque()), 1e-3, method="adaptive")
    assert hidden.metric == "blocks" and "no products with its Hessian" in hidden.reasons[0]
    assert "does not show the diagonal" in hidden.reasons[1]
    uneven = ss.plan(uneven_columns()[0], 1e-3, method="adaptive")
    assert uneven.metric == "diagonal" and "each has its own weight" in uneven.reasons[1]
    assert uneven.reasons[1] in uneven.explain()
    assert ss.plan(image(), 1e-3, metric="fft", method="adaptive").reasons == ("metric fft as asked",)
    assert ss.plan(image(), 1e-3, metric=Diagonal(np.ones((4, 4)))).reasons == ("metric diagonal as given",)
    simple = ss.plan(image(f=F.Power(0.5)), 1e-3, metric="spectral", method="adaptive")
    assert simple.method == "restarted primal-dual" and "has no use" in simple.reasons[0]
    wide = ss.plan(uneven_columns(spread=1.5)[0], 1e-3, method="adaptive")
    assert wide.metric == "blocks"


def test_a_mirrored_problem_takes_the_metric_of_its_costly_block():
    problem, truth = uneven_columns()
    turned = ss.SaddleProblem(f=problem.g, g=problem.f, B=-problem.coupling.dense().T, X=problem.Y, Y=problem.X)
    plan = ss.plan(turned, 1e-6, method="adaptive")
    assert plan.mirrored and plan.metric == "diagonal"
    straight, back = (ss.solve(p, reduction=1e-7, method="adaptive") for p in (problem, turned))
    assert back.calls.g == straight.calls.f
    assert -back.upper <= truth * (1 + 1e-11) and -back.lower >= truth * (1 - 1e-11)
    assert ss.solve(turned, reduction=1e-6, metric=Diagonal(hessian_diagonal(problem.f, (20,)))).success


@gathered(
    ("make", "metric", "words"),
    [
        (lambda: image(X=D.Simplex((4, 4))), "spectral", "constraint couples the entries"),
        (lambda: image(X=D.Simplex((4, 4))), "fft", "constraint couples the entries"),
        (lambda: image(f=opaque()), "fft", "no products with its Hessian"),
        (lambda: image(X=D.Ball(1.0, shape=(4, 4))), "diagonal", "mixes the entries"),
        (lambda: image(f=opaque()), "diagonal", "does not show the diagonal"),
        (image, "cosine", "expected one of"),
        (image, np.ones((4, 4)), "expected one of"),
        (image, Diagonal(np.ones(16)), r"has shape \(16,\); expected \(4, 4\)"),
        (image, Spectral(np.ones((4, 5))), r"has shape \(4, 5\)"),
        (lambda: image(X=D.Ball(1.0, shape=(4, 4))), Diagonal(np.ones((4, 4))), "constraint mixes"),
        (lambda: image(f=opaque(nu=0.5)), operator(np.eye(16), (4, 4)), "needs a smooth f"),
        (image, operator(np.eye(16), (4, 4), solve=lambda x: 2.0 * x), "expected the inverse"),
        (image, operator(-np.eye(16), (4, 4)), "positive definite"),
        (image, operator(np.eye(16), (4, 4), apply=lambda x: x.ravel()), "returned shape"),
    ],
)
def test_what_does_not_fit_is_refused(make, metric, words):
    with pytest.raises(InputError, match=words):
        ss.solve(make(), 1e-3, metric=metric)


@gathered(
    ("make", "words"),
    [
        (lambda: Diagonal([1.0, 0.0]), "smallest weight is 0"),
        (lambda: Diagonal([1.0, np.nan]), "Diagonal"),
        (lambda: Spectral([1.0, -1.0]), "smallest eigenvalue is -1"),
        (lambda: Spectral([1.0, 2.0, 3.0], basis="fft"), "not even"),
        (lambda: Spectral([1.0], basis="wavelets"), "expected one of"),
        (lambda: Operator(1.0, np.negative, 1.0), "functions"),
        (lambda: Operator(np.negative, np.negative, 0.0), "largest is 0"),
        (lambda: Operator(np.negative, np.negative, -1.0), "largest"),
        (lambda: from_dict({"kind": "operator"}), "expected 'blocks'"),
    ],
)
def test_metrics_refuse_what_is_no_metric(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_blocks_fit_every_domain():
    simplex = ss.SaddleProblem(
        f=F.LeastSquares(np.eye(3), np.ones(3)), g=F.Zero(), B=np.eye(3), X=D.Simplex(3), Y=D.Box(-1.0, 1.0, shape=3)
    )
    scaled = ss.solve(simplex, reduction=1e-6, metric=Blocks(3.0, 1.0))
    assert scaled.success and scaled.calls.f <= 2 * ss.solve(simplex, reduction=1e-6, metric="blocks").calls.f


# Plans as data


def bits(result):
    return result.x.tobytes(), result.y.tobytes(), result.lower, result.upper, vars(result.calls), result.status


@pytest.mark.parametrize(
    ("make", "metric"),
    [
        (lambda: uneven_columns()[0], "auto"),
        (lambda: uneven_columns()[0], Diagonal(np.linspace(1.0, 3.0, 20))),
        (lambda: uneven_columns()[0], Blocks(2.0, 1.0)),
        (lambda: periodic_deblurring(8)[0], "fft"),
        (lambda: periodic_deblurring(8)[0], Spectral(even(RNG.uniform(0.5, 1.0, (8, 8))), basis="fft")),
        (lambda: periodic_deblurring(8)[0], Spectral(np.full((8, 8), 0.7))),
        (lambda: correlated()[0], operator(np.diag(np.linspace(1.0, 2.0, 40)), (40,))),
    ],
)
def test_plans_replay_to_the_same_bits_also_from_json(make, metric):
    # Made anew for every run: the adjoint of an own operator is tested, and counted, once for an object.
    result = ss.solve(make(), reduction=1e-4, metric=metric)
    assert result.success
    plan = result.plans[0]
    assert bits(ss.run(make(), plan)) == bits(result)
    if isinstance(metric, Operator):
        with pytest.raises(InputError, match=r"'operator' is made of functions and can not be written as data"):
            plan.to_dict()
        return
    written = json.dumps(plan.to_dict())
    read = ss.Plan.from_dict(json.loads(written))
    assert bits(ss.run(make(), read)) == bits(result)
    assert json.dumps(read.to_dict()) == written


@gathered(
    "metric",
    [Blocks(2.0, 3.0), Diagonal([1.0, 1e-300, np.pi]), Spectral([[1.0, 2.0]]), Spectral([3.0, 0.1, 0.1], basis="fft"),
     Spectral([2.0, 3.0], basis="entries", scale=[0.5, 1.5])],
)  # fmt: skip
def test_metrics_survive_json(metric):
    read = from_dict(json.loads(json.dumps(metric.to_dict())))
    assert type(read) is type(metric) and read.to_dict() == metric.to_dict()
    assert np.array_equal(read.symbol, metric.symbol)


@pytest.mark.parametrize("basis", ["dct", "fft"])
def test_remembered_shells_are_those_found_anew(basis, monkeypatch):
    values = np.random.default_rng(0).uniform(1.0, 2.0, (7, 10))
    kept = [shell_average(values, basis), shell_average(values, basis)]
    monkeypatch.setattr(fits, "_MOST_KEPT", 0)
    anew = shell_average(values, basis)
    assert all(np.array_equal(found, anew) for found in kept)


def test_small_answers_of_metrics():
    x = np.ones(2)
    Diagonal([1.0, 4.0]).invert(x)
    assert x.tolist() == [1.0, 0.25] == Diagonal([1.0, 4.0]).inverse(np.ones(2)).tolist()
    assert shell_average(np.ones((3, 3))).tolist()[0] == [1.0, 1.0, 1.0]
    B = ss.operators.FiniteDifferences((8, 8))
    assert np.allclose(fit_spectral(lambda v: 3.0 * v, (8, 8), B, 0.0, np.random.default_rng(0)).symbol, 3.0)
