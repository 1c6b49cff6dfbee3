"""Metrics as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from saddleslide.errors import InputError
from saddleslide.metrics.base import Blocks, Diagonal, Metric, Operator
from saddleslide.metrics.spectral import Spectral


def from_dict(data: Mapping[str, Any]) -> Metric:
    """Read what `metric.to_dict()` wrote, so that plans with a given metric can be kept and replayed.

    Examples
    --------
    >>> from_dict({"kind": "diagonal", "symbol": [1.0, 2.0]}).symbol
    array([1., 2.])
    """
    kind = data.get("kind")
    if kind == "blocks":
        return Blocks(float(data["symbol"]), 0.0)
    if kind == "diagonal":
        return Diagonal(data["symbol"])
    if kind == "spectral":
        return Spectral(data["symbol"], basis=str(data["basis"]), scale=data.get("scale", 1.0))
    if kind == "matrix":
        return Operator.of(np.array(data["matrix"]))
    raise InputError(f"metric data has kind {kind!r}; expected 'blocks', 'diagonal', 'matrix' or 'spectral'.")
