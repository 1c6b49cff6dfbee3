"""What follows a plan short of its target: adaptive sliding after a preferred method, or a smaller accuracy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from saddleslide.certificates.books import Books
from saddleslide.certificates.certificate import judge_point
from saddleslide.certificates.verdict import Certificate, Status
from saddleslide.errors import InputError, raise_all
from saddleslide.facts.costs import choose_costs
from saddleslide.facts.facts import Facts
from saddleslide.methods import schedule
from saddleslide.methods.catalogue import by_name, method_plan
from saddleslide.planner.choice import BUNDLE, INTERIOR, STEP, adaptive_plan, product_overhead
from saddleslide.planner.forecast import ADAPTIVE, SolveRequest, predict_adaptive
from saddleslide.problem import SaddleProblem
from saddleslide.theory.plan import RESTARTED_PRIMAL_DUAL, Plan, weigh_calls

if TYPE_CHECKING:
    from saddleslide.runs.loop import Course
    from saddleslide.runs.result import Moment, Result

# A preferred method may spend so many times what adaptive sliding is predicted to cost at the target. After a tenth of
# that it must show progress: the gap falls by a tenth while the cost doubles, which any useful rate does.
PATIENCE = 1.0
# Gradients and products are judged from the first part of what their rival is predicted to cost, to the last one: what
# they are predicted to cost is twice too much on most problems that were measured.
_LEAST_OF_RIVAL, _MOST_OF_RIVAL = 0.25, 1.5
# What it takes besides its own steps to leave products for interior points, in operations.
_TAKING_OVER = 3.5e7
_TRIAL, _PROGRESS = 0.1, 0.9
_UNFINISHED = (Status.COMPLETED, Status.NO_CERTIFICATE, Status.NUMERICAL_LIMIT, Status.NON_FINITE)
# Each plan with sampled gradients aims at half the accuracy of the one before: four times the samples, so all before
# cost a third of it. The first aims at this part of the gap at the start.
RATIO, FIRST = 0.5, 0.5
MOST_PLANS = 60
# Judging the start may take this many gradients, where no relative target needs its gap.
_GRADIENTS = 25
AUTO = "auto"


def course_of(problem: SaddleProblem, plan: Plan) -> Course | None:
    """What may follow a plan; nothing, unless it was made to be followed."""
    if plan.on_allowance and plan.costs is not None:
        return Race(problem, plan) if plan.is_adaptive else Allowance(problem, plan)
    if plan.schedule is not None and plan.schedule.accuracy is not None:
        return Accuracies(problem)
    return None


class Allowance:
    """A method that auto preferred, on an allowance: what it leaves unsolved goes on with adaptive sliding.

    It ends once the method has cost more than adaptive sliding is predicted to, or stands still; a method whose end is
    proved may stand still on the way.
    """

    def __init__(self, problem: SaddleProblem, plan: Plan) -> None:
        assert plan.costs is not None
        self._facts, self._costs = Facts(problem, plan.distances), plan.costs
        self._patient = by_name[plan.method].ends_proved
        self._known = dict(plan.alternatives).get(ADAPTIVE) if plan.method in (INTERIOR, BUNDLE) else None
        self.limit = math.nan

    def is_over(self, plans: Sequence[Plan], history: Sequence[Moment], target: float) -> bool:
        if len(plans) > 1:
            return False
        if math.isnan(self.limit):
            # Only now a relative target is known in absolute terms, which some predictions need.
            self.limit = PATIENCE * (self._known or predict_adaptive(self._facts, target, self._costs).cost)
        seen = [(weigh_calls(row.calls.by_oracle, self._costs), row.gap) for row in history]
        cost, gap = seen[-1]
        before = [known for spent, known in seen if spent <= 0.5 * cost]
        still = bool(before) and cost > _TRIAL * self.limit and not gap <= _PROGRESS * before[-1]
        return cost > self.limit or (still and not self._patient)

    def next_plan(self, found: Result, cut: bool) -> Plan | None:
        if len(found.plans) > 1 or found.gap <= found.target or not (cut or found.status in _UNFINISHED):
            return None
        if not found.target > 0.0:
            # A relative target at a start that is optimal already: there is nothing to ask of another method.
            return None
        first = found.plans[0]
        why = "it had used up its allowance or stood still" if cut else f"it ended with {found.status.name}"
        request = SolveRequest(
            found.target, start=(found.x, found.y), costs=self._costs, seed=first.seed, radius=first.radius
        )
        plan = adaptive_plan(Facts(self._facts.problem), request)
        return replace(plan, reasons=(*plan.reasons, f"{first.method} had a gap of {found.gap:.4g} when {why}"))


class Race:
    """Gradients first; interior points, predicted to cost so much, once gradients look dearer than that.

    What is left to do is predicted from the gaps: they go on falling as over the second half of the steps so far.
    """

    def __init__(self, problem: SaddleProblem, plan: Plan) -> None:
        assert plan.costs is not None
        self._problem, self._costs = problem, plan.costs
        simple = plan.method == RESTARTED_PRIMAL_DUAL
        self._rival = dict(plan.alternatives)[INTERIOR] + (_TAKING_OVER if simple else 0.0)
        # What costs of oracles leave out: of a step on f, or of a product alone.
        self._beside = (0.0, product_overhead(problem)) if simple else (STEP, 0.0)

    def is_over(self, plans: Sequence[Plan], history: Sequence[Moment], target: float) -> bool:
        if len(plans) > 1:
            return False
        last = history[-1]
        spent = self._spent(last)
        if spent < _LEAST_OF_RIVAL * self._rival or last.gap <= target:
            return False
        before = [row for row in history if row.step <= last.step // 2]
        if spent >= _MOST_OF_RIVAL * self._rival or not before:
            return spent >= _MOST_OF_RIVAL * self._rival
        if not (target > 0.0 and last.gap < before[-1].gap < math.inf):
            return True
        rate = math.log(before[-1].gap / last.gap) / (spent - self._spent(before[-1]))
        return math.log(last.gap / target) > rate * self._rival

    def _spent(self, row: Moment) -> float:
        per_step, per_product = self._beside
        return weigh_calls(row.calls.by_oracle, self._costs) + per_step * row.step + per_product * row.calls.B

    def next_plan(self, found: Result, cut: bool) -> Plan | None:
        if len(found.plans) > 2 or not found.gap > found.target > 0.0 or not (cut or found.status in _UNFINISHED):
            return None
        facts, first = Facts(self._problem), found.plans[0]
        why = f"{found.plans[-1].method} had a gap of {found.gap:.4g}"
        if len(found.plans) == 2:
            request = SolveRequest(found.target, start=(found.x, found.y), seed=first.seed, radius=first.radius)
            return replace(adaptive_plan(facts, request), reasons=(why,))
        # A part of the gap at the first start is no part of the gap at this one.
        target = first.target
        target = target._replace(tol=found.target, reduction=0.0) if target.reduction > 0.0 else target
        made = replace(method_plan(facts, by_name[INTERIOR]()), **target._asdict(), seed=first.seed)
        return replace(made, reasons=(f"{why}, and gradients would cost more",))


class Accuracies:
    """Plans with sampled gradients for smaller and smaller accuracies, until a certificate meets the target."""

    def __init__(self, problem: SaddleProblem) -> None:
        self._problem = problem

    def is_over(self, plans: Sequence[Plan], history: Sequence[Moment], target: float) -> bool:
        return False

    def next_plan(self, found: Result, cut: bool) -> Plan | None:
        if found.status is not Status.COMPLETED or len(found.plans) >= MOST_PLANS:
            return None
        last = found.plans[-1]
        assert last.schedule is not None and last.schedule.accuracy is not None
        accuracy = RATIO * last.schedule.accuracy
        return plan_accuracy(self._problem, found.target, accuracy, found.gap, (found.x, found.y), last.costs)


def plan_accuracy(
    problem: SaddleProblem, target: float, accuracy: float, gap: float, start: tuple[Any, Any], costs: Any
) -> Plan:
    """One plan of the accuracies, from a start with a certified gap, which bounds Psi there."""
    Psi0 = schedule.PSI_PER_GAP * gap if math.isfinite(gap) else None
    made = schedule.theorem_plan(problem, accuracy, start=start, costs=costs, Psi0=Psi0)
    assert made.schedule is not None
    return replace(made, tol=target, schedule=replace(made.schedule, accuracy=accuracy))


def plan_sampled(problem: SaddleProblem, request: SolveRequest, books: Books) -> Plan | tuple[Certificate, float]:
    """The first plan of `solve` with sampled gradients; or the bounds at a start that is optimal, and the target.

    Without exact gradients it is the plan whose bound on the expected gap meets the target; else the gap at the start
    is judged with exact ones.
    """
    caller, goal = request.caller, request.target(problem)
    complaint = "rtol is a target of exact gradients; expected tol= or reduction= with sampled ones."
    raise_all(caller, [complaint] * (goal.rtol > 0.0))
    if request.method != AUTO:
        name = request.method if isinstance(request.method, str) else request.method.description.name
        raise InputError(
            f"{caller}: method is {name!r}; expected 'auto' without options for sampled gradients. Pass "
            "exact functions for a method by name."
        )
    if not isinstance(request.metric, str) or request.metric not in (AUTO, "blocks"):
        raise InputError(
            f"{caller}: metric {request.metric!r} needs exact gradients of f; expected 'auto' with sampled ones."
        )
    start, target, gap = problem.start(request.start), goal.tol, math.inf
    is_judged = problem.f.has_value and problem.g.has_value
    if goal.reduction > 0.0:
        complaints = ["reduction needs the gap at the start, which is not known; expected tol=, an absolute target."]
        raise_all(caller, complaints * (not is_judged))
        found = judge_point(problem, *start)
        books.note(found.calls)
        raise_all(caller, complaints * (not math.isfinite(found.gap)))
        target = max(target, goal.reduction * found.gap, 0.0)
        if found.gap <= target or found.at_rounding:
            # Optimal, so far as numbers can tell: no plan can be asked for a part of its gap.
            return found, target
    if is_judged:
        found = judge_point(problem, *start, max_gradients=_GRADIENTS)
        books.note(found.calls)
        gap = found.gap
    costs = choose_costs(problem, request.costs, caller) if request.costs is not None else None
    if not is_judged:
        # What it promises is an average over all draws.
        return schedule.theorem_plan(problem, target, start=start, costs=costs, proved=True)
    # Half the gap at the start where it is known: loose plans warm up the dear ones. At least the target.
    accuracy = max(target, FIRST * gap) if math.isfinite(gap) else target
    return plan_accuracy(problem, target, accuracy, gap, start, costs)
