"""What a coupling B is: two products, two shapes, and what is known of its spectrum."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np

from saddleslide.array_kinds import Built
from saddleslide.arrays import Array, Shape
from saddleslide.couplings.spectrum import (
    NormBound,
    SmallestSingularValue,
    norm_bound,
    singular_values,
    smallest_singular_value,
    summation_error,
)
from saddleslide.errors import InputError


class Coupling(Built, ABC):
    """A linear map B from arrays of `x_shape` to arrays of `y_shape`, with its adjoint.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> B = ss.couplings.as_coupling(np.array([[1.0, 2.0]]))
    >>> B.forward(np.array([1.0, 1.0])), B.adjoint(np.array([3.0]))
    (array([3.]), array([3., 6.]))
    """

    x_shape: Shape
    y_shape: Shape

    @abstractmethod
    def forward(self, x: Array, out: Array | None = None) -> Array:
        """B x."""

    @abstractmethod
    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        """B^T y."""

    @property
    def one_pass(self) -> bool:
        """Whether `there_and_back` is cheaper than its two products."""
        return False

    def forward_stack(self, stack: Array) -> Array:
        """B x for every x in a stack."""
        return np.stack([self.forward(x) for x in stack])

    def adjoint_stack(self, stack: Array) -> Array:
        """B^T y for every y in a stack."""
        return np.stack([self.adjoint(y) for y in stack])

    def gram_stack(self, stack: Array, weights: Array) -> Array:
        """B^T diag(weights) B x for every x in a stack."""
        return self.adjoint_stack(weights * self.forward_stack(stack))

    def there_and_back(self, x: Array, shift: Array) -> tuple[Array, Array]:
        """B x and B^T (B x - shift).

        Examples
        --------
        >>> import numpy as np, saddleslide as ss
        >>> ss.couplings.as_coupling(np.array([[1.0, 2.0]])).there_and_back(np.ones(2), np.ones(1))
        (array([3.]), array([2., 4.]))
        """
        Bx = self.forward(x)
        return Bx, self.adjoint(Bx - shift)

    def gram_symbol(self, basis: str = "dct") -> Array | None:
        """Upper bound on B^T B that is diagonal in the cosine ("dct") or Fourier ("fft") basis of the grid, or None."""
        return None

    def dense(self) -> Array | None:
        """The matrix itself when it is at hand, else None."""
        return None

    @cached_property
    def norm(self) -> NormBound:
        """Spectral norm: an upper bound with its margin, apart from the estimate. Costs products, once."""
        return norm_bound(self)

    @cached_property
    def singular_values(self) -> Array:
        """All singular values, largest first, for couplings small enough to be factorised; computed once.

        Examples
        --------
        >>> import numpy as np, saddleslide as ss
        >>> [round(float(value), 12) for value in ss.couplings.as_coupling(np.diag([2.0, 3.0])).singular_values]
        [3.0, 2.0]
        """
        return singular_values(self)

    @property
    def product_error(self) -> float:
        """C with |computed B x - B x| <= c |x|, the same for B^T; 0 while nothing is known about the size of B.

        Examples
        --------
        >>> import numpy as np, saddleslide as ss
        >>> 0.0 < ss.couplings.as_coupling(np.eye(3)).product_error < 1e-14
        True
        """
        known = self.__dict__.get("norm")
        longest = max(math.prod(self.x_shape), math.prod(self.y_shape))
        return 0.0 if known is None else summation_error(longest) * float(known.upper)

    def smallest_singular_value(self, positive: bool = False) -> SmallestSingularValue:
        """Smallest singular value of B on the x side, or the smallest positive one.

        Examples
        --------
        >>> import numpy as np, saddleslide as ss
        >>> B = ss.couplings.as_coupling(np.diag([3.0, 0.0]))
        >>> float(B.smallest_singular_value().lower)
        0.0
        >>> round(B.smallest_singular_value(positive=True).estimate, 12)
        3.0
        """
        return smallest_singular_value(self, positive)


def adjoint_mismatch(coupling: Coupling, rng: int | np.random.Generator | None = 0) -> float:
    """Relative size of <Bx, y> - <x, B^T y> at one random pair (two products). About 1e-16 for a true adjoint.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> wrong = ss.couplings.as_coupling((lambda x: 2 * x, lambda y: 3 * y), x_shape=(4,), y_shape=(4,))
    >>> ss.couplings.adjoint_mismatch(wrong) > 0.01
    True
    """
    generator = np.random.default_rng(rng)
    x = generator.standard_normal(coupling.x_shape)
    y = generator.standard_normal(coupling.y_shape)
    Bx = coupling.forward(x)
    size = float(np.linalg.norm(Bx))
    if size > 0.0:
        # A y that leans towards Bx: an independent one may be orthogonal to it and hide a wrong scale.
        y += float(np.linalg.norm(y)) / size * Bx
    BTy = coupling.adjoint(y)
    scale = float(np.linalg.norm(Bx) * np.linalg.norm(y) + np.linalg.norm(x) * np.linalg.norm(BTy))
    difference = float(np.vdot(Bx, y)) - float(np.vdot(x, BTy))
    return abs(difference) / scale if scale > 0.0 or math.isnan(scale) else 0.0


def check_adjoint(coupling: Coupling, rng: int | np.random.Generator | None = 0, tolerance: float = 1e-6) -> None:
    """Raise when the adjoint of a coupling is not the transpose of its forward product (seeded, two products).

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> ss.couplings.check_adjoint(ss.couplings.FiniteDifferences((4, 5)))
    """
    if not isinstance(coupling, Coupling):
        raise InputError(
            f"check_adjoint: coupling is {type(coupling).__name__}; expected a Coupling: make one with "
            "ss.couplings.as_coupling first."
        )
    mismatch = adjoint_mismatch(coupling, rng)
    if not mismatch <= tolerance:
        raise InputError(
            f"B: <Bx, y> and <x, B^T y> differ by {mismatch:.1e} relative; expected at most {tolerance:.0e}. "
            "The adjoint is not the transpose of the forward product: check signs, scaling and boundary handling."
        )
