"""A method that auto preferred, on an allowance: what it leaves unsolved goes on with adaptive sliding."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from saddleslide.certificates.verdict import Status
from saddleslide.methods.catalogue import by_name
from saddleslide.oracles.calls import Calls
from saddleslide.planner.adaptive import adaptive_plan
from saddleslide.planner.forecast import predict_adaptive
from saddleslide.planner.request import SolveRequest
from saddleslide.problem import SaddleProblem
from saddleslide.runs.control import Callback, Control
from saddleslide.runs.loop import carry_out
from saddleslide.runs.result import Moment, Result
from saddleslide.theory.method_plan import MethodPlan
from saddleslide.theory.plan import weighted_cost

Prices = tuple[float, float, float]
# A preferred method may spend so many times what adaptive sliding is predicted to cost at the target. After a tenth of
# that it must show progress: the gap falls by a tenth while the cost doubles, which any useful rate does.
PATIENCE = 1.0
_TRIAL, _PROGRESS = 0.1, 0.9
_UNFINISHED = (Status.COMPLETED, Status.NO_CERTIFICATE, Status.NUMERICAL_LIMIT, Status.NON_FINITE)


class Allowance:
    """A callback that ends a run once it has cost more than adaptive sliding is predicted to, or stands still.

    A method whose end is proved may stand still on the way.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(3), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.eye(3), X=simplex, Y=simplex)
    >>> Allowance(game, (1.0, 1.0, 1.0)).used_up
    False
    """

    def __init__(
        self, problem: SaddleProblem, prices: Prices, then: Callback | None = None, patient: bool = False
    ) -> None:
        self.problem, self.prices, self.then, self.patient = problem, prices, then, patient
        self.limit = math.nan
        self.used_up = False
        self.seen: list[tuple[float, float]] = []

    def __call__(self, result: Result) -> None:
        """Look at an intermediate result; the caller's own callback comes first."""
        if self.then is not None:
            self.then(result)
        if math.isnan(self.limit):
            # Only now a relative target is known in absolute terms.
            self.limit = PATIENCE * predict_adaptive(self.problem, result.target, self.prices).cost
        self.seen.append((_cost(result.calls, self.prices), result.gap))
        if self.seen[-1][0] > self.limit or (self._stands_still() and not self.patient):
            self.used_up = True
            raise StopIteration

    def _stands_still(self) -> bool:
        cost, gap = self.seen[-1]
        before = [known for spent, known in self.seen if spent <= 0.5 * cost]
        return bool(before) and cost > _TRIAL * self.limit and not gap <= _PROGRESS * before[-1]


def with_second_try(
    problem: SaddleProblem, plan: MethodPlan, start: tuple[Any, Any] | None, control: Control, prices: Prices, rng: int
) -> Result:
    """Run a method on its allowance; without success go on with adaptive sliding from the best point.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> from saddleslide.methods.catalogue import method_plan
    >>> simplex, zero = ss.domains.Simplex(3), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.diag([1.0, 2.0, 3.0]), X=simplex, Y=simplex)
    >>> asked = method_plan(game, "mirror-prox", tol=1e-3)
    >>> result = with_second_try(game, asked, None, Control(), (1.0, 1.0, 1.0), 0)
    >>> [part.method for part in result.plans], result.status.name
    (['mirror-prox', 'restarted primal-dual'], 'SOLVED')
    """
    watched = Allowance(problem, prices, control.callback, by_name[plan.method].ends_proved)
    first = carry_out(problem, plan, start, replace(control, callback=watched))
    if first.gap <= first.target or not (watched.used_up or first.status in _UNFINISHED):
        return first
    if not first.target > 0.0:
        # A relative target at a start that is optimal already: there is nothing to ask of another method.
        return first
    steps = control.max_steps - (first.history[-1].step if first.history else 0)
    limits = {name: most - getattr(first.calls, name) for name, most in control.max_calls.items()}
    if steps <= 0 or any(limit <= 0 for limit in limits.values()):
        return replace(first, status=Status.CALL_LIMIT if steps > 0 else Status.STEP_LIMIT)
    why = "it had used up its allowance or stood still" if watched.used_up else f"it ended with {first.status.name}"
    reason = f"{plan.method} had a gap of {first.gap:.4g} when {why}"
    # What was made aside is in the first result.
    control.books.take()
    left = replace(control, max_calls=limits, max_steps=steps, before=Calls())
    return _followed(problem, first, left, prices, rng, reason)


def _followed(problem: SaddleProblem, first: Result, control: Control, prices: Prices, rng: int, reason: str) -> Result:
    """Adaptive sliding from where the first run ended, with what is left of the limits."""
    start = (first.x, first.y)
    following = adaptive_plan(problem, SolveRequest(first.target, start=start, costs=prices, seed=rng))
    following = replace(following, reasons=(*following.reasons, reason))
    then = control.callback
    watching = None if then is None else (lambda result: then(joined(first, result)))
    return joined(first, carry_out(problem, following, start, replace(control, callback=watching)))


def joined(first: Result, second: Result) -> Result:
    """Two runs as one: the better point, all calls, one history.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(3), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.eye(3), X=simplex, Y=simplex)
    >>> a, b = (ss.solve(game, tol=tol, method="mirror-prox", start=([1, 0, 0], [0, 1, 0])) for tol in (0.1, 0.01))
    >>> joined(a, b).calls == a.calls + b.calls
    True
    """
    better = second if second.gap <= first.gap else first
    before = first.history[-1].step if first.history else 0
    shifted = tuple(
        Moment(before + at.step, first.calls + at.calls, at.seconds, min(at.gap, first.gap)) for at in second.history
    )
    return replace(
        second,
        x=better.x,
        y=better.y,
        certificate=replace(better.certificate, calls=first.certificate_calls + second.certificate_calls),
        calls=first.calls + second.calls,
        plans=(*first.plans, *second.plans),
        history=(*first.history, *shifted),
        target=first.target,
    )


def _cost(calls: Calls, prices: Prices) -> float:
    return weighted_cost({"f": calls.f, "g": calls.g, "B": calls.B}, prices)
