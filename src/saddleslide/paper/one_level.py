"""Accelerated Mirror-Prox as the paper's tomography runs it: the recursion with a single level for f, g and B."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

from saddleslide.methods.base import Description, option
from saddleslide.methods.sliding.ablation import Ablation, problem_terms, whole_levels
from saddleslide.problem import SaddleProblem
from saddleslide.theory import Level, place


@final
@dataclass(frozen=True, repr=False)
class OneLevel(Ablation):
    """One level with all three parts; `scale` multiplies the whole prox weight, L and M.

    With n = 1 the recursion is Accelerated Mirror-Prox iterate by iterate, and a Hölder g enters through its
    (delta, L)-oracle at N iterations (eq. Holder_delta_star).
    """

    description = Description(
        name="one-level",
        needs=("Hölder f", "Hölder g", "bounded X", "bounded Y"),
        guarantee="Theorem 3.3 with one level; a scale below 1 leaves it.",
        reference="Chen, Lan and Ouyang, Accelerated schemes for a class of variational inequalities, Math. Program. "
        "165 (2017)",
    )
    steps: int = option(1, "iterations", whole=True)
    scale: float = option(1.0, "factor on the prox weight")
    metric: str = option("balanced", "both domains equally large, or the Euclidean norm", ("balanced", "identity"))

    @property
    def is_explicit(self) -> bool:
        return True

    def levels(self, problem: SaddleProblem, start: tuple[Any, Any], eps: float) -> tuple[Level, ...]:
        terms = problem_terms(problem, start, eps, self.metric)
        # f and g act on different blocks: the larger constant serves both.
        parts = [place([terms[name]], (self.steps,))[0] for name in "fg"]
        oracle = max(part.delta for part in parts), self.scale * max(part.L for part in parts)
        merged = replace(terms["B"], name="fgB", M=self.scale * terms["B"].M, inexact=oracle)
        return whole_levels([merged], [self.steps])
