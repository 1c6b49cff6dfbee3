"""Couplings, domains, simple terms and norms of known kinds, as compiled loops take them."""

from __future__ import annotations

from typing import Any

import numpy as np

from saddleslide.arrays import Array
from saddleslide.couplings import Coupling, FiniteDifferences, Matrix
from saddleslide.couplings.explicit import rows_of
from saddleslide.domains import Ball, Box, Domain, FullSpace, Simplex
from saddleslide.functions import Function
from saddleslide.functions.separable import SeparableForm
from saddleslide.kernels import kinds
from saddleslide.metrics import Entrywise, Metric

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


def _bends(form: SeparableForm) -> tuple[Array | float, Array | float] | None:
    """Weights of |x| and of |x|^(3/2) / (3/2), numbers or arrays; None where anything else bends the form."""
    if form.hubers or any(nu not in (0.0, 0.5) for _, nu in form.powers):
        return None
    weights: list[Array | float] = [0.0, 0.0]
    for weight, nu in form.powers:
        weights[int(2.0 * nu)] = weights[int(2.0 * nu)] + weight
    return weights[0], weights[1]


def known_term(
    term: Function, domain: Domain, metric: Metric | None = None
) -> tuple[int, Array, Array, Array, Array] | None:
    """A simple term in the norm of a metric, as compiled loops take it; None where it is of no known kind.

    Examples
    --------
    >>> import saddleslide as ss
    >>> known_term(3.0 * ss.functions.Power(0.0), ss.domains.FullSpace(2))[2]
    array([3.])
    """
    form = term.separable_form()
    curve = None if form is None else _bends(form)
    if form is None or curve is None or not (form.isotropic or isinstance(domain, Box | FullSpace)):
        return None
    entries = metric.symbol if isinstance(metric, Entrywise) else 1.0
    linear = NOTHING if not np.any(form.linear) else _spread(form.linear / entries, domain)
    shape = [np.asarray(np.divide(part, entries), dtype=np.float64) for part in (form.quadratic, *curve)]
    if not any(np.any(part) for part in shape):
        return kinds.NO_TERM, NOTHING, NOTHING, NOTHING, linear
    alike = all(part.ndim == 0 for part in shape)
    stiffness, threshold, root = (part.reshape(1) if alike else _spread(part, domain) for part in shape)
    return kinds.ALIKE if alike else kinds.ENTRIES, stiffness, threshold, root, linear


def known_inverse(metric: Metric | None, domain: Domain) -> Array | None:
    """Entries of P^-1, none of them where P is the identity; None where P mixes entries.

    Examples
    --------
    >>> import saddleslide as ss
    >>> known_inverse(ss.metrics.Diagonal([1.0, 4.0]), ss.domains.FullSpace(2)).tolist()
    [1.0, 0.25]
    """
    if metric is None:
        return NOTHING
    return _spread(np.divide(1.0, metric.symbol), domain) if isinstance(metric, Entrywise) else None


def _spread(value: Array | float, domain: Domain) -> Array:
    return np.ascontiguousarray(np.broadcast_to(value, domain.shape), dtype=np.float64).reshape(-1)
