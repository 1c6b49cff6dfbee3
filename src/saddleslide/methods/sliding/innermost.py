"""The innermost level in one compiled call, where coupling, domains, simple terms and norm are of known kinds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.kernels import arguments
from saddleslide.kernels.arguments import Above, Bands, Buffers, Differences, Parts, PictureBuffers
from saddleslide.kernels.switch import Kernels, jit_enabled, load
from saddleslide.methods.sliding.component import Writer
from saddleslide.methods.sliding.known import known_blocks, known_inverse, known_parts
from saddleslide.methods.sliding.stepwise import stepwise_sweep
from saddleslide.methods.sliding.thrift import Ends, Thrift, products_spared, spared_by
from saddleslide.methods.sliding.view import View
from saddleslide.operators import Coupling, Matrix
from saddleslide.oracles.oracles import Oracles
from saddleslide.problem import SaddleProblem
from saddleslide.theory import Level, alpha, alpha_sequence

# Products of one iteration of the coupling's level: B and B^T at z and at z~.
PRODUCTS = 4
# Pixels of a picture that are done at once, and steps that share a pass: the rows at work stay in cache.
_BAND, _TOGETHER = 8192, 10
# Entries that one compiled call may touch, and steps it may make: some tenths of a second at most.
_MOST_ENTRIES, _MOST_STEPS = 2**25, 100_000
# Loops beyond this length ask for their weights piece by piece.
_LONG = 1_000_000


class Outer(Protocol):
    """What the outer levels contribute, as the recursion collects it."""

    base: Array
    pull: Array
    slope: Array
    weights: Array


class Entry(Protocol):
    """All iterations of an entry of the innermost level: moves `z`, overwrites `average`; `ends` says which it is."""

    def __call__(self, Gamma: float, above: Outer, z: Array, average: Array, ends: Ends) -> None: ...


class Sweep:
    """What makes all iterations of the innermost level at once, and what it remembers from one entry to the next."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry

    def __call__(self, Gamma: float, above: Outer, z: Array, average: Array, ends: Ends) -> None:
        self.entry(Gamma, above, z, average, ends)

    def save(self) -> tuple[Array | None, float]:
        """Nothing, for the paper's steps."""
        return None, math.inf

    def load(self, lag: Array | None, eta: float) -> None:
        """What `save` gave."""


@dataclass(frozen=True)
class Anchors:
    """What the anchor terms p_3 = beta_x/2 |Bx - at_g|^2 + beta_y/2 |B^T y + at_f|^2 need; off where beta is 0."""

    beta_x: float
    beta_y: float
    at_f: XVector
    at_g: YVector

    @property
    def active(self) -> int:
        """How many of the two terms are there."""
        return (self.beta_x > 0.0) + (self.beta_y > 0.0)


def bands_of(parts: Parts, T: int) -> Bands:
    """Rows of a picture that are done at once, and steps that share a pass over it; a ball needs all entries at once.

    Examples
    --------
    >>> import saddleslide as ss
    >>> from saddleslide.methods.sliding.known import known_parts
    >>> def parts(n):
    ...     B, zero = ss.operators.FiniteDifferences((n, n)), ss.functions.Zero()
    ...     X, Y = ss.domains.FullSpace((n, n)), ss.domains.Box(-1.0, 1.0, shape=B.y_shape)
    ...     return known_parts(View(ss.SaddleProblem(f=zero, g=zero, B=B, X=X, Y=Y)))
    >>> bands_of(parts(1024), 20), bands_of(parts(64), 20)
    (Bands(height=8, together=10), Bands(height=64, together=1))
    """
    rows, columns = parts.coupling
    couples = max(parts.X.kind, parts.Y.kind) > arguments.BOX
    height = rows if couples else min(rows, max(1, _BAND // columns))
    return Bands(height, 1 if height == rows else min(_TOGETHER, T))


if TYPE_CHECKING:
    from saddleslide.arrays.state import XVector, YVector


def compiled_sweep(
    oracles: Oracles,
    level: Level,
    view: View | None = None,
    write: Writer | None = None,
    thrift: Thrift | None = None,
) -> Sweep | None:
    """The coupling's level as one compiled loop on counted oracles; None where some part is of no known kind.

    `write` gives Q as the view's metric has it, for one that mixes entries, and `thrift` says what is known of it.
    """
    view = View(oracles.problem) if view is None else view
    if not jit_enabled():
        return None
    parts = known_parts(view)
    if parts is not None:
        return _swept(oracles, level, parts)
    blocks, mixes = known_blocks(view), known_inverse(view.metric, view.problem.X) is None
    if blocks is None or not mixes or write is None or thrift is None:
        return None
    return Sweep(stepwise_sweep(level, blocks, write, thrift, blocks.n + view.problem.Y.size))


def _swept(oracles: Oracles, level: Level, parts: Parts) -> Sweep:
    alphas, own = weights_of(level.T), own_weights(level)
    kernel, given, buffers = _kernel(level, parts, oracles.problem)

    def sweep(Gamma: float, above: Outer, z: Array, average: Array, ends: Ends) -> None:
        average[:] = z
        outer = Above(above.base, above.pull, above.slope, above.weights)
        for part in chunks_of(level.T, oracles.problem):
            spares = spared_by(ends.of(part, level.T), z, parts.n)
            steps = arguments.Level(Gamma, level.step, own, alphas(part), spares)
            work = partial(kernel, *given, steps, outer, z, average, buffers)
            oracles.products(PRODUCTS * (part.stop - part.start), work, products_spared(spares))

    return Sweep(sweep)


def _kernel(level: Level, parts: Parts, problem: SaddleProblem) -> tuple[Callable[..., None], tuple[Any, ...], Any]:
    """The loop for a kind of coupling, what it takes at first, and what it works in."""
    size = parts.n + problem.Y.size
    if not isinstance(parts.coupling, Differences):
        kernel = kernels_for(parts, "sweeps").coupling_sweep
        return kernel, (parts,), Buffers(*(np.empty(size) for _ in range(3)))
    bands, (rows, columns) = bands_of(parts, level.T), parts.coupling
    kept = bands.height + (0 if bands.height == rows else 2)
    moved = np.zeros(bands.together * (3 * kept * columns + 1))
    buffers = PictureBuffers(np.empty(size), moved, np.zeros(rows + columns), np.zeros(columns))
    return kernels_for(parts, "pictures").difference_sweep, (parts, bands), buffers


def kernels_for(parts: Parts, module: str) -> Kernels:
    """The kernels of a module that are compiled for such a coupling."""
    kind: Any = type(parts.coupling)
    return load(module, coupling=kind)


def own_weights(level: Level) -> Array:
    """The weights of a level's blocks."""
    return np.array(level.term.weights, dtype=np.float64)


def weights_of(T: int) -> Callable[[slice], Array]:
    """Weights of a piece of the loop; those of a very long one are not kept."""
    if T > _LONG:
        return lambda part: np.array([alpha(t) for t in range(part.start, part.stop)])
    kept = np.array(alpha_sequence(T))
    return lambda part: kept[part]


def chunks_of(T: int, problem: SaddleProblem) -> Iterator[slice]:
    """Iterations in pieces of bounded work: compiled loops do not see Ctrl-C or a limit until they return."""
    entries = problem.X.size + problem.Y.size + _entries(problem.coupling)
    most = min(max(1, _MOST_ENTRIES // max(entries, 1)), _MOST_STEPS)
    return (slice(first, min(first + most, T)) for first in range(0, T, most))


def _entries(coupling: Coupling) -> int:
    return coupling.stored if isinstance(coupling, Matrix) else 0
