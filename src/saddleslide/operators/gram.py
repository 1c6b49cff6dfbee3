"""B^T diag(w) B + diag(d) of one sparse matrix and many weights: where each product goes is found out once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy

from saddleslide.arrays.base import Array
from saddleslide.operators.factor import SymmetricMatrix, find_order

# Numbers of rows or columns.
Places = npt.NDArray[np.int64]
# Products of two entries of a row that are kept.
_MOST_PRODUCTS = 4_000_000


class SparseGram:
    """The entries of a Gram matrix as one sparse product with the weights, in the order that suits its factor.

    Parameters
    ----------
    matrix : sparse matrix
        B, in rows.
    """

    def __init__(self, matrix: scipy.sparse.csr_array) -> None:
        size = matrix.shape[1]
        first, second, products, rows = _pairs(matrix)
        pattern = scipy.sparse.csr_array((np.ones(first.size), (first, second)), shape=(size, size))
        self.order, width = find_order(pattern + pattern.T)
        # Of a band the diagonals, of a dense matrix its lower half, column by column.
        self._shape = (size, size) if width is None else (width + 1, size)
        if width is not None:
            place = np.empty(size, dtype=np.int64)
            place[self.order] = np.arange(size)
            first, second = place[first], place[second]
        high, low = np.maximum(first, second), np.minimum(first, second)
        where = high + low * size if width is None else high - low + low * (width + 1)
        self._where, column = np.unique(where, return_inverse=True)
        self._entries = scipy.sparse.csr_array((products, (column, rows)), shape=(self._where.size, matrix.shape[0]))

    @staticmethod
    def takes(matrix: scipy.sparse.csr_array) -> bool:
        """Whether so many products may be kept."""
        counts = np.diff(matrix.indptr).astype(np.float64)
        return 0.5 * float(counts @ (counts + 1.0)) <= _MOST_PRODUCTS

    def weighted(self, weights: Array, diagonal: Array) -> SymmetricMatrix:
        """The matrix for these weights of the rows and this diagonal beside it, for its factor alone."""
        found = np.zeros(self._shape, order="F")
        found.reshape(-1, order="F")[self._where] = self._entries @ weights
        if self.order is None:
            found.reshape(-1, order="F")[:: found.shape[0] + 1] += diagonal
            return SymmetricMatrix(found)
        found[0] += diagonal[self.order]
        return SymmetricMatrix.of_band(found, self.order)


def _pairs(matrix: scipy.sparse.csr_array) -> tuple[Places, Places, Array, Places]:
    """Columns of all pairs of entries of a row, their products, and the rows."""
    counts, begins = np.diff(matrix.indptr), matrix.indptr[:-1]
    parts = []
    for count in np.unique(counts[counts > 0]).tolist():
        rows = np.flatnonzero(counts == count)
        entries = begins[rows][:, None] + np.arange(count)
        one, other = (entries[:, side].ravel() for side in np.tril_indices(count))
        products = matrix.data[one] * matrix.data[other]
        parts.append((matrix.indices[one], matrix.indices[other], products, np.repeat(rows, one.size // rows.size)))
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64)
    first, second, products, rows = (np.concatenate(part) for part in zip(*parts, strict=True))
    return first.astype(np.int64), second.astype(np.int64), products, rows.astype(np.int64)
