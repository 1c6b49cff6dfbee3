"""How far the solution can be from the start: what a bound needs to become a number of iterations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.functions import Zero, has_prox
from saddleslide.operators.call import note
from saddleslide.oracles.oracles import Calls, Oracles
from saddleslide.problem import SaddleProblem


@dataclass(frozen=True)
class Sizes:
    """What distances rest on: squared radii of both domains as seen from a point, and moduli of f and g.

    Examples
    --------
    >>> Sizes((4.0, 9.0), (0.0, 1.0)).radii
    (2.0, 3.0)
    """

    squared_radii: tuple[float, float]
    moduli: tuple[float, float]

    @property
    def radii(self) -> tuple[float, float]:
        """Largest distances to points of the domains."""
        return math.sqrt(self.squared_radii[0]), math.sqrt(self.squared_radii[1])


# Remembered as long as the problem lives: every prediction asks.
_SIZES: WeakKeyDictionary[SaddleProblem, Sizes] = WeakKeyDictionary()
_KNOWN: WeakKeyDictionary[SaddleProblem, tuple[float, float]] = WeakKeyDictionary()
# What predictions assume for a while: apart for every thread.
_ASSUMED: ContextVar[tuple[SaddleProblem, tuple[float, float]] | None] = ContextVar("_ASSUMED", default=None)


def sizes_of(problem: SaddleProblem) -> Sizes:
    """The sizes as seen from the default start, computed once for a problem.

    Examples
    --------
    >>> import saddleslide as ss
    >>> box, zero = ss.domains.Box(-2.0, 2.0, shape=1), ss.functions.Zero()
    >>> sizes_of(ss.SaddleProblem(f=zero, g=zero, B=np.eye(1), X=box, Y=box))
    Sizes(squared_radii=(4.0, 4.0), moduli=(0.0, 0.0))
    """
    if problem not in _SIZES:
        _SIZES[problem] = _sizes(problem, problem.start())
    return _SIZES[problem]


def _sizes(problem: SaddleProblem, origin: tuple[Array, Array]) -> Sizes:
    squares = problem.X.squared_radius(origin[0]), problem.Y.squared_radius(origin[1])
    return Sizes(squares, (problem.f.strong_convexity(problem.X), problem.g.strong_convexity(problem.Y)))


def reach_from_start(problem: SaddleProblem) -> tuple[float, float]:
    """The distances from the default start, found out once for a problem; see `counted_reach`.

    Examples
    --------
    >>> import saddleslide as ss
    >>> box, zero = ss.domains.Box(-1.0, 1.0, shape=1), ss.functions.Zero()
    >>> reach_from_start(ss.SaddleProblem(f=zero, g=zero, B=np.eye(1), X=box, Y=box))
    (1.0, 1.0)
    """
    assumed = _ASSUMED.get()
    if assumed is not None and assumed[0] is problem:
        return assumed[1]
    if problem not in _KNOWN:
        measured_anew(problem)
    return _KNOWN[problem]


def assumed_slopes(problem: SaddleProblem, slopes: tuple[float, float]) -> AbstractContextManager[None]:
    """Within it `reach_from_start` is what it would be if both parts of the operator at the start had these norms.

    Examples
    --------
    >>> import saddleslide as ss
    >>> q, free = ss.functions.Quadratic(2.0), ss.domains.FullSpace(1)
    >>> problem = ss.SaddleProblem(f=q, g=q, B=np.eye(1), X=free, Y=free)
    >>> with assumed_slopes(problem, (4.0, 0.0)):
    ...     round(reach_from_start(problem)[0], 6)
    2.0
    >>> reach_from_start(problem)
    (0.0, 0.0)
    """
    return assumed_distances(problem, _within(sizes_of(problem), slopes))


@contextmanager
def assumed_distances(problem: SaddleProblem, distances: tuple[float, float]) -> Iterator[None]:
    """Within it `reach_from_start` gives these distances, which a plan knows already: nothing is called.

    Examples
    --------
    >>> import saddleslide as ss
    >>> q, free = ss.functions.Quadratic(2.0), ss.domains.FullSpace(1)
    >>> problem = ss.SaddleProblem(f=q, g=q, B=np.eye(1), X=free, Y=free)
    >>> with assumed_distances(problem, (3.0, 4.0)):
    ...     reach_from_start(problem)
    (3.0, 4.0)
    """
    before = _ASSUMED.set((problem, distances))
    try:
        yield
    finally:
        _ASSUMED.reset(before)


def measured_anew(problem: SaddleProblem) -> Calls:
    """Look from the default start again, whatever is remembered, and say what that took: so every run counts alike.

    Examples
    --------
    >>> import saddleslide as ss
    >>> f, box = ss.functions.LeastSquares(np.eye(2), np.ones(2), ridge=1.0), ss.domains.Box(-1.0, 1.0, shape=2)
    >>> measured_anew(ss.SaddleProblem(f=f, g=ss.functions.Zero(), B=np.eye(2), X=box, Y=box))
    Calls(f=1, g=0, B=0)
    """
    oracles = Oracles(problem)
    try:
        _KNOWN[problem] = counted_reach(oracles, problem.start())
    finally:
        note(oracles.calls)
    return oracles.calls


def _within(sizes: Sizes, slopes: tuple[float, float]) -> tuple[float, float]:
    """The radii, or what strong convexity leaves of them, given the norms of both parts of F(z_0)."""
    (D_x, D_y), (mu_x, mu_y), (F_x, F_y) = sizes.radii, sizes.moduli, slopes
    if min(mu_x, mu_y) > 0.0:
        # In the norm with weights mu the operator is strongly monotone with modulus 1.
        R = math.sqrt(F_x * F_x / mu_x + F_y * F_y / mu_y)
        D_x, D_y = min(D_x, R / math.sqrt(mu_x)), min(D_y, R / math.sqrt(mu_y))
    if mu_x > 0.0 and math.isfinite(D_y):
        D_x = min(D_x, F_x / mu_x + math.sqrt(F_y * D_y / mu_x))
    if mu_y > 0.0 and math.isfinite(D_x):
        D_y = min(D_y, F_y / mu_y + math.sqrt(F_x * D_x / mu_y))
    return D_x, D_y


def counted_reach(oracles: Oracles, origin: tuple[Array, Array], proximal: bool = True) -> tuple[float, float]:
    """Upper bounds on the distances from the start to the solution, block by block; infinite where none is known.

    Radii of the domains, or what strong convexity leaves of them: at a saddle point the operator F satisfies
    mu_x |dx|^2 + mu_y |dy|^2 <= <F(z_0), z_0 - z*>. That takes a gradient of each function, and products away from 0:
    calls like all others. A method that takes proximal steps makes no calls of functions that have one, here neither.

    Examples
    --------
    >>> import saddleslide as ss
    >>> f, box = ss.functions.Quadratic(np.array([[2.0, 1.0], [1.0, 2.0]])), ss.domains.Box(-1.0, 1.0, shape=2)
    >>> oracles = Oracles(ss.SaddleProblem(f=f, g=ss.functions.Quadratic(1.0), B=np.eye(2), X=box, Y=box))
    >>> _ = counted_reach(oracles, (np.ones(2), np.zeros(2)))
    >>> oracles.calls
    Calls(f=1, g=0, B=1)
    """
    problem, (x, y) = oracles.problem, origin
    sizes = _sizes(problem, origin)
    if max(sizes.moduli) == 0.0:
        return sizes.radii
    f_free = isinstance(problem.f, Zero) or (proximal and has_prox(problem.f, problem.X))
    g_free = isinstance(problem.g, Zero) or (proximal and has_prox(problem.g, problem.Y))
    F_x = oracles.free_gradient("f", x) if f_free else oracles.f_gradient(x)
    f_slope = float(np.linalg.norm(F_x + oracles.adjoint(y) if y.any() else F_x))
    F_y = oracles.free_gradient("g", y) if g_free else oracles.g_gradient(y)
    g_slope = float(np.linalg.norm(F_y - oracles.forward(x) if x.any() else F_y))
    return _within(sizes, (f_slope, g_slope))


def step_ratio(distances: tuple[float, float]) -> float:
    """Weight between the blocks, |dy| / |dx|, from what is known of both distances, or 1.

    Examples
    --------
    >>> step_ratio((2.0, 1.0)), step_ratio((math.inf, 1.0))
    (0.5, 1.0)
    """
    D_x, D_y = distances
    usable = all(math.isfinite(D) and D > 0.0 for D in distances)
    return D_y / D_x if usable else 1.0
