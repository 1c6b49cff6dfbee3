"""A callback that shows a run on one line of the terminal, and nothing anywhere else."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from saddleslide.errors import OutputLostError
from saddleslide.runs.result import Result

if TYPE_CHECKING:
    from rich.console import Console


class Progress:
    """A live line: outer steps, calls per oracle, gap, target if known, time since this object was made.

    It goes to the standard error and only to an interactive terminal, unless `always` is set: then every update is a
    line of its own. The line ends with `close`, at the end of a `with` block, or when the object is dropped.

    Parameters
    ----------
    then : callable, optional
        Another callback, called after the line is shown. Its StopIteration ends the run as usual.
    always : bool, optional
        Write also where no one watches: files, pipes, notebooks.
    every : float, optional
        Least number of seconds between two updates.
    console : rich.console.Console, optional
        Where to write; the standard error when missing.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(3), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.eye(3), X=simplex, Y=simplex)
    >>> with ss.Progress() as progress:
    ...     result = ss.solve(game, tol=1e-6, callback=progress)
    >>> result.status.name
    'SOLVED'
    """

    def __init__(
        self,
        then: Callable[[Result], object] | None = None,
        *,
        always: bool = False,
        every: float = 0.1,
        console: Console | None = None,
    ) -> None:
        self._open = False
        self._then, self._every = then, every
        if console is None:
            from saddleslide.runs.terminal import Terminal

            console = Terminal(stderr=True, highlight=False)
        self._console = console
        self._live = self._console.is_terminal and not self._console.is_jupyter and not self._console.is_dumb_terminal
        self._shown = self._live or always
        self._began = time.perf_counter()
        self._last = -math.inf

    def __call__(self, result: Result) -> None:
        """Show an intermediate result."""
        now = time.perf_counter()
        if self._shown and now - self._last >= self._every:
            self._last = now
            try:
                self._write(progress_line(result, now - self._began))
            except (OSError, OutputLostError):
                # A run does not end with the terminal that it was watched on.
                self._shown = self._open = False
        if self._then is not None:
            self._then(result)

    def _write(self, line: str) -> None:
        from rich.text import Text

        text = Text(line, no_wrap=True, overflow="ellipsis")
        if self._live:
            self._erase()
            # The last column stays free: a full line would make some terminals wrap.
            text.truncate(max(self._console.width - 1, 1), overflow="ellipsis")
            self._open = True
        self._console.print(text, end="" if self._live else "\n", soft_wrap=True, highlight=False)

    def close(self) -> None:
        """Erase the live line, so that what follows starts on a clean one."""
        if self._open:
            self._open = False
            self._erase()

    def _erase(self) -> None:
        from rich.control import Control
        from rich.segment import ControlType

        self._console.control(Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2)))

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_open", False):
            self.close()


def progress_line(result: Result, elapsed: float) -> str:
    """What the line says; with the time that is left if the logarithm of the gap goes on falling as it has so far."""
    calls, target = result.calls, result.known_target
    counts = "  ".join(f"{name} {count:,.12g}" for name, count in (("f'", calls.f), ("g'", calls.g), ("B", calls.B)))
    gap = f"gap {result.gap:.3g}" if math.isfinite(result.gap) else "gap not known yet"
    gap += f", target {target:.3g}" if math.isfinite(target) else ""
    seconds = f"{elapsed:.1f} s"
    gaps = [moment.gap for moment in result.history if math.isfinite(moment.gap) and moment.gap > 0.0]
    if len(gaps) > 1 and 0.0 < target < gaps[-1] < gaps[0]:
        left = elapsed * math.log(gaps[-1] / target) / math.log(gaps[0] / gaps[-1])
        seconds += f", about {left:.1f} s left"
    return " | ".join([f"step {result.nit:,}", counts, gap, seconds])
