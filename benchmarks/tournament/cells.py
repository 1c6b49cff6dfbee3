"""One cell: an instance and a target. All programs in turn, several rounds; what came of it is one row."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.arena.tuning import Hit, Peer, exact_hit, tuned
from benchmarks.arena.workers import Worker
from benchmarks.tournament.instances import check, picture_of, problem_of
from benchmarks.tournament.judge import Judge, Solve, factored
from benchmarks.tournament.programs.picture import Picture, save
from benchmarks.tournament.tuning import TARGETS

# Runs within a round; every one counts.
REPEAT = 2
Pair = tuple[int, int]
Pairs = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Instance:
    """A problem on disk, and its judge."""

    kind: str
    pair: Pair
    path: Path
    judge: Judge
    n: int | None


class Instances:
    """Instances as they are needed; the factors of the judges are kept, one per geometry."""

    def __init__(self, scratch: Path, n: int | None = None) -> None:
        self.scratch, self.n = scratch, n
        self.factors: dict[Any, Solve] = {}
        self.made: dict[tuple[str, Pair], Instance] = {}

    def get(self, kind: str, pair: Pair) -> Instance:
        if (kind, pair) not in self.made:
            problem = problem_of(kind, pair, self.n)
            picture = picture_of(kind, problem)
            assert check(problem, picture) < 1e-12
            path = self.scratch / f"{kind}_{pair[0]}_{pair[1]}.npz"
            save(path, picture)
            self.made[kind, pair] = Instance(kind, pair, path, Judge(picture, self._factor(picture)), self.n)
        return self.made[kind, pair]

    def _factor(self, picture: Picture) -> Solve:
        # Counts shape the Hessian, so their factor serves one instance only.
        key = (picture.A.shape, picture.ridge, id(picture) if picture.intensity > 0.0 else 0)
        if key not in self.factors:
            if len(self.factors) >= 2:
                self.factors.pop(next(iter(self.factors)))
            self.factors[key] = factored(picture)
        return self.factors[key]


def tuned_row(peer: Peer, worker: Worker, instance: Instance) -> dict[str, Any]:
    """The best setting for every target, as plain data."""
    found = tuned(peer, worker, instance.judge, instance.path, TARGETS)
    return {
        f"{target:g}": {"setting": setting, "iterations": hit.iteration, "seconds": float(f"{hit.seconds:.3g}")}
        for target, (setting, hit) in found.items()
    }


class Cell:
    """The programs on one instance to one target."""

    def __init__(self, instance: Instance, target: float, ours: Worker, peers: Mapping[str, tuple[Peer, Worker]],
                 settings: Mapping[str, Mapping[str, Any]]) -> None:  # fmt: skip
        self.instance, self.target, self.ours, self.peers = instance, target, ours, peers
        found = {name: settings[name][f"{target:g}"]
                 for name in peers if f"{target:g}" in settings.get(name, {})}  # fmt: skip
        self.settings = {name: held["setting"] for name, held in found.items()}
        self.expected = {name: float(held["seconds"]) for name, held in found.items()}
        self.hits: dict[str, Hit] = {}
        self.times: dict[str, list[list[float]]] = {name: [] for name in ("ours", "whole", "fitting", *peers)}
        self.setup: dict[str, list[list[float]]] = {name: [] for name in peers}

    def row(self, rounds: int) -> dict[str, Any]:
        self._find()
        for _ in range(rounds):
            self._round()
        instance = self.instance
        return {
            "kind": instance.kind, "pair": list(instance.pair), "target": self.target,
            "ours": {
                "seconds": median(self.times["ours"]), "whole": median(self.times["whole"]),
                "fitting": median(self.times["fitting"]), "steps": self.step + 1, "of": self.steps,
                "calls": self.calls,
            },
            "peers": {name: self._peer_row(name) for name in self.peers},
        }  # fmt: skip

    def _peer_row(self, name: str) -> dict[str, Any] | None:
        if not self.times[name]:
            return None
        return {
            "seconds": median(self.times[name]), "setup": median(self.setup[name]),
            "iterations": self.hits[name].iteration, "setting": self.settings[name],
        }  # fmt: skip

    def _find(self) -> None:
        """Which iterate of each program is the first below the target."""
        answer = self._ask_ours(1)
        judge = self.instance.judge
        first = judge.first(answer["points"]["x"], answer["points"]["y"], self.target)
        assert answer["success"] and first is not None, f"{self.instance.kind}: not solved to {self.target:g}"
        self.step, self.steps, self.calls = first, answer["kept"], answer["calls"]
        for name, setting in self.settings.items():
            peer, worker = self.peers[name]
            # About what validation took; all its time only where that was not enough.
            for limit in (3.0 * self.expected[name], 2.0 * peer.seconds):
                hit = exact_hit(worker, judge, self.instance.path, setting, self.target, limit)
                if hit is not None:
                    self.hits[name] = hit
                    break

    def _ask_ours(self, repeat: int) -> dict[str, Any]:
        task = {"kind": self.instance.kind, "pair": self.instance.pair, "n": self.instance.n,
                "target": self.target, "repeat": repeat, "seconds": 60.0}  # fmt: skip
        answer = self.ours.run(task)
        assert "failed" not in answer, answer["failed"]
        return answer

    def _round(self) -> None:
        answer = self._ask_ours(REPEAT)
        self.times["ours"] += [times[self.step] for times in answer["times"]]
        self.times["whole"] += answer["whole"]
        self.times["fitting"] += answer["fitting"]
        for name, hit in self.hits.items():
            peer, worker = self.peers[name]
            task = {"problem": str(self.instance.path), "setting": self.settings[name], "most": hit.iteration,
                    "seconds": 10.0 * peer.seconds, "repeat": REPEAT}  # fmt: skip
            answer = worker.run(task)
            self.times[name] += answer.get("seconds", [])
            self.setup[name] += answer.get("setup", [])


def median(times: Pairs) -> dict[str, float]:
    """Wall and processor seconds."""
    return {name: float(f"{statistics.median(row[i] for row in times):.4g}") for i, name in enumerate(("wall", "cpu"))}


def cells_of(kind: str, pairs: Sequence[Pair], targets: Sequence[float] = TARGETS) -> list[tuple[str, Pair, float]]:
    return [(kind, pair, target) for pair in pairs for target in targets]
