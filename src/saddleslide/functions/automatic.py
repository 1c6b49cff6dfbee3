"""Functions from code that returns value and gradient together, and from JAX code that is differentiated here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np

from saddleslide.arrays import Array, as_number, read_only, received
from saddleslide.domains import Domain
from saddleslide.errors import InputError, MissingExtraError, UnknownConstantError
from saddleslide.functions.base import Function
from saddleslide.holder import Holder


@final
class Evaluated(Function):
    """A convex function given by one callable x -> (value, gradient); `from_callable` and `from_jax` make it.

    Examples
    --------
    >>> import numpy as np
    >>> Evaluated(lambda x: (x @ x / 2, x)).value_and_gradient(np.array([3.0, 4.0]))
    (12.5, array([3., 4.]))
    """

    def __init__(
        self,
        evaluate: Callable[[Array], Any],
        smoothness: Holder | None = None,
        strong_convexity: float = 0.0,
        name: str = "from_callable",
    ) -> None:
        if not callable(evaluate):
            raise InputError(f"{name}: received {type(evaluate).__name__}; expected a function of x.")
        if not (smoothness is None or isinstance(smoothness, Holder)):
            raise InputError(f"{name}: smoothness is {smoothness!r}; expected Holder(nu, H) of the gradient, or None.")
        self._evaluate, self._smoothness, self._name = evaluate, smoothness, name
        self._strong_convexity = as_number(strong_convexity, f"{name}: strong_convexity", 0.0)

    def __repr__(self) -> str:
        return f"{self._name}({self._smoothness or 'smoothness unknown'})"

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        answer = self._evaluate(read_only(x))
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            raise InputError(
                f"{self._name}: the function returned {type(answer).__name__}; expected (value, gradient)."
            )
        return float(answer[0]), received(answer[1], x.shape, f"{self._name}: gradient", out)

    def smoothness(self, domain: Domain) -> Holder:
        if self._smoothness is None:
            raise UnknownConstantError(f"{self._name}: smoothness was not declared; pass smoothness=Holder(nu, H).")
        return self._smoothness

    def strong_convexity(self, domain: Domain) -> float:
        return self._strong_convexity


def from_callable(
    value_and_gradient: Callable[[Array], Any], *, smoothness: Holder | None = None, strong_convexity: float = 0.0
) -> Function:
    """A convex function from one callable x -> (value, gradient).

    Parameters
    ----------
    value_and_gradient : callable
        Called with a read-only array; returns a number and an array of the shape of x.
    smoothness : Holder, optional
        Hölder condition of the gradient. `solve` does without; plans of the paper's method estimate it and say so.
    strong_convexity : float, optional
        Modulus in the Euclidean norm, >= 0.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f = ss.functions.from_callable(lambda x: (np.sum(x**4) / 4, x**3))
    >>> f.value_and_gradient(np.array([2.0]))
    (4.0, array([8.]))
    """
    return Evaluated(value_and_gradient, smoothness, strong_convexity)


def from_jax(
    function: Callable[[Any], Any], *, smoothness: Holder | None = None, strong_convexity: float = 0.0
) -> Function:
    """A convex function from JAX code: compiled and differentiated once per shape, in double precision.

    Parameters
    ----------
    function : callable
        A JAX function of an array that returns a scalar.
    smoothness, strong_convexity
        As for `from_callable`.

    Examples
    --------
    >>> import saddleslide as ss
    >>> ss.functions.from_jax(3)
    Traceback (most recent call last):
    ...
    saddleslide.errors.InputError: from_jax: received int; expected a function of x.
    """
    if not callable(function):
        raise InputError(f"from_jax: received {type(function).__name__}; expected a function of x.")
    jax = _require_jax()
    differentiated = jax.jit(jax.value_and_grad(function))

    def evaluate(x: Array) -> tuple[float, Array]:
        # Single precision, JAX's default, would spoil every certificate; the switch is local to this call.
        with jax.enable_x64(True):
            value, gradient = differentiated(jax.numpy.asarray(x))
            return float(value), np.asarray(gradient)

    return Evaluated(evaluate, smoothness, strong_convexity, "from_jax")


def _require_jax() -> Any:
    try:
        import jax
    except ImportError as missing:
        raise MissingExtraError(
            "from_jax: JAX is not installed; expected it for automatic gradients. Install it with "
            "pip install 'saddleslide[jax]', or write the gradient yourself and use from_callable."
        ) from missing
    return jax
