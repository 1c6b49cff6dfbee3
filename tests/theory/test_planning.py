"""The theory as numbers: alphas, oracle accuracies, budgets, loop counts, plans."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import saddleslide as ss
from plans import sliding_plan
from saddleslide.theory import (
    Constant,
    Term,
    alpha_sequence,
    budget,
    loop_counts,
    place,
    printed_holder_bound,
    printed_inexact_bound,
    proved_kappa,
    sharp_bound,
    sorted_by_budget,
)
from saddleslide.theory.levels import last_alpha
from support import gathered, paper_plan

EXPONENTS = (0.0, 0.25, 0.5, 0.75, 1.0)
positive = st.floats(1e-3, 1e3)
smoothness = st.builds(ss.Holder, nu=st.sampled_from(EXPONENTS), H=positive)
terms = st.builds(
    Term, st.sampled_from("abcd"), smoothness=st.none() | smoothness, M=st.just(0.0) | positive, Omega=positive
)
lists_of_terms = st.lists(terms, min_size=1, max_size=4)
few_loops = st.lists(st.integers(1, 40), min_size=4, max_size=4)
quick = settings(max_examples=100, deadline=None)


def boxes_problem(nu_x=1.0, nu_y=0.5):
    box = ss.domains.Box(-1.0, 1.0, shape=4)
    B = ss.operators.as_operator(3.0 * np.eye(4), norm=3.0)
    return ss.SaddleProblem(f=ss.functions.Power(nu_x), g=ss.functions.Power(nu_y, weight=0.1), B=B, X=box, Y=box)


# Alphas and the accuracies of Hölder oracles.


def test_alphas_solve_their_equation_and_decay_like_two_over_t():
    alphas = np.array(alpha_sequence(500))
    assert alphas[0] == 1.0
    np.testing.assert_allclose((1.0 - alphas[1:]) / alphas[1:] ** 2, 1.0 / alphas[:-1] ** 2, rtol=1e-12)
    T = np.arange(1, 501)
    assert np.all(alphas >= 1.0 / T)
    assert np.all(alphas <= 2.0 / (T + 1.0) + 1e-15)
    assert alpha_sequence(3) == alpha_sequence(500)[:3]


@quick
@given(lists_of_terms, few_loops)
def test_theorem_3_5_is_theorem_3_3_with_the_best_oracle_accuracy(given_terms, loops):
    levels = place(given_terms, loops[: len(given_terms)])
    assert printed_holder_bound(levels) == pytest.approx(printed_inexact_bound(levels), rel=1e-10)


@quick
@given(smoothness, st.integers(1, 4), st.integers(1, 100), positive, st.floats(0.3, 3.0))
def test_no_other_oracle_accuracy_gives_a_smaller_printed_bound(holder, level, N, Omega, factor):
    def printed(delta):
        return 2.0 ** (2 * level - 1) * holder.L(delta) * Omega / N**2 + delta * N

    best = holder.best_delta(level, N, Omega)
    assert printed(best) <= printed(factor * best) * (1.0 + 1e-12)


@quick
@given(lists_of_terms, few_loops)
def test_the_sharp_bound_is_at_most_the_printed_one_and_not_far_below_it(given_terms, loops):
    """1/T <= alpha_{T-1} <= 2/T: each level loses at most a factor of 4 in L, 2 in M and in delta."""
    levels = place(given_terms, loops[: len(given_terms)])
    assert sharp_bound(levels) <= printed_inexact_bound(levels) * (1.0 + 1e-12)
    assert sharp_bound(levels) >= printed_inexact_bound(levels) / 4.0 ** len(levels) * (1.0 - 1e-12)


def test_levels_count_their_calls_and_collect_their_last_alphas():
    levels = place([Term("a", M=2.0), Term("b", inexact=(0.5, 3.0), tau=4.0), Term("c", M=1.0)], (3, 2, 5))
    a, b, c = (alpha_sequence(T)[-1] for T in (3, 2, 5))
    assert [level.N for level in levels] == [3, 6, 30]
    assert [level.last_alphas for level in levels] == pytest.approx([a, a * b, a * b * c], rel=1e-14)
    assert [level.step for level in levels] == pytest.approx([2.0 / a, 7.0, 1.0 / (a * b * c)], rel=1e-14)
    assert (levels[1].L, levels[1].delta) == (3.0, 0.5)


# Budgets, order and loop counts of Corollary 3.6.


@quick
@given(terms, positive)
def test_a_budget_is_that_of_corollary_3_6(term, eps):
    nu, H = (1.0, 0.0) if term.smoothness is None else (term.smoothness.nu, term.smoothness.H)
    from_function = (H * math.sqrt(term.Omega) ** (1.0 + nu) / eps) ** (2.0 / (1.0 + 3.0 * nu))
    assert budget(term, eps) == pytest.approx(max(from_function, term.M * term.Omega / eps, 1.0), rel=1e-12)


@quick
@given(lists_of_terms, positive, st.sampled_from([1.0, 1.5, 16.0, 256.0]))
def test_calls_lie_between_kappa_R_and_twice_that(given_terms, eps, kappa):
    ordered = sorted_by_budget(given_terms, eps)
    loops = loop_counts(ordered, eps, kappa)
    for term, N in zip(ordered, np.cumprod(np.array(loops, dtype=object)), strict=True):
        wanted = kappa * budget(term, eps)
        assert wanted * (1.0 - 1e-14) <= N <= 2.0 * wanted * (1.0 + 1e-14)
        assert N >= 1


@quick
@given(lists_of_terms, positive)
def test_levels_are_sorted_by_budget_and_ties_keep_their_order(given_terms, eps):
    doubled = [*given_terms, *given_terms]
    ordered = sorted_by_budget(doubled, eps)
    budgets = [budget(term, eps) for term in ordered]
    assert budgets == sorted(budgets)
    for value in set(budgets):
        tied = [term for term in doubled if budget(term, eps) == value]
        found = [term for term in ordered if budget(term, eps) == value]
        assert all(one is other for one, other in zip(tied, found, strict=True))


def test_loop_counts_divide_what_outer_levels_already_do():
    given_terms = [Term(name, M=M, Omega=1.0) for name, M in (("a", 2.5), ("b", 2.9), ("c", 10.0))]
    assert loop_counts(given_terms, eps=1.0) == (3, 1, 4)
    assert loop_counts(given_terms, eps=1.0, kappa=4.0) == (10, 2, 2)


@gathered(("n", "kappa"), [(1, 16.0), (2, 64.0), (3, 256.0), (4, 1024.0)])
def test_kappa_of_the_proof(n, kappa):
    assert proved_kappa(n) == kappa


small = st.floats(0.01, 20.0)
small_terms = st.builds(
    Term,
    st.just("a"),
    smoothness=st.none() | st.builds(ss.Holder, nu=st.sampled_from(EXPONENTS), H=st.floats(0.01, 4.0)),
    M=st.just(0.0) | small,
    Omega=st.floats(0.01, 4.0),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(small_terms, min_size=1, max_size=4), st.floats(0.5, 2.0))
def test_the_kappa_of_the_proof_does_prove_n_eps(given_terms, eps):
    ordered = sorted_by_budget(given_terms, eps)
    levels = place(ordered, loop_counts(ordered, eps, proved_kappa(len(ordered))))
    assert sharp_bound(levels) <= printed_holder_bound(levels) * (1.0 + 1e-12) <= len(levels) * eps * (1.0 + 1e-10)


# Plans of saddle problems.


@gathered("nus", [(1.0, 1.0), (1.0, 0.5), (0.75, 0.25), (0.5, 1.0)])
@gathered("metric", ["identity", "balanced", (0.5, 3.0)])
def test_a_proved_plan_keeps_its_promise(nus, metric):
    plan = paper_plan(boxes_problem(*nus), tol=3.0, proved=True, metric=metric)
    assert plan.proved
    assert plan.schedule.kappa == 256.0
    assert plan.bound <= plan.schedule.printed_bound <= 3.0
    assert plan.loops == loop_counts([level.term for level in plan.schedule.levels], eps=1.0, kappa=256.0)


def test_a_plan_with_the_practical_kappa_does_not_claim_a_proof():
    plan = paper_plan(boxes_problem(), tol=0.1)
    assert plan.schedule.kappa == 1.0
    assert plan.bound > 0.1
    assert not plan.proved


def test_explicit_loops_are_proved_only_up_to_their_own_bound():
    problem = boxes_problem()
    explicit = paper_plan(problem, order="fgB", loops=(20, 2, 10))
    assert explicit.proved
    assert explicit.schedule.kappa is None
    for tol, proved in ((1.01 * explicit.bound, True), (0.99 * explicit.bound, False)):
        assert paper_plan(problem, tol, order="fgB", loops=(20, 2, 10)).proved is proved


def test_an_unbounded_domain_proves_nothing():
    space, q = ss.domains.FullSpace(3), ss.functions.Quadratic(1.0)
    plan = paper_plan(ss.SaddleProblem(f=q, g=q, B=np.eye(3), X=space, Y=space), order="fgB", loops=(2, 2, 2))
    assert plan.bound == math.inf
    assert not plan.proved
    assert "unbounded" in plan.theorem


@gathered(
    ("weights", "order"),
    [((1.0, 2.0, 3.0), "fgB"), ((3.0, 2.0, 1.0), "Bgf"), ((2.0, 2.0, 2.0), "fgB"), ((3.0, 2.0, 2.0), "gBf")],
)
def test_the_order_of_a_plan_follows_the_budgets(weights, order):
    # With nu_x = nu_y = 1 and Omega = 8 the budgets are sqrt(8 H / eps) and 8 L_xy / eps.
    wanted_f, wanted_g, wanted_B = (10.0 * weight for weight in weights)
    constants = {"H_x": wanted_f**2 / 8.0, "H_y": wanted_g**2 / 8.0, "L_xy": wanted_B / 8.0}
    plan = paper_plan(boxes_problem(1.0, 1.0), tol=1.0, constants=constants)
    assert plan.order == order
    assert plan.loops[0] == 10.0 * min(weights)


def test_constants_and_radius_are_taken_in_the_metric():
    w_x, w_y = 0.25, 9.0
    plan = paper_plan(boxes_problem(1.0, 0.5), order="fgB", loops=(1, 1, 1), metric=(w_x, w_y))
    f, g, B = (level.term for level in plan.schedule.levels)
    assert pytest.approx(1.0 / w_x, rel=1e-14) == f.smoothness.H
    assert pytest.approx(0.1 * math.sqrt(2.0) * 4.0**0.25 * w_y**-0.75, rel=1e-14) == g.smoothness.H
    assert pytest.approx(3.0 / math.sqrt(w_x * w_y), rel=1e-14) == B.M
    assert [term.Omega for term in (f, g, B)] == pytest.approx([4.0 * w_x + 4.0 * w_y] * 3, rel=1e-14)
    assert all(term.weights == (w_x, w_y) for term in (f, g, B))


def test_the_balanced_metric_makes_both_blocks_equally_large():
    box, ball = ss.domains.Box(-2.0, 2.0, shape=3), ss.domains.Ball(0.1, shape=2)
    zero = ss.functions.Zero()
    problem = ss.SaddleProblem(f=zero, g=zero, B=np.ones((2, 3)), X=box, Y=ball)
    (term, *_) = (level.term for level in paper_plan(problem, tol=1.0, metric="balanced").schedule.levels)
    assert term.weights == pytest.approx((1.0 / 12.0, 100.0), rel=1e-12)
    assert pytest.approx(2.0, rel=1e-12) == term.Omega


def test_the_radius_is_measured_from_the_given_start():
    plan = paper_plan(boxes_problem(), order="fgB", loops=(1, 1, 1), start=(np.ones(4), np.zeros(4)))
    assert plan.schedule.levels[0].term.Omega == 4.0 * 4.0 + 4.0


@gathered("order", ["fgB", "fBg", "gfB", "gBf", "Bfg", "Bgf"])
@gathered("loops", [(3, 2, 4), (1, 1, 1), (1, 5, 2)])
def test_predicted_calls_are_the_calls_that_a_run_makes_and_spares(order, loops):
    problem = boxes_problem()
    plan = paper_plan(problem, order=order, loops=loops)
    N = dict(zip(order, np.cumprod(loops).tolist(), strict=True))
    assert plan.predicted_calls == {"f": N["f"], "g": N["g"], "B": 4 * N["B"]}
    result = ss.run(problem, plan)
    assert plan.predicted_calls == result.counted.by_oracle
    assert result.spared == 4


def test_a_zero_coupling_is_predicted_and_counted_as_no_products():
    box, q = ss.domains.Box(-1.0, 1.0, shape=2), ss.functions.Quadratic(1.0)
    problem = ss.SaddleProblem(f=q, g=q, B=np.zeros((2, 2)), X=box, Y=box)
    plan = paper_plan(problem, order="Bfg", loops=(2, 3, 4))
    assert plan.predicted_calls["B"] == ss.run(problem, plan).method_calls.B == 0


PLANS = {
    "from a target": lambda: paper_plan(boxes_problem(), tol=0.5),
    "explicit, in a metric": lambda: paper_plan(boxes_problem(), order="gBf", loops=(2, 3, 4), metric=(0.1, 0.7)),
    "declared": lambda: paper_plan(boxes_problem(), tol=1.0, constants={"L_xy": 7.0}, kappa=3.0),
    "inexact": lambda: sliding_plan(
        place([Term("f", inexact=(0.1, 2.0), tau=0.3, Omega=1.0), Term("B", M=1.0)], (3, 4))
    ),
}


@gathered("make", PLANS.values(), ids=PLANS)
def test_a_plan_survives_json(make):
    plan = make()
    again = ss.Plan.from_dict(json.loads(json.dumps(plan.to_dict())))
    assert again == plan
    assert (again.bound, again.loops, again.order) == (plan.bound, plan.loops, plan.order)


@gathered("key", ["loops", "terms", "metric", "tol", "kappa", "constants"])
def test_incomplete_plan_data_is_refused_by_name(key):
    data = paper_plan(boxes_problem(), tol=0.5).to_dict()
    for part in (data, data["schedule"], data["schedule"]["stages"][0]):
        part.pop(key, None)
    with pytest.raises(ss.errors.InputError, match=key):
        ss.Plan.from_dict(data)


def test_an_explanation_says_order_loops_bound_calls_and_where_constants_come_from():
    plan = paper_plan(boxes_problem(), tol=0.5, constants={"H_x": 2.5}, metric=(0.5, 2.0))
    text = plan.explain()
    assert f"Plan {plan.order}, loops {plan.loops}, metric blocks (0.5, 2)" in text
    assert f"{plan.bound:.4g}" in text
    assert f"{plan.schedule.printed_bound:.4g}" in text
    assert "Theorem 3.5" in text
    assert "target   0.5, not proved" in text
    calls = plan.predicted_calls
    assert f"f' {calls['f']:,}   g' {calls['g']:,}   B and B^T {calls['B']:,}" in text
    for i, level in enumerate(plan.schedule.levels, start=1):
        assert f"level {i}  {level.term.name}: T = {level.T}, N = {level.N}" in text
    assert "H_x      2.5 (declared)" in text
    assert "L_xy     3 (norm of B" in text
    assert plan.constants["H_x"] == Constant(2.5, "declared")


def test_an_explanation_of_a_proved_plan_says_so():
    text = paper_plan(boxes_problem(), tol=3.0, proved=True).explain()
    assert "target   3, proved" in text


def test_planning_runs_where_numpy_is_absent():
    """The package is entered through a bare parent, because the real one imports the array code too."""
    source = Path(ss.__file__).parent
    code = f"""
import sys, types
sys.modules["numpy"] = sys.modules["scipy"] = None
parent = types.ModuleType("saddleslide")
parent.__path__ = [{str(source)!r}]
sys.modules["saddleslide"] = parent
from saddleslide.theory import Term, place, sharp_bound
assert sharp_bound(place([Term("B", M=2.0, Omega=4.0)], loops=(1,))) == 4.0
"""
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr


def test_the_sharp_bound_is_the_formula_of_the_proof():
    """Sum of (L a^2 + M a) Omega / 2 + delta / a with a the product of the last alphas, written out anew."""
    alphas = [1.0]
    for _ in range(9):
        alphas.append(2.0 / (1.0 + math.sqrt(1.0 + 4.0 / alphas[-1] ** 2)))
    terms = [
        Term("p", ss.Holder(0.5, 2.0), Omega=3.0),
        Term("q", inexact=(0.25, 4.0), M=1.5, Omega=5.0),
        Term("r", M=0.5, tau=0.75, Omega=7.0),
    ]
    levels = place(terms, (4, 3, 5))
    expected, a = 0.0, 1.0
    for level, T in zip(levels, (4, 3, 5), strict=True):
        a *= alphas[T - 1]
        L = level.L + level.term.tau
        expected += 0.5 * (L * a * a + level.term.M * a) * level.term.Omega + level.delta / a
    assert sharp_bound(levels) == pytest.approx(expected, rel=1e-14)
    assert levels[0].delta > 0.0


def test_no_bound_on_unbounded_domains_is_infinite_and_never_nan():
    q, free = ss.functions.Quadratic(1.0), ss.domains.FullSpace(3)
    problem = ss.SaddleProblem(f=q, g=q, B=np.eye(3), X=free, Y=free)
    plan = paper_plan(problem, order="fgB", loops=(2, 2, 2))
    assert plan.bound == plan.schedule.printed_bound == math.inf


def test_a_declared_exponent_needs_its_constant():
    with pytest.raises(ss.errors.InputError, match=r"declares nu_x without H_x; expected both"):
        paper_plan(boxes_problem(), tol=1.0, constants={"nu_x": 0.0})


def test_a_plan_is_refused_by_another_problem():
    made_for = boxes_problem()
    plan = paper_plan(made_for, order="fgB", loops=(1, 1, 1))
    box, zero = ss.domains.Box(-1.0, 1.0, shape=2), ss.functions.Zero()
    other = ss.SaddleProblem(f=zero, g=zero, B=np.eye(2), X=box, Y=box)
    with pytest.raises(ss.errors.InputError, match=r"^run: the plan was made for x, y of shapes"):
        ss.run(other, plan)
    uncoupled = ss.SaddleProblem(f=ss.functions.Quadratic(1.0), g=zero, B=np.zeros((2, 2)), X=box, Y=box)
    with pytest.raises(ss.errors.InputError, match=r"^run: the plan was made for B = 0"):
        ss.run(other, paper_plan(uncoupled, order="fgB", loops=(1, 1, 1)))


def test_a_run_from_another_start_states_the_bound_of_that_start():
    q, box = ss.functions.Power(0.5), ss.domains.Box(-1.0, 1.0, shape=3)
    problem = ss.SaddleProblem(f=q, g=q, B=np.eye(3), X=box, Y=box)
    plan = paper_plan(problem, order="fgB", loops=(2, 1, 2))
    corner = (np.ones(3), np.ones(3))
    used = ss.run(problem, plan, start=corner).plans[0]
    assert [level.step for level in used.schedule.levels] == [level.step for level in plan.schedule.levels]
    assert used.schedule.levels[0].term.Omega == 24.0
    by_hand = place(
        [replace(level.term, Omega=24.0, inexact=(level.delta, level.L)) for level in plan.schedule.levels], plan.loops
    )
    assert used.bound == sharp_bound(by_hand) > plan.bound


def test_far_alphas_continue_the_sequence():
    far, T = 1.0 / last_alpha(1_000_000), 1_200_000
    for _ in range(T - 1_000_000):
        far = 0.5 + math.sqrt(far * far + 0.25)
    assert last_alpha(T) == pytest.approx(1.0 / far, rel=1e-12)
    # 1/alpha_t = t/2 + log(t)/4 + O(1)
    assert last_alpha(10**18) == pytest.approx(2e-18, rel=1e-9)


def test_a_proof_that_was_asked_for_comes_before_the_price():
    f, box = ss.functions.Quadratic(1.0), ss.domains.Box(-1.0, 1.0, shape=3)
    problem = ss.SaddleProblem(f=f, g=f, B=np.eye(3), X=box, Y=box)
    plan = ss.plan(problem, 1e-2, proved=True)
    assert plan.proved and plan.bound <= 1e-2


def test_a_metric_that_was_asked_for_leaves_restarts_out():
    f, box = ss.functions.Quadratic(1.0), ss.domains.Box(-1.0, 1.0, shape=3)
    problem = ss.SaddleProblem(f=f, g=f, B=np.eye(3), X=box, Y=box)
    assert ss.plan(problem, 1e-2, metric="balanced").metric == "balanced"
    assert ss.plan(problem, 1e-2, metric="diagonal").regime == "adaptive"
    assert ss.plan(problem, 1e-2, metric="diagonal", regime="degenerate").schedule.given.name == "diagonal"


def test_declared_inexact_oracles_of_f_and_g_follow_theorem_3_3():
    """f' is wrong by at most e on a box of diameter D: an oracle with delta = 2 e D and L = 2 H is declared."""
    rng = np.random.default_rng(0)
    A, b, B = rng.standard_normal((8, 5)), rng.standard_normal(8), rng.standard_normal((4, 5))
    exact, g = ss.functions.LeastSquares(A, b), ss.functions.Quadratic(0.5)
    X, Y = ss.domains.Box(-1.0, 1.0, shape=5), ss.domains.Box(-1.0, 1.0, shape=4)
    error, H = 1e-3, exact.smoothness(X).H

    def gradient(x):
        return exact.gradient(x) + error * np.sign(np.sin(1e3 * x)) / np.sqrt(5.0)

    f = ss.functions.Custom(gradient=gradient, value=exact.value, smoothness=ss.Holder(1.0, H))
    rough, clean = (ss.SaddleProblem(f=part, g=g, B=B, X=X, Y=Y) for part in (f, exact))
    delta = 2.0 * error * X.diameter()
    loops = {"order": "fgB", "loops": (40, 1, 4), "metric": "identity"}
    plan = ss.plan(rough, **loops, inexact={"f": (delta, 2.0 * H)})
    level = plan.schedule.levels[0]
    assert (level.L, level.delta) == (2.0 * H, delta)
    assert plan.theorem.startswith("Theorem 3.3")
    plain = ss.plan(rough, **loops, inexact={"f": (0.0, 2.0 * H)})
    assert plan.schedule.printed_bound - plain.schedule.printed_bound == pytest.approx(level.N * delta, rel=1e-9)
    result = ss.run(rough, plan)
    assert ss.certify(clean, result.x, result.y).gap <= plan.bound
    weighted = ss.plan(rough, order="fgB", loops=(40, 1, 4), metric=(4.0, 1.0), inexact={"f": (delta, 2.0 * H)})
    assert pytest.approx(0.5 * H) == weighted.schedule.levels[0].L
    with pytest.raises(ss.errors.InputError, match="regime 'degenerate'"):
        ss.plan(rough, 0.1, regime="restarts", inexact={"f": (delta, H)})
    with pytest.raises(ss.errors.InputError, match="expected names among"):
        ss.plan(rough, 0.1, inexact={"B": (delta, H)})
