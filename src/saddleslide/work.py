"""What a call costs, estimated from sizes: deterministic, in operations. Declared costs replace it."""

from __future__ import annotations

import math

from saddleslide.couplings import Coupling, FiniteDifferences, Matrix
from saddleslide.functions import Function
from saddleslide.functions.base import Scaled, Sum
from saddleslide.functions.lifted import LinearModel
from saddleslide.problem import SaddleProblem

# A function or product of unknown code is taken to be this much dearer than a pass over its vector.
_UNKNOWN = 50.0
_FEWEST, _MOST = 12, 500


def product_cost(coupling: Coupling) -> float:
    """Operations of one product.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> product_cost(ss.couplings.as_coupling(np.eye(10)))
    200.0
    """
    size = math.prod(coupling.x_shape) + math.prod(coupling.y_shape)
    if isinstance(coupling, FiniteDifferences):
        return 2.0 * size
    if isinstance(coupling, Matrix):
        return 2.0 * coupling.stored
    return _UNKNOWN * size


def gradient_cost(f: Function, size: int) -> float:
    """Operations of one gradient.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> gradient_cost(ss.functions.LeastSquares(np.eye(10), np.zeros(10)), 10)
    400.0
    """
    if isinstance(f, LinearModel):
        return 2.0 * product_cost(f.A)
    if isinstance(f, Sum):
        return sum(gradient_cost(part, size) for part in f.parts)
    if isinstance(f, Scaled):
        return gradient_cost(f.function, size)
    return 4.0 * size if f.separable else _UNKNOWN * size


def inner_steps_per_gradient(problem: SaddleProblem, costs: tuple[float, float, float] | None, metric: str) -> int:
    """Coupling steps that cost as much as one gradient of f, within sensible limits."""
    size = math.prod(problem.X.shape)
    vectors = 10.0 * (size + math.prod(problem.Y.shape))
    transforms = 10.0 * size * math.log2(max(size, 2)) if metric == "spectral" else 0.0
    if costs is None:
        gradient, product = gradient_cost(problem.f, size), product_cost(problem.coupling)
    else:
        gradient, product = costs[0], costs[2]
        vectors = transforms = 0.0
    step = 2.0 * product + vectors + transforms
    return int(min(max(gradient / step if step > 0.0 else _MOST, _FEWEST), _MOST))
