"""The stochastic theorems as numbers: independent transcriptions, limits without noise, and what a plan says."""

import dataclasses
import math

import numpy as np
import pytest

import saddleslide as ss
from plans import sliding_plan
from saddleslide.errors import InputError
from saddleslide.functions import Custom, LeastSquares, Linear, MiniBatch, Noisy, Power, Quadratic
from saddleslide.theory import Term, bounds, place
from saddleslide.theory import noise as theory
from saddleslide.theory import noisy_restarts as restarts
from saddleslide.theory.restarts import Curvature, practical_stage, prove_contraction
from support import gathered

LOOPS = (5, 3, 7)
# (L, M, sigma^2) by level.
CONSTANTS = [(2.0, 0.0, 0.3), (0.0, 1.5, 0.0), (5.0, 0.0, 2.0)]
OMEGA = 3.0


def levels(tau=None, loops=LOOPS):
    terms = [
        Term("fBg"[i], ss.Holder(1.0, L), M, Omega=OMEGA, variance=v, tau=0.0 if tau is None else tau[i])
        for i, (L, M, v) in enumerate(CONSTANTS)
    ]
    return place(theory.steady(terms, loops) if tau is None else terms, loops)


def alphas(T):
    found = [1.0]
    while len(found) < T:
        found.append(2.0 / (1.0 + math.sqrt(1.0 + 4.0 / found[-1] ** 2)))
    return np.array(found)


def test_tau_is_that_of_the_corollaries():
    A = np.cumprod(LOOPS)
    for i, level in enumerate(levels(), start=1):
        sigma = math.sqrt(CONSTANTS[i - 1][2])
        assert level.term.tau == pytest.approx(sigma * A[i - 1] ** 1.5 / (2**i * math.sqrt(OMEGA)), rel=1e-14)
        # eq. eta_stochastic, divided by the current alphas.
        last = math.prod(alphas(T)[-1] for T in LOOPS[:i])
        L, M, _ = CONSTANTS[i - 1]
        assert level.step == pytest.approx(L + level.term.tau + M / last, rel=1e-14)


def test_the_printed_bound_is_the_uniform_theorem_and_its_corollary():
    A = np.cumprod(LOOPS)
    tau = (0.7, 0.0, 11.0)
    theorem = corollary = 0.0
    for i, ((L, M, v), t) in enumerate(zip(CONSTANTS, tau, strict=True), start=1):
        a, sigma = A[i - 1], math.sqrt(v)
        theorem += 2 ** (2 * i - 1) * (L + t) * OMEGA / a**2 + 2 ** (i - 1) * M * OMEGA / a
        theorem += (v * a / (2 * t) if v else 0.0) + math.sqrt(OMEGA) * 2 ** (i / 2) * sigma / math.sqrt(a)
        corollary += 2 ** (2 * i - 1) * L * OMEGA / a**2 + 2 ** (i - 1) * M * OMEGA / a
        corollary += (2**i + 2 ** (i / 2)) * sigma * math.sqrt(OMEGA) / math.sqrt(a)
    assert sliding_plan(levels(tau)).schedule.printed_bound == pytest.approx(theorem, rel=1e-13)
    assert sliding_plan(levels()).schedule.printed_bound == pytest.approx(corollary, rel=1e-13)


@gathered("loops", [(1, 1, 1), (5, 3, 7), (40, 1, 9)])
def test_the_sharp_bound_sums_the_weights_of_all_nodes_and_is_never_above_the_printed_one(loops):
    placed = levels(loops=loops)
    expected = 0.0
    for k, level in enumerate(placed, start=1):
        # w = prod alpha_{T-1}^2 / alpha_t over all nodes of level k, and the noise at each node by its own Gamma.
        weights, shares = np.ones(1), np.ones(1)
        for T in loops[:k]:
            a = alphas(T)
            weights = np.outer(weights, a[-1] ** 2 / a).ravel()
            shares = np.outer(shares, a[-1] ** 2 / a**2).ravel()
        assert weights.sum() == pytest.approx(1.0, rel=1e-12)
        v, tau = level.term.variance, level.term.tau
        if v:
            expected += v / (2 * tau) * shares.sum() + math.sqrt(OMEGA * v * np.sum(weights**2))
    assert bounds.noise_bound(placed) == pytest.approx(expected, rel=1e-12)
    assert bounds.noise_bound(placed) <= bounds.printed_noise_bound(placed) * (1 + 1e-12)


def test_budgets_are_those_of_the_complexity_corollary_and_sort_the_levels():
    noisy = Term("f", ss.Holder(1.0, 2.0), Omega=3.0, variance=0.5)
    assert ss.theory.budget(noisy, 0.1) == pytest.approx(0.5 * 3.0 / 0.01)
    assert ss.theory.budget(noisy, 10.0) == 1.0
    coupling = Term("B", M=1.0, Omega=3.0)
    order = [term.name for term in ss.theory.sorted_by_budget([noisy, coupling], 0.1)]
    assert order == ["B", "f"]
    exact = Term("f", ss.Holder(1.0, 2.0), Omega=3.0)
    assert [t.name for t in ss.theory.sorted_by_budget([exact, coupling], 0.1)] == ["f", "B"]


def problem(sigma_f=0.5, sigma_g=0.0, X=None, Y=None, f=None):
    rng = np.random.default_rng(2)
    B = rng.standard_normal((3, 4))
    f = f or Quadratic(2.0) + Linear(rng.standard_normal(4))
    box = ss.domains.Box
    X, Y = X or box(-1.0, 1.0, shape=4), Y or box(-1.0, 1.0, shape=3)
    return ss.SaddleProblem(f=Noisy(f, sigma_f), g=Noisy(Quadratic(0.5), sigma_g), B=B, X=X, Y=Y)


@gathered("options", [{}, {"order": "fgB"}, {"metric": "identity"}])
def test_a_proved_plan_bounds_the_expected_gap_by_the_target(options):
    plan = ss.plan(problem(), 0.4, regime="degenerate", proved=True, **options)
    assert plan.proved and 0.5 * 0.4 <= plan.bound <= 0.4
    practical = ss.plan(problem(), 0.4, regime="degenerate", **options)
    assert practical.predicted_samples["f"] < plan.predicted_samples["f"]
    assert not practical.proved


def test_variances_enter_in_the_dual_norm_of_each_level():
    plan = ss.plan(problem(0.5, 0.2), order="fgB", loops=(4, 4, 4), metric=(4.0, 0.25))
    found = {level.term.name: level.term.variance for level in plan.schedule.levels}
    assert found == {"f": pytest.approx(0.25 / 4.0), "g": pytest.approx(0.04 / 0.25), "B": 0.0}


def test_explain_names_the_noise_its_oracle_and_the_samples():
    f = MiniBatch(LeastSquares(np.eye(4), np.ones(4)), batch=2)
    box = ss.domains.Box(-1.0, 1.0, shape=4)
    plan = ss.plan(ss.SaddleProblem(f=f, g=Quadratic(1.0), B=np.eye(4), X=box, Y=box), 0.5, regime="degenerate")
    text = plan.explain()
    assert "in expectation" in text and "noise    f': sigma^2" in text and "noise    g'" not in text
    assert plan.predicted_samples == {"f": 2 * plan.predicted_calls["f"], "g": 0}
    assert f"samples  of f' {plan.predicted_samples['f']:,}" in text
    assert "sigma2_x" in text and "bounded on the domain" in text


def test_plans_with_noise_survive_json():
    plan = ss.plan(problem(), 0.4, regime="degenerate")
    assert ss.Plan.from_dict(plan.to_dict()) == plan
    free = ss.domains.FullSpace
    other = ss.plan(problem(X=free(4), Y=free(3)), 0.1, anchors=True)
    assert ss.Plan.from_dict(other.to_dict()) == other


def test_an_estimated_variance_is_marked_and_proves_nothing():
    f = Custom(
        gradient=lambda x: x, value=lambda x: float(x @ x) / 2, sample=lambda x, rng: x + 0.1 * rng.standard_normal(4),
        variance="estimate", smoothness=ss.Holder(1.0, 1.0),
    )  # fmt: skip
    box = ss.domains.Box(-1.0, 1.0, shape=4)
    plan = ss.plan(ss.SaddleProblem(f=f, g=Quadratic(1.0), B=np.eye(4), X=box, Y=box), 0.5, proved=True)
    assert not plan.proved and plan.bound <= 0.5
    bound = next(line for line in plan.explain().splitlines() if line.startswith("  bound"))
    assert "it rests on an estimate: NOT A BOUND" in bound
    variance = next(line for line in plan.explain().splitlines() if line.startswith("  sigma2_x"))
    assert "NOT A BOUND" in variance
    assert "estimate" not in ss.plan(problem(), 0.4, regime="degenerate").explain()


def test_a_variance_is_estimated_near_the_start_that_is_given():
    f = Custom(
        gradient=lambda x: x, value=lambda x: float(x @ x) / 2, smoothness=ss.Holder(1.0, 1.0), variance="estimate",
        sample=lambda x, rng: x * (1.0 + 0.1 * rng.standard_normal(4)),
    )  # fmt: skip
    box = ss.domains.Box(-9.0, 9.0, shape=4)
    noisy = ss.SaddleProblem(f=f, g=Quadratic(1.0), B=np.eye(4), X=box, Y=box)
    near, far = (
        ss.plan(noisy, 5.0, regime="degenerate", start=(level * np.ones(4), np.zeros(4))).constants["sigma2_x"].value
        for level in (1.0, 2.0)
    )
    # The variance at x is 0.01 |x|^2, and all points seen scale with the start; from 0 nothing would be seen.
    assert 0.03 < near < 0.2 and far == pytest.approx(4.0 * near, rel=1e-9)
    free = ss.domains.FullSpace(4)
    rows = MiniBatch(LeastSquares(np.eye(4), np.zeros(4)), batch=2)
    assert rows.variance(free, 5.0 * np.ones(4)).value > 4.0 * rows.variance(free, np.ones(4)).value > 0.0


def test_without_noise_the_plans_are_the_deterministic_ones():
    box, free = ss.domains.Box, ss.domains.FullSpace
    rng = np.random.default_rng(2)
    B, f = rng.standard_normal((3, 4)), Quadratic(2.0) + Linear(rng.standard_normal(4))
    bounded, whole = (box(-1.0, 1.0, shape=4), box(-1.0, 1.0, shape=3)), (free(4), free(3))
    for regime, (X, Y) in (("degenerate", bounded), ("restarts", bounded), ("restarts", whole)):
        exact = ss.SaddleProblem(f=f, g=Quadratic(0.5), B=B, X=X, Y=Y)
        quiet = problem(0.0, 0.0, X, Y, f)
        for proved in (False, True):
            asked = {"regime": regime, "proved": proved}
            assert ss.plan(quiet, 0.1, **asked) == ss.plan(exact, 0.1, **asked)


CURVATURE = Curvature(ss.Holder(1.0, 9.0), ss.Holder(1.0, 4.0), L_xy=2.0, mu_x=1.0, mu_y=0.5)
ANCHORED = Curvature(ss.Holder(1.0, 9.0), ss.Holder(1.0, 4.0), 2.0, 1.0, 0.5, beta_x=1 / 16, beta_y=1 / 36)


def test_the_radii_follow_the_recursion_of_the_paper_and_its_closed_bound():
    made = restarts.noisy_stages(ANCHORED, 50.0, 0.5, (0.3, 0.2), False, 4.0, batch=3)
    residual = 0.3 / 36 + 0.2 / 16
    assert made.residual == pytest.approx(residual, rel=1e-14)
    Gamma = 50.0
    for s, stage in enumerate(made.stages):
        assert stage.Omega == pytest.approx(Gamma, rel=1e-13)
        assert stage.Omega <= 0.75**s * 50.0 + 4 * 16 * residual / 3
        assert stage.anchor_error == pytest.approx(16 * residual / 3) and stage.anchor_batch == 3
        Gamma = 0.75 * Gamma + 16 * residual / 3
    assert len(made.stages) == math.ceil(math.log(50.0 / 0.25) / math.log(4 / 3))
    assert made.floor == pytest.approx(4 * 16 * residual / 3)


@gathered("target", [0.5, 0.05, 0.005])
def test_the_anchor_batch_of_the_target_brings_the_last_radius_below_it(target):
    made = restarts.noisy_stages(ANCHORED, 50.0, target, (0.3, 0.2), True, 4.0)
    assert made.batch == max(1, math.ceil(64 * made.residual / (target / 2)))
    assert 0.75 * made.stages[-1].Omega + made.stages[-1].anchor_error <= target


def test_stage_budgets_add_the_variance_over_gamma_and_tau_takes_gamma_as_radius():
    stage = restarts.noisy_stage(CURVATURE, 0.01, (0.3, 0.0), factor=2.0, noise_factor=3.0)
    by_name = {level.term.name: (i, level) for i, level in enumerate(stage.levels, start=1)}
    i, f = by_name["f"]
    assert f.N >= 2.0 * 3.0 + 3.0 * 0.3 / 0.01
    assert f.term.tau == pytest.approx(math.sqrt(0.3) * f.N**1.5 / (2**i * 0.1), rel=1e-13)
    assert stage.levels[-1].term.name == "f"
    assert by_name["g"][1].term.tau == 0.0


def test_without_noise_a_stage_is_the_deterministic_one():
    quiet = restarts.noisy_stage(CURVATURE, 0.3, (0.0, 0.0), factor=4.0, noise_factor=8.0)
    assert quiet == practical_stage(CURVATURE, 0.3, 4.0)


@pytest.mark.parametrize("curvature", [CURVATURE, ANCHORED])
def test_proved_stages_contract_by_the_inequalities_of_the_proof(curvature):
    stage = restarts.prove_noisy_stage(curvature, 0.2, (0.4, 0.1))
    first = second = 0.0
    for i, level in enumerate(stage.levels):
        loops = [other.T for other in stage.levels[: i + 1]]
        a = math.prod(alphas(T)[-1] for T in loops)
        spread = math.prod(alphas(T)[-1] ** 2 * np.sum(alphas(T) ** -2.0) for T in loops)
        first += 0.5 * ((level.L + level.term.tau) * a**2 + level.term.M * a)
        second += level.term.variance * spread / (2 * level.term.tau * 0.2) if level.term.variance else 0.0
    anchored = curvature is ANCHORED
    total = max(16 * first, 2 / 3) + 16 * second if anchored else 2 * first + 14 * second
    assert prove_contraction(stage) == pytest.approx(total, rel=1e-9)
    assert 0.7 < total <= 0.75


def test_the_result_of_explain_says_which_floor_applies():
    free = ss.domains.FullSpace
    plan = ss.plan(problem(0.5, 0.3, free(4), free(3)), 0.1, anchors=True, anchor_batch=1)
    residual = 0.25 / (4 * 2.0) + 0.09 / (4 * 0.5)
    assert plan.constants["Delta_anc"].value == pytest.approx(residual)
    assert plan.constants["floor"].value == pytest.approx(64 * residual)
    assert f"E[Psi] has the floor {64 * residual:.4g}" in plan.explain()
    # The paper's stochastic statement takes delta = mu, although B is injective here on one side.
    assert (plan.constants["delta_x"].value, plan.constants["delta_y"].value) == (2.0, 0.5)
    batched = ss.plan(problem(0.5, 0.3, free(4), free(3)), 0.1, anchors=True)
    assert batched.constants["b"].value > 1 and batched.constants["floor"].value <= batched.constants["Psi_end"].value
    anchors = sum(stage.anchor_batch for stage in batched.schedule.stages)
    inside = sum(level.N for stage in batched.schedule.stages for level in stage.levels if level.term.name == "f")
    assert batched.predicted_samples["f"] == anchors + inside


@gathered(
    ("made", "options", "message"),
    [
        (
            lambda: problem(X=ss.domains.FullSpace(4)),
            {"regime": "degenerate"},
            "domain is unbounded: X is FullSpace.*Put the unbounded block in a Ball or Box.*or add a ridge",
        ),
        (lambda: problem(), {"anchor_batch": 4}, "anchor_batch is 4, and the plan has no sampled anchors"),
        (
            lambda: problem(X=ss.domains.FullSpace(4), Y=ss.domains.FullSpace(3)),
            {"anchor_batch": 4, "regime": "restarts"},
            "expected anchors=True, regime='restarts'",
        ),
        (lambda: problem(), {"anchors": True, "anchor_batch": 4, "regime": "degenerate"}, "anchors has no meaning"),
        (
            lambda: problem(f=Linear(np.ones(4)), X=ss.domains.FullSpace(4)),
            {},
            "Omega of the block without curvature is inf; expected a bounded set",
        ),
        (lambda: problem(f=Power(0.5) + Quadratic(1.0)), {"regime": "restarts"}, "expect both 1"),
        (lambda: problem(), {"anchor_batch": 0}, "anchor_batch is 0; expected a whole number >= 1"),
    ],
)
def test_what_no_theorem_covers_is_refused(made, options, message):
    with pytest.raises(InputError, match=message):
        ss.plan(made(), 0.1, **options)


@gathered("drawn", [np.zeros(3), np.zeros((4, 1)), np.full(4, np.nan), ["a"] * 4])
def test_a_sampled_gradient_of_wrong_shape_or_kind_is_refused_before_a_run(drawn):
    f = Custom(sample=lambda x, rng: drawn, variance=1.0, smoothness=ss.Holder(1.0, 1.0))
    box = ss.domains.Box(-1.0, 1.0, shape=4)
    with pytest.raises(InputError, match="sample"):
        ss.plan(ss.SaddleProblem(f=f, g=Quadratic(1.0), B=np.eye(4), X=box, Y=box), 0.5)


def test_a_variance_estimated_to_be_zero_stays_an_estimate_in_a_sum():
    from saddleslide.functions.variance import EXACT, Variance

    guessed, declared = Variance(0.0, "seen at a few points", estimate=True), Variance(0.01, "declared")
    assert (guessed + declared).estimate and (declared + guessed).estimate
    assert (EXACT + declared) == declared == (declared + EXACT)


def test_restarts_with_an_estimated_variance_are_not_proved():
    def sample(x, rng):
        return x + 0.1 * rng.standard_normal(x.shape)

    f = ss.functions.Custom(
        gradient=lambda x: x, value=lambda x: 0.5 * float(x @ x), smoothness=ss.Holder(1.0, 1.0), strong_convexity=1.0,
        sample=sample, variance="estimate",
    )  # fmt: skip
    free = ss.domains.FullSpace(3)
    problem = ss.SaddleProblem(f=f, g=ss.functions.Quadratic(1.0), B=np.eye(3), X=free, Y=free)
    plan = ss.plan(problem, tol=0.1, regime="restarts", proved=True, Psi0=10.0)
    assert not plan.proved
    assert not np.isfinite(plan.bound)
    target = next(line for line in plan.explain().splitlines() if line.startswith("  target"))
    assert "a constant is an estimate: NOT A BOUND" in target


def test_a_method_by_name_is_refused_for_sampled_gradients():
    f = ss.functions.Noisy(ss.functions.Quadratic(1.0), 0.1)
    box = ss.domains.Box(-1.0, 1.0, shape=2)
    problem = ss.SaddleProblem(f=f, g=ss.functions.Quadratic(1.0), B=np.eye(2), X=box, Y=box)
    with pytest.raises(ss.errors.InputError, match="method is 'apdg'; expected 'auto'"):
        ss.solve(problem, 0.3, method="apdg")


def mixed_problem(seed=0):
    """A strongly convex sampled f on the whole space, a linear sampled g on a ball: lambda in y."""
    rng, F = np.random.default_rng(seed), ss.functions
    f = F.Noisy(F.Quadratic(1.0) + F.Linear(0.3 * rng.standard_normal(3)), sigma=0.3)
    g = F.Noisy(F.Linear(0.1 * rng.standard_normal(2)), sigma=0.2)
    B = rng.standard_normal((2, 3)) / 2
    return ss.SaddleProblem(f=f, g=g, B=B, X=ss.domains.FullSpace(3), Y=ss.domains.Ball(1.0, shape=2))


def test_a_mixed_plan_with_noise_is_restarts_on_the_regularised_problem():
    """lambda = eps / Omega_y, Gamma_s = (3/4)^s Psi0 down to eps'_star, sqrt(kappa) + sigma^2 / (delta Gamma) calls."""
    saddle, eps, factor = mixed_problem(), 1.0, 2.0
    plan = ss.plan(saddle, eps, regime="mixed", Psi0=3.0, factor=factor, interior=("x", "y"))
    L, weight = plan.constants["L_xy"].value, eps / 1.0
    kappa = L**2 / weight
    target = eps / (2.0 * (1.0 / 6.0 + kappa / 2.0 + kappa / 2.0))
    assert plan.constants["Psi_end"].value == pytest.approx(target)
    assert len(plan.schedule.stages) == math.ceil(math.log(3.0 / target) / math.log(4.0 / 3.0))
    for s, stage in enumerate(plan.schedule.stages):
        Gamma = 3.0 * 0.75**s
        assert stage.Omega == pytest.approx(Gamma)
        wanted = {
            "f": factor * 1.0 + 8.0 * 0.09 / (1.0 * Gamma),
            "g": factor * 1.0 + 8.0 * 0.04 / (weight * Gamma),
            "B": factor * max(math.sqrt(kappa), 1.0),
        }
        made = {level.term.name: level.N for level in stage.levels}
        assert all(made[name] >= need * (1.0 - 1e-12) for name, need in wanted.items())
        assert min(made.values()) == math.ceil(min(wanted.values()) * (1.0 - 1e-12))
    assert plan.theorem == "Appendix stochastic_strongly_convex with Theorem mixed_gap_transfer, in expectation"


def test_the_expected_gap_of_a_proved_mixed_plan_is_at_most_its_target():
    saddle = mixed_problem(1)
    plan = ss.plan(saddle, 1.0, regime="mixed", proved=True, interior=("x", "y"))
    assert plan.bound == 1.0
    gaps = []
    for seed in range(8):
        # Nobody looks on the way: the last point of all stages.
        unjudged = dataclasses.replace(plan, tol=None)
        result = ss.run(saddle, unjudged, rng=seed)
        assert result.method_calls.f == plan.predicted_calls["f"]
        gaps.append(result.gap)
    assert np.mean(gaps) <= 1.0
    assert ss.run(saddle, plan, rng=0).expected_gap == 1.0


def test_restarts_with_noise_contract_on_blocks_whose_constraints_push():
    """E[Psi] follows Gamma_s on boxes where most entries of the solution lie on a side."""
    rng, F = np.random.default_rng(2), ss.functions
    exact = [F.Quadratic(1.0) + F.Linear(3.0 * rng.standard_normal(4)) for _ in range(2)]
    box, B = ss.domains.Box(-0.5, 0.5, shape=4), rng.standard_normal((4, 4))
    f, g = (F.Noisy(function, sigma=0.3) for function in exact)
    quiet = ss.SaddleProblem(f=exact[0], g=exact[1], B=B, X=box, Y=box)
    found = ss.solve(quiet, tol=1e-10)
    assert np.sum(np.abs([*found.x, *found.y]) > 0.5 - 1e-6) >= 3
    noisy = ss.SaddleProblem(f=f, g=g, B=B, X=box, Y=box)

    def Psi(x, y):
        # Both moduli and both curvatures are 1: |z - z*|^2 + 12 (1/2 |x - x*|^2 + 1/2 |y - y*|^2).
        return 7.0 * (np.sum((x - found.x) ** 2) + np.sum((y - found.y) ** 2))

    Psi0 = Psi(np.zeros(4), np.zeros(4))
    plan = ss.plan(noisy, 0.5, regime="restarts", proved=True, Psi0=Psi0)
    for count in (1, 3):
        shorter = dataclasses.replace(plan.schedule, stages=plan.schedule.stages[:count])
        cut = dataclasses.replace(plan, schedule=shorter, tol=None)
        means = [Psi(result.x, result.y) for result in (ss.run(noisy, cut, rng=seed) for seed in range(8))]
        assert np.mean(means) <= Psi0 * 0.75**count
