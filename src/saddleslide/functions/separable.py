"""Separable functions in one form, and their proximal step: what makes a function a *simple term*."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy

from saddleslide.arrays.base import Array, as_floats, beside, length_of, on_host
from saddleslide.arrays.kinds import is_callers
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import Box, FullSpace
from saddleslide.domains.norms import Ball
from saddleslide.domains.simplices import Simplex
from saddleslide.functions.roundings import EPS
from saddleslide.watcher import lend

if TYPE_CHECKING:
    from saddleslide.functions.base import Function

_NEWTON_STEPS = 100
_ROOT_STEPS = 500


@dataclass(frozen=True)
class SeparableForm:
    """sum of 1/2 q x^2 + b x + w |x|^(1+nu)/(1+nu) + v h_delta(x), entry by entry."""

    # q >= 0 and b.
    quadratic: Array | float = 0.0
    linear: Array | float = 0.0
    # Pairs (w, nu) with nu < 1, and weighted Huber functions (v, delta).
    powers: tuple[tuple[Array | float, float], ...] = ()
    hubers: tuple[tuple[float, float], ...] = ()

    @property
    def is_curved(self) -> bool:
        """Whether anything but a quadratic is present."""
        return bool(self.powers or self.hubers)

    @property
    def isotropic(self) -> bool:
        """Whether the form is a multiple of |x|^2 plus a linear term."""
        return not self.is_curved and np.ndim(self.quadratic) == 0

    def plus(self, other: SeparableForm) -> SeparableForm:
        """Form of the sum."""
        return SeparableForm(
            self.quadratic + other.quadratic,
            self.linear + other.linear,
            self.powers + other.powers,
            self.hubers + other.hubers,
        )

    def times(self, factor: float) -> SeparableForm:
        """Form of `factor` times the function."""
        return SeparableForm(
            factor * self.quadratic,
            factor * self.linear,
            tuple((factor * weight, nu) for weight, nu in self.powers),
            tuple((factor * weight, delta) for weight, delta in self.hubers),
        )

    def beside(self, x: Array) -> SeparableForm:
        """The same form with its arrays where x lies."""
        if on_host(x):
            return self
        return SeparableForm(
            beside(x, self.quadratic),
            beside(x, self.linear),
            tuple((beside(x, weight), nu) for weight, nu in self.powers),
            self.hubers,
        )

    def size(self, x: Array) -> float:
        """Sum of the absolute values of all terms at x: what rounding errors of the value are relative to."""
        # Most forms have one or two kinds of terms.
        terms: Any = np.abs(self.linear * x) if np.ndim(self.linear) or self.linear else 0.0
        if np.ndim(self.quadratic) or self.quadratic:
            terms = 0.5 * self.quadratic * x * x + terms
        for weight, nu in self.powers:
            terms = terms + (weight * np.abs(x) if nu == 0.0 else weight * np.abs(x) ** (1.0 + nu) / (1.0 + nu))
        for weight, _ in self.hubers:
            terms = terms + weight * np.abs(x)
        return float(np.sum(terms))


def shift_form(form: SeparableForm, b: Array) -> SeparableForm | None:
    """The form of the function at x - b up to a constant; None where it has kinks or bends, which stay at 0."""
    return None if form.is_curved else SeparableForm(form.quadratic, form.linear - form.quadratic * b)


# Forms with remote arrays, one per function and kind of arrays; dropped with the function.
_PLACED: WeakKeyDictionary[Function, dict[object, SeparableForm | None]] = WeakKeyDictionary()


def form_beside(f: Function, x: Array) -> SeparableForm | None:
    """The form of f, where it has one, with its arrays where x lies."""
    if on_host(x):
        return f.separable_form()
    kept = _PLACED.setdefault(f, {})
    kind = x.kind  # type: ignore[attr-defined]
    if kind not in kept:
        form = f.separable_form()
        kept[kind] = None if form is None else form.beside(x)
    return kept[kind]


def has_prox(f: Function, domain: Domain) -> bool:
    """Whether `prox` solves its step exactly on this domain.

    Examples
    --------
    >>> import saddleslide as ss
    >>> ss.functions.has_prox(ss.functions.Power(0.5), ss.domains.Box(-1.0, 1.0, shape=2))
    True
    >>> ss.functions.has_prox(ss.functions.Logistic([[1.0, 2.0]], [1]), ss.domains.Simplex(2))
    False
    """
    form = f.separable_form()
    if form is not None and (form.isotropic or isinstance(domain, Box | FullSpace | Ball | Simplex)):
        return True
    return f.can_prox(domain)


def prox(f: Function, center: Array, weight: Array | float, domain: Domain, out: Array | None = None) -> Array:
    """The point of the domain that minimises f(x) + weight/2 |x - center|^2; a weight per entry on boxes only.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> ss.functions.prox(ss.functions.Power(0.0), np.array([3.0, 0.5]), 1.0, ss.domains.FullSpace(2))
    array([2., 0.])
    """
    form = form_beside(f, center)
    if form is not None and (isinstance(domain, Box | FullSpace) or form.isotropic):
        return domain.project(free_step(form, center, weight), out=out)
    if form is not None and isinstance(domain, Ball | Simplex):
        found, _ = multiplier_step(form, center, float(weight), domain)
    elif is_callers(f) or f.own_code:
        found = lend(lambda: f.prox_on(domain, center, weight))
    else:
        found = f.prox_on(domain, center, weight)
    if out is None:
        return found
    np.copyto(out, found)
    return out


def free_step(form: SeparableForm, center: Array, weight: Array | float) -> Array:
    """The step on the full space, entry by entry; clipping it to a box is the step on the box."""
    pull = weight * center - form.linear
    stiffness = weight + form.quadratic
    if not form.is_curved:
        return np.divide(pull, stiffness)
    # Absolute values (nu = 0) only lower the pull; the other shapes are smooth at 0.
    threshold = sum((w for w, nu in form.powers if nu == 0.0), start=0.0)
    return np.copysign(balance_size(form, np.maximum(np.abs(pull) - threshold, 0.0), stiffness), pull)


def balance_size(form: SeparableForm, size: Array, stiffness: Array | float) -> Array:
    """The size of x at which stiffness |x| and the slopes of the shapes, kinks at 0 left out, add up to `size`.

    Infinite, or no number where `size` is 0, where there is neither stiffness nor a shape that grows.
    """
    powers = tuple((w, nu) for w, nu in form.powers if nu > 0.0)
    if not powers and not form.hubers:
        return np.divide(size, stiffness)
    if not powers and len(form.hubers) == 1:
        v, delta = form.hubers[0]
        inside = size <= v + stiffness * delta
        return np.where(inside, np.divide(size, stiffness + v / delta), np.divide(size - v, stiffness))
    if len(powers) == 1 and not form.hubers and powers[0][1] == 0.5:
        w = powers[0][0]
        root: Array = 2.0 * size / (w + np.sqrt(w * w + 4.0 * stiffness * size) + (size == 0.0))
        return root * root
    # Newton's method: from a point left of the root, steps on a concave increasing function rise to it and never
    # overshoot; left of the root lies every point where each of the terms is at most its equal share.
    share = size / (1 + len(powers) + len(form.hubers))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore", under="ignore"):
        x = np.divide(share, stiffness)
        for w, nu in powers:
            x = np.minimum(x, np.where(w > 0.0, (share / w) ** (1.0 / nu), np.inf))
        for v, delta in form.hubers:
            x = np.minimum(x, np.where(share < v, share * delta / v, np.inf) if v > 0.0 else x)
        for _ in range(_NEWTON_STEPS):
            value, slope = stiffness * x - size, stiffness + np.zeros_like(x)
            for w, nu in powers:
                value = value + w * x**nu
                slope = slope + np.where(x > 0.0, w * nu * x ** (nu - 1.0), np.inf)
            for v, delta in form.hubers:
                value = value + v * np.minimum(x / delta, 1.0)
                slope = slope + np.where(x < delta, v / delta, 0.0)
            following = x - value / slope
            if not (following > x * (1.0 + 2e-16)).any():
                break
            # Not the maximum: a flat end of the slopes gives no number.
            x = np.where(following > x, following, x)
    return x


def multiplier_step(form: SeparableForm, center: Array, weight: float, domain: Ball | Simplex) -> tuple[Array, float]:
    """The step on a ball or a simplex and the multiplier of its constraint."""
    if isinstance(domain, Ball):
        return _ball_step(form, center, weight, domain)
    return _simplex_step(form, center, weight, domain)


def _ball_step(form: SeparableForm, center: Array, weight: float, domain: Ball) -> tuple[Array, float]:
    """|x - a|^2 <= R^2 with multiplier m is the free step with weight + m, its center moved towards a."""
    middle = 0.0 if domain.center is None else beside(center, domain.center)

    def at(multiplier: float) -> Array:
        total = weight + multiplier
        return free_step(form, center * (weight / total) + middle * (multiplier / total), total)

    def excess(multiplier: float) -> float:
        return length_of(at(multiplier) - middle) - domain.ball_radius

    if excess(0.0) <= 0.0:
        return at(0.0), 0.0
    low, high = 0.0, max(weight, 1e-300)
    while excess(high) > 0.0 and high < 1e290:
        low, high = high, 8.0 * high
    _, high = _find_crossing(excess, low, high)
    return domain.project(at(high)), high


def _simplex_step(form: SeparableForm, center: Array, weight: float, domain: Simplex) -> tuple[Array, float]:
    """Sum x = s with multiplier m is the step on the box with center - m / weight."""
    total = float(domain.scale)
    box = Box(0.0, total, shape=domain.shape)

    def at(shift: float) -> Array:
        return box.project(free_step(form, center - shift, weight))

    def excess(shift: float) -> float:
        return float(at(shift).sum()) - total

    distance = total + float(np.max(np.abs(center), initial=0.0))
    low, high = -distance, distance
    # The sum of the entries falls with the shift; widen until the total lies between.
    while excess(low) < 0.0 and low > -1e290:
        low *= 4.0
    while excess(high) > 0.0 and high < 1e290:
        high *= 4.0
    low, high = _find_crossing(excess, low, high)
    below, above = at(high), at(low)
    # Between two neighbouring shifts the entries may jump: take the mixture with that sum.
    rest = float(above.sum() - below.sum())
    part = (total - float(below.sum())) / rest if rest > 0.0 else 0.0
    mixed = below + min(max(part, 0.0), 1.0) * (above - below)
    return as_floats(mixed * (total / mixed.sum())), weight * low


def _find_crossing(excess: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """Neighbouring numbers, or nearly so, between which a falling function changes its sign."""
    if not excess(low) > 0.0 >= excess(high):
        return low, high
    root, _ = scipy.optimize.brentq(
        excess, low, high, xtol=1e-300, rtol=4.0 * EPS, maxiter=_ROOT_STEPS, full_output=True, disp=False
    )
    if excess(root) == 0.0:
        return root, root
    if root != 0.0:
        # A bracket of a few units of rounding; wider where the function is flat or rounding hides it.
        behind = ahead = 2.0 * EPS * abs(root)
        while root - behind > low and excess(root - behind) <= 0.0:
            behind *= 8.0
        while root + ahead < high and excess(root + ahead) > 0.0:
            ahead *= 8.0
        low, high = max(low, root - behind), min(high, root + ahead)
    while low < (middle := 0.5 * (low + high)) < high:
        if excess(middle) > 0.0:
            low = middle
        else:
            high = middle
    return low, high


def finite_slope(f: Function, x: Array, domain: Domain) -> Array:
    """A slope of a simple f at x, for a scale: that of a short step where it is infinite, as of an entropy at 0."""
    slope = f.gradient(x)
    if np.isfinite(slope).all():
        return slope
    weight = 1e6 / (1.0 + float(np.max(np.abs(x), initial=0.0)))
    return weight * (x - prox(f, x, weight, domain))
