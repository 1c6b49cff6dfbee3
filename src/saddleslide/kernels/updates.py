"""Which vector updates the recursion uses: compiled ones, or their twins in NumPy."""

from __future__ import annotations

from types import ModuleType
from typing import Any, cast

import numpy as np

from saddleslide.kernels import reference
from saddleslide.kernels.switch import jit_enabled, load


def updates(near: Any = None) -> ModuleType:
    """The vector updates to use now, for arrays that lie where `near` does: elsewhere only NumPy's functions can be."""
    compiled = jit_enabled() and (near is None or isinstance(near, np.ndarray))
    return cast(ModuleType, load("compiled") if compiled else reference)
