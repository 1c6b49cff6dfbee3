"""Both functions simple: no gradient is ever called, only products. Restarted Halpern steps of PDHG, reflected.

One primal-dual step (Chambolle and Pock, 2011) is a map T of z = (x, y) whose fixed points are the solutions. Halpern's
iteration goes from z to the average of the reflection 2 T(z) - z and of the point where it began (Lieder, 2021; Lu and
Yang, 2024): |z - T(z)| falls like 1 / k, and linearly with restarts wherever the problem is sharp. The weight between
the blocks follows the distances travelled. Where the curvature of f is felt within some steps, the first stretches
between restarts are accelerated steps instead (Chambolle and Pock, 2011, Algorithm 2).

Steps are measured entry by entry where that helps: `Measure` scales rows and columns of a matrix at hand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from saddleslide.arrays.base import beside, inner_product, length_of, moved_product
from saddleslide.arrays.kinds import NUMPY
from saddleslide.domains.entrywise import Box, FullSpace
from saddleslide.functions.separable import finite_slope
from saddleslide.methods.base import CHUNK, EXACTLY, Array, Candidate, Description, Former, Method, Point, State
from saddleslide.methods.grid_steps import GridSteps, Rates, known_steps
from saddleslide.operators.adjoint_test import sign_vector
from saddleslide.operators.explicit import Matrix, Stored
from saddleslide.operators.spectrum import DECLARED
from saddleslide.oracles.calls import RunEnded

if TYPE_CHECKING:
    from saddleslide.domains.base import Domain
    from saddleslide.functions.base import Function
    from saddleslide.methods.base import Facts, Judge, Oracles
    from saddleslide.operators.base import Operator

# Steps between two looks, at most.
_LONGEST_CHUNK = 512
# Restart when the residual has fallen by the first factor; when it rises again after one of the second; and when a
# stretch takes this part of all steps (Lu and Yang, 2024).
_SUFFICIENT, _NECESSARY, _LONGEST = 0.2, 0.8, 0.36
# Steps to the next look, at least, where that is when the target is expected to be met.
_SHORTEST_CHUNK = 4
# The norm of B = 0; after so many steps of its length points beyond a distance fall for ever, and no ray shows it.
_NO_NORM, _RAYS_TRIED, _FALLEN = 1e-100, 128, 1e50
# Power steps that estimate a norm, and what is put on top; where a step shows that it is larger, that is taken.
_POWER_STEPS, _SAFETY = 12, 1.02
# What of its point a step moves at least to show that: products of shorter ones are rounding.
_MOVED = 1e-10
# Passes that make rows and columns alike, and how far apart these must be for that to be worth a weight per entry.
_PASSES, _UNLIKE = 8, 1.5
# Accelerate where the modulus of f is this part of the first weight of x, from a step so much longer than 1 / modulus,
# until so many restarts: near a solution it is these that pay.
_FELT, _FIRST_STEP, _ACCELERATED = 0.1, 10.0, 3


@dataclass
class PrimalDualState(State):
    """Where a stretch stands: z = (x, y) with B^T y, its first point, and the last primal-dual step from z.

    `norm` bounds that of B in the measure of the steps, `weight` is a guess of |dy| / |dx| there, and `modulus` that
    of f while steps are accelerated, else 0.
    """

    x: Array
    y: Array
    pull: Array
    norm: float
    weight: float
    anchor: Point
    anchor_pull: Array
    points: tuple[Candidate, ...]
    length: int = 0
    chunk: int = CHUNK
    steps: int = 0
    restarts: int = 0
    # Of z - T(z): after the first steps of the stretch, and at the last look.
    first: float = math.inf
    previous: float = math.inf
    modulus: float = 0.0
    # The gap at the last look, and the steps until then.
    gap: float = math.inf
    seen: int = 0

    @classmethod
    def at(cls, oracles: Oracles, start: Point, norm: float, weight: float) -> PrimalDualState:
        """At a start, with a first guess of the weight."""
        pull = oracles.pull(start[1])
        # With B = 0 a long step is at the minimum at once; where there is none, squares must not overflow.
        return cls(*start, pull, max(norm, _NO_NORM), weight, start, pull, (Candidate(*start, 0.0),))


@final
@dataclass(frozen=True, repr=False)
class RestartedPrimalDual(Method):
    """What `solve` makes of simple f and g: the iteration, judged exactly after every chunk.

    Examples
    --------
    >>> import saddleslide as ss
    >>> ss.solve(ss.gallery.matrix_game([[2.0, -1.0], [-1.0, 1.0]]), tol=1e-2, method="adaptive").plans[0].method
    'restarted primal-dual'
    """

    description = Description(
        name="restarted primal-dual",
        needs=("prox of f", "prox of g"),
        guarantee="None in advance; linear on problems with sharp gaps.",
        reference="Lu and Yang, Restarted Halpern PDHG for linear programming (2024); Applegate, Hinder, Lu and Lubin, "
        "Math. Program. 201 (2023)",
    )
    judged = EXACTLY

    def init(self, oracles: Oracles, facts: Facts, start: Point, tol: float) -> PrimalDualState:
        measure = _measure(oracles)
        norm = measure.norm(oracles, start[0])
        state = PrimalDualState.at(oracles, start, norm, measure.first_weight(oracles, facts, start))
        modulus, other = facts.moduli[0] * float(np.min(measure.x)), facts.moduli[1]
        # With a linear g, as of equations, plain steps converge linearly.
        if not facts.g.is_zero or other > 0.0 or not modulus >= _FELT * state.norm * state.weight > 0.0:
            return state
        return replace(state, modulus=modulus, weight=min(state.weight, modulus / (_FIRST_STEP * state.norm)))

    def take_over(self, former: Former, oracles: Oracles, facts: Facts, start: Point, tol: float) -> PrimalDualState:
        """The weight between the blocks; near a solution restarts pay, and acceleration does not."""
        state = self.init(oracles, facts, start, tol)
        known: PrimalDualState = former.state
        is_settled = known.modulus == 0.0 and 0.0 < known.weight < math.inf
        return replace(state, weight=known.weight, modulus=0.0) if is_settled else state

    def step(self, state: PrimalDualState, oracles: Oracles) -> PrimalDualState:
        """`chunk` steps, the last one with products at T(z), which is there to be judged; then perhaps a restart."""
        measure, (x0, y0) = _measure(oracles), state.anchor
        weight, rates = self._rates(state)
        x, y, pull = measure.advance(oracles, rates[:-1], state.x, state.y, state.pull, state.anchor)
        step_x, step_y, _, share = rates[-1]
        here, shown = measure.last(oracles, rates[-1], x, y, pull)
        new_x, new_y, new_pull, points = here.x, here.y, here.BTy, (here,)
        assert new_pull is not None
        squares = step_x * measure.square(new_x, x, measure.x) + step_y * measure.square(new_y, y, measure.y)
        residual = math.sqrt(max(squares - 2.0 * moved_product(new_pull, pull, new_x, x), 0.0))
        norm = state.norm * max(1.0, _SAFETY * shown)
        length, steps = state.length + state.chunk, state.steps + state.chunk
        state = replace(state, norm=norm, weight=weight, points=points, length=length, steps=steps)
        stalled = state.previous < residual <= _NECESSARY * state.first
        if residual <= _SUFFICIENT * state.first or stalled or length >= _LONGEST * steps:
            return self._restarted(state, residual, measure)
        if share > 0.0:
            new_x = (1.0 - share) * (2.0 * new_x - x) + share * x0
            new_y = (1.0 - share) * (2.0 * new_y - y) + share * y0
            new_pull = (1.0 - share) * (2.0 * new_pull - pull) + share * state.anchor_pull
        first, chunk = residual if state.first == math.inf else state.first, _chunk(state)
        return replace(state, x=new_x, y=new_y, pull=new_pull, first=first, previous=residual, chunk=chunk)

    def _rates(self, state: PrimalDualState) -> tuple[float, list[Rates]]:
        """The weight after a chunk of steps, and the rates of these."""
        step_x, step_y, rates = state.norm * state.weight, state.norm / state.weight, []
        if state.modulus == 0.0:
            counts = range(state.length, state.length + state.chunk)
            return state.weight, [(step_x, step_y, 1.0, 1.0 / (count + 2.0)) for count in counts]
        for _ in range(state.chunk):
            theta = 1.0 / math.sqrt(1.0 + 2.0 * state.modulus / step_x)
            step_y *= theta
            rates.append((step_x, step_y, theta, 0.0))
            step_x /= theta
        return step_x / state.norm, rates

    def _restarted(self, state: PrimalDualState, residual: float, measure: Measure) -> PrimalDualState:
        """A new stretch from the last point, its weight moved to what the one before has travelled."""
        (here,) = state.points
        assert here.BTy is not None
        dx = math.sqrt(measure.square(here.x, state.anchor[0], measure.x))
        dy = math.sqrt(measure.square(here.y, state.anchor[1], measure.y))
        # All of it where acceleration has changed the weight on the way.
        before = dy / dx if state.modulus > 0.0 and dx > 0.0 else state.weight
        weight = math.sqrt(before * dy / dx) if dx > 0.0 and dy > 0.0 else state.weight
        restarts = state.restarts + 1
        return replace(
            state, x=here.x, y=here.y, pull=here.BTy, weight=weight, anchor=(here.x, here.y), anchor_pull=here.BTy,
            length=0, chunk=_chunk(state), restarts=restarts, first=residual, previous=math.inf,
            modulus=state.modulus if restarts < _ACCELERATED else 0.0,
        )  # fmt: skip

    def learn(self, state: PrimalDualState, gaps: Sequence[float], judge: Judge, oracles: Oracles) -> PrimalDualState:
        """The next look is where the gap, falling as it did, meets the target, if that is soon."""
        gap, chunk = judge.known_gap, state.chunk
        if state.norm <= _NO_NORM and state.steps >= _RAYS_TRIED and length_of(state.points[0].x) > _FALLEN:
            raise RunEnded("NUMERICAL_LIMIT", "the objective falls on and on along steps without bound")
        if 0.0 < judge.target < gap < state.gap < math.inf:
            pace = math.log(state.gap / gap) / (state.steps - state.seen)
            chunk = min(chunk, max(_SHORTEST_CHUNK, math.ceil(math.log(gap / judge.target) / pace)))
        return replace(state, gap=gap, seen=state.steps, chunk=chunk)

    def point(self, state: PrimalDualState, oracles: Oracles) -> Point:
        return state.points[0].x, state.points[0].y

    def candidates(self, state: PrimalDualState, oracles: Oracles) -> tuple[Candidate, ...]:
        return state.points


def _chunk(state: PrimalDualState) -> int:
    """Looks are a sixteenth of all steps apart."""
    return min(_LONGEST_CHUNK, max(CHUNK, state.steps // 16))


def _ratio(above: float, below: float) -> float:
    return math.sqrt(above / below) if below > 0.0 and above > 0.0 else 0.0


@dataclass(frozen=True)
class Measure:
    """|x|^2 is the sum of x_i^2 / s_i, with the numbers s as `x`, and so for y: 1 where entries are alike."""

    x: Any = 1.0
    y: Any = 1.0
    # Compiled steps, where the problem is of a known kind.
    steps: GridSteps | None = None

    @property
    def is_plain(self) -> bool:
        """Whether entries are alike."""
        return isinstance(self.x, float) and isinstance(self.y, float)

    @staticmethod
    def square(v: Array, w: Array, scale: Any) -> float:
        """The square of the distance of two vectors of a block."""
        return moved_product(v, w, v, w) if isinstance(scale, float) else inner_product(v - w, (v - w) / scale)

    @classmethod
    def _felt(cls, v: Array, w: Array, scale: Any) -> float:
        """The same, and 0 where all but rounding of it may be gone."""
        square, size = cls.square(v, w, scale), inner_product(w, w / scale)
        return square if square > _MOVED * _MOVED * size else 0.0

    def norm(self, oracles: Oracles, near: Array) -> float:
        """Of B in this measure: what is known beforehand of a plain one, else an estimate by power steps."""
        if self.is_plain and (known := known_norm(oracles.problem.coupling)) is not None:
            return known
        v, size = beside(near, sign_vector(near.shape)), 0.0
        for _ in range(_POWER_STEPS):
            length = float(np.sqrt(np.sum(v * v / self.x)))
            if not length > 0.0:
                break
            w = oracles.forward(v / length)
            size = math.sqrt(float(np.sum(w * w * self.y)))
            # Of one length on both sides: the square of a large norm is out of range.
            v = self.x * oracles.adjoint(self.y * (w / size if size > 0.0 else w))
        return _SAFETY * size or 1.0

    def first_weight(self, oracles: Oracles, facts: Facts, start: Point) -> float:
        """|dy| / |dx| from the radii of the sets, or from slopes at the start, with the units of 1 / x and 1 / y."""
        problem = oracles.problem
        if self.is_plain and all(map(math.isfinite, facts.distances)):
            return facts.ratio
        rise = finite_slope(problem.f, start[0], problem.X) + oracles.pull(start[1])
        fall = finite_slope(problem.g, start[1], problem.Y) - oracles.image(start[0])
        return _ratio(float(np.sum(rise * rise * self.x)), float(np.sum(fall * fall * self.y))) or 1.0

    def advance(
        self, oracles: Oracles, rates: Sequence[Rates], x: Array, y: Array, pull: Array, anchor: Point
    ) -> tuple[Array, Array, Array]:
        """Steps from z = (x, y), with B^T y, none of which is looked at."""
        if self.steps is not None:
            return self.steps.advance(rates, x, y, pull, anchor)
        x0, y0 = anchor
        for step_x, step_y, theta, share in rates:
            step_x, step_y = step_x / self.x, step_y / self.y
            new = oracles.prox_f(x - pull / step_x, step_x)
            beyond = (1.0 + theta) * new - theta * x
            new_y = oracles.prox_g(y + oracles.forward(beyond) / step_y, step_y)
            if share > 0.0:
                x = (1.0 - share) * beyond + share * x0
                y = (1.0 - share) * (2.0 * new_y - y) + share * y0
            else:
                x, y = new, new_y
            pull = oracles.adjoint(y)
        return x, y, pull

    def last(self, oracles: Oracles, rate: Rates, x: Array, y: Array, pull: Array) -> tuple[Candidate, float]:
        """The point of the step that is looked at, and how large the step shows B to be."""
        step_x, step_y, theta, _ = rate
        if self.steps is not None:
            new_x, new_y, new_pull = self.steps.advance([(step_x, step_y, theta, 0.0)], x, y, pull, (x, y))
            return Candidate(new_x, new_y, 0.0, Bx=oracles.forward(new_x), BTy=new_pull), 0.0
        by_x, by_y = step_x / self.x, step_y / self.y
        image = oracles.image(x)
        new_x = oracles.prox_f(x - pull / by_x, by_x)
        new_image = oracles.forward(new_x)
        new_y = oracles.prox_g(y + ((1.0 + theta) * new_image - theta * image) / by_y, by_y)
        new_pull = oracles.adjoint(new_y)
        moved, pulled = new_image - image, new_pull - pull
        # |B dx| / |dx| and |B^T dy| / |dy| show where the norm was estimated too low.
        shown = max(
            _ratio(inner_product(moved, moved / by_y), step_x * self._felt(new_x, x, self.x)),
            _ratio(inner_product(pulled, pulled / by_x), step_y * self._felt(new_y, y, self.y)),
        )
        return Candidate(new_x, new_y, 0.0, Bx=new_image, BTy=new_pull), shown


def _measure(oracles: Oracles) -> Measure:
    return oracles.workspace(lambda: make_measure(oracles), RestartedPrimalDual)


def make_measure(oracles: Oracles) -> Measure:
    """Entries alike, unless a matrix at hand has rows or columns of very different sizes."""
    problem = oracles.problem
    steps, B = known_steps(oracles), problem.coupling
    may_x, may_y = _is_entrywise(problem.f, problem.X), _is_entrywise(problem.g, problem.Y)
    if steps is not None or not (may_x or may_y) or not isinstance(B, Matrix) or problem.arrays != NUMPY:
        return Measure(steps=steps)
    x, y = scales_of(B.entries, may_x, may_y)
    scale_x, scale_y = (
        1.0 if _are_alike(v) else v.reshape(domain.shape) for v, domain in ((x, problem.X), (y, problem.Y))
    )
    return Measure(scale_x, scale_y)


def scales_of(matrix: Any, may_x: bool, may_y: bool) -> tuple[Array, Array]:
    """S and t with sums of columns and rows of diag(t)^(1/2) |B| diag(s)^(1/2) alike, where these may be scaled.

    Passes of Ruiz (2001) on the sums by which Pock and Chambolle (2011) choose steps.
    """
    sizes = abs(matrix)
    x, y = np.ones(sizes.shape[1]), np.ones(sizes.shape[0])
    for _ in range(_PASSES):
        root_x, root_y = np.sqrt(x), np.sqrt(y)
        columns, rows = root_x * (sizes.T @ root_y), root_y * (sizes @ root_x)
        if may_x:
            x = x / np.where(columns > 0.0, columns, 1.0)
        if may_y:
            y = y / np.where(rows > 0.0, rows, 1.0)
    return x, y


def _are_alike(scale: Array) -> bool:
    return float(scale.max(initial=0.0)) <= _UNLIKE * float(scale.min(initial=math.inf))


def known_norm(B: Operator) -> float | None:
    """A bound on the norm of B that takes no work to find; None where there is none."""
    known = B.__dict__.get("norm")
    has_closed_form = B.norm_at_hand and not isinstance(B, Stored)
    return float(B.norm.upper) if has_closed_form or (known is not None and known.method == DECLARED) else None


def _is_entrywise(function: Function, domain: Domain) -> bool:
    """Whether a proximal step may have a weight per entry."""
    return isinstance(domain, Box | FullSpace) and function.separable_form() is not None
