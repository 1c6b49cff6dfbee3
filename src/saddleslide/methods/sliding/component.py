"""A component of a variational inequality: a convex function and a monotone operator, with what is known of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from saddleslide.arrays.base import Array, as_number, as_real, read_only, receive, split
from saddleslide.arrays.kinds import Remote
from saddleslide.domains.base import Domain
from saddleslide.errors import InputError, explain_read_only, raise_all
from saddleslide.facts.metric_constants import (
    Omega_in,
    in_coordinates,
    is_matrix,
    smallest_eigenvalue,
    smoothness_in,
)
from saddleslide.functions.base import Function
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.variance import Variance
from saddleslide.metrics.base import Metric, as_metric
from saddleslide.operators.base import Operator
from saddleslide.operators.explicit import as_operator
from saddleslide.problem import SaddleProblem
from saddleslide.theory.holder import Holder
from saddleslide.theory.levels import Term, best_w

# The norm that is chosen where none is given: level-wise where that can be, else the Euclidean one.
AUTO, LEVELWISE = "auto", "levelwise"


@dataclass(frozen=True, eq=False)
class Component:
    """A pair of a convex function and a monotone operator, either of which may be absent.

    Parameters
    ----------
    function : Function or callable, optional
        The convex p_i, or z -> its (sub)gradient. A Function with values makes gaps certain, and one that is sampled
        (`ss.functions.Noisy`, `SampledParts`, ...) is drawn afresh at every call.
    smoothness : Holder, optional
        Of p_i, in the norm of the metric. Read off a Function when missing: where it takes one block, or with metric 1.
    operator : callable, optional
        The monotone Q_i: z -> Q_i(z).
    lipschitz : float, optional
        Of Q_i, in the norm of the metric; of a `coupling` it is found out.
    inexact : (delta, L), optional
        Declares a (delta, L)-oracle of p_i (Definition inexact_oracle) in place of `smoothness`.
    tau : float, optional
        Extra curvature against noise (eq. eta_stochastic); where a gradient is sampled and none is given, that of
        Corollary VI_sliding_stochastic_optimized.
    name : str, optional
        For messages, plans and counts; by default its number.
    variance : float
        Of a sampled gradient, in the dual norm of the metric; read off a sampled Function when missing.
    block : int or (int, int), optional
        The block of a Product domain that the function takes, or the two that the coupling joins; (0, 1) by default.
    coupling : array, sparse matrix, operator, optional
        B of the operator Q(x, y) = (B^T y, -Bx) of two blocks, in place of `operator`.
    sample : callable, optional
        (z, rng) -> an unbiased draw of the gradient, in place of an exact one; needs a variance. Points are judged with
        `function`, where there is one beside it.
    cost : float
        Price of one call of function and operator, in any unit.
    sample_operator : callable, optional
        (z, rng) -> an unbiased draw of Q_i(z), in place of an exact one; needs `operator_variance`, and `lipschitz` or
        a coupling. Points are judged with `operator` or the coupling, where there is one beside it.
    operator_variance : float
        A bound on the variance of a sampled operator, in the dual norm of the metric.

    Examples
    --------
    >>> import saddleslide as ss
    >>> Component(operator=lambda z: z, lipschitz=1.0).lipschitz
    1.0
    >>> round(Component(coupling=[[3.0, 0.0]], name="B").level_constant((1.0, 1.0)), 6)
    3.0
    """

    function: Function | Callable[[Array], Any] | None = None
    smoothness: Holder | None = None
    operator: Callable[[Array], Any] | None = None
    lipschitz: float = 0.0
    inexact: tuple[float, float] | None = None
    tau: float = 0.0
    name: str = ""
    variance: float = 0.0
    block: int | tuple[int, int] | None = None
    coupling: Any = None
    sample: Callable[[Array, np.random.Generator], Any] | None = None
    cost: float = 1.0
    sample_operator: Callable[[Array, np.random.Generator], Any] | None = None
    operator_variance: float = 0.0

    def __post_init__(self) -> None:
        if not (self.has_gradient or self.has_operator):
            raise InputError("Component: both function and operator are missing; expected at least one.")
        for role in ("function", "operator", "sample", "sample_operator"):
            part = getattr(self, role)
            if part is not None and not callable(part) and not isinstance(part, Function):
                raise InputError(f"Component: {role} is {type(part).__name__}; expected a callable or a Function.")
        for role in ("lipschitz", "tau", "variance", "cost", "operator_variance"):
            as_number(getattr(self, role), f"Component: {role}", 0.0)
        if self.coupling is not None:
            self._check_coupling()
        elif self.has_operator and self.lipschitz == 0.0:
            raise InputError("Component: lipschitz is 0 with an operator; expected its Lipschitz constant > 0.")
        elif not self.has_operator and self.lipschitz > 0.0:
            raise InputError("Component: lipschitz is given without an operator; expected both or neither.")
        if not self.has_gradient and (self.smoothness is not None or self.inexact is not None):
            raise InputError("Component: smoothness or inexact is given without a function; expected both or neither.")
        if self.smoothness is not None and not isinstance(self.smoothness, Holder):
            raise InputError(f"Component: smoothness is {self.smoothness!r}; expected Holder(nu, H).")
        if self.inexact is not None:
            if not isinstance(self.inexact, tuple | list) or len(self.inexact) != 2:
                raise InputError(f"Component: inexact is {self.inexact!r}; expected a pair (delta, L).")
            delta, L = self.inexact
            as_number(delta, "Component: inexact delta", 0.0)
            as_number(L, "Component: inexact L", 0.0)
        if self.sample is not None and self.variance == 0.0:
            raise InputError("Component: sample is given without a variance; expected a bound > 0 on it.")
        if self.is_sampled and self.inexact is not None:
            raise InputError("Component: inexact is given of a sampled gradient; expected one of them.")
        if (self.sample_operator is None) != (self.operator_variance == 0.0):
            raise InputError("Component: sample_operator and operator_variance go together; expected both or neither.")

    def _check_coupling(self) -> None:
        """A coupling is the whole operator of its component, and takes two blocks."""
        if self.operator is not None or self.lipschitz > 0.0 or self.has_gradient:
            raise InputError("Component: coupling is given beside a function or an operator; expected it alone.")
        pair = self.block is None or (isinstance(self.block, tuple | list) and len(set(self.block)) == 2)
        if not pair:
            raise InputError(f"Component: block is {self.block!r} of a coupling; expected two numbers, such as (0, 1).")

    @property
    def has_gradient(self) -> bool:
        """Whether there is a p_i."""
        return self.function is not None or self.sample is not None

    @property
    def has_operator(self) -> bool:
        """Whether there is a Q_i."""
        return self.operator is not None or self.coupling is not None or self.sample_operator is not None

    @property
    def has_value(self) -> bool:
        """Whether values of p_i are known."""
        return isinstance(self.function, Function) and self.function.has_value

    @property
    def is_sampled(self) -> bool:
        """Whether the gradient is a fresh draw at every call."""
        return self.sample is not None or (isinstance(self.function, Function) and self.function.sampled)

    @property
    def draws(self) -> bool:
        """Whether anything of it is sampled."""
        return self.is_sampled or self.sample_operator is not None

    @property
    def batch(self) -> int:
        """Samples of one call."""
        if not self.is_sampled:
            return 0
        return self.function.batch if isinstance(self.function, Function) and self.sample is None else 1

    @cached_property
    def matrix(self) -> Operator:
        """The coupling as an operator."""
        return as_operator(self.coupling)

    @property
    def pair(self) -> tuple[int, int]:
        """The two blocks of a coupling."""
        return (0, 1) if self.block is None else (int(self.block[0]), int(self.block[1]))  # type: ignore[index]

    def complaint(self, domain: Domain) -> str:
        """What of the component does not fit the domain; empty where nothing is wrong."""
        blocks = domain.blocks
        chosen = self.pair if self.coupling is not None else (self.block,) if self.block is not None else ()
        for number in chosen:
            if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(blocks):
                return (
                    f"has the block {number!r}; expected a number below {len(blocks)}, that of the blocks of {domain}."
                )
        if self.coupling is not None:
            shapes, wanted = (self.matrix.x_shape, self.matrix.y_shape), tuple(blocks[i].shape for i in self.pair)
            sizes = [math.prod(shape) for shape in shapes], [math.prod(shape) for shape in wanted]
            return "" if sizes[0] == sizes[1] else f"couples arrays of shapes {shapes}; expected {wanted}."
        shape = self.function.shape if isinstance(self.function, Function) else None
        taken = self.region(domain).shape
        return "" if shape in (None, taken) else f"takes arrays of shape {shape}; expected {taken}."

    def region(self, domain: Domain) -> Domain:
        """The set that the function is defined on: the domain, or one block of it."""
        return domain.blocks[self.block] if isinstance(self.block, int) else domain

    def part(self, domain: Domain, block: int | None = None) -> slice:
        """Where its block stands in a flat point."""
        number = self.block if block is None else block
        if not isinstance(number, int):
            return slice(None)
        before = sum(one.size for one in domain.blocks[:number])
        return slice(before, before + domain.blocks[number].size)

    def resolve_smoothness(
        self, domain: Domain, weights: Sequence[float], norms: Sequence[Metric | None] = ()
    ) -> Holder | None:
        """The Hölder condition to plan with: the declared one, else the function's own."""
        if not self.has_gradient or self.inexact is not None or self.smoothness is not None:
            return self.smoothness
        if isinstance(self.function, Function) and isinstance(self.block, int):
            if norms and (metric := norms[self.block]) is not None:
                return smoothness_in(metric, self.function, self.region(domain))
            return self.function.smoothness(self.region(domain)).in_metric(weights[self.block])
        if isinstance(self.function, Function) and all(weight == 1.0 for weight in weights):
            return self.function.smoothness(domain)
        raise InputError(
            f"Component {self.name or '(unnamed)'}: smoothness is missing; expected Holder(nu, H) in the norm of the "
            "metric, or inexact=(delta, L)."
        )

    def level_constant(self, weights: Sequence[float], norms: Sequence[Metric | None] = ()) -> float:
        """M_i in the norm of these weights; of a sampled operator sqrt(2) M_i, which leaves room for the noise."""
        scale = math.sqrt(2.0) if self.sample_operator is not None else 1.0
        if self.coupling is None:
            return scale * self.lipschitz
        i, j = self.pair
        if norms and (seen := in_coordinates((norms[i], norms[j]), self.matrix)) is not None:
            own = [1.0 if norms[k] is not None else weights[k] for k in (i, j)]
            return scale * seen.norm.upper / math.sqrt(own[0] * own[1])
        return scale * self.matrix.norm.upper / math.sqrt(weights[i] * weights[j])

    def level_variance(self, domain: Domain, start: Array, weights: Sequence[float]) -> Variance:
        """sigma_i^2 in the dual norm of these weights, with its origin."""
        function = self.function
        if self.variance > 0.0 or not self.is_sampled or not isinstance(function, Function):
            return Variance(self.variance, "declared")
        region, weight = self.region(domain), weights[self.block] if isinstance(self.block, int) else min(weights)
        found = function.variance(region, start.ravel()[self.part(domain)].reshape(region.shape))
        return replace(found, value=found.value / weight)

    def linearise(self, z: Array, out: Array, domain: Domain, rng: np.random.Generator | None = None) -> float:
        """Write the gradient of p_i at a flat point, its block alone; the value where it is known, else NaN.

        With `rng` a sampled gradient is drawn.
        """
        region, part, function = self.region(domain), self.part(domain), self.function
        point, into = z[part].reshape(region.shape), out[part].reshape(region.shape)
        if rng is not None and self.sample is not None:
            _receive(lambda v: self.sample(v, rng), point, into, "Component: sample")  # type: ignore[misc]
        elif rng is not None and self.is_sampled:
            _receive(lambda v: function.sample(v, rng), point, into, "Component: function", ours=True)  # type: ignore[union-attr]
        elif self.has_value:
            found: list[float] = []

            def ask(v: Array) -> Array:
                value, gradient = function.value_and_gradient(v)  # type: ignore[union-attr]
                found.append(value)
                return gradient

            _receive(ask, point, into, "Component: function", ours=True)
            return float(found[0])
        elif isinstance(function, Function):
            _receive(function.gradient, point, into, "Component: function", ours=True)
        else:
            assert function is not None
            _receive(function, point, into, "Component: function")
        return math.nan

    def apply(self, z: Array, out: Array, domain: Domain, rng: np.random.Generator | None = None) -> None:
        """Write Q_i at a flat point, its blocks alone; a draw of it with `rng`, where it is sampled."""
        if rng is not None and self.sample_operator is not None:
            draw, into = self.sample_operator, out.reshape(domain.shape)
            _receive(lambda v: draw(v, rng), z.reshape(domain.shape), into, "Component: sample_operator")
            return
        if self.coupling is None:
            assert self.operator is not None
            _receive(self.operator, z.reshape(domain.shape), out.reshape(domain.shape), "Component: operator")
            return
        B, (first, second) = self.matrix, (self.part(domain, i) for i in self.pair)
        B.adjoint(z[second].reshape(B.y_shape), out[first].reshape(B.x_shape))
        image = out[second].reshape(B.y_shape)
        B.forward(z[first].reshape(B.x_shape), image)
        np.negative(image, out=image)


def _receive(call: Callable[[Array], Any], point: Array, out: Array, name: str, ours: bool = False) -> None:
    """An answer on an array that can not be written to; the user's own code gets the kind that the run started with."""
    given: Any = point
    try:
        is_remote = isinstance(given, Remote) and not ours
        answer = given.kind.call(call, given) if is_remote else call(read_only(given))
    except Exception as error:
        explain_read_only(error)
        raise
    receive(answer, out.shape, name, out)


def component_terms(components: Sequence[Component], domain: Domain, start: Any, metric: Any = AUTO) -> list[Term]:
    """The scalars of each component, in the order given, after one error with all that is wrong with them."""
    given = components if isinstance(components, Sequence) else [components]
    wrong = [type(component).__name__ for component in given if not isinstance(component, Component)]
    wrong += ["one Component"] * isinstance(components, Component)
    if wrong or not components:
        raise InputError(f"slide: components are {wrong or 'missing'}; expected a sequence of ss.Component.")
    if not isinstance(domain, Domain):
        raise InputError(f"slide: domain is {type(domain).__name__}; expected a domain from ss.domains.")
    z = as_real(start, "start", domain.shape)
    if not domain.contains(z, tolerance=1e-9 * (1.0 + float(np.max(np.abs(z), initial=0.0)))):
        raise InputError(f"start: lies outside {domain} by {domain.violation(z):.1e}; expected a feasible point.")
    notes = [(i, component.complaint(domain)) for i, component in enumerate(components, start=1)]
    raise_all("slide", [f"component {i} {note}" for i, note in notes if note])
    names = names_of(components)
    named = metric if isinstance(metric, str) else ""
    if named == LEVELWISE or (named == AUTO and _is_levelwise(components, domain)):
        return _levelwise(components, names, domain, z)
    norms = block_norms_of(metric, domain)
    weights = _block_weights(metric, domain)
    Omega = find_Omega(domain, z, weights, norms)
    # Where P is a matrix, its smallest eigenvalue stands for a weight: constants are at most what they are with it.
    least = tuple(
        weight if norm is None else smallest_eigenvalue(norm, block.shape)[0]
        for weight, norm, block in zip(weights, norms, domain.blocks, strict=True)
    )
    return [
        Term(
            name, component.resolve_smoothness(domain, least, norms), component.level_constant(least, norms),
            component.inexact, component.tau, weights, Omega, component.level_variance(domain, z, least).value,
            component.operator_variance,
        )
        for name, component in zip(names, components, strict=True)
    ]  # fmt: skip


def names_of(components: Sequence[Component]) -> list[str]:
    """What each is called: its name, or its number."""
    names = [component.name or str(i) for i, component in enumerate(components, start=1)]
    if len(set(names)) < len(names):
        raise InputError(f"slide: the names of the components are {names}; expected each once.")
    return names


def _is_levelwise(components: Sequence[Component], domain: Domain) -> bool:
    """Whether all may have norms of their own: functions of one block and couplings, of two bounded blocks."""
    own = all(one.coupling is not None or (isinstance(one.block, int) and one.smoothness is None) for one in components)
    return own and len(domain.blocks) == 2 and domain.bounded and any(one.coupling is not None for one in components)


def _levelwise(components: Sequence[Component], names: Sequence[str], domain: Domain, z: Array) -> list[Term]:
    """A function of a block in the seminorm of that block, couplings in the norm diag(w, 1/w) (docs/theory.md)."""
    if not _is_levelwise(components, domain):
        raise InputError(
            "slide: metric is 'levelwise'; expected two bounded blocks, couplings, and functions of one block without "
            "a smoothness or an operator of their own."
        )
    points = split(z.ravel(), [block.shape for block in domain.blocks])
    Omegas = [block.squared_radius(point) for block, point in zip(domain.blocks, points, strict=True)]
    w, terms = best_w(*Omegas), []
    for name, one in zip(names, components, strict=True):
        if one.coupling is not None:
            total, noise = w * Omegas[0] + Omegas[1] / w, one.operator_variance
            M = one.level_constant((1.0, 1.0))
            terms.append(Term(name, M=M, weights=(w, 1.0 / w), Omega=total, operator_variance=noise))
            continue
        b = int(one.block)  # type: ignore[arg-type]
        weights, smoothness = (1.0, 0.0) if b == 0 else (0.0, 1.0), one.resolve_smoothness(domain, (1.0, 1.0))
        if Omegas[b] == 0.0 and smoothness is not None:
            # On a single point every Hölder condition holds.
            smoothness = Holder(1.0, smoothness.H or 1.0)
        variance = one.level_variance(domain, z, (1.0, 1.0)).value
        terms.append(Term(name, smoothness, 0.0, one.inexact, one.tau, weights, Omegas[b], variance))
    return terms


def components_of(problem: SaddleProblem, costs: dict[str, float] | None = None) -> tuple[Component, ...]:
    """A saddle problem in pieces: every term of a sum f1 + f2 and every part of a sum of couplings is a component.

    They are called f, g and B where there is one, f1, f2, ... where there are more.
    """
    found: list[tuple[str, dict[str, Any]]] = []
    for letter, block, function in (("f", 0, problem.f), ("g", 1, problem.g)):
        terms = [
            weight * part if weight != 1.0 else part for weight, part in function.terms() if not isinstance(part, Zero)
        ]
        terms = [function] if function.sampled and terms else terms
        found += [(_number(letter, i, terms), {"function": term, "block": block}) for i, term in enumerate(terms)]
    linear = [part for part in problem.coupling.summands if part.norm.upper > 0.0]
    found += [(_number("B", i, linear), {"coupling": part}) for i, part in enumerate(linear)]
    prices = dict(costs or {})
    if unknown := sorted(set(prices) - {name for name, _ in found}, key=str):
        raise InputError(f"slide: costs has {unknown}; expected names among {[name for name, _ in found]}.")
    return tuple(Component(name=name, cost=prices.get(name, 1.0), **fields) for name, fields in found)


def _number(letter: str, i: int, among: Sequence[object]) -> str:
    return letter if len(among) == 1 else f"{letter}{i + 1}"


def _given_norms(metric: Any, domain: Domain) -> list[Any]:
    """What is given for each block: numbers, matrices, metrics."""
    count, whole = len(domain.blocks), isinstance(metric, str) and metric == AUTO
    several = isinstance(metric, list | tuple) or (isinstance(metric, np.ndarray) and metric.ndim == 1)
    given: list[Any] = list(metric) if several else [1.0 if whole else metric] * count
    if len(given) != count:
        raise InputError(f"metric: received {len(given)} weights; expected 1 or {count}, one per block of {domain}.")
    return given


def _is_norm(given: Any) -> bool:
    return isinstance(given, Metric) or is_matrix(given)


def block_norms_of(metric: Any, domain: Domain) -> tuple[Metric | None, ...]:
    """The norms of the blocks that are given as matrices or metrics; None where P is a number."""
    pairs = zip(_given_norms(metric, domain), domain.blocks, strict=True)
    return tuple(as_metric(given, block.shape) if _is_norm(given) else None for given, block in pairs)


def _block_weights(metric: Any, domain: Domain) -> tuple[float, ...]:
    """One positive weight per block of the domain; 1 where P is a matrix or a metric."""
    given = _given_norms(metric, domain)
    weights = tuple(1.0 if _is_norm(weight) else as_number(weight, "metric: weight") for weight in given)
    if any(weight <= 0.0 for weight in weights):
        raise InputError(f"metric: weights are {weights}; expected numbers > 0.")
    return weights


def find_Omega(domain: Domain, point: Array, weights: Sequence[float], norms: Sequence[Metric | None] = ()) -> float:
    """Omega: the largest squared distance from `point` in the weighted norm."""
    blocks = domain.blocks
    parts = zip(
        weights, norms or [None] * len(blocks), blocks, split(point.ravel(), [b.shape for b in blocks]), strict=True
    )
    return float(sum(weight * Omega_in(norm, block, part) for weight, norm, block, part in parts))
