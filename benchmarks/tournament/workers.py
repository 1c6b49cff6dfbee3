"""Programs as processes that stay: a task goes in as a line, times come out as a line."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

THREADS = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS", "NUMBA")}
PATIENCE = 120.0


class Worker:
    """One program; `run` waits for its answer. A program that fails is a reason, never an error."""

    def __init__(self, command: list[str], folder: Path, path: str = "") -> None:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | THREADS
        if path:
            environment["PYTHONPATH"] = path
        self.out = folder / "kept.npz"
        folder.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
            env=environment,
        )  # fmt: skip
        self.lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        first = self._next(PATIENCE)
        self.note = str(first.get("note", first.get("failed", "")))

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                self.lines.put(line)
        self.lines.put("")

    def _next(self, seconds: float) -> dict[str, Any]:
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            return {"failed": f"no answer after {seconds:g} s"}
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        said = (self.process.stderr.read() if self.process.stderr else "").strip().splitlines()
        return {"failed": said[-1][:200] if said else "ended without a word"}

    def run(self, task: Mapping[str, Any]) -> dict[str, Any]:
        """Times of the runs of a task, and the iterates that it asked to keep."""
        asked = {"out": str(self.out), "first": 0, "stride": 0, "repeat": 1, **task}
        if self.process.poll() is not None or self.process.stdin is None:
            return {"failed": "ended without a word"}
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        answer = self._next(PATIENCE + 4.0 * float(task["seconds"]) * int(asked["repeat"]))
        if answer.get("kept"):
            with np.load(self.out) as held:
                answer["points"] = {name: held[name] for name in ("iterations", "seconds", "x", "y")}
        return answer

    def close(self) -> None:
        """End of the input is the end of the program."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(timeout=10.0)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
