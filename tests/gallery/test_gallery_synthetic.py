"""The synthetic instances against HiGHS (nu = 0, a linear program) and Clarabel (nu = 1, a quadratic one)."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import saddleslide as ss
from support import gathered
from trusted import linear_program, quadratic_program

D = 6


def data(seed):
    """B and the tilts of an instance, drawn here again from the words of the paper's appendix."""
    rng = np.random.default_rng(seed)
    U, V = (np.linalg.qr(rng.standard_normal((D, D)))[0] for _ in range(2))
    c_x, c_y = rng.standard_normal(D), rng.standard_normal(D)
    return (U * np.geomspace(0.5, 2.0, D)) @ V.T, c_x, c_y


def smooth_value(seed):
    """min |x|^2 / 2 + <c_x, x> + sum of Huber functions of (B x - c_y): z = (x, u, v, t) with u + v = B x - c_y."""
    B, c_x, c_y = data(seed)
    eye, none = np.eye(D), np.zeros((D, D))
    Q = sp.diags_array(np.repeat([1.0, 0.0], 2 * D))
    cost = np.r_[c_x, np.zeros(2 * D), np.ones(D)]
    equal = np.hstack([B, -eye, -eye, none])
    below = np.block(
        [[none, none, eye, -eye], [none, none, -eye, -eye], [eye, none, none, none], [-eye, none, none, none]]
    )
    limits = np.r_[np.zeros(2 * D), np.ones(2 * D)]
    return quadratic_program(Q, cost, equal, c_y, below, limits)[0]


def nonsmooth_value(seed):
    """min |x|_1 + <c_x, x> + sum max(|B x - c_y| - 1, 0): z = (x+, x-, t)."""
    B, c_x, c_y = data(seed)
    eye = np.eye(D)
    cost = np.r_[1.0 + c_x, 1.0 - c_x, np.ones(D)]
    below = np.block([[B, -B, -eye], [-B, B, -eye]])
    return linear_program(
        cost, None, None, below, np.r_[c_y + 1.0, 1.0 - c_y], bounds=[(0, 1)] * (2 * D) + [(0, None)] * D
    )[0]


@gathered("seed", range(5))
@pytest.mark.parametrize(("nu", "trusted"), [(1.0, smooth_value), (0.0, nonsmooth_value)])
def test_saddle_value_is_that_of_the_trusted_solver(nu, trusted, seed):
    problem = ss.gallery.synthetic(nu, nu, seed=seed, d=D)
    result = ss.solve(problem, tol=1e-7)
    assert result.status is ss.Status.SOLVED
    value = trusted(seed)
    assert result.lower - 1e-9 <= value <= result.upper + 1e-9
    assert problem.read(result).value == pytest.approx(value, abs=1e-7)
