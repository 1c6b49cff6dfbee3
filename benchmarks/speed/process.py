"""Fresh processes: importing, the first run with a warm cache, and memory."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from typing import Any

IMPORT = """
import json, time
wall, cpu = time.perf_counter(), time.process_time()
import saddleslide
print(json.dumps({"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}))
"""
NAMES = """
import json, time
wall, cpu = time.perf_counter(), time.process_time()
import saddleslide as ss
[getattr(ss, name) for name in ss.__all__ if name != "distributed"]
print(json.dumps({"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}))
"""
FIRST = """
import json, time, saddleslide as ss
problem = ss.gallery.tomography(n=16)
wall, cpu = time.perf_counter(), time.process_time()
result = ss.solve(problem, reduction=1e-3)
first = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
wall, cpu = time.perf_counter(), time.process_time()
ss.solve(problem, reduction=1e-3)
again = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
added = {name: first[name] - again[name] for name in first}
print(json.dumps(added | {"compile_seconds": result.timings["compile"]}))
"""
MEMORY = """
import json, sys, tracemalloc, saddleslide as ss
from benchmarks.speed.inner import pass_through, total_variation
kind, length = sys.argv[1], int(sys.argv[2])
def work(problem):
    if kind == "plan":
        return pass_through(problem, (1, 1, length))()
    return ss.solve(problem, reduction=1e-9, max_steps=length)
work(total_variation(8))
problem = total_variation(1024)
tracemalloc.start()
work(problem)
beyond = tracemalloc.get_traced_memory()[1]
print(json.dumps({"bytes": beyond, "vectors": beyond / (8 * (problem.X.size + problem.Y.size))}))
"""


def fresh(code: str, *arguments: str) -> dict[str, Any]:
    """What a fresh process prints, with one thread for everything."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, env=environment
    )
    return dict(json.loads(done.stdout))


def _median(code: str, rounds: int) -> dict[str, float]:
    rows = [fresh(code) for _ in range(rounds)]
    return {name: statistics.median(row[name] for row in rows) for name in rows[0]}


def start_up(rounds: int) -> dict[str, Any]:
    """Seconds to import the package, with all its names too, and what a first `solve` takes above the second.

    Names are loaded when first asked for.
    """
    fresh(FIRST)
    return {
        "import": _median(IMPORT, rounds),
        "import, all names": _median(NAMES, rounds),
        "first solve adds": _median(FIRST, rounds),
    }


def memory() -> dict[str, Any]:
    """Memory beyond the data of a 1024 x 1024 TV problem, in bytes and in vectors of the size of z."""
    return {
        "plan, T_3 = 2": fresh(MEMORY, "plan", "2"),
        "plan, T_3 = 8": fresh(MEMORY, "plan", "8"),
        "solve, 3 steps": fresh(MEMORY, "solve", "3"),
        "solve, 12 steps": fresh(MEMORY, "solve", "12"),
    }
