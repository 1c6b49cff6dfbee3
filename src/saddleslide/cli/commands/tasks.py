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
from saddleslide.cli.reporting import SOLUTION_FILES
from saddleslide.distributed import DaskSum, spread
from saddleslide.distributed.consensus import AgentFunctions
from saddleslide.planner.plans import plan
from saddleslide.problem import SaddleProblem
from saddleslide.runs.result import Result
from saddleslide.theory.plan import Plan

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
        """All methods."""
        targets = {name: value for name, value in self.asked.items() if name in ("tol", "rtol", "reduction")}
        return compare(self.problem, **targets, run=really)


# What may be asked for, and how a page says it.
_TARGETS = {
    "tol": "target gap",
    "rtol": "target, relative to the size of the saddle value",
    "reduction": "target, relative to the gap at the start",
}


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
    one's own. A problem with a `relative` target aims at a part of the gap at the start, and takes --metric.
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
        given = {name: value for name in _TARGETS if (value := getattr(chosen, name)) is not None}
        target = given or {"reduction" if self.relative else "tol": chosen.default}
        if self.relative:
            return Task(problem, target | {"metric": chosen.metric})
        # The paper's instances are solved by the paper's plan for an absolute target unless --adaptive is given.
        papers = not getattr(chosen, "adaptive", True) and "tol" in target
        intended = plan(problem, **target, regime="degenerate", metric="identity") if papers else None
        return Task(problem, target, intended)

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
        targets = one.add_mutually_exclusive_group()
        for name, says in _TARGETS.items():
            default = f" ({target:g})" if name == ("reduction" if self.relative else "tol") else ""
            targets.add_argument(f"--{name}", type=positive, help=says + default)
        one.set_defaults(default=target)
        if command == "solve":
            one.add_argument("--explain", action="store_true", help="print the plan and stop")
            one.add_argument("--out", type=Path, metavar="DIR", help=f"write {', '.join(SOLUTION_FILES)} there")
        if command == "compare":
            one.add_argument("--run", action="store_true", help="run every method that applies")
