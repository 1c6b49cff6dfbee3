"""Proved sliding: the plan with the fewest calls that a theorem proves to reach the target, judged on the way."""

from __future__ import annotations

from typing import ClassVar, final

from saddleslide.arrays.base import Array
from saddleslide.errors import InputError
from saddleslide.methods.base import Description, Option
from saddleslide.methods.fewest import fewest_on_bounded
from saddleslide.methods.field import calls_of
from saddleslide.methods.reach import counted_reach, reach_from_start
from saddleslide.methods.requirements import smoothness_of
from saddleslide.methods.schedule.planner import theorem_plan
from saddleslide.methods.schedule.regimes import Psi_of_sizes
from saddleslide.methods.schedule.request import SHARP
from saddleslide.methods.staged import Staged
from saddleslide.oracles.calls import Calls
from saddleslide.oracles.oracles import Oracles
from saddleslide.problem import SaddleProblem
from saddleslide.theory import Level
from saddleslide.theory.curvature import Curvature
from saddleslide.theory.holder import Holder
from saddleslide.theory.sliding_plan import Schedule


@final
class ProvedSliding(Staged):
    """A plan of `ss.plan(..., proved="sharp")` as a method: one stage on bounded domains, restarts on full spaces.

    The plan ends with a gap of at most the target, whatever happens on the way; certificates may end it earlier.

    Examples
    --------
    >>> import saddleslide as ss
    >>> problem = ss.gallery.synthetic(1.0, 0.5, d=20)
    >>> promised = ss.methods.by_name["proved-sliding"]().predicted_calls(problem, tol=2.0)
    >>> result = ss.solve(problem, tol=2.0, method="proved-sliding")
    >>> result.status.name, result.calls.f <= promised.f, "Theorem 3.5" in result.plans[0].notes[0]
    ('SOLVED', True, True)
    """

    description = Description(
        name="proved-sliding",
        needs=("Hölder f", "Hölder g", "bounded X, Y or curved f, g"),
        guarantee="Gap at most eps at the end of the plan: by Theorem 3.5 on bounded domains, by Theorem 4.4 and "
        "Corollary 4.5 on full spaces with strong convexity.",
        reference="Recursive sliding (docs/theory.md), Theorems 3.5 and 4.4",
        options=(Option("metric", "auto", "norm on bounded domains", ("auto", "identity", "balanced", "levelwise")),),
    )
    ends_proved: ClassVar[bool] = True
    restored_first: ClassVar[tuple[str, ...]] = ("plan", "done", "stage", "point", "left")

    @property
    def explicit(self) -> bool:
        """The stages are those of the plan."""
        return True

    def lacks(self, problem: SaddleProblem) -> list[str]:
        found = super().lacks(problem)
        if found:
            return found
        try:
            # A target as large as this costs next to nothing to plan for.
            self._plan(problem, problem.start(), 1e100, (0.0, 0.0))
        except InputError as error:
            return [str(error)]
        except ArithmeticError:
            return ["the numbers of its plan leave the range of double precision."]
        sides = (("f", problem.f, problem.X), ("g", problem.g, problem.Y))
        flat = [name for name, part, domain in sides if part.smoothness(domain).H == 0.0]
        uncoupled = problem.coupling.norm.upper == 0.0
        return [f"{name} has no curvature and B = 0: its levels have no steps." for name in flat if uncoupled]

    def lacks_at_a_glance(self, problem: SaddleProblem) -> list[str]:
        return super().lacks(problem)

    def start(self, oracles: Oracles, origin: tuple[Array, Array], tol: float) -> None:
        problem = oracles.problem
        distances = (0.0, 0.0) if _bounded(problem) else counted_reach(oracles, origin, proximal=False)
        self.plan, self.done = self._plan(problem, origin, tol, distances), 0
        super().start(oracles, origin, tol)

    def levels(self, problem: SaddleProblem, origin: tuple[Array, Array], eps: float) -> tuple[Level, ...]:
        return _stages(self.plan)[self.done] if _stages(self.plan) else ()

    def begin(self) -> None:
        # Psi at the start may be below its target already: then nothing is left to do.
        if _stages(self.plan):
            super().begin()
        else:
            self.stage, self.left = (), 0

    def advance(self) -> None:
        if self.left == 0:
            if self.done + 1 >= len(_stages(self.plan)):
                return
            self.done += 1
            self.begin()
        super().advance()

    @property
    def finished(self) -> bool:
        """After the last stage."""
        return self.left == 0 and self.done + 1 >= len(_stages(self.plan))

    @property
    def notes(self) -> tuple[str, ...]:
        plan, calls = self.plan, self.plan.predicted_calls
        promise = f"{plan.theorem} promises a gap of at most {plan.bound:.4g}" if plan.proved else "nothing is promised"
        return (f"{promise} after {calls['f']} calls of f', {calls['g']} of g' and {calls['B']} products",)

    def predicted_calls(self, problem: SaddleProblem, tol: float) -> Calls | None:
        if self.lacks(problem):
            return None
        distances = (0.0, 0.0) if _bounded(problem) else reach_from_start(problem)
        plan = self._plan(problem, problem.start(), tol, distances)
        calls = plan.predicted_calls
        return calls_of(problem, calls["f"], calls["g"], calls["B"]) if plan.proved else None

    def fewest_calls(self, problem: SaddleProblem, tol: float) -> Calls:
        # Restarts on full spaces have another bound.
        return fewest_on_bounded(problem, tol) or Calls()

    def _plan(
        self, problem: SaddleProblem, origin: tuple[Array, Array], tol: float, distances: tuple[float, float]
    ) -> Schedule:
        """The plan, made without any call: the distances to the solution are known."""
        if _bounded(problem):
            metric = str(self.options["metric"])
            return theorem_plan(problem, tol, metric=metric, start=origin, regime="degenerate", proved=SHARP)
        squares = (distances[0] ** 2, distances[1] ** 2)
        Psi0 = Psi_of_sizes(_curvature(problem), squares)
        return theorem_plan(problem, tol, start=origin, regime="restarts", proved=True, Psi0=Psi0)


def _bounded(problem: SaddleProblem) -> bool:
    return problem.X.bounded and problem.Y.bounded


def _stages(plan: Schedule) -> tuple[tuple[Level, ...], ...]:
    return tuple(stage.levels for stage in plan.runs)


def _curvature(problem: SaddleProblem) -> Curvature:
    f, g = (smoothness_of(part, domain) for part, domain in ((problem.f, problem.X), (problem.g, problem.Y)))
    moduli = problem.f.strong_convexity(problem.X), problem.g.strong_convexity(problem.Y)
    flat = Holder(1.0, 0.0)
    return Curvature(f or flat, g or flat, problem.coupling.norm.upper, *moduli)
