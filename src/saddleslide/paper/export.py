"""Tables as CSV and Markdown, and the summary of agreement as JSON."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from saddleslide.paper.tables import Cell, Table, Verdict

SUMMARY = "summary.json"


def as_csv(table: Table) -> str:
    """One line per cell: row, column, paper, ours, difference, verdict, note.

    Examples
    --------
    >>> cell = Cell("gap", "0.152", "0.152", "0", Verdict.AGREES)
    >>> print(as_csv(Table("budgets", "e2", "", "Budgets", ("gap",), {"(1, 0.5)": (cell,)})).splitlines()[1])
    "(1, 0.5)",gap,0.152,0.152,0,agrees,
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["row", "column", "paper", "ours", "difference", "verdict", "note"])
    for name, line in table.lines.items():
        for cell in line:
            writer.writerow([name, cell.head, cell.paper, cell.ours, cell.difference, cell.verdict.value, cell.note])
    return text.getvalue()


def as_markdown(table: Table) -> str:
    """The table as people read it: ours, and the paper's value wherever it is not the same.

    Examples
    --------
    >>> cell = Cell("gap", "0.152", "0.153", "+0.001", Verdict.DIFFERS)
    >>> print(as_markdown(Table("budgets", "e2", "", "Budgets", ("gap",), {"(1, 0.5)": (cell,)})).splitlines()[-1])
    | (1, 0.5) | **0.153** (paper 0.152) |
    """
    lines = [f"### {table.title}", "", f"| {table.row_head} | {' | '.join(map(_safe, table.heads))} |"]
    lines.append(f"|---|{'---|' * len(table.heads)}")
    for name, line in table.lines.items():
        lines.append(f"| {_safe(name)} | {' | '.join(_safe(_markdown(cell)) for cell in line)} |")
    if table.note:
        lines += ["", table.note]
    return "\n".join(lines) + "\n"


def _safe(text: str) -> str:
    return text.replace("|", "\\|")


def _markdown(cell: Cell) -> str:
    if cell.verdict is Verdict.NOT_RUN:
        return f"not run{f' (paper {cell.paper})' if cell.paper else ''}"
    ours = f"**{cell.ours}**" if cell.verdict in (Verdict.DIFFERS, Verdict.FAILED) else cell.ours
    return ours if cell.ours == cell.paper or not cell.paper else f"{ours} (paper {cell.paper})"


def write_tables(folder: Path, tables: Sequence[Table]) -> None:
    """Every table in both forms under tables/, and the summary."""
    where = folder / "tables"
    where.mkdir(parents=True, exist_ok=True)
    for table in tables:
        (where / f"{table.experiment}_{table.name}.csv").write_text(as_csv(table), encoding="utf-8")
        (where / f"{table.experiment}_{table.name}.md").write_text(as_markdown(table), encoding="utf-8")
    text = json.dumps(agreement(tables), indent=1)
    (folder / SUMMARY).write_text(text + "\n", encoding="utf-8")


def agreement(tables: Sequence[Table]) -> dict[str, Any]:
    """Cells by verdict, for each experiment and in all, and every judged cell that differs.

    Examples
    --------
    >>> agreement([])["agrees"]
    0
    """
    counts = Counter(cell.verdict for table in tables for cell in table.cells())
    experiments: dict[str, dict[str, int]] = {}
    for table in tables:
        own = experiments.setdefault(table.experiment, {verdict.value: 0 for verdict in Verdict})
        for cell in table.cells():
            own[cell.verdict.value] += 1
    differing = [
        {
            "table": table.name,
            "row": name,
            "column": cell.head,
            "paper": cell.paper,
            "ours": cell.ours,
            "note": cell.note,
        }
        for table in tables
        for name, line in table.lines.items()
        for cell in line
        if cell.verdict in (Verdict.DIFFERS, Verdict.FAILED)
    ]
    total = {verdict.value: counts[verdict] for verdict in Verdict}
    return {**total, "experiments": experiments, "differing": differing}
