"""Functions whose values and gradients are those of a (delta, L)-oracle (Definition inexact_oracle)."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import final

from saddleslide.arrays.base import Array, as_number
from saddleslide.domains.base import Domain
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.functions.roundings import Rounding
from saddleslide.functions.trust import read_rounding, runs_own_code
from saddleslide.theory.holder import Holder


@final
class Inexact(Function):
    """A convex h known through values h~(v) and gradients g~(v) with an error that is declared.

    For all u and v of the set

        mu/2 |u - v|^2  <=  h(u) - h~(v) - <g~(v), u - v>  <=  L/2 |u - v|^2 + delta.

    Plans of the theorems take (delta, L) from here, and every certificate widens its bounds by delta.

    Parameters
    ----------
    function : Function
        What answers with h~ and g~, such as `ss.functions.Custom`. Nothing else is asked of it.
    delta : float
        The error of the oracle.
    L : float, optional
        Its curvature; by default the Lipschitz constant that the function has.
    strong_convexity : float
        mu, which the definition of the paper does not have; 0 is always valid.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> exact, box = ss.functions.Quadratic(1.0), ss.domains.Box(-1.0, 1.0, shape=2)
    >>> problem = ss.SaddleProblem(f=Inexact(exact, delta=0.01), g=ss.functions.Zero(), B=np.eye(2), X=box, Y=box)
    >>> found = ss.solve(problem, tol=0.1)
    >>> found.success, found.gap >= 0.01
    (True, True)
    """

    def __init__(self, function: Function, delta: float, L: float | None = None, strong_convexity: float = 0.0) -> None:
        if not isinstance(function, Function) or not (function.has_value and function.has_gradient):
            raise InputError(f"Inexact: function is {function!r}; expected a function with values and gradients.")
        self.function, self.shape = function, function.shape
        self.inexactness = as_number(delta, "Inexact: delta", 0.0)
        self.curvature = None if L is None else as_number(L, "Inexact: L", 0.0)
        self.modulus = as_number(strong_convexity, "Inexact: strong_convexity", 0.0)

    def __repr__(self) -> str:
        return f"Inexact({self.function!r}, delta={self.inexactness:g})"

    @property
    def own_code(self) -> bool:
        return runs_own_code(self.function)

    @property
    def convex_on_trust(self) -> bool:
        return True

    @property
    def value_cost(self) -> float:
        return self.function.value_cost

    @property
    def lone_value_cost(self) -> float:
        return self.function.lone_value_cost

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        return self.function.value_and_gradient(x, out)

    def value(self, x: Array) -> float:
        return self.function.value(x)

    def gradient(self, x: Array, out: Array | None = None) -> Array:
        return self.function.gradient(x, out)

    def smoothness(self, domain: Domain) -> Holder:
        """(1, L): what plans take for a curvature, with delta beside it."""
        if self.curvature is not None:
            return Holder(1.0, self.curvature)
        found = self.function.smoothness(domain)
        if found.nu < 1.0 and found.H > 0.0:
            raise InputError(f"Inexact: L is missing, and {self.function!r} has nu = {found.nu:g}; expected L=.")
        return Holder(1.0, found.H)

    def strong_convexity(self, domain: Domain) -> float:
        return self.modulus

    def certain_convexity(self, domain: Domain) -> float:
        return 0.0

    @cached_property
    def error_model(self) -> Rounding:
        """That of the function, and delta on the value: h~ <= h <= h~ + delta."""
        made, delta = read_rounding(self.function), self.inexactness
        (constant, *rest), *rows = made.value
        widened = ((constant + delta, rest[0], rest[1]), *rows)
        floor = (made.floor[0] + delta, *made.floor[1:])
        return replace(made, value=widened, floor=floor)  # type: ignore[arg-type]
