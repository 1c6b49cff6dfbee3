"""Who looks after the call under way: what is made aside from any run is counted there, and ends with its time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

_Answer = TypeVar("_Answer")


class Watcher:
    """Who looks after a call: `books.Books`. This one, outside of any call, counts nothing and ends nothing."""

    def late(self) -> bool:
        """Whether the time of the call is up."""
        return False

    def look(self) -> None:
        """End the call where its time is up."""

    def made(self, asked: Any, count: float, work: Callable[[], Any]) -> Any:
        """Count the work, do it, and end the call before it where a limit would be passed."""
        return work()

    def lend(self, work: Callable[[], Any]) -> Any:
        """Run code of the caller's that is no call of an oracle."""
        return work()

    def note_seconds(self, seconds: float) -> None:
        """Hear how long a call of an oracle took."""

    def note(self, calls: Any) -> None:
        """Count what was made through oracles that belong to no run."""


_UNDER_WAY: ContextVar[Watcher] = ContextVar("under_way", default=Watcher())  # noqa: B039


@contextmanager
def under_way(watcher: Watcher) -> Iterator[None]:
    """Within it all that is made aside is made for this call."""
    before = _UNDER_WAY.set(watcher)
    try:
        yield
    finally:
        _UNDER_WAY.reset(before)


def late() -> bool:
    """Whether the time of the call under way is up."""
    return _UNDER_WAY.get().late()


def look() -> None:
    """End the call under way where its time is up."""
    _UNDER_WAY.get().look()


def note_seconds(seconds: float) -> None:
    """Tell the call under way how long one of its oracles took."""
    _UNDER_WAY.get().note_seconds(seconds)


def made(asked: Any, work: Callable[[], _Answer], count: float = 1.0) -> _Answer:
    """Make a product with a linear map, or a call of the oracle "f", "g" or "B", aside from any run."""
    answer: _Answer = _UNDER_WAY.get().made(asked, count, work)
    return answer


def lend(work: Callable[[], _Answer]) -> _Answer:
    """Run a proximal step, a conjugate or a projection of the caller's: no call, under the caller's settings of NumPy.

    What it raises is the caller's exception, and no overflow of ours.
    """
    answer: _Answer = _UNDER_WAY.get().lend(work)
    return answer


def note(calls: Any) -> None:
    """Put calls into the books of the call under way, that were counted by oracles of nobody's run."""
    _UNDER_WAY.get().note(calls)
