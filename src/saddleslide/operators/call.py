"""The call under way: what it may still do, asked by code that stands before no run's oracles.

A norm is bounded by products, a price is measured by a few calls, a search ends when it is late: none of these belongs
to a method, and all of them to the call of `solve`, `run` or `resume` that the user made. Nothing here changes an
answer: it counts, and it ends what takes too long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

_Answer = TypeVar("_Answer")


class Watcher(Protocol):
    """Who looks after a call: `books.Books`."""

    def late(self) -> bool:
        """Whether the time of the call is up."""

    def look(self) -> None:
        """End the call where its time is up."""

    def made(self, asked: Any, count: float, work: Callable[[], Any]) -> Any:
        """Count the work, do it, and end the call before it where a limit would be passed."""

    def lasted(self, seconds: float) -> None:
        """Hear how long a call of an oracle took."""

    def note(self, calls: Any) -> None:
        """Count what was made through oracles that belong to no run."""


_UNDER_WAY: ContextVar[Watcher | None] = ContextVar("under_way", default=None)


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
    watcher = _UNDER_WAY.get()
    return watcher is not None and watcher.late()


def look() -> None:
    """End the call under way where its time is up."""
    watcher = _UNDER_WAY.get()
    if watcher is not None:
        watcher.look()


def lasted(seconds: float) -> None:
    """Tell the call under way how long one of its oracles took."""
    watcher = _UNDER_WAY.get()
    if watcher is not None:
        watcher.lasted(seconds)


def made(asked: Any, work: Callable[[], _Answer], count: float = 1.0) -> _Answer:
    """Make a product with a linear map, or a call of the oracle "f", "g" or "B", aside from any run."""
    watcher = _UNDER_WAY.get()
    answer: _Answer = work() if watcher is None else watcher.made(asked, count, work)
    return answer


def note(calls: Any) -> None:
    """Put calls into the books of the call under way, that were counted by oracles of nobody's run."""
    watcher = _UNDER_WAY.get()
    if watcher is not None:
        watcher.note(calls)
