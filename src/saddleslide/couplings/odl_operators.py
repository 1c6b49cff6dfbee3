"""Operators of ODL: arrays keep the shape of its spaces, and the weights of its inner products are taken out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saddleslide.arrays import Array, Shape
from saddleslide.errors import InputError, MissingAdjointError


def is_odl(operator: Any) -> bool:
    """Whether something is an operator between spaces, as ODL has them; ODL itself is not imported.

    Examples
    --------
    >>> is_odl([[1.0]])
    False
    """
    return callable(operator) and all(hasattr(operator, name) for name in ("domain", "range", "is_linear"))


def odl_products(operator: Any) -> tuple[Any, Any, Shape, Shape]:
    """Forward product, transposed product and the shapes of x and y.

    ODL's adjoint belongs to the inner products <u, v> = sum w u v of its spaces. The transpose is w_x adjoint(y / w_y).
    """
    if not operator.is_linear:
        raise InputError(f"B: {type(operator).__name__} is not linear; expected a linear operator.")
    try:
        adjoint = operator.adjoint
    except NotImplementedError as missing:
        raise MissingAdjointError(
            f"B: {type(operator).__name__} has no adjoint; expected an operator with its adjoint."
        ) from missing
    x_shape, y_shape = _shape(operator.domain), _shape(operator.range)
    w_x, w_y = _weights(operator.domain), _weights(operator.range)

    def forward(x: Array) -> Any:
        return operator(operator.domain.element(x.reshape(x_shape))).asarray()

    def transpose(y: Array) -> Any:
        return w_x * adjoint(operator.range.element(y.reshape(y_shape) / w_y)).asarray()

    return forward, transpose, x_shape, y_shape


def _shape(space: Any) -> Shape:
    shape = tuple(int(n) for n in space.shape)
    if math.prod(shape) != space.size:
        raise InputError(f"B: {space!r} joins spaces of different shapes; expected one array, or a power of one space.")
    return shape


def _weights(space: Any) -> Any:
    """The w of the inner product: a number, or an array that broadcasts to the space."""
    parts = [_weights(part) for part in space] if _is_power(space) else [1.0]
    weighting = getattr(space, "weighting", None)
    own = getattr(weighting, "const", None)
    if own is None:
        own = getattr(weighting, "array", None)
    if own is None:
        raise InputError(f"B: {space!r} has an inner product without weights; expected constants or an array.")
    if not _is_power(space):
        return np.asarray(own, dtype=np.float64)
    each = np.broadcast_to(np.asarray(own, dtype=np.float64), (len(parts),))
    shape = _shape(space)[1:]
    return np.stack([np.broadcast_to(weight * part, shape) for weight, part in zip(each, parts, strict=True)])


def _is_power(space: Any) -> bool:
    return bool(getattr(space, "is_power_space", False))
