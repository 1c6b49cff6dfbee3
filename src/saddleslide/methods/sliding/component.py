"""One component (p_i, Q_i) of a monotone variational inequality."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from saddleslide.arrays.base import Array, Shape, as_number, read_only, received
from saddleslide.arrays.kinds import NUMPY
from saddleslide.arrays.remote import Remote
from saddleslide.domains import Domain
from saddleslide.errors import InputError, explain_read_only
from saddleslide.functions.base import Function
from saddleslide.theory.holder import Holder

# Writes a gradient or an operator value at z into `out`.
Writer = Callable[[Array, Array], None]


@dataclass(frozen=True, eq=False)
class Component:
    """A pair of a convex function and a monotone operator, either of which may be absent.

    Parameters
    ----------
    function : Function or callable, optional
        The convex p_i, or z -> its (sub)gradient.
    smoothness : Holder, optional
        Of p_i, in the norm of the metric. Read off a Function when missing (Euclidean norm, metric 1 only).
    operator : callable, optional
        The monotone Q_i: z -> Q_i(z).
    lipschitz : float, optional
        Of Q_i, in the norm of the metric.
    inexact : (delta, L), optional
        Declares a (delta, L)-oracle of p_i (Definition inexact_oracle) in place of `smoothness`.
    tau : float, optional
        Extra curvature against noise (eq. eta_stochastic).
    name : str, optional
        For messages and plans.
    variance : float
        Of a sampled gradient, in the dual norm of the metric: it enters `ss.theory.sharp_bound` with its tau, and is
        infinite there without one.

    Examples
    --------
    >>> import saddleslide as ss
    >>> Component(operator=lambda z: z, lipschitz=1.0).lipschitz
    1.0
    """

    function: Function | Callable[[Array], Any] | None = None
    smoothness: Holder | None = None
    operator: Callable[[Array], Any] | None = None
    lipschitz: float = 0.0
    inexact: tuple[float, float] | None = None
    tau: float = 0.0
    name: str = ""
    variance: float = 0.0

    def __post_init__(self) -> None:
        if self.function is None and self.operator is None:
            raise InputError("Component: both function and operator are missing; expected at least one.")
        for role, part in (("function", self.function), ("operator", self.operator)):
            if part is not None and not callable(part) and not isinstance(part, Function):
                raise InputError(f"Component: {role} is {type(part).__name__}; expected a callable or a Function.")
        as_number(self.lipschitz, "Component: lipschitz", 0.0)
        as_number(self.tau, "Component: tau", 0.0)
        as_number(self.variance, "Component: variance", 0.0)
        if self.operator is not None and self.lipschitz == 0.0:
            raise InputError("Component: lipschitz is 0 with an operator; expected its Lipschitz constant > 0.")
        if self.operator is None and self.lipschitz > 0.0:
            raise InputError("Component: lipschitz is given without an operator; expected both or neither.")
        if self.function is None and (self.smoothness is not None or self.inexact is not None):
            raise InputError("Component: smoothness or inexact is given without a function; expected both or neither.")
        if self.smoothness is not None and not isinstance(self.smoothness, Holder):
            raise InputError(f"Component: smoothness is {self.smoothness!r}; expected Holder(nu, H).")
        if self.inexact is not None:
            if not isinstance(self.inexact, tuple | list) or len(self.inexact) != 2:
                raise InputError(f"Component: inexact is {self.inexact!r}; expected a pair (delta, L).")
            delta, L = self.inexact
            as_number(delta, "Component: inexact delta", 0.0)
            as_number(L, "Component: inexact L", 0.0)

    def resolved_smoothness(self, domain: Domain, identity_metric: bool) -> Holder | None:
        """The Hölder condition to plan with: the declared one, else the function's own."""
        if self.function is None or self.inexact is not None or self.smoothness is not None:
            return self.smoothness
        if isinstance(self.function, Function) and identity_metric:
            return self.function.smoothness(domain)
        raise InputError(
            f"Component {self.name or '(unnamed)'}: smoothness is missing; expected Holder(nu, H) in the norm of the "
            "metric, or inexact=(delta, L)."
        )

    def gradient_writer(self, shape: Shape) -> Writer | None:
        """The gradient of p_i as an in-place writer on flat vectors; user code sees points of `shape`."""
        function = self.function
        if function is None:
            return None
        if isinstance(function, Function):
            return _writer(partial(_read, function.gradient), shape, "Component: function")
        return _writer(_handed(function), shape, "Component: function")

    def operator_writer(self, shape: Shape) -> Writer | None:
        """Q_i as an in-place writer on flat vectors."""
        return None if self.operator is None else _writer(_handed(self.operator), shape, "Component: operator")


def _writer(call: Callable[[Array], Any], shape: Shape, name: str) -> Writer:
    def write(z: Array, out: Array) -> None:
        received(call(z.reshape(shape)), shape, name, out.reshape(shape))

    return write


def _read(gradient: Callable[[Array], Any], z: Array) -> Any:
    try:
        return gradient(read_only(z))
    except Exception as error:
        explain_read_only(error)
        raise


def _handed(call: Callable[[Array], Any]) -> Callable[[Array], Any]:
    """The user's code on arrays that it can not write to, of the kind that the run started with."""

    def run(z: Array) -> Any:
        point: Any = z
        kind: Any = point.kind if isinstance(point, Remote) else NUMPY
        return kind.call(call, point) if kind != NUMPY else NUMPY.handed(call, z)

    return run
