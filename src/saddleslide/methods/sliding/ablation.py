"""Ablations of recursive sliding: the paper's recursion with other levels, in stages of halved eps until stopped."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from saddleslide.functions.entrywise import Zero
from saddleslide.methods.schedule.planner import theorem_plan
from saddleslide.methods.sliding.bilinear import coupling_writer, gradient_writers, product_domain
from saddleslide.methods.sliding.recursion import Recursion
from saddleslide.methods.sliding.stages import Sliding, SlidingState, advance, begin
from saddleslide.theory.levels import place

if TYPE_CHECKING:
    from saddleslide.arrays.base import Array
    from saddleslide.facts.facts import Facts
    from saddleslide.methods.sliding.component import Writer
    from saddleslide.oracles.oracles import Oracles
    from saddleslide.problem import SaddleProblem
    from saddleslide.theory.levels import Level, Term

METRICS = ("auto", "identity", "balanced", "levelwise")


@dataclass(frozen=True, repr=False)
class Ablation(Sliding):
    """Stages of Algorithm 1 with the levels that an ablation chooses; each stage starts at the average of the last.

    Loops that were given are one stage, after which the method is finished. Loops from a target (Corollary 3.6 with
    kappa_n = 1) are followed by stages for half the target, a quarter, ...
    """

    @abstractmethod
    def levels(self, problem: SaddleProblem, start: tuple[Any, Any], eps: float) -> tuple[Level, ...]:
        """Levels of a stage for the target eps; the letters in a level's name say which terms it holds."""

    @property
    def is_explicit(self) -> bool:
        """Whether the loops were given."""
        return False

    def init(self, oracles: Oracles, facts: Facts, start: tuple[Array, Array], tol: float) -> SlidingState:
        return self._at_stage(begin(start, tol), oracles)

    def _at_stage(self, state: SlidingState, oracles: Oracles) -> SlidingState:
        """The beginning of a stage for the target of the state, at its point."""
        levels = self.levels(oracles.problem, self.point(state, oracles), state.eps)
        return replace(state, stages=(without_idle(levels, oracles.problem),), step=0, within=None)

    def step(self, state: SlidingState, oracles: Oracles) -> SlidingState:
        if state.step == state.stages[0][0].T and not self.is_explicit:
            state = self._at_stage(replace(state, eps=0.5 * state.eps, done=state.done + 1), oracles)
        levels, z = state.stages[0], state.point
        return advance(state, oracles, lambda: level_recursion(oracles, levels, z), levels)

    def is_finished(self, state: SlidingState) -> bool:
        """Given loops are one stage."""
        return self.is_explicit and state.step == state.stages[0][0].T

    def notes(self, state: SlidingState, facts: Facts) -> tuple[str, ...]:
        loops = ", ".join(f"{level.term.name} {level.T}" for level in state.stages[0])
        budgets = "from Corollary 3.6 with kappa_n = 1, which is not proved to reach eps"
        return (f"first stage: loops {loops}, {'as given' if self.is_explicit else budgets}",)


def problem_terms(problem: SaddleProblem, start: tuple[Any, Any], eps: float, metric: str) -> dict[str, Term]:
    """Terms of f, g and B as `ss.plan` sees them."""
    made = theorem_plan(problem, eps, order="fgB", loops=(1, 1, 1), metric=metric, start=start, regime="degenerate")
    assert made.schedule is not None
    return {level.term.name: level.term for level in made.schedule.levels}


def whole_levels(terms: list[Term], loops: list[float]) -> tuple[Level, ...]:
    """Terms on levels with whole loops."""
    return place(terms, [max(1, math.ceil(T)) for T in loops])


def without_idle(levels: tuple[Level, ...], problem: SaddleProblem) -> tuple[Level, ...]:
    """Without levels that are one pass over nothing: a stage has more outermost steps, and can be judged in between."""
    silent = {"f": isinstance(problem.f, Zero), "g": isinstance(problem.g, Zero)}

    def is_idle(level: Level) -> bool:
        return level.T == 1 and all({**silent, "B": level.term.M == 0.0}[letter] for letter in level.term.name)

    return tuple(level for level in levels if not is_idle(level)) or levels[:1]


def level_recursion(oracles: Oracles, levels: tuple[Level, ...], start: Array) -> Recursion:
    """Algorithm 1 with any of f, g and B together on a level; nothing is called for Zero()."""
    problem = oracles.problem
    silent = {name for name, part in (("f", problem.f), ("g", problem.g)) if isinstance(part, Zero)}
    writers = {name: writer for name, writer in gradient_writers(oracles, problem).items() if name not in silent}
    coupling = coupling_writer(oracles)
    gradients = [_together([writers[letter] for letter in level.term.name if letter in writers]) for level in levels]
    operators = [coupling if "B" in level.term.name and level.term.M > 0.0 else None for level in levels]
    return Recursion(levels, gradients, operators, product_domain(problem), start)


def _together(writers: list[Writer]) -> Writer | None:
    """One writer for several blocks: each writes its own and leaves the others alone."""
    if not writers:
        return None

    def write(z: Array, out: Array) -> None:
        for writer in writers:
            writer(z, out)

    return write
