"""`path`: problems that follow each other, each from the solutions of those before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from saddleslide.api.minimisation import minimize
from saddleslide.api.solver import solve
from saddleslide.arrays.base import Array
from saddleslide.arrays.kinds import to_host
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.problem import SaddleProblem
from saddleslide.runs.result import Result


def path(problems: Iterable[SaddleProblem | Function], tol: float | None = None, **options: Any) -> list[Result]:
    """Solve problems that follow each other: values of a weight, frames of a film, folds of a cross-validation.

    Every call begins where the solutions before it point to, with what the method has learnt so far
    (`ss.solve(..., start=result)`). Each answer is certified by itself, whatever the problems have to do with each
    other: a start that helps nothing costs time, and no truth.

    Parameters
    ----------
    problems : iterable of SaddleProblem or Function
        Problems for `ss.solve`, objectives for `ss.minimize`, in an order in which solutions change little. They are
        asked for one by one, so a generator may make each when its turn comes.
    tol : float, optional
        Target gap of each; `rtol` (1e-4 where no target is named) as in `ss.solve`. A `reduction` is relative to the
        gap at a start that is good already.
    **options
        All others are those of `ss.solve` or `ss.minimize`; `start` is that of the first problem.

    Returns
    -------
    list of Result
        One for each problem, in their order.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> rng = np.random.default_rng(0)
    >>> data = ss.functions.LeastSquares(rng.standard_normal((60, 30)), rng.standard_normal(60))
    >>> weights = np.geomspace(10.0, 1.0, 8)
    >>> found = ss.path(data + weight * ss.functions.L1() for weight in weights)
    >>> all(result.success for result in found), bool(found[0].objective > found[-1].objective)
    (True, True)
    """
    found: list[Result] = []
    for problem in problems:
        if not isinstance(problem, SaddleProblem | Function):
            raise InputError(
                f"path: received {type(problem).__name__}; expected problems of ss.solve or objectives of ss.minimize."
            )
        if found:
            options["start"] = _ahead(found[-3:])
        work: Any = solve if isinstance(problem, SaddleProblem) else minimize
        found.append(work(problem, tol, **options))
    return found


def _ahead(last: list[Result]) -> Result:
    """The last result, moved as the solutions have been moving."""
    *before, now = last
    if len(before) < 2 or any(old.x.shape != now.x.shape or old.y.shape != now.y.shape for old in before):
        return now
    xs, ys = ([to_host(getattr(result, name)) for result in last] for name in "xy")
    return replace(now, x=_extrapolate(*xs), y=_extrapolate(*ys))


def _extrapolate(first: Array, second: Array, third: Array) -> Array:
    """The third point and its step again, as much of it as it was of the step before in the same direction."""
    before, step = second - first, third - second
    square = float(np.vdot(before, before).real)
    part = float(np.vdot(before, step).real) / square if square > 0.0 else 0.0
    return third + min(max(part, 0.0), 1.0) * step if np.isfinite(part) else third
