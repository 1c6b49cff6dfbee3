"""Runs in processes of their own: one core each, the same bits whatever their number; a crash takes nothing along."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

# Read by the linear algebra libraries when a process starts; one thread keeps sums in one order.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass
class _Worker:
    """A process, the pipe to it, and the position of the job it is at."""

    process: Any
    pipe: Connection
    job: int = -1
    began: float = field(default_factory=time.monotonic)


def _serve(task: Callable[[Any], Any], pipe: Connection) -> None:
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
    task: Callable[[Any], Any],
    jobs: Sequence[Any],
    count: int,
    lost: Callable[[Any, str], Any],
    waiting: Callable[[], None] = lambda: None,
) -> Iterator[Any]:
    """Answers of `task` to the jobs, in the order in which they finish; a job whose process died is answered by `lost`.

    `waiting` is called a few times a second. However the loop ends, no process stays behind.
    """
    todo = list(range(len(jobs)))[::-1]
    workers = [_start(task) for _ in range(min(count, len(jobs)))]
    try:
        for worker in workers:
            _next_job(worker, jobs, todo)
        while any(worker.job >= 0 for worker in workers):
            waiting()
            ready = wait([worker.pipe for worker in workers if worker.job >= 0], timeout=0.2)
            for number, worker in enumerate(workers):
                if worker.pipe not in ready:
                    continue
                try:
                    answer = worker.pipe.recv()
                except (EOFError, OSError):
                    worker.process.join()
                    answer = lost(jobs[worker.job], f"its process ended with code {worker.process.exitcode}")
                    worker = workers[number] = _start(task)
                _next_job(worker, jobs, todo)
                yield answer
    finally:
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            worker.process.join()
            worker.pipe.close()


def _start(task: Callable[[Any], Any]) -> _Worker:
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
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    theirs.close()
    return _Worker(process, ours)


def _next_job(worker: _Worker, jobs: Sequence[Any], todo: list[int]) -> None:
    worker.job = todo.pop() if todo else -1
    if worker.job >= 0:
        try:
            worker.pipe.send(jobs[worker.job])
        except OSError:
            # It died at birth; the reader of the pipe will notice.
            return
