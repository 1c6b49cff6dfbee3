"""A run on a variational inequality: how its points are judged, and what it gives back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from saddleslide.arrays.base import Array, length_of, split, zeros
from saddleslide.certificates.verdict import Certificate, Status
from saddleslide.certificates.weak_gap import Seen, bound_weak_gap
from saddleslide.domains.base import Domain
from saddleslide.functions.base import Function
from saddleslide.functions.minimum import LowerModel
from saddleslide.functions.trust import errors_at
from saddleslide.methods.component_sliding import FIELD, ComponentSliding
from saddleslide.oracles.calls import Calls, RunEnded
from saddleslide.oracles.oracles import Oracles
from saddleslide.plots import draw_convergence
from saddleslide.runs.stages import StageJudge, StageState
from saddleslide.theory.levels import Level

if TYPE_CHECKING:
    from saddleslide.certificates.candidate import Candidate
    from saddleslide.methods.sliding.component import Component


class ComponentCalls(NamedTuple):
    """Calls of one component: gradients of its function, and values of its operator."""

    gradients: int = 0
    operators: int = 0

    @property
    def total(self) -> int:
        """Both."""
        return self.gradients + self.operators


@dataclass(eq=False, repr=False)
class InequalityState(StageState):
    """The same as between stages, with the calls of every component that judging took."""

    spent: dict[str, int] = field(default_factory=dict)


class InequalityJudge(InequalityState, StageJudge):
    """Judges a point by its weak gap: one exact call of every component, and what was carried along."""

    def __init__(self, method: ComponentSliding, *given: Any) -> None:
        StageJudge.__init__(self, *given)
        self.method, self.spent = method, {}

    @classmethod
    def of(cls, method: ComponentSliding) -> Any:
        """What makes judges of this kind for a run."""
        return partial(cls, method)

    def gap_of(self, candidate: Candidate, own: Calls) -> float:
        self.latest = candidate.x, candidate.y
        self._certify(candidate.models, 1)
        return self.gap

    def judge_at_once(self) -> None:
        self._control.books.extend()
        if self.judged_point is not None:
            self.return_to_judged()

    def go_back(self, models: Mapping[str, LowerModel]) -> None:
        self.return_to_judged()

    def confirm(self) -> None:
        """Nothing: convexity and monotony are what the bound rests on, and no modulus."""

    def _certify(self, models: Mapping[str, LowerModel], most: int) -> None:
        domain, z = self.method.domain, self.latest[0].reshape(-1)
        self.oracles = oracles = Oracles(self.problem, guarded=True, errors=self._watch.errors)
        blind = [
            name
            for name, one in zip(self.method.names, self.method.components, strict=True)
            if (one.has_gradient and one.function is None)
            or (one.sample_operator is not None and one.operator is None and one.coupling is None)
        ]
        if blind:
            self.seen = Certificate(reason=f"nothing but samples is known of {', '.join(blind)}", calls=self.calls)
            return
        before = self.calls
        try:
            with self._control.clock.phase("certificate"):
                pairs = zip(self.method.names, self.method.components, strict=True)
                seen = [self._look(name, one, models, oracles, z, domain) for name, one in pairs]
                gap, kind = bound_weak_gap(seen, z, domain)
            assumes = self.problem.assumptions if math.isfinite(gap) else ""
            reason = "" if math.isfinite(gap) else f"nothing bounds {domain} where the sum of gradients points"
            self.seen = Certificate(
                0.0, gap, kind=kind if math.isfinite(gap) else "none", reason=reason, assumes=assumes
            )
            self.judged_point = self.latest
        except RunEnded as ended:
            if ended.status == "NON_FINITE":
                raise
            self.seen = Certificate(reason="the run was over before this point was judged")
        finally:
            self.seen = replace(self.seen, calls=before + oracles.calls)

    def _look(
        self, name: str, one: Component, models: Mapping[str, LowerModel], oracles: Oracles, z: Array, domain: Domain
    ) -> Seen:
        """One exact gradient and one value of the operator at z."""
        gradient, image, value, error = None, None, math.nan, 0.0
        if one.has_gradient:
            out, found = zeros(z.shape, z), []

            def ask() -> Array:
                found.append(one.linearise(z, out, domain))
                return out

            gradient, value = oracles.made("f", 1, ask, at=z.reshape(domain.shape)), found[0]
            self.spent[name] = self.spent.get(name, 0) + 1
            error = 0.0 if one.inexact is None else float(one.inexact[0])
            if isinstance(one.function, Function) and one.has_value:
                region = one.region(domain)
                point = z[one.part(domain)].reshape(region.shape)
                rounding = errors_at(one.function, point, value, length_of(gradient))
                error += rounding.value + (rounding.gradient * region.radius(point) if region.bounded else 0.0)
        if one.has_operator:
            target = zeros(z.shape, z)

            def ask_field() -> Array:
                one.apply(z, target, domain)
                return target

            image = oracles.made("B", 1, ask_field, at=z.reshape(domain.shape))
            self.spent[name + FIELD] = self.spent.get(name + FIELD, 0) + 1
        model = models.get(name) if math.isfinite(value) else None
        return Seen(gradient, image, value, error, model, models.get(name + FIELD))


class InequalityMoment(NamedTuple):
    """One row of the history: what had been spent by the method after an outermost step."""

    step: int
    calls: Mapping[str, ComponentCalls]
    seconds: float
    gap: float


@dataclass(frozen=True, eq=False)
class InequalityResult:
    """Outcome of `ss.slide`.

    Parameters
    ----------
    z : array
        The running average of the outermost level, in the shape of the domain; `blocks` has its parts.
    status : Status
        SOLVED: the weak gap is certified to be at most the target. MET_AS_DECLARED: the bound of the theorem is at most
        the target, for components with the declared constants; EXPECTED: the same on average over all draws. COMPLETED
        and NO_CERTIFICATE: loops without a target, or more to do. What ends a run early as in `ss.Result`.
    gap : float
        A certified bound on the weak gap at z: of convex functions and monotone operators, whatever their constants
        are. Infinite where nothing bounds it.
    bound : float
        The bound of the theorem on the weak gap at the end of the loops, with their actual alphas; of sampled gradients
        on average. Infinite on unbounded domains and with estimated variances. It is one of this z where the run has
        come to that end.
    target : float
        The tol that was asked for; NaN without one.
    levels : tuple of Level
        Outermost first: each with its term, its loop T, its calls N and its steps.
    calls, certificate_calls : dict of ComponentCalls
        Calls of every component by name: all of them, and the part of judging.
    samples : dict
        Draws of every component.
    history : tuple of InequalityMoment
        One row per outermost step, with the calls of the method alone.
    costs : dict
        Price of a call of each component; `cost` is the sum over all calls.
    certificate : Certificate
        What `gap` rests on: `kind` says whether it came from gradients at z ("gradients") or from averages ("models").

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> p = ss.Component(ss.functions.Quadratic(1.0), name="p")
    >>> Q = ss.Component(operator=lambda z: np.array([z[1], -z[0]]), lipschitz=1.0, name="Q")
    >>> result = ss.slide([Q, p], ss.domains.Ball(1.0, shape=2), np.array([1.0, 0.0]), tol=0.05)
    >>> result.status.name, result.order, result.gap <= 0.05, result.calls["p"].gradients <= result.levels[0].N + 10
    ('SOLVED', ('p', 'Q'), True, True)
    """

    z: Array
    status: Status
    certificate: Certificate
    bound: float
    target: float
    levels: tuple[Level, ...]
    calls: Mapping[str, ComponentCalls]
    certificate_calls: Mapping[str, ComponentCalls]
    samples: Mapping[str, int]
    history: tuple[InequalityMoment, ...]
    seconds: float
    costs: Mapping[str, float]
    domain: Domain
    detail: str = ""

    @property
    def gap(self) -> float:
        """The certified bound on the weak gap; infinite where there is none."""
        return self.certificate.gap

    @property
    def order(self) -> tuple[str, ...]:
        """Names of the components, outermost first."""
        return tuple(level.term.name for level in self.levels)

    @property
    def loops(self) -> tuple[int, ...]:
        """T of every level, outermost first."""
        return tuple(level.T for level in self.levels)

    @property
    def cost(self) -> float:
        """All calls at their prices."""
        return math.fsum(self.costs[name] * made.total for name, made in self.calls.items())

    @property
    def success(self) -> bool:
        """Whether what was asked was reached: a certified target, an expected one, or the end of loops without one."""
        finished = self.status in (Status.COMPLETED, Status.NO_CERTIFICATE) and math.isnan(self.target)
        return finished or self.status in (Status.SOLVED, Status.EXPECTED)

    @property
    def message(self) -> str:
        """What happened, and what the numbers mean."""
        parts = [str(self.status.value)]
        if self.detail:
            parts.append(f"{self.detail}.")
        if self.status is Status.MET_AS_DECLARED and not self.gap <= self.target:
            parts.append(f"The bound of the theorem is {self.bound:.4g}, for the constants of the components.")
        if not math.isfinite(self.gap) and self.certificate.reason:
            parts.append(f"No weak gap is certified: {self.certificate.reason}.")
        if self.certificate.assumes:
            parts.append(f"Assumed: {self.certificate.assumes}.")
        return " ".join(parts)

    @property
    def blocks(self) -> list[Array]:
        """Z block by block, each in the shape of its factor of a Product domain."""
        shapes = [block.shape for block in self.domain.blocks]
        return split(self.z.reshape(-1), shapes)

    @property
    def x(self) -> Array:
        """The first block."""
        return self.blocks[0]

    @property
    def y(self) -> Array:
        """The last block."""
        return self.blocks[-1]

    def __repr__(self) -> str:
        def told(calls: ComponentCalls) -> str:
            return " + ".join(f"{n:,} {word}" for n, word in ((calls.gradients, "p'"), (calls.operators, "Q")) if n)

        rows = [
            ("status", self.status.name.lower()),
            ("gap", f"{self.gap:.4g} ({self.certificate.kind})"),
            ("bound", f"{self.bound:.4g}"),
            ("order", ", ".join(f"{level.term.name} {level.T}" for level in self.levels)),
            *((name, told(made)) for name, made in self.calls.items()),
            ("cost", f"{self.cost:,.6g}"),
            ("seconds", f"{self.seconds:.3g}"),
            ("message", self.message),
        ]
        return "\n".join(f"{name:>8}: {text}" for name, text in rows)

    def plot(self, ax: Any = None, *, path: Any = None) -> Any:
        """A figure of the certified gap against the calls of every component: rows that were judged."""
        panels = {f"calls of {name}": [float(row.calls[name].total) for row in self.history] for name in self.order}
        return draw_convergence(panels, [row.gap for row in self.history], self.target, ax, path)


def as_component_calls(names: Sequence[str], *counts: Mapping[str, int]) -> dict[str, ComponentCalls]:
    """Counts under names and names of operators, added up."""

    def total(key: str) -> int:
        return sum(count.get(key, 0) for count in counts)

    return {name: ComponentCalls(total(name), total(name + FIELD)) for name in names}
