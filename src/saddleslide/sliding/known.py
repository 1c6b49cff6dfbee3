"""Couplings and domains of known kinds, as compiled loops take them."""

from __future__ import annotations

from typing import Any

import numpy as np

from saddleslide.arrays import Array
from saddleslide.couplings import Coupling, FiniteDifferences, Matrix
from saddleslide.couplings.explicit import rows_of
from saddleslide.domains import Ball, Box, Domain, FullSpace, Simplex
from saddleslide.kernels import kinds

NOTHING = np.zeros(0)
_NO_INDEX = np.zeros(0, dtype=np.uint32)


def known_set(domain: Domain) -> tuple[int, Array, Array, float, Array] | None:
    """A set as compiled loops take it; None where it is of no known kind.

    Examples
    --------
    >>> import saddleslide as ss
    >>> known_set(ss.domains.Ball(2.0, shape=3))[3]
    2.0
    """
    if isinstance(domain, FullSpace):
        return kinds.FULL, NOTHING, NOTHING, 0.0, NOTHING
    if isinstance(domain, Box):
        alike = domain.uniform
        lower, upper = (np.ascontiguousarray(side).ravel() for side in (domain.lower, domain.upper))
        if alike is not None:
            lower, upper = np.array(alike[:1]), np.array(alike[1:])
        return kinds.BOX if alike is None else kinds.INTERVAL, lower, upper, 0.0, NOTHING
    if isinstance(domain, Ball):
        center = NOTHING if domain.center is None else domain.center.ravel()
        return kinds.BALL, NOTHING, NOTHING, domain.ball_radius, center
    return (kinds.SIMPLEX, NOTHING, NOTHING, 0.0, NOTHING) if isinstance(domain, Simplex) else None


def known_coupling(coupling: Coupling) -> tuple[Any, ...] | None:
    """A coupling as compiled loops take it; None where it is of no known kind.

    Examples
    --------
    >>> import saddleslide as ss
    >>> known_coupling(ss.couplings.FiniteDifferences((4, 5)))[1:3]
    (4, 5)
    """
    no_sparse = (NOTHING, _NO_INDEX, _NO_INDEX)
    no_matrix = np.zeros((0, 0))
    if isinstance(coupling, FiniteDifferences):
        return kinds.DIFFERENCES, *coupling.x_shape, no_matrix, *no_sparse, *no_sparse
    if not isinstance(coupling, Matrix):
        return None
    if not coupling.sparse:
        return kinds.DENSE, *coupling.matrix.shape, coupling.matrix, *no_sparse, *no_sparse
    if coupling.matrix.indices.dtype != np.int32:
        # More than 2^31 entries.
        return None
    rows, columns = rows_of(coupling.matrix), rows_of(coupling.transpose)
    return kinds.SPARSE, *coupling.matrix.shape, no_matrix, *rows, *columns
