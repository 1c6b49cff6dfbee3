"""The loop of a run: step, judge, record, learn, until the target or a limit is reached.

Whatever the method. What it does in a step, which points it offers to be judged, and what it makes of their gaps is
its own affair (`methods/base.py`); so is a change of course, which it hands over as a `Revision`. Where a plan has come
to its end short of the target, a `Course` may have another one, which goes on from its point.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.arrays.kinds import to_host
from saddleslide.arrays.state import State
from saddleslide.certificates.candidate import Candidate
from saddleslide.certificates.inspector import INSPECTORS, Inspector
from saddleslide.certificates.judge import Judge
from saddleslide.certificates.verdict import Certificate, Status
from saddleslide.facts.facts import Facts
from saddleslide.methods.base import STAGES, Method, Revision
from saddleslide.methods.catalogue import method_of
from saddleslide.methods.schedule.fitting import expected_gap, fitted
from saddleslide.oracles.calls import Calls, RunEnded
from saddleslide.oracles.oracles import Oracles
from saddleslide.oracles.sampling import Samples, drawn_problem
from saddleslide.problem import SaddleProblem
from saddleslide.runs.control import EARLY, Control, Watch, where_in
from saddleslide.runs.orientation import Orientation
from saddleslide.runs.result import Moment, Past, Result
from saddleslide.runs.stages import StageJudge
from saddleslide.theory import Plan

if TYPE_CHECKING:
    from saddleslide.arrays.state import XArray, YArray

# Without a finite gap after this many steps there will be none.
_HOPELESS = 256
# A point is far from the best one when its gap is so many times larger. A method is stopped when all points of so many
# inspections in a row are, and those of the second half are no better than those of the first.
_FAR, _ASTRAY = 1e4, 30
# What may end a run in the middle of a stage.
_UNJUDGED = (*EARLY, Status.INTERRUPTED, Status.NON_FINITE, Status.NUMERICAL_LIMIT)
# Where no gap is finite, points say themselves how they get on. One has settled when it has moved by less than this
# part of its size since the last inspection. Points of so many inspections in a row are lost when each of them is
# further from the one that had settled best than so many times its size, and moves by `_FAR` times as much as that did.
_SETTLED, _REMOTE, _LOST = 0.03, 1e3, 12


class Course(Protocol):
    """What follows a plan that has come to its end: another method, a smaller accuracy, or nothing."""

    def is_over(self, found: Result) -> bool:
        """Whether a plan has had its chance, after a row of the history."""

    def following(self, found: Result, cut: bool) -> Plan | None:
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
    # The smallest gap of any candidate, and the gaps since then while all of them are far larger.
    best_gap: float
    astray: list[float]
    # Without finite gaps: the point that had settled best, what it had moved by, and how far off points are since.
    settled: tuple[XArray, YArray] | None
    moved: float
    distances: list[float]
    oracles: Oracles
    judge: Judge | StageJudge
    inspector: Inspector | StageJudge
    state: State | None


class Run(RunState):
    """One run: the method, the judge, the limits and the history.

    Parameters
    ----------
    problem : SaddleProblem
        The problem.
    plan : Plan
        What to do.
    start : (x, y)
        Feasible.
    control : Control
        Limits, callback, checkpoint, books and clock.
    rng : numpy.random.Generator, optional
        What sampled gradients are drawn with.
    course : Course, optional
        What follows the plan.
    """

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
    ) -> None:
        self.given, self.control, self.course = problem, control, course
        self.rng = rng if plan.sampled else None
        self.samples, self.past, self.history = Samples(), Past(), []
        self.watch = Watch(control, self, self._limited_calls)
        self.plans = [fitted(plan, problem, start)]
        self._set_out(start)

    def _set_out(self, start: tuple[Array, Array]) -> None:
        """All that belongs to the last of the plans, at its beginning."""
        plan, control = self.plan, self.control
        self.start = start
        self.orientation = Orientation(self.given, plan.mirrored)
        self.watch.turn(plan.mirrored)
        self.problem = self.orientation.problem
        self.origin = self.orientation.point(self.given.placed(start))
        seen = self.problem if self.rng is None else drawn_problem(self.problem, self.rng, self.samples)
        self.oracles = Oracles(seen, self.watch.gate, control.dry, guarded=True)
        self.facts = Facts(self.problem)
        self.expected_gap = expected_gap(plan, self.given, start)
        self.method: Method = method_of(plan)
        self.state = None
        if self.by_stages:
            self.judge = self.inspector = StageJudge(self.problem, plan.tol, self.origin, control, self.watch)
        else:
            split = self.method.split(self.facts)
            target = (plan.tol or 0.0, plan.rtol)
            self.judge = Judge(self.problem, split, *target, self.origin, control.dry, self.watch.gate, self.watch.left)
            self.inspector = INSPECTORS[self.method.judged](self.problem, split, self.judge)
        self.steps, self.begun, self.tol_at_start = 0, False, 0.0
        self.due = plan.next_inspection(0)
        self.cut, self.best_gap, self.astray = False, math.inf, []
        self.settled, self.moved, self.distances = None, math.inf, []

    @property
    def plan(self) -> Plan:
        """The plan that is being carried out."""
        return self.plans[-1]

    @property
    def by_stages(self) -> bool:
        """Whether the method is judged between its stages."""
        return self.method.judged == STAGES

    def rebuild(self) -> None:
        """The method as it began, before its state is restored; or, where it keeps that to itself, as it went on."""
        begun, tol, steps = self.begun, self.tol_at_start, self.steps
        self._set_out(self.start)
        self.begun, self.tol_at_start, self.steps = begun, tol, steps
        if not begun:
            return
        self.oracles.dry = self.method.storable
        self.state = self.method.init(self.oracles, self.facts, self.origin, tol)
        for _ in range(0 if self.method.storable else steps):
            self.state = self._stepped()

    def _stepped(self) -> State:
        found = self.method.step(self.state, self.oracles)
        assert not isinstance(found, Revision)
        return found

    def carry_out(self) -> Result:
        """Run to the target or a limit, from where the run stands: plan after plan, where one follows."""
        while True:
            found = self._carry_out_plan()
            with self.control.clock.phase("plan"):
                following = None if self.course is None else self.course.following(found, self.cut)
            if following is None:
                return found
            if limit := self._used_up():
                return replace(found, status=limit)
            self._follow(following, found)

    def _used_up(self) -> Status | None:
        """The limit that leaves nothing for another plan."""
        total = self._limited_calls()
        if self.past.steps + self.steps >= self.control.max_steps:
            return Status.STEP_LIMIT
        spent = [getattr(total, name) >= most for name, most in self.control.max_calls.items()]
        return Status.CALL_LIMIT if any(spent) else None

    def _follow(self, plan: Plan, found: Result) -> None:
        """Another plan, from the point of what was found; all that was spent stays in the books of this run."""
        past = self.past
        self.past = Past(
            past.own + self.orientation.calls(self.oracles.calls),
            past.judging + self.orientation.calls(self.judge.calls),
            past.spared + self.oracles.spared,
            past.steps + self.steps,
            found.target,
            (found.x, found.y),
            found.certificate,
        )
        start = self.given.start((found.x, found.y))
        self.plans.append(fitted(plan, self.given, start))
        self._set_out(start)

    def _carry_out_plan(self) -> Result:
        if not math.isfinite(self.problem.coupling.norm.upper):
            return self._result(Status.NON_FINITE)
        status = self.watch.carried_out(self._iterate, self._where)
        status = self._end_of_stages(status) if self.by_stages else self._end_of_points(status)
        met = self.judge.solved and status is not Status.INCONSISTENT
        return self._result(self.judge.certificate().claim if met else status)

    def _end_of_points(self, status: Status) -> Status:
        """What is left to do for points that were judged on the way."""
        assert isinstance(self.judge, Judge)
        if self.begun and not self._inspected and status in (*EARLY, Status.INTERRUPTED):
            self._take_up()
        if not self._has_rows and status in EARLY:
            self.control.judge_late(self.judge.judge_start)
        return self.watch.carried_out(self._confirmed, self._where) if status is Status.SOLVED else status

    def _end_of_stages(self, status: Status) -> Status:
        """What is left to do where only ends of stages are judged."""
        judge = self.judge
        assert isinstance(judge, StageJudge)
        if judge.solved or (status is Status.COMPLETED and self.plan.tol is None):
            status = self.watch.carried_out(lambda: self._confirmed(status), self._where)
        if status in _UNJUDGED:
            # Cut short in the middle of a stage: the point is judged as at any other end.
            status = self.watch.carried_out(lambda: self._judge_as(status), self._where)
        if status in _UNJUDGED and self.begun and not self._has_rows:
            judge.take_up(tuple(self.method.left_behind(self.state, self.oracles)))
        if status is Status.UNREACHABLE:
            judge.go_back(self.oracles, self.method.cuts(self.state, self.oracles) if self.begun else {})
        if status is Status.INCONSISTENT:
            judge.distrust(self.watch.reason)
        return status

    def _judge_as(self, status: Status) -> Status:
        """Judge the last point although the run is over."""
        assert isinstance(self.judge, StageJudge)
        if status in (Status.INTERRUPTED, Status.TIME_LIMIT):
            self.judge.judge_at_once()
        elif self.begun:
            self._judge_stage()
        else:
            self.judge.gap_of(Candidate(*self.origin, math.nan), self.oracles.calls)
        return status

    def _judge_stage(self) -> list[float]:
        candidates = self.method.candidates(self.state, self.oracles)
        gaps = [self.inspector.gap_of(candidate, self.oracles.calls) for candidate in candidates]
        if self._has_rows:
            self.history[-1] = replace(self.history[-1], gap=gaps[0], calls=self._calls())
        return gaps

    def _iterate(self) -> Status:
        status = None if self.begun else self._begin()
        while status is None:
            status = self._step()
        return status

    def _begin(self) -> Status | None:
        """Judge the start and begin the method there; a status when the run ends before its first step."""
        if isinstance(self.judge, Judge):
            with self.control.clock.phase("certificate"):
                self.judge.open()
        stop = self.watch.between_steps(self.past.steps)
        if stop is not None:
            return stop
        if isinstance(self.judge, Judge):
            assert isinstance(self.inspector, Inspector)
            self.judge.doubt(self.watch.test_adjoint(self.oracles))
            with self.control.clock.phase("certificate"):
                self.inspector.open(self.origin, self.oracles.calls)
            if self.judge.solved:
                return Status.SOLVED
            if self.judge.at_rounding:
                # A part of a gap that is rounding: no method can be asked for that.
                return Status.NUMERICAL_LIMIT
            self.tol_at_start = self.judge.target
        elif self.control.check_adjoint:
            # A plan of the theorems makes no call but its own unless it is asked to.
            self.watch.test_adjoint(self.oracles)
        with self.control.clock.phase("method"):
            self.state = self.method.init(self.oracles, self.facts, self.origin, self.tol_at_start)
        self.begun = True
        notes = self.method.notes(self.state, self.facts)
        self.plans[-1] = replace(self.plan, notes=notes) if notes else self.plan
        return None

    def _step(self) -> Status | None:
        """One step, judged where that is due; a status when the run ends here."""
        if self.by_stages and self.method.is_finished(self.state):
            # A schedule without stages: the start meets its target already.
            self._judge_stage()
            return self._at_the_end()
        stop = self.watch.between_steps(self.past.steps + self.steps)
        if stop is not None:
            unseen = stop is Status.STEP_LIMIT and not self.by_stages and not self._inspected
            return (self._inspect() if unseen else None) or stop
        with self.control.clock.phase("method"):
            found = self.method.step(self.state, self.oracles)
        if isinstance(found, Revision):
            self._revise(found)
            return None
        self.state = found
        self.steps += 1
        if self.by_stages:
            return self._after_step_of_stage()
        if not (self._is_due() or self.method.is_finished(self.state)):
            return None
        status = self._inspect()
        if status is None and self.method.is_finished(self.state):
            return self._at_the_end()
        self.due = self.plan.next_inspection(self.steps)
        return status

    def _after_step_of_stage(self) -> Status | None:
        """Every outermost step is a row of the history; the end of a stage is judged."""
        self.judge.latest = self.method.point(self.state, self.oracles)
        stopped = self._record(math.nan)
        if not stopped and not self.method.is_due(self.state):
            return None
        gaps = self._judge_stage()
        if self.judge.solved:
            return Status.SOLVED
        if stopped:
            return Status.STOPPED
        return self._at_the_end() if self.method.is_finished(self.state) else self._learn(gaps)

    def _at_the_end(self) -> Status:
        """What a method that ends by itself has come to, short of its target."""
        if math.isfinite(self.judge.gap):
            return Status.COMPLETED
        promised = self.plan.tol is not None and self.expected_gap <= self.plan.tol
        return Status.EXPECTED if promised else Status.NO_CERTIFICATE

    def _inspect(self) -> Status | None:
        """Judge the method's candidates, and let it learn from their gaps; a status when the run ends here."""
        assert isinstance(self.judge, Judge)
        candidates = self.method.candidates(self.state, self.oracles)
        if not all(self.oracles.finite(c.x, c.y) for c in candidates):
            # Oracles are asked first, so these numbers are our own.
            return Status.NUMERICAL_LIMIT
        before, self.judge.latest = self.judge.latest, (candidates[0].x, candidates[0].y)
        with self.control.clock.phase("certificate"):
            gaps = [self.inspector.gap_of(candidate, self.oracles.calls) for candidate in candidates]
        if self._record(self.judge.gap):
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
        if not math.isfinite(min(self.best_gap, self.judge.gap)) and self._is_lost(before):
            assert self.settled is not None
            self.judge.latest = self.settled
            self.watch.reason = (
                f"The method has left its best point for good: for {len(self.distances)} inspections in a row its "
                f"points were at least {min(self.distances):.3g} away from one where it had moved by {self.moved:.3g} "
                "since the inspection before. That one is returned"
            )
            return Status.COMPLETED
        if self.steps >= _HOPELESS and not math.isfinite(self.judge.gap):
            return Status.NO_CERTIFICATE
        return self._learn(gaps)

    def _learn(self, gaps: list[float]) -> Status | None:
        """Let the method hear the gaps of its candidates; a status where going on would not help."""
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
        return None

    def _revise(self, revision: Revision) -> None:
        """Another plan from here on, with the bounds that are known; the step that asked for it does not count."""
        self.plans.append(revision.plan)
        self.method, self.state = revision.method, revision.state
        if isinstance(self.judge, Judge):
            # Judge as this method asks from now on.
            split = self.method.split(self.facts)
            self.judge.resplit(split)
            self.inspector = INSPECTORS[self.method.judged](self.problem, split, self.judge)

    def _is_due(self) -> bool:
        """Judging waits until the method has called as often as the judge, but not for ever."""
        own, spent = self.oracles.calls, self.judge.calls
        at_once = self.plan.is_adaptive or self.plan.every is not None
        affordable = at_once or (spent.f <= own.f and spent.g <= own.g)
        return self.steps >= (self.due if affordable else 2 * self.due)

    @property
    def _has_rows(self) -> bool:
        """Whether the present plan has a row in the history."""
        return bool(self.history) and self.history[-1].step > self.past.steps

    @property
    def _inspected(self) -> bool:
        """Whether the present point has been judged, or is the start."""
        return self.steps == (self.history[-1].step - self.past.steps if self._has_rows else 0)

    def _runs_away(self, gap: float, candidate: Candidate) -> bool:
        """Whether the method goes on at points far worse than its best one, and does not come back."""
        assert isinstance(self.inspector, Inspector)
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

    def _is_lost(self, before: tuple[Array, Array]) -> bool:
        """Whether points that nothing is proved of have gone far away from where they had settled, and stay away."""
        here = self.judge.latest
        moved, size = _distance(here, before), max(_distance(here), _distance(before))
        if self.settled is not None:
            away, best = _distance(here, self.settled), _distance(self.settled)
            if away > _REMOTE * best and moved > _FAR * self.moved:
                self.distances.append(away)
                half = len(self.distances) // 2
                return len(self.distances) >= _LOST and min(self.distances[half:]) >= min(self.distances[:half])
        self.distances = []
        # A point that has not moved at all may be the start of a method that has not begun to move.
        if 0.0 < moved <= min(_SETTLED * size, self.moved):
            self.settled, self.moved = here, moved
        return False

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
            found = self.method.candidates(self.state, self.oracles)[0]
        except RunEnded:
            return self.method.point(self.state, self.oracles)
        return found.x, found.y

    def _confirmed(self, status: Status = Status.SOLVED) -> Status:
        """Own code that was hardly compared is probed before a success is claimed."""
        if isinstance(self.judge, StageJudge):
            self.judge.confirm(self.oracles.calls)
        else:
            self.judge.confirm()
        return status

    def _where(self) -> str:
        # What is judged is the step that has been made.
        judging = bool(self.judge.oracles.active) and not self.oracles.active and self.steps > 0
        steps = self.steps - (judging and not self.by_stages)
        return where_in(self.plan, steps, self.oracles, self.judge.oracles, self.orientation.mirrored)

    def _own_calls(self) -> Calls:
        """Calls of the methods themselves."""
        return self.past.own + self.orientation.calls(self.oracles.calls)

    def _calls(self) -> Calls:
        """All calls so far, of making the plan, of the methods and of judging."""
        judging = self.past.judging + self.orientation.calls(self.judge.calls)
        return self._own_calls() + judging + self._aside()

    def _aside(self) -> Calls:
        """What was made beside the methods and judging; a schedule that was made before is not in the books."""
        first = self.plans[0]
        made = first.schedule is not None and first.schedule.accuracy is None
        return self.control.spent_before + (Calls(*first.spent) if made else Calls())

    def _limited_calls(self) -> Calls:
        """What limits are about: all calls; judging a stage comes on top, and so does making its schedule."""
        if not self.by_stages:
            return self._calls()
        return self._own_calls() + self.past.judging + self.control.spent_before

    def _record(self, gap: float) -> bool:
        """Add a row to the history and call the callback; True when that, or the course, asks to stop."""
        gap = min(gap, self.past.certificate.gap) if self.past.point is not None and not self.by_stages else gap
        row = Moment(
            self.past.steps + self.steps, self._calls(), self.control.clock.elapsed, gap, self.samples.copy()
        )  # fmt: skip
        self.history.append(row)
        if self.watch.stops(lambda: self._result(Status.RUNNING)):
            return True
        self.cut = self.course is not None and self.course.is_over(self._result(Status.RUNNING))
        return self.cut

    def _result(self, status: Status) -> Result:
        x, y = self.orientation.point(self.judge.point)
        seen = self.orientation.certificate(self.judge.certificate())
        if status is Status.INCONSISTENT:
            seen = Certificate(reason=self.watch.reason, calls=seen.calls)
        past = self.past
        kept = not self.by_stages and status is not Status.INCONSISTENT
        if past.point is not None and kept and not seen.gap <= past.certificate.gap:
            # What an earlier plan has found is better.
            (x, y), seen = past.point, replace(past.certificate, calls=seen.calls)
        floor = self.plan.constants.get("floor")
        return Result(
            np.array(to_host(x)),
            np.array(to_host(y)),
            status,
            replace(seen, calls=past.judging + seen.calls),
            self._calls(),
            self.control.clock.elapsed,
            tuple(self.plans),
            tuple(self.history),
            self.judge.target if past.point is None else past.target,
            samples=self.samples.copy(),
            expected_gap=self.expected_gap,
            floor=0.0 if floor is None else floor.value,
            timings=self.control.clock.timings,
            time_limit=self.control.time_limit,
            spared=past.spared + self.oracles.spared,
            aside=self._aside(),
            detail=self.watch.reason if status in (Status.NON_FINITE, Status.COMPLETED) else "",
        )


def _distance(one: tuple[Array, Array], other: tuple[Array, Array] | None = None) -> float:
    """The norm of a point, or of the difference of two."""
    parts = one if other is None else [a - b for a, b in zip(one, other, strict=True)]
    return math.hypot(*(float(np.linalg.norm(part)) for part in parts))


def _closed(name: str, count: float) -> None:
    """The gate of a run that is over."""
    raise RunEnded(Status.CALL_LIMIT.name)
