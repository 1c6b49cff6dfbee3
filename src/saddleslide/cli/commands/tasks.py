"""What a command line asks for: a problem, how to explain, solve and compare it, and its words and arguments."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from saddleslide.api.comparison import Comparison, compare
from saddleslide.api.runner import run
from saddleslide.api.solver import solve
from saddleslide.certificates.certificate import certify
from saddleslide.cli.reporting import SOLUTION_FILES
from saddleslide.distributed import DaskSum, spread
from saddleslide.distributed.consensus import AgentFunctions
from saddleslide.planner.plans import plan
from saddleslide.problem import SaddleProblem
from saddleslide.runs.result import Result
from saddleslide.theory import Plan

EXIT_CODES = (
    "exit codes: 0 solved, 1 not solved, 2 wrong arguments, files that can not be read or written, or own code that\n"
    "  fails, 130 interrupted, 141 nobody reads the output any more"
)
# Predictions for the slow methods run through all their steps, which takes long at small targets.
_COMPARED = 1e-2


@final
@dataclass(frozen=True)
class Task:
    """A problem, and how to explain, solve and compare it."""

    problem: SaddleProblem
    explain: Callable[[], str]
    solve: Callable[..., Result]
    compare: Callable[[bool], Comparison]


def on_cluster(problem: SaddleProblem, chosen: argparse.Namespace) -> SaddleProblem:
    """The problem with its f on the cluster that --scheduler names; itself without one, or if f is there already."""
    client = getattr(chosen, "client", None)
    if client is None or isinstance(problem.f, DaskSum | AgentFunctions):
        return problem
    return spread(problem, client, chosen.parts)


def absolute(make: Callable[[argparse.Namespace], SaddleProblem]) -> Callable[[argparse.Namespace], Task]:
    """Tasks with the target --tol."""

    def task(chosen: argparse.Namespace) -> Task:
        problem = on_cluster(make(chosen), chosen)
        return Task(
            problem,
            lambda: plan(problem, chosen.tol).explain(),
            lambda **control: solve(problem, chosen.tol, **control),
            lambda really: compare(problem, chosen.tol, run=really),
        )

    return task


def relative(make: Callable[[argparse.Namespace], SaddleProblem]) -> Callable[[argparse.Namespace], Task]:
    """Tasks with the target --rtol, or --tol in its place, and the option --metric."""

    def task(chosen: argparse.Namespace) -> Task:
        problem = on_cluster(make(chosen), chosen)
        target = {"rtol": chosen.rtol} if chosen.tol is None else {"tol": chosen.tol}
        asked = target | {"metric": chosen.metric}

        def gap_at_start() -> float:
            return certify(problem, *problem.start()).gap

        return Task(
            problem,
            lambda: plan(problem, **asked).explain(),
            lambda **control: solve(problem, **asked, **control),
            lambda really: compare(problem, chosen.tol or chosen.rtol * gap_at_start(), run=really),
        )

    return task


def by_plan(problem: SaddleProblem, intended: Plan, tol: float) -> Task:
    """A task that carries a plan of the theorems out."""
    return Task(
        problem,
        intended.explain,
        lambda **control: run(problem, intended, **control),
        lambda really: compare(problem, tol, run=really),
    )


def papers_plan(problem: SaddleProblem, tol: float) -> Plan:
    """The plan of the paper's synthetic experiments."""
    return plan(problem, tol, regime="degenerate", metric="identity")


def whole(least: int) -> Callable[[str], int]:
    """The type of a whole number, at least `least`."""

    def whole_number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(f"is {text!r}; expected a whole number >= {least}.")
        return value

    return whole_number


def positive(text: str) -> float:
    """The type of a finite number > 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0.0):
        raise argparse.ArgumentTypeError(f"is {text!r}; expected a finite number > 0.")
    return value


@final
@dataclass(frozen=True)
class Entry:
    """A problem of the command line: its words, its arguments, and what they ask for.

    `examples` are lines for every command, with {command} in place of it; `report` is lines for `solve` alone.
    """

    name: str
    says: str
    examples: str
    report: str
    tol: float
    add: Callable[[Any], None]
    task: Callable[[argparse.Namespace], Task]
    relative: bool = False
    own: str = ""

    def page(self, command: str) -> str:
        """What stands below the arguments on the page of a command."""
        parts = ["examples:\n" + self.examples.format(command=command)] * bool(self.examples)
        parts += [f"with a report:\n{self.report}"] * (command == "solve" and bool(self.report))
        parts += [self.own.format(command=command)] * bool(self.own)
        return "\n".join([*parts, EXIT_CODES])

    def add_to(self, problems: Any, command: str) -> None:
        """Add the problem to the parsers of a command: solve, plan or compare."""
        one = problems.add_parser(
            self.name,
            help=self.says,
            description=self.says,
            epilog=self.page(command),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.add(one)
        target = max(_COMPARED, self.tol) if command == "compare" else self.tol
        if self.relative:
            says = f"target, relative to the gap at the start ({target:g})"
            targets = one.add_mutually_exclusive_group()
            targets.add_argument("--rtol", type=positive, default=target, help=says)
            targets.add_argument("--tol", type=positive, help="target gap, in place of a relative one")
        else:
            one.add_argument("--tol", type=positive, default=target, help=f"target gap ({target:g})")
        if command == "solve":
            one.add_argument("--explain", action="store_true", help="print the plan and stop")
            one.add_argument("--out", type=Path, metavar="DIR", help=f"write {', '.join(SOLUTION_FILES)} there")
        if command == "compare":
            one.add_argument("--run", action="store_true", help="run every method that applies")
