"""One instance with its judge and the settings of all peers; one cell: a target, all programs in turn."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.arena.contest import Programs, median, number
from benchmarks.arena.families import NAMES
from benchmarks.arena.judge import Judge
from benchmarks.arena.programs.form import save
from benchmarks.arena.tuning import Hit, exact_hit, tuned
from benchmarks.arena.workers import Worker

# Peers that are measured beside us: the quickest of the tuned ones, as long as they are not far behind.
RIVALS, FAR = 3, 3.0
# Our part in finding the least value, and the tightest settings of others.
EXACT, EXACT_SECONDS = 1e-9, 20.0
# A setting that takes so many times the quickest peer's time to the smallest target is given up.
HOPE, LEAST_SECONDS = 4.0, 0.1
REFERENCES = (("Clarabel", {"tolerance": 1e-11}), ("L-BFGS-B", {"corrections": 30}), ("FISTA", {}))
Known = dict[str, Any]


class Instance:
    """A family at a size: what is known of it is plain data, so that an interrupted contest goes on."""

    def __init__(self, family: str, size: int, scratch: Path, ours: Worker, peers: Programs, known: Known) -> None:
        self.family, self.size, self.ours, self.peers, self.known = family, size, ours, peers, known
        form = NAMES[family].make(size).form
        # Programs read a problem once for its name.
        self.path = scratch / f"{list(NAMES).index(family)}_{size}.npz"
        save(self.path, form)
        self.shape = form.c.size, form.h.size
        self.judge = Judge(form, known.get("least", math.inf))

    def find(self, targets: Sequence[float], seconds: float) -> None:
        """The least value, and for every peer and target the setting that gets there first."""
        if "least" not in self.known:
            self._find_least(seconds)
        settings = self.known.setdefault("settings", {})
        for name, (peer, worker) in self.peers.items():
            if name not in settings:
                found = tuned(
                    replace(peer, seconds=self._patience(peer.seconds, targets)), worker, self.judge, self.path, targets
                )
                settings[name] = {
                    f"{target:g}": {"setting": setting, "iterations": hit.iteration, "seconds": number(hit.seconds)}
                    for target, (setting, hit) in found.items()
                }

    def _patience(self, most: float, targets: Sequence[float]) -> float:
        """Seconds of a setting: no more than what leaves it within reach of the quickest peer so far."""
        rows = (settings.get(f"{min(targets):g}") for settings in self.known["settings"].values())
        best = min((row["seconds"] for row in rows if row), default=math.inf)
        return min(most, max(HOPE * best, LEAST_SECONDS))

    def _find_least(self, seconds: float) -> None:
        answer = self.call({"reduction": EXACT}, min(10.0 * seconds, EXACT_SECONDS))
        lower = answer.get("lower")
        if "points" in answer:
            self.judge.value(answer["points"]["x"][0])
        for name, setting in REFERENCES:
            if name in self.peers:
                task = {"problem": str(self.path), "setting": setting, "most": 10**6, "seconds": seconds, "first": 1}
                for x in self.peers[name][1].run(task).get("points", {"x": []})["x"][-1:]:
                    self.judge.value(x)
        self.judge.settle()
        self.known |= {"least": self.judge.least, "unit": self.judge.unit, "shape": list(self.shape)}
        # How far below the least value another one may be, by our certificate.
        self.known["open"] = None if lower is None else number((self.judge.least - lower) / self.judge.unit)

    def call(self, target: dict[str, float], seconds: float, repeat: int = 1) -> dict[str, Any]:
        task = {"family": self.family, "size": self.size, "target": target, "seconds": seconds, "repeat": repeat}
        return self.ours.run(task)

    def cell(self, target: float, rounds: int, seconds: float) -> dict[str, Any]:
        """One row. A call that fails stays a row."""
        unit = self.judge.unit
        asked, load = {"tol": target * unit}, os.getloadavg()[0]
        answer = self.call(asked, seconds)
        ours: dict[str, Any] = {"failed": answer["failed"]} if "failed" in answer else {
            "success": answer["success"], "status": answer["status"], "methods": answer["methods"],
            "calls": answer["calls"],
        }  # fmt: skip
        gap = self.judge.gap(answer["points"]["x"][0], answer["points"]["y"][0]) if "points" in answer else math.inf
        lower = answer.get("lower")
        # A claim is false where its bound is above a value that somebody has reached.
        false = (
            lower is not None
            and lower > self.judge.least + 1e-12 * (abs(self.judge.least) + unit)
            and not self.judge.is_game
        )
        ours |= {
            "gap": number(gap),
            "met": bool(gap <= target),
            "false": bool(false or (ours.get("success", False) and gap > 1.001 * target)),
        }
        hits = self._hits(target)
        times: dict[str, list[Any]] = {name: [] for name in ("ours", *hits)}
        for _ in range(rounds):
            if ours.get("success", False):
                times["ours"] += self.call(asked, seconds).get("times", [])
            for name, (setting, hit) in hits.items():
                task = {
                    "problem": str(self.path),
                    "setting": setting,
                    "most": hit.iteration,
                    "seconds": 20.0 * self.peers[name][0].seconds,
                }
                times[name] += self.peers[name][1].run(task).get("seconds", [])
        ours |= median(times["ours"] or answer.get("times", [[math.inf, math.inf]]))
        peers = {
            name: {**median(times[name]), "setting": setting, "iterations": hit.iteration}
            for name, (setting, hit) in hits.items() if times[name]
        }  # fmt: skip
        slower = {name: held["seconds"] for name, held in self._tuned(target).items() if name not in peers}
        return {
            "family": self.family, "size": self.size, "target": target, "shape": list(self.shape),
            "ours": ours, "peers": peers,
            "slower": slower, "load": [round(load, 1), round(os.getloadavg()[0], 1)],
        }  # fmt: skip

    def _tuned(self, target: float) -> dict[str, Any]:
        """Settings of the peers that met a target, the quickest first."""
        found = {name: rows[f"{target:g}"] for name, rows in self.known["settings"].items() if f"{target:g}" in rows}
        return dict(sorted(found.items(), key=lambda item: item[1]["seconds"]))

    def _hits(self, target: float) -> dict[str, Any]:
        found = self._tuned(target)
        least = min((held["seconds"] for held in found.values()), default=0.0)
        rivals = [name for name, held in found.items() if held["seconds"] <= FAR * least][:RIVALS]
        hits = {}
        for name in rivals:
            setting, worker = found[name]["setting"], self.peers[name][1]
            hit = exact_hit(worker, self.judge, self.path, setting, target, max(4.0 * found[name]["seconds"], 0.2))
            # A better least value may have moved the target past a point that had met it.
            hits[name] = setting, hit or Hit(found[name]["iterations"], found[name]["seconds"])
        return hits
