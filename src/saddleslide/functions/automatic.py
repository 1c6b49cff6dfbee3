"""Functions from code that returns value and gradient together, or from PyTorch or JAX code that is differentiated."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, final

from saddleslide.arrays.base import Array, as_number, received, received_number
from saddleslide.arrays.kinds import NUMPY, ArrayKind, as_kind
from saddleslide.domains import Domain
from saddleslide.errors import InputError, MissingExtraError, UnknownConstantError
from saddleslide.functions.base import Function
from saddleslide.theory.holder import Holder


@final
class Evaluated(Function):
    """A convex function given by one callable x -> (value, gradient).

    `from_callable`, `from_torch` and `from_jax` make it.

    Examples
    --------
    >>> import numpy as np
    >>> Evaluated(lambda x: (x @ x / 2, x)).value_and_gradient(np.array([3.0, 4.0]))
    (12.5, array([3., 4.]))
    """

    def __init__(
        self,
        evaluate: Callable[[Any], Any],
        smoothness: Holder | None = None,
        strong_convexity: float = 0.0,
        name: str = "from_callable",
        kind: ArrayKind = NUMPY,
        value: Callable[[Any], Any] | None = None,
    ) -> None:
        if not callable(evaluate):
            raise InputError(f"{name}: received {type(evaluate).__name__}; expected a function of x.")
        if not (smoothness is None or isinstance(smoothness, Holder)):
            raise InputError(f"{name}: smoothness is {smoothness!r}; expected Holder(nu, H) of the gradient, or None.")
        self._evaluate, self._smoothness, self._name, self._kind = evaluate, smoothness, name, kind
        self._value = value
        self._strong_convexity = as_number(strong_convexity, f"{name}: strong_convexity", 0.0)

    def __repr__(self) -> str:
        return f"{self._name}({self._smoothness or 'smoothness unknown'})"

    def stays_on_host(self, kind: ArrayKind) -> tuple[str, ...]:
        own = self._kind.library
        return () if own == kind.library else (f"{self._name}: {'NumPy' if own == 'numpy' else own} code",)

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        with self._kind.scope():
            answer = self._kind.handed(self._evaluate, x)
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            raise InputError(
                f"{self._name}: the function returned {type(answer).__name__}; expected (value, gradient)."
            )
        gradient = self._kind.returned(answer[1], x)
        return received_number(answer[0], f"{self._name}: value"), received(
            gradient, x.shape, f"{self._name}: gradient", out, x
        )

    def value(self, x: Array) -> float:
        """The value alone, without a derivative where the code can do without."""
        if self._value is None:
            return self.value_and_gradient(x)[0]
        with self._kind.scope():
            return float(self._kind.handed(self._value, x))

    def smoothness(self, domain: Domain) -> Holder:
        if self._smoothness is None:
            raise UnknownConstantError(f"{self._name}: smoothness was not declared; pass smoothness=Holder(nu, H).")
        return self._smoothness

    def strong_convexity(self, domain: Domain) -> float:
        return self._strong_convexity

    def certain_convexity(self, domain: Domain) -> float:
        return 0.0

    @property
    def own_code(self) -> bool:
        return True


def from_callable(
    value_and_gradient: Callable[[Any], Any],
    *,
    smoothness: Holder | None = None,
    strong_convexity: float = 0.0,
    like: Any = None,
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
    like : "torch", "jax", "cupy" or an array of theirs, optional
        Kind of arrays that the callable takes and returns, on the device of that array; NumPy when missing.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f = ss.functions.from_callable(lambda x: (np.sum(x**4) / 4, x**3))
    >>> f.value_and_gradient(np.array([2.0]))
    (4.0, array([8.]))
    """
    kind = as_kind(like, "from_callable: like")
    made = Evaluated(value_and_gradient, smoothness, strong_convexity, kind=kind)
    made.origin = kind
    return made


def from_torch(
    function: Callable[[Any], Any],
    *,
    smoothness: Holder | None = None,
    strong_convexity: float = 0.0,
    device: Any = "cpu",
) -> Function:
    """A convex function from PyTorch code, differentiated by autograd in double precision.

    Parameters
    ----------
    function : callable
        A function of a tensor (float64) that returns a scalar tensor. Tensors that it uses must be float64 too.
    smoothness, strong_convexity
        As for `from_callable`.
    device : str or torch.device, optional
        Where the tensor lies.

    Examples
    --------
    >>> import saddleslide as ss
    >>> ss.functions.from_torch(3)
    Traceback (most recent call last):
    ...
    saddleslide.errors.InputError: from_torch: received int; expected a function of x.
    """
    if not callable(function):
        raise InputError(f"from_torch: received {type(function).__name__}; expected a function of x.")
    torch = _require("torch", "PyTorch")

    def checked(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.numel() != 1 or value.dtype != torch.float64:
            kind = f"{value.dtype} of shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else type(value)
            raise InputError(
                f"from_torch: the function returned {kind}; expected one number, a float64 tensor. Turn the tensors "
                "that it uses into float64 with .double()."
            )
        return value

    def evaluate(x: Any) -> tuple[float, Any]:
        x.requires_grad_()
        # The caller may be inside torch.no_grad().
        with torch.enable_grad():
            value = checked(function(x))
        if not value.requires_grad:
            raise InputError("from_torch: the value does not depend on x; expected it without detach() or item().")
        (gradient,) = torch.autograd.grad(value, x)
        return float(value.detach()), gradient

    def value_alone(x: Any) -> float:
        with torch.no_grad():
            return float(checked(function(x)))

    kind = ArrayKind("torch", device)
    return Evaluated(evaluate, smoothness, strong_convexity, "from_torch", kind, value_alone)


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
    jax = _require("jax", "JAX")
    # Single precision, JAX's default, would spoil every certificate; the kind's scope lifts it for each call alone.
    both, alone = jax.jit(jax.value_and_grad(function)), jax.jit(function)
    return Evaluated(both, smoothness, strong_convexity, "from_jax", ArrayKind("jax"), alone)


def _require(package: str, name: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as missing:
        raise MissingExtraError(
            f"from_{package}: {name} is not installed; expected it for automatic gradients. Install it with "
            f"pip install 'saddleslide[{package}]', or write the gradient yourself and use from_callable."
        ) from missing
