"""The norms that a plan may measure in: weights of the two blocks, or a norm of its own for every level."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from saddleslide.arrays.base import as_number
from saddleslide.errors import InputError
from saddleslide.metrics import Metric
from saddleslide.theory import Constant, Term
from saddleslide.theory.holder import Holder
from saddleslide.theory.levelwise import levelwise_terms

# Norms of the x block that are not a number; the weight between the blocks is chosen beside them.
BUILT_METRICS = ("diagonal", "spectral", "fft")
METRICS = ("auto", "blocks", "identity", "balanced", "levelwise", *BUILT_METRICS)
Weights = tuple[float, float]


def usable_norms(
    metrics: list[tuple[str, Weights | None]], used: Mapping[str, Constant]
) -> list[tuple[str, Weights | None]]:
    """Level-wise norms leave a block without curvature when neither its function nor B has any."""
    bare = used["L_xy"].value == 0.0 and min(used["H_x"].value, used["H_y"].value) == 0.0
    return [(name, weights) for name, weights in metrics if len(metrics) == 1 or weights is not None or not bare]


def block_norms(metric: Any, squares: tuple[float, float]) -> list[tuple[str, Weights | None]]:
    """The norms to compare: names with the weights of the two blocks, None for level-wise ones.

    `squares` are the largest squared distances from the start on X, in the norm of a metric of x, and on Y.
    """
    bounded = all(map(math.isfinite, squares))
    metric = "auto" if isinstance(metric, Metric) else metric
    if isinstance(metric, str):
        if metric not in METRICS:
            raise InputError(
                f"plan: metric is {metric!r}; expected one of {METRICS}, a number, (w_x, w_y) or one of ss.metrics."
            )
        metric = "auto" if metric in ("blocks", *BUILT_METRICS) else metric
        if metric in ("balanced", "levelwise") and not bounded:
            raise InputError(f"plan: metric {metric!r} needs bounded domains; pass the weights (w_x, w_y).")
        named = {"identity": (1.0, 1.0), "balanced": _balanced(squares) if bounded else None, "levelwise": None}
        if metric == "auto":
            return list(named.items()) if bounded else [("identity", (1.0, 1.0))]
        return [(metric, named[metric])]
    one = metric is None or np.isscalar(metric) or (isinstance(metric, np.ndarray) and metric.ndim == 0)
    if not (one or isinstance(metric, Sequence | np.ndarray)):
        raise InputError(
            f"plan: metric is {metric!r}; expected one of {METRICS}, a number, (w_x, w_y) or one of ss.metrics."
        )
    pair: tuple[Any, ...] = (metric, metric) if one else tuple(metric)
    if len(pair) != 2:
        raise InputError(f"plan: metric has {len(pair)} weights; expected (w_x, w_y).")
    w_x, w_y = (as_number(weight, "plan: metric weight") for weight in pair)
    if min(w_x, w_y) <= 0.0:
        raise InputError(f"plan: metric weights are {(w_x, w_y)}; expected numbers > 0.")
    return [("identity" if (w_x, w_y) == (1.0, 1.0) else f"blocks ({w_x:.4g}, {w_y:.4g})", (w_x, w_y))]


def _balanced(squares: tuple[float, float]) -> Weights:
    """Weights that make both blocks equally large."""
    return 1.0 / (squares[0] or 1.0), 1.0 / (squares[1] or 1.0)


def terms_in(used: Mapping[str, Constant], weights: Weights | None, squares: tuple[float, float]) -> list[Term]:
    """Terms of f, g and B in the P-norm, or each in its own (docs/theory.md); the order here breaks ties."""
    f = Holder(used["nu_x"].value, used["H_x"].value)
    g = Holder(used["nu_y"].value, used["H_y"].value)
    L_xy = used["L_xy"].value
    if weights is None:
        return levelwise_terms(f, g, L_xy, *squares)
    Omega = float(weights[0] * squares[0] + weights[1] * squares[1])
    return [
        Term("f", f.in_metric(weights[0]), weights=weights, Omega=Omega),
        Term("g", g.in_metric(weights[1]), weights=weights, Omega=Omega),
        Term("B", M=L_xy / math.sqrt(weights[0]) / math.sqrt(weights[1]), weights=weights, Omega=Omega),
    ]
