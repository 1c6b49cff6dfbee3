"""Sliding without constants: the inequality that its accounts carry, its bound at every step, what it costs."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.errors import InputError
from saddleslide.facts.facts import Facts
from saddleslide.methods.parameter_free_sliding import (
    ParameterFreeSliding,
    ParameterFreeState,
    _Recursion,
)
from saddleslide.oracles.oracles import Oracles
from saddleslide.theory.levels import last_alpha, shortest_loop

F, D = ss.functions, ss.domains
ROOT = Path(ss.__file__).parents[2]
SMOOTH, ROUGH = (2.0, 2.0), (1.0, 1.5)


def made(seed, exponents=SMOOTH, n=6, m=5, size=1.0):
    """|Ax - b|^p on both sides over boxes; the largest eigenvalues of the quadratics beside it."""
    rng = np.random.default_rng(seed)
    A, C, B = (rng.standard_normal(shape) for shape in ((n + 2, n), (m + 2, m), (m, n)))
    parts = [
        F.Power(nu=p - 1.0).translated(rng.standard_normal(M.shape[0])) @ M
        for p, M in zip(exponents, (A, C), strict=True)
    ]
    X, Y = D.Box(-size, 2.0 * size, shape=n), D.Box(-size, size, shape=m)
    problem = ss.SaddleProblem(f=parts[0], g=parts[1], B=B, X=X, Y=Y)
    return problem, {"f": np.linalg.norm(A, 2) ** 2, "g": np.linalg.norm(C, 2) ** 2, "B": np.linalg.norm(B, 2)}


def stated(problem, z, ledger, u):
    """Sum of p_k(z) - m_k(u), and <Q(u), z - u>: what the theorem bounds, by its definition."""
    n = problem.X.size
    left = problem.f.value(z[:n]) + problem.g.value(z[n:])
    for name, part in (("f", u[:n]), ("g", u[n:])):
        left -= ledger[name][3] + float(ledger[name][4:] @ part)
    B = np.asarray(problem.coupling.dense())
    return left + float(np.concatenate([B.T @ u[n:], -B @ u[:n]]) @ (z - u))


def one_run(problem, order, loops, constants, seed):
    """All steps with loops and constants of anybody's choice, from a random point."""
    rng = np.random.default_rng(seed)
    Z = D.Product(problem.X, problem.Y)
    z = Z.project(rng.standard_normal(Z.shape))
    method, oracles = ParameterFreeSliding(), Oracles(problem)
    state = method.init(oracles, Facts(problem), (z[: problem.X.size], z[problem.X.size :]), 1.0)
    state = replace(state, order=order, point=z, iterates=(z, z, z))
    recursion = _Recursion(oracles, state, loops, constants, {})
    out, ledger = recursion.advance(loops[0])
    return state, recursion, out, ledger


def right_side(problem, state, recursion, out, ledger, loops, constants, u, times=1.0):
    """What the accounts leave, and the distances with their weights; `times` makes these wrong."""
    n = problem.X.size
    right = problem.f.value(out[:n]) - ledger["f"][0] + problem.g.value(out[n:]) - ledger["g"][0] - ledger["B"][0]
    product = 1.0
    for k, name in enumerate(state.order):
        product *= last_alpha(loops[k])
        weight = constants[name] * (product if name == "B" else product**2)
        before, after = (
            float(recursion.weights[name] @ (z - u) ** 2) for z in (state.iterates[k], recursion.iterates[k])
        )
        right += times * 0.5 * weight * (before - after)
    return right


@pytest.mark.parametrize("exponents", [SMOOTH, ROUGH])
@pytest.mark.parametrize("order", ["fgB", "Bgf", "gBf"])
def test_the_inequality_of_the_accounts_holds_for_any_loops_and_constants(order, exponents):
    rng, broken = np.random.default_rng(7), 0
    for seed in range(12):
        problem, _ = made(seed, exponents)
        loops = tuple(int(T) for T in rng.integers(1, 4, 3))
        constants = {name: float(10.0 ** rng.uniform(-1.0, 2.0)) for name in "fgB"}
        run = one_run(problem, order, loops, constants, seed)
        out, ledger = run[2], run[3]
        for _ in range(20):
            u = D.Product(problem.X, problem.Y).project(2.0 * rng.standard_normal(out.size))
            left, size = stated(problem, out, ledger, u), 1.0 + abs(ledger["f"][0]) + abs(ledger["g"][0])
            assert left <= right_side(problem, *run, loops, constants, u) + 1e-10 * size
            broken += left > right_side(problem, *run, loops, constants, u, times=0.5) + 1e-10 * size
    # Half the weights of the distances is too little.
    assert broken > 10


@pytest.mark.parametrize("exponents", [SMOOTH, ROUGH])
def test_models_are_below_and_accounts_of_valid_constants_are_not_overdrawn(exponents):
    rng = np.random.default_rng(1)
    for seed in range(8):
        problem, valid = made(seed, exponents)
        constants = {name: 1.01 * valid[name] for name in "fgB"}
        _, _, out, ledger = one_run(problem, "gfB", (3, 2, 3), constants, seed)
        n = problem.X.size
        values = {"f": problem.f.value(out[:n]), "g": problem.g.value(out[n:])}
        if exponents == SMOOTH:
            assert all(values[name] <= ledger[name][0] + 1e-9 * (1.0 + abs(values[name])) for name in "fg")
        assert ledger["B"][0] >= -1e-9
        for _ in range(20):
            u = D.Product(problem.X, problem.Y).project(rng.standard_normal(out.size))
            for name, function, part in (("f", problem.f, u[:n]), ("g", problem.g, u[n:])):
                value = function.value(part)
                assert ledger[name][3] + float(ledger[name][4:] @ part) <= value + 1e-9 * (1.0 + abs(value))


def sup_at(problem):
    """The gap at the start, roughly."""
    return ss.certify(problem, *problem.start(), max_gradients=50).gap


def true_difference(problem, z, u):
    """F(x, v) - F(u, y): the gap is its largest value."""
    n, B = problem.X.size, np.asarray(problem.coupling.dense())
    value = [problem.f.value(p[:n]) + problem.g.value(p[n:]) for p in (z, u)]
    return value[0] - value[1] + float(u[n:] @ B @ z[:n] - z[n:] @ B @ u[:n])


def sup_of_models(problem, z, ledger):
    """The largest left side over the boxes: it is linear in u."""
    n, B = problem.X.size, np.asarray(problem.coupling.dense())
    slope = -np.concatenate([ledger["f"][1].ravel(), ledger["g"][1].ravel()])
    # <Q(u), z - u> = <Q(u), z> = -<Q(z), u>, since Q is linear and skew.
    slope -= np.concatenate([B.T @ z[n:], -B @ z[:n]])
    low, high = (
        np.concatenate([np.broadcast_to(side, domain.shape).ravel() for domain, side in pairs])
        for pairs in zip(*[[(S, S.lower), (S, S.upper)] for S in (problem.X, problem.Y)], strict=True)
    )
    constant = problem.f.value(z[:n]) + problem.g.value(z[n:]) - ledger["f"][0] - ledger["g"][0]
    return constant + float(np.sum(np.maximum(slope * low, slope * high)))


def bound_of_the_accounts(problem, state, eps, slack):
    """The right-hand side of Theorem 2 of docs/open.md."""
    squares = {"f": problem.X.diameter() ** 2, "g": problem.Y.diameter() ** 2}
    w = math.sqrt(state.Omegas["g"] / state.Omegas["f"])
    squares["B"] = w * squares["f"] + squares["g"] / w
    rho = state.share / last_alpha(state.loops()[0][0]) ** 2
    distances = sum(squares[name] / state.Omegas[name] for name in state.order)
    return eps * (rho * last_alpha(state.step) ** 2 * distances + 3.0 * slack)


@pytest.mark.parametrize("exponents", [SMOOTH, ROUGH, (1.5, 2.0)])
@pytest.mark.parametrize("seed", range(3))
def test_the_bound_of_the_accounts_holds_at_every_step(seed, exponents):
    (problem, valid), rng = made(seed, exponents), np.random.default_rng(seed)
    eps = 0.1 * sup_at(problem)
    method, oracles, facts = ParameterFreeSliding(share=0.5), Oracles(problem), Facts(problem)
    state, orders = method.init(oracles, facts, problem.start(), eps), set()
    before = 0.0
    for _ in range(12):
        state = method.step(state, oracles)
        loops, _ = state.loops()
        grown = state.share / last_alpha(loops[0]) ** 2
        assert grown >= before * (1.0 - 1e-12) or len(orders | {state.order}) > len(orders)
        orders, before = orders | {state.order}, grown
        found = sup_of_models(problem, state.point, state.models)
        assert found <= bound_of_the_accounts(problem, state, eps, method.slack)
        for _ in range(5):
            u = D.Product(problem.X, problem.Y).project(2.0 * rng.standard_normal(state.point.size))
            assert true_difference(problem, state.point, u) <= found + 1e-9 * (1.0 + abs(found))
    # No constant is more than twice one that is valid.
    assert state.constants["B"] <= 2.0 * valid["B"]
    for name, p in zip("fg", exponents, strict=True):
        if p == 2.0:
            assert state.constants[name] <= 2.0 * valid[name]


def test_less_than_half_of_the_bound_of_the_accounts_is_too_little():
    """On linear functions from a corner, where D_k^2 = Omega_k, a few steps leave 0.458 of it."""
    line, ratios = D.Box(-1.0, 1.0, shape=1), []
    for slope in (0.5, 1.0, 2.0):
        problem = ss.SaddleProblem(f=F.Linear([slope]), g=F.Linear([slope]), B=[[1e-9]], X=line, Y=line)
        method, oracles = ParameterFreeSliding(), Oracles(problem)
        state = method.init(oracles, Facts(problem), (np.ones(1), np.ones(1)), 1.0)
        for _ in range(4):
            state = method.step(state, oracles)
            found = sup_of_models(problem, state.point, state.models)
            ratios.append(found / bound_of_the_accounts(problem, state, 1.0, method.slack))
    assert 0.45 < max(ratios) <= 1.0


@pytest.mark.parametrize("exponents", [SMOOTH, ROUGH])
def test_calls_are_at_most_what_the_proof_of_the_price_adds_up(exponents, monkeypatch):
    """calls <= 6 (1 + J) max N, J raised constants, halved shares and changes of the order; and few are raised."""
    problem, valid = made(2, exponents)
    method, oracles, asked = ParameterFreeSliding(), Oracles(problem), ParameterFreeSliding._overdrawn
    state = method.init(oracles, Facts(problem), problem.start(), 0.1 * sup_at(problem))
    raised, longest = dict.fromkeys("fgB", 0), dict.fromkeys("fgB", 0)

    def watched(self, state, *given):
        found, N = asked(self, state, *given), 1
        for name, T in zip(state.order, state.loops()[0], strict=True):
            N *= T
            longest[name] = max(longest[name], N)
            raised[name] += name in found
        return found

    monkeypatch.setattr(ParameterFreeSliding, "_overdrawn", watched)
    changes = 0
    while state.share > 0.2 or state.step < state.loops()[0][0]:
        before, state = state, method.step(state, oracles)
        changes += (before.order != state.order) + round(math.log2(before.share / state.share))
    J, calls = sum(raised.values()) + changes, {"f": oracles.calls.f, "g": oracles.calls.g, "B": oracles.calls.B / 4}
    assert all(calls[name] <= 6 * (1 + J) * longest[name] for name in "fgB")
    # One run of the loops alone is too little: that is what not knowing the constants costs.
    assert any(calls[name] > longest[name] for name in "fgB")
    # Each raise doubles what was afforded, at least beta: log2 of the budget of B, twice that of f and of g.
    for name in "fgB":
        assert raised[name] <= 1 + (1 if name == "B" else 2) * math.log2(2.0 * longest[name])
    assert state.constants["B"] <= 2.0 * valid["B"]


def test_small_shares_end_the_loops_within_the_target():
    problem, _ = made(3)
    eps = 0.1 * sup_at(problem)
    method, oracles = ParameterFreeSliding(share=1.0 / 30.0), Oracles(problem)
    state = method.init(oracles, Facts(problem), problem.start(), eps)
    while not state.step or state.step < state.loops()[0][0]:
        state = method.step(state, oracles)
    assert state.share == 1.0 / 30.0
    assert sup_of_models(problem, state.point, state.models) <= eps


def test_loops_are_the_shortest_that_afford_the_constants():
    for depth in (1.0, 1.2, 1.62, 5.0, 77.3, 1234.5):
        T = shortest_loop(depth)
        assert 1.0 / last_alpha(T) >= depth * (1.0 - 1e-11)
        assert T == 1 or 1.0 / last_alpha(T - 1) < depth
    z = np.zeros(2)
    state = ParameterFreeState(z, (z,) * 3, "fgB", {"f": 90.0, "g": 2000.0, "B": 50.0}, {"f": 1.0, "g": 2.0, "B": 3.0},
                               0.1, 0.5)  # fmt: skip
    loops, afforded = state.loops()
    assert all(afforded[name] >= state.constants[name] * (1.0 - 1e-11) for name in "fgB")
    a_1, a_2 = last_alpha(loops[0]), last_alpha(loops[0]) * last_alpha(loops[1])
    assert afforded["f"] == pytest.approx(0.1 / 1.0 / a_1**2)
    assert afforded["g"] == pytest.approx(0.1 / 2.0 / a_2**2)


def test_calls_stay_within_four_times_those_of_a_plan_that_knows_all_and_below_one_that_knows_little():
    benchmark = pytest.importorskip("benchmarks.parameter_free")
    stored = json.loads((ROOT / "benchmarks" / "results" / "parameter_free.json").read_text(encoding="utf-8"))
    rows = {row["name"]: row for row in stored["rows"]}
    cases = list(benchmark.cases())
    assert len(cases) == 35 == len(rows)
    for name, problem, tol in cases:
        known, loose = benchmark.planned(problem, tol), benchmark.planned(problem, tol, benchmark.LOOSE)
        found = benchmark.called(problem, tol, "parameter-free-sliding")
        assert all(found[oracle] <= 4.0 * known[oracle] for oracle in "fgB"), name
        assert all(found[oracle] < loose[oracle] for oracle in "fgB"), name
        assert known == rows[name]["plan"]


def test_the_page_quotes_what_was_measured():
    stored = json.loads((ROOT / "benchmarks" / "results" / "parameter_free.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "open.md").read_text(encoding="utf-8")
    for numbers in stored["summary"].values():
        for kind in ("median", "largest"):
            assert " / ".join(f"{number:.2g}" for number in numbers[kind]) in page


def test_calls_of_g_follow_its_own_exponent_which_nobody_has_said():
    for nu, slope in ((0.0, 2.0), (1.0, 0.5)):
        problem = ss.gallery.synthetic(1.0, nu, d=8, alpha_y=5.0)
        start, method = ss.certify(problem, *problem.start()).gap, "parameter-free-sliding"
        calls = [ss.solve(problem, start * part, method=method).calls.g for part in (0.1, 0.1 / 8.0)]
        assert math.log(calls[1] / calls[0]) / math.log(8.0) <= slope + 0.2


def test_it_is_certified_resumed_and_refused_as_other_methods(tmp_path):
    problem = ss.gallery.synthetic(1.0, 1.0, seed=1, d=12)
    at_start = ss.certify(problem, *problem.start()).gap
    result = ss.solve(problem, reduction=0.01, method="parameter-free-sliding")
    assert result.status is ss.Status.SOLVED
    assert ss.certify(problem, result.x, result.y).gap <= result.target == pytest.approx(0.01 * at_start)
    again = ss.run(problem, ss.Plan.from_dict(json.loads(json.dumps(result.plans[0].to_dict()))))
    assert again.x.tobytes() == result.x.tobytes()
    assert again.calls == result.calls
    free = ss.SaddleProblem(f=F.Quadratic(1.0), g=F.Quadratic(1.0), B=np.eye(2), X=D.FullSpace(2), Y=D.FullSpace(2))
    with pytest.raises(InputError, match="unbounded; expected a bounded domain"):
        ss.solve(free, 1.0, method="parameter-free-sliding")
    empty = ss.SaddleProblem(
        f=F.Zero(), g=F.Quadratic(1.0), B=np.zeros((2, 2)), X=D.Box(0.0, 1.0, shape=2), Y=D.Box(0.0, 1.0, shape=2)
    )
    with pytest.raises(InputError, match="a block has no level"):
        ss.solve(empty, 1.0, method="parameter-free-sliding")


def test_rough_functions_are_certified_by_the_models_that_are_carried_along():
    problem, _ = made(0, (1.0, 1.0))
    start = sup_at(problem)
    result = ss.solve(problem, 0.05 * start, method="parameter-free-sliding", max_calls={"f": 5000, "g": 5000})
    assert result.status is ss.Status.SOLVED
