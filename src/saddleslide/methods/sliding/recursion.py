"""Algorithm 1 of the paper: recursive sliding for any number of levels.

Three facts keep it short. A level's iterate z is never reset (the warm starts say just that); only its running
average restarts on entry. The gradient of a level is taken at v = Gamma z + c, where Gamma is the product of the
current alphas and c collects the averages of the levels above. And inside a level all outer levels are two vectors
(`pull`, the weighted centres, and `slope`, the linear terms) and one weight per block, so the base case is a single
projection. Centres and slopes are summed apart: the centres are far larger and would swallow digits of the slopes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from saddleslide.arrays.base import Array, blank, zeros
from saddleslide.errors import InputError
from saddleslide.kernels.arguments import Above
from saddleslide.kernels.updates import updates
from saddleslide.methods.base import State
from saddleslide.theory.levels import alpha as alpha_of

if TYPE_CHECKING:
    from saddleslide.arrays.state import YVector, ZVector
    from saddleslide.domains.base import Domain
    from saddleslide.methods.sliding.anchors import AnchorTerms
    from saddleslide.methods.sliding.innermost import Sweep
    from saddleslide.theory.levels import Level

# Writes a gradient or an operator value at z into `out`.
Writer = Callable[[Array, Array], None]
# Turns centres into minimisers, in place; the second argument has one weight per block.
Base = Callable[[Array, Array], None]
# Constant and slope of a lower model.
Model: TypeAlias = tuple[float, Array]
# A lower model from (point, gradient), both flat.
Piece: TypeAlias = Callable[[Array, Array], Model]


class Ends(NamedTuple):
    """Whether an iteration, or an entry of a level, is the first and the last one of its run."""

    first: bool
    last: bool

    def at(self, j: int, T: int) -> Ends:
        """The same for iteration j of T inside."""
        return Ends(self.first and j == 0, self.last and j == T - 1)

    def of(self, part: slice, T: int) -> Ends:
        """The same for some of T iterations inside."""
        return Ends(self.first and part.start == 0, self.last and part.stop == T)


class Savings(NamedTuple):
    """Products that a run need not make: `write_first` is Q at the start, `skip_last` comes in place of the last Q."""

    write_first: Writer
    skip_last: Callable[[], None]


@dataclass
class RecursionState(State):
    """Where a run stands between two outermost steps; all else is made anew in a step, or restarts on entry.

    `iterates` are z of every level, outermost first; `average` and `models` those of the outermost level; `images` Q of
    averaged points, where there are anchors; `lag` and `eta` the last step of y and its eta, of primal-dual steps.
    """

    iterates: tuple[ZVector, ...]
    average: ZVector
    models: dict[str, tuple[float, Array]] = field(default_factory=dict)
    images: tuple[ZVector, ...] = ()
    lag: YVector | None = None
    eta: float = math.inf


def _zero_above(size: int, blocks: int, near: Array) -> Above:
    """Room for what comes from above: nothing, for the outermost level."""
    return Above(zeros(size, near), zeros(size, near), zeros(size, near), np.zeros(blocks))


class _LevelState:
    """One level: its iterate, its running average, and what it passes down."""

    def __init__(
        self, level: Level, gradient: Writer | None, operator: Writer | None, anchors: AnchorTerms | None, start: Array,
        blocks: int, whole: bool,
    ) -> None:  # fmt: skip
        # A level that is swept as a whole passes nothing down, and no vector is kept for what is absent.
        size = 0 if whole else start.size
        self.level, self.write_gradient, self.write_operator, self.anchors = level, gradient, operator, anchors
        self.own_weights = np.array(level.term.weights, dtype=np.float64)
        self.iterate, self.average = start.copy(), start.copy()
        self.passed = _zero_above(size, blocks, start)
        self.has_gradient = gradient is not None or anchors is not None
        self.point, self.gradient = (zeros(size if self.has_gradient else 0, start) for _ in range(2))
        self.operator, self.operator_ahead = (zeros(0 if operator is None else size, start) for _ in range(2))
        # Whether this level or one below takes a gradient, at a point that averages are part of.
        self.has_points = False
        # Averaged lower models of this level's function and of those below, by the names of their levels.
        self.models: dict[str, Model] = {}


class Extras(NamedTuple):
    """What Algorithm 1 can do without.

    - `pieces` make lower models of the p_i from their gradients, of which the run carries averages along: their weights
      in the bound follow the same recursion as the running average;
    - `fields` names the operators whose values Q(z~) are averaged beside them, as (<Q(z~), z~>, Q(z~)): since Q is
      monotone, <Q(u), z_out - u> is at most the average less <average of Q(z~), u>;
    - `innermost` makes all iterations of the last level at once, when there are levels above it;
    - `base` minimises simple terms in the base case, which is else the projection onto the domain;
    - `savings` know the operator at the start, and leave its last correction out: the iterate of its level then ends
      one step behind, and the averages are what they were;
    - `anchors` are the function of the operator's level;
    - `project` is the projection onto the domain in the norm of P, where that is not the Euclidean one;
    - `images` has the last Q(z~) under the names in `fields`, where writers write P^-1 of it.
    """

    pieces: Sequence[Piece | None] | None = None
    innermost: Sweep | None = None
    base: Base | None = None
    savings: Savings | None = None
    anchors: AnchorTerms | None = None
    fields: Sequence[str | None] = ()
    project: Base | None = None
    images: Mapping[str, Array] | None = None


class Recursion:
    """Algorithm 1 with its buffers, as an iterator: `steps()` yields the running average after every outermost step.

    `gradients` and `operators` write p_i' and Q_i at flat points, None where absent, and may leave alone entries that
    are always 0. The blocks of `domain`, the set Z, carry the metric weights.
    """

    def __init__(
        self,
        levels: Sequence[Level],
        gradients: Sequence[Writer | None],
        operators: Sequence[Writer | None],
        domain: Domain,
        start: Array,
        extras: Extras | None = None,
    ) -> None:
        pieces, innermost, self.base, self.savings, anchors, fields, self.project, self.images = extras or Extras()
        self.domain, self.innermost = domain, innermost
        # The state that the buffers stand for; None in the middle of a step.
        self.held: RecursionState | None = None
        self.pieces = [None] * len(levels) if pieces is None else list(pieces)
        self.fields = list(fields) or [None] * len(levels)
        self.sizes = [block.size for block in domain.blocks]
        self.edges = np.cumsum([0, *self.sizes], dtype=np.int64)
        self.kernels = updates(start)
        flat, last = start.ravel(), len(levels) - 1 if innermost is not None else -1
        self.levels = [
            _LevelState(level, p, Q, None if Q is None else anchors, flat, len(self.sizes), i == last)
            for i, (level, p, Q) in enumerate(zip(levels, gradients, operators, strict=True))
        ]
        self.anchors = next((level.anchors for level in self.levels if level.anchors is not None), None)
        self.top = _zero_above(start.size, len(self.sizes), flat)
        self.solution = flat.copy() if innermost is None else np.zeros(0)
        self.scratch = blank((start.size,), flat)
        # The gradient of a level that has neither function nor operator; never written to.
        idle = any(p is None and Q is None for p, Q in zip(gradients, operators, strict=True))
        self.nothing = zeros(start.size if idle else 0, flat)
        for i, level in enumerate(self.levels):
            level.has_points = any(below.has_gradient for below in self.levels[i:])
        self._check_weights()

    def _check_weights(self) -> None:
        for i, level in enumerate(self.levels, start=1):
            if level.write_operator is not None and not np.all(level.own_weights > 0.0):
                raise InputError(
                    f"levels: level {i} has an operator and the weights {level.own_weights.tolist()}; expected weights "
                    "> 0 on every block."
                )
        total = sum(level.level.step * level.own_weights for level in self.levels)
        if not np.all(total > 0.0) or not np.all(np.isfinite(total)):
            raise InputError(
                f"levels: the total curvature per block is {np.asarray(total).tolist()}; expected finite "
                "numbers > 0. Give some level a positive H, L or M on every block."
            )

    def steps(self) -> Iterator[Array]:
        """Run the outermost loop; after each step yield the running average (a view, valid until the next step)."""
        for j in range(self.levels[0].level.T):
            yield self.step(j)

    def step(self, j: int) -> Array:
        """Outermost step j, from 0, after those before it."""
        outermost = self.levels[0]
        if j == 0:
            outermost.average[:] = outermost.iterate
        self._advance(0, j, 1.0, self.top, Ends(True, True))
        return outermost.average

    def go_on(self, state: RecursionState | None, j: int) -> RecursionState:
        """Outermost step j from a state, which stays as it is; from the start without one."""
        if state is not None and state is not self.held:
            self._load(state)
        self.held = None
        self.step(j)
        outermost, anchors = self.levels[0], self.anchors
        self.held = RecursionState(
            tuple(level.iterate.copy() for level in self.levels),
            outermost.average.copy(),
            {name: (constant, slope.copy()) for name, (constant, slope) in outermost.models.items()},
            () if anchors is None else (anchors.average.copy(), anchors.base.copy()),
            *((None, math.inf) if self.innermost is None else self.innermost.save()),
        )
        return self.held

    def _load(self, state: RecursionState) -> None:
        """Go on from where a run stood; a step that was cut short may have left anything here."""
        for level, iterate in zip(self.levels, state.iterates, strict=True):
            level.iterate[:] = iterate
        outermost = self.levels[0]
        outermost.average[:] = state.average
        outermost.models = {name: (constant, slope.copy()) for name, (constant, slope) in state.models.items()}
        if self.anchors is not None:
            self.anchors.average[:], self.anchors.base[:] = state.images
        if self.innermost is not None:
            self.innermost.load(state.lag, state.eta)

    def _sweep(self, k: int, Gamma: float, above: Above, ends: Ends) -> Array:
        """RecursiveProcedure(k, t): all iterations of level k (from 0), or the base case below the last one."""
        if k == len(self.levels):
            return self._resolve(above)
        this = self.levels[k]
        if self.innermost is not None and k == len(self.levels) - 1:
            self.innermost(Gamma, above, this.iterate, this.average, ends)
            return this.average
        this.average[:] = this.iterate
        for j in range(this.level.T):
            self._advance(k, j, Gamma, above, ends)
        return this.average

    def _advance(self, k: int, j: int, Gamma: float, above: Above, entry: Ends) -> None:
        """One iteration j of level k, lines `level_loop` to `warm_start` of Algorithm 1."""
        this, alpha = self.levels[k], alpha_of(j)
        eta = Gamma * alpha * this.level.step
        ends = entry.at(j, this.level.T)
        if j == 0 and this.anchors is not None:
            this.anchors.enter(above.base, ends.first)
        self._linearise(this, alpha, Gamma, above, ends)
        self._pass_down(this, eta, above)
        ahead = self._sweep(k + 1, Gamma * alpha, this.passed, ends)
        if this.write_operator is None:
            self.kernels.settle(this.average, this.iterate, ahead, alpha, self.scratch)
        else:
            self.kernels.combine(this.average, alpha, ahead, 1.0 - alpha, this.average, self.scratch)
            if self.savings is not None and ends.last:
                self.savings.skip_last()
            else:
                self._correct(this, eta, ahead)
                if this.anchors is not None:
                    this.anchors.follow(alpha, this.operator_ahead)
        self._average_models(k, alpha, ahead)

    def _linearise(self, this: _LevelState, alpha: float, Gamma: float, above: Above, ends: Ends) -> None:
        """Gradient at the composed averaging point v = Gamma alpha z + c, and Q at z."""
        kept, base = Gamma * (1.0 - alpha), this.passed.base
        if this.write_gradient is not None:
            self.kernels.compose(
                base, this.point, kept, this.average, above.base, Gamma * alpha, this.iterate, self.scratch
            )
            this.write_gradient(this.point, this.gradient)
        elif this.has_points:
            self.kernels.combine(base, kept, this.average, 1.0, above.base, self.scratch)
        if this.write_operator is not None:
            write = self.savings.write_first if self.savings is not None and ends.first else this.write_operator
            write(this.iterate, this.operator)
        if this.anchors is not None:
            this.anchors.write_gradient(Gamma * alpha, this.operator, kept, this.gradient)

    def _pass_down(self, this: _LevelState, eta: float, above: Above) -> None:
        """Add this level's proximal and linear terms to those of the levels above."""
        _, pull, slope, weights = this.passed
        np.multiply(this.own_weights, eta, out=weights)
        present = [(this.has_gradient, this.gradient), (this.write_operator is not None, this.operator)]
        parts = [part for there, part in present if there] or [self.nothing]
        self.kernels.collect(pull, slope, above.pull, above.slope, this.iterate, parts[0], weights, self.edges)
        weights += above.weights
        for part in parts[1:]:
            slope += part

    def _average_models(self, k: int, alpha: float, ahead: Array) -> None:
        """The weights of the models follow the running average: m <- alpha m_new + (1 - alpha) m."""
        this, piece, field = self.levels[k], self.pieces[k], self.fields[k]
        below = {} if k + 1 == len(self.levels) else self.levels[k + 1].models
        # A piece of this level is a new vector; one from below is overwritten there.
        fresh = {name: (constant, slope.copy() if alpha == 1.0 else slope) for name, (constant, slope) in below.items()}
        if piece is not None:
            fresh[this.level.term.name] = piece(this.point, this.gradient)
        if field is not None:
            image = this.operator_ahead if self.images is None else self.images[field]
            fresh[field] = float(np.vdot(image, ahead)), image.copy()
        for name, new in fresh.items():
            if alpha == 1.0:
                this.models[name] = new
                continue
            constant, slope = this.models[name]
            flat = slope.reshape(-1)
            self.kernels.combine(flat, alpha, new[1].reshape(-1), 1.0 - alpha, flat, self.scratch[: flat.size])
            this.models[name] = (alpha * new[0] + (1.0 - alpha) * constant, slope)

    def _resolve(self, above: Above) -> Array:
        """Base case: the minimiser over Z of the collected linear and proximal terms, and of simple terms."""
        self.kernels.resolve(self.solution, above.pull, above.slope, above.weights, self.edges)
        base = self.project if self.base is None else self.base
        if base is None:
            self.domain.project(self.solution, out=self.solution)
        else:
            base(self.solution, above.weights)
        return self.solution

    def _correct(self, this: _LevelState, eta: float, ahead: Array) -> None:
        """Z <- Proj(z~ - P^{-1} (Q(z~) - Q(z)) / eta), at a level with an operator."""
        assert this.write_operator is not None
        this.write_operator(ahead, this.operator_ahead)
        factors = 1.0 / (eta * this.own_weights)
        self.kernels.correct(this.iterate, ahead, this.operator, this.operator_ahead, factors, self.edges)
        if self.project is None:
            self.domain.project(this.iterate, out=this.iterate)
        else:
            self.project(this.iterate, this.own_weights)
