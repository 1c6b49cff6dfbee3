"""Kill -9 at random moments, resume, compare: nothing may be lost but the work after the last checkpoint.

    python benchmarks/kill_and_resume.py --times 50

Each run is a process of its own that is killed after a random time, again and again, until it ends by itself; the last
process writes what it found. It must have the bits of a run that was never killed.
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

TESTS = Path(__file__).resolve().parent.parent / "tests"
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
        time.sleep(0.02 if path else 0.0)

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


def main() -> None:
    """Kill, resume and compare, until enough processes were killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
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
                with subprocess.Popen(arguments) as child:
                    try:
                        child.wait(timeout=float(rng.uniform(0.8, 1.8)))
                    except subprocess.TimeoutExpired:
                        child.kill()
                        killed += 1
            finished += 1
            same += json.loads(out.read_text(encoding="utf-8")) == clean[case]
        sys.stdout.write(json.dumps({"killed": killed, "finished": finished, "same_bits": same}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
