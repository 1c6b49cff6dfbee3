"""Multipliers in a ball that the caller's problem does not have: what a result says of the problem that was meant.

With x in X and A x = b, f(x) + <y, A x - b> is maximised over |y| <= R in place of all y. At a point with a certified
gap, R |A x - b| - <y, A x - b> is at most that gap, hence |A x - b| <= gap / (R - |y|): a y well inside the ball proves
that the constraints hold, one on its surface proves nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from saddleslide.certificates.residuals import separates
from saddleslide.certificates.verdict import Status
from saddleslide.domains import FullSpace
from saddleslide.oracles.oracles import Oracles
from saddleslide.problem import Enclosure, SaddleProblem
from saddleslide.runs.result import Result

# Constraints that are missed by more than this part of their right side are open.
_OPEN = 0.1


def as_meant(result: Result, problem: SaddleProblem) -> Result:
    """The result of the problem that the caller meant: no success where y lies on a ball that was put there for it."""
    around = problem.enclosure
    if around is None or not (result.success or result.status is Status.MET_AS_DECLARED):
        return result
    oracles = Oracles(problem)
    outside = _excluded(oracles, around, result)
    seen = replace(result.certificate, calls=result.certificate_calls + oracles.calls)
    counted = replace(result, certificate=seen, calls=result.calls + oracles.calls)
    if outside:
        reason = f"no x in X satisfies {around.constraint}: a separating hyperplane proves it"
    elif not around.holds(result.y):
        size = float(np.linalg.norm(result.y))
        reason = f"{around.name} have norm {size:.4g}, their bound is {around.radius:.4g}; {around.constraint} is open"
    else:
        oracles = Oracles(problem)
        missed = _missed(oracles, around, result)
        seen = replace(seen, calls=seen.calls + oracles.calls)
        counted = replace(counted, certificate=seen, calls=counted.calls + oracles.calls)
        if not missed:
            return counted
        reason = (
            f"{around.constraint} is missed by {missed:.4g}, and the gap allows it: the bound of {around.name} is "
            f"{around.radius:.4g}; ask for a smaller gap too"
        )
    return replace(counted, status=Status.BOUND_REACHED, certificate=replace(seen, reason=reason))


def _missed(oracles: Oracles, around: Enclosure, result: Result) -> float:
    """|B x - b| where that is no small part of |b|, or of |B| |x|, else 0; asked where the gap does not prove it."""
    coupling = oracles.problem.coupling
    if around.b is None and not coupling.norm_at_hand:
        return 0.0
    size = coupling.norm.upper * float(np.linalg.norm(result.x)) if around.b is None else np.linalg.norm(around.b)
    allowed = _OPEN * float(size)
    if allowed == 0.0 or result.gap <= allowed * (around.radius - float(np.linalg.norm(result.y))):
        return 0.0
    missed = float(np.linalg.norm(oracles.forward(result.x) - (0.0 if around.b is None else around.b)))
    return missed if missed > allowed else 0.0


def _excluded(oracles: Oracles, around: Enclosure, result: Result) -> bool:
    """Whether y, or what is left of A x - b, proves that no x in X satisfies the constraints."""
    problem = oracles.problem
    if around.b is None or isinstance(problem.X, FullSpace):
        return False
    miss = oracles.forward(result.x) - around.b
    return any(
        separates(problem.coupling, around.b, problem.X, direction, oracles.adjoint(direction))
        for direction in (result.y, miss)
    )
