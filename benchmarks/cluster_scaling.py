"""What a call of f' on a cluster costs beyond computing, and the model of docs/scaling.md.

    python benchmarks/cluster_scaling.py --out benchmarks/results/cluster_scaling.json
    python benchmarks/cluster_scaling.py --docs          put the committed measurements into docs/scaling.md

Worker processes on this machine, x of several sizes up to 1e6, with shared memory and with messages. From the messages
it fits t = latency + bytes / bandwidth, and from that the cost of a call at 10, 100 and 1,000 workers.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402

import saddleslide as ss  # noqa: E402

PAGE = Path(__file__).parents[1] / "docs" / "scaling.md"
COMMITTED = Path(__file__).parent / "results" / "cluster_scaling.json"
SIZES = (1_000, 10_000, 100_000, 1_000_000)
WORKERS = (1, 2, 4)
FAN = 4


@dataclass(frozen=True)
class Small:
    """A part whose gradient is about as cheap as a gradient of this size can be."""

    index: int
    size: int

    def __call__(self):
        return ss.functions.Quadratic(1.0 + self.index)


def overheads(client, workers, size, shared, rounds):
    """Seconds beyond computing of calls of f', one part per worker; and CPU seconds of a call in this process."""
    x, found, busy = np.random.default_rng(0).standard_normal(size), [], []
    parts = [Small(i, size) for i in range(workers)]
    with ss.distributed.DaskSum(client, parts, shape=size, shared=shared) as f:
        out = np.empty(size)
        for _ in range(3):
            f.gradient(x, out)
        for _ in range(rounds):
            before, began = f.counts, time.process_time()
            f.gradient(x, out)
            busy.append(time.process_time() - began)
            found.append(f.counts.overhead - before.overhead)
    return 1e3 * np.array(found), 1e3 * np.array(busy)


def measured(rounds, batches):
    """One row per number of workers, size and way: the quietest of several batches, since other programs run too."""
    best = {}
    for _ in range(batches):
        for workers in WORKERS:
            with ss.distributed.local(workers=workers) as client:
                for size in SIZES:
                    for way in ("shared", "messages"):
                        times, busy = overheads(client, workers, size, way == "shared", rounds)
                        row = {
                            "workers": workers,
                            "size": size,
                            "way": way,
                            "ms_median": round(float(np.median(times)), 2),
                            "ms_fastest": round(float(times.min()), 2),
                            "ms_cpu_here": round(float(np.median(busy)), 2),
                        }
                        print(json.dumps(row), flush=True)
                        key = (workers, size, way)
                        best[key] = min(best.get(key, row), row, key=lambda one: one["ms_median"])
    return [best[workers, size, way] for workers in WORKERS for size in SIZES for way in ("shared", "messages")]


def fitted(rows):
    """Latency of a call and bandwidth of one connection, from messages to one worker: x there, a gradient back."""
    points = [row for row in rows if row["workers"] == 1 and row["way"] == "messages"]
    small, large = points[0], points[-1]
    slope = (large["ms_median"] - small["ms_median"]) / (16.0 * (large["size"] - small["size"]))
    return {"latency_ms": small["ms_median"], "MB_per_s": round(1e-6 / (slope * 1e-3), 1)}


def model(workers, size, latency_ms, MB_per_s, fan=FAN):
    """Milliseconds of a call beyond computing, for workers on other machines.

    x goes to at most `fan` workers, each of which passes it on to at most `fan` others, and so on; gradients come back
    the same way. A process sends and receives `fan` arrays one after the other.
    """
    depth = math.ceil(math.log(workers * (fan - 1) / fan + 1.0, fan) - 1e-9) if workers > fan else 1
    width = min(workers, fan)
    array_ms = 8.0 * size / (MB_per_s * 1e3)
    return depth * (latency_ms + 2.0 * width * array_ms)


def flat(workers, size, latency_ms, MB_per_s):
    """The same without passing on: this process sends to all and hears from all."""
    return latency_ms + 2.0 * workers * 8.0 * size / (MB_per_s * 1e3)


@dataclass(frozen=True)
class Rows:
    """A logistic loss of 20 random rows."""

    index: int

    def __call__(self):
        rng = np.random.default_rng([7, self.index])
        A = rng.standard_normal((20, 12))
        return ss.functions.Logistic(A, np.where(rng.random(20) < 0.5, -1.0, 1.0), ridge=0.05)


def separation():
    """Calls of f' and products of plans for a dear f' and for a cheap one, and of a method without sliding."""
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.standard_normal((12, 12)))[0] for _ in range(2))
    problem = ss.SaddleProblem(
        f=ss.functions.PartSum([Rows(i) for i in range(8)]),
        g=ss.functions.Linear(rng.standard_normal(12)),
        B=10.0 * (U * np.geomspace(1.0, 0.1, 12)) @ V,
        X=ss.domains.FullSpace(12),
        Y=ss.domains.Box(-5.0, 5.0, shape=12),
    )
    rows = []
    for label, settings in (
        ("sliding, costs=(1000, 1, 1)", {"method": "adaptive", "costs": (1000.0, 1.0, 1.0)}),
        ("sliding, costs=(1, 1, 1)", {"method": "adaptive", "costs": (1.0, 1.0, 1.0)}),
        ("condat-vu, stopped unsolved", {"method": "condat-vu"}),
    ):
        result = ss.solve(problem, 1e-4, max_steps=2_000, **settings)
        rows.append({"method": label, "status": result.status.name, "f": result.calls.f, "B": result.calls.B})
        print(json.dumps(rows[-1]), flush=True)
    return rows


def predictions(fit):
    """The table of the page: 10, 100 and 1,000 workers."""
    return [
        {
            "workers": workers,
            "size": size,
            "ms_tree": round(model(workers, size, **fit), 1),
            "ms_flat": round(flat(workers, size, **fit), 1),
        }
        for size in (10_000, 1_000_000)
        for workers in (10, 100, 1_000)
    ]


def tables(found):
    """The tables of the page, by name."""
    measured_rows = [
        [
            row["workers"],
            f"{row['size']:,}",
            row["way"],
            *(f"{row[name]:.1f}" for name in ("ms_median", "ms_fastest", "ms_cpu_here")),
        ]
        for row in found["overhead"]
    ]
    predicted = [
        [f"{row['workers']:,}", f"{row['size']:,}", f"{row['ms_tree']:,.0f}", f"{row['ms_flat']:,.0f}"]
        for row in found["predicted"]
    ]
    calls = [[row["method"], f"{row['f']:g}", f"{row['B']:,}"] for row in found["separation"]]
    waiting = [
        [row["method"], *(f"{row['seconds'][f'{workers}']:,.1f}" for workers in (10, 100, 1_000))]
        for row in found["waiting"]
    ]
    return {
        "measured": _table(
            ["workers", "entries of x", "way", "ms, median", "ms, fastest", "ms, CPU here"], measured_rows
        ),
        "predicted": _table(["workers", "entries of x", "ms, passed on", "ms, all from here"], predicted),
        "calls": _table(["method", "f'", "products"], calls),
        "waiting": _table(["method", "10 workers", "100", "1,000"], waiting),
    }


def _table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def in_page(page, found):
    """The page with its tables and the two numbers of the fit from the measurements."""
    for name, table in tables(found).items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        page = re.sub(pattern, lambda match, table=table: match[1] + table + "\n" + match[2], page, flags=re.DOTALL)
    fit = found["fit"]
    words = f"latency {fit['latency_ms']:.1f} ms, bandwidth {fit['MB_per_s']:,.0f} MB/s"
    return re.sub(r"latency [\d.]+ ms, bandwidth [\d,.]+ MB/s", words, page)


def waiting(rows, fit):
    """Seconds of waiting for f' of whole runs, x with 1e6 entries, on remote workers."""
    return [
        {
            "method": row["method"],
            "seconds": {f"{w}": round(1e-3 * row["f"] * model(w, 1_000_000, **fit), 2) for w in (10, 100, 1_000)},
        }
        for row in rows
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20, help="calls in a batch (20)")
    parser.add_argument("--batches", type=int, default=3, help="batches, of which the quietest counts (3)")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--docs", action="store_true")
    chosen = parser.parse_args()
    if chosen.docs:
        stored = json.loads(COMMITTED.read_text(encoding="utf-8"))
        PAGE.write_text(in_page(PAGE.read_text(encoding="utf-8"), stored), encoding="utf-8")
        return
    rows = measured(chosen.rounds, chosen.batches)
    fit, split = fitted(rows), separation()
    found = {
        "overhead": rows,
        "fit": fit,
        "predicted": predictions(fit),
        "separation": split,
        "waiting": waiting(split, fit),
    }
    print(json.dumps(fit))
    if chosen.out is not None:
        chosen.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
