"""Recursive sliding: the schedule of a theorem carried out, and practical budgets that are lengthened on evidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

from saddleslide.certificates.candidate import Candidate
from saddleslide.methods.base import STAGES, Description, Revision, option
from saddleslide.methods.field import calls_of
from saddleslide.methods.schedule.fitting import metric_of
from saddleslide.methods.schedule.planner import theorem_plan
from saddleslide.methods.schedule.regimes import regularised_problem
from saddleslide.methods.sliding.ablation import METRICS, Ablation
from saddleslide.methods.sliding.bilinear import bilinear_recursion, lower_models, taken_anchors
from saddleslide.methods.sliding.stages import Sliding, SlidingState, advance, begin, blocks
from saddleslide.methods.sliding.view import View, view_of
from saddleslide.oracles.calls import Calls
from saddleslide.theory.schedule import PRIMAL_DUAL

if TYPE_CHECKING:
    from saddleslide.arrays.base import Array
    from saddleslide.certificates.judge import Judge
    from saddleslide.facts.facts import Facts
    from saddleslide.functions.minimum import LowerModel
    from saddleslide.oracles.oracles import Oracles
    from saddleslide.problem import SaddleProblem
    from saddleslide.theory import Level, Plan, Schedule

# A practical stage that leaves more than this part of the gap was too short: budgets double, at most so often.
_TOO_LITTLE, _MOST_RAISES = 0.9, 4


@final
@dataclass(frozen=True, repr=False)
class ScheduledSliding(Sliding):
    """Algorithm 1 as a theorem sets it: stages with restarts, anchors, a regularised block, simple terms, a norm of x.

    Judged between stages. A practical stage that gained too little makes those to come longer.
    """

    description = Description(
        name="recursive sliding",
        needs=(),
        guarantee="The bound of the plan: Theorem 3.5, or Theorem 4.4 with restarts.",
        reference="Recursive sliding (docs/theory.md), Algorithm 1",
    )
    judged = STAGES
    plan: Plan

    @classmethod
    def of(cls, plan: Plan) -> ScheduledSliding:
        """What carries a plan out."""
        return cls(plan)

    @property
    def schedule(self) -> Schedule:
        """That of the plan."""
        assert self.plan.schedule is not None
        return self.plan.schedule

    def init(self, oracles: Oracles, facts: Facts, start: tuple[Array, Array], tol: float) -> SlidingState:
        return begin(start)

    def step(self, state: SlidingState, oracles: Oracles) -> SlidingState:
        stage, start = self.schedule.stages[state.done], blocks(state.point, oracles)
        if state.within is None:
            anchors = taken_anchors(oracles, stage, start, self._view(state, oracles).problem)
            state = replace(state, step=0, anchors=anchors)
        begun, kept = state, state.anchors
        state = advance(
            state, oracles, lambda: bilinear_recursion(oracles, stage, start, self._view(begun, oracles), kept), kept
        )
        if state.step < stage.levels[0].T:
            return state
        return replace(state, done=state.done + 1, within=None, models=self._carried(state))

    def _carried(self, state: SlidingState) -> dict[str, tuple[float, Array]]:
        """Lower models of f and g that the stage under way has averaged, or the last one."""
        if state.within is None:
            return state.models
        extra = self.schedule.regularisation
        # Those of a regularised function are not f's or g's own.
        changed = "" if extra is None else {"x": "f", "y": "g"}[extra.block]
        return {name: model for name, model in state.within.models.items() if name != changed}

    def cuts(self, state: SlidingState, oracles: Oracles) -> dict[str, LowerModel]:
        return lower_models(self._carried(state), oracles.problem)

    def _view(self, state: SlidingState, oracles: Oracles) -> View:
        """What the recursion sees of the problem."""
        schedule, problem = self.schedule, oracles.problem
        view = view_of(problem, schedule.simple, metric_of(schedule, problem), schedule.coupling_step == PRIMAL_DUAL)
        if schedule.regularisation is None:
            return view
        center = blocks(state.center, oracles)
        return replace(view, problem=regularised_problem(view.problem, schedule.regularisation, center))

    def is_due(self, state: SlidingState) -> bool:
        return state.within is None

    def is_finished(self, state: SlidingState) -> bool:
        return state.within is None and state.done >= len(self.schedule.stages)

    def candidates(self, state: SlidingState, oracles: Oracles) -> tuple[Candidate, ...]:
        # In the middle of a stage, what the last one has carried along is as true as it was.
        models = lower_models(state.models, oracles.problem)
        return (Candidate(*self.point(state, oracles), math.nan, models=models),)

    def learn(
        self, state: SlidingState, gaps: Sequence[float], judge: Judge, oracles: Oracles
    ) -> SlidingState | Revision:
        before, gap = state.gap, gaps[0]
        state = replace(state, gap=gap)
        if self.schedule.fixed or self.is_finished(state) or state.within is not None:
            return state
        if not (math.isfinite(before) and gap > _TOO_LITTLE * before and state.raises < _MOST_RAISES):
            return state
        raised = self.plan.raised(state.done)
        return Revision(raised, ScheduledSliding(raised), replace(state, raises=state.raises + 1))


@final
@dataclass(frozen=True, repr=False)
class RecursiveSliding(Ablation):
    """Algorithm 1 with the budgets of Corollary 3.6, first for a loose target, then for half of it, and so on.

    Budgets with kappa_n = 1 usually reach a smaller gap than they were made for; the certificate says when.

    Examples
    --------
    >>> import saddleslide as ss
    >>> problem = ss.gallery.synthetic(1.0, 0.5, d=20)
    >>> result = ss.solve(problem, rtol=0.02, method="recursive-sliding")
    >>> result.status.name, result.calls.f < ss.plan(problem, result.target, regime="degenerate").predicted_calls["f"]
    ('SOLVED', True)
    """

    description = Description(
        name="recursive-sliding",
        needs=("Hölder f", "Hölder g", "bounded X", "bounded Y"),
        guarantee="The bound of Theorem 3.5 for each stage; budgets R_i of Corollary 3.6 with kappa_n = 1.",
        reference="Recursive sliding (docs/theory.md), Algorithm 1 and Corollary 3.6",
    )
    loose: float = option(16.0, "the first stage aims at this many times the target")
    metric: str = option("auto", "norm of the levels", METRICS)

    def init(self, oracles: Oracles, facts: Facts, start: tuple[Array, Array], tol: float) -> SlidingState:
        return super().init(oracles, facts, start, float(self.loose) * tol)

    def levels(self, problem: SaddleProblem, start: tuple[Any, Any], eps: float) -> tuple[Level, ...]:
        made = theorem_plan(problem, eps, metric=self.metric, start=start, regime="degenerate")
        assert made.schedule is not None
        return made.schedule.levels

    def calls(self, facts: Facts, tol: float) -> Calls | None:
        counts = {level.term.name: level.N for level in self.levels(facts.problem, facts.problem.start(), tol)}
        return calls_of(facts, counts["f"], counts["g"], 4 * counts["B"])
