"""What runs with sampled gradients may claim, and what they must not."""

from __future__ import annotations

import json

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.errors import InputError
from support import gathered

F, D = ss.functions, ss.domains


def curved(sigma=1.0, n=4, scale=0.5, seed=0, X=None):
    """Strongly convex on both sides; by default on the full space."""
    B = scale * np.random.default_rng(seed).standard_normal((n, n))
    X = D.FullSpace(n) if X is None else X
    f = F.Noisy(F.Quadratic(1.0) + F.Linear(np.ones(n)), sigma)
    return ss.SaddleProblem(f=f, g=F.Quadratic(1.0), B=B, X=X, Y=X)


def counted(problem):
    """The same problem with a count of the exact gradients and values of f that are really taken."""
    inner, taken = problem.f, {"gradients": 0, "values": 0}

    def gradient(x):
        taken["gradients"] += 1
        return inner.gradient(x)

    def value(x):
        taken["values"] += 1
        return inner.value(x)

    f = F.Custom(
        gradient=gradient, value=value, sample=inner.sample, variance=1.0, smoothness=ss.Holder(1.0, 1.0),
        strong_convexity=1.0,
    )  # fmt: skip
    return ss.SaddleProblem(f=f, g=problem.g, B=problem.coupling, X=problem.X, Y=problem.Y), taken


@gathered("seed", range(6))
@pytest.mark.parametrize("X", [None, D.Box(-3.0, 3.0, shape=4)], ids=["free", "box"])
def test_solve_goes_on_when_a_plan_needs_no_stage(seed, X):
    """A rung of the ladder may end far below its accuracy: the next plan then has nothing to do."""
    result = ss.solve(curved(X=X), 2e-3, rng=seed)
    assert result.status is ss.Status.SOLVED and result.gap <= 2e-3


def test_a_start_that_solves_the_problem_is_a_solution():
    free = D.FullSpace(2)
    problem = ss.SaddleProblem(f=F.Noisy(F.Quadratic(1.0), 1.0), g=F.Quadratic(1.0), B=np.eye(2), X=free, Y=free)
    assert ss.solve(problem, 0.1).status is ss.Status.SOLVED
    assert ss.run(problem, ss.plan(problem, 0.1)).status is ss.Status.SOLVED


def test_a_floor_above_the_target_is_no_proof_of_it():
    free, B = D.FullSpace(4), 2.5 * np.random.default_rng(1).standard_normal((4, 4))
    f, g = F.Noisy(F.Quadratic(1.0) + F.Linear(np.ones(4)), 3.0), F.Noisy(F.Quadratic(2.0), 3.0)
    problem = ss.SaddleProblem(f=f, g=g, B=B, X=free, Y=free)
    asked = {"regime": "restarts", "anchors": True, "proved": True}
    lone, enough = ss.plan(problem, 0.02, **asked, anchor_batch=1), ss.plan(problem, 0.02, **asked)
    assert lone.bound == np.inf and "which bounds no gap here" in lone.explain()
    assert enough.bound == 0.02 and enough.Psi_bound <= enough.constants["Psi_end"].value


def test_variances_are_measured_in_the_dual_norm_of_the_metric():
    """Weights of 1e-2 on x make the same noise a hundred times larger, whether given as a number or as a diagonal."""
    box = D.Box(-10.0, 10.0, shape=4)
    problem = ss.SaddleProblem(
        f=F.Noisy(F.Quadratic(1e-2), 0.05), g=F.Quadratic(1.0), B=1e-3 * np.eye(4), X=box, Y=D.Box(-0.1, 0.1, shape=4)
    )
    asked = {"order": "fgB", "loops": (6, 2, 2)}
    plain = ss.plan(problem, **asked, metric=(1e-2, 1.0))
    diagonal = ss.plan(problem, **asked, metric=ss.metrics.Diagonal(np.full(4, 1e-2)))
    noise = [
        plan.schedule.levels[0].term.variance * plan.schedule.levels[0].term.weights[0] for plan in (plain, diagonal)
    ]
    assert noise[0] == pytest.approx(0.05**2) and noise[1] == pytest.approx(0.05**2 / 1e-2)
    runs = [ss.run(problem, diagonal, rng=seed) for seed in range(40)]
    gaps = [ss.certify(problem, run.x, run.y).gap for run in runs]
    assert np.mean(gaps) <= diagonal.bound


def test_a_plan_for_less_noise_promises_nothing():
    quiet, loud = curved(0.01), curved(100.0)
    plan = ss.plan(quiet, 2.0, regime="restarts", proved=True)
    both = ss.SaddleProblem(f=quiet.f, g=F.Noisy(quiet.g, 1.0), B=quiet.coupling, X=quiet.X, Y=quiet.Y)
    assert ss.run(quiet, plan).expected_gap == 2.0
    assert ss.run(loud, plan).expected_gap == ss.run(both, plan).expected_gap == np.inf


def test_restarts_from_another_start_promise_nothing():
    problem = curved(0.1)
    plan = ss.plan(problem, 2.0, regime="restarts", proved=True)
    again = ss.Plan.from_dict(json.loads(json.dumps(plan.to_dict())))
    assert ss.run(problem, again).expected_gap == plan.bound == 2.0
    far = (np.full(4, 1e3), np.full(4, 1e3))
    assert ss.run(problem, again, start=far).expected_gap == np.inf


@pytest.mark.parametrize("X", [None, D.Box(-3.0, 3.0, shape=4)], ids=["free", "box"])
def test_every_exact_gradient_is_counted(X):
    problem, taken = counted(curved(X=X))
    result = ss.solve(problem, 2e-2, rng=1)
    # Value and gradient at one point are one call, a value alone is one of its own.
    # The start is judged while the first plan is made.
    exact = result.certificate_calls.f + result.aside.f
    assert 0 < taken["gradients"] <= taken["values"] <= exact <= taken["gradients"] + taken["values"]


def test_without_exact_gradients_a_declared_start_gives_a_bound_in_expectation():
    base = curved(0.1)
    f = F.Custom(sample=base.f.sample, variance=0.01, smoothness=ss.Holder(1.0, 1.0), strong_convexity=1.0)
    problem = ss.SaddleProblem(f=f, g=base.g, B=base.coupling, X=base.X, Y=base.Y)
    with pytest.raises(InputError, match=r"declared as Psi0= of ss\.plan"):
        ss.solve(problem, 2.0)
    result = ss.run(problem, ss.plan(problem, 2.0, Psi0=30.0, proved=True))
    assert result.status is ss.Status.EXPECTED and result.expected_gap == 2.0


def test_a_sampled_function_is_never_simple():
    problem = curved(X=D.Box(-3.0, 3.0, shape=4))
    with pytest.raises(InputError, match="whose gradients are sampled"):
        ss.plan(problem, 0.1, regime="degenerate", simple=("f",))
    with pytest.raises(InputError, match="method is 'adaptive'; expected 'auto'"):
        ss.plan(problem, 0.1, regime="adaptive")
