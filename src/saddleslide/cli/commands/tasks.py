"""What a command line asks for: a problem, how to explain, solve and compare it, and its words and arguments."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
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
    """A problem, the target and the settings for it, and a plan of the theorems where one is to be carried out."""

    problem: SaddleProblem
    asked: Mapping[str, Any]
    intended: Plan | None = None

    def explain(self) -> str:
        """What would be done."""
        return (self.intended or plan(self.problem, **self.asked)).explain()

    def solve(self, **control: Any) -> Result:
        """Do it."""
        if self.intended is not None:
            return run(self.problem, self.intended, **control)
        return solve(self.problem, **self.asked, **control)

    def compare(self, really: bool) -> Comparison:
        """All methods; a relative target is one of the gap at the start."""
        tol = self.asked.get("tol") or self.asked["rtol"] * certify(self.problem, *self.problem.start()).gap
        return compare(self.problem, tol, run=really)


def add_parser(parsers: Any, name: str, says: str, page: str) -> Any:
    """The parser of a command or of a problem, with lines of our own below its arguments."""
    as_written = argparse.RawDescriptionHelpFormatter
    return parsers.add_parser(name, help=says, description=says, epilog=page, formatter_class=as_written)


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
    """A problem of the command line: its words, its target, its arguments, and the problem that they ask for.

    `examples` are arguments that go with every command, `reports` with `solve` alone; `own` says how to bring data of
    one's own. A problem with a `relative` target takes --rtol and --metric.
    """

    name: str
    says: str
    tol: float
    add: Callable[[Any], None]
    make: Callable[[argparse.Namespace], SaddleProblem]
    examples: tuple[str, ...] = ()
    report: str = ""
    own: str = ""
    relative: bool = False

    def task(self, chosen: argparse.Namespace) -> Task:
        """What the arguments ask for; with --scheduler, f is put on that cluster unless it is there already."""
        problem, client = self.make(chosen), getattr(chosen, "client", None)
        if client is not None and not isinstance(problem.f, DaskSum | AgentFunctions):
            problem = spread(problem, client, chosen.parts)
        if self.relative:
            target = {"rtol": chosen.rtol} if chosen.tol is None else {"tol": chosen.tol}
            return Task(problem, target | {"metric": chosen.metric})
        # The paper's instances are solved by the paper's plan unless --adaptive is given.
        papers = not getattr(chosen, "adaptive", True)
        intended = plan(problem, chosen.tol, regime="degenerate", metric="identity") if papers else None
        return Task(problem, {"tol": chosen.tol}, intended)

    def page(self, command: str) -> str:
        """What stands below the arguments on the page of a command."""
        lines = "".join(f"  saddleslide {command} {self.name} {example}".rstrip() + "\n" for example in self.examples)
        parts = ["examples:\n" + lines] * bool(lines)
        report = f"with a report:\n  saddleslide solve {self.name} {self.report}\n"
        parts += [report] * (command == "solve" and bool(self.report))
        parts += [self.own.format(command=command)] * bool(self.own)
        return "\n".join([*parts, EXIT_CODES])

    def add_to(self, problems: Any, command: str) -> None:
        """Add the problem to the parsers of a command: solve, plan or compare."""
        one = add_parser(problems, self.name, self.says, self.page(command))
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
