"""`ss.plan` as a whole: the cheapest of the theorems' plans and adaptive sliding, and plans as data."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.errors import InputError
from saddleslide.planning.plan import weighted_cost

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
    assert result.gap <= 1e-3 and ss.exact_gap(problem, result.x, result.y).gap <= 1e-3


def test_prices_decide_between_the_regimes():
    problem = ridge()
    dear_products = ss.plan(problem, 1e-2, costs=(1.0, 1.0, 1e4))
    dear_gradients = ss.plan(problem, 1e-2, costs=(1e4, 1.0, 1.0))
    assert dear_products.regime != dear_gradients.regime == "adaptive"


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
    with pytest.raises(InputError, match="regime is 'fast'; expected 'auto', 'adaptive' or one of"):
        ss.plan(problem, 0.3, regime="fast")


def test_metrics_of_x_are_for_adaptive_sliding_unless_a_theorem_is_named():
    problem = ridge()
    weights = ss.metrics.Diagonal(np.arange(1.0, 7.0))
    assert ss.plan(problem, 1e-3, metric=weights).regime == "adaptive"
    assert ss.plan(problem, 1e-3, metric="blocks").metric == "blocks"
    assert ss.plan(problem, 0.5, metric=weights, regime="degenerate").given is not None


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
