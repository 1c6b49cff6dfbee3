"""Lower models: constant + <slope, x> + curvature/2 |x|^2, never above the function they stand for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from saddleslide.arrays import Array
from saddleslide.domains import Domain
from saddleslide.functions.minimum import tilted_minimum
from saddleslide.functions.quadratic import Quadratic
from saddleslide.functions.searched import TiltedMinimum
from saddleslide.functions.simple import Zero


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
        rounding = 8.0 * float(np.finfo(np.float64).eps) * abs(self.constant)
        return TiltedMinimum(found.point, found.value + self.constant, found.error + rounding, "lower model")
