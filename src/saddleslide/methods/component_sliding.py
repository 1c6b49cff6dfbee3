"""Algorithm 1 on the components of a variational inequality: one outermost step after the other, every call counted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from saddleslide.arrays.base import Array, zeros
from saddleslide.arrays.state import XVector
from saddleslide.certificates.candidate import Candidate
from saddleslide.domains.product import Product
from saddleslide.functions.minimum import LowerModel
from saddleslide.methods.base import STAGES, Description, Facts, Method, Oracles, State
from saddleslide.methods.sliding.component import Component
from saddleslide.methods.sliding.proximal import BlockNorms
from saddleslide.methods.sliding.recursion import Extras, Model, Piece, Recursion, RecursionState, Writer
from saddleslide.oracles.calls import RunEnded

if TYPE_CHECKING:
    from saddleslide.domains.base import Domain
    from saddleslide.metrics.base import Metric
    from saddleslide.theory.levels import Level

# What belongs to an operator stands under the name of its component and this: its calls, its averaged values.
FIELD = " (operator)"
# The first judgement, and how much longer the run is at the next one.
_FIRST, _GROWTH = 4, 1.25


@dataclass
class ComponentState(State):
    """Where a run stands: the running average of the outermost level, and the calls and draws of every component.

    `calls` (those of operators under the name of a component and `FIELD`) and `samples` are counted in place, so that a
    step which is cut short is in them.
    """

    point: XVector
    calls: dict[str, int]
    samples: dict[str, int]
    rng: np.random.Generator | None
    step: int = 0
    judged: int = 0
    within: RecursionState | None = None


@final
@dataclass(frozen=True, repr=False, eq=False)
class ComponentSliding(Method):
    """Algorithm 1 on components that stand in the order of their levels.

    `limits` are the most calls of a component by name; `watched` says that points on the way are judged.
    """

    description = Description(
        name="component sliding",
        needs=(),
        guarantee="The bound of Theorem 3.3 or 3.5; of Theorem VI_sliding_stochastic_uniform with sampled gradients.",
        reference="Recursive sliding (docs/theory.md), Algorithm 1",
    )
    judged: ClassVar[str] = STAGES
    components: tuple[Component, ...]
    levels: tuple[Level, ...]
    domain: Domain
    limits: Mapping[str, float] = field(default_factory=dict)
    watched: bool = True
    norms: tuple[Metric | None, ...] = ()
    seed: np.random.Generator | None = None

    @property
    def names(self) -> list[str]:
        """Names of the components, outermost first."""
        return [level.term.name for level in self.levels]

    def init(self, oracles: Oracles, facts: Facts, start: tuple[Array, Array], tol: float) -> ComponentState:
        calls = {key: 0 for name in self.names for key in (name, name + FIELD)}
        rng = self.seed if any(one.draws for one in self.components) else None
        return ComponentState(start[0].reshape(-1), calls, dict.fromkeys(self.names, 0), rng)

    def step(self, state: ComponentState, oracles: Oracles) -> ComponentState:
        recursion = oracles.workspace(lambda: self._recursion(state, oracles), self)
        within = recursion.go_on(state.within, state.step)
        if not oracles.finite(within.average):
            # Oracles are asked first, so these numbers are our own.
            raise RunEnded("NUMERICAL_LIMIT")
        return replace(state, point=within.average, step=state.step + 1, within=within)

    def point(self, state: ComponentState, oracles: Oracles) -> tuple[Array, Array]:
        return state.point.reshape(self.domain.shape).copy(), zeros((0,), state.point)

    def candidates(self, state: ComponentState, oracles: Oracles) -> tuple[Candidate, ...]:
        carried = {} if state.within is None else state.within.models
        models = {name: LowerModel(constant, slope) for name, (constant, slope) in carried.items()}
        return (Candidate(*self.point(state, oracles), math.nan, models=models),)

    def learn(self, state: ComponentState, gaps: Sequence[float], judge: object, oracles: Oracles) -> ComponentState:
        return replace(state, judged=state.step)

    def is_due(self, state: ComponentState) -> bool:
        due = max(_FIRST, math.ceil(_GROWTH * state.judged))
        return self.is_finished(state) or (self.watched and state.step >= due)

    def is_finished(self, state: ComponentState) -> bool:
        return state.step >= self.levels[0].T

    def _recursion(self, state: ComponentState, oracles: Oracles) -> Recursion:
        """Algorithm 1 with its buffers; exact functions with values and all operators are carried along as models."""
        values: dict[str, float] = {}
        space = self.domain if isinstance(self.domain, Product) else Product(self.domain)
        spaces = BlockNorms(space.blocks, self.norms or (None,) * len(space.blocks))
        # Slopes as they are, where the recursion has P^-1 of them.
        raw: dict[str, Array] | None = None if spaces.are_plain else {}

        def kept(key: str, write: Writer) -> Writer:
            if raw is None:
                return write

            def keep(z: Array, out: Array) -> None:
                write(z, out)
                raw[key] = out.copy()
                spaces.invert(out)

            return keep

        gradients: list[Writer | None] = []
        operators: list[Writer | None] = []
        pieces: list[Piece | None] = []
        for name, one in zip(self.names, self.components, strict=True):
            gradient = self._gradient(name, one, state, oracles, values) if one.has_gradient else None
            gradients.append(None if gradient is None else kept(name, gradient))
            operator = self._operator(name, one, state, oracles) if one.has_operator else None
            operators.append(None if operator is None else kept(name + FIELD, operator))
            pieces.append(self._piece(name, one, values, raw) if one.has_value and not one.is_sampled else None)
        exact = [one.has_operator and one.sample_operator is None for one in self.components]
        fields = [name + FIELD if known else None for name, known in zip(self.names, exact, strict=True)]
        extras = Extras(pieces, fields=fields, project=spaces.project(), images=raw)
        return Recursion(self.levels, gradients, operators, space, state.point, extras)

    def _made(self, name: str, key: str, state: ComponentState, oracles: Oracles, z: Array, work: Any) -> None:
        """One call of a component: its limit, its count, and the count of all."""
        if state.calls[name] + state.calls[name + FIELD] >= self.limits.get(name, math.inf):
            raise RunEnded("CALL_LIMIT")
        state.calls[key] += 1
        try:
            oracles.made("f" if key == name else "B", 1, work, at=z.reshape(self.domain.shape))
        except Exception as error:
            error.add_note(f"saddleslide: in component {name}.")
            raise

    def _gradient(
        self, name: str, one: Component, state: ComponentState, oracles: Oracles, values: dict[str, float]
    ) -> Writer:
        rng = state.rng if one.is_sampled else None

        def write(z: Array, out: Array) -> None:
            def work() -> Array:
                values[name] = one.linearise(z, out, self.domain, rng)
                return out

            self._made(name, name, state, oracles, z, work)
            state.samples[name] += one.batch

        return write

    def _operator(self, name: str, one: Component, state: ComponentState, oracles: Oracles) -> Writer:
        def write(z: Array, out: Array) -> None:
            def work() -> Array:
                one.apply(z, out, self.domain, state.rng)
                return out

            self._made(name, name + FIELD, state, oracles, z, work)
            state.samples[name] += one.sample_operator is not None

        return write

    def _piece(self, name: str, one: Component, values: dict[str, float], raw: Mapping[str, Array] | None) -> Piece:
        """The lower model of one gradient, as a function of the whole point; rounding is taken off."""
        region, part = one.region(self.domain), one.part(self.domain)

        def piece(z: Array, gradient: Array) -> Model:
            assert one.function is not None
            gradient = gradient if raw is None else raw[name]
            point, slope = z[part].reshape(region.shape), gradient[part].reshape(region.shape)
            made = LowerModel.from_gradient(one.function, region, point, values[name], slope, 0.0)  # type: ignore[arg-type]
            return made.constant, gradient.copy()

        return piece
