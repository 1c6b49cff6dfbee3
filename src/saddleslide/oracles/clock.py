"""The clock of one call: how long it has been going on, and what that time went into."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import ClassVar, Self

from saddleslide.kernels.switch import compile_seconds

PHASES = ("plan", "compile", "method", "certificate")


class Clock:
    """Runs from the moment that it is made; phases do not overlap, and compiling is a phase wherever it happens.

    A run that is taken up again passes a reading of `time.perf_counter` and the seconds of each phase before that.
    """

    stored: ClassVar[bool] = False

    def __init__(self, began: float | None = None, spent: Mapping[str, float] | None = None) -> None:
        self._at, self._compiled = time.perf_counter(), compile_seconds()
        self.began = self._at if began is None else began
        self._spent = {name: 0.0 if spent is None else float(spent.get(name, 0.0)) for name in PHASES}
        self._phases, self._next = [""], ""

    @property
    def seconds(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self.began

    @property
    def timings(self) -> dict[str, float]:
        """Seconds of each phase so far."""
        self._settle()
        return dict(self._spent)

    def phase(self, name: str) -> Self:
        """Within it time goes into this phase, and not into the one around it."""
        self._next = name
        return self

    def __enter__(self) -> None:
        self._settle()
        self._phases.append(self._next)

    def __exit__(self, *_: object) -> None:
        self._settle()
        self._phases.pop()

    def _settle(self) -> None:
        now, compiled = time.perf_counter(), compile_seconds()
        passed = max(now - self._at, 0.0)
        # Another thread may have compiled as well.
        compiling = min(max(compiled - self._compiled, 0.0), passed)
        self._spent["compile"] += compiling
        if self._phases[-1]:
            self._spent[self._phases[-1]] += passed - compiling
        self._at, self._compiled = now, compiled
