"""Matrix games against HiGHS, and regularised ones against Clarabel."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import saddleslide as ss
from saddleslide.errors import InputError
from support import gathered
from trusted import linear_program, quadratic_program

SHAPES = [(2, 2), (3, 7), (7, 3), (12, 12), (20, 15), (1, 5)]


def payoff_of(shape, seed):
    return np.random.default_rng(seed).standard_normal(shape)


def value_by_highs(payoff):
    """The column player's program: min t with payoff q <= t."""
    m, n = payoff.shape
    return linear_program(
        np.r_[np.zeros(n), 1.0],
        A_eq=np.r_[np.ones(n), 0.0][None, :],
        b_eq=[1.0],
        A_ub=np.c_[payoff, -np.ones(m)],
        b_ub=np.zeros(m),
        bounds=[(0, None)] * n + [(None, None)],
    )[0]


def value_by_clarabel(payoff, row_weight, column_weight):
    """min over q, t, w >= 0, w >= payoff q - t of column/2 |q|^2 + t + |w|^2 / (2 row): no row player left."""
    m, n = payoff.shape
    Q = np.diag(np.r_[np.full(n, column_weight), 0.0, np.full(m, 1.0 / row_weight)])
    A_ub = np.block(
        [
            [payoff, -np.ones((m, 1)), -np.eye(m)],
            [-np.eye(n), np.zeros((n, 1 + m))],
            [np.zeros((m, n + 1)), -np.eye(m)],
        ]
    )
    c = np.r_[np.zeros(n), 1.0, np.zeros(m)]
    return quadratic_program(Q, c, np.r_[np.ones(n), np.zeros(1 + m)][None, :], [1.0], A_ub, np.zeros(2 * m + n))[:2]


@gathered(("seed", "shape"), list(enumerate(SHAPES)))
def test_value_and_strategies_are_those_of_highs(seed, shape):
    payoff = payoff_of(shape, seed)
    game = ss.gallery.matrix_game(payoff)
    result = ss.solve(game, tol=1e-8)
    solution = game.read(result)
    value = value_by_highs(payoff)
    assert result.status is ss.Status.SOLVED
    assert solution.bounds[0] - 1e-9 <= value <= solution.bounds[1] + 1e-9
    # Random games have one solution, which plays as many rows as columns (Shapley and Snow).
    facts = solution.facts()
    assert facts["rows in use"] == facts["columns in use"] == np.count_nonzero(solution.row > 1e-4)
    # Each strategy on its own guarantees the value up to the exploitability.
    assert (payoff @ solution.column).max() <= value + solution.exploitability + 1e-9
    assert (solution.row @ payoff).min() >= value - solution.exploitability - 1e-9
    assert abs(solution.value - value) <= solution.exploitability + 1e-9
    assert solution.row.shape == (shape[0],) and solution.column.shape == (shape[1],)


@gathered(("seed", "shape"), list(enumerate(SHAPES[:5])))
def test_regularised_games_are_those_of_clarabel(seed, shape):
    payoff = payoff_of(shape, 10 + seed)
    game = ss.gallery.matrix_game(payoff, row=ss.functions.Quadratic(0.3), column=0.7 * ss.functions.Quadratic(1.0))
    solution = game.read(ss.solve(game, tol=1e-9))
    value, point = value_by_clarabel(payoff, 0.3, 0.7)
    assert solution.value == pytest.approx(value, abs=1e-8)
    assert solution.column == pytest.approx(point[: shape[1]], abs=1e-4)


def test_a_sparse_payoff_is_the_same_game():
    payoff = payoff_of((6, 5), 3) * (payoff_of((6, 5), 4) > 0)
    dense, sparse = ss.gallery.matrix_game(payoff), ss.gallery.matrix_game(sp.csr_array(payoff))
    values = [game.read(ss.solve(game, tol=1e-9)).value for game in (dense, sparse)]
    assert values[0] == pytest.approx(values[1], abs=2e-9)


def test_a_game_survives_pickling():
    game = pickle.loads(pickle.dumps(ss.gallery.matrix_game(payoff_of((3, 3), 0))))
    assert game.read(ss.solve(game, tol=1e-6)).exploitability <= 1e-6


@gathered("payoff", [np.zeros((0, 3)), [[np.nan, 1.0]], [1.0, 2.0]])
def test_what_is_not_a_payoff_is_refused(payoff):
    with pytest.raises(InputError, match=r"matrix_game|B:"):
        ss.gallery.matrix_game(payoff)


def test_a_regulariser_of_the_wrong_length_is_refused():
    with pytest.raises(InputError, match="shape"):
        ss.gallery.matrix_game(np.eye(3), row=ss.functions.Quadratic([1.0, 2.0]))


def test_a_result_of_another_problem_is_refused():
    small, large = ss.gallery.matrix_game(np.eye(2)), ss.gallery.matrix_game(np.eye(3))
    with pytest.raises(InputError, match="expected a result of this problem"):
        large.read(ss.solve(small, tol=1e-3))
    with pytest.raises(InputError, match="received NoneType"):
        large.read(None)
