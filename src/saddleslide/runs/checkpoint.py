"""Checkpoint files: arrays and a JSON header in one npz, hashed, written atomically, read without executing anything.

The file is an npz of plain arrays whose zip comment is the SHA-256 of all bytes before it. It is checked before
anything is parsed, so a flipped bit or a missing tail is an error message and nothing else.
"""

from __future__ import annotations

import glob
import hashlib
import io
import json
import os
import socket
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from saddleslide.arrays.arguments import check_npz
from saddleslide.arrays.kinds import NUMPY, kind_of, to_host
from saddleslide.errors import CheckpointError
from saddleslide.problem import SaddleProblem

FORMAT, VERSION = "saddleslide checkpoint", 9
_DIGEST = 64
_PART = ".part"
_LONGEST_PID = 9


def write_checkpoint(path: Path, header: Mapping[str, Any], arrays: Sequence[np.ndarray[Any, Any]]) -> None:
    """Write header and arrays; a crash at any moment leaves the old file or the new one."""
    text = json.dumps({"format": FORMAT, "version": VERSION, **header}, allow_nan=False).encode()
    buffer = io.BytesIO()
    named: dict[str, Any] = {f"a{i}": array for i, array in enumerate(arrays)}
    np.savez(buffer, header=np.frombuffer(text, np.uint8), **named)
    # An npz ends with the length of its comment, which is 0: the hash becomes the comment.
    body = buffer.getvalue()[:-2] + _DIGEST.to_bytes(2, "little")
    _clear_away(path)
    handle, name = tempfile.mkstemp(prefix=f"{_prefix(path)}{os.getpid()}-", suffix=_PART, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body + _hash(body))
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        error.add_note(f"saddleslide: while the checkpoint {str(path)!r} was written.")
        raise
    # The new name must reach the disk too; not every system can do that for folders.
    try:
        folder = os.open(path.parent, os.O_RDONLY)
    except OSError:
        return
    with suppress(OSError):
        os.fsync(folder)
    os.close(folder)


def _prefix(path: Path) -> str:
    """How names of half-written files begin: with that of the file itself and of the machine; a process id follows."""
    machine = "".join(letter if letter.isalnum() else "_" for letter in socket.gethostname())
    return f".{path.name}.{machine}-"


def _clear_away(path: Path) -> None:
    """Remove what processes that were killed while they wrote this checkpoint have left behind."""
    if os.name != "posix":
        # Elsewhere there is no harmless way to ask whether a process lives.
        return
    for left in path.parent.glob(f"{glob.escape(_prefix(path))}*{_PART}"):
        number = left.name.removeprefix(_prefix(path)).partition("-")[0]
        if not number.isdecimal() or len(number) > _LONGEST_PID:
            continue
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            with suppress(OSError):
                left.unlink()
        except OSError:
            # It lives, and is somebody else's.
            continue


def read_checkpoint(path: str | os.PathLike[str]) -> tuple[dict[str, Any], list[np.ndarray[Any, Any]]]:
    """Header and arrays of a file, after its hash has been checked."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise CheckpointError(f"checkpoint {os.fspath(path)!r} can not be read: {error.strerror}.") from error
    return unpack_checkpoint(content, os.fspath(path))


def unpack_checkpoint(content: bytes, name: str) -> tuple[dict[str, Any], list[np.ndarray[Any, Any]]]:
    """Header and arrays from the bytes of a checkpoint, after their hash has been checked."""
    body, digest = content[:-_DIGEST], content[-_DIGEST:]
    if not body or _hash(body) != digest:
        raise CheckpointError(
            f"checkpoint {name!r} is damaged, cut short or no checkpoint: its hash does not fit. Use an "
            "earlier copy, or start anew."
        )
    try:
        # Members are stored as they are, so that together they are not larger than the file.
        check_npz(io.BytesIO(content), most=0)
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            header = json.loads(stored["header"].tobytes())
            arrays = [stored[f"a{i}"] for i in range(len(stored.files) - 1)]
    except Exception as error:
        raise CheckpointError(f"checkpoint {name!r} can not be read: {error}.") from error
    if not isinstance(header, dict):
        raise CheckpointError(f"checkpoint {name!r} has a header of {type(header).__name__}; expected a mapping.")
    if header.pop("format", None) != FORMAT or header.get("version") != VERSION:
        raise CheckpointError(
            f"checkpoint {name!r} has version {header.get('version')!r}; expected {VERSION}. It was written "
            "by another version of saddleslide: resume it there."
        )
    del header["version"]
    return header, arrays


def _hash(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def fingerprint(problem: SaddleProblem) -> str:
    """A hash of shapes, kinds and all stored numbers of a problem; of the user's own functions, their `fingerprint`."""
    return digest_of(problem.f, problem.g, problem.coupling, problem.X, problem.Y)


def digest_of(*values: Any) -> str:
    """A hash of kinds and stored numbers."""
    digest = hashlib.sha256()
    for value in values:
        _feed(digest, value)
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    """Add a value to a hash: its kind, then its numbers."""
    if not getattr(type(value), "stored", True):
        # What a run or a cluster is busy with is no part of the problem.
        return
    digest.update(type(value).__name__.encode())
    # What lies far away has its own way to say what it is.
    told = getattr(type(value), "list_numbers", None)
    value = value if told is None else told(value)
    if scipy.sparse.issparse(value):
        value = (value.shape, value.data, value.indices, value.indptr)
    if kind_of(value) != NUMPY:
        value = to_host(value)
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype.kind}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes() if value.dtype != object else b"")
    elif isinstance(value, str | int | float | None):
        digest.update(repr(value).encode())
    elif isinstance(value, tuple | list):
        for item in value:
            _feed(digest, item)
    elif isinstance(value, Mapping):
        _feed(digest, [[str(name), value[name]] for name in sorted(value, key=str)])
    elif type(value).__module__.startswith("saddleslide."):
        # What is computed once and kept is no part of the problem.
        kept = [n for n in sorted(vars(value)) if not isinstance(getattr(type(value), n, None), cached_property)]
        _feed(digest, [[name, vars(value)[name]] for name in kept])
    else:
        digest.update(str(getattr(value, "fingerprint", "")).encode())
