"""A callback that shows how a run goes: one line that changes in terminals and notebooks, lines in pipes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from saddleslide.errors import OutputLostError
from saddleslide.runs.result import Result

if TYPE_CHECKING:
    from rich.console import Console


# Seconds between two updates, where a line changes and where each is one more.
_OFTEN, _SELDOM = 0.1, 10.0


class Progress:
    """Outer steps, calls per oracle, gap, target if known, time since this object was made: while a run goes on.

    In a terminal and in a notebook it is one line that changes. In a pipe or a file it is a line of its own, now and
    then. The line ends with `close`, at the end of a `with` block, or when the object is dropped.

    Parameters
    ----------
    then : callable, optional
        Another callback, called after the line is shown. Its StopIteration ends the run as usual.
    every : float, optional
        Least number of seconds between two updates, and before the first one in a pipe: 0.1 in terminals and
        notebooks, 10 elsewhere.
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
        every: float | None = None,
        console: Console | None = None,
    ) -> None:
        self._open = False
        self._then = then
        if console is None:
            from saddleslide.runs.terminal import Terminal

            console = Terminal(stderr=True, highlight=False)
        self._console = console
        # What updates the line of a notebook, from the first one on, and what came too soon after that to be shown.
        self._cell: Any = None
        self._unseen: Result | None = None
        self._live = self._console.is_terminal and not self._console.is_jupyter and not self._console.is_dumb_terminal
        changes = self._live or self._console.is_jupyter
        self._every = every if every is not None else _OFTEN if changes else _SELDOM
        self._shown = True
        self._began = time.perf_counter()
        self._last = -math.inf if changes else self._began

    def __call__(self, result: Result) -> None:
        """Show an intermediate result."""
        now = time.perf_counter()
        self._unseen = result
        if self._shown and now - self._last >= self._every:
            self._last, self._unseen = now, None
            try:
                self._write(progress_line(result, now - self._began))
            except (OSError, OutputLostError):
                # A run does not end with the terminal that it was watched on.
                self._shown = self._open = False
        if self._then is not None:
            self._then(result)

    def _write(self, line: str) -> None:
        if self._console.is_jupyter:
            self._write_in_cell(line)
            return
        from rich.text import Text

        text = Text(line, no_wrap=True, overflow="ellipsis")
        if self._live:
            self._erase()
            # The last column stays free: a full line would make some terminals wrap.
            text.truncate(max(self._console.width - 1, 1), overflow="ellipsis")
            self._open = True
        self._console.print(text, end="" if self._live else "\n", soft_wrap=True, highlight=False)

    def _write_in_cell(self, line: str) -> None:
        from IPython.display import display

        shown = {"text/plain": line}
        if self._cell is None:
            self._cell = display(shown, raw=True, display_id=True)
        else:
            self._cell.update(shown, raw=True)

    def close(self) -> None:
        """Erase the live line of a terminal, so that what follows starts on a clean one; a notebook keeps the last."""
        if self._cell is not None and self._unseen is not None:
            self._write_in_cell(progress_line(self._unseen, time.perf_counter() - self._began))
            self._unseen = None
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
