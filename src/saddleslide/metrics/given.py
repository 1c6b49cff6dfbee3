"""Any P of the user's, known through products and solves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, final

import numpy as np

from saddleslide.arrays.base import Array, as_number, beside
from saddleslide.arrays.kinds import NUMPY, refuse_masked
from saddleslide.errors import InputError
from saddleslide.metrics.base import Metric
from saddleslide.operators import Coupling
from saddleslide.operators.call import made

# Power iterations find the norm of B in the metric; the margin covers what they leave.
_ITERATIONS, _MARGIN = 40, 1.1


@final
class Operator(Metric):
    """P known through x -> P x and its inverse; for a block without active constraint.

    Parameters
    ----------
    apply, solve : callable
        x -> P x and x -> P^-1 x, P symmetric and positive definite, arrays of the shape of x in and out.
    largest : float
        Upper bound on the eigenvalues of P.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> A, b = np.array([[1.0, 0.0], [1.0, 1e-2]]), np.ones(2)
    >>> H = A.T @ A
    >>> metric = ss.metrics.Operator(lambda x: H @ x, lambda x: np.linalg.solve(H, x), largest=2.0)
    >>> problem = ss.SaddleProblem(
    ...     f=ss.functions.LeastSquares(A, b), g=ss.functions.Zero(), B=np.eye(2),
    ...     X=ss.domains.FullSpace(2), Y=ss.domains.Box(-1e-3, 1e-3, shape=2))
    >>> ss.solve(problem, rtol=1e-6, metric=metric).success
    True
    """

    name = "operator"

    def __init__(
        self,
        apply: Callable[[Array], Array],
        solve: Callable[[Array], Array],
        largest: float,
        coupling_factor: float = 0.0,
    ) -> None:
        if not (callable(apply) and callable(solve)):
            raise InputError("Operator: apply and solve are expected to be functions of an array.")
        self._apply, self._solve = apply, solve
        self._largest = as_number(largest, "Operator: largest", 0.0)
        if self._largest == 0.0:
            raise InputError("Operator: largest is 0; expected an upper bound > 0 on the eigenvalues of P.")
        self.coupling_factor = coupling_factor

    @property
    def numbers(self) -> tuple[Array | float, ...]:
        return (self.coupling_factor,)

    def with_numbers(self, *numbers: Array | float) -> Operator:
        return Operator(self._apply, self._solve, self._largest, float(numbers[0]))

    def attached(self, coupling: Coupling) -> Operator:
        """S = c P with c about the largest eigenvalue of P^-1 B^T B, by seeded power iterations."""
        x = np.random.default_rng(0).standard_normal(coupling.x_shape)
        self._check(x)
        c = 0.0
        for _ in range(_ITERATIONS):
            x = x / np.sqrt(float(np.vdot(x, self.apply(x))))
            image = made(coupling, partial(coupling.forward, x))
            c = max(c, float(np.vdot(image, image)))
            x = self._solved(made(coupling, partial(coupling.adjoint, image)))
            if not np.any(x):
                break
        return self.with_numbers(_MARGIN * c)

    def _check(self, x: Array) -> None:
        """Refuse a pair that is not an operator and its inverse, before any work."""
        image = self.apply(x)
        back = self._solved(image)
        size = float(np.vdot(x, image))
        if not size > 0.0:
            raise InputError(f"Operator: <x, P x> is {size:g} for a random x; expected a positive definite P.")
        error = float(np.linalg.norm(back - x) / np.linalg.norm(x))
        if not error < 1e-3:
            raise InputError(f"Operator: solve(apply(x)) differs from x by {error:.1e} relative; expected the inverse.")

    def apply(self, X: Array) -> Array:
        return _shaped(NUMPY.handed(self._apply, X), X, "apply")

    def _solved(self, T: Array) -> Array:
        return _shaped(NUMPY.handed(self._solve, T), T, "solve")

    def coupling_apply(self, X: Array) -> Array:
        return self.coupling_factor * self.apply(X)

    def solve(self, T: Array, L: float, rho: float) -> Array:
        return self._solved(T) / (L + rho * self.coupling_factor)

    @property
    def largest(self) -> float:
        return self._largest

    @property
    def balance(self) -> float:
        return 1.0 / self.coupling_factor if self.coupling_factor > 0.0 else np.inf


def _shaped(answer: Any, like: Array, name: str) -> Array:
    refuse_masked(answer)
    found = np.asarray(answer, dtype=np.float64)
    if found.shape != like.shape:
        raise InputError(f"Operator: {name} returned shape {found.shape} for an array of shape {like.shape}.")
    return beside(like, found)  # type: ignore[no-any-return]
