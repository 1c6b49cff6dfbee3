"""Proved sliding: the plan with the fewest calls that a theorem proves to reach the target, judged on the way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, final

from saddleslide.arrays.base import length_of
from saddleslide.errors import InputError
from saddleslide.methods.base import Array, Description, Facts, Oracles, option
from saddleslide.methods.field import calls_of, fewest_on_bounded, operator
from saddleslide.methods.recursive_sliding import METRICS, Sliding, SlidingState, level_recursion, without_idle
from saddleslide.methods.schedule.planner import theorem_plan
from saddleslide.methods.schedule.regimes import Psi_of_sizes
from saddleslide.methods.schedule.request import SHARP
from saddleslide.oracles.calls import Calls
from saddleslide.theory.holder import Holder
from saddleslide.theory.mixed import gap_stages
from saddleslide.theory.restarts import Curvature

if TYPE_CHECKING:
    from saddleslide.theory.plan import Plan


@final
@dataclass(frozen=True, repr=False)
class ProvedSliding(Sliding):
    """A plan of `ss.plan(..., proved="sharp")` as a method: one stage on bounded domains, restarts on full spaces.

    With `restarts="gap"`, where one function is strongly convex and the set of the other one is bounded: stages that
    halve the gap itself, without regularisation (docs/open.md).

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
        "Corollary 4.5 on full spaces with strong convexity; with restarts on the gap by docs/open.md, with one curved "
        "function beside a bounded set.",
        reference="Recursive sliding (docs/theory.md), Theorems 3.5 and 4.4",
    )
    ends_proved: ClassVar[bool] = True
    metric: str = option("auto", "norm on bounded domains", METRICS)
    restarts: str = option("Psi", "what stages shrink: Psi as the paper's, or the gap itself", ("Psi", "gap"))

    def lacks(self, facts: Facts) -> list[str]:
        if self.restarts == "gap":
            blocks = (("f", facts.f), ("g", facts.g))
            silent = [f"{name} has no known Hölder condition." for name, block in blocks if block.holder is None]
            return silent or ([] if _curved_block(facts) else ["no function is strongly convex beside a bounded set."])
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
        if self.restarts == "gap":
            return self._on_the_gap(oracles, facts, start, tol)
        bounded = _is_bounded(facts)
        distances = (0.0, 0.0) if bounded else facts.distances_from(oracles, start, proximal=False)
        plan = self._plan(facts, start, tol, distances)
        assert plan.schedule is not None
        calls = plan.predicted_calls
        promise = f"{plan.theorem} promises a gap of at most {plan.bound:.4g}" if plan.proved else "nothing is promised"
        note = f"{promise} after {calls['f']} calls of f', {calls['g']} of g' and {calls['B']} products"
        stages = tuple(without_idle(stage.levels, oracles.problem) for stage in plan.schedule.stages)
        return replace(SlidingState.at(start, tol), stages=stages, note=note)

    def _on_the_gap(
        self, oracles: Oracles, facts: Facts, start: tuple[Array, Array], tol: float
    ) -> SlidingState:  # fmt: skip
        """Stages that halve the gap, from what the slopes at the start show of it."""
        block = _curved_block(facts)
        curved, flat = (facts.f, facts.g) if block == "x" else (facts.g, facts.f)
        steep, level = operator(oracles, start) if block == "x" else reversed(operator(oracles, start))
        diameter = flat.domain.diameter()
        first = length_of(steep) ** 2 / (2.0 * curved.modulus) + diameter * length_of(level)
        assert curved.holder is not None
        assert flat.holder is not None
        # Without a target to end at, one stage.
        gaps = (first, tol if tol > 0.0 else 0.5 * first)
        found = gap_stages(curved.holder, flat.holder, facts.norm, curved.modulus, diameter, gaps, block)
        note = f"the gap at the start is at most {first:.4g}; {len(found)} stages halve it (docs/open.md)"
        stages = tuple(without_idle(levels, oracles.problem) for levels in found)
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
        if self.restarts == "gap" or self.lacks(facts):
            # What the stages take depends on the slopes at the start, which are calls.
            return None
        distances = (0.0, 0.0) if _is_bounded(facts) else facts.distances
        try:
            plan = self._plan(facts, facts.problem.start(), tol, distances)
        except InputError:
            # With inexact oracles no plan reaches a target below what their errors add up to.
            return None
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


def _curved_block(facts: Facts) -> str:
    """The block whose function is strongly convex, the set of the other one being bounded; empty if there is none."""
    if facts.f.modulus > 0.0 and facts.g.domain.bounded:
        return "x"
    return "y" if facts.g.modulus > 0.0 and facts.f.domain.bounded else ""


def _is_bounded(facts: Facts) -> bool:
    return facts.f.domain.bounded and facts.g.domain.bounded
