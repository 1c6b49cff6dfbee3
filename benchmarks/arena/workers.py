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
# What the programs of all peers may import beside NumPy and SciPy.
SHARED = str(Path(__file__).parent / "programs")


class Worker:
    """One program; `run` waits for its answer. A program that fails is a reason, never an error."""

    def __init__(self, command: list[str], folder: Path, path: str = SHARED) -> None:
        self.command, self.folder, self.out = command, folder, folder / "kept.npz"
        self.environment = {**os.environ, **THREADS, "PYTHONPATH": path}
        folder.mkdir(parents=True, exist_ok=True)
        self._start()

    def _start(self) -> None:
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=self.folder, env=self.environment,
        )  # fmt: skip
        self.lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, args=(self.process, self.lines), daemon=True).start()
        first = self._next(PATIENCE)
        self.note = str(first.get("note", first.get("failed", "")))

    @staticmethod
    def _listen(process: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                lines.put(line)
        lines.put("")

    def _next(self, seconds: float) -> dict[str, Any]:
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            # What it would say later is no answer to the next task.
            self.process.kill()
            self.process.wait()
            return {"failed": f"no answer after {seconds:g} s"}
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        # Its output is at its end: so is the program, in a moment, and nothing else will ever be answered.
        said = (self.process.stderr.read() if self.process.stderr else "").strip().splitlines()
        self.process.wait()
        return {"failed": said[-1][:200] if said else "ended without a word"}

    def run(self, task: Mapping[str, Any]) -> dict[str, Any]:
        """Times of the runs of a task, and the iterates that it asked to keep; what has ended starts again."""
        asked = {"out": str(self.out), "first": 0, "stride": 0, "repeat": 1, **task}
        if self.process.poll() is not None:
            self.close()
            self._start()
        if self.process.poll() is not None or self.process.stdin is None:
            return {"failed": self.note}
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
