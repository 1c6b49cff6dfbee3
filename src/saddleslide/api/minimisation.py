"""`minimize`: an objective as people write it, to a certified gap."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from saddleslide.api.solver import solve
from saddleslide.arrays.kinds import to_host
from saddleslide.domains import Domain
from saddleslide.functions.base import Function
from saddleslide.planner.objectives import split_objective
from saddleslide.runs.result import Result


def minimize(objective: Function, tol: float | None = None, *, over: Domain | None = None, **options: Any) -> Result:
    """Minimise f(x) + sum of h_i(K_i x) over a set, to a certified gap.

    Parameters
    ----------
    objective : Function
        Functions of `ss.functions`, added with `+`, scaled by numbers, composed with operators by `h @ K`.
    tol : float, optional
        Target gap; `rtol` (1e-4 where no target is named) and `reduction` as in `ss.solve`.
    over : Domain, optional
        Set that x lies in; the whole space when missing.
    **options
        All others are those of `ss.solve`.

    Returns
    -------
    Result
        Its `objective` is the value at x, indicators left out (`violation` has the largest distance from their sets),
        `lower` a certified lower bound on the minimum, `duals` has one array per composed term in the order written: a
        subgradient of it at K_i x. `problem` is the saddle problem that was solved; `print(result.problem)` says where
        each term went.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> A, b = np.array([[2.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([1.0, -1.0, 0.5])
    >>> lasso = ss.functions.LeastSquares(A, b) + 0.5 * ss.functions.L1()
    >>> result = ss.minimize(lasso, tol=1e-8)
    >>> result.success, result.x.round(4), round(result.objective, 4)
    (True, array([ 0.4286, -0.4643]), 0.8839)
    """
    stated = split_objective(objective, over)
    result = solve(stated.problem, tol, **options)
    x, y = to_host(result.x), to_host(result.y)
    return replace(
        result,
        objective=stated.value(x),
        violation=stated.violation(x),
        duals=stated.duals(x, y),
        problem=stated.problem,
    )
