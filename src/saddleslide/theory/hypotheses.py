"""What a theorem asks for, and how each of it is known of a problem: a promise stands on all of them or is none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from saddleslide.errors import InputError

# How a hypothesis may be known. The last two prove nothing.
DECLARED, COMPUTED, FOLLOWS, UNKNOWN, VIOLATED = "declared", "computed", "follows", "unknown", "violated"
_WORDS = (DECLARED, COMPUTED, FOLLOWS, UNKNOWN, VIOLATED)


@dataclass(frozen=True)
class Hypothesis:
    """One hypothesis of a plan's theorem.

    Parameters
    ----------
    what : str
        What the theorem asks for.
    how : "declared", "computed", "follows", "unknown" or "violated"
        By the caller's word; by us, from the data; from what the problem is; not at all; or it does not hold.
    why : str
        Where that comes from.
    for_gap : bool
        Whether only the step from Psi to the gap needs it.

    Examples
    --------
    >>> Hypothesis("X is bounded", "follows", "X is a box").holds
    True
    """

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
    """Whether every one is known to hold; without those of the gap alone, where that is asked.

    Examples
    --------
    >>> all_hold([Hypothesis("x* lies inside X", "unknown", for_gap=True)], for_gap=False)
    True
    """
    return all(one.holds for one in hypotheses if for_gap or not one.for_gap)


def missing_words(hypotheses: Iterable[Hypothesis]) -> str:
    """What is not known to hold, in words; empty where nothing is."""
    return "; ".join(f"{one.what} ({one.how})" for one in hypotheses if not one.holds)


def hypotheses_to_data(hypotheses: Sequence[Hypothesis]) -> list[list[Any]]:
    """As plain data."""
    return [[one.what, one.how, one.why, one.for_gap] for one in hypotheses]


def hypotheses_from_data(data: Iterable[Sequence[Any]]) -> tuple[Hypothesis, ...]:
    """What `hypotheses_to_data` wrote.

    Examples
    --------
    >>> hypotheses_from_data(hypotheses_to_data([Hypothesis("Y is bounded", "computed")]))
    (Hypothesis(what='Y is bounded', how='computed', why='', for_gap=False),)
    """
    return tuple(Hypothesis(str(what), str(how), str(why), bool(for_gap)) for what, how, why, for_gap in data)
