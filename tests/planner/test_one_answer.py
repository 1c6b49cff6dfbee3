"""One planner: `ss.plan` is what `ss.solve` begins with, and `ss.run` repeats it, bit by bit and call by call."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp

import saddleslide as ss
from planted import planted
from saddleslide.arrays.base import to_complex
from saddleslide.cli.main import main
from saddleslide.problem.objectives import split_objective
from small_problems import bits, problems
from support import CountedProblem, gathered
from truths import FAMILIES

F, D = ss.functions, ss.domains
PRICES = (None, (1.0, 1.0, 1.0), (1.0, 1.0, 100.0), (300.0, 1.0, 1.0))
LIMITS = {"max_steps": 20, "max_calls": {"f": 200, "g": 200, "B": 1000}}


def replayed(make, asked):
    """The results of `solve` and of `run` on the plan of `plan`, each on a problem of its own."""
    solved, fresh = ss.solve(make(), **asked, **LIMITS), make()
    plan = ss.plan(fresh, **asked)
    assert plan == solved.plans[0]
    stored = ss.Plan.from_dict(json.loads(json.dumps(plan.to_dict(), allow_nan=False)))
    assert stored == plan and stored.explain() == plan.explain()
    ran = ss.run(fresh, stored, start=asked.get("start"), **LIMITS)
    assert bits(ran) == bits(solved)
    return solved


def test_plan_solve_and_run_are_one_answer_on_random_problems_of_all_kinds():
    methods = set()
    for seed in range(72):
        case = planted(seed, largest=16)
        target = {"reduction": case.reduction} if seed % 2 else {"tol": 10.0 ** -(seed % 5), "reduction": 1e-4}
        asked = {**target, "costs": PRICES[seed % 4], "rng": seed}
        if seed % 5 == 0:
            rng = np.random.default_rng(seed)
            asked["start"] = tuple(
                side.project(rng.standard_normal(side.shape)) for side in (case.problem.X, case.problem.Y)
            )
        solved = replayed(lambda seed=seed: planted(seed, largest=16).problem, asked)
        methods.add(tuple(plan.method for plan in solved.plans))
    assert len(methods) >= 6
    # A method that did not keep its prediction is in the plan too, with what comes after it.
    assert any(len(names) == 2 for names in methods)


@pytest.mark.parametrize("family", FAMILIES)
def test_plan_solve_and_run_are_one_answer_where_oracles_are_strange(family):
    """Own classes and products, overstated constants, adjoints that are none, thin boxes, optimal starts."""
    for seed in range(4):
        target = FAMILIES[family](np.random.default_rng(seed)).target
        try:
            ss.solve(FAMILIES[family](np.random.default_rng(seed)).problem, **target, max_steps=1)
        except ss.errors.InputError as refused:
            with pytest.raises(type(refused)):
                ss.plan(FAMILIES[family](np.random.default_rng(seed)).problem, **target)
            continue
        replayed(lambda seed=seed: FAMILIES[family](np.random.default_rng(seed)).problem, target)


def catalogued(seed):
    """A random problem of functions, sets and operators of the catalogue."""
    rng = np.random.default_rng(seed)

    def side(n, number):
        A, b = rng.standard_normal((9, n)), rng.standard_normal(9)
        costly = (
            F.Zero(), F.LeastSquares(A, b), F.Logistic(A, np.sign(b)), F.Power(0.5).translated(b) @ A,
            F.Quadratic(A.T @ A), F.LeastSquares(sp.csr_array(A * (A > 0.3)), b, ridge=0.1),
        )  # fmt: skip
        simple = (
            F.Zero(), F.L1(), F.L2(), F.LInf(), F.PNorm(1.5), F.Huber(0.3), F.Power(0.0), F.Hinge(), F.Quantile(0.3),
            F.SquaredHinge(), F.EpsilonInsensitive(0.2), F.LogSumExp(), F.Linear(b[:n]), F.Max(), F.Entropy(),
            F.Indicator(D.Ball(1.5, shape=n)), F.Quadratic(np.linspace(0.5, 2.0, n)), F.KullbackLeibler(np.abs(b[:n])),
        )  # fmt: skip
        sets = (
            D.Box(-1.0, 1.0, shape=n), D.NonNegative(n), D.FullSpace(n), D.Ball(2.0, shape=n), D.L1Ball(2.0, n),
            D.Simplex(n), D.Box(np.full(n, -np.inf), np.ones(n)), D.HalfSpace(b[:n], 1.0),
        )  # fmt: skip
        one = float(rng.uniform(0.05, 2.0)) * simple[number % len(simple)]
        return costly[int(rng.integers(len(costly)))] + one, sets[int(rng.integers(len(sets)))]

    B = (
        rng.standard_normal((4, 6)), sp.random_array((5, 6), density=0.4, random_state=rng).tocsr(),
        ss.operators.Identity((6,)), np.diff(np.eye(6), axis=0), ss.operators.Diagonal(rng.random(6)),
        ss.operators.Convolution(np.ones(3), 6),
    )[seed % 6]  # fmt: skip
    (f, X), (g, Y) = side(6, seed), side(ss.operators.as_operator(B).y_shape[0], seed // 2)
    return ss.SaddleProblem(f=f, g=g, B=B, X=X, Y=Y)


def test_plan_solve_and_run_are_one_answer_on_the_catalogue():
    methods = set()
    for seed in range(36):
        target = {"reduction": 1e-4} if seed % 2 else {"tol": 1e-3}
        solved = replayed(lambda seed=seed: catalogued(seed), {**target, "costs": PRICES[seed % 4]})
        methods |= {plan.method for plan in solved.plans}
    assert len(methods) >= 3, methods


def sampled(seed, has_values=True):
    """A random problem with sampled gradients of f, of g or of both."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(2, 7, 2)
    A, b = rng.standard_normal((8, n)), rng.standard_normal(8)
    f, g = F.LeastSquares(A, b, ridge=0.1), F.Quadratic(float(rng.uniform(0.2, 2.0)))
    if not has_values:
        f = F.Custom(
            gradient=lambda x: A.T @ (A @ x - b), sample=lambda x, draw: A.T @ (A @ x - b) + draw.normal(0.0, 0.1, n),
            variance=0.01 * n, smoothness=ss.Holder(1.0, float(np.linalg.norm(A, 2) ** 2)),
        )  # fmt: skip
    else:
        f = (f, F.Noisy(f, 0.2), F.MiniBatch(F.LeastSquares(A, b), 2))[seed % 3]
        g = F.Noisy(g, 0.1) if seed % 3 == 0 or rng.random() < 0.5 else g
    X, Y = D.Box(-1.0, 1.0, shape=int(n)), D.Box(-1.0, 1.0, shape=int(m))
    return ss.SaddleProblem(f=f, g=g, B=rng.standard_normal((m, n)), X=X, Y=Y)


def test_plan_solve_and_run_are_one_answer_with_sampled_gradients():
    kinds = set()
    for seed in range(24):
        target = {"reduction": 0.3} if seed % 2 else {"tol": 0.5}
        asked = {**target, "costs": PRICES[seed % 4]}
        if seed % 5 == 0:
            start = ss.SaddleProblem.start(sampled(seed))
            asked["start"] = tuple(part + 0.1 for part in start)
        solved = replayed(lambda seed=seed: sampled(seed), asked)
        kinds.add((solved.status, solved.plans[0].regime))
    assert len(kinds) >= 2


def objective(seed):
    """A random sum of terms and a set, every other one of complex arrays."""
    rng = np.random.default_rng(seed)
    n, is_complex = int(rng.integers(3, 8)), bool(seed % 2)

    def draw(*shape):
        return rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if is_complex else 0.0)

    A = ss.operators.as_operator(draw(6, n), dtype=complex if is_complex else float)
    K = ss.operators.as_operator(draw(4, n), dtype=complex if is_complex else float)
    total = F.LeastSquares(A, draw(6)) + float(rng.uniform(0.05, 0.5)) * (F.L1() @ K)
    if seed % 3 == 0:
        total = total + 0.2 * F.L1()
    if seed % 3 == 1:
        total = total + 0.1 * (F.L2() @ K)
    return total, None if is_complex or seed % 4 else D.Box(-1.0, 1.0, shape=n)


def test_minimise_is_the_plan_of_its_saddle_problem_also_with_complex_arrays():
    methods = set()
    for seed in range(8):
        asked = {"rtol": 1e-3} if seed % 3 else {"tol": 1e-2}
        terms, over = objective(seed)
        found = ss.minimize(terms, over=over, **asked, **LIMITS)
        problem = split_objective(*objective(seed)).problem
        plan = ss.plan(problem, **asked)
        assert plan == found.plans[0]
        solved, ran = ss.solve(problem, **asked, **LIMITS), ss.run(problem, plan, **LIMITS)
        assert bits(ran) == bits(solved)
        assert found.calls == solved.calls and found.status is solved.status and found.gap == solved.gap
        x = to_complex(solved.x) if seed % 2 else solved.x
        assert np.array_equal(found.x, x)
        methods |= {one.method for one in found.plans}
    assert len(methods) >= 2


@pytest.mark.parametrize("limits", [{}, {"max_calls": {"B": 30}}])
def test_without_values_solve_is_plan_and_run_and_every_call_is_counted_once(limits):
    made = []

    def count(product):
        return lambda v: made.append("B") or product(v)

    def blind():
        problem, draw = sampled(1, has_values=False), np.random.default_rng(0)
        K = draw.standard_normal((problem.Y.size, problem.X.size))
        f = F.Custom(
            gradient=problem.f.gradient, sample=lambda x, rng: made.append("f") or problem.f.sample(x, rng),
            variance=0.1, smoothness=problem.f.smoothness(problem.X),
        )  # fmt: skip
        B = (count(K.dot), count(K.T.dot))
        return ss.SaddleProblem(f=f, g=problem.g, B=B, X=problem.X, Y=problem.Y)

    solved = ss.solve(blind(), 2.0, **limits)
    assert (solved.calls.f, solved.calls.B) == (made.count("f"), made.count("B"))
    assert solved.aside.B == solved.plans[0].spent[2] > 0
    made.clear()
    problem = blind()
    plan = ss.plan(problem, 2.0)
    assert plan == solved.plans[0] and bits(ss.run(problem, plan, **limits)) == bits(solved)
    assert (solved.calls.f, solved.calls.B) == (made.count("f"), made.count("B"))


@pytest.mark.parametrize("name", problems())
def test_named_methods_and_metrics_are_planned_as_they_are_solved(name):
    for asked in ({"method": "adaptive"}, {"method": "mirror-prox"}, {"metric": "blocks"}, {"method": "pdhg"}):
        try:
            ss.solve(problems()[name], 1e-3, **asked, max_steps=1)
        except ss.errors.InputError as refused:
            with pytest.raises(type(refused)):
                ss.plan(problems()[name], 1e-3, **asked)
            continue
        replayed(lambda: problems()[name], {"tol": 1e-3, **asked})


@gathered("prices", PRICES)
def test_compare_and_the_command_line_give_the_same_answer(prices, capsys):
    problem = problems()["simple"]
    table, plan = ss.compare(problem, 1e-3, costs=prices), ss.plan(problem, 1e-3, costs=prices)
    assert table.plan == plan and f"auto takes {table.auto}: {plan.reasons[0]}" in repr(table)
    assert main(["plan", "tomography", "--size", "8"]) == 0
    explained = ss.plan(ss.gallery.tomography("standard", n=8), reduction=1e-3).explain()
    assert explained.splitlines()[0] in capsys.readouterr().out


def test_what_making_a_plan_took_is_counted_once_in_every_run_of_it():
    made = planted(30, largest=20).problem
    plan = ss.plan(made, 1e-3, costs=(1.0, 1.0, 100.0))
    assert plan.spent[:2] == (1, 1)
    first, second = (ss.run(made, plan, max_steps=5) for _ in range(2))
    assert first.calls == second.calls and first.calls.f > plan.spent[0]
    # Limits are on all calls, those of the plan included.
    assert ss.run(made, plan, max_calls={"f": 1}).status is ss.Status.CALL_LIMIT


def test_measured_prices_are_measured_once_recorded_and_replayed():
    counted = CountedProblem(np.eye(3))
    plan = ss.plan(counted.problem, 1e-3, costs="measure")
    assert plan.spent == (*counted.gradients, counted.products) and counted.gradients == (3, 3)
    assert all(price > 0.0 for price in plan.costs)
    assert ss.Plan.from_dict(plan.to_dict()).costs == plan.costs
    solved = ss.solve(problems()["custom"], 1e-3, costs="measure")
    again = ss.run(problems()["custom"], solved.plans[0])
    assert bits(again) == bits(solved)


def test_wrappers_that_never_draw_change_nothing():
    problem = problems()["costly g"]
    silent = ss.SaddleProblem(
        f=ss.functions.Noisy(problem.f, 0.0), g=problem.g, B=problem.coupling, X=problem.X, Y=problem.Y
    )
    plan = ss.plan(silent, 1e-3)
    assert plan == ss.plan(problem, 1e-3)
    assert bits(ss.run(silent, plan)) == bits(ss.solve(problem, 1e-3))
