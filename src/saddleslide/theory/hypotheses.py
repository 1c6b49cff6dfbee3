"""What a plan stands on: constants with their origin, and what a theorem asks for with how it is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any

from saddleslide.errors import InputError

# How a hypothesis may be known: by the caller's word; by us, from the data; from what the problem is; not at all; or it
# does not hold. The last two prove nothing.
DECLARED, COMPUTED, FOLLOWS, UNKNOWN, VIOLATED = "declared", "computed", "follows", "unknown", "violated"
_WORDS = (DECLARED, COMPUTED, FOLLOWS, UNKNOWN, VIOLATED)
# Marks the origin of a variance that was estimated: an estimate must never pass for a bound.
ESTIMATE = "NOT A BOUND, so nothing is proved"


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


def rests_on_estimate(constants: Mapping[str, Constant]) -> bool:
    """Whether a constant of the plan is an estimate: nothing that uses one is proved."""
    return any(ESTIMATE in constant.origin for constant in constants.values())


def as_data(value: Any) -> Any:
    """Plain data for JSON: tuples and small records as lists, what has a `to_dict` as that, the rest as it is."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, tuple):
        return [as_data(part) for part in value]
    if isinstance(value, Mapping):
        return {name: as_data(part) for name, part in value.items()}
    return list(vars(value).values()) if is_dataclass(value) else value
