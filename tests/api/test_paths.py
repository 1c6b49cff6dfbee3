"""Starts from earlier results, and chains of them: what they save, and that no claim rests on them."""

import re
from pathlib import Path

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.errors import InputError
from saddleslide.facts.facts import Facts
from saddleslide.methods.base import Former
from saddleslide.methods.restarted_primal_dual import RestartedPrimalDual
from saddleslide.oracles.oracles import Oracles

F = ss.functions


def lasso(seed=0, rows=200, columns=100, values=20):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rows, columns))
    A[:, 1:] = 0.6 * A[:, :-1] + 0.8 * A[:, 1:]
    b = A @ np.where(rng.uniform(size=columns) < 0.1, rng.standard_normal(columns), 0.0)
    b = b + 0.5 * rng.standard_normal(rows)
    weights = np.abs(A.T @ b).max() * np.geomspace(0.5, 0.01, values)
    data = F.LeastSquares(A, b)
    return [data + weight * F.L1() for weight in weights], A, b, weights


def pictures(values=20, n=16):
    """Total variation on a scan, over one and a half decades of its weight."""
    scanner = ss.gallery.parallel_beam(n, np.linspace(0.0, np.pi, n, endpoint=False), bins=n + 7)
    A = scanner.A.matrix / 10.0
    b = A @ ss.gallery.phantom(0, n).ravel() + 0.01 * np.random.default_rng(1).standard_normal(A.shape[0])
    data, D = F.LeastSquares(A, b, 1e-4, x_shape=(n, n)), ss.operators.FiniteDifferences((n, n))
    return [data + weight * F.L1() @ D for weight in np.geomspace(3e-2, 1e-3, values)]


@pytest.mark.parametrize(("objectives", "rtol", "part"), [(lasso()[0], 1e-4, 0.4), (pictures(), 1e-3, 0.55)])
def test_a_path_takes_a_part_of_the_calls_and_each_answer_is_right(objectives, rtol, part):
    """Pictures take 7 calls of f' each when cold, so that less is left to save: 3.7 on the way."""
    cold = [ss.minimize(objective, rtol=rtol, method="adaptive") for objective in objectives]
    found = ss.path(iter(objectives), rtol=rtol, method="adaptive")
    assert all(result.success for result in found)
    assert sum(result.calls.f for result in found) <= part * sum(result.calls.f for result in cold)
    for one, other in zip(found, cold, strict=True):
        # Two certified brackets of one number.
        assert max(one.lower, other.lower) <= min(one.objective, other.objective) * (1.0 + 1e-12)
    again = ss.path(objectives, rtol=rtol, method="adaptive")
    assert all(np.array_equal(one.x, other.x) for one, other in zip(found, again, strict=True))


def test_the_lasso_path_is_that_of_coordinate_descent():
    objectives, A, b, weights = lasso(3, 60, 30, 5)
    for result, weight in zip(ss.path(objectives, rtol=1e-7), weights, strict=True):
        x, r = np.zeros(30), b.copy()
        for _ in range(400):
            for j in range(30):
                pull = A[:, j] @ r + (A[:, j] @ A[:, j]) * x[j]
                new = np.sign(pull) * max(abs(pull) - weight, 0.0) / (A[:, j] @ A[:, j])
                r, x[j] = r - (new - x[j]) * A[:, j], new
        least = 0.5 * r @ r + weight * np.abs(x).sum()
        assert result.lower <= least * (1.0 + 1e-12) and result.objective <= least * (1.0 + 1e-6)


def test_what_was_learnt_is_handed_on():
    first, second = pictures(2)
    before = ss.minimize(first, rtol=1e-4)
    after = ss.minimize(second, rtol=1e-4, start=before)
    # The symbol was not fitted anew, and the same problem again needs next to nothing.
    assert np.array_equal(before.state.metric[0], after.state.metric[0])
    repeated = ss.minimize(first, rtol=1e-4, start=before)
    assert repeated.success and repeated.calls.f <= 4.0 < before.calls.f
    # Restarted steps begin with the weight that was found.
    rng = np.random.default_rng(2)
    game, near = (ss.gallery.matrix_game(rng.standard_normal((12, 15))) for _ in range(2))
    strategies = ss.solve(game, tol=1e-3, method="adaptive")
    method, former = RestartedPrimalDual(), Former(strategies.plans[-1], strategies.state)
    begun = method.take_over(former, Oracles(near), Facts(near), near.start(), 1e-3)
    assert begun.weight == strategies.state.weight
    assert begun.weight != method.init(Oracles(near), Facts(near), near.start(), 1e-3).weight


def test_no_claim_rests_on_the_start():
    """A result of another problem, far away: its bounds hold for that one alone."""
    near, far = lasso(4, 40, 20, 1)[0][0], lasso(5, 50, 20, 1)[0][0]
    wrong = ss.minimize(near, rtol=1e-8)
    found, cold = ss.minimize(far, rtol=1e-6, start=wrong), ss.minimize(far, rtol=1e-8)
    assert found.success and found.lower <= cold.objective and found.objective <= cold.objective * (1.0 + 2e-6)
    cut = ss.minimize(far, rtol=1e-9, start=wrong, max_steps=1)
    assert not cut.success and cut.lower <= cold.objective <= cut.upper


@pytest.mark.parametrize("unit", [1.0, 1.0j])
def test_an_array_is_a_first_x_of_minimize(unit):
    """From the solution little is left to do."""
    rng = np.random.default_rng(5)
    A, b = rng.standard_normal((30, 12)), unit * rng.standard_normal(30)
    objective = F.LeastSquares(A, b) + 2.0 * F.L1()
    far = ss.minimize(objective, rtol=1e-6, method="adaptive")
    near = ss.minimize(objective, rtol=1e-6, method="adaptive", start=far.x)
    assert near.success and near.calls.f < far.calls.f
    assert np.array_equal(near.x, ss.minimize(objective, rtol=1e-6, method="adaptive", start=far.x.copy()).x)
    with pytest.raises(InputError, match="start: x"):
        ss.minimize(objective, start=far.x[1:])


def test_a_start_that_does_not_fit_is_projected_or_refused():
    def problem(weight, n=6):
        return ss.SaddleProblem(
            f=F.LeastSquares(None, np.arange(float(n))), g=F.Zero(), B=np.eye(n), X=ss.domains.FullSpace(n),
            Y=ss.domains.Box(-weight, weight, shape=n),
        )  # fmt: skip

    wide = ss.solve(problem(5.0), tol=1e-8)
    narrow = ss.solve(problem(0.1), tol=1e-8, start=wide)
    assert narrow.success and np.abs(narrow.y).max() <= 0.1
    assert np.allclose(narrow.x, np.maximum(np.arange(6.0) - 0.1, 0.0), atol=1e-4)
    with pytest.raises(InputError, match=r"x of shape \(6,\); expected \(7,\)"):
        ss.solve(problem(1.0, 7), tol=1e-3, start=wide)
    with pytest.raises(InputError, match="path: received int; expected problems"):
        ss.path([3])
    plan = ss.plan(problem(0.1), tol=1e-8)
    assert ss.run(problem(0.1), plan, start=wide).success


def test_a_resumed_run_from_a_result_has_the_same_bits(tmp_path):
    first, second = pictures(2)
    before, file = ss.minimize(first, rtol=1e-3), tmp_path / "run.npz"
    whole = ss.minimize(second, rtol=1e-6, start=before)
    cut = ss.minimize(second, rtol=1e-6, start=before, max_steps=3, checkpoint=file)
    resumed = ss.resume(file, cut.problem, max_steps=1000)
    assert cut.status.name == "STEP_LIMIT" and np.array_equal(resumed.x, whole.x)
    assert resumed.calls == whole.calls


def test_the_page_runs():
    page = (Path(__file__).parents[2] / "docs" / "paths.md").read_text(encoding="utf-8")
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.S):
        exec(compile(block, "paths.md", "exec"), names)
    assert len(names["results"]) == 20 and all(result.success for result in names["results"])
    assert names["second"].success and names["second"].calls.f < names["first"].calls.f
