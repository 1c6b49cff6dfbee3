"""`solve` with sampled gradients: plans for smaller and smaller accuracies until a certificate meets the target."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from saddleslide.arrays import Array
from saddleslide.certificate import certify
from saddleslide.driver import run
from saddleslide.errors import InputError, raise_all
from saddleslide.oracles import Calls
from saddleslide.planner import theorem_plan
from saddleslide.planning import Plan
from saddleslide.planning.adaptive import AdaptivePlan
from saddleslide.planning.method_plan import MethodPlan
from saddleslide.planning.restart_plan import RestartPlan
from saddleslide.problem import SaddleProblem
from saddleslide.regimes import BREGMAN_PER_GAP, SQUARE_PER_GAP
from saddleslide.result import Moment, Result, Status
from saddleslide.sampling import Samples, as_generator

Callback = Callable[[Result], object]
# Each plan aims at half the accuracy of the one before: four times the samples, so all before cost a third of it.
RATIO = 0.5
MOST_PLANS = 60
# The first plan aims at this part of the gap at the start, and judging that start may take this many gradients.
FIRST = 0.5
GRADIENTS = 25


def solve_sampled(
    problem: SaddleProblem,
    tol: float | None = None,
    *,
    rtol: float | None = None,
    metric: object = "auto",
    start: tuple[Any, Any] | None = None,
    costs: Sequence[float] | str | None = None,
    max_calls: Mapping[str, float] | None = None,
    max_steps: int,
    callback: Callback | None = None,
    rng: int | np.random.Generator = 0,
) -> Result:
    """Run to the target with sampled gradients; the gap of the output is judged with exact ones where there are any.

    Without exact gradients the plan whose bound on the expected gap meets the target is run once; its result says
    EXPECTED and gives the bound, not a gap.
    """
    if metric not in ("auto", "blocks"):
        raise InputError(f"solve: metric {metric!r} needs exact gradients of f; expected 'auto' with sampled ones.")
    known = problem.f.has_value and problem.g.has_value
    goal, judging = _target(problem, tol, rtol, start, known)
    run_so_far = _Ladder(problem, goal, callback, dict(max_calls or {}), max_steps, as_generator(rng, "solve"))
    run_so_far.judging = judging
    if not known:
        proved = theorem_plan(problem, goal, start=start, costs=costs, proved=True)
        return run_so_far.in_expectation(proved, start)
    point = problem.start(start)
    gap = run_so_far.gap_at(point)
    # Loose plans warm up the dear ones.
    accuracy = max(goal, FIRST * gap) if math.isfinite(gap) else goal
    for _ in range(MOST_PLANS):
        # The gap is known, so Psi need not be judged again.
        Psi0 = (SQUARE_PER_GAP + BREGMAN_PER_GAP) * gap if math.isfinite(gap) else None
        made = theorem_plan(problem, accuracy, start=point, costs=costs, Psi0=Psi0)
        result = run_so_far.climb(replace(made, tol=goal), point)
        if result.status is not Status.COMPLETED:
            return result
        accuracy, point, gap = RATIO * accuracy, (result.x, result.y), result.gap
    return result


def _target(
    problem: SaddleProblem, tol: float | None, rtol: float | None, start: tuple[Any, Any] | None, known: bool
) -> tuple[float, Calls]:
    """The larger of the absolute target and the one relative to the certified gap at the start; calls of judging it."""
    absolute = 0.0 if tol is None else float(tol)
    if rtol is None or rtol == 0.0:
        return absolute, Calls()
    complaint = "rtol needs the gap at the start, which is not known; expected tol=, an absolute target."
    raise_all("solve", [complaint] * (not known))
    found = certify(problem, *problem.start(start))
    gap = found.gap
    raise_all("solve", [complaint] * (not math.isfinite(gap)))
    if max(absolute, rtol * gap) <= 0.0:
        raise InputError("solve: the start has gap 0, so rtol asks for 0; expected tol= as well.")
    return max(absolute, rtol * gap), found.calls


@dataclass
class _Ladder:
    """Runs of several plans as one: calls, samples, time, plans and history add up."""

    problem: SaddleProblem
    target: float
    callback: Callback | None
    max_calls: dict[str, float]
    max_steps: int
    rng: np.random.Generator
    calls: Calls = field(default_factory=Calls)
    judging: Calls = field(default_factory=Calls)
    samples: Samples = field(default_factory=Samples)
    seconds: float = 0.0
    plans: tuple[Plan | RestartPlan | AdaptivePlan | MethodPlan, ...] = ()
    history: tuple[Moment, ...] = ()
    limit: Status | None = None

    def gap_at(self, point: tuple[Array, Array]) -> float:
        """The certified gap at a point, what that took counted."""
        found = certify(self.problem, *point, max_gradients=GRADIENTS)
        self.judging = self.judging + found.calls
        return found.gap

    def climb(self, made: Plan | RestartPlan, point: tuple[Array, Array]) -> Result:
        """Carry one more plan out, and judge where it ends."""
        # Watching copies the history at every step, so only if there is something to watch for.
        watched = self.callback is not None or bool(self.max_calls) or _steps(made) + len(self.history) > self.max_steps
        found = run(self.problem, made, start=point, callback=self._watch if watched else None, rng=self.rng)
        total = self._merged(found)
        self.calls, self.samples, self.seconds = total.calls, total.samples, total.seconds
        self.judging, self.plans, self.history = total.certificate_calls, total.plans, total.history
        return total

    def in_expectation(self, made: Plan | RestartPlan, start: tuple[Any, Any] | None) -> Result:
        """Carry the proved plan out; what it promises is an average over all draws."""
        return self.climb(made, self.problem.start(start))

    def _merged(self, found: Result) -> Result:
        """A result of the present plan with what the plans before it spent."""
        history = tuple(
            replace(
                row,
                step=row.step + len(self.history),
                calls=row.calls + self.calls,
                seconds=row.seconds + self.seconds,
                samples=row.samples + self.samples,
            )
            for row in found.history
        )
        if history and found.status is not Status.RUNNING:
            history = (*history[:-1], replace(history[-1], gap=found.gap))
        status = self.limit if found.status is Status.STOPPED and self.limit is not None else found.status
        return replace(
            found,
            status=status,
            certificate=replace(found.certificate, calls=found.certificate.calls + self.judging),
            calls=found.calls + self.calls,
            samples=found.samples + self.samples,
            seconds=found.seconds + self.seconds,
            plans=(*self.plans, *found.plans),
            history=(*self.history, *history),
            target=self.target,
        )

    def _watch(self, found: Result) -> None:
        """After every outermost step: the limits, then the caller's own callback."""
        total = self._merged(found)
        spent = total.calls + self.judging
        if any(getattr(spent, name) >= most for name, most in self.max_calls.items()):
            self.limit = Status.CALL_LIMIT
        elif len(total.history) >= self.max_steps:
            self.limit = Status.STEP_LIMIT
        if self.callback is not None:
            self.callback(total)
        if self.limit is not None:
            raise StopIteration


def _steps(made: Plan | RestartPlan) -> int:
    """Outermost steps of a plan."""
    return made.loops[0] if isinstance(made, Plan) else sum(stage.levels[0].T for stage in made.stages)
