"""What a plan stands on: constants with their origin, and what a theorem asks for with how it is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from saddleslide.errors import InputError

# How a hypothesis may be known: by the caller's word; by us, from the data; from what the problem is; not at all; or it
# does not hold. The last two prove nothing.
DECLARED, COMPUTED, FOLLOWS, UNKNOWN, VIOLATED = "declared", "computed", "follows", "unknown", "violated"
_WORDS = (DECLARED, COMPUTED, FOLLOWS, UNKNOWN, VIOLATED)


@dataclass(frozen=True)
class Constant:
    """A number the plan relies on, and where it came from.

    Examples
    --------
    >>> Constant(2.0, "declared").origin
    'declared'
    """

    value: float
    origin: str


@dataclass(frozen=True)
class Hypothesis:
    """What a plan's theorem asks for, how it is known, why; `for_gap`: only the step from Psi to the gap needs it."""

    what: str
    how: str
    why: str = ""
    for_gap: bool = False

    def __post_init__(self) -> None:
        if self.how not in _WORDS:
            raise InputError(f"Hypothesis: how is {self.how!r}; expected one of {_WORDS}.")

    @property
    def holds(self) -> bool:
        """Whether it is known to hold."""
        return self.how in (DECLARED, COMPUTED, FOLLOWS)

    @property
    def line(self) -> str:
        """For people."""
        return f"  assumes  {self.what}: {self.how}{f' ({self.why})' if self.why else ''}"


def all_hold(hypotheses: Iterable[Hypothesis], for_gap: bool = True) -> bool:
    """Whether every one is known to hold; without those of the gap alone, where that is asked."""
    return all(one.holds for one in hypotheses if for_gap or not one.for_gap)


def name_missing(hypotheses: Iterable[Hypothesis]) -> str:
    """What is not known to hold, in words; empty where nothing is."""
    return "; ".join(f"{one.what} ({one.how})" for one in hypotheses if not one.holds)
