"""docs/arena.md from what was measured.

python -m benchmarks.arena.page benchmarks/results/arena.json > docs/arena.md
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]
HEAD = """# The arena

`ss.minimize` and `ss.solve`, with nothing set, against other solvers that were tuned, on families of problems: how
long a whole call takes until its answer is right. Every cell is here, also the lost ones. This page is made from
`benchmarks/results/arena.json`:

    python -m benchmarks.arena --environments DIR --out benchmarks/results/arena.json
    python -m benchmarks.arena.page benchmarks/results/arena.json > docs/arena.md

`--quick` takes the smallest sizes and one round, `--grown` all sizes. What the file holds is kept, cell by cell.

## How it is judged

- **A family** (`benchmarks/arena/families.py`) is data of a size, the call as a user writes it, and the same problem
  as plain arrays for the peers. Every call builds its problem anew.
- **A target** is a part of what there is to gain: the objective at the start less the least value known. We are asked
  for `tol` = target times that and must certify it. A peer must only have a point there: it is stopped at its first
  iterate below the target, at no cost to it. For games both strategies count, by the gap of the pair.
- **Points are judged by other code than the package's**, from the plain arrays. The least value is the best of all
  that anybody has found, Clarabel at 1e-11, L-BFGS-B, FISTA and our own call at 1e-9 among them. A claim is false,
  and shown in capitals, when a certified lower bound is above that, or a point that we call solved misses its target.
- **Whole calls**: norms, factors, transposed copies, set-up and compiled models are paid by whoever uses them; our
  plan, fit of a metric and certificates are in our time. Imports and compiling are not: every program is a process
  that is warm.
- **Peers** (`benchmarks/arena/contestants.py`) have virtual environments of their own: HiGHS, Clarabel, SCS, PDLP,
  scikit-learn, skglm, POT, PyProximal and ODL; SciPy's L-BFGS-B; and NumPy programs of some 25 lines: FISTA, ADMM
  with warm conjugate gradients, restarted and accelerated primal-dual steps, a factor or MINRES. Each is tuned for
  every instance and target by processor time, over the settings there (step ratios, penalties, tolerances). Tuning is
  not charged.
- **One thread**; the quickest three peers and we run in turn, and medians of the rounds count: processor time
  decides, wall time is beside it, since the machine had other work (its load is in the file). Peers that were 3 times
  slower than the quickest when they were tuned are not measured again: their time of tuning is in brackets.
"""


def best(row: Row, clock: str = "cpu") -> tuple[str, float]:
    """The quickest peer of a cell."""
    times = {name: held[clock] for name, held in row["peers"].items()}
    return min(times.items(), key=lambda item: item[1]) if times else ("-", math.inf)


def is_met(row: Row) -> bool:
    return bool(row["ours"].get("success")) and bool(row["ours"]["met"]) and not row["ours"]["false"]


def ratio(row: Row, clock: str = "cpu") -> float:
    """Our time over that of the quickest peer; without end where we did not get there."""
    return row["ours"][clock] / best(row, clock)[1] if is_met(row) else math.inf


def ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g}" if math.isfinite(seconds) else "-"


def said(value: float) -> str:
    return f"{value:.2g}" if math.isfinite(value) else "-"


def line(row: Row) -> str:
    """One cell."""
    ours = row["ours"]
    what = ours.get("failed") or "+".join(dict.fromkeys(ours["methods"]))
    if not is_met(row):
        what = f"{'FALSE CLAIM' if ours['false'] else 'not solved'}: {ours.get('status', '')} {what}"
    others = sorted(row["peers"].items(), key=lambda item: item[1]["cpu"])
    peers = ", ".join(f"{name} {ms(held['cpu'])}" for name, held in others) or "none got there"
    slower = [f"{name} {ms(seconds)}" for name, seconds in row["slower"].items() if seconds is not None]
    peers += f" ({', '.join(slower[: 3 - len(others)])})" if slower[: 3 - len(others)] else ""
    cells = [
        row["family"],
        row["size"],
        f"{row['target']:.0e}",
        ms(ours["cpu"]),
        peers,
        said(ratio(row)),
        said(ratio(row, "wall")),
        what,
    ]
    return f"| {' | '.join(map(str, cells))} |"


TITLES = ("family", "size", "gap", "ours, ms", "peers, ms", "ours / best", "wall", "what ran")


def table(titles: Sequence[str], lines: Sequence[str]) -> str:
    return "\n".join([f"| {' | '.join(titles)} |", "|" + " --- |" * len(titles), *lines])


def summary(rows: Sequence[Row], fields: dict[str, str]) -> str:
    """Cells that a peer reaches: failures, won, within a factor of two, by field and by gap."""
    reached = [row for row in rows if row["peers"]]
    lines = []
    groups: list[tuple[str, list[Row]]] = [("all", reached)]
    groups += [
        (field, [row for row in reached if fields[row["family"]] == field]) for field in dict.fromkeys(fields.values())
    ]
    groups += [
        (f"gap {t:.0e}", [row for row in reached if row["target"] == t])
        for t in sorted({row["target"] for row in reached})[::-1]
    ]
    for name, held in groups:
        ratios = [ratio(row) for row in held]
        if ratios:
            counts = [sum(math.isinf(r) for r in ratios), sum(r <= 1.0 for r in ratios), sum(r <= 2.0 for r in ratios)]
            lines.append(
                f"| {name} | {len(ratios)} | {' | '.join(map(str, counts))} | {said(statistics.median(ratios))} |"
            )
    return table(("cells", "number", "not solved", "ours / best <= 1", "<= 2", "median ratio"), lines)


def growth(rows: Sequence[Row]) -> str:
    """Families that were measured at several sizes: our time and the best peer's, from the smallest size on."""
    lines = []
    for family in dict.fromkeys(row["family"] for row in rows):
        for target in sorted({row["target"] for row in rows})[::-1]:
            held = sorted((r for r in rows if (r["family"], r["target"]) == (family, target)), key=lambda r: r["size"])
            if len(held) > 1:
                times = [
                    [row["ours"]["cpu"] if is_met(row) else math.inf for row in held],
                    [best(row)[1] for row in held],
                ]
                columns = [" ".join(map(ms, column)) for column in times]
                sizes, ratios = " ".join(str(row["size"]) for row in held), " ".join(said(ratio(row)) for row in held)
                lines.append(f"| {' | '.join([family, f'{target:.0e}', sizes, *columns, ratios])} |")
    return table(("family", "gap", "sizes", "ours, ms", "best peer, ms", "ours / best"), lines) if lines else ""


def page(book: dict[str, Any], fields: dict[str, str]) -> str:
    rows = [
        row
        for name in fields
        for row in sorted(book["cells"], key=lambda r: (r["size"], -r["target"]))
        if row["family"] == name
    ]
    loads = [load for row in rows for load in row["load"]]
    made = book["machine"]
    load = f"{min(loads):.0f} to {max(loads):.0f}, {statistics.median(loads):.1f} in the median"
    state = (
        f"Version {book['version']}, {made['when']}, Python {made['python']}, NumPy {made['numpy']}, "
        f"{made['processor']}; {made['how']}. The load of the machine while it was measured was {load}: above the "
        "number of cores, times are orders of magnitude. A cell shows the package as it was then; "
        "`--again` measures them anew."
    )
    shown = [(row["family"], row["target"]) for row in rows]
    main = [row for k, row in enumerate(rows) if (row["family"], row["target"]) not in shown[k + 1 :]]
    parts = [HEAD, f"## What came out\n\n{state}\n", summary(main, fields)]
    for field in dict.fromkeys(fields.values()):
        lines = [line(row) for row in main if fields[row["family"]] == field]
        if lines:
            parts.append(f"\n### {field.capitalize()}\n\n{table(TITLES, lines)}")
    if grown := growth(rows):
        parts.append(f"\n## How it grew\n\n{grown}")
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    from benchmarks.arena.families import FAMILIES

    made = page(
        json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), {family.name: family.field for family in FAMILIES}
    )
    sys.stdout.write(made)
