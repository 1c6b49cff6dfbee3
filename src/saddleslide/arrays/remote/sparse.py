"""Products with SciPy's sparse matrices where the vector lies, for libraries that have sparse matrices of their own."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from saddleslide.arrays.remote.carried import Elsewhere
from saddleslide.arrays.remote.constants import brought, kept

# Libraries with sparse matrices of their own.
SPARSE = ("torch", "jax", "cupy")


def sparse_product(matrix: Any, v: Elsewhere) -> Elsewhere:
    """Matrix times vector: on the vector's side, or on the host where the library has no sparse matrices.

    Examples
    --------
    >>> import scipy.sparse
    >>> from saddleslide.arrays.kinds import ArrayKind
    >>> v = Elsewhere(ArrayKind("numpy"), np.ones(2))
    >>> sparse_product(scipy.sparse.csr_array(np.array([[1.0, 2.0]])), v).tolist()
    [3.0]
    """
    if v.kind.library not in SPARSE:
        return Elsewhere(v.kind, brought(v.kind, np.asarray(matrix @ v.host())))
    with v.kind.scope():
        there = kept(matrix, repr(v.kind), lambda: _brought(v, matrix.tocoo()))
        return Elsewhere(v.kind, there @ v.native)


def _brought(v: Elsewhere, entries: Any) -> Any:
    """The entries of a matrix as a sparse matrix of the library, on the device of v."""
    library, values = v.kind.library, brought(v.kind, entries.data)
    if library == "torch":
        torch = v.space.xp
        places = torch.tensor(np.stack([entries.row, entries.col]).astype(np.int64), device=values.device)
        # SciPy's matrix is well formed, and entries are ordered by rows: nothing to check or to sort.
        return torch.sparse_coo_tensor(places, values, size=entries.shape, check_invariants=False, is_coalesced=True)
    if library == "jax":
        sparse = importlib.import_module("jax.experimental.sparse")
        places = v.space.xp.asarray(np.stack([entries.row, entries.col], axis=1), device=values.device)
        return sparse.BCOO((values, places), shape=entries.shape, indices_sorted=True, unique_indices=True)
    sparse = importlib.import_module("cupyx.scipy.sparse")
    rows, columns = (v.space.xp.asarray(part) for part in (entries.row, entries.col))
    return sparse.coo_matrix((values, (rows, columns)), shape=entries.shape).tocsr()
