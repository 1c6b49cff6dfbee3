"""Peers and `ss.solve` on the same problems to the same certified gaps.

    python -m benchmarks.peers --environments DIR --out benchmarks/results/peers.json

makes a virtual environment for every peer in DIR (pip needs an index), then runs all programs in turn, three rounds.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import saddleslide as ss
from benchmarks.peers.environments import PEERS, environment
from benchmarks.peers.harness import OURS, Entry, measure, ours, program
from benchmarks.peers.judge import Judge
from benchmarks.peers.problems import LARGE, NAMES, check, form_of
from benchmarks.peers.programs.form import save
from benchmarks.peers.table import table

TARGETS = (1e-3, 1e-5, 1e-6)


def absent(reason: str) -> tuple[list, str]:
    return [], reason


def rows_of(
    name: str, pythons: dict[str, tuple[Path, str]], rounds: int, scratch: Path, longer: float = 1.0
) -> list[dict[str, Any]]:
    problem = {**NAMES, **LARGE}[name]()
    form, judge = form_of(problem), Judge(problem, TARGETS)
    assert check(problem, form) < 1e-12
    save(scratch / "problem.npz", form)
    entries = [Entry(OURS, ours(name, TARGETS, scratch))]
    for peer in PEERS:
        python, reason = pythons[peer.name]
        if reason:
            entries.append(Entry(peer.name, lambda *_, reason=reason: absent(reason)))
        else:
            run = program(peer, python, scratch / "problem.npz", scratch)
            entries.append(Entry(peer.name, run, peer.settings, longer * peer.seconds))
    rows = measure(name, entries, judge, rounds)
    # Certified bounds of all programs hold for the same number, or the judge is wrong.
    assert judge.lower <= judge.upper, f"{name}: certified bounds contradict each other"
    bounds = {"lower": judge.lower, "upper": judge.upper, "start_gap": judge.start}
    return [{**row, **(bounds if row["program"] == OURS else {})} for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", type=Path, required=True, help="where the virtual environments are made")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", nargs="+", default=list(NAMES), choices=[*NAMES, *LARGE], help="problems")
    parser.add_argument("--longer", type=float, default=1.0, help="times the seconds that each peer has")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    pythons = {peer.name: environment(peer, chosen.environments) for peer in PEERS}
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in chosen.only:
            rows += rows_of(name, pythons, chosen.rounds, Path(scratch), chosen.longer)
            print(table([row for row in rows if row["problem"] == name]), flush=True)
            if chosen.out:
                body = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in rows)
                head = f'"version": "{ss.__version__}", "targets": {list(TARGETS)}, "rounds": {chosen.rounds}'
                chosen.out.write_text(f'{{{head}, "rows": [\n  {body}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
