"""SciPy's L-BFGS-B, one iteration at a time: it has no such interface, so it runs in a thread that waits in between."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import ClassVar, final

import scipy

from saddleslide.arrays.base import Array

Evaluated = Callable[[Array], tuple[float, Array]]
Bounds = list[tuple[float, float]] | None


class _Turn:
    """Two parties that never run at the same time, and what the worker left behind."""

    def __init__(self) -> None:
        self.worker, self.caller = threading.Semaphore(0), threading.Semaphore(0)
        self.point: Array | None = None
        self.error: BaseException | None = None
        self.done = self.abandoned = False

    def pause(self, flat: Array) -> None:
        """Called by SciPy after each iteration: hand over, and wait to be asked for more."""
        self.point = flat.copy()
        self.caller.release()
        self.worker.acquire()
        if self.abandoned:
            raise StopIteration

    def abandon(self) -> None:
        """Nobody will ask again: let the thread end."""
        self.abandoned = True
        self.worker.release()


@final
class PausedLbfgs:
    """`advance()` makes one iteration and returns the point, or None when SciPy has ended.

    Caller and worker take turns, so there is no concurrency and the iterates are those of a plain call.

    Examples
    --------
    >>> import numpy as np
    >>> def bowl(x):
    ...     return float(np.sum((x - 1.0) ** 2 * [1.0, 9.0])), 2.0 * (x - 1.0) * [1.0, 9.0]
    >>> run = PausedLbfgs(bowl, np.zeros(2), None, memory=5)
    >>> points = [run.advance() for _ in range(6)]
    >>> points[-1].round(6).tolist()
    [1.0, 1.0]
    """

    # SciPy keeps its state to itself: a checkpoint can not hold it.
    stored: ClassVar[bool] = False

    def __init__(self, evaluated: Evaluated, start: Array, bounds: Bounds, memory: int) -> None:
        self._turn = _Turn()
        self._thread = threading.Thread(
            target=_work, args=(self._turn, evaluated, start.copy(), bounds, memory), daemon=True
        )
        # When this object goes, the thread that waits for it must go too.
        weakref.finalize(self, self._turn.abandon)
        self._thread.start()

    @property
    def finished(self) -> bool:
        """Whether SciPy has ended by itself."""
        return self._turn.done

    def advance(self) -> Array | None:
        """One iteration."""
        turn = self._turn
        if turn.done:
            return None
        turn.worker.release()
        turn.caller.acquire()
        if turn.error is not None:
            raise turn.error
        return None if turn.done else turn.point


def _work(turn: _Turn, evaluated: Evaluated, start: Array, bounds: Bounds, memory: int) -> None:
    """The thread: wait for the first request, then one run of SciPy that pauses after each iteration."""
    turn.worker.acquire()
    try:
        if not turn.abandoned:
            scipy.optimize.minimize(
                evaluated,
                start,
                jac=True,
                method="L-BFGS-B",
                bounds=bounds,
                callback=turn.pause,
                options={"maxiter": 10**9, "maxfun": 10**9, "ftol": 0.0, "gtol": 0.0, "maxcor": memory},
            )
    except BaseException as error:
        turn.error = error
    turn.done = True
    turn.caller.release()
