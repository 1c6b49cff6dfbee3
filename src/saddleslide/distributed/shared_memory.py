"""Arrays that pass between processes of one machine through mapped files instead of messages."""

from __future__ import annotations

import os
import platform
import secrets
import shutil
import sys
import tempfile
import uuid
import weakref
from contextlib import suppress
from pathlib import Path

import numpy as np

from saddleslide.arrays.base import Array

if sys.platform != "win32":
    import fcntl

# Files there are memory, where the system has it.
_MEMORY = Path("/dev/shm")
_TOKEN, _PREFIX = "token", "saddleslide-box-"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class SharedArrays:
    """A folder of mapped arrays; gone with its owner, or with `close`."""

    def __init__(self) -> None:
        place = _MEMORY if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) else None
        # Processes that were killed have left memory that nobody else would give back.
        for left in Path(place or tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            with suppress(OSError):
                held = os.open(left / _TOKEN, os.O_RDWR)
                # A token is written after it is locked: an empty one is just being made.
                if _lock(held) and os.fstat(held).st_size > 0:
                    shutil.rmtree(left, ignore_errors=True)
                os.close(held)
        self.folder = tempfile.mkdtemp(prefix=_PREFIX, dir=place)
        # Folders may be shared between machines, and mapped files are not: the machine is part of the token.
        self.token = f"{_machine()} {secrets.token_hex(16)}"
        held = os.open(Path(self.folder, _TOKEN), os.O_RDWR | os.O_CREAT, 0o600)
        _lock(held)
        os.write(held, self.token.encode())
        self._maps: dict[str, Array] = {}
        self._finalizer = weakref.finalize(self, _remove, self.folder, held)

    def path(self, name: str, rows: int, size: int) -> str:
        """Where the array of this name, of so many rows of a length, is; an OSError where there is no room for it."""
        path = os.path.join(self.folder, f"{name}-{rows}-{size}")
        if path not in self._maps:
            held = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                # All its bytes must be there: to write to a file that lacks some ends the process.
                if sys.platform == "linux":
                    os.posix_fallocate(held, 0, 8 * rows * size)
                else:
                    os.truncate(held, 8 * rows * size)
            finally:
                os.close(held)
            self._maps[path] = open_array(path, rows, size)
        return path

    def rows(self, path: str) -> Array:
        """The array at a path."""
        return self._maps[path]

    def close(self) -> None:
        """Remove the files; what is mapped stays valid for those who have it."""
        self._maps.clear()
        self._finalizer()


def _lock(held: int) -> bool:
    """Lock a file until this process ends; False where its owner lives."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove(folder: str, held: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os.close(held)


def is_here(folder: str, token: str) -> bool:
    """Whether this process sees the same files as the owner of a folder."""
    try:
        found = Path(folder, _TOKEN).read_text(encoding="utf-8")
    except OSError:
        return False
    return found == token and token.startswith(f"{_machine()} ")


def _machine() -> str:
    """A name of this machine since it was started, as far as the system tells."""
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return f"{platform.node()}-{uuid.getnode()}"


def open_array(path: str, rows: int, size: int) -> Array:
    """The array that another process has made."""
    return np.asarray(np.memmap(path, np.float64, "r+", shape=(rows, size)))
