"""The loop of a run: step, judge, record, learn, until the target or a limit is reached.

Whatever the method. What it does in a step, which points it offers to be judged, and what it makes of their gaps is
its own affair (`methods/base.py`); so is a change of course, which it hands over as a `Revision`.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.certificates.candidate import Candidate
from saddleslide.certificates.judge import Judge
from saddleslide.certificates.verdict import Certificate, Status
from saddleslide.methods.base import Method, Revision
from saddleslide.methods.catalogue import method_of, method_plan
from saddleslide.oracles.oracles import Calls, Oracles, RunEnded
from saddleslide.problem import SaddleProblem
from saddleslide.runs.control import EARLY, Control, Watch, where_in
from saddleslide.runs.orientation import Orientation, exchanged
from saddleslide.runs.result import Moment, Result
from saddleslide.theory.adaptive import AdaptivePlan
from saddleslide.theory.method_plan import MethodPlan

# Without a finite gap after this many steps there will be none.
_HOPELESS = 256
# A point is far from the best one when its gap is so many times larger. A method is stopped when all points of so many
# inspections in a row are, and those of the second half are no better than those of the first.
_FAR, _ASTRAY = 1e4, 30
# Where no gap is finite, points say themselves how they get on. One has settled when it has moved by less than this
# part of its size since the last inspection. Points of so many inspections in a row are lost when each of them is
# further from the one that had settled best than so many times its size, and moves by `_FAR` times as much as that did.
_SETTLED, _REMOTE, _LOST = 0.03, 1e3, 12


def carry_out(
    problem: SaddleProblem,
    plan: AdaptivePlan | MethodPlan,
    start: tuple[Any, Any] | None = None,
    control: Control | None = None,
) -> Result:
    """Run a plan to its target or a limit; every call is counted, those of certificates included.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(2), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.array([[2.0, -1.0], [-1.0, 1.0]]), X=simplex, Y=simplex)
    >>> carry_out(game, method_plan(game, "mirror-prox", tol=1e-2)).status.name
    'SOLVED'
    """
    if isinstance(plan, MethodPlan):
        # A plan may come from a file: what it asks for is checked as in `solve`, and what it leaves out is filled in.
        checked = method_plan(problem, plan.method, options=plan.options)
        plan = replace(plan, options=checked.options, shapes=checked.shapes)
    return Run(problem, plan, problem.start(start), control or Control()).carry_out()


class Run:
    """One run: the method, the judge, the limits and the history. All of its state is in its attributes."""

    restored_first: ClassVar[tuple[str, ...]] = ("plans", "origin", "begun", "tol_at_start", "steps")

    def __init__(
        self, problem: SaddleProblem, plan: AdaptivePlan | MethodPlan, origin: tuple[Array, Array], control: Control
    ) -> None:
        self.plans, self.control = [plan], control
        self.orientation = Orientation(problem, isinstance(plan, AdaptivePlan) and plan.mirrored)
        self.problem = self.orientation.problem
        self.origin = self.orientation.point(problem.placed(origin))
        self.watch = Watch(control, self, self._calls, self.orientation.mirrored)
        self.oracles = Oracles(self.problem, self.watch.gate, control.dry, guarded=True)
        self.method: Method = method_of(plan)
        split = self.method.split(self.problem)
        self.judge = Judge(
            self.problem, split, plan.tol, plan.rtol, self.origin, control.dry, self.watch.gate, self.watch.left
        )
        self.inspector = self.method.inspection(self.problem, split, self.judge)
        self.history: list[Moment] = []
        self.steps = 0
        self.begun, self.tol_at_start = False, 0.0
        self.due = self._next_inspection()
        # The smallest gap of any candidate, and the gaps since then while all of them are far larger.
        self.best_gap = math.inf
        self.astray: list[float] = []
        # Without finite gaps: the point that had settled best, what it had moved by, and how far off points are since.
        self.settled: tuple[Array, Array] | None = None
        self.moved = math.inf
        self.distances: list[float] = []

    @property
    def plan(self) -> AdaptivePlan | MethodPlan:
        """The plan that is being carried out."""
        return self.plans[-1]

    def rebuild(self) -> None:
        """The method as it began, before its state is restored; or, where it keeps that to itself, as it went on."""
        self._go_on_with(method_of(self.plan))
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
        status = self.watch.carried_out(self._iterate, self._where)
        if self.begun and not self._inspected and status in (*EARLY, Status.INTERRUPTED):
            self._take_up()
        if not self.history and status in EARLY:
            self.control.judge_late(self.judge.judge_start)
        if status is Status.SOLVED:
            status = self.watch.carried_out(self._confirmed, self._where)
        met = self.judge.solved and status is not Status.INCONSISTENT
        return self._result(self.judge.certificate().claim if met else status)

    def _iterate(self) -> Status:
        status = None if self.begun else self._begin()
        while status is None:
            status = self._step()
        return status

    def _begin(self) -> Status | None:
        """Judge the start and begin the method there; a status when the run ends before its first step."""
        with self.control.clock.phase("certificate"):
            self.judge.open()
        stop = self.watch.between_steps(0)
        if stop is not None:
            return stop
        self.judge.doubt(self.watch.test_adjoint(self.oracles))
        with self.control.clock.phase("certificate"):
            self.inspector.open(self.origin, self.oracles.calls)
        if self.judge.solved:
            return Status.SOLVED
        if self.judge.at_rounding:
            # A part of a gap that is rounding: no method can be asked for that.
            return Status.NUMERICAL_LIMIT
        self.tol_at_start = self.judge.target
        with self.control.clock.phase("method"):
            self.method.start(self.oracles, self.origin, self.tol_at_start)
        self.begun = True
        if isinstance(self.plan, MethodPlan):
            self.plans[-1] = replace(self.plan, notes=self.method.notes)
        return None

    def _step(self) -> Status | None:
        """One step, judged where that is due; a status when the run ends here."""
        stop = self.watch.between_steps(self.steps)
        if stop is not None:
            unseen = stop is Status.STEP_LIMIT and not self._inspected
            return (self._inspect() if unseen else None) or stop
        with self.control.clock.phase("method"):
            revision = self.method.advance()
        if revision is not None:
            self._revise(revision)
            return None
        self.steps += 1
        if not (self._is_due() or self.method.finished):
            return None
        status = self._inspect()
        if status is None and self.method.finished:
            return Status.COMPLETED if math.isfinite(self.judge.gap) else Status.NO_CERTIFICATE
        self.due = self._next_inspection()
        return status

    def _inspect(self) -> Status | None:
        """Judge the method's candidates, and let it learn from their gaps; a status when the run ends here."""
        candidates = self.method.candidates()
        if not all(self.oracles.finite(c.x, c.y) for c in candidates):
            # Oracles are asked first, so these numbers are our own.
            return Status.NUMERICAL_LIMIT
        before, self.judge.latest = self.judge.latest, (candidates[0].x, candidates[0].y)
        with self.control.clock.phase("certificate"):
            gaps = [self.inspector.gap_of(candidate, self.oracles.calls) for candidate in candidates]
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
        with self.control.clock.phase("certificate"):
            return self.method.learn(gaps, self.judge)

    def _revise(self, revision: Revision) -> None:
        """Another plan from here on; the step that asked for it does not count."""
        assert isinstance(revision.plan, AdaptivePlan | MethodPlan)
        self.plans.append(revision.plan)
        self._go_on_with(revision.method)

    def _go_on_with(self, method: Method) -> None:
        """Judge as this method asks from now on."""
        self.method, split = method, method.split(self.problem)
        self.judge.resplit(split)
        self.inspector = method.inspection(self.problem, split, self.judge)

    @property
    def _every(self) -> int | None:
        """Steps between two inspections; None: 10 % more each time."""
        return self.plan.every if isinstance(self.plan, MethodPlan) else 1

    def _next_inspection(self) -> int:
        return self.plan.next_inspection(self.steps) if isinstance(self.plan, MethodPlan) else self.steps + 1

    def _is_due(self) -> bool:
        """Judging waits until the method has called as often as the judge, but not for ever."""
        own, spent = self.oracles.calls, self.judge.oracles.calls
        affordable = self._every is not None or (spent.f <= own.f and spent.g <= own.g)
        return self.steps >= (self.due if affordable else 2 * self.due)

    @property
    def _inspected(self) -> bool:
        """Whether the present point has been judged, or is the start."""
        return self.steps == (self.history[-1].step if self.history else 0)

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
            found = self.method.candidates()[0]
        except RunEnded:
            return self.method.output()
        return found.x, found.y

    def _confirmed(self) -> Status:
        self.judge.confirm()
        return Status.SOLVED

    def _where(self) -> str:
        mirrored, inside = self.orientation.mirrored, self.method.inside
        if inside is not None and inside.active:
            earlier = getattr(self.oracles.calls, {"f": "g", "g": "f"}.get(inside.active, "B"))
            return where_in(self.plan, self.steps, inside, mirrored=not mirrored, earlier=earlier)
        # What is judged is the step that has been made.
        judged = bool(self.judge.oracles.active) and not self.oracles.active and self.steps > 0
        return where_in(self.plan, self.steps - judged, self.oracles, self.judge.oracles, mirrored)

    def _calls(self) -> Calls:
        total = self.oracles.calls + self.judge.oracles.calls
        if self.method.inside is not None:
            total += exchanged(self.method.inside.calls)
        return self.orientation.calls(total) + self.control.spent_before

    def _record(self) -> bool:
        """Add a row to the history and call the callback; True when it asks to stop."""
        self.history.append(Moment(self.steps, self._calls(), self.control.clock.elapsed, self.judge.gap))
        return self.watch.stops(lambda: self._result(Status.RUNNING))

    def _result(self, status: Status) -> Result:
        x, y = self.orientation.point(self.judge.point)
        seen = self.orientation.certificate(self.judge.certificate())
        if status is Status.INCONSISTENT:
            seen = Certificate(reason=self.watch.reason, calls=seen.calls)
        return Result(
            np.array(x),
            np.array(y),
            status,
            seen,
            self._calls(),
            self.control.clock.elapsed,
            tuple(self.plans),
            tuple(self.history),
            self.judge.target,
            timings=self.control.clock.timings,
            time_limit=self.control.time_limit,
            detail=self.watch.reason if status in (Status.NON_FINITE, Status.COMPLETED) else "",
        )


def _distance(one: tuple[Array, Array], other: tuple[Array, Array] | None = None) -> float:
    """The norm of a point, or of the difference of two."""
    parts = one if other is None else [a - b for a, b in zip(one, other, strict=True)]
    return math.hypot(*(float(np.linalg.norm(part)) for part in parts))


def _closed(name: str, count: float) -> None:
    """The gate of a run that is over."""
    raise RunEnded(Status.CALL_LIMIT.name)
