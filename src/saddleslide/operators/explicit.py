"""Operators from what users have: matrices, and products of code; what else there is comes by foreign.py."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
import scipy

from saddleslide import arrays, operators
from saddleslide.arrays.base import Array, Shape, as_number, as_real, as_shape, length_of, on_host, receive
from saddleslide.arrays.kinds import NUMPY, ArrayKind, as_kind, kind_of
from saddleslide.errors import InputError
from saddleslide.kernels.switch import jit_enabled, load
from saddleslide.operators.base import COMPLEX, Operator
from saddleslide.operators.spectrum import DECLARED, SMALL, NormBound, may_be_dense, summation_error

if TYPE_CHECKING:
    from saddleslide.operators.sparse import AlikeRows, SparseRows

# Four dense rows of so many columns fill a cache of 1 MB, where they are until they are read again.
_CACHED_COLUMNS = 2**15
# Longest side of a sparse matrix whose factorisation is worth its cost.
_LONG = 4000
Product: TypeAlias = Callable[[Any], Any]


def flat(v: Array, size: int) -> Array:
    """A vector as compiled passes take it, which look at no bounds: flat, of doubles, of this size."""
    made = np.ascontiguousarray(v, dtype=np.float64).reshape(-1)
    if made.size != size:
        raise InputError(f"product with a matrix: received {np.shape(v)}, {made.size} numbers; expected {size}.")
    return made


class Stored(Operator):
    """An operator whose numbers are at hand."""

    @property
    @abstractmethod
    def entries(self) -> Any:
        """The numbers on the host: an array, or SciPy's sparse rows."""

    @property
    @abstractmethod
    def entry_count(self) -> int:
        """How many of them are stored."""

    @property
    def operations(self) -> float:
        return 2.0 * self.entry_count

    @property
    def norm_at_hand(self) -> bool:
        return True

    @property
    def norm_takes_factor(self) -> bool:
        return not self._norm_is_given and min(self.shape) > SMALL


@final
class Matrix(Stored):
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
        read: Any = operators.read_sparse if self.sparse else as_real
        self.matrix = read(matrix, name)
        if self.matrix.ndim != 2:
            dimensions = f"{self.matrix.ndim} dimensions, shape {self.matrix.shape}"
            raise InputError(f"{name}: received an array of {dimensions}; expected a matrix.")
        self.x_shape, self.y_shape = check_sizes(self.matrix.shape, x_shape, y_shape, name)
        # A stored transpose makes the sparse adjoint a row-wise product too.
        self.transpose = operators.with_small_indices(self.matrix.T.tocsr()) if self.sparse else self.matrix.T

    def __repr__(self) -> str:
        return f"Matrix({'sparse' if self.sparse else 'dense'}, {self.x_shape} -> {self.y_shape})"

    def stays_on_host(self, kind: ArrayKind) -> tuple[str, ...]:
        return ("sparse matrix: SciPy products",) if self.sparse and not kind.has_sparse else ()

    @property
    def entries(self) -> Any:
        return self.matrix

    @property
    def entry_count(self) -> int:
        return int(self.matrix.nnz if self.sparse else self.matrix.size)

    @cached_property
    def _rows(self) -> AlikeRows | SparseRows:
        """The matrix as compiled passes take it."""
        return operators.passes_of(self.matrix)

    @cached_property
    def _columns(self) -> AlikeRows | SparseRows:
        """The transpose as compiled passes take it."""
        return operators.passes_of(self.transpose)

    @property
    def _is_compiled(self) -> bool:
        return self.sparse and jit_enabled(self.entry_count) and self.matrix.indices.dtype == np.int32

    def forward(self, x: Array, out: Array | None = None) -> Array:
        if out is None and on_host(x) and not x.any():
            # Most runs begin at 0.
            return np.zeros(self.y_shape)
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
        product: Any = matrix @ vector if on_host(v) or not self.sparse else arrays.sparse_product(matrix, vector)
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
            return jit_enabled(self.entry_count) and columns <= _CACHED_COLUMNS
        return self._is_compiled and rows >= columns and self._rows.one_by_one is not None

    def forward_stack(self, stack: Array) -> Array:
        """B x for every x in a stack."""
        if self._is_compiled and on_host(stack) and self._rows.one_by_one:
            return self._rows.products(stack).reshape(len(stack), *self.y_shape)
        return np.stack([self.forward(x) for x in stack])

    def adjoint_stack(self, stack: Array) -> Array:
        """B^T y for every y in a stack."""
        if self._is_compiled and on_host(stack) and self._columns.one_by_one:
            return self._columns.products(stack).reshape(len(stack), *self.x_shape)
        return np.stack([self.adjoint(y) for y in stack])

    def gram_stack(self, stack: Array, weights: Array) -> Array:
        if self.sparse and self.one_pass and on_host(stack) and self._rows.one_by_one:
            return self._rows.grams(stack, weights).reshape(len(stack), *self.x_shape)
        return self.adjoint_stack(weights * self.forward_stack(stack))

    def there_and_back(self, x: Array, shift: Array) -> tuple[Array, Array]:
        rows, columns = self.matrix.shape
        if on_host(x) and not self.sparse and self.one_pass:
            out, back = np.empty(rows), np.empty(columns)
            load("passes").dense_there_and_back(self.matrix, flat(x, columns), flat(shift, rows), out, back)
        elif on_host(x) and self._is_compiled and self._rows.one_by_one:
            out, back = self._rows.there_and_back(x, shift)
        else:
            return super().there_and_back(x, shift)
        return out.reshape(self.y_shape), back.reshape(self.x_shape)

    @cached_property
    def product_error(self) -> float:
        """From the entries: the longest row or column, and the norm of |B|."""
        if 0 in self.matrix.shape:
            return 0.0
        if self.sparse:
            longest = max(int(np.diff(rows.indptr).max()) for rows in (self.matrix, self.transpose))
        else:
            longest = max(int(np.count_nonzero(self.matrix, axis=axis).max()) for axis in (0, 1))
        return summation_error(longest) * self.size_bound

    def entry_errors(self, x: Array, product: Array) -> Array | None:
        """Of entries >= 0 and x >= 0: nothing cancels, and sums of zeros are exact."""
        if not self._is_positive or not on_host(x) or bool((x < 0.0).any()):
            return None
        return 2.0 * summation_error(max(self.matrix.shape[1], 1)) * product

    @property
    def is_symmetric(self) -> bool:
        """Whether every entry is that across the diagonal, to the last bit."""
        one, other = self.matrix, self.transpose
        if not self.sparse:
            return np.array_equal(one, other)
        return all(np.array_equal(getattr(one, part), getattr(other, part)) for part in ("indptr", "indices", "data"))

    @cached_property
    def _is_positive(self) -> bool:
        return bool((self.matrix.data if self.sparse else self.matrix).min(initial=0.0) >= 0.0)

    @cached_property
    def size_bound(self) -> float:
        """A bound on the norm of |B|: Frobenius, or the root of the largest row sum times the largest column sum."""
        if 0 in self.matrix.shape:
            return 0.0
        if self.sparse:
            numbers = np.abs(self.matrix.data)
            sums = [operators.largest_row(rows) for rows in (self.matrix, self.transpose)]
        else:
            sizes = np.abs(self.matrix)
            numbers, sums = np.ravel(sizes), [float(sizes.sum(axis=axis).max()) for axis in (0, 1)]
        largest = float(numbers.max(initial=0.0))
        if 1e-100 < largest < 1e100:
            whole = length_of(numbers)
        else:
            with np.errstate(under="ignore"):
                whole = largest * length_of(numbers / (largest or 1.0))
        return (1.0 + summation_error(self.entry_count)) * min(math.sqrt(sums[0]) * math.sqrt(sums[1]), whole)

    def dense(self) -> Array | None:
        if self.sparse and (max(self.matrix.shape) > _LONG or not may_be_dense(self.matrix.shape)):
            return None
        matrix: Array = self.matrix.toarray() if self.sparse else self.matrix
        return matrix


@final
class ForeignMatrix(Stored):
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
        self.x_shape, self.y_shape = check_sizes(tuple(matrix.shape), x_shape, y_shape, name)
        # Checked on the host; kept in double precision where it was.
        self.matrix = self.kind.wrap(as_real(matrix, name))

    def __repr__(self) -> str:
        return f"ForeignMatrix({self.kind}, {self.x_shape} -> {self.y_shape})"

    @property
    def entries(self) -> Any:
        return self.dense()

    @property
    def entry_count(self) -> int:
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
        return (1.0 + summation_error(max(sizes.shape))) * min(sums, length_of(sizes))

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
        self, forward: Product, adjoint: Product, x_shape: Shape, y_shape: Shape, kind: ArrayKind = NUMPY,
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
        return receive(self.origin.call(self._adjoint, y), self.x_shape, f"{self._name}^T y (the adjoint)", out, y)


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
    B : array_like, sparse matrix, LinearOperator, ODL operator, (forward, adjoint), Operator or list of them
        A list of matrices or operators is their sum. A LinearOperator is anything with `shape`, `matvec` and
        `rmatvec`. A matrix of PyTorch, JAX or CuPy stays there, and so do its products.
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
    said = None if dtype is None else operators.read_dtype(dtype, name)
    is_stored = isinstance(B, np.ndarray) or scipy.sparse.issparse(B)
    if isinstance(B, Operator):
        operator = _check_shapes(B, x_shape, y_shape, name, said)
    elif is_stored and getattr(getattr(B, "dtype", None), "kind", "") != "c" and not any(said or ()):
        operator = Matrix(B, x_shape, y_shape, name)
    else:
        operator = operators.adapt(B, x_shape, y_shape, as_kind(like, f"{name}: like"), name, said)
    if norm is not None:
        declared = as_number(norm, f"{name}: norm", 0.0)
        # A copy: the caller's own operator keeps its norm.
        operator = copy(operator)
        operator.__dict__["norm"] = NormBound(declared, declared, DECLARED)
    return operator


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


def check_sizes(shape: Shape, x_shape: Shape | None, y_shape: Shape | None, name: str) -> tuple[Shape, Shape]:
    """The shapes of x and y of a matrix of this shape, flat where none is given."""
    rows, columns = shape
    x_shape = (columns,) if x_shape is None else x_shape
    y_shape = (rows,) if y_shape is None else y_shape
    if math.prod(x_shape) != columns or math.prod(y_shape) != rows:
        raise InputError(
            f"{name}: its shape is {(rows, columns)}; expected {(math.prod(y_shape), math.prod(x_shape))} "
            f"for y of shape {y_shape} and x of shape {x_shape}. Shapes are given by x_shape= and y_shape=."
        )
    return x_shape, y_shape
