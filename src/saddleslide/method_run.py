"""Carrying a method of `baselines` out: limits, certificates at spaced inspections, history."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from saddleslide.adaptive_run import MOST_STEPS, Callback, check_limits
from saddleslide.arrays import Array
from saddleslide.baselines import Method, methods
from saddleslide.candidate import Candidate, Split
from saddleslide.errors import InputError, raise_all
from saddleslide.functions import split_simple
from saddleslide.inspecting import Inspector
from saddleslide.judging import Judge
from saddleslide.kernels.switch import compile_seconds, prepare
from saddleslide.oracles import Calls, Oracles
from saddleslide.planning.method_plan import MethodPlan
from saddleslide.problem import SaddleProblem
from saddleslide.result import Moment, Result, Status

# Without a finite gap after this many inspections there will be none.
_HOPELESS = 48


def method_plan(
    problem: SaddleProblem,
    name: str,
    tol: float = 0.0,
    rtol: float = 0.0,
    options: Mapping[str, Any] | None = None,
    every: int | None = None,
) -> MethodPlan:
    """The plan of a run with a named method, after one error with all that it lacks on this problem.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(2), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.eye(2), X=simplex, Y=simplex)
    >>> method_plan(game, "mirror-prox", tol=1e-2).options["output"]
    'average'
    """
    if options is not None and not isinstance(options, Mapping):
        raise InputError(f"solve: options is {options!r}; expected a mapping such as {{'output': 'last'}}.")
    method = methods[name](**dict(options or {}))
    silent = [part for part, function in (("f", problem.f), ("g", problem.g)) if not function.has_value]
    complaints = [f"{part} has no value, so no gap can be certified; pass value=." for part in silent]
    raise_all(f"method {name!r} can not run on this problem", complaints + method.lacks(problem))
    return MethodPlan(name, method.options, tol, rtol, every, shapes=(problem.X.shape, problem.Y.shape))


def carry_out_method(
    problem: SaddleProblem,
    plan: MethodPlan,
    *,
    start: tuple[Any, Any] | None = None,
    max_calls: Mapping[str, float] | None = None,
    max_steps: int = MOST_STEPS,
    callback: Callback | None = None,
) -> Result:
    """Run a method to its target or a limit; every call is counted, those of certificates included.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(2), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.array([[2.0, -1.0], [-1.0, 1.0]]), X=simplex, Y=simplex)
    >>> carry_out_method(game, method_plan(game, "mirror-prox", tol=1e-2)).status.name
    'SOLVED'
    """
    limits = check_limits(max_calls, max_steps, callback)
    shapes = (problem.X.shape, problem.Y.shape)
    if plan.shapes is not None and plan.shapes != shapes:
        raise InputError(f"run: the plan was made for x, y of shapes {plan.shapes}; expected {shapes}.")
    # A plan may come from a file: what it asks for is checked as in `solve`, and what it leaves out is filled in.
    full = method_plan(problem, plan.method, plan.tol, plan.rtol, plan.options, plan.every)
    return _MethodRun(problem, full, problem.start(start), limits, max_steps, callback).carry_out()


class _MethodRun:
    """One run: the method, the judge, the limits and the history."""

    def __init__(
        self,
        problem: SaddleProblem,
        plan: MethodPlan,
        origin: tuple[Array, Array],
        limits: dict[str, float],
        max_steps: int,
        callback: Callback | None,
    ) -> None:
        self.problem, self.plan, self.origin = problem, plan, origin
        self.limits, self.max_steps, self.callback = limits, max_steps, callback
        self.method: Method = methods[plan.method](**plan.options)
        self.oracles = Oracles(problem)
        parts = Split(*split_simple(problem.f, problem.X), *split_simple(problem.g, problem.Y))
        self.judge = Judge(problem, parts, plan.tol, plan.rtol, origin)
        self.inspector = Inspector(problem, parts, self.judge)
        self.history: list[Moment] = []
        self.steps, self.seconds, self.compiled_before = 0, 0.0, compile_seconds()
        self.last = origin
        prepare()

    def carry_out(self) -> Result:
        """Run to the target or a limit."""
        if not math.isfinite(self.problem.coupling.norm.upper):
            return self._result(Status.NON_FINITE)
        if self.plan.rtol > 0.0:
            # A relative target needs the gap at the start.
            self.inspector.exact_gap_of(Candidate(*self.origin, math.nan), self.oracles.calls)
            if self.judge.solved:
                return self._result(Status.SOLVED)
        self._timed(lambda: self.method.start(self.oracles, self.origin, self.judge.target))
        self.plan = replace(self.plan, notes=self.method.notes)
        status = self._iterate()
        return self._result(Status.SOLVED if self.judge.solved else status)

    def _iterate(self) -> Status:
        due = self.plan.next_inspection(0)
        while True:
            stop = self._limit_reached()
            if stop is not None:
                return stop if stop is Status.CALL_LIMIT or self._inspected else self._inspect() or stop
            self._timed(self.method.advance)
            self.steps += 1
            if not (self._is_due(due) or self.method.finished):
                continue
            status = self._inspect()
            if status is not None:
                return status
            if self.method.finished:
                return Status.COMPLETED if math.isfinite(self.judge.gap) else Status.NO_CERTIFICATE
            due = self.plan.next_inspection(self.steps)

    @property
    def _inspected(self) -> bool:
        """Whether the present point has been judged, or is the start."""
        return self.steps == (self.history[-1].step if self.history else 0)

    def _is_due(self, due: int) -> bool:
        """Judging waits until the method has called as often as the judge, but not for ever."""
        own, spent = self.oracles.calls, self.judge.oracles.calls
        affordable = self.plan.every is not None or (spent.f <= own.f and spent.g <= own.g)
        return self.steps >= (due if affordable else 2 * due)

    def _inspect(self) -> Status | None:
        """Judge the method's candidates; a status when the run ends here."""
        candidates = self.method.candidates()
        if not all(self.oracles.finite(c.x, c.y) for c in candidates):
            return Status.NON_FINITE
        self.last = (candidates[0].x, candidates[0].y)
        gaps = [self.inspector.gap_of(candidate, self.oracles.calls) for candidate in candidates]
        self.method.learn(gaps)
        if self._record():
            return Status.STOPPED
        if self.judge.solved:
            return Status.SOLVED
        if self.judge.at_rounding:
            return Status.NUMERICAL_LIMIT
        hopeless = len(self.history) >= _HOPELESS and not math.isfinite(self.judge.gap)
        return Status.NO_CERTIFICATE if hopeless else None

    def _timed(self, work: Callable[[], None]) -> None:
        began = time.perf_counter()
        work()
        self.seconds += time.perf_counter() - began

    def _calls(self) -> Calls:
        return self.oracles.calls + self.judge.oracles.calls

    def _limit_reached(self) -> Status | None:
        total = self._calls()
        if any(getattr(total, name) >= limit for name, limit in self.limits.items()):
            return Status.CALL_LIMIT
        return Status.STEP_LIMIT if self.steps >= self.max_steps else None

    def _record(self) -> bool:
        """Add a row to the history and call the callback; True when it asks to stop."""
        self.history.append(Moment(self.steps, self._calls(), self.seconds, self.judge.gap))
        if self.callback is None:
            return False
        try:
            self.callback(self._result(Status.RUNNING))
        except StopIteration:
            return True
        return False

    def _result(self, status: Status) -> Result:
        judge = self.judge
        # Without a bound the judge still holds the start; the method's own point is the better answer.
        x = judge.x if math.isfinite(judge.upper) else self.last[0]
        y = judge.y if math.isfinite(judge.lower) else self.last[1]
        return Result(
            np.array(x),
            np.array(y),
            status,
            judge.certificate(),
            self._calls(),
            self.seconds,
            (self.plan,),
            tuple(self.history),
            judge.target,
            compile_seconds=compile_seconds() - self.compiled_before,
        )
