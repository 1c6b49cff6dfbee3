"""`ss.solve` as one more program of the tournament: a fresh problem and nothing set but the target.

Per task: the seconds until each candidate of the run, all planning and the fit of the metric included, the run's own
certificates not; the seconds until the answer, and of the whole call beside it, certificates included.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import saddleslide as ss
from benchmarks.arena.programs.serving import now, reply_to
from benchmarks.tournament.instances import problem_of
from saddleslide import metrics
from saddleslide.certificates.judge import Judge
from saddleslide.methods.adaptive_sliding import Iteration

JUDGING = ("open", "judge", "judge_exactly", "judge_start", "gap_at", "certificate")


@dataclass
class Tape:
    """Candidates of one run with the time of the method until each. All times are pairs: wall, processor."""

    began: np.ndarray = field(default_factory=now)
    apart: np.ndarray = field(default_factory=lambda: np.zeros(2))
    depth: int = 0
    fitting: np.ndarray = field(default_factory=lambda: np.zeros(2))
    kept: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=list)

    def not_counted(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """The same function with its time set apart."""

        def made(*args: Any, **named: Any) -> Any:
            since = now()
            self.depth += 1
            try:
                return work(*args, **named)
            finally:
                self.depth -= 1
                if self.depth == 0:
                    self.apart = self.apart + now() - since

        return made

    def keep(self, candidate: Any) -> None:
        spent = now() - self.began - self.apart
        self.kept.append((spent, candidate.x.copy(), candidate.y.copy()))
        self.apart = now() - self.began - spent

    def close(self, result: ss.Result) -> None:
        """The point that is returned, whose y a certificate may have raised: all the time of the call is charged."""
        self.kept.append((now() - self.began, result.x.copy(), result.y.copy()))


@contextmanager
def watched(tape: Tape) -> Iterator[None]:
    """The package with its judge's time set apart and its candidates kept."""
    held = {name: getattr(Judge, name) for name in JUDGING}
    step, fit = Iteration.step, metrics.fit_spectral

    def stepped(self: Iteration, *given: Any, **named: Any) -> Any:
        after, candidate = step(self, *given, **named)
        # A costly g may be slid inside by the same class with exchanged roles: there x is no picture.
        if candidate.x.ndim == 2:
            tape.keep(candidate)
        return after, candidate

    def fitted(*args: Any, **named: Any) -> Any:
        since = now()
        made = fit(*args, **named)
        tape.fitting = tape.fitting + now() - since
        return made

    for name, work in held.items():
        setattr(Judge, name, tape.not_counted(work))
    Iteration.step, metrics.fit_spectral = stepped, fitted
    try:
        yield
    finally:
        for name, work in held.items():
            setattr(Judge, name, work)
        Iteration.step, metrics.fit_spectral = step, fit


def solved(task: dict[str, Any], tape: Tape | None) -> tuple[np.ndarray, ss.Result]:
    """Seconds and result of one call, on a fresh problem."""
    problem = problem_of(task["kind"], tuple(task["pair"]), task.get("n"))
    gc.disable()
    began = now()
    if tape is None:
        result = ss.solve(problem, reduction=task["target"])
    else:
        with watched(tape):
            tape.began = now()
            result = ss.solve(problem, reduction=task["target"])
            tape.close(result)
    spent = now() - began
    gc.enable()
    return spent, result


def answer(task: dict[str, Any]) -> dict[str, Any]:
    """Times of all repetitions; candidates of the last one. Every run makes the same candidates."""
    tapes, whole = [], []
    for _ in range(int(task["repeat"])):
        tapes.append(Tape())
        solved(task, tapes[-1])
        spent, result = solved(task, None)
        whole.append(spent)
    kept = tapes[-1].kept
    fields = {"x": [row[1] for row in kept], "y": [row[2] for row in kept], "seconds": [row[0][0] for row in kept]}
    np.savez(task["out"], iterations=np.arange(1, len(kept) + 1), **{k: np.array(v) for k, v in fields.items()})
    return {
        "times": [[row[0].tolist() for row in tape.kept] for tape in tapes],
        "whole": [spent.tolist() for spent in whole],
        "fitting": [tape.fitting.tolist() for tape in tapes], "kept": len(kept), "calls": vars(result.calls),
        "success": bool(result.success),
    }  # fmt: skip


if __name__ == "__main__":
    reply_to(answer, f"saddleslide {ss.__version__}")
