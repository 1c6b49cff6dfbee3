"""Primal-dual steps of an innermost coupling: a transcription, twins, the bound, counts, and what is refused."""

import math

import numpy as np
import pytest

import saddleslide as ss
from level_cases import COUPLINGS, FIELD, LEVELS, METRICS, PICTURE, Q, sets, terms
from saddleslide.errors import InputError
from saddleslide.kernels.switch import jit
from saddleslide.methods.sliding import bilinear_recursion
from saddleslide.methods.sliding.view import View
from saddleslide.oracles.oracles import Oracles
from saddleslide.theory import Term, alpha_sequence, place
from saddleslide.theory.restarts import Stage
from support import gathered, pairwise

STEP = {"coupling_step": "primal-dual"}


def averages(coupling="dense", X="full", Y="full", f="nothing", g="nothing", metric="none", on=True):
    B, norm = COUPLINGS[coupling], METRICS[metric]
    rest = Q.Quadratic(1.3) + Q.Linear(np.random.default_rng(1).standard_normal(PICTURE))
    problem = ss.SaddleProblem(f=rest, g=Q.Quadratic(0.6), B=B, X=sets(PICTURE)[X], Y=sets(FIELD)[Y])
    view = View(
        problem, terms(PICTURE)[f], terms(FIELD)[g], (None if norm is None else norm.with_coupling(B), None), True
    )
    rng = np.random.default_rng(2)
    start = tuple(D.project(0.3 * rng.standard_normal(D.shape)) for D in (problem.X, problem.Y))
    with jit(on):
        oracles = Oracles(problem)
        recursion = bilinear_recursion(oracles, Stage(LEVELS, 1.0), start, view)
        steps = np.array([step.copy() for step in recursion.steps()])
    return steps, oracles.calls, recursion.innermost.compiled, start


def assert_twins(*given, compiled=True, **named):
    fast, calls, is_compiled, _ = averages(*given, **named)
    slow, slow_calls, slow_is_compiled, _ = averages(*given, **named, on=False)
    assert (is_compiled, slow_is_compiled) == (compiled, False)
    assert calls == slow_calls and calls.B == 2 * 3 * 2 * 5
    assert np.abs(fast - slow).max() <= 1e-12 * np.abs(slow).max()


@pairwise(coupling=COUPLINGS, X=sets(PICTURE), Y=sets(FIELD))
def test_compiled_steps_are_those_in_numpy(coupling, X, Y):
    coupled = ("ball", "simplex")
    assert_twins(coupling, X, Y, "number" if X in coupled else "both", "number" if Y in coupled else "root")


@pairwise(coupling=COUPLINGS, metric=METRICS)
def test_norms_of_x(coupling, metric):
    assert_twins(coupling, "full", "interval", "nothing", "both", metric, compiled=metric not in ("cosine", "fourier"))


def transcribed(x, y, c, B):
    """Three loops written out for quadratic f and g on the full space, all levels on their own letters."""
    (T1, T2, T3), (L1, L2, L3) = (level.T for level in LEVELS), (level.step for level in LEVELS)
    wx, wy = LEVELS[2].term.weights
    alphas = alpha_sequence(max(T1, T2, T3))
    x1, x2, y2, bx, by, avg1 = x, x, y, x, y, (x, y)
    last, eta_last, out = np.zeros_like(y), None, []
    for i in range(T1):
        a1 = alphas[i]
        base1 = tuple((1.0 - a1) * part for part in avg1)
        grad_f = 1.3 * (a1 * x1 + base1[0]) + c
        e1 = a1 * L1
        avg2 = (x2.copy(), y2.copy())
        for j in range(T2):
            a2 = alphas[j]
            grad_g = 0.6 * (a1 * a2 * y2 + a1 * (1.0 - a2) * avg2[1] + base1[1])
            e2 = a1 * a2 * L2
            avg3 = (bx.copy(), by.copy())
            for k in range(T3):
                a3 = alphas[k]
                e3 = a1 * a2 * a3 * L3
                theta = 0.0 if eta_last is None else e3 / eta_last
                ahead = by + theta * last
                bx = (e1 * x1 + e3 * wx * bx - grad_f - B.T @ ahead) / (e1 + e3 * wx)
                new = (e2 * y2 + e3 * wy * by - grad_g + B @ bx) / (e2 + e3 * wy)
                last, by, eta_last = new - by, new, e3
                avg3 = tuple(a3 * now + (1.0 - a3) * old for now, old in zip((bx, by), avg3, strict=True))
            avg2 = tuple(a2 * now + (1.0 - a2) * old for now, old in zip(avg3, avg2, strict=True))
            x2, y2 = avg3
        avg1 = tuple(a1 * now + (1.0 - a1) * old for now, old in zip(avg2, avg1, strict=True))
        x1 = avg2[0]
        out.append(np.concatenate(avg1))
    return np.array(out)


@pytest.mark.parametrize("on", [True, False])
def test_steps_are_those_of_the_page(on):
    found, _, _, start = averages(on=on)
    c = np.random.default_rng(1).standard_normal(PICTURE).ravel()
    expected = transcribed(start[0].ravel(), start[1].ravel(), c, COUPLINGS["dense"].matrix)
    assert np.abs(found - expected).max() <= 1e-12 * np.abs(expected).max()


def planted(seed, size=12):
    rng = np.random.default_rng(seed)
    box = ss.domains.Box(-1.0, 1.0, shape=size)
    f = Q.Power(float(rng.uniform(0.0, 1.0)), tilt=rng.standard_normal(size))
    g = Q.Power(float(rng.uniform(0.0, 1.0)), tilt=rng.standard_normal(size))
    return ss.SaddleProblem(f=f, g=g, B=3.0 * rng.standard_normal((size, size)), X=box, Y=box)


@gathered("seed", range(8))
@pairwise(loops=[(1, 1, 1), (3, 2, 4), (2, 1, 30), (10, 3, 2)], metric=["identity", "levelwise"])
def test_the_gap_is_below_the_bound(seed, loops, metric):
    problem = planted(seed)
    plan = ss.plan(problem, order="fgB", loops=loops, metric=metric, **STEP)
    result = ss.run(problem, plan)
    assert result.gap <= plan.bound
    # Of B^T y at the start, which is 0, nothing need be computed; a primal-dual step has no correction.
    assert vars(result.counted) == plan.predicted_calls and result.spared == 1
    assert plan.predicted_calls["B"] == 2 * math.prod(loops)


def test_the_bound_is_that_of_the_paper_and_the_gap_about_as_small():
    ratios = []
    for seed in range(6):
        problem = planted(seed)
        ours, paper = (ss.plan(problem, order="fgB", loops=(6, 2, 12), **step) for step in (STEP, {}))
        assert ours.bound == paper.bound and ours.proved == paper.proved
        assert 2 * ours.predicted_calls["B"] == paper.predicted_calls["B"]
        ratios.append(ss.run(problem, ours).gap / ss.run(problem, paper).gap)
    assert np.median(ratios) < 1.5


def test_the_paper_s_step_is_the_default_where_anything_is_asked_for():
    problem = planted(0)
    pinned = [{"order": "fgB", "loops": (2, 2, 2)}, {"tol": 0.5, "regime": "degenerate"}, {"tol": 9.0, "proved": True}]
    for options in pinned:
        assert ss.plan(problem, **options).schedule.coupling_step == "extragradient"
    assert ss.plan(problem, 0.5, order="fgB", **STEP).schedule.coupling_step == "primal-dual"


def test_the_step_with_fewer_products_is_the_default_where_nothing_is_asked_for():
    """Without values there is no adaptive sliding, so the plan is one of the theorems."""
    f = Q.Custom(lambda x: np.sign(x) * np.abs(x) ** 0.5, smoothness=ss.Holder(0.5, 5.0))
    box = ss.domains.Box(-1.0, 1.0, shape=10)
    problem = ss.SaddleProblem(f=f, g=f, B=30.0 * np.eye(10), X=box, Y=box)
    plan = ss.plan(problem, 0.5)
    paper = ss.plan(problem, 0.5, coupling_step="extragradient")
    assert plan.schedule.coupling_step == "primal-dual" and plan.order == paper.order == "fgB"
    assert 2 * plan.predicted_calls["B"] == paper.predicted_calls["B"] and plan.bound == paper.bound


def test_a_plan_says_it_and_keeps_it():
    plan = ss.plan(planted(1), order="fgB", loops=(2, 2, 2), **STEP)
    assert "primal-dual steps, 2 products each" in plan.explain()
    assert "primal-dual" in plan.theorem
    again = ss.Plan.from_dict(plan.to_dict())
    assert again == plan and again.regime == "degenerate"


def test_what_is_refused():
    problem = planted(2)
    with pytest.raises(InputError, match="coupling_step is 'pdhg'; expected"):
        ss.plan(problem, 0.1, coupling_step="pdhg")
    with pytest.raises(InputError, match="needs the coupling innermost"):
        ss.plan(problem, order="Bfg", loops=(1, 1, 1), **STEP)
    with pytest.raises(InputError, match="coupling_step has no meaning in regime 'restarts'"):
        ss.plan(problem, 0.1, regime="restarts", **STEP)


@pytest.mark.parametrize("on", [True, False])
def test_a_resumed_run_has_the_same_bits(tmp_path, on):
    problem, path = planted(3), tmp_path / "run.npz"
    plan = ss.plan(problem, order="fgB", loops=(7, 2, 3), **STEP)
    with jit(on):
        whole = ss.run(problem, plan)
        ss.run(problem, plan, max_steps=4, checkpoint=path, checkpoint_every=1)
        again = ss.resume(path, problem, max_steps=100)
    assert np.array_equal(whole.x, again.x) and np.array_equal(whole.y, again.y)


def test_wrong_steps_break_the_bound():
    """With M understated the same steps leave the bound: what is proved is not idle."""
    rng = np.random.default_rng(0)
    box, B = ss.domains.Box(-1.0, 1.0, shape=8), 4.0 * np.linalg.qr(rng.standard_normal((8, 8)))[0]
    problem = ss.SaddleProblem(f=Q.Zero(), g=Q.Zero(), B=B, X=box, Y=box)
    outer = Term("f", ss.Holder(1.0, 1e-6), weights=(1.0, 1.0), Omega=64.0)
    honest, wrong = (place([outer, Term("B", M=M, weights=(1.0, 1.0), Omega=64.0)], (1, 400)) for M in (4.0, 0.4))
    start = (np.ones(8), np.ones(8))
    gaps = []
    for levels in (honest, wrong):
        recursion = bilinear_recursion(Oracles(problem), Stage(levels, 1.0), start, View(problem, primal_dual=True))
        z = list(recursion.steps())[-1]
        gaps.append((ss.certify(problem, z[:8], z[8:]).gap, ss.theory.sharp_bound(levels)))
    assert gaps[0][0] <= gaps[0][1] and gaps[1][0] > gaps[1][1]


@pairwise(
    together=[1, 2, 3, 10],
    band=[1, 6, 7, 12, 18],
    parts=[
        ("full", "interval", "nothing", "nothing"),
        ("box", "box", "both", "root"),
        ("interval", "full", "number", "entries"),
    ],
)
def test_steps_of_a_large_picture_share_passes(monkeypatch, together, band, parts):
    """Bands of one, two and three of four rows: they overlap in every way."""
    monkeypatch.setattr("saddleslide.methods.sliding.innermost._BAND", band)
    monkeypatch.setattr("saddleslide.methods.sliding.innermost._TOGETHER", together)
    assert_twins("differences", *parts)
    assert_twins("differences", *parts, "diagonal")


@gathered("shape", [(2, 1), (9, 1), (2, 2), (3, 2), (7, 5), (30, 3)])
def test_pictures_of_every_shape_in_bands(monkeypatch, shape):
    monkeypatch.setattr("saddleslide.methods.sliding.innermost._BAND", shape[1])
    rng, field = np.random.default_rng(8), (2, *shape)
    problem = ss.SaddleProblem(
        f=Q.Power(1.0, tilt=rng.standard_normal(shape)), g=Q.Quadratic(0.3), B=ss.operators.FiniteDifferences(shape),
        X=ss.domains.Box(-1.0, 1.0, shape=shape), Y=ss.domains.Box(-0.4, 0.4, shape=field),
    )  # fmt: skip
    plan = ss.plan(problem, order="fgB", loops=(4, 2, 7), metric="identity", regime="degenerate", **STEP)
    start = rng.uniform(-1.0, 1.0, shape), rng.uniform(-0.4, 0.4, field)
    found = []
    for on in (True, False):
        with jit(on):
            found.append(ss.run(problem, plan, start=start))
    for ours, theirs in zip((found[0].x, found[0].y), (found[1].x, found[1].y), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-13)
    assert found[0].calls == found[1].calls
