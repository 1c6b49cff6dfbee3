"""`slide`: Algorithm 1 on any monotone variational inequality of the paper's Section 3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saddleslide.arrays.base import Array, as_number, as_real, split
from saddleslide.arrays.kinds import NUMPY, ArrayKind, kind_of
from saddleslide.domains import Domain, Product
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.methods.sliding.component import Component
from saddleslide.methods.sliding.recursion import Recursion
from saddleslide.theory import Level, Term, place
from saddleslide.theory.levels import check_loops


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
    levels = component_levels(components, domain, start, loops, metric)
    kind = kind_of(start)
    z = kind.placed(domain.project(as_real(start, "start", domain.shape)))
    flat_domain = domain if isinstance(domain, Product) else Product(domain)
    recursion = Recursion(
        levels,
        [component.gradient_writer(domain.shape) for component in components],
        [component.operator_writer(domain.shape) for component in components],
        flat_domain,
        z,
    )
    average = z.ravel()
    for step, average in enumerate(recursion.steps(), start=1):
        if callback is None:
            continue
        try:
            callback(step, _own(average, domain, kind))
        except StopIteration:
            break
    return _own(average, domain, kind)


def _own(average: Array, domain: Domain, kind: ArrayKind) -> Array:
    """A copy of the running average in the shape of the domain, of the kind that the start was of."""
    point = average.reshape(domain.shape)
    made: Array = point.copy() if kind == NUMPY else kind.wrap(point)
    return made


def component_levels(
    components: Sequence[Component],
    domain: Domain,
    start: Any,
    loops: Sequence[int],
    metric: float | Sequence[float] = 1.0,
) -> tuple[Level, ...]:
    """The scalars of each level that `slide` would use, for the bounds of Theorems 3.3 and 3.5.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> Q = ss.Component(operator=lambda z: np.array([z[1], -z[0]]), lipschitz=1.0)
    >>> levels = component_levels([Q], ss.domains.Ball(1.0, shape=2), np.zeros(2), loops=(10,))
    >>> round(ss.theory.sharp_bound(levels), 4)
    0.0841
    """
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
    weights = block_weights(metric, domain)
    Omega = squared_radius(domain, z, weights)
    identity = all(weight == 1.0 for weight in weights)
    terms = [
        Term(
            component.name or str(i),
            component.resolved_smoothness(domain, identity),
            component.lipschitz,
            component.inexact,
            component.tau,
            weights,
            Omega,
            component.variance,
        )
        for i, component in enumerate(components, start=1)
    ]
    return place(terms, loops)


def block_weights(metric: float | Sequence[float], domain: Domain) -> tuple[float, ...]:
    """One positive weight per block of the domain."""
    count = len(domain.blocks)
    if not isinstance(metric, Sequence | np.ndarray) or isinstance(metric, str):
        given: list[Any] = [metric] * count
    else:
        given = list(metric)
    if len(given) != count:
        raise InputError(f"metric: received {len(given)} weights; expected 1 or {count}, one per block of {domain}.")
    weights = tuple(as_number(weight, "metric: weight") for weight in given)
    if any(weight <= 0.0 for weight in weights):
        raise InputError(f"metric: weights are {weights}; expected numbers > 0.")
    return weights


def squared_radius(domain: Domain, point: Array, weights: Sequence[float]) -> float:
    """Omega: the largest squared distance from `point` in the weighted norm."""
    parts = split(point.ravel(), [block.shape for block in domain.blocks])
    return float(
        sum(w * block.squared_radius(part) for w, block, part in zip(weights, domain.blocks, parts, strict=True))
    )
