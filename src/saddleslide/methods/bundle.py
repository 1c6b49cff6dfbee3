"""Rough f and g: cutting planes of both with proximal terms, the coupling as it is (a bundle method for saddle points).

With cuts of f and of g from all calls that are remembered, a step goes to the saddle point of

    max_i (a_i + <s_i, x>) + <y, B x> - max_j (b_j + <t_j, y>) + w_x/2 |x - x_k|^2 - w_y/2 |y - y_k|^2

over X and Y, by primal-dual steps: one f', one g' and a few products a step. The proximal step of a maximum of cuts is
a small program with a row a cut (functions/maxima.py). A simple term stays what it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, TypeVar, final

import numpy as np

from saddleslide.arrays.base import length_of
from saddleslide.arrays.kinds import NUMPY
from saddleslide.arrays.state import XArray, YArray
from saddleslide.certificates.candidate import Candidate, Column, Linearisation, YColumn
from saddleslide.certificates.hull import keep, note_use, stack
from saddleslide.domains.program import program_of
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.maxima import Affine, join_simple, least_maximum, near_maximum
from saddleslide.functions.trust import errors_at, value_aside
from saddleslide.methods.base import BOUNDS, Array, Description, Facts, Judge, Method, Oracles, Point, State, option

if TYPE_CHECKING:
    from saddleslide.domains.base import Domain
    from saddleslide.functions.base import Function

_Kind = TypeVar("_Kind", bound=Column)
# The weight of a block grows while cuts fall short of a function by more than so many times w/2 of the squared step,
# and stays within these parts of the first one (measured on |Ax - b|^p, p = 1 to 1.5, |B| from |A| / 50 to 5 |A|).
_SHORT, _GROW, _FALL, _LEAST, _MOST = 5.0, 1.2, 0.95, 0.125, 1.0
# Primal-dual steps inside one step, at most; what their programs are exact to, of the gap.
_INNER, _EXACT = 8, 1e-3


@dataclass
class BundleState(State):
    """The next point with the one before it, what is remembered of f and g, and the weights of the proximal terms.

    `promised` are the cuts at the next point, `moved` the squared steps to it in both blocks, `gap` the last known one.
    """

    x: XArray
    y: YArray
    before: tuple[XArray, YArray]
    found: Candidate
    norm: float
    distances: tuple[float, float]
    f: list[Column] = field(default_factory=list)
    g: list[YColumn] = field(default_factory=list)
    first: tuple[float, float] = (0.0, 0.0)
    weights: tuple[float, float] = (0.0, 0.0)
    promised: tuple[float, float] = (0.0, 0.0)
    moved: tuple[float, float] = (0.0, 0.0)
    gap: float = math.inf


@final
@dataclass(frozen=True, repr=False)
class Bundle(Method):
    """Proximal steps on cuts of f and g.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f = ss.functions.Power(nu=0.0).translated([0.5, 2.0, 1.0]) @ np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> X, Y = ss.domains.Box(-1.0, 1.0, shape=2), ss.domains.Box(-1.0, 1.0, shape=1)
    >>> problem = ss.SaddleProblem(f=f, g=ss.functions.Zero(), B=np.array([[1.0, -1.0]]), X=X, Y=Y)
    >>> result = ss.solve(problem, tol=1e-6, method="bundle")
    >>> result.status.name, round(result.upper, 5), result.calls.f < 20
    ('SOLVED', 1.5, True)
    """

    description = Description(
        name="bundle",
        needs=(),
        guarantee="None in advance: the certificate is the proof. On |Ax - b|^p with p < 2 it takes a tenth of the "
        "gradients of first-order methods, and less.",
        reference="Kiwiel, Proximity control in bundle methods for convex nondifferentiable minimization, Math. "
        "Program. 46 (1990); primal-dual steps: Chambolle and Pock, Math. Program. 159 (2016)",
    )
    judged = BOUNDS

    memory: int = option(60, "cuts that are kept of each function", whole=True, minimum=1.0)

    def lacks(self, facts: Facts) -> list[str]:
        found = super().lacks(facts)
        if facts.problem.arrays != NUMPY:
            found.append(f"the arrays are those of {facts.problem.arrays.library}; expected NumPy's for its programs.")
        if facts.f.rest.is_zero and facts.g.rest.is_zero:
            found.append("f and g are simple terms: there is no gradient to cut with.")
        for name, block in (("f", facts.f), ("g", facts.g)):
            if not block.domain.bounded:
                found.append(f"{name} lives on {block.domain}, which is unbounded; expected a bounded domain.")
            simple = block.simple.function
            if not (block.rest.is_zero or block.simple.is_zero or _is_plain(simple, block.domain)):
                found.append(
                    f"the simple part of {name}, {simple!r}, stands beside a costly one; expected a linear "
                    "function, or a quadratic of entries on a box with equations."
                )
        return found

    def init(self, oracles: Oracles, facts: Facts, start: Point, tol: float) -> BundleState:
        x, y = start
        radii = facts.f.domain.radius(x), facts.g.domain.radius(y)
        return BundleState(x, y, start, Candidate(x, y, math.nan), facts.norm, radii)

    def step(self, state: BundleState, oracles: Oracles) -> BundleState:
        x, y, problem = state.x, state.y, oracles.problem
        (f_rest, f_simple), (g_rest, g_simple) = problem.f_parts, problem.g_parts
        Bx, pull = oracles.image(x), oracles.pull(y)
        f_at, g_at = _call(oracles, "f", f_rest, x), _call(oracles, "g", g_rest, y)
        f_column = _column(Column, f_at, f_rest, f_simple, Bx)
        g_column = _column(YColumn, g_at, g_rest, g_simple, pull)
        state = self._weigh(state, f_at, g_at, pull, Bx)
        f, g = keep(state.f, f_column, self.memory), keep(state.g, g_column, self.memory)
        found = Candidate(
            x, y, f_at.value, Bx, f_at, g_value=g_column.total, g_linearisation=g_at, BTy=pull, columns=(f, g)
        )
        size = sum(w * D * D for w, D in zip(state.weights, state.distances, strict=True))
        tol = _EXACT * min(state.gap, size)
        (w_x, w_y), norm = state.weights, state.norm
        middle = math.sqrt(w_x * w_y)
        steps = min(_INNER, max(1, math.ceil(norm / middle))) if middle > 0.0 else 1
        # A step of weight w beside one of the coupling, in the same ratio; where w alone holds the coupling, only that.
        inner = (norm * w_x / middle, norm * w_y / middle) if steps > 1 else (0.0, 0.0)
        outer = (w_x, w_y) if steps > 1 else tuple(w * max(1.0, norm / middle) for w in (w_x, w_y))
        x_cuts, y_cuts = _Cuts(f, f_rest, f_simple, oracles, "f"), _Cuts(g, g_rest, g_simple, oracles, "g")
        # Of one step alone the one before is extrapolated.
        last, u, v = x if steps > 1 else state.before[0], x, y
        image, past = Bx, oracles.image(last) if last is not x else Bx
        for k in range(steps):
            ahead = 2.0 * image - past
            v = y_cuts.near((outer[1] * y + inner[1] * v + ahead) / (outer[1] + inner[1]), outer[1] + inner[1], tol)
            tilt = oracles.pull(v)
            u = x_cuts.near((outer[0] * x + inner[0] * u - tilt) / (outer[0] + inner[0]), outer[0] + inner[0], tol)
            if k < steps - 1:
                past, image = image, oracles.image(u)
        u, v = oracles.problem.X.project(u), oracles.problem.Y.project(v)
        moved = float(np.vdot(u - x, u - x)), float(np.vdot(v - y, v - y))
        return replace(
            state, x=u, y=v, before=(x, y), found=found, promised=(x_cuts.at(u), y_cuts.at(v)), moved=moved,
            f=x_cuts.columns_after(), g=y_cuts.columns_after(),
        )  # fmt: skip

    def _weigh(
        self, state: BundleState, f_at: Linearisation, g_at: Linearisation, pull: Array, Bx: Array
    ) -> BundleState:
        """The weights of this step: at first what moves by the size of the set, then by what cuts have missed."""
        if not state.f:
            rise, fall = length_of(f_at.gradient + pull), length_of(g_at.gradient - Bx)
            first = (rise or 1.0) / (state.distances[0] or 1.0), (fall or 1.0) / (state.distances[1] or 1.0)
            return replace(state, first=first, weights=first)

        def weight_of(at: Linearisation, block: int) -> float:
            weight, first = state.weights[block], state.first[block]
            short = at.value - state.promised[block] > 0.5 * _SHORT * weight * state.moved[block]
            return min(max(weight * (_GROW if short else _FALL), _LEAST * first), _MOST * first)

        return replace(state, weights=(weight_of(f_at, 0), weight_of(g_at, 1)))

    def point(self, state: BundleState, oracles: Oracles) -> Point:
        return state.found.x, state.found.y

    def candidates(self, state: BundleState, oracles: Oracles) -> tuple[Candidate, ...]:
        return (state.found,)

    def learn(self, state: BundleState, gaps: Sequence[float], judge: Judge, oracles: Oracles) -> BundleState:
        """What was of use in a bound is kept longer."""
        hull, state = judge.hull, replace(state, gap=judge.known_gap)
        # Where nobody has looked, it knows the columns of an earlier step.
        is_seen = bool(hull.f) and hull.f[-1].point is state.f[-1].point
        return replace(state, f=hull.f, g=hull.g) if is_seen else state


class _Cuts(Generic[_Kind]):
    """One function by its cuts, beside its simple part; a simple function by its own proximal step."""

    def __init__(self, columns: list[_Kind], rest: Function, simple: Function, oracles: Oracles, name: str) -> None:
        problem = oracles.problem
        self.columns, self.simple, self.oracles, self.name = columns, simple, oracles, name
        self.domain, self.is_simple = problem.X if name == "f" else problem.Y, isinstance(rest, Zero)
        values = np.array([column.constant for column in columns])
        self.functions = Affine(values, stack(column.slope for column in columns), (len(columns),))
        self.beside, self.program = join_simple(self.functions, simple, self.domain)
        self.weights: list[Array] = []

    def near(self, center: Array, weight: float, tol: float) -> Array:
        """The point that minimises it beside weight/2 |. - center|^2."""
        if self.is_simple:
            return self.oracles.prox_f(center, weight) if self.name == "f" else self.oracles.prox_g(center, weight)
        flat = center.ravel()
        if self.program is None:
            found = near_maximum(self.beside, self.domain, flat, weight, tol)
        else:
            quadratic, linear = self.program.quadratic + weight, self.program.linear - weight * flat
            program = replace(self.program, quadratic=quadratic, linear=linear)
            found = least_maximum(self.beside, program, flat, tol)
        self.weights = [found.weights]
        return found.point.reshape(center.shape)

    def at(self, point: Array) -> float:
        """The largest of the cuts."""
        return self.functions.largest(point.ravel())

    def columns_after(self) -> list[_Kind]:
        """The columns after the last step."""
        return note_use(self.columns, *self.weights)


def _call(oracles: Oracles, name: str, rest: Function, point: Array) -> Linearisation:
    """Value and gradient of the costly part: one call, none where there is no such part."""
    if isinstance(rest, Zero):
        return Linearisation(point, 0.0, np.zeros_like(point))
    return Linearisation(point, *oracles.value_and_gradient(name, rest, point))


def _column(kind: type[_Kind], at: Linearisation, rest: Function, simple: Function, image: Array) -> _Kind:
    beside = value_aside(simple, at.point)
    made = errors_at(rest, at.point, at.value, at.sizes[1])
    error = made.value + errors_at(simple, at.point, beside).value
    return kind.of(at.point, at.value + beside, image, at, error, made)


def _is_plain(simple: Function, domain: Domain) -> bool:
    if simple.linear:
        return True
    program = program_of(simple, domain)
    return program is not None and not program.kinks
