"""Lower models: constant + <slope, x> + curvature/2 |x|^2, never above the function they stand for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.domains import Domain
from saddleslide.functions.base import Function, errors_at
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.minimum import tilted_minimum
from saddleslide.functions.quadratic import Quadratic
from saddleslide.functions.roundings import FEW, inner_error
from saddleslide.functions.searched import TiltedMinimum

# Part of a modulus that is given up for errors of gradients on unbounded sets.
SPARED = 1e-6


def spared(modulus: float, domain: Domain) -> float:
    """The modulus that models on a domain keep."""
    return modulus if domain.bounded else (1.0 - SPARED) * modulus


@dataclass(frozen=True)
class LowerModel:
    """A quadratic below a convex function everywhere on its domain.

    Gradients at points v_i with weights that sum to 1 give one: the average of
    value_i + <gradient_i, x - v_i> + mu/2 |x - v_i|^2. A run carries such averages along at no oracle call.
    """

    # Value and gradient at 0, and the modulus of strong convexity used.
    constant: float
    slope: Array
    curvature: float = 0.0

    @classmethod
    def rounded(
        cls, function: Function, domain: Domain, point: Array, value: float, gradient: Array, modulus: float
    ) -> LowerModel:
        """The model that one computed gradient gives, below the function on the domain whatever rounding has done."""
        size, slope = float(np.linalg.norm(point)), float(np.linalg.norm(gradient))
        made = errors_at(function, point, value, slope)
        lost = made.value + (inner_error(point.size) + FEW) * (abs(value) + (slope + modulus * size) * size)
        wrong = made.gradient + FEW * (slope + modulus * size)
        if domain.bounded:
            lost += wrong * domain.radius(point)
        elif modulus > 0.0:
            # error |x - p| <= error^2 / (2 part mu) + part mu/2 |x - p|^2
            lost += wrong * wrong / (2.0 * SPARED * modulus)
        return cls.at(point, value - lost, gradient, spared(modulus, domain))

    @classmethod
    def at(cls, point: Array, value: float, gradient: Array, curvature: float = 0.0) -> LowerModel:
        """The model that one gradient gives."""
        if curvature == 0.0:
            return cls(value - float(np.vdot(gradient, point)), gradient.copy())
        square = 0.5 * curvature * float(np.vdot(point, point))
        return cls(value - float(np.vdot(gradient, point)) + square, gradient - curvature * point, curvature)

    def tilted_minimum(self, c: Array, domain: Domain) -> TiltedMinimum:
        """Minimum of the model plus <c, x> over the domain, certified."""
        quadratic = Quadratic(self.curvature) if self.curvature > 0.0 else Zero()
        found = tilted_minimum(quadratic, self.slope + c, domain)
        sizes = float(np.linalg.norm(self.slope)) + float(np.linalg.norm(c))
        slope = FEW * sizes * (domain.radius_at_zero if domain.bounded else float(np.linalg.norm(found.point)))
        rounding = FEW * abs(self.constant) + slope
        return TiltedMinimum(
            found.point, found.value + self.constant, found.error + rounding, "lower model",
            rounding=found.rounding + rounding,
        )  # fmt: skip
