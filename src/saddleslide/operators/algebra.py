"""Operators made of others: multiples, sums, products, transposes, stacks; and those that are one number an entry."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, final

import numpy as np
import scipy

from saddleslide.arrays.base import (
    Array,
    Shape,
    as_number,
    as_real,
    as_shape,
    beside,
    blank,
    frozen,
    on_host,
    receive,
    to_complex,
    to_real,
)
from saddleslide.arrays.base import split as views_of
from saddleslide.arrays.kinds import ArrayKind, to_host
from saddleslide.errors import InputError
from saddleslide.operators.base import COMPLEX, REAL, Operator, is_own_code, sign_vector
from saddleslide.operators.spectrum import (
    DECLARED,
    FACTORISABLE,
    SMALL,
    NormBound,
    SmallestSingularValue,
    margin_of_rounding,
    norm_bound,
    summation_error,
)

_EPS = summation_error(1)
_PARTS = "norms of the parts"


def power_estimate(B: Operator) -> float:
    """A lower bound on the norm of an operator of ours, from three products."""
    v = sign_vector(B.x_shape)
    w = B.adjoint(B.forward(v))
    size = float(np.linalg.norm(w))
    return float(np.linalg.norm(B.forward(w / size))) if 0.0 < size < math.inf else 0.0


def is_complex(dtype: Any, name: str) -> bool:
    """Whether a dtype is one of complex numbers; other ones than real and complex are refused."""
    try:
        kind = np.dtype(dtype).kind
    except (TypeError, ValueError):
        kind = "?"
    if kind not in "fc":
        raise InputError(f"{name}: dtype is {dtype!r}; expected float or complex.")
    return bool(kind == "c")


class Composite(Operator):
    """An operator made of others: it runs their code, and what is known of it is known of them."""

    parts: tuple[Operator, ...]

    def stays_on_host(self, kind: ArrayKind) -> tuple[str, ...]:
        return tuple(dict.fromkeys(word for part in self.parts for word in part.stays_on_host(kind)))

    @property
    def runs_own_code(self) -> bool:  # type: ignore[override]
        return any(map(is_own_code, self.parts))

    @property
    def _is_declared(self) -> bool:
        known = self.__dict__.get("norm")
        return known is not None and known.method == DECLARED

    @property
    def norm_at_hand(self) -> bool:
        return self._is_declared or all(part.norm_at_hand for part in self.parts)

    @property
    def norm_takes_products(self) -> bool:
        if self._is_declared or 0 in self.shape:
            return False
        if self.norm_at_hand and self._is_factorised:
            return self.dense() is None
        return not self.norm_at_hand or any(part.norm_takes_products for part in self.parts)

    @property
    def _is_factorised(self) -> bool:
        smaller = min(self.shape)
        is_whole = smaller <= SMALL or (smaller <= FACTORISABLE and self.dense() is not None)
        return is_whole and not is_own_code(self)

    @cached_property
    def norm(self) -> NormBound:
        """From the norms of the parts; by products with the whole where it is small, or not all of them are at hand."""
        if not self.norm_at_hand or 0 in self.shape:
            return norm_bound(self)
        upper, estimate = self._norm_of_parts()
        if self._is_factorised:
            whole = norm_bound(self)
            # Entries were found by products, each with a rounding error.
            within = whole.upper + math.sqrt(min(self.shape)) * self.product_error
            return NormBound(min(upper, within), whole.estimate, whole.method)
        if math.isnan(estimate):
            estimate = 0.0 if is_own_code(self) else min(power_estimate(self), upper)
        return NormBound(upper, estimate, _PARTS, sum(part.norm.failure_probability for part in self.parts))

    @abstractmethod
    def _norm_of_parts(self) -> tuple[float, float]:
        """An upper bound, and a lower one, or NaN."""

    @property
    def product_error(self) -> float:
        # No product with the caller's code is made to learn its size.
        if all(part.norm_at_hand or "norm" in part.__dict__ for part in self.parts):
            return self._error_of_parts()
        return super().product_error

    @abstractmethod
    def _error_of_parts(self) -> float: ...

    def smallest_singular_value(self, positive: bool = False) -> SmallestSingularValue:
        found = super().smallest_singular_value(positive)
        # The entries behind it were found by products.
        error = 0.0 if self.dense() is not None else math.sqrt(min(self.shape)) * self.product_error
        return SmallestSingularValue(max(found.lower - error, 0.0), found.estimate, found.method)


@final
class Scaled(Composite):
    """A number times an operator: what `2.0 * A` is.

    Examples
    --------
    >>> (-2.0 * Identity(2)).forward(np.array([1.0, 3.0]))
    array([-2., -6.])
    """

    def __init__(self, part: Operator, factor: Any) -> None:
        self.factor, self.parts = as_number(factor, "Operator: factor"), (part,)
        self.x_shape, self.y_shape, self.x_dtype, self.y_dtype = part.x_shape, part.y_shape, part.x_dtype, part.y_dtype

    def __repr__(self) -> str:
        return f"{self.factor:g} * {self.parts[0]!r}"

    def forward(self, x: Array, out: Array | None = None) -> Array:
        product = self.parts[0].forward(x, out)
        return np.multiply(self.factor, product, out=product)

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        product = self.parts[0].adjoint(y, out)
        return np.multiply(self.factor, product, out=product)

    def gram_symbol(self, basis: str = "dct") -> Array | None:
        symbol = self.parts[0].gram_symbol(basis)
        return None if symbol is None else self.factor**2 * symbol

    @cached_property
    def entries(self) -> Any:
        matrix = self.parts[0].entries
        return None if matrix is None else self.factor * matrix

    def dense(self) -> Array | None:
        matrix = self.parts[0].dense()
        return None if matrix is None else self.factor * matrix

    def _norm_of_parts(self) -> tuple[float, float]:
        norm, size = self.parts[0].norm, abs(self.factor)
        return size * norm.upper * (1.0 + 2.0 * _EPS), size * norm.estimate

    def _error_of_parts(self) -> float:
        (part,) = self.parts
        return abs(self.factor) * (part.product_error + 2.0 * _EPS * part.size_bound)

    def smallest_singular_value(self, positive: bool = False) -> SmallestSingularValue:
        found, size = self.parts[0].smallest_singular_value(positive), abs(self.factor)
        return SmallestSingularValue(size * found.lower * (1.0 - 4.0 * _EPS), size * found.estimate, found.method)


@final
class Transposed(Composite):
    """The transpose of an operator: what `A.T` is.

    Examples
    --------
    >>> import saddleslide as ss
    >>> Transposed(ss.operators.as_operator(np.array([[1.0, 2.0]]))).forward(np.array([1.0]))
    array([1., 2.])
    """

    def __init__(self, part: Operator) -> None:
        self.parts = (part,)
        self.x_shape, self.y_shape, self.x_dtype, self.y_dtype = part.y_shape, part.x_shape, part.y_dtype, part.x_dtype

    def __repr__(self) -> str:
        return f"{self.parts[0]!r}.T"

    @property
    def T(self) -> Operator:
        return self.parts[0]

    def forward(self, x: Array, out: Array | None = None) -> Array:
        return self.parts[0].adjoint(x, out)

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        return self.parts[0].forward(y, out)

    @cached_property
    def entries(self) -> Any:
        matrix = self.parts[0].entries
        return None if matrix is None else matrix.T

    def dense(self) -> Array | None:
        matrix = self.parts[0].dense()
        return None if matrix is None else matrix.T

    def _norm_of_parts(self) -> tuple[float, float]:
        return self.parts[0].norm.upper, self.parts[0].norm.estimate

    def _error_of_parts(self) -> float:
        return self.parts[0].product_error


@final
class Paired(Composite):
    """A real operator on the real and the imaginary parts of complex arrays: what `A.of_pairs()` is.

    Examples
    --------
    >>> Paired(Diagonal([1.0, 2.0])) @ np.array([1.0, 1.0j])
    array([1.+0.j, 0.+2.j])
    """

    def __init__(self, part: Operator) -> None:
        self.parts = (part,)
        self.x_shape, self.y_shape = (*part.x_shape, 2), (*part.y_shape, 2)
        self.x_dtype = self.y_dtype = COMPLEX

    def __repr__(self) -> str:
        return f"{self.parts[0]!r} on complex arrays"

    def forward(self, x: Array, out: Array | None = None) -> Array:
        return self._both(self.parts[0].forward, x, self.y_shape, out)

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        return self._both(self.parts[0].adjoint, y, self.x_shape, out)

    def _both(self, product: Callable[[Array], Array], v: Array, shape: Shape, out: Array | None) -> Array:
        out = blank(shape, v) if out is None else out
        for half in range(2):
            out[..., half] = product(v[..., half].copy())
        return out

    def _norm_of_parts(self) -> tuple[float, float]:
        return self.parts[0].norm.upper, self.parts[0].norm.estimate

    def _error_of_parts(self) -> float:
        return self.parts[0].product_error

    def smallest_singular_value(self, positive: bool = False) -> SmallestSingularValue:
        return self.parts[0].smallest_singular_value(positive)


@final
class Composition(Composite):
    """One operator after another: what `A @ B` is.

    Examples
    --------
    >>> import saddleslide as ss
    >>> D = ss.operators.FiniteDifferences((3,))
    >>> Composition(D.T, D).forward(np.array([0.0, 1.0, 0.0]))
    array([-1.,  2., -1.])
    """

    def __init__(self, *parts: Operator) -> None:
        self.parts = tuple(one for part in parts for one in (part.parts if isinstance(part, Composition) else (part,)))
        for left, right in zip(self.parts[:-1], self.parts[1:], strict=True):
            if left.shape[1] != right.shape[0]:
                raise InputError(
                    f"A @ B: A takes arrays of shape {left.x_shape}, B gives arrays of shape {right.y_shape}; expected "
                    "equal sizes."
                )
        self.x_shape, self.y_shape = self.parts[-1].x_shape, self.parts[0].y_shape
        self.x_dtype, self.y_dtype = self.parts[-1].x_dtype, self.parts[0].y_dtype

    def __repr__(self) -> str:
        return " @ ".join(map(repr, self.parts))

    def forward(self, x: Array, out: Array | None = None) -> Array:
        for part in self.parts[:0:-1]:
            x = part.forward(x.reshape(part.x_shape))
        return self.parts[0].forward(x.reshape(self.parts[0].x_shape), out)

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        for part in self.parts[:-1]:
            y = part.adjoint(y.reshape(part.y_shape))
        return self.parts[-1].adjoint(y.reshape(self.parts[-1].y_shape), out)

    def gram_symbol(self, basis: str = "dct") -> Array | None:
        """(A B)^T A B <= |A|^2 B^T B."""
        symbol, after = self.parts[-1].gram_symbol(basis), self.parts[:-1]
        if symbol is None or not all(part.norm_at_hand for part in after):
            return None
        return symbol * (1.0 + 4.0 * len(after) * _EPS) * math.prod(part.norm.upper for part in after) ** 2

    def _norm_of_parts(self) -> tuple[float, float]:
        rounding = 1.0 + 2.0 * len(self.parts) * _EPS
        return math.prod(part.norm.upper for part in self.parts) * rounding, math.nan

    def _error_of_parts(self) -> float:
        error, size = 0.0, 1.0
        for part in reversed(self.parts):
            error = part.product_error * (size + error) + part.size_bound * error
            size *= part.size_bound
        return error


@final
class Sum(Composite):
    """A sum of operators: what `A + B` is.

    Examples
    --------
    >>> (Identity(2) + Diagonal([1.0, 2.0])).forward(np.ones(2))
    array([2., 3.])
    """

    def __init__(self, *parts: Operator) -> None:
        self.parts = tuple(one for part in parts for one in (part.parts if isinstance(part, Sum) else (part,)))
        first = self.parts[0]
        self.x_shape, self.y_shape, self.x_dtype, self.y_dtype = (
            first.x_shape, first.y_shape, first.x_dtype, first.y_dtype,
        )  # fmt: skip
        if wrong := [part for part in self.parts if part.shape != first.shape]:
            shapes = f"{wrong[0].x_shape} -> {wrong[0].y_shape}"
            raise InputError(f"A + B: B maps {shapes}, A maps {self.x_shape} -> {self.y_shape}; expected equal sizes.")

    def __repr__(self) -> str:
        return f"({' + '.join(map(repr, self.parts))})"

    def forward(self, x: Array, out: Array | None = None) -> Array:
        total = self.parts[0].forward(x, out)
        for part in self.parts[1:]:
            total += part.forward(x.reshape(part.x_shape)).reshape(self.y_shape)
        return total

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        total = self.parts[0].adjoint(y, out)
        for part in self.parts[1:]:
            total += part.adjoint(y.reshape(part.y_shape)).reshape(self.x_shape)
        return total

    @cached_property
    def entries(self) -> Any:
        matrices = [part.entries for part in self.parts]
        return None if any(matrix is None for matrix in matrices) else sum(matrices[1:], start=matrices[0])

    def _norm_of_parts(self) -> tuple[float, float]:
        return sum(part.norm.upper for part in self.parts) * (1.0 + len(self.parts) * _EPS), math.nan

    def _error_of_parts(self) -> float:
        terms = len(self.parts)
        return sum(part.product_error + terms * 2.0 * _EPS * part.size_bound for part in self.parts)


@final
class Stack(Composite):
    """Several operators on the same x, their results raveled and one after the other.

    Parameters
    ----------
    *parts : Operator, or anything that `ss.operators.as_operator` takes
        The blocks; all take arrays of one size, in the shape of the first.
    scales : sequence of float, optional
        One number per block that multiplies it.

    Examples
    --------
    >>> B = Stack(Identity((2, 2)), Diagonal([[1.0, 2.0], [3.0, 4.0]]), scales=[1.0, 0.5])
    >>> y = B.forward(np.ones((2, 2)))
    >>> y
    array([1. , 1. , 1. , 1. , 0.5, 1. , 1.5, 2. ])
    >>> B.split(y)[1].tolist()
    [[0.5, 1.0], [1.5, 2.0]]
    """

    def __init__(self, *parts: Any, scales: Sequence[float] | None = None) -> None:
        from saddleslide.operators.explicit import as_operator

        self.parts = tuple(as_operator(part, name=f"Stack: part {number}") for number, part in enumerate(parts, 1))
        if not self.parts:
            raise InputError("Stack: received no operators; expected at least one.")
        self.x_shape, self.x_dtype = self.parts[0].x_shape, self.parts[0].x_dtype
        for number, part in enumerate(self.parts, 1):
            if part.shape[1] != math.prod(self.x_shape):
                raise InputError(
                    f"Stack: part {number} takes arrays of shape {part.x_shape}; expected the size of "
                    f"{self.x_shape}, the first one's."
                )
        self.scales = as_real(
            [1.0] * len(self.parts) if scales is None else scales, "Stack: scales", (len(self.parts),)
        )
        self.y_shape = (sum(part.shape[0] for part in self.parts),)

    def __repr__(self) -> str:
        return f"Stack({', '.join(map(repr, self.parts))})"

    @property
    def y_shapes(self) -> list[Shape]:
        """Shapes of the blocks."""
        return [part.y_shape for part in self.parts]

    def split(self, y: Array) -> list[Array]:
        """Views of y, one per block, in the shape of that block."""
        return views_of(y, self.y_shapes)

    def forward(self, x: Array, out: Array | None = None) -> Array:
        out = blank(self.y_shape, x) if out is None else out
        stop = 0
        for part, scale, shape in zip(self.parts, self.scales.tolist(), self.y_shapes, strict=True):
            start, stop = stop, stop + math.prod(shape)
            if on_host(x) and out.flags.c_contiguous:
                part.forward(x.reshape(part.x_shape), out[start:stop].reshape(shape))
            else:
                out[start:stop] = part.forward(x.reshape(part.x_shape)).reshape(-1)
            if scale != 1.0:
                out[start:stop] *= scale
        return out

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        out = blank(self.x_shape, y) if out is None else out
        for number, (part, scale, block) in enumerate(
            zip(self.parts, self.scales.tolist(), self.split(y), strict=True)
        ):
            pulled = part.adjoint(block).reshape(self.x_shape)
            if scale != 1.0:
                pulled *= scale
            if number:
                out += pulled
            else:
                np.copyto(out, pulled)
        return out

    def gram_symbol(self, basis: str = "dct") -> Array | None:
        total: Array | None = None
        for part, scale in zip(self.parts, self.scales.tolist(), strict=True):
            symbol = part.gram_symbol(basis)
            if symbol is None or part.x_shape != self.x_shape:
                return None
            total = scale**2 * symbol if total is None else total + scale**2 * symbol
        return total

    @cached_property
    def entries(self) -> Any:
        blocks = [part.entries for part in self.parts]
        if any(block is None for block in blocks):
            return None
        scaled = [scale * block for scale, block in zip(self.scales.tolist(), blocks, strict=True)]
        is_sparse = any(map(scipy.sparse.issparse, scaled))
        return scipy.sparse.vstack(scaled, format="csr") if is_sparse else np.concatenate(scaled)

    def dense(self) -> Array | None:
        blocks = [part.dense() for part in self.parts]
        found = [scale * block for scale, block in zip(self.scales.tolist(), blocks, strict=True) if block is not None]
        return np.concatenate(found) if len(found) == len(blocks) else None

    def _norm_of_parts(self) -> tuple[float, float]:
        rounding = 1.0 + margin_of_rounding(len(self.parts))
        norms = [part.norm for part in self.parts]
        upper = math.hypot(*(scale * norm.upper for scale, norm in zip(self.scales.tolist(), norms, strict=True)))
        lower = max(abs(scale) * norm.estimate for scale, norm in zip(self.scales.tolist(), norms, strict=True))
        symbols = [symbol for symbol in map(self.gram_symbol, ("dct", "fft")) if symbol is not None]
        return rounding * min([upper, *(math.sqrt(float(symbol.max())) for symbol in symbols)]), lower

    def _error_of_parts(self) -> float:
        terms = (2.0 + len(self.parts)) * 2.0 * _EPS
        return math.hypot(
            *(
                scale * (part.product_error + terms * part.size_bound)
                for scale, part in zip(self.scales.tolist(), self.parts, strict=True)
            )
        )


@final
class Identity(Operator):
    """The array itself, copied.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of x.
    dtype : float or complex, optional
        With `complex`, x is the view of a complex array of that shape: (*shape, 2).

    Examples
    --------
    >>> Identity(3).forward(np.array([1.0, 2.0, 3.0]))
    array([1., 2., 3.])
    """

    def __init__(self, shape: Any, dtype: Any = float) -> None:
        pairs = is_complex(dtype, "Identity")
        self.x_shape = self.y_shape = as_shape(shape, "Identity") + (2,) * pairs
        self.x_dtype = self.y_dtype = COMPLEX if pairs else REAL

    def __repr__(self) -> str:
        return f"Identity({self.x_shape})"

    def forward(self, x: Array, out: Array | None = None) -> Array:
        if out is None:
            return x.copy()
        np.copyto(out, x)
        return out

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        return self.forward(y, out)

    @cached_property
    def entries(self) -> Any:
        return scipy.sparse.eye_array(self.shape[1], format="csr")

    def gram_symbol(self, basis: str = "dct") -> Array:
        return np.ones(self.x_shape)

    @cached_property
    def norm(self) -> NormBound:
        size = float(0 not in self.x_shape)
        return NormBound(size, size, "closed form")

    @property
    def product_error(self) -> float:
        return 0.0

    def smallest_singular_value(self, positive: bool = False) -> SmallestSingularValue:
        return SmallestSingularValue(self.norm.upper, self.norm.upper, "closed form")


@final
class Diagonal(Operator):
    """Every entry of x times a number of its own.

    Parameters
    ----------
    d : array of real or complex numbers
        The numbers, in the shape of x; complex ones make x complex.
    dtype : complex, optional
        x is complex, also beside real numbers.

    Examples
    --------
    >>> Diagonal([1.0, 2.0]).forward(np.array([3.0, 3.0]))
    array([3., 6.])
    >>> Diagonal([1j]) @ np.array([2.0 + 1.0j])
    array([-1.+2.j])
    """

    def __init__(self, d: Any, dtype: Any = None) -> None:
        given = np.asarray(d) if not hasattr(type(d), "__dlpack__") else d
        is_turning = getattr(given.dtype, "kind", "") == "c"
        pairs = is_turning or (dtype is not None and is_complex(dtype, "Diagonal"))
        if is_turning and dtype is not None and not is_complex(dtype, "Diagonal"):
            raise InputError(
                f"Diagonal: d has dtype {given.dtype}, dtype is {dtype!r}; expected real numbers beside it."
            )
        values = as_real(to_real(given) if is_turning else given, "Diagonal: d")
        if values.ndim == 0:
            raise InputError("Diagonal: d is one number; expected one for every entry of x. Use d * Identity(shape).")
        self.d: Any = to_complex(values) if is_turning else frozen(values[..., None]) if pairs else values
        self.x_shape = self.y_shape = values.shape if is_turning or not pairs else (*values.shape, 2)
        self.x_dtype = self.y_dtype = COMPLEX if pairs else REAL
        self._is_turning = is_turning

    def __repr__(self) -> str:
        return f"Diagonal({self.x_shape})"

    def _times(self, d: Any, x: Array, out: Array | None) -> Array:
        if not self._is_turning:
            found: Array = np.multiply(beside(x, d), x, out=out)
            return found
        return receive(to_real(d * to_complex(to_host(x))), self.x_shape, "Diagonal x", out, x)

    def forward(self, x: Array, out: Array | None = None) -> Array:
        return self._times(self.d, x, out)

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        return self._times(np.conj(self.d) if self._is_turning else self.d, y, out)

    @cached_property
    def entries(self) -> Any:
        return None if self.x_dtype == COMPLEX else scipy.sparse.diags_array(self.d.ravel(), format="csr")

    def gram_symbol(self, basis: str = "dct") -> Array:
        """The square of the largest number, which is an upper bound in any basis."""
        return np.full(self.x_shape, self.norm.upper**2 * (1.0 + 2.0 * _EPS))

    @cached_property
    def norm(self) -> NormBound:
        exact = float(np.abs(self.d).max(initial=0.0))
        return NormBound(exact * (1.0 + 4.0 * _EPS * self._is_turning), exact, "closed form")

    @property
    def product_error(self) -> float:
        return summation_error(4 if self._is_turning else 1) * self.norm.upper

    def smallest_singular_value(self, positive: bool = False) -> SmallestSingularValue:
        sizes = np.abs(self.d)
        counted = sizes[sizes > 0.0] if positive else sizes
        least = float(counted.min()) if counted.size else 0.0
        return SmallestSingularValue(least * (1.0 - 4.0 * _EPS * self._is_turning), least, "closed form")


@final
class Part(Operator):
    """One of several unknowns that lie in x one after the other, raveled: see `split_unknowns`.

    Parameters
    ----------
    shapes : sequence of shapes
        Those of all unknowns.
    index : int
        Which of them.

    Examples
    --------
    >>> Part([(2,), (1, 2)], 1).forward(np.array([1.0, 2.0, 3.0, 4.0]))
    array([[3., 4.]])
    """

    def __init__(self, shapes: Sequence[Any], index: int) -> None:
        self.shapes, self.index = [as_shape(shape, "Part: shape") for shape in shapes], index
        sizes = [math.prod(shape) for shape in self.shapes]
        self.x_shape, self.y_shape = (sum(sizes),), self.shapes[index]
        self.start, self.stop = sum(sizes[:index]), sum(sizes[: index + 1])

    def __repr__(self) -> str:
        return f"Part({self.start}:{self.stop} of {self.x_shape[0]} as {self.y_shape})"

    def forward(self, x: Array, out: Array | None = None) -> Array:
        found: Array = x[self.start : self.stop].reshape(self.y_shape)
        if out is None:
            return found.copy()
        np.copyto(out, found)
        return out

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        out = blank(self.x_shape, y) if out is None else out
        out.fill(0.0)
        out[self.start : self.stop] = y.reshape(-1)
        return out

    @cached_property
    def norm(self) -> NormBound:
        size = float(self.stop > self.start)
        return NormBound(size, size, "closed form")

    @property
    def product_error(self) -> float:
        return 0.0

    def smallest_singular_value(self, positive: bool = False) -> SmallestSingularValue:
        least = self.norm.upper if positive or self.stop - self.start == self.x_shape[0] else 0.0
        return SmallestSingularValue(least, least, "closed form")


def split_unknowns(*shapes: Any) -> tuple[Part, ...]:
    """Operators that pick the unknowns of an objective in several of them; x is flat and has all, one after the other.

    Parameters
    ----------
    *shapes : int or tuple of int
        One for every unknown.

    Returns
    -------
    tuple of Part
        One for every unknown: `h @ u`, `h @ (A @ u - w)` are terms, and `u @ result.x` is its part of the answer.

    Examples
    --------
    >>> import saddleslide as ss
    >>> u, w = split_unknowns(2, (1, 2))
    >>> (u - ss.operators.Identity(2) @ w) @ np.array([1.0, 2.0, 3.0, 5.0])
    array([-2., -3.])
    """
    if not shapes:
        raise InputError("split_unknowns: received no shapes; expected one for every unknown.")
    return tuple(Part(shapes, index) for index in range(len(shapes)))
