"""A run that is stopped and resumed has the bits of one that never stopped."""

import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import saddleslide as ss
import small_problems
from planted import planted
from saddleslide.cli.main import main
from saddleslide.facts.facts import Facts
from saddleslide.kernels.switch import jit
from saddleslide.oracles.oracles import Oracles
from small_problems import bits, noisy, problems
from support import gathered, posix

PROBLEMS = problems()
# Each method on problems that it can take.
METHODS = {
    "mirror-prox": "free", "pdhg": "game", "condat-vu": "least squares", "admm": "least squares",
    "opapc": "least squares", "l-bfgs": "simple", "apdg": "free", "gradient-sliding": "least squares",
    "universal-primal-dual": "game", "accelerated-mirror-prox": "costly g", "mirror-prox-sliding": "costly g",
    "universal-mirror-prox": "custom", "recursive-sliding": "custom", "proved-sliding": "free",
    "parameter-free-sliding": "custom", "two-level-sliding": "custom", "lockstep": "custom",
    "accelerated-gradient": "simple", "universal-gradient": "game", "uapd": "least squares",
    "interior-point": "game", "bundle": "costly g", "krylov": "free",
}  # fmt: skip
# Plans of theorems grow with the accuracy.
ROUGH = {"proved-sliding": 0.1, "gradient-sliding": 0.1}


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


@pytest.mark.parametrize("target", ["tol", "reduction"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_adaptive_runs_resume_to_the_same_bits(name, target, tmp_path):
    problem = PROBLEMS[name]

    def start(**control):
        return ss.solve(problem, method="adaptive", max_steps=20, **{target: 1e-5}, **control)

    assert check(start, problem, tmp_path / "run.npz", (1, 2, 5, 12))


@pytest.mark.parametrize("name", METHODS)
def test_methods_resume_to_the_same_bits(name, tmp_path):
    problem = PROBLEMS[METHODS[name]]

    def start(**control):
        return ss.solve(problem, ROUGH.get(name, 1e-3), method=name, max_steps=10, **control)

    assert set(METHODS) == set(ss.methods.by_name)
    assert check(start, problem, tmp_path / "run.npz", (1, 3, 7))


def choices():
    """Every word that a method may be told in place of its default, and every metric of adaptive sliding."""
    picture = ss.gallery.denoise(np.random.default_rng(2).random((5, 6)), 0.1, huber=0.05)
    small = [*(p for p in PROBLEMS.values() if p.X.size < 10), picture]
    for name, member in ss.methods.by_name.items():
        for option in member.options():
            for word in set(option.choices) - {option.default}:
                method = member(**{option.name: word})
                fitting = next(p for p in small if not method.lacks(Facts(p)))
                yield f"{name}, {option.name}={word}", fitting, {"method": method}
    given = ss.metrics.Diagonal(np.arange(1.0, 7.0))
    for name, metric in (("costly g", "diagonal"), ("costly g", given), ("image", "spectral"), ("image", "fft")):
        yield f"adaptive, {metric}", PROBLEMS[name], {"method": "adaptive", "metric": metric}


@gathered("name, problem, asked", sorted(choices(), key=lambda case: case[0]), ids=lambda part: str(part)[:40])
def test_every_choice_of_a_setting_resumes_to_the_same_bits(name, problem, asked, tmp_path):
    def start(**control):
        return ss.solve(problem, ROUGH.get(name.partition(",")[0], 1e-3), max_steps=8, **asked, **control)

    assert check(start, problem, tmp_path / "run.npz", (1, 3))


def test_a_plan_that_was_chosen_resumes_to_the_same_bits_whatever_method_it_names(tmp_path):
    methods = set()
    for seed in range(12):

        def start(seed=seed, **control):
            # Of its own, since a problem keeps the norms that were bounded.
            problem, costs = planted(seed, largest=16).problem, (1.0, 1.0, (1.0, 100.0)[seed % 2])
            return ss.solve(problem, reduction=1e-4, costs=costs, max_steps=12, **control)

        if check(start, planted(seed, largest=16).problem, tmp_path / "run.npz", (1, 4, 9)):
            methods |= {plan.method for plan in start().plans}
    assert methods == {"adaptive sliding", "restarted primal-dual"}


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
    plan = ss.plan(problem, 1e-2, regime="restarts", anchors=anchors)
    assert (plan.schedule.stages[0].beta_x > 0.0 or plan.schedule.stages[0].beta_y > 0.0) is anchors
    first = plan.schedule.stages[0].levels[0].T
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


def test_an_objective_is_taken_up_again_as_it_was_written(tmp_path):
    F, path, rng = ss.functions, tmp_path / "run.npz", np.random.default_rng(0)
    lasso, over = F.LeastSquares(rng.standard_normal((9, 5)), np.ones(9)) + 0.5 * F.L1(), ss.domains.Box(0.0, 1.0, 5)
    clean = ss.minimize(lasso, 1e-6, over=over, method="adaptive")
    ss.minimize(lasso, 1e-6, over=over, method="adaptive", max_steps=1, checkpoint=path)
    again = ss.resume(path, lasso, over=over, max_steps=999)
    assert bits(again) == bits(clean) and again.objective == clean.objective == lasso.value(again.x)
    with pytest.raises(ss.errors.CheckpointError, match="belongs to another problem"):
        ss.resume(path, lasso)
    with pytest.raises(ss.errors.InputError, match=r"^resume: over and dtype belong to an objective"):
        ss.resume(path, clean.problem, over=over)
    with pytest.raises(ss.errors.InputError, match=r"^resume: problem is int; expected the SaddleProblem or the obj"):
        ss.resume(path, 3)


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
def told(result):
    if result.nit == {step}:
        print("now", flush=True)
        time.sleep(3600)
ss.solve(problems()["costly g"], 1e-9, method="adaptive", checkpoint={path!r}, checkpoint_every=1, callback=told)
"""


@posix
@pytest.mark.parametrize("step", [2, 7])
def test_a_run_killed_by_the_system_goes_on(step, tmp_path):
    path, problem = tmp_path / "run.npz", PROBLEMS["costly g"]
    script = textwrap.dedent(SCRIPT.format(tests=os.path.dirname(small_problems.__file__), path=str(path), step=step))
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "now\n"
        child.send_signal(signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL
    assert bits(ss.resume(path, problem)) == bits(ss.solve(problem, 1e-9, method="adaptive"))
    assert [file.name for file in tmp_path.iterdir() if not file.name.endswith(".part")] == ["run.npz"]


@pytest.mark.parametrize("name", ["costly g", "custom", "game"])
def test_limits_of_zero_return_the_start_with_its_true_bounds(name):
    problem = PROBLEMS[name]
    plan = ss.plan(problem, order="fgB", loops=(3, 2, 2))
    value = ss.solve(problem, 1e-9, method="adaptive")
    for control in ({"max_steps": 0}, {"max_calls": {"B": 0}}, {"time_limit": 0.0}):
        for result in (
            ss.solve(problem, 1e-9, method="adaptive", **control),
            ss.solve(problem, 1e-9, method="universal-mirror-prox", **control),
            ss.run(problem, plan, **control),
        ):
            assert result.status.name in ("STEP_LIMIT", "CALL_LIMIT", "TIME_LIMIT") and not result.success
            assert result.nit == 0
            np.testing.assert_array_equal(result.x, problem.start()[0])
            assert result.lower <= value.upper and result.upper >= value.lower and np.isfinite(result.gap)


def test_time_limits_are_kept_with_the_result_and_looked_at_inside_steps():
    problem = PROBLEMS["custom"]
    seen = []

    def slow(x):
        seen.append(1)
        time.sleep(0.02)
        return x**3 + x

    f = ss.functions.Custom(slow, lambda x: float((x**4 / 4 + x**2 / 2).sum()), ss.Holder(1.0, 4.0))
    slowed = ss.SaddleProblem(f=f, g=problem.g, B=problem.B, X=problem.X, Y=problem.Y)
    plan = ss.plan(slowed, order="Bgf", loops=(2, 5, 500))
    result = ss.run(slowed, plan, time_limit=0.2)
    assert result.status is ss.Status.TIME_LIMIT and result.time_limit == 0.2
    assert len(seen) <= 60


def test_a_budget_of_calls_is_never_passed_by_the_method():
    problem = PROBLEMS["custom"]
    plan = ss.plan(problem, order="fgB", loops=(5, 7, 9))
    for name, limit in (("f", 3), ("g", 20), ("B", 333)):
        result = ss.run(problem, plan, max_calls={name: limit})
        assert result.status is ss.Status.CALL_LIMIT and getattr(result.method_calls, name) <= limit


@pytest.mark.parametrize("method", ["adaptive", "auto", "mirror-prox", "universal-mirror-prox", "pdhg"])
def test_no_limit_is_passed_by_a_single_call_of_the_callables(method):
    """Certificates included; what the callables saw is counted by themselves."""
    rng = np.random.default_rng(2)
    B = rng.standard_normal((4, 5))
    A = rng.standard_normal((6, 5))
    seen = dict.fromkeys("fgB", 0)

    def counting(name, call):
        def counted(v):
            seen[name] += 1
            return call(v)

        return counted

    f = ss.functions.Custom(
        counting("f", lambda x: A.T @ (A @ x) + x**3 - 1.0),
        lambda x: float((A @ x) @ (A @ x) / 2 + (x**4).sum() / 4 - x.sum()),
        ss.Holder(1.0, 60.0),
    )
    g = ss.functions.Custom(
        counting("g", lambda y: y + y**3), lambda y: float((y**2 / 2 + y**4 / 4).sum()), ss.Holder(1.0, 4.0)
    )
    pair = counting("B", lambda x: B @ x), counting("B", lambda y: B.T @ y)
    coupling = ss.operators.as_operator(pair, (5,), (4,), norm=float(np.linalg.norm(B, 2)))
    box, small = ss.domains.Box(-1.0, 1.0, shape=5), ss.domains.Box(-1.0, 1.0, shape=4)
    if method == "pdhg":
        f, g = ss.functions.Quadratic(0.01) + ss.functions.Linear(rng.standard_normal(5)), ss.functions.Huber(0.5)
    problem = ss.SaddleProblem(f=f, g=g, B=coupling, X=box, Y=small)
    for name in "B" if method == "pdhg" else "fgB":
        for limit in (7, 23, 24.5, 61, 140):
            seen.update(f=0, g=0, B=0)
            result = ss.solve(problem, 1e-12, method=method, max_calls={name: limit})
            if result.nit > 0:
                assert getattr(result.calls, name) <= limit and seen[name] <= limit, (name, limit, result.calls, seen)
            assert seen["B"] == result.calls.B and seen["f"] <= result.calls.f and seen["g"] <= result.calls.g
            assert result.lower <= result.upper and result.status is not ss.Status.SOLVED


def test_compiled_loops_are_cut_into_pieces_with_the_same_bits(monkeypatch):
    problem = PROBLEMS["game"]
    plan = ss.plan(problem, order="fgB", loops=(2, 1, 50))
    whole = ss.run(problem, plan)
    monkeypatch.setattr("saddleslide.methods.sliding.innermost._MOST_ENTRIES", 200)
    assert bits(ss.run(problem, plan)) == bits(whole)
    limited = ss.run(problem, plan, max_calls={"B": 120})
    assert limited.status is ss.Status.CALL_LIMIT and 100 <= limited.method_calls.B <= 120


def test_strict_raises_with_the_result():
    problem = PROBLEMS["game"]
    with pytest.raises(ss.errors.OutcomeError, match="STEP_LIMIT: The limit on steps") as caught:
        ss.solve(problem, 1e-9, max_steps=1, strict=True)
    assert caught.value.result.nit == 1
    missed = ss.plan(problem, 1e-9, order="fgB", loops=(1, 1, 2))
    assert ss.run(problem, missed).success is False
    with pytest.raises(ss.errors.OutcomeError, match="COMPLETED"):
        ss.run(problem, missed, strict=True)
    assert ss.run(problem, ss.plan(problem, order="fgB", loops=(1, 1, 2)), strict=True).success


def test_eight_threads_get_the_bits_of_one():
    names = ("least squares", "costly g", "game", "custom")
    serial = [bits(ss.solve(PROBLEMS[name], 1e-5, method="adaptive")) for name in names]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda name: bits(ss.solve(PROBLEMS[name], 1e-5, method="adaptive")), names * 4))
    assert together == serial * 4


def test_ctrl_c_while_compiled_loops_run(monkeypatch):
    """A real signal, sent from another thread after the first piece of a loop has begun."""
    problem, products = PROBLEMS["game"], Oracles.products
    plan = ss.plan(problem, order="fgB", loops=(1, 1, 3_000_000))
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))

    def watched(self, *given):
        if not timer.ident:
            timer.start()
        products(self, *given)

    monkeypatch.setattr(Oracles, "products", watched)
    with jit(True):
        result = ss.run(problem, plan, on_interrupt="return")
    timer.join()
    assert result.status is ss.Status.INTERRUPTED and np.isfinite(result.gap)
    assert 0 < result.calls.B < 12_000_000


def test_the_command_line_leaves_a_checkpoint_and_exits_with_130(tmp_path, monkeypatch, capsys):
    path, arguments = tmp_path / "run.npz", ["solve", "tomography", "--size", "16", "--reduction", "1e-4"]
    assert main(arguments) == 0
    clean = capsys.readouterr().out
    with monkeypatch.context() as patch:
        patch.setattr("saddleslide.runs.progress.Progress.__call__", interrupting(1))
        assert main([*arguments, "--checkpoint", str(path)]) == 130
    assert "--resume" in capsys.readouterr().err
    assert main([*arguments, "--checkpoint", str(path), "--resume"]) == 0
    after = capsys.readouterr().out

    def numbers(text):
        return [line for line in text.splitlines() if "seconds" not in line]

    assert numbers(after) == numbers(clean)
    assert main([*arguments, "--resume"]) == 2


def interrupting(step):
    calls = itertools.count(1)

    def shown(self, result):
        if next(calls) == step:
            raise KeyboardInterrupt

    return shown
