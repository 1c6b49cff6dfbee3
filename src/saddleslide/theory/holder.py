"""Hölder smoothness (nu, H): |h'(u) - h'(v)| <= H |u - v|^nu. Scalars only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

from saddleslide.errors import InputError


@dataclass(frozen=True)
class Holder:
    """The (nu, H)-Hölder condition on a (sub)gradient (Definition Holder_condition).

    Parameters
    ----------
    nu : float
        Exponent in [0, 1]: 1 for Lipschitz gradients, 0 for subgradients of bounded variation.
    H : float
        Constant >= 0. Zero means a constant gradient.

    Examples
    --------
    >>> Holder(nu=1.0, H=3.0).L(0.0), Holder(nu=0.0, H=2.0).L(0.5)
    (3.0, 4.0)
    >>> Holder(0.0, 1.0).best_delta(level=1, N=1, Omega=1.0), Holder(1.0, 8.0).in_metric(4.0)
    (1.0, Holder(nu=1.0, H=2.0))
    >>> Holder(1.0, 3.0).at_exponent(0.5, diameter=4.0), Holder.from_lipschitz(2.0, nu=0.0, diameter=3.0)
    (Holder(nu=0.5, H=6.0), Holder(nu=0.0, H=6.0))
    >>> Holder(0.5, 1.0).plus(Holder(1.0, 3.0), diameter=4.0)
    Holder(nu=0.5, H=7.0)
    """

    nu: float
    H: float

    def __post_init__(self) -> None:
        for name, value in (("nu", self.nu), ("H", self.H)):
            # Most are floats, and asking for an abstract class takes long.
            if type(value) is not float and not isinstance(value, Real):
                raise InputError(f"Holder: {name} is {value!r}; expected a number.")
        if not 0.0 <= self.nu <= 1.0:
            raise InputError(f"Holder: nu is {self.nu!r}; expected a number in [0, 1].")
        if not (self.H >= 0.0 and math.isfinite(self.H)):
            raise InputError(f"Holder: H is {self.H!r}; expected a finite number >= 0.")

    @property
    def inexactness_exponent(self) -> float:
        """The exponent a = (1 - nu) / (1 + nu) of delta in L(delta)."""
        return (1.0 - self.nu) / (1.0 + self.nu)

    @property
    def K(self) -> float:
        """K of eq. Holder_delta_star, so that L(delta) = K delta^(-a)."""
        a = self.inexactness_exponent
        if a == 0.0 or self.H == 0.0:
            return self.H
        return float((a / 2.0) ** a * self.H ** (2.0 / (1.0 + self.nu)))

    def L(self, delta: float) -> float:
        """Lipschitz constant of the (delta, L)-oracle that an exact gradient is (eq. Holder_L_of_delta)."""
        if not delta >= 0.0:
            raise InputError(f"Holder.L: delta is {delta!r}; expected a number >= 0.")
        a = self.inexactness_exponent
        if a == 0.0 or self.H == 0.0:
            return self.H
        return math.inf if delta == 0.0 else self.K * delta ** (-a)

    def best_delta(self, level: int, N: float, Omega: float) -> float:
        """Oracle error that minimises the bound for level `level` (from 1) with N calls (eq. Holder_delta_star)."""
        if not (N > 0 and Omega >= 0.0):
            raise InputError(f"Holder.best_delta: N is {N!r} and Omega is {Omega!r}; expected N > 0 and Omega >= 0.")
        if self.nu == 1.0 or self.H == 0.0:
            return 0.0
        a = self.inexactness_exponent
        return float((a * 2.0 ** (2 * level - 1) * self.K * Omega / N**3) ** ((1.0 + self.nu) / 2.0))

    def in_metric(self, weight: float) -> Holder:
        """The same condition in the norm |u|_P^2 = weight |u|^2 (dual norm for the gradients)."""
        if not (weight > 0.0 and math.isfinite(weight)):
            raise InputError(f"Holder.in_metric: weight is {weight!r}; expected a finite number > 0.")
        return Holder(self.nu, self.H * weight ** (-(1.0 + self.nu) / 2.0))

    def at_exponent(self, nu: float, diameter: float) -> Holder:
        """A weaker exponent on a set of the given diameter: |u-v|^self.nu <= diameter^(self.nu-nu) |u-v|^nu."""
        if self.H == 0.0 or nu == self.nu:
            return Holder(nu, self.H)
        if nu > self.nu:
            raise InputError(f"Holder.at_exponent: nu is {nu}; expected at most {self.nu}.")
        if not diameter >= 0.0:
            raise InputError(f"Holder.at_exponent: diameter is {diameter!r}; expected a number >= 0.")
        if not math.isfinite(diameter):
            known = f"a (nu={self.nu}) condition gives none with nu={nu} on an unbounded set"
            raise InputError(f"Holder.at_exponent: {known}. Bound the domain.")
        return Holder(nu, self.H * diameter ** (self.nu - nu))

    @classmethod
    def from_lipschitz(cls, L: float, nu: float, diameter: float) -> Holder:
        """A Lipschitz gradient seen as nu-Hölder on a set of the given diameter."""
        return cls(1.0, L).at_exponent(nu, diameter)

    def plus(self, other: Holder, diameter: float = math.inf) -> Holder:
        """Condition of the sum of two functions; exponents that differ need a finite diameter."""
        if self.H == 0.0 or other.H == 0.0:
            return other if self.H == 0.0 else self
        nu = min(self.nu, other.nu)
        return Holder(nu, self.at_exponent(nu, diameter).H + other.at_exponent(nu, diameter).H)

    def __add__(self, other: Holder) -> Holder:
        return self.plus(other) if isinstance(other, Holder) else NotImplemented

    def __mul__(self, factor: float) -> Holder:
        return Holder(self.nu, abs(factor) * self.H)

    __rmul__ = __mul__


def total(parts: Sequence[Holder | None], diameter: float) -> Holder | None:
    """Condition of a sum of functions on a set; None where one has none, or they have none in common there."""
    found = Holder(1.0, 0.0)
    for part in parts:
        apart = part is not None and part.nu != found.nu and min(part.H, found.H) > 0.0
        if part is None or (apart and not math.isfinite(diameter)):
            return None
        found = found.plus(part, diameter)
    return found
