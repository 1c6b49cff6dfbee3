"""`run`: carries a plan out, counts, times, reports, and judges the result."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from saddleslide.arrays import Array, split
from saddleslide.certificate import exact_gap
from saddleslide.errors import InputError
from saddleslide.oracles import Oracles
from saddleslide.planning import Plan
from saddleslide.problem import SaddleProblem
from saddleslide.result import Certificate, Moment, Result, Status
from saddleslide.sliding import bilinear_recursion

Callback = Callable[[Result], object]


def run(
    problem: SaddleProblem, plan: Plan, *, start: tuple[Any, Any] | None = None, callback: Callback | None = None
) -> Result:
    """Carry out a plan and judge the point it gives.

    Parameters
    ----------
    problem : SaddleProblem
        The problem the plan was made for.
    plan : Plan
        From `ss.plan`.
    start : (x, y), optional
        Feasible starting point; the projections of 0 when missing.
    callback : callable, optional
        Called with an intermediate `Result` after every outermost step; raising StopIteration ends the run.

    Returns
    -------
    Result
        `result.calls` are the calls of the plan; judging the final point is counted in `result.certificate_calls`.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(2), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.array([[2.0, -1.0], [-1.0, 1.0]]), X=simplex, Y=simplex)
    >>> result = ss.run(game, ss.plan(game, order="fgB", loops=(1, 1, 400)))
    >>> result.x.round(2).tolist(), result.gap < 0.02
    ([0.4, 0.6], True)
    """
    if not isinstance(problem, SaddleProblem) or not isinstance(plan, Plan):
        raise InputError(
            f"run: received {type(problem).__name__} and {type(plan).__name__}; expected a SaddleProblem and a Plan."
        )
    progress = _Progress(problem, plan, start)
    stopped = progress.carry_out(callback)
    x, y = progress.point()
    if progress.broke_down:
        return progress.result(x, y, Status.NON_FINITE, exact_gap(problem, x, y))
    certificate = exact_gap(problem, x, y)
    return progress.result(x, y, _status(plan, certificate, stopped), certificate)


def _status(plan: Plan, certificate: Certificate, stopped: bool) -> Status:
    if plan.tol is not None and certificate.gap <= plan.tol:
        return Status.SOLVED
    if stopped:
        return Status.STOPPED
    return Status.COMPLETED if certificate.kind != "none" else Status.NO_CERTIFICATE


class _Progress:
    """State of one run: oracles, recursion, clock and history."""

    def __init__(self, problem: SaddleProblem, plan: Plan, start: tuple[Any, Any] | None) -> None:
        self.problem, self.plan = problem, plan
        self.oracles = Oracles(problem)
        origin = problem.start(start)
        self.recursion = bilinear_recursion(self.oracles, plan, origin)
        self.last_finite = np.concatenate([part.ravel() for part in origin])
        self.history: list[Moment] = []
        self.seconds = 0.0
        self.broke_down = False

    def carry_out(self, callback: Callback | None) -> bool:
        """Run all outermost steps; True when the callback stopped it."""
        steps = self.recursion.steps()
        while True:
            began = time.perf_counter()
            average = next(steps, None)
            self.seconds += time.perf_counter() - began
            if average is None:
                return False
            if not np.isfinite(average).all():
                self.broke_down = True
                return False
            np.copyto(self.last_finite, average)
            self.history.append(Moment(len(self.history) + 1, self.oracles.calls.copy(), self.seconds))
            if callback is not None:
                try:
                    callback(self.result(*self.point(), Status.RUNNING, Certificate(reason="not judged yet")))
                except StopIteration:
                    return True

    def point(self) -> tuple[Array, Array]:
        x, y = split(self.last_finite, [self.problem.X.shape, self.problem.Y.shape])
        return x.copy(), y.copy()

    def result(self, x: Array, y: Array, status: Status, certificate: Certificate) -> Result:
        return Result(
            x, y, status, certificate, self.oracles.calls.copy(), self.seconds, (self.plan,), tuple(self.history)
        )
