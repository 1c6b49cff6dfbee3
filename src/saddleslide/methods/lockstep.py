"""Lockstep: the paper's ablation without separation. Every component gets the largest budget."""

from __future__ import annotations

from typing import final

from saddleslide.arrays.base import Array
from saddleslide.methods.base import Description, Option
from saddleslide.methods.field import METRIC, calls_of
from saddleslide.methods.staged import Staged, placed, problem_terms
from saddleslide.oracles.calls import Calls
from saddleslide.problem import SaddleProblem
from saddleslide.theory import Level, budget


@final
class Lockstep(Staged):
    """Three levels f, g, B with loops (max R, 1, 1): all oracles are called equally often.

    Examples
    --------
    >>> import saddleslide as ss
    >>> problem = ss.gallery.synthetic(0.75, 0.25, seed=0)
    >>> ss.methods.by_name["lockstep"](metric="identity").predicted_calls(problem, tol=0.5)
    Calls(f=707, g=707, B=2828)
    """

    description = Description(
        name="lockstep",
        needs=("Hölder f", "Hölder g", "bounded X", "bounded Y"),
        guarantee="The bound of Theorem 3.5 for loops (max R, 1, 1); budgets R_i of Corollary 3.6 with kappa_n = 1.",
        reference="Lockstep ablation of recursive sliding (docs/theory.md)",
        options=(Option("steps", None, "outermost loop; by default the largest budget", whole=True), METRIC),
    )

    @property
    def explicit(self) -> bool:
        return self.options["steps"] is not None

    def levels(self, problem: SaddleProblem, origin: tuple[Array, Array], eps: float) -> tuple[Level, ...]:
        terms = problem_terms(problem, origin, eps, self.options["metric"])
        given = self.options["steps"]
        largest = max(budget(term, eps) for term in terms.values()) if given is None else float(given)
        return placed([terms["f"], terms["g"], terms["B"]], [largest, 1, 1])

    def predicted_calls(self, problem: SaddleProblem, tol: float) -> Calls | None:
        T = self.levels(problem, problem.start(), tol)[0].T
        return calls_of(problem, T, T, 4 * T)
