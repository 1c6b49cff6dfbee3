"""Where a run begins: a point, or what an earlier result hands on."""

from __future__ import annotations

from typing import Any

import numpy as np

from saddleslide.arrays.base import Array, to_real
from saddleslide.arrays.kinds import to_host
from saddleslide.domains.base import Domain
from saddleslide.errors import InputError
from saddleslide.methods.base import Former
from saddleslide.problem import SaddleProblem
from saddleslide.runs.result import Result


def take_start(problem: SaddleProblem, given: tuple[Any, Any] | Result | None) -> tuple[Any, Former | None]:
    """A point as it was given; of a result the nearest feasible point, and what its method has learnt.

    Nothing that a result claims is handed on: its bounds and cuts are of its own problem.
    """
    if not isinstance(given, Result) or not isinstance(problem, SaddleProblem):
        return given, None
    x = to_host(given.x)
    x = to_real(x) if np.iscomplexobj(x) else x
    if x.shape != problem.X.shape:
        raise InputError(f"start: received a result with x of shape {x.shape}; expected {problem.X.shape}.")
    point = _nearest(problem.X, x), _nearest(problem.Y, to_host(given.y))
    is_known = given.state is not None and bool(given.plans)
    return point, Former(given.plans[-1], given.state) if is_known else None


def _nearest(domain: Domain, point: Array) -> Array:
    """The nearest point of a set; that to 0 where shapes differ or an entry is not finite."""
    fits = point.shape == domain.shape and bool(np.isfinite(point).all())
    return domain.project(np.asarray(point, dtype=float) if fits else np.zeros(domain.shape))
