"""Lockstep: the paper's ablation without separation. Every component gets the largest budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from saddleslide.methods.base import Description, option
from saddleslide.methods.field import calls_of
from saddleslide.methods.sliding.ablation import Ablation, problem_terms, whole_levels
from saddleslide.theory.bounds import budget

if TYPE_CHECKING:
    from saddleslide.facts.facts import Facts
    from saddleslide.oracles.calls import Calls
    from saddleslide.problem import SaddleProblem
    from saddleslide.theory.levels import Level


@final
@dataclass(frozen=True, repr=False)
class Lockstep(Ablation):
    """Three levels f, g, B with loops (max R, 1, 1): all oracles are called equally often.

    Examples
    --------
    >>> import saddleslide as ss
    >>> problem = ss.gallery.synthetic(0.75, 0.25, seed=0)
    >>> ss.solve(problem, rtol=0.1, method=ss.methods.Lockstep(metric="identity")).status.name
    'SOLVED'
    """

    description = Description(
        name="lockstep",
        needs=("Hölder f", "Hölder g", "bounded X", "bounded Y"),
        guarantee="The bound of Theorem 3.5 for loops (max R, 1, 1); budgets R_i of Corollary 3.6 with kappa_n = 1.",
        reference="Lockstep ablation of recursive sliding (docs/theory.md)",
    )
    steps: int | None = option(None, "outermost loop; by default the largest budget", whole=True)
    metric: str = option("balanced", "both domains equally large, or the Euclidean norm", ("balanced", "identity"))

    @property
    def is_explicit(self) -> bool:
        return self.steps is not None

    def levels(self, problem: SaddleProblem, start: tuple[Any, Any], eps: float) -> tuple[Level, ...]:
        terms = problem_terms(problem, start, eps, self.metric)
        largest = max(budget(term, eps) for term in terms.values()) if self.steps is None else float(self.steps)
        return whole_levels([terms["f"], terms["g"], terms["B"]], [largest, 1, 1])

    def calls(self, facts: Facts, tol: float) -> Calls | None:
        T = self.levels(facts.problem, facts.problem.start(), tol)[0].T
        return calls_of(facts, T, T, 4 * T)
