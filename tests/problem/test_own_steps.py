"""Proximal steps of the caller's, of PyProximal and of ODL take the iterates of the functions of the catalogue."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse.linalg

import saddleslide as ss
from saddleslide.facts.facts import Facts
from saddleslide.oracles.oracles import Oracles
from saddleslide.problem.objectives import split_objective
from support import need

F, D = ss.functions, ss.domains
RNG = np.random.default_rng(11)
A, b, K = RNG.standard_normal((30, 12)), RNG.standard_normal(30), RNG.standard_normal((9, 12))


def _own():
    return F.Custom(prox=lambda c, t: np.sign(c) * np.maximum(abs(c) - t, 0.0), value=lambda x: abs(x).sum())


def _own_length():
    return F.Custom(
        prox=lambda c, t: max(1.0 - t / max(np.linalg.norm(c), 1e-300), 0.0) * c,
        value=lambda x: float(np.linalg.norm(x)),
    )


KINDS = {
    "own": lambda m: (_own(), F.L1()),
    "own norm": lambda m: (_own_length(), F.L2()),
    "own, moved": lambda m: (_own().translated(0.3 * np.ones(m)), F.L1().translated(0.3 * np.ones(m))),
    "PyProximal": lambda m: (F.from_pyproximal(need("pyproximal").L1(sigma=1.0)), F.L1()),
    "PyProximal, norm": lambda m: (F.from_pyproximal(need("pyproximal").Euclidean(sigma=0.7)), 0.7 * F.L2()),
    "PyProximal, groups": lambda m: (
        F.from_pyproximal(need("pyproximal").L21(ndim=3, sigma=1.0), (3, m // 3)),
        F.L21(axis=0),
    ),
    "ODL": lambda m: (F.from_odl(_odl().functionals.L1Norm(_odl().rn(m))), F.L1()),
    "ODL, norm": lambda m: (F.from_odl(_odl().functionals.L2Norm(_odl().rn(m))), F.L2()),
}


def _odl():
    need("odl.functionals")
    return need("odl")


def _iterates(objective, method, count=12):
    """Points of a method on the problem that an objective becomes, each flat."""
    problem = split_objective(objective, D.FullSpace(12)).problem
    oracles, facts = Oracles(problem), Facts(problem)
    start = np.linspace(-1.0, 1.0, 12), np.zeros(problem.Y.shape)
    state = method.init(oracles, facts, start, 1e-9)
    for _ in range(count):
        state = method.step(state, oracles)
        yield np.concatenate([part.ravel() for part in method.point(state, oracles)])


def _compare(objectives, method):
    both = [list(_iterates(objective, method)) for objective in objectives]
    np.testing.assert_allclose(both[0], both[1], rtol=0.0, atol=1e-12)
    assert np.ptp(both[0], axis=0).max() > 1e-2


@pytest.mark.parametrize("kind", [name for name in KINDS if "groups" not in name])
def test_simple_terms_take_the_same_iterates(kind):
    both = [F.LeastSquares(A, b) + 2.0 * h for h in KINDS[kind](12)]
    _compare(both, ss.methods.CondatVu(weight=0.7, output="last"))
    for count in (1, 2, 5, 12):
        one, other = (ss.minimize(f, rtol=1e-14, max_steps=count, method="adaptive") for f in both)
        np.testing.assert_allclose(one.x, other.x, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_terms_behind_operators_take_the_same_iterates(kind):
    """At one weight between the blocks: own code bounds no set that a weight could be taken from."""
    # Products by callables: rows of a matrix are scaled where steps are known to be entry by entry.
    products = scipy.sparse.linalg.LinearOperator(K.shape, matvec=lambda x: K @ x, rmatvec=lambda y: K.T @ y)
    behind = ss.operators.as_operator(products, y_shape=(3, 3) if "groups" in kind else (9,))
    both = [F.LeastSquares(None, b[:12]) + 2.0 * h @ behind for h in KINDS[kind](9)]
    for variant in ("plain", "restarted", "accelerated"):
        _compare(both, ss.methods.PDHG(variant=variant, output="last", weight=0.7))


def _penalty(name):
    library = need("pyproximal")
    made = {
        "L0": lambda: library.L0(),
        "L0Ball": lambda: library.L0Ball(4),
        "Log": lambda: library.Log(1.0, 2.0),
        "ETP": lambda: library.ETP(1.0, 2.0),
        "Geman": lambda: library.Geman(1.0, 2.0),
        "SCAD": lambda: library.SCAD(1.0, 3.7),
        "RelaxedMumfordShah": lambda: library.RelaxedMumfordShah(1.0, 1.0),
    }
    return F.from_pyproximal(made[name]())


@pytest.mark.parametrize("name", ["L0", "L0Ball", "Log", "ETP", "Geman", "SCAD", "RelaxedMumfordShah"])
def test_penalties_that_are_not_convex_are_noticed(name):
    """Also where a run without a bound would go on to its limit."""
    h = _penalty(name)
    for objective in (
        F.LeastSquares(A, b) + 2.0 * h,
        F.LeastSquares(A, b) + 2.0 * h @ K,
        F.LeastSquares(None, b[:12]) + 0.5 * h,
    ):
        result = ss.minimize(objective, max_steps=3000)
        assert result.status.name == "INCONSISTENT", (name, result.message)


@pytest.mark.parametrize("kind", ["own", "own norm", "PyProximal"])
def test_an_own_step_beside_squares_is_the_answer(kind):
    own, known = KINDS[kind](12)
    found, expected = (ss.minimize(F.LeastSquares(None, b[:12]) + 0.5 * h, tol=1e-9) for h in (own, known))
    assert found.status.name == "SOLVED" and found.objective == pytest.approx(expected.objective, rel=1e-12)
    np.testing.assert_allclose(found.x, expected.x, rtol=0.0, atol=1e-9)


def test_what_is_wrong_with_an_own_step_is_said():
    def shorten(center, step):
        return np.sign(center) * np.maximum(abs(center) - step, 0.0)

    deaf = F.Custom(prox=lambda center, step: shorten(center, 1.0), value=lambda x: abs(x).sum())
    false = F.Custom(prox=shorten, value=lambda x: 3.0 * abs(x).sum())
    for own, words in ((deaf, r"whose prox(center, step) uses its step"), (false, "value, gradient and prox of each")):
        result = ss.minimize(F.LeastSquares(A, b) + own)
        assert result.status.name == "INCONSISTENT" and words in result.message, result.message


@pytest.mark.parametrize("fault", [ZeroDivisionError, FloatingPointError, OverflowError])
def test_faults_of_own_steps_are_the_callers_to_see(fault):
    def step(center, step):
        raise fault("mine")

    h = F.Custom(prox=step, value=lambda x: abs(x).sum())
    for objective in (F.LeastSquares(A, b) + h, F.LeastSquares(A, b) + h @ K):
        with pytest.raises(fault, match="mine"):
            ss.minimize(objective)
