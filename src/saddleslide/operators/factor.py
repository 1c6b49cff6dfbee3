"""Symmetric matrices at hand and their Cholesky factors: solves, and certified lower bounds on the spectrum."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from saddleslide.arrays.base import Array, length_of
from saddleslide.errors import InputError

# A dense matrix of so many columns is the largest one that is factorised; a factor in a band may have as many entries
# and take as many operations.
COLUMNS = 3000
# Most multiplications that forming a sparse Gram matrix may take.
_FORMED = 2 * 10**7
_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)
# Inverse Lanczos steps before a lower bound is tried, and the parts of the estimate that are tried.
_STEPS, _PARTS = 8, (0.95, 0.7, 0.2)
# Shifted factors that are kept: proximal steps have few weights in turn.
_KEPT = 2


class Solvable(ABC):
    """A symmetric matrix H >= 0 that systems (H + shift I) z = r are solved with."""

    size: int

    @property
    @abstractmethod
    def modulus(self) -> float:
        """A lower bound on the smallest eigenvalue, rounding included; 0 where none above 0 is certain."""

    @property
    @abstractmethod
    def error(self) -> float:
        """C with |computed H v - H v| <= c |v|."""

    @abstractmethod
    def has_factor(self, shift: float = 0.0) -> bool:
        """Whether H + shift I is positive definite as far as its factor shows."""

    @abstractmethod
    def solve(self, r: Array, shift: float = 0.0) -> Array:
        """(H + shift I)^-1 r up to rounding."""

    @abstractmethod
    def product(self, v: Array) -> Array:
        """H v."""

    def inverse_form(self, r: Array, shift: float = 0.0) -> float:
        """An upper bound on <r, (H + shift I)^-1 r>; infinite where the matrix is not certainly positive definite.

        For any z and e = r - M z it is 2 <z, r> - <z, M z> + <e, M^-1 e>, and the last is at most |e|^2 / modulus.
        """
        modulus = self.modulus + shift
        if not (modulus > 0.0 and self.has_factor(shift)):
            return math.inf
        z = self.solve(r, shift)
        Mz = self.product(z) + shift * z
        size, length, turned = (length_of(v) for v in (z, r, Mz))
        wrong = self.error * size + 2.0 * _EPS * (length + turned + shift * size)
        left = length_of(r - Mz) + wrong
        inner = _EPS * (self.size + 4.0) * size * (2.0 * length + turned) + wrong * size
        return 2.0 * float(np.vdot(z, r)) - float(np.vdot(z, Mz)) + inner + 1.01 * left * left / modulus


class SymmetricMatrix(Solvable):
    """A symmetric matrix H with its Cholesky factors, made when first asked for.

    Parameters
    ----------
    matrix : array or sparse matrix
        Entries of H; of a dense one factors read the lower half.
    error : float
        A bound on the norm of what these entries, or either half of them, differ from H by.
    """

    def __init__(self, matrix: Any, error: float = 0.0) -> None:
        self._given, self.size = error, int(matrix.shape[0])
        self.order: Any = None
        self._band: Array | None = None
        if scipy.sparse.issparse(matrix):
            self.order, self._band = _find_band(matrix)
        self.matrix = matrix.toarray() if self._band is None and scipy.sparse.issparse(matrix) else matrix
        # By their shifts; None where there is none.
        self._factors: dict[float, Array | None] = {}

    @classmethod
    def of(cls, matrix: Any, error: float = 0.0) -> SymmetricMatrix | None:
        """The matrix with its factors; None where its sizes make them too dear."""
        if matrix.shape[0] <= COLUMNS:
            return cls(matrix, error)
        if not scipy.sparse.issparse(matrix) or matrix.nnz > COLUMNS**2 or _find_band(matrix)[1] is None:
            return None
        return cls(matrix, error)

    @classmethod
    def of_band(cls, band: Array, order: Array) -> SymmetricMatrix:
        """Of the diagonals from the main one down, in this order: for its factor alone."""
        made = cls(np.zeros((0, 0)))
        made.size, made.trace, made.order, made._band = order.size, float(np.abs(band[0]).sum()), order, band
        return made

    @property
    def largest(self) -> float:
        """The largest entry of the diagonal."""
        ends = np.asarray(self.matrix.diagonal()) if self._band is None else self._band[0]
        return float(np.max(ends, initial=0.0))

    @cached_property
    def trace(self) -> float:
        """Of a semidefinite matrix |h_ij| <= sqrt(h_ii h_jj), so the norm of |H| is at most the trace."""
        return float(np.abs(np.asarray(self.matrix.diagonal())).sum())

    @property
    def width(self) -> int:
        """Diagonals below the main one that a factor has."""
        return self.size - 1 if self._band is None else len(self._band) - 1

    @property
    def error(self) -> float:
        return self._given + _EPS * (0.5 * (self.size + 1.0)) * self.trace + self.size**2 * _TINY

    @cached_property
    def modulus(self) -> float:
        """A lower bound on the smallest eigenvalue of H, rounding included; 0 where none above 0 is certain.

        It is a shift s for which H - s I has a factor, less what rounding can have done to that factor: one that is
        computed to its end has L L^T = H - s I + E with |E| <= gamma trace(H), where gamma goes by the number of terms
        of the longest sum, in whatever order they are added (Demmel 1989, Rump 2006).
        """
        margin = self._given + _EPS * (self.width + 8.0) * self.trace + self.size**2 * _TINY
        if not (math.isfinite(self.trace) and self.has_factor()):
            return 0.0
        estimate = self._estimate()
        for part in _PARTS:
            # Half of the estimate is what rounding may take: below, the bound is of no use and mostly not there.
            if part * estimate > 2.0 * margin and self._cholesky(-part * estimate) is not None:
                return part * estimate - margin
        return 0.0

    def _estimate(self) -> float:
        """The smallest eigenvalue, or a little more: Lanczos steps on the inverse from a seeded start."""
        v = np.random.default_rng(0).standard_normal(self.size)
        basis = np.zeros((min(_STEPS, self.size) + 1, self.size))
        basis[0] = v / np.linalg.norm(v)
        diagonal, beside = np.zeros((2, len(basis) - 1))
        for k in range(len(diagonal)):
            known, w = basis[: k + 1], self.solve(basis[k])
            diagonal[k] = basis[k] @ w
            for _ in range(2):
                w = w - (known @ w) @ known
            beside[k] = np.sqrt(w @ w)
            if not beside[k] > 1e-12 * diagonal.max():
                diagonal, beside = diagonal[: k + 1], beside[: k + 1]
                break
            basis[k + 1] = w / beside[k]
        if not (np.isfinite(diagonal).all() and np.isfinite(beside).all()):
            return 0.0
        # Of a symmetric matrix the lower half is read.
        top = float(np.linalg.eigvalsh(np.diag(diagonal) + np.diag(beside[:-1], -1))[-1])
        return 1.0 / top if top > 0.0 else 0.0

    def _cholesky(self, shift: float) -> Any:
        """The factor of H + shift I; None where there is none."""
        if self._band is None:
            # Either half is the matrix: that of the transposed one needs no turning.
            factor = np.array(self.matrix.T if self.matrix.flags.c_contiguous else self.matrix, np.float64, order="F")
            factor.reshape(-1, order="F")[:: self.size + 1] += shift
            factor, broken = scipy.linalg.lapack.dpotrf(factor, lower=1, clean=0, overwrite_a=1)
            ends = factor.diagonal()
        else:
            band = self._band.copy()
            band[0] += shift
            factor, broken = scipy.linalg.lapack.dpbtrf(band, lower=1, overwrite_ab=1)
            ends = factor[0]
        return factor if broken == 0 and np.isfinite(ends).all() else None

    def has_factor(self, shift: float = 0.0) -> bool:
        if shift not in self._factors:
            for old in [kept for kept in self._factors if kept != 0.0][: 1 - _KEPT]:
                del self._factors[old]
            self._factors[shift] = self._cholesky(shift)
        return self._factors[shift] is not None

    def solve(self, r: Array, shift: float = 0.0) -> Array:
        if not self.has_factor(shift):
            raise InputError("SymmetricMatrix: it is not positive definite; expected a larger shift.")
        # Of several right sides every one is a column.
        factor, flat = self._factors[shift], r.reshape(self.size, -1)
        if self._band is None:
            found: Array = scipy.linalg.lapack.dpotrs(factor, flat, lower=1)[0]
        else:
            found = np.empty(flat.shape)
            found[self.order] = scipy.linalg.lapack.dpbtrs(factor, flat[self.order], lower=1)[0]
        return found.reshape(r.shape)

    def product(self, v: Array) -> Array:
        found: Array = np.asarray(self.matrix @ v.ravel()).reshape(v.shape)
        return found


class WideGram(Solvable):
    """A^T A + ridge I of a matrix with fewer rows than columns, by way of A A^T + ridge I."""

    def __init__(self, A: Any, ridge: float) -> None:
        self.A, self.ridge, self.size = A, ridge, int(A.shape[1])
        gram = A @ A.T
        self.trace = float(np.sum(np.asarray(gram.diagonal())))
        # The smaller one only has to solve well: what it is off by shows in the residual.
        self._rows = SymmetricMatrix(gram)

    @property
    def modulus(self) -> float:
        return self.ridge

    @property
    def error(self) -> float:
        return _EPS * (float(sum(self.A.shape)) + 8.0) * (self.trace + self.ridge)

    def has_factor(self, shift: float = 0.0) -> bool:
        return self.ridge + shift > 0.0 and self._rows.has_factor(self.ridge + shift)

    def product(self, v: Array) -> Array:
        flat = v.ravel()
        found: Array = np.asarray(self.A.T @ (self.A @ flat) + self.ridge * flat).reshape(v.shape)
        return found

    def solve(self, r: Array, shift: float = 0.0) -> Array:
        weight, flat = self.ridge + shift, np.ravel(r)

        def inverse(v: Array) -> Array:
            found: Array = (v - self.A.T @ self._rows.solve(self.A @ v, weight)) / weight
            return found

        z = inverse(flat)
        # A small weight loses digits; a second step finds them again.
        z = z + inverse(flat - self.product(z) - shift * z)
        return z.reshape(np.shape(r))


def gram_matrix(A: Any, weights: Array | float = 1.0, ridge: float = 0.0) -> Solvable | None:
    """A^T diag(weights) A + ridge I of a matrix, dense or of sparse rows; None where it is empty or too large."""
    rows, columns = A.shape
    sparse = scipy.sparse.issparse(A)
    if min(rows, columns) == 0 or (min(rows, columns) > COLUMNS and not sparse):
        return None
    roots = np.sqrt(np.broadcast_to(np.asarray(weights, dtype=np.float64).ravel(), (rows,)))
    if np.ndim(weights):
        A = A.multiply(roots[:, None]).tocsr() if sparse else roots[:, None] * A
    elif weights != 1.0:
        A = roots[0] * A
    if rows < columns and rows <= COLUMNS:
        return WideGram(A, ridge)
    if sparse:
        counts = np.diff(A.indptr).astype(np.float64)
        if columns > COLUMNS and float(counts @ counts) > _FORMED:
            return None
        gram = (A.T @ A + ridge * scipy.sparse.eye_array(columns)).tocsr()
        terms = int(np.max(np.bincount(A.indices, minlength=1)))
    else:
        gram, terms = A.T @ A, rows
        gram.reshape(-1)[:: columns + 1] += ridge
    # Every entry is off by that part of <|a_i|, |a_j|> <= |a_i| |a_j|, and so the matrix in norm by that of the trace.
    trace = float(np.abs(np.asarray(gram.diagonal())).sum())
    return SymmetricMatrix.of(gram, _EPS * (terms + 8.0) * trace + columns * rows * _TINY)


def band_width(matrix: Any) -> int | None:
    """Diagonals below the main one of a sparse matrix in a good order; None where a dense factor is as cheap."""
    return find_order(matrix.tocsr())[1]


def find_order(matrix: Any) -> tuple[Any, int | None]:
    """The order that keeps a symmetric sparse matrix near its diagonal, and how far; None where dense is as cheap."""
    size, entries = matrix.shape[0], matrix.tocoo()
    order = scipy.sparse.csgraph.reverse_cuthill_mckee(matrix, symmetric_mode=True)
    place = np.empty(size, dtype=np.int64)
    place[order] = np.arange(size)
    width = int(np.max(np.abs(place[entries.row] - place[entries.col]), initial=0))
    if 2 * (width + 1) > size or size * (width + 1) > COLUMNS**2 or size * (width + 1) ** 2 > COLUMNS**3:
        return None, None
    return order, width


def _find_band(matrix: Any) -> tuple[Any, Array | None]:
    """The order of `find_order` and the lower band in it; no band where dense is as cheap."""
    rows = matrix.tocsr(copy=True)
    rows.sum_duplicates()
    order, width = find_order(rows)
    if width is None:
        return None, None
    place = np.empty(matrix.shape[0], dtype=np.int64)
    place[order] = np.arange(place.size)
    entries = rows.tocoo()
    first, second = place[entries.row], place[entries.col]
    band = np.zeros((width + 1, place.size), order="F")
    lower = first >= second
    band[(first - second)[lower], second[lower]] = entries.data[lower]
    return order, band
