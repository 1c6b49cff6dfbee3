"""Two-level sliding: the paper's ablation with partial separation, its form of Mirror-Prox Sliding."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

from saddleslide.methods.base import Description, option
from saddleslide.methods.field import calls_of
from saddleslide.methods.sliding.ablation import Ablation, problem_terms, whole_levels
from saddleslide.theory.bounds import budget

if TYPE_CHECKING:
    from saddleslide.facts.facts import Facts
    from saddleslide.oracles.calls import Calls
    from saddleslide.problem import SaddleProblem
    from saddleslide.theory.levels import Level, Term


@final
@dataclass(frozen=True, repr=False)
class TwoLevelSliding(Ablation):
    """One function outside, the other together with the coupling inside.

    Examples
    --------
    >>> import saddleslide as ss
    >>> problem = ss.gallery.synthetic(0.75, 0.25, seed=0)
    >>> ss.solve(problem, rtol=0.1, method=ss.methods.TwoLevelSliding(metric="identity")).status.name
    'SOLVED'
    """

    description = Description(
        name="two-level-sliding",
        needs=("Hölder f", "Hölder g", "bounded X", "bounded Y"),
        guarantee="The bound of Theorem 3.5 with two levels; budgets R_i of Corollary 3.6 with kappa_n = 1.",
        reference="Two-level ablation of recursive sliding (docs/theory.md), after Lan and Ouyang, arXiv:2111.00996",
    )
    outer: str = option("auto", "the function outside; auto: the one with the smaller budget", ("auto", "f", "g"))
    outer_steps: int | None = option(None, "outer loop; by default the budget", whole=True)
    inner_steps: int | None = option(None, "inner loop; by default from the budgets", whole=True)
    metric: str = option("balanced", "both domains equally large, or the Euclidean norm", ("balanced", "identity"))

    @property
    def is_explicit(self) -> bool:
        return self.outer_steps is not None

    def levels(self, problem: SaddleProblem, start: tuple[Any, Any], eps: float) -> tuple[Level, ...]:
        terms = problem_terms(problem, start, eps, self.metric)
        outer = self._outer(terms, eps)
        inner = "g" if outer == "f" else "f"
        merged = replace(terms[inner], name=inner + "B", M=terms["B"].M)
        T_1 = math.ceil(budget(terms[outer], eps)) if self.outer_steps is None else int(self.outer_steps)
        T_2 = math.ceil(budget(merged, eps) / T_1) if self.inner_steps is None else int(self.inner_steps)
        return whole_levels([terms[outer], merged], [T_1, T_2])

    def _outer(self, terms: dict[str, Term], eps: float) -> str:
        if self.outer != "auto":
            return self.outer
        return "f" if budget(terms["f"], eps) <= budget(terms["g"], eps) else "g"

    def calls(self, facts: Facts, tol: float) -> Calls | None:
        outer, inner = self.levels(facts.problem, facts.problem.start(), tol)
        f, g = (outer.N, inner.N) if outer.term.name == "f" else (inner.N, outer.N)
        return calls_of(facts, f, g, 4 * inner.N)
