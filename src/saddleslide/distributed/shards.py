"""What builds a part on its worker: files opened there and nowhere else, or rows of a loss that is already here."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import Any, final
from zipfile import BadZipFile

import numpy as np

from saddleslide.arrays.arguments import check_npz, check_size
from saddleslide.arrays.base import Array
from saddleslide.distributed.cluster import check_client
from saddleslide.distributed.consensus import consensus
from saddleslide.distributed.dask_sum import DaskSum
from saddleslide.errors import InputError, MissingExtraError
from saddleslide.functions.base import Function
from saddleslide.functions.blockwise import Blockwise
from saddleslide.functions.losses import LeastSquares, Logistic, PoissonTransmission
from saddleslide.functions.trust import is_own_class
from saddleslide.gallery.consensus import ConsensusSolution
from saddleslide.operators.explicit import Matrix
from saddleslide.problem import SaddleProblem

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
        block = slice(None) if self.rows is None else slice(*self.rows)
        suffix = Path(self.path).suffix
        if suffix == ".npz":
            try:
                # Before its arrays take memory.
                check_npz(self.path)
            except (ValueError, BadZipFile) as error:
                raise InputError(f"Shard: {self.path!r} can not be read: {error}.") from error
            with np.load(self.path, allow_pickle=False) as stored:
                return self.make(**{name: _block(stored[name], block) for name in stored.files})
        if suffix == ".npy":
            # Mapped: only the rows that are asked for are read.
            return self.make(np.array(np.load(self.path, mmap_mode="r", allow_pickle=False)[block]))
        try:
            zarr = importlib.import_module("zarr")
        except ImportError as missing:
            raise MissingExtraError(
                f"Shard: zarr is not installed where {self.path!r} is to be read; expected it on every worker. Install "
                "it with pip install zarr."
            ) from missing
        found = zarr.open(self.path, mode="r")
        if isinstance(found, zarr.Array):
            return self.make(_block(found, block))
        return self.make(**{name: _block(array, block) for name, array in found.arrays()})


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


def row_blocks(f: Function, count: int) -> list[Callable[[], Function]]:
    """What builds the parts of a loss whose A is a matrix: its rows in `count` blocks, the ridge shared out."""
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
    blocks = pairwise(total * k // count for k in range(count + 1))
    weights = f.weights.ravel() if isinstance(f, LeastSquares) and f.weights is not None else None

    def settings_of(first: int, last: int) -> dict[str, Any]:
        return settings if weights is None else settings | {"weights": weights[first:last]}

    return [partial(type(f), matrix[i:j], data[i:j], **settings_of(i, j)) for i, j in blocks]


def spread(problem: SaddleProblem, client: Any, parts: int = 8) -> SaddleProblem:
    """The same problem with the rows of f = loss(Ax), or the agents of a consensus problem, on a cluster's workers.

    Parameters
    ----------
    problem : SaddleProblem
        With f a loss of Ax for a matrix A (LeastSquares, Logistic, PoissonTransmission), or from
        `ss.gallery.consensus`.
    client : distributed.Client
        Of the cluster.
    parts : int, optional
        Blocks of rows. The bits of a run depend on them, and not on the workers.

    Returns
    -------
    SaddleProblem
        With the same reader: `problem.read(result)` speaks as before.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> problem = ss.gallery.lp_inverse(np.eye(6), np.arange(6.0), weight=0.5, p=3.0)
    >>> with ss.distributed.local(workers=1) as client:
    ...     ss.solve(ss.distributed.spread(problem, client, parts=3), tol=0.1).success
    True
    """
    check_client(client, "spread")
    if not isinstance(problem, SaddleProblem):
        raise InputError(f"spread: received {type(problem).__name__}; expected a SaddleProblem.")
    if isinstance(parts, bool) or not isinstance(parts, Integral):
        raise InputError(f"spread: parts is {parts!r}; expected a whole number >= 1.")
    if isinstance(problem.f, Blockwise):
        # Graph and bound are those of the problem.
        reader = problem.reader
        if not isinstance(reader, partial) or reader.func is not ConsensusSolution:
            raise InputError("spread: f is a sum over blocks; expected a problem of ss.gallery.consensus.")
        _, W, around = reader.args
        return consensus(client, problem.f.functions, W, bound=around.radius)
    f = DaskSum(client, row_blocks(problem.f, int(parts)), shape=problem.X.shape)
    return replace(problem, f=f, B=problem.coupling)
