"""Couplings, domains, simple terms and norms of known kinds, as compiled loops take them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from saddleslide.domains.entrywise import Box, FullSpace
from saddleslide.domains.norms import Ball
from saddleslide.domains.simplices import Simplex
from saddleslide.kernels import arguments
from saddleslide.kernels.arguments import Blocks, Curve, Dense, Differences, KnownSet, KnownTerm, Parts, Rows, Sparse
from saddleslide.metrics.base import Entrywise
from saddleslide.operators.explicit import Matrix, rows_of
from saddleslide.operators.structured import FiniteDifferences

if TYPE_CHECKING:
    from saddleslide.arrays.base import Array, Shape
    from saddleslide.domains.base import Domain
    from saddleslide.functions.base import Function
    from saddleslide.functions.separable import SeparableForm
    from saddleslide.methods.sliding.view import View
    from saddleslide.metrics.base import Metric
    from saddleslide.operators.base import Operator

NOTHING = np.zeros(0)


def known_blocks(view: View) -> Blocks | None:
    """Sets and simple terms of both blocks; None where one is of no known kind."""
    problem = view.problem
    if view.norms[1] is not None or not view.is_direct:
        return None
    X, Y = known_set(problem.X), known_set(problem.Y)
    f, g = known_term(view.f_simple, problem.X, view.norms[0]), known_term(view.g_simple, problem.Y)
    if X is None or Y is None or f is None or g is None:
        return None
    return Blocks(problem.X.size, X, Y, f, g)


def known_parts(view: View) -> Parts | None:
    """All that compiled loops of a coupling's level take along; None where something is of no known kind."""
    blocks, coupling = known_blocks(view), known_operator(view.problem.coupling)
    inverse = known_inverse(view.norms[0], view.problem.X)
    return None if blocks is None or coupling is None or inverse is None else Parts(*blocks, inverse, coupling)


def known_set(domain: Domain) -> KnownSet | None:
    """A set as compiled loops take it; None where it is of no known kind."""
    if isinstance(domain, FullSpace):
        return KnownSet(arguments.FULL, NOTHING, NOTHING, 0.0, NOTHING)
    if isinstance(domain, Box):
        alike = domain.uniform
        lower, upper = (np.ascontiguousarray(side).ravel() for side in (domain.lower, domain.upper))
        if alike is not None:
            lower, upper = np.array(alike[:1]), np.array(alike[1:])
        return KnownSet(arguments.BOX if alike is None else arguments.INTERVAL, lower, upper, 0.0, NOTHING)
    if isinstance(domain, Ball):
        center = NOTHING if domain.center is None else domain.center.ravel()
        return KnownSet(arguments.BALL, NOTHING, NOTHING, domain.ball_radius, center)
    is_unit = isinstance(domain, Simplex) and domain.scale == 1.0
    return KnownSet(arguments.SIMPLEX, NOTHING, NOTHING, 0.0, NOTHING) if is_unit else None


def known_operator(coupling: Operator) -> Dense | Sparse | Differences | None:
    """A coupling as compiled loops take it; None where it is of no known kind."""
    if isinstance(coupling, FiniteDifferences):
        return Differences(*coupling.x_shape) if coupling.is_picture else None
    if not isinstance(coupling, Matrix):
        return None
    if not coupling.sparse:
        return Dense(coupling.matrix)
    if coupling.matrix.indices.dtype != np.int32:
        # More than 2^31 entries.
        return None
    return Sparse(Rows(*rows_of(coupling.matrix)), Rows(*rows_of(coupling.transpose)))


def _bends(form: SeparableForm) -> tuple[Array | float, Array | float] | None:
    """Weights of |x| and of |x|^(3/2) / (3/2), numbers or arrays; None where anything else bends the form."""
    if form.hubers or any(nu not in (0.0, 0.5) for _, nu in form.powers):
        return None
    weights: list[Array | float] = [0.0, 0.0]
    for weight, nu in form.powers:
        weights[int(2.0 * nu)] = weights[int(2.0 * nu)] + weight
    return weights[0], weights[1]


def known_curve(form: SeparableForm) -> Curve | None:
    """Weights of |x| and of |x|^(3/2) / (3/2), the same for all entries; None where anything else bends the form."""
    weights = _bends(form)
    return None if weights is None or any(map(np.ndim, weights)) else Curve(*map(float, weights))


def known_term(term: Function, domain: Domain, metric: Metric | None = None) -> KnownTerm | None:
    """A simple term in the norm of a metric, as compiled loops take it; None where it is of no known kind."""
    form = term.separable_form()
    curve = None if form is None else _bends(form)
    if form is None or curve is None or not (form.isotropic or isinstance(domain, Box | FullSpace)):
        return None
    entries = metric.symbol if isinstance(metric, Entrywise) else 1.0
    linear = NOTHING if not np.any(form.linear) else spread(form.linear / entries, domain.shape)
    shape = [np.asarray(np.divide(part, entries), dtype=np.float64) for part in (form.quadratic, *curve)]
    if not any(np.any(part) for part in shape):
        return KnownTerm(arguments.NO_TERM, NOTHING, NOTHING, NOTHING, linear)
    alike = all(part.ndim == 0 for part in shape)
    stiffness, threshold, root = (part.reshape(1) if alike else spread(part, domain.shape) for part in shape)
    return KnownTerm(arguments.ALIKE if alike else arguments.ENTRIES, stiffness, threshold, root, linear)


def known_inverse(metric: Metric | None, domain: Domain) -> Array | None:
    """Entries of P^-1, none of them where P is the identity; None where P mixes entries."""
    if metric is None:
        return NOTHING
    return spread(np.divide(1.0, metric.symbol), domain.shape) if isinstance(metric, Entrywise) else None


def spread(value: Array | float, shape: Shape) -> Array:
    """One number for every entry, flat."""
    return np.ascontiguousarray(np.broadcast_to(value, shape), dtype=np.float64).reshape(-1)
