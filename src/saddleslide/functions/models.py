"""Lower models: constant + <slope, x> + curvature/2 |x|^2, never above the function they stand for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.domains import Domain
from saddleslide.functions.base import Function, errors_at
from saddleslide.functions.minimum import tilted_minimum
from saddleslide.functions.quadratic import Quadratic
from saddleslide.functions.roundings import FEW, inner_error
from saddleslide.functions.searched import TiltedMinimum
from saddleslide.functions.simple import Zero

# Part of a modulus that is given up for errors of gradients on unbounded sets.
SPARED = 1e-6


def spared(modulus: float, domain: Domain) -> float:
    """The modulus that models on a domain keep.

    Examples
    --------
    >>> import saddleslide as ss
    >>> spared(2.0, ss.domains.Ball(1.0, shape=2)), spared(2.0, ss.domains.FullSpace(2)) < 2.0
    (2.0, True)
    """
    return modulus if domain.bounded else (1.0 - SPARED) * modulus


@dataclass(frozen=True)
class LowerModel:
    """A quadratic below a convex function everywhere on its domain.

    Gradients at points v_i with weights that sum to 1 give one: the average of
    value_i + <gradient_i, x - v_i> + mu/2 |x - v_i|^2. A run carries such averages along at no oracle call.

    Parameters
    ----------
    constant : float
        Value at 0.
    slope : Array
        Gradient at 0.
    curvature : float
        Modulus of strong convexity used.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> model = LowerModel.at(np.array([1.0]), value=0.5, gradient=np.array([1.0]), curvature=1.0)
    >>> model.constant, model.slope
    (0.0, array([0.]))
    """

    constant: float
    slope: Array
    curvature: float = 0.0

    @classmethod
    def rounded(
        cls, function: Function, domain: Domain, point: Array, value: float, gradient: Array, modulus: float
    ) -> LowerModel:
        """The model that one computed gradient gives, below the function on the domain whatever rounding has done.

        Examples
        --------
        >>> import numpy as np, saddleslide as ss
        >>> q, box = ss.functions.Quadratic(1.0), ss.domains.Box(-1.0, 1.0, shape=1)
        >>> -0.5 - 1e-14 < LowerModel.rounded(q, box, np.ones(1), 0.5, np.ones(1), 0.0).constant < -0.5
        True
        """
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
        """The model that one gradient gives.

        Examples
        --------
        >>> import numpy as np
        >>> LowerModel.at(np.array([2.0]), value=1.0, gradient=np.array([3.0])).constant
        -5.0
        """
        if curvature == 0.0:
            return cls(value - float(np.vdot(gradient, point)), gradient.copy())
        square = 0.5 * curvature * float(np.vdot(point, point))
        return cls(value - float(np.vdot(gradient, point)) + square, gradient - curvature * point, curvature)

    def tilted_minimum(self, c: Array, domain: Domain) -> TiltedMinimum:
        """Minimum of the model plus <c, x> over the domain, certified.

        Examples
        --------
        >>> import numpy as np, saddleslide as ss
        >>> model = LowerModel(1.0, np.array([1.0, -2.0]))
        >>> model.tilted_minimum(np.zeros(2), ss.domains.Box(-1.0, 1.0, shape=2)).value
        -2.0
        """
        quadratic = Quadratic(self.curvature) if self.curvature > 0.0 else Zero()
        found = tilted_minimum(quadratic, self.slope + c, domain)
        sizes = float(np.linalg.norm(self.slope)) + float(np.linalg.norm(c))
        slope = FEW * sizes * (domain.radius_at_zero if domain.bounded else float(np.linalg.norm(found.point)))
        rounding = FEW * abs(self.constant) + slope
        return TiltedMinimum(
            found.point, found.value + self.constant, found.error + rounding, "lower model",
            rounding=found.rounding + rounding,
        )  # fmt: skip
