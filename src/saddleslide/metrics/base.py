"""What a metric of the x block offers to a method: P, an upper bound S on B^T B, and solves with both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from saddleslide.arrays.base import Array, beside, on_host
from saddleslide.errors import InputError

if TYPE_CHECKING:
    from saddleslide.operators import Coupling


class Metric(ABC):
    """|x|_P^2 = <x, P x>, in coordinates X of the metric's own, with S >= B^T B beside it.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> ss.metrics.Blocks(scale=2.0, coupling_norm=3.0).squared_norm(np.ones(2))
    4.0
    """

    name: str

    @abstractmethod
    def attached(self, coupling: Coupling) -> Metric:
        """The same P with an S that fits a coupling."""

    def beside(self, x: Array) -> Metric:
        """The same metric with its arrays where x lies."""
        return self

    @property
    @abstractmethod
    def numbers(self) -> tuple[Array | float, ...]:
        """What fitting to a Hessian and to a coupling has found: what the state of a run keeps of a metric."""

    @abstractmethod
    def with_numbers(self, *numbers: Array | float) -> Metric:
        """A metric of the same kind with these."""

    def to_basis(self, x: Array) -> Array:
        """Coordinates of x."""
        return x

    def from_basis(self, X: Array) -> Array:
        """Point with these coordinates."""
        return X

    @abstractmethod
    def apply(self, X: Array) -> Array:
        """P X."""

    @abstractmethod
    def coupling_apply(self, X: Array) -> Array:
        """S X."""

    @abstractmethod
    def solve(self, T: Array, L: float, rho: float) -> Array:
        """(L P + rho S)^-1 T."""

    def product(self, x: Array) -> Array:
        """P x, points in and out."""
        return self.from_basis(self.apply(self.to_basis(x)))

    def inverse(self, x: Array) -> Array:
        """P^-1 x, points in and out.

        Examples
        --------
        >>> import numpy as np, saddleslide as ss
        >>> ss.metrics.Diagonal([1.0, 4.0]).inverse(np.ones(2))
        array([1.  , 0.25])
        """
        return self.from_basis(self.solve(self.to_basis(x), 1.0, 0.0))

    def invert(self, x: Array) -> None:
        """Replace x by P^-1 x.

        Examples
        --------
        >>> import numpy as np, saddleslide as ss
        >>> x = np.ones(2)
        >>> ss.metrics.Diagonal([1.0, 4.0]).invert(x)
        >>> x
        array([1.  , 0.25])
        """
        np.copyto(x, self.inverse(x))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a plan; a metric made of functions has none."""
        raise InputError(f"metric {self.name!r} is made of functions and can not be written as data; pass it again.")

    @property
    @abstractmethod
    def largest(self) -> float:
        """Upper bound on the eigenvalues of P."""

    @property
    @abstractmethod
    def balance(self) -> float:
        """A typical eigenvalue of P over one of S; infinite where S = 0."""

    def squared_norm(self, X: Array) -> float:
        """|x|_P^2 from coordinates."""
        return float(np.vdot(X, self.apply(X)))

    def coupling_squared_norm(self, X: Array) -> float:
        """Upper bound on |Bx|^2 from coordinates."""
        return float(np.vdot(X, self.coupling_apply(X)))


class Symbol(Metric):
    """P and S diagonal in one orthonormal basis: `symbol` and `coupling_symbol`, numbers or arrays."""

    symbol: Array | float
    coupling_symbol: Array | float

    @property
    def numbers(self) -> tuple[Array | float, ...]:
        return self.symbol, self.coupling_symbol

    def with_numbers(self, *numbers: Array | float) -> Metric:
        found = copy(self)
        found.symbol, found.coupling_symbol = numbers
        return found

    def beside(self, x: Array) -> Metric:
        return self.with_numbers(*(beside(x, part) for part in self.numbers))

    def apply(self, X: Array) -> Array:
        return self.symbol * X

    def coupling_apply(self, X: Array) -> Array:
        return self.coupling_symbol * X

    def solve(self, T: Array, L: float, rho: float) -> Array:
        return np.divide(T, self.weight(L, rho))

    def weight(self, L: float, rho: float) -> Array | float:
        """L P + rho S as numbers."""
        return L * self.symbol + rho * self.coupling_symbol

    @property
    def largest(self) -> float:
        return float(np.max(self.symbol, initial=0.0))

    @property
    def balance(self) -> float:
        coupling = float(np.mean(self.coupling_symbol))
        return float(np.mean(self.symbol)) / coupling if coupling > 0.0 else np.inf

    def squared_norm(self, X: Array) -> float:
        return float(np.sum(self.symbol * X * X))

    def coupling_squared_norm(self, X: Array) -> float:
        return float(np.sum(self.coupling_symbol * X * X))


class Entrywise(Symbol):
    """Diagonal in the entries of x themselves, so that constraints and simple terms keep their proximal steps.

    Examples
    --------
    >>> import saddleslide as ss
    >>> isinstance(ss.metrics.Diagonal([1.0, 2.0]), Entrywise), isinstance(ss.metrics.Spectral([1.0, 2.0]), Entrywise)
    (True, False)
    """

    def invert(self, x: Array) -> None:
        if on_host(x):
            np.divide(x, self.symbol, out=x)
        else:
            super().invert(x)
