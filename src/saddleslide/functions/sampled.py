"""Functions with sampled gradients: mini-batches of rows or of parts, and added noise. They wrap an exact function."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property, partial
from numbers import Integral
from typing import Any, final

import numpy as np
import scipy

from saddleslide.arrays.base import Array, as_number, length_of, on_host, receive
from saddleslide.arrays.kinds import ArrayKind, to_host
from saddleslide.domains.base import Domain
from saddleslide.errors import InputError, UnknownConstantError
from saddleslide.functions.base import Function
from saddleslide.functions.linear_model import LinearModel
from saddleslide.functions.parts import Partitioned
from saddleslide.functions.scaled import Wrapper
from saddleslide.functions.trust import gradient_aside, is_ours, run_aside
from saddleslide.functions.variance import EXACT, Variance
from saddleslide.operators.explicit import Matrix, Stored

# Points beside the start where a variance is looked at.
_PROBES = 4


def estimate_variance(
    variance_at: Callable[[Array], float],
    gradient: Callable[[Array], Array],
    L: float,
    domain: Domain,
    start: Array | None = None,
) -> Variance:
    """The largest variance at a few points: where a run starts, and where a gradient step of length 1/L leads.

    An estimate, not a bound: a run that leaves these points may meet larger ones.
    """
    x = domain.project(np.zeros(domain.shape)) if start is None else start
    step = gradient(x) / L if L > 0.0 else np.zeros(domain.shape)
    distance = length_of(step) / math.sqrt(max(step.size, 1))
    rng = np.random.default_rng(0)
    points = [x, domain.project(x - step), domain.project(x - 2.0 * step)]
    points += [domain.project(x - step + distance * rng.standard_normal(domain.shape)) for _ in range(_PROBES)]
    worst = max(variance_at(point) for point in points)
    return Variance(worst, f"estimate: the largest at {len(points)} points near the start", estimate=True)


class Sampled(Wrapper):
    """An exact function whose `sample` is random. Value, gradient and constants are those of the exact one.

    Examples
    --------
    >>> import saddleslide as ss
    >>> isinstance(ss.functions.Noisy(ss.functions.Quadratic(1.0), sigma=0.1), Sampled)
    True
    """

    def stays_on_host(self, kind: ArrayKind) -> tuple[str, ...]:
        return (f"{type(self).__name__}: draws are made by NumPy", *self.function.stays_on_host(kind))

    @abstractmethod
    def sample(self, x: Array, rng: np.random.Generator, out: Array | None = None) -> Array:
        """A fresh draw, unbiased."""

    @abstractmethod
    def variance(self, domain: Domain, start: Array | None = None) -> Variance:
        """A bound on the variance of `sample`."""


class Batched(Sampled):
    """A sum of many terms whose gradient is sampled from `batch` of them, drawn without replacement."""

    def __init__(self, function: Function, terms: int, batch: Any, variance: float | None, noun: str = "") -> None:
        super().__init__(function)
        name = type(self).__name__
        if isinstance(batch, bool) or not isinstance(batch, Integral) or not 1 <= int(batch) <= terms:
            raise InputError(f"{name}: batch is {batch!r}; expected a whole number from 1 to {terms}{noun}.")
        self.drawn = self._batch, self._terms = int(batch), terms
        self.sampled = self._batch < terms
        self.batch = self._batch if self.sampled else 0
        self._declared = None if variance is None else as_number(variance, f"{name}: variance", 0.0)
        # Variance of a batch without replacement, as a part of that of one draw.
        self._share = (terms - self._batch) / (self._batch * max(terms - 1, 1))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.function!r}, batch={self._batch} of {self._terms})"

    def variance(self, domain: Domain, start: Array | None = None) -> Variance:
        if not self.sampled:
            return EXACT
        if self._declared is not None:
            return Variance(self._declared, "declared")
        bound = self._bound_variance(domain, start)
        if math.isfinite(bound):
            return Variance(bound, "bounded on the domain")
        try:
            curvature = self.smoothness(domain).H
        except UnknownConstantError:
            curvature = 0.0
        return estimate_variance(self.variance_at, partial(gradient_aside, self), curvature, domain, start)

    @abstractmethod
    def variance_at(self, x: Array) -> float:
        """The exact variance of a sample at x; costs one pass over all terms."""

    @abstractmethod
    def _bound_variance(self, domain: Domain, start: Array | None) -> float:
        """A bound on the variance over the domain, or infinity."""


@final
class MiniBatch(Batched):
    """A finite sum loss(Ax) + ridge/2 |x|^2 whose gradient is sampled from `batch` rows, drawn without replacement.

    Parameters
    ----------
    function : LeastSquares, Logistic or PoissonTransmission
        With A given as a matrix, dense or sparse.
    batch : int
        Rows per call. All rows give the exact gradient.
    variance : float, optional
        A bound on E|sample - gradient|^2 that you declare. When missing it is bounded on the domain from the range of
        every row; where that is infinite it is estimated, and marked as an estimate.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f = MiniBatch(ss.functions.LeastSquares(np.eye(2), [1.0, 0.0]), batch=1)
    >>> f.sample(np.zeros(2), np.random.default_rng(0)).tolist() in ([-2.0, 0.0], [0.0, 0.0])
    True
    >>> f.variance(ss.domains.Box(-1.0, 1.0, shape=2)).estimate
    False
    """

    def __init__(self, function: LinearModel, batch: int, variance: float | None = None) -> None:
        if not is_ours(function, LinearModel) or not isinstance(function.A, Stored):
            raise InputError(
                f"MiniBatch: function is {function!r}; expected LeastSquares, Logistic or PoissonTransmission with A "
                "given as a matrix. Scale or add to the MiniBatch, not inside it."
            )
        self.rows = int(np.prod(function.A.y_shape))
        super().__init__(function, self.rows, batch, variance, ", the rows")
        self._model, self._matrix = function, function.A.entries

    def sample(self, x: Array, rng: np.random.Generator, out: Array | None = None) -> Array:
        if not self.sampled:
            return self.gradient(x, out)
        if not on_host(x):
            # Rows are drawn on the host.
            return receive(self.sample(to_host(x), rng), x.shape, "MiniBatch: sample", out, x)
        chosen = rng.choice(self.rows, self._batch, replace=False, shuffle=False)
        part = self._matrix[chosen]
        slopes = self._model.loss_slopes(chosen, np.asarray(part @ x.ravel()))
        estimate: Array = np.reshape((self.rows / self._batch) * (part.T @ slopes), x.shape)
        return np.add(estimate, self._model.ridge * x, out=out)

    def variance_at(self, x: Array) -> float:
        slopes = self._model.loss_slopes(np.arange(self.rows), np.asarray(self._matrix @ x.ravel()))
        mean = self._matrix.T @ slopes
        total = self.rows * float(np.sum(self._squares * slopes**2)) - float(np.vdot(mean, mean))
        return max(total, 0.0) * self._share

    @cached_property
    def _squares(self) -> Array:
        """Squared norm of every row."""
        squares = self._matrix.multiply(self._matrix) if scipy.sparse.issparse(self._matrix) else self._matrix**2
        return np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()

    def _bound_variance(self, domain: Domain, start: Array | None) -> float:
        """The better one of two bounds on the domain."""
        return min(self._range_bound(domain), self._growth_bound(domain))

    def _range_bound(self, domain: Domain) -> float:
        """From the range of every row.

        The variance is at most E|m a_i t_i - c|^2 for every fixed c, and that is convex in the slope t_i, which is
        monotone in (Ax)_i: so the ends of the range of (Ax)_i are enough.
        """
        m, bounds = self.rows, []
        low, high = np.empty(m), np.empty(m)
        for i in range(m):
            row = self._matrix[[i]].toarray() if scipy.sparse.issparse(self._matrix) else self._matrix[i]
            direction = np.reshape(row, domain.shape)
            low[i], high[i] = -domain.support(-direction), domain.support(direction)
        with np.errstate(over="ignore", invalid="ignore"):
            ends = np.stack([self._model.loss_slopes(np.arange(m), side) for side in (low, high)])
            if not np.isfinite(ends).all():
                return math.inf
            middle = self._matrix.T @ ends.mean(axis=0)
            for center in (np.zeros_like(middle), middle):
                # (1/m) sum_i of the larger |m a_i t_i - c|^2 over the two ends t_i.
                cross = np.asarray(self._matrix @ center).ravel()
                terms = m * m * self._squares * ends**2 - 2.0 * m * cross * ends + float(np.vdot(center, center))
                bounds.append(float(np.sum(np.max(terms, axis=0))) / m)
        return min(bounds) * self._share

    def _growth_bound(self, domain: Domain) -> float:
        """For least squares: the error of a sample is affine in x, so its deviation grows at most linearly from x_0.

        The square root of the variance is at most that at x_0 plus |x - x_0| times the norm of sqrt(m) diag(|a_i|) A.
        """
        x = domain.project(np.zeros(domain.shape))
        distance = domain.radius(x)
        if not self._model.quadratic or not math.isfinite(distance):
            return math.inf
        growth = Matrix(scipy.sparse.diags_array(np.sqrt(self.rows * self._squares)) @ self._matrix).norm.upper
        return (math.sqrt(self.variance_at(x)) + distance * growth * math.sqrt(self._share)) ** 2


@final
class Noisy(Sampled):
    """A function whose gradient comes with Gaussian noise of variance sigma^2 in all, for experiments.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f = Noisy(ss.functions.Quadratic(1.0), sigma=0.5)
    >>> f.variance(ss.domains.FullSpace(3)).value
    0.25
    >>> f.sample(np.ones(3), np.random.default_rng(0)).shape
    (3,)
    """

    def __init__(self, function: Function, sigma: float) -> None:
        if not isinstance(function, Function):
            raise InputError(f"Noisy: function is {type(function).__name__}; expected a function from ss.functions.")
        super().__init__(function)
        self.sigma = as_number(sigma, "Noisy: sigma", 0.0)
        self.sampled = self.sigma > 0.0 or function.sampled
        self.batch = max(function.batch, int(self.sigma > 0.0))

    def __repr__(self) -> str:
        return f"Noisy({self.function!r}, sigma={self.sigma:g})"

    def sample(self, x: Array, rng: np.random.Generator, out: Array | None = None) -> Array:
        gradient = self.function.sample(x, rng, out)
        if self.sigma > 0.0:
            gradient += self.sigma / math.sqrt(max(x.size, 1)) * rng.standard_normal(x.shape)
        return gradient

    def variance(self, domain: Domain, start: Array | None = None) -> Variance:
        return Variance(self.sigma**2, "declared") + self.function.variance(domain, start)


@final
class SampledParts(Batched):
    """A sum of parts whose gradient is sampled from `batch` parts, drawn without replacement.

    Only workers that hold a drawn part are asked. The draw is made here, so the same seed gives the same bits.

    Parameters
    ----------
    function : PartSum or ss.distributed.DaskSum
        The sum.
    batch : int
        Parts per call. All parts give the exact gradient.
    variance : float, optional
        A bound on E|sample - gradient|^2 that you declare. When missing it is bounded on the domain from the parts'
        gradients at one point and their smoothness; where that is infinite it is estimated, and marked as an estimate.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> parts = [ss.functions.Linear([1.0]), ss.functions.Linear([3.0])]
    >>> f = SampledParts(ss.functions.PartSum(parts), batch=1)
    >>> f.sample(np.zeros(1), np.random.default_rng(0)).tolist() in ([2.0], [6.0])
    True
    >>> f.variance(ss.domains.FullSpace(1)).value
    4.0
    """

    def __init__(self, function: Partitioned, batch: int, variance: float | None = None) -> None:
        if not is_ours(function, Partitioned):
            raise InputError(f"SampledParts: function is {function!r}; expected a PartSum or a DaskSum.")
        super().__init__(function, function.count, batch, variance)
        self._sum, self.parts = function, function.count
        self._weight = 1.0 if function.combine == "sum" else 1.0 / function.count

    def sample(self, x: Array, rng: np.random.Generator, out: Array | None = None) -> Array:
        if not self.sampled:
            return self.gradient(x, out)
        chosen = sorted(rng.choice(self.parts, self._batch, replace=False, shuffle=False).tolist())
        gradient = self._sum.sum_parts("gradient", x, chosen)[1]
        assert gradient is not None
        return np.multiply(gradient, self._weight * self.parts / self._batch, out=out)

    def variance_at(self, x: Array) -> float:
        (squares,), gradient = run_aside(self, lambda: self._sum.sum_parts("spread", x))
        assert gradient is not None
        n = self.parts
        spread = max(n * squares - float(np.vdot(gradient, gradient)), 0.0)
        return self._weight**2 * spread * self._share

    def _bound_variance(self, domain: Domain, start: Array | None) -> float:
        """The deviation at one point, and how fast it can grow.

        The root of the variance is a seminorm of the family of gradients n g_i, so at x it is at most that at x_0 plus
        that of the differences g_i(x) - g_i(x_0), which are at most H_i |x - x_0|^nu_i long.
        """
        x = domain.project(np.zeros(domain.shape)) if start is None else start
        growth = 0.0
        for constants in self._sum.part_constants(domain):
            if isinstance(constants.smoothness, str):
                return math.inf
            nu, H = constants.smoothness.nu, constants.smoothness.H
            growth += (H * domain.radius(x) ** nu) ** 2 if H > 0.0 else 0.0
        if not math.isfinite(growth):
            return math.inf
        distance = self._weight * math.sqrt(self.parts * growth * self._share)
        return (math.sqrt(self.variance_at(x)) + distance) ** 2
