"""Results as files: the fields of a result in the format of checkpoints, read without executing anything."""

from __future__ import annotations

from dataclasses import fields
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from saddleslide.arrays.arguments import as_path
from saddleslide.arrays.kinds import to_host
from saddleslide.certificates.verdict import Status
from saddleslide.errors import CheckpointError
from saddleslide.runs.checkpoint import read_checkpoint, write_checkpoint
from saddleslide.runs.snapshot import read_record, take_snapshot

if TYPE_CHECKING:
    from saddleslide.runs.result import Result

# The problem is code and data of the caller's.
_LEFT_OUT = "problem"


def write_result(result: Result, path: str | PathLike[str]) -> None:
    """Write all of a result but its problem; arrays of other libraries are written as NumPy's."""
    kept: dict[str, Any] = {entry.name: getattr(result, entry.name) for entry in fields(result)}
    del kept[_LEFT_OUT]
    kept |= {"x": to_host(result.x), "y": to_host(result.y), "duals": tuple(to_host(dual) for dual in result.duals)}
    kept |= {"status": result.status.name, "timings": dict(result.timings), "history": list(result.history)}
    tree, arrays = take_snapshot(kept)
    write_checkpoint(as_path(path, "save: path", "result.npz"), {"result": tree}, arrays)


def load(path: str | PathLike[str]) -> Result:
    """Read a result that `Result.save` has written.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    Result
        What was saved, with NumPy arrays and without its problem. Nothing in a file can run code.

    Examples
    --------
    >>> import tempfile, numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(2), ss.functions.Zero()
    >>> result = ss.solve(ss.SaddleProblem(f=zero, g=zero, B=np.eye(2), X=simplex, Y=simplex), tol=1e-6)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result.save(f"{folder}/result.npz")
    ...     again = ss.load(f"{folder}/result.npz")
    >>> again.status.name, bool((again.x == result.x).all()), again.gap == result.gap
    ('SOLVED', True, True)
    """
    from saddleslide.runs.result import Result

    path = as_path(path, "load: path", "result.npz")
    header, arrays = read_checkpoint(path)
    if "result" not in header:
        raise CheckpointError(f"{fspath(path)!r} is the checkpoint of a run, not a result; ss.resume goes on with it.")
    try:
        kept = read_record(header["result"], arrays)
        kept |= {"status": Status[kept["status"]], "history": tuple(kept["history"])}
        return Result(**kept)
    except Exception as error:
        raise CheckpointError(f"{fspath(path)!r} does not hold a result of this version: {error!r}.") from error
