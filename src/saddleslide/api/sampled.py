"""`solve` with sampled gradients: plans for smaller and smaller accuracies until a certificate meets the target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.certificates.certificate import judged
from saddleslide.certificates.verdict import Certificate, Status
from saddleslide.errors import InputError, raise_all
from saddleslide.facts.costs import chosen_costs
from saddleslide.methods.schedule.planner import theorem_plan
from saddleslide.methods.schedule.regimes import BREGMAN_PER_GAP, SQUARE_PER_GAP
from saddleslide.oracles.oracles import Calls
from saddleslide.oracles.sampling import Samples, as_generator
from saddleslide.problem import SaddleProblem
from saddleslide.runs.checkpoint import fingerprint
from saddleslide.runs.control import Control
from saddleslide.runs.plan_run import PlanRun
from saddleslide.runs.result import Moment, Result
from saddleslide.theory.sliding_plan import Schedule

# Each plan aims at half the accuracy of the one before: four times the samples, so all before cost a third of it.
RATIO = 0.5
MOST_PLANS = 60
# The first plan aims at this part of the gap at the start, and judging that start may take this many gradients.
FIRST = 0.5
GRADIENTS = 25


def solve_sampled(
    problem: SaddleProblem,
    tol: float | None,
    rtol: float | None,
    metric: object,
    start: tuple[Any, Any] | None,
    costs: Sequence[float] | str | None,
    control: Control,
    rng: int | np.random.Generator = 0,
) -> Result:
    """Run to the target with sampled gradients; the gap of the output is judged with exact ones where there are any.

    Without exact gradients the plan whose bound on the expected gap meets the target is run once; its result says
    EXPECTED and gives the bound, not a gap.
    """
    if metric not in ("auto", "blocks"):
        raise InputError(f"solve: metric {metric!r} needs exact gradients of f; expected 'auto' with sampled ones.")
    known = problem.f.has_value and problem.g.has_value
    goal, judging, at_start = _target(problem, tol, rtol, start, known)
    point = problem.start(start)
    if at_start is not None and (at_start.gap <= goal or at_start.at_rounding):
        # The start is optimal, so far as numbers can tell: no plan can be asked for a part of its gap.
        status = at_start.claim if at_start.gap <= goal else Status.NUMERICAL_LIMIT
        return Result(*point, status, at_start, Calls(), 0.0, (), target=goal, time_limit=control.time_limit)
    gap = math.inf
    if known:
        found = judged(problem, *point, max_gradients=GRADIENTS)
        judging, gap = judging + found.calls, found.gap
    # Half the gap at the start where it is known: loose plans warm up the dear ones. At least the target.
    accuracy = max(goal, FIRST * gap) if math.isfinite(gap) else goal
    prices = chosen_costs(problem, costs, "solve") if costs is not None else None
    if control.checkpoint is not None:
        control = replace(control, header={"plan": None, "problem": fingerprint(problem)}, start=point)
    ladder = Ladder(problem, goal, accuracy, known, point, prices, control, as_generator(rng, "solve"))
    ladder.judging, ladder.gap = judging, gap
    return ladder.carry_out()


def _target(
    problem: SaddleProblem, tol: float | None, rtol: float | None, start: tuple[Any, Any] | None, known: bool
) -> tuple[float, Calls, Certificate | None]:
    """The larger of the absolute target and the one relative to the gap at the start; what judging that took, found."""
    absolute = 0.0 if tol is None else float(tol)
    if rtol is None or rtol == 0.0:
        return absolute, Calls(), None
    complaint = "rtol needs the gap at the start, which is not known; expected tol=, an absolute target."
    raise_all("solve", [complaint] * (not known))
    found = judged(problem, *problem.start(start))
    gap = found.gap
    raise_all("solve", [complaint] * (not math.isfinite(gap)))
    return max(absolute, rtol * gap, 0.0), found.calls, found


class Ladder:
    """Runs of several plans as one: calls, samples, time, plans and history add up. Its attributes are its state."""

    restored_first: ClassVar[tuple[str, ...]] = ("made", "point", "climbed", "climbing")

    def __init__(
        self,
        problem: SaddleProblem,
        target: float,
        accuracy: float,
        known: bool,
        point: tuple[Array, Array],
        costs: tuple[float, float, float] | None,
        control: Control,
        rng: np.random.Generator,
    ) -> None:
        self.problem, self.target, self.accuracy, self.known = problem, target, accuracy, known
        self.point, self.costs, self.control, self.rng = point, costs, control, rng
        self.calls, self.judging, self.samples = Calls(), Calls(), Samples()
        self.spared, self.climbed, self.climbing = 0, 0, False
        # The certified gap at the point: Psi need not be judged again.
        self.gap = math.inf
        self.plans: list[Schedule] = []
        self.history: list[Moment] = []
        self.made: Schedule | None = None
        self.rung: PlanRun | None = None

    def rebuild(self) -> None:
        """The run of the plan under way, before its state is restored."""
        if self.climbing:
            assert self.made is not None
            self.rung = PlanRun(self.problem, self.made, self.point, self._control(), self.rng)

    def carry_out(self) -> Result:
        """Plan after plan, from where the ladder stands."""
        while True:
            if not self.climbing:
                self.made = self._planned()
                self.rung = PlanRun(self.problem, self.made, self.point, self._control(), self.rng)
                self.climbing = True
            assert self.rung is not None
            assert self.made is not None
            found = self._merged(self.rung.carry_out())
            if not self.known:
                return found
            if found.status is not Status.COMPLETED or self.climbed + 1 >= MOST_PLANS:
                return found
            self._keep(found)

    def _planned(self) -> Schedule:
        if not self.known:
            # What it promises is an average over all draws.
            return theorem_plan(self.problem, self.target, start=self.point, costs=self.costs, proved=True)
        Psi0 = (SQUARE_PER_GAP + BREGMAN_PER_GAP) * self.gap if math.isfinite(self.gap) else None
        made = theorem_plan(self.problem, self.accuracy, start=self.point, costs=self.costs, Psi0=Psi0)
        return replace(made, tol=self.target)

    def _control(self) -> Control:
        """What the plans before have left of the limits; the caller sees and saves all plans as one run."""
        given = self.control
        spent = self.calls + self.judging
        callback = given.callback
        return replace(
            given,
            max_calls={name: most - getattr(spent, name) for name, most in given.max_calls.items()},
            max_steps=max(given.max_steps - len(self.history), 0),
            callback=None if callback is None else lambda found: callback(self._merged(found)),
            saved=self,
        )

    def _keep(self, found: Result) -> None:
        """One plan is done: the next starts where it ended, for half the accuracy."""
        self.calls, self.judging = found.calls, found.certificate_calls
        self.control.books.take()
        self.control = replace(self.control, before=Calls())
        self.samples, self.spared = found.samples, found.spared
        self.plans, self.history = (
            [plan for plan in found.plans if isinstance(plan, Schedule)],
            [*found.history],
        )
        self.accuracy, self.point, self.gap = RATIO * self.accuracy, (found.x, found.y), found.gap
        self.climbed += 1
        self.climbing, self.rung = False, None

    def _merged(self, found: Result) -> Result:
        """A result of the present plan with what the plans before it spent."""
        history = tuple(
            replace(
                row,
                step=row.step + len(self.history),
                calls=row.calls + self.calls,
                samples=row.samples + self.samples,
            )
            for row in found.history
        )
        if history and found.status is not Status.RUNNING:
            history = (*history[:-1], replace(history[-1], gap=found.gap))
        return replace(
            found,
            certificate=replace(found.certificate, calls=found.certificate.calls + self.judging),
            calls=found.calls + self.calls,
            samples=found.samples + self.samples,
            plans=(*self.plans, *found.plans),
            history=(*self.history, *history),
            target=self.target,
            spared=found.spared + self.spared,
        )
