"""Judging the points of any method at a price that its own calls can bear.

Where the inner minimum of f is known in closed form, both bounds are exact and cost products only. Elsewhere one
gradient at the point gives a first lower bound (`Judge.judge`). A certified inner solve follows only when it is
likely to decide: the point itself shows by how much F can at least be lowered and raised, and the last solve has shown
how much larger the gap was than that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np

from saddleslide.arrays.base import Array, read_only
from saddleslide.arrays.state import State
from saddleslide.certificates.candidate import Candidate, Linearisation, Split
from saddleslide.certificates.judge import Judge
from saddleslide.functions.constants import smoothness_at_hand
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.minimum import has_closed_minimum
from saddleslide.functions.separable import prox
from saddleslide.oracles.calls import Calls
from saddleslide.problem import SaddleProblem

# Part of the target that a certified inner solve may leave open.
_INNER_PART = 0.05
# A certified inner solve may always take this many gradients; beyond, no more in all than the method itself.
_FEWEST_GRADIENTS = 25
# Where a method brings gradients of g along, best responses may take this part of its own calls of g, and two: on rough
# and smooth pairs runs end after the same steps as with all of them.
_PART, _TWO = 0.15, 2.0
# A solve is tried when the expected gap is within this factor of the target; the expectation fades at every inspection.
_HOPE, _FADING = 1.5, 0.9


@dataclass(eq=False, repr=False)
class JudgementState(State):
    """Certified gap over what the point showed, at the last inner solve."""

    ratio: float = 1.0


class Judgement(JudgementState):
    """Certified gaps of a method's candidates; the judge keeps the bounds, and counts what they cost."""

    def __init__(self, problem: SaddleProblem, split: Split, judge: Judge) -> None:
        super().__init__()
        self.problem, self.split, self.judge = problem, split, judge
        self.closed = has_closed_minimum(problem.f, problem.X)

    @cached_property
    def L(self) -> float:
        """The Lipschitz constant of the gradient of the costly part of f; infinite where none is at hand."""
        known = smoothness_at_hand(self.split.f_rest, self.problem.X)
        return known.H if known is not None and known.nu == 1.0 else math.inf

    def open(self, start: tuple[Array, Array], own: Calls) -> None:
        """Judge the start, before the first step: a relative target needs its gap."""
        if self.judge.goal.reduction > 0.0:
            self.exact_gap_of(Candidate(*start, math.nan), own)

    def gap_of(self, candidate: Candidate, own: Calls) -> float:
        """Certified gap of one candidate, given the calls that the method has made."""
        self.judge.asked.g_allowance = own.g
        if self.closed:
            return self.exact_gap_of(candidate, own)
        return self.judge.apart(lambda: self._judge(candidate, own))

    def exact_gap_of(self, candidate: Candidate, own: Calls) -> float:
        """Gap by certified inner solves, whatever the point shows."""
        if math.isnan(candidate.value):
            candidate = replace(candidate, value=self.judge.asked.rest_value(candidate.x))
        return self.judge.gap_at(candidate, _INNER_PART * self.judge.target, self._most(own))

    def _most(self, own: Calls) -> int:
        return int(max(_FEWEST_GRADIENTS, own.f - self.judge.oracles.calls.f))

    def _judge(self, candidate: Candidate, own: Calls) -> None:
        """The bounds from one gradient, which the method may know; those from inner solves where these may decide."""
        judge, x, y, rest = self.judge, candidate.x, candidate.y, self.split.f_rest
        Bx = judge.oracles.forward(x) if candidate.Bx is None else candidate.Bx
        g_value = judge.asked.value_of("g", y) if candidate.g_value is None else candidate.g_value
        value, known = candidate.value, candidate.linearisation
        if known is None or math.isnan(value):
            value, gradient = judge.oracles.made("f", 1, lambda: rest.value_and_gradient(read_only(x)))
            known = Linearisation(x, value, gradient)
        candidate = replace(candidate, value=value, Bx=Bx, g_value=g_value, linearisation=known)
        if judge.judge(candidate):
            return
        # What the gap of this point is at least: what a gradient step lowers F by, and the best y raises it by.
        pull = judge.oracles.adjoint(y)
        shown = 0.0
        if math.isfinite(self.L) and self.L > 0.0 and known.point is x:
            shown = self._descent(x, known.gradient + pull)
        here = value + float(np.vdot(y, Bx)) - g_value
        if not isinstance(self.split.f_simple, Zero):
            here += judge.below.simple_value(x)
        shown = shown + (max(judge.upper - here, 0.0) if math.isfinite(judge.upper) else 0.0)
        self.ratio = max(_FADING * self.ratio, 1.0)
        # The gap that is asked for, or the least that rounding allows.
        reachable = max(judge.target, 1.5 * judge.margins)
        if self.ratio * shown <= _HOPE * reachable and shown <= reachable:
            judge.judge_exactly(candidate, _INNER_PART * judge.target, self._most(own))
            found = judge.gap / shown if shown > 0.0 else 1.0
            self.ratio = found if math.isfinite(found) else self.ratio

    def _descent(self, x: Array, slope: Array) -> float:
        """Decrease of F(., y) that the descent lemma promises for one proximal gradient step."""
        simple, L = self.split.f_simple, self.L
        step = prox(simple, x - slope / L, L, self.problem.X) - x
        change = float(np.vdot(slope, step)) + 0.5 * L * float(np.vdot(step, step))
        if not isinstance(simple, Zero):
            change += self.judge.below.simple_value(x + step) - self.judge.below.simple_value(x)
        return max(-change, 0.0)


class ExactJudgement(Judgement):
    """For simple f and g: certified inner solves call no gradient, so that every point has both of its bounds."""

    def open(self, start: tuple[Array, Array], own: Calls) -> None:
        self.gap_of(Candidate(*start, 0.0), own)

    def gap_of(self, candidate: Candidate, own: Calls) -> float:
        return self.judge.gap_at(candidate)


@final
class LateJudgement(ExactJudgement):
    """The same for a method that begins elsewhere: the start is judged where a caller has set it, or a target asks."""

    def open(self, start: tuple[Array, Array], own: Calls) -> None:
        if self.judge.goal.reduction > 0.0 or any(part.any() for part in start):
            super().open(start, own)


@final
class BoundsJudgement(Judgement):
    """For a method that brings gradients and products along: the best bounds of all its points, none judged alone."""

    def open(self, start: tuple[Array, Array], own: Calls) -> None:
        """Nothing: the first step brings the first bounds."""

    def gap_of(self, candidate: Candidate, own: Calls) -> float:
        """Certified gap of the run, this candidate included."""
        asked = self.judge.asked
        asked.f_allowance, asked.g_allowance = max(_PART * own.f, _TWO), _PART * own.g + _TWO
        self.judge.judge(candidate, may_wait=True)
        return self.judge.known_gap


# How a method asks for its points to be judged (`Method.judged`).
JUDGEMENTS: dict[str, type[Judgement]] = {
    "points": Judgement,
    "exactly": ExactJudgement,
    "late": LateJudgement,
    "bounds": BoundsJudgement,
}
