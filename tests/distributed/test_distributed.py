"""f on a cluster: the bits of one process, whatever the workers do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import saddleslide as ss
from remote_parts import PARTS, SIZE, Broken, Doomed, Own, Rows, Sleeper, answer, parts, problem_with
from saddleslide.distributed import shared_memory
from saddleslide.distributed.dask_sum import level, place
from saddleslide.functions.parts import whole_blocks
from support import gathered, need

DaskSum, PartSum = ss.distributed.DaskSum, ss.functions.PartSum


@pytest.fixture(scope="module")
def _elastic():
    need("distributed")
    with ss.distributed.local(workers=1) as made:
        yield made


@pytest.fixture
def sized(_elastic):
    """A cluster that is brought to any number of workers."""

    def of(workers):
        _elastic.cluster.scale(workers)
        _until(lambda: len(_elastic.scheduler_info()["workers"]) == workers)
        return _elastic

    return of


def test_placement_covers_all_parts_evenly_and_in_few_blocks():
    for count in (1, 5, 8, 13, 64):
        for workers in (1, 2, 3, 4, 7):
            names = [f"w{k}" for k in range(workers)]
            held = place(count, names)
            assert sorted(i for parts in held.values() for i in parts) == list(range(count))
            assert max(map(len, held.values())) <= 2 * -(-count // workers)
            # A worker comes, a worker goes: nothing is lost, little is moved.
            more = level(count, held, [*names, "new"])
            assert sorted(i for parts in more.values() for i in parts) == list(range(count))
            assert max(map(len, more.values())) <= max(1, -(-count // (workers + 1))) * 2
            moved = sum(len(set(more[name]) - set(held[name])) for name in names)
            assert moved <= count // 2
            if workers > 1:
                less = place(count, names[1:], {name: held[name] for name in names[1:]})
                assert sorted(i for parts in less.values() for i in parts) == list(range(count))
                assert all(set(held[name]) <= set(less[name]) for name in names[1:])
    assert [len(whole_blocks(64, held)) for held in place(64, ["a", "b", "c", "d"]).values()] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "options", [{}, {"shared": False}, {"shared": False, "fan": 1}], ids=["shared", "far", "relay"]
)
@pytest.mark.parametrize("combine", ["sum", "mean"])
def test_every_answer_has_the_bits_of_one_process(client, options, combine):
    twin = PartSum(parts(), combine)
    x = np.random.default_rng(1).standard_normal(SIZE)
    box = ss.domains.Box(-1.0, 1.0, shape=SIZE)
    with DaskSum(client, parts(), combine, **options) as f:
        for point in (x, 1e6 * x):
            # A value alone may be summed in another order than one beside its gradient: each question for itself.
            (value, gradient), (same_value, same_gradient) = f.value_and_gradient(point), twin.value_and_gradient(point)
            assert value == same_value and f.value(point) == twin.value(point)
            assert gradient.tobytes() == same_gradient.tobytes()
            assert f.gradient(point).tobytes() == twin.gradient(point).tobytes()
            assert f.hessian_product(point).tobytes() == twin.hessian_product(point).tobytes()
            assert f.value_and_magnitude(point) == twin.value_and_magnitude(point)
        out = np.empty(SIZE)
        assert f.gradient(x, out) is out and out.tobytes() == twin.gradient(x).tobytes()
        assert f.smoothness(box) == twin.smoothness(box)
        assert f.strong_convexity(box) == twin.strong_convexity(box)
        assert f.stacked_norm(box) == twin.stacked_norm(box)
        draws = [ss.functions.SampledParts(g, 3).sample(x, np.random.default_rng(4)) for g in (f, twin)]
        assert draws[0].tobytes() == draws[1].tobytes()
        counts = f.counts
        assert (counts.calls, counts.gradients, counts.values) == (12, 6, 4)
        assert counts.built == PARTS and not counts.repeats
        assert sorted(map(len, f.placement.values())) == [4, 4]


def test_a_part_alone_on_its_worker_writes_where_the_answer_is_read(client):
    rng = np.random.default_rng(5)
    A, x = rng.standard_normal((2, 20, SIZE)), rng.standard_normal((3, 4))
    poisson = partial(ss.functions.PoissonTransmission, intensity=9.0, attenuation=0.5)
    for kind in (ss.functions.LeastSquares, ss.functions.Logistic, poisson):
        data = np.where(rng.random(20) < 0.5, 0.0, 1.0)
        made = [kind(abs(one), data, ridge=0.1, x_shape=(3, 4)) for one in A]
        with DaskSum(client, made) as f:
            twin = PartSum(made)
            for _ in range(2):
                value, gradient = f.value_and_gradient(x)
                assert (value, gradient.tobytes()) == (twin.value(x), twin.gradient(x).tobytes())
                assert f.gradient(-x).tobytes() == twin.gradient(-x).tobytes()
            # What was handed out before stays as it was.
            assert gradient.tobytes() == twin.gradient(x).tobytes()


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_runs_have_the_bits_of_one_process_and_the_calls_of_the_plan(sized, workers):
    here = problem_with(PartSum(parts("logistic")))
    plan = ss.plan(here, order="fgB", loops=(6, 1, 3), metric="identity")
    with DaskSum(sized(workers), parts("logistic")) as f:
        there = problem_with(f)
        assert len(f.placement) == workers
        before = f.counts
        result = ss.run(there, plan)
        after = f.counts
        assert answer(result) == answer(ss.run(here, plan))
        # What the plan says, what the run counted, and what the workers saw.
        assert result.method_calls.f == plan.predicted_calls["f"] == 6
        values = after.values - before.values
        assert after.gradients - before.gradients + 0.5 * values == result.calls.f and values > 0
        solved = ss.solve(there, 1e-6)
        assert solved.success and solved.gap <= 1e-6
        assert answer(solved) == answer(ss.solve(here, 1e-6))
        assert ss.certify(here, solved.x, solved.y).gap <= 1e-6
        assert f.counts.waiting > f.counts.computing > 0.0


def test_bytes_are_counted(client):
    x = np.ones(SIZE)
    with DaskSum(client, parts(), shared=False) as f:
        f.gradient(x)
        # Two workers, each with one block of four parts: x there, a gradient back.
        assert (f.counts.bytes_sent, f.counts.bytes_received, f.counts.bytes_moved) == (192, 192, 384)
        f.value(x)
        assert (f.counts.bytes_sent, f.counts.bytes_received) == (384, 192)
    with DaskSum(client, parts(), shared=False, fan=1) as f:
        f.gradient(x)
        # x goes to one worker, which passes it on; both gradients are added there.
        assert (f.counts.bytes_sent, f.counts.bytes_passed, f.counts.bytes_received) == (96, 192, 96)
    with DaskSum(client, parts()) as f:
        f.gradient(x)
        assert (f.counts.bytes_shared, f.counts.bytes_moved) == (288, 288)


def test_sampling_asks_only_workers_that_hold_a_drawn_part(client):
    with DaskSum(client, parts(), shared=False) as f:
        f.sum_parts("gradient", np.ones(SIZE), [1, 2])
        assert f.counts.bytes_sent == 96
        pair = [problem_with(ss.functions.SampledParts(g, 4)) for g in (f, PartSum(parts()))]
        found = [ss.run(one, ss.plan(one, order="fgB", loops=(20, 1, 2), metric="identity"), rng=3) for one in pair]
        assert answer(found[0]) == answer(found[1])
        assert found[0].samples.f == 80 and found[0].plans[0].sampled


def test_exceptions_of_parts_reach_the_caller_with_a_note(client):
    with pytest.raises(FileNotFoundError, match="shard 3") as caught:
        DaskSum(client, [*parts(), Broken("built")])
    assert "raised by part 8 of DaskSum on tcp://127.0.0.1" in caught.value.__notes__[0]
    with DaskSum(client, [*parts(), Broken("called")]) as f:
        with pytest.raises(ZeroDivisionError) as caught:
            f.gradient(np.ones(SIZE))
        assert "raised by part 8" in caught.value.__notes__[0]
        with pytest.raises(ZeroDivisionError) as caught:
            ss.solve(problem_with(f), 1e-3, method="adaptive")
        assert any("outer step" in note for note in caught.value.__notes__)
        assert f.counts.lost == 0


@pytest.mark.parametrize(("when", "words"), [("unreadable", "Picky: shard 3 has 0 rows"), ("left", "SystemExit: 3")])
def test_what_a_part_raises_never_costs_a_worker(client, when, words):
    before = client.run(os.getpid)
    with pytest.raises(RuntimeError, match=words) as caught:
        DaskSum(client, [*parts(), Broken(when)], patience=5.0)
    assert "raised by part 8" in caught.value.__notes__[0]
    assert client.run(os.getpid) == before


@pytest.mark.parametrize("options", [{}, {"shared": False}, {"shared": False, "fan": 1}, None])
def test_arrays_of_parts_are_left_alone_and_must_fit(client, options):
    def made(functions):
        return PartSum(functions) if options is None else DaskSum(client, functions, **options)

    f = made([Own(np.full(3, k)) for k in (1.0, 2.0, 3.0, 4.0)])
    for _ in range(3):
        assert f.gradient(np.ones(3)).tolist() == [10.0, 10.0, 10.0]
        # Of two parts that were drawn the first may be a sum by itself.
        assert f.sum_parts("gradient", np.ones(3), [0, 2])[1].tolist() == [4.0, 4.0, 4.0]
    with pytest.raises(ss.errors.InputError, match=r"part 1: both gave an array of shape \(1,\) .* shape \(3,\)"):
        made([Own(np.ones(3)), Own(np.ones(1))]).value_and_gradient(np.ones(3))


def test_without_room_in_shared_memory_arrays_go_in_messages(client, monkeypatch):
    x, most = np.ones(SIZE), 8 * SIZE

    def full(held, first, size):
        if size > most:
            raise OSError(28, "No space left on device")
        os.truncate(held, size)

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    twin = PartSum([ss.functions.Quadratic(1.0)] * 3)
    with DaskSum(client, [ss.functions.Quadratic(1.0)] * 3) as f:
        assert f.gradient(x[:4]).tobytes() == twin.gradient(x[:4]).tobytes() and f.counts.bytes_shared > 0
        assert f.gradient(np.ones(40)).tobytes() == twin.gradient(np.ones(40)).tobytes()
        assert f.counts.bytes_sent == 2 * 320 and not f.counts.repeats


def test_shared_memory_of_a_killed_process_is_given_back(tmp_path, monkeypatch):
    monkeypatch.setattr(shared_memory, "_MEMORY", tmp_path)
    child = (
        "import os, signal, pathlib\nfrom saddleslide.distributed import shared_memory\n"
        f"shared_memory._MEMORY = pathlib.Path({str(tmp_path)!r})\n"
        "box = shared_memory.SharedArrays()\nbox.path('x', 1, 3)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(ss.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", child], env=environment, check=False, timeout=600)
    assert len(list(tmp_path.iterdir())) == 1
    first = shared_memory.SharedArrays()
    assert [str(path) for path in tmp_path.iterdir()] == [first.folder]
    # The box of a process that lives stays.
    second = shared_memory.SharedArrays()
    assert sorted(map(str, tmp_path.iterdir())) == sorted([first.folder, second.folder])
    first.close()
    second.close()
    assert not list(tmp_path.iterdir())


def test_a_sum_without_a_shape_takes_points_of_any(client):
    with DaskSum(client, [ss.functions.Quadratic(1.0)] * 3) as f:
        for shape in (2, 3, 1, (2, 2), 2):
            assert (f.gradient(np.ones(shape)) == np.full(shape, 3.0)).all()


@gathered(
    ("make", "words"),
    [
        (lambda client: DaskSum("tcp://127.0.0.1:8786", parts()), "client is 'tcp.*expected a distributed.Client"),
        (lambda client: DaskSum(client, []), "received no parts"),
        (lambda client: DaskSum(client, [3, *parts()]), "part 0 is int; expected a callable"),
        (lambda client: DaskSum(client, parts(), fan=0), "fan is 0; expected a whole number >= 1"),
        (lambda client: DaskSum(client, parts(), patience=-1.0), "patience is -1.0; expected"),
        (lambda client: DaskSum(client, [*parts(), ss.functions.Linear([1.0])]), "expected one shape"),
        (lambda client: ss.distributed.local(workers=1.5), "workers is 1.5"),
        (lambda client: ss.distributed.connect(""), "address is ''"),
    ],
)
def test_bad_input_is_refused_before_any_work(client, make, words):
    with pytest.raises(ss.errors.InputError, match=words):
        make(client)


def test_a_dear_gradient_is_called_less_often():
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.standard_normal((SIZE, SIZE)))[0] for _ in range(2))
    problem = ss.SaddleProblem(
        f=PartSum(parts("logistic")),
        g=ss.functions.Linear(rng.standard_normal(SIZE)),
        B=10.0 * (U * np.geomspace(1.0, 0.1, SIZE)) @ V,
        X=ss.domains.FullSpace(SIZE),
        Y=ss.domains.Box(-5.0, 5.0, shape=SIZE),
    )
    near, far = (ss.solve(problem, 1e-5, costs=(price, 1.0, 1.0)) for price in (1.0, 1000.0))
    assert near.success and far.success
    # Measured: 119 and 25 calls of f'.
    assert far.calls.f < 0.5 * near.calls.f
    assert far.plans[-1].settings["inner_steps"] > near.plans[-1].settings["inner_steps"]


def test_measured_costs_see_the_way_to_the_workers(client):
    # The least of a few: on a busy machine any one may have waited for the processor.
    near = problem_with(PartSum(parts()))
    here = min((ss.plan(near, 1e-3, regime="adaptive", costs="measure") for _ in range(5)), key=lambda p: p.costs[0])
    with DaskSum(client, parts()) as f:
        there = ss.plan(problem_with(f), 1e-3, regime="adaptive", costs="measure")
    assert there.costs[0] > 3.0 * here.costs[0]
    assert there.settings["inner_steps"] > here.settings["inner_steps"]


def test_a_worker_killed_in_the_middle_of_a_call_costs_a_repetition_and_no_bit(client, tmp_path):
    memory = str(tmp_path / "killed")
    doomed = [Doomed(Rows(i, "logistic"), 9 if i == 5 else -1, memory) for i in range(PARTS)]
    with DaskSum(client, doomed) as f:
        result = ss.solve(problem_with(f), 1e-6)
        counts = f.counts
    assert os.path.exists(memory)
    twin = PartSum([Doomed(Rows(i, "logistic"), -1, memory) for i in range(PARTS)])
    assert result.success and answer(result) == answer(ss.solve(problem_with(twin), 1e-6))
    (again,) = counts.repeats
    assert 5 in again.parts and again.reason == "lost" and counts.repeated_calls == (again.call,)
    assert counts.lost == 1 and counts.built >= PARTS + len(again.parts)
    # The worker's nanny starts another one, for the tests below.
    client.wait_for_workers(2, timeout=600)


def test_workers_may_come_and_go_between_calls(sized):
    twin, x = PartSum(parts()), np.linspace(-1.0, 1.0, SIZE)
    with DaskSum(sized(1), parts()) as f:
        expected = twin.gradient(x).tobytes()
        assert f.gradient(x).tobytes() == expected
        sized(2)
        _until(lambda: f.gradient(x).tobytes() == expected and len(f.placement) == 2)
        assert f.counts.joined == 1 and f.counts.lost == 0 and not f.counts.repeats
        assert max(map(len, f.placement.values())) <= 4
        sized(1)
        _until(lambda: f.gradient(x).tobytes() == expected and len(f.placement) == 1)
        assert [len(held) for held in f.placement.values()] == [PARTS]


def test_a_slow_worker_is_given_up_and_its_late_answer_does_no_harm(client, tmp_path):
    memory = str(tmp_path / "slow")
    slow = [Sleeper(Rows(0), 12.0, memory), *parts()[1:]]
    x = np.ones(SIZE)
    with DaskSum(client, slow, patience=1.0) as f:
        assert f.gradient(x).tobytes() == PartSum(parts()).gradient(x).tobytes()
        (again,) = f.counts.repeats
        assert again.reason == "slow" and 0 in again.parts
        assert len(f.placement) == 1
        assert f.gradient(2.0 * x).tobytes() == PartSum(parts()).gradient(2.0 * x).tobytes()


def test_the_last_worker_is_waited_for(sized, tmp_path):
    memory, x = str(tmp_path / "slow"), np.ones(SIZE)
    with DaskSum(sized(1), [Sleeper(Rows(0), 1.5, memory)], patience=0.5) as f:
        assert f.gradient(x).tobytes() == Rows(0)().gradient(x).tobytes()
        assert not f.counts.repeats
    # Killed with nobody to take over: its nanny starts another one.
    with DaskSum(sized(1), parts(), patience=120.0) as f:
        (pid,) = sized(1).run(os.getpid).values()
        os.kill(pid, signal.SIGKILL)
        assert f.gradient(x).tobytes() == PartSum(parts()).gradient(x).tobytes()


def _until(condition, seconds=600.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.2)
