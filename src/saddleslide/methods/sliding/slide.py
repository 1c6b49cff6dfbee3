"""`slide`: Algorithm 1 on any monotone variational inequality of the paper's Section 3, given by its components."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from saddleslide.arrays.base import Array, Shape, as_number, as_real, read_only, receive, split
from saddleslide.arrays.kinds import NUMPY, kind_of
from saddleslide.arrays.remote import Remote
from saddleslide.domains import Domain, Product
from saddleslide.errors import InputError, explain_read_only
from saddleslide.functions.base import Function
from saddleslide.methods.sliding.recursion import Recursion, Writer
from saddleslide.theory import Level, Term, place
from saddleslide.theory.holder import Holder
from saddleslide.theory.levels import check_loops


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

    def resolve_smoothness(self, domain: Domain, identity_metric: bool) -> Holder | None:
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
        if isinstance(self.function, Function):
            return _writer(self.function.gradient, shape, "Component: function", ours=True)
        return None if self.function is None else _writer(self.function, shape, "Component: function")

    def operator_writer(self, shape: Shape) -> Writer | None:
        """Q_i as an in-place writer on flat vectors."""
        return None if self.operator is None else _writer(self.operator, shape, "Component: operator")


def _writer(call: Callable[[Array], Any], shape: Shape, name: str, ours: bool = False) -> Writer:
    """The code of a component on arrays that it can not write to; the user's own gets the kind the run started with."""

    def write(z: Array, out: Array) -> None:
        point: Any = z.reshape(shape)
        try:
            is_remote = isinstance(point, Remote) and not ours
            answer = point.kind.call(call, point) if is_remote else call(read_only(point))
        except Exception as error:
            explain_read_only(error)
            raise
        receive(answer, shape, name, out.reshape(shape))

    return write


def slide(
    components: Sequence[Component],
    domain: Domain,
    start: Any,
    loops: Sequence[int],
    metric: float | Sequence[float] = 1.0,
    callback: Callable[[int, Array], None] | None = None,
) -> Array:
    """Solve the variational inequality of the components by recursive sliding (Algorithm 1).

    Finds z in the domain with p(z) - p(u) + <Q(u), z - u> small for all u, where p and Q are the sums over the
    components. `saddleslide.theory.sharp_bound` of the levels that `saddleslide.methods.sliding.component_levels` gives
    is the bound of Theorem 3.3 or 3.5.

    Parameters
    ----------
    components : sequence of Component
        Outermost level first: sort them by budget, the one that needs the fewest calls first.
    domain : Domain
        The set Z.
    start : array
        Feasible point of the domain. Where it is of PyTorch, JAX or CuPy the run stays there: callables get, and the
        run returns, arrays of that kind.
    loops : sequence of int
        T_1, ..., T_n; component i is called T_1 * ... * T_i times.
    metric : float or one float per block
        Weights of P; the blocks are the factors of a Product domain. The constants of the components are in this norm.
    callback : callable, optional
        Called as callback(step, z) after every outermost step with the running average; StopIteration ends the run.

    Returns
    -------
    Array
        The running average of the outermost level, in the shape of the domain.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> p = ss.Component(function=ss.functions.Quadratic(1.0), smoothness=ss.Holder(1.0, 1.0))
    >>> Q = ss.Component(operator=lambda z: np.array([z[1], -z[0]]), lipschitz=1.0)
    >>> z = ss.slide([p, Q], ss.domains.Ball(1.0, shape=2), np.array([1.0, 0.0]), loops=(10, 10))
    >>> bool(np.abs(z).max() < 0.02)
    True
    """
    if callback is not None and not callable(callback):
        raise InputError(f"slide: callback is {callback!r}; expected a function of (step, z).")
    levels, kind = component_levels(components, domain, start, loops, metric), kind_of(start)
    z = kind.place(domain.project(as_real(start, "start", domain.shape)))
    gradients = [component.gradient_writer(domain.shape) for component in components]
    operators = [component.operator_writer(domain.shape) for component in components]
    recursion = Recursion(levels, gradients, operators, domain if isinstance(domain, Product) else Product(domain), z)

    def copy_average(average: Array) -> Any:
        """The running average in the shape of the domain, of the kind that the start was of."""
        point = average.reshape(domain.shape)
        return point.copy() if kind == NUMPY else kind.wrap(point)

    average = z.ravel()
    for step, average in enumerate(recursion.steps(), start=1):
        try:
            if callback is not None:
                callback(step, copy_average(average))
        except StopIteration:
            break
    return copy_average(average)  # type: ignore[no-any-return]


def component_levels(
    components: Sequence[Component], domain: Domain, start: Any, loops: Sequence[int],
    metric: float | Sequence[float] = 1.0,
) -> tuple[Level, ...]:  # fmt: skip
    """The scalars of each level that `slide` would use, for the bounds of Theorems 3.3 and 3.5."""
    given = components if isinstance(components, Sequence) else [components]
    wrong = [type(component).__name__ for component in given if not isinstance(component, Component)]
    wrong += ["one Component"] * isinstance(components, Component)
    if wrong or not components:
        raise InputError(f"slide: components are {wrong or 'missing'}; expected a sequence of ss.Component.")
    if not isinstance(domain, Domain):
        raise InputError(f"slide: domain is {type(domain).__name__}; expected a domain from ss.domains.")
    check_loops(loops, len(components))
    z = as_real(start, "start", domain.shape)
    if not domain.contains(z, tolerance=1e-9 * (1.0 + float(np.max(np.abs(z), initial=0.0)))):
        raise InputError(f"start: lies outside {domain} by {domain.violation(z):.1e}; expected a feasible point.")
    for i, component in enumerate(components, start=1):
        shape = component.function.shape if isinstance(component.function, Function) else None
        if shape is not None and shape != domain.shape:
            raise InputError(f"slide: component {i} takes arrays of shape {shape}; expected {domain.shape}.")
    weights = _block_weights(metric, domain)
    Omega = find_Omega(domain, z, weights)
    identity = all(weight == 1.0 for weight in weights)
    terms = []
    for i, component in enumerate(components, start=1):
        smoothness = component.resolve_smoothness(domain, identity)
        oracle = component.lipschitz, component.inexact, component.tau
        terms.append(Term(component.name or str(i), smoothness, *oracle, weights, Omega, component.variance))
    return place(terms, loops)


def _block_weights(metric: float | Sequence[float], domain: Domain) -> tuple[float, ...]:
    """One positive weight per block of the domain."""
    count, several = len(domain.blocks), isinstance(metric, Sequence | np.ndarray) and not isinstance(metric, str)
    given: list[Any] = list(metric) if several else [metric] * count  # type: ignore[arg-type]
    if len(given) != count:
        raise InputError(f"metric: received {len(given)} weights; expected 1 or {count}, one per block of {domain}.")
    weights = tuple(as_number(weight, "metric: weight") for weight in given)
    if any(weight <= 0.0 for weight in weights):
        raise InputError(f"metric: weights are {weights}; expected numbers > 0.")
    return weights


def find_Omega(domain: Domain, point: Array, weights: Sequence[float]) -> float:
    """Omega: the largest squared distance from `point` in the weighted norm."""
    parts = zip(weights, domain.blocks, split(point.ravel(), [block.shape for block in domain.blocks]), strict=True)
    return float(sum(weight * block.squared_radius(part) for weight, block, part in parts))
