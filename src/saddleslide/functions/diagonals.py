"""The diagonal of a Hessian, where it can be read off without any call."""

from __future__ import annotations

import numpy as np
import scipy

from saddleslide.arrays.base import Array, Shape
from saddleslide.functions.base import Function, Scaled, Sum, is_ours
from saddleslide.functions.lifted import LinearModel
from saddleslide.functions.quadratic import Quadratic
from saddleslide.operators import ForeignMatrix, Matrix

# Smallest weight relative to the largest: an entry that f hardly sees is moved by the coupling.
_FLOOR = 1e-4


def hessian_diagonal(f: Function, shape: Shape) -> Array | None:
    """Diagonal of f'' at 0, kept above a floor; None where f does not show it.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> hessian_diagonal(ss.functions.LeastSquares(np.diag([1.0, 3.0]), np.zeros(2)), (2,))
    array([1., 9.])
    """
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
