"""Operators of what others make: LinearOperators, PyLops, ODL, callables, complex matrices, other libraries' arrays."""

from __future__ import annotations

import math
from copy import copy
from typing import Any

import numpy as np
import scipy

from saddleslide import operators
from saddleslide.arrays.base import Array, Shape, length_of
from saddleslide.arrays.kinds import NUMPY, ArrayKind, kind_of
from saddleslide.errors import InputError, MissingAdjointError
from saddleslide.operators.base import COMPLEX, REAL, Operator
from saddleslide.operators.complex import Sides, pair_matrix, pair_products, sides_of
from saddleslide.operators.explicit import ForeignMatrix, Matrix, Product, Products, check_sizes
from saddleslide.operators.sparse import check_sparse

# A LinearOperator subclass must override one of these to have an adjoint.
_ADJOINT_PARTS = ("_rmatvec", "_rmatmat", "_adjoint")


def adapt(
    B: Any, x_shape: Shape | None, y_shape: Shape | None, kind: ArrayKind, name: str, said: tuple[bool, bool] | None
) -> Operator:
    """An Operator of what is neither one nor a real matrix of NumPy or SciPy."""
    if isinstance(B, tuple | list) and len(B) == 2 and all(callable(part) for part in B):
        if x_shape is None or y_shape is None:
            raise InputError(
                f"{name}: a pair of callables has no shapes; pass x_shape= and y_shape= to ss.operators.as_operator. "
                "Beside data, as in LeastSquares(pair, b, x_shape=...), x_shape= is enough."
            )
        sides = Sides(*(said or (False, False)), x_shape, y_shape)
        if sides.any and kind != NUMPY:
            raise InputError(f"{name}: dtype is complex beside like={kind}; expected callables on NumPy arrays.")
        return _products(B[0], B[1], sides, x_shape, y_shape, name, kind)
    if isinstance(B, tuple | list) and B and all(_is_linear_map(part) for part in B):
        dtype = None if said is None else tuple(complex if pairs else float for pairs in said)
        parts = [operators.as_operator(part, x_shape, y_shape, name=name, dtype=dtype) for part in B]
        return parts[0] if len(parts) == 1 else operators.Sum(*parts)
    if hasattr(B, "matvec") and hasattr(B, "shape"):
        return _from_linear_operator(B, x_shape, y_shape, name, said)
    if is_odl(B):
        _refuse_complex(said, name, "an ODL operator")
        return _from_odl(B, x_shape, y_shape, name)
    if kind_of(B) != NUMPY and B.ndim == 2:
        _refuse_complex(said, name, f"a matrix of {kind_of(B).library}")
        return ForeignMatrix(B, x_shape, y_shape, name)
    if callable(B) and not hasattr(B, "__array__"):
        raise MissingAdjointError(
            f"{name}: received one callable; expected a pair (forward, adjoint), with x_shape= and y_shape=. "
            "The method needs products with it and with its transpose. A function of x is made by "
            "ss.functions.from_callable."
        )
    if not scipy.sparse.issparse(B) and kind_of(B) == NUMPY:
        try:
            array = B if isinstance(B, np.ndarray) else np.asarray(B)
        except ValueError:
            return Matrix(B, x_shape, y_shape, name)
        if array.dtype.kind != "c" and not any(said or ()):
            # As it came: lists may hold masked rows, which are refused.
            return Matrix(B, x_shape, y_shape, name)
        B = array
    return _from_matrix(B, x_shape, y_shape, name, said)


def _is_linear_map(part: Any) -> bool:
    """Whether it is one of several couplings that were given in a list: an operator or a matrix, no row of one."""
    return isinstance(part, Operator) or hasattr(part, "matvec") or getattr(part, "ndim", 0) == 2


def _refuse_complex(said: tuple[bool, bool] | None, name: str, what: str) -> None:
    if said is not None and any(said):
        raise InputError(f"{name}: dtype is complex; expected real numbers for {what}. Pass a NumPy or SciPy matrix.")


def _from_matrix(
    matrix: Any, x_shape: Shape | None, y_shape: Shape | None, name: str, said: tuple[bool, bool] | None
) -> Operator:
    is_complex = getattr(getattr(matrix, "dtype", None), "kind", "") == "c"
    if (not is_complex and (said is None or not any(said))) or len(matrix.shape) != 2:
        return Matrix(matrix, x_shape, y_shape, name)
    if scipy.sparse.issparse(matrix):
        if not isinstance(getattr(matrix, "data", None), np.ndarray) or matrix.data.dtype.kind not in "biufc":
            raise InputError(f"{name}: received a complex {matrix.format} matrix; expected other rows. Pass .tocsr().")
        # Entries outside are looked for before SciPy converts anything.
        places = copy(matrix)
        places.data = np.ascontiguousarray(matrix.data.real)
        check_sparse(places, name)
        matrix = matrix.tocsr()
    sides = sides_of(matrix.dtype, matrix.shape, x_shape, y_shape, said, name)
    shapes = sides.real_shapes(*check_sizes(matrix.shape, sides.x_shape, sides.y_shape, name))
    return _with_dtypes(Matrix(pair_matrix(matrix, sides, name), *shapes, name), sides)


def _with_dtypes(operator: Operator, sides: Sides) -> Operator:
    if sides.any:
        operator.x_dtype, operator.y_dtype = (COMPLEX if pairs else REAL for pairs in sides[:2])
    return operator


def _products(
    forward: Product, adjoint: Product, sides: Sides, x_shape: Shape, y_shape: Shape, name: str,
    kind: ArrayKind = NUMPY,
) -> Operator:  # fmt: skip
    """Products of code on real or complex arrays of these shapes."""
    if not sides.any:
        return Products(forward, adjoint, x_shape, y_shape, kind, name)
    pair = pair_products(forward, adjoint, sides)
    return _with_dtypes(Products(*pair, *sides.real_shapes(x_shape, y_shape), kind, name), sides)


def _from_linear_operator(
    operator: Any, x_shape: Shape | None, y_shape: Shape | None, name: str, said: tuple[bool, bool] | None
) -> Operator:
    if not callable(getattr(operator, "rmatvec", None)) or _lacks_rmatvec(operator):
        raise MissingAdjointError(
            f"{name}: {type(operator).__name__} of shape {operator.shape} has no rmatvec; expected "
            "an operator with its adjoint. Pass rmatvec= when building it."
        )
    sides = sides_of(getattr(operator, "dtype", None), operator.shape, x_shape, y_shape, said, name)
    x_shape, y_shape = check_sizes(operator.shape, *_with_dims(operator, sides), name)

    def forward(x: Any) -> Any:
        return np.reshape(operator.matvec(x.ravel()), y_shape)

    def adjoint(y: Any) -> Any:
        return np.reshape(operator.rmatvec(y.ravel()), x_shape)

    return _products(forward, adjoint, sides, x_shape, y_shape, name)


def _with_dims(operator: Any, sides: Sides) -> tuple[Shape | None, Shape | None]:
    """Shapes that are not given, from the `dims` of PyLops; a flat shape that is given says that all are to be flat."""
    rows, columns = operator.shape
    given = [sides.x_shape, sides.y_shape]
    own = [_dims(operator, "dims", columns), _dims(operator, "dimsd", rows)]
    if None in own or any(shape is not None and len(shape) == 1 for shape in given):
        return sides.x_shape, sides.y_shape
    return given[0] or own[0], given[1] or own[1]


def _dims(operator: Any, attribute: str, size: int) -> Shape | None:
    """A shape as PyLops keeps it, or None where it is none of this size."""
    try:
        shape = tuple(int(n) for n in getattr(operator, attribute))
    except (AttributeError, TypeError, ValueError):
        return None
    return shape if shape and math.prod(shape) == size else None


def _lacks_rmatvec(operator: Any) -> bool:
    """SciPy's callable-based LinearOperator always has the method; the callable behind it may be None.

    Sums, products, multiples and transposes of operators lack it when one of their `args` does.
    """
    if any(_lacks_rmatvec(part) for part in getattr(operator, "args", ()) if hasattr(part, "matvec")):
        return True
    # The attributes in which SciPy's LinearOperator and PyLops' FunctionOperator keep the adjoint callable.
    for name in ("_CustomLinearOperator__rmatvec_impl", "fc"):
        if hasattr(operator, name):
            return getattr(operator, name) is None
    plain = scipy.sparse.linalg.LinearOperator
    inherited = [getattr(type(operator), part, None) is getattr(plain, part) for part in _ADJOINT_PARTS]
    return isinstance(operator, plain) and all(inherited)


def is_odl(operator: Any) -> bool:
    """Whether something is an operator between spaces, as ODL has them; ODL itself is not imported."""
    return callable(operator) and all(hasattr(operator, name) for name in ("domain", "range", "is_linear"))


def _from_odl(operator: Any, x_shape: Shape | None, y_shape: Shape | None, name: str) -> Operator:
    """Arrays keep the shape of ODL's spaces, and the weights of its inner products are taken out.

    Its adjoint belongs to the inner products <u, v> = sum w u v of the spaces: the transpose is w_x adjoint(y / w_y).
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
    own_x, own_y = _odl_shape(operator.domain, name), _odl_shape(operator.range, name)
    w_x, w_y = _odl_weights(operator.domain, name), _odl_weights(operator.range, name)

    def forward(x: Array) -> Any:
        return operator(operator.domain.element(x.reshape(own_x))).asarray()

    def plain(y: Array) -> Any:
        return adjoint(operator.range.element(y.reshape(own_y))).asarray()

    def weigh(y: Array) -> Any:
        return w_x * plain(y.reshape(own_y) / w_y)

    transposes: list[Product] = [plain]
    if not (w_x.size == w_y.size == 1 and float(w_x) == float(w_y)):
        rng = np.random.default_rng(0)
        x, y = rng.standard_normal(own_x), rng.standard_normal(own_y)
        Bx = forward(x)
        # A y that leans towards Bx: an independent one may be orthogonal to it and hide a wrong scale.
        y += length_of(y) / max(length_of(Bx), 1e-300) * Bx
        pairs = [(each, float(np.vdot(Bx, y)), float(np.vdot(x, each(y)))) for each in (weigh, plain)]
        transposes = [each for each, left, right in pairs if abs(left - right) <= 1e-5 * max(abs(left), abs(right))]
    if not transposes:
        raise InputError(
            f"{name}: the adjoint of {type(operator).__name__} is not its transpose, with or without the weights of "
            "its spaces; expected one of both."
        )
    # An image and its ravel are the same vector: the shapes asked for win over the spaces' own.
    shapes = check_sizes((math.prod(own_y), math.prod(own_x)), x_shape or own_x, y_shape or own_y, name)
    shaped = (lambda x: np.reshape(forward(x), shapes[1]), lambda y: np.reshape(transposes[0](y), shapes[0]))
    return Products(*shaped, *shapes, name=name)


def _odl_shape(space: Any, name: str) -> Shape:
    shape = tuple(int(n) for n in space.shape)
    if math.prod(shape) != space.size or not getattr(space, "is_power_space", True):
        raise InputError(
            f"{name}: {space!r} joins spaces of different shapes; expected one array, or a power of one space."
        )
    return shape


def _odl_weights(space: Any, name: str) -> Any:
    """The w of the inner product: a number, or an array that broadcasts to the space."""
    power = bool(getattr(space, "is_power_space", False))
    parts = [_odl_weights(part, name) for part in space] if power else []
    weighting = getattr(space, "weighting", None)
    own = getattr(weighting, "const", None)
    if own is None:
        own = getattr(weighting, "array", None)
    if own is None:
        raise InputError(f"{name}: {space!r} has an inner product without weights; expected constants or an array.")
    own = np.asarray(own, dtype=np.float64)
    if not power:
        return own
    each, shape = np.broadcast_to(own, (len(parts),)), _odl_shape(space, name)[1:]
    return np.stack([np.broadcast_to(weight * part, shape) for weight, part in zip(each, parts, strict=True)])
