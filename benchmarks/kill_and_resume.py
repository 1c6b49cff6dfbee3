"""Kill -9 at random moments, resume, compare: nothing may be lost but the work after the last checkpoint.

    python benchmarks/kill_and_resume.py --times 50 --out benchmarks/results/kill_and_resume.json

Each run is a process of its own that is killed a random time after it has begun or gone on, again and again, until it
ends by itself; the last process writes what it found. It must have the bits of a run that was never killed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import saddleslide as ss

TESTS = Path(__file__).resolve().parent.parent / "tests" / "helpers"
sys.path.insert(0, str(TESTS))

from small_problems import noisy, problems  # noqa: E402

CASES = ("costly g", "custom", "free", "sampled", "restarts")


def problem_of(case):
    """The problem of a case."""
    return noisy() if case == "sampled" else problems()["free" if case == "restarts" else case]


def carried_out(case, path=None):
    """Start a run, or continue it where there is a checkpoint."""
    problem = problem_of(case)

    def slowly(result):
        if path is not None:
            # A sign of life for whoever kills, and some time for it.
            sys.stdout.write(".\n")
            sys.stdout.flush()
            time.sleep(0.02)

    if path is not None and path.exists():
        return ss.resume(path, problem, callback=slowly)
    control = {"callback": slowly, "checkpoint": path, "checkpoint_every": 2}
    if case == "restarts":
        return ss.run(problem, ss.plan(problem, 1e-6, regime="restarts"), **control)
    if case == "sampled":
        return ss.solve(problem, 0.02, rng=1, max_steps=400, **control)
    return ss.solve(problem, 1e-11, method="adaptive", max_steps=60, **control)


def answer(result):
    """What must be the same."""
    calls = result.calls, result.certificate_calls, result.samples
    return [result.x.tobytes().hex(), result.y.tobytes().hex(), result.status.name, result.nit, *map(repr, calls)]


def was_killed(arguments, seconds):
    """Start a process and kill it so long after its first step; False where it ended before."""
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        try:
            child.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            return True
    return False


def main() -> None:
    """Kill, resume and compare, until enough processes were killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", nargs=3)
    chosen = parser.parse_args()
    if chosen.child:
        case, path, out = chosen.child
        Path(out).write_text(json.dumps(answer(carried_out(case, Path(path)))), encoding="utf-8")
        return
    rng, killed, finished, same = np.random.default_rng(chosen.seed), 0, 0, 0
    clean = {case: answer(carried_out(case)) for case in CASES}
    while killed < chosen.times:
        case = CASES[finished % len(CASES)]
        with tempfile.TemporaryDirectory() as folder:
            path, out = Path(folder) / "run.npz", Path(folder) / "answer.json"
            while not out.exists():
                arguments = [sys.executable, __file__, "--child", case, str(path), str(out)]
                killed += was_killed(arguments, float(rng.uniform(0.0, 0.6)))
            finished += 1
            same += json.loads(out.read_text(encoding="utf-8")) == clean[case]
        row = {"killed": killed, "finished": finished, "same_bits": same}
        sys.stdout.write(json.dumps(row) + "\n")
        sys.stdout.flush()
        if chosen.out is not None:
            chosen.out.write_text(json.dumps(row, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
