"""The user's own function: callables with declared constants."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, final

from saddleslide.arrays import Array, as_number, read_only, received
from saddleslide.domains import Domain
from saddleslide.errors import InputError, UnknownConstantError
from saddleslide.functions.base import Function
from saddleslide.holder import Holder


@final
class Custom(Function):
    """A convex function given by its gradient, its value (if known) and its constants.

    Parameters
    ----------
    gradient : callable
        x -> (sub)gradient, of the shape of x. The argument is read-only.
    value : callable, optional
        x -> number. Without it no gap can be certified.
    smoothness : Holder, optional
        Valid on the domain the function is used on, in the Euclidean norm. `solve` does without; plans of the paper's
        method estimate it from a few gradients and say so.
    strong_convexity : float, optional
        Modulus in the Euclidean norm, >= 0.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f = Custom(gradient=lambda x: x**3, value=lambda x: (x**4).sum() / 4, smoothness=ss.Holder(1.0, 3.0))
    >>> f.value_and_gradient(np.array([1.0]))
    (0.25, array([1.]))
    """

    def __init__(
        self,
        gradient: Callable[[Array], Any],
        value: Callable[[Array], Any] | None = None,
        smoothness: Holder | None = None,
        strong_convexity: float = 0.0,
    ) -> None:
        if not callable(gradient) or not (value is None or callable(value)):
            raise InputError("Custom: gradient or value is not callable; expected functions of x.")
        if not (smoothness is None or isinstance(smoothness, Holder)):
            raise InputError(f"Custom: smoothness is {smoothness!r}; expected Holder(nu, H) of the gradient, or None.")
        self._gradient, self._value, self._smoothness = gradient, value, smoothness
        self._strong_convexity = as_number(strong_convexity, "Custom: strong_convexity", 0.0)

    def __repr__(self) -> str:
        return f"Custom({self._smoothness or 'smoothness unknown'})"

    @property
    def has_value(self) -> bool:
        return self._value is not None

    def value(self, x: Array) -> float:
        """Value at x, NaN when it was not given."""
        return math.nan if self._value is None else float(self._value(read_only(x)))

    def gradient(self, x: Array, out: Array | None = None) -> Array:
        return received(self._gradient(read_only(x)), x.shape, "Custom: gradient", out)

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        return self.value(x), self.gradient(x, out)

    def smoothness(self, domain: Domain) -> Holder:
        if self._smoothness is None:
            raise UnknownConstantError("Custom: smoothness was not declared; pass smoothness=Holder(nu, H).")
        return self._smoothness

    def strong_convexity(self, domain: Domain) -> float:
        return self._strong_convexity
