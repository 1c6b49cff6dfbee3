"""The innermost level in one compiled call, where the coupling and both domains are of known kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from saddleslide.arrays import Array
from saddleslide.couplings import Coupling, Matrix
from saddleslide.kernels import kinds
from saddleslide.kernels.switch import jit_enabled, load
from saddleslide.oracles import Oracles
from saddleslide.planning import Level, alpha, alpha_sequence
from saddleslide.sliding.known import NOTHING, known_coupling, known_set

# Products of one iteration of the coupling's level: B and B^T at z and at z~.
PRODUCTS = 4
# Pixels of a strip of a picture: small enough for a cache, large enough for long loops.
_STRIP = 65536
# Entries that one compiled call may touch, and steps it may make: some tenths of a second at most.
_MOST_ENTRIES, _MOST_STEPS = 2**25, 100_000
# Loops beyond this length ask for their weights piece by piece.
_LONG = 1_000_000


class Above(Protocol):
    """What the outer levels contribute, as the recursion collects it."""

    base: Array
    pull: Array
    slope: Array
    weights: Array


class Sweep(Protocol):
    """All iterations of the innermost level: moves `z`, overwrites `average`."""

    def __call__(self, Gamma: float, above: Above, z: Array, average: Array) -> None: ...


@dataclass(frozen=True)
class Anchors:
    """What the anchor terms p_3 = beta_x/2 |Bx - at_g|^2 + beta_y/2 |B^T y + at_f|^2 need; off where beta is 0."""

    beta_x: float
    beta_y: float
    at_f: Array
    at_g: Array

    @property
    def products(self) -> int:
        """Products that one gradient of p_3 takes."""
        return 2 * (self.beta_x > 0.0) + 2 * (self.beta_y > 0.0)


NO_ANCHORS = Anchors(0.0, 0.0, NOTHING, NOTHING)


def compiled_sweep(oracles: Oracles, level: Level, anchors: Anchors = NO_ANCHORS) -> Sweep | None:
    """The coupling's level as one compiled loop on counted oracles; None where some part is of no known kind."""
    problem = oracles.problem
    sets = known_set(problem.X), known_set(problem.Y)
    coupling = known_coupling(problem.coupling)
    if not jit_enabled() or coupling is None or sets[0] is None or sets[1] is None:
        return None
    kind, rows, columns = coupling[:3]
    size = problem.X.size + problem.Y.size
    own, alphas = np.array(level.term.weights, dtype=np.float64), _weights(level.T)
    count = PRODUCTS + anchors.products
    entries = size + _entries(problem.coupling)
    if kind == kinds.DIFFERENCES and not anchors.products and sets[1][0] <= kinds.BOX:
        fused = load("difference_sweeps").difference_sweep
        height = rows if sets[0][0] > kinds.BOX else min(rows, max(1, _STRIP // columns))
        strips, fold = _vectors(2, 3 * (height + 2) * columns), np.empty(size)

        def difference_sweep(Gamma: float, above: Above, z: Array, average: Array) -> None:
            average[:] = z
            for part in _chunks(level.T, entries):
                length = part.stop - part.start
                work = partial(
                    fused, rows, columns, height, *sets, length, Gamma, level.step, alphas(part), own, above.weights,
                    above.pull, above.slope, z, average, *strips, fold,
                )  # fmt: skip
                oracles.products(count * length, work)

        return difference_sweep
    kernel, held = load("sweeps").coupling_sweep, (anchors.beta_x, anchors.beta_y, anchors.at_f, anchors.at_g)
    scratch = _vectors(4, size) + _vectors(1, size if anchors.products else 0)

    def sweep(Gamma: float, above: Above, z: Array, average: Array) -> None:
        average[:] = z
        for part in _chunks(level.T, entries):
            length = part.stop - part.start
            work = partial(
                kernel, coupling, *sets, problem.X.size, held, length, Gamma, level.step, alphas(part), own,
                above.weights, above.base, above.pull, above.slope, z, average, *scratch,
            )  # fmt: skip
            oracles.products(count * length, work)

    return sweep


def _weights(T: int) -> Callable[[slice], Array]:
    """Weights of a piece of the loop; those of a very long one are not kept."""
    if T > _LONG:
        return lambda part: np.array([alpha(t) for t in range(part.start, part.stop)])
    kept = np.array(alpha_sequence(T))
    return lambda part: kept[part]


def _chunks(T: int, entries: int) -> Iterator[slice]:
    """Iterations in pieces of bounded work: compiled loops do not see Ctrl-C or a limit until they return."""
    most = min(max(1, _MOST_ENTRIES // max(entries, 1)), _MOST_STEPS)
    return (slice(first, min(first + most, T)) for first in range(0, T, most))


def _entries(coupling: Coupling) -> int:
    return coupling.stored if isinstance(coupling, Matrix) else 0


def _vectors(count: int, size: int) -> list[Array]:
    return [np.empty(size) for _ in range(count)]
