"""On a cluster: shards, matrices in blocks, agents, the command line, and a scheduler that is gone."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import saddleslide as ss
from remote_parts import SIZE, Own, Rows, answer, parts, problem_with
from saddleslide.cli.main import main
from saddleslide.distributed import cluster
from saddleslide.distributed.shards import row_blocks
from saddleslide.runs.checkpoint import fingerprint
from support import gathered, need

TESTS = str(Path(__file__).parents[1] / "helpers")


def shards(folder, count=8):
    """A logistic regression of 160 rows in files."""
    rng = np.random.default_rng(11)
    A, labels = rng.standard_normal((160, SIZE)), np.where(rng.random(160) < 0.5, -1.0, 1.0)
    length = 160 // count
    for k in range(count):
        rows = slice(k * length, (k + 1) * length)
        np.savez(folder / f"shard{k}.npz", A=A[rows], labels=labels[rows])
        np.save(folder / f"shard{k}.npy", A[rows])
    np.save(folder / "all.npy", A)
    return A, labels


def test_shards_are_read_on_the_workers(client, tmp_path):
    A, labels = shards(tmp_path)
    make = partial(ss.functions.Logistic, ridge=0.01)
    loaders = [ss.distributed.Shard(tmp_path / f"shard{k}.npz", make) for k in range(8)]
    x = np.random.default_rng(0).standard_normal(SIZE)
    with ss.distributed.DaskSum(client, loaders) as f:
        whole = ss.functions.Logistic(A, labels, ridge=0.08)
        assert f.value(x) == pytest.approx(whole.value(x), rel=1e-13)
        assert np.allclose(f.gradient(x), whole.gradient(x), rtol=1e-12)
        assert f.gradient(x).tobytes() == ss.functions.PartSum(loaders).gradient(x).tobytes()
    # A block of rows of one array; an array without names.
    block = ss.distributed.Shard(tmp_path / "all.npy", _squares, rows=(20, 40))()
    assert (block.A.matrix == A[20:40]).all()
    assert ss.distributed.Shard(tmp_path / "shard3.npy", _squares)().A.matrix.shape == (20, SIZE)
    assert ss.distributed.Shard(tmp_path / "shard3.npz", make, rows=(0, 5))().A.matrix.shape == (5, SIZE)


def test_shards_of_zarr_are_read_on_the_workers(client, tmp_path):
    zarr = need("zarr")
    A, labels = shards(tmp_path)
    # One array with all rows, and one group per shard; a group may hold a number, and groups that are not asked for.
    whole = zarr.open_array(str(tmp_path / "all.zarr"), mode="w", shape=A.shape, chunks=(20, 5), dtype="f8")
    whole[:] = A
    for k in range(8):
        group = zarr.open_group(str(tmp_path / f"shard{k}.zarr"), mode="w")
        rows = slice(20 * k, 20 * (k + 1))
        for name, array in (("A", A[rows]), ("labels", labels[rows]), ("ridge", np.array(0.01))):
            group.create_array(name, data=array)
        group.create_group("notes")
    loaders = [ss.distributed.Shard(tmp_path / f"shard{k}.zarr", ss.functions.Logistic) for k in range(8)]
    make = partial(ss.functions.Logistic, ridge=0.01)
    twin = ss.functions.PartSum([ss.distributed.Shard(tmp_path / f"shard{k}.npz", make) for k in range(8)])
    x = np.random.default_rng(0).standard_normal(SIZE)
    with ss.distributed.DaskSum(client, loaders) as f:
        assert f.gradient(x).tobytes() == twin.gradient(x).tobytes()
    blocks = [ss.distributed.Shard(tmp_path / "all.zarr", _squares, rows=(20 * k, 20 * k + 20)) for k in range(8)]
    with ss.distributed.DaskSum(client, blocks) as f:
        assert f.value(x) == pytest.approx(0.5 * float(((A @ x) ** 2).sum()), rel=1e-13)
    with pytest.raises(FileNotFoundError) as caught:
        ss.distributed.DaskSum(client, [ss.distributed.Shard(tmp_path / "missing.zarr", _squares)])
    assert "part 0" in caught.value.__notes__[0]


def _squares(A):
    return ss.functions.LeastSquares(A, np.zeros(len(A)))


def test_a_checkpoint_knows_the_data_behind_the_shards(client, tmp_path):
    place, make = tmp_path / "run.npz", partial(ss.functions.Logistic, ridge=0.01)

    def problem(folder):
        loaders = [ss.distributed.Shard(folder / f"shard{k}.npz", make) for k in range(8)]
        return problem_with(ss.distributed.DaskSum(client, loaders))

    shards(tmp_path)
    first = problem(tmp_path)
    expected = ss.solve(first, 1e-6)
    assert ss.solve(first, 1e-6, max_steps=2, checkpoint=place).status is ss.Status.STEP_LIMIT
    # The same numbers in other files are the same problem; one number more or less in one file is another.
    moved = tmp_path / "moved"
    moved.mkdir()
    A, labels = shards(moved)
    assert answer(ss.resume(place, problem(moved), max_steps=1000, checkpoint=moved / "on.npz")) == answer(expected)
    A[45, 3] += 1e-9
    np.savez(moved / "shard2.npz", A=A[40:60], labels=labels[40:60])
    with pytest.raises(ss.errors.CheckpointError, match="belongs to another problem"):
        ss.resume(place, problem(moved))


def test_a_checkpoint_knows_functions_of_one_s_own_by_what_they_say(client):
    def digest(slope, name):
        one = Own(np.full(SIZE, slope))
        one.fingerprint = name
        with ss.distributed.DaskSum(client, [one, Rows(1)]) as f:
            return fingerprint(problem_with(f))

    assert digest(1.0, "week 1") == digest(1.0, "week 1") != digest(1.0, "week 2")
    agents = [ss.distributed.consensus(client, parts(loss, 6), ring(6)) for loss in ("squares", "squares", "logistic")]
    same, again, other = map(fingerprint, agents)
    assert same == again != other


def test_calls_after_the_end_are_refused(client):
    f = ss.distributed.DaskSum(client, parts())
    problem = problem_with(f)
    f.value(np.ones(SIZE))
    f.close()
    f.close()
    for call in (f.value, f.gradient, f.value_and_gradient, lambda x: ss.certify(problem, x, np.zeros(5))):
        with pytest.raises(ss.errors.InputError, match=r"DaskSum: it was closed.*Build it again"):
            call(np.ones(SIZE))
    # What is known already can still be read.
    assert f.counts.values == 1 and f.placement == {} and f.shape == (SIZE,)
    there = ss.distributed.consensus(client, parts(count=6), ring(6), bound=100.0)
    there.f.network.close()
    with pytest.raises(ss.errors.InputError, match="consensus: it was closed"):
        there.coupling.forward(np.ones((6, SIZE)))


def test_certificates_count_the_values_that_parts_were_asked_for(client):
    x, y = np.zeros(SIZE), np.zeros(5)
    with ss.distributed.DaskSum(client, parts("logistic")) as f:
        before = f.counts
        found = ss.certify(problem_with(f), x, y)
        after = f.counts
    twin = ss.certify(problem_with(ss.functions.PartSum(parts("logistic"))), x, y)
    assert (found.lower, found.upper, found.calls) == (twin.lower, twin.upper, twin.calls)
    # Values of the inner search, and one for value and size of the terms at the point: half a gradient each.
    assert after.values > before.values + 1 and after.others == before.others
    assert found.calls.f == after.gradients - before.gradients + 0.5 * (after.values - before.values)
    sampled = ss.functions.SampledParts(ss.functions.PartSum(parts("logistic")), 3)
    both = 2.0 * sampled + ss.functions.Quadratic(1.0)
    assert both.value_cost == 0.5 and both.value_and_magnitude(x + 1.0)[0] == both.value(x + 1)
    there = ss.distributed.consensus(client, parts(count=6), ring(6), bound=100.0)
    here = ss.gallery.consensus([part() for part in parts(count=6)], ring(6), bound=100.0)
    point = np.random.default_rng(1).standard_normal((6, SIZE))
    assert there.f.value_and_magnitude(point) == here.f.value_and_magnitude(point)
    assert there.f.value_cost == here.f.value_cost == 0.5
    there.f.network.close()


def test_shards_refuse_what_they_can_not_read(client, tmp_path):
    with pytest.raises(ss.errors.InputError, match=r"expected a file that ends in .npz"):
        ss.distributed.Shard(tmp_path / "shard.csv", _squares)
    with pytest.raises(ss.errors.InputError, match="make is 3"):
        ss.distributed.Shard(tmp_path / "shard.npy", 3)
    with pytest.raises(FileNotFoundError) as caught:
        ss.distributed.DaskSum(client, [ss.distributed.Shard(tmp_path / "missing.npy", _squares)])
    assert "part 0" in caught.value.__notes__[0]
    np.save(tmp_path / "object.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="Python objects"):
        ss.distributed.Shard(tmp_path / "object.npy", _squares)()
    with pytest.raises(ss.errors.MissingExtraError, match="pip install zarr"):
        _without("zarr", ss.distributed.Shard(tmp_path / "data.zarr", _squares))


def _without(module, call):
    """Call something as if a module were not installed."""
    before = sys.modules.get(module)
    sys.modules[module] = None
    try:
        return call()
    finally:
        if before is None:
            del sys.modules[module]
        else:
            sys.modules[module] = before


@gathered(
    "call",
    [
        lambda: ss.distributed.local(),
        lambda: ss.distributed.connect("tcp://127.0.0.1:8786"),
        lambda: ss.distributed.DaskSum(None, parts()),
        lambda: ss.distributed.dask_coupling(None, None),
        lambda: ss.distributed.consensus(None, parts(), np.eye(8)),
    ],
)
def test_without_dask_the_extra_is_named(call):
    with pytest.raises(ss.errors.MissingExtraError, match=r"pip install 'saddleslide\[dask\]'"):
        _without("distributed", call)


def test_rows_of_a_loss_become_parts():
    rng = np.random.default_rng(2)
    A, x = rng.standard_normal((30, 6)), rng.standard_normal(6)
    for whole in (
        ss.functions.LeastSquares(A, rng.standard_normal(30), ridge=0.3),
        ss.functions.Logistic(A, np.where(rng.random(30) < 0.5, 0, 1), ridge=0.3),
        ss.functions.PoissonTransmission(abs(A), rng.poisson(9.0, 30), intensity=20.0, attenuation=0.5, ridge=0.3),
    ):
        f = ss.functions.PartSum(row_blocks(whole, 7))
        assert f.value(x) == pytest.approx(whole.value(x), rel=1e-12)
        assert np.allclose(f.gradient(x), whole.gradient(x), rtol=1e-10)
    with pytest.raises(ss.errors.InputError, match="expected LeastSquares, Logistic or PoissonTransmission"):
        row_blocks(ss.functions.Quadratic(1.0), 2)
    with pytest.raises(ss.errors.InputError, match="from 1 to 30"):
        row_blocks(whole, 31)


def test_a_matrix_in_blocks_is_the_matrix(client):
    import dask.array as da

    rng = np.random.default_rng(6)
    matrix = rng.standard_normal((9, SIZE))
    B = ss.distributed.dask_coupling(da.from_array(matrix, chunks=((4, 3, 2), (5, 5, 2))), client)
    x, y = rng.standard_normal(SIZE), rng.standard_normal(9)
    assert np.allclose(B.forward(x), matrix @ x, rtol=1e-13)
    assert np.allclose(B.adjoint(y), matrix.T @ y, rtol=1e-13)
    out = np.empty(9)
    assert B.forward(x, out) is out
    ss.operators.check_adjoint(B)
    # The bits are those of the blocks, added in the order of the tree.
    pieces = [matrix[:4, cut] @ x[cut] for cut in (slice(0, 5), slice(5, 10), slice(10, 12))]
    assert B.forward(x)[:4].tobytes() == ((pieces[0] + pieces[1]) + pieces[2]).tobytes()
    assert B.counts.calls == 6 and B.counts.bytes_sent > 0
    problem = problem_with(ss.functions.PartSum(parts()))
    there = ss.SaddleProblem(
        f=problem.f,
        g=problem.g,
        B=ss.distributed.dask_coupling(
            da.from_array(problem.coupling.matrix, chunks=(3, 6)), client, norm=problem.coupling.norm.upper
        ),
        X=problem.X,
        Y=problem.Y,
    )
    found, expected = (ss.solve(one, 1e-2, method="adaptive") for one in (there, problem))
    assert found.success and found.calls.f == expected.calls.f
    assert np.allclose(found.x, expected.x, atol=1e-8)


@gathered(
    ("array", "words"),
    [(lambda da: np.eye(3), "expected a dask.array"), (lambda da: da.ones(3), "two dimensions")],
)
def test_dask_coupling_refuses_other_arrays(client, array, words):
    import dask.array as da

    with pytest.raises(ss.errors.InputError, match=words):
        ss.distributed.dask_coupling(array(da), client)


def ring(agents):
    around = np.roll(np.eye(agents), 1, axis=1)
    graph = around + around.T
    graph[0, agents // 2] = graph[agents // 2, 0] = 2.0
    return graph


@pytest.mark.parametrize("method", ["adaptive", "opapc"])
def test_agents_have_the_iterates_of_the_problem_in_one_process(client, method):
    local, graph = [part() for part in parts(count=6)], ring(6)
    here = ss.gallery.consensus(local, graph)
    there = ss.distributed.consensus(client, parts(count=6), graph)
    assert there.Y.radius(np.zeros(there.Y.shape)) == here.Y.radius(np.zeros(here.Y.shape))
    seen = {}
    for name, problem in (("here", here), ("there", there)):
        points = seen[name] = []
        seen[name + " result"] = ss.solve(
            problem, 0.3, method=method, callback=lambda now, points=points: points.append(now.x.copy()), max_steps=8
        )
    assert len(seen["here"]) == len(seen["there"]) > 3
    for mine, other in zip(seen["here"], seen["there"], strict=True):
        assert np.allclose(mine, other, rtol=1e-12, atol=1e-13)
    assert seen["here result"].gap == pytest.approx(seen["there result"].gap, rel=1e-9)
    assert seen["here result"].calls == seen["there result"].calls
    # Every product was an exchange; every exchange carried one vector along each of the 7 edges.
    network = there.f.network
    assert network.exchanges == seen["there result"].calls.B and network.rounds == network.exchanges / 2.0
    assert network.counts.bytes_passed == network.exchanges * 7 * SIZE * 8
    solution = there.read(seen["there result"])
    assert solution.rounds == network.rounds
    network.close()


@pytest.fixture
def own_client():
    """A cluster that no other test has killed anything of."""
    need("distributed")
    with ss.distributed.local(workers=2) as made:
        made.wait_for_workers(2, timeout=600)
        yield made


def test_an_agent_s_worker_killed_is_an_exchange_begun_anew(own_client, monkeypatch):
    client, graph = own_client, ring(6)
    there = ss.distributed.consensus(client, parts(count=6), graph, bound=100.0)
    x = np.random.default_rng(0).standard_normal((6, SIZE))
    W = ss.gallery.consensus([part() for part in parts(count=6)], graph).coupling
    expected = W.adjoint(W.forward(x))
    assert np.allclose(there.coupling.adjoint(there.coupling.forward(x)), expected)
    # Agents go where workers are known when they are placed: where that was one alone, the other has none to lose.
    homes, pids = list(there.f.network.homes.values()), client.run(os.getpid)
    killed = homes[0]
    # A scheduler may list the dead worker for a while: agents that are sent there must not be waited for.
    late = [frozenset(pids)]
    known = cluster.find_workers
    monkeypatch.setattr(cluster, "find_workers", lambda client: late.pop() if late else known(client))
    os.kill(pids[killed], signal.SIGKILL)
    # Until its process is gone it may still answer.
    with contextlib.suppress(ProcessLookupError):
        while not os.kill(pids[killed], 0):
            time.sleep(0.01)
    assert np.allclose(there.coupling.adjoint(there.coupling.forward(x)), expected)
    assert not late
    # One exchange was repeated, for the agents of that worker; the others are still the same.
    counts = there.f.counts
    (again,) = counts.repeats
    assert (again.call, again.worker, again.reason) == (counts.calls - 1, killed, "lost")
    assert len(again.parts) == homes.count(killed) and counts.built == 6 + homes.count(killed) and counts.lost == 1
    assert np.allclose(there.f.gradient(x), np.stack([part().gradient(x[i]) for i, part in enumerate(parts(count=6))]))
    there.f.network.close()
    client.wait_for_workers(2, timeout=600)


def test_a_killed_worker_s_place_is_kept_on_a_busy_machine(client):
    import dask

    # Dask's own 15 s end it for good where the next process takes longer to start, or is killed as well.
    assert dask.config.get("distributed.deploy.lost-worker-timeout") == "10 minutes"


def test_agents_refuse_weights_below_zero(client):
    W = np.array([[1.0, -1.5, 0.5], [-1.5, 3.0, -1.5], [0.5, -1.5, 1.0]])
    with pytest.raises(ss.errors.InputError, match="positive entry off the diagonal"):
        ss.distributed.consensus(client, parts(count=3), W)
    with pytest.raises(ss.errors.InputError, match="received 2 functions for 6 agents"):
        ss.distributed.consensus(client, parts(count=2), ring(6))


def test_a_problem_is_spread_as_it_is(client):
    rng = np.random.default_rng(8)
    problem = ss.gallery.lp_inverse(rng.standard_normal((40, 10)), rng.standard_normal(40), weight=1.0, p=3.0)
    there = ss.distributed.spread(problem, client, parts=5)
    found, expected = ss.solve(there, 1e-2), ss.solve(problem, 1e-6)
    assert found.success and found.lower <= expected.upper and expected.lower <= found.upper
    assert there.read(found).misfit == pytest.approx(problem.read(found).misfit)
    there.f.close()
    agents = ss.distributed.spread(ss.gallery.consensus([part() for part in parts(count=6)], ring(6)), client)
    assert ss.solve(agents, 1.0).success
    agents.f.network.close()


def test_the_command_line_takes_a_scheduler(client, capsys, tmp_path):
    address = client.scheduler.address
    assert main(["solve", "inverse", "--scheduler", address, "--parts", "4", "--tol", "1e-4"]) == 0
    out = capsys.readouterr().out
    assert "calls to workers" in out and "bytes moved" in out
    assert main(["solve", "game", "--scheduler", address]) == 2
    assert "Build its parts yourself" in capsys.readouterr().err
    assert main(["solve", "inverse", "--scheduler", "tcp://127.0.0.1:1"]) == 2
    assert "no scheduler answered" in capsys.readouterr().err
    (tmp_path / "mine.py").write_text(OWN)
    assert main(["solve", f"{tmp_path / 'mine.py'}:problem"]) == 2
    assert "expected --scheduler ADDRESS" in capsys.readouterr().err
    assert main(["solve", f"{tmp_path / 'mine.py'}:problem", "--scheduler", address]) == 0
    assert "calls to workers" in capsys.readouterr().out


OWN = f"""
import sys
sys.path.insert(0, {TESTS!r})
import saddleslide as ss
from remote_parts import parts, problem_with

def problem(client):
    return problem_with(ss.distributed.DaskSum(client, parts()))
"""


@pytest.fixture
def outside(tmp_path):
    """A scheduler and a worker in processes of their own."""
    file, path = tmp_path / "scheduler.json", os.pathsep.join([TESTS, str(Path(ss.__file__).parents[1])])
    environment = os.environ | {"PYTHONPATH": path}
    common = ["--scheduler-file", str(file), "--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"]
    scheduler = _started(["-m", "distributed.cli.dask_scheduler", *common, "--port", "0"], environment)
    end = time.monotonic() + 600.0
    while not file.exists():
        assert time.monotonic() < end
        time.sleep(0.1)
    worker = _started(["-m", "distributed.cli.dask_worker", *common, "--nthreads", "1", "--no-nanny"], environment)
    try:
        yield file, scheduler, worker
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait(timeout=300)


def _started(arguments, environment):
    command = [sys.executable, *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_a_scheduler_that_is_gone_ends_the_run_with_its_best_point_and_a_checkpoint(outside, client, tmp_path):
    file, scheduler, worker = outside
    place = tmp_path / "run.npz"
    expected = ss.solve(problem_with(ss.functions.PartSum(parts("logistic"))), 1e-9)
    with ss.distributed.connect(_address(file)) as there:
        there.wait_for_workers(1, timeout=600)
        with ss.distributed.DaskSum(there, parts("logistic"), patience=1.0) as f:
            problem = problem_with(f)

            def kill(now):
                if len(now.history) == 4:
                    for process in (scheduler, worker):
                        process.kill()
                        process.wait(timeout=300)

            result = ss.solve(problem, 1e-9, callback=kill, checkpoint=place, checkpoint_every=1)
    assert result.status is ss.Status.UNREACHABLE and not result.success
    assert len(result.history) == 4 and np.isfinite(result.gap)
    assert result.lower <= expected.upper and expected.lower <= result.upper
    assert "does not answer" in result.message
    # On another cluster, to the bits of a run that was never cut short.
    with ss.distributed.DaskSum(client, parts("logistic")) as f:
        resumed = ss.resume(place, problem_with(f))
    assert resumed.success and answer(resumed) == answer(expected)


def _address(file):
    import json

    return json.loads(file.read_text())["address"]


def cut_off(f, limit):
    """Let all calls of f fail after so many gradients; returns what undoes it."""
    seen, inner = [0], f.sum_parts

    def failing(operation, x, chosen=None):
        seen[0] += operation in ("both", "gradient")
        if seen[0] > limit:
            raise ss.errors.UnreachableError("DaskSum: the cluster is gone.")
        return inner(operation, x, chosen)

    f.sum_parts = failing
    return lambda: setattr(f, "sum_parts", inner)


def test_plans_of_the_theorems_go_back_to_the_last_judged_point():
    f = ss.functions.PartSum(parts("logistic"))
    problem = problem_with(f)
    plan = ss.plan(problem, 1e-3, regime="restarts")
    whole = ss.run(problem, plan)
    mend = cut_off(f, whole.method_calls.f - 2)
    cut = ss.run(problem, plan)
    mend()
    assert cut.status is ss.Status.UNREACHABLE
    assert np.isfinite(cut.gap)
    # The bounds are those of the point that is returned.
    again = ss.certify(problem, cut.x, cut.y)
    assert again.gap <= cut.gap * (1.0 + 1e-6) and cut.lower <= whole.upper and whole.lower <= cut.upper


@pytest.mark.parametrize(
    ("order", "X", "metric"),
    [
        ("fgB", "box", "identity"),
        ("gfB", "simplex", "identity"),
        ("fBg", "space", "identity"),
        ("gfB", "space", "spectral"),
        ("fBg", "box", "identity"),
        ("fgB", "simplex", "identity"),
    ],
)
def test_a_plan_of_one_stage_goes_back_to_a_point_that_what_was_heard_bounds(order, metric, X):
    f = ss.functions.PartSum(parts("squares" if metric == "spectral" else "logistic"))
    domains = {"box": problem_with(f).X, "simplex": ss.domains.Simplex(SIZE), "space": ss.domains.FullSpace(SIZE)}
    problem = replace(problem_with(f), X=domains[X])
    plan = ss.plan(problem, order=order, loops=(8, 3, 2), metric=metric)
    whole = ss.run(problem, plan)
    truth = ss.solve(problem, 1e-7)
    gaps = []
    for limit in (2, whole.method_calls.f // 2, whole.method_calls.f):
        mend = cut_off(f, limit)
        cut = ss.run(problem, plan)
        mend()
        assert cut.status is ss.Status.UNREACHABLE and cut.certificate.kind in ("none", "model")
        again = ss.certify(problem, cut.x, cut.y)
        assert cut.lower <= again.lower + 1e-9 and again.upper <= cut.upper + 1e-9
        # From above they are those of this very point.
        assert cut.gap == np.inf or cut.upper == pytest.approx(again.upper, abs=1e-5)
        assert cut.lower <= truth.upper and truth.lower <= cut.upper
        gaps.append(cut.gap)
    # With the steps all made and only the judging cut off, the bounds are worth having.
    assert gaps[-1] < np.inf and gaps[-1] <= gaps[0]
