"""Libraries that runs are tried on: PyTorch, JAX, and the strict stand-in for all libraries of the array API."""

from __future__ import annotations

import numpy as np

from saddleslide.arrays.kinds import ArrayKind, kind_of
from support import need

KINDS = ["torch", "jax", "array_api_strict"]


def kind(library):
    """The library's arrays on this machine's processor."""
    module = need(library)
    if library == "array_api_strict":
        return kind_of(module.asarray(np.ones(1)))
    return ArrayKind(library, "cpu" if library == "torch" else None)
