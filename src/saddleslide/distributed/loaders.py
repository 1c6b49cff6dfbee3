"""What builds a part on its worker: files and blocks of files, opened there and nowhere else."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, final
from zipfile import BadZipFile

import numpy as np

from saddleslide.arrays.archives import check_npz, check_size
from saddleslide.arrays.base import Array
from saddleslide.errors import InputError, MissingExtraError
from saddleslide.functions import Function, LeastSquares, Logistic, PoissonTransmission
from saddleslide.functions.base import is_own_class
from saddleslide.operators import Matrix

SUFFIXES = (".npz", ".npy", ".zarr")
# The largest array of a part, read from a file on its worker: 64 GB. Take `rows` of a larger one.
MOST_OF_A_SHARD = 2**36


@final
@dataclass(frozen=True)
class Shard:
    """A part from a file: its arrays are read on the worker and given to `make`.

    Parameters
    ----------
    path : str
        A .npz (all its arrays, by name), .npy or .zarr (an array, or the arrays of a group, by name). Workers must see
        it under the same name. Pickled objects in it are refused.
    make : callable
        Builds a function of `ss.functions` from the arrays: `make(A=..., b=...)` for named ones, `make(array)` for one.
    rows : (first, last), optional
        A block of rows of every array; only these are read from a .npy or a .zarr.

    Examples
    --------
    >>> import tempfile, numpy as np, saddleslide as ss
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/shard0.npz", A=np.eye(2), b=np.ones(2))
    ...     part = ss.distributed.Shard(f"{folder}/shard0.npz", ss.functions.LeastSquares)()
    >>> part.value(np.zeros(2))
    1.0
    """

    path: str
    make: Callable[..., Function]
    rows: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", os.fspath(self.path))
        if Path(self.path).suffix not in SUFFIXES:
            raise InputError(f"Shard: path is {self.path!r}; expected a file that ends in {', '.join(SUFFIXES)}.")
        if not callable(self.make):
            raise InputError(f"Shard: make is {self.make!r}; expected a callable that builds a function.")

    def __call__(self) -> Function:
        """Read the arrays and build the function."""
        found = self._read()
        return self.make(**found) if isinstance(found, dict) else self.make(found)

    def _read(self) -> dict[str, Any] | Array:
        block = slice(None) if self.rows is None else slice(*self.rows)
        suffix = Path(self.path).suffix
        if suffix == ".npz":
            self._check(lambda: check_npz(self.path))
            with np.load(self.path, allow_pickle=False) as stored:
                return {name: _block(stored[name], block) for name in stored.files}
        if suffix == ".npy":
            # Mapped: only the rows that are asked for are read.
            return np.array(np.load(self.path, mmap_mode="r", allow_pickle=False)[block])
        return _from_zarr(self.path, block)

    def _check(self, look: Callable[[], None]) -> None:
        """Look at a file before its arrays take memory."""
        try:
            look()
        except (ValueError, BadZipFile) as error:
            raise InputError(f"Shard: {self.path!r} can not be read: {error}.") from error


def _from_zarr(path: str, block: slice) -> dict[str, Any] | Array:
    try:
        zarr = importlib.import_module("zarr")
    except ImportError as missing:
        raise MissingExtraError(
            f"Shard: zarr is not installed where {path!r} is to be read; expected it on every worker. Install it with "
            "pip install zarr."
        ) from missing
    stored = zarr.open(path, mode="r")
    if isinstance(stored, zarr.Array):
        return _block(stored, block)
    return {name: _block(array, block) for name, array in stored.arrays()}


def _block(stored: Any, rows: slice) -> Array:
    """Some rows of an array, or the whole of one without rows."""
    if stored.ndim:
        share = len(range(*rows.indices(stored.shape[0]))) / max(stored.shape[0], 1)
        try:
            # Chunks that were never written take no room in a zarr file.
            check_size(share * stored.nbytes, MOST_OF_A_SHARD)
        except ValueError as error:
            raise InputError(f"Shard: an array of shape {stored.shape} can not be read: {error}.") from None
    return np.asarray(stored[rows] if stored.ndim else stored[()])


@final
@dataclass(frozen=True, eq=False)
class RowBlock:
    """Some rows of a loss of A x, with their share of its ridge; sent to the worker whole.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> whole = ss.functions.LeastSquares(np.eye(4), np.ones(4), ridge=1.0)
    >>> [part().value(np.zeros(4)) for part in row_blocks(whole, 2)]
    [1.0, 1.0]
    """

    kind: Callable[..., Function]
    A: Any
    data: Array
    settings: Mapping[str, Any]

    def __call__(self) -> Function:
        """The loss of these rows."""
        return self.kind(self.A, self.data, **self.settings)


def row_blocks(f: Function, count: int) -> list[RowBlock]:
    """Parts of a loss whose A is a matrix: its rows in `count` blocks, the ridge shared out.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> len(row_blocks(ss.functions.Logistic(np.eye(5), [1, -1, 1, -1, 1]), 3))
    3
    """
    kinds = LeastSquares | Logistic | PoissonTransmission
    if not isinstance(f, kinds) or not isinstance(f.A, Matrix) or is_own_class(f):
        raise InputError(
            f"spread: f is {f!r}; expected LeastSquares, Logistic or PoissonTransmission with A given as a matrix. "
            "Build its parts yourself and use ss.distributed.DaskSum."
        )
    matrix = f.A.matrix
    total = int(matrix.shape[0])
    if not 1 <= count <= total:
        raise InputError(f"spread: parts is {count!r}; expected a whole number from 1 to {total}, the rows of A.")
    settings: dict[str, Any] = {"ridge": f.ridge / count, "x_shape": f.A.x_shape}
    if isinstance(f, PoissonTransmission):
        settings |= {"intensity": f.intensity, "attenuation": f.attenuation}
    data = (f.b if isinstance(f, LeastSquares) else f.labels if isinstance(f, Logistic) else f.counts).ravel()
    cuts = [total * k // count for k in range(count + 1)]
    blocks = pairwise(cuts)
    return [RowBlock(type(f), matrix[first:last], data[first:last], settings) for first, last in blocks]
