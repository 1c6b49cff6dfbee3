"""A method that auto preferred and that does not keep its prediction: adaptive sliding goes on, and nothing is lost."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path

import numpy as np

import saddleslide as ss
from plans import on_allowance
from saddleslide.api.runner import carry_out
from saddleslide.facts.facts import Facts
from saddleslide.planner.courses import PATIENCE
from saddleslide.planner.forecast import predict, predict_adaptive
from saddleslide.runs.control import Control
from saddleslide.theory.plan import weigh_calls

PRICES = (2.0, 3.0, 1.0)


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def smooth(n=20):
    f = ss.functions.LeastSquares(normal(0, 40, n) / 6, normal(1, 40), ridge=0.1)
    g = ss.functions.LeastSquares(normal(2, 40, n) / 6, normal(3, 40), ridge=0.1)
    free = ss.domains.FullSpace(n)
    return ss.SaddleProblem(f=f, g=g, B=normal(4, n, n) / 9, X=free, Y=free)


def outside():
    """Linear constraints whose multiplier lies far outside Y: OPAPC does not converge to the solution."""
    f, Y = ss.functions.Quadratic(np.diag(np.linspace(1.0, 9.0, 12))), ss.domains.Ball(0.05, shape=3)
    return ss.SaddleProblem(f=f, g=ss.functions.Linear(np.ones(3)), B=normal(9, 3, 12), X=ss.domains.FullSpace(12), Y=Y)


def cost(calls):
    return weigh_calls({"f": calls.f, "g": calls.g, "B": calls.B}, PRICES)


def tried(problem, name, tol=1e-6, reduction=0.0, max_calls=None, max_steps=10_000, callback=None, start=None):
    asked = Control(max_calls or {}, max_steps, callback=callback)
    return carry_out(problem, on_allowance(problem, name, PRICES, tol, reduction), start, asked)


def switched(problem, name):
    """The result, and the last moment of the first method."""
    alone = []
    result = tried(problem, name, callback=lambda at: alone.append(at) if len(at.plans) == 1 else None)
    return result, alone[-1]


def test_a_slow_method_spends_its_allowance_and_adaptive_sliding_finishes():
    problem = smooth()
    result, last = switched(problem, "mirror-prox")
    assert [plan.method for plan in result.plans] == ["mirror-prox", "adaptive sliding"]
    assert result.status is ss.Status.SOLVED
    assert ss.certify(problem, result.x, result.y).gap <= 1e-6
    assert any("mirror-prox had a gap of" in reason for reason in result.plans[1].reasons)
    allowance = PATIENCE * predict_adaptive(Facts(problem), 1e-6, PRICES).cost
    # Inspections are spaced: the allowance is overdrawn by a part of itself at most.
    assert allowance < cost(last.calls) <= 1.2 * allowance
    alone = ss.solve(problem, tol=1e-6, method="adaptive", costs=PRICES)
    assert cost(result.calls) <= cost(last.calls) + 1.1 * cost(alone.calls)


def test_a_method_that_stands_still_is_left_early():
    allowance = PATIENCE * predict_adaptive(Facts(smooth()), 1e-6, PRICES).cost
    result, last = switched(smooth(), "condat-vu")
    assert 0.1 * allowance < cost(last.calls) < 0.4 * allowance
    assert result.status is ss.Status.SOLVED


def test_the_second_run_starts_at_the_best_point_of_the_first():
    result, last = switched(smooth(), "apdg")
    alone = ss.solve(smooth(), tol=1e-6, method="adaptive", costs=PRICES)
    assert result.history[-1].step - last.history[-1].step < 0.7 * alone.history[-1].step


def test_histories_calls_and_judging_are_those_of_both_runs():
    seen = []
    result = tried(smooth(), "condat-vu", callback=lambda at: seen.append((at.calls, at.gap, len(at.plans))))
    steps = [at.step for at in result.history]
    assert steps == sorted(steps)
    calls = [at.calls for at in result.history]
    assert all(a.f <= b.f and a.g <= b.g and a.B <= b.B for a, b in pairwise(calls))
    gaps = [at.gap for at in result.history]
    assert all(b <= a for a, b in pairwise(gaps))
    assert [entry[0] for entry in seen] == calls
    assert {entry[2] for entry in seen} == {1, 2}
    assert result.certificate_calls.f < result.calls.f


def test_auto_uses_it():
    """OPAPC is predicted to be cheaper; its multiplier lies outside Y, which shows only on the way."""
    result = ss.solve(outside(), tol=1e-6, costs=(1.0, 1.0, 1.0))
    assert [plan.method for plan in result.plans] == ["opapc", "adaptive sliding"]
    assert result.status is ss.Status.SOLVED
    # It stands still, and is stopped long before its allowance is spent: nearly nothing is lost.
    alone = ss.solve(outside(), tol=1e-6, method="adaptive", costs=(1.0, 1.0, 1.0))
    assert result.calls.f + result.calls.B <= 2.0 * (alone.calls.f + alone.calls.B)
    assert result.calls.f + result.calls.B < predict_adaptive(Facts(outside()), 1e-6, (1.0, 1.0, 1.0)).cost
    again = ss.solve(outside(), tol=1e-6, costs=(1.0, 1.0, 1.0))
    assert again.x.tobytes() == result.x.tobytes()
    assert again.calls == result.calls
    # A method that was asked for by name is left alone.
    named = ss.solve(outside(), tol=1e-6, method="opapc", max_steps=300)
    assert [plan.method for plan in named.plans] == ["opapc"]
    assert named.status is ss.Status.STEP_LIMIT


def test_a_relative_target_becomes_the_same_absolute_one():
    result = tried(smooth(), "condat-vu", tol=0.0, reduction=1e-7)
    assert result.target == ss.solve(smooth(), reduction=1e-7, method="condat-vu", max_steps=1).target
    assert len(result.plans) == 2
    assert result.gap <= result.target


def test_limits_hold_for_both_runs_together():
    problem = smooth()
    whole = tried(problem, "condat-vu")
    between = whole.history[-1].calls.B - 40
    limited = tried(problem, "condat-vu", max_calls={"B": between})
    assert limited.status is ss.Status.CALL_LIMIT
    assert between + 60 >= limited.calls.B
    assert math.isfinite(limited.gap)
    short = tried(problem, "condat-vu", max_steps=whole.history[-1].step - 2)
    assert short.status is ss.Status.STEP_LIMIT
    assert short.history[-1].step <= whole.history[-1].step - 2


def test_a_callback_that_stops_is_not_taken_for_a_method_that_failed():
    def stop(result):
        raise StopIteration

    result = tried(smooth(), "condat-vu", callback=stop)
    assert result.status is ss.Status.STOPPED
    assert len(result.plans) == 1


def test_a_method_that_ends_early_is_followed_too():
    f = ss.functions.Quadratic(np.full(30, 0.5)) + ss.functions.Linear(normal(5, 30))
    X, Y = ss.domains.Box(-1.0, 1.0, shape=30), ss.domains.Box(-1.0, 1.0, shape=20)
    problem = ss.SaddleProblem(f=f, g=ss.functions.Linear(normal(6, 20)), B=normal(7, 20, 30), X=X, Y=Y)
    ends = on_allowance(problem, "accelerated-mirror-prox", PRICES, 1e-6, horizon=3)
    result = carry_out(problem, ends, None, Control())
    assert result.status is ss.Status.SOLVED
    assert any("ended with COMPLETED" in reason for reason in result.plans[1].reasons)


def test_the_committed_measurement_of_forced_methods_is_what_the_page_says():
    root = Path(__file__).parents[2]
    found = json.loads((root / "benchmarks" / "results" / "allowance.json").read_text(encoding="utf-8"))
    ratios = [entry["ratio"] for row in found["rows"].values() for entry in row.values()]
    went_on = sum(entry["went on"] for row in found["rows"].values() for entry in row.values())
    page = (root / "docs" / "choice.md").read_text(encoding="utf-8")
    sentence = f"of {len(ratios)} runs adaptive sliding had to\nfinish {went_on}; all reached the target, at "
    assert sentence + f"{sorted(ratios)[36] / 2 + sorted(ratios)[37] / 2:.2f} times" in page
    assert f"within 2 times in {sum(r <= 2.0 for r in ratios)},\nwithin 3.1 in {sum(r <= 3.1 for r in ratios)}." in page


def constraints_met_at_the_start():
    """Linear constraints, and the saddle point of them; auto prefers OPAPC at equal prices."""
    B, q, y = normal(9, 3, 12), np.linspace(1.0, 9.0, 12), np.array([0.1, -0.2, 0.3])
    x = -(B.T @ y) / q
    f, g, Y = ss.functions.Quadratic(np.diag(q)), ss.functions.Linear(B @ x), ss.domains.Ball(2.0, shape=3)
    return ss.SaddleProblem(f=f, g=g, B=B, X=ss.domains.FullSpace(12), Y=Y), (x, y)


def test_a_relative_target_at_an_optimal_start_is_an_outcome():
    """A part of a gap of 0 is 0: met where the bounds coincide, else below rounding; no prediction divides by it."""
    problem, optimum = constraints_met_at_the_start()
    for name in ("auto", "adaptive", "condat-vu", "opapc", "mirror-prox"):
        found = ss.solve(problem, reduction=1e-3, method=name, start=optimum, costs=(1.0, 1.0, 1.0))
        assert found.target < 1e-16
        assert found.status is (ss.Status.SOLVED if found.gap <= found.target else ss.Status.NUMERICAL_LIMIT)
        assert found.gap < 1e-12
    chosen = ss.solve(problem, reduction=1e-3, start=optimum, costs=(1.0, 1.0, 1.0))
    assert chosen.plans[0].method == "opapc"
    zero = ss.functions.Zero()
    flat = ss.SaddleProblem(f=zero, g=zero, B=np.zeros((2, 3)), X=ss.domains.Simplex(3), Y=ss.domains.Simplex(2))
    for row in (predict_adaptive(Facts(problem), 0.0, PRICES), predict("mirror-prox", Facts(flat), 0.0, PRICES)):
        assert row.bound is None and math.isinf(row.cost)


def boxed_at_its_optimum():
    """Costly f and g on boxes, where the sliding methods of the paper apply, and the saddle point."""
    B, S, x = normal(9, 4, 4), np.diag([1.0, 2.0, 3.0, 4.0]), np.array([0.1, 0.2, -0.3, 0.4])
    y, box = -x[::-1], ss.domains.Box(-1.0, 1.0, shape=4)
    f = ss.functions.Quadratic(S) + ss.functions.Linear(-(S @ x + B.T @ y))
    g = ss.functions.Quadratic(S) + ss.functions.Linear(-(S @ y - B @ x))
    return ss.SaddleProblem(f=f, g=g, B=B, X=box, Y=box), (x, y)


def test_plans_are_not_asked_for_a_part_of_rounding():
    problem, optimum = boxed_at_its_optimum()
    for name in ("recursive-sliding", "proved-sliding", "two-level-sliding", "lockstep"):
        found = ss.solve(problem, reduction=1e-3, method=name, start=optimum)
        assert found.status is ss.Status.NUMERICAL_LIMIT
        assert 0.0 <= found.gap < 1e-12
    noisy = ss.SaddleProblem(
        f=ss.functions.Noisy(problem.f, 0.1), g=problem.g, B=problem.coupling, X=problem.X, Y=problem.Y
    )
    found = ss.solve(noisy, reduction=1e-3, start=optimum)
    assert found.status is (ss.Status.SOLVED if found.gap <= found.target else ss.Status.NUMERICAL_LIMIT)
    assert found.gap < 1e-12
    assert found.samples.total == 0
