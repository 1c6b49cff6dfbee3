"""How long does Ctrl-C take to be answered while compiled loops run on a large picture?

    python benchmarks/interrupt.py --out benchmarks/results/interrupt.json

Each run is a process of its own: total variation of a picture of 1024 x 1024, by a plan whose innermost level is one
compiled loop and by adaptive sliding. SIGINT comes after a random time, and the seconds until the process says that it
has been heard are measured: until KeyboardInterrupt is raised, and until `on_interrupt="return"` has given its result.
Both are shares of a machine that may have other work: the load is written beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import saddleslide as ss

CASES = ("plan", "adaptive")
ANSWERS = ("raise", "return")


def picture_problem(side):
    """Denoising by total variation: f a quadratic, B the differences of a picture, Y a box."""
    rng = np.random.default_rng(0)
    noisy = np.add.outer(np.arange(side) % 256, np.arange(side) % 128) / 384.0 + 0.1 * rng.standard_normal((side, side))
    f = ss.functions.Quadratic(1.0) + ss.functions.Linear(-noisy)
    Y = ss.domains.Box(-0.1, 0.1, shape=(2, side, side))
    X = ss.domains.Box(-1.0, 2.0, shape=(side, side))
    return ss.SaddleProblem(f=f, g=ss.functions.Zero(), B=ss.operators.FiniteDifferences((side, side)), X=X, Y=Y)


def prepared(case, problem, answer, outer, inner):
    """Either kind of run, planned and ready to begin."""
    if case == "plan":
        plan = ss.plan(problem, order="fgB", loops=(outer, 1, inner))
    else:
        plan = ss.plan(problem, 1e-30, method="adaptive")
    return lambda: ss.run(problem, plan, on_interrupt=answer, max_steps=outer)


def child(case, answer, side):
    """Say when the loops are about to begin, then run until interrupted."""
    # A small run loads the kernels.
    prepared(case, picture_problem(8), answer, 2, 2)()
    run = prepared(case, picture_problem(side), answer, 10_000, 10_000)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    try:
        said = run().status.name
    except KeyboardInterrupt:
        said = "KeyboardInterrupt"
    sys.stdout.write(f"{said}\n")
    sys.stdout.flush()


def seconds_to_answer(case, answer, side, delay):
    """From the signal to the word of the child."""
    command = [sys.executable, __file__, "--child", case, answer, "--side", str(side)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        began = time.perf_counter()
        said = process.stdout.readline().strip()
        taken = time.perf_counter() - began
    wanted = "KeyboardInterrupt" if answer == "raise" else "INTERRUPTED"
    assert said == wanted, (said, wanted)
    return taken


def main() -> None:
    """Interrupt, measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--side", type=int, default=1024)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", nargs=2)
    chosen = parser.parse_args()
    if chosen.child:
        child(*chosen.child, chosen.side)
        return
    rng = np.random.default_rng(0)
    rows = []
    for case in CASES:
        for answer in ANSWERS:
            delays = rng.uniform(2.0, 5.0, chosen.times)
            taken = [seconds_to_answer(case, answer, chosen.side, delay) for delay in delays]
            row = {"run": case, "on_interrupt": answer, "median": float(np.median(taken)), "largest": max(taken)}
            rows.append({name: round(v, 3) if isinstance(v, float) else v for name, v in row.items()})
            sys.stdout.write(f"{rows[-1]}\n")
            sys.stdout.flush()
    load = round(os.getloadavg()[0] / (os.cpu_count() or 1), 2)
    report = {"side": chosen.side, "times": chosen.times, "load per core": load, "seconds": rows}
    if chosen.out is not None:
        chosen.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
