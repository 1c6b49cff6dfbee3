"""`ss.solve` and `ss.minimize`, untuned, against tuned peers: whole calls on families of problems.

    python -m benchmarks.arena --environments DIR --out benchmarks/results/arena.json

makes a virtual environment for every peer in DIR (pip needs an index), tunes every peer on every instance and for every
target, and runs all programs in turn. What the file holds is kept: an interrupted contest goes on. `--quick` takes the
smallest sizes and one round, `--grown` all sizes. docs/arena.md is made by `python -m benchmarks.arena.page`.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.arena.cells import Instance
from benchmarks.arena.contest import Book, programs
from benchmarks.arena.contestants import PEERS
from benchmarks.arena.families import FAMILIES, NAMES
from benchmarks.arena.page import line

TARGETS = (1e-2, 1e-4, 1e-6, 1e-8)
KEY = ("family", "size", "target")
OURS = "benchmarks.arena.ours"


def machine(how: str) -> dict[str, object]:
    """What it was measured on, and how."""
    return {
        "when": time.strftime("%Y-%m-%d"), "python": platform.python_version(), "numpy": np.__version__,
        "processor": f"{platform.machine()}, {os.cpu_count()} cores", "how": how,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", type=Path, required=True, help="where the virtual environments are made")
    parser.add_argument("--out", type=Path, help="JSON file to write and to go on from")
    parser.add_argument("--again", action="store_true", help="measure all cells anew with the settings of the file")
    parser.add_argument(
        "--only", nargs="+", default=[family.name for family in FAMILIES], choices=NAMES, help="families"
    )
    parser.add_argument("--targets", nargs="+", type=float, default=list(TARGETS), help="relative gaps")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of all programs (default 3)")
    parser.add_argument("--seconds", type=float, default=120.0, help="most seconds of one of our calls (default 120)")
    parser.add_argument("--quick", action="store_true", help="smallest sizes, one round")
    parser.add_argument("--grown", action="store_true", help="all sizes, not the second alone")
    chosen = parser.parse_args()
    how = "quick: smallest sizes, one round" if chosen.quick else f"{chosen.rounds} rounds"
    book = Book(chosen.out, KEY, {"targets": list(TARGETS), "machine": machine(how)}, chosen.again)
    rounds = 1 if chosen.quick else chosen.rounds
    with (
        tempfile.TemporaryDirectory() as folder,
        programs(OURS, PEERS, chosen.environments, Path(folder)) as (ours, peers),
    ):
        for name in chosen.only:
            sizes = NAMES[name].sizes
            for size in sizes[:1] if chosen.quick else sizes if chosen.grown else sizes[1:2]:
                left = [target for target in chosen.targets if not book.has(name, size, target)]
                if not left:
                    continue
                known = book.tuned.setdefault(f"{name} {size}", {})
                instance = Instance(name, size, Path(folder), ours, peers, known)
                instance.find(TARGETS, 1.0 if chosen.quick else 4.0)
                for target in left:
                    book.cells.append(instance.cell(target, rounds, chosen.seconds))
                    book.write()
                    print(line(book.cells[-1]), flush=True)


if __name__ == "__main__":
    main()
