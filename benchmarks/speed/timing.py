"""Medians of interleaved runs, in wall and in processor time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass
class Clock:
    """Times of one piece of work over all rounds."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def run(self, work: Callable[[], object]) -> object:
        wall, cpu = time.perf_counter(), time.process_time()
        answer = work()
        self.wall.append(time.perf_counter() - wall)
        self.cpu.append(time.process_time() - cpu)
        return answer

    def median(self) -> dict[str, float]:
        return {"wall": statistics.median(self.wall), "cpu": statistics.median(self.cpu)}


def interleaved(works: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, dict[str, float]]:
    """Medians of all pieces, one after the other in every round, so that they share the machine's moods."""
    clocks = {name: Clock() for name in works}
    for work in works.values():
        work()
    for _ in range(rounds):
        for name, work in works.items():
            clocks[name].run(work)
    return {name: clock.median() for name, clock in clocks.items()}
