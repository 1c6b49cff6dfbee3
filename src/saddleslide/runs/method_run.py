"""Carrying a method of `baselines` out: limits, certificates at spaced inspections, history."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.certificates.candidate import Candidate, Split
from saddleslide.certificates.inspector import Inspector
from saddleslide.certificates.judge import Judge
from saddleslide.certificates.verdict import Certificate, Status
from saddleslide.errors import InputError, raise_all
from saddleslide.functions import split_simple
from saddleslide.methods.base import Method
from saddleslide.methods.catalogue import by_name
from saddleslide.oracles.oracles import Calls, Oracles, RunEnded
from saddleslide.problem import SaddleProblem
from saddleslide.runs.control import EARLY, Control, Watch, where_in
from saddleslide.runs.result import Moment, Result
from saddleslide.theory.method_plan import MethodPlan

# Without a finite gap after this many inspections there will be none.
_HOPELESS = 48
# A point is far from the best one when its gap is so many times larger. A method is stopped when all points of so many
# inspections in a row are, and those of the second half are no better than those of the first.
_FAR, _ASTRAY = 1e4, 30


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
    method = by_name[name](**dict(options or {}))
    silent = [part for part, function in (("f", problem.f), ("g", problem.g)) if not function.has_value]
    complaints = [f"{part} has no value, so no gap can be certified; pass value=." for part in silent]
    raise_all(f"method {name!r} can not run on this problem", complaints + method.lacks(problem))
    return MethodPlan(name, method.options, every, tol=tol, rtol=rtol, shapes=(problem.X.shape, problem.Y.shape))


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
    # A plan may come from a file: what it asks for is checked as in `solve`, and what it leaves out is filled in.
    checked = method_plan(problem, plan.method, options=plan.options)
    full = replace(plan, options=checked.options, shapes=checked.shapes)
    return MethodRun(problem, full, problem.start(start), control or Control()).carry_out()


class MethodRun:
    """One run: the method, the judge, the limits and the history. All of its state is in its attributes."""

    restored_first: ClassVar[tuple[str, ...]] = ("plan", "origin", "begun", "tol_at_start", "steps")

    def __init__(self, problem: SaddleProblem, plan: MethodPlan, origin: tuple[Array, Array], control: Control) -> None:
        origin = problem.placed(origin)
        self.problem, self.plan, self.origin, self.control = problem, plan, origin, control
        self.method: Method = by_name[plan.method](**plan.options)
        self.watch = Watch(control, self, self._calls)
        self.oracles = Oracles(problem, self.watch.gate, control.dry, guarded=True)
        parts = Split(*split_simple(problem.f, problem.X), *split_simple(problem.g, problem.Y))
        self.judge = Judge(problem, parts, plan.tol, plan.rtol, origin, control.dry, self.watch.gate, self.watch.left)
        self.inspector = Inspector(problem, parts, self.judge)
        self.history: list[Moment] = []
        self.steps = 0
        self.begun, self.tol_at_start = False, 0.0
        self.due = self.plan.next_inspection(0)
        # The smallest gap of any candidate, and the gaps since then while all of them are far larger.
        self.best_gap = math.inf
        self.astray: list[float] = []

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
        if self.begun and not self._inspected and status in (*EARLY, Status.INTERRUPTED):
            self._take_up()
        if not self.history and status in EARLY:
            self.control.judge_late(self.judge.judge_start)
        if status is Status.SOLVED:
            status = self.watch.carried_out(self._confirmed, self._where)
        met = self.judge.solved and status is not Status.INCONSISTENT
        return self._result(self.judge.certificate().claim if met else status)

    def _confirmed(self) -> Status:
        self.judge.confirm()
        return Status.SOLVED

    def _where(self) -> str:
        return where_in(self.plan, self.steps, self.oracles, self.judge.oracles)

    def _work(self) -> Status:
        if not self.begun:
            with self.control.clock.phase("certificate"):
                self.judge.open()
            stop = self.watch.between_steps(0)
            if stop is not None:
                return stop
            self.judge.doubt(self.watch.test_adjoint(self.oracles))
            if self.plan.rtol > 0.0:
                # A relative target needs the gap at the start.
                with self.control.clock.phase("certificate"):
                    self.inspector.exact_gap_of(Candidate(*self.origin, math.nan), self.oracles.calls)
                if self.judge.solved:
                    return Status.SOLVED
                if self.judge.at_rounding:
                    # A part of a gap that is rounding: no method can be asked for that.
                    return Status.NUMERICAL_LIMIT
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
        self.judge.latest = (candidates[0].x, candidates[0].y)
        with self.control.clock.phase("certificate"):
            gaps = [self.inspector.gap_of(candidate, self.oracles.calls) for candidate in candidates]
        self.method.learn(gaps)
        if self._record():
            return Status.STOPPED
        if self.judge.solved:
            return Status.SOLVED
        if self.judge.at_rounding:
            return Status.NUMERICAL_LIMIT
        if self._runs_away(min(gaps), candidates[0]):
            self.watch.reason = (
                f"The method has left its best point for good: for {len(self.astray)} inspections in a row certified "
                f"gaps were at least {min(self.astray):.3g}, after {self.best_gap:.3g}"
            )
            return Status.COMPLETED
        hopeless = len(self.history) >= _HOPELESS and not math.isfinite(self.judge.gap)
        return Status.NO_CERTIFICATE if hopeless else None

    def _take_up(self) -> None:
        """What the method has come to since the last inspection: the answer where no bound judges a block."""
        # The run is over: no oracle is asked any more, and a step cut short may have left anything.
        with contextlib.suppress(RunEnded), np.errstate(all="ignore"):
            self.oracles.gate = _closed
            found = self._last_point()
            pairs = zip(found, (self.problem.X, self.problem.Y), strict=True)
            if all(self.oracles.finite(point) and domain.contains(point, 1e-9) for point, domain in pairs):
                self.judge.latest = found

    def _last_point(self) -> tuple[Array, Array]:
        """The method's point, without what it would have to ask to be judged there."""
        try:
            found = self.method.candidates()[0]
        except RunEnded:
            return self.method.output()
        return found.x, found.y

    def _runs_away(self, gap: float, candidate: Candidate) -> bool:
        """Whether the method goes on at points far worse than its best one, and does not come back."""
        self.best_gap = min(self.best_gap, gap)
        if gap <= _FAR * self.best_gap:
            self.astray = []
            return False
        self.astray.append(gap)
        half = len(self.astray) // 2
        if len(self.astray) < _ASTRAY or min(self.astray[half:]) < min(self.astray[:half]):
            return False
        # Cheap bounds may have been what was bad: a certified inner solve decides.
        exact = gap if self.inspector.closed else self.inspector.exact_gap_of(candidate, self.oracles.calls)
        if exact > _FAR * self.best_gap:
            return True
        self.astray = []
        return False

    def _timed(self, work: Callable[[], None]) -> None:
        with self.control.clock.phase("method"):
            work()

    def _calls(self) -> Calls:
        return self.oracles.calls + self.judge.oracles.calls + self.control.spent_before

    def _record(self) -> bool:
        """Add a row to the history and call the callback; True when it asks to stop."""
        self.history.append(Moment(self.steps, self._calls(), self.control.clock.elapsed, self.judge.gap))
        return self.watch.stops(lambda: self._result(Status.RUNNING))

    def _result(self, status: Status) -> Result:
        judge = self.judge
        x, y = judge.point
        seen = judge.certificate()
        if status is Status.INCONSISTENT:
            seen = Certificate(reason=self.watch.reason, calls=seen.calls)
        return Result(
            np.array(x),
            np.array(y),
            status,
            seen,
            self._calls(),
            self.control.clock.elapsed,
            (self.plan,),
            tuple(self.history),
            judge.target,
            timings=self.control.clock.timings,
            time_limit=self.control.time_limit,
            detail=self.watch.reason if status in (Status.NON_FINITE, Status.COMPLETED) else "",
        )


def _closed(name: str, count: float) -> None:
    """The gate of a run that is over."""
    raise RunEnded(Status.CALL_LIMIT.name)
