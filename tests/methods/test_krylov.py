"""Krylov steps: SciPy's MINRES, iterate by iterate; what a step calls; redundant equations; bounds that are met."""

import numpy as np
import pytest
import scipy

import saddleslide as ss
from saddleslide.errors import InputError
from saddleslide.facts.facts import Facts
from saddleslide.oracles.oracles import Oracles

F, D = ss.functions, ss.domains


def players(seed=0, n=9, m=7, coupling=1.0, X=None, Y=None):
    """Two quadratics on free spaces, and their equations K z = r written out."""
    rng = np.random.default_rng(seed)
    A, C = rng.standard_normal((n + 3, n)), rng.standard_normal((m + 3, m))
    b, e, B = rng.standard_normal(n + 3), rng.standard_normal(m + 3), coupling * rng.standard_normal((m, n))
    f, g = F.LeastSquares(A, b, ridge=0.1), F.LeastSquares(C, e) + F.Quadratic(0.2)
    problem = ss.SaddleProblem(f=f, g=g, B=B, X=X or D.FullSpace(n), Y=Y or D.FullSpace(m))
    H, G = A.T @ A + 0.1 * np.eye(n), C.T @ C + 0.2 * np.eye(m)
    return problem, np.block([[H, B.T], [B, -G]]), np.concatenate([A.T @ b, -C.T @ e])


@pytest.mark.parametrize("start", [0.0, 1.0])
def test_krylov_steps_are_those_of_minres(start):
    problem, K, r = players()
    method, oracles = ss.methods.Krylov(), Oracles(problem)
    first = np.full(9, start), np.full(7, start)
    state = method.init(oracles, Facts(problem), first, tol=1e-9)
    for k in range(1, 13):
        before = oracles.calls.f, oracles.calls.g, oracles.calls.B
        state = method.step(state, oracles)
        spent = tuple(
            now - then for now, then in zip((oracles.calls.f, oracles.calls.g, oracles.calls.B), before, strict=True)
        )
        assert spent == (1, 1, 2)
        z = scipy.sparse.linalg.minres(K, r, x0=np.concatenate(first), rtol=1e-300, maxiter=k)[0]
        assert state.z == pytest.approx(z, rel=1e-7, abs=1e-9)
        assert state.phibar == pytest.approx(np.linalg.norm(r - K @ state.z), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("coupling", [0.1, 1.0, 30.0])
def test_krylov_steps_solve_the_equations(coupling):
    problem, K, r = players(1, coupling=coupling)
    result = ss.solve(problem, tol=1e-9, method="krylov")
    assert result.status is ss.Status.SOLVED
    assert np.concatenate([result.x, result.y]) == pytest.approx(np.linalg.solve(K, r), abs=1e-4)
    assert result.method_calls.f <= 22 and result.plans[-1].method == "krylov"


def test_krylov_steps_take_equations_with_redundant_rows():
    rng = np.random.default_rng(3)
    A, b, E = rng.standard_normal((12, 8)), rng.standard_normal(12), rng.standard_normal((3, 8))
    E, h = np.vstack([E, E[0] + E[1]]), None
    h = E @ rng.standard_normal(8)
    problem = ss.SaddleProblem(
        f=F.LeastSquares(A, b), g=F.Linear(h), B=E, X=D.FullSpace(8), Y=D.Box(-100.0, 100.0, shape=4)
    )
    result = ss.solve(problem, tol=1e-9, method="krylov")
    N = scipy.linalg.null_space(E)
    x0 = np.linalg.lstsq(E, h, rcond=None)[0]
    x = x0 + N @ np.linalg.lstsq(A @ N, b - A @ x0, rcond=None)[0]
    assert result.success and result.x == pytest.approx(x, abs=1e-6)


def test_krylov_steps_claim_nothing_where_a_bound_is_met():
    problem, _, _ = players(2, X=D.Box(-0.05, 0.05, shape=9))
    result = ss.solve(problem, tol=1e-9, method="krylov")
    assert not result.success and result.lower <= result.upper and problem.X.contains(result.x)
    with pytest.raises(InputError, match="expected the full space, or a box whose bounds are not met"):
        ss.solve(players(X=D.Simplex(9))[0], tol=1e-6, method="krylov")
