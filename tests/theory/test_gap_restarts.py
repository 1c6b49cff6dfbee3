"""Restarts on the gap: the lemma, what a stage's levels must fulfil, counts without a logarithm, and runs."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.methods.recursive_sliding import level_recursion
from saddleslide.oracles.oracles import Oracles
from saddleslide.theory.holder import Holder
from saddleslide.theory.mixed import gap_stages

F, D = ss.functions, ss.domains
ROOT = Path(ss.__file__).parents[2]


def bilinear(seed, mu=0.7, n=5, m=4):
    """f = mu/2 |x|^2 + <c, x>, g linear, with its saddle point inside Y."""
    rng = np.random.default_rng(seed)
    B, c, y = rng.standard_normal((m, n)), rng.standard_normal(n), rng.uniform(-0.5, 0.5, m)
    x = -(c + B.T @ y) / mu
    f, Y = F.Quadratic(mu) + F.Linear(c), D.Box(-1.0, 1.0, shape=m)
    return ss.SaddleProblem(f=f, g=F.Linear(B @ x), B=B, X=D.FullSpace(n), Y=Y), (x, y), B, c


def test_the_gap_bounds_both_distances_and_no_more():
    rng, mu = np.random.default_rng(0), 0.7
    for seed in range(10):
        problem, (x_star, _), B, c = bilinear(seed, mu)
        for _ in range(20):
            x, y = x_star + rng.standard_normal(5) * 10.0 ** rng.uniform(-3, 1), rng.uniform(-1.0, 1.0, 4)
            response = -(c + B.T @ y) / mu
            distances = 0.5 * mu * float((x - x_star) @ (x - x_star) + (x_star - response) @ (x_star - response))
            assert distances <= ss.certify(problem, x, y).gap * (1.0 + 1e-9)
        # At x* the gap is the second distance, so that no larger factor would do.
        gap = ss.certify(problem, x_star, y).gap
        assert 0.5 * mu * float((x_star - response) @ (x_star - response)) == pytest.approx(gap, rel=1e-6)


CONDITIONS = [
    (Holder(1.0, 9.0), Holder(1.0, 2.0)),
    (Holder(0.5, 3.0), Holder(0.0, 1.0)),
    (Holder(1.0, 4.0), Holder(0.3, 5.0)),
    (Holder(1.0, 1.0), Holder(1.0, 0.0)),
]


@pytest.mark.parametrize("block", ["x", "y"])
@pytest.mark.parametrize(("curved", "flat"), CONDITIONS)
def test_the_levels_of_a_stage_fulfil_what_the_proof_adds_up(curved, flat, block):
    mu, norm, diameter, first = 0.8, 3.0, 2.5, 40.0
    stages = gap_stages(curved, flat, norm, mu, diameter, (first, first / 50.0), block)
    assert len(stages) == 6
    own, other = ("f", "g") if block == "x" else ("g", "f")
    for s, stage in enumerate(stages, start=1):
        target = first * 0.5**s
        levels = {level.term.name: level for level in stage}
        w = levels["B"].term.weights["xy".index(block)]
        A_x, A_y, errors = w * norm * levels["B"].last_alphas, norm * levels["B"].last_alphas / w, 0.0
        for name, condition in ((own, curved), (other, flat)):
            level = levels[name]
            delta = level.term.inexact[0]
            assert condition.L(delta) * (1.0 - 1e-12) <= level.L
            errors += delta / level.last_alphas
            A_x += level.L * level.last_alphas**2 * (name == own)
            A_y += level.L * level.last_alphas**2 * (name == other)
        rest = 2.0 * A_x / mu
        # (1 - rest) G_out <= rest G_in + ..., with G_in at most twice the target.
        found = (2.0 * rest * target + 0.5 * A_y * diameter**2 + errors) / (1.0 - rest)
        assert found <= target * (1.0 + 1e-9)
        assert [level.N for level in stage] == sorted(level.N for level in stage)


def test_counts_have_no_logarithm():
    """A thousand times the accuracy: 2^5 times the products; f' alone pays for every stage."""

    def counts(curved, flat, ratio, first=1e3):
        stages = gap_stages(curved, flat, 2.0, 1.0, 2.0, (first, first / ratio))
        return {n: sum(level.N for stage in stages for level in stage if level.term.name == n) for n in "fgB"}

    smooth = Holder(1.0, 10.0), Holder(1.0, 1.0)
    few, many = counts(*smooth, 2.0**20), counts(*smooth, 2.0**30)
    assert 2.0**5 * 0.7 <= many["B"] / few["B"] <= 2.0**5 * 1.4
    assert 2.0**5 * 0.7 <= many["g"] / few["g"] <= 2.0**5 * 1.4
    assert many["f"] <= 1.6 * few["f"]
    rough = Holder(0.5, 10.0), Holder(0.0, 1.0)
    few, many = counts(*rough, 2.0**12), counts(*rough, 2.0**18)
    assert many["g"] / few["g"] == pytest.approx(2.0**12, rel=0.6)
    assert many["f"] / few["f"] == pytest.approx(2.0 ** (6.0 * 0.5 / 2.5), rel=0.5)


def mixed(seed, n=6, m=5):
    """A curved quadratic on the whole space, a quadratic with eigenvalue 0 on a box."""
    rng = np.random.default_rng(seed)
    f = F.Quadratic(np.geomspace(1.0, 10.0, n)) + F.Linear(3.0 * rng.standard_normal(n))
    g = F.Quadratic(np.linspace(0.0, 1.0, m)) + F.Linear(rng.standard_normal(m))
    return ss.SaddleProblem(f=f, g=g, B=rng.standard_normal((m, n)), X=D.FullSpace(n), Y=D.Box(-1.0, 1.0, shape=m))


def rotated(curvature, norm, n=6):
    """A quadratic with eigenvalues from 1 on the whole space, a small slope on a box, B a multiple of a rotation."""
    rng = np.random.default_rng(0)
    f = F.Quadratic(np.geomspace(1.0, curvature, n)) + F.Linear(3.0 * rng.standard_normal(n))
    g, B = F.Linear(0.01 * rng.standard_normal(n)), norm * np.linalg.qr(rng.standard_normal((n, n)))[0]
    return ss.SaddleProblem(f=f, g=g, B=B, X=D.FullSpace(n), Y=D.Box(-1.0, 1.0, shape=n))


def excess(problem, H=1.0, norm=1.0):
    """The largest gap over its target after each of three stages, with a part of the constants."""
    z, gap = np.concatenate(problem.start()), ss.certify(problem, *problem.start()).gap
    f, g, B = problem.f.smoothness(problem.X), problem.g.smoothness(problem.Y), problem.coupling.norm.upper
    found = []
    for levels in gap_stages(H * f, g, norm * B, 1.0, problem.Y.diameter(), (gap, gap / 8.0)):
        *_, z = level_recursion(Oracles(problem), levels, z).steps()
        z, gap = z.copy(), 0.5 * gap
        found.append(ss.certify(problem, z[: problem.X.size], z[problem.X.size :]).gap / gap)
    return max(found)


def test_every_stage_halves_what_is_known_of_the_gap():
    steep, coupled = rotated(10.0, 0.01), rotated(1.0, 10.0)
    assert max(excess(problem) for problem in (*map(mixed, range(3)), steep, coupled)) <= 1.0
    # Half of H, or of |B|, is too little.
    assert excess(steep, H=0.5) > 1.0
    assert excess(coupled, norm=0.5) > 1.0


def test_it_is_a_setting_of_proved_sliding():
    problem = mixed(0)
    tol = 1e-3 * ss.certify(problem, *problem.start()).gap
    result = ss.solve(problem, tol, method=ss.methods.ProvedSliding(restarts="gap"))
    assert result.status is ss.Status.SOLVED
    assert "stages halve it" in result.plans[0].notes[0]
    mirrored = ss.SaddleProblem(
        f=problem.g, g=problem.f, B=-np.asarray(problem.coupling.dense()).T, X=problem.Y, Y=problem.X
    )
    other = ss.solve(mirrored, tol, method=ss.methods.ProvedSliding(restarts="gap"))
    assert other.status is ss.Status.SOLVED
    assert other.plans[0].notes == result.plans[0].notes
    assert (other.calls.f, other.calls.g) == pytest.approx((result.calls.g, result.calls.f), abs=2)
    flat = ss.SaddleProblem(f=F.Linear(1.0), g=problem.g, B=problem.coupling, X=D.FullSpace(6), Y=problem.Y)
    with pytest.raises(ss.errors.InputError, match="no function is strongly convex beside a bounded set"):
        ss.solve(flat, tol, method=ss.methods.ProvedSliding(restarts="gap"))


def test_the_first_bound_holds_and_the_page_quotes_what_was_measured():
    for seed in range(10):
        problem = mixed(seed)
        x, y = problem.start()
        steep = problem.f.gradient(x) + np.asarray(problem.coupling.dense()).T @ y
        level = np.asarray(problem.coupling.dense()) @ x - problem.g.gradient(y)
        bound = float(steep @ steep) / 2.0 + problem.Y.diameter() * float(np.linalg.norm(level))
        assert ss.certify(problem, x, y).gap <= bound
        found = ss.solve(problem, bound / 2.0, method=ss.methods.ProvedSliding(restarts="gap"))
        assert f"at most {bound:.4g}; 1 stages" in found.plans[0].notes[0] or found.steps == 0
    page = (ROOT / "docs" / "open.md").read_text(encoding="utf-8")
    stored = json.loads((ROOT / "benchmarks" / "results" / "mixed_restarts.json").read_text(encoding="utf-8"))
    for row in stored["rows"]:
        if row["nu_y"] == 1.0:
            assert " / ".join(f"{row['gap, proved'][name]:,}" for name in "fgB") in page
            assert math.isfinite(row["part"])
