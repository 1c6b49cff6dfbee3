"""Methods that leave their best point by orders of magnitude are stopped, and ADMM does not."""

import math

import numpy as np
import pytest

import saddleslide as ss
from arena import Driven

F, D = ss.functions, ss.domains


def bowl():
    f, g = F.Quadratic([1.0, 2.0]) + F.Linear([1.0, -1.0]), F.Quadratic(1.0)
    return ss.SaddleProblem(f=f, g=g, B=np.array([[1.0, 0.5]]), X=D.FullSpace(2), Y=D.FullSpace(1))


def led_astray(monkeypatch, offset, method="mirror-prox"):
    """A method whose point is moved away from where it stands by `offset` of the iteration."""
    kind = ss.methods.by_name[method]
    point = kind.point

    def moved(self, state, oracles):
        x, y = point(self, state, oracles)
        # The mean counts the iterations.
        return x + offset(round(state.mean.weight)), y

    monkeypatch.setattr(kind, "point", moved)
    return {"method": method, "options": {"output": "last"}}


def test_a_method_that_runs_away_is_stopped_with_its_best_point(monkeypatch, tmp_path):
    asked = led_astray(monkeypatch, lambda turn: 0.0 if turn <= 20 else float(turn))
    result = ss.solve(bowl(), tol=1e-30, max_steps=100_000, **asked)
    assert result.status is ss.Status.COMPLETED and not result.success
    assert "left its best point" in result.message
    assert result.gap == min(moment.gap for moment in result.history)
    assert result.gap >= 0.99 * ss.certify(bowl(), result.x, result.y).gap
    assert 40 <= result.history[-1].step <= 1000
    # Bounds are true, and those of the best point.
    saddle = ss.solve(bowl(), tol=1e-12)
    assert result.lower <= saddle.upper and saddle.lower <= result.upper and result.gap < 1e-2
    # The same bits where the run is cut in two while it is astray.
    place = tmp_path / "run.npz"
    ss.solve(bowl(), tol=1e-30, max_steps=60, checkpoint=place, **asked)
    again = ss.resume(place, bowl(), max_steps=100_000)
    assert (again.status, again.message, again.gap) == (result.status, result.message, result.gap)
    assert again.x.tobytes() == result.x.tobytes() and again.calls == result.calls
    assert [moment.gap for moment in again.history] == [moment.gap for moment in result.history]


def test_a_method_that_comes_back_is_not_stopped(monkeypatch):
    """A long way round is no running away, while its gaps fall."""
    asked = led_astray(monkeypatch, lambda turn: 0.0 if turn <= 20 else 1e4 * 0.98**turn)
    result = ss.solve(bowl(), tol=1e-9, max_steps=5000, **asked)
    assert result.status is ss.Status.SOLVED
    assert result.history[-1].step > 100


def constrained():
    """Bx = b by free multipliers: no upper bound is finite. The solution comes along."""
    B, b = np.array([[1.0, 0.5, 0.2], [0.0, 1.0, -0.3]]), np.array([1.0, 2.0])
    problem = ss.SaddleProblem(f=F.Quadratic(1.0), g=F.Linear(b), B=B, X=D.FullSpace(3), Y=D.FullSpace(2))
    return problem, np.linalg.lstsq(B, b, rcond=None)[0]


@pytest.mark.parametrize("method", ["mirror-prox", "condat-vu"])
def test_a_method_without_bounds_that_runs_away_is_stopped_where_it_had_settled(method, monkeypatch, tmp_path):
    problem, x = constrained()
    asked = led_astray(monkeypatch, lambda turn: 0.0 if turn <= 40 else 1e5 * turn, method)
    result = ss.solve(problem, tol=1e-9, radius=0.0, **asked)
    assert (result.status, result.upper) == (ss.Status.COMPLETED, math.inf)
    assert "left its best point" in result.message and "last point" not in result.message
    assert not result.success
    assert np.abs(result.x - x).max() < 0.05
    assert result.history[-1].step < 256
    # The same bits where the run is cut in two while it is astray.
    place = tmp_path / "run.npz"
    cut = ss.solve(problem, tol=1e-9, radius=0.0, max_steps=60, checkpoint=place, **asked)
    assert np.abs(cut.x).max() > 1e5
    again = ss.resume(place, problem, max_steps=100_000)
    assert (again.status, again.message, again.calls) == (result.status, result.message, result.calls)
    assert again.x.tobytes() == result.x.tobytes() and again.y.tobytes() == result.y.tobytes()


@pytest.mark.parametrize("offset", [lambda turn: 0.0, lambda turn: 1e5 if turn > 60 else 0.0, lambda turn: 1e3 * turn])
def test_points_without_bounds_that_settle_or_move_evenly_are_not_stopped(offset, monkeypatch):
    """Not the true ones, nor those that settle elsewhere, nor those that have never settled anywhere."""
    result = ss.solve(constrained()[0], tol=1e-9, radius=0.0, **led_astray(monkeypatch, offset))
    assert result.status is ss.Status.NO_CERTIFICATE
    assert result.history[-1].step >= 256


def penalised(seed, kind, cond, mu, scale):
    """Random least squares of a given condition with a coupling that is much stronger or weaker."""
    rng = np.random.default_rng(seed)
    n, m, k = (int(rng.integers(10, 30)) for _ in range(3))
    u, s, v = np.linalg.svd(rng.standard_normal((m, n)), full_matrices=False)
    A = (u * np.logspace(0.0, -math.log10(cond), s.size)) @ v
    f = F.LeastSquares(A, 30.0 * rng.standard_normal(m)) + F.Quadratic(mu)
    g = F.Zero() if kind == "box" else F.Linear(rng.standard_normal(k))
    Y = D.Box(-1.0, 1.0, shape=k) if kind == "box" else D.Box(-10.0, 10.0, shape=k)
    return ss.SaddleProblem(f=f, g=g, B=scale * rng.standard_normal((k, n)), X=D.FullSpace(n), Y=Y)


INSTANCES = [(0, "box", 1.5, 0.02, 30.0), (0, "tilted", 1e3, 0.02, 30.0), (1, "box", 1.5, 0.02, 30.0)]


@pytest.mark.parametrize("instance", INSTANCES)
def test_admm_stays_near_its_best_point(instance):
    """Its penalty rose without end where CG did not keep up, and the products that it sums up drifted away."""
    problem = penalised(*instance)
    driven = Driven(problem, "admm", None, 0.0)
    first, gaps = driven.state.rho, []
    for step in range(300):
        driven.step()
        if step % 20 == 0 or step > 250:
            (candidate,) = driven.candidates
            gaps.append(ss.certify(problem, candidate.x, candidate.y).gap)
            true = problem.coupling.forward(candidate.x)
            assert np.abs(candidate.Bx - true).max() <= 1e-13 * np.abs(true).max()
    assert max(gaps[-20:]) <= 1e4 * min(gaps) + 1e-9 * abs(ss.certify(problem, *driven.point).upper)
    assert driven.state.rho <= 1e9 * first


@pytest.mark.parametrize("seed", range(3))
def test_admm_stays_where_constraints_hold(seed):
    """No gap is finite there, and nothing but rounding is left to balance the penalty by."""
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((3, 6))
    b = B @ rng.standard_normal(6)
    problem = ss.SaddleProblem(f=F.Quadratic(1.0), g=F.Linear(b), B=B, X=D.FullSpace(6), Y=D.FullSpace(3))
    result = ss.solve(problem, tol=1e-6, radius=0.0, method="admm", max_steps=500)
    assert np.abs(result.x - np.linalg.lstsq(B, b, rcond=None)[0]).max() < 1e-9
