"""What several methods share: two views of a problem with their constants, a search, and the calls of a bound.

The monotone operator F(x, y) = (f'(x) + B^T y, g'(y) - Bx), in a norm |z|^2 = w_x |x|^2 + w_y |y|^2 that states hold as
its two weights. The primal function phi(x) = f(x) + max over y of <y, Bx> - g(y), where the maximum is known exactly:
its gradients are f'(x) + B^T y(x), by Danskin's theorem, and nothing is called for B = 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from saddleslide.arrays.base import zeros
from saddleslide.certificates.candidate import Candidate, Linearisation
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.trust import value_aside
from saddleslide.methods.base import Array, Calls, Facts, Method, Oracles, Point, option
from saddleslide.oracles.calls import MOST_SHORTENED, SHORTER
from saddleslide.theory.bounds import budget
from saddleslide.theory.holder import Holder, total
from saddleslide.theory.levels import levelwise_terms

Weights = tuple[float, float]
Found = TypeVar("Found")
# Doublings after which an oracle is taken to be broken; rounding can not need more.
_MOST_DOUBLINGS = 200
# No bound of this package has constants that make it smaller than this part of the budgets (test_choice.py).
_PART = 0.25


def norm_option() -> Any:
    """The setting `metric` of a method that works in such a norm."""
    return option("balanced", "both domains equally large, or the Euclidean norm", ("balanced", "identity"))


def operator(oracles: Oracles, z: Point) -> Point:
    """F at z: one gradient of each function that is not Zero(), and two products."""
    pull = apply_coupling(oracles, z)
    return add(oracles.gradients(*z), pull)


def apply_coupling(oracles: Oracles, z: Point) -> Point:
    """(B^T y, -Bx): two products."""
    return oracles.adjoint(z[1]), -oracles.forward(z[0])


def move(oracles: Oracles, z: Point, direction: Point, eta: float, weights: Weights) -> Point:
    """Projection of z - eta P^-1 direction, P the diagonal of the weights."""
    x = oracles.problem.X.project(z[0] - (eta / weights[0]) * direction[0])
    return x, oracles.problem.Y.project(z[1] - (eta / weights[1]) * direction[1])


def linearise(oracles: Oracles, x: Array, y: Array) -> Candidate:
    """A point to be judged, with a gradient of each costly part there; nothing is called for simple f and g."""
    (f, _), (g, simple) = oracles.problem.f_parts, oracles.problem.g_parts
    if isinstance(f, Zero) and isinstance(g, Zero):
        return Candidate(x, y, 0.0)
    made = (0.0, zeros(x.shape, x)) if isinstance(f, Zero) else oracles.value_and_gradient("f", f, x)
    f_at = Linearisation(x, *made)
    if isinstance(g, Zero):
        return Candidate(x, y, f_at.value, linearisation=f_at)
    g_at = Linearisation(y, *oracles.value_and_gradient("g", g, y))
    total = g_at.value + value_aside(simple, y)
    return Candidate(x, y, f_at.value, linearisation=f_at, g_value=total, g_linearisation=g_at)


def add(z: Point, w: Point) -> Point:
    """The sum."""
    return z[0] + w[0], z[1] + w[1]


def mix(z: Point, w: Point, alpha: float) -> Point:
    """(1 - alpha) z + alpha w."""
    return (1.0 - alpha) * z[0] + alpha * w[0], (1.0 - alpha) * z[1] + alpha * w[1]


@dataclass(frozen=True)
class Field:
    """The constants of F in a norm, and sizes of the domain as seen from a start."""

    facts: Facts
    start: Point
    weights: Weights

    @classmethod
    def at(cls, facts: Facts, start: Point, metric: str) -> Field:
        """In the Euclidean norm, or the one in which both domains are equally large as seen from the start."""
        radii = facts.f.domain.radius(start[0]), facts.g.domain.radius(start[1])
        if metric != "balanced" or not all(math.isfinite(radius) and radius > 0.0 for radius in radii):
            return cls(facts, start, (1.0, 1.0))
        return cls(facts, start, (radii[1] / radii[0], radii[0] / radii[1]))

    @property
    def smooth(self) -> float:
        """max(L_f / w_x, L_g / w_y); infinite where a gradient is not known to be Lipschitz."""
        return max(self.facts.f.lipschitz / self.weights[0], self.facts.g.lipschitz / self.weights[1])

    @property
    def coupling(self) -> float:
        """|B| / sqrt(w_x w_y)."""
        return self.facts.norm / math.sqrt(self.weights[0] * self.weights[1])

    @property
    def lipschitz(self) -> float:
        """A Lipschitz constant of F."""
        return self.smooth + self.coupling

    @property
    def modulus(self) -> float:
        """min(mu_f / w_x, mu_g / w_y): strong monotonicity of F."""
        return min(self.facts.f.modulus / self.weights[0], self.facts.g.modulus / self.weights[1])

    @property
    def holder(self) -> Holder | None:
        """A Hölder condition of F; None where a function declares none, or it needs bounded domains."""
        blocks = zip((self.facts.f.holder, self.facts.g.holder), self.weights, strict=True)
        parts = [condition and condition.in_metric(weight) for condition, weight in blocks]
        return total([*parts, Holder(1.0, self.coupling)], math.sqrt(self.diameter_squared))

    @property
    def diameter_squared(self) -> float:
        """Largest squared distance between two points of the domain."""
        diameters = self.facts.f.domain.diameter(), self.facts.g.domain.diameter()
        return self.weights[0] * diameters[0] ** 2 + self.weights[1] * diameters[1] ** 2

    @property
    def Omega(self) -> float:
        """Largest squared distance from the start to a point of the domain."""
        squares = self.facts.f.domain.squared_radius(self.start[0]), self.facts.g.domain.squared_radius(self.start[1])
        return self.weights[0] * squares[0] + self.weights[1] * squares[1]


def calls_of(facts: Facts, f: float, g: float, B: float) -> Calls | None:
    """Whole calls, none of Zero(); None where a bound promises nothing."""
    if not all(map(math.isfinite, (f, g, B))):
        return None
    return Calls(0 if facts.f.is_zero else math.ceil(f), 0 if facts.g.is_zero else math.ceil(g), math.ceil(B))


def fewest_on_bounded(facts: Facts, tol: float) -> Calls | None:
    """A part of the budgets of Corollary 3.6, each in the norm that makes it smallest; None on unbounded domains."""
    if not (facts.f.domain.bounded and facts.g.domain.bounded):
        return None
    squares, flat = facts.sizes.squared_radii, Holder(1.0, 0.0)
    # Without curvature on a block there are no level-wise norms, and on a single point none is the smallest.
    if not (min(facts.norm, *squares) > 0.0 and math.isfinite(max(facts.norm, *squares))):
        return Calls()
    terms = levelwise_terms(facts.f.holder or flat, facts.g.holder or flat, facts.norm, *squares)
    f, g, B = (_PART * budget(term, tol) for term in terms)
    # Four products a step.
    return calls_of(facts, f, g, 4.0 * B)


@dataclass(frozen=True, repr=False)
class BoundedMethod(Method):
    """A method whose bound is one over bounded domains."""

    def fewest_calls(self, facts: Facts, tol: float) -> Calls | None:
        return fewest_on_bounded(facts, tol)


def note_unbounded(facts: Facts, blocks: str = "XY") -> tuple[str, ...]:
    """A note for the plan where a bound over the domains does not apply."""
    domains = {"X": facts.f.domain, "Y": facts.g.domain}
    free = [name for name in blocks if not domains[name].bounded]
    verb = "are" if len(free) > 1 else "is"
    return (f"{' and '.join(free)} {verb} unbounded: the bound on the gap does not apply",) if free else ()


def respond(oracles: Oracles, x: Array) -> tuple[Array, float, Array]:
    """The maximiser y of <y, Bx> - g(y), the maximum, and Bx: one product."""
    problem = oracles.problem
    Bx = oracles.forward(x) if problem.coupling.norm.upper > 0.0 else zeros(problem.Y.shape, x)
    found = oracles.closed_minimum("g", -Bx)
    return found.point, -found.value, Bx


def pull(oracles: Oracles, y: Array) -> Array:
    """B^T y, a gradient of the maximum where y is the response: one product."""
    problem = oracles.problem
    return oracles.adjoint(y) if problem.coupling.norm.upper > 0.0 else zeros(problem.X.shape, y)


def primal_smoothness(facts: Facts) -> Holder | None:
    """A Hölder condition of phi on X; None where there is none.

    Of the maximum: |B|^2 / mu_g where g is strongly convex, else |B| diam(Y) with exponent 0.
    """
    norm, mu, diameter = facts.norm, facts.g.modulus, facts.g.domain.diameter()
    maximum = Holder(0.0, norm * diameter) if math.isfinite(diameter) else None
    if norm == 0.0 or mu > 0.0:
        maximum = Holder(1.0, norm**2 / mu if norm > 0.0 else 0.0)
    return total([facts.f.holder, maximum], facts.f.domain.diameter())


def backtrack(oracles: Oracles, L: float, trial: Callable[[float], tuple[bool, Found]]) -> tuple[float, Found]:
    """The first of the curvatures L, 2L, 4L, ... whose trial passes, and what that found."""
    shortened = 0
    for _ in range(_MOST_DOUBLINGS):
        tried = oracles.try_out(partial(trial, L)) if shortened < MOST_SHORTENED else trial(L)
        if tried is None:
            # An oracle overflows there: a larger L keeps nearer to where it is finite.
            shortened, L = shortened + 1, SHORTER * L
            continue
        passed, found = tried
        if passed:
            break
        L *= 2.0
    return L, found
