"""Inverse problems with an l_p penalty, p >= 2: the gradient of the dual function is (q - 1)-Hölder, 1/p + 1/q = 1."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
import scipy

import saddleslide as ss
from saddleslide.arrays.base import Shape, as_number, as_shape
from saddleslide.domains.entrywise import FullSpace
from saddleslide.errors import InputError
from saddleslide.functions.entrywise import Power
from saddleslide.functions.losses import LeastSquares
from saddleslide.gallery.solution import Fact, ResultArray, Solution, keep_kind
from saddleslide.operators.base import Operator
from saddleslide.operators.explicit import Matrix, as_operator
from saddleslide.operators.structured import FiniteDifferences
from saddleslide.plots import STYLES
from saddleslide.problem import SaddleProblem


@final
@dataclass(frozen=True, eq=False, repr=False)
class InverseSolution(Solution):
    """The signal, its misfit and its penalty.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> problem = ss.gallery.lp_inverse(np.eye(3), [0.0, 3.0, 0.0], weight=1.0, p=2.0)
    >>> problem.read(ss.solve(problem, tol=1e-9)).signal.round(4)
    array([0.75, 1.5 , 0.75])
    """

    f: LeastSquares
    D: Operator
    weight: float
    p: float
    result: ss.Result
    signal = ResultArray("x", "The reconstruction.")

    @property
    def misfit(self) -> float:
        """|A x - b|."""
        return float(np.linalg.norm(self.f.A.forward(self.signal).ravel() - self.f.b.ravel()))

    @property
    def penalty(self) -> float:
        """The weight over p, times the sum of |D x|^p."""
        return self.weight / self.p * float(np.sum(np.abs(self.D.forward(self.signal)) ** self.p))

    @property
    def objective(self) -> float:
        """What is minimised, at the signal; the minimum is at least `result.lower`."""
        return self.f.value(self.signal) + self.penalty

    def facts(self) -> dict[str, Fact]:
        return {
            "objective": self.objective,
            "minimum at least": self.result.lower,
            "misfit |Ax - b|": self.misfit,
            "penalty": self.penalty,
        }

    def draw(self, figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        if self.signal.ndim == 2:
            left.imshow(self.signal, cmap="gray")
        else:
            left.plot(self.signal.ravel(), color=STYLES[0][0])
        left.set(title="reconstruction")
        right.plot(self.f.b.ravel(), color="0.6", label="data")
        right.plot(self.f.A.forward(self.signal).ravel(), color=STYLES[1][0], label="fit")
        right.set(title=f"misfit {self.misfit:.3g}")
        right.legend(frameon=False)


@keep_kind
def lp_inverse(
    A: Any, b: Any, *, weight: float, p: float = 3.0, D: Any = None, ridge: float = 0.0, x_shape: Shape | None = None
) -> SaddleProblem[InverseSolution]:
    """Recover x from b = A x + noise: min 1/2 |A x - b|^2 + ridge/2 |x|^2 + weight/p sum |D x|^p.

    Parameters
    ----------
    A, b : matrix, sparse matrix, LinearOperator, Operator; array
        Forward operator and data.
    weight : float
        Weight of the penalty, > 0.
    p : float, optional
        At least 2: larger values allow many small differences and no large one.
    D : matrix, sparse matrix, LinearOperator or Operator, optional
        What is penalised; by default the differences of neighbours, in both directions for an image.
    ridge : float, optional
        Curvature in directions that A does not see, >= 0. The gap can be certified when it is positive or A injective.
    x_shape : tuple of int, optional
        Shape of x when it is an image.

    Returns
    -------
    SaddleProblem
        `problem.read(result)` is an InverseSolution.

    Examples
    --------
    >>> import numpy as np
    >>> lp_inverse(np.eye(4), np.ones(4), weight=1.0, p=3.0).g
    Power(nu=0.5, any shape)
    """
    exponent, strength = as_number(p, "lp_inverse: p", 2.0), as_number(weight, "lp_inverse: weight", 0.0)
    if strength == 0.0:
        raise InputError("lp_inverse: weight is 0; expected a number > 0. Without a penalty this is least squares.")
    f = LeastSquares(A, b, ridge=ridge, x_shape=None if x_shape is None else as_shape(x_shape, "lp_inverse: x_shape"))
    shape = f.A.x_shape
    if D is not None:
        coupling = as_operator(D, shape, name="lp_inverse: D")
    elif len(shape) == 2:
        coupling = FiniteDifferences(shape)
    elif len(shape) == 1 and shape[0] >= 2:
        n = shape[0]
        steps = [-np.ones(n - 1), np.ones(n - 1)]
        coupling = Matrix(scipy.sparse.diags_array(steps, offsets=[0, 1], shape=(n - 1, n)))
    else:
        raise InputError(f"lp_inverse: x has shape {shape}; expected a signal or an image, or pass D=.")
    q = exponent / (exponent - 1.0)
    # The conjugate of weight/p |z|^p is weight^(1-q) |y|^q / q.
    g = Power(nu=q - 1.0, weight=strength ** (1.0 - q))
    reader = partial(InverseSolution, f, coupling, strength, exponent)
    return SaddleProblem(f=f, g=g, B=coupling, X=FullSpace(shape), Y=FullSpace(coupling.y_shape), reader=reader)
