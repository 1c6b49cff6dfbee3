"""How far a sampled gradient may be from the gradient: a bound on its variance, with its origin."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.domains import Domain

# Draws per point when a variance is estimated, and the seed of all that is random about an estimate.
_DRAWS = 200
_PROBES = 4
_SEED = 0


@dataclass(frozen=True)
class Variance:
    """A bound on E|G(x) - f'(x)|^2 over a domain, in the Euclidean norm.

    Parameters
    ----------
    value : float
        The bound, sigma^2; 0 for exact gradients.
    origin : str
        How it was found.
    estimate : bool
        True when it is not a bound: the largest of what was seen at a few points.

    Examples
    --------
    >>> 2.0 * Variance(1.0, "declared") + Variance(0.5, "declared")
    Variance(value=4.5, origin='declared', estimate=False)
    """

    value: float
    origin: str
    estimate: bool = False

    def __add__(self, other: Variance) -> Variance:
        """Variance of a sum of independent draws."""
        # An exact gradient adds nothing; a variance estimated to be 0 is still no bound.
        for first, second in ((self, other), (other, self)):
            if first.value == 0.0 and not first.estimate:
                return second
        origins = dict.fromkeys((self.origin, other.origin))
        return Variance(self.value + other.value, "; ".join(origins), self.estimate or other.estimate)

    def __rmul__(self, factor: float) -> Variance:
        """Variance of a multiple of a draw."""
        return Variance(factor * factor * self.value, self.origin, self.estimate)


EXACT = Variance(0.0, "exact gradients")


def estimated_variance(
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
    reach = float(np.linalg.norm(step)) / math.sqrt(max(step.size, 1))
    rng = np.random.default_rng(_SEED)
    points = [x, domain.project(x - step), domain.project(x - 2.0 * step)]
    points += [domain.project(x - step + reach * rng.standard_normal(domain.shape)) for _ in range(_PROBES)]
    worst = max(variance_at(point) for point in points)
    return Variance(worst, f"estimate: the largest at {len(points)} points near the start", estimate=True)


def drawn_variance(sample: Callable[[Array, np.random.Generator], Array]) -> Callable[[Array], float]:
    """The variance at a point from draws alone, unbiased in expectation; the mean of the draws stands for f'."""

    def variance_at(x: Array) -> float:
        rng = np.random.default_rng(_SEED)
        draws = np.stack([sample(x, rng).ravel() for _ in range(_DRAWS)])
        return float(np.sum(np.var(draws, axis=0, ddof=1)))

    return variance_at
