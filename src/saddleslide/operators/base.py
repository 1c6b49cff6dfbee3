"""What a linear map B is: two products, two shapes, and what is known of its spectrum; and -B^T, its mirror image."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property, partial
from numbers import Real
from typing import Any, ClassVar, final

import numpy as np
import scipy

from saddleslide import operators
from saddleslide.arrays.base import Array, Shape, to_complex, to_real
from saddleslide.arrays.kinds import Built, Remote, is_callers
from saddleslide.errors import InputError
from saddleslide.operators.adjoint_test import AdjointTest, adjoint_test_from, sign_vector, signs_of
from saddleslide.operators.spectrum import (
    DECLARED,
    FACTORISABLE,
    NormBound,
    SmallestSingularValue,
    as_dense,
    norm_bound,
    smallest_singular_value,
    summation_error,
)
from saddleslide.watcher import made

# No Python types: what can be called in place of a class's own would be the caller's code.
REAL, COMPLEX = np.dtype(np.float64), np.dtype(np.complex128)


class Operator(Built, ABC):
    """A linear map B from arrays of `x_shape` to arrays of `y_shape`, with its adjoint.

    All arrays are real. A complex array of shape s is one of shape (*s, 2), its view as pairs of real numbers, with the
    inner product Re <z, w>; `x_dtype` and `y_dtype` are complex on such a side.

    `A @ B`, `A + B`, `A - B`, `2.0 * A`, `-A` and `A.T` are operators too, and `A @ x` is the product with an array.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> B = ss.operators.as_operator(np.array([[1.0, 2.0]]))
    >>> B.forward(np.array([1.0, 1.0])), B.adjoint(np.array([3.0]))
    (array([3.]), array([3., 6.]))
    >>> (2.0 * B).shape, (2.0 * B.T @ B) @ np.array([1.0, 1.0])
    ((1, 2), array([ 6., 12.]))
    """

    x_shape: Shape
    y_shape: Shape
    # Which numbers the pairs along the last axis stand for.
    x_dtype: np.dtype[Any] = REAL
    y_dtype: np.dtype[Any] = REAL
    # NumPy leaves `array @ B` and `number * B` to us.
    __array_ufunc__ = None
    # Whether an operator of ours calls the caller's products.
    runs_own_code: bool = False

    @abstractmethod
    def forward(self, x: Array, out: Array | None = None) -> Array:
        """B x."""

    @abstractmethod
    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        """B^T y."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the map on raveled arrays, as SciPy has it."""
        return math.prod(self.y_shape), math.prod(self.x_shape)

    def of_pairs(self) -> Operator:
        """A real operator on complex arrays: on their real and their imaginary parts.

        Examples
        --------
        >>> import numpy as np, saddleslide as ss
        >>> ss.operators.as_operator(np.array([[1.0, 2.0]])).of_pairs() @ np.array([1.0, 1.0j])
        array([1.+2.j])
        """
        if self.x_dtype == self.y_dtype == COMPLEX:
            return self
        if COMPLEX in (self.x_dtype, self.y_dtype):
            raise InputError(f"{self!r}: takes a real x beside complex values; expected a real or a complex operator.")
        return operators.Paired(self)

    @cached_property
    def T(self) -> Operator:
        """The transpose. An operator of the caller's may keep an attribute of its own under this name."""
        return operators.Transposed(self)

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, Operator):
            return operators.Composition(self, other)
        return self._apply(other) if isinstance(other, np.ndarray | Remote) else NotImplemented

    def __rmatmul__(self, other: Any) -> Operator:
        """A matrix behind this operator, `A @ B`: the product, as an operator."""
        return operators.Composition(operators.as_operator(other, x_shape=self.y_shape), self)

    def _apply(self, x: Any) -> Any:
        """B x for an array in the shape of x, flat, or complex; the result is in the same form."""
        pairs = x.dtype.kind == "c" and self.x_dtype == COMPLEX
        of, to = (shape[:-1] if pairs else shape for shape in (self.x_shape, self.y_shape))
        if x.shape not in (of, (math.prod(of),)) or x.dtype.kind not in ("c" if pairs else "biuf"):
            pair = f", or complex of shape {self.x_shape[:-1]}" if self.x_dtype == COMPLEX else ""
            received = f"received shape {x.shape}, dtype {x.dtype}"
            raise InputError(f"B @ x: {received}; expected real numbers of shape {self.x_shape} or flat{pair}.")
        taken: Any = to_real(x) if pairs else x if isinstance(x, Remote) else np.asarray(x, dtype=np.float64)
        product = self.forward(taken.reshape(self.x_shape))
        if pairs and self.y_dtype == COMPLEX:
            found = to_complex(product)
            return found if x.shape == of else found.reshape(math.prod(to))
        return product if x.shape == of else product.reshape(-1)

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Operator):
            return NotImplemented
        return operators.Sum(self, other)

    def __sub__(self, other: Any) -> Any:
        return self + -other if isinstance(other, Operator) else NotImplemented

    def __mul__(self, factor: Any) -> Any:
        # NumPy's numbers are Real too, its arrays are not.
        if not isinstance(factor, Real) or isinstance(factor, bool):
            return NotImplemented
        return operators.Scaled(self, factor)

    __rmul__ = __mul__

    def __neg__(self) -> Operator:
        return operators.Scaled(self, -1.0)

    # Whether norms and singular values are a formula, which a plan may ask for at no work.
    has_closed_spectrum: ClassVar[bool] = False

    @property
    def row_blocks(self) -> list[tuple[Operator, float]]:
        """Operators whose products, times a number each, are the blocks of its own one after the other; none mostly."""
        return []

    @property
    def summands(self) -> tuple[Operator, ...]:
        """The operators that it is the sum of; itself where it is none."""
        return (self,)

    @property
    def operations(self) -> float | None:
        """Operations of one product, where its structure says; what is not known to be cheap is taken to be dear."""
        return None

    @property
    def one_pass(self) -> bool:
        """Whether `there_and_back` is cheaper than its two products."""
        return False

    def gram_stack(self, stack: Array, weights: Array) -> Array:
        """B^T diag(weights) B x for every x in a stack."""
        return np.stack([self.adjoint(weights * self.forward(x)) for x in stack])

    def there_and_back(self, x: Array, shift: Array) -> tuple[Array, Array]:
        """B x and B^T (B x - shift)."""
        Bx = self.forward(x)
        return Bx, self.adjoint(Bx - shift)

    def gram_symbol(self, basis: str = "dct") -> Array | None:
        """Upper bound on B^T B that is diagonal in the cosine ("dct") or Fourier ("fft") basis of the grid, or None."""
        return None

    def scaled_gram_symbol(self, scale: Array, basis: str = "dct") -> Array | None:
        """The same of B diag(scale)."""
        return None

    @property
    def entries(self) -> Any:
        """The matrix on raveled arrays, dense or of sparse rows, where its numbers are at hand; else None."""
        return None

    def dense(self) -> Array | None:
        """The matrix itself when it is at hand, else None."""
        return None

    @property
    def norm_at_hand(self) -> bool:
        """Whether `norm` takes no products with the caller's code: entries at hand, a closed form, or declared."""
        return self._norm_is_given

    @property
    def _norm_is_given(self) -> bool:
        known = self.__dict__.get("norm")
        return type(self).norm is not Operator.norm or (known is not None and known.method == DECLARED)

    @property
    def entry_count(self) -> int | None:
        """Number of stored entries of a matrix; None of what is known by its products."""
        return None

    @property
    def norm_takes_products(self) -> bool:
        """Whether bounding `norm` makes products, of whatever code: else entries are factorised, or nothing is done."""
        smaller = min(math.prod(self.x_shape), math.prod(self.y_shape))
        factorised = smaller <= FACTORISABLE and self.dense() is not None
        return not (self._norm_is_given or smaller == 0 or factorised)

    @property
    def norm_takes_factor(self) -> bool:
        """Whether bounding `norm` factorises a matrix that is not small, where nobody has declared it."""
        return False

    @cached_property
    def norm(self) -> NormBound:
        """Spectral norm: an upper bound with its margin, apart from the estimate. Costs products, once."""
        return norm_bound(self)

    @cached_property
    def singular_values(self) -> Array:
        """All singular values, largest first, of a small operator; infinite where an entry is not finite."""
        matrix = as_dense(self)
        return scipy.linalg.svdvals(matrix) if np.isfinite(matrix).all() else np.full(min(matrix.shape), math.inf)

    @property
    def size_bound(self) -> float:
        """A bound on the norm; that of the entries' sizes where these are at hand. May cost products, once."""
        return self.norm.upper

    @property
    def product_error(self) -> float:
        """C with |computed B x - B x| <= c |x|, the same for B^T; 0 while nothing is known about the size of B."""
        known = self.__dict__.get("norm")
        return 0.0 if known is None else self._summation_error * float(known.upper)

    @property
    def _summation_error(self) -> float:
        return summation_error(max(math.prod(self.x_shape), math.prod(self.y_shape)))

    def bound_rounding(self, size: float, product: float) -> float:
        """A bound on |computed B x - B x| for |x| = size and |B x| = product, the same for B^T.

        Of products whose norm is not known yet, the product itself shows the size.
        """
        return max(self.product_error * size, self._summation_error * product if is_own_code(self) else 0.0)

    def entry_errors(self, x: Array, product: Array) -> Array | None:
        """A bound on each entry of |computed B x - B x|, where one is at hand that is 0 for products of zeros alone."""
        return None

    @cached_property
    def adjoint_test(self) -> AdjointTest:
        """What one seeded pair says of the adjoint: two products, once. Ours are transposes and are not tested."""
        if not is_own_code(self):
            return AdjointTest(0.0, 0.0)
        x = sign_vector(self.x_shape)
        Bx = made(self, partial(self.forward, x))
        y = signs_of(Bx)
        return adjoint_test_from(x, Bx, y, made(self, partial(self.adjoint, y)))

    def smallest_singular_value(self, positive: bool = False) -> SmallestSingularValue:
        """Smallest singular value of B on the x side, or the smallest positive one."""
        return smallest_singular_value(self, positive)


def is_own_code(B: Operator) -> bool:
    """Whether products run code of the caller's: callables, operators, an Operator of the caller's."""
    return B.runs_own_code or is_callers(B)


@final
class Mirrored(Operator):
    """-B^T, so that min over y, max over x of g(y) + <x, -B^T y> - f(x) is the same problem with the roles exchanged.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> Mirrored(ss.operators.as_operator(np.array([[1.0, 2.0]]))).forward(np.array([1.0]))
    array([-1., -2.])
    """

    def __init__(self, original: Operator) -> None:
        self.original = original
        self.x_shape, self.y_shape = original.y_shape, original.x_shape
        self.x_dtype, self.y_dtype = original.y_dtype, original.x_dtype

    @property
    def runs_own_code(self) -> bool:  # type: ignore[override]
        return is_own_code(self.original)

    @property
    def adjoint_test(self) -> AdjointTest:
        return self.original.adjoint_test

    def __repr__(self) -> str:
        return f"Mirrored({self.original!r})"

    def forward(self, x: Array, out: Array | None = None) -> Array:
        product = self.original.adjoint(x, out)
        return np.negative(product, out=product)

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        product = self.original.forward(y, out)
        return np.negative(product, out=product)

    @property
    def entries(self) -> Any:
        matrix = self.original.entries
        return None if matrix is None else -matrix.T

    def dense(self) -> Array | None:
        matrix = self.original.dense()
        return None if matrix is None else -matrix.T

    @property
    def product_error(self) -> float:
        return self.original.product_error

    @property
    def norm_at_hand(self) -> bool:
        return self.original.norm_at_hand

    @cached_property
    def norm(self) -> NormBound:
        return self.original.norm
