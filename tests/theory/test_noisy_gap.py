"""Sampled gradients: restarts on the gap in expectation, for any exponents, and bounds that fail seldom."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.errors import InputError
from saddleslide.methods.recursive_sliding import level_recursion
from saddleslide.oracles.oracles import Oracles
from saddleslide.oracles.sampling import Samples, drawn_problem
from saddleslide.theory.bounds import noise_weights, sharp_bound
from saddleslide.theory.holder import Holder
from saddleslide.theory.levels import Term, alpha_sequence, place
from saddleslide.theory.mixed import gap_stages
from saddleslide.theory.noise import deviation_bound, steady

F, D = ss.functions, ss.domains
ROOT = Path(ss.__file__).parents[2]
PAIRS = [
    (Holder(1.0, 4.0), Holder(1.0, 1.0)),
    (Holder(0.5, 3.0), Holder(0.25, 1.0)),
    (Holder(1.0, 2.0), Holder(0.0, 1.0)),
]


@pytest.mark.parametrize("block", ["x", "y"])
@pytest.mark.parametrize(("curved", "flat"), PAIRS)
@pytest.mark.parametrize("variances", [(2.0, 0.0), (0.0, 0.3), (1.0, 0.1)])
def test_the_levels_of_a_sampled_stage_fulfil_what_the_proof_adds_up(curved, flat, variances, block):
    mu, norm, D, first = 0.8, 1.5, 1.7, 20.0
    own, other = ("f", "g") if block == "x" else ("g", "f")
    stages = gap_stages(curved, flat, norm, mu, D, (first, first / 4.0), block, variances)
    for s, stage in enumerate(stages, start=1):
        target, levels = first * 0.5**s, {level.term.name: level for level in stage}
        weights = dict(zip((level.term.name for level in stage), noise_weights(stage), strict=True))
        w = levels["B"].term.weights["xy".index(block)]
        A_x, A_y, rest = w * norm * levels["B"].last_alphas, norm * levels["B"].last_alphas / w, 0.0
        for name, condition, variance in ((own, curved, variances[0]), (other, flat, variances[1])):
            level, (spread, squares) = levels[name], weights[name]
            a = level.last_alphas
            assert spread <= 1.0 / a
            assert squares <= a
            delta, tau = level.term.inexact[0], level.term.tau
            assert condition.L(delta) * (1.0 - 1e-12) <= level.L
            rest += delta / level.last_alphas
            A_x += (level.L + tau) * level.last_alphas**2 * (name == own)
            A_y += (level.L + tau) * level.last_alphas**2 * (name == other)
            if variance > 0.0:
                noise = variance / (2.0 * tau * a)
                # |V|^2 / (2 c mu) with c = 1/20, or D |V|.
                noise += 10.0 * variance * a / mu if name == own else D * math.sqrt(variance * a)
                assert noise <= (0.09 if name == own else 0.07 * 1.5) * target * (1.0 + 1e-9)
                rest += noise
        factor = 2.0 * A_x / mu
        found = (2.0 * factor * target + 0.5 * A_y * D**2 + rest) / (1.0 - factor - 0.05)
        assert found <= target * (1.0 + 1e-9)


def test_counts_of_sampled_gradients_grow_like_their_noise_says():
    def counts(ratio, variances):
        stages = gap_stages(Holder(1.0, 2.0), Holder(1.0, 1.0), 1.0, 1.0, 2.0, (1.0, 1.0 / ratio), "x", variances)
        return {n: sum(level.N for stage in stages for level in stage if level.term.name == n) for n in "fgB"}

    few, many = counts(2.0**6, (1.0, 0.0)), counts(2.0**9, (1.0, 0.0))
    assert many["f"] / few["f"] == pytest.approx(2.0**3, rel=0.1)
    assert many["B"] / few["B"] <= 2.0**1.5 * 1.5
    few, many = counts(2.0**6, (0.0, 1.0)), counts(2.0**9, (0.0, 1.0))
    assert many["g"] / few["g"] == pytest.approx(2.0**6, rel=0.1)
    assert many["f"] <= 3.0 * few["f"]


def test_the_mean_gap_is_below_the_target_of_every_stage():
    rng = np.random.default_rng(0)
    f, g = F.Quadratic([1.0, 2.0]) + F.Linear(rng.standard_normal(2)), F.Power(0.5, weight=0.3, tilt=[0.2, -0.1])
    exact = ss.SaddleProblem(f=f, g=g, B=0.5 * np.eye(2), X=D.FullSpace(2), Y=D.Box(-1.0, 1.0, shape=2))
    noisy, loud = (
        ss.SaddleProblem(f=F.Noisy(f, sigma), g=F.Noisy(g, 0.1 * sigma), B=exact.coupling, X=exact.X, Y=exact.Y)
        for sigma in (0.15, 20.0)
    )
    first = ss.certify(exact, *exact.start()).gap
    stages = gap_stages(
        f.smoothness(exact.X), g.smoothness(exact.Y), 0.5, 1.0, exact.Y.diameter(), (first, first / 2.0),
        variances=(0.15**2, 0.015**2),
    )  # fmt: skip
    gaps = np.zeros((2, len(stages)))
    for run, row in enumerate(gaps):
        oracles, z = Oracles(drawn_problem(noisy, np.random.default_rng(run), Samples())), np.concatenate(exact.start())
        for s, levels in enumerate(stages):
            *_, average = level_recursion(oracles, levels, z).steps()
            z = average.copy()
            row[s] = ss.certify(exact, z[:2], z[2:]).gap
    assert np.all(gaps.mean(axis=0) <= [first * 0.5 ** (s + 1) for s in range(len(stages))])
    # With far more noise than was declared the first stage ends above its target.
    oracles = Oracles(drawn_problem(loud, np.random.default_rng(0), Samples()))
    *_, average = level_recursion(oracles, stages[0], np.concatenate(exact.start())).steps()
    assert ss.certify(exact, average[:2], average[2:]).gap > 0.5 * first


def test_the_ghost_sequence_bounds_the_sup_over_the_set_path_by_path():
    rng, broken = np.random.default_rng(1), 0
    for _ in range(200):
        steps, d = rng.integers(1, 12), rng.integers(1, 4)
        errors, Omega = rng.standard_normal((steps, d)), 1.0
        weights, ghost = rng.uniform(0.0, 1.0, steps), np.zeros(d)
        gamma, left = 10.0 ** rng.uniform(-1.0, 1.0), -np.zeros(1)
        total = weights @ errors
        worst = total / np.linalg.norm(total)
        for w, e in zip(weights, errors, strict=True):
            left = left + w * float(e @ (worst - ghost))
            ghost = ghost + gamma * w * e
            ghost /= max(1.0, np.linalg.norm(ghost))
        squares = float(np.sum(weights**2 * np.sum(errors**2, axis=1)))
        assert left <= Omega / (2.0 * gamma) + 0.5 * gamma * squares + 1e-12
        broken += bool(left > 0.8 * (Omega / (2.0 * gamma) + 0.5 * gamma * squares))
    assert broken > 0


def test_gaussian_errors_have_the_moment_that_the_bound_asks_for():
    for d in (1, 2, 10, 1000):
        assert (1.0 - 2.0 / (2.32 * d)) ** (-0.5 * d) <= math.e
    assert math.e < (1.0 - 2.0 / 2.2) ** -0.5
    # E exp(<e, u>) <= exp(3/4 s^2 |u|^2) for such errors, here of one dimension: exp(u^2 / 2).
    assert all(math.exp(0.5 * u * u) <= math.exp(0.75 * 2.32 * u * u) for u in (0.1, 1.0, 3.0))


def test_the_gap_exceeds_the_deviation_bound_seldom_and_it_is_no_larger_than_it_must_be():
    sigma, d, loops = 1.0, 2, (12, 2)
    box = D.Box(-1.0, 1.0, shape=d)
    f, g = F.Quadratic(1.0) + F.Linear([0.3, -0.2]), F.Zero()
    exact = ss.SaddleProblem(f=f, g=g, B=np.eye(d), X=box, Y=box)
    noisy = ss.SaddleProblem(f=F.Noisy(f, sigma), g=g, B=np.eye(d), X=box, Y=box)
    terms = [
        Term("f", Holder(1.0, 1.0), weights=(1.0, 1.0), Omega=2.0 * d, variance=2.32 * sigma**2),
        Term("B", M=1.0, weights=(1.0, 1.0), Omega=2.0 * d),
    ]
    levels = place(steady(terms, loops), loops)

    def gaps_of(problem, levels, runs):
        for run in range(runs):
            oracles = Oracles(drawn_problem(problem, np.random.default_rng(run), Samples()))
            *_, z = level_recursion(oracles, levels, np.concatenate(exact.start())).steps()
            yield ss.certify(exact, z[:d], z[d:]).gap

    gaps = list(gaps_of(noisy, levels, 60))
    bounds = [deviation_bound(levels, failure) for failure in (0.5, 0.1, 1e-3, 1e-6)]
    assert bounds == sorted(bounds)
    assert np.mean(np.array(gaps) > bounds[1]) <= 0.1
    # A logarithm of the probability, beside the bound on the mean.
    assert sharp_bound(levels) < bounds[0]
    assert bounds[3] <= sharp_bound(levels) * (1.0 + math.log(6.0 / 1e-6)) * 2.0
    with pytest.raises(InputError, match=r"failure is 1.0"):
        deviation_bound(levels, 1.0)
    drawn = place([Term("Q", M=1.0, Omega=1.0, operator_variance=1.0, tau=1.0)], (3,))
    with pytest.raises(InputError, match="an operator is sampled; expected sampled gradients alone"):
        deviation_bound(drawn, 0.1)


def test_a_third_of_the_bound_on_the_mean_and_a_twelfth_of_the_deviation_bound_are_too_little():
    """f(x) = 0.8 x on [-1, 1] from the middle, 32 samples of variance 1: the slope is lost in the noise of one."""
    line, slope, T = D.Box(-1.0, 1.0, shape=1), 0.8, 32
    noisy = ss.SaddleProblem(f=F.Noisy(F.Linear([slope]), 1.0), g=F.Zero(), B=[[1e-9]], X=line, Y=line)
    terms = [
        Term("f", Holder(1.0, 0.0), weights=(1.0, 1.0), Omega=1.0, variance=2.32),
        Term("B", M=1e-9, weights=(1.0, 1.0), Omega=2.0),
    ]
    levels, gaps = place(steady(terms, (T, 1)), (T, 1)), []
    for run in range(60):
        oracles = Oracles(drawn_problem(noisy, np.random.default_rng(run), Samples()))
        *_, z = level_recursion(oracles, levels, np.zeros(2)).steps()
        gaps.append(slope * (z[0] + 1.0))
    assert sharp_bound(levels) / 3.0 < np.mean(gaps) <= sharp_bound(levels)
    assert deviation_bound(levels, 0.1) / 12.0 < np.quantile(gaps, 0.9) <= deviation_bound(levels, 0.1)


def test_the_deviation_bound_is_what_the_theorem_says():
    levels = place([Term("f", inexact=(0.0, 3.0), tau=0.7, Omega=2.0, variance=0.5)], (9,))
    alphas = np.array(alpha_sequence(9))
    spread, squares = alphas[-1] ** 2 * np.sum(alphas**-2.0), alphas[-1] ** 4 * np.sum(alphas**-2.0)
    rare = math.log(3.0 / 0.02)
    expected = 0.5 * (3.0 + 0.7) * alphas[-1] ** 2 * 2.0 + (1.0 + rare) * 0.5 * spread / (2.0 * 0.7)
    expected += (1.0 + rare / 2.0 + 2.0 * math.sqrt(3.0 * rare)) * math.sqrt(0.5 * 2.0 * squares)
    assert deviation_bound(levels, 0.02) == pytest.approx(expected)


def test_the_page_quotes_the_slopes_that_were_measured():
    page = (ROOT / "docs" / "open.md").read_text(encoding="utf-8")
    stored = json.loads((ROOT / "benchmarks" / "results" / "noisy_gap.json").read_text(encoding="utf-8"))
    for row in stored["rows"]:
        assert f"{row['slope']:.2f}" in page
        assert all(stage["gap"] <= stage["target"] for stage in row["stages"])
