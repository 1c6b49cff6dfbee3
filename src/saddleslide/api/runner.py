"""`run`: carries a plan out, counts, times, reports, and judges the result."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any

import numpy as np

from saddleslide import runs
from saddleslide.api.starts import take_start
from saddleslide.arrays.base import keep_memory
from saddleslide.arrays.kinds import NUMPY, traffic
from saddleslide.certificates.books import count_aside
from saddleslide.certificates.candidate import Split
from saddleslide.certificates.judge import Judge
from saddleslide.certificates.verdict import Certificate, Status
from saddleslide.errors import InputError
from saddleslide.facts.facts import Facts
from saddleslide.kernels.threads import use_threads
from saddleslide.methods.base import Former
from saddleslide.methods.catalogue import method_of, method_plan
from saddleslide.oracles.calls import Calls, RunEnded
from saddleslide.oracles.sampling import as_generator, is_sampled, quiet_problem
from saddleslide.planner.courses import course_of
from saddleslide.problem import SaddleProblem
from saddleslide.runs.answer import as_meant, convert
from saddleslide.runs.control import EVERY, MOST_STEPS, Callback, Control, as_control
from saddleslide.runs.loop import Run
from saddleslide.runs.result import Result
from saddleslide.theory.plan import Plan, Target


def run(
    problem: SaddleProblem,
    plan: Plan,
    *,
    start: tuple[Any, Any] | Result | None = None,
    callback: Callback | None = None,
    rng: int | np.random.Generator = 0,
    threads: int = 1,
    max_calls: Mapping[str, float] | None = None,
    max_steps: int | None = None,
    time_limit: float | None = None,
    strict: bool = False,
    on_interrupt: str = "raise",
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_every: int = EVERY,
    check_adjoint: bool | None = None,
) -> Result:
    """Carry out a plan and judge the point it gives.

    Parameters
    ----------
    problem : SaddleProblem
        The problem the plan was made for.
    plan : Plan
        From `ss.plan`, or the first of an earlier result: what `ss.solve` does, with the same bits and calls.
    start : (x, y) or Result, optional
        As in `ss.solve`.
    callback : callable, optional
        Called with an intermediate `Result` after every outermost step; raising StopIteration ends the run.
    rng : int or numpy.random.Generator, optional
        Where sampled gradients draw from; the same seed gives the same bits. Exact gradients draw nothing.
    threads : int, optional
        Threads for products with large sparse matrices; the bits of the result do not depend on it.
    max_steps : int, optional
        Limit on outer steps; without one a plan of the theorems makes all the steps it has.
    max_calls, time_limit, strict, on_interrupt, checkpoint, checkpoint_every : optional
        As in `ss.solve`. Of a schedule of a theorem limits are on its own calls; judging its point comes on top.
    check_adjoint : bool, optional
        As in `ss.solve`; a plan of the theorems makes no call but its own unless this is True.

    Returns
    -------
    Result
        What `ss.solve` gives for the plan that it begins with. `result.calls` are all calls: those of making the plan
        (`plan.spent`), of the run and of judging. `result.certificate_calls` are those of judging, `result.counted` the
        method's own with the products of a schedule that nobody needed, `result.samples` what sampled gradients drew.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(2), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.array([[2.0, -1.0], [-1.0, 1.0]]), X=simplex, Y=simplex)
    >>> result = ss.run(game, ss.plan(game, order="fgB", loops=(1, 1, 400)))
    >>> result.x.round(2).tolist(), result.gap < 0.02
    ([0.4, 0.6], True)
    """
    if not isinstance(problem, SaddleProblem) or not isinstance(plan, Plan):
        raise InputError(
            f"run: received {type(problem).__name__} and {type(plan).__name__}; expected a SaddleProblem and a Plan."
        )
    if max_steps is None:
        max_steps = MOST_STEPS if plan.schedule is None else sys.maxsize
    control = as_control(
        "run", max_calls=max_calls, max_steps=max_steps, time_limit=time_limit, callback=callback,
        on_interrupt=on_interrupt, checkpoint=checkpoint, checkpoint_every=checkpoint_every,
        check_adjoint=check_adjoint, strict=strict,
    )  # fmt: skip
    if is_sampled(problem) and not plan.sampled:
        raise InputError(
            "run: f or g has a sampled gradient, and the plan was made for exact ones; expected a plan with variances. "
            "Plan this problem anew."
        )
    shapes = (problem.X.shape, problem.Y.shape)
    if plan.shapes is not None and plan.shapes != shapes:
        raise InputError(
            f"run: the plan was made for x, y of shapes {plan.shapes}; expected {shapes}. Plan this problem anew."
        )
    problem, goal, (point, former) = quiet_problem(problem), plan.target, take_start(problem, start)
    if plan.schedule is None or plan.schedule.accuracy is not None:
        # What making the plan took is counted as in `solve`, which makes its own.
        control.books.note(Calls(*plan.spent))
    with use_threads(threads, "run"):
        work = partial(carry_out, problem, plan, point, control, rng, former)
        result = hold_to_limits(problem, point, control, goal, work)
    return result.or_raise() if strict else result


def hold_to_limits(
    problem: SaddleProblem, start: Any, control: Control, goal: Target, work: Callable[[], Result]
) -> Result:
    """What `work` gives, or the start where a limit came before the run; with all that the call made and took."""
    keep_memory(problem.X.size + problem.Y.size)
    clock, before = control.clock, traffic()
    with count_aside(problem, control.books):
        try:
            with clock.phase("plan"):
                result = work()
        except RunEnded as ended:
            result = _start_alone(problem, start, control, goal, Status[ended.status])
        with clock.phase("certificate"):
            # Of the problem that was meant, as arrays of its kind, with what was copied to or from the host.
            transfers = (traffic() - before).total
            guests = [] if problem.arrays == NUMPY else [plan for plan in result.plans if method_of(plan).on_host]
            on_host = (*problem.on_host, *(f"method: {plan.method} is SciPy's" for plan in guests))
            result = replace(as_meant(result, problem), transfers=transfers, on_host=on_host)
            result = convert(result, problem)
    return replace(result, seconds=clock.seconds, timings=clock.timings)


def _start_alone(problem: SaddleProblem, start: Any, control: Control, goal: Target, status: Status) -> Result:
    """The start with its bounds, for a call that a limit ended while it was planned."""
    point = problem.place(problem.start(start))
    seen, target, spent = Certificate(reason="the time was up before the start was judged."), math.nan, Calls()
    control.books.extend()
    with contextlib.suppress(RunEnded):
        facts = Facts(problem)
        blocks = (facts.f.rest, facts.f.simple, facts.g.rest, facts.g.simple)
        judge = Judge(problem, Split(*(part.function for part in blocks)), goal, point)
        if problem.f.has_value and problem.g.has_value:
            control.judge_late(judge.judge_start)
        seen, target, spent = judge.certificate(), judge.target, judge.oracles.calls
        status = seen.claim if judge.is_solved else status
    return Result(
        np.array(point[0]), np.array(point[1]), status, seen, control.spent_before + spent, control.clock.seconds, (),
        target=target, time_limit=control.time_limit, aside=control.spent_before,
    )  # fmt: skip


def carry_out(
    problem: SaddleProblem,
    plan: Plan,
    start: tuple[Any, Any] | None,
    control: Control,
    rng: int | np.random.Generator = 0,
    former: Former | None = None,
    facts: Facts | None = None,
) -> Result:
    """Run a plan to its target or a limit, and what may follow it; every call is counted.

    `facts` are those that the plan was made from just now.
    """
    generator, point = as_generator(rng, "run"), problem.start(start)
    if control.checkpoint is not None:
        # What can not be written is refused before any work.
        header = {"plan": plan.to_dict(), "problem": runs.fingerprint(problem)}
        control = replace(control, header=header, start=point)
    if plan.regime == "method" and facts is None:
        # A plan may come from a file: what it asks for is checked as in `solve`, and what it leaves out is filled in.
        checked = method_plan(Facts(problem), method_of(plan))
        plan = replace(plan, settings=checked.settings, shapes=checked.shapes)
    return Run(problem, plan, point, control, generator, course_of(problem, plan), former, facts).carry_out()
