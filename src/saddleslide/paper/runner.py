"""Runs what is missing, keeps what is done, and says how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from saddleslide.errors import InputError
from saddleslide.paper.perform import perform, versions
from saddleslide.paper.rows import Row, append_row, read_rows
from saddleslide.paper.spec import Run
from saddleslide.paper.workers import in_processes

# Seconds of hinted work after which the measured pace weighs as much as the hints.
TRUST = 10.0


@dataclass(frozen=True)
class Step:
    """How far the runs are: how many of how many, the last row, and the seconds left as far as is known.

    Examples
    --------
    >>> Step(1, 2, {"status": "done"}, 3.0).done
    1
    """

    done: int
    total: int
    row: Row | None
    left: float


def missing(runs: Sequence[Run], rows: dict[str, Row]) -> list[Run]:
    """Runs without a finished row of this version of the package, the short ones first.

    Examples
    --------
    >>> run = Run("budgets", "main", "recursion", {}, {})
    >>> len(missing([run], {})), len(missing([run], {run.key: {"status": "done", "versions": versions()}}))
    (1, 0)
    """
    own = versions()["saddleslide"]

    def finished(run: Run) -> bool:
        row = rows.get(run.key, {})
        return row.get("status") == "done" and row.get("versions", {}).get("saddleslide") == own

    return sorted((run for run in runs if not finished(run)), key=lambda run: run.seconds)


def prepare_folder(folder: Path) -> None:
    """Make the folder, or say what is wrong with it before any work is done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(f"paper: --out is {str(folder)!r}; expected a folder that can be written: {error}.") from error


def run_missing(
    runs: Sequence[Run], folder: Path, jobs: int = 1, tick: Callable[[Step], None] = lambda step: None
) -> dict[str, Row]:
    """Carry out the runs that the folder lacks; every row is on the disk before the next is waited for."""
    rows = read_rows(folder)
    todo = missing(runs, rows)
    if jobs > 1:
        # The long ones first, so that no process is left alone with one at the end.
        todo.reverse()
    clock = _Clock(todo, jobs, len(runs))
    tick(clock.step(None))
    for row in in_processes(perform, todo, jobs, _lost, lambda: tick(clock.step(None))):
        append_row(folder, row)
        tick(clock.finished(row))
    return read_rows(folder)


def _lost(run: Run, reason: str) -> Row:
    """The row of a run whose process died."""
    return {"key": run.key, **run.identity(), "status": "failed", "error": reason, "versions": versions()}


class _Clock:
    """Time left: what the hints say of the runs that are left, in the measure of those that are done."""

    def __init__(self, todo: Sequence[Run], jobs: int, total: int) -> None:
        self.left = {run.key: run.seconds for run in todo}
        self.all, self.jobs, self.total = sum(self.left.values()), jobs, total
        self.began = self.last = time.monotonic()

    def finished(self, row: Row) -> Step:
        self.left.pop(row["key"], None)
        self.last = time.monotonic()
        return self.step(row)

    def step(self, row: Row | None) -> Step:
        rest = sum(self.left.values())
        # The hints stand at first; the pace of what is done takes over. The clock runs down between two runs.
        pace = (self.last - self.began + TRUST / self.jobs) / (self.all - rest + TRUST)
        left = max(rest * pace - (time.monotonic() - self.last), 0.0)
        return Step(self.total - len(self.left), self.total, row, left)
