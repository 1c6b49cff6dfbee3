"""Runs with sampled gradients: bits, counts, Monte-Carlo means against the theorems, floors, and honest results."""

import importlib.util
import json
import math
from pathlib import Path

import numpy as np
import pytest

import saddleslide as ss
from plans import first_stages
from saddleslide.errors import InputError
from saddleslide.functions import Custom, LeastSquares, Linear, Logistic, MiniBatch, Noisy, Quadratic
from support import gathered

# Thousands of steps on long vectors: compiled updates take half the time.
pytestmark = pytest.mark.usefixtures("compiled")
ROOT = Path(__file__).resolve().parents[2]


def benchmark(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GAP, RESTARTS = benchmark("stochastic_gap"), benchmark("stochastic_restarts")
RNG = np.random.default_rng(4)
A, b, B = RNG.standard_normal((12, 5)), RNG.standard_normal(12), RNG.standard_normal((3, 5)) / 3.0
BOX = ss.domains.Box(-1.0, 1.0, shape=5), ss.domains.Box(-1.0, 1.0, shape=3)
FREE = ss.domains.FullSpace(5), ss.domains.FullSpace(3)
F, G = LeastSquares(A, b, ridge=1.0), Quadratic(np.array([0.7, 0.9, 1.4])) + Linear(np.array([0.2, -0.4, 0.1]))


def saddle(f=F, g=G, domains=BOX):
    return ss.SaddleProblem(f=f, g=g, B=B, X=domains[0], Y=domains[1])


def same_bits(first, second):
    assert (first.x == second.x).all() and (first.y == second.y).all()
    assert (first.calls, first.samples, first.certificate) == (second.calls, second.samples, second.certificate)
    assert [row.calls for row in first.history] == [row.calls for row in second.history]


QUIET = [(Noisy(F, 0.0), Noisy(G, 0.0)), (MiniBatch(F, 12), G)]


@pytest.mark.parametrize(("f", "g"), QUIET, ids=["no noise", "all rows"])
@pytest.mark.parametrize(
    ("domains", "options"),
    [
        (BOX, {"order": "gfB", "loops": (4, 3, 5)}),
        (BOX, {"tol": 0.3, "regime": "degenerate"}),
        (BOX, {"tol": 0.05, "regime": "restarts"}),
        (FREE, {"tol": 0.05, "regime": "restarts", "anchors": True}),
    ],
    ids=["loops", "degenerate", "restarts", "anchors"],
)
def test_zero_variance_reproduces_the_deterministic_run_to_the_bit(f, g, domains, options):
    exact, quiet = saddle(domains=domains), saddle(f, g, domains)
    plan = ss.plan(exact, **options)
    assert ss.plan(quiet, **options) == plan
    first, second = ss.run(exact, plan), ss.run(quiet, plan, rng=17)
    same_bits(first, second)
    assert second.samples.total == 0 and math.isnan(second.expected_gap) and repr(second).count("samples") == 0


@pytest.mark.parametrize("domains", [BOX, FREE], ids=["box", "free"])
@pytest.mark.parametrize(
    "options", [{}, {"method": "adaptive", "metric": "diagonal"}, {"method": "mirror-prox"}], ids=str
)
def test_zero_variance_is_solved_like_the_deterministic_problem_to_the_bit(domains, options):
    loss = Logistic(A, np.sign(b), ridge=0.5)
    for exact, quiet in ((F, MiniBatch(F, 12)), (0.5 * loss + F, 0.5 * MiniBatch(loss, 12) + Noisy(F, 0.0))):
        tol = 1e-3 if options.get("method") == "mirror-prox" else 1e-6
        first = ss.solve(saddle(exact, domains=domains), tol, **options)
        second = ss.solve(saddle(quiet, Noisy(G, 0.0), domains), tol, rng=0, **options)
        assert first.success and first.plans[0] == second.plans[0]
        same_bits(first, second)


def test_the_seed_decides_every_bit():
    problem = saddle((1 / 12) * MiniBatch(F, 3), Noisy(G, 0.3))
    plan = ss.plan(problem, 0.5, regime="degenerate")
    first, again = ss.run(problem, plan, rng=3), ss.run(problem, plan, rng=np.random.default_rng(3))
    same_bits(first, again)
    assert (ss.run(problem, plan, rng=4).x != first.x).any()
    solved = [ss.solve(problem, 0.2, rng=rng) for rng in (5, 5, np.random.default_rng(5))]
    same_bits(*solved[:2])
    same_bits(*solved[1:])


def test_exact_problems_take_a_generator_too_and_record_the_seed_drawn_from_it():
    first, again = (ss.solve(saddle(), 1e-4, method="adaptive", rng=np.random.default_rng(5)) for _ in range(2))
    same_bits(first, again)
    seed = int(np.random.default_rng(5).integers(2**63))
    assert first.plans[0].to_dict()["seed"] == seed
    same_bits(first, ss.solve(saddle(), 1e-4, method="adaptive", rng=seed))


def test_a_sampled_run_is_algorithm_1_on_the_same_draws():
    """f outermost, g and B in lockstep below it, T = (T, 1, 1), written out from the paper with tau in every step."""
    problem = saddle(Noisy(F, 0.4), Noisy(G, 0.2))
    T = 6
    plan = ss.plan(problem, order="fgB", loops=(T, 1, 1), metric="identity")
    # Omega = 8 in the box; tau_i = sigma_i A_i^(3/2) / (2^i sqrt(Omega)) with A = T on every level.
    tau_f, tau_g = 0.4 * T**1.5 / (2 * math.sqrt(8.0)), 0.2 * T**1.5 / (4 * math.sqrt(8.0))
    L_x, L_y, L_xy = np.linalg.norm(A, 2) ** 2 + 1.0, 1.4, np.linalg.norm(B, 2)
    rng = np.random.default_rng(8)
    z, w, v = (np.zeros(8) for _ in range(3))  # iterates of the levels f, g and B
    average = np.zeros(8)
    Q = np.block([[np.zeros((5, 5)), B.T], [-B, np.zeros((3, 3))]])
    project = lambda point: np.clip(point, -1.0, 1.0)  # noqa: E731
    alpha, alphas = 1.0, []
    for _ in range(T):
        alphas.append(alpha)
        alpha = 2.0 / (1.0 + math.sqrt(1.0 + 4.0 / alpha**2))
    for alpha in alphas:
        base = (1.0 - alpha) * average
        drawn_f = F.gradient((alpha * z + base)[:5]) + 0.4 / math.sqrt(5) * rng.standard_normal(5)
        drawn_g = G.gradient((alpha * w + base)[5:]) + 0.2 / math.sqrt(3) * rng.standard_normal(3)
        slope_f, slope_g = np.concatenate([drawn_f, [0] * 3]), np.concatenate([[0] * 5, drawn_g])
        steps = [alpha * (L_x + tau_f), alpha * (L_y + tau_g), L_xy * alpha / alphas[-1]]
        centre = steps[0] * z + steps[1] * w + steps[2] * v
        ahead = project((centre - slope_f - slope_g - Q @ v) / sum(steps))
        v = project(ahead - (Q @ ahead - Q @ v) / steps[2])
        w, z = ahead.copy(), ahead.copy()
        average = alpha * ahead + (1.0 - alpha) * average
    result = ss.run(problem, plan, rng=8)
    assert np.concatenate([result.x, result.y]) == pytest.approx(average, abs=1e-10)


def test_samples_are_counted_per_oracle_with_batches_and_anchors():
    problem = saddle(MiniBatch(F, 4, variance=2.0), Noisy(G, 0.3), FREE)
    plan = ss.plan(problem, 0.2, regime="restarts", anchors=True, anchor_batch=5)
    plan = first_stages(plan, 3, tol=1e-300)
    result = ss.run(problem, plan)
    inside = {
        level: sum(stop.N for s in plan.schedule.stages for stop in s.levels if stop.term.name == level)
        for level in "fg"
    }
    assert (result.method_calls.f, result.method_calls.g) == (inside["f"] + 15, inside["g"] + 15)
    assert (result.samples.f, result.samples.g) == (4 * result.method_calls.f, result.method_calls.g)
    assert plan.predicted_samples == {"f": result.samples.f, "g": result.samples.g}
    # Delta_anc = beta_y sigma_x^2 + beta_x sigma_y^2 with beta = 1/(4 L) of the other function.
    L_x, L_y = plan.constants["H_x"].value, 1.4
    assert result.floor == pytest.approx(64 / 5 * (2.0 / (4 * L_x) + 0.09 / (4 * L_y)))
    assert "floor" in repr(result)
    assert result.history[-1].samples == result.samples
    twice = result.samples + result.samples
    assert (twice.f, twice.g) == (2 * result.samples.f, 2 * result.samples.g)
    lone = ss.plan(saddle(F, Noisy(G, 0.3), FREE), 0.2, anchors=True, anchor_batch=5)
    # An exact anchor is one call.
    stage = first_stages(lone, 1, tol=1e-300)
    counted = ss.run(saddle(F, Noisy(G, 0.3), FREE), stage)
    assert counted.samples.f == 0 and counted.samples.g == counted.calls.g
    assert (
        counted.method_calls.f == next(stop.N for stop in stage.schedule.stages[0].levels if stop.term.name == "f") + 1
    )


def test_anchors_are_drawn_once_per_restart_and_kept():
    drawn = []

    def sample(y, rng):
        drawn.append(y.copy())
        return G.gradient(y) + 0.1 * rng.standard_normal(3)

    g = Custom(
        gradient=G.gradient, value=G.value, sample=sample, variance=0.03, smoothness=ss.Holder(1.0, 1.4),
        strong_convexity=0.7,
    )  # fmt: skip
    problem = saddle(F, g, FREE)
    plan = ss.plan(problem, 0.2, regime="restarts", anchors=True, anchor_batch=3, Psi0=10.0)
    plan = first_stages(plan, 2, tol=1e-300)
    drawn.clear()
    ends = []
    ss.run(problem, plan, callback=lambda result: ends.append(result.y))
    N = next(level.N for level in plan.schedule.stages[0].levels if level.term.name == "g")
    assert len(drawn) == 2 * 3 + sum(stop.N for s in plan.schedule.stages for stop in s.levels if stop.term.name == "g")
    assert all((y == 0.0).all() for y in drawn[:3])
    second = drawn[3 + N : 6 + N]
    assert all((y == ends[plan.schedule.stages[0].levels[0].T - 1]).all() for y in second)


# The same settings as the benchmark, with fewer runs: the mean plus three standard errors stays below the bound.
@pytest.mark.parametrize("name", [name for name in GAP.SETTINGS if name != "mini-batch least squares"])
def test_the_mean_gap_is_below_the_bound_of_the_uniform_theorem(name):
    row = GAP.measure(name, runs=12)
    assert 0.0 < row["mean"] + 3.0 * row["standard_error"] <= row["bound"] <= row["printed"]
    assert row["bound_over_mean"] < 60.0


@pytest.mark.parametrize("name", GAP.SLOPES)
def test_noise_makes_the_gap_fall_like_the_square_root_of_the_samples(name):
    problem = GAP.interior_game()
    plan = ss.plan(problem, order=GAP.SLOPES[name], loops=(40, 1, 1), metric="identity")
    # The fast form of the benchmark makes the draws of ss.run and ends at the same points.
    assert GAP.lockstep_gaps(problem, plan, 4) == pytest.approx(GAP.gaps(problem, plan, 4), abs=1e-9)
    assert GAP.slope(name, runs=100, grid=(2048, 5792, 16384))["slope"] == pytest.approx(-0.5, rel=0.1)


@pytest.mark.parametrize("anchors", [True, False])
def test_the_mean_of_psi_follows_the_stage_recursion(anchors):
    row = RESTARTS.stages(RESTARTS.Known(), anchors, runs=200, tol=0.3)
    assert row["worst"] <= 1.0
    # It falls by orders of magnitude, not by luck of a loose start.
    assert row["mean"][-1] < 0.05 * row["Gamma"][0]


def test_the_floor_of_the_anchors_falls_like_one_over_b():
    known = RESTARTS.Known()
    rows = [RESTARTS.anchors_alone(known, batch, runs=200) for batch in (1, 4, 16, 64)]
    assert RESTARTS.slope_of(rows) == pytest.approx(-1.0, rel=0.1)
    assert all(row["floor"] + 2.0 * row["standard_error"] <= row["bound"] for row in rows)


def test_the_floor_of_the_whole_scheme_falls_like_one_over_b_where_noise_sets_the_budgets():
    known = RESTARTS.Known((1000.0, 1000.0), size=3)
    rows = []
    for batch in (4, 16):
        floor = known.plan(1e-7, anchors=True, anchor_batch=batch).constants["floor"].value
        # From just above the floor, so that few stages are needed.
        share = 1.15 * floor / known.Psi(np.zeros(3), np.zeros(3))[0]
        rows.append(RESTARTS.whole_scheme(known, batch, runs=150, count=2, share=share, factor=1.0))
    assert RESTARTS.slope_of(rows) == pytest.approx(-1.0, rel=0.1)
    assert all(row["floor"] + 2.0 * row["standard_error"] <= row["bound"] for row in rows)
    # It is the noise that sets the budgets, by 1 / Gamma_s: four times the calls at a quarter of the floor.
    assert rows[1]["calls"]["f"] == pytest.approx(4 * rows[0]["calls"]["f"], rel=0.1)


def test_copies_side_by_side_are_independent_runs():
    known = RESTARTS.Known()
    plan = known.plan(3.0, anchors=True, anchor_batch=2)
    plan = first_stages(plan, 4)
    alone = np.array([known.traces(plan, 1, seed)[-1, 0] for seed in range(40)])
    together = known.traces(plan, 400, seed=99)[-1]
    error = math.hypot(alone.std() / math.sqrt(40), together.std() / 20)
    assert alone.mean() == pytest.approx(together.mean(), abs=3.0 * error)
    assert alone.std() == pytest.approx(together.std(), rel=0.4)
    neighbours = np.corrcoef(together[:-1], together[1:])[0, 1]
    assert abs(neighbours) < 4.0 / 20


def test_batched_anchors_reach_the_target():
    row = RESTARTS.target(RESTARTS.Known(), 0.3, runs=200)
    assert row["b"] > 1 and row["mean"] + 2.0 * row["standard_error"] <= row["Psi_end"]


def test_solve_certifies_its_output_with_exact_gradients_counted_apart():
    logistic = Logistic(A, np.sign(b), ridge=0.5)
    problem = saddle((1 / 12) * MiniBatch(logistic, 2), Linear(np.array([0.1, 0.2, -0.1])))
    result = ss.solve(problem, 0.15, rng=1)
    assert result.status is ss.Status.SOLVED and result.gap <= 0.15 == result.target
    outside = ss.certify(saddle((1 / 12) * logistic, Linear(np.array([0.1, 0.2, -0.1]))), result.x, result.y)
    # A run of a plan certifies its gap up to 2 % of it.
    assert outside.gap == pytest.approx(result.gap, rel=0.02)
    # The method drew all its gradients; the exact ones are the certificate's.
    assert result.samples.f == 2 * result.method_calls.f and result.certificate_calls.f > 0
    assert result.method_calls.f == sum(plan.predicted_calls["f"] for plan in result.plans)
    assert result.history[-1].gap == result.gap and result.history[-1].calls == result.calls
    assert "samples" in repr(result) and "expected" in repr(result)


def test_products_that_several_plans_spare_add_up(tmp_path):
    domains = ss.domains.Box(-1.0, 1.0, shape=5), ss.domains.Box(-1.0, 1.0, shape=3)
    problem = saddle(Noisy(Linear(b[:5]), 0.1), Linear(np.array([0.1, 0.2, -0.1])), domains)
    seen, path = [], tmp_path / "run.npz"
    whole = ss.solve(problem, 0.2, callback=lambda result: seen.append(result.spared))
    # Two products at the start, which is 0, and the last correction of each plan.
    assert len(whole.plans) > 1 and whole.spared == 2 + 2 * len(whole.plans)
    assert sum(plan.predicted_calls["B"] for plan in whole.plans) == whole.counted.B
    assert seen == sorted(seen) and seen[-1] == whole.spared

    def stop(result):
        if result.nit == whole.nit - 1:
            raise StopIteration

    ss.solve(problem, 0.2, callback=stop, checkpoint=path)
    assert ss.resume(path, problem).counted == whole.counted


def test_solve_without_exact_gradients_gives_the_bound_in_expectation_only():
    def sample(x, rng):
        return x - 0.5 + 0.2 * rng.standard_normal(5)

    f = Custom(sample=sample, variance=0.2, smoothness=ss.Holder(1.0, 1.0))
    result = ss.solve(saddle(f, Quadratic(1.0)), 1.5)
    assert result.status is ss.Status.EXPECTED and result.success
    assert math.isinf(result.gap) and result.expected_gap <= 1.5
    assert "on average over all draws" in result.message and "not known" in result.message
    estimated = Custom(sample=sample, variance="estimate", smoothness=ss.Holder(1.0, 1.0))
    guessed = ss.solve(saddle(estimated, Quadratic(1.0)), 1.5)
    assert guessed.status is ss.Status.NO_CERTIFICATE and math.isinf(guessed.expected_gap)


def test_solve_stops_at_limits_and_relative_targets():
    problem = saddle(Noisy(F, 1.0), Noisy(G, 1.0))
    limited = ss.solve(problem, 1e-4, max_calls={"f": 40})
    # The certificate's calls are within the limit, as in every solve.
    spent = limited.calls.f + limited.certificate_calls.f
    assert limited.status is ss.Status.CALL_LIMIT and 40 <= spent <= 400
    assert ss.solve(problem, 1e-4, max_steps=3).status is ss.Status.STEP_LIMIT
    relative = ss.solve(problem, reduction=0.1)
    assert relative.target == pytest.approx(0.1 * ss.certify(problem, np.zeros(5), np.zeros(3)).gap)
    assert relative.gap <= relative.target
    seen = []
    ss.solve(problem, reduction=0.1, callback=lambda result: seen.append(result.samples.total))
    assert seen == sorted(seen) and len(seen) == relative.nit


@gathered(
    ("call", "message"),
    [
        (lambda p: ss.run(p, ss.plan(saddle(), 0.3)), "the plan was made for exact ones"),
        (lambda p: ss.run(p, ss.plan(p, 0.3), rng="seed"), "rng is 'seed'"),
        (lambda p: ss.run(p, ss.plan(p, 0.3), rng=-1), "rng is -1"),
        (lambda p: ss.solve(p, 0.3, rng="seed"), "rng is 'seed'"),
        (lambda p: ss.plan(saddle(domains=FREE), 0.3, anchors=True, anchor_batch=4), "the plan has no sampled anchors"),
        (lambda p: ss.compare(p, 0.3), "compare: f or g has a sampled gradient"),
        (lambda p: ss.compare(p, 0.3, run=True), "compare: f or g has a sampled gradient"),
        (lambda p: ss.solve(p, 0.3, metric="spectral"), "needs exact gradients"),
        (lambda p: ss.solve(p), "expected tol= or reduction="),
        (lambda p: ss.solve(saddle(Noisy(Linear(np.ones(5)), 0.1), G, FREE), 0.3), "sampled gradients"),
    ],
)
def test_misuse_of_runs_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call(saddle(Noisy(F, 0.5), G))


def test_a_sample_that_changes_its_shape_in_a_run_is_refused_by_name():
    calls = []

    def sample(x, rng):
        calls.append(1)
        return x if len(calls) < 3 else x[:2]

    f = Custom(sample=sample, variance=0.1, smoothness=ss.Holder(1.0, 1.0))
    problem = saddle(f, Quadratic(1.0))
    with pytest.raises(InputError, match="Custom: sample: received shape"):
        ss.run(problem, ss.plan(problem, 0.5, regime="degenerate"))


def test_the_numbers_of_the_page_are_the_stored_measurements():
    prose = " ".join((ROOT / "docs" / "stochastic.md").read_text(encoding="utf-8").split())
    stored = json.loads((ROOT / "benchmarks/results/stochastic_gap.json").read_text(encoding="utf-8"))
    assert len(stored["rows"]) >= 6 and all(row["runs"] >= 200 for row in stored["rows"])
    for row in stored["rows"]:
        assert row["mean"] + 2.0 * row["standard_error"] <= row["bound"]
        numbers = f"{row['mean']:.4f} ± {row['standard_error']:.4f} | {row['bound']:.3f} | {row['bound_over_mean']:.1f}"
        assert f"| {row['setting']} | {row['order']} | {numbers} |" in prose
    for row in stored["slopes"]:
        assert row["slope"] == pytest.approx(-0.5, abs=0.05)
        assert f"{row['slope']:.3f} with {row['levels']}" in prose
    stored = json.loads((ROOT / "benchmarks/results/stochastic_restarts.json").read_text(encoding="utf-8"))
    for name, floors in stored["floors"].items():
        assert [row["b"] for row in floors["rows"]] == [1, 4, 16, 64]
        cells = " | ".join(f"{row['floor']:.3g}" for row in floors["rows"])
        assert f"| {name} | {cells} | {floors['slope']:.2f} |" in prose
        assert all(row["runs"] >= 200 for row in floors["rows"])
        assert all(row["floor"] + 2.0 * row["standard_error"] <= row["bound"] for row in floors["rows"])
    for name in ("anchors alone", "whole scheme, noise sets the budgets"):
        assert stored["floors"][name]["slope"] == pytest.approx(-1.0, rel=0.1)
    assert all(row["worst"] <= 1.0 and row["runs"] >= 200 for row in stored["stages"])
    mild = [row["bound"] / row["floor"] for row in stored["floors"]["whole scheme, it does not"]["rows"]]
    assert f"1/{mild[0]:.0f} at b = 1 against 1/{mild[-1]:.1f} at b = 64" in prose
    anchored, free = (row["worst"] for row in stored["stages"])
    assert f"at most {anchored:.2f} of it with anchors and b = 1, at most {free:.2f} without" in prose
    for row in stored["targets"]:
        assert row["mean"] + 2.0 * row["standard_error"] <= row["Psi_end"] and row["runs"] >= 200
        assert f"b = {row['b']} and ends at {row['mean']:.3g} for a target of {row['Psi_end']:.3g}" in prose
