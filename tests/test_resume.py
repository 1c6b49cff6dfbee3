"""A run that is stopped and resumed has the bits of one that never stopped."""

import itertools
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import saddleslide as ss
from small_problems import bits, noisy, problems

PROBLEMS = problems()
# Each method on problems that it can take.
METHODS = {
    "mirror-prox": "free", "pdhg": "game", "condat-vu": "least squares", "admm": "least squares",
    "opapc": "least squares", "l-bfgs": "simple", "apdg": "free", "gradient-sliding": "least squares",
    "universal-primal-dual": "game", "accelerated-mirror-prox": "costly g", "mirror-prox-sliding": "costly g",
    "universal-mirror-prox": "custom", "recursive-sliding": "custom", "two-level-sliding": "custom",
    "lockstep": "custom", "accelerated-gradient": "simple", "universal-gradient": "game",
}  # fmt: skip


class Killed(BaseException):
    """Nothing in the package knows it: it ends a run as abruptly as a signal would."""


def killer(step):
    calls = itertools.count(1)

    def callback(result):
        if next(calls) == step:
            raise Killed

    return callback


def check(start, problem, path, steps):
    """Kill at the given steps, resume, and compare with a clean run; returns how often it was killed."""
    clean, killed = start(), 0
    for step in steps:
        if step > len(clean.history):
            break
        with pytest.raises(Killed):
            start(checkpoint=path, checkpoint_every=1, callback=killer(step))
        assert bits(ss.resume(path, problem)) == bits(clean)
        killed += 1
    return killed


@pytest.mark.parametrize("target", ["tol", "rtol"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_adaptive_runs_resume_to_the_same_bits(name, target, tmp_path):
    problem = PROBLEMS[name]

    def start(**control):
        return ss.solve(problem, method="adaptive", max_steps=60, **{target: 1e-5}, **control)

    assert check(start, problem, tmp_path / "run.npz", (1, 2, 5, 12))


@pytest.mark.parametrize("name", METHODS)
def test_methods_resume_to_the_same_bits(name, tmp_path):
    problem = PROBLEMS[METHODS[name]]

    def start(**control):
        return ss.solve(problem, 1e-3, method=name, max_steps=25, **control)

    assert set(METHODS) == set(ss.methods)
    assert check(start, problem, tmp_path / "run.npz", (1, 3, 7))


@pytest.mark.parametrize("name", ["least squares", "costly g", "custom", "game"])
@pytest.mark.parametrize("loops", [(6, 3, 5), (3, 1, 1)])
def test_fixed_plans_resume_to_the_same_bits(name, loops, tmp_path):
    problem = PROBLEMS[name]
    plan = ss.plan(problem, order="gfB" if loops[0] == 3 else "fgB", loops=loops)
    assert check(lambda **c: ss.run(problem, plan, **c), problem, tmp_path / "run.npz", (1, 2, 5))


@pytest.mark.parametrize("anchors", [False, True])
def test_runs_resume_in_the_middle_of_restarts(anchors, tmp_path):
    problem, functions, whole = PROBLEMS["free"], ss.functions, ss.domains.FullSpace(2)
    if anchors:
        f, g = (functions.Quadratic(np.diag([1.0, 3.0])) + functions.Linear(np.array(c)) for c in ([1, 2], [2, 1]))
        problem = ss.SaddleProblem(f=f, g=g, B=0.5 * np.eye(2), X=whole, Y=whole)
    plan = ss.plan(problem, 1e-4, regime="restarts", anchors=anchors)
    assert (plan.stages[0].beta_x > 0.0 or plan.stages[0].beta_y > 0.0) is anchors
    assert isinstance(plan, ss.RestartPlan)
    first = plan.stages[0].levels[0].T
    clean = ss.run(problem, plan)
    assert clean.nit > first + 1
    steps = (1, first, first + 1, clean.nit - 1)
    assert check(lambda **c: ss.run(problem, plan, **c), problem, tmp_path / "run.npz", steps) == 4


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937, np.random.Philox])
def test_sampled_runs_resume_with_the_same_draws(kind, tmp_path):
    problem = noisy()
    plan = ss.plan(problem, 0.3)

    def start(**control):
        return ss.run(problem, plan, rng=np.random.Generator(kind(7)), **control)

    assert check(start, problem, tmp_path / "run.npz", (1, 3))


def test_sampled_solves_resume_between_and_inside_plans(tmp_path):
    problem = noisy()

    def start(**control):
        return ss.solve(problem, 0.05, rng=5, max_steps=300, **control)

    assert check(start, problem, tmp_path / "run.npz", (1, 3, 5)) == 3


def test_a_limit_can_be_raised_after_the_fact(tmp_path):
    problem, path = PROBLEMS["costly g"], tmp_path / "run.npz"
    clean = ss.solve(problem, 1e-6, method="adaptive")
    part = ss.solve(problem, 1e-6, method="adaptive", max_steps=3, checkpoint=path)
    assert (part.status, part.nit) == (ss.Status.STEP_LIMIT, 3)
    part = ss.resume(path, problem, max_steps=5)
    assert (part.status, part.nit) == (ss.Status.STEP_LIMIT, 5)
    assert bits(ss.resume(path, problem, max_steps=10_000)) == bits(clean)


def test_auto_counts_what_its_choice_looked_at_once(tmp_path):
    problem, path = PROBLEMS["costly g"], tmp_path / "run.npz"
    clean = ss.solve(problem, 1e-4)
    ss.solve(problem, 1e-4, max_steps=2, checkpoint=path)
    assert bits(ss.resume(path, problem, max_steps=100_000)) == bits(clean)


def test_resuming_calls_no_oracle_before_the_first_step(tmp_path):
    path, calls = tmp_path / "run.npz", itertools.count()

    def gradient(x):
        next(calls)
        return x**3 + x

    f = ss.functions.Custom(gradient, lambda x: float((x**4 / 4 + x**2 / 2).sum()), ss.Holder(1.0, 4.0))
    box = ss.domains.Box(-1.0, 1.0, shape=4)
    problem = ss.SaddleProblem(f=f, g=ss.functions.Huber(0.5), B=np.eye(4) - 0.3, X=box, Y=box)
    start = (np.full(4, 0.9), np.full(4, -0.9))
    ss.solve(problem, 1e-9, method="adaptive", max_steps=2, checkpoint=path, start=start)
    before = next(calls)
    assert ss.resume(path, problem).status is ss.Status.STEP_LIMIT
    assert next(calls) == before + 1


SCRIPT = """
import sys, time, saddleslide as ss
sys.path.insert(0, {tests!r})
from small_problems import problems
def slow(result):
    print(result.nit, flush=True)
    time.sleep(0.02)
ss.solve(problems()["costly g"], 1e-9, method="adaptive", checkpoint={path!r}, checkpoint_every=1, callback=slow)
"""


@pytest.mark.parametrize("step", [2, 7])
def test_a_run_killed_by_the_system_goes_on(step, tmp_path):
    path, problem = tmp_path / "run.npz", PROBLEMS["costly g"]
    script = textwrap.dedent(SCRIPT.format(tests=os.path.dirname(__file__), path=str(path)))
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as child:
        for line in child.stdout:
            if int(line) >= step:
                child.send_signal(signal.SIGKILL)
                break
    assert bits(ss.resume(path, problem)) == bits(ss.solve(problem, 1e-9, method="adaptive"))
    assert [file.name for file in tmp_path.iterdir() if not file.name.endswith(".part")] == ["run.npz"]
