"""Threads for kernels that gain from them: rows are shared out, each is computed as before, so that no bit changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from saddleslide.errors import InputError

# Fewer entries than this are done before another thread has begun.
WORTHWHILE = 100_000
_POOL: ContextVar[tuple[int, ThreadPoolExecutor] | None] = ContextVar("pool", default=None)


@contextmanager
def use_threads(count: Any, name: str) -> Iterator[None]:
    """Let kernels use so many threads for a while; one is the default."""
    if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
        raise InputError(f"{name}: threads is {count!r}; expected a whole number >= 1.")
    if count == 1:
        yield
        return
    with ThreadPoolExecutor(int(count) - 1) as pool:
        token = _POOL.set((int(count), pool))
        try:
            yield
        finally:
            _POOL.reset(token)


def over_rows(work: Callable[[int, int], object], starts: npt.NDArray[Any]) -> None:
    """Call work(first, last) on ranges that cover all rows, with equally many entries each; rows begin at `starts`."""
    given = _POOL.get()
    count = 1 if given is None or starts[-1] < WORTHWHILE else given[0]
    edges = equal_parts(starts, count)
    together([partial(work, *edges[i : i + 2]) for i in range(count)])


def equal_parts(starts: npt.NDArray[Any], count: int) -> list[int]:
    """Where parts of the rows with equally many entries each begin, and the number of rows."""
    entries = int(starts[-1])
    cuts: list[int] = np.searchsorted(starts, np.arange(1, count) * (entries / count)).tolist()
    return [0, *cuts, len(starts) - 1]


def together(works: Sequence[Callable[[], object]]) -> None:
    """Do all works, shared out over the threads; what they are does not depend on how many there are."""
    given = _POOL.get()
    if given is None or len(works) == 1:
        for work in works:
            work()
        return
    waiting = [given[1].submit(work) for work in works[1:]]
    works[0]()
    for each in waiting:
        each.result()
