"""What a method hands to the judge: a point, what is already known about it, and which parts of f and g are simple."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from saddleslide.arrays.base import Array
    from saddleslide.arrays.state import XArray, YArray
    from saddleslide.functions.base import Function
    from saddleslide.functions.minimum import LowerModel

    # Of f near x, and of g near y.
    XLinearisation: TypeAlias = "Linearisation"
    YLinearisation: TypeAlias = "Linearisation"


@dataclass(frozen=True)
class Linearisation:
    """Value and gradient of the costly part of a function at a point."""

    point: Array
    value: float
    gradient: Array
    # Bounds on the rounding of both, where they were made in another way than the function itself makes them.
    errors: tuple[float, float] | None = None

    @cached_property
    def sizes(self) -> tuple[float, float]:
        """Norms of the point and of the gradient, computed once: later linearisations are compared with this one."""
        return float(np.linalg.norm(self.point)), float(np.linalg.norm(self.gradient))


@dataclass(frozen=True)
class Candidate:
    """A feasible point (x, y), and what the method knows of it at no more calls."""

    x: XArray
    y: YArray
    # The costly part of f at x; NaN where it was not made.
    value: float
    Bx: YArray | None = None
    # A gradient of the costly part of f near x.
    linearisation: XLinearisation | None = None
    # A lower model of the costly part of f, constant + <slope, x>, averaged with the same weights as this y.
    averaged: tuple[float, XArray, YArray] | None = None
    g_value: float | None = None
    # A gradient of the costly part of g near y.
    g_linearisation: YLinearisation | None = None
    BTy: XArray | None = None
    # A bound on the rounding of `value`, where it was made in another way than f itself makes it.
    error: float | None = None
    # Sizes of the points whose products add up to Bx, where these are more than x.
    term_size: float = 0.0
    # The same as `error`, of `g_value`.
    g_error: float | None = None
    # Lower models of f and of g, by name, that the method has carried along.
    models: Mapping[str, LowerModel] = field(default_factory=dict)


@dataclass(frozen=True)
class Split:
    """f and g, each as a costly rest and a simple part with an exact proximal step."""

    f_rest: Function
    f_simple: Function
    g_rest: Function
    g_simple: Function
