"""Parts of sums that can be built in any process, and the problems that the cluster's tests solve."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import saddleslide as ss

SIZE, PARTS = 12, 8


@dataclass(frozen=True)
class Rows:
    """Builds a loss of 20 random rows."""

    index: int
    loss: str = "squares"
    size: int = SIZE

    def __call__(self):
        rng = np.random.default_rng([7, self.index])
        A = rng.standard_normal((20, self.size))
        if self.loss == "logistic":
            return ss.functions.Logistic(A, np.where(rng.random(20) < 0.5, -1.0, 1.0), ridge=0.05)
        return ss.functions.LeastSquares(A, rng.standard_normal(20), ridge=0.05)


def parts(loss="squares", count=PARTS):
    return [Rows(i, loss) for i in range(count)]


def problem_with(f, size=SIZE):
    """min over a box, max over a box of f(x) + <y, Bx> - |y|^2 / 2."""
    B = np.random.default_rng(3).standard_normal((5, size)) / 4.0
    X, Y = ss.domains.Box(-1.0, 1.0, shape=size), ss.domains.Box(-1.0, 1.0, shape=5)
    return ss.SaddleProblem(f=f, g=ss.functions.Quadratic(1.0), B=B, X=X, Y=Y)


def answer(result):
    """What must have the same bits."""
    calls = result.calls, result.certificate_calls
    return [result.x.tobytes(), result.y.tobytes(), result.lower, result.upper, result.status.name, *map(repr, calls)]


@dataclass(frozen=True)
class Doomed:
    """A part whose process is killed in the middle of a chosen call; once, the file remembers."""

    inner: Rows
    call: int
    memory: str

    def __call__(self):
        function, seen = self.inner(), [0]

        def evaluate(x):
            seen[0] += 1
            if seen[0] == self.call and not Path(self.memory).exists():
                Path(self.memory).touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return function.value_and_gradient(x)

        return ss.functions.from_callable(evaluate, smoothness=ss.Holder(1.0, 200.0), strong_convexity=0.05)


@dataclass(frozen=True)
class Sleeper:
    """A part that is slow where it was built first; the file remembers."""

    inner: Rows
    seconds: float
    memory: str

    def __call__(self):
        function, first = self.inner(), not Path(self.memory).exists()
        Path(self.memory).touch()

        def evaluate(x):
            if first:
                time.sleep(self.seconds)
            return function.value_and_gradient(x)

        return ss.functions.from_callable(evaluate)


@dataclass(frozen=True)
class Broken:
    """A part that raises when it is built, or when it is called."""

    when: str

    def __call__(self):
        if self.when == "built":
            raise FileNotFoundError("shard 3 is missing")
        if self.when == "unreadable":
            raise Picky("shard 3", rows=0)
        if self.when == "left":
            raise SystemExit(3)
        return ss.functions.from_callable(_raise)


def _raise(x):
    raise ZeroDivisionError("no rows")


class Picky(Exception):
    """An exception that can be pickled and not be read again."""

    def __init__(self, name, *, rows):
        super().__init__(f"{name} has {rows} rows")


class Own(ss.functions.Function):
    """A linear function in a user's own class, which hands out its own array; of any shape."""

    has_value = True

    def __init__(self, slope):
        self.slope = np.asarray(slope, dtype=float)

    def value_and_gradient(self, x, out=None):
        return float(self.slope.sum() * x.sum()), self.slope

    def smoothness(self, domain):
        return ss.Holder(1.0, 0.0)

    def strong_convexity(self, domain):
        return 0.0
