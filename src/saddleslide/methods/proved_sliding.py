"""Proved sliding: the plan with the fewest calls that a theorem proves to reach the target, judged on the way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, final

from saddleslide.errors import InputError
from saddleslide.methods.base import Description, option
from saddleslide.methods.field import calls_of, fewest_on_bounded
from saddleslide.methods.recursive_sliding import METRICS, Sliding, SlidingState, level_recursion, without_idle
from saddleslide.methods.schedule.planner import theorem_plan
from saddleslide.methods.schedule.regimes import Psi_of_sizes
from saddleslide.methods.schedule.request import SHARP
from saddleslide.oracles.calls import Calls
from saddleslide.theory.holder import Holder
from saddleslide.theory.restarts import Curvature

if TYPE_CHECKING:
    from saddleslide.arrays.base import Array
    from saddleslide.facts.facts import Facts
    from saddleslide.oracles.oracles import Oracles
    from saddleslide.theory.plan import Plan


@final
@dataclass(frozen=True, repr=False)
class ProvedSliding(Sliding):
    """A plan of `ss.plan(..., proved="sharp")` as a method: one stage on bounded domains, restarts on full spaces.

    The plan ends with a gap of at most the target, whatever happens on the way; certificates may end it earlier.

    Examples
    --------
    >>> import saddleslide as ss
    >>> problem = ss.gallery.synthetic(1.0, 0.5, d=20)
    >>> result = ss.solve(problem, tol=2.0, method="proved-sliding")
    >>> result.status.name, "Theorem 3.5" in result.plans[0].notes[0]
    ('SOLVED', True)
    """

    description = Description(
        name="proved-sliding",
        needs=("Hölder f", "Hölder g", "bounded X, Y or curved f, g"),
        guarantee="Gap at most eps at the end of the plan: by Theorem 3.5 on bounded domains, by Theorem 4.4 and "
        "Corollary 4.5 on full spaces with strong convexity.",
        reference="Recursive sliding (docs/theory.md), Theorems 3.5 and 4.4",
    )
    ends_proved: ClassVar[bool] = True
    metric: str = option("auto", "norm on bounded domains", METRICS)

    def lacks(self, facts: Facts) -> list[str]:
        if found := super().lacks(facts):
            return found
        try:
            # A target as large as this costs next to nothing to plan for.
            self._plan(facts, facts.problem.start(), 1e100, (0.0, 0.0))
        except InputError as error:
            return [str(error)]
        except ArithmeticError:
            return ["the numbers of its plan leave the range of double precision."]
        flat = [name for name, block in (("f", facts.f), ("g", facts.g)) if block.holder and block.holder.H == 0.0]
        return [f"{name} has no curvature and B = 0: its levels have no steps." for name in flat if facts.norm == 0.0]

    def lacks_at_a_glance(self, facts: Facts) -> list[str]:
        return super().lacks(facts)

    def init(self, oracles: Oracles, facts: Facts, start: tuple[Array, Array], tol: float) -> SlidingState:
        bounded = _is_bounded(facts)
        distances = (0.0, 0.0) if bounded else facts.distances_from(oracles, start, proximal=False)
        plan = self._plan(facts, start, tol, distances)
        assert plan.schedule is not None
        calls = plan.predicted_calls
        promise = f"{plan.theorem} promises a gap of at most {plan.bound:.4g}" if plan.proved else "nothing is promised"
        note = f"{promise} after {calls['f']} calls of f', {calls['g']} of g' and {calls['B']} products"
        stages = tuple(without_idle(stage.levels, oracles.problem) for stage in plan.schedule.stages)
        return replace(SlidingState.at(start, tol), stages=stages, note=note)

    def step(self, state: SlidingState, oracles: Oracles) -> SlidingState:
        if self.is_finished(state):
            return state
        if state.step == state.stages[state.done][0].T:
            state = replace(state, done=state.done + 1, step=0, within=None)
        levels, z = state.stages[state.done], state.point
        return state.advance(oracles, lambda: level_recursion(oracles, levels, z), levels)

    def is_finished(self, state: SlidingState) -> bool:
        """After the last stage; Psi at the start may be below its target already, and then nothing is left to do."""
        last = state.done + 1 == len(state.stages)
        return not state.stages or (last and state.step == state.stages[-1][0].T)

    def notes(self, state: SlidingState, facts: Facts) -> tuple[str, ...]:
        return (state.note,)

    def calls(self, facts: Facts, tol: float) -> Calls | None:
        if self.lacks(facts):
            return None
        distances = (0.0, 0.0) if _is_bounded(facts) else facts.distances
        plan = self._plan(facts, facts.problem.start(), tol, distances)
        calls = plan.predicted_calls
        return calls_of(facts, calls["f"], calls["g"], calls["B"]) if plan.proved else None

    def fewest_calls(self, facts: Facts, tol: float) -> Calls:
        # Restarts on full spaces have another bound.
        return fewest_on_bounded(facts, tol) or Calls()

    def _plan(self, facts: Facts, start: tuple[Array, Array], tol: float, distances: tuple[float, float]) -> Plan:
        """The plan, made without any call: the distances to the solution are known."""
        problem = facts.problem
        if _is_bounded(facts):
            return theorem_plan(problem, tol, metric=self.metric, start=start, regime="degenerate", proved=SHARP)
        flat = Holder(1.0, 0.0)
        curvature = Curvature(facts.f.holder or flat, facts.g.holder or flat, facts.norm, *facts.moduli)
        Psi0 = Psi_of_sizes(curvature, (distances[0] ** 2, distances[1] ** 2))
        return theorem_plan(problem, tol, start=start, regime="restarts", proved=True, Psi0=Psi0)


def _is_bounded(facts: Facts) -> bool:
    return facts.f.domain.bounded and facts.g.domain.bounded
