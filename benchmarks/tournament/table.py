"""The rows of the tournament as a table, and what they say together."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SHORT = {"SciPy L-BFGS": "L-BFGS", "ADMM, warm CG": "ADMM", "PyProximal PrimalDual": "PyProximal", "ODL pdhg": "ODL"}
LIMIT, PART = 1.25, 0.8
Row = dict[str, Any]


def seconds(row: Row, name: str, clock: str, fit: str = "paid") -> float:
    """Seconds of a program in a cell. The fit of the spectral metric: "paid" by all, "free" for all, or "ours" only."""
    if name == "ours":
        held = row["ours"]
        return float(held["seconds"][clock] - (held["fitting"][clock] if fit == "free" else 0.0))
    held = row["peers"].get(name)
    if held is None:
        return math.inf
    spectral = held["setting"]["spectral"] and fit != "paid"
    return float(held["seconds"][clock] - (held["setup"][clock] if spectral else 0.0))


def best(row: Row, clock: str = "wall", fit: str = "paid") -> tuple[str, float]:
    """The quickest peer of a cell."""
    times = {name: seconds(row, name, clock, fit) for name in row["peers"]}
    name = min(times, key=times.__getitem__)
    return name, times[name]


def ratio(row: Row, clock: str = "wall", fit: str = "paid") -> float:
    """Our seconds over those of the quickest peer: below 1 is a win."""
    return seconds(row, "ours", clock, fit) / best(row, clock, fit)[1]


def table(rows: Sequence[Row], head: bool = True) -> str:
    names = list(SHORT)
    lines = []
    if head:
        titles = ["instance", "pair", "gap", "ours, ms", *(f"{SHORT[name]}, ms" for name in names), "ours / best",
                  "processor", "with certificate, ms"]  # fmt: skip
        lines = [f"| {' | '.join(titles)} |", "|" + " --- |" * len(titles)]
    for row in rows:
        cells = [row["kind"], "{},{}".format(*row["pair"]), f"{row['target']:.0e}", ms(seconds(row, "ours", "wall"))]
        cells += [ms(seconds(row, name, "wall")) for name in names]
        cells += [f"{ratio(row):.2f}", f"{ratio(row, 'cpu'):.2f}", ms(row["ours"]["whole"]["wall"])]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def ms(value: float) -> str:
    return f"{1e3 * value:.3g}" if math.isfinite(value) else "-"


def summary(rows: Sequence[Row]) -> str:
    """Cells won and the worst ratio, in both clocks, with the fit of the metric paid and not."""
    lines = ["| clock | fit of the metric | cells | won | part | worst ratio |", "|" + " --- |" * 6]
    for clock in ("wall", "cpu"):
        for fit, said in (("paid", "paid by all who use it"), ("free", "free for all"), ("ours", "paid by us alone")):
            ratios = [ratio(row, clock, fit) for row in rows]
            won = sum(value < 1.0 for value in ratios)
            part = won / max(len(ratios), 1)
            lines.append(f"| {clock} | {said} | {len(ratios)} | {won} | {part:.0%} | {max(ratios, default=0):.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    read = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    print(table(read["cells"]))
    print()
    print(summary(read["cells"]))
