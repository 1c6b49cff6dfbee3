"""Algorithm 1 of the paper: recursive sliding for any number of levels.

Three facts keep it short. A level's iterate z is never reset (the warm starts say just that); only its running
average restarts on entry. The gradient of a level is taken at v = Gamma z + c, where Gamma is the product of the
current alphas and c collects the averages of the levels above. And inside a level all outer levels are two vectors
(`pull`, the weighted centres, and `slope`, the linear terms) and one weight per block, so the base case is a single
projection. Centres and slopes are summed apart: the centres are far larger and would swallow digits of the slopes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np

from saddleslide.arrays.base import blank, zeros
from saddleslide.errors import InputError
from saddleslide.kernels.switch import updates
from saddleslide.methods.base import State
from saddleslide.methods.sliding.thrift import Ends
from saddleslide.theory.levels import alpha as alpha_of

if TYPE_CHECKING:
    from saddleslide.arrays.base import Array
    from saddleslide.arrays.state import YVector, ZVector
    from saddleslide.domains import Domain
    from saddleslide.methods.sliding.component import Writer
    from saddleslide.methods.sliding.images import Images
    from saddleslide.methods.sliding.innermost import Sweep
    from saddleslide.methods.sliding.thrift import Thrift
    from saddleslide.methods.sliding.view import Base
    from saddleslide.theory.levels import Level

# Constant and slope of a lower model from (point, gradient), both flat.
Piece: TypeAlias = "Callable[[Array, Array], tuple[float, Array]]"


@dataclass
class RecursionState(State):
    """Where a run stands between two outermost steps; all else is made anew in a step, or restarts on entry.

    Parameters
    ----------
    iterates : tuple of Array
        z of every level, outermost first.
    average : Array
        The running average of the outermost level.
    models : mapping of names of levels to (constant, slope)
        Averaged lower models that the outermost level has carried along.
    images : tuple of Array
        Q of averaged points, where the coupling's level has anchors.
    lag, eta : Array or None, and float
        The last step of y and its eta, where an innermost coupling makes primal-dual steps.
    """

    iterates: tuple[ZVector, ...]
    average: ZVector
    models: dict[str, tuple[float, Array]] = field(default_factory=dict)
    images: tuple[ZVector, ...] = ()
    lag: YVector | None = None
    eta: float = math.inf


class _Floor:
    """What the levels above contribute: nothing, for the outermost level."""

    def __init__(self, size: int, blocks: int, near: Array) -> None:
        self.base = zeros(size, near)
        self.pull = zeros(size, near)
        self.slope = zeros(size, near)
        self.weights = np.zeros(blocks)


class _Rung(_Floor):
    """State of one level: iterate, running average, and what it passes down."""

    def __init__(
        self, level: Level, gradient: Writer | None, operator: Writer | None, images: Images | None, start: Array,
        blocks: int, whole: bool,
    ) -> None:  # fmt: skip
        # A level that is swept as a whole passes nothing down, and no vector is kept for what is absent.
        super().__init__(0 if whole else start.size, blocks, start)
        self.level = level
        self.own_weights = np.array(level.term.weights, dtype=np.float64)
        self.write_gradient, self.write_operator, self.images = gradient, operator, images
        self.iterate = start.copy()
        self.average = start.copy()
        linearised = start.size if self.has_gradient and not whole else 0
        corrected = start.size if operator is not None and not whole else 0
        self.point, self.gradient = zeros(linearised, start), zeros(linearised, start)
        self.operator, self.operator_ahead = zeros(corrected, start), zeros(corrected, start)
        self.points_below = False
        # Averaged lower models of this level's function and of those below: constant and slope.
        self.models: dict[int, tuple[float, Array]] = {}

    @property
    def has_gradient(self) -> bool:
        """Whether the level has a function, be it that of the anchors."""
        return self.write_gradient is not None or self.images is not None


class Recursion:
    """Algorithm 1 with its buffers, as an iterator: `steps()` yields the running average after every outermost step.

    Parameters
    ----------
    levels : sequence of Level
        Scalars of each level, outermost first.
    gradients, operators : sequences of writers or None
        `write(z, out)` for p_i' and Q_i; None where absent. A writer may leave alone entries that are always 0.
    domain : Domain
        The set Z; its blocks carry the metric weights.
    start : Array
        z_in, flat, in Z.
    pieces : sequence of callables or None, optional
        `piece(z, gradient)` gives constant and slope of a lower model of p_i from its gradient at z. The run then
        carries their average along: the weights in the bound follow the same recursion as the running average.
    innermost : Sweep, optional
        Makes all iterations of the last level at once, when there are levels above it.
    base : callable, optional
        `base(centers, weights)` turns the centres of the base case into its minimiser, in place, where simple terms
        make it more than the projection onto the domain.
    thrift : Thrift, optional
        What is known of the operator at the start. With it the last correction is left out: the iterate of the
        operator's level then ends one step behind, and the averages are what they were.
    images : Images, optional
        Gives the gradient of the anchor terms, which are the function of the operator's level.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> from saddleslide.theory import Term, place
    >>> levels = place([Term("p", ss.Holder(1.0, 1.0))], loops=(3,))
    >>> def gradient(z, out):
    ...     out[:] = z - 1.0
    >>> recursion = Recursion(levels, [gradient], [None], ss.domains.FullSpace(1), np.zeros(1))
    >>> [average.round(3).tolist() for average in recursion.steps()]
    [[1.0], [1.0], [1.0]]
    """

    stored: ClassVar[bool] = False

    def __init__(
        self,
        levels: Sequence[Level],
        gradients: Sequence[Writer | None],
        operators: Sequence[Writer | None],
        domain: Domain,
        start: Array,
        pieces: Sequence[Piece | None] | None = None,
        innermost: Sweep | None = None,
        base: Base | None = None,
        thrift: Thrift | None = None,
        images: Images | None = None,
    ) -> None:
        self.domain, self.innermost, self.base, self.thrift = domain, innermost, base, thrift
        # The state that the buffers stand for; None in the middle of a step.
        self.held: RecursionState | None = None
        self.pieces = list(pieces) if pieces is not None else [None] * len(levels)
        self.sizes = [block.size for block in domain.blocks]
        self.edges = np.cumsum([0, *self.sizes], dtype=np.int64)
        self.kernels = updates(start)
        flat, last = start.ravel(), len(levels) - 1
        self.rungs = [
            _Rung(
                level, p, Q, None if Q is None else images, flat, len(self.sizes), i == last and innermost is not None
            )
            for i, (level, p, Q) in enumerate(zip(levels, gradients, operators, strict=True))
        ]
        self.floor = _Floor(start.size, len(self.sizes), flat)
        self.solution = flat.copy() if innermost is None else np.zeros(0)
        self.scratch = blank((start.size,), flat)
        # The gradient of a level that has neither function nor operator; never written to.
        idle = any(p is None and Q is None for p, Q in zip(gradients, operators, strict=True))
        self.nothing = zeros(start.size if idle else 0, flat)
        below = False
        for rung in reversed(self.rungs):
            below = below or rung.has_gradient
            rung.points_below = below
        self._check_weights()

    def _check_weights(self) -> None:
        for i, rung in enumerate(self.rungs, start=1):
            if rung.write_operator is not None and not np.all(rung.own_weights > 0.0):
                raise InputError(
                    f"levels: level {i} has an operator and the weights {rung.own_weights.tolist()}; expected weights "
                    "> 0 on every block."
                )
        total = sum(rung.level.step * rung.own_weights for rung in self.rungs)
        if not np.all(total > 0.0) or not np.all(np.isfinite(total)):
            raise InputError(
                f"levels: the total curvature per block is {np.asarray(total).tolist()}; expected finite "
                "numbers > 0. Give some level a positive H, L or M on every block."
            )

    def steps(self) -> Iterator[Array]:
        """Run the outermost loop; after each step yield the running average (a view, valid until the next step)."""
        for j in range(self.rungs[0].level.T):
            yield self.step(j)

    def go_on(self, state: RecursionState | None, j: int) -> RecursionState:
        """Outermost step j from a state, which stays as it is; from the start without one."""
        if state is not None and state is not self.held:
            self.load(state)
        self.held = None
        self.step(j)
        self.held = self.save()
        return self.held

    def save(self) -> RecursionState:
        """Where the run stands, which later steps do not change."""
        outermost, images = self.rungs[0], next((rung.images for rung in self.rungs if rung.images is not None), None)
        lag, eta = (None, math.inf) if self.innermost is None else self.innermost.save()
        return RecursionState(
            tuple(rung.iterate.copy() for rung in self.rungs),
            outermost.average.copy(),
            {self.rungs[i].level.term.name: (model[0], model[1].copy()) for i, model in outermost.models.items()},
            () if images is None else (images.average.copy(), images.base.copy()),
            lag,
            eta,
        )

    def load(self, state: RecursionState) -> None:
        """Go on from where a run stood; a step that was cut short may have left anything here."""
        outermost, images = self.rungs[0], next((rung.images for rung in self.rungs if rung.images is not None), None)
        for rung, iterate in zip(self.rungs, state.iterates, strict=True):
            rung.iterate[:] = iterate
        outermost.average[:] = state.average
        names = {rung.level.term.name: i for i, rung in enumerate(self.rungs)}
        outermost.models = {names[name]: (model[0], model[1].copy()) for name, model in state.models.items()}
        if images is not None:
            images.average[:], images.base[:] = state.images
        if self.innermost is not None:
            self.innermost.load(state.lag, state.eta)

    def step(self, j: int) -> Array:
        """Outermost step j, from 0, after those before it."""
        outermost = self.rungs[0]
        if j == 0:
            outermost.average[:] = outermost.iterate
        self._advance(0, j, 1.0, self.floor, Ends(True, True))
        return outermost.average

    def _sweep(self, k: int, Gamma: float, above: _Floor, ends: Ends) -> Array:
        """RecursiveProcedure(k, t): all iterations of level k (from 0), or the base case below the last one."""
        if k == len(self.rungs):
            return self._resolve(above)
        rung = self.rungs[k]
        if self.innermost is not None and k == len(self.rungs) - 1:
            self.innermost(Gamma, above, rung.iterate, rung.average, ends)
            return rung.average
        rung.average[:] = rung.iterate
        for j in range(rung.level.T):
            self._advance(k, j, Gamma, above, ends)
        return rung.average

    def _advance(self, k: int, j: int, Gamma: float, above: _Floor, entry: Ends) -> None:
        """One iteration j of level k, lines `level_loop` to `warm_start` of Algorithm 1."""
        rung, alpha = self.rungs[k], alpha_of(j)
        eta = Gamma * alpha * rung.level.step
        ends = entry.at(j, rung.level.T)
        if j == 0 and rung.images is not None:
            rung.images.enter(above.base, ends.first)
        self._linearise(rung, alpha, Gamma, above, ends)
        self._pull(rung, eta, above)
        ahead = self._sweep(k + 1, Gamma * alpha, rung, ends)
        if any(piece is not None for piece in self.pieces[k:]):
            self._average_models(k, alpha)
        if rung.write_operator is None:
            self.kernels.settle(rung.average, rung.iterate, ahead, alpha, self.scratch)
            return
        self.kernels.combine(rung.average, alpha, ahead, 1.0 - alpha, rung.average, self.scratch)
        if self.thrift is not None and ends.last:
            self.thrift.left_out()
            return
        self._correct(rung, eta, ahead)
        if rung.images is not None:
            rung.images.follow(alpha, rung.operator_ahead)

    def _average_models(self, k: int, alpha: float) -> None:
        """The weights of the models follow the running average: m <- alpha m_new + (1 - alpha) m."""
        rung = self.rungs[k]
        for i, piece in enumerate(self.pieces[k:], start=k):
            if piece is None:
                continue
            new = piece(rung.point, rung.gradient) if i == k else self.rungs[k + 1].models[i]
            if alpha == 1.0:
                # A piece of this level is a new vector; one from below is overwritten there.
                rung.models[i] = (new[0], new[1] if i == k else new[1].copy())
                continue
            constant, slope = rung.models[i]
            flat = slope.reshape(-1)
            self.kernels.combine(flat, alpha, new[1].reshape(-1), 1.0 - alpha, flat, self.scratch[: flat.size])
            rung.models[i] = (alpha * new[0] + (1.0 - alpha) * constant, slope)

    def lower_models(self) -> dict[int, tuple[float, Array]]:
        """Constant and slope of the carried lower model of each level that has pieces, after at least one step."""
        return self.rungs[0].models

    def _linearise(self, rung: _Rung, alpha: float, Gamma: float, above: _Floor, ends: Ends) -> None:
        """Gradient at the composed averaging point v = Gamma alpha z + c, and Q at z."""
        kept = Gamma * (1.0 - alpha)
        if rung.write_gradient is not None:
            self.kernels.compose(
                rung.base, rung.point, kept, rung.average, above.base, Gamma * alpha, rung.iterate, self.scratch
            )
            rung.write_gradient(rung.point, rung.gradient)
        elif rung.points_below:
            self.kernels.combine(rung.base, kept, rung.average, 1.0, above.base, self.scratch)
        if rung.write_operator is not None:
            write = self.thrift.write_first if self.thrift is not None and ends.first else rung.write_operator
            write(rung.iterate, rung.operator)
        if rung.images is not None:
            rung.images.write_gradient(Gamma * alpha, rung.operator, kept, rung.gradient)

    def _pull(self, rung: _Rung, eta: float, above: _Floor) -> None:
        """Add this level's proximal and linear terms to those of the levels above."""
        np.multiply(rung.own_weights, eta, out=rung.weights)
        present = [(rung.has_gradient, rung.gradient), (rung.write_operator is not None, rung.operator)]
        parts = [part for there, part in present if there] or [self.nothing]
        self.kernels.collect(
            rung.pull, rung.slope, above.pull, above.slope, rung.iterate, parts[0], rung.weights, self.edges
        )
        rung.weights += above.weights
        for part in parts[1:]:
            rung.slope += part

    def _resolve(self, above: _Floor) -> Array:
        """Base case: the minimiser over Z of the collected linear and proximal terms, and of simple terms."""
        self.kernels.resolve(self.solution, above.pull, above.slope, above.weights, self.edges)
        if self.base is None:
            self.domain.project(self.solution, out=self.solution)
        else:
            self.base(self.solution, above.weights)
        return self.solution

    def _correct(self, rung: _Rung, eta: float, ahead: Array) -> None:
        """Z <- Proj(z~ - P^{-1} (Q(z~) - Q(z)) / eta), at a level with an operator."""
        assert rung.write_operator is not None
        rung.write_operator(ahead, rung.operator_ahead)
        factors = 1.0 / (eta * rung.own_weights)
        self.kernels.correct(rung.iterate, ahead, rung.operator, rung.operator_ahead, factors, self.edges)
        self.domain.project(rung.iterate, out=rung.iterate)
