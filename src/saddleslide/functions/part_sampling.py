"""Sampled gradients of a sum of parts: a few parts, drawn without replacement, stand for all of them."""

from __future__ import annotations

import math
from functools import partial
from numbers import Integral
from typing import Any, final

import numpy as np

from saddleslide.arrays.base import Array, as_number
from saddleslide.domains import Domain
from saddleslide.errors import InputError, UnknownConstantError
from saddleslide.functions.base import gradient_aside, is_ours, run_aside
from saddleslide.functions.parts import Partitioned
from saddleslide.functions.sampled import Sampled
from saddleslide.functions.variance import EXACT, Variance, estimated_variance


@final
class SampledParts(Sampled):
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
        super().__init__(function)
        given: Any = batch
        if isinstance(given, bool) or not isinstance(given, Integral) or not 1 <= int(given) <= function.count:
            raise InputError(f"SampledParts: batch is {batch!r}; expected a whole number from 1 to {function.count}.")
        self._sum: Partitioned = function
        self._batch = int(batch)
        self._declared = None if variance is None else as_number(variance, "SampledParts: variance", 0.0)

    def __repr__(self) -> str:
        return f"SampledParts({self.function!r}, batch={self._batch} of {self._sum.count})"

    @property
    def parts(self) -> int:
        """Number of parts."""
        return self._sum.count

    @property
    def sampled(self) -> bool:
        return self._batch < self._sum.count

    @property
    def batch(self) -> int:
        return self._batch if self.sampled else 0

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

    def variance(self, domain: Domain, start: Array | None = None) -> Variance:
        if not self.sampled:
            return EXACT
        if self._declared is not None:
            return Variance(self._declared, "declared")
        bound = self._bounded(domain, start)
        if math.isfinite(bound):
            return Variance(bound, "bounded on the domain")
        slope = partial(gradient_aside, self)
        return estimated_variance(self.variance_at, slope, self._curvature(domain), domain, start)

    def variance_at(self, x: Array) -> float:
        """The exact variance of a sample at x; costs one gradient of all parts.

        Examples
        --------
        >>> import numpy as np, saddleslide as ss
        >>> parts = [ss.functions.Linear([1.0]), ss.functions.Linear([3.0])]
        >>> SampledParts(ss.functions.PartSum(parts), batch=1).variance_at(np.zeros(1))
        4.0
        """
        (squares,), gradient = run_aside(self, lambda: self._sum.reduced("spread", x))
        assert gradient is not None
        n = self._sum.count
        spread = max(n * squares - float(np.vdot(gradient, gradient)), 0.0)
        return self._weight**2 * spread * self._share()

    def _share(self) -> float:
        """Variance of a batch without replacement, as a part of that of one draw."""
        n, k = self._sum.count, self._batch
        return (n - k) / (k * (n - 1))

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

    def _curvature(self, domain: Domain) -> float:
        try:
            return self.smoothness(domain).H
        except UnknownConstantError:
            return 0.0
