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

from saddleslide.kernels.arguments import Blocks

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


def _part(fastmath: Any, inline: str = "never") -> Callable[[_Kernel], _Kernel]:
    def part(function: _Kernel) -> _Kernel:
        made: _Kernel = numba.njit(error_model="numpy", fastmath=fastmath, inline=inline)(function)
        return made

    return part


# A part of kernels, compiled together with each of them. It says how it rounds: otherwise Numba would take that from
# whoever is compiled with it first.
helper = _part(False)
# One that is written into each kernel: a call, with the count of who holds its arrays, takes as long as ten entries.
inlined = _part(False, "always")
# One where a product and a sum may be rounded once instead of twice.
fusing = _part({"contract"})
# One for sums whose order does not matter, so that they become vector code.
summing = _part({"reassoc", "contract"})


def chosen(choice: Callable[..., Any]) -> Callable[..., Any]:
    """A part of kernels whose code is chosen by types: `choice` takes those of the arguments, and gives a function."""

    def stub() -> None:
        """What compiled code seems to call."""

    # Numba compares its signature with that of the function.
    choice.__annotations__.clear()
    overload(stub, jit_options={"error_model": "numpy", "fastmath": False})(choice)
    return stub


def kernel(function: _Kernel, shared: bool = False) -> _Kernel:
    """A function that Python calls too: for other kernels it is a helper, and `compiled` makes the one for Python."""
    made: Any = helper(function)
    made.nogil = shared
    kept: _Kernel = made
    return kept


def parallel_kernel(function: _Kernel) -> _Kernel:
    """A kernel whose rows are shared out over threads: it lets others work meanwhile."""
    return kernel(function, shared=True)


def compile_kernel(made: Any, **kinds: Any) -> Callable[..., Any]:
    """A kernel as Python calls it, compiled now or read from the disk; a cache that fails is never an error.

    What is called is the compiled function itself. Numba's dispatcher would look at the type of every array again in
    every call, which for named tuples takes longer than a step on a small problem; so callers hand over arrays that are
    contiguous and of the stated types. Tests look at the arguments of all kernels.
    """
    signature = signature_of(made, **kinds)

    def entry(cache: bool) -> Callable[..., Any]:
        whole = numba.njit(signature, error_model="numpy", nogil=made.nogil, cache=cache)(made.py_func)
        (only,) = whole.overloads.values()
        found: Callable[..., Any] = only.entry_point
        return found

    with warnings.catch_warnings():
        # A cache that can not be written makes the next start slower, no more.
        warnings.simplefilter("ignore")
        for all_of_it in (False, True):
            try:
                _forget(made.py_func, all_of_it)
                return entry(cache=True)
            except NumbaError:
                raise
            except Exception:
                # Damaged, half-written or forbidden: what stands on disk is of no use.
                continue
        return entry(cache=False)


def signature_of(made: Any, *, columns: str = "uint32", **kinds: Any) -> Any:
    """The types that the annotations of a kernel stand for, with these columns and these kinds of named tuples."""
    index = numba.from_dtype(np.dtype(columns))
    words = _ARRAYS | {"columns": types.Array(index, 1, "C", readonly=True), "new columns": index[::1]}
    words |= {word: _type_of(kind, words) for word, kind in {"blocks": Blocks, **kinds}.items()}
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


def _forget(function: Callable[..., Any], all_of_it: bool) -> None:
    """Delete what the disk holds of a function: all, or where it is outdated.

    Numba looks at the file of a kernel alone; its helpers lie in other files of this folder.
    """
    folder, stem = numba.njit(cache=True)(function).stats.cache_path, Path(function.__code__.co_filename).stem
    kept = list(Path(folder).glob(f"{stem}.{function.__qualname__}-*"))
    newest = max(file.stat().st_mtime_ns for file in Path(__file__).parent.glob("*.py"))
    if all_of_it or any(file.stat().st_mtime_ns < newest for file in kept):
        for file in kept:
            with contextlib.suppress(OSError):
                file.unlink()
