"""A program as a server: it reads tasks as lines of JSON and answers with times, so that one process serves all rounds.

A task names the problem, the setting, the most iterations and seconds, and which iterates to keep in a file. The clock
runs from the first line of the method, what it computes before its first step included, and stands still while an
iterate is kept.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

GROWTH = 1.2
WARM = 3


def now() -> np.ndarray:
    """Wall and processor time."""
    return np.array([time.perf_counter(), time.process_time()])


class Ended(Exception):
    """The method has used up its time or its iterations."""


class Recorder:
    """Counts iterations, keeps some, ends the run. All times are pairs: wall, processor."""

    def __init__(self, most: int, seconds: float, first: int, stride: int) -> None:
        """Keep iterates from `first` on, every `stride`; stride 0: at counts that grow by 20 %."""
        self.most, self.limit, self.next, self.stride = most, seconds, first, stride
        self.kept: list[tuple[int, float, np.ndarray, np.ndarray]] = []
        self.iteration, self.spent, self.setup = 0, np.zeros(2), np.zeros(2)
        self.since: np.ndarray | None = now()

    def pause(self) -> None:
        """Stop the clock: what follows, until `ready`, is not the peer's to pay."""
        if self.since is not None:
            self.spent = self.spent + now() - self.since
        self.since = None

    def ready(self) -> None:
        """To be called before the first step: what was spent so far is set-up."""
        self.pause()
        self.setup, self.since = self.spent, now()

    def step(self, x: Any, y: Any) -> None:
        """To be called once an iteration; x and y are arrays, or functions that make them at no cost to the peer."""
        self.pause()
        self.iteration += 1
        # Limits are in processor time: what others do on the machine must not decide.
        ended = self.spent[1] > self.limit or self.iteration >= self.most
        if self.next and (self.iteration >= self.next or (ended and self.stride == 0)):
            self.next = (
                self.iteration + self.stride if self.stride else max(self.iteration + 1, int(GROWTH * self.next))
            )
            point = (np.array(v() if callable(v) else v) for v in (x, y))
            self.kept.append((self.iteration, float(self.spent[1]), *point))
        if ended:
            raise Ended
        self.since = now()


Method = Callable[[Any, dict[str, Any], Recorder], None]


def timed(method: Method, problem: Any, setting: dict[str, Any], recorder: Recorder) -> Recorder:
    gc.disable()
    recorder.since = now()
    try:
        method(problem, setting, recorder)
    except Ended:
        pass
    finally:
        gc.enable()
    return recorder


def answer(method: Method, problem: Any, task: dict[str, Any], warm: bool) -> dict[str, Any]:
    setting, most, limit = task["setting"], int(task["most"]), float(task["seconds"])
    if warm:
        timed(method, problem, setting, Recorder(WARM, limit, 0, 0))
    made = [
        timed(method, problem, setting, Recorder(most, limit, int(task["first"]), int(task["stride"])))
        for _ in range(int(task["repeat"]))
    ]
    kept = made[0].kept
    if kept:
        names = ("iterations", "seconds", "x", "y")
        np.savez(task["out"], **{name: np.array([row[i] for row in kept]) for i, name in enumerate(names)})
    return {
        "seconds": [run.spent.tolist() for run in made], "setup": [run.setup.tolist() for run in made],
        "iterations": made[0].iteration, "kept": len(kept),
    }  # fmt: skip


def reply_to(answer: Callable[[dict[str, Any]], dict[str, Any]], note: str) -> None:
    """Answer tasks until the input ends. What goes wrong is an answer too."""
    print(json.dumps({"note": note}), flush=True)
    for line in sys.stdin:
        try:
            reply = answer(json.loads(line))
        except Exception as error:
            reply = {"failed": f"{type(error).__name__}: {error}"[:200]}
        print(json.dumps(reply), flush=True)


def serve(method: Method, load: Callable[[str], Any], note: str, warm: bool = True) -> None:
    """Serve a method; `warm`: a few steps before every task, for what is compiled or loaded at first."""
    held: dict[str, Any] = {}

    def run(task: dict[str, Any]) -> dict[str, Any]:
        name = task["problem"]
        if name not in held:
            held.clear()
            held[name] = load(name)
        return answer(method, held[name], task, warm)

    reply_to(run, note)
