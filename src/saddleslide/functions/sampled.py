"""Functions with sampled gradients: mini-batches of rows or of parts, and added noise. They wrap an exact function."""

from __future__ import annotations

import math
import operator
from abc import abstractmethod
from functools import partial
from numbers import Integral
from typing import Any, final

import numpy as np
import scipy

from saddleslide.arrays.base import Array, as_number, on_host, received
from saddleslide.arrays.kinds import ArrayKind, to_host
from saddleslide.domains import Domain
from saddleslide.errors import InputError, UnknownConstantError
from saddleslide.functions.base import (
    EXACT,
    Function,
    Scaled,
    Sum,
    Variance,
    Wrapper,
    certain_modulus,
    estimated_variance,
    gradient_aside,
    is_ours,
    is_own_class,
    rounding_of,
    run_aside,
)
from saddleslide.functions.lifted import LinearModel
from saddleslide.functions.parts import Partitioned
from saddleslide.functions.roundings import Errors, Rounding
from saddleslide.functions.separable import SeparableForm
from saddleslide.operators import ForeignMatrix, Matrix
from saddleslide.theory.holder import Holder


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

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        return self.function.value_and_gradient(x, out)

    def value(self, x: Array) -> float:
        return self.function.value(x)

    def gradient(self, x: Array, out: Array | None = None) -> Array:
        return self.function.gradient(x, out)

    def value_and_magnitude(self, x: Array) -> tuple[float, float]:
        return self.function.value_and_magnitude(x)

    def smoothness(self, domain: Domain) -> Holder:
        return self.function.smoothness(domain)

    def strong_convexity(self, domain: Domain) -> float:
        return self.function.strong_convexity(domain)

    def certain_convexity(self, domain: Domain) -> float:
        return certain_modulus(self.function, domain)

    @property
    def rounding(self) -> Rounding:
        return rounding_of(self.function)

    def entrywise_errors(self, x: Array) -> Errors | None:
        return None if is_own_class(self.function) else self.function.entrywise_errors(x)

    def separable_form(self) -> SeparableForm | None:
        return self.function.separable_form()

    def hessian_product(self, v: Array) -> Array:
        return self.function.hessian_product(v)

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
        self._terms, self._batch = terms, int(batch)
        self._declared = None if variance is None else as_number(variance, f"{name}: variance", 0.0)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.function!r}, batch={self._batch} of {self._terms})"

    @property
    def sampled(self) -> bool:
        return self._batch < self._terms

    @property
    def batch(self) -> int:
        return self._batch if self.sampled else 0

    def variance(self, domain: Domain, start: Array | None = None) -> Variance:
        if not self.sampled:
            return EXACT
        if self._declared is not None:
            return Variance(self._declared, "declared")
        bound = self._bounded(domain, start)
        if math.isfinite(bound):
            return Variance(bound, "bounded on the domain")
        try:
            curvature = self.smoothness(domain).H
        except UnknownConstantError:
            curvature = 0.0
        return estimated_variance(self.variance_at, partial(gradient_aside, self), curvature, domain, start)

    @abstractmethod
    def variance_at(self, x: Array) -> float:
        """The exact variance of a sample at x; costs one pass over all terms."""

    @abstractmethod
    def _bounded(self, domain: Domain, start: Array | None) -> float:
        """A bound on the variance over the domain, or infinity."""

    def _share(self) -> float:
        """Variance of a batch without replacement, as a part of that of one draw."""
        return (self._terms - self._batch) / (self._batch * (self._terms - 1))


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
        if not is_ours(function, LinearModel) or not isinstance(function.A, Matrix | ForeignMatrix):
            raise InputError(
                f"MiniBatch: function is {function!r}; expected LeastSquares, Logistic or PoissonTransmission with A "
                "given as a matrix. Scale or add to the MiniBatch, not inside it."
            )
        self.rows = int(np.prod(function.A.y_shape))
        super().__init__(function, self.rows, batch, variance, ", the rows")
        self._model: LinearModel = function
        self._matrix: Any = function.A.entries

    def sample(self, x: Array, rng: np.random.Generator, out: Array | None = None) -> Array:
        if not self.sampled:
            return self.gradient(x, out)
        if not on_host(x):
            # Rows are drawn on the host.
            return received(self.sample(to_host(x), rng), x.shape, "MiniBatch: sample", out, x)
        chosen = rng.choice(self.rows, self._batch, replace=False, shuffle=False)
        part = self._matrix[chosen]
        slopes = self._model.loss_slopes(chosen, np.asarray(part @ x.ravel()))
        estimate: Array = np.reshape((self.rows / self._batch) * (part.T @ slopes), x.shape)
        return np.add(estimate, self._model.ridge * x, out=out)

    def variance_at(self, x: Array) -> float:
        slopes = self._model.loss_slopes(np.arange(self.rows), np.asarray(self._matrix @ x.ravel()))
        mean = self._matrix.T @ slopes
        total = self.rows * float(np.sum(self._squares() * slopes**2)) - float(np.vdot(mean, mean))
        return max(total, 0.0) * self._share()

    def _squares(self) -> Array:
        """Squared norm of every row."""
        squares = self._matrix.multiply(self._matrix) if scipy.sparse.issparse(self._matrix) else self._matrix**2
        return np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()

    def _bounded(self, domain: Domain, start: Array | None) -> float:
        return min(self._bounded_by_rows(domain), self._spread_from_start(domain))

    def _bounded_by_rows(self, domain: Domain) -> float:
        """Largest variance on the domain, bounded from the range of every row.

        The variance is at most E|m a_i t_i - c|^2 for every fixed c, and that is convex in the slope t_i, which is
        monotone in (Ax)_i: so the ends of the range of (Ax)_i are enough.
        """
        low, high = self._ranges(domain)
        rows = np.arange(self.rows)
        with np.errstate(over="ignore", invalid="ignore"):
            ends = np.stack([self._model.loss_slopes(rows, low), self._model.loss_slopes(rows, high)])
            if not np.isfinite(ends).all():
                return math.inf
            middle = self._matrix.T @ ends.mean(axis=0)
            bounds = [self._moment(ends, center) for center in (np.zeros_like(middle), middle)]
        return min(bounds) * self._share()

    def _spread_from_start(self, domain: Domain) -> float:
        """For least squares: the error of a sample is affine in x, so its deviation grows at most linearly from x_0.

        The square root of the variance is at most that at x_0 plus |x - x_0| times the norm of sqrt(m) diag(|a_i|) A.
        """
        x = domain.project(np.zeros(domain.shape))
        reach = domain.radius(x)
        if not self._model.quadratic or not math.isfinite(reach):
            return math.inf
        lengths = np.sqrt(self.rows * self._squares())
        scaled = scipy.sparse.diags(lengths) @ self._matrix
        growth = Matrix(scaled).norm.upper
        return (math.sqrt(self.variance_at(x)) + reach * growth * math.sqrt(self._share())) ** 2

    def _moment(self, ends: Array, center: Array) -> float:
        """(1/m) sum_i of the larger |m a_i t_i - c|^2 over the two ends t_i."""
        m = self.rows
        cross = np.asarray(self._matrix @ center).ravel()
        terms = m * m * self._squares() * ends**2 - 2.0 * m * cross * ends + float(np.vdot(center, center))
        return float(np.sum(np.max(terms, axis=0))) / m

    def _ranges(self, domain: Domain) -> tuple[Array, Array]:
        low, high = np.empty(self.rows), np.empty(self.rows)
        for i in range(self.rows):
            row = self._matrix[[i]].toarray() if scipy.sparse.issparse(self._matrix) else self._matrix[i]
            direction = np.reshape(row, domain.shape)
            low[i], high[i] = -domain.support(-direction), domain.support(direction)
        return low, high


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

    def __repr__(self) -> str:
        return f"Noisy({self.function!r}, sigma={self.sigma:g})"

    @property
    def sampled(self) -> bool:
        return self.sigma > 0.0 or self.function.sampled

    @property
    def batch(self) -> int:
        return max(self.function.batch, int(self.sigma > 0.0))

    def sample(self, x: Array, rng: np.random.Generator, out: Array | None = None) -> Array:
        gradient = self.function.sample(x, rng, out)
        if self.sigma > 0.0:
            gradient += self.sigma / math.sqrt(max(x.size, 1)) * rng.standard_normal(x.shape)
        return gradient

    def variance(self, domain: Domain, start: Array | None = None) -> Variance:
        return Variance(self.sigma**2, "declared") + self.function.variance(domain, start)


def check_sample(function: Function, domain: Domain, name: str, start: Array | None = None) -> None:
    """One draw at the start, thrown away: wrong shapes and numbers show before a run begins."""
    x = domain.project(np.zeros(domain.shape)) if start is None else start
    drawn: Any = run_aside(function, lambda: function.sample(x, np.random.default_rng(0)))
    if np.shape(drawn) != domain.shape or not np.isfinite(drawn).all():
        raise InputError(
            f"{name}: its sampled gradient has shape {np.shape(drawn)} or numbers that are not finite; expected finite "
            f"numbers of shape {domain.shape}."
        )


def without_silent_noise(f: Function) -> Function:
    """The function with every wrapper taken off that never draws (sigma = 0, all rows); itself where there is none."""
    if is_ours(f, Sampled) and not f.sampled:
        return without_silent_noise(f.function)
    if is_ours(f, Sum):
        parts = [without_silent_noise(part) for part in f.parts]
        return f if all(map(operator.is_, parts, f.parts)) else parts[0] + parts[1]
    if is_ours(f, Scaled):
        bare = without_silent_noise(f.function)
        return f if bare is f.function else f.factor * bare
    return f


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
        self._sum: Partitioned = function

    @property
    def parts(self) -> int:
        """Number of parts."""
        return self._sum.count

    def sample(self, x: Array, rng: np.random.Generator, out: Array | None = None) -> Array:
        if not self.sampled:
            return self.gradient(x, out)
        chosen = sorted(rng.choice(self._sum.count, self._batch, replace=False, shuffle=False).tolist())
        gradient = self._sum.reduced("gradient", x, chosen)[1]
        assert gradient is not None
        return np.multiply(gradient, self._weight * self._sum.count / self._batch, out=out)

    @property
    def _weight(self) -> float:
        return 1.0 if self._sum.combine == "sum" else 1.0 / self._sum.count

    def variance_at(self, x: Array) -> float:
        (squares,), gradient = run_aside(self, lambda: self._sum.reduced("spread", x))
        assert gradient is not None
        n = self._sum.count
        spread = max(n * squares - float(np.vdot(gradient, gradient)), 0.0)
        return self._weight**2 * spread * self._share()

    def _bounded(self, domain: Domain, start: Array | None) -> float:
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
        reach = self._weight * math.sqrt(self._sum.count * growth * self._share())
        return (math.sqrt(self.variance_at(x)) + reach) ** 2
