"""Products with matrices where an array lies: SciPy's sparse ones, and the cosine and Hartley transforms."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

import numpy as np

from saddleslide.arrays.remote.array import RemoteArray, constant, kept


def sparse_product(matrix: Any, v: RemoteArray) -> RemoteArray:
    """Matrix times vector: on the vector's side, or on the host where the library has no sparse matrices."""
    if not v.kind.has_sparse:
        return RemoteArray(v.kind, v.kind.upload(np.asarray(matrix @ v.host())))
    with v.kind.scope():
        there = kept(matrix, repr(v.kind), lambda: _sparse(v, matrix.tocoo()))
        return RemoteArray(v.kind, there @ v.native)


def _sparse(v: RemoteArray, entries: Any) -> Any:
    """The entries of a matrix as a sparse matrix of the library, on the device of v."""
    library, values = v.kind.library, v.kind.upload(entries.data)
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


def cosine_transform(x: Any, inverse: bool = False) -> Any:
    """The orthonormal DCT-II along all axes, or its inverse."""
    for axis, n in enumerate(x.shape):
        x = _along(x, _cosines(n, inverse), axis)
    return x


def hartley_transform(x: Any) -> Any:
    """Real less imaginary part of the orthonormal Fourier transform along all axes; its own inverse."""
    real, imaginary = x, None
    for axis, n in enumerate(x.shape):
        # (a + i b)(C - i S), one axis after the other.
        a, b = real, imaginary
        real, imaginary = _along(a, _waves(n, "cos"), axis), -_along(a, _waves(n, "sin"), axis)
        if b is not None:
            real = real + _along(b, _waves(n, "sin"), axis)
            imaginary = imaginary + _along(b, _waves(n, "cos"), axis)
    return real if imaginary is None else real - imaginary


def _along(x: RemoteArray, matrix: Any, axis: int) -> RemoteArray:
    """Matrix times x along one axis: x as (before, n, after)."""
    before = int(np.prod(x.shape[:axis]))
    stacked = x.reshape(before, x.shape[axis], -1) if x.size else x
    return x.made(lambda v: constant(x.kind, matrix) @ v, stacked.native).reshape(x.shape)


@cache
def _cosines(n: int, inverse: bool) -> Any:
    k, j = np.arange(n)[:, None], np.arange(n)[None, :]
    # Angles modulo a whole turn are small, hence exact.
    matrix = np.sqrt(2.0 / n) * np.cos(np.pi * (k * (2 * j + 1) % (4 * n)) / (2 * n))
    matrix[:1] /= np.sqrt(2.0)
    matrix = matrix.T.copy() if inverse else matrix
    # What can not change is brought to the other side once.
    matrix.flags.writeable = False
    return matrix


@cache
def _waves(n: int, name: str) -> Any:
    angles = 2.0 * np.pi * (np.outer(np.arange(n), np.arange(n)) % n) / n
    matrix = (np.cos(angles) if name == "cos" else np.sin(angles)) / np.sqrt(n)
    matrix.flags.writeable = False
    return matrix
