"""Operators from what users have: matrices of any library, LinearOperators, pairs of callables."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Any, TypeAlias, final

import numpy as np
import scipy

from saddleslide.arrays.base import Array, Shape, as_number, as_real, as_shape, on_host, receive
from saddleslide.arrays.kinds import NUMPY, ArrayKind, as_kind, kind_of
from saddleslide.arrays.remote.products import SPARSE, sparse_product
from saddleslide.errors import InputError, MissingAdjointError
from saddleslide.kernels.switch import jit_enabled, load
from saddleslide.operators.base import COMPLEX, REAL, Operator
from saddleslide.operators.complex import Sides, pair_matrix, pair_products, read_dtype, sides_of
from saddleslide.operators.sparse import (
    AlikeRows,
    SparseRows,
    check_sparse,
    flat,
    passes_of,
    read_sparse,
    with_small_indices,
)
from saddleslide.operators.spectrum import DECLARED, NormBound, may_be_dense, summation_error

# Four dense rows of so many columns fill a cache of 1 MB, where they are until they are read again.
_CACHED_COLUMNS = 2**15
# Longest side of a sparse matrix whose factorisation is worth its cost.
_LONG = 4000
# A LinearOperator subclass must override one of these to have an adjoint.
_ADJOINT_PARTS = ("_rmatvec", "_rmatmat", "_adjoint")
_Product: TypeAlias = Callable[[Any], Any]


@final
class Matrix(Operator):
    """A dense or sparse matrix acting on raveled arrays.

    Examples
    --------
    >>> import numpy as np
    >>> Matrix(np.eye(4), x_shape=(2, 2), y_shape=(4,)).forward(np.ones((2, 2)))
    array([1., 1., 1., 1.])
    """

    def __init__(
        self, matrix: Any, x_shape: Shape | None = None, y_shape: Shape | None = None, name: str = "B"
    ) -> None:
        self.sparse = scipy.sparse.issparse(matrix)
        read: Any = read_sparse if self.sparse else as_real
        self.matrix = read(matrix, name)
        if self.matrix.ndim != 2:
            dimensions = f"{self.matrix.ndim} dimensions, shape {self.matrix.shape}"
            raise InputError(f"{name}: received an array of {dimensions}; expected a matrix.")
        self.x_shape, self.y_shape = _check_sizes(self.matrix.shape, x_shape, y_shape, name)
        # A stored transpose makes the sparse adjoint a row-wise product too.
        self.transpose = with_small_indices(self.matrix.T.tocsr()) if self.sparse else self.matrix.T

    def __repr__(self) -> str:
        return f"Matrix({'sparse' if self.sparse else 'dense'}, {self.x_shape} -> {self.y_shape})"

    def stays_on_host(self, kind: ArrayKind) -> tuple[str, ...]:
        return ("sparse matrix: SciPy products",) if self.sparse and kind.library not in SPARSE else ()

    @property
    def entries(self) -> Any:
        """The numbers of the matrix: an array, or SciPy's sparse rows."""
        return self.matrix

    @property
    def entry_count(self) -> int:
        """Number of stored entries."""
        return int(self.matrix.nnz if self.sparse else self.matrix.size)

    @cached_property
    def _rows(self) -> AlikeRows | SparseRows:
        """The matrix as compiled passes take it."""
        return passes_of(self.matrix)

    @cached_property
    def _columns(self) -> AlikeRows | SparseRows:
        """The transpose as compiled passes take it."""
        return passes_of(self.transpose)

    @property
    def _is_compiled(self) -> bool:
        return self.sparse and jit_enabled() and self.matrix.indices.dtype == np.int32

    def forward(self, x: Array, out: Array | None = None) -> Array:
        if self._is_compiled and on_host(x):
            return self._rows.product(x, self.y_shape, out)
        return self._product(self.matrix, x, self.y_shape, out)

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        if self._is_compiled and on_host(y):
            return self._columns.product(y, self.x_shape, out)
        return self._product(self.transpose, y, self.x_shape, out)

    def _product(self, matrix: Any, v: Array, shape: Shape, out: Array | None) -> Array:
        """The product where v lies: a dense matrix is kept there, and a sparse one where the library has such."""
        vector: Any = v.ravel()
        if on_host(v) and out is not None and not self.sparse and out.flags.c_contiguous:
            np.dot(matrix, vector, out=out.reshape(-1))
            return out
        product: Any = matrix @ vector if on_host(v) or not self.sparse else sparse_product(matrix, vector)
        found: Array = product.reshape(shape)
        if out is None:
            return found
        np.copyto(out, found)
        return out

    @property
    def one_pass(self) -> bool:
        # With fewer rows than columns, adding into the long vector costs more than reading the matrix twice; and
        # patterns of rows are read for next to nothing.
        rows, columns = self.matrix.shape
        if not self.sparse:
            return jit_enabled() and columns <= _CACHED_COLUMNS
        return self._is_compiled and rows >= columns and isinstance(self._rows, SparseRows)

    def forward_stack(self, stack: Array) -> Array:
        """B x for every x in a stack."""
        if self._is_compiled and on_host(stack) and isinstance(self._rows, SparseRows):
            return self._rows.products(stack).reshape(len(stack), *self.y_shape)
        return np.stack([self.forward(x) for x in stack])

    def adjoint_stack(self, stack: Array) -> Array:
        """B^T y for every y in a stack."""
        if self._is_compiled and on_host(stack) and isinstance(self._columns, SparseRows):
            return self._columns.products(stack).reshape(len(stack), *self.x_shape)
        return np.stack([self.adjoint(y) for y in stack])

    def gram_stack(self, stack: Array, weights: Array) -> Array:
        if self.sparse and self.one_pass and on_host(stack) and isinstance(self._rows, SparseRows):
            return self._rows.grams(stack, weights).reshape(len(stack), *self.x_shape)
        return self.adjoint_stack(weights * self.forward_stack(stack))

    def there_and_back(self, x: Array, shift: Array) -> tuple[Array, Array]:
        rows, columns = self.matrix.shape
        if on_host(x) and not self.sparse and self.one_pass:
            out, back = np.empty(rows), np.empty(columns)
            load("passes").dense_there_and_back(self.matrix, flat(x, columns), flat(shift, rows), out, back)
        elif on_host(x) and self._is_compiled and isinstance(self._rows, SparseRows):
            out, back = self._rows.there_and_back(x, shift)
        else:
            return super().there_and_back(x, shift)
        return out.reshape(self.y_shape), back.reshape(self.x_shape)

    @cached_property
    def product_error(self) -> float:
        """From the entries: the longest row or column, and the norm of |B|."""
        if 0 in self.matrix.shape:
            return 0.0
        used = self.matrix != 0.0
        longest = max(int(np.max(np.asarray(used.sum(axis=axis)))) for axis in (0, 1))
        return summation_error(longest) * self.size_bound

    @cached_property
    def size_bound(self) -> float:
        """A bound on the norm of |B|: Frobenius, or the root of the largest row sum times the largest column sum."""
        if 0 in self.matrix.shape:
            return 0.0
        sizes = abs(self.matrix)
        sums = [float(np.max(np.asarray(sizes.sum(axis=axis)))) for axis in (0, 1)]
        largest = float(sizes.max())
        with np.errstate(under="ignore"):
            relative = (sizes.data if self.sparse else sizes) / (largest or 1.0)
            whole = largest * float(np.linalg.norm(np.ravel(relative)))
        return (1.0 + summation_error(self.entry_count)) * min(math.sqrt(sums[0]) * math.sqrt(sums[1]), whole)

    @property
    def norm_at_hand(self) -> bool:
        return True

    def dense(self) -> Array | None:
        if self.sparse and (max(self.matrix.shape) > _LONG or not may_be_dense(self.matrix.shape)):
            return None
        matrix: Array = self.matrix.toarray() if self.sparse else self.matrix
        return matrix


@final
class ForeignMatrix(Operator):
    """A dense matrix of PyTorch, JAX, CuPy or another array-API library; its products run there.

    Examples
    --------
    >>> import numpy as np
    >>> ForeignMatrix(np.eye(2)).forward(np.ones(2))
    array([1., 1.])
    """

    def __init__(
        self, matrix: Any, x_shape: Shape | None = None, y_shape: Shape | None = None, name: str = "B"
    ) -> None:
        self.kind = kind_of(matrix)
        self.x_shape, self.y_shape = _check_sizes(tuple(matrix.shape), x_shape, y_shape, name)
        # Checked on the host; kept in double precision where it was.
        self.matrix = self.kind.wrap(as_real(matrix, name))

    def __repr__(self) -> str:
        return f"ForeignMatrix({self.kind}, {self.x_shape} -> {self.y_shape})"

    @property
    def entries(self) -> Any:
        """The numbers of the matrix on the host."""
        return self.dense()

    @property
    def entry_count(self) -> int:
        """Number of entries."""
        return int(np.prod(self.x_shape) * np.prod(self.y_shape))

    def forward(self, x: Array, out: Array | None = None) -> Array:
        product = self.kind.call(lambda v: self.matrix @ v, x.ravel())
        return receive(product.reshape(self.y_shape), self.y_shape, "B x", out, x)

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        product = self.kind.call(lambda v: self.matrix.T @ v, y.ravel())
        return receive(product.reshape(self.x_shape), self.x_shape, "B^T y", out, y)

    @cached_property
    def product_error(self) -> float:
        """From the entries, in any order of summation: see `Matrix`."""
        return summation_error(max(self.dense().shape)) * self.size_bound

    @cached_property
    def size_bound(self) -> float:
        """A bound on the norm of |B|: see `Matrix`."""
        sizes = np.abs(self.dense())
        if 0 in sizes.shape:
            return 0.0
        sums = math.sqrt(float(sizes.sum(axis=0).max())) * math.sqrt(float(sizes.sum(axis=1).max()))
        return (1.0 + summation_error(max(sizes.shape))) * min(sums, float(np.linalg.norm(sizes)))

    @property
    def norm_at_hand(self) -> bool:
        return True

    def dense(self) -> Array:
        return as_real(self.matrix, "B")


def rows_of(matrix: Any) -> tuple[Array, Any, Any]:
    """Entries, columns and row starts of a CSR matrix with 32-bit indices, as compiled loops take them."""
    return matrix.data, matrix.indices.view(np.uint32), matrix.indptr.view(np.uint32)


@final
class Products(Operator):
    """An operator given by two callables, `forward` and `adjoint`, on arrays of the stated shapes.

    Examples
    --------
    >>> import numpy as np
    >>> doubling = Products(lambda x: 2 * x, lambda y: 2 * y, x_shape=(3,), y_shape=(3,))
    >>> doubling.adjoint(np.ones(3))
    array([2., 2., 2.])
    """

    runs_own_code = True

    def __init__(
        self, forward: _Product, adjoint: _Product, x_shape: Shape, y_shape: Shape, kind: ArrayKind = NUMPY,
        name: str = "B",
    ) -> None:  # fmt: skip
        self._forward, self._adjoint = forward, adjoint
        self.x_shape, self.y_shape = x_shape, y_shape
        # Arrays of this kind are what the callables take; and what error messages call it.
        self.origin, self._name = kind, name

    def __repr__(self) -> str:
        return f"Products({self.x_shape} -> {self.y_shape})"

    def stays_on_host(self, kind: ArrayKind) -> tuple[str, ...]:
        return () if self.origin.library == kind.library else ("operator or callables: NumPy code",)

    def forward(self, x: Array, out: Array | None = None) -> Array:
        return receive(self.origin.call(self._forward, x), self.y_shape, f"{self._name} x", out, x)

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        return receive(self.origin.call(self._adjoint, y), self.x_shape, f"{self._name}^T y", out, y)


def as_operator(
    B: Any,
    x_shape: Shape | None = None,
    y_shape: Shape | None = None,
    norm: float | None = None,
    like: Any = None,
    name: str = "B",
    dtype: Any = None,
) -> Operator:
    """Make an Operator of an array, a sparse matrix, an operator (SciPy, PyLops, ODL) or a pair of callables.

    Parameters
    ----------
    B : array_like, sparse matrix, LinearOperator, ODL operator, (forward, adjoint) or Operator
        A LinearOperator is anything with `shape`, `matvec` and `rmatvec`. A matrix of PyTorch, JAX or CuPy stays there,
        and so do its products.
    x_shape, y_shape : tuple of int, optional
        Shapes of x and of Bx; needed for callables, flat by default for matrices. Those of a PyLops operator are its
        `dims` and `dimsd`, unless the one that is given is flat and those are not.
    norm : float, optional
        A known upper bound on the spectral norm; saves the products that bounding it would cost.
    like : "torch", "jax", "cupy" or an array of theirs, optional
        Kind of arrays that a pair of callables takes, on the device of that array; NumPy when missing.
    name : str, optional
        What error messages call it.
    dtype : float, complex or a pair of them, optional
        Numbers of x and y, or of each: `(float, complex)` is a real x beside complex data. Complex arrays of shape s
        become real ones of shape (*s, 2), and the adjoint is the conjugate transpose, its real part for a real x;
        `x_shape` and `y_shape` are then those of the complex arrays. Without it the numbers of a matrix or operator
        count, and shapes are those of the real arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse.linalg import aslinearoperator
    >>> as_operator(aslinearoperator(np.ones((2, 3)))).y_shape
    (2,)
    >>> turn = as_operator(np.array([[1j]]))
    >>> turn.x_shape, turn.forward(np.array([[1.0, 2.0]])), turn @ np.array([1.0 + 2.0j])
    ((1, 2), array([[-2.,  1.]]), array([-2.+1.j]))
    """
    x_shape = None if x_shape is None else as_shape(x_shape, f"{name}: x_shape")
    y_shape = None if y_shape is None else as_shape(y_shape, f"{name}: y_shape")
    operator = _made(B, x_shape, y_shape, as_kind(like, f"{name}: like"), name, read_dtype(dtype, name))
    if norm is not None:
        declared = as_number(norm, f"{name}: norm", 0.0)
        # A copy: the caller's own operator keeps its norm.
        operator = copy(operator)
        operator.__dict__["norm"] = NormBound(declared, declared, DECLARED)
    return operator


def _made(
    B: Any, x_shape: Shape | None, y_shape: Shape | None, kind: ArrayKind, name: str, said: tuple[bool, bool] | None
) -> Operator:
    if isinstance(B, Operator):
        return _check_shapes(B, x_shape, y_shape, name, said)
    if isinstance(B, tuple | list) and len(B) == 2 and all(callable(part) for part in B):
        if x_shape is None or y_shape is None:
            raise InputError(
                f"{name}: a pair of callables has no shapes; pass x_shape= and y_shape= to ss.operators.as_operator."
            )
        sides = Sides(*(said or (False, False)), x_shape, y_shape)
        if sides.any and kind != NUMPY:
            raise InputError(f"{name}: dtype is complex beside like={kind}; expected callables on NumPy arrays.")
        return _products(B[0], B[1], sides, x_shape, y_shape, name, kind)
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


def _check_shapes(
    B: Operator, x_shape: Shape | None, y_shape: Shape | None, name: str, said: tuple[bool, bool] | None
) -> Operator:
    # Only the sizes must agree: an image and its ravel are the same vector.
    pairs = said or (False, False)
    wrong = [
        f"its {side} shape is {has}; expected {wants}"
        for has, wants, side, pair in [(B.x_shape, x_shape, "x", pairs[0]), (B.y_shape, y_shape, "y", pairs[1])]
        if wants is not None and math.prod(has) != math.prod(wants) * (1 + pair)
    ]
    if said is not None and (B.x_dtype == COMPLEX, B.y_dtype == COMPLEX) != said:
        wrong.append(f"its numbers are {B.x_dtype} -> {B.y_dtype}; expected no other dtype=")
    if wrong:
        raise InputError(f"{name}: {', and '.join(wrong)}.")
    return B


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
    shapes = sides.real_shapes(*_check_sizes(matrix.shape, sides.x_shape, sides.y_shape, name))
    return _with_dtypes(Matrix(pair_matrix(matrix, sides, name), *shapes, name), sides)


def _with_dtypes(operator: Operator, sides: Sides) -> Operator:
    if sides.any:
        operator.x_dtype, operator.y_dtype = (COMPLEX if pairs else REAL for pairs in sides[:2])
    return operator


def _products(
    forward: _Product, adjoint: _Product, sides: Sides, x_shape: Shape, y_shape: Shape, name: str,
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
    x_shape, y_shape = _check_sizes(operator.shape, *_with_dims(operator, sides), name)

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


def _reshape(forward: _Product, adjoint: _Product, x_shape: Shape, y_shape: Shape, name: str) -> Operator:
    shaped = (lambda x: np.reshape(forward(x), y_shape), lambda y: np.reshape(adjoint(y), x_shape))
    return Products(*shaped, x_shape, y_shape, name=name)


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

    transposes: list[_Product] = [plain]
    if not (w_x.size == w_y.size == 1 and float(w_x) == float(w_y)):
        rng = np.random.default_rng(0)
        x, y = rng.standard_normal(own_x), rng.standard_normal(own_y)
        Bx = forward(x)
        # A y that leans towards Bx: an independent one may be orthogonal to it and hide a wrong scale.
        y += float(np.linalg.norm(y)) / max(float(np.linalg.norm(Bx)), 1e-300) * Bx
        pairs = [(each, float(np.vdot(Bx, y)), float(np.vdot(x, each(y)))) for each in (weigh, plain)]
        transposes = [each for each, left, right in pairs if abs(left - right) <= 1e-5 * max(abs(left), abs(right))]
    if not transposes:
        raise InputError(
            f"{name}: the adjoint of {type(operator).__name__} is not its transpose, with or without the weights of "
            "its spaces; expected one of both."
        )
    # An image and its ravel are the same vector: the shapes asked for win over the spaces' own.
    shapes = _check_sizes((math.prod(own_y), math.prod(own_x)), x_shape or own_x, y_shape or own_y, name)
    return _reshape(forward, transposes[0], *shapes, name)


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


def _check_sizes(shape: Shape, x_shape: Shape | None, y_shape: Shape | None, name: str) -> tuple[Shape, Shape]:
    rows, columns = shape
    x_shape = (columns,) if x_shape is None else x_shape
    y_shape = (rows,) if y_shape is None else y_shape
    if math.prod(x_shape) != columns or math.prod(y_shape) != rows:
        raise InputError(
            f"{name}: its shape is {(rows, columns)}; expected {(math.prod(y_shape), math.prod(x_shape))} "
            f"for y of shape {y_shape} and x of shape {x_shape}. Shapes are given by x_shape= and y_shape=."
        )
    return x_shape, y_shape
