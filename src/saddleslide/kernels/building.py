"""How a kernel is made: compiled once for stated types, kept on disk, made again when what is kept is unusable."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba import types
from numba.core.errors import NumbaError

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])

FLOAT, INT, NONE = types.float64, types.int64, types.void
FLAT = types.float64[::1]
# What is only read may be write-protected.
READ = types.Array(types.float64, 1, "C", readonly=True)
READ_MATRIX = types.Array(types.float64, 2, "C", readonly=True)
# Unsigned, so that no index can mean "from the end".
READ_INDEX = types.Array(types.uint32, 1, "C", readonly=True)
EDGES = types.Array(types.int64, 1, "C", readonly=True)


def helper(function: _Kernel) -> _Kernel:
    """A part of kernels, compiled together with each of them."""
    made: _Kernel = numba.njit(error_model="numpy")(function)
    return made


def fusing(function: _Kernel) -> _Kernel:
    """The same where a product and a sum may be rounded once instead of twice."""
    made: _Kernel = numba.njit(error_model="numpy", fastmath={"contract"})(function)
    return made


def summing(function: _Kernel) -> _Kernel:
    """The same for sums whose order does not matter, so that they become vector code."""
    made: _Kernel = numba.njit(error_model="numpy", fastmath={"reassoc", "contract"})(function)
    return made


def kernel(result: Any, *arguments: Any, **options: Any) -> Callable[[_Kernel], _Kernel]:
    """Compile a function for these types now, or load it from disk; a cache that fails is never an error."""
    signature = result(*arguments)

    def compiled(function: _Kernel) -> _Kernel:
        attempts: list[Callable[[], None]] = [lambda: _forget_outdated(function), lambda: _forget(function)]
        with warnings.catch_warnings():
            # A cache that can not be written makes the next start slower, no more.
            warnings.simplefilter("ignore")
            for prepare in attempts:
                try:
                    prepare()
                    made: _Kernel = numba.njit(signature, cache=True, error_model="numpy", **options)(function)
                    return made
                except NumbaError:
                    raise
                except Exception:
                    # Damaged, half-written or forbidden: what stands on disk is of no use.
                    continue
            uncached: _Kernel = numba.njit(signature, error_model="numpy", **options)(function)
            return uncached

    return compiled


def _forget_outdated(function: Callable[..., Any]) -> None:
    """Numba looks at the file of a kernel alone; its helpers lie in other files of this folder."""
    newest = max(file.stat().st_mtime_ns for file in Path(__file__).parent.glob("*.py"))
    if any(kept.stat().st_mtime_ns < newest for kept in _kept(function)):
        _forget(function)


def _forget(function: Callable[..., Any]) -> None:
    """Delete what the disk holds of a function."""
    for kept in _kept(function):
        with contextlib.suppress(OSError):
            kept.unlink()


def _kept(function: Callable[..., Any]) -> list[Path]:
    folder = numba.njit(cache=True)(function).stats.cache_path
    stem = Path(function.__code__.co_filename).stem
    return list(Path(folder).glob(f"{stem}.{function.__qualname__}-*"))
