"""`minimize`: an objective as people write it, to a certified gap."""

from __future__ import annotations

from dataclasses import replace
from inspect import signature
from typing import Any, cast

import numpy as np

from saddleslide.api.solver import solve
from saddleslide.arrays.base import to_complex, to_real
from saddleslide.arrays.kinds import NUMPY, kind_of, to_host
from saddleslide.certificates.verdict import Status
from saddleslide.domains.base import Domain
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.problem.objectives import Objective, split_objective
from saddleslide.runs.result import Result

# What `solve` takes beside the problem.
_NAMES = tuple(signature(solve).parameters)[1:]


def minimize(
    objective: Function, tol: float | None = None, *, over: Domain | None = None, dtype: Any = None, **options: Any
) -> Result:
    """Minimise f(x) + sum of h_i(K_i x) over a set, to a certified gap.

    Parameters
    ----------
    objective : Function
        Functions of `ss.functions`, added with `+`, scaled by numbers, composed with operators by `h @ K`.
    tol : float, optional
        Target gap; `rtol` (1e-4 where no target is named) and `reduction` as in `ss.solve`.
    over : Domain, optional
        Set that x lies in; the whole space when missing.
    dtype : float or complex, optional
        Numbers of x. When missing, x is complex where an operator, data or the set says so, and real otherwise.
    **options
        All others are those of `ss.solve`; `start` may be an array, a first x.

    Returns
    -------
    Result
        Its `objective` is the value at x, indicators left out. `violation` is the largest distance of a K_i x from
        where its term is finite (the set of an indicator, z >= 0 of an entropy); the term is evaluated at the nearest
        point there. `lower` is a certified lower bound on the minimum, `duals` has one array per composed term in the
        order written: a subgradient of it at K_i x. `problem` is the saddle problem that was solved;
        `print(result.problem)` says where each term went. Where x is complex, `x` is complex and `duals` are where
        K_i x is; `y` and the arrays of `problem` are pairs of real numbers, see `ss.operators.to_real`.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> A, b = np.array([[2.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([1.0, -1.0, 0.5])
    >>> lasso = ss.functions.LeastSquares(A, b) + 0.5 * ss.functions.L1()
    >>> result = ss.minimize(lasso, tol=1e-8)
    >>> result.success, result.x.round(4), round(result.objective, 4)
    (True, array([ 0.4444, -0.2222]), 0.6806)
    """
    if isinstance(tol, Function | Domain):
        write = "minimize(f + g)" if isinstance(tol, Function) else "minimize(f, over=X)"
        raise InputError(f"minimize: tol is {tol!r}; expected a number, the target gap. Write {write}.")
    if unknown := [name for name in options if name not in _NAMES]:
        raise InputError(f"minimize: {unknown[0]} is unknown; expected one of {', '.join(_NAMES)}, over, dtype.")
    stated = split_objective(objective, over, dtype)
    start = options.get("start")
    if isinstance(start, np.ndarray):
        start = options["start"] = (start, stated.problem.start()[1])
    if stated.is_complex and isinstance(start, tuple | list) and len(start) == 2 and np.iscomplexobj(start[0]):
        options["start"] = (to_real(start[0]), start[1])
    if "start" not in options and (known := stated.closed_minimiser()) is not None:
        options["start"] = (known, np.zeros(0))
    return read_back(stated, solve(stated.problem, tol, **options))


def read_back(stated: Objective, result: Result) -> Result:
    """What the result of its saddle problem says of an objective."""
    x, y = to_host(result.x), to_host(result.y)
    if stated.is_complex:
        # A view of NumPy's own; nobody else has the array.
        kind, found = kind_of(result.x), cast(Any, to_complex(x))
        result = replace(result, x=found if kind == NUMPY else kind.upload(found))
    value, violation = stated.judge(x)
    if result.status is Status.INFEASIBLE and (broken := stated.name_broken(x)):
        result = replace(result, detail=f"{result.detail}. This point breaks {', '.join(broken)}")
    return replace(result, objective=value, violation=violation, duals=stated.duals(x, y), problem=stated.problem)
