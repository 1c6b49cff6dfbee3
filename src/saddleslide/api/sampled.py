"""`solve` with sampled gradients: plans for smaller and smaller accuracies until a certificate meets the target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from saddleslide.api.runner import carry_out, with_header
from saddleslide.certificates.certificate import judged
from saddleslide.certificates.verdict import Status
from saddleslide.errors import InputError, raise_all
from saddleslide.facts.costs import chosen_costs
from saddleslide.planner.courses import sampled_plan
from saddleslide.problem import SaddleProblem
from saddleslide.runs.control import Control
from saddleslide.runs.result import Result

# Judging the start may take this many gradients, where no relative target needs its gap.
_GRADIENTS = 25


def solve_sampled(
    problem: SaddleProblem,
    goal: tuple[float, float],
    start: tuple[Any, Any] | None,
    costs: Sequence[float] | str | None,
    control: Control,
    rng: int | np.random.Generator = 0,
) -> Result:
    """Run to the target with sampled gradients; the gap of the output is judged with exact ones where there are any.

    Without exact gradients the plan whose bound on the expected gap meets the target is run once; its result says
    EXPECTED and gives the bound, not a gap.
    """
    known, point, (target, relative) = problem.f.has_value and problem.g.has_value, problem.start(start), goal
    if relative > 0.0:
        complaint = "rtol needs the gap at the start, which is not known; expected tol=, an absolute target."
        raise_all("solve", [complaint] * (not known))
        found = judged(problem, *point)
        control.books.note(found.calls)
        raise_all("solve", [complaint] * (not math.isfinite(found.gap)))
        target = max(target, relative * found.gap, 0.0)
        if found.gap <= target or found.at_rounding:
            # The start is optimal, so far as numbers can tell: no plan can be asked for a part of its gap.
            status = found.claim if found.gap <= target else Status.NUMERICAL_LIMIT
            aside = control.books.calls - found.calls
            return Result(
                *point, status, found, control.books.calls, 0.0, (), target=target, time_limit=control.time_limit,
                aside=aside,
            )  # fmt: skip
    gap = math.inf
    if known:
        found = judged(problem, *point, max_gradients=_GRADIENTS)
        control.books.note(found.calls)
        gap = found.gap
    prices = chosen_costs(problem, costs, "solve") if costs is not None else None
    made = sampled_plan(problem, target, gap, point, prices)
    spent = control.books.calls
    made = replace(made, spent=(spent.f, spent.g, spent.B))
    return carry_out(problem, made, start, with_header(control, problem, made, start), rng)


def refuse_settings(method: object, options: object, metric: object) -> None:
    """What `solve` takes for exact gradients alone."""
    if method != "auto" or options is not None:
        raise InputError(
            f"solve: method is {method!r}; expected 'auto' without options for sampled gradients. Pass exact "
            "functions for a method by name."
        )
    if metric not in ("auto", "blocks"):
        raise InputError(f"solve: metric {metric!r} needs exact gradients of f; expected 'auto' with sampled ones.")
