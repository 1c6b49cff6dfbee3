"""Section 4 as tests: contraction by 3/4, restarts, anchors, the mixed regime's gap transfer, and the exponents."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

import saddles
import saddleslide as ss
from plans import first_stages, rescheduled, stage_plan
from saddleslide.errors import InputError
from saddleslide.methods.schedule.moduli import range_condition
from saddleslide.methods.schedule.regimes import Psi_of_slopes
from saddleslide.operators.spectrum import lanczos_smallest
from saddleslide.theory import Term, place
from saddleslide.theory.levels import alpha_sequence
from saddleslide.theory.mixed import gap_target, regularise, regularise_smoothness
from saddleslide.theory.restarts import (
    Curvature,
    Stage,
    practical_stage,
    prove_stage,
    restart_count,
    stage_budget,
    with_anchors,
)
from support import CountedProblem, gathered, pairwise, with_spectrum

F, D = ss.functions, ss.domains
UNREACHABLE = 1e-300


def weights_of(plan):
    return plan.constants["delta_x"].value, plan.constants["delta_y"].value


def after_stages(saddle, plan, start, count=1):
    """The first stages of a plan, carried out to the end whatever the gap is."""
    return ss.run(
        saddle.problem,
        dataclasses.replace(
            plan, schedule=dataclasses.replace(plan.schedule, stages=plan.schedule.stages[:count]), tol=UNREACHABLE
        ),
        start=start,
    )


def restarts(saddle, start, **settings):
    """A plan whose first Omega is the true Psi, in the plan's own metric."""
    bare = ss.plan(saddle.problem, tol=1e-3, regime="restarts", start=start, **{**settings, "Psi0": 1.0})
    Psi0 = saddle.Psi(*start, weights_of(bare))
    return ss.plan(saddle.problem, tol=1e-3, regime="restarts", start=start, **{**settings, "Psi0": Psi0}), Psi0


def contraction(saddle, start, **settings):
    """Psi after one stage over Psi before it."""
    plan, Psi0 = restarts(saddle, start, **settings)
    result = after_stages(saddle, plan, start)
    return saddle.Psi(result.x, result.y, weights_of(plan)) / Psi0


# The proved stage: Theorem 4.4.

# kappa_x, kappa_y and kappa_xy, whose square roots are the budgets.
ORDERS = {"".join(order): tuple({order[0]: 1.5, order[1]: 6.0, order[2]: 40.0}[name] for name in "fgB")
          for order in itertools.permutations("fgB")}  # fmt: skip


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("anchors", [False, True])
def test_a_proved_stage_contracts_by_three_quarters_in_every_order(order, anchors):
    saddle = saddles.conditioned(3, *ORDERS[order], mu=(0.5, 4.0))
    start = saddle.near(np.random.default_rng(1), 3.0)
    plan, Psi0 = restarts(saddle, start, proved=True, anchors=anchors)
    assert plan.order == order
    assert plan.schedule.stages[0].Omega == Psi0
    assert plan.proved
    result = after_stages(saddle, plan, start)
    assert saddle.Psi(result.x, result.y, weights_of(plan)) <= 0.75 * Psi0


@gathered("nu", [0.25, 0.5, 0.75])
@gathered("side", ["f", "g"])
def test_a_proved_stage_contracts_with_a_hoelder_gradient(nu, side):
    rng = np.random.default_rng(5)
    x, y = rng.uniform(-0.5, 0.5, 2), rng.standard_normal(3)
    B = saddles.with_norm(rng, 3, 2, 1e-4)
    other = saddles.quadratic(saddles.spread(rng, 3, 1.0, 2.0))
    saddle = saddles.planted(saddles.power(nu, 0.2, 1.0), other, B, x, y, X=D.Box(-1.0, 1.0, shape=2))
    start, block = (-np.sign(x), y + 1.0), "x"
    if side == "g":
        saddle, start, block = saddles.mirrored(saddle), start[::-1], "y"
    settings = {"proved": True, "constants": {"mu_x": 1.0, "mu_y": 1.0}}
    anchored = nu > 0.25
    assert contraction(saddle, start, **settings, anchors=anchored, interior=(block,)) <= 0.75


def test_half_the_calls_of_a_proved_stage_or_steps_twice_too_long_break_the_contraction():
    """f = diag(1, 1e4) alone, as g is a simple term: 0.43 N_f calls are too few for the flat direction."""
    f, g = saddles.quadratic(np.diag([1.0, 1e4])), saddles.power(1.0, 0.5, 0.5)
    saddle = saddles.planted(f, g, np.full((1, 2), 1e-8), np.zeros(2), np.zeros(1))
    start = (np.array([1.0, 1e-3]), np.zeros(1))
    plan, Psi0 = restarts(saddle, start, proved=True, simple=("g",))
    stage = plan.schedule.stages[0]
    outer, inner = [level.term for level in stage.levels]
    after, N = [], stage.levels[1].N
    assert (inner.name, N) == ("f", pytest.approx(2.0 / math.sqrt(0.75) * 100.0, rel=0.02))
    for term, calls in ((inner, N), (inner, round(0.43 * N)), (replace(inner, smoothness=0.5 * inner.smoothness), N)):
        spoiled = replace(stage, levels=place((outer, term), (1, calls)))
        result = after_stages(saddle, rescheduled(plan, stages=(spoiled,)), start)
        after.append(saddle.Psi(result.x, result.y, weights_of(plan)) / Psi0)
    assert after[0] <= 0.75
    assert not after[1] <= 0.75
    assert not after[2] <= 0.75


def random_curvature(rng, anchored=False):
    nu_x, nu_y = rng.choice([0.0, 0.25, 0.5, 0.75, 1.0], size=2)
    L_x, L_y = 10.0 ** rng.uniform(0.0, 1.0, 2)
    curvature = Curvature(
        ss.Holder(nu_x, L_x), ss.Holder(nu_y, L_y), 10.0 ** rng.uniform(-4.0, -2.0), mu_x=0.5, mu_y=0.25
    )
    return with_anchors(curvature, mu_xy=0.001, mu_yx=0.001) if anchored else curvature


@gathered("seed", range(40))
def test_a_proved_stage_meets_the_inequalities_of_the_proof(seed):
    """Psi falls to max(8 Theta, 2/3) + 16 times the errors with anchors, Theta + 14 times the errors without."""
    rng = np.random.default_rng(seed)
    curvature = random_curvature(rng, anchored=seed % 2 == 0)
    Omega = 10.0 ** rng.uniform(2.0, 3.0)
    stage = prove_stage(curvature, Omega)
    level, deltas = {level.term.name: level for level in stage.levels}, (curvature.delta_x, curvature.delta_y)
    alphas = np.cumprod([alpha_sequence(own.T)[-1] for own in stage.levels])
    a = {own.term.name: alpha for own, alpha in zip(stage.levels, alphas, strict=True)}
    kappa_xy = curvature.L_xy**2 / math.prod(deltas)
    assert pytest.approx(math.sqrt(kappa_xy), rel=1e-12) == level["B"].term.M
    # The Lipschitz constant of the gradient of p_3 in the P-norm.
    anchors = kappa_xy * max(curvature.beta_x * deltas[1], curvature.beta_y * deltas[0])
    assert pytest.approx(anchors, rel=1e-12) == level["B"].L
    assert (stage.Omega, stage.beta_x, stage.beta_y) == (Omega, curvature.beta_x, curvature.beta_y)
    Theta, errors = anchors * a["B"] ** 2 + math.sqrt(kappa_xy) * a["B"], 0.0
    for name, holder, delta in (("f", curvature.f, deltas[0]), ("g", curvature.g, deltas[1])):
        own, c = level[name], (1.0 - holder.nu) / (1.0 + holder.nu)
        # Eq. for L_x, with the tolerance the stage says it uses, in the P-norm.
        L = holder.H if c == 0.0 else (c / (2.0 * own.delta)) ** c * holder.H ** (2.0 / (1.0 + holder.nu))
        assert pytest.approx(L / delta, rel=1e-12) == own.L
        assert own.term.weights == deltas
        Theta += own.L * a[name] ** 2
        errors += own.delta / a[name] / Omega
    ends = max(8.0 * Theta, 2.0 / 3.0) + 16.0 * errors if curvature.is_anchored else Theta + 14.0 * errors
    # Not wasteful either: what is left is the rounding of the loops.
    assert 0.5 < ends <= 0.75 * (1.0 + 1e-12)
    assert [own.N for own in stage.levels] == sorted(own.N for own in stage.levels)


def test_the_anchors_and_effective_moduli_are_the_papers():
    bare = Curvature(ss.Holder(1.0, 3.0), ss.Holder(1.0, 5.0), L_xy=2.0, mu_x=0.1, mu_y=0.2)
    found = with_anchors(bare, mu_xy=0.7, mu_yx=0.0)
    assert (found.beta_x, found.beta_y) == (1.0 / 20.0, 1.0 / 12.0)
    assert found.delta_x == pytest.approx(0.1 + 0.7**2 / 5.0)
    assert found.delta_y == 0.2
    assert found.kappa_xy == pytest.approx(4.0 / (found.delta_x * 0.2))
    assert found.anchor_smoothness == pytest.approx(found.kappa_xy * max(0.2 / 20.0, found.delta_x / 12.0))
    both = with_anchors(bare, mu_xy=0.7, mu_yx=0.6)
    assert both.mu_xy == both.mu_yx == 0.6
    rough = Curvature(ss.Holder(0.5, 3.0), ss.Holder(1.0, 5.0), L_xy=2.0, mu_x=0.1, mu_y=0.2)
    assert (with_anchors(rough, 0.7, 0.7).beta_x, with_anchors(rough, 0.7, 0.7).beta_y) == (1.0 / 20.0, 0.0)
    # beta_y delta_x <= 1/4 leaves no room for more than mu_x = L_x.
    assert with_anchors(Curvature(ss.Holder(1.0, 1.0), ss.Holder(1.0, 1.0), 2.0, 1.0, 1.0), 1.0, 0.0).delta_x == 1.0


@gathered("seed", range(20))
def test_moduli_are_lowered_to_what_theorem_4_4_asks_for_and_no_further(seed):
    """Equal or one of them 0; beta_x delta_y, beta_y delta_x <= 1/4; a little more breaks one of these."""
    rng = np.random.default_rng(seed)
    L_x, L_y, mu_xy, mu_yx = 10.0 ** rng.uniform(-1.0, 1.0, 4)
    mu_x, mu_y = L_x * rng.uniform(0.0, 1.0), L_y * rng.uniform(0.0, 1.0) * rng.integers(0, 2)
    bare = Curvature(ss.Holder(1.0, L_x), ss.Holder(1.0, L_y), L_xy=20.0, mu_x=mu_x, mu_y=mu_y)
    found = with_anchors(bare, mu_xy, mu_yx)
    x, y = found.mu_xy, found.mu_yx
    assert 0.0 <= x <= mu_xy
    assert 0.0 <= y <= mu_yx
    assert x == y or min(x, y) == 0.0
    # beta_x = 1/(4 L_y) and delta_y = mu_y + mu_yx^2 / L_x, the same for beta_y.
    assert (mu_y + y**2 / L_x) / (4.0 * L_y) <= 0.25 * (1.0 + 1e-15)
    assert (mu_x + x**2 / L_y) / (4.0 * L_x) <= 0.25 * (1.0 + 1e-15)
    limits = math.sqrt(L_y * (L_x - mu_x)), math.sqrt(L_x * (L_y - mu_y))
    most = min(mu_xy, limits[0]), min(mu_yx, limits[1])
    allowed = [(min(most), min(most)), (most[0], 0.0), (0.0, most[1])]
    assert any((x, y) == pytest.approx(pair, rel=1e-9) for pair in allowed)

    def calls(pair):
        delta_x, delta_y = mu_x + pair[0] ** 2 / L_y, mu_y + pair[1] ** 2 / L_x
        if min(delta_x, delta_y) == 0.0:
            return math.inf
        return sum(max(math.sqrt(kappa), 1.0) for kappa in (L_x / delta_x, L_y / delta_y, 400.0 / delta_x / delta_y))

    assert calls((x, y)) <= min(map(calls, allowed)) * (1.0 + 1e-9)


# Practical stages and restarts: Corollary 4.5.

KAPPAS = [(10.0, 40.0, 1.0), (10.0, 40.0, 100.0), (100.0, 400.0, 1.0), (100.0, 400.0, 3600.0)]


@gathered("kappas", KAPPAS)
@gathered(("factor", "mean", "worst"), [(1.0, 0.75, 0.85), (4.0, 0.25, 0.4)])
def test_practical_stages_contract(kappas, factor, mean, worst):
    saddle = saddles.conditioned(11, *kappas, columns=12, rows=10)
    point = saddle.near(np.random.default_rng(1))
    ratios = []
    for _ in range(6):
        plan, Psi0 = restarts(saddle, point, factor=factor)
        result = after_stages(saddle, plan, point)
        point = (result.x, result.y)
        ratios.append(saddle.Psi(*point, weights_of(plan)) / Psi0)
    assert max(ratios) <= worst
    assert math.prod(ratios) ** (1.0 / len(ratios)) <= mean


def test_practical_budgets_are_the_factor_times_the_square_roots_of_kappa():
    curvature = Curvature(ss.Holder(1.0, 100.0), ss.Holder(1.0, 400.0), L_xy=60.0, mu_x=1.0, mu_y=1.0)
    calls = {c: [level.N for level in practical_stage(curvature, 1.0, c).levels] for c in (0.5, 1.0, 4.0)}
    assert calls[1.0] == [10, 20, 60]
    assert calls[4.0] == [40, 80, 240]
    assert calls[0.5] == [5, 10, 30]


def test_practical_stages_contract_with_subgradients_and_a_kink_at_the_saddle_point():
    rng = np.random.default_rng(2)
    x, y = np.array([0.0, 0.4, 0.0]), np.array([0.3, -0.2])
    B = saddles.with_norm(rng, 2, 3, 0.5)
    f = saddles.power(0.0, 0.3, 1.0, kinks=0.5)
    saddle = saddles.planted(f, saddles.power(0.5, 0.3, 1.0), B, x, y, D.Box(-1.0, 1.0, 3), D.Box(-1.0, 1.0, 2))
    start = (np.ones(3), -np.ones(2))
    assert contraction(saddle, start, factor=4.0) <= 0.4


@gathered("ratio", [1.0, 1.2, 1.34, 10.0, 12345.6, 1e9])
def test_the_number_of_restarts_is_the_corollarys(ratio):
    S = restart_count(7.0 * ratio, 7.0)
    assert math.ceil(math.log(ratio) / math.log(4.0 / 3.0)) == S
    assert 0.75**S * ratio <= 1.0 + 1e-12
    assert S == 0 or 0.75 ** (S - 1) * ratio > 1.0 - 1e-12


def test_a_plan_has_that_many_stages_and_their_radii_fall_by_three_quarters():
    saddle = saddles.conditioned(0, 4.0, 9.0, 2.0)
    plan = ss.plan(saddle.problem, tol=1e-4, regime="restarts", Psi0=50.0)
    kappa_xy = plan.constants["kappa_xy"].value
    # Gap = D_f + D_g + D_h* + D_q* with 12 (D_f + D_g) <= Psi and the conjugates smooth with 1/mu.
    assert plan.constants["Psi_end"].value == pytest.approx(1e-4 / (1.0 / 6.0 + kappa_xy), rel=1e-9)
    assert len(plan.schedule.stages) == math.ceil(
        math.log(50.0 / plan.constants["Psi_end"].value) / math.log(4.0 / 3.0)
    )
    for s, stage in enumerate(plan.schedule.stages):
        assert stage.Omega == pytest.approx(0.75**s * 50.0, rel=1e-12)
    assert plan.schedule.stages[-1].Omega * 0.75 <= plan.constants["Psi_end"].value
    assert not ss.plan(saddle.problem, tol=1e-4, regime="restarts", Psi0=1e-9).schedule.stages


def test_a_psi_at_its_target_gives_the_gap_on_full_spaces():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A, C = np.diag(rng.uniform(0.1, 3.0, 3)), np.diag(rng.uniform(0.1, 3.0, 2))
        B = saddles.with_norm(rng, 2, 3, 2.0)
        saddle = saddles.solved_quadratic(A, C, rng.standard_normal(3), rng.standard_normal(2), B)
        plan = ss.plan(saddle.problem, tol=1e-2, regime="restarts", Psi0=1.0, proved=True)
        x, y = saddle.near(rng)
        size = math.sqrt(plan.constants["Psi_end"].value / saddle.Psi(x, y, weights_of(plan)))
        x, y = saddle.x + size * (x - saddle.x), saddle.y + size * (y - saddle.y)
        assert ss.certify(saddle.problem, x, y).gap <= 1e-2
        assert plan.bound == 1e-2


def test_run_of_a_practical_plan_solves():
    saddle = saddles.conditioned(4, 30.0, 10.0, 40.0)
    result = ss.run(saddle.problem, ss.plan(saddle.problem, tol=1e-6, regime="restarts"))
    assert result.status is ss.Status.SOLVED
    assert saddle.Psi(result.x, result.y, (1.0, 1.0)) <= 14e-6


# Psi at the start from the certified gap.


def constrained_saddle(seed):
    """Quadratics on boxes with some bounds active at the saddle point."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-0.5, 0.5, 4), rng.uniform(-0.5, 0.5, 3)
    x[:2], y[0] = (1.0, -1.0), 1.0
    normals = (np.array([0.7, -2.0, 0.0, 0.0]), np.array([1.5, 0.0, 0.0]))
    A, C = np.diag(10.0 ** rng.uniform(-2.0, 1.0, 4)), np.diag(10.0 ** rng.uniform(-2.0, 1.0, 3))
    B = saddles.with_norm(rng, 3, 4, 10.0 ** rng.uniform(-1.0, 1.0))
    boxes = D.Box(-1.0, 1.0, shape=4), D.Box(-1.0, 1.0, shape=3)
    return saddles.planted(saddles.quadratic(A), saddles.quadratic(C), B, x, y, *boxes, normals)


def free_saddle(seed):
    rng = np.random.default_rng(seed)
    kappas = 10.0 ** rng.uniform(0.0, 2.0, 3)
    return saddles.conditioned(seed, *kappas, mu=tuple(10.0 ** rng.uniform(-1.0, 1.0, 2)))


@pytest.mark.parametrize("make", [free_saddle, constrained_saddle])
def test_psi_is_at_most_14_gaps(make):
    tightest = 0.0
    for seed in range(30):
        saddle = make(seed)
        rng = np.random.default_rng(1000 + seed)
        start = saddle.near(rng, 10.0 ** rng.uniform(-3.0, 1.0))
        plan = ss.plan(saddle.problem, tol=1e-3, regime="restarts", start=start)
        assert plan.constants["Psi0"].value == 14.0 * ss.certify(saddle.problem, *start).gap
        tightest = max(tightest, saddle.Psi(*start, weights_of(plan)) / plan.constants["Psi0"].value)
    assert 0.1 < tightest <= 1.0


def test_psi_is_at_most_14_gaps_in_the_metric_of_the_anchors_on_full_spaces():
    tightest = 0.0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        A, C = saddles.spread(rng, 4, 1e-3, 2.0), saddles.spread(rng, 4, 1e-3, 3.0)
        B = with_spectrum(rng.uniform(0.5, 1.0, 4), 4, 4, rng)
        saddle = saddles.solved_quadratic(A, C, rng.standard_normal(4), rng.standard_normal(4), B)
        start = saddle.near(rng)
        plan = ss.plan(saddle.problem, tol=1e-3, regime="restarts", start=start, anchors=True)
        assert weights_of(plan)[0] > 50.0 * plan.constants["mu_x"].value
        tightest = max(tightest, saddle.Psi(*start, weights_of(plan)) / plan.constants["Psi0"].value)
    assert 0.02 < tightest <= 1.0


def test_on_a_bounded_block_the_gap_sees_mu_and_not_what_an_anchor_adds():
    """Y is a small box: the gap grows only linearly in Bx, so 14 gaps would be 10 times too small."""
    A, B = np.diag([0.01, 2.0]), np.eye(2)
    Y = D.Box(-0.01, 0.01, shape=2)
    saddle = saddles.planted(saddles.quadratic(A), saddles.quadratic(np.eye(2)), B, np.zeros(2), np.zeros(2), Y=Y)
    start = (np.array([10.0, 0.0]), np.zeros(2))
    settings = {"tol": 1e-3, "regime": "restarts", "start": start, "anchors": True, "interior": ("y",)}
    plan = ss.plan(saddle.problem, **settings, constants={"mu_y": 0.5})
    Psi = saddle.Psi(*start, weights_of(plan))
    assert Psi > 5.0 * 14.0 * ss.certify(saddle.problem, *start).gap
    assert plan.constants["Psi0"].value >= Psi
    # Where mu_x is 0 the gap says nothing of x, and the slopes at the start do.
    by_slopes = ss.plan(saddle.problem, **settings, constants={"mu_x": 0.0, "mu_y": 0.5})
    assert by_slopes.constants["Psi0"].origin == "slopes at the start"
    assert by_slopes.constants["Psi0"].value >= saddle.Psi(*start, weights_of(by_slopes))


def test_no_gap_is_promised_where_a_constraint_can_be_active():
    """Psi at its target, and yet a gap far above tol: the normal vector adds a first-order term."""
    f, g = saddles.quadratic(np.eye(1)), saddles.quadratic(np.eye(1))
    zero, X = np.zeros(1), D.Box(0.0, 1.0, shape=1)
    normals = (np.array([-100.0]), zero)
    saddle = saddles.planted(f, g, np.full((1, 1), 0.1), zero, zero, X, normals=normals)
    start = (np.array([1e-2]), zero)
    Psi0 = saddle.Psi(*start, (1.0, 1.0))
    plan = ss.plan(saddle.problem, tol=0.1, regime="restarts", proved=True, Psi0=Psi0, start=start)
    assert Psi0 <= plan.constants["Psi_end"].value
    result = ss.run(saddle.problem, plan, start=start)
    assert result.gap > 0.9
    assert result.status is ss.Status.COMPLETED
    assert plan.bound == math.inf
    assert plan.Psi_bound == Psi0


# Anchors: p_3.


def anchored_saddle(seed=0, size=4):
    """No strong convexity at all: all curvature comes from a well-conditioned B."""
    rng = np.random.default_rng(seed)
    A, C = saddles.spread(rng, size, 1.0, 2.0), saddles.spread(rng, size, 1.0, 2.0)
    A, C = A - np.linalg.eigvalsh(A)[0] * np.eye(size), C - np.linalg.eigvalsh(C)[0] * np.eye(size)
    B = with_spectrum(np.linspace(0.6, 0.9, size), size, size, rng)
    return saddles.solved_quadratic(A, C, rng.standard_normal(size), rng.standard_normal(size), B)


def test_anchors_make_restarts_contract_without_any_strong_convexity():
    saddle = anchored_saddle()
    start = saddle.near(np.random.default_rng(3))
    settings = {"anchors": True, "constants": {"mu_x": 0.0, "mu_y": 0.0}}
    plan, _ = restarts(saddle, start, **settings)
    assert plan.constants["delta_x"].value == pytest.approx(0.36 / saddle.problem.g.smoothness(saddle.problem.Y).H)
    assert contraction(saddle, start, **settings, factor=4.0) <= 0.4
    with pytest.raises(InputError, match="expects both > 0"):
        ss.plan(saddle.problem, tol=1e-3, regime="restarts", constants={"mu_x": 0.0, "mu_y": 0.0})


@gathered("bounded", [False, True])
@gathered("beta", [(0.3, 0.2), (0.3, 0.0), (0.0, 0.2)])
def test_anchors_run_algorithm_4_as_printed(beta, bounded):
    rng = np.random.default_rng(8)
    A, C, B = saddles.spread(rng, 3, 1.0, 2.0), saddles.spread(rng, 2, 1.0, 3.0), rng.standard_normal((2, 3))
    X, Y = (D.Box(-0.2, 0.2, shape=3), D.Ball(0.3, shape=2)) if bounded else (D.FullSpace(3), D.FullSpace(2))
    problem = ss.SaddleProblem(
        f=saddles.quadratic(A).function(rng.standard_normal(3)),
        g=saddles.quadratic(C).function(rng.standard_normal(2)),
        B=B, X=X, Y=Y,
    )  # fmt: skip
    weights = (0.7, 2.0)
    L_3, M = 5.0, np.linalg.norm(B, 2) / math.sqrt(weights[0] * weights[1])
    terms = [
        Term("f", ss.Holder(1.0, 3.0), weights=weights),
        Term("g", ss.Holder(1.0, 4.0), weights=weights),
        Term("B", ss.Holder(1.0, L_3), M, weights=weights),
    ]
    stage = Stage(place(terms, (4, 3, 5)), 1.0, *beta)
    start = (X.project(rng.standard_normal(3)), Y.project(rng.standard_normal(2)))
    found = []
    plan = stage_plan((stage,), tol=UNREACHABLE)
    ss.run(problem, plan, start=start, callback=lambda result: found.append((result.x, result.y)))
    expected = saddles.algorithm_4_with_anchors(problem, stage.levels, beta, start)
    assert len(found) == len(expected) == 4
    for one, other in zip(found, expected, strict=True):
        for block in (0, 1):
            assert np.max(np.abs(one[block] - other[block])) <= 1e-12 * max(1.0, np.max(np.abs(other[block])))
    plain = saddles.algorithm_4_with_anchors(problem, stage.levels, (0.0, 0.0), start)
    assert np.max(np.abs(found[0][0] - plain[0][0])) + np.max(np.abs(found[0][1] - plain[0][1])) > 1e-4


@pytest.mark.parametrize(("smooth", "products"), [("both", 6), ("g", 5), ("f", 5), ("neither", 4)])
def test_calls_of_an_anchored_stage(smooth, products):
    """One product for each active anchor on top of four; one f' and one g' more a stage for the anchors themselves."""
    rng = np.random.default_rng(6)
    box, x, y = D.Box(-1.0, 1.0, shape=3), rng.uniform(-0.3, 0.3, 3), rng.uniform(-0.3, 0.3, 3)
    rough, even = saddles.power(0.5, 0.2, 1.0), saddles.quadratic(np.diag([1.0, 2.0, 3.0]))
    f, g = (even if smooth in ("both", "f") else rough), (even if smooth in ("both", "g") else rough)
    saddle = saddles.planted(f, g, saddles.with_norm(rng, 3, 3, 0.5), x, y, box, box)
    constants = {"mu_x": 1.0, "mu_y": 1.0}
    settings = {"regime": "restarts", "anchors": True, "interior": ("x", "y"), "constants": constants, "Psi0": 10.0}
    plan = ss.plan(saddle.problem, tol=1e-2, **settings)
    plan = dataclasses.replace(
        plan, schedule=dataclasses.replace(plan.schedule, stages=plan.schedule.stages[:3]), tol=UNREACHABLE
    )
    result = ss.run(saddle.problem, plan)
    steps = {name: sum(level.N for stage in plan.schedule.stages for level in stage.levels if level.term.name == name)
             for name in "fgB"}  # fmt: skip
    # Each entry of the level takes a product more per anchor, but for the first one of a stage. Two products at the
    # start, which is 0, and the last correction of every stage are spared.
    anchors = products - 4
    entries = sum(
        level.N // level.T for stage in plan.schedule.stages for level in stage.levels if level.term.name == "B"
    )
    assert products * steps["B"] + anchors * entries == result.method_calls.B + result.spared
    assert result.spared == 2 + 2 * 3 + 3 * anchors
    assert result.method_calls.f == steps["f"] + 3 * (smooth in ("both", "f"))
    assert result.method_calls.g == steps["g"] + 3 * (smooth in ("both", "g"))
    assert plan.predicted_calls == vars(result.counted)


def test_a_coupling_of_zero_costs_no_products():
    identity = saddles.quadratic(np.eye(2))
    saddle = saddles.planted(identity, identity, np.zeros((2, 2)), np.ones(2), np.ones(2))
    plan = ss.plan(saddle.problem, tol=1e-3, regime="restarts", Psi0=10.0)
    plan = dataclasses.replace(
        plan, schedule=dataclasses.replace(plan.schedule, stages=plan.schedule.stages[:1]), tol=UNREACHABLE
    )
    result = ss.run(saddle.problem, plan)
    assert plan.predicted_calls["B"] == result.method_calls.B == 0


def test_anchors_are_refused_where_a_constraint_can_be_active():
    counted = CountedProblem(0.1 * np.eye(3), norm=0.1)
    settings = {"tol": 1e-2, "regime": "restarts", "anchors": True, "constants": {"mu_x": 0.5, "mu_y": 0.5}}
    with pytest.raises(InputError, match=r"X is Box.*Y is Box.*active"):
        ss.plan(counted.problem, **settings)
    assert counted.total == 0


@gathered(("interior", "betas"), [(("x",), (0.0, 0.25)), (("y",), (0.25, 0.0)), (("x", "y"), (0.25, 0.25))])
def test_an_anchor_needs_the_other_normal_vector_to_vanish_and_no_more(interior, betas):
    counted = CountedProblem(0.1 * np.eye(3), norm=0.1)
    settings = {"tol": 1e-2, "regime": "restarts", "anchors": True, "constants": {"mu_x": 0.5, "mu_y": 0.5}}
    constants = ss.plan(counted.problem, **settings, interior=interior, Psi0=1.0).constants
    assert (constants["beta_x"].value, constants["beta_y"].value) == betas


def test_with_one_anchor_allowed_the_run_still_finds_the_right_point():
    """X is a box with an active side, Y is free: beta_y is refused, beta_x is not, and the saddle point is found."""
    f, g, B = saddles.quadratic(np.diag([1.0, 3.0])), saddles.quadratic(np.diag([1.0, 3.0])), 0.5 * np.eye(2)
    x, y, normals = np.array([1.0, 0.1]), np.array([0.2, 0.3]), (np.array([2.0, 0.0]), 0.0)
    saddle = saddles.planted(f, g, B, x, y, D.Box(-1.0, 1.0, shape=2), normals=normals)
    plan = ss.plan(saddle.problem, tol=1e-6, regime="restarts", Psi0=100.0, anchors=True)
    assert plan.constants["beta_x"].value > 0.0
    assert plan.constants["beta_y"].value == 0.0
    result = ss.run(saddle.problem, plan)
    assert result.status is ss.Status.SOLVED
    assert np.linalg.norm(result.x - x) + np.linalg.norm(result.y - y) < 1e-2


def test_the_mixed_regime_can_take_its_curvature_from_an_anchor_alone():
    """f linear, g smooth and flat, B of full column rank on free y: delta_x > 0 comes from beta_x; x is bounded."""
    rng = np.random.default_rng(3)
    M = np.diag([2.0, 0.0, 1.0])
    B = np.linalg.qr(rng.standard_normal((3, 2)))[0]
    f, g = ss.functions.Linear([0.1, -0.2]), ss.functions.Quadratic(M)
    problem = ss.SaddleProblem(f=f, g=g, B=B, X=D.Box(-1.0, 1.0, shape=2), Y=D.Ball(4.0, shape=3))
    plan = ss.plan(problem, tol=0.05, regime="mixed", anchors=True, interior=("y",), Psi0=10.0)
    assert plan.constants["mu_x"].value == plan.constants["mu_y"].value == 0.0
    assert plan.constants["delta_x"].value > 0.0
    assert plan.schedule.regularisation.block == "y"
    assert math.isfinite(plan.schedule.regularisation.target)


def test_a_false_declaration_of_interior_ends_at_a_wrong_point_and_is_not_called_solved():
    f, g, B = saddles.quadratic(np.diag([1.0, 3.0])), saddles.quadratic(np.diag([1.0, 3.0])), 0.5 * np.eye(2)
    x, y, normals = np.array([1.0, 0.1]), np.array([0.2, 0.3]), (np.array([2.0, 0.0]), 0.0)
    saddle = saddles.planted(f, g, B, x, y, D.Box(-1.0, 1.0, shape=2), normals=normals)
    plans = [
        ss.plan(saddle.problem, tol=1e-5, regime="restarts", Psi0=100.0, anchors=anchors, interior=("x", "y"))
        for anchors in (False, True)
    ]
    right, wrong = (ss.run(saddle.problem, plan) for plan in plans)
    assert right.status is ss.Status.SOLVED
    assert np.max(np.abs(right.y - y)) < 1e-2
    # All stages were made, and they end elsewhere: y is pulled to B^T y = -f'(x), which has no normal vector.
    assert wrong.method_calls.f == wrong.plans[-1].predicted_calls["f"]
    assert np.max(np.abs(wrong.y - y)) > 1e-2
    assert wrong.status is ss.Status.COMPLETED
    assert wrong.gap > 1e-3


SINGULAR = np.array([[2.0, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.0]])
WIDE = SINGULAR[:2]


@gathered(
    ("g", "B", "declared", "mu_yx"),
    [
        (F.Zero(), SINGULAR, (), 0.5),
        (F.Linear([1.0, -3.0, 0.0]), SINGULAR, (), 0.5),
        (F.Linear([1.0, -3.0, 1e-3]), SINGULAR, (), 0.0),
        (F.Linear([1.0, -3.0, 1e-3]), SINGULAR, ("y",), 0.5),
        (F.Linear([1.0, -3.0]), WIDE, (), 0.5),
        (F.Quadratic([1.0, 1.0, 1.0]), SINGULAR, (), 0.0),
        (F.Quadratic([1.0, 1.0, 0.0]), SINGULAR, ("y",), 0.5),
        (F.Quadratic([1.0, 1.0]), WIDE, (), 0.5),
    ],
)
def test_range_condition_of_y_decides_between_the_smallest_and_the_smallest_positive_singular_value(
    g, B, declared, mu_yx
):
    f = F.Quadratic([4.0, 4.0, 4.0])
    problem = ss.SaddleProblem(f=f, g=g, B=B, X=D.FullSpace(3), Y=D.FullSpace(len(B)))
    settings = {"regime": "restarts", "anchors": True, "range_conditions": declared, "Psi0": 1.0}
    constants = {"mu_x": 1.0, "mu_y": 0.0}
    if mu_yx == 0.0:
        with pytest.raises(InputError, match="expects both > 0"):
            ss.plan(problem, tol=1e-3, **settings, constants=constants)
        return
    plan = ss.plan(problem, tol=1e-3, **settings, constants=constants)
    assert plan.constants["delta_y"].value == pytest.approx(mu_yx**2 / 4.0, rel=1e-12)
    # mu_x keeps its own: B has a kernel on the x side and f is not linear.
    assert plan.constants["delta_x"].value == 1.0
    # The same seen from the other player.
    other = ss.SaddleProblem(f=g, g=f, B=-B.T, X=D.FullSpace(len(B)), Y=D.FullSpace(3))
    declared_x = ("x",) if declared else ()
    settings |= {"range_conditions": declared_x, "constants": {"mu_x": 0.0, "mu_y": 1.0}}
    mirror = ss.plan(other, tol=1e-3, **settings)
    assert mirror.constants["delta_x"].value == plan.constants["delta_y"].value


def test_range_conditions_are_not_read_off_a_bounded_set():
    """Assumption properties_of_B also wants Y + ker B^T = Y."""
    B = ss.operators.as_operator(SINGULAR)
    assert range_condition(F.Zero(), D.FullSpace(3), B)
    assert not range_condition(F.Zero(), D.Box(-1.0, 1.0, shape=3), B)
    assert not range_condition(F.Quadratic(1.0), D.FullSpace(3), B)


def test_constraints_with_redundant_rows_contract_under_the_range_condition():
    """min 1/2 |x|^2_A - <a, x> with Bx = b, b in the range of a singular B: y* is unique up to ker B^T."""
    rng = np.random.default_rng(4)
    B = np.vstack([WIDE, WIDE[0] + WIDE[1]])
    A = np.diag([1.0, 2.0, 3.0])
    b, a = B @ rng.standard_normal(3), rng.standard_normal(3)
    # KKT of the constrained problem; least squares takes the y* in the range of B, where y_in = 0 lies too.
    z = np.linalg.lstsq(np.block([[A, B.T], [B, np.zeros((3, 3))]]), np.concatenate([a, b]), rcond=None)[0]
    f = saddles.quadratic(A)
    problem = ss.SaddleProblem(f=f.function(a), g=F.Linear(b), B=B, X=D.FullSpace(3), Y=D.FullSpace(3))
    saddle = saddles.Saddle(problem, z[:3], z[3:], lambda x: f.bregman(x, z[:3], None), lambda y: 0.0)
    start = (np.zeros(3), np.zeros(3))
    assert contraction(saddle, start, anchors=True, factor=4.0) <= 0.4
    # Off Bx = b the gap is infinite, however small Psi is: the slopes bound Psi0, and no gap is promised.
    plan = ss.plan(problem, tol=1e-3, regime="restarts", anchors=True)
    assert plan.constants["Psi0"].origin == "slopes at the start"
    assert saddle.Psi(*start, weights_of(plan)) <= plan.constants["Psi0"].value
    # B gives y its curvature, and the choice of the regime sees that.
    assert ss.plan(problem, tol=1e-3, anchors=True).regime == "restarts"
    assert plan.constants["mu_yx"].value == pytest.approx(np.linalg.svd(B, compute_uv=False)[1], rel=1e-9)
    proved = ss.plan(problem, tol=1e-3, regime="restarts", anchors=True, proved=True, Psi0=1e-3)
    assert proved.bound == math.inf


def test_range_conditions_of_quadratics_losses_and_sums_are_read_off_their_gradients():
    """All of f' lies in the range of B^T exactly where no direction of ker B changes f."""
    rng = np.random.default_rng(0)
    B = rng.standard_normal((2, 4))
    onto, into = ss.operators.as_operator(B), ss.operators.as_operator(B.T)
    mixed, other = rng.standard_normal((3, 2)) @ B, rng.standard_normal((3, 4))
    space = D.FullSpace(4)
    held = {
        "least squares of a combination of rows": F.LeastSquares(mixed, np.ones(3)),
        "logistic": F.Logistic(mixed, np.ones(3)),
        "tilted": F.LeastSquares(mixed, np.ones(3)) + F.Linear(B.T @ np.ones(2)),
        "quadratic": F.Quadratic(B.T @ B),
    }
    broken = {
        "least squares of something else": F.LeastSquares(other, np.ones(3)),
        "with a ridge": F.Logistic(mixed, np.ones(3), ridge=0.1),
        "tilted out": F.LeastSquares(mixed, np.ones(3)) + F.Linear(np.ones(4)),
        "a power": F.Power(1.0),
    }
    for name, f in held.items():
        assert range_condition(f, space, into), name
        x = [rng.standard_normal(4) for _ in range(3)]
        kernel = np.linalg.svd(B)[2][2:]
        assert max(np.abs(kernel @ f.gradient(point)).max() for point in x) < 1e-9, name
    for name, f in broken.items():
        assert not range_condition(f, space, into), name
    # B^T B is onto R^2 from any g.
    assert range_condition(F.Power(0.5), D.FullSpace(2), onto)


def test_moduli_through_B_are_declared_refused_and_listed():
    B = np.array([[2.0, 0.0, 0.0], [0.0, 0.5, 0.0]])
    problem = ss.SaddleProblem(
        f=F.Quadratic(np.array([1.0, 2.0, 3.0])),
        g=F.Quadratic(np.array([2.0, 5.0])),
        B=B,
        X=D.FullSpace(3),
        Y=D.FullSpace(2),
    )
    settings = {"tol": 1e-3, "regime": "restarts", "anchors": True}
    found = ss.plan(problem, **settings)
    # On x there is a kernel, and f' is not in the range of B^T; on y sigma_min is 1/2.
    assert found.constants["mu_xy"].value == 0.0
    assert found.constants["mu_yx"].value == pytest.approx(0.5, rel=1e-9)
    assert found.constants["delta_y"].value == pytest.approx(2.0 + 0.25 / 3.0)
    declared = ss.plan(problem, **settings, constants={"mu_yx": 0.25})
    assert declared.constants["mu_yx"].origin == "declared"
    assert declared.constants["delta_y"].value == pytest.approx(2.0 + 0.0625 / 3.0)
    assert "mu_yx    0.25 (declared" in declared.explain()
    with pytest.raises(InputError, match="mu_yx <= L_xy"):
        ss.plan(problem, **settings, constants={"mu_yx": 3.0})
    with pytest.raises(InputError, match="which has a kernel there; expected range_conditions"):
        ss.plan(problem, **settings, constants={"mu_xy": 0.4})


@gathered("seed", range(25))
def test_slopes_at_the_start_bound_psi(seed):
    """Random quadratics, singular ones too, with curvature through B: Psi(z_0) is never above the bound."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 6)), int(rng.integers(2, 6))

    def convex(size):
        half = rng.standard_normal((int(rng.integers(1, size + 1)), size)) * 10.0 ** rng.uniform(-1.0, 1.0)
        return half.T @ half

    A, C, B = convex(n), convex(m), rng.standard_normal((m, n)) * 10.0 ** rng.uniform(-1.0, 1.0)
    values, sizes = (np.linalg.eigvalsh(matrix) for matrix in (A, C)), np.linalg.svd(B, compute_uv=False)
    (mu_x, L_x), (mu_y, L_y) = ((max(spectrum[0], 0.0), spectrum[-1]) for spectrum in values)
    bare = Curvature(ss.Holder(1.0, L_x), ss.Holder(1.0, L_y), sizes[0], mu_x, mu_y)
    found = with_anchors(bare, sizes[-1] if m >= n else 0.0, sizes[-1] if n >= m else 0.0)
    if min(found.delta_x, found.delta_y) <= 1e-9:
        return
    x, y = rng.standard_normal(n), rng.standard_normal(m) * 10.0 ** rng.uniform(-2.0, 2.0)
    # The saddle point is 0: D_f = 1/2 x A x.
    Psi = found.delta_x * x @ x + found.delta_y * y @ y + 6.0 * (x @ A @ x + y @ C @ y)
    slopes = np.linalg.norm(A @ x + B.T @ y), np.linalg.norm(C @ y - B @ x)
    assert Psi <= Psi_of_slopes(found, slopes)


def test_the_slopes_bound_of_psi_has_the_constants_of_its_lemma_and_less_than_half_of_them_is_too_little():
    # f = |x|^2/2: Psi = |x|^2 + 12 |x|^2/2 and rho = |x|^2.
    bare = Curvature(ss.Holder(1.0, 1.0), ss.Holder(1.0, 1.0), 1e-6, 1.0, 1.0)
    assert Psi_of_slopes(bare, (1.0, 0.0)) == 7.0
    # f = 0, g = L_y/2 |y|^2, B = b, x_0 = 1, y_0 = b/L_y: r_y = 0, delta_x = b^2/L_y, and Psi is 8 delta_x.
    b, L_y = 1.5, 4.0
    anchored = with_anchors(Curvature(ss.Holder(1.0, 0.0), ss.Holder(1.0, L_y), b, 0.0, L_y), b, 0.0)
    y = b / L_y
    Psi = anchored.delta_x + anchored.delta_y * y * y + 6.0 * L_y * y * y
    assert pytest.approx(8.0 * b * b / L_y) == Psi
    assert 0.49 * Psi_of_slopes(anchored, (b * y, 0.0)) < Psi < Psi_of_slopes(anchored, (b * y, 0.0))
    # Both slopes: rho = 4/0.5 + 9/0.5 (mu_yx^2/L_x = 1/2 is delta_y), s^2 = 4/2.
    found = with_anchors(Curvature(ss.Holder(1.0, 2.0), ss.Holder(1.0, 8.0), 3.0, 0.5, 0.0), 0.0, 1.0)
    rho, s = 26.0, math.sqrt(2.0)
    assert Psi_of_slopes(found, (2.0, 3.0)) == pytest.approx(16.2 * rho + 16.8 * s * math.sqrt(rho) + 7.8 * s * s)


def test_lanczos_steps_bound_the_smallest_singular_value_beyond_dense_sizes():
    rng = np.random.default_rng(0)
    n = 1300
    wide = scipy.sparse.hstack([scipy.sparse.eye(n), 0.05 * scipy.sparse.random(n, 200, 0.02, random_state=0)]).tocsr()
    B = ss.operators.as_operator(wide)
    assert B.smallest_singular_value(positive=True).lower == 0.0
    true = np.linalg.svd(wide.toarray(), compute_uv=False)[-1]
    for operator in (B, B.T):
        found = lanczos_smallest(operator, positive=True)
        assert 0.5 * true <= found.lower <= true
        assert found.estimate >= true * (1.0 - 1e-6)
    assert lanczos_smallest(B, positive=False).lower == 0.0
    # With sides of few entries the space is exhausted, and the bound is the value.
    small = ss.operators.as_operator(rng.standard_normal((9, 6)))
    exact = np.linalg.svd(small.dense(), compute_uv=False)[-1]
    assert lanczos_smallest(small, positive=False).lower == pytest.approx(exact, rel=1e-6)
    assert lanczos_smallest(small, positive=False).lower <= exact
    # A plan with anchors takes it where nothing else is known.
    problem = ss.SaddleProblem(
        f=F.Quadratic(1.0), g=F.Zero(), B=wide.T.tocsr(), X=D.FullSpace(n), Y=D.FullSpace(n + 200)
    )
    plan = ss.plan(problem, 1e-3, regime="restarts", anchors=True)
    assert plan.constants["mu_yx"].origin.startswith("smallest positive singular value of B, lower bound: Lanczos")
    assert 0.5 * true <= plan.constants["mu_yx"].value <= true


# Simple terms beside restarts.


def elastic_net(seed=0):
    """1/2 |Ax - b|^2 + ridge + l1 on R^4 against a quadratic: (problem, A, accurate solution)."""
    rng = np.random.default_rng(seed)
    A, b, B = rng.standard_normal((6, 4)) / 2.0, rng.standard_normal(6), rng.standard_normal((3, 4)) / 2.0
    f = F.LeastSquares(A, b) + F.Quadratic(1.0) + 0.3 * F.L1()
    problem = ss.SaddleProblem(f=f, g=F.Quadratic(1.5), B=B, X=D.FullSpace(4), Y=D.FullSpace(3))
    found = ss.solve(problem, tol=1e-12)
    return problem, A, found


def test_restarts_take_simple_terms_in_the_base_case():
    problem, A, found = elastic_net()
    plan = ss.plan(problem, 1e-6, regime="restarts", simple=("f", "g"))
    assert plan.schedule.simple == ("f", "g")
    # g is a simple term as a whole and has no level; f keeps the level of its least squares alone.
    assert sorted(plan.order) == ["B", "f"]
    assert plan.constants["H_x"].value < np.linalg.norm(A, 2) ** 2 + 1.0
    assert 1.0 <= plan.constants["mu_x"].value <= 1.0 + np.linalg.svd(A, compute_uv=False)[-1] ** 2
    result = ss.run(problem, plan)
    assert result.status.name == "SOLVED"
    np.testing.assert_allclose(result.x, found.x, atol=2e-3)
    assert result.method_calls.g == 0
    # Without that |x|_1 leaves f no Hölder condition on the whole space.
    with pytest.raises(InputError, match="on an unbounded set"):
        ss.plan(problem, 1e-6, regime="restarts", simple=())


def Psi_beside(problem, best, curvature):
    """Psi of a problem with g = curvature/2 |y|^2 and the subgradient -B^T y* of f at x*."""
    f, B = problem.f, np.asarray(problem.coupling.dense())

    def Psi(x, y, weights):
        bregman = f.value(x) - f.value(best.x) + best.y @ B @ (x - best.x)
        near = weights[0] * np.sum((x - best.x) ** 2) + weights[1] * np.sum((y - best.y) ** 2)
        return near + 12.0 * bregman + 6.0 * curvature * np.sum((y - best.y) ** 2)

    return Psi


def one_stage(problem, Psi, start, **settings):
    """Psi after the first stage of a proved plan, and before it; the plan."""
    settings = {"regime": "restarts", "proved": True, "start": start, **settings}
    Psi0 = Psi(*start, weights_of(ss.plan(problem, 1e-6, Psi0=1.0, **settings)))
    plan = ss.plan(problem, 1e-6, Psi0=Psi0, **settings)
    one = rescheduled(plan, stages=plan.schedule.stages[:1])
    one = first_stages(plan, 1, tol=UNREACHABLE)
    runs = [ss.run(problem, one, start=start, rng=seed) for seed in range(16 if problem.g.sampled else 1)]
    return np.mean([Psi(run.x, run.y, weights_of(plan)) for run in runs]), Psi0, plan


@pytest.mark.parametrize("sigma", [0.0, 0.3])
def test_a_proved_stage_with_simple_terms_contracts_by_three_quarters(sigma):
    """Psi with the Bregman distance of the whole f, beside exact and beside sampled gradients of g."""
    problem, _, _ = elastic_net(1)
    best, start = ss.solve(problem, tol=1e-13), (np.ones(4), np.ones(3))
    g = F.Noisy(problem.g, sigma) if sigma else problem.g
    noisy = ss.SaddleProblem(f=problem.f, g=g, B=problem.B, X=problem.X, Y=problem.Y)
    simple = ("f",) if sigma else ("f", "g")
    after, Psi0, plan = one_stage(noisy, Psi_beside(problem, best, 1.5), start, simple=simple)
    assert plan.schedule.simple == simple
    assert after <= 0.75 * Psi0
    if sigma:
        assert max(level.term.variance for level in plan.schedule.stages[0].levels) > 0.0
        f = F.Quadratic(1.0) + 0.3 * F.L1()
        alone = ss.SaddleProblem(f=f, g=g, B=problem.B, X=problem.X, Y=problem.Y)
        plan = ss.plan(alone, 0.1, regime="restarts", simple=("f",), Psi0=10.0)
        assert sorted(plan.order) == ["B", "g"]


def test_an_anchor_is_made_of_the_function_that_has_no_simple_term():
    """f = 1/2 |Ax - b|^2 + 0.3 |x|_1 with a flat direction: B gives x its curvature, by the slope of g."""
    rng = np.random.default_rng(3)
    A, B = rng.standard_normal((2, 3)), with_spectrum([1.0, 1.2, 1.5], 4, 3, rng)
    f = F.LeastSquares(A, rng.standard_normal(2)) + 0.3 * F.L1()
    problem = ss.SaddleProblem(f=f, g=F.Quadratic(1.5), B=B, X=D.FullSpace(3), Y=D.FullSpace(4))
    best, start = ss.solve(problem, tol=1e-12), (np.ones(3), -np.ones(4))
    after, Psi0, plan = one_stage(problem, Psi_beside(problem, best, 1.5), start, simple=("f",), anchors=True)
    stage = plan.schedule.stages[0]
    assert (stage.beta_x, stage.beta_y) == (1.0 / 6.0, 0.0)
    assert plan.constants["delta_x"].value == pytest.approx(1.0 / 1.5)
    assert after <= 0.75 * Psi0
    with pytest.raises(InputError, match="a g without a simple term"):
        ss.plan(problem, 1e-6, regime="restarts", simple=("f", "g"), anchors=True)


def test_the_mixed_regime_takes_simple_terms():
    """g = <c, y> + 0.2 |y|_1 has no level of its own: the one of y is that of lambda/2 |y|^2, and the gap is met."""
    problem, _, _ = elastic_net(2)
    g = F.Linear(np.array([0.1, -0.2, 0.05])) + 0.2 * F.L1()
    flat = ss.SaddleProblem(f=problem.f, g=g, B=problem.B, X=problem.X, Y=D.Box(-2.0, 2.0, shape=3))
    settings = {"regime": "mixed", "simple": ("f", "g"), "interior": ("y",)}
    practical, proved = (ss.plan(flat, 0.05, proved=proved, **settings) for proved in (False, True))
    level = next(level for level in practical.schedule.stages[0].levels if level.term.name == "g")
    assert level.term.smoothness.H * level.term.weights[1] == pytest.approx(practical.schedule.regularisation.weight)
    assert ss.run(flat, practical).status is ss.Status.SOLVED
    assert proved.bound == 0.05
    whole = ss.run(flat, replace(proved, tol=UNREACHABLE))
    assert ss.certify(flat, whole.x, whole.y).gap <= 0.05
    assert whole.method_calls.g == pytest.approx(proved.predicted_calls["g"], rel=0.01)


# Psi as a target, and as what a result says.


def test_psi_is_a_target_of_its_own_and_a_number_of_the_result():
    saddle = saddles.conditioned(11, 10.0, 40.0, 4.0, columns=6, rows=5)
    start = saddle.near(np.random.default_rng(1))
    plan = ss.plan(saddle.problem, Psi=1e-3, start=start)
    assert plan.regime == "restarts"
    assert plan.constants["Psi_end"].value == 1e-3
    Psi0 = plan.constants["Psi0"].value
    # S of Corollary 4.5.
    assert len(plan.schedule.stages) == math.ceil(math.log(Psi0 / 1e-3) / math.log(4.0 / 3.0))
    result = ss.run(saddle.problem, plan, start=start)
    true = saddle.Psi(result.x, result.y, weights_of(plan))
    assert true <= result.Psi == 14.0 * result.gap <= 1e-3
    assert result.success
    assert "Psi: " in repr(result)
    assert math.isnan(ss.solve(saddle.problem, 1e-3).Psi)
    with pytest.raises(InputError, match="expected a target of restarts in place of tol"):
        ss.plan(saddle.problem, 1e-3, Psi=1e-3)
    with pytest.raises(InputError, match=r"Psi is 0\.0; expected a number > 0"):
        ss.plan(saddle.problem, Psi=0.0)


def test_a_proved_psi_is_what_the_stages_end_with():
    saddle = saddles.conditioned(3, 1.5, 1.5, 1e-3, columns=2, rows=2)
    start = saddle.near(np.random.default_rng(1))
    Psi0 = saddle.Psi(*start, (1.0, 1.0))
    plan = ss.plan(saddle.problem, Psi=0.7 * Psi0, Psi0=Psi0, proved=True, start=start)
    assert plan.proved
    assert plan.tol is None
    result = ss.run(saddle.problem, plan, start=start)
    assert saddle.Psi(result.x, result.y, weights_of(plan)) <= result.Psi <= 0.7 * Psi0
    assert result.status.name == "COMPLETED"
    assert result.success
    # Without a gap the proved number is left; nothing is proved of what was cut short.
    blind = dataclasses.replace(result, certificate=ss.Certificate())
    assert blind.Psi == pytest.approx(0.75 * plan.schedule.stages[-1].Omega)
    assert dataclasses.replace(blind, history=result.history[:1]).Psi == math.inf


@gathered("regime", ["mixed", "restarts"])
@gathered("block", ["x", "y"])
def test_a_block_that_is_a_single_point_takes_any_modulus(regime, block):
    """Omega = 0: min 1/2 |x|^2 + <c + B^T y_0, x> has the solution -(c + B^T y_0), and no lambda is added."""
    rng = np.random.default_rng(5)
    B, c, fixed = rng.standard_normal((2, 3)), rng.standard_normal(3), np.array([0.3, -0.2])
    f, g, point = F.Quadratic(1.0) + F.Linear(c), F.Power(0.0), D.Box(fixed, fixed)
    if block == "y":
        problem = ss.SaddleProblem(f=f, g=g, B=B, X=D.FullSpace(3), Y=point)
    else:
        problem = ss.SaddleProblem(f=g, g=f, B=-B.T, X=point, Y=D.FullSpace(3))
    plan = ss.plan(problem, 1e-8, regime=regime)
    assert plan.schedule.regularisation is None
    assert plan.constants["kappa_xy"].value == pytest.approx(1.0)
    result = ss.run(problem, plan)
    assert result.status.name == "SOLVED"
    moving, still = (result.x, result.y) if block == "y" else (result.y, result.x)
    np.testing.assert_array_equal(still, fixed)
    np.testing.assert_allclose(moving, -(c + B.T @ fixed), atol=2e-4)
    assert ss.plan(problem, 1e-8, anchors=True).regime == "restarts"


# The mixed regime.


def oriented(mixed, block):
    """The problem with `block` as the one without curvature, and maps between the two ways round."""
    if block == "y":
        return mixed.problem, lambda x, y: (x, y)
    old = mixed.problem
    return ss.SaddleProblem(f=old.g, g=old.f, B=-mixed.B.T, X=old.Y, Y=old.X), lambda x, y: (y, x)


@pytest.mark.parametrize("block", ["x", "y"])
@pytest.mark.parametrize("anchors", [False, True])
@pytest.mark.parametrize("eps", [0.3, 1e-2])
def test_the_gap_is_at_most_eps_where_psi_meets_its_target(block, anchors, eps):
    largest = 0.0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        mixed = saddles.Mixed.random(seed, kappa=30.0, norm=rng.uniform(0.1, 0.5))
        center = rng.uniform(-0.2, 0.2, len(mixed.b))
        problem, turn = oriented(mixed, block)
        start = turn(np.zeros(len(mixed.a)), center)
        plan = ss.plan(
            problem, tol=eps, regime="mixed", proved=True, start=start, anchors=anchors, interior=(block,), Psi0=1.0
        )
        # lambda = eps / Omega from the center, by hand.
        weight = eps / float(np.sum((1.0 + np.abs(center)) ** 2))
        assert plan.schedule.regularisation.block == block
        assert plan.schedule.regularisation.weight == pytest.approx(weight, rel=1e-12)
        assert plan.bound == eps
        saddle = mixed.regularised(weight, center)
        curved, flat = weights_of(plan) if block == "y" else weights_of(plan)[::-1]
        assert flat == pytest.approx(weight, rel=1e-12)
        x, y = saddle.near(rng)
        size = math.sqrt(plan.schedule.regularisation.target / saddle.Psi(x, y, (curved, flat)))
        for part in (1.0, 0.5):
            near = saddle.x + part * size * (x - saddle.x), saddle.y + part * size * (y - saddle.y)
            assert mixed.Y.contains(near[1])
            gap = mixed.gap(*near)
            assert gap <= eps
            largest = max(largest, gap / eps)
    # The bound is met by a wide margin, but not an empty one: half of eps is the regularisation's own.
    assert largest > 0.05


def transferred_gap(eps, Psi, weight, L_xy, delta, mu, diameter):
    """Right-hand side of eq. mixed_gap_transfer: what Psi of the regularised problem says about the true gap."""
    kappa = L_xy**2 / (delta * weight)
    dual = 0.5 * L_xy**2 / (mu * weight) * Psi if mu > 0.0 else L_xy * diameter * math.sqrt(Psi / weight)
    return 0.5 * eps + Psi / 6.0 + 0.5 * kappa * Psi + dual


@pytest.mark.parametrize("smooth", [True, False])
def test_the_transferred_gap_is_never_below_the_true_gap(smooth):
    tightest = 0.0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        mixed = saddles.Mixed.random(seed, norm=rng.uniform(0.05, 1.0), smooth=smooth)
        eps, center = 10.0 ** rng.uniform(-2.5, -1.5), np.zeros(len(mixed.b))
        weight = eps / float(len(mixed.b))
        saddle = mixed.regularised(weight, center)
        mu, norm = float(np.linalg.eigvalsh(mixed.A)[0]), float(np.linalg.norm(mixed.B, 2))
        point = saddle.near(rng, 10.0 ** rng.uniform(-6.0, 0.0))
        Psi = saddle.Psi(*point, (mu, weight))
        bound = transferred_gap(eps, Psi, weight, norm, mu, mu, math.inf)
        assert mixed.gap(*point) <= bound
        tightest = max(tightest, mixed.gap(*point) / bound)
    assert tightest > 0.02


def test_the_transfer_and_its_target_are_the_printed_formulas():
    eps, Omega, L, delta, mu, diameter = 0.02, 3.0, 1.5, 0.8, 0.3, 4.0
    weight = eps / Omega
    kappa, kappa_mu = L**2 * Omega / (delta * eps), L**2 * Omega / (mu * eps)
    target = eps / (2.0 * (1.0 / 6.0 + kappa / 2.0 + kappa_mu / 2.0))
    assert gap_target(eps, weight, L, delta, mu, diameter) == pytest.approx(target, rel=1e-12)
    assert transferred_gap(eps, target, weight, L, delta, mu, diameter) == pytest.approx(eps, rel=1e-12)
    assert transferred_gap(eps, 0.5, weight, L, delta, mu, diameter) == pytest.approx(
        eps / 2.0 + 0.5 / 6.0 + 0.25 * kappa + 0.25 * kappa_mu, rel=1e-12
    )
    printed = min(eps / (4.0 * (1.0 / 6.0 + kappa / 2.0)), weight * eps**2 / (16.0 * L**2 * diameter**2))
    assert gap_target(eps, weight, L, delta, 0.0, diameter) == pytest.approx(printed, rel=1e-12)
    assert gap_target(eps, weight, L, delta, 0.0, 0.0) == pytest.approx(eps / (4.0 * (1.0 / 6.0 + kappa / 2.0)))
    assert transferred_gap(eps, 0.5, weight, L, delta, 0.0, diameter) == pytest.approx(
        eps / 2.0 + 0.5 / 6.0 + 0.25 * kappa + L * diameter * math.sqrt(0.5 / weight), rel=1e-12
    )
    assert transferred_gap(eps, printed, weight, L, delta, 0.0, diameter) <= eps
    with pytest.raises(InputError, match="unbounded"):
        gap_target(eps, weight, L, delta, 0.0, math.inf)


@gathered("nu", [0.0, 0.5, 1.0])
def test_the_regularised_problem_has_the_papers_constants(nu):
    bare = Curvature(ss.Holder(1.0, 6.0), ss.Holder(nu, 2.0), L_xy=0.5, mu_x=0.25)
    curved, extra = regularise(bare, eps=0.1, Omega=4.0, diameters=(math.inf, 3.0))
    H = 2.0 + 0.025 * 3.0 ** (1.0 - nu)
    assert (curved.g.nu, curved.g.H) == (nu, pytest.approx(H, rel=1e-12))
    assert (curved.mu_x, curved.mu_y, extra.weight, extra.block) == (0.25, 0.025, 0.025, "y")
    anchored = with_anchors(curved, mu_xy=0.4, mu_yx=0.0)
    # Eq. mixed_beta_lambda and eq. mixed_delta_lambda.
    assert anchored.beta_x == pytest.approx(1.0 / (4.0 * 2.025) if nu == 1.0 else 0.0)
    assert anchored.beta_y == 1.0 / 24.0
    assert anchored.delta_x == pytest.approx(0.25 + (0.4**2 / 2.025 if nu == 1.0 else 0.0))
    assert anchored.delta_y == 0.025
    flipped = Curvature(bare.g, bare.f, 0.5, mu_y=0.25)
    other, extra = regularise(flipped, eps=0.1, Omega=4.0, diameters=(3.0, math.inf))
    assert (other.f, other.mu_x, extra.block, extra.weight) == (curved.g, 0.025, "x", 0.025)
    assert regularise_smoothness(ss.Holder(0.3, 0.0), 0.5, 7.0) == ss.Holder(1.0, 0.5)


@gathered("block", ["x", "y"])
def test_a_plan_with_anchors_rebuilds_p_3_for_the_regularised_problem(block):
    mixed = saddles.Mixed.random(1, kappa=30.0, norm=0.4)
    problem, _ = oriented(mixed, block)
    plan = ss.plan(problem, tol=0.1, regime="mixed", anchors=True, interior=(block,), Psi0=1.0)
    value = {name: constant.value for name, constant in plan.constants.items()}
    L_curved, L_flat = np.linalg.eigvalsh(mixed.A)[-1], mixed.C.max()
    weight = plan.schedule.regularisation.weight
    curved, flat = ("x", "y") if block == "y" else ("y", "x")
    assert value[f"beta_{curved}"] == pytest.approx(1.0 / (4.0 * (L_flat + weight)), rel=1e-9)
    assert value[f"beta_{flat}"] == pytest.approx(1.0 / (4.0 * L_curved), rel=1e-9)
    # Four columns, three rows: B^T B is singular, so delta of the curved block stays mu, and the flat one's is lambda.
    assert value[f"delta_{curved}"] == pytest.approx(0.5, rel=1e-9)
    assert value[f"delta_{flat}"] == weight


def test_the_effective_modulus_with_anchors_enters_the_target():
    mixed = saddles.Mixed.random(2, mu=0.05, kappa=60.0, norm=0.6, columns=3, rows=3)
    plan = ss.plan(mixed.problem, tol=0.1, regime="mixed", anchors=True, interior=("y",), Psi0=1.0)
    delta, weight, norm = (
        plan.constants["delta_x"].value,
        plan.schedule.regularisation.weight,
        plan.constants["L_xy"].value,
    )
    smallest = np.linalg.svd(mixed.B)[1][-1]
    assert delta == pytest.approx(0.05 + smallest**2 / (mixed.C.max() + weight), rel=1e-9)
    kappa, kappa_mu = norm**2 / (delta * weight), norm**2 / (0.05 * weight)
    expected = 0.1 / (2.0 * (1.0 / 6.0 + 0.5 * kappa + 0.5 * kappa_mu))
    assert plan.schedule.regularisation.target == plan.constants["Psi_end"].value == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("block", ["x", "y"])
@pytest.mark.parametrize("smooth", [True, False])
def test_run_of_a_mixed_plan_solves(block, smooth):
    mixed = saddles.Mixed.random(7, smooth=smooth)
    problem, turn = oriented(mixed, block)
    plan = ss.plan(problem, tol=1e-3, regime="mixed")
    assert plan.constants["Psi0"].value > 0.0
    result = ss.run(problem, plan)
    assert result.status is ss.Status.SOLVED
    assert mixed.gap(*turn(result.x, result.y)) <= 1e-3


@pytest.mark.parametrize("block", ["x", "y"])
@pytest.mark.parametrize("anchors", [False, True])
def test_a_mixed_run_is_a_restarted_run_on_the_regularised_problem(block, anchors):
    """The quadratic sits around the start of the whole run, and the anchors see its gradient (eq. mixed_p3_lambda)."""
    mixed = saddles.Mixed.random(5, kappa=30.0, norm=0.4)
    problem, turn = oriented(mixed, block)
    start = turn(np.ones(4), np.array([0.3, -0.4, 0.1]))
    plan = ss.plan(problem, tol=0.1, regime="mixed", anchors=anchors, interior=(block,), Psi0=1.0, start=start)
    plan = dataclasses.replace(
        plan, schedule=dataclasses.replace(plan.schedule, stages=plan.schedule.stages[:3]), tol=UNREACHABLE
    )
    saddle = mixed.regularised(plan.schedule.regularisation.weight, turn(*start)[1])
    explicit = (saddle if block == "y" else saddles.mirrored(saddle)).problem
    found = ss.run(problem, plan, start=start)
    expected = ss.run(explicit, rescheduled(plan, regularisation=None), start=start)
    assert np.max(np.abs(found.x - expected.x)) <= 1e-12
    assert np.max(np.abs(found.y - expected.y)) <= 1e-12
    assert found.method_calls == expected.method_calls
    assert found.gap == pytest.approx(mixed.gap(*turn(found.x, found.y)), rel=1e-6)


@pytest.mark.parametrize("block", ["x", "y"])
def test_psi_of_the_regularised_problem_is_at_most_14_of_its_gaps(block):
    for seed in range(15):
        rng = np.random.default_rng(seed)
        mixed = saddles.Mixed.random(seed)
        problem, turn = oriented(mixed, block)
        start = turn(rng.standard_normal(len(mixed.a)), rng.uniform(-1.0, 1.0, len(mixed.b)))
        plan = ss.plan(problem, tol=0.1, regime="mixed", start=start)
        x, y = turn(*start)
        saddle = mixed.regularised(plan.schedule.regularisation.weight, y)
        curved, flat = weights_of(plan) if block == "y" else weights_of(plan)[::-1]
        assert saddle.Psi(x, y, (curved, flat)) <= plan.constants["Psi0"].value
        regularised_gap = ss.certify(saddle.problem, x, y).gap
        assert plan.constants["Psi0"].value == pytest.approx(14.0 * regularised_gap, rel=1e-9)


# Exponents of Tables restart and mixed, from predicted calls.

ALPHA = {nu: (1.0 - nu) / (1.0 + 3.0 * nu) for nu in (0.0, 0.25, 0.5, 0.75)}


def declared(f, g, L_xy):
    """A problem that is its constants (Holder, mu), on boxes of one entry: nothing is called to predict its calls."""
    f, g = (F.Custom(lambda u: u, smoothness=holder, strong_convexity=mu) for holder, mu in (f, g))
    box, B = D.Box(-1.0, 1.0, shape=1), ss.operators.as_operator(np.full((1, 1), L_xy), norm=L_xy)
    return ss.SaddleProblem(f=f, g=g, B=B, X=box, Y=box)


def slope(inverse_eps, calls):
    """Least-squares slope in log-log coordinates."""
    return np.polyfit(np.log(inverse_eps), np.log(calls), 1)[0]


def H_for(nu, calls, Omega, delta=1.0):
    """H whose budget R of Theorem 4.4 is `calls` at Omega."""
    return (calls * Omega ** ((1.0 - nu) / (1.0 + 3.0 * nu))) ** ((1.0 + 3.0 * nu) / 2.0) * delta ** ((1.0 + nu) / 2.0)


def test_H_for_inverts_the_budget_of_theorem_4_4():
    for nu in (0.0, 0.5, 1.0):
        in_metric = ss.Holder(nu, H_for(nu, 77.0, 0.3, delta=5.0)).in_metric(5.0)
        assert stage_budget(in_metric, 0.3) == pytest.approx(77.0)


@pairwise(flip=[False, True], proved=[False, True], nu=ALPHA)
def test_calls_of_restarts_in_eps(nu, proved, flip):
    """Table restart: N_f ~ eps^(-(1-nu)/(1+3nu)); N_g and N_B ~ log 1/eps, whichever player is rough."""
    eps = 1e-2 * np.geomspace(1.0, 100.0 ** (-1.0 / ALPHA[nu]), 6)
    Psi0 = eps[0] * 10.0 ** (2.5 / ALPHA[nu])
    tiny = 1e-9 if proved else 1.0
    rough, smooth = (ss.Holder(nu, H_for(nu, 5e3, eps[-1])), 1.0), (ss.Holder(1.0, 4.0 * tiny), 1.0)
    problem = declared(smooth, rough, 3.0 * tiny) if flip else declared(rough, smooth, 3.0 * tiny)
    plans = [
        ss.plan(problem, tol=float(e), regime="restarts", proved=proved, factor=1.0, Psi0=float(Psi0)) for e in eps
    ]
    calls = [plan.predicted_calls for plan in plans]
    f, g = ("g", "f") if flip else ("f", "g")
    assert slope(1.0 / eps, [each[f] for each in calls]) == pytest.approx(ALPHA[nu], rel=0.05)
    for plan, each in zip(plans, calls, strict=True):
        R_g, R_B = (1.0, 1.0) if proved else (2.0, 3.0)
        assert R_g * len(plan.schedule.stages) <= each[g] <= 2.0 * R_g * len(plan.schedule.stages)
        assert R_B * len(plan.schedule.stages) <= each["B"] / 4 <= 2.0 * R_B * len(plan.schedule.stages)


@gathered("proved", [False, True])
def test_calls_of_restarts_in_the_condition_numbers(proved):
    """Table restart at nu = 1: square roots of kappa_x, kappa_y and kappa_xy, each alone, and a log in eps."""
    for name, position in (("f", 0), ("g", 1), ("B", 2)):
        counts, kappa = [], np.geomspace(1e4, 1e8, 5) * 1e-2
        for k in kappa:
            mine = [1e-11, 1e-11, 1e-11] if proved else [1.0, 1.0, 1.0]
            mine[position] = k
            curvature = Curvature(ss.Holder(1.0, mine[0]), ss.Holder(1.0, mine[1]), math.sqrt(mine[2]), 1.0, 1.0)
            stage = prove_stage(curvature, 1.0) if proved else practical_stage(curvature, 1.0)
            assert [level.N for level in stage.levels if level.term.name != name] == [1, 1]
            counts.append({level.term.name: level.N for level in stage.levels}[name])
        assert slope(kappa, counts) == pytest.approx(0.5, rel=0.03)


def smooth_case(kind, kappa, seed=0):
    """Hessians and B of Borodich et al. (2025): curvature of y, or of both blocks, that B alone gives."""
    rng = np.random.default_rng(seed)
    U, V, W, R = (np.linalg.qr(rng.standard_normal((n, n)))[0] for n in (6, 4, 4, 4))
    if kind == "both convex":
        # f and g with a kernel each; B is onto on both sides.
        flat = np.array([0.0, 0.1, 0.5, 1.0])
        return (V * flat) @ V.T, (W * flat) @ W.T, (R * np.geomspace(1.0, 2.0, 4) / math.sqrt(kappa)) @ W
    kappa_x, kappa_B = (kappa, 4.0) if kind == "constraints, f" else (16.0, kappa)
    B = (V * np.geomspace(1.0 / math.sqrt(kappa_B), 1.0, 4)) @ U[:4]
    return (U.T * np.geomspace(1.0 / kappa_x, 1.0, 6)) @ U, np.zeros((4, 4)), B


@gathered("kind", ["constraints, f", "constraints, B", "both convex"])
def test_the_smooth_case_converges_with_the_separate_counts_of_borodich_et_al(kind):
    """Square roots of kappa_x, kappa_y, kappa_xy for f', g' and B, one oracle each, at 3/4 of Psi a stage."""
    for kappa in (16.0, 64.0, 256.0):
        H, G, B = smooth_case(kind, kappa)
        rng, (m, n) = np.random.default_rng(1), B.shape
        c, b = rng.standard_normal(n), rng.standard_normal(m)
        z = np.linalg.solve(np.block([[H, B.T], [B, -G]]), np.concatenate([-c, b]))
        f, g = F.Quadratic(H) + F.Linear(c), F.Linear(b)
        g = F.Quadratic(G) + g if G.any() else g
        problem = ss.SaddleProblem(f=f, g=g, B=B, X=D.FullSpace(n), Y=D.FullSpace(m))
        settings = {"regime": "restarts", "anchors": True, "factor": 1.0}
        sigma, L_y = np.linalg.svd(B, compute_uv=False)[[0, -1]], np.linalg.norm(G, 2)
        delta_x = np.linalg.eigvalsh(H)[0] if L_y == 0.0 else sigma[1] ** 2 / L_y
        delta_y, kappa_xy = sigma[1] ** 2, sigma[0] ** 2 / (delta_x * sigma[1] ** 2)

        def Psi(x, y, H=H, G=G, z=z, delta_x=delta_x, delta_y=delta_y, n=n):
            dx, dy = x - z[:n], y - z[n:]
            return delta_x * dx @ dx + delta_y * dy @ dy + 6.0 * dx @ H @ dx + 6.0 * dy @ G @ dy

        first = Psi(np.zeros(n), np.zeros(m))
        plan = ss.plan(problem, Psi=1e-3 * first, Psi0=first, **settings)
        result, S = ss.run(problem, plan), len(plan.schedule.stages)
        assert math.ceil(math.log(1e3) / math.log(4.0 / 3.0)) == S
        assert Psi(result.x, result.y) <= 1e-3 * first
        made = result.method_calls
        # An anchor each a stage; five products an iteration with one of them, six with both.
        anchors = 2 if L_y > 0.0 else 1
        roots = {"f": math.sqrt(1.0 / delta_x), "g": math.sqrt(L_y / delta_y), "B": math.sqrt(kappa_xy)}
        for oracle, calls in (("f", made.f - S), ("g", made.g - S * (anchors - 1)), ("B", made.B / (4.0 + anchors))):
            assert 0.9 * roots[oracle] <= calls / S <= 1.3 * roots[oracle] + 2.0, (kappa, oracle)


def mixed_problem(flat, curved, L_xy, flip):
    """`flat` has no modulus, `curved` has mu = 1; flip puts the flat function on x."""
    f, g = (curved, 1.0), (flat, 0.0)
    return declared(g, f, L_xy) if flip else declared(f, g, L_xy)


# Omega of the flat block (a box of one entry, from its middle) is 1, so lambda is eps.
def mixed_target_of(eps, L_xy):
    return eps / (2.0 * (1.0 / 6.0 + L_xy**2 / eps))


@gathered("flip", [False, True])
@gathered("nu", ALPHA)
def test_calls_of_the_mixed_regime_in_eps(nu, flip):
    """Corollary mixed_gap_complexity: Gamma^alpha times Table mixed, Gamma ~ 1/eps, for a rough flat player.

    H_{y,lambda} of the table falls to H_y with eps; here its part in the counts is divided out.
    """
    exponent = 2.0 / (1.0 + 3.0 * nu) + ALPHA[nu]
    eps, L_xy = 1e-2 * np.geomspace(1.0, 50.0 ** (-1.0 / exponent), 6), 1.0
    targets = [mixed_target_of(e, L_xy) for e in eps]
    H = H_for(nu, 2e5 if nu == 0.0 else 4e3, targets[-1], delta=eps[-1])
    problem = mixed_problem(ss.Holder(nu, H), ss.Holder(1.0, 1.0), L_xy, flip)
    Psi0 = targets[0] * 10.0 ** (2.0 / ALPHA[nu])
    plans = [ss.plan(problem, tol=float(e), regime="mixed", factor=1.0, Psi0=float(Psi0)) for e in eps]
    assert [plan.schedule.regularisation.target for plan in plans] == pytest.approx(targets, rel=1e-9)
    flat, curved = ("f", "g") if flip else ("g", "f")
    parts = ((H + eps * 2.0 ** (1.0 - nu)) / H) ** (2.0 / (1.0 + 3.0 * nu))
    counts = np.array([plan.predicted_calls[flat] for plan in plans]) / parts
    assert slope(1.0 / eps, counts) == pytest.approx(exponent, rel=0.05)
    for plan, e in zip(plans, eps, strict=True):
        assert plan.predicted_calls[curved] <= 2.0 * len(plan.schedule.stages)
        steps = plan.predicted_calls["B"] / (4.0 * len(plan.schedule.stages))
        assert L_xy / math.sqrt(e) <= steps <= 2.0 * L_xy / math.sqrt(e)


@gathered("flip", [False, True])
@gathered("nu", [0.0, 0.5])
def test_calls_of_a_rough_curved_player_in_the_mixed_regime(nu, flip):
    """N_f ~ Gamma^alpha_x eps^(-alpha_x), Gamma ~ 1/eps."""
    eps = 1e-3 * np.geomspace(1.0, 50.0 ** (-0.5 / ALPHA[nu]), 6)
    targets = [mixed_target_of(e, 0.1) for e in eps]
    H = H_for(nu, 2e4, targets[-1])
    problem = mixed_problem(ss.Holder(1.0, 1e-9), ss.Holder(nu, H), 0.1, flip)
    Psi0 = targets[0] * 10.0 ** (2.0 / ALPHA[nu])
    plans = [ss.plan(problem, tol=float(e), regime="mixed", factor=1.0, Psi0=float(Psi0)) for e in eps]
    counts = [plan.predicted_calls["g" if flip else "f"] for plan in plans]
    assert slope(1.0 / eps, counts) == pytest.approx(2.0 * ALPHA[nu], rel=0.05)


@gathered("flip", [False, True])
@gathered("nu", ALPHA)
def test_direct_counts_of_table_mixed(nu, flip):
    """Target eps/2 in Psi: N_g ~ eps^(-2/(1+3nu)), N_B ~ eps^(-1/2) up to a log."""
    exponent = 2.0 / (1.0 + 3.0 * nu)
    eps = 1e-2 * np.geomspace(1.0, 50.0 ** (-1.0 / exponent), 6)
    H = H_for(nu, 1e5 if nu == 0.0 else 4e3, eps[-1] / 2.0, delta=eps[-1])
    rough, even = ss.Holder(nu, H), ss.Holder(1.0, 1.0)
    bare = Curvature(rough, even, 1.0, mu_y=1.0) if flip else Curvature(even, rough, 1.0, mu_x=1.0)
    counts = {"flat": [], "B": []}
    Psi0 = eps[0] * 10.0 ** (2.0 / ALPHA[nu])
    for e in eps:
        curvature, _ = regularise(bare, float(e), 1.0, (2.0, 2.0))
        radii = [0.75**s * Psi0 for s in range(restart_count(Psi0, e / 2.0))]
        levels = [level for Omega in radii for level in practical_stage(curvature, float(Omega)).levels]
        counts["flat"].append(sum(level.N for level in levels if level.term.name == ("f" if flip else "g")))
        counts["B"].append(sum(level.N for level in levels if level.term.name == "B") / len(radii))
    assert slope(1.0 / eps, counts["flat"]) == pytest.approx(exponent, rel=0.05)
    assert np.all(np.array(counts["B"]) * np.sqrt(eps) >= 1.0 - 1e-9)
    assert np.all(np.array(counts["B"]) * np.sqrt(eps) <= 2.0)


@gathered("flip", [False, True])
def test_smooth_mixed_counts_grow_like_the_square_root(flip):
    """Nu = 1: N_g ~ sqrt(H_y Omega_y / eps) and N_B ~ L_xy sqrt(Omega_y / (delta_x eps)) per restart."""
    eps = np.geomspace(1e-2, 1e-7, 6)
    for H, L_xy, name in ((4.0, 1e-3, "flat"), (1e-9, 2.0, "B")):
        problem = mixed_problem(ss.Holder(1.0, H), ss.Holder(1.0, 1.0), L_xy, flip)
        plans = [ss.plan(problem, tol=float(e), regime="mixed", factor=1.0, Psi0=1e3) for e in eps]
        key = "B" if name == "B" else "f" if flip else "g"
        counts = [plan.predicted_calls[key] / len(plan.schedule.stages) for plan in plans]
        assert slope(1.0 / eps, counts) == pytest.approx(0.5, rel=0.05)


# Plans as data, explanations, and refusals.


def every_kind_of_plan():
    saddle, mixed = saddles.conditioned(9, 5.0, 20.0, 3.0), saddles.Mixed.random(3)
    rng = np.random.default_rng(0)
    box = D.Box(-1.0, 1.0, shape=2)
    rough = saddles.planted(
        saddles.power(0.5, 0.2, 1.0), saddles.power(0.0, 0.2, 1.0), saddles.with_norm(rng, 2, 2, 0.5),
        np.array([0.2, -0.3]), np.array([0.1, 0.4]), box, box,
    )  # fmt: skip
    return {
        "practical": (saddle.problem, {"regime": "restarts"}),
        "anchored": (saddle.problem, {"regime": "restarts", "anchors": True, "factor": 2.0}),
        "rough": (rough.problem, {"regime": "restarts", "factor": 0.1}),
        "mixed": (mixed.problem, {"regime": "mixed", "factor": 1.0}),
        "mixed x": (oriented(mixed, "x")[0], {"regime": "mixed", "factor": 1.0}),
    }


@pytest.mark.parametrize("name", every_kind_of_plan())
def test_a_plan_survives_json_and_replays_to_the_same_bits(name):
    problem, settings = every_kind_of_plan()[name]
    plan = ss.plan(problem, tol=1e-2, **settings)
    copy = ss.Plan.from_dict(json.loads(json.dumps(plan.to_dict(), allow_nan=False)))
    assert copy == plan
    assert copy.bound == plan.bound
    assert copy.explain() == plan.explain()
    one, other = ss.run(problem, plan), ss.run(problem, copy)
    assert np.array_equal(one.x, other.x)
    assert np.array_equal(one.y, other.y)
    assert one.method_calls == other.method_calls
    again = ss.run(problem, one.plans[0])
    assert np.array_equal(one.x, again.x)


def test_a_proved_plan_survives_json():
    rough = every_kind_of_plan()["rough"][0]
    plan = ss.plan(rough, tol=1e-1, regime="restarts", proved=True, constants={"H_x": 1e-2, "nu_x": 0.5})
    assert ss.Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    broken = plan.to_dict()
    del broken["schedule"]
    with pytest.raises(InputError, match="to_dict"):
        ss.Plan.from_dict(broken)


def test_explain_names_regime_theorem_constants_and_bound():
    problem, settings = every_kind_of_plan()["anchored"]
    text = ss.plan(problem, tol=1e-2, **settings, proved=True).explain()
    for part in ("restarts", "Theorem 4.4", "Corollary 4.5", "proved constants", "gap at most 0.01"):
        assert part in text
    for constant in ("nu_x", "H_x", "H_y", "L_xy", "mu_x", "mu_y", "delta_x", "delta_y", "beta_x", "kappa_xy", "Psi0"):
        assert f"  {constant} " in text
    assert "14 times the certified gap" in text
    problem, settings = every_kind_of_plan()["mixed"]
    plan = ss.plan(problem, tol=1e-2, **settings)
    text = plan.explain()
    for part in ("mixed", "mixed_gap_complexity", "practical constants", "nothing is proved", "on y; Psi must reach"):
        assert part in text
    assert f"{plan.schedule.regularisation.weight:.4g}" in text
    assert plan.bound == plan.Psi_bound == math.inf


BAD = {
    "unknown regime": ({"regime": "restart"}, "regime is 'restart'"),
    "order": ({"regime": "restarts", "order": "fgB"}, "chooses order and loops itself"),
    "loops": ({"regime": "mixed", "loops": (1, 1, 1)}, "chooses order and loops itself"),
    "no tol": ({"regime": "restarts", "tol": None}, "tol is missing"),
    "no moduli": ({"regime": "restarts"}, "expects both > 0"),
    "no moduli, mixed": ({"regime": "mixed"}, "exactly one to be 0"),
    "two moduli, mixed": ({"regime": "mixed", "constants": {"mu_x": 1.0, "mu_y": 1.0}}, "exactly one to be 0"),
    "one modulus": ({"regime": "restarts", "constants": {"mu_x": 1.0}}, "Use regime='mixed'"),
    "unbounded flat block": ({"regime": "mixed", "constants": {"mu_x": 1.0}}, "bounded set"),
    "unbounded flat x": ({"regime": "mixed", "constants": {"mu_y": 1.0}}, "bounded set"),
    "negative Psi0": ({"regime": "restarts", "constants": {"mu_x": 1.0, "mu_y": 1.0}, "Psi0": -1.0}, "Psi0 is -1.0"),
    "negative factor": ({"regime": "restarts", "constants": {"mu_x": 1.0, "mu_y": 1.0}, "factor": -1.0}, "factor"),
    "range of z": (
        {"regime": "restarts", "constants": {"mu_x": 1.0, "mu_y": 1.0}, "anchors": True, "range_conditions": ("z",)},
        "range_conditions has",
    ),
    "interior of z": (
        {"regime": "restarts", "constants": {"mu_x": 1.0, "mu_y": 1.0}, "anchors": True, "interior": ("X",)},
        "interior has",
    ),
}


@gathered("name", BAD)
def test_bad_requests_are_refused_before_any_call(name):
    settings, message = BAD[name]
    counted = CountedProblem(np.eye(3), X=D.FullSpace(3), Y=D.FullSpace(3), norm=1.0)
    with pytest.raises(InputError, match=message):
        ss.plan(counted.problem, **{"tol": 1e-2, **settings})
    assert counted.total == 0


def test_numbers_are_checked_before_the_norm_of_B_costs_products():
    counted = CountedProblem(np.eye(3))
    for bad in ({"Psi0": -1.0}, {"Psi0": math.nan}, {"factor": "many"}):
        with pytest.raises(InputError):
            ss.plan(counted.problem, tol=1e-2, regime="restarts", **bad)
    assert counted.total == 0


def test_budgets_rise_only_when_the_certificate_asks_for_it():
    """Budgets far too small stall; the run doubles them, its plans show it, and the last one has its counts."""
    saddle = saddles.conditioned(1, 100.0, 400.0, 100.0)
    settings = {"tol": 1e-4, "regime": "restarts", "Psi0": 1e3}
    kept = ss.plan(saddle.problem, **settings, factor=0.05)
    assert len(ss.run(saddle.problem, kept).plans) == 1
    short = ss.run(saddle.problem, rescheduled(kept, fixed=False))
    assert len(short.plans) > 1
    assert short.plans[-1].predicted_calls["f"] > short.plans[0].predicted_calls["f"]
    assert short.method_calls.f <= short.plans[-1].predicted_calls["f"]
    assert not ss.plan(saddle.problem, **settings).schedule.fixed
    enough = ss.run(saddle.problem, rescheduled(ss.plan(saddle.problem, **settings, factor=4.0), fixed=False))
    assert enough.status is ss.Status.SOLVED
    assert len(enough.plans) == 1
    assert short.gap < ss.certify(saddle.problem, *saddle.problem.start()).gap
