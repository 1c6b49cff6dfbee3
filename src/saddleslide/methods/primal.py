"""The problem as a minimisation: phi(x) = f(x) + max over y of <y, Bx> - g(y), where the maximum is known exactly.

Its gradients are f'(x) + B^T y(x), by Danskin's theorem. Nothing is called for B = 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from saddleslide.arrays.base import Array, zeros
from saddleslide.theory.holder import Holder, total

if TYPE_CHECKING:
    from saddleslide.facts.facts import Facts
    from saddleslide.oracles.oracles import Oracles


@dataclass(frozen=True)
class Response:
    """The best y at a point: where it is, the maximum there, and the product it answers to."""

    y: Array
    value: float
    Bx: Array


def respond(oracles: Oracles, x: Array) -> Response:
    """The maximiser of <y, Bx> - g(y): one product."""
    Bx = oracles.forward(x) if _is_coupled(oracles) else zeros(oracles.problem.Y.shape, x)
    found = oracles.closed_minimum("g", -Bx)
    return Response(found.point, -found.value, Bx)


def pull(oracles: Oracles, response: Response) -> Array:
    """B^T y, a gradient of the maximum: one product."""
    return oracles.adjoint(response.y) if _is_coupled(oracles) else zeros(oracles.problem.X.shape, response.y)


def _is_coupled(oracles: Oracles) -> bool:
    return bool(oracles.problem.coupling.norm.upper > 0.0)


def primal_smoothness(facts: Facts) -> Holder | None:
    """A Hölder condition of phi on X; None where there is none.

    Of the maximum: |B|^2 / mu_g where g is strongly convex, else |B| diam(Y) with exponent 0.
    """
    norm, mu, diameter = facts.norm, facts.g.modulus, facts.g.domain.diameter()
    maximum = Holder(0.0, norm * diameter) if math.isfinite(diameter) else None
    if norm == 0.0 or mu > 0.0:
        maximum = Holder(1.0, norm**2 / mu if norm > 0.0 else 0.0)
    return total([facts.f.holder, maximum], facts.f.domain.diameter())
