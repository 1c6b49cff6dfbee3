"""The rows as the table that docs/peers.md shows.

python -m benchmarks.peers.table benchmarks/results/peers.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def cell(reached: dict[str, Any]) -> str:
    """Time relative to ours, then calls of f' and products with B, or iterations where products are not countable."""
    if not reached["met"]:
        return "not reached"
    if reached["f"] is None:
        counts = f"{reached['iterations']} it."
    else:
        counts = f"{reached['f']:g} / {reached['B']:g}"
    return f"{reached['ratio']:.2g} t, {counts}" if reached["ratio"] is not None else counts


def line(row: dict[str, Any]) -> str:
    cells = [cell(reached) for reached in row["targets"]]
    if not any(reached["met"] for reached in row["targets"]):
        why = row["note"] if row["best_gap"] is None else f"not reached; best gap {row['best_gap']:.1e}"
        cells = [why, *[""] * (len(cells) - 1)]
    return f"| {row['problem']} | {row['program']} | {' | '.join(cells)} |"


def table(rows: list[dict[str, Any]]) -> str:
    targets = [f"{reached['target']:g}" for reached in rows[0]["targets"]]
    head = [f"| problem | program | {' | '.join(targets)} |", "|---" * (2 + len(targets)) + "|"]
    return "\n".join([*head, *(line(row) for row in rows)])


if __name__ == "__main__":
    print(table(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["rows"]))
