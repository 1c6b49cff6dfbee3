"""L-BFGS through SciPy on the primal, f(x) + max_y <y, Bx> - g(y), or on the dual, where one of them is smooth.

SciPy has no interface for one iteration at a time. So it runs in a thread that waits in between.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, final

import numpy as np
import scipy

from saddleslide.domains.entrywise import Box, FullSpace
from saddleslide.methods.base import Array, Calls, Description, Facts, Method, Oracles, Point, State, option
from saddleslide.oracles.calls import MOST_SHORTENED

_NEEDS = {
    "primal": ("smooth f", "strong convexity of g", "closed minimum of g"),
    "dual": ("smooth g", "strong convexity of f", "closed minimum of f"),
}
# How far above the last finite value an overflow is told to be.
_HEIGHT = 1e3


@dataclass
class LBFGSState(State):
    """The last point of the block that SciPy moves, and SciPy's run with all that it keeps to itself."""

    # SciPy keeps its state to itself: a checkpoint can not hold it, and a resumed run repeats the steps.
    stored: ClassVar[bool] = False

    start: Point
    moved: Array
    run: PausedRun


@final
@dataclass(frozen=True, repr=False)
class LBFGS(Method):
    """SciPy's L-BFGS-B on the outer block; the inner block is the exact maximiser (or minimiser).

    The iterates are those of one uninterrupted run of SciPy.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> problem = ss.gallery.denoise(np.eye(6), weight=0.1, huber=0.1)
    >>> ss.solve(problem, tol=1e-8, method="l-bfgs").status.name
    'SOLVED'
    """

    description = Description(
        name="l-bfgs",
        needs=("smooth primal or dual",),
        guarantee="Converges linearly on uniformly convex functions; no rate with constants is known.",
        reference="Liu and Nocedal, On the limited memory BFGS method for large scale optimization, Math. Program. 45 "
        "(1989); SciPy's L-BFGS-B",
    )
    storable = False
    on_host = True
    side: str = option(
        "auto", "which function is minimised; auto takes the primal where it is smooth", ("auto", *_NEEDS)
    )
    memory: int = option(10, "pairs of steps and gradients that are kept", whole=True, maximum=1000)

    def lacks(self, facts: Facts) -> list[str]:
        found = {side: _obstacles(facts, side) for side in _NEEDS if self.side in ("auto", side)}
        if not all(found.values()):
            return []
        return [f"{side}: {sentence}" for side, sentences in found.items() for sentence in sentences]

    def init(self, oracles: Oracles, facts: Facts, start: Point, tol: float) -> LBFGSState:
        primal = self._side(facts) == "primal"
        moved = start[0] if primal else start[1]
        return LBFGSState(start, moved, PausedRun(Smooth(oracles, primal), moved, self.memory))

    def step(self, state: LBFGSState, oracles: Oracles) -> LBFGSState:
        flat = state.run.advance()
        return state if flat is None else replace(state, moved=flat.reshape(state.moved.shape))

    def point(self, state: LBFGSState, oracles: Oracles) -> Point:
        inner = state.run.smooth.inner_point(state.moved)
        if inner is None:
            return state.start
        return (state.moved, inner) if state.run.smooth.primal else (inner, state.moved)

    def is_finished(self, state: LBFGSState) -> bool:
        return state.run.turn.done

    def notes(self, state: LBFGSState, facts: Facts) -> tuple[str, ...]:
        return (f"minimises the {self._side(facts)}, memory {self.memory}", "no rate is promised")

    def calls(self, facts: Facts, tol: float) -> Calls | None:
        """What accelerated gradients would need at most; L-BFGS is not proved to be as fast.

        The smaller of 2 sqrt(L D^2 / eps) and, with a modulus mu, sqrt(L / mu) log(L D^2 / eps).
        """
        primal = self._side(facts) == "primal"
        outer, inner = (facts.f, facts.g) if primal else (facts.g, facts.f)
        L, D = outer.lipschitz + facts.norm**2 / inner.modulus, facts.distances[0 if primal else 1]
        if not math.isfinite(D):
            return None
        rate = 2.0 * D * math.sqrt(L / tol)
        if outer.modulus > 0.0:
            rate = min(rate, math.sqrt(L / outer.modulus) * math.log(max(L * D**2 / tol, math.e)))
        N = max(1, math.ceil(rate))
        return Calls(N if primal and not outer.is_zero else 0, 0 if primal or outer.is_zero else N, 2 * N)

    def _side(self, facts: Facts) -> str:
        return ("dual" if _obstacles(facts, "primal") else "primal") if self.side == "auto" else self.side


def _obstacles(facts: Facts, side: str) -> list[str]:
    found, domain = facts.find_missing(_NEEDS[side]), (facts.f if side == "primal" else facts.g).domain
    if not isinstance(domain, Box | FullSpace):
        found.append(f"{'X' if side == 'primal' else 'Y'} = {domain}; expected a box or the full space.")
    return found


class Smooth:
    """f(x) + max_y <y, Bx> - g(y) as a function of x, or its mirror image in y; the inner points are remembered."""

    def __init__(self, oracles: Oracles, primal: bool) -> None:
        self.oracles, self.primal, self.lift = oracles, primal, oracles.whole_f_lift
        self.domain = oracles.problem.X if primal else oracles.problem.Y
        self.recent: list[Point] = []
        # The last point with finite answers and the value there; how often oracles have overflown since.
        self.finite: tuple[Array, float] | None = None
        self.refused = 0

    def __call__(self, point: Array) -> tuple[float, Array]:
        """Value and gradient for SciPy."""
        ask = partial(self._evaluate, point.reshape(self.domain.shape))
        if self.finite is None or self.refused >= MOST_SHORTENED:
            found = ask()
        elif (tried := self.oracles.try_out(ask)) is not None:
            found = tried
        else:
            self.refused += 1
            # An oracle overflows: a bowl around the last finite point, which the line search leaves for that point.
            # SciPy interpolates what it is told, so that infinities would end its search.
            way, value = point - self.finite[0], self.finite[1]
            height = _HEIGHT * (1.0 + abs(value))
            return value + height, (2.0 * height / (float(np.vdot(way, way)) or 1.0)) * way
        value, gradient, inner = found
        self.finite, self.refused = (point.copy(), value), 0
        # The next iterate is among the last few points: a line search rarely takes more.
        self.recent = [*self.recent[-7:], (point.copy(), inner)]
        return value, gradient.ravel()

    def inner_point(self, point: Array) -> Array | None:
        """The inner point that belongs to an iterate; None before the first evaluation."""
        if not self.recent:
            return None
        found = [inner for known, inner in reversed(self.recent) if np.array_equal(known, point.ravel())]
        return found[0] if found else self._evaluate(point)[2]

    def _evaluate(self, point: Array) -> tuple[float, Array, Array]:
        """Value, gradient, and the inner point."""
        oracles, name = self.oracles, "f" if self.primal else "g"
        value, slope = 0.0, np.zeros_like(point)
        if self.primal and not oracles.is_zero("f"):
            q = self.lift.lift(point)
            slope, value = self.lift.gradient(point, q), self.lift.value(point, q)
        elif not oracles.is_zero(name):
            value, slope = oracles.value_and_gradient("g", oracles.problem.g, point)
        if not math.isfinite(value):
            raise oracles.not_finite(name, point)
        if self.primal:
            inner = oracles.closed_minimum("g", -oracles.forward(point))
            return value - inner.value, slope + oracles.adjoint(inner.point), inner.point
        inner = oracles.closed_minimum("f", oracles.adjoint(point))
        return value - inner.value, slope - oracles.forward(inner.point), inner.point


class Turn:
    """Two parties that never run at the same time, so that nothing is concurrent, and what the thread left behind."""

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

    def work(self, minimise: Callable[..., Any]) -> None:
        """The thread: wait for the first request, then one run of SciPy that pauses after each iteration."""
        self.worker.acquire()
        try:
            if not self.abandoned:
                minimise(callback=self.pause)
        except BaseException as error:
            self.error = error
        self.done = True
        self.caller.release()


class PausedRun:
    """A run of SciPy, one iteration at a time. The thread holds none of this, so that it ends with it."""

    def __init__(self, smooth: Smooth, start: Array, memory: int) -> None:
        self.smooth, self.turn, domain, bounds = smooth, Turn(), smooth.domain, None
        if isinstance(domain, Box):
            bounds = list(zip(domain.lower.ravel().tolist(), domain.upper.ravel().tolist(), strict=True))
        settings = {"maxiter": 10**9, "maxfun": 10**9, "ftol": 0.0, "gtol": 0.0, "maxcor": memory}
        run = partial(scipy.optimize.minimize, smooth, start.ravel().copy(), jac=True, method="L-BFGS-B", bounds=bounds)
        weakref.finalize(self, self.turn.abandon)
        threading.Thread(target=self.turn.work, args=(partial(run, options=settings),), daemon=True).start()

    def advance(self) -> Array | None:
        """The next point; None when SciPy has ended."""
        turn = self.turn
        if turn.done:
            return None
        turn.worker.release()
        turn.caller.acquire()
        if turn.error is not None:
            raise turn.error
        return None if turn.done else turn.point
