"""A problem that is already there, with its f on a cluster."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any

from saddleslide.distributed.consensus import consensus
from saddleslide.distributed.dask_sum import DaskSum
from saddleslide.distributed.engine import check_client
from saddleslide.distributed.loaders import row_blocks
from saddleslide.errors import InputError
from saddleslide.functions import Blockwise
from saddleslide.gallery.consensus import ConsensusSolution
from saddleslide.problem import SaddleProblem


def spread(problem: SaddleProblem, client: Any, parts: int = 8) -> SaddleProblem:
    """The same problem with the rows of f = loss(Ax), or the agents of a consensus problem, on a cluster's workers.

    Parameters
    ----------
    problem : SaddleProblem
        With f a loss of Ax for a matrix A (LeastSquares, Logistic, PoissonTransmission), or from
        `ss.gallery.consensus`.
    client : distributed.Client
        Of the cluster.
    parts : int, optional
        Blocks of rows. The bits of a run depend on them, and not on the workers.

    Returns
    -------
    SaddleProblem
        With the same reader: `problem.read(result)` speaks as before.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> problem = ss.gallery.lp_inverse(np.eye(6), np.arange(6.0), weight=0.5, p=3.0)
    >>> with ss.distributed.local(workers=1) as client:
    ...     ss.solve(ss.distributed.spread(problem, client, parts=3), tol=0.1).success
    True
    """
    check_client(client, "spread")
    if not isinstance(problem, SaddleProblem):
        raise InputError(f"spread: received {type(problem).__name__}; expected a SaddleProblem.")
    if isinstance(parts, bool) or not isinstance(parts, Integral):
        raise InputError(f"spread: parts is {parts!r}; expected a whole number >= 1.")
    if isinstance(problem.f, Blockwise):
        return _as_agents(problem, client)
    f = DaskSum(client, row_blocks(problem.f, int(parts)), shape=problem.X.shape)
    return replace(problem, f=f, B=problem.coupling)


def _as_agents(problem: SaddleProblem, client: Any) -> SaddleProblem:
    """The agents of `ss.gallery.consensus`, each on a worker; graph and bound are those of the problem."""
    reader, f = problem.reader, problem.f
    if not isinstance(f, Blockwise) or not isinstance(reader, partial) or reader.func is not ConsensusSolution:
        raise InputError("spread: f is a sum over blocks; expected a problem of ss.gallery.consensus.")
    _, W, around = reader.args
    return consensus(client, f.functions, W, bound=around.radius)
