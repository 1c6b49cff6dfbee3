"""How far the solution can be from the start: what a bound needs to become a number of iterations."""

from __future__ import annotations

import math
from collections.abc import Callable
from weakref import WeakKeyDictionary

import numpy as np

from saddleslide.arrays import Array, read_only
from saddleslide.domains import Domain
from saddleslide.functions import Function, Zero, split_simple
from saddleslide.oracles import Calls, Oracles
from saddleslide.problem import SaddleProblem

# Remembered as long as the problem lives: every prediction asks.
_KNOWN: WeakKeyDictionary[SaddleProblem, tuple[float, float]] = WeakKeyDictionary()


def reach_from_start(problem: SaddleProblem) -> tuple[float, float]:
    """`reach` from the default start, computed once for a problem.

    Examples
    --------
    >>> import saddleslide as ss
    >>> box, zero = ss.domains.Box(-1.0, 1.0, shape=1), ss.functions.Zero()
    >>> reach_from_start(ss.SaddleProblem(f=zero, g=zero, B=np.eye(1), X=box, Y=box))
    (1.0, 1.0)
    """
    if problem not in _KNOWN:
        _KNOWN[problem] = reach(problem, problem.start())
    return _KNOWN[problem]


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
    _KNOWN[problem] = reach(problem, problem.start(), oracles)
    return oracles.calls


def reach(
    problem: SaddleProblem, origin: tuple[Array, Array], oracles: Oracles | None = None, simple_too: bool = False
) -> tuple[float, float]:
    """Upper bounds on the distances from the start to the solution, block by block; infinite where none is known.

    Radii of the domains, or what strong convexity leaves of them: at a saddle point the operator F satisfies
    mu_x |dx|^2 + mu_y |dy|^2 <= <F(z_0), z_0 - z*>. Where there is strong convexity that costs one gradient of each
    function and, away from 0, two products, counted by the oracles of a run; gradients of functions with a proximal
    step only if `simple_too`.

    Examples
    --------
    >>> import saddleslide as ss
    >>> f = ss.functions.Quadratic(2.0) + ss.functions.Linear(np.array([2.0, 0.0]))
    >>> X, Y, zero = ss.domains.FullSpace(2), ss.domains.Box(-1.0, 1.0, shape=2), ss.functions.Zero()
    >>> problem = ss.SaddleProblem(f=f, g=zero, B=np.zeros((2, 2)), X=X, Y=Y)
    >>> [round(distance, 6) for distance in reach(problem, problem.start())]
    [1.0, 1.414214]
    """
    D_x, D_y = problem.X.radius(origin[0]), problem.Y.radius(origin[1])
    mu_x, mu_y = problem.f.strong_convexity(problem.X), problem.g.strong_convexity(problem.Y)
    if max(mu_x, mu_y) == 0.0:
        return D_x, D_y
    F_x, F_y = _slopes(Oracles(problem) if oracles is None else oracles, origin, simple_too)
    if min(mu_x, mu_y) > 0.0:
        # In the norm with weights mu the operator is strongly monotone with modulus 1.
        R = math.sqrt(F_x**2 / mu_x + F_y**2 / mu_y)
        D_x, D_y = min(D_x, R / math.sqrt(mu_x)), min(D_y, R / math.sqrt(mu_y))
    if mu_x > 0.0 and math.isfinite(D_y):
        D_x = min(D_x, F_x / mu_x + math.sqrt(F_y * D_y / mu_x))
    if mu_y > 0.0 and math.isfinite(D_x):
        D_y = min(D_y, F_y / mu_y + math.sqrt(F_x * D_x / mu_y))
    return D_x, D_y


def _slopes(oracles: Oracles, origin: tuple[Array, Array], simple_too: bool) -> tuple[float, float]:
    """Norms of f'(x) + B^T y and g'(y) - Bx at the start."""
    problem, (x, y) = oracles.problem, origin

    def gradient(function: Function, domain: Domain, point: Array, counted: Callable[[Array], Array]) -> Array:
        if isinstance(function, Zero):
            return np.zeros_like(point)
        simple = isinstance(split_simple(function, domain)[0], Zero) and not simple_too
        return np.array(function.gradient(read_only(point)) if simple else counted(point))

    F_x = gradient(problem.f, problem.X, x, oracles.f_gradient)
    F_y = gradient(problem.g, problem.Y, y, oracles.g_gradient)
    # At 0, where most runs start, both products are known.
    F_x = F_x + oracles.adjoint(y) if y.any() else F_x
    F_y = F_y - oracles.forward(x) if x.any() else F_y
    return float(np.linalg.norm(F_x)), float(np.linalg.norm(F_y))


def step_ratio(distances: Callable[[], tuple[float, float]], given: float | None = None) -> float:
    """Weight between the blocks, |dy| / |dx|: given, or from what is known of both distances, or 1.

    Examples
    --------
    >>> import saddleslide as ss
    >>> X, Y, zero = ss.domains.Box(-2.0, 2.0, shape=1), ss.domains.Box(-1.0, 1.0, shape=1), ss.functions.Zero()
    >>> problem = ss.SaddleProblem(f=zero, g=zero, B=np.eye(1), X=X, Y=Y)
    >>> step_ratio(lambda: reach_from_start(problem))
    0.5
    """
    if given is not None:
        return given
    D_x, D_y = distances()
    usable = all(math.isfinite(D) and D > 0.0 for D in (D_x, D_y))
    return D_y / D_x if usable else 1.0
