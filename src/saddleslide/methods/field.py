"""F(x, y) = (f'(x) + B^T y, g'(y) - Bx), the monotone operator of a problem, and its constants in a norm of blocks.

The norm is |z|^2 = w_x |x|^2 + w_y |y|^2. States hold it as its two weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from saddleslide.methods.base import option
from saddleslide.oracles.calls import Calls
from saddleslide.theory.holder import Holder, total

if TYPE_CHECKING:
    from saddleslide.arrays.base import Array
    from saddleslide.facts.facts import Facts
    from saddleslide.oracles.oracles import Oracles

Point: TypeAlias = "tuple[Array, Array]"
Weights = tuple[float, float]


def metric_option() -> Any:
    """The setting `metric` of a method that works in such a norm."""
    return option("balanced", "both domains equally large, or the Euclidean norm", ("balanced", "identity"))


def operator(oracles: Oracles, z: Point) -> Point:
    """F at z: one gradient of each function that is not Zero(), and two products."""
    pull = coupling(oracles, z)
    return add(oracles.gradients(*z), pull)


def coupling(oracles: Oracles, z: Point) -> Point:
    """(B^T y, -Bx): two products."""
    return oracles.adjoint(z[1]), -oracles.forward(z[0])


def move(oracles: Oracles, z: Point, direction: Point, eta: float, weights: Weights) -> Point:
    """Projection of z - eta P^-1 direction, P the diagonal of the weights."""
    x = oracles.problem.X.project(z[0] - (eta / weights[0]) * direction[0])
    return x, oracles.problem.Y.project(z[1] - (eta / weights[1]) * direction[1])


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
        X, Y = self.facts.f.domain, self.facts.g.domain
        return self.weights[0] * X.diameter() ** 2 + self.weights[1] * Y.diameter() ** 2

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
