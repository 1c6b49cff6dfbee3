"""Bounds on the spectrum of an operator. A bound and an estimate are never the same field."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import scipy

from saddleslide.arrays.base import Array, Shape, inner_product, length_of
from saddleslide.operators.adjoint_test import sign_vector
from saddleslide.watcher import made

if TYPE_CHECKING:
    from saddleslide.operators.base import Operator

_Answer = TypeVar("_Answer")
# Below this number of columns or rows, the whole matrix is as cheap as the random search, and exact.
SMALL = 64
# Largest side for which a matrix at hand is factorised.
FACTORISABLE = 1200
# Most entries of a matrix that is written out where only products with it, or few of its entries, are at hand: 40 MB.
DENSE_ENTRIES = 5_000_000
LANCZOS_STEPS = 60
# Operations of a factorisation that take as long as one of a product with a sparse matrix, twice a step.
_FACTORS = 10.0
FAILURE_PROBABILITY = 1e-10
# How a norm was found that the caller said.
DECLARED = "declared"


@dataclass(frozen=True)
class NormBound:
    """Spectral norm of a linear map.

    Parameters
    ----------
    upper : float
        Not below the true norm (with probability 1 - `failure_probability` over the seeded start vector).
    estimate : float
        Best guess, never above the true norm but for rounding.
    method : str
        How it was found.
    failure_probability : float
        0 for deterministic bounds.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> bound = ss.operators.as_operator(np.diag([3.0, 4.0])).norm
    >>> round(bound.upper, 6), bound.failure_probability
    (4.0, 0.0)
    """

    upper: float
    estimate: float
    method: str
    failure_probability: float = 0.0

    @property
    def margin(self) -> float:
        """How far the upper bound lies above the estimate, relative to the estimate."""
        return self.upper / self.estimate - 1.0 if self.estimate > 0.0 else 0.0


@dataclass(frozen=True)
class SmallestSingularValue:
    """Smallest (positive) singular value: a lower bound apart from the estimate.

    Examples
    --------
    >>> SmallestSingularValue(lower=0.0, estimate=0.1, method="shift").lower
    0.0
    """

    lower: float
    estimate: float
    method: str


def margin_of_rounding(size: int) -> float:
    """Relative rounding error allowed for a factorisation of this size."""
    return 8.0 * float(np.finfo(np.float64).eps) * max(size, 4)


def summation_error(terms: int) -> float:
    """Rounding error of a sum of products in any order, relative to the sum of their sizes."""
    return float(np.finfo(np.float64).eps) * 0.5 * (1.0 + terms)


def may_be_dense(shape: tuple[int, ...]) -> bool:
    """Whether a matrix of this shape may be written out, however few entries it has."""
    return math.prod(shape) <= DENSE_ENTRIES


def _at_hand(B: Operator) -> bool:
    """Whether all entries are there already, or may be written out."""
    return may_be_dense((*B.x_shape, *B.y_shape)) or B.dense() is not None


def _sides(B: Operator) -> tuple[int, int]:
    """Numbers of columns and of rows."""
    return math.prod(B.x_shape), math.prod(B.y_shape)


def _forward(B: Operator, x: Array) -> Array:
    return made(B, lambda: B.forward(x))


def _adjoint(B: Operator, y: Array) -> Array:
    return made(B, lambda: B.adjoint(y))


def _units(shape: Shape) -> Array:
    return np.eye(math.prod(shape)).reshape(-1, *shape)


def as_dense(B: Operator) -> Array:
    """The matrix of an operator, from products with unit vectors of the smaller side when it is not at hand."""
    matrix, (columns, rows) = B.dense(), _sides(B)
    if matrix is not None:
        return matrix
    if columns <= rows:
        return np.array([_forward(B, unit).ravel() for unit in _units(B.x_shape)]).reshape(columns, rows).T
    return np.array([_adjoint(B, unit).ravel() for unit in _units(B.y_shape)]).reshape(rows, columns)


def norm_bound(B: Operator) -> NormBound:
    """Exact for small or factorisable operators, else a random Lanczos bound."""
    smaller, larger = sorted(_sides(B))
    if smaller == 0:
        return NormBound(0.0, 0.0, "empty")
    if smaller <= SMALL and not _at_hand(B):
        return gram_norm_bound(B)
    # All singular values of a sparse matrix may take far longer than Lanczos steps.
    worth = smaller * smaller * larger <= _FACTORS * LANCZOS_STEPS * (B.operations or math.inf)
    if smaller <= SMALL or (smaller <= FACTORISABLE and worth and B.dense() is not None):
        estimate = float(B.singular_values[0])
        return NormBound(estimate * (1.0 + margin_of_rounding(larger)), estimate, "singular values")
    return lanczos_norm_bound(B)


def gram_norm_bound(B: Operator) -> NormBound:
    """From all entries of B^T B or B B^T, whichever is smaller: for a long side and a short one."""
    columns, rows = _sides(B)
    if columns <= rows:
        gram = np.array([_adjoint(B, _forward(B, unit)).ravel() for unit in _units(B.x_shape)])
    else:
        gram = np.array([_forward(B, _adjoint(B, unit)).ravel() for unit in _units(B.y_shape)])
    if not np.isfinite(gram).all():
        return NormBound(math.inf, math.inf, "Gram matrix: a product is not finite")
    estimate = math.sqrt(max(float(scipy.linalg.eigvalsh(0.5 * (gram + gram.T))[-1]), 0.0))
    return NormBound(estimate * (1.0 + margin_of_rounding(max(columns, rows))), estimate, "Gram matrix")


def lanczos_norm_bound(B: Operator, steps: int = LANCZOS_STEPS) -> NormBound:
    """Upper bound from `steps` Lanczos steps on B^T B with a seeded random start.

    Kuczynski and Wozniakowski (1992), Theorem 4.2: for a start uniform on the sphere, the Ritz value xi of k steps
    satisfies P(lambda_max > xi / (1 - e)) <= 1.648 sqrt(n) exp(-sqrt(e) (2k - 1)), so e follows from the
    probability of failure that we accept.
    """
    v = np.random.default_rng(0).standard_normal(B.x_shape)
    v /= np.linalg.norm(v)
    previous, beta = np.zeros_like(v), 0.0
    diagonal: list[float] = []
    off_diagonal: list[float] = []
    for _ in range(steps):
        w = _adjoint(B, _forward(B, v)) - beta * previous
        diagonal.append(inner_product(v, w))
        w -= diagonal[-1] * v
        beta = length_of(w)
        off_diagonal.append(beta)
        if not math.isfinite(beta):
            return NormBound(math.inf, math.inf, "Lanczos: a product is not finite")
        if not beta > 1e-14 * max(diagonal):
            break
        previous, v = v, w / beta
    top = float(scipy.linalg.eigvalsh_tridiagonal(diagonal, off_diagonal[:-1])[-1]) if diagonal[0] > 0.0 else 0.0
    estimate, n = math.sqrt(max(top, 0.0)), math.prod(B.x_shape)
    gap = (math.log(1.648 * math.sqrt(n) / FAILURE_PROBABILITY) / (2 * steps - 1)) ** 2
    upper = estimate / math.sqrt(1.0 - gap) * (1.0 + margin_of_rounding(n))
    return NormBound(upper, estimate, f"Lanczos, {len(diagonal)} steps", FAILURE_PROBABILITY)


def power_estimate(B: Operator, steps: int = 1) -> float:
    """A lower bound on the norm of an operator of ours, from 2 `steps` + 1 products."""
    v = sign_vector(B.x_shape)
    for _ in range(steps):
        w = B.adjoint(B.forward(v))
        size = length_of(w)
        if not 0.0 < size < math.inf:
            return 0.0
        v = w / size
    return length_of(B.forward(v))


# Lanczos steps for a smallest singular value, and what is added where they tell nothing, up to a last number.
SMALLEST_STEPS = (60, 240)


def lanczos_smallest(B: Operator, positive: bool) -> SmallestSingularValue:
    """A lower bound from products: |B|^2 less a Lanczos bound on the largest eigenvalue of |B|^2 I - B^T B.

    On the smaller of both sides: where that Gram matrix is positive definite, its smallest eigenvalue is the smallest
    positive one of the other too. It tells something while |B|^2 is at most 1e2 times the smallest eigenvalue, and
    holds with the probability that such bounds of norms hold with.
    """
    columns, rows = _sides(B)
    if rows < columns and not positive:
        return SmallestSingularValue(0.0, 0.0, f"{rows} x {columns} has a kernel")
    size = B.norm.upper**2
    if not 0.0 < size < math.inf:
        return SmallestSingularValue(0.0, 0.0, "a product is 0 or not finite")
    shape = B.x_shape if columns <= rows else B.y_shape

    def gram(v: Array) -> Array:
        return _adjoint(B, _forward(B, v)) if columns <= rows else _forward(B, _adjoint(B, v))

    lower, estimate, steps = 0.0, 0.0, 0
    for steps in SMALLEST_STEPS:
        top, estimated = _lanczos_top(lambda v: size * v - gram(v), shape, steps, size)
        lower, estimate = max(size - top, 0.0), max(size - estimated, 0.0)
        if lower > 0.25 * estimate:
            break
    return SmallestSingularValue(math.sqrt(lower), math.sqrt(estimate), f"Lanczos, {steps} steps")


def _lanczos_top(apply: Callable[[Array], Array], shape: Shape, steps: int, size: float) -> tuple[float, float]:
    """Bound and estimate of the largest eigenvalue of a matrix between 0 and `size`, all basis vectors kept apart."""
    v = np.random.default_rng(0).standard_normal(shape)
    v /= np.linalg.norm(v)
    basis, diagonal, off_diagonal = [v.ravel()], list[float](), list[float]()
    for _ in range(min(steps, v.size)):
        w = apply(basis[-1].reshape(shape)).ravel()
        diagonal.append(float(w @ basis[-1]))
        known = np.array(basis)
        for _ in range(2):
            w = w - known.T @ (known @ w)
        beta = length_of(w)
        off_diagonal.append(beta)
        if not beta > 1e-12 * size:
            break
        basis.append(w / beta)
    k, n = len(diagonal), math.prod(shape)
    estimate = float(scipy.linalg.eigvalsh_tridiagonal(diagonal, off_diagonal[:-1])[-1])
    if k >= n or not off_diagonal[-1] > 1e-12 * size:
        # The space is exhausted: a random start meets every eigenvector.
        return estimate + margin_of_rounding(n) * size, estimate
    gap = (math.log(1.648 * math.sqrt(n) / FAILURE_PROBABILITY) / (2 * k - 1)) ** 2
    top = estimate / (1.0 - gap) if gap < 1.0 else math.inf
    return top + margin_of_rounding(n) * size, estimate


def smallest_singular_value(B: Operator, positive: bool) -> SmallestSingularValue:
    """From the singular values when the matrix can be had, else unknown (estimate NaN, bound 0)."""
    columns, rows = _sides(B)
    if min(columns, rows) > FACTORISABLE:
        return SmallestSingularValue(0.0, math.nan, f"not computed: sides {rows} x {columns} exceed {FACTORISABLE}")
    if min(columns, rows) == 0:
        return SmallestSingularValue(0.0, 0.0, "empty")
    if not _at_hand(B):
        why = f"not computed: {rows} x {columns} exceeds {DENSE_ENTRIES:,} entries"
        return SmallestSingularValue(0.0, math.nan, why)
    values = B.singular_values
    if not np.isfinite(values).all():
        return SmallestSingularValue(0.0, math.nan, "not computed: a product is not finite")
    error = float(values[0]) * margin_of_rounding(max(columns, rows))
    # Fewer rows than columns leave a kernel.
    counted = values[values > 10.0 * error] if positive else values[: values.size if rows >= columns else 0]
    smallest = float(counted[-1]) if counted.size else 0.0
    return SmallestSingularValue(max(smallest - error, 0.0), smallest, "singular values")
