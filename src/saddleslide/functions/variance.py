"""How far sampled gradients are from the true ones: a bound on their variance, with its origin."""

from __future__ import annotations

from dataclasses import dataclass


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
