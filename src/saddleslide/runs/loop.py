"""The loop of a run: step, judge, record, learn, until the target or a limit is reached.

Whatever the method. What it does in a step, which points it offers to be judged, and what it makes of their gaps is
its own affair (`methods/base.py`); so is a change of course, which it hands over as a `Revision`. Where a plan has come
to its end short of the target, a `Course` may have another one, which goes on from its point.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from saddleslide import runs
from saddleslide.arrays.base import Array
from saddleslide.arrays.kinds import to_host
from saddleslide.arrays.state import State
from saddleslide.certificates.candidate import Candidate
from saddleslide.certificates.judge import Judge
from saddleslide.certificates.judgement import JUDGEMENTS, Judgement
from saddleslide.certificates.verdict import Certificate, Status
from saddleslide.facts.facts import Facts
from saddleslide.methods import schedule
from saddleslide.methods.base import STAGES, Former, Method, Revision, hands_on
from saddleslide.methods.catalogue import method_of
from saddleslide.oracles.calls import ACROSS, Calls, RunEnded
from saddleslide.oracles.oracles import Oracles
from saddleslide.oracles.sampling import Samples, drawn_problem
from saddleslide.problem import SaddleProblem
from saddleslide.runs.astray import Astray
from saddleslide.runs.control import BETWEEN, EARLY, Control, Watch
from saddleslide.runs.result import Moment, Past, Result
from saddleslide.theory.plan import Plan

_log = logging.getLogger("saddleslide")

# Without a finite gap after this many steps there will be none.
_HOPELESS = 256
# Own code is compared with its values at this row of the history, and at ends that may be its fault.
_DOUBTFUL = 24
_MET = Status.SOLVED, Status.SOLVED_WITHIN, Status.MET_AS_DECLARED
_CONFIRMED = Status.SOLVED, Status.NUMERICAL_LIMIT, Status.COMPLETED, Status.NO_CERTIFICATE
# Where a method itself expects a gap of more than so many times the target, only every so many steps are judged; more
# where only a look can tell what the target is.
_FAR_OFF, _RARELY, _OFTEN = 2.0, 16, 4
# What may end a run in the middle of a stage.
_EXPLAINED = (Status.NON_FINITE, Status.COMPLETED, Status.INFEASIBLE, Status.UNBOUNDED)
_UNJUDGED = (*EARLY, Status.INTERRUPTED, Status.NON_FINITE, Status.NUMERICAL_LIMIT)


class Subject(NamedTuple):
    """What a run is about where that is no saddle problem in the main: its method, and how points are judged.

    `judge` makes a judge of what `StageJudge` is made of.
    """

    method: Method
    judge: Callable[..., runs.StageJudge]


class Course(Protocol):
    """What follows a plan that has come to its end: another method, a smaller accuracy, or nothing."""

    def is_over(self, plans: Sequence[Plan], history: Sequence[Moment], target: float) -> bool:
        """Whether the last of the plans has had its chance, after a row of the history; `target` is its gap."""

    def next_plan(self, found: Result, cut: bool) -> Plan | None:
        """The plan that goes on from the point of a result; `cut` says that `is_over` has ended its plan."""


@dataclass(eq=False, repr=False)
class RunState(State):
    """Where a run stands: its plans, what those before the present one have come to, the method's state and the bounds.

    The first fields are what a fresh run needs to make the others; see `Run.rebuild`.
    """

    plans: list[Plan]
    past: Past
    start: tuple[Array, Array]
    samples: Samples
    rng: np.random.Generator | None
    begun: bool
    tol_at_start: float
    steps: int

    history: list[Moment]
    due: int
    # Whether the course has ended the plan.
    cut: bool
    astray: Astray
    oracles: Oracles
    judge: Judge | runs.StageJudge
    judgement: Judgement | runs.StageJudge
    state: State | None


class Run(RunState):
    """One run of a problem from a feasible start: the method of its plan, the judge, the limits and the history."""

    # So many fields are restored before `rebuild`.
    restored_first: ClassVar[int] = 8

    def __init__(
        self,
        problem: SaddleProblem,
        plan: Plan,
        start: tuple[Array, Array],
        control: Control,
        rng: np.random.Generator | None = None,
        course: Course | None = None,
        former: Former | None = None,
        facts: Facts | None = None,
        subject: Subject | None = None,
    ) -> None:
        self.given, self.control, self.course, self.former = problem, control, course, former
        self.subject = subject
        # Distances take calls, and a run makes its own.
        self._known = None if facts is None else facts.with_distances(None)
        self.rng = rng if plan.sampled else None
        self.samples, self.past, self.history = Samples(), Past(), []
        self.watch = Watch(control, self, self._count_limited, self._where)
        self.plans = [self._fit(plan, start)]
        self._set_out(start)

    def _fit(self, plan: Plan, start: tuple[Array, Array]) -> Plan:
        """The plan for this problem and start, where it has a schedule."""
        return plan if plan.schedule is None else schedule.fit(plan, self.given, start)

    def _set_out(self, start: tuple[Array, Array]) -> None:
        """All that belongs to the last of the plans, at its beginning."""
        plan, control, watch = self.plan, self.control, self.watch
        self.start, x_y = start, self.given.place(start)
        # From here on x is what the plan calls x: the roles of x and y are exchanged back in `_given` and `_result`.
        self.mirrored = watch.mirrored = plan.mirrored
        self.problem = problem = self.given.mirrored() if self.mirrored else self.given
        self.own_start = (x_y[1], x_y[0]) if self.mirrored else x_y
        seen = problem if self.rng is None else drawn_problem(problem, self.rng, self.samples)
        self.oracles = Oracles(seen, watch.gate, control.dry, guarded=True)
        self.facts = self._known if self._known is not None and not self.mirrored else Facts(problem)
        self.expected_gap = schedule.bound_expected_gap(plan, self.given, start) if plan.sampled else math.nan
        self.method: Method = method_of(plan) if self.subject is None else self.subject.method
        self.state = None
        if self.by_stages:
            made = runs.StageJudge if self.subject is None else self.subject.judge
            self.judge = self.judgement = made(problem, plan.tol, self.own_start, self.oracles, control, watch)
        else:
            split = self.method.split(self.facts)
            self.judge = Judge(problem, split, plan.target, self.own_start, control.dry, watch.gate, watch.left)
            self.judgement = JUDGEMENTS[self.method.judgement(self.facts)](problem, split, self.judge)
        self.steps, self.begun, self.tol_at_start = 0, False, 0.0
        self.due, self.cut, self.astray = plan.next_judgement(0), False, Astray()
        _log.info("%s: %s", plan.method, "; ".join(plan.reasons) or "as it was planned")

    @property
    def plan(self) -> Plan:
        """The plan that is being carried out."""
        return self.plans[-1]

    @property
    def by_stages(self) -> bool:
        """Whether the method is judged between its stages, and every step is a row of the history."""
        return self.method.judged == STAGES

    def rebuild(self) -> None:
        """The method as it began, before its state is restored; or, where it keeps that to itself, as it went on."""
        begun, tol, steps = self.begun, self.tol_at_start, self.steps
        self._set_out(self.start)
        self.begun, self.tol_at_start, self.steps = begun, tol, steps
        if not begun:
            return
        self.oracles.dry = self.method.storable
        self.state = self.method.init(self.oracles, self.facts, self.own_start, tol)
        for _ in range(0 if self.method.storable else steps):
            found = self.method.step(self.state, self.oracles)
            assert not isinstance(found, Revision)
            self.state = found

    def carry_out(self) -> Result:
        """Run to the target or a limit, from where the run stands: plan after plan, where one follows."""
        while True:
            found = self._carry_out_plan()
            with self.control.clock.phase("plan"):
                plan = None if self.course is None else self.course.next_plan(found, self.cut)
            if plan is None:
                return found
            if self.past.steps + self.steps >= self.control.max_steps:
                return replace(found, status=Status.STEP_LIMIT)
            if self.watch.has_no_calls_left():
                return replace(found, status=Status.CALL_LIMIT)
            self._go_on_with(plan, found)

    def _go_on_with(self, plan: Plan, found: Result) -> None:
        """Another plan, from the point of what was found; all that was spent stays in the books of this run."""
        spared, steps = self.past.spared + self.oracles.spared, self.past.steps + self.steps
        self.past = Past(self._own_calls(), self._count_judging(), spared, steps)
        if not self.by_stages:
            # The last end of a stage is the answer, whatever was found before.
            best = (found.x, found.y)
            self.past = replace(self.past, target=found.target, point=best, certificate=found.certificate)
        start, (judge, mirrored) = self.given.start((found.x, found.y)), (self.judge, self.mirrored)
        self.plans.append(self._fit(plan, start))
        self._set_out(start)
        if isinstance(judge, Judge) and isinstance(self.judge, Judge):
            self.judge.nearby.keep_scale(judge.nearby, mirrored is not self.mirrored)

    def _carry_out_plan(self) -> Result:
        coupling = self.problem.coupling
        if coupling.norm_at_hand and not math.isfinite(coupling.size_bound):
            return self._result(Status.NON_FINITE)
        status = self._end(self.watch.carry_out(self._iterate, Status.RUNNING))
        met = self.judge.is_solved and status is not Status.INCONSISTENT
        found = self._result(self.judge.certificate().claim if met else status)
        _log.info("%s after %d steps: gap %.4g", found.status.name, self.past.steps + self.steps, found.gap)
        return found

    def _iterate(self) -> Status:
        """The loop: step, judge where that is due, until a status says how the plan has ended."""
        status = None if self.begun else self._begin()
        while status is None:
            limit = self.watch.between_steps(self.past.steps + self.steps)
            if limit is not None:
                if self._is_solved_after_all():
                    return Status.SOLVED
                return (self._judge() if limit is Status.STEP_LIMIT and not self._is_judged else None) or limit
            with self.control.clock.phase("method"):
                found = self.method.step(self.state, self.oracles)
            if isinstance(found, Revision):
                self._revise(found)
                continue
            self.state, self.steps = found, self.steps + 1
            stopped = False
            if self.by_stages:
                self.judge.latest = self.method.point(self.state, self.oracles)
                stopped = self._record(math.nan)
            if stopped or self._is_due():
                status = self._judge(stopped)
        return status

    def _begin(self) -> Status | None:
        """Judge the start and begin the method there; a status when the run ends before its first step."""
        with self.control.clock.phase("certificate"):
            self.judge.open()
        stop = self.watch.between_steps(self.past.steps)
        if stop is not None:
            return stop
        # A plan of the theorems makes no call but its own unless it is asked to.
        self.judge.doubt(self.watch.test_adjoint(self.oracles, unasked=not self.by_stages))
        with self.control.clock.phase("certificate"):
            self.judgement.open(self.own_start, self.oracles.calls)
        if self.judge.is_solved:
            return Status.SOLVED
        if self.judge.at_rounding:
            if isinstance(self.judge, Judge) and self.judge.accept_start():
                return Status.SOLVED
            # A part of a gap that is rounding: no method can be asked for that.
            return Status.NUMERICAL_LIMIT
        self.tol_at_start = self.judge.first_target
        with self.control.clock.phase("method"):
            self.state = self._first_state()
        self.begun = True
        notes = self.method.notes(self.state, self.facts)
        self.plans[-1] = replace(self.plan, notes=notes) if notes else self.plan
        # A schedule without stages: the start meets its target already.
        return self._judge() if self.by_stages and self.method.is_finished(self.state) else None

    def _first_state(self) -> State:
        """The method's state at the start, with what an earlier run of the same kind has learnt."""
        given, former, plan = (self.oracles, self.facts, self.own_start, self.tol_at_start), self.former, self.plan
        same = ("method", "mirrored", "shapes")
        if former is not None and all(getattr(former.plan, name) == getattr(plan, name) for name in same):
            return self.method.take_over(former, *given)
        return self.method.init(*given)

    def _is_due(self) -> bool:
        """Judging waits until the method has called as often as the judge, but not for ever."""
        if self.by_stages:
            return self.method.is_due(self.state)
        judge: Any = self.judge
        own, spent = self.oracles.calls, judge.calls
        at_once = self.plan.is_adaptive or self.plan.every is not None or self.method.has_dear_steps
        affordable = at_once or (spent.f <= own.f and spent.g <= own.g)
        if self.method.is_finished(self.state):
            return True
        gap, value = self.method.expects(self.state)
        target = judge.target_at(value)
        if self.steps % (_RARELY if target > 0.0 else _OFTEN) and gap > _FAR_OFF * target:
            return False
        return self.steps >= (self.due if affordable else 2 * self.due)

    def _judge(self, stopped: bool = False) -> Status | None:
        """Judge the method's candidates, and let it learn from their gaps; a status when the run ends here."""
        candidates = self.method.candidates(self.state, self.oracles)
        if not all(self.oracles.finite(c.x, c.y) for c in candidates):
            # Oracles are asked first, so these numbers are our own.
            return Status.NUMERICAL_LIMIT
        before, self.judge.latest = self.judge.latest, (candidates[0].x, candidates[0].y)
        gaps = self._gaps_of(candidates)
        if stopped or (not self.by_stages and self._record(self.judge.known_gap)):
            return Status.STOPPED
        if self.judge.is_solved:
            return Status.SOLVED
        if self.judge.at_rounding:
            return Status.NUMERICAL_LIMIT
        if len(self.history) == _DOUBTFUL and isinstance(self.judge, Judge):
            # Long runs may be long because a step of the caller's is not that of a convex function.
            self.judge.confirm()
        if self._has_gone_astray(gaps, candidates[0], before):
            return Status.COMPLETED
        if not self.by_stages and self.steps >= _HOPELESS and not math.isfinite(self.judge.known_gap):
            return Status.NO_CERTIFICATE
        judge: Any = self.judge
        with self.control.clock.phase("certificate"):
            learnt = self.method.learn(self.state, gaps, judge, self.oracles)
        match learnt:
            case Status():
                return learnt
            case Revision():
                self._revise(learnt)
            case _:
                self.state = learnt
        self.due = self.plan.next_judgement(self.steps)
        if not self.method.is_finished(self.state):
            return None
        # What a method that ends by itself has come to, short of its target.
        if math.isfinite(self.judge.known_gap):
            return Status.COMPLETED
        promised = self.plan.tol is not None and self.expected_gap <= self.plan.tol
        return Status.EXPECTED if promised else Status.NO_CERTIFICATE

    def _gaps_of(self, candidates: tuple[Candidate, ...]) -> list[float]:
        with self.control.clock.phase("certificate"):
            gaps = [self.judgement.gap_of(candidate, self.oracles.calls) for candidate in candidates]
        if self.by_stages and self._has_rows:
            self.history[-1] = replace(self.history[-1], gap=gaps[0], calls=self._calls())
        return gaps

    def _is_solved_after_all(self) -> bool:
        """At a limit the last point is looked at, if nobody has since it was not expected to meet the target."""
        if isinstance(self.judge, Judge) and self.judge.looks.has_waited and self._is_judged:
            with self.control.clock.phase("certificate"):
                self.judge.judge(self.method.candidates(self.state, self.oracles)[0])
            gap = min(self.judge.known_gap, self.past.certificate.known_gap)
            self.history[-1] = replace(self.history[-1], gap=gap, calls=self._calls())
            return self.judge.is_solved
        return False

    def _has_gone_astray(self, gaps: list[float], candidate: Candidate, before: tuple[Array, Array]) -> bool:
        """Whether the method has left its best point for good; the watch knows why, the judge where that was."""
        if not isinstance(self.judgement, Judgement):
            return False
        astray, judgement = self.astray, self.judgement
        exact = None if judgement.closed else partial(judgement.exact_gap_of, candidate, self.oracles.calls)
        # Gaps within radii grow along a ray, which is what shows that there is no solution.
        within = self.judge.known_gap < self.judge.gap
        reason = "" if within else astray.by_gap(min(gaps), exact)
        if not reason and not math.isfinite(min(astray.best_gap, self.judge.known_gap)):
            reason = astray.by_distance(self.judge.latest, before)
            if reason and astray.settled is not None:
                self.judge.latest = astray.settled
        if reason:
            # Points of a problem without a solution go on along a ray.
            judgement.judge.seek_rays(candidate)
        self.watch.reason = reason or self.watch.reason
        return bool(reason)

    def _revise(self, revision: Revision) -> None:
        """Another plan from here on, with the bounds that are known; the step that asked for it does not count."""
        self.plans.append(revision.plan)
        self.method, self.state = revision.method, revision.state
        _log.info("step %d: another plan, %s", self.past.steps + self.steps, revision.plan.method)
        if isinstance(self.judge, Judge):
            # Judge as this method asks from now on.
            split = self.method.split(self.facts)
            self.judge.resplit(split)
            self.judgement = JUDGEMENTS[self.method.judgement(self.facts)](self.problem, split, self.judge)

    def _end(self, status: Status) -> Status:
        """What is left to do when the loop has ended: the point is judged if nothing was, a success is confirmed."""
        judge = self.judge
        if not isinstance(judge, Judge):
            if judge.is_solved or (status is Status.COMPLETED and self.plan.tol is None):
                status = self.watch.carry_out(judge.confirm, status)
            if status in _UNJUDGED:
                # Cut short in the middle of a stage: the point is judged as at any other end.
                status = self.watch.carry_out(partial(self._judge_cut_short, judge, status), status)
            if status in _UNJUDGED and self.begun and not self._has_rows:
                judge.take_up(self.method.left_behind(self.state, self.oracles))
            if status is Status.UNREACHABLE:
                judge.go_back(self.method.cuts(self.state, self.oracles) if self.begun else {})
            return status
        if self.begun and not self._is_judged and status in (*EARLY, Status.INTERRUPTED):
            self._take_up()
        if not self._has_rows and status in EARLY:
            self.control.judge_late(judge.judge_start)
        return self.watch.carry_out(judge.confirm, status) if status in _CONFIRMED else status

    def _judge_cut_short(self, judge: runs.StageJudge, status: Status) -> None:
        if status in (Status.INTERRUPTED, Status.TIME_LIMIT):
            judge.judge_at_once()
        elif self.begun:
            self._gaps_of(self.method.candidates(self.state, self.oracles))
        else:
            judge.gap_of(Candidate(*self.own_start, math.nan), self.oracles.calls)

    def _take_up(self) -> None:
        """What the method has come to since it was judged last: the answer where no bound judges a block."""
        # The run is over: no oracle is asked any more, and a step cut short may have left anything.
        with contextlib.suppress(RunEnded), np.errstate(all="ignore"):
            self.oracles.gate = _refuse_call
            try:
                candidate = self.method.candidates(self.state, self.oracles)[0]
                found = candidate.x, candidate.y
            except RunEnded:
                # The method's point, without what it would have to ask to be judged there.
                found = self.method.point(self.state, self.oracles)
            pairs = zip(found, (self.problem.X, self.problem.Y), strict=True)
            if all(self.oracles.finite(point) and domain.contains(point, 1e-9) for point, domain in pairs):
                self.judge.latest = found

    @property
    def _has_rows(self) -> bool:
        """Whether the present plan has a row in the history."""
        return bool(self.history) and self.history[-1].step > self.past.steps

    @property
    def _is_judged(self) -> bool:
        """Whether the present point has a row in the history, or is the start."""
        return self.steps == (self.history[-1].step - self.past.steps if self._has_rows else 0)

    def _where(self) -> str:
        """Oracle, call number, level and step, for the note on an exception."""
        plan, judging = self.plan, bool(self.judge.oracles.active) and not self.oracles.active
        oracles = self.judge.oracles if judging else self.oracles
        # What is judged is the step that has been made.
        made = judging and self.steps > 0 and not self.by_stages
        step = f"outer step {self.steps + (not made)}"
        if not oracles.active:
            return f"{BETWEEN}, {step}"
        name = ACROSS[oracles.active] if self.mirrored else oracles.active
        oracle, number = name if name == "B" else f"{name}'", getattr(oracles.calls, oracles.active)
        if judging:
            return f"by {oracle} while the point was judged, call {number:g} of judging, {step}"
        level = f"level {plan.order.index(name) + 1} of {plan.order}" if name in plan.order else "the run"
        level = f"the method {plan.method}" if plan.regime == "method" else level
        return f"by {oracle} in call {number:g} of {level}, {step}"

    def _given(self, calls: Calls) -> Calls:
        """Calls under the names that the problem was given with."""
        return calls.mirrored() if self.mirrored else calls

    def _own_calls(self) -> Calls:
        """Calls of the methods themselves."""
        return self.past.own + self._given(self.oracles.calls)

    def _count_judging(self) -> Calls:
        return self.past.judging + self._given(self.judge.calls)

    def _calls(self) -> Calls:
        """All calls so far, of making the plan, of the methods and of judging."""
        return self._own_calls() + self._count_judging() + self._aside()

    def _aside(self) -> Calls:
        """What was made beside the methods and judging; a schedule that was made before is not in the books."""
        first = self.plans[0]
        made = first.schedule is not None and first.schedule.accuracy is None
        return self.control.spent_before + (Calls(*first.spent) if made else Calls())

    def _count_limited(self) -> Calls:
        """What limits are about: all calls; judging a stage comes on top, and so does making its schedule."""
        if not self.by_stages:
            return self._calls()
        return self._own_calls() + self.past.judging + self.control.spent_before

    def _record(self, gap: float) -> bool:
        """Add a row to the history and call the callback; True when that, or the course, asks to stop."""
        gap, step = min(gap, self.past.certificate.known_gap), self.past.steps + self.steps
        self.history.append(Moment(step, self._calls(), self.control.clock.seconds, gap, self.samples.copy()))
        _log.debug("step %d: %s, gap %.4g", step, self.history[-1].calls, gap)
        if self.watch.stops(lambda: self._result(Status.RUNNING)):
            return True
        target = self.judge.target if self.past.point is None else self.past.target
        self.cut = self.course is not None and self.course.is_over(self.plans, self.history, target)
        return self.cut

    def _result(self, status: Status) -> Result:
        past, (x, y), seen = self.past, self.judge.point, self.judge.certificate()
        if self.mirrored:
            # The value of the mirrored problem is the negative.
            (x, y), assumes = (y, x), self.given.assumptions if seen.assumes else ""
            calls = seen.calls.mirrored()
            within, radii = (-seen.within[1], -seen.within[0]), (*seen.radii[-1:], *seen.radii[:-1])
            seen = replace(seen, lower=-seen.upper, upper=-seen.lower, calls=calls, assumes=assumes)
            seen = replace(seen, within=within, radii=radii)
        if status is Status.INCONSISTENT:
            # Oracles have contradicted each other: no bound is left.
            seen = Certificate(reason=self.watch.reason, calls=seen.calls)
        elif past.point is not None and status not in _MET and not seen.known_gap <= past.certificate.known_gap:
            # What an earlier plan has found is better. A claim is one of the point that meets the target.
            (x, y), seen = past.point, replace(past.certificate, calls=seen.calls)
        floor = self.plan.constants.get("floor")
        return Result(
            np.array(to_host(x)), np.array(to_host(y)), status, replace(seen, calls=past.judging + seen.calls),
            self._calls(), self.control.clock.seconds, tuple(self.plans), tuple(self.history),
            target=self.judge.target if past.point is None else past.target,
            samples=self.samples.copy(), expected_gap=self.expected_gap, floor=0.0 if floor is None else floor.value,
            timings=self.control.clock.timings, time_limit=self.control.time_limit,
            spared=past.spared + self.oracles.spared, aside=self._aside(),
            detail=self.watch.reason if status in _EXPLAINED else "",
            state=self.state if status is not Status.RUNNING and hands_on(self.method) else None,
        )  # fmt: skip


def _refuse_call(name: str, count: float) -> None:
    """The gate of a run that is over."""
    raise RunEnded(Status.CALL_LIMIT.name)
