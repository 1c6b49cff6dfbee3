"""What a linear map B is: two products, two shapes, and what is known of its spectrum; and -B^T, its mirror image."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property, partial
from numbers import Real
from typing import Any, NamedTuple, final

import numpy as np
import scipy

from saddleslide.arrays.base import Array, Shape, beside, to_complex, to_real
from saddleslide.arrays.kinds import Built, is_callers
from saddleslide.arrays.remote import Remote
from saddleslide.errors import InputError
from saddleslide.operators.spectrum import (
    DECLARED,
    FACTORISABLE,
    NormBound,
    SmallestSingularValue,
    as_dense,
    made,
    norm_bound,
    smallest_singular_value,
    summation_error,
)

# No Python types: what can be called in place of a class's own would be the caller's code.
REAL, COMPLEX = np.dtype(np.float64), np.dtype(np.complex128)
# A difference of operators may show little at one pair: what shows counts this many times.
_DOUBT = 30.0
# What no operator in double precision shows, and the rounding of a product in single precision; relative to sizes.
_NOT_DOUBLE, _SINGLE = 1e-12, 8.0 * float(np.finfo(np.float32).eps)
# Rounding of two products and two sums, relative to their sizes.
_EXPLAINED = 32.0 * float(np.finfo(np.float64).eps)


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
        from saddleslide.operators.algebra import Paired

        if self.x_dtype == self.y_dtype == COMPLEX:
            return self
        if COMPLEX in (self.x_dtype, self.y_dtype):
            raise InputError(f"{self!r}: takes a real x beside complex values; expected a real or a complex operator.")
        return Paired(self)

    @cached_property
    def T(self) -> Operator:
        """The transpose. An operator of the caller's may keep an attribute of its own under this name."""
        from saddleslide.operators.algebra import Transposed

        return Transposed(self)

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, Operator):
            from saddleslide.operators.algebra import Composition

            return Composition(self, other)
        return self._apply(other) if isinstance(other, np.ndarray | Remote) else NotImplemented

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
        from saddleslide.operators.algebra import Sum

        return Sum(self, other)

    def __sub__(self, other: Any) -> Any:
        return self + -other if isinstance(other, Operator) else NotImplemented

    def __mul__(self, factor: Any) -> Any:
        # NumPy's numbers are Real too, its arrays are not.
        if not isinstance(factor, Real) or isinstance(factor, bool):
            return NotImplemented
        from saddleslide.operators.algebra import Scaled

        return Scaled(self, factor)

    __rmul__ = __mul__

    def __neg__(self) -> Operator:
        from saddleslide.operators.algebra import Scaled

        return Scaled(self, -1.0)

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
    def norm_takes_products(self) -> bool:
        """Whether bounding `norm` makes products, of whatever code: else entries are factorised, or nothing is done."""
        smaller = min(math.prod(self.x_shape), math.prod(self.y_shape))
        factorised = smaller <= FACTORISABLE and self.dense() is not None
        return not (self._norm_is_given or smaller == 0 or factorised)

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


class AdjointTest(NamedTuple):
    """What a pair of signs (x, y) shows of the difference between an adjoint and the transpose."""

    # The difference of <Bx, y> and <x, B^T y> over the sizes of the products.
    relative: float
    # A bound on the norm of the difference of the operators; 0 where rounding explains what was seen.
    bound: float


def sign_vector(shape: Shape) -> Array:
    """Seeded signs times numbers from 1 to 4/3 that single precision does not hold: no wrong entry is small there."""
    rng = np.random.default_rng(0)
    sizes = 1.0 + rng.random(shape) / 3.0
    return np.where(rng.random(shape) < 0.5, -sizes, sizes)


def signs_of(Bx: Array) -> Array:
    """The y of the test, on the side of Bx: an independent one may be orthogonal to it and hide a wrong scale."""
    signs: Array = (np.sign(Bx) + (Bx == 0.0)) * np.abs(beside(Bx, sign_vector(Bx.shape)))
    return signs


def adjoint_test_from(x: Array, Bx: Array, y: Array, BTy: Array) -> AdjointTest:
    """The test from its products. At such signs, <y, E x> has the size of the Frobenius norm of a difference E."""
    difference = measure_mismatch(x, Bx, y, BTy)
    relative = difference / max(_norm(Bx) * _norm(y), _norm(BTy) * _norm(x), difference) if difference > 0.0 else 0.0
    bound = _DOUBT * difference
    if relative > _NOT_DOUBLE:
        # Rounding in single precision shows by chance at one pair, and may be larger at others.
        bound = max(bound, _SINGLE * max(_norm(Bx), _norm(BTy)))
    return AdjointTest(relative, bound)


def pair_mismatch(x: Array, Bx: Array, y: Array, BTy: Array) -> float:
    """The same bound from products at any pair: no difference is smaller than what it shows there."""
    sizes = _norm(x) * _norm(y)
    return _DOUBT * measure_mismatch(x, Bx, y, BTy) / sizes if 0.0 < sizes < math.inf else 0.0


def measure_mismatch(x: Array, Bx: Array, y: Array, BTy: Array) -> float:
    """|<Bx, y> - <x, B^T y>|, or 0 where rounding in double precision explains it."""
    difference = abs(float(np.vdot(Bx, y)) - float(np.vdot(x, BTy)))
    return difference if difference > _EXPLAINED * (_norm(Bx) * _norm(y) + _norm(x) * _norm(BTy)) else 0.0


def _norm(v: Array) -> float:
    return float(np.linalg.norm(v))


def adjoint_mismatch(coupling: Operator, rng: int | np.random.Generator | None = 0) -> float:
    """Relative size of <Bx, y> - <x, B^T y> at one random pair (two products). About 1e-16 for a true adjoint.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> wrong = ss.operators.as_operator((lambda x: 2 * x, lambda y: 3 * y), x_shape=(4,), y_shape=(4,))
    >>> ss.operators.adjoint_mismatch(wrong) > 0.01
    True
    """
    generator = np.random.default_rng(rng)
    x, y = generator.standard_normal(coupling.x_shape), generator.standard_normal(coupling.y_shape)
    Bx = coupling.forward(x)
    if _norm(Bx) > 0.0:
        # A y that leans towards Bx: an independent one may be orthogonal to it and hide a wrong scale.
        y += _norm(y) / _norm(Bx) * Bx
    BTy = coupling.adjoint(y)
    scale = _norm(Bx) * _norm(y) + _norm(x) * _norm(BTy)
    difference = float(np.vdot(Bx, y)) - float(np.vdot(x, BTy))
    return abs(difference) / scale if scale > 0.0 or math.isnan(scale) else 0.0


def check_adjoint(coupling: Operator, rng: int | np.random.Generator | None = 0, tolerance: float = 1e-6) -> None:
    """Raise when the adjoint of an operator is not the transpose of its forward product (seeded, two products).

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> ss.operators.check_adjoint(ss.operators.FiniteDifferences((4, 5)))
    """
    if not isinstance(coupling, Operator):
        raise InputError(
            f"check_adjoint: coupling is {type(coupling).__name__}; expected an Operator: make one with "
            "ss.operators.as_operator first."
        )
    mismatch = adjoint_mismatch(coupling, rng)
    if not mismatch <= tolerance:
        raise InputError(
            f"B: <Bx, y> and <x, B^T y> differ by {mismatch:.1e} relative; expected at most {tolerance:.0e}. "
            "The adjoint is not the transpose of the forward product: check signs, scaling and boundary handling."
        )


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
