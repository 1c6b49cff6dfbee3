"""`ss.slide` on variational inequalities: order, loops, counts, certified weak gaps, noise, checkpoints."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import saddleslide as ss
from saddleslide.errors import CheckpointError, InputError
from saddleslide.theory import sharp_bound
from saddleslide.theory.levels import alpha_sequence
from support import gathered

F = ss.functions


class Game:
    """Diagonal quadratics p_1, p_2 and skew Q_1, Q_2 on a box: the weak gap has a closed form."""

    def __init__(self, seed, d=6):
        rng = np.random.default_rng(seed)
        self.lower, self.upper = -rng.uniform(0.2, 1.0, d), rng.uniform(0.2, 1.0, d)
        self.domain = ss.domains.Box(self.lower, self.upper)
        self.weights = [rng.uniform(0.0, 1.0, d) * 10.0 ** rng.uniform(-1, 1) for _ in range(2)]
        self.tilts = [rng.standard_normal(d) for _ in range(2)]
        skew = [rng.standard_normal((d, d)) * 10.0 ** rng.uniform(-1, 1) for _ in range(2)]
        self.skew = [K - K.T for K in skew]
        self.made = {"p1": 0, "p2": 0, "Q1": 0, "Q2": 0}

    def operator(self, i):
        def call(z):
            self.made[f"Q{i + 1}"] += 1
            return self.skew[i] @ z

        return call

    def components(self):
        functions = [F.Power(1.0, w, t) for w, t in zip(self.weights, self.tilts, strict=True)]
        parts = [ss.Component(p, name=f"p{i + 1}") for i, p in enumerate(functions)]
        operators = enumerate(self.skew)
        return parts + [
            ss.Component(operator=self.operator(i), lipschitz=np.linalg.norm(K, 2), name=f"Q{i + 1}")
            for i, K in operators
        ]

    def gap(self, z):
        """max over u of p(z) - p(u) - <u, S z>: entry by entry, u = clip((t - S z) / w)."""
        w, slope = sum(self.weights), sum(self.skew) @ z - sum(self.tilts)
        u = np.where(w > 0.0, np.clip(-slope / np.maximum(w, 1e-300), self.lower, self.upper), 0.0)
        at_z = 0.5 * np.sum(w * z * z) - sum(self.tilts) @ z
        return at_z - float(np.sum(0.5 * w * u * u + slope * u))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), loops=st.tuples(*[st.integers(1, 5)] * 4), order=st.permutations(range(4)))
def test_the_certified_gap_is_between_the_true_one_and_the_bound_of_the_theorem(seed, loops, order):
    game = Game(seed)
    parts = game.components()
    result = ss.slide([parts[i] for i in order], game.domain, np.zeros(6), loops)
    assert game.gap(result.z) <= result.gap <= sharp_bound(result.levels) * (1.0 + 1e-9)
    assert result.bound == sharp_bound(result.levels)
    assert result.status.name == "COMPLETED"
    assert result.success


def test_averages_of_operators_bound_the_weak_gap_of_nonlinear_ones():
    """At no point of a grid is p(z) - p(u) + <Q(u), z - u> above what was certified; often it is close below."""
    ratios, kinds = [], set()
    for seed in range(8):
        rng = np.random.default_rng(seed)
        K, c = rng.standard_normal((2, 2)), rng.standard_normal(2)
        K = K - K.T

        def Q(z, K=K, c=c):
            return K @ z + 3.0 * np.tanh(4.0 * z) + c

        p = ss.Component(F.Power(0.0, np.array([4.0, 2.5])), name="p")
        parts = [p, ss.Component(operator=Q, lipschitz=np.linalg.norm(K, 2) + 12.0, name="Q")]
        result = ss.slide(parts, ss.domains.Box(-1.0, 1.0, shape=2), np.ones(2), loops=(20, 6))
        grid = np.array(list(itertools.product(np.linspace(-1.0, 1.0, 41), repeat=2)))
        z = result.z
        found = max(p.function.value(z) - p.function.value(u) + Q(u) @ (z - u) for u in grid)
        assert found <= result.gap <= result.bound
        ratios.append(found / result.gap)
        kinds.add(result.certificate.kind)
    assert kinds == {"gradients", "models"}
    assert max(ratios) > 0.02


def extragradient(Q, M, project, z, T):
    """The points z~ of one level with Q alone, and the weights of their average."""
    alphas, ahead = np.array(alpha_sequence(T)), []
    for alpha in alphas:
        eta = M * alpha / alphas[-1]
        ahead.append(project(z - Q(z) / eta))
        z = project(ahead[-1] - (Q(ahead[-1]) - Q(z)) / eta)
    return np.array(ahead), alphas[-1] ** 2 / alphas


def test_averages_bound_the_weak_gap_with_the_weights_of_the_output_and_with_no_others():
    box, kinds, alone, less = ss.domains.Box(-1.0, 1.0, shape=2), set(), 0, 0
    grid = np.array(list(itertools.product(np.linspace(-1.0, 1.0, 41), repeat=2)))
    for seed in range(12):
        K, c = np.random.default_rng(seed).standard_normal((2, 2, 2))
        K, M = K - K.T, np.linalg.norm(K - K.T, 2) + 1.2

        def Q(z, K=K, c=c[0]):
            return K @ z + 0.3 * np.tanh(4.0 * z) + c

        ahead, weights = extragradient(Q, M, box.project, np.ones(2), 20)
        fields = np.array([Q(z) for z in ahead])

        def bound(a, ahead=ahead, fields=fields):
            return float(a @ np.sum(fields * ahead, axis=1)) + float(np.sum(np.abs(a @ fields)))

        z = weights @ ahead
        true = max(Q(u) @ (z - u) for u in grid)
        result = ss.slide([ss.Component(operator=Q, lipschitz=M, name="Q")], box, np.ones(2), loops=(20,))
        np.testing.assert_allclose(result.z, z, rtol=0.0, atol=1e-12)
        at_z = float(Q(z) @ z) + float(np.sum(np.abs(Q(z))))
        assert true <= result.gap == pytest.approx(min(bound(weights), at_z), rel=1e-9)
        kinds.add(result.certificate.kind)
        alone += true > bound(np.eye(20)[-1])
        less += true > 0.7 * result.gap
    assert "models" in kinds
    # The values at the last point alone, and a bound that is 0.7 times as large, are too little.
    assert alone > 3
    assert less > 0


@pytest.mark.parametrize("loops", [(7, 3), (1, 1), (2, 9)])
def test_of_linear_functions_and_skew_operators_the_certified_weak_gap_is_the_true_one(loops):
    """So no number below 1 can stand before the bound from averages, nor before that at the point."""
    K, c = np.random.default_rng(1).standard_normal((2, 4, 4))
    parts = [
        ss.Component(F.Linear(c[0]), name="p"),
        ss.Component(operator=lambda z: (K - K.T) @ z, lipschitz=np.linalg.norm(K - K.T, 2), name="Q"),
    ]
    result = ss.slide(parts, ss.domains.Box(-1.0, 1.0, shape=4), np.ones(4), loops)
    slope = c[0] + (K - K.T) @ result.z
    assert result.gap == pytest.approx(c[0] @ result.z + np.sum(np.abs(slope)), rel=1e-9)
    assert result.gap <= result.bound


def test_levels_are_sorted_and_loops_prove_the_target():
    game = Game(3)
    result = ss.slide(game.components(), game.domain, np.zeros(6), tol=0.5)
    assert result.bound <= 0.5
    assert game.gap(result.z) <= result.gap <= 0.5
    assert result.status.name == "SOLVED"
    # Corollary 3.6 by hand: the budgets of this domain, in the order of the levels.
    Omega = float(np.sum(np.maximum(-game.lower, game.upper) ** 2))
    budgets = {f"p{i + 1}": math.sqrt(w.max() * Omega) for i, w in enumerate(game.weights)}
    budgets |= {f"Q{i + 1}": np.linalg.norm(K, 2) * Omega for i, K in enumerate(game.skew)}
    practical = ss.slide(game.components(), game.domain, np.zeros(6), tol=0.5, proved=False)
    eps = {name: (R**2 / 0.5) ** 0.5 if name[0] == "p" else R / 0.5 for name, R in budgets.items()}
    assert list(practical.order) == sorted(eps, key=eps.get)
    N = 1
    for level in practical.levels:
        T = max(1, math.ceil(max(eps[level.term.name], 1.0) * (1.0 - 1e-12) / N))
        N *= T
        assert (level.T, level.N) == (T, N)
    assert practical.levels[-1].N < result.levels[-1].N


def test_calls_are_those_that_were_made():
    game = Game(5)
    result = ss.slide(game.components(), game.domain, np.zeros(6), loops=(3, 2, 4, 2))
    N = dict(zip(result.order, (3, 6, 24, 48), strict=True))
    for name, made in result.calls.items():
        judged = result.certificate_calls[name]
        assert judged.total == 1
        expected = N[name] if name[0] == "p" else 2 * N[name]
        assert made.total - judged.total == expected == result.history[-1].calls[name].total
        if name[0] == "Q":
            assert game.made[name] == made.operators
    assert result.cost == sum(made.total for made in result.calls.values())
    assert [row.step for row in result.history] == [1, 2, 3]
    assert result.history[0].calls["Q1"].operators == 2 * N["Q1"] // 3


def saddle(seed=0, n=5):
    rng = np.random.default_rng(seed)
    A, b, v = rng.standard_normal((7, n)), rng.standard_normal(7), rng.standard_normal(n)
    X, Y = ss.domains.Box(-1.0, 1.0, shape=n), ss.domains.Box(-0.5, 1.0, shape=4)
    B = [rng.standard_normal((4, n)), 0.01 * rng.standard_normal((4, n))]
    f = F.LeastSquares(A, b) + F.Power(0.5, np.ones(n), v)
    return ss.SaddleProblem(f=f, g=F.Quadratic(0.3), B=B, X=X, Y=Y)


def test_sums_and_several_couplings_of_a_saddle_problem_have_levels_of_their_own():
    problem = saddle()
    result = ss.slide(problem, tol=2.0)
    assert sorted(result.order) == ["B1", "B2", "f1", "f2", "g"]
    judged = ss.certify(problem, result.x, result.y)
    # The duality gap is the weak gap of the operator (B^T y, -Bx) with B = B1 + B2.
    assert judged.gap - judged.error <= result.gap <= 2.0
    levels = {level.term.name: level for level in result.levels}
    assert levels["B2"].N < levels["B1"].N
    # In the norms of the levels: f in |x|, couplings in w |x|^2 + |y|^2 / w with w = D_y / D_x (docs/theory.md).
    D_x, D_y = math.sqrt(5.0), 2.0
    assert levels["f2"].term.Omega == pytest.approx(5.0)
    assert levels["B1"].term.Omega == pytest.approx(2.0 * D_x * D_y)
    assert result.bound <= 2.0
    # The same sum as one coupling, and solved by what knows nothing of levels.
    one = ss.SaddleProblem(f=problem.f, g=problem.g, B=sum(np.asarray(B) for B in problem.B), X=problem.X, Y=problem.Y)
    value = ss.solve(one, tol=1e-6)
    assert ss.solve(problem, tol=1e-6).lower == pytest.approx(value.lower, abs=1e-5)
    assert ss.slide(one, tol=2.0).order == tuple(name for name in ss.slide(one, tol=2.0).order)
    assert "B" in ss.slide(one, tol=2.0).order


def test_blocks_and_couplings_are_what_the_same_code_on_whole_points_says():
    problem = saddle(1)
    n, B = 5, problem.B[0]
    Z = ss.domains.Product(problem.X, problem.Y)
    weights = (2.0, 0.5)
    pieces = [
        ss.Component(problem.f, block=0, name="f", smoothness=ss.Holder(1.0, 40.0)),
        ss.Component(coupling=B, name="B"),
        ss.Component(F.Quadratic(0.3), block=1, name="g"),
    ]
    whole = [
        ss.Component(lambda z: np.concatenate([problem.f.gradient(z[:n]), np.zeros(4)]), ss.Holder(1.0, 40.0)),
        ss.Component(
            operator=lambda z: np.concatenate([B.T @ z[n:], -B @ z[:n]]),
            lipschitz=ss.operators.as_operator(B).norm.upper,
        ),
        ss.Component(lambda z: np.concatenate([np.zeros(n), 0.3 * z[n:]]), ss.Holder(1.0, 0.3 / 0.5)),
    ]
    one, other = (ss.slide(parts, Z, np.zeros(9), (3, 4, 2), metric=weights) for parts in (pieces, whole))
    np.testing.assert_allclose(one.z, other.z, rtol=0.0, atol=1e-13)
    assert one.levels[2].L == other.levels[2].L


def test_prices_move_calls_to_what_is_cheap():
    game = Game(8)
    plain = ss.slide(game.components(), game.domain, np.zeros(6), tol=0.1)
    costs = {"p1": 1e3, "p2": 1e-2, "Q1": 1.0, "Q2": 1.0}
    priced = ss.slide(game.components(), game.domain, np.zeros(6), tol=0.1, costs=costs)
    assert priced.bound <= 0.1

    def planned(result):
        return sum(
            costs[level.term.name] * level.N * (2 if level.term.name[0] == "Q" else 1) for level in result.levels
        )

    assert planned(priced) < 0.9 * planned(plain)
    assert priced.cost == pytest.approx(sum(costs[name] * made.total for name, made in priced.calls.items()))


# --- sampled gradients ------------------------------------------------------------------------------------------


def test_the_expected_gap_of_sampled_components_is_below_the_bound_with_the_tau_of_the_paper():
    """Theorem VI_sliding_stochastic_uniform, n = 4: mean over draws of the exact gap against bound and tau by hand."""
    game, sigma = Game(11), 0.6
    parts = game.components()
    noisy = [ss.Component(F.Noisy(part.function, sigma=sigma), name=part.name) for part in parts[:2]]
    Omega = game.domain.squared_radius(np.zeros(6))
    gaps = []
    for seed in range(25):
        result = ss.slide([*noisy, *parts[2:]], game.domain, np.zeros(6), (4, 2, 3, 2), rng=seed)
        gaps.append(game.gap(result.z))
    tau = [sigma * A**1.5 / (2.0**i * math.sqrt(Omega)) for i, A in ((1, 4), (2, 8))]
    assert [level.term.tau for level in result.levels] == pytest.approx([*tau, 0.0, 0.0])
    by_hand, A = 0.0, 1
    for i, level in enumerate(result.levels, start=1):
        A *= level.T
        by_hand += (
            2.0 ** (2 * i - 1) * (level.L + level.term.tau) * Omega / A**2 + 2.0 ** (i - 1) * level.term.M * Omega / A
        )
        s = math.sqrt(level.term.variance)
        by_hand += (s * s * A / (2.0 * level.term.tau) if s else 0.0) + math.sqrt(Omega) * 2.0 ** (
            i / 2
        ) * s / math.sqrt(A)
    assert np.mean(gaps) <= result.bound <= by_hand
    assert result.samples == {"p1": 4, "p2": 8, "Q1": 0, "Q2": 0}
    # Another seed is another run, the same one the same bits.
    again = ss.slide([*noisy, *parts[2:]], game.domain, np.zeros(6), (4, 2, 3, 2), rng=24)
    np.testing.assert_array_equal(again.z, result.z)
    assert len(set(gaps)) == len(gaps)


def test_a_target_for_sampled_components_is_met_on_average():
    game = Game(12)
    parts = game.components()
    draws = [0]

    def sample(z, rng):
        draws[0] += 1
        return game.weights[0] * z - game.tilts[0] + 0.1 * rng.standard_normal(6)

    noisy = ss.Component(sample=sample, variance=0.06, smoothness=ss.Holder(1.0, game.weights[0].max()), name="p1")
    result = ss.slide([noisy, *parts[1:]], game.domain, np.zeros(6), tol=4.0)
    assert result.status.name == "EXPECTED"
    assert result.success
    assert result.bound <= 4.0
    assert (
        result.samples["p1"]
        == draws[0]
        == dict(zip(result.order, (level.N for level in result.levels), strict=True))["p1"]
    )
    # Nothing but samples is known of p1, so no gap is certified.
    assert result.gap == math.inf
    assert "nothing but samples is known of p1" in result.message


def test_sampled_operators_keep_the_expected_gap_below_the_bound_of_their_theorem():
    """docs/theory.md, sampled operators: the bound by hand, and the mean over draws of the exact gap."""
    game, s = Game(21), 0.5
    parts = game.components()

    def draw(z, rng):
        return game.skew[0] @ z + s * rng.standard_normal(6) / math.sqrt(6)

    parts[2] = ss.Component(
        sample_operator=draw, operator_variance=s * s, lipschitz=np.linalg.norm(game.skew[0], 2), name="Q1"
    )
    order, loops = [0, 2, 1, 3], (3, 4, 2, 2)
    results = [ss.slide([parts[i] for i in order], game.domain, np.zeros(6), loops, rng=seed) for seed in range(25)]
    Omega, by_hand, spread, squares, a = game.domain.squared_radius(np.zeros(6)), 0.0, 1.0, 1.0, 1.0
    L = {f"p{i + 1}": w.max() for i, w in enumerate(game.weights)}
    M = {f"Q{i + 1}": np.linalg.norm(K, 2) for i, K in enumerate(game.skew)}
    for name, T, level in zip(("p1", "Q1", "p2", "Q2"), loops, results[0].levels, strict=True):
        alphas = [1.0]
        while len(alphas) < T:
            alphas.append(2.0 / (1.0 + math.sqrt(1.0 + 4.0 / alphas[-1] ** 2)))
        total = sum(alpha**-2 for alpha in alphas)
        a, spread, squares = a * alphas[-1], spread * alphas[-1] ** 2 * total, squares * alphas[-1] ** 4 * total
        tau = 2.0 * s * 12**1.5 / (4.0 * math.sqrt(Omega)) if name == "Q1" else 0.0
        # sqrt(2) M in place of M: (d) spends half of the step on the noise.
        m = M.get(name, 0.0) * (math.sqrt(2.0) if name == "Q1" else 1.0)
        assert level.term.tau == pytest.approx(tau)
        by_hand += 0.5 * Omega * ((L.get(name, 0.0) + tau) * a * a + m * a)
        if name == "Q1":
            by_hand += 2.0 * s * s * spread / (tau + m / a) + s * math.sqrt(Omega * squares)
    assert results[0].bound == pytest.approx(by_hand, rel=1e-9)
    assert np.mean([game.gap(result.z) for result in results]) <= by_hand
    assert results[0].samples == {"p1": 0, "Q1": 24, "p2": 0, "Q2": 0}
    assert "nothing but samples is known of Q1" in results[0].message


def test_half_of_the_bound_of_a_sampled_operator_is_too_little():
    """A constant operator of the size of its noise on [-1, 1], 64 steps: the mean gap is 0.54 of the bound."""
    part = ss.Component(
        sample_operator=lambda z, rng: 0.8 + rng.standard_normal(1), operator_variance=1.0, lipschitz=1e-9, name="Q"
    )
    line = ss.domains.Box(-1.0, 1.0, shape=1)
    results = [ss.slide([part], line, np.zeros(1), (64,), rng=seed) for seed in range(60)]
    mean = np.mean([0.8 * (result.z[0] + 1.0) for result in results])
    assert 0.5 * results[0].bound < mean <= results[0].bound


def test_one_level_with_a_sampled_operator_is_the_corrected_step_with_two_fresh_draws():
    rng, K = np.random.default_rng(3), np.array([[0.5, 2.0], [-2.0, 0.1]])
    box, s, T = ss.domains.Box(-1.0, 1.0, shape=2), 0.3, 5

    def draw(z, rng):
        return K @ z + s * rng.standard_normal(2)

    exact = ss.Component(
        operator=lambda z: K @ z, sample_operator=draw, operator_variance=2 * s * s, lipschitz=np.linalg.norm(K, 2)
    )
    result = ss.slide([exact], box, np.full(2, 0.5), (T,), rng=np.random.default_rng(3))
    z = average = np.full(2, 0.5)
    tau, alpha, alphas = math.sqrt(8.0 * s * s / 4.5) * T**1.5 / 2.0, 1.0, [1.0]
    while len(alphas) < T:
        alphas.append(2.0 / (1.0 + math.sqrt(1.0 + 4.0 / alphas[-1] ** 2)))
    for alpha in alphas:
        eta = alpha * (tau + math.sqrt(2.0) * np.linalg.norm(K, 2) / alphas[-1])
        first = draw(z, rng)
        ahead = np.clip(z - first / eta, -1.0, 1.0)
        average = alpha * ahead + (1.0 - alpha) * average
        z = np.clip(ahead - (draw(ahead, rng) - first) / eta, -1.0, 1.0)
    np.testing.assert_allclose(result.z, average, rtol=0.0, atol=1e-13)
    # The exact operator judges the point: the support of the box.
    F_z = K @ result.z
    assert result.gap == pytest.approx(F_z @ result.z + np.abs(F_z).sum(), rel=1e-9)
    # With a thousandth of its noise declared the bound on the mean is false.
    quiet = replace(exact, sample_operator=lambda z, rng: K @ z + 3.0 * rng.standard_normal(2), operator_variance=1e-5)
    loud = [ss.slide([quiet], box, np.full(2, 0.5), (60,), rng=seed) for seed in range(5)]
    assert np.mean([one.gap for one in loud]) > 1.5 * loud[0].bound
    sampled = ss.Component(coupling=np.eye(2), sample_operator=lambda z, rng: z, operator_variance=1.0, name="B")
    assert sampled.level_constant((1.0, 1.0)) == pytest.approx(math.sqrt(2.0))
    with pytest.raises(InputError, match="sample_operator and operator_variance go together"):
        ss.Component(operator=lambda z: z, lipschitz=1.0, operator_variance=1.0)


# --- limits, callbacks, checkpoints -----------------------------------------------------------------------------


def test_a_run_goes_on_from_its_checkpoint_with_the_same_bits(tmp_path):
    game, file = Game(2), tmp_path / "run.npz"
    parts = game.components()
    sampled = [ss.Component(F.Noisy(parts[0].function, sigma=0.3), name="p1"), *parts[1:]]
    # A name that belongs to the second block of a saddle problem.
    named = [replace(parts[0], name="g"), *parts[1:]]
    for components in (parts, sampled, named):
        whole = ss.slide(components, game.domain, np.zeros(6), (6, 2, 1, 3))
        cut = ss.slide(components, game.domain, np.zeros(6), (6, 2, 1, 3), max_steps=2, checkpoint=file)
        assert (cut.status.name, len(cut.history)) == ("STEP_LIMIT", 2)
        on = ss.slide(components, game.domain, np.zeros(6), (6, 2, 1, 3), resume=file)
        np.testing.assert_array_equal(on.z, whole.z)
        assert (on.calls, on.gap, on.status) == (whole.calls, whole.gap, whole.status)
    with pytest.raises(CheckpointError, match="belongs to another call"):
        ss.slide(parts, game.domain, np.zeros(6), (6, 2, 1, 2), resume=file)


def test_limits_and_callbacks_end_a_run_with_what_it_has():
    game = Game(4)
    parts = game.components()
    limited = ss.slide(parts, game.domain, np.zeros(6), loops=(50, 2, 1, 1), max_calls={"Q1": 21})
    assert limited.status.name == "CALL_LIMIT"
    assert limited.calls["Q1"].total - limited.certificate_calls["Q1"].total == 21
    assert game.gap(limited.z) <= limited.gap < math.inf
    seen = []

    def stop(run):
        seen.append(run.calls["p1"].total)
        if len(seen) == 3:
            raise StopIteration

    stopped = ss.slide(parts, game.domain, np.zeros(6), loops=(50, 2, 1, 1), callback=stop)
    assert stopped.status.name == "STOPPED"
    assert seen == [1, 2, 3]
    late = ss.slide(parts, game.domain, np.zeros(6), loops=(10**5, 1, 1, 1), time_limit=0.05)
    assert late.status.name == "TIME_LIMIT"
    with pytest.raises(ss.errors.OutcomeError):
        ss.slide(parts, game.domain, np.zeros(6), tol=0.05, max_steps=1, strict=True)


def test_unbounded_domains_certify_nothing_and_inexact_oracles_count_their_delta():
    free = ss.domains.FullSpace(2)
    p = ss.Component(F.Quadratic(1.0), ss.Holder(1.0, 3.0))
    result = ss.slide([p], free, np.ones(2), loops=(5,))
    assert (result.gap, result.status.name) == (math.inf, "NO_CERTIFICATE")
    assert result.success
    with pytest.raises(InputError, match="the domain is unbounded"):
        ss.slide([p], free, np.ones(2), tol=1.0)
    ball = ss.domains.Ball(1.0, shape=2)
    exact, rough = (
        ss.slide([ss.Component(F.Quadratic(1.0), inexact=(delta, 1.0))], ball, np.ones(2) / 2, loops=(5,))
        for delta in (0.0, 0.25)
    )
    np.testing.assert_array_equal(exact.z, rough.z)
    assert rough.gap == pytest.approx(exact.gap + 0.25, rel=1e-12)


WRONG = {
    "a target beyond double precision": ({"tol": 1e-300}, "budgets are beyond double precision; expected a larger tol"),
    "neither tol nor loops": ({}, "tol is None and loops is None; expected one of them"),
    "no target": ({"tol": 0.0}, "tol is 0; expected a number > 0"),
    "an unknown price": ({"tol": 1.0, "costs": {"h": 1.0}}, "costs has 'h'; expected names among"),
    "an unknown limit": ({"tol": 1.0, "max_calls": {"h": 1}}, "max_calls is .*; expected a mapping with names among"),
    "levelwise on one block": ({"tol": 1.0, "metric": "levelwise"}, "metric is 'levelwise'; expected two bounded"),
}


@gathered(("changed", "message"), WRONG.values(), ids=WRONG)
def test_what_can_not_be_run_is_refused(changed, message):
    game = Game(0)
    with pytest.raises(InputError, match=message):
        ss.slide(game.components(), game.domain, np.zeros(6), **changed)
    assert sum(game.made.values()) == 0


def test_components_that_contradict_themselves_are_refused():
    box = ss.domains.Product(ss.domains.Box(-1.0, 1.0, shape=2), ss.domains.Box(-1.0, 1.0, shape=3))
    with pytest.raises(InputError, match="coupling is given beside a function or an operator"):
        ss.Component(F.Quadratic(1.0), coupling=np.eye(2))
    with pytest.raises(InputError, match="sample is given without a variance"):
        ss.Component(sample=lambda z, rng: z)
    with pytest.raises(InputError, match="component 1 couples arrays of shapes"):
        ss.slide([ss.Component(coupling=np.eye(2))], box, np.zeros(5), tol=1.0)
    with pytest.raises(InputError, match="component 1 has the block 2; expected a number below 2"):
        ss.slide([ss.Component(F.Quadratic(1.0), block=2)], box, np.zeros(5), tol=1.0)
    with pytest.raises(InputError, match="the names of the components are"):
        ss.slide([ss.Component(F.Quadratic(1.0), name="p")] * 2, box, np.zeros(5), tol=1.0)
