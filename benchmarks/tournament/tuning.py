"""Peers, the grids of their settings, and the choice of one setting per target on a validation instance."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers import environments
from benchmarks.tournament.judge import Judge
from benchmarks.tournament.workers import Worker

TARGETS = (1e-4, 1e-5, 1e-6)
PROGRAMS = Path(__file__).parent / "programs"
MOST = 200_000
# A setting gets this many times the processor seconds of the best one so far for the smallest target.
HOPE, FEWEST_SECONDS = 1.5, 0.06
Setting = dict[str, Any]
Grid = dict[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Peer:
    """A program of the tournament, and whose environment of `benchmarks.peers` it runs in."""

    name: str
    program: Path
    environment: environments.Peer
    grids: tuple[Grid, ...]
    seconds: float = 3.0

    def settings(self) -> Iterator[Setting]:
        """All combinations of each grid."""
        for grid in self.grids:
            for values in itertools.product(*grid.values()):
                yield dict(zip(grid, values, strict=True))


def _home(stem: str) -> environments.Peer:
    return next(peer for peer in environments.PEERS if peer.program.stem == stem)


YES, NO, BOTH = (True,), (False,), (False, True)
RHO = (0.001, 0.003, 0.0003, 0.01, 0.0001, 0.03, 0.1)
RATIO, SCALE = (3.0, 10.0, 1.0, 30.0, 100.0), (0.06, 0.2, 0.02)
# Settings that are likely to be good come first, so that the others get less time.
PEERS = (
    Peer("SciPy L-BFGS", PROGRAMS / "picture_lbfgs.py", _home("lbfgs"), (
        {"spectral": YES, "tv": (0.0, 0.01), "corrections": (10, 30)},
        {"spectral": NO, "tv": (0.0,), "corrections": (10, 30)},
    )),
    Peer("ADMM, warm CG", PROGRAMS / "picture_admm.py", _home("admm"), (
        {"spectral": YES, "steps": (1, 2, 4), "relax": (1.6, 1.0), "rho": RHO},
        {"spectral": NO, "steps": (5,), "relax": (1.6,), "rho": RHO},
    )),
    Peer("PyProximal PrimalDual", PROGRAMS / "picture_pyproximal.py", _home("pyproximal_pd"), (
        {"spectral": YES, "scale": SCALE, "ratio": RATIO},
        {"spectral": NO, "scale": SCALE, "ratio": RATIO},
    )),
    Peer("ODL pdhg", PROGRAMS / "picture_odl.py", _home("odl_pdhg"), (
        {"spectral": YES, "accelerated": BOTH, "scale": SCALE, "ratio": RATIO},
        {"spectral": NO, "accelerated": YES, "scale": SCALE, "ratio": RATIO},
    )),
)  # fmt: skip


@dataclass(frozen=True)
class Hit:
    """The first iterate below a target."""

    iteration: int
    seconds: float


def hits(worker: Worker, judge: Judge, problem: Path, setting: Setting, seconds: float) -> dict[float, Hit]:
    """The first kept iterate below each target, from one run at counts that grow by 20 %."""
    task = {"problem": str(problem), "setting": setting, "most": MOST, "seconds": seconds, "first": 1}
    found: dict[float, Hit] = {}
    points = worker.run(task).get("points")
    for target in TARGETS if points else ():
        index = judge.first(points["x"], points["y"], target)
        if index is None:
            break
        found[target] = Hit(int(points["iterations"][index]), float(points["seconds"][index]))
    return found


def tuned(peer: Peer, worker: Worker, judge: Judge, problem: Path) -> dict[float, tuple[Setting, Hit]]:
    """For every target the setting that met it first."""
    best: dict[float, tuple[Setting, Hit]] = {}
    for setting in peer.settings():
        last = best.get(TARGETS[-1])
        limit = peer.seconds if last is None else min(peer.seconds, max(HOPE * last[1].seconds, FEWEST_SECONDS))
        for target, hit in hits(worker, judge, problem, setting, limit).items():
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
