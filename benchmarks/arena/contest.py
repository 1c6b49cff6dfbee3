"""What contests share: programs that are started once, and a book that is written after every step."""

from __future__ import annotations

import json
import math
import os
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import saddleslide as ss
from benchmarks.arena.environments import environment
from benchmarks.arena.tuning import Peer
from benchmarks.arena.workers import Worker

ROOT = Path(__file__).parents[2]
Programs = dict[str, tuple[Peer, Worker]]


def our_worker(module: str, folder: Path) -> Worker:
    """A module of the benchmarks, with the package."""
    path = os.pathsep.join([str(ROOT), str(Path(ss.__file__).parents[1])])
    return Worker([sys.executable, "-m", module], folder, path)


@contextmanager
def programs(ours: str, peers: Sequence[Peer], environments: Path, scratch: Path) -> Iterator[tuple[Worker, Programs]]:
    """All programs, started; ended whatever happens."""
    with ExitStack() as stack:
        mine = our_worker(ours, scratch / "ours")
        stack.callback(mine.close)
        theirs: Programs = {}
        for peer in peers:
            python, reason = environment(peer.package, environments)
            if reason:
                print(f"{peer.name}: {reason}", flush=True)
                continue
            worker = Worker([str(python), str(peer.program)], scratch / peer.program.stem)
            stack.callback(worker.close)
            theirs[peer.name] = (peer, worker)
        yield mine, theirs


class Book:
    """What is known so far: settings by instance, and cells by their key. Written after every step."""

    def __init__(self, path: Path | None, key: Sequence[str], head: dict[str, Any], again: bool = False) -> None:
        self.path, self.key, self.head = path, tuple(key), {"version": ss.__version__, **head}
        held: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path and path.exists() else {}
        self.tuned: dict[str, dict[str, Any]] = held.get("tuned", {})
        self.cells: list[dict[str, Any]] = [] if again else held.get("cells", [])

    def has(self, *key: Any) -> bool:
        asked = json.dumps(key)
        return any(json.dumps([row[name] for name in self.key]) == asked for row in self.cells)

    def write(self) -> None:
        if self.path is None:
            return
        tuned = ",\n  ".join(f"{json.dumps(kind)}: {json.dumps(rows)}" for kind, rows in self.tuned.items())
        cells = ",\n  ".join(json.dumps(row) for row in self.cells)
        head = json.dumps(self.head)[1:-1]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = f'{{{head},\n"tuned": {{\n  {tuned}\n}},\n"cells": [\n  {cells}\n]}}\n'
        # Whole or not at all: an interrupted write must not cost what was measured.
        part = self.path.with_suffix(".part")
        part.write_text(text, encoding="utf-8")
        part.replace(self.path)


def median(times: Sequence[Sequence[float]]) -> dict[str, float]:
    """Wall and processor seconds."""
    return {name: float(f"{statistics.median(row[i] for row in times):.4g}") for i, name in enumerate(("wall", "cpu"))}


def number(value: float | None) -> float | None:
    """Four digits, and None for what is no finite number."""
    return float(f"{value:.4g}") if value is not None and math.isfinite(value) else None
