"""A function behind an operator, h(K x): by its gradient, or, in `ss.minimize`, as a block of y."""

from __future__ import annotations

from functools import cached_property
from typing import Any, final

from saddleslide.arrays.base import Array, Shape
from saddleslide.arrays.kinds import ArrayKind
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import FullSpace
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.functions.roundings import OWN_CODE, Rounding
from saddleslide.functions.sums import Composite
from saddleslide.functions.trust import is_own_class
from saddleslide.operators.base import COMPLEX, Operator, is_own_code
from saddleslide.operators.complex import dtype_beside_complex, has_complex_values
from saddleslide.operators.explicit import as_operator
from saddleslide.theory.holder import Holder

_NAME = "h @ K: K"


@final
class Composed(Composite):
    """h(K x); written `h @ K`. Where K x is complex, h is the function of complex arrays: see `Function.of_pairs`.

    Parameters
    ----------
    function : Function
        h, of K x.
    K : array, sparse matrix, LinearOperator, pair of callables or Operator
        Anything `ss.operators.as_operator` takes.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> total_variation = ss.functions.L1() @ ss.operators.FiniteDifferences((2, 2))
    >>> total_variation.value(np.array([[1.0, 2.0], [5.0, 9.0]]))
    16.0
    """

    def __init__(self, function: Function, K: Any) -> None:
        if not isinstance(function, Function):
            raise InputError(f"h @ K: h is {type(function).__name__}; expected a function from ss.functions.")
        if has_complex_values(K):
            function = function.of_pairs()
        super().__init__(function)
        # As it was given: where x has another shape than a matrix shows, it is made again.
        self.function, self.given = function, K
        if function.is_complex:
            if isinstance(K, Operator) and K.y_dtype != COMPLEX:
                # A real operator acts on real and imaginary parts.
                self.given = K = K.of_pairs()
            self.K = as_operator(K, None, function.shape and function.shape[:-1], name=_NAME, dtype=self._dtype)
        else:
            self.K = as_operator(K, None, function.shape, name=_NAME)
        if function.shape not in (None, self.K.y_shape):
            raise InputError(
                f"h @ K: h is {function!r} of arrays of shape {function.shape}, K is {self.K!r} with values of shape "
                f"{self.K.y_shape}; expected equal shapes."
            )
        self.shape: Shape | None = self.K.x_shape
        self.separable, self.is_complex = False, self.K.x_dtype == COMPLEX

    @property
    def _dtype(self) -> Any:
        return dtype_beside_complex(self.given) if self.function.is_complex else None

    def operator_on(self, shape: Shape) -> Operator:
        """K for x of a real shape, where it takes arrays of that size."""
        if self.K.x_shape == shape:
            return self.K
        return as_operator(self.given, shape[:-1] if self.is_complex else shape, None, name=_NAME, dtype=self._dtype)

    def of_pairs(self) -> Function:
        if self.is_complex:
            return self
        if self.function.is_complex:
            raise InputError(
                f"{self!r}: K takes a real x, and x is complex; expected a K made with dtype=complex, or a real x "
                "beside complex data in the other terms."
            )
        K = self.given.of_pairs() if isinstance(self.given, Operator) else self.given
        return Composed(self.function.of_pairs(), K)

    def __repr__(self) -> str:
        return f"{self.function!r} @ {self.K!r}"

    def __matmul__(self, K: Any) -> Function:
        # (h @ K) @ L is h of K L; operators multiply themselves.
        return Composed(self.function, self.K @ K)

    def stays_on_host(self, kind: ArrayKind) -> tuple[str, ...]:
        return (*super().stays_on_host(kind), *self.K.stays_on_host(kind))

    @property
    def components(self) -> tuple[Function, ...]:
        return (self.function,)

    @property
    def operators(self) -> tuple[tuple[Operator, float], ...]:
        return ((self.K, 1.0),)

    @property
    def own_code(self) -> bool:
        return super().own_code or is_own_code(self.K)

    def value(self, x: Array) -> float:
        return self.function.value(self.K.forward(x))

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        value, slope = self.function.value_and_gradient(self.K.forward(x))
        return value, self.K.adjoint(slope, out)

    def smoothness(self, domain: Domain) -> Holder:
        """|K^T (h'(K x) - h'(K v))| <= |K|^(1 + nu) H |x - v|^nu."""
        inside = self.function.smoothness(FullSpace(self.K.y_shape))
        return Holder(inside.nu, float(self.K.norm.upper ** (1.0 + inside.nu)) * inside.H)

    def exponent(self, domain: Domain) -> float:
        return self.function.smoothness(FullSpace(self.K.y_shape)).nu

    def strong_convexity(self, domain: Domain) -> float:
        return 0.0

    def hessian_product(self, v: Array) -> Array:
        return self.K.adjoint(self.function.hessian_product(self.K.forward(v)))

    @cached_property
    def error_model(self) -> Rounding:
        return OWN_CODE

    def conjugate(self) -> Function:
        raise InputError(f"{self!r}: has no closed conjugate; expected the function alone, without its operator.")

    @property
    def convex_on_trust(self) -> bool:
        return is_own_class(self.function) or self.function.convex_on_trust
