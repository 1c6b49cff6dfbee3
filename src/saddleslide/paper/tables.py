"""Tables: ours beside print, cell by cell, with a verdict; as CSV, as Markdown, and their summary as JSON."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from saddleslide.paper.rows import Row, field_of, share_prices
from saddleslide.paper.spec import Experiment, Run
from saddleslide.paper.statistics import STATISTICS

SUMMARY = "summary.json"
_NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")


class Verdict(Enum):
    """What became of a cell. The value is what people read."""

    AGREES = "agrees"
    DIFFERS = "differs"
    FAILED = "failed"
    MEASURED = "measured"
    OURS = "ours"
    PARTIAL = "partial"
    NOT_RUN = "not run"

    @property
    def is_wrong(self) -> bool:
        """Whether a judged cell does not agree."""
        return self in (Verdict.DIFFERS, Verdict.FAILED)

    @property
    def is_judged(self) -> bool:
        """Whether the cell counts in the summary of agreement."""
        return self.is_wrong or self is Verdict.AGREES


@dataclass(frozen=True)
class Cell:
    """One number: in print, ours, what lies between, and the verdict; `timed` where a clock has a say in it."""

    head: str
    paper: str
    ours: str
    difference: str
    verdict: Verdict
    note: str = ""
    timed: bool = False


@dataclass(frozen=True)
class Table:
    """A table of one experiment."""

    experiment: str
    name: str
    label: str
    title: str
    heads: tuple[str, ...]
    lines: dict[str, tuple[Cell, ...]]
    row_head: str = ""
    note: str = ""

    def cells(self) -> list[Cell]:
        """All cells, line by line."""
        return [cell for line in self.lines.values() for cell in line]


@cache
def printed_values() -> dict[str, dict[str, dict[str, str]]]:
    """Values as the paper prints them: label of the table, row, column."""
    text = (files("saddleslide.paper") / "printed.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def tables_of(experiment: Experiment, rows: Mapping[str, Row], seeds: Collection[int] | None = None) -> list[Table]:
    """All tables of an experiment from the rows at hand."""
    rows = share_prices(rows)
    return [_fill_table(experiment, data, rows, seeds) for data in experiment.tables]


def _fill_table(
    experiment: Experiment, data: dict[str, Any], rows: Mapping[str, Row], seeds: Collection[int] | None
) -> Table:
    groups, label = data["groups"], data.get("label", "")
    belongs = [run for run in experiment.runs(optional=True) if run.group in groups]
    selected = [run for run in experiment.runs(seeds=seeds, optional=True) if run.group in groups]
    paper = printed_values().get(label, {})
    names = dict.fromkeys(name for run in selected if (name := _line_name(run, data)))
    lines = {name: _fill_line(name, data, (belongs, selected), rows, paper.get(name, {})) for name in names}
    heads = tuple(column["head"] for column in data["columns"] if not column.get("hidden", False))
    notes = data.get("row_head", ""), data.get("note", "")
    return Table(experiment.name, data["name"], label, data["title"], heads, lines, *notes)


def _line_name(run: Run, data: Mapping[str, Any]) -> str:
    """The name of the line that a run belongs to; empty when it has none of its own."""
    parts = [field_of(run.identity(), name) for name in data.get("by", [])]
    if None in parts:
        return ""
    names = data.get("names", {})
    return str(data.get("row_format", "all")).format(*(names.get(str(part), part) for part in parts))


def _fill_line(
    name: str, data: Mapping[str, Any], runs: Sequence[list[Run]], rows: Mapping[str, Row], paper: Mapping[str, str]
) -> tuple[Cell, ...]:
    """The cells of a line, from the runs that the paper has and those that are asked for.

    A column "everywhere" draws on the runs of all lines.
    """
    values: dict[str, Any] = {}
    cells = []
    for column in data["columns"]:

        def belongs(run: Run, column: Mapping[str, Any] = column) -> bool:
            where = column.get("where", {}).items()
            matches = all(field_of(run.identity(), field) == value for field, value in where)
            return matches and bool(column.get("everywhere") or _line_name(run, data) == name)

        wanted, there = (list(filter(belongs, several)) for several in runs)
        found = [rows[run.key] for run in there if run.key in rows]
        cell = _fill_cell(column, wanted, found, values, paper.get(column["head"], column.get("paper", "")))
        if not column.get("hidden", False):
            cells.append(cell)
    return tuple(cells)


def _fill_cell(column: dict[str, Any], wanted: list[Run], found: list[Row], values: dict[str, Any], paper: str) -> Cell:
    blank = Cell(column["head"], paper, "", "", Verdict.NOT_RUN, column.get("note", ""), column.get("timed", False))
    failed = [row for row in found if row["status"] != "done"]
    if failed:
        return replace(blank, ours="failed", verdict=Verdict.FAILED, note=failed[0].get("error", ""))
    if not found and wanted:
        return blank
    try:
        value = STATISTICS[column["statistic"]](found, column, values)
    except (KeyError, ZeroDivisionError, ValueError, IndexError, TypeError):
        # A statistic that needs runs which are not there yet.
        return blank
    complete = {run.key for run in wanted} == {row["key"] for row in found} or column.get("any_run", False)
    if value is None:
        return replace(blank, ours="never", verdict=Verdict.DIFFERS if complete and paper else Verdict.PARTIAL)
    values[column["head"]] = value
    ours = format_value(value, column.get("format", "{}"))
    verdict = _verdict(column, value, ours, paper, complete)
    apart = "0" if ours == paper and numbers(paper) else difference(value, paper)
    return replace(blank, ours=ours, difference=apart, verdict=verdict)


def format_value(value: Any, form: str) -> str:
    """A value as the paper would print it; ranges in brackets."""
    if isinstance(value, tuple):
        return f"[{', '.join(form.format(part) for part in value)}]"
    if isinstance(value, str):
        return value
    if form.endswith("d}") and isinstance(value, float):
        # A median of two counts may lie between them.
        return form.format(int(value)) if value == int(value) else str(value)
    return form.format(value)


def numbers(text: str) -> list[float]:
    """Numbers in a printed value."""
    bracketed = re.sub(r",\s", " ", text)
    found = [float(part.replace(",", "")) for part in _NUMBER.findall(bracketed)]
    return [part / 100.0 for part in found] if text.endswith("%") else found


def difference(value: Any, paper: str) -> str:
    """Ours minus the paper's, for numbers; the larger of the two for a range."""
    theirs = numbers(paper)
    ours = list(value) if isinstance(value, tuple) else [value]
    if not theirs or len(theirs) != len(ours) or any(isinstance(part, str) for part in ours):
        return ""
    gaps = [float(a) - b for a, b in zip(ours, theirs, strict=True)]
    worst = max(gaps, key=abs)
    return "0" if worst == 0.0 else f"{worst:+.2g}"


def _verdict(column: Mapping[str, Any], value: Any, ours: str, paper: str, complete: bool) -> Verdict:
    if column.get("measured", False):
        return Verdict.MEASURED
    if "at_most" in column:
        if float(value) > float(column["at_most"]):
            return Verdict.DIFFERS
        return Verdict.AGREES if complete else Verdict.PARTIAL
    if not paper:
        return Verdict.OURS
    if not complete:
        return Verdict.PARTIAL
    return Verdict.AGREES if _agrees(column, value, ours, paper) else Verdict.DIFFERS


def _agrees(column: Mapping[str, Any], value: Any, ours: str, paper: str) -> bool:
    if "tolerance" not in column and "relative" not in column:
        return ours == paper
    theirs = numbers(paper)
    mine = list(value) if isinstance(value, tuple) else [value]
    allowed = [float(column.get("tolerance", 0.0)) + float(column.get("relative", 0.0)) * abs(b) for b in theirs]
    return len(theirs) == len(mine) and all(
        abs(float(a) - b) <= limit * (1.0 + 1e-12) + 1e-15 and math.isfinite(float(a))
        for a, b, limit in zip(mine, theirs, allowed, strict=True)
    )


def as_csv(table: Table) -> str:
    """One line per cell: row, column, paper, ours, difference, verdict, note."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["row", "column", "paper", "ours", "difference", "verdict", "note"])
    for name, line in table.lines.items():
        for cell in line:
            writer.writerow([name, cell.head, cell.paper, cell.ours, cell.difference, cell.verdict.value, cell.note])
    return text.getvalue()


def as_markdown(table: Table) -> str:
    """The table as people read it: ours, and the paper's value wherever it is not the same."""
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
    ours = f"**{cell.ours}**" if cell.verdict.is_wrong else cell.ours
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
    """Cells by verdict, for each experiment and in all, and every judged cell that differs."""
    total = {verdict.value: 0 for verdict in Verdict}
    experiments: dict[str, dict[str, int]] = {table.experiment: dict(total) for table in tables}
    differing = []
    for table in tables:
        for name, line in table.lines.items():
            for cell in line:
                total[cell.verdict.value] += 1
                experiments[table.experiment][cell.verdict.value] += 1
                if cell.verdict.is_wrong:
                    parts = {"paper": cell.paper, "ours": cell.ours, "note": cell.note}
                    differing.append({"table": table.name, "row": name, "column": cell.head, **parts})
    return {**total, "experiments": experiments, "differing": differing}
