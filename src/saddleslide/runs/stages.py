"""Judging a method between its stages: the last point alone, by certified inner solves and carried lower models."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from saddleslide.arrays.state import State
from saddleslide.certificates.candidate import Candidate
from saddleslide.certificates.certificate import certify_counted, feasible, judge_point
from saddleslide.certificates.guards import PairGuard, check_own_steps
from saddleslide.certificates.verdict import Certificate
from saddleslide.errors import UnknownConstantError, UnreachableError
from saddleslide.functions.minimum import LowerModel
from saddleslide.functions.remembered import Remembered
from saddleslide.oracles.calls import Calls
from saddleslide.oracles.oracles import Oracles
from saddleslide.problem import SaddleProblem

if TYPE_CHECKING:
    from saddleslide.arrays.base import Array
    from saddleslide.arrays.state import XArray, YArray
    from saddleslide.runs.control import Control, Watch

# A certificate may always take this many gradients; beyond, no more than the method itself.
_FEWEST_GRADIENTS = 25
# Searches go on until they leave this part of the gap open, each with this part of what the one before left.
_OPEN, _LESS = 0.02, 0.02


@dataclass(eq=False, repr=False)
class StageState(State):
    """The method's own point, the certificate of the last one that was judged, and that point."""

    latest: tuple[XArray, YArray]
    seen: Certificate
    judged_point: tuple[XArray, YArray] | None = None


class StageJudge(StageState):
    """The certificate of the last point that was judged; unlike `Judge` it keeps no bound of an earlier one.

    It answers the questions of a `Judge` and of its judgement. `tol` is the target, if there is one; `own` are the
    method's oracles.
    """

    # A schedule goes on to its end, whatever rounding does.
    at_rounding = False

    def __init__(
        self,
        problem: SaddleProblem,
        tol: float | None,
        start: tuple[Array, Array],
        own: Oracles,
        control: Control,
        watch: Watch,
    ) -> None:
        super().__init__(start, Certificate(reason="not judged yet"))
        self.problem, self.start, self.own = problem, start, own
        # The gap that ends the run; NaN without one.
        self.target = math.nan if tol is None else tol
        self._control, self._watch = control, watch
        self.oracles = Oracles(problem)

    def open(self, *start: object) -> None:
        """Nothing: no start is judged."""

    def doubt(self, mismatch: float) -> None:
        """Nothing: certificates trust the adjoint that was tested."""

    @property
    def calls(self) -> Calls:
        """What judging has taken."""
        return self.seen.calls

    @property
    def gap(self) -> float:
        """Certified gap of the last point that was judged."""
        return self.seen.gap

    @property
    def known_gap(self) -> float:
        """The same: between stages no gap within radii is asked for."""
        return self.gap

    @property
    def first_target(self) -> float:
        """The target, which is absolute."""
        return self.target

    @property
    def is_solved(self) -> bool:
        """Whether the certified gap meets the target."""
        return self.seen.gap <= self.target

    @property
    def point(self) -> tuple[Array, Array]:
        """The method's own point."""
        return self.latest

    def certificate(self) -> Certificate:
        """That of the last judging."""
        return self.seen

    def gap_of(self, candidate: Candidate, own: Calls) -> float:
        """Judge a point, with no more gradients than the method has called itself, or a few."""
        self.latest, spent = (candidate.x, candidate.y), self.calls
        self._certify(candidate.models, int(max(own.f - spent.f, own.g - spent.g, _FEWEST_GRADIENTS)))
        return self.gap

    def judge_at_once(self) -> None:
        """After Ctrl-C, or late: back to the point that was judged last, or a certificate without a search."""
        self._control.books.extend()
        if self.judged_point is not None:
            self.return_to_judged()
        else:
            # Models of a step that was cut short may be half written, so they are left out.
            self._certify({}, 1)

    def _certify(self, models: Mapping[str, LowerModel], most: int) -> None:
        """A certificate of the last point; its calls are counted also where it is cut short."""
        before, books = self.calls, self._control.books
        aside = books.take()
        # What overflows here is no bound, and says nothing about the run; own code keeps its settings.
        settings = {**self._watch.errors, "over": "ignore", "invalid": "ignore"}
        with np.errstate(**settings):
            self.oracles = oracles = Oracles(self.problem, errors=self._watch.errors)
        try:
            with np.errstate(**settings), self._control.clock.phase("certificate"):
                self.seen = self._search(models, most)
            self.judged_point = self.latest
        finally:
            # Norms that judging asked for are its own.
            self.seen = replace(self.seen, calls=before + oracles.calls + books.take())
            books.calls = aside

    def _search(self, models: Mapping[str, LowerModel], most: int) -> Certificate:
        """The gap up to a small part of it, and whether it meets the target for certain."""
        oracles, point = self.oracles, feasible(self.problem, *self.latest)
        best, accuracy = Certificate(), math.inf
        while True:
            left = most - int(max(oracles.calls.f, oracles.calls.g))
            found = certify_counted(oracles, *point, models, accuracy, max(left, 1))
            if found.kind == "none":
                # Nothing is known, or one search has contradicted another.
                return found
            best = found if found.gap < best.gap else best
            least = best.gap - best.error
            # Written so that a NaN ends it.
            is_open = best.error > _OPEN * least or least <= self.target < best.gap
            if accuracy == 0.0 or left <= 1 or not is_open:
                return best
            finer = max(_LESS * best.error, 0.5 * _OPEN * least)
            finer = finer if finer < found.error else 0.0
            if not finer < accuracy:
                # What is left is rounding, which no search makes smaller.
                return best
            accuracy = finer

    def confirm(self) -> None:
        """Own code that the method has hardly called is probed before a success is claimed; part of judging."""
        problem, before = self.problem, self.calls
        self.oracles = oracles = Oracles(problem, errors=self._watch.errors)
        sides = ("f", problem.f, problem.X), ("g", problem.g, problem.Y)
        try:
            check_own_steps(oracles)
            for (name, function, domain), point, began in zip(sides, self.latest, self.start, strict=True):
                # The recursion has compared its own calls, which were all at one point where it never left the start.
                guard = PairGuard(name, function, domain)
                guard.seen = 0 if np.array_equal(point, began) else int(getattr(self.own.calls, name))
                guard.probe(oracles, point, math.inf)
        finally:
            self.seen = replace(self.seen, calls=before + oracles.calls)

    def return_to_judged(self) -> None:
        """Back to the point that was judged last; a block that no bound speaks of stays where it is."""
        if self.judged_point is not None:
            (x, y), (old_x, old_y), seen = self.latest, self.judged_point, self.seen
            self.latest = (old_x if math.isfinite(seen.upper) else x, old_y if math.isfinite(seen.lower) else y)

    def go_back(self, models: Mapping[str, LowerModel]) -> None:
        """Oracles are out of reach: back to the last point that was judged, or can be from what was heard of f."""
        heard, f, X = self.own.heard, self.problem.f, self.problem.X
        if self.judged_point is None and heard.point is not None and "f" in models:
            # The last point where f was called: its value is known, and the lower model of all calls so far.
            try:
                point = X.project(heard.point), self.latest[1]
                known = replace(self.problem, f=Remembered(f, heard, X), B=self.problem.coupling)
                found = judge_point(known, *point, models=models)
            except (UnreachableError, UnknownConstantError):
                # g or B is out of reach as well, or a constant of f was never asked.
                return
            if found.kind != "none":
                self.seen, self.judged_point = found, point
        self.return_to_judged()

    def take_up(self, offered: Sequence[tuple[Array, Array]]) -> None:
        """Cut short in the first step: what no bound judges is taken from a step that was not finished."""
        known = math.isfinite(self.seen.upper), math.isfinite(self.seen.lower)
        if all(known):
            return
        sides = self.problem.X, self.problem.Y
        for found in offered:
            moved = any(not np.array_equal(new, old) for new, old in zip(found, self.latest, strict=True))
            if moved and all(domain.contains(part, 1e-9) for domain, part in zip(sides, found, strict=True)):
                x, y = (old if kept else new for old, new, kept in zip(self.latest, found, known, strict=True))
                self.latest = x, y
                return
