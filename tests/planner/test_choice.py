"""What auto stands for, the tables of compare, the crossover, and the committed measurements behind them."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.api.comparison import break_even
from saddleslide.facts.facts import Facts
from saddleslide.planner.choice import choose
from saddleslide.planner.forecast import ADAPTIVE, SHARES, kind_of, predict, predict_adaptive, predictions, rivals_on
from saddleslide.theory.plan import weigh_calls
from support import CountedProblem, chosen, gathered

ZERO = ss.functions.Zero()
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
DOCS = Path(__file__).parents[2] / "docs"
ONES = (1.0, 1.0, 1.0)


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def smooth(n=20):
    """Both functions smooth, strongly convex and without proximal steps, on the full space."""
    f = ss.functions.LeastSquares(normal(0, 40, n) / 6, normal(1, 40), ridge=0.1)
    g = ss.functions.LeastSquares(normal(2, 40, n) / 6, normal(3, 40), ridge=0.1)
    free = ss.domains.FullSpace(n)
    return ss.SaddleProblem(f=f, g=g, B=normal(4, n, n) / 9, X=free, Y=free)


def clipped():
    """Both functions simple, f strongly convex, g linear on a box: a smooth dual. No entries of B, so no factor."""
    matrix = normal(7, 20, 30)
    B = ss.operators.as_operator((lambda x: matrix @ x, lambda y: matrix.T @ y), x_shape=30, y_shape=20)
    f = ss.functions.Quadratic(np.full(30, 0.5)) + ss.functions.Linear(normal(5, 30))
    X, Y = ss.domains.Box(-1.0, 1.0, shape=30), ss.domains.Box(-1.0, 1.0, shape=20)
    return ss.SaddleProblem(f=f, g=ss.functions.Linear(normal(6, 20)), B=B, X=X, Y=Y)


def game():
    simplex = ss.domains.Simplex(6)
    return ss.SaddleProblem(f=ZERO, g=ZERO, B=normal(8, 6, 6), X=simplex, Y=simplex)


def constrained():
    f, Y = ss.functions.Quadratic(np.diag(np.linspace(1.0, 9.0, 12))), ss.domains.Ball(50.0, shape=3)
    return ss.SaddleProblem(f=f, g=ss.functions.Linear(np.ones(3)), B=normal(9, 3, 12), X=ss.domains.FullSpace(12), Y=Y)


def test_dear_products_take_apdg_and_dear_gradients_do_not():
    assert choose(Facts(smooth()), 1e-5, 0.0, (1.0, 1.0, 100.0), estimated=False).method == "apdg"
    assert choose(Facts(smooth()), 1e-5, 0.0, (1000.0, 1000.0, 1.0), estimated=False).method == ADAPTIVE


def test_a_smooth_dual_takes_l_bfgs_where_products_have_a_price():
    assert choose(Facts(clipped()), 1e-6, 0.0, (1.0, 1.0, 1e5), estimated=False).method == "l-bfgs"
    # Estimated prices ask for interior points or products alone, whatever other methods promise.
    assert choose(Facts(clipped()), 1e-6, 0.0, (1.0, 1.0, 1.0), estimated=True).method in ("interior-point", ADAPTIVE)


def test_simple_problems_are_planned_by_counts_alone_without_calls_or_norms():
    rng = np.random.default_rng(0)
    E, b, c = rng.standard_normal((10, 30)), rng.standard_normal(10), rng.random(30)
    X, Y = ss.domains.NonNegative(30), ss.domains.FullSpace(10)
    program = ss.SaddleProblem(f=ss.functions.Linear(c), g=ss.functions.Linear(b), B=E, X=X, Y=Y)
    own = ss.SaddleProblem(program.f, program.g, ss.operators.as_operator((E.dot, E.T.dot), (30,), (10,)), X, Y)
    picture = ss.gallery.denoise(rng.random((64, 64)), weight=0.1)
    for problem, rtol, method in (
        (program, 1e-6, "interior-point"),
        (own, 1e-6, "restarted primal-dual"),
        (picture, 1e-4, "restarted primal-dual"),
    ):
        plan = ss.plan(problem, rtol=rtol)
        assert (plan.method, plan.spent) == (method, (0, 0, 0))
        assert "norm" not in problem.coupling.__dict__ and "expected to take about" in plan.reasons[0] + plan.explain()


def test_l_bfgs_is_predicted_by_a_linear_rate_where_the_primal_is_strongly_convex():
    f, g = ss.functions.Quadratic(1.0), ss.functions.Quadratic(0.5) + ss.functions.Linear(normal(1, 80))
    X, Y = ss.domains.Box(-5.0, 5.0, shape=15), ss.domains.Box(-1.0, 1.0, shape=80)
    problem = ss.SaddleProblem(f=f, g=g, B=normal(2, 80, 15), X=X, Y=Y)
    bounds = [ss.methods.by_name["l-bfgs"]().calls(Facts(problem), tol).B for tol in (1e-4, 1e-8)]
    assert bounds[1] < 2 * bounds[0]
    auto, alone = (ss.solve(problem, 1e-5, costs=ONES, method=name) for name in ("auto", ADAPTIVE))
    assert auto.plans[0].method == "l-bfgs"
    assert 1.5 * sum((auto.calls.f, auto.calls.g, auto.calls.B)) < alone.calls.B


def fused():
    """One costly function, and a g that is not linear: OPAPC does not apply."""
    f = ss.functions.LeastSquares(normal(10, 30, 12), normal(11, 30), ridge=0.1)
    Y = ss.domains.Box(-1.0, 1.0, shape=3)
    return ss.SaddleProblem(f=f, g=ss.functions.Quadratic(0.1), B=normal(9, 3, 12), X=ss.domains.FullSpace(12), Y=Y)


@pytest.mark.parametrize("targets", [(1e-6, 0.0), (0.0, 1e-4)])
def test_a_gradient_for_the_distance_is_spent_only_where_it_may_change_the_choice(targets):
    assert chosen(fused(), *targets, ONES) == (ADAPTIVE, ss.Calls(0, 0, 0))
    # With dear products a method of few iterations wins where the start meets the target or nearly; here it does not.
    assert chosen(fused(), *targets, (1.0, 1.0, 1e6)) == (ADAPTIVE, ss.Calls(int(targets[0] > 0.0), 0, 0))


def test_a_method_that_is_far_too_dear_at_the_farthest_distance_is_asked_at_the_nearest():
    """Condat-Vu would win next to the solution, for a relative target too: so the distance is measured."""
    g = ss.functions.LeastSquares(normal(0, 7, 4), normal(1, 7), ridge=1e-3)
    X, Y = ss.domains.Ball(0.1, shape=3), ss.domains.Box(-0.5, 0.5, shape=4)
    problem = ss.SaddleProblem(f=ss.functions.Power(0.0), g=g, B=1e-3 * normal(2, 4, 3), X=X, Y=Y)
    assert chosen(problem, 0.0, 1e-5, (1.0, 1.0, 1e3))[1].g == 1


@pytest.mark.parametrize("exponents", [(1.0, 1.0), (1.0, 0.25), (0.5, 0.5)])
@gathered("largest", [0.6, 2.0, 200.0])
def test_no_bound_asks_for_less_than_what_is_quickly_found(exponents, largest):
    problem = ss.gallery.synthetic(*exponents, d=20, sigma_max=largest)
    asked = [method for method in (kind() for kind in ss.methods.by_name.values()) if not method.lacks(Facts(problem))]
    quick = 0
    for method, tol in itertools.product(asked, (100.0, 1.0, 1e-2, 1e-4)):
        fewest, calls = method.fewest_calls(Facts(problem), tol), method.calls(Facts(problem), tol)
        quick += fewest is not None and fewest.B > 0
        assert calls is None or (fewest.f <= calls.f and fewest.g <= calls.g and fewest.B <= calls.B)
    assert quick >= 4


def test_what_is_quickly_found_promises_nothing_on_full_spaces_or_for_linear_rates():
    for name in ("accelerated-mirror-prox", "mirror-prox", "mirror-prox-sliding", "universal-mirror-prox"):
        assert ss.methods.by_name[name]().fewest_calls(Facts(smooth()), 1e-3) is ss.methods.by_name[name]().calls(
            Facts(smooth()), 1e-3
        )
    box, q = ss.domains.Box(-1.0, 1.0, shape=3), ss.functions.Quadratic(np.diag([1.0, 2.0, 3.0]))
    problem = ss.SaddleProblem(f=q, g=q, B=np.eye(3), X=box, Y=box)
    mean, last = (ss.methods.by_name["mirror-prox"](output=output) for output in ("average", "last"))
    assert last.fewest_calls(Facts(problem), 1e-8) == ss.Calls()
    assert last.calls(Facts(problem), 1e-8).B < mean.fewest_calls(Facts(problem), 1e-8).B


@pytest.mark.parametrize("point", ["X", "Y"])
def test_nothing_quickly_found_is_claimed_where_a_domain_is_a_single_point(point):
    box = {"X": ss.domains.Box(-1e4, 1e4, shape=3), "Y": ss.domains.Box(-1e4, 1e4, shape=3)}
    box[point] = ss.domains.Box(0.5, 0.5, shape=3)
    problem = ss.SaddleProblem(f=ss.functions.Linear(np.ones(3)), g=ss.functions.Power(0.75), B=1e4 * np.eye(3), **box)
    method = ss.methods.by_name["proved-sliding"]()
    assert method.fewest_calls(Facts(problem), 1.0).B <= method.calls(Facts(problem), 1.0).B


def test_a_step_of_the_callers_is_not_bounded_from_below():
    box, q = ss.domains.Box(-1.0, 1.0, shape=3), ss.functions.Quadratic(np.diag([1.0, 2.0, 3.0]))
    problem = ss.SaddleProblem(f=q, g=q, B=np.eye(3), X=box, Y=box)
    method = ss.methods.by_name["mirror-prox"](eta=1e3)
    assert method.fewest_calls(Facts(problem), 1e-3).B <= method.calls(Facts(problem), 1e-3).B


def test_choosing_makes_no_plan_where_a_lower_bound_is_too_dear_already(monkeypatch):
    def planned(*_, **__):
        raise AssertionError("a plan was made")

    problem = ss.gallery.tomography("nonlocal", n=32)
    free = choose(Facts(problem), 0.0, 1e-4, (1e4, 1e2, 1.0), estimated=False)
    monkeypatch.setattr("saddleslide.methods.proved_sliding.theorem_plan", planned)
    assert choose(Facts(problem), 0.0, 1e-4, (1e4, 1e2, 1.0), estimated=False) == free
    assert free.method == ADAPTIVE


def test_linear_constraints_take_opapc_where_it_is_cheaper():
    assert choose(Facts(constrained()), 1e-6, 0.0, (1.0, 1.0, 1.0), estimated=False).method == "opapc"
    assert choose(Facts(constrained()), 1e-6, 0.0, (1e6, 1.0, 1.0), estimated=False).method == ADAPTIVE


def test_opapc_is_not_asked_where_its_assumption_fails_or_is_dear_to_check():
    problem = constrained()
    assert rivals_on(Facts(problem)) == ["opapc"]
    f, X = ss.functions.Quadratic(np.diag([1.0, 2.0])), ss.domains.FullSpace(2)
    # Three equations for two unknowns: no multiplier inside Y.
    Y, g = ss.domains.Ball(50.0, shape=3), ss.functions.Linear(np.ones(3))
    assert rivals_on(Facts(ss.SaddleProblem(f=f, g=g, B=normal(9, 3, 2), X=X, Y=Y))) == []
    # Far from the condition numbers at which its share was measured.
    rows = {"f": ss.functions.Quadratic(np.diag(np.geomspace(1e-3, 1.0, 12))), "g": problem.g, "B": problem.B}
    assert rivals_on(Facts(ss.SaddleProblem(**rows, X=problem.X, Y=problem.Y))) == []
    # Products without a matrix: singular values would take products.
    B = ss.operators.as_operator(
        (lambda x: problem.B @ x, lambda y: problem.B.T @ y), x_shape=(12,), y_shape=(3,), norm=10.0
    )
    assert rivals_on(Facts(ss.SaddleProblem(f=problem.f, g=problem.g, B=B, X=problem.X, Y=problem.Y))) == []


@pytest.mark.parametrize("inside", [0.5, 1.1])
def test_auto_is_no_dearer_than_adaptive_sliding_under_constraints_with_an_ill_conditioned_f(inside):
    """Adaptive sliding takes a tenth of its prediction here, and less: nothing else may be preferred by it."""
    n, m, rng = 60, 30, np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.standard_normal((rows, n)))[0] for rows in (2 * n, n))
    A, B = (left * np.linspace(1e-2, 1.0, n)) @ right.T, rng.standard_normal((m, n))
    data, b = rng.standard_normal(2 * n), rng.standard_normal(m)
    saddle = np.linalg.solve(np.block([[A.T @ A, B.T], [B, np.zeros((m, m))]]), np.concatenate([A.T @ data, b]))
    Y = ss.domains.Ball(inside * float(np.linalg.norm(saddle[n:])), shape=m)
    f, g = ss.functions.LeastSquares(A, data), ss.functions.Linear(b)
    problem = ss.SaddleProblem(f=f, g=g, B=B, X=ss.domains.FullSpace(n), Y=Y)
    auto, alone = (ss.solve(problem, reduction=1e-6, method=name).calls for name in ("auto", ADAPTIVE))
    assert auto.f + 0.1 * auto.B <= 1.3 * (alone.f + 0.1 * alone.B)


@gathered(
    ("make", "kind"),
    [(smooth, "both costly"), (fused, "one costly"), (clipped, "simple, curved"), (game, "simple, flat")],
)
def test_kinds_of_problems(make, kind):
    assert kind_of(Facts(make())) == kind


def test_auto_is_the_chosen_method_and_counts_the_gradients_of_the_choice():
    prices = (1.0, 1.0, 100.0)
    auto, named = (ss.solve(smooth(), tol=1e-5, method=name, costs=prices) for name in ("auto", "apdg"))
    assert auto.status is ss.Status.SOLVED
    assert np.array_equal(auto.x, named.x)
    assert (auto.calls.f, auto.calls.g, auto.calls.B) == (named.calls.f + 1, named.calls.g + 1, named.calls.B)


@pytest.mark.parametrize("reduction", [0.0, 1e-3])
@pytest.mark.parametrize("kind", ["costly", "simple", "simple, not from 0"])
def test_the_choice_makes_no_calls_that_it_does_not_count(kind, reduction):
    counted = CountedProblem(normal(0, 4, 6), norm=4.0, modulus=1.0)
    f, g = counted.f_function, counted.g_function
    X, Y = ss.domains.FullSpace(6), ss.domains.FullSpace(4)
    if kind != "costly":
        f = g = ss.functions.Quadratic(1.0)
    if kind == "simple, not from 0":
        X, Y = ss.domains.Simplex(6), ss.domains.Simplex(4)
    problem = ss.SaddleProblem(f=f, g=g, B=counted.problem.coupling, X=X, Y=Y)
    _, calls = chosen(problem, 1e-3, reduction, ONES)
    assert (calls.f, calls.g, calls.B) == (*counted.gradients, counted.products)
    assert (calls.f, calls.B >= 2) == (
        int(kind == "costly"),
        kind.endswith("0") or (kind, reduction) == ("simple", 1e-3),
    )


def test_adaptive_can_be_asked_for_and_a_metric_implies_it():
    prices = (1.0, 1.0, 100.0)
    for asked in ({"method": "adaptive"}, {"metric": "blocks"}):
        result = ss.solve(smooth(), tol=1e-3, costs=prices, **asked)
        assert result.plans[0].method == "adaptive sliding"
    with pytest.raises(ss.errors.InputError, match="options"):
        ss.solve(smooth(), tol=1e-3, method="adaptive", options={"output": "last"})


def test_a_relative_target_leads_to_a_choice_too():
    result = ss.solve(smooth(), reduction=1e-5, costs=(1.0, 1.0, 100.0))
    assert result.plans[0].method == "apdg"
    assert result.status is ss.Status.SOLVED


def test_predictions_list_every_method_once_cheapest_first():
    rows = predictions(Facts(smooth()), 1e-3, ONES)
    assert sorted(row.method for row in rows) == sorted(["adaptive", "paper", *ss.methods.by_name])
    costs = [row.cost for row in rows if row.applies]
    assert costs == sorted(costs)
    assert all(row.why_not and row.bound is None for row in rows if not row.applies)
    assert not any(row.applies for row in rows[len(costs) :])


def test_a_prediction_is_its_share_of_the_bound_and_the_judging_at_the_prices():
    row = predict("apdg", Facts(smooth()), 1e-3, (2.0, 3.0, 5.0))
    bound = ss.methods.by_name["apdg"]().calls(Facts(smooth()), 1e-3)
    parts = [
        price * (SHARES["both costly"]["apdg"] * getattr(bound, letter) + getattr(row.judging, letter))
        for letter, price in zip("fgB", (2.0, 3.0, 5.0), strict=True)
    ]
    assert row.cost == pytest.approx(sum(parts))


def test_predictions_grow_with_accuracy_and_with_prices():
    for make in (smooth, clipped, game):
        costs = [predict_adaptive(Facts(make()), tol, ONES).cost for tol in (1e-2, 1e-4, 1e-6)]
        assert costs[0] < costs[1] < costs[2]
        assert predict_adaptive(Facts(make()), 1e-2, (2.0, 2.0, 2.0)).cost == pytest.approx(2.0 * costs[0])


@gathered("make", [smooth, clipped, game, constrained])
@gathered("tol", [1e-300, 1e300])
def test_targets_beyond_all_reason_are_predicted_too(make, tol):
    assert choose(Facts(make()), tol, 0.0, ONES, estimated=True).method in (ADAPTIVE, *ss.methods.by_name)
    assert len(predictions(Facts(make()), tol, ONES)) == 2 + len(ss.methods.by_name)


def test_compare_without_running_shows_predictions_and_refusals_only():
    table = ss.compare(smooth(), tol=1e-3)
    assert all(row.result is None for row in table.rows)
    text = repr(table)
    assert "apdg" in text
    assert "opapc: g = " in text
    assert math.isnan(table.rows[0].cost)
    with pytest.raises(ss.errors.InputError, match="run=True"):
        table.plot()


def test_compare_runs_every_method_that_applies_to_the_same_certified_gap():
    prices = (3.0, 2.0, 1.0)
    table = ss.compare(smooth(), tol=1e-3, run=True, costs=prices)
    ran = [row for row in table.rows if row.result is not None]
    assert {"adaptive", "apdg", "mirror-prox", "condat-vu"} <= {row.method for row in ran}
    solved = [row for row in ran if row.result.gap <= 1e-3]
    assert [row.cost for row in solved] == sorted(row.cost for row in solved)
    assert table.best.cost == min(row.cost for row in solved)
    for row in solved:
        assert ss.certify(smooth(), row.result.x, row.result.y).gap <= 1e-3 * (1 + 1e-9)
        calls = {"f": row.total.f, "g": row.total.g, "B": row.total.B}
        assert row.cost == pytest.approx(weigh_calls(calls, prices))
        assert row.own_cost < row.cost
    assert json.loads(json.dumps(table.to_dict()))["rows"][0]["method"] == table.best.method
    assert table._repr_html_().count("<tr>") == 1 + sum(row.prediction.applies for row in table.rows)


@gathered("prices", [None, ONES, (1.0, 1.0, 1e5)])
def test_compare_says_what_auto_would_take(prices):
    table = ss.compare(clipped(), tol=1e-6, costs=prices)
    expected = choose(Facts(clipped()), 1e-6, 0.0, table.costs, estimated=prices is None)
    assert table.auto == expected.method
    assert f"auto takes {expected.method}: {expected.reason}" in repr(table)
    assert table.to_dict()["auto"] == expected.method
    assert ss.solve(clipped(), 1e-6, costs=prices).plans[0].method in (expected.method, "restarted primal-dual")


def test_compare_draws_one_panel_for_cost_calls_and_time(tmp_path):
    table = ss.compare(smooth(), tol=1e-3, run=True, only=("apdg",))
    figure = table.plot(path=tmp_path / "comparison.png")
    assert (tmp_path / "comparison.png").stat().st_size > 1000
    labels = [ax.get_xlabel() for ax in figure.axes]
    assert labels == ["weighted cost", "calls of f'", "calls of g'", "products with B and B$^T$", "seconds"]
    line = figure.axes[1].lines[[row.method for row in table.rows if row.result is not None].index("apdg")]
    history = next(row for row in table.rows if row.method == "apdg").result.history
    assert line.get_xdata()[-1] == history[-1].calls.f
    assert line.get_ydata()[-1] == history[-1].gap


def test_runs_that_are_judged_once_are_drawn_too():
    table = ss.compare(ss.gallery.synthetic(1.0, 1.0, d=20), tol=1e-2, run=True, only=("paper",))
    figure = table.plot()
    for row, line in zip([row for row in table.rows if row.result is not None], figure.axes[0].lines, strict=False):
        assert len(line.get_xdata()) >= 1
        assert (line.get_xdata()[-1], line.get_ydata()[-1]) == (pytest.approx(row.cost), row.result.gap)
        assert (line.get_marker(), line.get_markevery()) == ("o", [len(line.get_xdata()) - 1])


def test_compare_refuses_what_it_can_not_use():
    with pytest.raises(ss.errors.InputError, match="all targets are 0"):
        ss.compare(smooth(), tol=0.0)
    whole = ss.domains.FullSpace(2)
    free = ss.SaddleProblem(f=ss.functions.Linear(1.0), g=ss.functions.Linear(1.0), B=np.eye(2), X=whole, Y=whole)
    with pytest.raises(ss.errors.InputError, match="bounds at the start are not finite"):
        ss.compare(free, reduction=0.1)
    with pytest.raises(ss.errors.InputError, match=r"\['simplex'\]"):
        ss.compare(smooth(), tol=1e-3, run=True, only=("simplex",))
    with pytest.raises(ss.errors.InputError, match="costs"):
        ss.compare(smooth(), tol=1e-3, costs=(1.0, 2.0))


def test_break_even_is_where_both_costs_are_equal():
    sliding, other = ss.Calls(32, 16, 4096), ss.Calls(112, 112, 224)
    rho = break_even(sliding, other)
    assert rho * 48 + 4096 == pytest.approx(rho * 224 + 224)
    # The paper's three.
    rows = ((48, 4096, 224), (96, 16384, 592), (192, 65536, 1632))
    assert [round(break_even(ss.Calls(s, 0, b), ss.Calls(m, 0, m))) for s, b, m in rows] == [22, 32, 44]
    assert break_even(ss.Calls(1, 1, 10), ss.Calls(2, 2, 20)) == 0.0
    assert break_even(ss.Calls(3, 3, 30), ss.Calls(2, 2, 20)) == math.inf
    assert break_even(ss.Calls(3, 3, 10), ss.Calls(2, 2, 20)) == math.inf


def test_crossover_comes_from_the_calls_of_both_runs():
    found = ss.crossover(smooth(), tol=1e-3, method="accelerated-mirror-prox")
    assert found.ratio == break_even(found.sliding, found.other)
    alone = ss.solve(smooth(), tol=1e-3, method="accelerated-mirror-prox")
    assert found.other.f == alone.calls.f - alone.certificate_calls.f
    assert "accelerated-mirror-prox" in repr(found)
    with pytest.raises(ss.errors.InputError, match="can not run"):
        ss.crossover(smooth(), tol=1e-3, method="opapc")


def test_shares_are_the_medians_of_the_calibration():
    found = json.loads((RESULTS / "calibration.json").read_text(encoding="utf-8"))
    assert set(SHARES) == set(found["medians"])
    for kind, shares in SHARES.items():
        assert [name for name in shares if name != ADAPTIVE] == found["rivals"][kind]
        for name, share in shares.items():
            assert share == pytest.approx(found["medians"][kind][name], rel=0.02)


def test_the_committed_regret_meets_its_target_and_the_docs_repeat_it():
    rows = json.loads((RESULTS / "regret.json").read_text(encoding="utf-8"))["rows"]
    assert len(rows) >= 12
    assert sum(row["regret"] <= 1.3 for row in rows) >= 10
    assert max(row["regret"] for row in rows) <= 2.0
    page = (DOCS / "choice.md").read_text(encoding="utf-8")
    for row in rows:
        solved = {name: m["cost"] for name, m in row["methods"].items() if m["status"] == "SOLVED"}
        assert row["regret"] == pytest.approx(row["auto"]["cost"] / min(solved.values()))
        line = next(line for line in page.splitlines() if line.startswith(f"| {row['problem']} |"))
        assert f"| {row['regret']:.2f} |" in line
        assert f"| {row['best']} |" in line


def test_what_auto_does_without_prices_is_as_the_docs_say():
    rows = json.loads((RESULTS / "regret_variants.json").read_text(encoding="utf-8"))
    page = " ".join((DOCS / "choice.md").read_text(encoding="utf-8").split())
    plain = {name: row["without prices"]["regret"] for name, row in rows.items()}
    patient = {name: row["twice the allowance"]["regret"] for name, row in rows.items()}
    assert f"gives {patient['denoising']:.2f} on *denoising* and {patient['robust regression']:.2f} on" in page
    assert f"at {plain['denoising']:.2f} and {plain['transport']:.2f} times the cost of L-BFGS" in page
    near = sum(ratio <= 1.3 for ratio in plain.values())
    assert f"makes {near} of {len(plain)} within 1.3, at worst {max(plain.values()):.2f}." in page
