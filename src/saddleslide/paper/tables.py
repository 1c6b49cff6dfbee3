"""Tables: ours beside print, cell by cell, with a verdict; as CSV, as Markdown, and their summary as JSON."""

from __future__ import annotations

import csv
import io
import json
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from saddleslide.paper.rows import Row, field_of, share_costs
from saddleslide.paper.spec import Experiment, Run
from saddleslide.paper.statistics import STATISTICS, Column

SUMMARY, SAFE_BAR = "summary.json", "\\|"
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
def read_printed() -> dict[str, dict[str, dict[str, str]]]:
    """Values as the paper prints them: label of the table, row, column."""
    return tomllib.loads((files("saddleslide.paper") / "printed.toml").read_text(encoding="utf-8"))


def tables_of(experiment: Experiment, rows: Mapping[str, Row], seeds: Collection[int] | None = None) -> list[Table]:
    """All tables of an experiment from the rows at hand."""
    rows, tables = share_costs(rows), []
    for data in experiment.tables:
        label, heads = data.get("label", ""), [one["head"] for one in data["columns"] if not one.get("hidden", False)]
        in_paper = [run for run in experiment.runs(optional=True) if run.group in data["groups"]]
        asked = [run for run in experiment.runs(seeds=seeds, optional=True) if run.group in data["groups"]]
        lines = {}
        for name in dict.fromkeys(name for run in asked if (name := _line_name(run, data))):
            paper = read_printed().get(label, {}).get(name, {})
            lines[name] = _fill_line(name, data, in_paper, asked, rows, paper)
        notes = data.get("row_head", ""), data.get("note", "")
        tables.append(Table(experiment.name, data["name"], label, data["title"], tuple(heads), lines, *notes))
    return tables


def _line_name(run: Run, data: Mapping[str, Any]) -> str:
    """The name of the line that a run belongs to; empty when it has none of its own."""
    parts = [field_of(run.identity(), name) for name in data.get("by", [])]
    names = data.get("names", {})
    form = "" if None in parts else str(data.get("row_format", "all"))
    return form.format(*(names.get(str(part), part) for part in parts))


def _fill_line(
    name: str, data: Column, in_paper: list[Run], asked: list[Run], rows: Mapping[str, Row], paper: Mapping[str, str]
) -> tuple[Cell, ...]:
    """The cells of a line, from the runs that the paper has and those that are asked for.

    A column "everywhere" draws on the runs of all lines.
    """
    values: dict[str, Any] = {}
    cells = []
    for column in data["columns"]:

        def belongs(run: Run, column: Column = column) -> bool:
            where = column.get("where", {}).items()
            matches = all(field_of(run.identity(), field) == value for field, value in where)
            return matches and bool(column.get("everywhere") or _line_name(run, data) == name)

        wanted = {run.key for run in filter(belongs, in_paper)}
        found = [rows[run.key] for run in filter(belongs, asked) if run.key in rows]
        cell = _fill_cell(column, wanted, found, values, paper.get(column["head"], column.get("paper", "")))
        if not column.get("hidden", False):
            cells.append(cell)
    return tuple(cells)


def _fill_cell(column: Column, wanted: set[str], found: list[Row], values: dict[str, Any], paper: str) -> Cell:
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
    complete = wanted == {row["key"] for row in found} or column.get("any_run", False)
    if value is None:
        return replace(blank, ours="never", verdict=Verdict.DIFFERS if complete and paper else Verdict.PARTIAL)
    values[column["head"]] = value
    ours = format_value(value, column.get("format", "{}"))
    apart = "0" if ours == paper and numbers(paper) else difference(value, paper)
    return replace(blank, ours=ours, difference=apart, verdict=_verdict(column, value, ours, paper, complete))


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
    found = [float(part.replace(",", "")) for part in _NUMBER.findall(re.sub(r",\s", " ", text))]
    return [part / 100.0 for part in found] if text.endswith("%") else found


def _pairs(value: Any, paper: str) -> list[tuple[float, float]]:
    """Our numbers beside those in print; empty where there are none, or not as many."""
    ours, theirs = value if isinstance(value, tuple) else (value,), numbers(paper)
    if len(ours) != len(theirs) or any(isinstance(part, str) for part in ours):
        return []
    return [(float(a), b) for a, b in zip(ours, theirs, strict=True)]


def difference(value: Any, paper: str) -> str:
    """Ours minus the paper's, for numbers; the larger of the two for a range."""
    worst = max((a - b for a, b in _pairs(value, paper)), key=abs, default=None)
    return "" if worst is None else "0" if worst == 0.0 else f"{worst:+.2g}"


def _verdict(column: Column, value: Any, ours: str, paper: str, complete: bool) -> Verdict:
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
    if "tolerance" not in column and "relative" not in column:
        return Verdict.AGREES if ours == paper else Verdict.DIFFERS
    tolerance, relative, pairs = column.get("tolerance", 0.0), column.get("relative", 0.0), _pairs(value, paper)
    near = (abs(a - b) <= (tolerance + relative * abs(b)) * (1.0 + 1e-12) + 1e-15 for a, b in pairs)
    return Verdict.AGREES if pairs and all(near) else Verdict.DIFFERS


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

    def text(cell: Cell) -> str:
        ours = f"**{cell.ours}**" if cell.verdict.is_wrong else cell.ours
        if cell.verdict is Verdict.NOT_RUN:
            ours = "not run"
        return f"{ours} (paper {cell.paper})" if cell.paper and cell.ours != cell.paper else ours

    def line_of(parts: Iterable[str]) -> str:
        return f"| {' | '.join(part.replace('|', SAFE_BAR) for part in parts)} |"

    lines = [f"### {table.title}", "", line_of([table.row_head, *table.heads]), f"|---|{'---|' * len(table.heads)}"]
    lines += [line_of([name, *map(text, line)]) for name, line in table.lines.items()]
    return "\n".join(lines + (["", table.note] if table.note else [])) + "\n"


def write_tables(folder: Path, tables: Sequence[Table]) -> None:
    """Every table in both forms under tables/, and the summary."""
    where = folder / "tables"
    where.mkdir(parents=True, exist_ok=True)
    for table in tables:
        (where / f"{table.experiment}_{table.name}.csv").write_text(as_csv(table), encoding="utf-8")
        (where / f"{table.experiment}_{table.name}.md").write_text(as_markdown(table), encoding="utf-8")
    (folder / SUMMARY).write_text(json.dumps(agreement(tables), indent=1) + "\n", encoding="utf-8")


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
