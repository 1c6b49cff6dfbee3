"""What ends, watches and saves a run, whatever its method: limits, callback, interrupts, checkpoints."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from saddleslide import runs
from saddleslide.arrays.arguments import as_flag, as_path
from saddleslide.arrays.base import Array, as_number
from saddleslide.certificates.books import Books, aside_place
from saddleslide.certificates.guards import check_adjoint_of, check_inner_adjoints
from saddleslide.certificates.verdict import Status
from saddleslide.errors import InputError, UnreachableError, explain_read_only, raise_all
from saddleslide.operators.base import is_own_code
from saddleslide.oracles.calls import ACROSS, Calls, NonFiniteAnswer, RunEnded
from saddleslide.oracles.clock import Clock
from saddleslide.oracles.oracles import Gate, Oracles, always_open
from saddleslide.runs.result import Result

Callback = Callable[[Result], object]
LIMITS = ("f", "g", "B")
MOST_STEPS = 100_000
# A run that ends so before its first step returns the start, judged.
EARLY = (Status.STEP_LIMIT, Status.CALL_LIMIT, Status.TIME_LIMIT)
# Where no code of the caller is running.
BETWEEN = "between two calls"
IN_CALLBACK = "by the callback"
# Outer steps between two writes of a checkpoint, and seconds between two states kept in memory for an interrupt.
EVERY, _FRESH = 10, 0.2


@dataclass(frozen=True)
class Control:
    """Limits, callback, what Ctrl-C does and where checkpoints go; checked once, the same for every kind of run."""

    max_calls: Mapping[str, float] = field(default_factory=dict)
    max_steps: int = MOST_STEPS
    time_limit: float = math.inf
    callback: Callback | None = None
    on_interrupt: str = "raise"
    # A file that is written every so many outer steps, and when the run ends early.
    checkpoint: Path | None = None
    checkpoint_every: int = EVERY
    # What was spent before the run began.
    before: Calls = field(default_factory=Calls)
    # What a checkpoint says beside the state of the run, and where the run began.
    header: Mapping[str, Any] = field(default_factory=dict)
    start: tuple[Array, Array] | None = None
    # Test the adjoint of B before the first step; None: where B is the caller's own code.
    check_adjoint: bool | None = None
    # The run is built to be restored: nothing is called before that.
    dry: bool = False
    clock: Clock = field(default_factory=Clock)
    # What the call makes aside from the oracles of the run.
    books: Books = field(default_factory=lambda: Books({}, math.inf, Clock()))

    @property
    def spent_before(self) -> Calls:
        """What was spent outside of the run: before it began, and aside."""
        return self.before + self.books.calls

    def judge_late(self, work: Callable[[], None]) -> None:
        """Judge a point after a limit has ended the run; where the time is up, as far as a moment more allows."""
        self.books.extend()
        with self.clock.phase("certificate"), contextlib.suppress(RunEnded):
            work()


def as_control(
    name: str,
    *,
    max_calls: Any = None,
    max_steps: Any = MOST_STEPS,
    time_limit: Any = None,
    callback: Any = None,
    on_interrupt: Any = "raise",
    checkpoint: Any = None,
    checkpoint_every: Any = EVERY,
    check_adjoint: Any = None,
    clock: Clock | None = None,
    **flags: Any,
) -> Control:
    """A Control from what a caller passed, after one error with everything that can not be used.

    `flags` are True or False, and only looked at.
    """
    complaints = []
    if max_calls is not None and not isinstance(max_calls, Mapping):
        complaints.append(f"max_calls is {max_calls!r}; expected a mapping such as {{'f': 200}}.")
    elif max_calls and set(max_calls) - set(LIMITS):
        unknown = sorted(set(max_calls) - set(LIMITS), key=str)
        complaints.append(f"max_calls has {unknown}; expected names among {list(LIMITS)}.")
    for number, value, least in (("max_steps", max_steps, 0), ("checkpoint_every", checkpoint_every, 1)):
        if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
            complaints.append(f"{number} is {value!r}; expected a whole number >= {least}.")
    if callback is not None and not callable(callback):
        complaints.append(f"callback is {callback!r}; expected a function of an intermediate Result.")
    if not isinstance(on_interrupt, str) or on_interrupt not in ("raise", "return"):
        complaints.append(f"on_interrupt is {on_interrupt!r}; expected 'raise' or 'return'.")
    raise_all(name, complaints)
    for flag, value in flags.items():
        as_flag(value, f"{name}: {flag}")
    limits = {key: as_number(limit, f"{name}: max_calls[{key!r}]", 0.0) for key, limit in (max_calls or {}).items()}
    seconds = math.inf if time_limit is None else as_number(time_limit, f"{name}: time_limit", 0.0, finite=False)
    place = None if checkpoint is None else as_path(checkpoint, f"{name}: checkpoint", "run.npz").absolute()
    if place is not None and (place.is_dir() or not place.parent.is_dir()):
        raise InputError(f"{name}: checkpoint is {str(checkpoint)!r}; expected a file in a folder that exists.")
    tested = None if check_adjoint is None else as_flag(check_adjoint, f"{name}: check_adjoint")
    clock = clock or Clock()
    return Control(
        limits, int(max_steps), seconds, callback, on_interrupt, place, int(checkpoint_every), check_adjoint=tested,
        clock=clock, books=Books(limits, seconds, clock),
    )  # fmt: skip


class Watch:
    """Looks after one run: asks before every call, between steps, and when something goes wrong.

    `spent` tells all calls so far, in the problem's own names; `where` tells what is being called, for the note on an
    exception. A run may see the problem `mirrored`, with the roles of x and y exchanged.
    """

    def __init__(self, control: Control, run: object, spent: Callable[[], Calls], where: Callable[[], str]) -> None:
        self.control, self._run, self._spent, self._where = control, run, spent, where
        self.mirrored, self.reason = False, ""
        self._kept: tuple[dict[str, Any], list[Any]] | None = None
        self._kept_at, self._written = -math.inf, -math.inf
        # What NumPy does about overflow in code of the caller's.
        self.errors: Any = np.geterr()
        self._calling_back = False

    @property
    def gate(self) -> Gate:
        """What the oracles ask before every call; nothing where there is nothing to ask."""
        limited = self.control.max_calls or math.isfinite(self.control.time_limit)
        return self._gate if limited else always_open

    def _gate(self, name: str, count: float) -> None:
        if count > 0 and count > self.left(name):
            raise RunEnded(Status.CALL_LIMIT.name)
        if self._late():
            raise RunEnded(Status.TIME_LIMIT.name)

    def left(self, name: str) -> float:
        """Calls of an oracle, under the run's own name for it, that the limits still allow."""
        own = ACROSS[name] if self.mirrored else name
        limit = self.control.max_calls.get(own, math.inf)
        return math.inf if math.isinf(limit) else float(limit - getattr(self._spent(), own))

    def _late(self) -> bool:
        limit = self.control.time_limit
        return math.isfinite(limit) and self.control.clock.seconds >= limit

    def has_no_calls_left(self) -> bool:
        """Whether a limit on calls has been reached."""
        limits = self.control.max_calls
        total = self._spent() if limits else None
        return any(getattr(total, name) >= limit for name, limit in limits.items())

    def test_adjoint(self, oracles: Oracles, unasked: bool) -> float:
        """What the adjoint of B is off by: two counted products, where they are asked for or B is own code."""
        asked = self.control.check_adjoint
        if asked is False or not (asked or unasked):
            return 0.0
        with self.control.clock.phase("plan"):
            check_inner_adjoints(oracles)
            # The adjoint of a matrix is its transpose by construction; ours are tested with the package.
            return check_adjoint_of(oracles) if asked or is_own_code(oracles.problem.coupling) else 0.0

    def between_steps(self, steps: int) -> Status | None:
        """Keep the state where it is asked for; a status when a limit has been reached."""
        limit = Status.STEP_LIMIT if steps >= self.control.max_steps else None
        if self.has_no_calls_left():
            limit = Status.CALL_LIMIT
        elif self._late():
            limit = Status.TIME_LIMIT
        if self.control.checkpoint is not None:
            due = steps - self._written >= self.control.checkpoint_every or limit is not None
            if due or time.perf_counter() - self._kept_at >= _FRESH:
                self._kept, self._kept_at = runs.take_snapshot(self._run), time.perf_counter()
            if due:
                self.write(steps)
        return limit

    def write(self, steps: int | None = None) -> None:
        """Write the last kept state, if there is one."""
        control, kept = self.control, self._kept
        if control.checkpoint is None or kept is None:
            return
        spent, limit = control.spent_before, control.time_limit
        limits = {"max_calls": dict(control.max_calls), "max_steps": control.max_steps}
        limits |= {"time_limit": None if math.isinf(limit) else limit, "checkpoint_every": control.checkpoint_every}
        header = {**control.header, "limits": limits, "before": [spent.f, spent.g, spent.B]}
        header |= {"elapsed": control.clock.seconds, "timings": control.clock.timings}
        header |= {"norms": control.books.norms(), "adjoints": control.books.adjoints(), "state": kept[0]}
        runs.write_checkpoint(control.checkpoint, header, [*kept[1], *(control.start or ())])
        self._written = self._written if steps is None else float(steps)

    def stops(self, result: Callable[[], Result]) -> bool:
        """Call the callback; True when it asks to stop."""
        if self.control.callback is None:
            return False
        with np.errstate(**self.errors):
            seen, stop = result(), False
            # Left standing by an exception, so that it is known whose it is.
            self._calling_back = True
            try:
                self.control.callback(seen)
            except StopIteration:
                stop = True
        self._calling_back = False
        return stop

    def _place(self) -> str:
        """Where an exception came from."""
        books = self.control.books
        if books.active:
            name, books.active = books.active, ""
            return aside_place(name)
        place = self._where()
        return place.replace(BETWEEN, IN_CALLBACK, 1) if self._calling_back else place

    def carry_out(self, work: Callable[[], Status | None], status: Status) -> Status:
        """The status of `work`, whatever ends it, or the one given; exceptions of user code pass with a note."""
        self.control.books.follow(self.control.max_calls, self._spent)
        try:
            # Overflow in our own arithmetic ends the run; oracles and callbacks keep the caller's settings.
            with np.errstate(over="raise", invalid="raise", divide="raise"), self.control.clock.phase(""):
                return work() or status
        except RunEnded as ended:
            self.reason = ended.reason
            if isinstance(ended, NonFiniteAnswer):
                self.reason = ", ".join(part for part in (f"Returned {self._place()}", ended.reason) if part)
            self.write()
            return Status[ended.status]
        except UnreachableError as gone:
            self.reason = str(gone)
            self.write()
            return Status.UNREACHABLE
        except KeyboardInterrupt:
            self.write()
            if self.control.on_interrupt == "raise":
                raise
            return Status.INTERRUPTED
        except Exception as error:
            self.write()
            place = self._place()
            if isinstance(error, ArithmeticError) and place.startswith(BETWEEN):
                # Numbers beyond double precision in our own arithmetic are an outcome, not the caller's exception.
                self.reason = f"numbers left the range of double precision ({error})"
                return Status.NUMERICAL_LIMIT
            explain_read_only(error)
            error.add_note(f"saddleslide: raised {place}.")
            raise
