"""Accelerated Mirror-Prox as the paper's tomography runs it: the recursion with a single level for f, g and B."""

from __future__ import annotations

from dataclasses import replace
from typing import final

from saddleslide.arrays.base import Array
from saddleslide.methods.base import Description, Option
from saddleslide.methods.field import METRIC
from saddleslide.methods.staged import Staged, placed, problem_terms
from saddleslide.problem import SaddleProblem
from saddleslide.theory import Level, place


@final
class OneLevel(Staged):
    """One level with all three parts; `scale` multiplies the whole prox weight, L and M.

    With n = 1 the recursion is Accelerated Mirror-Prox iterate by iterate, and a Hölder g enters through its
    (delta, L)-oracle at N iterations (eq. Holder_delta_star).

    Examples
    --------
    >>> import saddleslide as ss
    >>> problem = ss.gallery.synthetic(1.0, 0.5, seed=0)
    >>> OneLevel(steps=8, scale=0.75, metric="identity").levels(problem, problem.start(), 1.0)[0].term.M
    1.5
    """

    description = Description(
        name="one-level",
        needs=("Hölder f", "Hölder g", "bounded X", "bounded Y"),
        guarantee="Theorem 3.3 with one level; a scale below 1 leaves it.",
        reference="Chen, Lan and Ouyang, Accelerated schemes for a class of variational inequalities, Math. Program. "
        "165 (2017)",
        options=(
            Option("steps", 1, "iterations", whole=True),
            Option("scale", 1.0, "factor on the prox weight"),
            METRIC,
        ),
    )

    @property
    def explicit(self) -> bool:
        return True

    def levels(self, problem: SaddleProblem, origin: tuple[Array, Array], eps: float) -> tuple[Level, ...]:
        steps, scale = int(self.options["steps"] or 1), float(self.options["scale"] or 1.0)
        terms = problem_terms(problem, origin, eps, self.options["metric"])
        # f and g act on different blocks: the larger constant serves both.
        parts = [place([terms[name]], (steps,))[0] for name in "fg"]
        oracle = max(part.delta for part in parts), scale * max(part.L for part in parts)
        return placed([replace(terms["B"], name="fgB", M=scale * terms["B"].M, inexact=oracle)], [steps])
