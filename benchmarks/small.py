"""What a call on a small problem costs: processor time, and calls of functions, which other work does not change.

python -m benchmarks.small --out benchmarks/results/small.json

The smallest sizes of the arena at rtol=1e-4, one thread, every call with its problem built anew: medians of 20.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import json
import os
import pstats
import statistics
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from benchmarks.arena.families import NAMES, Instance

CASES = (
    "lasso", "elastic net", "least squares, x >= 0", "Huber regression", "quantile regression", "support vectors",
    "matrix game", "regularised game", "fused least squares", "fused logistic", "logistic lasso", "trend filtering",
    "transport plans", "network flow", "linear program", "quadratic with equations", "portfolio",
    "two quadratic players", "denoising", "inpainting", "blur, missing pixels", "tomography, the paper's",
)  # fmt: skip
ROUNDS = 20


def milliseconds(instance: Instance) -> float:
    taken = []
    for _ in range(ROUNDS):
        gc.collect()
        gc.disable()
        began = time.process_time_ns()
        instance.ask(rtol=1e-4)
        taken.append((time.process_time_ns() - began) / 1e6)
        gc.enable()
    return round(statistics.median(taken), 2)


def measure(name: str) -> dict[str, Any]:
    instance = NAMES[name].make(NAMES[name].sizes[0])
    for _ in range(2):
        found = instance.ask(rtol=1e-4)
    seen = cProfile.Profile()
    seen.runcall(instance.ask, rtol=1e-4)
    return {
        "case": name, "size": NAMES[name].sizes[0], "method": found.plans[0].method, "status": found.status.name,
        "ms": milliseconds(instance),
        "functions": int(pstats.Stats(seen).total_calls),  # type: ignore[attr-defined]
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    given, rows = parser.parse_args(), []
    for name in CASES:
        rows.append(measure(name))
        print(*rows[-1].values(), sep="  ", flush=True)
    load = round(os.getloadavg()[0], 1)
    if given.out:
        written = {
            "command": "python -m benchmarks.small --out benchmarks/results/small.json",
            "load": load,
            "rows": rows,
        }
        given.out.write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()
