"""The norm of the x block: P, an upper bound S on B^T B, and solves with both; weights of entries, and any P."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, TypeAlias, final

import numpy as np
import scipy

from saddleslide.arrays.base import Array, Shape, as_number, as_real, beside, on_host
from saddleslide.arrays.kinds import NUMPY, refuse_masked
from saddleslide.errors import InputError
from saddleslide.operators import base as operators
from saddleslide.watcher import made

# Power iterations find the norm of B in the metric; the margin covers what they leave.
_ITERATIONS, _MARGIN = 40, 1.1
# Sides up to which the eigenvalues of a matrix are computed.
_SMALL = 1200
_Product: TypeAlias = Callable[[Array], Array]


class Metric(ABC):
    """|x|_P^2 = <x, P x>, in coordinates X of the metric's own, with S >= B^T B beside it.

    Examples
    --------
    >>> Blocks(scale=2.0, coupling_norm=3.0).norm_squared(np.ones(2))
    4.0
    """

    name: str

    @abstractmethod
    def with_coupling(self, coupling: operators.Operator) -> Metric:
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

    def to_dual(self, g: Array) -> Array:
        """Coordinates of a gradient: inner products with those of points are the same."""
        return self.to_basis(g)

    def from_basis(self, X: Array) -> Array:
        """Point with these coordinates."""
        return X

    @abstractmethod
    def apply(self, X: Array) -> Array:
        """P X."""

    @abstractmethod
    def apply_coupling(self, X: Array) -> Array:
        """S X."""

    @abstractmethod
    def apply_near(self, X: Array, rho: float, sigma: Array | float) -> Array:
        """(rho S + sigma I) X, or an upper bound on it."""

    @abstractmethod
    def solve(self, T: Array, L: float, rho: float, sigma: Array | float = 0.0) -> Array:
        """(L P + rho S + sigma I)^-1 T, with the same bound."""

    def product(self, x: Array) -> Array:
        """P x, points in and out."""
        return self.from_basis(self.apply(self.to_basis(x)))

    def inverse(self, x: Array) -> Array:
        """P^-1 x, points in and out."""
        return self.from_basis(self.solve(self.to_dual(x), 1.0, 0.0))

    def invert(self, x: Array) -> None:
        """Replace x by P^-1 x."""
        np.copyto(x, self.inverse(x))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a plan; a metric made of functions has none."""
        raise InputError(f"metric {self.name!r} is made of functions and can not be written as data; pass it again.")

    def __eq__(self, other: object) -> bool:
        """Metrics of one kind with the same numbers are equal, and so is the data that a plan from a file has."""
        try:
            return bool(self.to_dict() == (other.to_dict() if isinstance(other, Metric) else other))
        except InputError:
            return self is other

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    @abstractmethod
    def largest(self) -> float:
        """Upper bound on the eigenvalues of P."""

    @property
    def keeps_identity(self) -> bool:
        """Whether the identity is itself in the coordinates, so that solves with multiples of it are exact."""
        return False

    @property
    @abstractmethod
    def typical(self) -> float:
        """A typical eigenvalue of P."""

    @property
    @abstractmethod
    def balance(self) -> float:
        """A typical eigenvalue of P over one of S; infinite where S = 0."""

    def norm_squared(self, X: Array) -> float:
        """|x|_P^2 from coordinates."""
        return float(np.vdot(X, self.apply(X)))

    def product_norm_squared(self, X: Array) -> float:
        """Upper bound on |Bx|^2 from coordinates."""
        return float(np.vdot(X, self.apply_coupling(X)))


class Symbol(Metric):
    """P and S diagonal in one orthonormal basis: `symbol` and `coupling_symbol`, numbers or arrays."""

    symbol: Array | float
    coupling_symbol: Array | float

    @property
    def spread(self) -> float:
        """The identity is at most this in the coordinates."""
        return 1.0

    @property
    def keeps_identity(self) -> bool:
        return True

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

    def apply_coupling(self, X: Array) -> Array:
        return self.coupling_symbol * X

    def apply_near(self, X: Array, rho: float, sigma: Array | float) -> Array:
        return (rho * self.coupling_symbol + self.spread * sigma) * X

    def solve(self, T: Array, L: float, rho: float, sigma: Array | float = 0.0) -> Array:
        return np.divide(T, self.weight(L, rho) + self.spread * sigma)

    def weight(self, L: float, rho: float) -> Array | float:
        """L P + rho S as numbers."""
        return L * self.symbol + rho * self.coupling_symbol

    @property
    def largest(self) -> float:
        return float(np.max(self.symbol, initial=0.0))

    @property
    def typical(self) -> float:
        return float(np.mean(self.symbol))

    @property
    def balance(self) -> float:
        coupling = float(np.mean(self.coupling_symbol))
        return self.typical / coupling if coupling > 0.0 else np.inf

    def norm_squared(self, X: Array) -> float:
        return float(np.sum(self.symbol * X * X))

    def product_norm_squared(self, X: Array) -> float:
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


@final
class Blocks(Entrywise):
    """P = scale * identity on the x block.

    Examples
    --------
    >>> Blocks(scale=1.0, coupling_norm=2.0).coupling_symbol
    4.0
    """

    name = "blocks"

    def __init__(self, scale: float, coupling_norm: float) -> None:
        self.symbol, self.coupling_symbol = scale, coupling_norm * coupling_norm

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.name, "symbol": self.symbol}

    def with_coupling(self, coupling: operators.Operator) -> Blocks:
        return Blocks(float(self.symbol), coupling.norm.upper)


@final
class Diagonal(Entrywise):
    """P = diag(weights), one number > 0 per entry of x; keeps boxes and separable simple terms.

    Parameters
    ----------
    weights : array
        About the diagonal of the Hessian of f; a common factor does not matter.

    Examples
    --------
    >>> Diagonal([1.0, 4.0]).inverse(np.ones(2))
    array([1.  , 0.25])
    """

    name = "diagonal"

    def __init__(self, weights: Any, coupling_symbol: Array | float = 0.0) -> None:
        symbol = as_real(weights, "Diagonal: weights")
        if not np.all(symbol > 0.0):
            raise InputError(f"Diagonal: the smallest weight is {np.min(symbol, initial=np.inf):g}; expected > 0.")
        self.symbol: Array = symbol
        self.coupling_symbol = coupling_symbol

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.name, "symbol": np.asarray(self.symbol).tolist()}

    def with_coupling(self, coupling: operators.Operator) -> Diagonal:
        return Diagonal(self.symbol, coupling.norm.upper * coupling.norm.upper)


@final
class Operator(Metric):
    """P known through x -> P x and its inverse; `Operator.of` takes a matrix.

    `ss.solve` takes it for a block without active constraint, schedules of the theorems for any set with a projection.

    Parameters
    ----------
    apply, solve : callable
        x -> P x and x -> P^-1 x, P symmetric and positive definite, arrays of the shape of x in and out.
    largest : float
        Upper bound on the eigenvalues of P.

    Examples
    --------
    >>> H = np.array([[2.0, 1.0], [1.0, 1.0]])
    >>> Operator(lambda x: H @ x, lambda x: np.linalg.solve(H, x), largest=3.0).product(np.ones(2))
    array([3., 2.])
    >>> Operator.of(H).inverse(np.array([3.0, 2.0])).round(9)
    array([1., 1.])
    """

    name = "operator"
    # P itself, where it is at hand.
    matrix: Array | None = None

    def __init__(
        self, apply: _Product, solve: _Product, largest: float, coupling_factor: float = 0.0, factor: float = 0.0
    ) -> None:
        if not (callable(apply) and callable(solve)):
            raise InputError("Operator: apply and solve are expected to be functions of an array.")
        self._apply, self._solve = apply, solve
        self._largest = as_number(largest, "Operator: largest", 0.0)
        if self._largest == 0.0:
            raise InputError("Operator: largest is 0; expected an upper bound > 0 on the eigenvalues of P.")
        self.coupling_factor, self.factor = coupling_factor, factor

    @classmethod
    def of(cls, matrix: Any) -> Operator:
        """P as a symmetric positive definite matrix, one row an entry of a flat block."""
        P = as_real(matrix.toarray() if scipy.sparse.issparse(matrix) else matrix, "Operator: matrix")
        if P.ndim != 2 or P.shape[0] != P.shape[1] or not np.allclose(P, P.T, rtol=1e-12, atol=0.0):
            raise InputError(f"Operator: the matrix has shape {P.shape}; expected a symmetric one.")
        try:
            factor = scipy.linalg.cho_factor(P)
        except np.linalg.LinAlgError:
            raise InputError("Operator: the matrix is not positive definite; expected all eigenvalues > 0.") from None

        def apply(x: Array) -> Array:
            return np.asarray(P @ x.ravel()).reshape(x.shape)

        def solve(x: Array) -> Array:
            return np.asarray(scipy.linalg.cho_solve(factor, x.ravel())).reshape(x.shape)

        # The norm of rows bounds the eigenvalues of a symmetric matrix.
        largest = float(np.linalg.eigvalsh(P)[-1]) * (1.0 + 1e-12) if len(P) <= _SMALL else float(abs(P).sum(1).max())
        found = cls(apply, solve, largest)
        found.matrix = P
        return found

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() if self.matrix is None else {"kind": "matrix", "matrix": self.matrix.tolist()}

    @property
    def numbers(self) -> tuple[Array | float, ...]:
        return self.coupling_factor, self.factor

    def with_numbers(self, *numbers: Array | float) -> Operator:
        found = copy(self)
        found.coupling_factor, found.factor = map(float, numbers)
        return found

    def with_coupling(self, coupling: operators.Operator) -> Operator:
        """S = c P with c about the largest eigenvalue of P^-1 B^T B, by seeded power iterations; the same for I."""
        x = np.random.default_rng(0).standard_normal(coupling.x_shape)
        # Before any work: are these an operator and its inverse?
        image = self.apply(x)
        back, size = self._solve_for(image), float(np.vdot(x, image))
        if not size > 0.0:
            raise InputError(f"Operator: <x, P x> is {size:g} for a random x; expected a positive definite P.")
        error = float(np.linalg.norm(back - x) / np.linalg.norm(x))
        if not error < 1e-3:
            raise InputError(f"Operator: solve(apply(x)) differs from x by {error:.1e} relative; expected the inverse.")

        def gram(v: Array) -> Array:
            image = made(coupling, partial(coupling.forward, v))
            return made(coupling, partial(coupling.adjoint, image))

        factors = [_MARGIN * self._largest_beside(product, x) for product in (gram, lambda v: v)]
        return self.with_numbers(*factors)

    def _largest_beside(self, product: _Product, x: Array) -> float:
        """About the largest eigenvalue of P^-1 K, from products with K."""
        found = 0.0
        for _ in range(_ITERATIONS):
            x = x / np.sqrt(float(np.vdot(x, self.apply(x))))
            image = product(x)
            found = max(found, float(np.vdot(x, image)))
            x = self._solve_for(image)
            if not np.any(x):
                break
        return found

    def apply(self, X: Array) -> Array:
        return _check_shape(NUMPY.hand(self._apply, X), X, "apply")

    def _solve_for(self, T: Array) -> Array:
        return _check_shape(NUMPY.hand(self._solve, T), T, "solve")

    def apply_coupling(self, X: Array) -> Array:
        return self.coupling_factor * self.apply(X)

    def apply_near(self, X: Array, rho: float, sigma: Array | float) -> Array:
        return (rho * self.coupling_factor + sigma * self.factor) * self.apply(X)

    def solve(self, T: Array, L: float, rho: float, sigma: Array | float = 0.0) -> Array:
        return self._solve_for(T) / (L + rho * self.coupling_factor + sigma * self.factor)

    @property
    def largest(self) -> float:
        return self._largest

    @property
    def typical(self) -> float:
        return 1.0 / self.factor

    @property
    def balance(self) -> float:
        return 1.0 / self.coupling_factor if self.coupling_factor > 0.0 else np.inf


def as_metric(given: Any, shape: Shape, name: str = "metric") -> Metric | None:
    """A norm of a block of this shape: one of `ss.metrics`, a matrix, or a number; None for the Euclidean one.

    Examples
    --------
    >>> as_metric(np.diag([1.0, 2.0]), (2,)).product(np.ones(2)), as_metric(1.0, (2,))
    (array([1., 2.]), None)
    """
    if not isinstance(given, Metric | np.ndarray) and not scipy.sparse.issparse(given):
        number = as_number(1.0 if given is None else given, name)
        if number <= 0.0:
            raise InputError(f"{name}: the weight is {number:g}; expected a number > 0.")
        return None if number == 1.0 else Blocks(number, 0.0)
    found = given if isinstance(given, Metric) else Operator.of(given)
    size, sides = math.prod(shape), np.shape(getattr(found, "symbol", 1.0))
    rows = size if not isinstance(found, Operator) or found.matrix is None else len(found.matrix)
    if sides not in ((), shape) or rows != size:
        raise InputError(f"{name} {found.name!r} has shape {sides or (rows, rows)}; expected that of a block {shape}.")
    return found


def _check_shape(answer: Any, like: Array, name: str) -> Array:
    refuse_masked(answer)
    found = np.asarray(answer, dtype=np.float64)
    if found.shape != like.shape:
        raise InputError(f"Operator: {name} returned shape {found.shape} for an array of shape {like.shape}.")
    return beside(like, found)  # type: ignore[no-any-return]
