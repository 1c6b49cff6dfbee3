"""What a command line asks for: a problem, and how to explain, solve and compare it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from saddleslide.api.comparison import Comparison, compare
from saddleslide.api.runner import run
from saddleslide.api.solver import solve
from saddleslide.certificates.certificate import certify
from saddleslide.distributed import DaskSum, spread
from saddleslide.distributed.consensus import AgentFunctions
from saddleslide.planner.plans import plan
from saddleslide.problem import SaddleProblem
from saddleslide.runs.result import Result
from saddleslide.theory import Plan


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
        return Task(
            problem,
            lambda: plan(problem, **asked).explain(),
            lambda **control: solve(problem, **asked, **control),
            lambda really: compare(problem, chosen.tol or chosen.rtol * _gap_at_start(problem), run=really),
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


def _gap_at_start(problem: SaddleProblem) -> float:
    x, y = problem.start()
    return certify(problem, x, y).gap
