"""The innermost level in one compiled call, where coupling, domains, simple terms and norm are of known kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from saddleslide.arrays import Array
from saddleslide.couplings import Coupling, Matrix
from saddleslide.kernels import kinds
from saddleslide.kernels.switch import jit_enabled, load
from saddleslide.oracles import Oracles
from saddleslide.planning import Level, alpha, alpha_sequence
from saddleslide.problem import SaddleProblem
from saddleslide.sliding.component import Writer
from saddleslide.sliding.known import known_coupling, known_inverse, known_set, known_term
from saddleslide.sliding.stepwise import stepwise_sweep
from saddleslide.sliding.thrift import Ends, Thrift, products_spared, spared_by
from saddleslide.sliding.view import View

# Products of one iteration of the coupling's level: B and B^T at z and at z~.
PRODUCTS = 4
# Pixels of a picture that are done at once, and steps that share a pass: the rows at work stay in cache.
_BAND, _TOGETHER = 8192, 10
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
    """All iterations of the innermost level: moves `z`, overwrites `average`; `ends` says which entry it is."""

    def __call__(self, Gamma: float, above: Above, z: Array, average: Array, ends: Ends) -> None: ...


class Call(Protocol):
    """A compiled call of some steps, with what it works in and what it may leave out."""

    def __call__(
        self, T: int, Gamma: float, alphas: Array, above: Above, z: Array, average: Array, spares: int
    ) -> None: ...


@dataclass(frozen=True)
class Anchors:
    """What the anchor terms p_3 = beta_x/2 |Bx - at_g|^2 + beta_y/2 |B^T y + at_f|^2 need; off where beta is 0."""

    beta_x: float
    beta_y: float
    at_f: Array
    at_g: Array

    @property
    def active(self) -> int:
        """How many of the two terms are there."""
        return (self.beta_x > 0.0) + (self.beta_y > 0.0)


@dataclass(frozen=True)
class Known:
    """Everything about a level that compiled loops take along: sets, simple terms, and entries of P^-1."""

    sets: tuple[Any, Any]
    terms: tuple[Any, Any]
    inverse: Array | None

    @property
    def couples(self) -> bool:
        """Whether a set couples all entries of its block."""
        return bool(max(kind[0] for kind in self.sets) > kinds.BOX)


def bands_of(rows: int, columns: int, couples: bool, T: int) -> tuple[int, int]:
    """Rows of a picture that are done at once, and steps that share a pass over it.

    Examples
    --------
    >>> bands_of(1024, 1024, False, 20), bands_of(64, 64, False, 20)
    ((8, 10), (64, 1))
    """
    height = rows if couples else min(rows, max(1, _BAND // columns))
    return height, 1 if height == rows else min(_TOGETHER, T)


def known_parts(view: View) -> Known | None:
    """The parts of a view, None where one is of no known kind; P^-1 is missing where it mixes entries."""
    problem = view.problem
    sets = known_set(problem.X), known_set(problem.Y)
    terms = known_term(view.f_simple, problem.X, view.metric), known_term(view.g_simple, problem.Y)
    if any(part is None for part in (*sets, *terms)):
        return None
    return Known(sets, terms, known_inverse(view.metric, problem.X))


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
    problem = oracles.problem
    known, coupling = known_parts(View(problem) if view is None else view), known_coupling(problem.coupling)
    size = problem.X.size + problem.Y.size
    if not jit_enabled() or known is None:
        return None
    if known.inverse is None and write is not None and thrift is not None:
        return stepwise_sweep(level, known, write, thrift, problem.X.size, size)
    if known.inverse is None or coupling is None:
        return None
    if coupling[0] == kinds.DIFFERENCES:
        return _swept(oracles, level, _difference_call(level, known, coupling[1:3], known.couples))
    return _swept(oracles, level, _coupling_call(level, known, coupling, problem.X.size, size))


def _swept(oracles: Oracles, level: Level, call: Call) -> Sweep:
    alphas, n = weights_of(level.T), oracles.problem.X.size

    def sweep(Gamma: float, above: Above, z: Array, average: Array, ends: Ends) -> None:
        average[:] = z
        for part in chunks_of(level.T, oracles.problem):
            length, spares = part.stop - part.start, spared_by(ends.of(part, level.T), z, n)
            work = partial(call, length, Gamma, alphas(part), above, z, average, spares)
            oracles.products(PRODUCTS * length, work, products_spared(spares))

    return sweep


def _difference_call(level: Level, known: Known, shape: tuple[int, int], couples: bool) -> Call:
    fused = load("difference_sweeps").difference_sweep
    rows, columns = shape
    height, together = bands_of(rows, columns, couples, level.T)
    whole = height == rows
    own, fold = np.array(level.term.weights, dtype=np.float64), np.empty(3 * rows * columns)
    moved = np.zeros(together * (3 * (height + (0 if whole else 2)) * columns + 1))
    ends, nothing = np.zeros(rows + columns), np.zeros(columns)

    def call(T: int, Gamma: float, alphas: Array, above: Above, z: Array, average: Array, spares: int) -> None:
        fused(
            rows, columns, height, together, *known.sets, *known.terms, known.inverse, T, spares, Gamma, level.step,
            alphas, own, above.weights, above.pull, above.slope, z, average, fold, moved, ends, nothing,
        )  # fmt: skip

    return call


def _coupling_call(level: Level, known: Known, coupling: tuple[Any, ...], n: int, size: int) -> Call:
    kernel, own = load("sweeps").coupling_sweep, np.array(level.term.weights, dtype=np.float64)
    fold, moved, q = (np.empty(size) for _ in range(3))

    def call(T: int, Gamma: float, alphas: Array, above: Above, z: Array, average: Array, spares: int) -> None:
        kernel(
            coupling, *known.sets, *known.terms, known.inverse, n, T, spares, Gamma, level.step, alphas, own,
            above.weights, above.pull, above.slope, z, average, fold, moved, q,
        )  # fmt: skip

    return call


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
