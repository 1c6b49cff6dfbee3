"""Operators made of others: multiples, transposes, pairs, products and sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, final

import numpy as np

from saddleslide.arrays.base import Array, Shape, as_number, blank
from saddleslide.arrays.kinds import ArrayKind
from saddleslide.errors import InputError
from saddleslide.operators.base import COMPLEX, Operator, is_own_code
from saddleslide.operators.spectrum import (
    DECLARED,
    FACTORISABLE,
    SMALL,
    NormBound,
    SmallestSingularValue,
    norm_bound,
    power_estimate,
    summation_error,
)

_EPS = summation_error(1)
_PARTS = "norms of the parts"


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

    def _norm_of_parts(self) -> tuple[float, float]:
        """An upper bound, and a lower one, or NaN: those of the only part, unless a class says more."""
        return self.parts[0].norm.upper, self.parts[0].norm.estimate

    @property
    def product_error(self) -> float:
        # No product with the caller's code is made to learn its size.
        if all(part.norm_at_hand or "norm" in part.__dict__ for part in self.parts):
            return self._error_of_parts()
        return super().product_error

    def _error_of_parts(self) -> float:
        return self.parts[0].product_error

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
    >>> import saddleslide as ss
    >>> (-2.0 * ss.operators.Identity(2)).forward(np.array([1.0, 3.0]))
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


@final
class Paired(Composite):
    """A real operator on the real and the imaginary parts of complex arrays: what `A.of_pairs()` is.

    Examples
    --------
    >>> import saddleslide as ss
    >>> Paired(ss.operators.Diagonal([1.0, 2.0])) @ np.array([1.0, 1.0j])
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
    >>> import saddleslide as ss
    >>> (ss.operators.Identity(2) + ss.operators.Diagonal([1.0, 2.0])).forward(np.ones(2))
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

    @property
    def summands(self) -> tuple[Operator, ...]:
        return self.parts

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
