"""Operators of ODL: arrays keep the shape of its spaces, and the weights of its inner products are taken out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saddleslide.arrays.base import Array, Shape
from saddleslide.errors import InputError, MissingAdjointError


def is_odl(operator: Any) -> bool:
    """Whether something is an operator between spaces, as ODL has them; ODL itself is not imported."""
    return callable(operator) and all(hasattr(operator, name) for name in ("domain", "range", "is_linear"))


def odl_products(operator: Any, name: str = "B") -> tuple[Any, Any, Shape, Shape]:
    """Forward product, transposed product and the shapes of x and y.

    ODL's adjoint belongs to the inner products <u, v> = sum w u v of its spaces: the transpose is w_x adjoint(y / w_y).
    Some of its operators forget the weights, so the one that fits is found by products with one random pair.
    """
    if not operator.is_linear:
        raise InputError(f"{name}: {type(operator).__name__} is not linear; expected a linear operator.")
    try:
        adjoint = operator.adjoint
    except NotImplementedError as missing:
        raise MissingAdjointError(
            f"{name}: {type(operator).__name__} has no adjoint; expected an operator with its adjoint."
        ) from missing
    x_shape, y_shape = _shape(operator.domain, name), _shape(operator.range, name)
    w_x, w_y = _weights(operator.domain, name), _weights(operator.range, name)

    def forward(x: Array) -> Any:
        return operator(operator.domain.element(x.reshape(x_shape))).asarray()

    def plain(y: Array) -> Any:
        return adjoint(operator.range.element(y.reshape(y_shape))).asarray()

    def weighted(y: Array) -> Any:
        return w_x * plain(y.reshape(y_shape) / w_y)

    if w_x.size == w_y.size == 1 and float(w_x) == float(w_y):
        return forward, plain, x_shape, y_shape
    fits = [each for each in (weighted, plain) if _fits(forward, each, x_shape, y_shape)]
    if not fits:
        raise InputError(
            f"{name}: the adjoint of {type(operator).__name__} is not its transpose, with or without the weights of "
            "its spaces; expected one of both."
        )
    return forward, fits[0], x_shape, y_shape


def _fits(forward: Any, transpose: Any, x_shape: Shape, y_shape: Shape) -> bool:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(x_shape), rng.standard_normal(y_shape)
    Bx = forward(x)
    # A y that leans towards Bx: an independent one may be orthogonal to it and hide a wrong scale.
    y += float(np.linalg.norm(y)) / max(float(np.linalg.norm(Bx)), 1e-300) * Bx
    left, right = float(np.vdot(Bx, y)), float(np.vdot(x, transpose(y)))
    return abs(left - right) <= 1e-5 * max(abs(left), abs(right))


def _shape(space: Any, name: str) -> Shape:
    shape = tuple(int(n) for n in space.shape)
    if math.prod(shape) != space.size or not getattr(space, "is_power_space", True):
        raise InputError(
            f"{name}: {space!r} joins spaces of different shapes; expected one array, or a power of one space."
        )
    return shape


def _weights(space: Any, name: str) -> Any:
    """The w of the inner product: a number, or an array that broadcasts to the space."""
    parts = [_weights(part, name) for part in space] if _is_power(space) else [1.0]
    weighting = getattr(space, "weighting", None)
    own = getattr(weighting, "const", None)
    if own is None:
        own = getattr(weighting, "array", None)
    if own is None:
        raise InputError(f"{name}: {space!r} has an inner product without weights; expected constants or an array.")
    if not _is_power(space):
        return np.asarray(own, dtype=np.float64)
    each = np.broadcast_to(np.asarray(own, dtype=np.float64), (len(parts),))
    shape = _shape(space, name)[1:]
    return np.stack([np.broadcast_to(weight * part, shape) for weight, part in zip(each, parts, strict=True)])


def _is_power(space: Any) -> bool:
    return bool(getattr(space, "is_power_space", False))
