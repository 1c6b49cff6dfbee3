"""Runs programs on one problem, interleaved, and makes rows of what the judge says.

The first round finds out which points meet the targets; later rounds repeat only the way to them, for the times.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.peers.environments import CLEAN, ROOT, Peer, complaint
from benchmarks.peers.judge import Judge, Point, read

OURS = "saddleslide"
TUNING_SECONDS, MOST = 0.8, 200_000
# Starting a process and reading the problem, on a loaded machine; HiGHS looks at its clock rarely.
PATIENCE = 90.0
Run = Callable[[str, int, float], tuple[list[Point], str]]


@dataclass
class Entry:
    """One program on one problem: how to run it, and what came of it."""

    name: str
    run: Run
    settings: tuple[str, ...] = ("",)
    seconds: float = math.inf
    note: str = ""
    setting: str = ""
    most: int = MOST
    best: float = math.inf
    hits: dict[float, tuple[Point, float]] = field(default_factory=dict)
    times: dict[float, list[float]] = field(default_factory=dict)


def program(peer: Peer, python: Path, problem: Path, scratch: Path) -> Run:
    """A peer as a function of its setting, most iterations and seconds."""

    def run(setting: str, most: int, seconds: float) -> tuple[list[Point], str]:
        out = scratch / f"{peer.program.stem}.npz"
        out.unlink(missing_ok=True)
        command = [str(python), str(peer.program), str(problem), str(out), str(seconds), setting, str(most)]
        reason = complaint(command, seconds + PATIENCE, cwd=str(scratch))
        return ([], f"failed: {reason}") if reason else read(out)

    return run


def ours(name: str, targets: tuple[float, ...], scratch: Path) -> Run:
    """`ss.solve` in a process of its own."""

    def run(setting: str, most: int, seconds: float) -> tuple[list[Point], str]:
        out = scratch / "ours.npz"
        command = [sys.executable, "-m", "benchmarks.peers.ours", name, str(out), ",".join(map(str, targets))]
        reason = complaint(command, 600.0, cwd=str(ROOT), env={**CLEAN, "PYTHONPATH": str(ROOT / "src")})
        return ([], f"failed: {reason}") if reason else read(out)

    return run


def tuned(entry: Entry, judge: Judge) -> str:
    """The setting that meets the most targets in a short run, then the soonest, then gets furthest."""
    if len(entry.settings) == 1:
        return entry.settings[0]
    scores = {}
    for setting in entry.settings:
        points, _ = entry.run(setting, MOST, TUNING_SECONDS)
        hits, best = judge.hits(points)
        scores[setting] = (-len(hits), max((point.seconds for point, _ in hits.values()), default=0.0), best)
    return min(scores, key=scores.__getitem__)


def first_round(entry: Entry, judge: Judge) -> None:
    entry.setting = tuned(entry, judge)
    points, entry.note = entry.run(entry.setting, MOST, entry.seconds)
    entry.hits, entry.best = judge.hits(points)
    entry.times = {target: [point.seconds] for target, (point, _) in entry.hits.items()}
    if not entry.hits:
        return
    entry.most = int(max(point.iterations for point, _ in entry.hits.values()))
    needed = {point.setting for point, _ in entry.hits.values()}
    if not any(map(math.isnan, needed)):
        entry.setting = ",".join(str(int(index)) for index in sorted(needed))


def later_round(entry: Entry) -> None:
    """The same points again, for their times."""
    if not entry.hits:
        return
    points, _ = entry.run(entry.setting, entry.most, 4.0 * entry.seconds)
    for target, (hit, _) in entry.hits.items():
        same = [p.seconds for p in points if _key(p) == _key(hit)]
        if same:
            entry.times[target].append(same[0])


def _key(point: Point) -> tuple[float, ...]:
    """What tells the points of one program apart; counts do not depend on the clock."""
    return (point.iterations, point.counts["f"], point.counts["B"]) if math.isnan(point.setting) else (point.setting,)


def measure(problem: str, entries: list[Entry], judge: Judge, rounds: int) -> list[dict[str, Any]]:
    """Rows of one problem; every round runs all programs in turn."""
    for entry in entries:
        first_round(entry, judge)
    for _ in range(rounds - 1):
        for entry in entries:
            later_round(entry)
    reference = next(entry for entry in entries if entry.name == OURS)
    return [row(problem, entry, reference, judge) for entry in entries]


def row(problem: str, entry: Entry, reference: Entry, judge: Judge) -> dict[str, Any]:
    return {
        "problem": problem,
        "program": entry.name,
        "note": entry.note,
        "best_gap": _number(entry.best),
        "targets": [reached(entry, reference, target) for target in judge.targets],
    }


def reached(entry: Entry, reference: Entry, target: float) -> dict[str, Any]:
    if target not in entry.hits:
        return {"target": target, "met": False}
    point, gap = entry.hits[target]
    pairs = zip(entry.times[target], reference.times.get(target, ()), strict=False)
    ratios = [mine / theirs for mine, theirs in pairs]
    return {
        "target": target,
        "met": True,
        "gap": float(f"{gap:.3g}"),
        "seconds": float(f"{statistics.median(entry.times[target]):.3g}"),
        "ratio": float(f"{statistics.median(ratios):.3g}") if ratios else None,
        "rounds": len(entry.times[target]),
        "iterations": int(point.iterations),
        **{name: _number(count) for name, count in point.counts.items()},
    }


def _number(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None
