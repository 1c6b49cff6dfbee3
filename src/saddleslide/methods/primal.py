"""The problem as a minimisation: phi(x) = f(x) + max over y of <y, Bx> - g(y), where the maximum is known exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass

from saddleslide.arrays.base import Array, zeros
from saddleslide.errors import InputError
from saddleslide.functions import Zero
from saddleslide.methods.requirements import smoothness_of
from saddleslide.oracles.oracles import Oracles
from saddleslide.problem import SaddleProblem
from saddleslide.theory.holder import Holder


@dataclass(frozen=True)
class Response:
    """The best y at a point: where it is, the maximum there, and the product it answers to."""

    y: Array
    value: float
    Bx: Array


class Primal:
    """Counted access to phi: gradients f'(x) + B^T y(x) by Danskin's theorem; nothing is called for Zero() or B = 0.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> box, zero = ss.domains.Box(-1.0, 1.0, shape=2), ss.functions.Zero()
    >>> primal = Primal(Oracles(ss.SaddleProblem(f=zero, g=zero, B=np.eye(2), X=box, Y=box)))
    >>> primal.response(np.array([0.5, -0.25])).value
    0.75
    """

    def __init__(self, oracles: Oracles) -> None:
        self.oracles, self.problem = oracles, oracles.problem
        self.coupled = is_coupled(self.problem)
        self.smooth = not isinstance(self.problem.f, Zero)
        self.lift = oracles.lifted(self.problem.f)
        self._alone: Response | None = None

    def response(self, x: Array) -> Response:
        """Maximiser of <y, Bx> - g(y): one product."""
        if not self.coupled and self._alone is not None:
            return self._alone
        Bx = self.oracles.forward(x) if self.coupled else zeros(self.problem.Y.shape, x)
        found = self.oracles.closed_minimum("g", -Bx)
        self._alone = Response(found.point, -found.value, Bx)
        return self._alone

    def pull(self, response: Response) -> Array:
        """B^T y: one product."""
        return self.oracles.adjoint(response.y) if self.coupled else zeros(self.problem.X.shape, response.y)

    def gradient(self, x: Array, response: Response) -> Array:
        """A (sub)gradient of phi at x, given the response there."""
        pull = self.pull(response)
        return pull + self.oracles.f_gradient(x) if self.smooth else pull


def primal_smoothness(problem: SaddleProblem) -> Holder | None:
    """A Hölder condition of phi on X; None where f declares none.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> box, q = ss.domains.Box(-1.0, 1.0, shape=1), ss.functions.Quadratic(2.0)
    >>> B = ss.operators.as_coupling(np.eye(1), norm=1.0)
    >>> primal_smoothness(ss.SaddleProblem(f=q, g=q, B=B, X=box, Y=box))
    Holder(nu=1.0, H=2.5)
    """
    f, coupling = smoothness_of(problem.f, problem.X), maximum_smoothness(problem)
    if f is None or coupling is None:
        return None
    try:
        return f.plus(coupling, problem.X.diameter())
    except InputError:
        return None


def is_coupled(problem: SaddleProblem) -> bool:
    """Whether B is not known to be 0.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> box, zero = ss.domains.Box(-1.0, 1.0, shape=1), ss.functions.Zero()
    >>> is_coupled(ss.SaddleProblem(f=zero, g=zero, B=np.zeros((1, 1)), X=box, Y=box))
    False
    """
    return problem.coupling.norm.upper > 0.0


def maximum_smoothness(problem: SaddleProblem) -> Holder | None:
    """Of max over y of <y, Bx> - g(y): |B|^2 / mu_g where g is strongly convex, else |B| diam(Y) with exponent 0.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> box, zero = ss.domains.Box(-1.0, 1.0, shape=1), ss.functions.Zero()
    >>> B = ss.operators.as_coupling(np.eye(1), norm=1.0)
    >>> maximum_smoothness(ss.SaddleProblem(f=zero, g=ss.functions.Quadratic(2.0), B=B, X=box, Y=box))
    Holder(nu=1.0, H=0.5)
    """
    norm, mu = float(problem.coupling.norm.upper), problem.g.strong_convexity(problem.Y)
    if norm == 0.0 or mu > 0.0:
        return Holder(1.0, norm**2 / mu if norm > 0.0 else 0.0)
    diameter = problem.Y.diameter()
    return Holder(0.0, norm * diameter) if math.isfinite(diameter) else None
