"""Tables: ours beside print, cell by cell, with a verdict."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from importlib.resources import files
from typing import Any

from saddleslide.paper.calibration import with_shared_prices
from saddleslide.paper.rows import Row, field_of
from saddleslide.paper.spec import Experiment, Run
from saddleslide.paper.statistics import STATISTICS

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
    def judged(self) -> bool:
        """Whether the cell counts in the summary of agreement."""
        return self in (Verdict.AGREES, Verdict.DIFFERS, Verdict.FAILED)


@dataclass(frozen=True)
class Cell:
    """One number: in print, ours, what lies between, and the verdict; `timed` where a clock has a say in it.

    Examples
    --------
    >>> Cell("gap", "0.152", "0.152", "0", Verdict.AGREES).verdict.judged
    True
    """

    head: str
    paper: str
    ours: str
    difference: str
    verdict: Verdict
    note: str = ""
    timed: bool = False


@dataclass(frozen=True)
class Table:
    """A table of one experiment.

    Examples
    --------
    >>> Table("budgets", "e2", "tab:e2_mixed", "Budgets", ("gap",), {"(1,0.5)": ()}).count(Verdict.AGREES)
    0
    """

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

    def count(self, verdict: Verdict) -> int:
        """How many cells have this verdict."""
        return sum(cell.verdict is verdict for cell in self.cells())


@cache
def printed() -> dict[str, dict[str, dict[str, str]]]:
    """Values as the paper prints them: label of the table, row, column.

    Examples
    --------
    >>> printed()["tab:e2_mixed"]["(1, 0.5)"]["gap"]
    '0.152'
    """
    text = (files("saddleslide.paper") / "printed.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def tables_of(experiment: Experiment, rows: Mapping[str, Row], seeds: Collection[int] | None = None) -> list[Table]:
    """All tables of an experiment from the rows at hand."""
    rows = with_shared_prices(rows)
    return [_table(experiment, data, rows, seeds) for data in experiment.tables]


def _table(
    experiment: Experiment, data: dict[str, Any], rows: Mapping[str, Row], seeds: Collection[int] | None
) -> Table:
    groups = data["groups"]
    belongs = [run for run in experiment.runs(optional=True) if run.group in groups]
    selected = [run for run in experiment.runs(seeds=seeds, optional=True) if run.group in groups]
    names = list(dict.fromkeys(name for run in selected if (name := _line_name(run, data))))
    paper = printed().get(data.get("label", ""), {})
    lines = {}
    for name in names:
        lines[name] = _line(name, data, belongs, selected, rows, paper.get(name, {}))
    heads = tuple(column["head"] for column in data["columns"] if not column.get("hidden", False))
    return Table(
        experiment.name, data["name"], data.get("label", ""), data["title"], heads, lines,
        data.get("row_head", ""), data.get("note", ""),
    )  # fmt: skip


def _line_name(run: Run, data: Mapping[str, Any]) -> str:
    """The name of the line that a run belongs to; empty when it has none of its own."""
    parts = [field_of(run.identity(), name) for name in data.get("by", [])]
    if None in parts:
        return ""
    names = data.get("names", {})
    return str(data.get("row_format", "all")).format(*(names.get(str(part), part) for part in parts))


def _line(
    name: str,
    data: Mapping[str, Any],
    belongs: list[Run],
    selected: list[Run],
    rows: Mapping[str, Row],
    paper: Mapping[str, str],
) -> tuple[Cell, ...]:
    """The cells of a line; a column "everywhere" draws on the runs of all lines."""
    values: dict[str, Any] = {}
    cells = []
    for column in data["columns"]:
        wanted, there = (
            [
                run
                for run in runs
                if _matches(run, column) and (column.get("everywhere") or _line_name(run, data) == name)
            ]
            for runs in (belongs, selected)
        )
        found = [rows[run.key] for run in there if run.key in rows]
        cell = _cell(column, wanted, found, values, paper.get(column["head"], column.get("paper", "")))
        if not column.get("hidden", False):
            cells.append(cell)
    return tuple(cells)


def _matches(run: Run, column: Mapping[str, Any]) -> bool:
    where = column.get("where", {})
    return all(field_of(run.identity(), name) == value for name, value in where.items())


def _cell(column: dict[str, Any], wanted: list[Run], found: list[Row], values: dict[str, Any], paper: str) -> Cell:
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
    ours = formatted(value, column.get("format", "{}"))
    verdict = _verdict(column, value, ours, paper, complete)
    apart = "0" if ours == paper and numbers(paper) else difference(value, paper)
    return replace(blank, ours=ours, difference=apart, verdict=verdict)


def formatted(value: Any, form: str) -> str:
    """A value as the paper would print it; ranges in brackets.

    Examples
    --------
    >>> formatted((0.1079, 0.1961), "{:.3f}"), formatted(115680, "{:d}")
    ('[0.108, 0.196]', '115680')
    """
    if isinstance(value, tuple):
        return f"[{', '.join(form.format(part) for part in value)}]"
    if isinstance(value, str):
        return value
    if form.endswith("d}") and isinstance(value, float):
        # A median of two counts may lie between them.
        return form.format(int(value)) if value == int(value) else str(value)
    return form.format(value)


def numbers(text: str) -> list[float]:
    """Numbers in a printed value.

    Examples
    --------
    >>> numbers("[1.897, 1.931]"), numbers("1,843,204"), numbers("4.7×"), numbers("fgB"), numbers("3.10%")
    ([1.897, 1.931], [1843204.0], [4.7], [], [0.031])
    """
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
        good = float(value) <= float(column["at_most"])
        return Verdict.DIFFERS if not good else (Verdict.AGREES if complete else Verdict.PARTIAL)
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
