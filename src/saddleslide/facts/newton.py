"""What a step of an interior-point method costs, from sizes and patterns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from saddleslide.domains.program import Program
from saddleslide.operators.factor import COLUMNS, band_width

# Of Newton's steps. Equations of X and Y are eliminated one by one: a few, as of simplices and small treeplexes. A
# large sparse system may take so many multiplications to form. Operations on dense matrices take this part of those on
# vectors, of which there are so many an entry.
MOST_ROWS = 500
_MOST_FORMED = 5e6
_DENSE, _VECTORS = 0.05, 200.0
# A matrix of at most so many entries, zeros included, is written out: sparse products take longer.
_WRITTEN_OUT = 1e5


def is_written_out(blocks: list[Any]) -> bool:
    """Whether blocks of rows are worked on as dense matrices, whatever they are."""
    return bool(sum(math.prod(block.shape) for block in blocks) <= _WRITTEN_OUT)


def is_formed_in_x(shape: tuple[int, int], theta_x: npt.NDArray[Any], theta_y: npt.NDArray[Any]) -> bool:
    """Whether (theta_x, B^T; -B, theta_y) is solved by a system in x.

    So it is where y alone can be divided out, or both can and x is smaller.
    """
    safe_x, safe_y = theta_x.min(initial=np.inf) > 0.0, theta_y.min(initial=np.inf) > 0.0
    return shape[1] <= shape[0] if safe_x == safe_y else bool(safe_y)


def newton_cost(f: Program, g: Program, blocks: list[Any]) -> float:
    """Operations of one step of an interior-point method, in units of those on vectors.

    Infinite where the factor would be too large, as its pattern says.
    """
    held = [(np.isfinite(side.lower) | np.isfinite(side.upper) | (side.quadratic > 0.0)) for side in (f, g)]
    for ends, side in zip(held, (f, g), strict=True):
        for kink in side.kinks:
            ends |= kink.weight > 0.0
    rows = f.totals.size + g.totals.size
    in_x = is_formed_in_x((g.size, f.size), held[0], held[1])
    size, entries = f.size if in_x else g.size, f.size + g.size + rows
    entries += sum(kink.weight.size for kink in f.kinks + g.kinks)
    is_sparse = not is_written_out(blocks) and all(scipy.sparse.issparse(block) for block in blocks)
    if rows > MOST_ROWS or not (size <= COLUMNS or is_sparse):
        return math.inf
    solving, vectors = 2.0 * _DENSE * (4.0 + rows) * size**2, _VECTORS * entries
    if not is_sparse:
        # The Gram matrix of squares is made once.
        made = blocks[0].shape[0] if in_x else f.size
        forming = _DENSE * size**2 * float(made)
        return forming + _DENSE * size**3 / 3.0 + solving + vectors
    whole = scipy.sparse.vstack(blocks, format="csr") if len(blocks) > 1 else blocks[0]
    A = whole if in_x else whole.T
    counts = np.bincount(A.tocoo().row, minlength=1).astype(np.float64)
    forming = float(counts @ counts)
    if forming > _MOST_FORMED and size > COLUMNS:
        return math.inf
    pattern = A.astype(bool).astype(np.float64)
    width = band_width((pattern.T @ pattern).tocsr())
    if width is not None:
        return 4.0 * forming + size * (width + 1.0) * (width + 4.0 + rows) + vectors
    return math.inf if size > COLUMNS else 4.0 * forming + _DENSE * size**3 / 3.0 + solving + vectors


def least_forming(side: Program) -> float:
    """Operations that forming a system with the squares of a program takes at least: a row of k entries makes k^2."""
    squares = [A for A, _ in side.squares if scipy.sparse.issparse(A)]
    return 4.0 * sum((float(A.nnz) ** 2 / max(*A.shape, 1) for A in squares), 0.0)
