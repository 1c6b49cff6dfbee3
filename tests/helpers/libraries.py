"""Libraries that runs are tried on: PyTorch, JAX, and the strict stand-in for all libraries of the array API."""

from __future__ import annotations

import importlib
import os

import numpy as np
import pytest

from saddleslide.arrays.kinds import ArrayKind, kind_of

KINDS = ["torch", "jax", "array_api_strict"]


def need(library):
    """The library; a missing one is a failure in CI, where the extra `test` has them."""
    if os.environ.get("CI") == "true":
        return importlib.import_module(library)
    return pytest.importorskip(library, reason="install the extra test")


def kind(library):
    """The library's arrays on this machine's processor."""
    module = need(library)
    if library == "array_api_strict":
        return kind_of(module.asarray(np.ones(1)))
    return ArrayKind(library, "cpu" if library == "torch" else None)
