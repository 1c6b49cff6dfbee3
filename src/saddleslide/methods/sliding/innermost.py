"""The coupling's level, where it is the innermost one: all iterations of an entry at once.

Three ways. One compiled call, where coupling, domains, simple terms and norm are of known kinds, with the anchors if
there are any. Compiled halves of steps with products in between, for norms of x that mix entries: P^-1 of a spectral
metric takes two fast transforms of the whole grid, each one batched call of SciPy. And primal-dual steps in place of
the paper's, compiled or not: two products each, the same bound (docs/theory.md).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, final

import numpy as np

from saddleslide.arrays.base import Array, on_host, zeros
from saddleslide.kernels import arguments
from saddleslide.kernels.arguments import LAST, ZERO_X, ZERO_Y, Above, Bands, Blocks, Buffers, Differences, Parts
from saddleslide.kernels.switch import Kernels, jit_enabled, load
from saddleslide.kernels.updates import updates
from saddleslide.methods.sliding.anchors import AnchorTerms
from saddleslide.methods.sliding.known import known_blocks, known_inverse, known_parts
from saddleslide.methods.sliding.recursion import Ends, Savings, Writer
from saddleslide.methods.sliding.view import View
from saddleslide.operators.explicit import Matrix
from saddleslide.oracles.oracles import Oracles
from saddleslide.theory.levels import Level, alpha_sequence
from saddleslide.theory.levels import alpha as alpha_of

# Products of one iteration: B and B^T at z and at z~; of a primal-dual one.
_PRODUCTS, _DUAL_PRODUCTS = 4, 2
# Pixels of a picture that are done at once, and steps that share a pass: the rows at work stay in cache.
_BAND, _TOGETHER = 8192, 10
# Entries that one compiled call may touch, and steps it may make: some tenths of a second at most.
_MOST_ENTRIES, _MOST_STEPS = 2**25, 100_000
# Loops beyond this length ask for their weights piece by piece.
_LONG = 1_000_000


def innermost_sweep(
    oracles: Oracles, levels: Sequence[Level], view: View, operator: Writer | None, savings: Savings,
    anchors: AnchorTerms | None, z: Array,
) -> Sweep | None:  # fmt: skip
    """The last level at once, where it is the coupling's; None leaves it to the recursion; `operator` has P^-1."""
    # The outermost loop stays in Python: callers look at every one of its steps.
    if len(levels) == 1 or levels[-1].term.name != "B" or operator is None:
        return None
    if view.primal_dual:
        return PrimalDualSweep(oracles, levels[-1], view, z)
    if not on_host(z) or not jit_enabled():
        return None
    parts, blocks = known_parts(view), known_blocks(view)
    if parts is not None and (anchors is None or view.norms == (None, None)):
        return CompiledSweep(oracles, levels[-1], parts, anchors)
    if anchors is not None or blocks is None or known_inverse(view.norms[0], view.problem.X) is not None:
        return None
    return StepwiseSweep(oracles, levels[-1], blocks, operator, savings)


class Sweep(ABC):
    """All iterations of an entry, and what is remembered from one entry to the next."""

    compiled = True

    def __init__(self, oracles: Oracles, level: Level) -> None:
        problem = oracles.problem
        self.oracles, self.level = oracles, level
        self.n, self.size = problem.X.size, problem.X.size + problem.Y.size
        self.own = np.array(level.term.weights, dtype=np.float64)
        self.alphas = np.array(alpha_sequence(level.T)) if level.T <= _LONG else None

    @abstractmethod
    def __call__(self, Gamma: float, above: Above, z: Array, average: Array, ends: Ends) -> None:
        """Moves `z`, overwrites `average`; `ends` says which entry it is."""

    def save(self) -> tuple[Array | None, float]:
        return None, math.inf

    def load(self, lag: Array | None, eta: float) -> None:
        return

    def chunks(self) -> Iterator[slice]:
        """Iterations in pieces of bounded work: compiled loops do not see Ctrl-C or a limit until they return."""
        coupling, T = self.oracles.problem.coupling, self.level.T
        entries = self.size + (coupling.entry_count if isinstance(coupling, Matrix) else 0)
        most = min(max(1, _MOST_ENTRIES // max(entries, 1)), _MOST_STEPS)
        return (slice(first, min(first + most, T)) for first in range(0, T, most))

    def steps(self, Gamma: float, part: slice, spares: int = 0) -> arguments.Level:
        """Some iterations as kernels take them."""
        kept = self.alphas
        alphas = kept[part] if kept is not None else np.array([alpha_of(t) for t in range(part.start, part.stop)])
        return arguments.Level(Gamma, self.level.step, self.own, alphas, spares)


@final
class CompiledSweep(Sweep):
    """The paper's steps in one compiled call.

    Per active anchor an iteration takes one product besides the operator's four, and an entry one more.
    """

    def __init__(self, oracles: Oracles, level: Level, parts: Parts, anchors: AnchorTerms | None = None) -> None:
        super().__init__(oracles, level)
        size, self.anchored = self.size, anchors is not None
        self.active = 0 if anchors is None else anchors.anchors.active
        self.given: tuple[Any, ...] = (parts,)
        self.buffers: Buffers | arguments.PictureBuffers
        if anchors is not None:
            p_3, known = anchors.anchors, (anchors.point, anchors.average, anchors.base)
            anchoring = arguments.Anchoring(p_3.beta_x, p_3.beta_y, p_3.at_f, p_3.at_g, np.empty(size), *known)
            self.kernel, self.given = _kernels(parts, "sweeps").sweep_anchored, (parts, anchoring)
            self.buffers = Buffers(np.empty(size), np.empty(size), anchors.scratch)
        elif isinstance(parts.coupling, Differences):
            bands, (rows, columns) = _bands(parts, level.T), parts.coupling
            kept = bands.height + (0 if bands.height == rows else 2)
            moved = np.zeros(bands.together * (3 * kept * columns + 1))
            self.kernel, self.given = _kernels(parts, "pictures").difference_sweep, (parts, bands)
            self.buffers = arguments.PictureBuffers(np.empty(size), moved, np.zeros(rows + columns), np.zeros(columns))
        else:
            self.kernel = _kernels(parts, "sweeps").sweep_operator
            self.buffers = Buffers(*(np.empty(size) for _ in range(3)))

    def __call__(self, Gamma: float, above: Above, z: Array, average: Array, ends: Ends) -> None:
        average[:] = z
        for part in self.chunks():
            length, begins, at = part.stop - part.start, int(part.start == 0), ends.of(part, self.level.T)
            spares = find_spared(at, z, self.n)
            work = partial(self.kernel, *self.given, self.steps(Gamma, part, spares), above, z, average, self.buffers)
            work = partial(work, begins + at.first) if self.anchored else work
            # The averages above are 0 at the first entry of a run.
            spared = bool(spares & ZERO_X) + bool(spares & ZERO_Y) + 2 * bool(spares & LAST) + at.first * self.active
            self.oracles.products((_PRODUCTS + self.active) * length + begins * self.active, work, spared)


@final
class StepwiseSweep(Sweep):
    """The paper's steps in compiled halves, with products in between."""

    def __init__(self, oracles: Oracles, level: Level, blocks: Blocks, write: Writer, savings: Savings) -> None:
        super().__init__(oracles, level)
        self.blocks, self.write, self.savings, self.kernels = blocks, write, savings, load("sweeps")
        self.buffers = Buffers(*(np.empty(self.size) for _ in range(3)))

    def __call__(self, Gamma: float, above: Above, z: Array, average: Array, ends: Ends) -> None:
        blocks, buffers, kernels = self.blocks, self.buffers, self.kernels
        average[:] = z
        kernels.fold_above(blocks, above, buffers.fold)
        for j in range(self.level.T):
            here, step = ends.at(j, self.level.T), self.steps(Gamma, slice(j, j + 1))
            (self.savings.write_first if here.first else self.write)(z, buffers.q)
            kernels.approach(blocks, step, above, 0, z, average, buffers)
            if here.last:
                self.savings.skip_last()
                return
            self.write(buffers.moved, buffers.q)
            kernels.put_right(blocks, step, above, 0, z, buffers)


@final
class PrimalDualSweep(Sweep):
    """Primal-dual steps: x+ is the base case of x with B^T (y + theta (y - y_previous)), y+ that of y with B x+.

    They are numbered along the whole run, and theta is the ratio of their etas, so the last step of y and its eta stay
    from one entry to the next.
    """

    def __init__(self, oracles: Oracles, level: Level, view: View, near: Array) -> None:
        super().__init__(oracles, level)
        self.view, self.shapes, self.blocks, self.kernels = view, view.shapes, view.blocks(), updates(near)
        self.fold, self.q = zeros(self.size, near), zeros(self.size, near)
        self.lag, self.eta = zeros(self.size - self.n, near), math.inf
        parts = known_parts(view) if jit_enabled() and on_host(near) else None
        self.compiled = parts is not None
        self.scratch = zeros(0 if self.compiled else self.size, near)
        if parts is not None:
            self.kernel = self._find_kernel(parts)

    def _find_kernel(self, parts: Parts) -> Callable[[arguments.Level, Above, Array, Array], None]:
        """Some steps of an entry: they share passes over a large picture, or are made one after the other."""
        kernels, given = (
            _kernels(parts, "pictures" if isinstance(parts.coupling, Differences) else "sweeps"),
            tuple[Any, ...]((parts,)),
        )
        if isinstance(parts.coupling, Differences):
            rows, columns = parts.coupling
            sweep, given = kernels.picture_sweep, (parts, _bands(parts, self.level.T))
            margins = np.zeros(rows + 2 * columns)
        else:
            sweep, margins = kernels.primal_dual_sweep, np.zeros(0)
        buffers = arguments.DualBuffers(self.lag, self.fold, self.q, margins)

        def advance(level: arguments.Level, above: Above, z: Array, average: Array) -> None:
            self.eta = sweep(*given, level, above, z, average, buffers, self.eta)

        return advance

    def save(self) -> tuple[Array | None, float]:
        return self.lag.copy(), self.eta

    def load(self, lag: Array | None, eta: float) -> None:
        assert lag is not None
        self.lag[:], self.eta = lag, float(eta)

    def __call__(self, Gamma: float, above: Above, z: Array, average: Array, ends: Ends) -> None:
        average[:] = z
        # Of what a run may spare there is B^T y at the start: no step has a correction.
        spares = find_spared(ends, z, self.n) & ZERO_Y
        if not self.compiled:
            self._step_by_step(Gamma, above, z, average, spares)
            return
        for part in self.chunks():
            here = spares if part.start == 0 else 0
            work = partial(self.kernel, self.steps(Gamma, part, here), above, z, average)
            self.oracles.products(_DUAL_PRODUCTS * (part.stop - part.start), work, int(here > 0))

    def _step_by_step(self, Gamma: float, above: Above, z: Array, average: Array, spares: int) -> None:
        x_shape, y_shape = self.shapes
        np.subtract(above.pull, above.slope, out=self.fold)
        (fold_x, fold_y), (q_x, q_y), (x, y) = ((v[: self.n], v[self.n :]) for v in (self.fold, self.q, z))
        for j in range(self.level.T):
            alpha = alpha_of(j)
            eta = Gamma * alpha * self.level.step
            etas = eta * self.own
            weights = etas + above.weights
            if spares and j == 0:
                q_x[:] = 0.0
                self.oracles.spare(1)
            else:
                self.kernels.combine(q_y, 1.0, y, eta / self.eta, self.lag, self.scratch[self.n :])
                self.oracles.adjoint(q_y.reshape(y_shape), q_x.reshape(x_shape))
                self.view.spaces.invert(self.q, 0)
            self._resolve(0, x, etas[0], fold_x, -1.0, q_x, weights[0])
            self.oracles.forward(x.reshape(x_shape), q_y.reshape(y_shape))
            self.view.spaces.invert(self.q, 1)
            self.lag[:] = y
            self._resolve(1, y, etas[1], fold_y, 1.0, q_y, weights[1])
            np.subtract(y, self.lag, out=self.lag)
            self.kernels.combine(average, alpha, z, 1.0 - alpha, average, self.scratch)
            self.eta = eta

    def _resolve(self, block: int, v: Array, eta: float, fold: Array, sign: float, q: Array, weight: float) -> None:
        """Write v = the base case around (eta v + fold + sign q) / weight."""
        scratch = self.scratch[: v.size]
        self.kernels.combine(v, eta / weight, v, 1.0 / weight, fold, scratch)
        self.kernels.combine(v, 1.0, v, sign / weight, q, scratch)
        self.blocks[block](v.reshape(self.shapes[block]), float(weight))


def find_spared(ends: Ends, z: Array, n: int) -> int:
    """What the steps of an entry may leave out, as bits of `arguments`; x has n entries of z."""
    at_start = ZERO_X * (not z[:n].any()) + ZERO_Y * (not z[n:].any()) if ends.first else 0
    return at_start + LAST * ends.last


def _bands(parts: Parts, T: int) -> Bands:
    """Rows of a picture that are done at once, and steps that share a pass over it; a ball needs all entries."""
    rows, columns = parts.coupling
    couples = max(parts.X.kind, parts.Y.kind) > arguments.BOX
    height = rows if couples else min(rows, max(1, _BAND // columns))
    return Bands(height, 1 if height == rows else min(_TOGETHER, T))


def _kernels(parts: Parts, module: str) -> Kernels:
    """The kernels of a module that are compiled for such a coupling."""
    kind: Any = type(parts.coupling)
    return load(module, coupling=kind)
