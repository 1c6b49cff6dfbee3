"""When a point is looked at: nobody looks where no look can meet the target, nor seeks a better y."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from saddleslide.arrays.state import State

if TYPE_CHECKING:
    from saddleslide.certificates.inspection import Inspection
    from saddleslide.certificates.judge import Judge

# Looks are at most 1 + seen // _RARER steps apart, at first no more than 1 + _RAREST; where bounds come and go, as all
# do but those from all gradients together, no more than 1 + _WARY; after many steps a sixteenth of them go by unseen.
_RARER, _RAREST, _WARY, _LATE = 4, 4, 2, 16
# By what a better y, and a product beside it, are hoped to divide a gap, before one has been made.
FIRST_RAISED, FIRST_GAIN = 3.0, 8.0


@dataclass(eq=False, repr=False)
class Looks(State):
    """How many points were offered, and when the next is looked at."""

    seen: int = 0
    # Until then a point is only looked at if it may meet the target; the last look with its gap; and whether the last
    # point was not looked at.
    next_look: int = 1
    last: tuple[int, float] = (0, math.inf)
    # By how much the logarithm of the gap has fallen a step, when it last did.
    rate: float = 0.0
    has_waited: bool = False
    # Until then no certified best response is asked for where it costs calls.
    next_try: int = 1

    def is_early(self) -> bool:
        """Whether the next point comes before a look is due."""
        return self.seen + 1 < self.next_look

    def note_try(self) -> None:
        """A certified best response has been asked for: the next ones are spaced out."""
        self.next_try = self.seen + 1 + self.seen // 4

    def plan(self, gap: float, target: float, comes_and_goes: bool, foresees: bool) -> None:
        """The next look is half way to where gaps that shrink as they did would meet the target."""
        (seen, before), ahead = self.last, 0.0
        if gap < before:
            known = gap > 0.0 and before < math.inf
            self.rate = (math.log(before) - math.log(gap)) / (self.seen - seen) if known else 0.0
            self.last = seen, before = self.seen, gap
        if 0.0 < target < before < math.inf and self.rate > 0.0:
            most = max(_WARY if comes_and_goes else _RAREST, self.seen // _LATE)
            left = (math.log(before) - math.log(target)) / self.rate - (self.seen - seen)
            # Where gaps have not kept what they promised, the next one may.
            ahead = min(max(0.5 * left, _WARY), self.seen // _RARER, most)
        # Where bounds can be expected at less than they cost, every second point is asked for that alone.
        self.next_look = self.seen + 1 + max(int(ahead), int(foresees))


@dataclass(eq=False, repr=False)
class AscentState(State):
    """By what the last better y and the last product for it have divided the gap; `Ascent` (ascent.py) seeks them."""

    raised: float = FIRST_RAISED
    gain: float = FIRST_GAIN

    def hopes(self, ratio: float, rate: float) -> bool:
        """Whether a gap of so many targets may meet the target that way, where steps divide it at this rate."""
        return False

    def raise_lower(self, judge: Judge, at: Inspection) -> None:
        """Try to, where that may decide."""
