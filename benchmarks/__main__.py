"""All speed measurements side by side in one run.

    python -m benchmarks                     measure, print the tables, compare with the committed ratios, and write
                                             the measurements to benchmarks/results/speed_latest.json
    python -m benchmarks --out FILE          or to FILE (benchmarks/results/speed.json is the committed one)
    python -m benchmarks --rounds 3          fewer repetitions
    python -m benchmarks --docs              put the committed measurements into docs/speed.md, and measure nothing

One thread for everything. Exit code 1 when a ratio is worse than the committed one by more than the slack of
`benchmarks.speed.report`. Times of other solvers are measured by `python -m benchmarks.arena`.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "speed.md"
RESULTS = Path(__file__).parent / "results"
# What is compared with stays as it is, unless it is named.
COMMITTED, LATEST = RESULTS / "speed.json", RESULTS / "speed_latest.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=LATEST, help="JSON file to write (default speed_latest.json)")
    parser.add_argument("--rounds", type=int, default=7, help="interleaved repetitions (default 7)")
    parser.add_argument("--docs", action="store_true", help="rewrite the tables of docs/speed.md from the results")
    chosen = parser.parse_args()
    # Before NumPy is imported: its threads are counted then.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    from benchmarks.speed import inner, plans, process, report, solving, steps, threads

    if chosen.docs:
        stored = json.loads(COMMITTED.read_text(encoding="utf-8"))
        PAGE.write_text(report.in_page(PAGE.read_text(encoding="utf-8"), stored), encoding="utf-8")
        return
    found = {
        "rounds": chosen.rounds,
        "plans": plans.measured(chosen.rounds),
        "small": inner.small(chosen.rounds),
        "growth": inner.growth(chosen.rounds),
        "outer": inner.outer(chosen.rounds),
        "steps": steps.measured(max(1, chosen.rounds // 3)),
        "threads": threads.measured(chosen.rounds),
        "start-up": process.start_up(chosen.rounds),
        "memory": process.memory(),
        "solve": solving.measured(chosen.rounds),
    }
    print(report.tables(found))
    committed = json.loads(COMMITTED.read_text(encoding="utf-8")) if COMMITTED.exists() else found
    worse = report.regressions(found, committed)
    print("\n".join(["", *(worse or ["No ratio is worse than the committed one."])]))
    chosen.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if worse:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
