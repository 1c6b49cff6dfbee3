"""Results as files: what comes back is what was saved, and nothing in a file runs."""

import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.errors import CheckpointError, InputError
from small_problems import problems


def kept(result):
    values = {entry.name: getattr(result, entry.name) for entry in fields(result)}
    return {name: values[name] for name in values if name not in ("x", "y", "duals", "problem")}


def test_what_was_saved_comes_back(tmp_path):
    F, rng = ss.functions, np.random.default_rng(0)
    A = rng.standard_normal((12, 8)) + 1j * rng.standard_normal((12, 8))
    objective = F.LeastSquares(A, A @ np.ones(8)) + 0.1 * F.L1() @ ss.operators.FiniteDifferences((8,), dtype=complex)
    for result in (ss.minimize(objective, rtol=1e-5), ss.solve(problems()["game"], 1e-6, max_steps=2)):
        result.save(tmp_path / "result.npz")
        again = ss.load(tmp_path / "result.npz")
        # repr: NaN differs from itself.
        assert repr(kept(again)) == repr(kept(result)) and again.problem is None
        assert again.x.dtype == result.x.dtype and again.message == result.message and again.fun == result.fun
        for one, other in zip((again.x, again.y, *again.duals), (result.x, result.y, *result.duals), strict=True):
            assert np.array_equal(one, other)


def test_files_of_two_kinds_are_told_apart(tmp_path):
    run, saved = tmp_path / "run.npz", tmp_path / "result.npz"
    game = problems()["game"]
    ss.solve(game, 1e-9, max_steps=2, checkpoint=run).save(saved)
    with pytest.raises(CheckpointError, match=r"ss\.resume goes on"):
        ss.load(run)
    with pytest.raises(CheckpointError, match=r"ss\.load reads"):
        ss.resume(saved, game)
    saved.write_bytes(saved.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="damaged"):
        ss.load(saved)
    with pytest.raises(InputError, match="load: path"):
        ss.load(3)


def test_a_fresh_process_reads_results_of_methods_it_has_not_loaded(tmp_path):
    F, rng = ss.functions, np.random.default_rng(0)
    lasso = F.LeastSquares(rng.standard_normal((12, 8)), rng.standard_normal(12)) + 0.5 * F.L1()
    lengths = F.L21(axis=0) @ ss.operators.FiniteDifferences((48, 48))
    variation = F.LeastSquares(None, rng.standard_normal((48, 48))) + 0.5 * lengths
    results = [ss.minimize(lasso, method="adaptive"), ss.minimize(variation, rtol=1e-2)]
    assert [result.plans[-1].method for result in results] == ["adaptive sliding", "restarted primal-dual"]
    for number, result in enumerate(results):
        result.save(tmp_path / f"{number}.npz")
    # The states of each are looked for before the method of the next is loaded.
    script = "import sys, saddleslide as ss\nfor path in sys.argv[1:]: print(repr(ss.load(path).x.tolist()))"
    for number, result in enumerate(results):
        command = [sys.executable, "-c", script, str(tmp_path / f"{number}.npz")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.stdout == f"{result.x.tolist()!r}\n", done.stderr
