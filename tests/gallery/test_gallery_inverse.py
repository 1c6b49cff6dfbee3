"""Inverse problems with an l_p penalty against L-BFGS, and against linear algebra at p = 2."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp

import saddleslide as ss
from saddleslide.errors import InputError
from support import gathered


def instance(seed, rows=20, n=12):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rows, n))
    return A, A @ np.cumsum(rng.standard_normal(n)) + 0.1 * rng.standard_normal(rows)


def minimum_by_lbfgs(A, b, D, weight, p, ridge=0.0):
    def primal(x):
        r, t = A @ x - b, D @ x
        value = 0.5 * r @ r + 0.5 * ridge * x @ x + weight / p * np.sum(np.abs(t) ** p)
        return value, A.T @ r + ridge * x + weight * D.T @ (np.sign(t) * np.abs(t) ** (p - 1))

    options = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 10_000, "maxfun": 100_000}
    return scipy.optimize.minimize(primal, np.zeros(A.shape[1]), jac=True, method="L-BFGS-B", options=options)


@pytest.mark.parametrize("p", [2.0, 2.5, 3.0, 4.0, 6.0])
@gathered("seed", range(2))
def test_signal_is_the_minimum_of_lbfgs(seed, p):
    A, b = instance(seed)
    problem = ss.gallery.lp_inverse(A, b, weight=0.5, p=p)
    result = ss.solve(problem, tol=1e-6, max_steps=2000)
    solution = problem.read(result)
    best = minimum_by_lbfgs(A, b, np.diff(np.eye(12), axis=0), 0.5, p)
    assert result.status is ss.Status.SOLVED
    assert result.lower - 1e-9 <= best.fun and solution.objective <= best.fun + 1e-6
    assert solution.objective == pytest.approx(result.upper, abs=1e-7)
    assert solution.signal == pytest.approx(best.x, abs=2e-3)


def test_an_image_and_an_operator_of_ones_own():
    rng = np.random.default_rng(3)
    shape, picture = (4, 5), rng.random((4, 5))
    blur = ss.gallery.blur(np.full((3, 3), 1 / 9), shape)
    matrix = blur.dense()
    data = blur.forward(picture)
    rows = ss.operators.FiniteDifferences(shape)
    D = np.array([rows.forward(unit.reshape(shape)).ravel() for unit in np.eye(20)]).T
    best = minimum_by_lbfgs(matrix, data.ravel(), D, 0.2, 3.0, ridge=0.01)
    problem = ss.gallery.lp_inverse(blur, data, weight=0.2, p=3.0, ridge=0.01)
    solution = problem.read(ss.solve(problem, tol=1e-7, max_steps=2000))
    assert solution.signal.shape == shape
    assert solution.objective == pytest.approx(best.fun, abs=1e-6)
    own = ss.gallery.lp_inverse(blur, data, weight=0.2, p=3.0, ridge=0.01, D=sp.csr_array(D))
    assert own.read(ss.solve(own, tol=1e-7, max_steps=2000)).objective == pytest.approx(best.fun, abs=1e-6)


def test_at_p_2_the_signal_solves_linear_equations():
    A, b = instance(9)
    problem = ss.gallery.lp_inverse(A, b, weight=2.0, p=2.0)
    D = np.diff(np.eye(12), axis=0)
    x = np.linalg.solve(A.T @ A + 2.0 * D.T @ D, A.T @ b)
    assert problem.read(ss.solve(problem, tol=1e-8, max_steps=2000)).signal == pytest.approx(x, abs=1e-3)


def test_an_exact_fit_without_a_certificate_is_no_contradiction():
    # Values and gradients vanish at the minimum, so that rounding is all that is left of them.
    for A in (np.ones((1, 3)), np.ones((2, 4))):
        problem = ss.gallery.lp_inverse(A, np.ones(len(A)), weight=1.0, p=3.0)
        result = ss.solve(problem, tol=1e-6, max_steps=60)
        assert result.status is not ss.Status.INCONSISTENT, result.certificate.reason
        assert A @ result.x == pytest.approx(np.ones(len(A)), abs=1e-6)


@gathered(
    ("options", "words"),
    [
        ({"p": 1.5}, "p is 1.5"),
        ({"weight": 0.0}, "weight is 0"),
        ({"weight": -1.0}, "weight is -1"),
        ({"ridge": -1.0}, "ridge"),
    ],
)
def test_wrong_settings_are_refused(options, words):
    A, b = instance(0)
    with pytest.raises(InputError, match=words):
        ss.gallery.lp_inverse(A, b, **{"weight": 1.0, **options})


def test_wrong_shapes_are_refused():
    with pytest.raises(InputError, match="shape"):
        ss.gallery.lp_inverse(np.eye(3), np.ones(4), weight=1.0)
    with pytest.raises(InputError, match="pass D="):
        ss.gallery.lp_inverse(np.eye(1), np.ones(1), weight=1.0)
