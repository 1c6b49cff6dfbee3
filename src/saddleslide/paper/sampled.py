"""Runs with sampled gradients: one plan carried out many times, each time with draws of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from saddleslide.api.runner import run as carry_out
from saddleslide.paper.instances import Instance
from saddleslide.paper.intended import about, has_restarts, intended_plan
from saddleslide.paper.judge import Judge, Outcome
from saddleslide.paper.spec import Run
from saddleslide.runs.result import Result
from saddleslide.theory import Plan
from saddleslide.theory.restarts import CONTRACTION

# A mean lies below a bound when it does so with this many standard errors added.
ERRORS = 2.0


def sampled(run: Run, given: Instance, judge: Judge) -> Outcome:
    """`draws` runs of one plan: means with their standard errors beside what the theory promises of them."""
    intended = intended_plan(given, run)
    draws = range(int(run.settings["draws"]))
    if not has_restarts(intended):
        results = [carry_out(given.problem, intended, rng=draw) for draw in draws]
        measured = compared([[result.gap] for result in results], [intended.bound])
    else:
        # A target that no certificate meets: all stages are carried out, and the counts can be compared.
        every = replace(intended, tol=5e-324)
        pairs = [_traced(given, every, draw) for draw in draws]
        results = [result for result, _ in pairs]
        measured = compared([trace for _, trace in pairs], promised(intended))
    last = results[-1]
    more = {
        **about(intended, last.nit), "planned": intended.predicted_calls, "draws": len(results),
        "exact_draws": sum(_as_planned(result, intended) for result in results), "monte_carlo": measured,
        "samples": asdict(last.samples), "planned_samples": intended.predicted_samples,
    }  # fmt: skip
    seconds = [result.timings["method"] for result in results]
    return Outcome(last.x, last.y, last.counted, seconds, None, intended.order, intended.bound, more=more)


def compared(found: Sequence[Sequence[float]], promises: Sequence[float]) -> dict[str, Any]:
    """Means over the draws, their standard errors, and the worst (mean + 2 errors) / promise.

    Examples
    --------
    >>> compared([[1.0], [3.0]], [8.0])
    {'mean': [2.0], 'standard_error': [1.0], 'promised': [8.0], 'share': 0.5}
    """
    values = np.array(found)
    mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))
    share = float(np.max((mean + ERRORS * error) / np.array(promises)))
    return {"mean": mean.tolist(), "standard_error": error.tolist(), "promised": list(promises), "share": share}


def promised(intended: Plan) -> list[float]:
    """What E[Psi] shall be at most at the end of every stage: 3/4 Gamma_s + C_anc Delta_anc / b."""
    assert intended.schedule is not None
    return [CONTRACTION * stage.Omega + stage.anchor_error for stage in intended.schedule.stages]


def _traced(given: Instance, intended: Plan, draw: int) -> tuple[Result, list[float]]:
    """The run, and Psi at the end of every stage."""
    assert intended.schedule is not None
    ends = set(np.cumsum([stage.levels[0].T for stage in intended.schedule.stages]).tolist())
    trace: list[float] = []

    def look(result: Result) -> None:
        if result.nit in ends:
            trace.append(given.Psi(result.x, result.y))

    return carry_out(given.problem, intended, callback=look, rng=draw), trace


def _as_planned(result: Result, intended: Plan) -> bool:
    """Whether a run made exactly the planned calls and drew exactly the planned samples."""
    calls, samples = intended.predicted_calls, intended.predicted_samples
    return result.counted.by_oracle == calls and asdict(result.samples) == samples
