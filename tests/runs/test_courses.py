"""Plans that follow one another in one run: checkpoints on the way, a class of one's own, what `calls` means."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import saddleslide as ss
from plans import on_allowance
from saddleslide.methods.base import Description, Method, State

PRICES = (2.0, 3.0, 1.0)


def smooth(n=12):
    draw = np.random.default_rng(0).standard_normal
    f = ss.functions.LeastSquares(draw((30, n)) / 6, draw(30), ridge=0.1)
    g = ss.functions.LeastSquares(draw((30, n)) / 6, draw(30), ridge=0.1)
    free = ss.domains.FullSpace(n)
    return ss.SaddleProblem(f=f, g=g, B=draw((n, n)) / 9, X=free, Y=free)


def noisy():
    draw = np.random.default_rng(1).standard_normal
    f = ss.functions.Noisy(ss.functions.Quadratic(1.0) + ss.functions.Linear(draw(6)), 2.0)
    g, box, small = ss.functions.Noisy(ss.functions.Quadratic(0.5), 0.2), ss.domains.Box(-1.0, 1.0, shape=6), 4
    return ss.SaddleProblem(f=f, g=g, B=draw((4, 6)), X=box, Y=ss.domains.Box(-1.0, 1.0, shape=small))


def assert_same(one, other):
    assert one.x.tobytes() == other.x.tobytes() and one.y.tobytes() == other.y.tobytes()
    assert (one.status, one.calls, one.certificate_calls, one.counted) == (
        other.status, other.calls, other.certificate_calls, other.counted,
    )  # fmt: skip
    assert [(row.step, row.calls) for row in one.history] == [(row.step, row.calls) for row in other.history]
    assert [plan.method for plan in one.plans] == [plan.method for plan in other.plans]


@pytest.mark.parametrize("steps", [3, 40])
def test_a_method_on_its_allowance_is_taken_up_again(steps, tmp_path):
    problem = smooth()
    plan = on_allowance(problem, "mirror-prox", PRICES, 1e-6)
    whole = ss.run(problem, plan)
    assert [part.method for part in whole.plans] == ["mirror-prox", "adaptive sliding"]
    before = [row.step for row in whole.history if row.calls.B <= whole.history[-1].calls.B // 2]
    limit = min(steps, len(whole.history)) if steps < 10 else whole.history[-1].step - 2
    assert limit >= min(before)
    path = tmp_path / "run.npz"
    first = ss.run(problem, plan, max_steps=limit, checkpoint=path)
    assert first.status is ss.Status.STEP_LIMIT
    assert_same(ss.resume(path, smooth(), max_steps=10_000), whole)


def pairs(n=300):
    """Neighbours that are tied, which hardly feel a pull of their own: first-order steps take long."""
    f = ss.functions.Quadratic(1e-3) + ss.functions.Linear(np.random.default_rng(0).standard_normal(n))
    Y = ss.domains.Box(-20.0, 20.0, shape=n - 1)
    return ss.SaddleProblem(f=f, g=ss.functions.Zero(), B=np.diff(np.eye(n), axis=0), X=ss.domains.FullSpace(n), Y=Y)


def test_products_give_way_to_interior_points_where_they_get_on_slowly(tmp_path):
    whole = ss.solve(pairs(), reduction=1e-3)
    first = whole.plans[0]
    assert [plan.method for plan in whole.plans] == ["restarted primal-dual", "interior-point"] and whole.success
    assert first.on_allowance and first.alternatives[0][0] == "interior-point" and "then" in first.explain()
    # A part of the gap at the first start, not of that at the second.
    assert whole.plans[1].target.tol == whole.target and whole.plans[1].target.reduction == 0.0
    assert_same(ss.run(pairs(), first), whole)
    path = tmp_path / "run.npz"
    assert ss.solve(pairs(), reduction=1e-3, max_steps=1, checkpoint=path).status is ss.Status.STEP_LIMIT
    assert_same(ss.resume(path, pairs(), max_steps=10_000), whole)
    # Where the gap falls fast enough, they stay; where it has far to fall, they are not asked.
    assert [plan.method for plan in ss.solve(pairs(), reduction=1e-2).plans] == ["restarted primal-dual"]
    assert [plan.method for plan in ss.solve(pairs(), reduction=1e-4).plans] == ["interior-point"]


def test_the_accuracies_of_a_sampled_run_are_taken_up_again_and_replayed(tmp_path):
    whole = ss.solve(noisy(), tol=0.01, rng=3)
    assert whole.status is ss.Status.SOLVED and len(whole.plans) > 1
    path = tmp_path / "run.npz"
    first = ss.solve(noisy(), tol=0.01, rng=3, max_steps=round(0.7 * whole.history[-1].step), checkpoint=path)
    assert first.status is ss.Status.STEP_LIMIT
    assert_same(ss.resume(path, noisy(), max_steps=10**6), whole)
    assert_same(ss.run(noisy(), whole.plans[0], rng=3), whole)
    assert whole.samples.f == whole.method_calls.f


@dataclass
class Moved(State):
    x: np.ndarray
    y: np.ndarray


@dataclass(frozen=True, repr=False)
class Arrow(Method):
    """Arrow, Hurwicz and Uzawa's steps, as a caller may write them."""

    description = Description(name="arrow", needs=(), guarantee="None.", reference="1958")

    def init(self, oracles, facts, start, tol):
        return Moved(*start)

    def step(self, state, oracles):
        x = oracles.problem.X.project(state.x - 0.2 * (oracles.f_gradient(state.x) + oracles.adjoint(state.y)))
        y = oracles.problem.Y.project(state.y + 0.2 * (oracles.forward(x) - oracles.g_gradient(state.y)))
        return Moved(x, y)

    def point(self, state, oracles):
        return state.x, state.y


def test_a_method_of_ones_own_class_runs_like_any_other_and_stays_in_the_process():
    result = ss.solve(smooth(), tol=1e-4, method=Arrow())
    assert result.status is ss.Status.SOLVED and result.plans[0].method == "arrow"
    assert ss.plan(smooth(), tol=1e-4, method=Arrow()) == result.plans[0]
    with pytest.raises(ss.errors.InputError, match="class of your own"):
        result.plans[0].to_dict()


@pytest.mark.parametrize("need", ["smoth f", "smooth h", "bounded f", "f"])
def test_a_need_that_nobody_knows_is_named_with_its_method_and_those_that_are_known(need):
    class Needy(Arrow):
        description = replace(Arrow.description, needs=("smooth f", need))

    expected = f"method 'arrow': needs has '{need}'; expected of 'smooth f', .*'bounded X'.*'B = 0'"
    for ask in (ss.solve, ss.plan):
        with pytest.raises(ss.errors.InputError, match=expected):
            ask(smooth(), tol=1e-4, method=Needy())


@pytest.mark.parametrize("method, name", [(ss.methods.LBFGS, "memory"), (ss.methods.ADMM, "cg_steps")])
def test_absurd_whole_numbers_are_refused_before_arrays_of_their_size_are_made(method, name):
    for number in (0, 10**17, 10**400):
        with pytest.raises(ss.errors.InputError, match=rf"{name} is \d+; expected a whole number > 0 and <= "):
            ss.solve(smooth(), tol=1e-4, method=method(**{name: number}))


def test_calls_are_judging_making_the_plan_and_the_method():
    problem = smooth()
    plan = ss.plan(problem, tol=1e-3, regime="restarts")
    result = ss.run(problem, plan)
    parts = result.certificate_calls + result.method_calls + result.aside
    assert result.calls == parts and result.aside == ss.Calls(*plan.spent) and plan.spent[0] > 0
    assert result.history[-1].calls.f <= result.calls.f
