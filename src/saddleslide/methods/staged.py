"""Ablations of recursive sliding: the paper's recursion with other levels, in stages of halved eps until stopped."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar

import numpy as np

from saddleslide.arrays.base import Array, split
from saddleslide.functions import Zero
from saddleslide.methods.base import Method
from saddleslide.methods.schedule.planner import theorem_plan
from saddleslide.methods.sliding import Recursion
from saddleslide.methods.sliding.bilinear import coupling_writer, gradient_writers, product_domain
from saddleslide.methods.sliding.component import Writer
from saddleslide.oracles.oracles import Oracles
from saddleslide.problem import SaddleProblem
from saddleslide.theory import Level, Term, place
from saddleslide.theory.sliding_plan import SlidingPlan


class Staged(Method):
    """Stages of Algorithm 1 with the levels that an ablation chooses; each stage starts at the average of the last.

    Loops that were given are one stage, after which the method is finished. Loops from a target (Corollary 3.6 with
    kappa_n = 1) are followed by stages for half the target, a quarter, ...
    """

    restored_first: ClassVar[tuple[str, ...]] = ("stage", "point", "left")

    @abstractmethod
    def levels(self, problem: SaddleProblem, origin: tuple[Array, Array], eps: float) -> tuple[Level, ...]:
        """Levels of a stage for the target eps; the letters in a level's name say which terms it holds."""

    @property
    @abstractmethod
    def explicit(self) -> bool:
        """Whether the loops were given."""

    def start(self, oracles: Oracles, origin: tuple[Array, Array], tol: float) -> None:
        self.oracles, self.eps = oracles, tol
        self.shapes = [part.shape for part in origin]
        self.point = np.concatenate([part.ravel() for part in origin])
        self.begin()

    def begin(self) -> None:
        """Begin a stage at the present point."""
        problem = self.oracles.problem
        levels = self.levels(problem, self.output(), self.eps)
        # Without these a stage has more outermost steps, and can be judged between them.
        self.stage = tuple(level for level in levels if not _idle(level, problem)) or levels[:1]
        self.left = self.stage[0].T
        self.rebuild()

    def rebuild(self) -> None:
        """The recursion of the present stage."""
        self.recursion = level_recursion(self.oracles, self.stage, self.point)

    def advance(self) -> None:
        if self.left == 0 and not self.explicit:
            self.eps *= 0.5
            self.begin()
        self.point = self.recursion.step(self.stage[0].T - self.left).copy()
        self.left -= 1

    def output(self) -> tuple[Array, Array]:
        x, y = split(self.point, self.shapes)
        return x.copy(), y.copy()

    @property
    def finished(self) -> bool:
        """Given loops are one stage."""
        return self.explicit and self.left == 0

    @property
    def notes(self) -> tuple[str, ...]:
        loops = ", ".join(f"{level.term.name} {level.T}" for level in self.stage)
        origin = (
            "as given" if self.explicit else "from Corollary 3.6 with kappa_n = 1, which is not proved to reach eps"
        )
        return (f"first stage: loops {loops}, {origin}",)


def problem_terms(problem: SaddleProblem, origin: tuple[Array, Array], eps: float, metric: object) -> dict[str, Term]:
    """Terms of f, g and B as `ss.plan` sees them."""
    made = theorem_plan(
        problem, eps, order="fgB", loops=(1, 1, 1), metric=str(metric), start=origin, regime="degenerate"
    )
    assert isinstance(made, SlidingPlan)
    return {level.term.name: level.term for level in made.levels}


def _idle(level: Level, problem: SaddleProblem) -> bool:
    """Whether a level is one pass over nothing, which leaves every iterate as it is."""
    silent = {"f": isinstance(problem.f, Zero), "g": isinstance(problem.g, Zero), "B": level.term.M == 0.0}
    return level.T == 1 and all(silent[letter] for letter in level.term.name)


def level_recursion(oracles: Oracles, levels: tuple[Level, ...], start: Array) -> Recursion:
    """Algorithm 1 with any of f, g and B together on a level; nothing is called for Zero()."""
    problem = oracles.problem
    silent = {name for name, part in (("f", problem.f), ("g", problem.g)) if isinstance(part, Zero)}
    writers = {name: writer for name, writer in gradient_writers(oracles).items() if name not in silent}
    coupling = coupling_writer(oracles)
    gradients = [_both([writers[letter] for letter in level.term.name if letter in writers]) for level in levels]
    operators = [coupling if "B" in level.term.name and level.term.M > 0.0 else None for level in levels]
    return Recursion(levels, gradients, operators, product_domain(problem), start)


def _both(writers: list[Writer]) -> Writer | None:
    """One writer for several blocks: each writes its own and leaves the others alone."""
    if not writers:
        return None

    def write(z: Array, out: Array) -> None:
        for writer in writers:
            writer(z, out)

    return write


def placed(terms: list[Term], loops: list[float]) -> tuple[Level, ...]:
    """Terms on levels with whole loops."""
    return place(terms, [max(1, math.ceil(T)) for T in loops])
