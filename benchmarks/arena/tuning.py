"""Peers, the grids of their settings, and the choice of one setting per target by processor time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks.arena.workers import Worker

MOST = 200_000
# A setting gets this many times the processor seconds of the best one so far for the smallest target.
HOPE, FEWEST_SECONDS = 1.5, 0.06
Setting = dict[str, Any]
Grid = dict[str, tuple[Any, ...]]


class Judge(Protocol):
    """Who says which of several points is the first below a target."""

    def first(self, xs: Sequence[np.ndarray], ys: Sequence[np.ndarray], target: float) -> int | None: ...


@dataclass(frozen=True)
class Peer:
    """A program, and the package of the environment that it runs in ("" for NumPy and SciPy alone)."""

    name: str
    program: Path
    package: str
    grids: tuple[Grid, ...]
    seconds: float = 3.0

    def settings(self) -> Iterator[Setting]:
        """All combinations of each grid."""
        for grid in self.grids:
            for values in itertools.product(*grid.values()):
                yield dict(zip(grid, values, strict=True))


def first_below(gap: Callable[[int], float], count: int, target: float) -> int | None:
    """Index of the first point below the target: halving, then back as long as earlier points are below too."""
    low, high = -1, count - 1
    if high < 0 or not gap(high) <= target:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if gap(middle) <= target else (middle, high)
    # Gaps need not fall all the way: what was passed by is looked at again.
    while high > 1 and gap(high - 2) <= target:
        high -= 2
    return high


@dataclass(frozen=True)
class Hit:
    """The first iterate below a target."""

    iteration: int
    seconds: float


def hits(
    worker: Worker, judge: Judge, problem: Path, setting: Setting, targets: Sequence[float], seconds: float
) -> dict[float, Hit]:
    """The first kept iterate below each target, from one run at counts that grow by 20 %."""
    task = {"problem": str(problem), "setting": setting, "most": MOST, "seconds": seconds, "first": 1}
    found: dict[float, Hit] = {}
    points = worker.run(task).get("points")
    for target in targets if points else ():
        index = judge.first(points["x"], points["y"], target)
        if index is None:
            break
        found[target] = Hit(int(points["iterations"][index]), float(points["seconds"][index]))
    return found


def tuned(
    peer: Peer, worker: Worker, judge: Judge, problem: Path, targets: Sequence[float]
) -> dict[float, tuple[Setting, Hit]]:
    """For every target the setting that met it first."""
    best: dict[float, tuple[Setting, Hit]] = {}
    for setting in peer.settings():
        last = best.get(targets[-1])
        limit = peer.seconds if last is None else min(peer.seconds, max(HOPE * last[1].seconds, FEWEST_SECONDS))
        for target, hit in hits(worker, judge, problem, setting, targets, limit).items():
            if hit.seconds < (best[target][1].seconds if target in best else math.inf):
                best[target] = (setting, hit)
    return best


def exact_hit(
    worker: Worker, judge: Judge, problem: Path, setting: Setting, target: float, seconds: float
) -> Hit | None:
    """The very first iterate below a target: a coarse run, then all iterates (at most 64) before its hit."""
    task = {"problem": str(problem), "setting": setting, "most": MOST, "seconds": seconds, "first": 1}
    points = worker.run(task).get("points")
    index = judge.first(points["x"], points["y"], target) if points else None
    if points is None or index is None:
        return None
    last = int(points["iterations"][index])
    before = int(points["iterations"][index - 1]) if index else 0
    if last - before > 1:
        stride = max(1, (last - before) // 64)
        fine = worker.run({**task, "most": last, "first": before + 1, "stride": stride, "seconds": 4.0 * seconds})
        points = fine.get("points", points)
        again = judge.first(points["x"], points["y"], target)
        if again is not None:
            return Hit(int(points["iterations"][again]), float(points["seconds"][again]))
    return Hit(last, float(points["seconds"][index if last - before <= 1 else -1]))
