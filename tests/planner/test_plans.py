"""`ss.plan` as a whole: the cheapest of the theorems' plans and adaptive sliding, and plans as data."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.errors import InputError
from saddleslide.theory.plan import weighted_cost
from support import gathered

F, D = ss.functions, ss.domains


def ridge(n=6, m=4, seed=0):
    rng = np.random.default_rng(seed)
    return ss.SaddleProblem(
        f=F.LeastSquares(rng.standard_normal((n + 2, n)), rng.standard_normal(n + 2), ridge=0.1),
        g=F.Quadratic(1.0),
        B=rng.standard_normal((m, n)),
        X=D.Box(-1.0, 1.0, shape=n),
        Y=D.Box(-1.0, 1.0, shape=m),
    )


def costs_of(plan):
    share = plan.expected_share if isinstance(plan, ss.RestartPlan) else 1.0
    return share * weighted_cost(plan.predicted_calls, plan.costs)


@pytest.mark.parametrize("prices", [(1.0, 1.0, 1.0), (100.0, 1.0, 1.0), (1.0, 1.0, 100.0)])
def test_the_automatic_plan_is_the_cheapest_by_its_own_prediction(prices):
    problem = ridge()
    chosen = ss.plan(problem, 1e-3, costs=prices)
    # Asked for by name, restarts may spend calls on Psi at the start, and are then predicted otherwise.
    rivals = [ss.plan(problem, 1e-3, costs=prices, regime=name) for name in ("degenerate", "adaptive")]
    assert costs_of(chosen) <= min(map(costs_of, rivals)) * (1.0 + 1e-12)
    names = [name for name, _ in chosen.alternatives]
    assert any("degenerate" in name for name in names) and any("simple" in name for name in names)
    result = ss.run(problem, chosen)
    assert result.gap <= 1e-3 and ss.certify(problem, result.x, result.y).gap <= 1e-3


def test_prices_decide_between_the_regimes():
    problem = ridge()
    dear_products = ss.plan(problem, 1e-2, costs=(1.0, 1.0, 1e4))
    dear_gradients = ss.plan(problem, 1e-2, costs=(1e4, 1.0, 1.0))
    assert dear_products.regime != dear_gradients.regime == "adaptive"
    # The plan of a theorem says why the better metrics were not used.
    assert "no spectral metric: X is Box" in dear_products.explain()


def test_the_adaptive_plan_is_what_solve_runs():
    problem = ridge()
    plan = ss.plan(problem, 1e-6, regime="adaptive", costs=(50.0, 1.0, 1.0))
    ran = ss.run(problem, plan)
    solved = ss.solve(problem, 1e-6, method="adaptive", costs=(50.0, 1.0, 1.0))
    assert np.array_equal(ran.x, solved.x) and ran.calls == solved.calls


def test_settings_of_the_theorems_leave_adaptive_sliding_out():
    problem = ridge()
    for settings in (
        {"proved": True}, {"kappa": 2.0}, {"constants": {"H_x": 50.0}}, {"simple": ("g",)}, {"factor": 2.0},
        {"inexact": {"f": (0.0, 50.0)}}, {"metric": "identity"}, {"order": "fgB"},
    ):  # fmt: skip
        assert ss.plan(problem, 0.3, **settings).regime in ("degenerate", "restarts")
    with pytest.raises(InputError, match="kappa, proved are settings of the theorems"):
        ss.plan(problem, 0.3, regime="adaptive", proved=True, kappa=2.0)
    with pytest.raises(InputError, match="regime is 'fast'; expected one of"):
        ss.plan(problem, 0.3, regime="fast")


def test_metrics_of_x_are_for_adaptive_sliding_unless_a_theorem_is_named():
    problem = ridge()
    weights = ss.metrics.Diagonal(np.arange(1.0, 7.0))
    assert ss.plan(problem, 1e-3, metric=weights).regime == "adaptive"
    assert ss.plan(problem, 1e-3, metric="blocks").metric == "blocks"
    assert ss.plan(problem, 0.5, metric=weights, regime="degenerate").given is not None


def quadratic_pair(X, Y, B=0.1, shift=0.0):
    n = X.size
    f = F.Quadratic(1.0) + F.Linear(np.full(n, shift))
    return ss.SaddleProblem(f=f, g=F.Quadratic(1.0), B=B * np.eye(n), X=X, Y=Y)


def test_psi_at_the_start_does_not_depend_on_the_units_of_the_metric():
    n = 2
    problem = ss.SaddleProblem(
        f=F.LeastSquares(np.eye(n), np.full(n, 3.0)), g=F.LeastSquares(np.eye(n), np.zeros(n)), B=1e-8 * np.eye(n),
        X=D.Box(-50.0, 50.0, shape=n), Y=D.Box(-1e-6, 1e-6, shape=n),
    )  # fmt: skip
    for scale in (1e-6, 1.0, 1e9):
        weights = ss.metrics.Diagonal(np.full(n, scale))
        plan = ss.plan(problem, 0.1, metric=weights, proved=True, interior=("x", "y"))
        assert plan.proved and plan.bound <= 0.1
        assert ss.run(problem, plan).gap <= plan.bound


@gathered("setting", [{"inexact": {"f": (0.0, 1.0)}}, {"constants": {"H_x": 1.0}}])
def test_declared_constants_are_euclidean_in_every_norm(setting):
    problem = ss.SaddleProblem(
        f=F.LeastSquares(np.eye(2), np.full(2, 3.0)), g=F.Zero(), B=1e-3 * np.eye(2),
        X=D.Box(-4.0, 4.0, shape=2), Y=D.Box(-0.1, 0.1, shape=2),
    )  # fmt: skip
    same_norm = ((1e-4, 1.0), ss.metrics.Diagonal(np.full(2, 1e-4)))
    plans = [ss.plan(problem, order="fgB", loops=(2, 1, 3), metric=metric, **setting) for metric in same_norm]
    for plan in plans:
        assert ss.run(problem, plan).gap <= plan.bound


def test_restarts_from_another_start_are_no_proof():
    problem = quadratic_pair(D.FullSpace(3), D.FullSpace(3))
    plan = ss.plan(problem, 0.1, regime="restarts", proved=True)
    assert plan.proved and plan.bound == 0.1
    used = ss.run(problem, plan, start=(np.full(3, 1e3), np.full(3, 1e3))).plans[0]
    assert not used.proved and math.isinf(used.bound)


def test_a_plan_is_proved_only_where_its_bound_meets_the_target():
    boxed = quadratic_pair(D.Box(-1.0, 1.0, shape=2), D.Box(-1.0, 1.0, shape=2), shift=2.0)
    plan = ss.plan(boxed, 0.5, regime="restarts", proved=True)
    assert plan.proof_constants and not plan.proved and math.isinf(plan.bound)
    assert "which bounds no gap here" in plan.explain()
    assert "nothing is proved beforehand" in ss.plan(boxed, 0.5, regime="restarts").explain()


def test_simple_terms_on_unbounded_sets_are_refused_with_advice():
    free = quadratic_pair(D.FullSpace(3), D.FullSpace(3))
    with pytest.raises(InputError, match="needs bounded domains"):
        ss.plan(free, 0.1, simple=("g",))
    with pytest.raises(InputError, match="simple has"):
        ss.plan(free, 0.1, simple=None)


def test_one_run_of_the_recursion_is_chosen_only_where_it_proves_the_target():
    rng = np.random.default_rng(5)
    for seed in range(6):
        chosen = ss.plan(ridge(seed=seed), 10.0 ** -rng.integers(1, 4))
        assert chosen.regime != "degenerate" or chosen.proved
    unknown = F.Custom(gradient=lambda x: 2.0 * x, value=lambda x: float(x @ x))
    problem = ss.SaddleProblem(f=unknown, g=F.Zero(), B=np.eye(3), X=D.Box(-1.0, 1.0, shape=3), Y=D.Ball(1.0, shape=3))
    assert ss.plan(problem, 1e-2).regime == "adaptive"


@gathered(
    ("settings", "message"),
    [
        ({"regime": "restarts", "kappa": 2.0}, "kappa has no meaning in regime 'restarts'"),
        ({"regime": "restarts", "metric": "levelwise"}, "metric has no meaning in regime 'restarts'"),
        ({"regime": "restarts", "metric": (3.0, 7.0)}, "metric has no meaning"),
        ({"regime": "degenerate", "anchors": True}, "anchors has no meaning in regime 'degenerate'"),
        ({"regime": "degenerate", "factor": 2.0}, "factor has no meaning"),
        ({"regime": "degenerate", "Psi0": 2.0}, "Psi0 has no meaning"),
        ({"interior": ("z",)}, "interior has"),
        ({"range_conditions": ("q",)}, "range_conditions has"),
        ({"constants": {"H_x": 1.0, "mu_x": 2.0}}, "mu_x is 2 and H_x is 1"),
    ],
)
def test_settings_that_would_be_ignored_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        ss.plan(ridge(), 0.1, **settings)


def test_functions_without_values_get_a_plan_of_a_theorem():
    quiet = F.Custom(gradient=lambda x: x, smoothness=ss.Holder(1.0, 1.0))
    problem = ss.SaddleProblem(f=quiet, g=F.Quadratic(1.0), B=np.eye(3), X=D.Ball(1.0, shape=3), Y=D.Ball(1.0, shape=3))
    assert ss.plan(problem, 0.5).regime == "degenerate"


def test_every_kind_of_plan_is_read_back_by_one_function():
    problem = ridge()
    plans = [ss.plan(problem, 1e-2, regime=name) for name in ("degenerate", "restarts", "adaptive")]
    plans += [ss.solve(problem, 1e-1, method="mirror-prox").plans[0]]
    for plan in plans:
        again = ss.plan_from_dict(json.loads(json.dumps(plan.to_dict())))
        assert again == plan and type(again) is type(plan)
        assert again.explain() == plan.explain()
    with pytest.raises(InputError, match=r"the data has \['colour'\]"):
        ss.plan_from_dict({"colour": 3})
    with pytest.raises(InputError, match="received list"):
        ss.plan_from_dict([])


def test_all_plans_of_ss_plan_share_their_words():
    problem = ridge()
    for name in ("degenerate", "restarts", "adaptive"):
        plan = ss.plan(problem, 1e-2, regime=name)
        assert plan.regime == name and set(plan.predicted_calls) == set("fgB") and plan.order
        assert plan.bound > 0.0 and plan.proved in (True, False) and math.isfinite(costs_of(plan))


def test_plans_of_the_theorems_make_every_step_they_have(monkeypatch):
    monkeypatch.setattr("saddleslide.api.runner.MOST_STEPS", 3)
    interval = ss.domains.Box([-1.0], [1.0])
    f = ss.functions.Power(1.0)
    problem = ss.SaddleProblem(f=f, g=f, B=np.array([[0.5]]), X=interval, Y=interval)
    planned = ss.run(problem, ss.plan(problem, 1.0, order="fgB", loops=(5, 1, 1), metric="identity"))
    assert planned.calls.f == 5
    assert ss.run(problem, ss.plan(problem, 1.0, order="fgB", loops=(5, 1, 1)), max_steps=2).calls.f == 2
