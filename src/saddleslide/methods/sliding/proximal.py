"""Proximal steps in the norm |v|_P: a step of the function's own where that is one, else a small problem in P."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from saddleslide.domains.entrywise import Box, FullSpace
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.separable import prox
from saddleslide.metrics.base import Blocks, Entrywise
from saddleslide.oracles.calls import RunEnded

if TYPE_CHECKING:
    from saddleslide.arrays.base import Array
    from saddleslide.domains.base import Domain
    from saddleslide.functions.base import Function
    from saddleslide.metrics.base import Metric

# A step no longer than this part of the point is rounding; so many are enough for a condition number of 1e8.
_ROUNDING, _MOST = 8.0 * float(np.finfo(np.float64).eps), 200_000


def is_direct(simple: Function, metric: Metric | None, domain: Domain) -> bool:
    """Whether a step of the function's own, or a projection, is the step in the norm of the metric."""
    if metric is None or isinstance(metric, Blocks) or (isinstance(domain, FullSpace) and isinstance(simple, Zero)):
        return True
    stepwise = simple.separable_form() is not None or simple.has_entry_steps
    return isinstance(metric, Entrywise) and isinstance(domain, FullSpace | Box) and stepwise


def resolve(simple: Function, metric: Metric | None, domain: Domain, x: Array, weight: float) -> None:
    """Replace x by the point v of the domain that minimises simple(v) + weight/2 |v - x|_P^2."""
    if metric is None or is_direct(simple, metric, domain):
        entries = metric.weight(1.0, 0.0) if isinstance(metric, Entrywise) else 1.0
        prox(simple, x, weight * entries, domain, out=x)
        return
    # Accelerated proximal gradients, begun anew whenever the momentum points uphill: no oracle of the problem is asked.
    L, center, t = metric.largest, x.copy(), 1.0
    point = ahead = np.array(prox(simple, center, weight * L, domain))
    for _ in range(_MOST):
        new = np.array(prox(simple, ahead - metric.product(ahead - center) / L, weight * L, domain))
        step = new - ahead
        if float(np.max(np.abs(step), initial=0.0)) <= _ROUNDING * float(np.max(np.abs(new), initial=0.0)):
            np.copyto(x, new)
            return
        if float(np.vdot(step, new - point)) < 0.0:
            t = 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        ahead, point, t = new + (t - 1.0) / following * (new - point), new, following
    raise RunEnded("NUMERICAL_LIMIT")
