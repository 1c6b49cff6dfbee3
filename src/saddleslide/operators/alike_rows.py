"""A sparse matrix whose rows are shifts of the rows before them, kept as a few patterns."""

from __future__ import annotations

from typing import Any, final

import numpy as np
import numpy.typing as npt

from saddleslide.arrays.base import Array, Shape
from saddleslide.kernels.arguments import Patterns
from saddleslide.kernels.kinds import TILE
from saddleslide.kernels.switch import load
from saddleslide.kernels.threads import over_rows
from saddleslide.operators.sparse_rows import SparseRows, written

# Rows of which one looks first whether they are like those before them.
_LOOKS = 64


@final
class AlikeRows:
    """Runs of rows that have one pattern of offsets from the diagonal and weights; the patterns are kept once.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> rows = alike_rows(scipy.sparse.diags_array([-1.0, 1.0], offsets=[0, 1], shape=(40, 41), format="csr"))
    >>> rows.product(np.arange(41.0) ** 2, (40,), None)[:4]
    array([1., 3., 5., 7.])
    >>> len(rows.patterns.weights)
    2
    """

    def __init__(self, matrix: Any, begins: npt.NDArray[np.int64]) -> None:
        known: dict[tuple[bytes, bytes], int] = {}
        kept: list[tuple[npt.NDArray[np.int32], Array]] = []
        numbers = []
        for row in begins.tolist():
            part = slice(matrix.indptr[row], matrix.indptr[row + 1])
            offsets, weights = matrix.indices[part] - np.int32(row), matrix.data[part]
            number = known.setdefault((offsets.tobytes(), weights.tobytes()), len(kept))
            if number == len(kept):
                kept.append((offsets, weights))
            numbers.append(number)
        self.columns = matrix.shape[1]
        self.patterns = Patterns(
            np.append(begins, matrix.shape[0]),
            np.array(numbers, dtype=np.int64),
            np.cumsum([0, *(len(offsets) for offsets, _ in kept)], dtype=np.int64),
            np.concatenate([offsets for offsets, _ in kept]),
            np.concatenate([weights for _, weights in kept]),
        )
        # Entries before every run, to share the runs out.
        self.entries = matrix.indptr[self.patterns.begins].astype(np.int64)

    def product(self, v: Array, shape: Shape, out: Array | None) -> Array:
        """The matrix times v, in a shape."""
        work = load("alike_rows").alike_product
        return written(
            v, self.columns, shape, out, lambda source, into: over_rows(
                lambda first, last: work(self.patterns, source, into, np.empty(TILE), first, last), self.entries
            )
        )  # fmt: skip


def alike_rows(matrix: Any) -> AlikeRows | None:
    """The patterns of a CSR matrix with 32-bit indices; None where most rows are unlike those around them.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> scattered = np.random.default_rng(0).random((200, 200)) < 0.1
    >>> alike_rows(scipy.sparse.csr_array(scattered.astype(float))) is None
    True
    """
    count = matrix.shape[0]
    some = np.unique(np.linspace(1, count - 1, _LOOKS).astype(np.int64)) if count > TILE else np.zeros(0, np.int64)
    # A look at a few rows spares most matrices the comparison of all.
    if 2 * int(_shifted(matrix, some).sum()) <= len(some):
        return None
    begins = np.flatnonzero(np.concatenate([[True], ~_shifted(matrix, np.arange(1, count))]))
    lengths = np.diff(begins, append=count)
    return AlikeRows(matrix, begins) if 2 * int(lengths[lengths >= TILE].sum()) >= count else None


def _shifted(matrix: Any, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Whether each of these rows is the row before it, shifted by one column."""
    starts = matrix.indptr.astype(np.int64)
    lengths = np.diff(starts)
    same: npt.NDArray[np.bool_] = lengths[rows] == lengths[rows - 1]
    compared, sizes = rows[same], lengths[rows[same]]
    # Positions of all entries of the rows compared, one row after the other.
    ends = np.cumsum(sizes)
    here = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts[compared] - (ends - sizes), sizes)
    before = here - np.repeat(sizes, sizes)
    unlike = (matrix.indices[here] != matrix.indices[before] + 1) | (matrix.data[here] != matrix.data[before])
    wrong = np.zeros(matrix.shape[0], dtype=np.bool_)
    wrong[np.repeat(compared, sizes)[unlike]] = True
    same &= ~wrong[rows]
    return same


def passes_of(matrix: Any) -> AlikeRows | SparseRows:
    """A CSR matrix with 32-bit indices as compiled products take it, by patterns where rows are alike."""
    return alike_rows(matrix) or SparseRows(matrix)
