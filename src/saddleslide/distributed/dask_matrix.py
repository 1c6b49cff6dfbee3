"""A coupling B whose matrix is a Dask array: its blocks stay on the workers, pieces of vectors travel."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from saddleslide.arrays.base import Array, as_number
from saddleslide.distributed.cluster import Counts, Repeat, check_client, find_workers, require
from saddleslide.errors import InputError, UnreachableError
from saddleslide.functions.parts import sum_block
from saddleslide.operators.base import Operator
from saddleslide.operators.explicit import as_operator

_MOST_ROUNDS = 20


@final
class DaskMatrix(Operator):
    """A matrix in blocks on workers. `dask_coupling` makes it.

    Blocks are computed once and kept by the scheduler, which computes them again where a worker is lost. Products of
    blocks are added along a tree over the blocks, so their bits depend on the blocks and not on the workers.
    """

    def __init__(self, array: Any, client: Any, patience: float) -> None:
        self._held = _Held(client, array, patience)
        rows, columns = (int(length) for length in array.shape)
        self.x_shape, self.y_shape = (columns,), (rows,)
        self.chunks: tuple[tuple[int, ...], ...] = tuple(tuple(map(int, axis)) for axis in array.chunks)

    def __repr__(self) -> str:
        return f"DaskMatrix({self.y_shape[0]} x {self.x_shape[0]}, {self._held.blocks.shape} blocks)"

    @property
    def counts(self) -> Counts:
        """Products, bytes and seconds so far: a copy."""
        return self._held.counts.copy()

    def forward(self, x: Array, out: Array | None = None) -> Array:
        return self._held.product("B x", False, self.chunks[1], x, out)

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        return self._held.product("B^T y", True, self.chunks[0], y, out)


class _Held:
    """The blocks on the workers, and what products with them cost; no part of the problem."""

    stored = False

    def __init__(self, client: Any, array: Any, patience: float) -> None:
        self.client, self.patience, self.counts = client, patience, Counts()
        delayed = array.astype(np.float64).to_delayed()
        self.blocks = np.empty(delayed.shape, dtype=object)
        self.blocks.ravel()[:] = client.compute(delayed.ravel().tolist())
        self._await(self.blocks.ravel().tolist())
        for future in self.blocks.ravel():
            if future.status == "error":
                raise future.exception()
        self.counts.built = self.blocks.size

    def product(self, name: str, transposed: bool, chunks: Sequence[int], v: Array, out: Array | None) -> Array:
        """One piece per row of blocks, the sum over its blocks times their pieces of the vector; all in one vector."""
        distributed, submit = require("dask_coupling"), self.client.submit
        lost = (distributed.CancelledError, distributed.client.FutureCancelledError, distributed.scheduler.KilledWorker)
        began, call = time.perf_counter(), self.counts.count_call("gradient")
        pieces = np.split(np.asarray(v), np.cumsum(chunks)[:-1])
        for _ in range(_MOST_ROUNDS):
            try:
                sent = self.client.scatter(pieces, hash=False)
                terms = [
                    [submit(_multiply, *pair, transposed, pure=False) for pair in zip(row, sent, strict=True)]
                    for row in (self.blocks.T if transposed else self.blocks)
                ]
                sums = [submit(_add, row, pure=False) for row in terms]
                self._await(sums)
                found: list[Array] = self.client.gather(sums)
            except lost:
                # A piece of the vector was lost with its worker.
                self.counts.repeats.append(Repeat(call, name, (), "", "lost"))
                continue
            self.counts.waiting += time.perf_counter() - began
            self.counts.bytes_sent += sum(piece.nbytes for piece in pieces)
            self.counts.bytes_received += sum(array.nbytes for array in found)
            return np.concatenate(found, out=out)
        raise UnreachableError(f"dask_coupling: {name} was tried {_MOST_ROUNDS} times and lost a worker each time.")

    def _await(self, futures: Sequence[Any]) -> None:
        """Wait, but not for a cluster that is gone."""
        silent = time.monotonic()
        while True:
            try:
                with self.client.as_current():
                    require("dask_coupling").wait(futures, timeout=1.0)
                return
            except TimeoutError:
                silent = time.monotonic() if find_workers(self.client) else silent
                if time.monotonic() - silent > self.patience or self.client.status == "closed":
                    raise UnreachableError(
                        f"dask_coupling: the cluster does not answer or has no workers, for {self.patience:g} s. Start "
                        "it again, and resume the run from its checkpoint."
                    ) from None


def _multiply(block: Array, piece: Array, transposed: bool) -> Array:
    product: Array = block.T @ piece if transposed else block @ piece
    return product


def _add(terms: Sequence[Array]) -> Array:
    """The sum along the tree; the terms themselves belong to the scheduler."""
    total = sum_block((0, len(terms)), lambda at: ((), np.array(terms[at[0]])) if at[1] - at[0] == 1 else None)
    assert total is not None and total[1] is not None
    return total[1]


def dask_coupling(array: Any, client: Any, *, norm: float | None = None, patience: float = 60.0) -> Operator:
    """A coupling B from a two-dimensional Dask array, for a matrix that does not fit into one memory.

    Its blocks are computed on the workers of the client and stay there. A product sends each piece of the vector to the
    workers and brings back sums.

    Parameters
    ----------
    array : dask.array.Array
        The matrix, of any chunks of known size.
    client : distributed.Client
        Of the cluster that holds the blocks.
    norm : float, optional
        A known upper bound on the spectral norm; saves the products that bounding it would cost, over a hundred.
    patience : float, optional
        Seconds to wait for any worker before the cluster counts as gone.

    Returns
    -------
    Operator
        With `counts` of products, bytes and seconds.

    Examples
    --------
    >>> import dask.array, numpy as np, saddleslide as ss
    >>> with ss.distributed.local(workers=1) as client:
    ...     B = ss.distributed.dask_coupling(dask.array.ones((4, 6), chunks=(2, 3)), client)
    ...     B.forward(np.ones(6)), B.adjoint(np.ones(4))
    (array([6., 6., 6., 6.]), array([4., 4., 4., 4., 4., 4.]))
    """
    check_client(client, "dask_coupling")
    kind = require("dask_coupling", "dask.array").Array
    if not isinstance(array, kind) or array.ndim != 2:
        raise InputError(f"dask_coupling: array is {type(array).__name__}; expected a dask.array of two dimensions.")
    if np.isnan(array.shape).any() or array.dtype.kind not in "biuf":
        raise InputError(
            f"dask_coupling: array has shape {array.shape} and dtype {array.dtype}; expected known lengths and real "
            "numbers. Call compute_chunk_sizes() first."
        )
    seconds = as_number(patience, "dask_coupling: patience", 0.0)
    return as_operator(DaskMatrix(array, client, seconds), norm=norm)
