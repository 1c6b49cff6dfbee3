"""What a method hands to the judge: a point, what is already known about it, and which parts of f and g are simple."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Self, TypeAlias

from saddleslide.arrays.base import inner_product, length_of
from saddleslide.arrays.state import State
from saddleslide.functions.roundings import FEW, Errors, inner_error

if TYPE_CHECKING:
    from saddleslide.arrays.base import Array
    from saddleslide.arrays.state import XArray, YArray
    from saddleslide.functions.base import Function
    from saddleslide.functions.minimum import LowerModel
    from saddleslide.metrics.base import Metric

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
        return length_of(self.point), length_of(self.gradient)


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
    # A gradient of the costly part of f that no earlier candidate has brought: that at the start.
    earlier: XLinearisation | None = None
    # What a method remembers of f and of g itself, where bounds rest on that.
    columns: tuple[list[Column], list[YColumn]] | None = None
    # A lower model of the costly part of g, averaged with the same weights as this x.
    g_averaged: tuple[float, YArray] | None = None
    # The metric of the method's steps, which stands for the Hessian of f.
    metric: Metric | None = None


@dataclass(frozen=True)
class Split:
    """f and g, each as a costly rest and a simple part with an exact proximal step."""

    f_rest: Function
    f_simple: Function
    g_rest: Function
    g_simple: Function


@dataclass
class Column(State):
    """A point with its product, a cut of the costly part of its function, and what rounding may do to both.

    `total` is the function at the point, `constant` and `slope` are the cut. `use` is the largest weight that it had
    in a bound or a step, faded.
    """

    point: XArray
    total: float
    image: YArray
    constant: float
    slope: XArray
    error: float = 0.0
    lost: float = 0.0
    wrong: float = 0.0
    use: float = 1.0

    @classmethod
    def of(cls, point: Array, total: float, image: Array, known: Linearisation, error: float, made: Errors) -> Self:
        """From a value with its error, a product and a linearisation with its errors."""
        inner = inner_product(known.gradient, known.point)
        size, slope = known.sizes
        lost = made.value + made.gradient * size + (inner_error(point.size) + FEW) * size * slope + FEW * abs(inner)
        lost += FEW * abs(known.value)
        return cls(point, total, image, known.value - inner, known.gradient, error, lost, made.gradient)


@dataclass
class YColumn(Column):
    """The same of g: a point of y."""

    point: YArray
    image: XArray
    slope: YArray


@dataclass(eq=False, repr=False)
class HullState(State):
    """What recent candidates leave behind for both functions, and when all of it is asked for next (hull.py)."""

    f: list[Column] = field(default_factory=list)
    g: list[YColumn] = field(default_factory=list)
    next_look: int = 1

    def forget(self) -> None:
        """The products of the columns were wrong."""
        self.f, self.g = [], []
