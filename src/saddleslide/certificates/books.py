"""The books of one call: what it makes aside from the oracles of its run, counted and held to the same limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from typing import Any, ClassVar

import numpy as np

from saddleslide.certificates.verdict import Status
from saddleslide.functions.base import Function
from saddleslide.functions.constants import leaves
from saddleslide.functions.trust import runs_own_code
from saddleslide.kernels.switch import clock
from saddleslide.operators.adjoint_test import AdjointTest
from saddleslide.operators.base import Mirrored, Operator, is_own_code
from saddleslide.operators.spectrum import NormBound
from saddleslide.oracles.calls import Calls, RunEnded
from saddleslide.oracles.clock import Clock
from saddleslide.problem import SaddleProblem
from saddleslide.watcher import Watcher, under_way

# Seconds that judging the point may take once the time is up.
_GRACE = 0.25
# Seconds of a call that is no burden.
_QUICK = 0.05
# What is active where no oracle is: the caller's code in between.
LENT = "lent"


class Books(Watcher):
    """What a call makes aside from the oracles of its run: norms that are bounded, prices that are measured.

    It is counted like all else, held to the limits on calls by oracle and to the seconds on the clock, and may end the
    call before there is a run.
    """

    stored: ClassVar[bool] = False

    def __init__(self, max_calls: Mapping[str, float], time_limit: float, clock: Clock) -> None:
        self._max_calls, self._time_limit, self._clock = max_calls, time_limit, clock
        self._grace = self._longest = 0.0
        self.problem: SaddleProblem | None = None
        self.calls = Calls()
        # All calls so far, the run's included.
        self.spent: Callable[[], Calls] = lambda: self.calls
        self.active = ""
        # The caller's code runs under the caller's settings of NumPy.
        self._errors: Any = np.geterr()

    def late(self) -> bool:
        """Whether the time is up."""
        return math.isfinite(self._time_limit) and self._clock.seconds >= self._time_limit + self._grace

    def look(self) -> None:
        """End the call where the time is up."""
        if self.late():
            raise RunEnded(Status.TIME_LIMIT.name)

    def extend(self) -> None:
        """The time is up, or nearly: a little more of it for judging the point, unless a slow oracle has had that."""
        passed = self._clock.seconds - self._time_limit if self._longest <= _QUICK else 0.0
        self._grace = max(passed, 0.0) + _GRACE

    def note_seconds(self, seconds: float) -> None:
        self._longest = max(self._longest, seconds)

    def made(self, asked: Any, count: float, work: Callable[[], Any]) -> Any:
        """Count the work and do it, unless a limit would be passed."""
        name, part = self._name_oracle(asked)
        self.look()
        if part > 0.0 and part * count > self._max_calls.get(name, math.inf) - getattr(self.spent(), name):
            raise RunEnded(Status.CALL_LIMIT.name)
        if part > 0.0:
            self.active = name
            made: Any = {name: int(count) if name == "B" else part * count}
            self.calls = self.calls + Calls(**made)
        began = clock()
        with np.errstate(**self._errors):
            answer = work()
        self.note_seconds(clock() - began)
        self.active = ""
        return answer

    def lend(self, work: Callable[[], Any]) -> Any:
        before, self.active = self.active, LENT
        with np.errstate(**self._errors):
            answer = work()
        self.active = before
        return answer

    def note(self, calls: Calls) -> None:
        self.calls = self.calls + calls

    def follow(self, max_calls: Mapping[str, float], spent: Callable[[], Calls]) -> None:
        """A run has begun: its limits count, and what it has spent."""
        self._max_calls, self.spent = max_calls, spent

    def take(self) -> Calls:
        """What has been made so far, and from now on is in the books of somebody else."""
        taken, self.calls = self.calls, Calls()
        return taken

    def _name_oracle(self, asked: Any) -> tuple[str, float]:
        """The oracle that a product or a run of the caller's function belongs to, and the part of a call that it is."""
        if isinstance(asked, str):
            return asked, 1.0
        if isinstance(asked, Function):
            # That of f, where f and g share the caller's code.
            own = {id(part) for part in leaves(asked) if runs_own_code(part)}
            sides = () if self.problem is None else (("f", self.problem.f), ("g", self.problem.g))
            found = [name for name, side in sides if any(id(part) in own for part in leaves(side))]
            return (found[0], 1.0) if found else ("", 0.0)
        while (inside := getattr(asked, "original", None) or getattr(asked, "inner", None)) is not None:
            # Seen from the other side, or in another norm: products are those of the map itself.
            asked = inside
        return next(((name, part) for name, coupling, part in self._operators() if coupling is asked), ("", 0.0))

    def _operators(self) -> list[tuple[str, Operator, float]]:
        """B and the operators inside f and g: the oracle of each, and what part of its call a product is."""
        problem = self.problem
        if problem is None:
            return []
        coupling = problem.coupling.original if isinstance(problem.coupling, Mirrored) else problem.coupling
        inner = [(name, *found) for name, f in (("f", problem.f), ("g", problem.g)) for found in f.operators]
        # What a function of ours finds out about a matrix at hand is no call of f' or g'.
        return [("B", coupling, 1.0), *((name, A, 0.0 if _is_matrix(A) else part) for name, A, part in inner)]

    def norms(self) -> list[list[Any] | None]:
        """Norms that were bounded by products, for a checkpoint: a run that is taken up again does not do that anew."""
        found = [coupling.__dict__.get("norm") for _, coupling, _ in self._operators()]
        usable = [norm if norm is not None and math.isfinite(norm.upper) else None for norm in found]
        return [None if norm is None else list(astuple(norm)) for norm in usable]

    def adjoints(self) -> list[list[float] | None]:
        """What tests of adjoints have shown, for a checkpoint as well."""
        found = [coupling.__dict__.get("adjoint_test") for _, coupling, _ in self._operators()]
        return [None if test is None or not all(map(math.isfinite, test)) else list(test) for test in found]

    def know(self, norms: Sequence[Any], adjoints: Sequence[Any]) -> None:
        """Norms and tests of adjoints as a checkpoint has them."""
        operators = [coupling for _, coupling, _ in self._operators()]
        for coupling, norm in zip(operators, norms, strict=False):
            if norm is not None and coupling.norm_takes_products:
                coupling.__dict__.setdefault("norm", NormBound(*norm))
        for coupling, test in zip(operators, adjoints, strict=False):
            if test is not None and is_own_code(coupling):
                coupling.__dict__.setdefault("adjoint_test", AdjointTest(*test))


def _is_matrix(A: Operator) -> bool:
    return A.entry_count is not None and not is_own_code(A)


@contextmanager
def count_aside(problem: object, books: Books | None = None) -> Iterator[Books]:
    """Within it all that is made aside is in the books; an exception of the caller's code says where it came from."""
    books = books or Books({}, math.inf, Clock())
    books.problem = problem if isinstance(problem, SaddleProblem) else None
    with under_way(books):
        try:
            yield books
        except RunEnded:
            raise
        except Exception as error:
            if books.active:
                error.add_note(f"saddleslide: raised {aside_place(books.active)}.")
            raise


def aside_place(name: str) -> str:
    """Where a call was made that belongs to no step, for the note on an exception."""
    if name == "B":
        return "by B while its norm was bounded or its price measured"
    if name == LENT:
        return "by a proximal step, a conjugate or a projection of your own"
    return f"by {name}' aside from the steps: a norm, a price, an estimate or a closed form"
