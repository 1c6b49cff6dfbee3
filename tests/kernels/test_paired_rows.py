"""Sparse rows kept in pairs of neighbouring columns: the same numbers as SciPy's, whatever the rows look like."""

import numba
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from saddleslide.functions import LeastSquares
from saddleslide.kernels.switch import jit, load
from saddleslide.kernels.threads import WORTHWHILE, use_threads
from saddleslide.operators import Matrix
from saddleslide.operators.sparse import SparseRows
from support import gathered, scattered

WIDE = 2**16 + 5
pytestmark = [
    pytest.mark.usefixtures("compiled"),
    pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="loops written for LLVM have no Python form"),
]


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def interpolation(rows, columns, points, seed=0):
    """Rows of some points between two neighbouring columns each, as a projector has; points may meet."""
    rng = np.random.default_rng(seed)
    left, part = rng.integers(0, columns - 1, (rows, points)), rng.uniform(size=(rows, points))
    found = np.concatenate([left, left + 1], axis=1), np.concatenate([1.0 - part, part], axis=1)
    where = np.repeat(np.arange(rows), 2 * points)
    return scipy.sparse.coo_array((found[1].ravel(), (where, found[0].ravel())), shape=(rows, columns)).tocsr()


def csr(rows, columns):
    """A matrix with these columns stored in each row, in this order, whatever they are."""
    starts = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int32)
    found = np.array([j for row in rows for j in row], dtype=np.int32)
    return scipy.sparse.csr_array((1.0 + np.arange(found.size), found, starts), shape=(len(rows), columns))


@pytest.mark.parametrize(("rows", "columns"), [(50, 40), (9, WIDE)])
def test_pairs_give_the_products_of_scipy(rows, columns):
    S = interpolation(rows, columns, 7)
    made, x, y = SparseRows(S), normal(1, columns), normal(2, rows)
    assert made.is_paired and made.kind == ("uint32" if columns == WIDE else "uint16")
    assert made.rows.columns.size < 0.6 * S.nnz
    product = made.product(x, (rows,), None)
    np.testing.assert_allclose(product, S @ x, rtol=0.0, atol=1e-13)
    out, back = made.there_and_back(x, y)
    assert np.array_equal(out, product)
    np.testing.assert_allclose(back, S.T @ (S @ x - y), rtol=0.0, atol=1e-12)
    weights, stack = np.abs(y), normal(3, 3, columns)
    expected = np.stack([S.T @ (weights * (S @ v)) for v in stack])
    np.testing.assert_allclose(made.grams(stack, weights), expected, rtol=0.0, atol=1e-12)


def test_a_stack_of_products_has_the_bits_of_each():
    made, stack = SparseRows(interpolation(60, 33, 9)), normal(4, 5, 33)
    assert made.is_paired
    assert np.array_equal(made.products(stack), np.stack([made.product(v, (60,), None) for v in stack]))
    for count in (1, 2):
        assert np.array_equal(made.grams(stack[:count], np.ones(60)), made.grams(stack, np.ones(60))[:count])


@gathered(
    "rows",
    [
        [[0, 1], [3, 4, 5]],
        [[4, 5], [5]],
        [[5], [0, 1, 2, 3]],
        [[1, 2, 3, 4, 5], [], [0, 1]],
        [[3, 2, 1, 0], [4, 5, 2, 3, 0, 1, 0, 1]],
        [[2, 2, 3, 3, 4], [0, 1, 2, 3], [4, 5, 4, 5]],
    ],
)
def test_entries_alone_at_the_edge_out_of_order_or_twice_are_kept(rows):
    S = csr(rows, 6)
    starts = np.empty(S.indptr.size, np.uint32)
    given = S.indices, S.indptr.view(np.uint32), S.data, 5, starts
    pair_up = load("passes", columns="uint16").pair_up
    count = pair_up(*given, np.empty(0, np.uint16), np.empty(0))
    columns, weights = np.full(count, 99, np.uint16), np.zeros(2 * count)
    assert pair_up(*given, columns, weights) == count
    assert columns.max() <= 4
    dense = np.zeros(S.shape)
    for i in range(S.shape[0]):
        for k in range(starts[i], starts[i + 1]):
            dense[i, columns[k]] += weights[2 * k]
            dense[i, columns[k] + 1] += weights[2 * k + 1]
    assert np.array_equal(dense, S.toarray())


@given(data=st.data())
def test_any_rows_any_order(data):
    columns = data.draw(st.integers(2, 9))
    rows = data.draw(st.lists(st.lists(st.integers(0, columns - 1), max_size=14), min_size=1, max_size=6))
    S = csr(rows, columns)
    made, x, y = SparseRows(S), normal(5, columns), normal(6, len(rows))
    dense = S.toarray()
    out, back = made.there_and_back(x, y)
    np.testing.assert_allclose(out, dense @ x, rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(back, dense.T @ (dense @ x - y), rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(made.product(x, (len(rows),), None), dense @ x, rtol=0.0, atol=1e-10)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_no_bit(threads):
    S = interpolation(4000, 300, 40)
    made, x, b, stack = SparseRows(S), normal(7, 300), normal(8, 4000), normal(9, 3, 300)
    assert made.is_paired and made.rows.columns.size >= WORTHWHILE

    def results():
        return [made.product(x, (4000,), None), *made.there_and_back(x, b), made.products(stack), made.grams(stack, b)]

    alone = results()
    with use_threads(threads, "test"):
        shared = results()
    assert all(np.array_equal(one, other) for one, other in zip(alone, shared, strict=True))


def test_scattered_columns_are_not_paired_and_give_the_same_products():
    S = scattered((60, 300), 0.05, np.random.default_rng(0))
    made, stack, weights = SparseRows(S), normal(10, 3, 300), normal(11, 60)
    assert not made.is_paired and made.rows.data is S.data
    expected = np.stack([S.T @ (weights * (S @ v)) for v in stack])
    np.testing.assert_allclose(made.grams(stack, weights), expected, rtol=0.0, atol=1e-12)


@gathered("shape", [(3, 1), (0, 4), (4, 0)])
def test_matrices_without_room_for_a_pair(shape):
    S = scipy.sparse.csr_array(np.ones(shape))
    made = SparseRows(S)
    assert not made.is_paired
    np.testing.assert_array_equal(
        made.product(np.ones(shape[1]), (shape[0],), None), np.full(shape[0], float(shape[1]))
    )


@pytest.mark.parametrize("compiled", [True, False])
def test_least_squares_with_a_paired_matrix_is_its_formula(compiled):
    S, b, x = interpolation(50, 40, 5), normal(12, 50), normal(13, 40)
    f = LeastSquares(S, b, ridge=0.2)
    with jit(compiled):
        assert isinstance(f.A, Matrix) and (not compiled or f.A._rows.is_paired)
        value, gradient = f.value_and_gradient(x)
        images = f.A.gram_stack(x[None], np.abs(b))
    residual = S @ x - b
    assert value == pytest.approx(0.5 * residual @ residual + 0.1 * x @ x, rel=1e-13)
    np.testing.assert_allclose(gradient, S.T @ residual + 0.2 * x, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(images[0], S.T @ (np.abs(b) * (S @ x)), rtol=0.0, atol=1e-12)
