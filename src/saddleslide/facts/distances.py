"""How far the solution can be from the start: what a bound needs to become a number of iterations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from saddleslide.arrays.base import Array
    from saddleslide.facts.facts import Facts
    from saddleslide.oracles.oracles import Oracles


@dataclass(frozen=True)
class Sizes:
    """What distances rest on: squared radii of both domains as seen from a point, and moduli of f and g."""

    squared_radii: tuple[float, float]
    moduli: tuple[float, float]

    @property
    def radii(self) -> tuple[float, float]:
        """Largest distances to points of the domains."""
        return math.sqrt(self.squared_radii[0]), math.sqrt(self.squared_radii[1])

    def within(self, slopes: tuple[float, float]) -> tuple[float, float]:
        """The radii, or what strong convexity leaves of them, given the norms of both parts of F(z_0)."""
        (D_x, D_y), (mu_x, mu_y), (F_x, F_y) = self.radii, self.moduli, slopes
        if min(mu_x, mu_y) > 0.0:
            # In the norm with weights mu the operator is strongly monotone with modulus 1.
            R = math.sqrt(F_x * F_x / mu_x + F_y * F_y / mu_y)
            D_x, D_y = min(D_x, R / math.sqrt(mu_x)), min(D_y, R / math.sqrt(mu_y))
        if mu_x > 0.0 and math.isfinite(D_y):
            D_x = min(D_x, F_x / mu_x + math.sqrt(F_y * D_y / mu_x))
        if mu_y > 0.0 and math.isfinite(D_x):
            D_y = min(D_y, F_y / mu_y + math.sqrt(F_x * D_x / mu_y))
        return D_x, D_y


def sizes_at(facts: Facts, start: tuple[Array, Array]) -> Sizes:
    """The sizes as seen from a point."""
    squares = facts.f.domain.squared_radius(start[0]), facts.g.domain.squared_radius(start[1])
    return Sizes(squares, facts.moduli)


def counted_distances(
    facts: Facts, oracles: Oracles, start: tuple[Array, Array], proximal: bool = True
) -> tuple[float, float]:
    """Upper bounds on the distances from the start to the solution, block by block; infinite where none is known.

    Radii of the domains, or what strong convexity leaves of them: at a saddle point the operator F satisfies
    mu_x |dx|^2 + mu_y |dy|^2 <= <F(z_0), z_0 - z*>. That takes a gradient of each function, and products away from 0:
    calls like all others. A method that takes proximal steps makes no calls of functions that have one, here neither.
    """
    (x, y), sizes = start, sizes_at(facts, start)
    if max(sizes.moduli) == 0.0:
        return sizes.radii
    f_free, g_free = (block.is_zero or (proximal and block.has_prox) for block in (facts.f, facts.g))
    F_x = oracles.free_gradient("f", x) if f_free else oracles.f_gradient(x)
    f_slope = float(np.linalg.norm(F_x + oracles.adjoint(y) if y.any() else F_x))
    F_y = oracles.free_gradient("g", y) if g_free else oracles.g_gradient(y)
    g_slope = float(np.linalg.norm(F_y - oracles.forward(x) if x.any() else F_y))
    return sizes.within((f_slope, g_slope))


def step_ratio(distances: tuple[float, float]) -> float:
    """Weight between the blocks, |dy| / |dx|, from what is known of both distances, or 1."""
    D_x, D_y = distances
    usable = all(math.isfinite(D) and D > 0.0 for D in distances)
    return D_y / D_x if usable else 1.0
