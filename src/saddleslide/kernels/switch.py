"""Which kernels are used: compiled ones unless the environment or a test says no. Numba is imported by `load` alone."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, cast

from saddleslide.arrays import Array, on_host
from saddleslide.kernels import reference
from saddleslide.kernels.reference import Edges

_OFF = {"0", "off", "no", "false"}


class Updates(Protocol):
    """The vector updates of the recursion, as `reference` documents them."""

    def combine(self, out: Array, a: float, x: Array, b: float, y: Array, scratch: Array) -> None: ...
    def compose(
        self, base: Array, point: Array, a: float, average: Array, above: Array, b: float, z: Array, scratch: Array
    ) -> None: ...
    def settle(self, average: Array, z: Array, ahead: Array, alpha: float, scratch: Array) -> None: ...
    def collect(
        self, pull: Array, slope: Array, above: Array, above_slope: Array, z: Array, gradient: Array, weights: Array,
        edges: Edges,
    ) -> None: ...  # fmt: skip
    def resolve(self, out: Array, pull: Array, slope: Array, weights: Array, edges: Edges) -> None: ...
    def correct(self, out: Array, ahead: Array, here: Array, there: Array, factors: Array, edges: Edges) -> None: ...


def asked_for() -> bool:
    """What the environment says: no compiling with SADDLESLIDE_JIT=0 or NUMBA_DISABLE_JIT=1."""
    asked_off = os.environ.get("SADDLESLIDE_JIT", "1").strip().lower() in _OFF
    return not asked_off and os.environ.get("NUMBA_DISABLE_JIT", "0").strip() in {"", "0"}


class _Switch:
    """State of the process: which kernels are used, and the time that loading and compiling have taken."""

    on: bool = asked_for()
    seconds: float = 0.0


def jit_enabled() -> bool:
    """Whether compiled kernels are used: as the environment said at import, or as `jit` says.

    Examples
    --------
    >>> with jit(False):
    ...     jit_enabled()
    False
    """
    return _Switch.on


@contextmanager
def jit(on: bool) -> Iterator[None]:
    """Use compiled kernels or their NumPy twins for a while, whatever the environment says."""
    before = _Switch.on
    _Switch.on = on
    try:
        yield
    finally:
        _Switch.on = before


def compile_seconds() -> float:
    """Time this process has spent on importing Numba and transforms, and on compiling or loading kernels."""
    return _Switch.seconds


def load(name: str) -> Any:
    """A module of compiled kernels; the first time it is compiled, or read from the disk."""
    return _imported(f"saddleslide.kernels.{name}")


def _imported(module: str) -> Any:
    if module not in sys.modules:
        began = time.perf_counter()
        importlib.import_module(module)
        _Switch.seconds += time.perf_counter() - began
    return sys.modules[module]


def prepare(transforms: bool = False) -> None:
    """Load now what a run may use, so that no clock of the run is charged with it; SciPy's transforms where asked."""
    if transforms:
        _imported("scipy.fft")
    if jit_enabled():
        for name in ("compiled", "products", "passes", "paired_rows", "alike_rows", "primal_dual"):
            load(name)


def updates(near: Array | None = None) -> Updates:
    """The vector updates to use now, for arrays that lie where `near` does: elsewhere only NumPy's functions can be.

    Examples
    --------
    >>> with jit(False):
    ...     updates().__name__
    'saddleslide.kernels.reference'
    """
    compiled = jit_enabled() and (near is None or on_host(near))
    return cast(Updates, load("compiled") if compiled else reference)
