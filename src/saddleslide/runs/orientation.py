"""The side from which a run sees its problem: as it was given, or with the roles of x and y exchanged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from saddleslide.arrays.base import Array
from saddleslide.certificates.verdict import Certificate
from saddleslide.oracles.calls import Calls
from saddleslide.problem import SaddleProblem


@dataclass(frozen=True)
class Orientation:
    """What a run works on, and how its findings read in the names of the problem that was given."""

    given: SaddleProblem
    mirrored: bool = False

    @cached_property
    def problem(self) -> SaddleProblem:
        """The problem as the run sees it."""
        return self.given.mirrored() if self.mirrored else self.given

    def point(self, pair: tuple[Array, Array]) -> tuple[Array, Array]:
        """(x, y) of one side in the order of the other."""
        return (pair[1], pair[0]) if self.mirrored else pair

    def calls(self, calls: Calls) -> Calls:
        """Calls of one side under the names of the other."""
        return calls.mirrored() if self.mirrored else calls

    def certificate(self, seen: Certificate) -> Certificate:
        """A certificate of the run as one of the given problem: its value is the negative."""
        if not self.mirrored:
            return seen
        assumes, calls = self.given.assumptions if seen.assumes else "", seen.calls.mirrored()
        return replace(seen, lower=-seen.upper, upper=-seen.lower, calls=calls, assumes=assumes)
