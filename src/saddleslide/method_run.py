"""Carrying a method of `baselines` out: limits, certificates at spaced inspections, history."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from saddleslide.arrays import Array
from saddleslide.baselines import Method, methods
from saddleslide.candidate import Candidate, Split
from saddleslide.control import EARLY, Control, Watch, where_in
from saddleslide.errors import InputError, raise_all
from saddleslide.functions import split_simple
from saddleslide.inspecting import Inspector
from saddleslide.judging import Judge
from saddleslide.kernels.switch import compile_seconds, prepare
from saddleslide.oracles import Calls, Oracles
from saddleslide.planning.method_plan import MethodPlan
from saddleslide.problem import SaddleProblem
from saddleslide.result import Moment, Result
from saddleslide.verdict import Certificate, Status

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
    problem: SaddleProblem, plan: MethodPlan, start: tuple[Any, Any] | None = None, control: Control | None = None
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
    shapes = (problem.X.shape, problem.Y.shape)
    if plan.shapes is not None and plan.shapes != shapes:
        raise InputError(f"run: the plan was made for x, y of shapes {plan.shapes}; expected {shapes}.")
    # A plan may come from a file: what it asks for is checked as in `solve`, and what it leaves out is filled in.
    full = method_plan(problem, plan.method, plan.tol, plan.rtol, plan.options, plan.every)
    return MethodRun(problem, full, problem.start(start), control or Control()).carry_out()


class MethodRun:
    """One run: the method, the judge, the limits and the history. All of its state is in its attributes."""

    restored_first: ClassVar[tuple[str, ...]] = ("plan", "origin", "begun", "tol_at_start", "steps")

    def __init__(self, problem: SaddleProblem, plan: MethodPlan, origin: tuple[Array, Array], control: Control) -> None:
        origin = problem.placed(origin)
        self.problem, self.plan, self.origin, self.control = problem, plan, origin, control
        self.method: Method = methods[plan.method](**plan.options)
        self.watch = Watch(control, self, self._calls)
        self.oracles = Oracles(problem, self.watch.gate, control.dry, guarded=True)
        parts = Split(*split_simple(problem.f, problem.X), *split_simple(problem.g, problem.Y))
        self.judge = Judge(problem, parts, plan.tol, plan.rtol, origin, control.dry, self.watch.gate, self.watch.left)
        self.inspector = Inspector(problem, parts, self.judge)
        self.history: list[Moment] = []
        self.steps, self.seconds, self.compiled_before = 0, 0.0, compile_seconds()
        self.begun, self.tol_at_start = False, 0.0
        self.due = self.plan.next_inspection(0)
        self.last = origin
        prepare()

    def rebuild(self) -> None:
        """The method as it began, before its state is restored; or, where it keeps that to itself, as it went on."""
        if not self.begun:
            return
        self.oracles.dry = self.method.storable
        self.method.start(self.oracles, self.origin, self.tol_at_start)
        for _ in range(0 if self.method.storable else self.steps):
            self.method.advance()

    def carry_out(self) -> Result:
        """Run to the target or a limit, from where the run stands."""
        if not math.isfinite(self.problem.coupling.norm.upper):
            return self._result(Status.NON_FINITE)
        status = self.watch.carried_out(self._work, self._where)
        if not self.history and status in EARLY:
            self.judge.judge_start()
        met = self.judge.solved and status is not Status.INCONSISTENT
        return self._result(self.judge.certificate().claim if met else status)

    def _where(self) -> str:
        return where_in(self.plan, self.steps, self.oracles, self.judge.oracles)

    def _work(self) -> Status:
        if not self.begun:
            self.judge.open()
            stop = self.watch.between_steps(0)
            if stop is not None:
                return stop
            self.watch.test_adjoint(self.oracles)
            if self.plan.rtol > 0.0:
                # A relative target needs the gap at the start.
                self.inspector.exact_gap_of(Candidate(*self.origin, math.nan), self.oracles.calls)
                if self.judge.solved:
                    return Status.SOLVED
            self.tol_at_start = self.judge.target
            self._timed(lambda: self.method.start(self.oracles, self.origin, self.tol_at_start))
            self.begun = True
            self.plan = replace(self.plan, notes=self.method.notes)
        while True:
            status = self._step()
            if status is not None:
                return status

    def _step(self) -> Status | None:
        stop = self.watch.between_steps(self.steps)
        if stop is not None:
            return self._inspect() or stop if stop is Status.STEP_LIMIT and not self._inspected else stop
        self._timed(self.method.advance)
        self.steps += 1
        if not (self._is_due(self.due) or self.method.finished):
            return None
        status = self._inspect()
        if status is None and self.method.finished:
            return Status.COMPLETED if math.isfinite(self.judge.gap) else Status.NO_CERTIFICATE
        self.due = self.plan.next_inspection(self.steps)
        return status

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
            return Status.NUMERICAL_LIMIT
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
        return self.oracles.calls + self.judge.oracles.calls + self.control.before

    def _record(self) -> bool:
        """Add a row to the history and call the callback; True when it asks to stop."""
        self.history.append(Moment(self.steps, self._calls(), self.seconds, self.judge.gap))
        return self.watch.stops(lambda: self._result(Status.RUNNING))

    def _result(self, status: Status) -> Result:
        judge = self.judge
        # Without a bound the judge still holds the start; the method's own point is the better answer.
        x = judge.x if math.isfinite(judge.upper) else self.last[0]
        y = judge.y if math.isfinite(judge.lower) else self.last[1]
        seen = judge.certificate()
        if status is Status.INCONSISTENT:
            seen = Certificate(reason=self.watch.reason, calls=seen.calls)
        return Result(
            np.array(x),
            np.array(y),
            status,
            seen,
            self._calls(),
            self.seconds,
            (self.plan,),
            tuple(self.history),
            judge.target,
            compile_seconds=compile_seconds() - self.compiled_before,
            time_limit=self.control.time_limit,
        )
