"""`ss.solve`, untuned, against tuned programs from elsewhere on tomography.

    python -m benchmarks.tournament --environments DIR --out benchmarks/results/tournament.json

makes a virtual environment for every peer in DIR (pip needs an index), tunes every peer on the validation instance of
each kind, and runs all programs in turn. Settings and cells that the file holds already are kept: an interrupted run
goes on. `--again` measures the cells anew with the settings of the file.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from benchmarks.arena.contest import Book, programs
from benchmarks.tournament.cells import Cell, Instances, cells_of, tuned_row
from benchmarks.tournament.instances import KINDS, tests, validation
from benchmarks.tournament.table import summary, table
from benchmarks.tournament.tuning import PEERS, TARGETS

OURS = "benchmarks.tournament.ours"
KEY = ("kind", "pair", "target")


def carry_out(book: Book, kinds: list[str], rounds: int, environments: Path, n: int | None, most: int) -> None:
    with tempfile.TemporaryDirectory() as folder, programs(OURS, PEERS, environments, Path(folder)) as (ours, peers):
        instances = Instances(Path(folder), n)
        for kind in kinds:
            settings = book.tuned.setdefault(kind, {})
            for name, (peer, worker) in peers.items():
                if name not in settings:
                    settings[name] = tuned_row(peer, worker, instances.get(kind, validation(kind)))
                    book.write()
                    print(kind, name, json.dumps(settings[name]), flush=True)
            for cell in cells_of(kind, tests(kind)[:most]):
                if not book.has(*cell):
                    made = Cell(instances.get(*cell[:2]), cell[2], ours, peers, settings).row(rounds)
                    book.cells.append(made)
                    book.write()
                    print(table([made], head=False), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", type=Path, required=True, help="where the virtual environments are made")
    parser.add_argument("--out", type=Path, help="JSON file to write and to go on from")
    parser.add_argument("--again", action="store_true", help="measure all cells anew with the settings of the file")
    parser.add_argument("--only", nargs="+", default=list(KINDS), choices=KINDS, help="kinds of instances")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of all programs (default 3), two runs in each")
    parser.add_argument("--pairs", type=int, default=5, help="use the first so many test pairs (default 5)")
    parser.add_argument("--size", type=int, help="pixels per side in place of the instances' own")
    chosen = parser.parse_args()
    book = Book(chosen.out, KEY, {"targets": list(TARGETS)}, chosen.again)
    carry_out(book, chosen.only, chosen.rounds, chosen.environments, chosen.size, chosen.pairs)
    print(table(book.cells))
    print(summary(book.cells))


if __name__ == "__main__":
    main()
