"""The small answers that operators are made of, each at one point where it can be read off."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse

import saddleslide as ss
from saddleslide.operators import base
from saddleslide.operators.adjoint_test import measure_mismatch, pair_mismatch, sign_vector, signs_of
from saddleslide.operators.base import is_own_code
from saddleslide.operators.foreign import is_odl
from saddleslide.operators.sparse import SparseRows, alike_rows, check_sparse, flat, read_sparse, written
from saddleslide.operators.spectrum import gram_norm_bound, may_be_dense, summation_error
from saddleslide.watcher import late, made

as_operator = ss.operators.as_operator
OWN = (np.copy, np.copy), (3,), (3,)
ONE = np.ones(1)


def test_what_is_known_of_an_operator():
    assert [is_own_code(B) for B in (as_operator(np.eye(2)), as_operator(*OWN, norm=1.0))] == [False, True]
    assert [as_operator(*OWN, norm=norm).norm_at_hand for norm in (None, 1.0)] == [False, True]
    assert [B.norm_takes_products for B in (as_operator(*OWN), as_operator(np.eye(3)))] == [True, False]
    singular = as_operator(np.diag([3.0, 0.0]))
    assert singular.smallest_singular_value().lower == 0.0
    assert round(singular.smallest_singular_value(positive=True).estimate, 12) == 3.0
    assert as_operator(np.diag([2.0, 3.0])).singular_values.round(12).tolist() == [3.0, 2.0]
    assert 2.0 <= as_operator(np.array([[1.0, 1.0], [1.0, -1.0]])).size_bound < 2.1
    assert round(gram_norm_bound(as_operator(np.diag([3.0, 4.0]))).upper, 6) == 4.0
    assert may_be_dense((1000, 1000)) and not may_be_dense((2_000_000, 60))
    assert ss.operators.FiniteDifferences((2, 2)).eigenvalues(0).round(12).tolist() == [0.0, 2.0]
    there, back = as_operator(np.array([[1.0, 2.0]])).there_and_back(np.ones(2), ONE)
    assert there.tolist() == [3.0] and back.tolist() == [2.0, 4.0]
    assert not is_odl([[1.0]]) and not late() and made("B", lambda: 3) == 3


def test_sizes_of_rounding():
    assert summation_error(4) < summation_error(1_000) < 1e-12
    assert 0.0 < as_operator(np.eye(3)).product_error < 1e-14
    assert 0.0 < as_operator(*OWN).bound_rounding(1.0, 1.0) < 1e-14


def test_what_a_pair_shows_of_an_adjoint():
    sizes = np.abs(sign_vector((3,)))
    assert ((sizes >= 1.0) & (sizes < 4.0 / 3.0) & (sizes != sizes.astype(np.float32))).all()
    assert np.sign(signs_of(np.array([3.0, -2.0, 0.0]))).tolist() == [1.0, -1.0, 1.0]
    assert base.adjoint_test_from(np.ones(4), 2.0 * np.ones(4), np.ones(4), 2.0 * np.ones(4)) == (0.0, 0.0)
    assert (
        pair_mismatch(ONE, 2.0 * ONE, ONE, 2.0 * ONE) == 0.0 < 0.001 < pair_mismatch(ONE, 2.0 * ONE, ONE, 2.001 * ONE)
    )
    assert measure_mismatch(ONE, ONE, ONE, 1.5 * ONE) == 0.5
    assert 1e-8 < as_operator((lambda x: 2.0 * x, lambda y: (2.0 + 1e-8) * y), (4,), (4,)).adjoint_test.bound < 1e-5


def test_sparse_rows():
    rows = SparseRows(scipy.sparse.csr_array(np.array([[1.0, 2.0], [0.0, 3.0]])))
    assert rows.product(np.ones(2), (2,), None).tolist() == [3.0, 3.0]
    assert [part.tolist() for part in rows.there_and_back(np.ones(2), np.ones(2))] == [[3.0, 3.0], [2.0, 10.0]]
    assert rows.grams(np.ones((1, 2)), np.array([1.0, 2.0])).tolist() == [[3.0, 24.0]]
    assert flat(np.arange(4).reshape(2, 2), 4).tolist() == [0.0, 1.0, 2.0, 3.0]
    doubled = written(np.ones(2), 2, (2, 1), None, lambda source, into: np.copyto(into, 2.0 * source))
    assert doubled.tolist() == [[2.0], [2.0]]
    alike = alike_rows(scipy.sparse.diags_array([-1.0, 1.0], offsets=[0, 1], shape=(40, 41), format="csr"))
    assert alike.product(np.arange(41.0) ** 2, (40,), None)[:4].tolist() == [1.0, 3.0, 5.0, 7.0]
    assert len(alike.patterns.weights) == 2
    scattered = np.random.default_rng(0).random((200, 200)) < 0.1
    assert alike_rows(scipy.sparse.csr_array(scattered.astype(float))) is None


def test_a_damaged_sparse_matrix_is_named():
    check_sparse(scipy.sparse.eye_array(3), "B")
    given = scipy.sparse.coo_array(([1.0, 2.0], ([0, 1], [1, 0])), shape=(2, 2))
    assert read_sparse(given, "B").indices.tolist() == [1, 0]
    given.row[0] = 7
    with pytest.raises(ss.errors.InputError, match=r"B: the coo matrix of shape \(2, 2\) is damaged \(row 7 of 2\)"):
        read_sparse(given, "B")


def test_the_former_names_are_the_same_things():
    assert ss.operators.Operator is ss.operators.Operator and ss.operators.as_operator is as_operator
    assert {"Coupling", "as_coupling"}.isdisjoint(dir(ss.operators))


def test_entries_of_products_are_off_by_no_more_than_is_said():
    """Against sums of fractions; products of zeros alone are exact."""
    rng = np.random.default_rng(0)
    dense = rng.random((6, 9)) * 10.0 ** rng.integers(-8, 8, (6, 9))
    dense[2] = 0.0
    sparse = scipy.sparse.csr_array(np.where(rng.random((6, 9)) < 0.4, dense, 0.0))
    x = rng.random((3, 3)) * (rng.random((3, 3)) < 0.7)
    parts = [as_operator(dense, x_shape=(3, 3)), as_operator(sparse, x_shape=(3, 3))]
    parts += [ss.operators.Identity((3, 3)), ss.operators.FiniteDifferences((3, 3))]
    for B in [*parts, ss.operators.Stack(*parts, scales=[0.3, 1.0, 1.0, 7.0])]:
        blocks, scales = (B.parts, B.scales) if B.y_shape == (42,) else ([B], [1.0])
        exact = []
        for part, scale in zip(blocks, scales, strict=True):
            matrix = np.array([part.forward(unit.reshape(3, 3)).ravel() for unit in np.eye(9)]).T
            terms = [[Fraction(a) * Fraction(v) for a, v in zip(row, x.ravel(), strict=True)] for row in matrix]
            exact += [Fraction(float(scale)) * sum(row) for row in terms]
        product = B.forward(x)
        errors = B.entry_errors(x, product).ravel()
        for found, true, error in zip(product.ravel(), exact, errors, strict=True):
            assert abs(Fraction(float(found)) - true) <= Fraction(float(error))
        assert (errors[product.ravel() == 0.0] == 0.0).all() and errors.max() <= 1e-13 * np.abs(product).max()
    assert parts[0].entry_errors(-x, parts[0].forward(-x)) is None
    assert as_operator(-dense).entry_errors(x.ravel(), x.ravel()) is None


def test_a_matrix_stands_before_an_operator():
    first, _ = ss.operators.split_unknowns(3, 1)
    Z, D = np.arange(12.0).reshape(4, 3), ss.operators.FiniteDifferences((5,))
    x = np.arange(4.0)
    for matrix in (Z, scipy.sparse.csr_array(Z)):
        assert np.array_equal((matrix @ first) @ x, Z @ x[:3])
    assert np.array_equal((np.ones((2, 5)) @ D) @ np.arange(5.0), [4.0, 4.0])
