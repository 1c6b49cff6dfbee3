"""Functions with sampled gradients: mini-batches of rows, and added noise. They wrap an exact function."""

from __future__ import annotations

import math
import operator
from abc import abstractmethod
from numbers import Integral
from typing import Any, final

import numpy as np
import scipy

from saddleslide.arrays.base import Array, Shape, as_number, on_host, received
from saddleslide.arrays.kinds import ArrayKind, to_host
from saddleslide.domains import Domain
from saddleslide.errors import InputError
from saddleslide.functions.base import (
    Function,
    Scaled,
    Sum,
    certain_modulus,
    is_ours,
    is_own_class,
    rounding_of,
    run_aside,
)
from saddleslide.functions.lifted import LinearModel
from saddleslide.functions.roundings import Errors, Rounding
from saddleslide.functions.separable import SeparableForm
from saddleslide.functions.variance import EXACT, Variance, estimated_variance
from saddleslide.operators import Coupling, ForeignMatrix, Matrix
from saddleslide.theory.holder import Holder


class Sampled(Function):
    """An exact function whose `sample` is random. Value, gradient and constants are those of the exact one.

    Examples
    --------
    >>> import saddleslide as ss
    >>> isinstance(ss.functions.Noisy(ss.functions.Quadratic(1.0), sigma=0.1), Sampled)
    True
    """

    def __init__(self, function: Function) -> None:
        self.function: Function = function
        self.separable, self.quadratic, self.linear = function.separable, function.quadratic, function.linear

    def stays_on_host(self, kind: ArrayKind) -> tuple[str, ...]:
        return (f"{type(self).__name__}: draws are made by NumPy", *self.function.stays_on_host(kind))

    @property
    def composed_of(self) -> tuple[Function, ...]:
        return (self.function,)

    @property
    def shape(self) -> Shape | None:
        return self.function.shape

    @property
    def has_value(self) -> bool:
        return self.function.has_value

    @property
    def operators(self) -> tuple[tuple[Coupling, float], ...]:
        return self.function.operators

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        return self.function.value_and_gradient(x, out)

    def value(self, x: Array) -> float:
        return self.function.value(x)

    def gradient(self, x: Array, out: Array | None = None) -> Array:
        return self.function.gradient(x, out)

    @property
    def own_code(self) -> bool:
        return is_own_class(self) or is_own_class(self.function) or self.function.own_code

    @property
    def convex_on_trust(self) -> bool:
        return is_own_class(self) or is_own_class(self.function) or self.function.convex_on_trust

    def value_and_magnitude(self, x: Array) -> tuple[float, float]:
        return self.function.value_and_magnitude(x)

    @property
    def value_cost(self) -> float:
        return self.function.value_cost

    @property
    def lone_value_cost(self) -> float:
        return self.function.lone_value_cost

    def smoothness(self, domain: Domain) -> Holder:
        return self.function.smoothness(domain)

    def strong_convexity(self, domain: Domain) -> float:
        return self.function.strong_convexity(domain)

    def certain_convexity(self, domain: Domain) -> float:
        return certain_modulus(self.function, domain)

    @property
    def rounding(self) -> Rounding:
        return rounding_of(self.function)

    def rounding_size(self, x: Array) -> float:
        return self.function.rounding_size(x)

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


@final
class MiniBatch(Sampled):
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
        super().__init__(function)
        self.rows = int(np.prod(function.A.y_shape))
        given: Any = batch
        if isinstance(given, bool) or not isinstance(given, Integral) or not 1 <= int(given) <= self.rows:
            raise InputError(f"MiniBatch: batch is {batch!r}; expected a whole number from 1 to {self.rows}, the rows.")
        self._model: LinearModel = function
        self._matrix: Any = function.A.entries
        self._batch = int(batch)
        self._declared = None if variance is None else as_number(variance, "MiniBatch: variance", 0.0)

    def __repr__(self) -> str:
        return f"MiniBatch({self.function!r}, batch={self._batch} of {self.rows})"

    @property
    def sampled(self) -> bool:
        return self._batch < self.rows

    @property
    def batch(self) -> int:
        return self._batch if self.sampled else 0

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

    def variance(self, domain: Domain, start: Array | None = None) -> Variance:
        if not self.sampled:
            return EXACT
        if self._declared is not None:
            return Variance(self._declared, "declared")
        bound = min(self._bounded(domain), self._spread_from_start(domain))
        if math.isfinite(bound):
            return Variance(bound, "bounded on the domain")
        return estimated_variance(self.variance_at, self.gradient, self.smoothness(domain).H, domain, start)

    def variance_at(self, x: Array) -> float:
        """The exact variance of a sample at x; costs one pass over all rows.

        Examples
        --------
        >>> import numpy as np, saddleslide as ss
        >>> MiniBatch(ss.functions.LeastSquares(np.eye(2), [1.0, 0.0]), batch=1).variance_at(np.zeros(2))
        1.0
        """
        slopes = self._model.loss_slopes(np.arange(self.rows), np.asarray(self._matrix @ x.ravel()))
        mean = self._matrix.T @ slopes
        total = self.rows * float(np.sum(self._squares() * slopes**2)) - float(np.vdot(mean, mean))
        return max(total, 0.0) * self._share()

    def _share(self) -> float:
        """Variance of a batch without replacement, as a part of that of one row."""
        return (self.rows - self._batch) / (self._batch * (self.rows - 1))

    def _squares(self) -> Array:
        """Squared norm of every row."""
        squares = self._matrix.multiply(self._matrix) if scipy.sparse.issparse(self._matrix) else self._matrix**2
        return np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()

    def _bounded(self, domain: Domain) -> float:
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
    """One draw at the start, thrown away: wrong shapes and numbers show before a run begins.

    Examples
    --------
    >>> import saddleslide as ss
    >>> check_sample(Noisy(ss.functions.Quadratic(1.0), sigma=0.5), ss.domains.FullSpace(3), "f")
    """
    x = domain.project(np.zeros(domain.shape)) if start is None else start
    drawn: Any = run_aside(function, lambda: function.sample(x, np.random.default_rng(0)))
    if np.shape(drawn) != domain.shape or not np.isfinite(drawn).all():
        raise InputError(
            f"{name}: its sampled gradient has shape {np.shape(drawn)} or numbers that are not finite; expected finite "
            f"numbers of shape {domain.shape}."
        )


def without_silent_noise(f: Function) -> Function:
    """The function with every wrapper taken off that never draws (sigma = 0, all rows); itself where there is none.

    Examples
    --------
    >>> import saddleslide as ss
    >>> without_silent_noise(2.0 * Noisy(ss.functions.Quadratic(1.0), sigma=0.0))
    2.0 * (Quadratic(diagonal, any shape))
    """
    if is_ours(f, Sampled) and not f.sampled:
        return without_silent_noise(f.function)
    if is_ours(f, Sum):
        parts = [without_silent_noise(part) for part in f.parts]
        return f if all(map(operator.is_, parts, f.parts)) else parts[0] + parts[1]
    if is_ours(f, Scaled):
        bare = without_silent_noise(f.function)
        return f if bare is f.function else f.factor * bare
    return f
