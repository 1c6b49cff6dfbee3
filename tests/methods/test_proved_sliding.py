"""Plans that a theorem stands behind, as a method: what they promise, what they run, and when auto takes them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import saddleslide as ss
from arena import Arena
from plans import on_allowance
from saddleslide.api.runner import carry_out
from saddleslide.facts.facts import Facts
from saddleslide.methods.schedule.planner import theorem_plan
from saddleslide.oracles.oracles import Oracles
from saddleslide.planner.choice import choose
from saddleslide.planner.forecast import predict, predict_adaptive, predictions, start_scale
from saddleslide.runs.control import Control
from saddleslide.theory import loop_counts, place, sorted_by_budget
from saddleslide.theory.bounds import sharp_bound
from saddleslide.theory.levels import alpha_sequence, last_alpha, sum_of_inverse_squares
from support import chosen, gathered
from transcriptions import Part, Space, algorithm_1

STEPS = 20
NAME = "proved-sliding"


def planned(problem, tol, **options):
    return theorem_plan(problem, tol, regime="degenerate", **{"proved": "sharp", **options})


def parts_of(arena, w_x=1.0, w_y=1.0):
    """f, g and B in the norm with weights w on the blocks."""
    zero_x, zero_y = np.zeros(arena.columns), np.zeros(arena.rows)
    f = Part(gradient=lambda z: np.concatenate([arena.split(arena.gradients(z))[0], zero_y]), L=arena.L_f / w_x)
    g = Part(gradient=lambda z: np.concatenate([zero_x, arena.split(arena.gradients(z))[1]]), L=arena.L_g / w_y)
    return {"f": f, "g": g, "B": Part(operator=arena.coupling, M=arena.norm / math.sqrt(w_x * w_y))}


def space_of(problem, weights=(1.0, 1.0)):
    return Space(ss.domains.Product(problem.X, problem.Y), weights)


def free_problem(arena):
    """The arena on full spaces: both functions strongly convex."""
    f = ss.functions.Quadratic(arena.A) + ss.functions.Linear(-arena.c_x)
    g = ss.functions.Quadratic(arena.C) + ss.functions.Linear(-arena.c_y)
    X, Y = ss.domains.FullSpace(arena.columns), ss.domains.FullSpace(arena.rows)
    return ss.SaddleProblem(f=f, g=g, B=arena.B, X=X, Y=Y)


# The plan.


@pytest.mark.parametrize("nus", [(1.0, 1.0), (0.75, 0.25), (0.0, 1.0)])
@pytest.mark.parametrize("tol", [0.3, 3.0])
def test_a_sharp_plan_is_proved_and_no_longer_than_its_bound_needs(nus, tol):
    problem = ss.gallery.synthetic(*nus, d=10)
    plan = planned(problem, tol, metric="identity")
    assert plan.proved and plan.bound <= tol
    corollary = planned(problem, tol, metric="identity", proved=True)
    assert 10 * plan.predicted_calls["B"] < corollary.predicted_calls["B"]
    # Budgets for an eps that is larger by a part in a hundred prove less, unless eps = tol was enough.
    terms = [level.term for level in plan.schedule.levels]
    eps = max(e for e in np.geomspace(1e-3 * tol, tol, 20_000) if _bound(terms, e) <= tol)
    assert plan.loops == loop_counts(sorted_by_budget(terms, eps), eps) or _bound(terms, 1.01 * eps) > tol
    best = math.prod(loop_counts(sorted_by_budget(terms, eps), eps))
    assert math.prod(plan.loops) <= 1.01 * best + 10


def _bound(terms, eps):
    ordered = sorted_by_budget(terms, eps)
    return sharp_bound(place(ordered, loop_counts(ordered, eps)))


def test_what_makes_no_sense_beside_a_sharp_proof_is_refused():
    problem = ss.gallery.synthetic(1.0, 1.0, d=4)
    with pytest.raises(ss.errors.InputError, match="expected none with proved"):
        planned(problem, 0.1, kappa=2.0)
    with pytest.raises(ss.errors.InputError, match="proved is 'surely'; expected True, False or 'sharp'"):
        planned(problem, 0.1, proved="surely")


@gathered("T", [99_999, 100_000, 100_001, 130_000, 400_000])
def test_alphas_beyond_the_kept_ones_are_those_of_the_recurrence(T):
    u, squares = 1.0 / alpha_sequence(1)[0], [1.0]
    for _ in range(T - 1):
        u = 0.5 + math.sqrt(u * u + 0.25)
        squares.append(u * u)
    assert last_alpha(T) == pytest.approx(1.0 / u, rel=1e-13)
    assert sum_of_inverse_squares(T) == pytest.approx(math.fsum(squares), rel=1e-12)


# The method.


def test_the_first_iterates_are_those_of_algorithm_1_with_the_loops_of_the_plan():
    arena = Arena(seed=12)
    tol, start = 0.1, arena.split(arena.start)
    plan = planned(arena.problem, tol, metric="identity", start=start)
    assert plan.loops[0] >= STEPS and max(plan.loops[1:]) > 1
    parts = parts_of(arena)
    expected = algorithm_1([parts[name] for name in plan.order], space_of(arena.problem), arena.start, plan.loops)
    found = arena.library(NAME, STEPS, tol=tol, metric="identity")
    assert np.max(np.abs(np.array(found) - np.array(expected[:STEPS]))) <= 1e-12
    assert np.max(np.abs(found[-1] - found[0])) > 1e-3


def test_on_full_spaces_the_iterates_are_those_of_the_stages_of_theorem_4_4():
    arena = Arena(seed=15, coupling=6.0)
    problem, method, found = free_problem(arena), ss.methods.by_name[NAME](), []
    oracles = Oracles(problem)
    state = method.init(oracles, Facts(problem), arena.split(arena.start), 0.1)
    stages = state.stages[:2]
    count = sum(levels[0].T for levels in stages)
    for _ in range(count):
        state = method.step(state, oracles)
        found.append(np.concatenate(method.point(state, oracles)))
    weights, expected, point = (arena.mu_f, arena.mu_g), [], arena.start
    parts = parts_of(arena, *weights)
    for levels in stages:
        loops = tuple(level.T for level in levels)
        assert min(loops) > 1
        order = [parts[level.term.name] for level in levels]
        expected += algorithm_1(order, space_of(problem, weights), point, loops)
        point = expected[-1]
    assert count >= STEPS
    assert np.max(np.abs(np.array(found) - np.array(expected))) <= 1e-10
    assert np.max(np.abs(found[-1] - found[0])) > 1e-3


@pytest.mark.parametrize("nus", [(1.0, 1.0), (0.75, 0.25)])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_whole_plan_ends_within_the_target(nus, seed):
    """No certificate stops it here: the bound alone must hold."""
    problem, tol = ss.gallery.synthetic(*nus, d=6, seed=seed), 1.0
    method, oracles = ss.methods.by_name[NAME](), Oracles(problem)
    state = method.init(oracles, Facts(problem), problem.start(), tol)
    while not method.is_finished(state):
        state = method.step(state, oracles)
    assert ss.certify(problem, *method.point(state, oracles)).gap <= tol
    promised = method.calls(Facts(problem), tol)
    assert (oracles.calls.f, oracles.calls.g) == (promised.f, promised.g)
    assert oracles.calls.B <= promised.B
    before = oracles.calls.copy()
    method.step(state, oracles)
    assert oracles.calls == before


def test_restarts_go_through_all_stages_and_end_within_the_target():
    q, free = ss.functions.Quadratic(1.0) + ss.functions.Linear(np.arange(3.0)), ss.domains.FullSpace(3)
    problem, tol = ss.SaddleProblem(f=q, g=q, B=1e-3 * np.eye(3), X=free, Y=free), 0.2
    method, oracles = ss.methods.by_name[NAME](), Oracles(problem)
    state = method.init(oracles, Facts(problem), problem.start(), tol)
    assert oracles.calls == ss.Calls(1, 1, 0)
    stages = len(state.stages)
    assert stages > 5
    while not method.is_finished(state):
        state = method.step(state, oracles)
    assert state.done == stages - 1
    assert ss.certify(problem, *method.point(state, oracles)).gap <= tol
    promised = method.calls(Facts(problem), tol)
    assert (oracles.calls.f, oracles.calls.g) == (promised.f + 1, promised.g + 1)


def test_a_start_that_is_good_enough_is_the_end_of_the_restarts():
    q, free = ss.functions.Quadratic(1.0), ss.domains.FullSpace(3)
    problem = ss.SaddleProblem(f=q, g=q, B=np.eye(3), X=free, Y=free)
    method, oracles = ss.methods.by_name[NAME](), Oracles(problem)
    state = method.init(oracles, Facts(problem), problem.start(), 0.1)
    assert method.is_finished(state)
    state = method.step(state, oracles)
    assert not np.any(method.point(state, oracles)[0])


def test_gradients_needed_grow_as_the_theorem_says():
    targets = np.array([0.4, 0.2, 0.1])
    for nu, power in ((0.0, -2.0), (1.0, -0.5)):
        problem = ss.gallery.synthetic(nu, 1.0, d=10, sigma_min=1e-6, sigma_max=1e-6)
        counts = [ss.methods.by_name[NAME]().calls(Facts(problem), tol).f for tol in targets]
        slope = np.polyfit(np.log(targets), np.log(counts), 1)[0]
        assert slope == pytest.approx(power, rel=0.15)


def test_what_no_theorem_bounds_is_refused_with_the_reason():
    q, zero, free = ss.functions.Quadratic(1.0), ss.functions.Zero(), ss.domains.FullSpace(3)
    for f, X in ((zero, free), (q, ss.domains.NonNegative(3))):
        problem = ss.SaddleProblem(f=f, g=q, B=np.eye(3), X=X, Y=free)
        with pytest.raises(ss.errors.InputError, match="no theorem bounds the gap"):
            ss.solve(problem, tol=0.1, method=NAME)
    silent = ss.functions.Custom(gradient=lambda x: x, value=lambda x: float(x @ x) / 2)
    box = ss.domains.Box(-1.0, 1.0, shape=3)
    with pytest.raises(ss.errors.InputError, match="no known Hölder condition"):
        ss.solve(ss.SaddleProblem(f=silent, g=zero, B=np.eye(3), X=box, Y=box), tol=0.1, method=NAME)


# The choice.


def dear_products(weight=0.01, ridge=0.0):
    """f costly and merely smooth on a box, g simple, B weak: a plan of few products is proved."""
    rng = np.random.default_rng(3)
    A, b = rng.standard_normal((6, 12)), rng.standard_normal(6)
    f = ss.functions.Custom(
        gradient=lambda x: A.T @ (A @ x - b) + ridge * x,
        value=lambda x: 0.5 * float((A @ x - b) @ (A @ x - b) + ridge * x @ x),
        smoothness=ss.Holder(1.0, float(np.linalg.norm(A, 2)) ** 2 + ridge),
        strong_convexity=ridge,
    )
    X, Y = ss.domains.Box(-1.0, 1.0, shape=12), ss.domains.Box(-1.0, 1.0, shape=4)
    return ss.SaddleProblem(f=f, g=ss.functions.Zero(), B=weight * rng.standard_normal((4, 12)), X=X, Y=Y)


def test_plans_of_the_theorems_are_in_the_table_with_the_cost_that_they_prove():
    problem, prices = dear_products(), (2.0, 1.0, 5.0)
    row = next(row for row in predictions(Facts(problem), 0.5, prices) if row.method == NAME)
    calls = planned(problem, 0.5).predicted_calls
    assert row.share == 1.0
    assert (row.bound.f, row.bound.B) == (calls["f"], calls["B"])
    assert row.cost == pytest.approx(2.0 * (calls["f"] + row.judging.f) + 5.0 * (calls["B"] + row.judging.B))
    shown = ss.compare(problem, tol=0.5, costs=prices)
    assert NAME in repr(shown)


def test_auto_takes_a_plan_of_a_theorem_where_it_is_the_cheapest():
    problem, prices, tol = dear_products(), (1.0, 1.0, 20.0), 0.5
    assert chosen(problem, tol, 0.0, prices) == (NAME, ss.Calls(0, 0, 0))
    assert 1.25 * predict(NAME, Facts(problem), tol, prices).cost < predict_adaptive(Facts(problem), tol, prices).cost
    auto, alone = (ss.solve(problem, tol, costs=prices, method=name) for name in ("auto", "adaptive"))
    assert [plan.method for plan in auto.plans] == [NAME]
    assert auto.status is ss.Status.SOLVED and ss.certify(problem, auto.x, auto.y).gap <= tol
    # What is proved beforehand bounds the run, and here it is cheaper than adaptive sliding, by a factor of two.
    promised = ss.methods.by_name[NAME]().calls(Facts(problem), tol)
    own = auto.calls.B - auto.certificate_calls.B
    assert own <= promised.B
    assert 2 * (auto.calls.f + 20 * auto.calls.B) < alone.calls.f + 20 * alone.calls.B
    # Gradients that cost more than products are called fewer times by adaptive sliding.
    assert choose(Facts(problem), tol, 0.0, (20.0, 1.0, 1.0), estimated=False).method == "adaptive"


def test_a_plan_that_auto_took_is_limited_watched_and_repeated_as_any_method():
    problem, prices, tol = dear_products(), (1.0, 1.0, 20.0), 0.05
    seen = []
    whole = ss.solve(problem, tol, costs=prices, callback=lambda at: seen.append(at.gap))
    assert whole.plans[0].method == NAME
    assert [at.gap for at in whole.history] == seen and len(seen) > 2
    assert ss.run(problem, whole.plans[0]).x.tobytes() == whole.x.tobytes()
    limited = ss.solve(problem, tol, costs=prices, max_calls={"B": whole.calls.B // 2})
    assert limited.status is ss.Status.CALL_LIMIT and limited.calls.B <= whole.calls.B // 2 + 60


def test_a_plan_may_stand_still_on_the_way_to_what_it_proves(monkeypatch):
    # Any other method is given up when its gap has not halved while its cost doubled.
    monkeypatch.setattr("saddleslide.planner.courses._PROGRESS", 0.5)
    problem, tol = dear_products(), 0.05
    result = ss.solve(problem, tol, costs=(1.0, 1.0, 1.0))
    assert [plan.method for plan in result.plans] == [NAME]
    assert result.status is ss.Status.SOLVED
    spent = [(at.calls.f + at.calls.B, at.gap) for at in result.history]
    still = [gap > 0.5 * before for cost, gap in spent for half, before in spent if half <= 0.5 * cost]
    assert any(still)


def test_what_a_plan_leaves_unsolved_goes_on_with_adaptive_sliding():
    problem, prices, tol = dear_products(1.0), (1.0, 1.0, 1.0), 0.02
    result = carry_out(problem, on_allowance(problem, NAME, prices, tol), None, Control())
    assert [part.method for part in result.plans] == [NAME, "adaptive sliding"]
    assert result.status is ss.Status.SOLVED and ss.certify(problem, result.x, result.y).gap <= tol
    assert any("proved-sliding had a gap of" in reason for reason in result.plans[1].reasons)
    assert result.calls.B < ss.methods.by_name[NAME]().calls(Facts(problem), tol).B


@pytest.mark.parametrize("bounded", [False, True])
def test_where_adaptive_sliding_is_the_cheapest_at_any_distance_nothing_is_called(bounded):
    problem = ss.gallery.tomography(n=8, bounded=bounded)
    assert chosen(problem, 0.0, 1e-4, (100.0, 1.0, 1.0)) == ("adaptive", ss.Calls(0, 0, 0))


def test_a_plan_is_taken_where_distances_take_a_gradient_too():
    problem, prices, tol = dear_products(ridge=0.1), (1.0, 1.0, 20.0), 0.5
    assert chosen(problem, tol, 0.0, prices) == (NAME, ss.Calls(1, 0, 0))
    auto, alone = (ss.solve(problem, tol, costs=prices, method=name) for name in ("auto", "adaptive"))
    assert ss.certify(problem, auto.x, auto.y).gap <= tol
    assert auto.calls.f + 20 * auto.calls.B < alone.calls.f + 20 * alone.calls.B


def test_a_plan_must_be_cheaper_at_a_tenth_of_a_target_that_only_sizes_give():
    problem, prices = dear_products(0.1), (1.0, 1.0, 1.0)
    scale = start_scale(Facts(problem))
    tol = next(
        t for t in np.geomspace(1.0, 1e-3, 200) if _taken(problem, t, prices) and not _taken(problem, t / 10, prices)
    )
    assert choose(Facts(problem), tol, 0.0, prices, estimated=False).method == NAME
    assert choose(Facts(problem), 0.0, tol / scale, prices, estimated=False).method == "adaptive"


def _taken(problem, tol, prices):
    return choose(Facts(problem), tol, 0.0, prices, estimated=False).method == NAME


def test_a_domain_of_one_point_is_solved_at_once():
    zero, point = ss.functions.Linear([0.3]), ss.domains.Simplex(1)
    problem = ss.SaddleProblem(f=zero, g=zero, B=np.array([[0.7]]), X=point, Y=point)
    assert ss.solve(problem, reduction=1e-2).status in (ss.Status.SOLVED, ss.Status.NUMERICAL_LIMIT)


def test_a_relative_target_of_simple_functions_is_known_before_the_choice():
    """Sizes of the domains are too large a scale: predictions for a game were too small by more than ten."""
    rng = np.random.default_rng(5)
    zero, X, Y = ss.functions.Zero(), ss.domains.Simplex(30), ss.domains.Simplex(20)
    game = ss.SaddleProblem(f=zero, g=zero, B=rng.standard_normal((20, 30)), X=X, Y=Y)
    assert chosen(game, 0.0, 1e-3, (1.0, 1.0, 1.0))[1] == ss.Calls(0, 0, 2)
    result = ss.solve(game, reduction=1e-3, costs=(1.0, 1.0, 1.0))
    predicted = predict_adaptive(Facts(game), 1e-3 * ss.certify(game, *game.start()).gap, (1.0, 1.0, 1.0)).cost
    assert predicted / 4.0 < result.calls.B < 4.0 * predicted
    assert f"predicted cost {predicted:.4g}" in choose(Facts(game), 0.0, 1e-3, (1.0, 1.0, 1.0), estimated=False).reason


def test_restarted_primal_dual_steps_are_never_predicted_to_end_before_they_are_judged():
    box, q = ss.domains.Box(-1.0, 1.0, shape=2), ss.functions.Quadratic(1.0)
    problem = ss.SaddleProblem(f=q + ss.functions.Linear([1.0, 0.5]), g=q, B=0.1 * np.eye(2), X=box, Y=box)
    for tol in (1e-1, 1e-3):
        used = ss.solve(problem, tol, method="adaptive").calls.B
        assert 32 <= predict_adaptive(Facts(problem), tol, (1.0, 1.0, 1.0)).method_calls.B <= used <= 120
