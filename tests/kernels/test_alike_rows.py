"""Sparse matrices whose rows are alike: found when they are, right in every row, and the same bits however asked."""

import numpy as np
import pytest
import scipy.sparse

import saddleslide as ss
from saddleslide.gallery.tomography import nonlocal_laplacian
from saddleslide.kernels.arguments import TILE
from saddleslide.kernels.switch import jit
from saddleslide.kernels.threads import WORTHWHILE, use_threads
from saddleslide.operators import Matrix
from saddleslide.operators.sparse import AlikeRows, SparseRows, alike_rows, passes_of
from support import gathered, scattered

pytestmark = pytest.mark.usefixtures("either_way")


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def bands(rows, columns, offsets, seed=0):
    """Constant diagonals."""
    return scipy.sparse.diags_array(
        normal(seed, len(offsets)), offsets=offsets, shape=(rows, columns), format="csr"
    ).astype(np.float64)


def modified(S, row, column, value):
    dense = S.toarray()
    dense[row, column] = value
    return scipy.sparse.csr_array(dense)


MATRICES = {
    "shorter than a tile": bands(TILE - 1, TILE + 9, [0, 3]),
    "one tile": bands(TILE, TILE + 9, [0, 3]),
    "one row more": bands(TILE + 1, TILE + 9, [0, 3, 5]),
    "tiles that overlap": bands(3 * TILE - 1, 3 * TILE + 40, [0, 1, 2, 7, 11, 30]),
    "more rows than columns": bands(200, 150, [-60, -3, 0, 2]),
    "more columns than rows": bands(90, 300, [-4, 0, 1, 100, 180]),
    "an entry of its own": modified(bands(150, 150, [-1, 0, 1]), 77, 77, 5.0),
    "an entry more": modified(bands(150, 150, [-1, 0, 1]), 77, 3, 5.0),
    "an entry less": modified(bands(150, 150, [-1, 0, 1]), 77, 77, 0.0),
    "the same entries elsewhere": bands(150, 150, [0]) @ scipy.sparse.eye_array(150).tocsr()[np.r_[0:75, 149:74:-1]],
    "nothing": scipy.sparse.csr_array((100, 50)),
    "a nonlocal Laplacian": nonlocal_laplacian(44),
}


@gathered("name", MATRICES)
def test_products_are_those_of_scipy(name):
    S = MATRICES[name].tocsr()
    A, x, y = Matrix(S), normal(1, S.shape[1]), normal(2, S.shape[0])
    np.testing.assert_allclose(A.forward(x), S @ x, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(A.adjoint(y), S.T @ y, rtol=1e-13, atol=1e-13)
    image, back = A.there_and_back(x, y)
    np.testing.assert_allclose(image, S @ x, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(back, S.T @ (S @ x - y), rtol=1e-12, atol=1e-12)


def test_which_matrices_are_kept_as_patterns():
    assert alike_rows(Matrix(MATRICES["shorter than a tile"]).matrix) is None
    assert isinstance(passes_of(Matrix(MATRICES["one tile"]).matrix), SparseRows)
    found = passes_of(Matrix(MATRICES["more columns than rows"]).matrix)
    # Rows 0 to 3 lack the entry at offset -4.
    assert (
        isinstance(found, AlikeRows)
        and found.patterns.begins.tolist() == [0, 4, 90]
        and len(found.patterns.weights) == 9
    )
    unlike = scattered((500, 500), 0.05, np.random.default_rng(0))
    assert alike_rows(Matrix(unlike).matrix) is None
    # As many entries in every row, the same weights, other places.
    places = scipy.sparse.csr_array(np.eye(500)[np.random.default_rng(1).permutation(500)])
    assert alike_rows(Matrix(places).matrix) is None


def test_a_picture_costs_a_few_patterns_whatever_its_size():
    sizes = []
    for side in (44, 60):
        found = passes_of(Matrix(nonlocal_laplacian(side)).matrix)
        assert isinstance(found, AlikeRows)
        sizes.append((len(found.patterns.weights), len(found.patterns.starts)))
    # Eleven kinds of rows and as many of columns: five at either edge, and those inside.
    assert sizes[0] == sizes[1] and sizes[0][1] == 121 + 1


def test_one_different_entry_is_seen_wherever_it_stands():
    S = bands(400, 400, [-1, 0, 1])
    for row in (1, 2, 199, 398):
        changed = modified(S, row, row, 2.0)
        found = passes_of(Matrix(changed).matrix)
        assert isinstance(found, AlikeRows) and {row, row + 1} <= set(found.patterns.begins)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_no_bit(threads):
    A, x = Matrix(nonlocal_laplacian(44)), normal(3, 2 * 44**2)
    assert A.entry_count >= WORTHWHILE and isinstance(A._rows, AlikeRows)
    alone = A.forward(x)
    with use_threads(threads, "test"):
        assert np.array_equal(A.forward(x), alone)


def test_stacks_strides_and_shapes():
    A = Matrix(nonlocal_laplacian(44), (2, 44, 44), (2, 44, 44))
    xs = normal(4, 3, 2, 44, 44)
    each = np.stack([A.forward(x) for x in xs])
    assert np.array_equal(A.forward_stack(xs), each) and np.array_equal(A.adjoint_stack(xs), each)
    into = np.zeros((44, 44, 2)).transpose(2, 0, 1)
    assert A.forward(xs[0], into) is into and np.array_equal(into, each[0])
    turned = np.ascontiguousarray(xs[0].transpose(2, 1, 0)).transpose(2, 1, 0)
    assert np.array_equal(A.forward(turned), each[0])


def test_least_squares_with_a_stencil_makes_two_products_and_has_its_twins_values():
    f = ss.functions.LeastSquares(MATRICES["more rows than columns"], normal(5, 200), ridge=0.1)
    x = normal(6, 150)
    value, gradient = f.value_and_gradient(x)
    assert not f.one_pass
    with jit(False):
        plain = f.value_and_gradient(x)
    assert value == pytest.approx(plain[0], rel=1e-13)
    np.testing.assert_allclose(gradient, plain[1], rtol=1e-12)
