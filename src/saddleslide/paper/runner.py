"""Runs what is missing in processes of its own, one row a run, keeps what is done, and says how far it is."""

from __future__ import annotations

import multiprocessing
import os
import platform
import signal
import statistics
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np
import scipy

import saddleslide
from saddleslide.errors import InputError
from saddleslide.gallery.pictures import psnr
from saddleslide.oracles.oracles import Oracles
from saddleslide.paper.instances import Instance, instance
from saddleslide.paper.methods import Gaps, apply_method
from saddleslide.paper.rows import Row, append_row, pack, read_rows
from saddleslide.paper.spec import Run

# On a busy machine the wall clock stretches long calls, which are interrupted, and not short ones: prices would compare
# the load. The processor's clock is coarse on some systems.
_FINE = time.get_clock_info("process_time").resolution <= 1e-6
CLOCK = time.process_time if _FINE else time.perf_counter
# Read by the linear algebra libraries when a process starts; one thread keeps sums in one order.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
# Seconds of hinted work after which the measured pace weighs as much as the hints.
TRUST = 10.0
Task = Callable[[Any], Any]


def perform(run: Run) -> Row:
    """Carry out one run; a crash becomes a row with the status "failed"."""
    row: Row = {"key": run.key, **run.identity(), "seed": run.problem.get("seed"), "versions": versions()}
    began, spent = time.perf_counter(), time.process_time()
    try:
        row |= {"status": "done", **_measure(run)}
    except Exception as error:
        trace = traceback.format_exc(limit=-4)
        row |= {"status": "failed", "error": f"{type(error).__name__}: {error}", "trace": trace}
    # On a machine that others use too, the processor's time says more than the clock's.
    return row | {"total_seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - spent}


def versions() -> dict[str, str]:
    """Versions that a number may depend on."""
    own, python = saddleslide.__version__, platform.python_version()
    return {"saddleslide": own, "python": python, "numpy": np.__version__, "scipy": scipy.__version__}


def _measure(run: Run) -> Row:
    """Build the problem, run the method, judge the point."""
    given = instance(run.problem)
    gaps = Gaps(given, bool(run.settings.get("relative", False)))
    found = apply_method(run, given, gaps)
    measured = {"calls": vars(found.calls), "gap": gaps(found.x, found.y), "seconds": statistics.median(found.seconds)}
    row: Row = measured | {name: getattr(found, name) for name in ("curve", "plan", "order", "bound")} | found.more
    if given.truth is not None:
        row["psnr"] = psnr(found.x, given.truth)
    if run.settings.get("prices", False):
        row["prices"] = measure_costs(given)
    if run.settings.get("picture", False):
        row["picture"] = pack(found.x)
    return row


def measure_costs(given: Instance) -> dict[str, float]:
    """Median isolated latencies of f', g' and one product, in seconds of the processor."""
    oracles = Oracles(given.problem)
    rng, domains = np.random.default_rng(0), (given.problem.X, given.problem.Y)
    x, y = (domain.project(rng.standard_normal(domain.shape)) for domain in domains)
    into_x, into_y = np.empty_like(x), np.empty_like(y)
    calls = {
        "f": [lambda: oracles.f_gradient(x, into_x)],
        "g": [lambda: oracles.g_gradient(y, into_y)],
        "B": [lambda: oracles.forward(x, into_y), lambda: oracles.adjoint(y, into_x)],
    }
    return {name: statistics.median(latency(call) for call in pair for _ in range(60)) for name, pair in calls.items()}


def latency(call: Callable[[], Any]) -> float:
    """Seconds that one call takes of the processor."""
    began = CLOCK()
    call()
    return CLOCK() - began


@dataclass
class _Worker:
    """A process, the pipe to it, and the job it is at."""

    process: Any
    pipe: Connection
    job: Any = None

    def give(self, jobs: list[Any]) -> None:
        """The next job, if there is one."""
        self.job = jobs.pop() if jobs else None
        # One that died at birth is noticed by the reader of the pipe.
        with suppress(OSError):
            self.pipe.send(self.job)


def _start(task: Task) -> _Worker:
    # Fresh interpreters: threads and memory of the parent do not come along, and the setting of threads is read anew.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        process = context.Process(target=_serve, args=(task, theirs), daemon=True)
        process.start()
    finally:
        for name, value in before.items():
            del os.environ[name]
            if value is not None:
                os.environ[name] = value
    theirs.close()
    return _Worker(process, ours)


def _serve(task: Task, pipe: Connection) -> None:
    """Answer jobs until None comes. Interrupts are for the parent to deal with; without a parent there is no work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while (job := pipe.recv()) is not None:
        pipe.send(task(job))


def _end_with_parent() -> None:
    """A parent that was killed can not stop its workers: they see its end themselves."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def in_processes(
    task: Task, jobs: list[Any], count: int, lost: Callable[[Any, str], Any], waiting: Callable[[], None] = lambda: None
) -> Iterator[Any]:
    """Answers of `task` to the jobs, in the order in which they finish; a job whose process died is answered by `lost`.

    `waiting` is called a few times a second. However the loop ends, no process stays behind.
    """
    todo = list(reversed(jobs))
    workers = [_start(task) for _ in range(min(count, len(jobs)))]
    try:
        for worker in workers:
            worker.give(todo)
        while busy := [worker.pipe for worker in workers if worker.job is not None]:
            waiting()
            ready = wait(busy, timeout=0.2)
            for number, worker in enumerate(workers):
                if worker.pipe not in ready:
                    continue
                try:
                    answer = worker.pipe.recv()
                except (EOFError, OSError):
                    worker.process.join()
                    answer = lost(worker.job, f"its process ended with code {worker.process.exitcode}")
                    worker = workers[number] = _start(task)
                worker.give(todo)
                yield answer
    finally:
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            worker.process.join()
            worker.pipe.close()


@dataclass(frozen=True)
class Step:
    """How far the runs are: how many of how many, the last row, and the seconds left as far as is known."""

    done: int
    total: int
    row: Row | None
    left: float


def find_missing(runs: Sequence[Run], rows: dict[str, Row]) -> list[Run]:
    """Runs without a finished row of this version of the package, the short ones first."""
    done = {key: row.get("versions", {}).get("saddleslide") for key, row in rows.items() if row["status"] == "done"}
    left = (run for run in runs if done.get(run.key) != versions()["saddleslide"])
    return sorted(left, key=lambda run: run.seconds)


def prepare_folder(folder: Path) -> None:
    """Make the folder, or say what is wrong with it before any work is done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(f"paper: --out is {str(folder)!r}; expected a folder that can be written: {error}.") from error


def run_missing(
    runs: Sequence[Run], folder: Path, jobs: int = 1, tick: Callable[[Step], None] = lambda step: None
) -> dict[str, Row]:
    """Carry out the runs that the folder lacks; every row is on the disk before the next is waited for."""
    todo = find_missing(runs, read_rows(folder))
    if jobs > 1:
        # The long ones first, so that no process is left alone with one at the end.
        todo.reverse()
    left = {run.key: run.seconds for run in todo}
    whole, began = sum(left.values()), time.monotonic()
    last = began

    def tell(row: Row | None = None) -> None:
        # The hints stand at first; the pace of what is done takes over. The clock runs down between two runs.
        rest = sum(left.values())
        pace = (last - began + TRUST / jobs) / (whole - rest + TRUST)
        tick(Step(len(runs) - len(left), len(runs), row, max(rest * pace - (time.monotonic() - last), 0.0)))

    def row_of_lost(run: Run, reason: str) -> Row:
        return {"key": run.key, **run.identity(), "status": "failed", "error": reason, "versions": versions()}

    tell()
    for row in in_processes(perform, todo, jobs, row_of_lost, tell):
        append_row(folder, row)
        left.pop(row["key"], None)
        last = time.monotonic()
        tell(row)
    return read_rows(folder)
