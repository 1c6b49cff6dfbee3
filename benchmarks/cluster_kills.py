"""SIGKILL of a worker process at a random moment of a run, 20 times: nothing may be lost, not a bit may change.

    python benchmarks/cluster_kills.py --out benchmarks/results/cluster_kills.json

Each run solves the same logistic regression with f in 8 parts on 2 worker processes. At a random moment one of the two
is killed; its nanny starts another one later. The run must end solved with the bits of a run in one process. Rows that
the file has already are kept: the measurement may be made in pieces.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

# Before NumPy is imported: workers have one thread, and so must the run that they are compared with.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402

import saddleslide as ss  # noqa: E402

PARTS, ROWS, COLUMNS = 8, 1000, 100
TOL = 1e-5


@dataclass(frozen=True)
class Rows:
    """Rows of random data, made where they are needed."""

    index: int

    def __call__(self):
        rng = np.random.default_rng([1, self.index])
        A = rng.standard_normal((ROWS, COLUMNS)) * np.geomspace(1.0, 0.1, COLUMNS)
        labels = np.where(A[:, 0] + rng.logistic(size=ROWS) > 0.0, 1.0, -1.0)
        return ss.functions.Logistic(A, labels, ridge=1.0)


def problem_with(f):
    """The regression on a box, with a penalty on differences of neighbours."""
    B = np.diff(np.eye(COLUMNS), axis=0)
    X, Y = ss.domains.Box(-2.0, 2.0, shape=COLUMNS), ss.domains.Box(-2.0, 2.0, shape=COLUMNS - 1)
    return ss.SaddleProblem(f=f, g=ss.functions.Zero(), B=B, X=X, Y=Y)


def answer(result):
    """What must be the same."""
    return [result.x.tobytes(), result.y.tobytes(), result.lower, result.upper, result.status.name, repr(result.calls)]


def killed_run(client, parts, delay, choice):
    """One run with a kill after `delay` seconds; what happened, and the answer."""
    pids = sorted(client.run(os.getpid).values())
    with ss.distributed.DaskSum(client, parts) as f:
        timer = threading.Timer(delay, os.kill, (pids[choice], signal.SIGKILL))
        timer.start()
        began = time.perf_counter()
        result = ss.solve(problem_with(f), TOL)
        seconds = time.perf_counter() - began
        timer.cancel()
        timer.join()
        counts = f.counts
    row = {
        "after_seconds": round(delay, 3),
        "run_seconds": round(seconds, 3),
        "status": result.status.name,
        "calls_f": result.calls.f,
        "calls_to_workers": counts.calls,
        "repeated": [
            {"call": again.call, "operation": again.operation, "parts": list(again.parts), "reason": again.reason}
            for again in counts.repeats
        ],
        "workers_lost": counts.lost,
        "parts_built": counts.built,
    }
    return row, answer(result)


def summed_up(rows):
    """How many runs did what they must."""
    return {
        "runs": len(rows),
        "solved": sum(row["status"] == "SOLVED" for row in rows),
        "same_bits": sum(row["same_bits"] for row in rows),
        "runs_with_a_repeated_call": sum(bool(row["repeated"]) for row in rows),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    parts = [Rows(i) for i in range(PARTS)]
    clean = answer(ss.solve(problem_with(ss.functions.PartSum(parts)), TOL))
    known = chosen.out is not None and chosen.out.exists()
    rows = json.loads(chosen.out.read_text(encoding="utf-8"))["rows"] if known else []
    tries = 0
    with ss.distributed.local(workers=2) as client, ss.distributed.DaskSum(client, parts) as f:
        began = time.perf_counter()
        assert answer(ss.solve(problem_with(f), TOL)) == clean
        length = time.perf_counter() - began
    while len(rows) < chosen.runs:
        tries += 1
        rng = np.random.default_rng([chosen.seed, len(rows), tries])
        with ss.distributed.local(workers=2) as client:
            row, found = killed_run(client, parts, float(rng.uniform(0.0, length)), int(rng.integers(2)))
        if not row["workers_lost"]:
            # The run was over before the kill.
            continue
        row["same_bits"] = found == clean
        rows.append(row)
        print(json.dumps(row), flush=True)
        if chosen.out is not None:
            text = json.dumps({"summary": summed_up(rows), "rows": rows}, indent=1)
            chosen.out.write_text(text + "\n", encoding="utf-8")
    summary = summed_up(rows)
    print(json.dumps(summary))
    if summary["same_bits"] < len(rows) or summary["solved"] < len(rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
