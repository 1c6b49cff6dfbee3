"""What ends, watches and saves a run, whatever its method: limits, callback, interrupts, checkpoints."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from saddleslide.arrays.arguments import as_flag
from saddleslide.arrays.base import Array, as_number
from saddleslide.certificates.books import Books, aside_place
from saddleslide.certificates.guards import check_adjoint_of, check_inner_adjoints
from saddleslide.certificates.verdict import Status
from saddleslide.errors import UnreachableError, explain_read_only, raise_all
from saddleslide.operators.base import is_own_code
from saddleslide.oracles.calls import Calls, NonFiniteAnswer, RunEnded
from saddleslide.oracles.clock import Clock
from saddleslide.oracles.oracles import Gate, Oracles, always_open
from saddleslide.runs.checkpoint import check_place, write_checkpoint
from saddleslide.runs.result import Result
from saddleslide.runs.snapshot import Snapshot, snapshot
from saddleslide.theory import Plan

Callback = Callable[[Result], object]
LIMITS = ("f", "g", "B")
MOST_STEPS = 100_000
# A run that ends so before its first step returns the start, judged.
EARLY = (Status.STEP_LIMIT, Status.CALL_LIMIT, Status.TIME_LIMIT)
ON_INTERRUPT = ("raise", "return")
# Where no code of the caller is running.
BETWEEN = "between two calls"
IN_CALLBACK = "by the callback"
# Outer steps between two writes of a checkpoint, and seconds between two states kept in memory for an interrupt.
EVERY, _FRESH = 10, 0.2


@dataclass(frozen=True)
class Control:
    """Limits, callback, what Ctrl-C does and where checkpoints go; checked once, the same for every kind of run.

    Parameters
    ----------
    max_calls : mapping
        Limits on calls by oracle.
    max_steps : int
        Limit on outer steps.
    time_limit : float
        Seconds on the clock.
    callback : callable or None
        Called with an intermediate Result after every outer step.
    on_interrupt : str
        "raise" or "return".
    checkpoint : Path or None
        File that is written every `checkpoint_every` outer steps and when the run ends early.
    before : Calls
        What was spent before the run began.
    header, start : dict and (x, y)
        What a checkpoint says beside the state of the run, and where the run began.
    check_adjoint : bool or None
        Test the adjoint of B before the first step; None: where B is the caller's own code.
    dry : bool
        The run is built to be restored: nothing is called before that.
    clock : Clock
        Runs from the moment that the caller's call began.
    books : Books
        What the call makes aside from the oracles of the run.

    Examples
    --------
    >>> controlled("solve", max_calls={"f": 3}).max_calls
    {'f': 3.0}
    """

    stored: ClassVar[bool] = False

    max_calls: Mapping[str, float] = field(default_factory=dict)
    max_steps: int = MOST_STEPS
    time_limit: float = math.inf
    callback: Callback | None = None
    on_interrupt: str = "raise"
    checkpoint: Path | None = None
    checkpoint_every: int = EVERY
    before: Calls = field(default_factory=Calls)
    header: Mapping[str, Any] = field(default_factory=dict)
    start: tuple[Array, Array] | None = None
    check_adjoint: bool | None = None
    dry: bool = False
    clock: Clock = field(default_factory=Clock)
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

    def limits(self) -> dict[str, Any]:
        """The limits as plain data, for a checkpoint."""
        return {
            "max_calls": dict(self.max_calls),
            "max_steps": self.max_steps,
            "time_limit": None if math.isinf(self.time_limit) else self.time_limit,
            "checkpoint_every": self.checkpoint_every,
        }


def controlled(
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

    Examples
    --------
    >>> controlled("solve", time_limit=2).time_limit
    2.0
    """
    complaints = _complaints(max_calls, max_steps, callback, on_interrupt, checkpoint_every)
    raise_all(name, complaints)
    for flag, value in flags.items():
        as_flag(value, f"{name}: {flag}")
    limits = {key: as_number(limit, f"{name}: max_calls[{key!r}]", 0.0) for key, limit in (max_calls or {}).items()}
    seconds = math.inf if time_limit is None else as_number(time_limit, f"{name}: time_limit", 0.0, finite=False)
    place = None if checkpoint is None else check_place(checkpoint, name)
    tested = None if check_adjoint is None else as_flag(check_adjoint, f"{name}: check_adjoint")
    clock = clock or Clock()
    return Control(
        limits, int(max_steps), seconds, callback, on_interrupt, place, int(checkpoint_every), check_adjoint=tested,
        clock=clock, books=Books(limits, seconds, clock),
    )  # fmt: skip


def _complaints(max_calls: Any, max_steps: Any, callback: Any, on_interrupt: Any, checkpoint_every: Any) -> list[str]:
    complaints = []
    if max_calls is not None and not isinstance(max_calls, Mapping):
        complaints.append(f"max_calls is {max_calls!r}; expected a mapping such as {{'f': 200}}.")
    elif max_calls and set(max_calls) - set(LIMITS):
        unknown = sorted(set(max_calls) - set(LIMITS), key=str)
        complaints.append(f"max_calls has {unknown}; expected names among {list(LIMITS)}.")
    for name, value, least in (("max_steps", max_steps, 0), ("checkpoint_every", checkpoint_every, 1)):
        if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
            complaints.append(f"{name} is {value!r}; expected a whole number >= {least}.")
    if callback is not None and not callable(callback):
        complaints.append(f"callback is {callback!r}; expected a function of an intermediate Result.")
    if not isinstance(on_interrupt, str) or on_interrupt not in ON_INTERRUPT:
        complaints.append(f"on_interrupt is {on_interrupt!r}; expected 'raise' or 'return'.")
    return complaints


class Watch:
    """Looks after one run: asks before every call, between steps, and when something goes wrong.

    Parameters
    ----------
    control : Control
        What the caller asked for.
    run : object
        The run, whose attributes are its state.
    spent : callable
        All calls so far, in the problem's own names.
    mirrored : bool
        Whether the run sees the problem with the roles of x and y exchanged.
    """

    stored: ClassVar[bool] = False

    def __init__(self, control: Control, run: object, spent: Callable[[], Calls], mirrored: bool = False) -> None:
        self.control, self._spent = control, spent
        self._saved = run
        self.turn(mirrored)
        self._kept: Snapshot | None = None
        self._kept_at, self._written = -math.inf, -math.inf
        self.reason = ""
        # What NumPy does about overflow in code of the caller's.
        self.errors: Any = np.geterr()
        self._calling_back = False

    def turn(self, mirrored: bool) -> None:
        """The run sees the problem as it was given, or with the roles of x and y exchanged, from now on."""
        self._names = {"f": "g", "g": "f", "B": "B"} if mirrored else {"f": "f", "g": "g", "B": "B"}

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
        own = self._names[name]
        limit = self.control.max_calls.get(own, math.inf)
        return math.inf if math.isinf(limit) else float(limit - getattr(self._spent(), own))

    def _late(self) -> bool:
        limit = self.control.time_limit
        return math.isfinite(limit) and self.control.clock.elapsed >= limit

    def test_adjoint(self, oracles: Oracles) -> float:
        """What the adjoint of B is off by: two counted products, where they are asked for or B is own code."""
        # The adjoint of a matrix is its transpose by construction; ours are tested with the package.
        own = is_own_code(oracles.problem.coupling)
        with self.control.clock.phase("plan"):
            if self.control.check_adjoint is not False:
                check_inner_adjoints(oracles)
            if not (own if self.control.check_adjoint is None else self.control.check_adjoint):
                return 0.0
            return check_adjoint_of(oracles)

    def between_steps(self, steps: int) -> Status | None:
        """Keep the state where it is asked for; a status when a limit has been reached."""
        limit = self._limit(steps)
        if self.control.checkpoint is not None:
            due = steps - self._written >= self.control.checkpoint_every or limit is not None
            if due or time.perf_counter() - self._kept_at >= _FRESH:
                self._kept, self._kept_at = snapshot(self._saved), time.perf_counter()
            if due:
                self.write(steps)
        return limit

    def _limit(self, steps: int) -> Status | None:
        total = self._spent()
        if any(getattr(total, name) >= limit for name, limit in self.control.max_calls.items()):
            return Status.CALL_LIMIT
        if self._late():
            return Status.TIME_LIMIT
        return Status.STEP_LIMIT if steps >= self.control.max_steps else None

    def write(self, steps: int | None = None) -> None:
        """Write the last kept state, if there is one."""
        if self.control.checkpoint is None or self._kept is None:
            return
        control = self.control
        header = {**control.header, "limits": control.limits(), "before": _listed(control.spent_before)}
        header |= {"elapsed": control.clock.elapsed, "timings": control.clock.timings, "norms": control.books.norms()}
        arrays = [*self._kept.arrays, *(self.control.start or ())]
        write_checkpoint(self.control.checkpoint, {**header, "state": self._kept.tree}, arrays)
        self._written = self._written if steps is None else float(steps)

    def stops(self, result: Callable[[], Result]) -> bool:
        """Call the callback; True when it asks to stop."""
        if self.control.callback is None:
            return False
        with np.errstate(**self.errors):
            seen = result()
            # Left standing by an exception, so that it is known whose it is.
            self._calling_back = True
            try:
                self.control.callback(seen)
            except StopIteration:
                stop = True
            else:
                stop = False
        self._calling_back = False
        return stop

    def _placed(self, where: Callable[[], str]) -> str:
        books = self.control.books
        if books.active:
            name, books.active = books.active, ""
            return aside_place(name)
        place = where()
        return place.replace(BETWEEN, IN_CALLBACK, 1) if self._calling_back else place

    def carried_out(self, work: Callable[[], Status], where: Callable[[], str]) -> Status:
        """The status of `work`, whatever ends it; exceptions of user code pass with a note."""
        self.control.books.follow(self.control.max_calls, self._spent)
        try:
            # Overflow in our own arithmetic ends the run; oracles and callbacks keep the caller's settings.
            with np.errstate(over="raise", invalid="raise", divide="raise"), self.control.clock.phase(""):
                return work()
        except RunEnded as ended:
            self.reason = ended.reason
            if isinstance(ended, NonFiniteAnswer):
                self.reason = ", ".join(part for part in (f"Returned {self._placed(where)}", ended.reason) if part)
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
        except ArithmeticError as error:
            self.write()
            place = self._placed(where)
            if not place.startswith(BETWEEN):
                error.add_note(f"saddleslide: raised {place}.")
                raise
            # Numbers beyond double precision in our own arithmetic are an outcome, not the caller's exception.
            self.reason = f"numbers left the range of double precision ({error})"
            return Status.NUMERICAL_LIMIT
        except Exception as error:
            self.write()
            explain_read_only(error)
            error.add_note(f"saddleslide: raised {self._placed(where)}.")
            raise


def where_in(plan: Plan, steps: int, oracles: Oracles, judging: Oracles | None = None, mirrored: bool = False) -> str:
    """Oracle, call number, level and step, for the note on an exception."""
    active, judged = oracles, False
    if not oracles.active and judging is not None and judging.active:
        active, judged = judging, True
    name = {"f": "g", "g": "f"}.get(active.active, active.active) if mirrored else active.active
    step = f"outer step {steps + 1}"
    if not name:
        return f"{BETWEEN}, {step}"
    number = getattr(active.calls, active.active)
    oracle = name if name == "B" else f"{name}'"
    if judged:
        return f"by {oracle} while the point was judged, call {number:g} of judging, {step}"
    return f"by {oracle} in call {number:g} of {_level(plan, name)}, {step}"


def _level(plan: Plan, name: str) -> str:
    order = plan.order
    if plan.regime == "method":
        return f"the method {plan.method}"
    return f"level {order.index(name) + 1} of {order}" if name in order else "the run"


def _listed(calls: Calls) -> list[float]:
    return [calls.f, calls.g, calls.B]
