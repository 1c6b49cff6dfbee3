"""`saddleslide paper`: runs the paper's experiments and shows ours beside print."""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Table as Grid
from rich.text import Text

from saddleslide.cli.commands.tasks import add_parser, whole
from saddleslide.paper.figures import draw_all
from saddleslide.paper.report import FILE as REPORT
from saddleslide.paper.report import write_report
from saddleslide.paper.rows import Row, require_rows
from saddleslide.paper.runner import Step, prepare_folder, run_missing
from saddleslide.paper.spec import NAMES, Experiment, choose
from saddleslide.paper.tables import Table, Verdict, agreement, tables_of, write_tables
from saddleslide.plots import require_matplotlib
from saddleslide.runs.terminal import Terminal

EXIT_AGREES, EXIT_DIFFERS, EXIT_INTERRUPTED = 0, 1, 130
FOLDER = Path("paper-results")
EXAMPLES = """examples:
  saddleslide paper list
  saddleslide paper run budgets
  saddleslide paper run all --quick --out quick
  saddleslide paper run all --jobs 2
  saddleslide paper report --out paper-results

A run that was interrupted goes on where it stopped: give the same folder again.
exit codes: 0 every deterministic cell that was run agrees, 1 some do not, 2 wrong arguments, 130 interrupted,
  141 nobody reads the output any more
"""
COLOURS = {
    Verdict.AGREES: "green", Verdict.DIFFERS: "bold red", Verdict.FAILED: "bold red", Verdict.MEASURED: "cyan",
    Verdict.OURS: "dim", Verdict.PARTIAL: "yellow", Verdict.NOT_RUN: "dim",
}  # fmt: skip


def add_paper(commands: Any) -> None:
    """The arguments of the command."""
    says = "run the paper's experiments and compare with the printed values"
    paper = add_parser(commands, "paper", says, EXAMPLES)
    actions = paper.add_subparsers(dest="action", required=True)
    actions.add_parser("list", help="the experiments, their runs and about how long they take")
    run = actions.add_parser("run", help="run experiments, write rows, tables, figures and the report")
    run.add_argument("names", nargs="+", metavar="NAME", choices=(*NAMES, "all"), help=f"{', '.join(NAMES)}, or all")
    run.add_argument("--quick", action="store_true", help="a part of the runs, about a minute for all experiments")
    run.add_argument("--jobs", type=whole(1), default=1, help="processes; rows do not depend on it (default 1)")
    run.add_argument("--tune", action="store_true", help="also the tuning protocol of tomography (about 20 minutes)")
    report = actions.add_parser("report", help="tables, figures and the report again, from the rows alone")
    report.add_argument("names", nargs="*", metavar="NAME", choices=(*NAMES, "all"), default="all", help="default all")
    for one in (run, report):
        one.add_argument("--seeds", type=whole(0), nargs="+", help="other seeds than the paper's: shown, not judged")
        one.add_argument("--out", type=Path, default=FOLDER, metavar="DIR", help=f"folder (default {FOLDER})")


def paper_main(asked: argparse.Namespace) -> int:
    """Carry out `saddleslide paper ...`."""
    console = Terminal(highlight=False)
    if asked.action == "list":
        console.print(_list())
        return EXIT_AGREES
    require_matplotlib()
    experiments = choose([asked.names] if isinstance(asked.names, str) else list(asked.names))
    if asked.action == "report":
        rows = require_rows(asked.out)
    else:
        prepare_folder(asked.out)
        # A polite request to end is an interrupt: rows are kept, workers go, and the command says how to go on.
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            rows = _run(experiments, asked, console)
        except KeyboardInterrupt:
            console.print(f"Interrupted. What is finished is kept: run the same command again with --out {asked.out}.")
            return EXIT_INTERRUPTED
        finally:
            signal.signal(signal.SIGTERM, before)
    return _show(experiments, rows, asked, console)


def _list() -> Grid:
    grid = Grid(title="The paper's experiments", title_justify="left")
    for head in ("name", "what it shows", "print", "runs", "quick", "about"):
        grid.add_column(head, justify="right" if head in ("runs", "quick", "about") else "left")
    for experiment in choose(["all"]):
        runs, quick = experiment.runs(), experiment.runs(quick=True)
        counts = str(len(runs)), str(len(quick)), _time(sum(run.seconds for run in runs))
        grid.add_row(experiment.name, experiment.title, experiment.label, *counts)
    return grid


def _time(seconds: float) -> str:
    return f"{max(seconds, 1.0):.0f} s" if seconds < 90.0 else f"{seconds / 60.0:.0f} min"


def _run(experiments: Sequence[Experiment], asked: argparse.Namespace, console: Console) -> dict[str, Row]:
    """All runs behind a live bar; in a pipe, one line for every tenth part."""
    runs = [run for e in experiments for run in e.runs(asked.quick, asked.seeds, asked.tune)]
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}"),
        TextColumn("[dim]{task.fields[last]}"),
    )  # fmt: skip
    said = time.monotonic()
    with Bar(*columns, console=Terminal(stderr=True), disable=not console.is_terminal) as bar:
        task = bar.add_task("runs", total=len(runs), left="", last="")

        def tick(step: Step) -> None:
            nonlocal said
            left = f"about {_time(step.left)} left" if step.done < step.total else "done"
            bar.update(task, completed=step.done, left=left)
            row = step.row
            if row is None:
                return
            bar.update(task, last=f"{row['experiment']} {row['group']}")
            # Where no one watches a bar: failures at once, the rest now and then.
            if row.get("status") == "failed":
                console.print(f"failed: {row['experiment']} {row['group']}: {row['error']}", markup=False)
            if not console.is_terminal and (time.monotonic() - said > 10.0 or step.done == step.total):
                said = time.monotonic()
                console.print(f"{step.done} of {step.total} runs, {left}")

        return run_missing(runs, asked.out, asked.jobs, tick)


def _show(experiments: Sequence[Experiment], rows: dict[str, Row], asked: argparse.Namespace, console: Console) -> int:
    tables = {experiment.name: tables_of(experiment, rows, asked.seeds) for experiment in experiments}
    flat = [table for several in tables.values() for table in several]
    for table in flat:
        if any(cell.verdict is not Verdict.NOT_RUN for cell in table.cells()):
            console.print(_grid(table))
    write_tables(asked.out, flat)
    figures = {experiment.name: draw_all(experiment, rows, asked.out) for experiment in experiments}
    write_report(asked.out, experiments, tables, figures, rows)
    found = agreement(flat)
    wrong = found["differs"] + found["failed"]
    # What a clock has a say in is shown, but decides nothing.
    deciding = [cell for table in flat for cell in table.cells() if cell.verdict.is_wrong and not cell.timed]
    keys = {run.key for e in experiments for run in e.runs(seeds=asked.seeds, optional=True)}
    failed = [row for row in rows.values() if row["status"] == "failed" and row["key"] in keys]
    console.print(
        f"{found['agrees']} of {found['agrees'] + wrong} judged cells agree with the paper; {found['measured']} are "
        f"measured, {found['partial'] + found['not run']} need runs that were not made. {asked.out / REPORT}",
        soft_wrap=True,
    )
    return EXIT_DIFFERS if deciding or failed else EXIT_AGREES


def _grid(table: Table) -> Grid:
    """One line per cell: paper, ours, difference, verdict."""
    where = f" ({table.label})" if table.label else ""
    grid = Grid(title=f"{table.title}{where}", title_justify="left")
    for head in (table.row_head, "", "paper", "ours", "difference", "verdict"):
        grid.add_column(head, justify="right" if head in ("paper", "ours", "difference") else "left")
    for name, line in table.lines.items():
        shown = [cell for cell in line if cell.verdict is not Verdict.NOT_RUN]
        for number, cell in enumerate(shown):
            texts = [Text(text) for text in (cell.head, cell.paper, cell.ours, cell.difference)]
            verdict = Text(cell.verdict.value, style=COLOURS[cell.verdict])
            grid.add_row(name if number == 0 else "", *texts, verdict, end_section=number == len(shown) - 1)
    return grid
