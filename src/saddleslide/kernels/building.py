"""How a kernel is made: compiled for the types that its annotations state, kept on disk, made again when that fails."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import numba
import numpy as np
from numba import types
from numba.core.errors import NumbaError
from numba.extending import overload

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])

_SIMPLE: dict[Any, Any] = {float: types.float64, int: types.int64, NoneType: types.void}
_ARRAYS = {
    "read": types.Array(types.float64, 1, "C", readonly=True),
    "write": types.float64[::1],
    "read matrix": types.Array(types.float64, 2, "C", readonly=True),
    "write matrix": types.float64[:, ::1],
    # Unsigned, so that no index can mean "from the end".
    "starts": types.Array(types.uint32, 1, "C", readonly=True),
    "new starts": types.uint32[::1],
    "edges": types.Array(types.int64, 1, "C", readonly=True),
    "offsets": types.Array(types.int32, 1, "C", readonly=True),
}


def helper(function: _Kernel) -> _Kernel:
    """A part of kernels, compiled together with each of them.

    It says how it rounds: otherwise Numba would take that from whoever is compiled with it first.
    """
    made: _Kernel = numba.njit(error_model="numpy", fastmath=False)(function)
    return made


def fusing(function: _Kernel) -> _Kernel:
    """A helper where a product and a sum may be rounded once instead of twice."""
    made: _Kernel = numba.njit(error_model="numpy", fastmath={"contract"})(function)
    return made


def summing(function: _Kernel) -> _Kernel:
    """A helper for sums whose order does not matter, so that they become vector code."""
    made: _Kernel = numba.njit(error_model="numpy", fastmath={"reassoc", "contract"})(function)
    return made


def choose(stub: Callable[..., Any], choice: Callable[..., Any]) -> None:
    """What compiled code calls in the place of a stub: `choice` gives it, from the types of the arguments."""
    overload(stub, jit_options={"error_model": "numpy", "fastmath": False})(choice)


def kernel(function: _Kernel) -> _Kernel:
    """A function that Python calls too: for other kernels it is a helper, and `compiled` makes the one for Python."""
    made: Any = helper(function)
    made.nogil = False
    kept: _Kernel = made
    return kept


def shared_kernel(function: _Kernel) -> _Kernel:
    """A kernel whose rows are shared out over threads: it lets others work meanwhile."""
    made: Any = kernel(function)
    made.nogil = True
    kept: _Kernel = made
    return kept


def compiled(made: Any, **kinds: Any) -> Callable[..., Any]:
    """A kernel as Python calls it, compiled now or read from the disk; a cache that fails is never an error.

    What is called is the compiled function itself. Numba's dispatcher would look at the type of every array again in
    every call, which for named tuples takes longer than a step on a small problem; so callers hand over arrays that are
    contiguous and of the stated types. Tests look at the arguments of all kernels.
    """
    function, options = made.py_func, {"error_model": "numpy", "nogil": made.nogil}
    signature = signature_of(made, **kinds)
    with warnings.catch_warnings():
        # A cache that can not be written makes the next start slower, no more.
        warnings.simplefilter("ignore")
        for prepare in (_forget_outdated, _forget):
            try:
                prepare(function)
                return _entry(numba.njit(signature, cache=True, **options)(function))
            except NumbaError:
                raise
            except Exception:
                # Damaged, half-written or forbidden: what stands on disk is of no use.
                continue
        return _entry(numba.njit(signature, **options)(function))


def signature_of(made: Any, *, columns: str = "uint32", **kinds: Any) -> Any:
    """The types that the annotations of a kernel stand for, with these columns and these kinds of named tuples."""
    index = numba.from_dtype(np.dtype(columns))
    words = _ARRAYS | {"columns": types.Array(index, 1, "C", readonly=True), "new columns": index[::1]}
    words |= {word: _type_of(kind, words) for word, kind in kinds.items()}
    hints = get_type_hints(made.py_func, include_extras=True)
    result = _type_of(hints.pop("return"), words)
    return result(*(_type_of(hint, words) for hint in hints.values()))


def _type_of(hint: Any, words: dict[str, Any]) -> Any:
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    if get_origin(hint) is Annotated:
        return words[hint.__metadata__[0]]
    if get_origin(hint) is tuple:
        return types.BaseTuple.from_types([_type_of(part, words) for part in get_args(hint)])
    fields = get_type_hints(hint, include_extras=True).values()
    return types.BaseTuple.from_types([_type_of(field, words) for field in fields], hint)


def _entry(made: Any) -> Callable[..., Any]:
    (only,) = made.overloads.values()
    entry: Callable[..., Any] = only.entry_point
    return entry


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
