"""Passes over sparse matrices: what they compute, that no bit depends on how, and what they count."""

from dataclasses import replace

import numba
import numpy as np
import pytest
import scipy.sparse

import saddleslide as ss
from saddleslide.facts.facts import Facts
from saddleslide.functions import LeastSquares, PoissonTransmission
from saddleslide.functions.losses import _beyond_linear
from saddleslide.kernels.switch import jit
from saddleslide.kernels.threads import WORTHWHILE, use_threads
from saddleslide.methods.adaptive_sliding import AdaptiveSliding
from saddleslide.operators import Matrix
from saddleslide.operators.sparse import SparseRows
from saddleslide.oracles.oracles import Oracles
from saddleslide.planner.choice import adaptive_plan
from saddleslide.planner.forecast import SolveRequest
from support import gathered, scattered

pytestmark = pytest.mark.usefixtures("either_way")

WIDE = 2**16 + 3


def sparse(rows, columns, density, seed=0):
    return scattered((rows, columns), density, np.random.default_rng(seed))


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


@gathered(("rows", "columns", "density"), [(7, 5, 0.6), (40, 33, 0.3), (1, 9, 1.0), (6, WIDE, 3e-4)])
def test_products_stacks_and_passes_agree_with_scipy(rows, columns, density):
    S = sparse(rows, columns, density)
    A, x, b = Matrix(S), normal(1, columns), normal(2, rows)
    assert A._rows.kind == ("uint32" if columns == WIDE else "uint16")
    np.testing.assert_allclose(A.forward(x), S @ x, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(A.adjoint(b), S.T @ b, rtol=1e-13, atol=1e-13)
    out, back = A.there_and_back(x, b)
    assert np.array_equal(out, A.forward(x))
    np.testing.assert_allclose(back, S.T @ (S @ x - b), rtol=1e-12, atol=1e-12)


@gathered("count", [1, 2, 5])
def test_a_stack_has_the_bits_of_its_members(count):
    A = Matrix(sparse(30, 24, 0.3), x_shape=(4, 6), y_shape=(5, 6))
    xs, ys = normal(3, count, 4, 6), normal(4, count, 5, 6)
    assert np.array_equal(A.forward_stack(xs), np.stack([A.forward(x) for x in xs]))
    assert np.array_equal(A.adjoint_stack(ys), np.stack([A.adjoint(y) for y in ys]))
    with jit(False):
        np.testing.assert_allclose(A.forward_stack(xs), np.stack([A.forward(x) for x in xs]), rtol=1e-14)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_no_bit_of_a_pass(threads):
    S = sparse(2000, 300, 0.2)
    assert S.nnz >= WORTHWHILE
    rows, x, b, stack = SparseRows(S), normal(5, 300), normal(6, 2000), normal(7, 3, 300)
    alone = rows.there_and_back(x, b), rows.products(stack)
    with use_threads(threads, "test"):
        shared = rows.there_and_back(x, b), rows.products(stack)
    assert all(np.array_equal(one, other) for one, other in zip(alone[0], shared[0], strict=True))
    assert np.array_equal(alone[1], shared[1])


@pytest.mark.parametrize("compiled", [True, False])
def test_least_squares_gives_value_and_gradient_of_its_formula(compiled):
    S, b, x = sparse(20, 12, 0.5), normal(8, 20), normal(9, 12)
    f = LeastSquares(S, b, ridge=0.3)
    r = S @ x - b
    with jit(compiled):
        assert f.one_pass is compiled
        value, gradient = f.value_and_gradient(x)
        into = np.empty(12)
        assert f.value_and_gradient(x, into)[1] is into
    assert value == pytest.approx(0.5 * r @ r + 0.15 * x @ x, rel=1e-13)
    np.testing.assert_allclose(gradient, S.T @ r + 0.3 * x, rtol=1e-12)
    np.testing.assert_allclose(into, gradient, rtol=0.0)


@gathered(("rows", "columns"), [(1, 1), (3, 7), (4, 7), (5, 7), (40, 33), (31, 120), (0, 4), (4, 0)])
def test_one_pass_over_a_dense_matrix_gives_both_products(rows, columns):
    M, x, b = normal(13, rows, columns), normal(14, columns), normal(15, rows)
    A = Matrix(M)
    with jit(True):
        out, back = A.there_and_back(x, b)
    np.testing.assert_allclose(out, M @ x, rtol=0.0, atol=1e-13)
    np.testing.assert_allclose(back, M.T @ (M @ x - b), rtol=0.0, atol=1e-12)
    for on in (True, False):
        with jit(on):
            assert A.one_pass is on


@pytest.mark.parametrize("compiled", [True, False])
def test_least_squares_with_a_dense_picture_operator(compiled):
    M, b, x = normal(16, 50, 42), normal(17, 50), normal(18, 6, 7)
    f = LeastSquares(M, b, ridge=0.3, x_shape=(6, 7))
    r = M @ x.ravel() - b
    into = np.zeros((7, 6)).T
    with jit(compiled):
        value, gradient = f.value_and_gradient(x)
        assert f.value_and_gradient(x.T.copy().T, into)[1] is into
    assert value == pytest.approx(0.5 * r @ r + 0.15 * np.vdot(x, x), rel=1e-13)
    expected = (M.T @ r).reshape(6, 7) + 0.3 * x
    np.testing.assert_allclose(gradient, expected, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(into, expected, rtol=0.0, atol=1e-12)


def test_rows_too_long_for_the_cache_are_read_twice():
    A = Matrix(np.ones((2, 2**15 + 1)))
    assert not A.one_pass
    x = normal(19, 2**15 + 1)
    assert np.array_equal(A.there_and_back(x, np.zeros(2))[0], A.forward(x))


def lifted(f, n):
    problem = ss.SaddleProblem(
        f=f, g=ss.functions.Zero(), B=np.eye(n), X=ss.domains.FullSpace(n), Y=ss.domains.Box(-1.0, 1.0, shape=n)
    )
    oracles = Oracles(problem)
    return oracles.make_lift(f), oracles


def test_what_is_counted_one_call_for_a_pass_one_for_each_probe_none_for_a_lift_of_zero():
    f = LeastSquares(sparse(20, 12, 0.5), normal(8, 20), ridge=0.3)
    lift, oracles = lifted(f, 12)
    q, gradient = lift.lift_and_gradient(normal(9, 12))
    assert oracles.calls.f == 1
    np.testing.assert_allclose(gradient, f.gradient(normal(9, 12)), rtol=1e-13)
    assert not lift.lift(np.zeros(12)).any() and oracles.calls.f == 1
    probes = normal(10, 3, 12)
    images = lift.hessian_stack(q)(probes)
    assert oracles.calls.f == 4
    np.testing.assert_allclose(images, [f.hessian_product(v) for v in probes], rtol=1e-12)


def test_probes_of_a_curved_loss_see_its_hessian_where_it_is_taken():
    f = PoissonTransmission(np.abs(sparse(20, 12, 0.5)), np.full(20, 7.0), 10.0, 1.0, ridge=0.1)
    lift, _ = lifted(f, 12)
    x, probes = 0.1 * normal(11, 12), normal(12, 2, 12)
    images = lift.hessian_stack(lift.lift(x))(probes)
    for v, image in zip(probes, images, strict=True):
        near = (f.gradient(x + 1e-6 * v) - f.gradient(x - 1e-6 * v)) / 2e-6
        np.testing.assert_allclose(image, near, rtol=1e-5, atol=1e-8)


def test_gradients_that_come_along_are_those_at_the_iterates():
    """Also after shortened steps, whose gradients are combinations of others."""
    problem = ss.gallery.tomography(n=16)
    method, oracles = AdaptiveSliding.of(adaptive_plan(Facts(problem), SolveRequest(reduction=1e-9))), Oracles(problem)
    state = method.init(oracles, Facts(problem), problem.start(), tol=1e-9)
    shortened = 0
    for _ in range(40):
        before = replace(state.iterate, L=0.6 * state.iterate.L)
        state = method.step(replace(state, iterate=before), oracles)
        shortened += state.iterate.violations - before.violations
        here = state.iterate.here
        fresh = problem.f.gradient(here.x)
        scale = np.abs(problem.f.gradient(0.0 * fresh)).max()
        np.testing.assert_allclose(here.gradient, fresh, rtol=0.0, atol=1e-13 * scale)
    assert shortened >= 5


@gathered("u", [1e-9, -1e-5, 3e-3, -0.06, 0.0625, 0.07, -1.3])
def test_what_an_exponential_has_beyond_its_tangent_keeps_its_digits(u):
    term, terms = 1.0, []
    for k in range(1, 40):
        term *= -u / k
        terms += [term] if k >= 2 else []
    exact = sum(reversed(terms))
    for others in ([], [2.0]):
        assert _beyond_linear(np.array([u, *others]))[0] == pytest.approx(exact, rel=1e-14 if abs(u) < 0.06 else 1e-13)


def shifts(n):
    return scipy.sparse.diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(n, n), format="csr")


# Loops written for LLVM have no Python form.
COMPILED = [False] if numba.config.DISABLE_JIT else [True, False]
MATRICES = {"scattered": sparse(60, 60, 0.2), "pairs": sparse(60, 60, 0.95), "alike": shifts(60), "dense": np.eye(60)}


@gathered("compiled", COMPILED)
@gathered("matrix", MATRICES.values(), ids=MATRICES)
def test_vectors_of_another_size_are_refused_and_of_another_type_are_read(matrix, compiled):
    A, b, x = Matrix(matrix), normal(20, 60), normal(21, 60).astype(np.float32)
    f, exact = LeastSquares(matrix, b), matrix @ x.astype(float)
    with jit(compiled):
        for size in (10, 61):
            for call in (A.forward, A.adjoint, f.value, f.gradient, lambda v: A.there_and_back(v, b)):
                # SciPy before 1.15 says no more about a sparse matrix.
                with pytest.raises(ValueError, match=r"60|^dimension mismatch$"):
                    call(np.ones(size))
            with pytest.raises(ValueError, match=r"60|wrong dimensions"):
                A.forward(x, out=np.empty(size))
            with pytest.raises(ValueError, match="60"):
                A.there_and_back(x, np.ones(size))
        np.testing.assert_allclose(A.forward(x), exact, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(f.gradient(x), A.adjoint(exact - b), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(A.forward(np.arange(60)), A.forward(np.arange(60.0)))
        np.testing.assert_allclose(A.forward_stack(np.stack([x, x]))[1], exact, rtol=1e-6, atol=1e-6)
        if A.sparse:
            narrow = np.empty(60, np.float32)
            assert A.forward(x, out=narrow) is narrow
            np.testing.assert_allclose(narrow, exact, rtol=1e-5, atol=1e-5)


@gathered("compiled", COMPILED)
@gathered("matrix", MATRICES.values(), ids=MATRICES)
def test_a_product_may_be_written_over_its_vector(matrix, compiled):
    A, x = Matrix(matrix), normal(22, 60)
    with jit(compiled):
        expected = A.forward(x)
        np.testing.assert_allclose(A.forward(x, out=x), expected, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(x, expected, rtol=1e-14, atol=1e-14)


def test_the_matrices_above_are_of_the_kinds_they_are_named_after():
    kinds = [type(Matrix(MATRICES[name])._rows).__name__ for name in ("scattered", "pairs", "alike")]
    assert kinds == ["SparseRows", "SparseRows", "AlikeRows"]
    assert [Matrix(MATRICES[name])._rows.is_paired for name in ("scattered", "pairs")] == [False, True]
