"""Metrics that weigh the entries of x: all alike, or each on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from saddleslide.arrays.base import Array, as_real
from saddleslide.errors import InputError
from saddleslide.metrics.base import Entrywise

if TYPE_CHECKING:
    from saddleslide.operators import Coupling


@final
class Blocks(Entrywise):
    """P = scale * identity on the x block.

    Examples
    --------
    >>> Blocks(scale=1.0, coupling_norm=2.0).coupling_symbol
    4.0
    """

    name = "blocks"

    def __init__(self, scale: float, coupling_norm: float) -> None:
        self.symbol, self.coupling_symbol = scale, coupling_norm * coupling_norm

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.name, "symbol": self.symbol}

    def attached(self, coupling: Coupling) -> Blocks:
        return Blocks(float(self.symbol), coupling.norm.upper)


@final
class Diagonal(Entrywise):
    """P = diag(weights), one number > 0 per entry of x; keeps boxes and separable simple terms.

    Parameters
    ----------
    weights : array
        About the diagonal of the Hessian of f; a common factor does not matter.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> A = np.diag([1.0, 1e3])
    >>> problem = ss.SaddleProblem(
    ...     f=ss.functions.LeastSquares(A, [1.0, 1.0]), g=ss.functions.Zero(), B=np.eye(2),
    ...     X=ss.domains.Box(-1.0, 1.0, shape=2), Y=ss.domains.Box(-0.1, 0.1, shape=2))
    >>> ss.solve(problem, tol=1e-6, metric=ss.metrics.Diagonal([1.0, 1e6])).success
    True
    """

    name = "diagonal"

    def __init__(self, weights: Any, coupling_symbol: Array | float = 0.0) -> None:
        symbol = as_real(weights, "Diagonal: weights")
        if not np.all(symbol > 0.0):
            raise InputError(f"Diagonal: the smallest weight is {np.min(symbol, initial=np.inf):g}; expected > 0.")
        self.symbol: Array = symbol
        self.coupling_symbol = coupling_symbol

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.name, "symbol": np.asarray(self.symbol).tolist()}

    def attached(self, coupling: Coupling) -> Diagonal:
        return Diagonal(self.symbol, coupling.norm.upper * coupling.norm.upper)
