"""Which kernels are used: compiled ones unless the environment or a test says no, or the work is too small for them.

Compiling takes seconds in a new environment. Where nothing is said and the arrays are small, NumPy's twins end before
that, so these are used: by a rule on sizes alone, so that the same call gives the same bits whatever the disk holds.
Only `Kernels` imports Numba.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, ClassVar, final

_OFF = {"0", "off", "no", "false"}
# Numbers in x and y, or entries of a matrix, below which NumPy's steps and products take no more than a few times as
# long as compiled ones, and end before those are compiled: a picture of 64 x 64 pixels with its differences is below.
SMALL = 2**14


def is_asked_for() -> bool:
    """What the environment says: no compiling with SADDLESLIDE_JIT=0 or NUMBA_DISABLE_JIT=1, nor without Numba."""
    asked_off = os.environ.get("SADDLESLIDE_JIT", "1").strip().lower() in _OFF
    allowed = not asked_off and os.environ.get("NUMBA_DISABLE_JIT", "0").strip() in {"", "0"}
    return allowed and importlib.util.find_spec("numba") is not None


class _Switch:
    """State of the process: which kernels are used, and the time that loading and compiling have taken.

    With `always`, as SADDLESLIDE_JIT=1 asks for, they are used at any size.
    """

    on: bool = is_asked_for()
    always: bool = "SADDLESLIDE_JIT" in os.environ
    seconds: float = 0.0


def jit_enabled(size: int | None = None, beside: int = 0) -> bool:
    """Whether compiled kernels are used, for passes over so many numbers: as the environment said, or as `jit` says.

    From half the size on they are `beside` a large matrix: its products are compiled in any case.
    """
    least = SMALL // 2 if beside >= SMALL else SMALL
    return _Switch.on and (size is None or _Switch.always or size >= least)


@contextmanager
def jit(on: bool) -> Iterator[None]:
    """Use compiled kernels or their NumPy twins for a while, whatever the environment says."""
    before = _Switch.on, _Switch.always
    _Switch.on, _Switch.always = on, True
    try:
        yield
    finally:
        _Switch.on, _Switch.always = before


def compile_seconds() -> float:
    """Time this process has spent on importing Numba and transforms, and on compiling or loading kernels."""
    return _Switch.seconds


def clock() -> float:
    """Seconds of a clock that stands still while kernels are compiled or loaded: the one for the work of a method."""
    return time.perf_counter() - _Switch.seconds


@final
class Kernels:
    """The kernels of a module, by name: each is compiled, or read from the disk, when it is first asked for."""

    stored: ClassVar[bool] = False

    def __init__(self, module: str, **kinds: Any) -> None:
        self._module, self._kinds = module, kinds

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        with _stop_clock():
            kernel = getattr(importlib.import_module(f"saddleslide.kernels.{self._module}"), name)
            made = importlib.import_module("saddleslide.kernels.building").compile_kernel(kernel, **self._kinds)
        setattr(self, name, made)
        return made


# The kernels of a module, for one kind of what can be of several: `coupling=Dense`, `rows=Pairs`, `columns=`.
load = cache(Kernels)


@contextmanager
def _stop_clock() -> Iterator[None]:
    """The clock of methods stands still."""
    began = time.perf_counter()
    try:
        yield
    finally:
        _Switch.seconds += time.perf_counter() - began


def prepare(transforms: bool = False) -> None:
    """Load SciPy's transforms now where a run will use them, so that no clock of the run is charged with it."""
    if transforms and "scipy.fft" not in sys.modules:
        with _stop_clock():
            importlib.import_module("scipy.fft")
