"""What is known of a function without a product: to decide what does not need more, no norm is bounded."""

from __future__ import annotations

import numpy as np
import scipy

from saddleslide.arrays.base import Array, Shape
from saddleslide.domains import Domain
from saddleslide.errors import InputError
from saddleslide.functions.base import Function, Scaled, Sum, is_ours
from saddleslide.functions.lifted import LinearModel
from saddleslide.functions.losses import PoissonTransmission
from saddleslide.functions.quadratic import Quadratic
from saddleslide.operators import ForeignMatrix, Matrix
from saddleslide.theory.holder import Holder

# Smallest weight relative to the largest: an entry that f hardly sees is moved by the coupling.
_FLOOR = 1e-4


def takes_products(function: Function) -> bool:
    """Whether constants of the function take products with the caller's code to find out.

    It does not matter whether they have been found out before: a second solve decides as the first one did.
    """
    return any(not operator.norm_at_hand for operator, _ in function.operators)


def smoothness_at_hand(function: Function, domain: Domain) -> Holder | None:
    """The Hölder condition of the gradient, where it takes no products; None where it does, or there is none."""
    if takes_products(function):
        return None
    try:
        return function.smoothness(domain)
    except InputError:
        return None


def exponent(function: Function, domain: Domain) -> float:
    """The Hölder exponent of the gradient: 1 of any function of a linear image of ours, whatever the norm of that map.

    Raises what `smoothness` raises.
    """
    if not takes_products(function):
        return function.smoothness(domain).nu
    if is_ours(function, Sum):
        return min(exponent(part, domain) for part in function.parts)
    if is_ours(function, Scaled):
        return exponent(function.function, domain)
    if isinstance(function, PoissonTransmission) and not domain.bounded:
        raise InputError("PoissonTransmission: its curvature is unbounded on this domain; expected a bounded one.")
    return 1.0 if is_ours(function, LinearModel) or function.quadratic else function.smoothness(domain).nu


def hessian_diagonal(f: Function, shape: Shape) -> Array | None:
    """Diagonal of f'' at 0, kept above a floor; None where f does not show it."""
    found = _diagonal(f, shape)
    if found is None or not np.all(np.isfinite(found)) or not np.any(found > 0.0):
        return None
    return np.maximum(found, _FLOOR * float(found.max())).reshape(shape)


def _diagonal(f: Function, shape: Shape) -> Array | None:
    if is_ours(f, Sum):
        known = [part for part in (_diagonal(part, shape) for part in f.parts) if part is not None]
        return np.sum(known, axis=0) if len(known) == len(f.parts) else None
    if is_ours(f, Scaled):
        inside = _diagonal(f.function, shape)
        return None if inside is None else f.factor * inside
    if is_ours(f, LinearModel) and isinstance(f.A, Matrix | ForeignMatrix):
        weights = f.loss_hessian(np.zeros(f.A.y_shape)).ravel()
        A = f.A.entries
        squares = A.multiply(A) if scipy.sparse.issparse(A) else np.square(A)
        return np.asarray(squares.T @ weights).ravel() + f.ridge
    form = f.separable_form()
    if form is not None and not form.curved:
        return np.broadcast_to(np.asarray(form.quadratic, dtype=np.float64), shape).ravel()
    if is_ours(f, Quadratic):
        return f.matrix_diagonal()
    return None
