"""The choice between methods: what `method="auto"` stands for."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from saddleslide.baselines.reach import measured_anew
from saddleslide.certificate import exact_gap
from saddleslide.forecast import Prediction, attainable, predict, predict_adaptive, start_scale
from saddleslide.functions import Zero
from saddleslide.oracles import Calls
from saddleslide.problem import SaddleProblem
from saddleslide.rivals import ADAPTIVE, costly_parts, free_distances, promised_on, rivals_on

# A rival must be predicted to be cheaper by this factor: predictions are no better than that.
MARGIN = 1.25
# The gap at the start may be so small a part of what the sizes of a problem allow.
_OVERSTATED = 0.1
# Operations per iteration and entry of x and y outside the oracles; L-BFGS-B with 10 pairs and bounds.
_VECTOR_WORK, _LBFGS_WORK = 10.0, 120.0


@dataclass(frozen=True)
class Choice:
    """What `method="auto"` stands for, why, the calls that finding out took, and the prices it went by.

    Examples
    --------
    >>> Choice("adaptive", "nothing else applies").calls
    Calls(f=0, g=0, B=0)
    """

    method: str
    reason: str
    calls: Calls = field(default_factory=Calls)
    prices: tuple[float, float, float] = (1.0, 1.0, 1.0)


def choose(
    problem: SaddleProblem,
    tol: float,
    rtol: float,
    costs: tuple[float, float, float],
    estimated: bool,
    start: tuple[Any, Any] | None = None,
) -> Choice:
    """The method of `method="auto"`: the cheapest by prediction; "adaptive" unless another is clearly cheaper.

    Every method that applies is predicted, the plans of the theorems among them ("proved-sliding"). Only where no
    method with a measured share applies, and distances would take a call, nothing is asked. Prices that were
    estimated from sizes are in operations, so the vector work of the methods is added to them.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(3), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.eye(3), X=simplex, Y=simplex)
    >>> choose(game, 1e-3, 0.0, (1.0, 1.0, 1.0), estimated=False).method
    'adaptive'
    """
    rivals, free = rivals_on(problem), free_distances(problem)
    if not (rivals or free):
        return Choice(ADAPTIVE, "no method with a measured share applies, and other bounds would take a call")
    # Distances from the start may take one gradient of each function, and two products away from 0.
    spent = measured_anew(problem)
    scale, looked, certain = _first_gap(problem, start) if rtol > 0.0 else (0.0, Calls(), True)
    spent, target = spent + looked, attainable(problem, max(tol, rtol * scale))
    if not 0.0 < target < math.inf:
        return Choice(ADAPTIVE, "no target in absolute terms is known beforehand", spent)
    # A whole bound must hold its own where sizes overstate the target.
    strict = target if certain or tol >= rtol * scale else _OVERSTATED * target
    try:
        promised = promised_on(problem)
        rows = [predict_adaptive(problem, target, costs), *(predict(name, problem, target, costs) for name in rivals)]
        rows += [predict(name, problem, strict, costs) for name in promised]
    except ArithmeticError:
        # Powers of sizes such as 1e150: no oracle is called here, so nobody else's error is hidden.
        return Choice(ADAPTIVE, "predictions leave the range of double precision", spent)
    rivals += promised
    if not rivals:
        return Choice(ADAPTIVE, "no other method applies", spent)
    own, *others = (row.cost + (_vector_work(row, problem) if estimated else 0.0) for row in rows)
    best = min(others)
    name = rivals[others.index(best)]
    if best * MARGIN < own:
        return Choice(name, f"predicted cost {best:.4g} against {own:.4g} of adaptive sliding", spent, costs)
    return Choice(ADAPTIVE, f"predicted cost {own:.4g} against {best:.4g} of {name}", spent)


def _first_gap(problem: SaddleProblem, start: tuple[Any, Any] | None) -> tuple[float, Calls, bool]:
    """The gap at the start, what it took, and whether it is certified: only where no costly function is called."""
    scale = start_scale(problem)
    if all(isinstance(rest, Zero) for rest in costly_parts(problem)):
        seen = exact_gap(problem, *problem.start(start))
        if math.isfinite(seen.gap):
            return min(seen.gap, scale), seen.calls, True
    return scale, Calls(), False


def _vector_work(row: Prediction, problem: SaddleProblem) -> float:
    """Operations outside the oracles, at two products an iteration."""
    if row.bound is None:
        return 0.0
    each = _LBFGS_WORK if row.method == "l-bfgs" else _VECTOR_WORK
    return each * (problem.X.size + problem.Y.size) * row.share * row.bound.B / 2.0
