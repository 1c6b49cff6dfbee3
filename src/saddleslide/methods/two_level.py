"""Two-level sliding: the paper's ablation with partial separation, its form of Mirror-Prox Sliding."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import final

from saddleslide.arrays.base import Array
from saddleslide.methods.base import Description, Option
from saddleslide.methods.field import METRIC, calls_of
from saddleslide.methods.staged import Staged, placed, problem_terms
from saddleslide.oracles.calls import Calls
from saddleslide.problem import SaddleProblem
from saddleslide.theory import Level, Term, budget


@final
class TwoLevelSliding(Staged):
    """One function outside, the other together with the coupling inside.

    Examples
    --------
    >>> import saddleslide as ss
    >>> problem = ss.gallery.synthetic(0.75, 0.25, seed=0)
    >>> ss.methods.by_name["two-level-sliding"](metric="identity").predicted_calls(problem, tol=0.25)
    Calls(f=48, g=1584, B=6336)
    """

    description = Description(
        name="two-level-sliding",
        needs=("Hölder f", "Hölder g", "bounded X", "bounded Y"),
        guarantee="The bound of Theorem 3.5 with two levels; budgets R_i of Corollary 3.6 with kappa_n = 1.",
        reference="Two-level ablation of recursive sliding (docs/theory.md), after Lan and Ouyang, arXiv:2111.00996",
        options=(
            Option("outer", "auto", "the function outside; auto: the one with the smaller budget", ("auto", "f", "g")),
            Option("outer_steps", None, "outer loop; by default the budget", whole=True),
            Option("inner_steps", None, "inner loop; by default from the budgets", whole=True),
            METRIC,
        ),
    )

    @property
    def explicit(self) -> bool:
        return self.options["outer_steps"] is not None

    def levels(self, problem: SaddleProblem, origin: tuple[Array, Array], eps: float) -> tuple[Level, ...]:
        terms = problem_terms(problem, origin, eps, self.options["metric"])
        outer = self._outer(terms, eps)
        inner = "g" if outer == "f" else "f"
        merged = replace(terms[inner], name=inner + "B", M=terms["B"].M)
        given = (self.options["outer_steps"], self.options["inner_steps"])
        T_1 = math.ceil(budget(terms[outer], eps)) if given[0] is None else int(given[0])
        T_2 = math.ceil(budget(merged, eps) / T_1) if given[1] is None else int(given[1])
        return placed([terms[outer], merged], [T_1, T_2])

    def _outer(self, terms: dict[str, Term], eps: float) -> str:
        chosen = str(self.options["outer"])
        if chosen != "auto":
            return chosen
        return "f" if budget(terms["f"], eps) <= budget(terms["g"], eps) else "g"

    def predicted_calls(self, problem: SaddleProblem, tol: float) -> Calls | None:
        outer, inner = self.levels(problem, problem.start(), tol)
        f, g = (outer.N, inner.N) if outer.term.name == "f" else (inner.N, outer.N)
        return calls_of(problem, f, g, 4 * inner.N)
