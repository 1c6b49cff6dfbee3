"""Lower bounds on min over a domain of h(x) + <pull, x> from gradients of h that are known already.

A gradient at p gives h(p) + <pull, p> + min_x { <r, x - p> + mu/2 |x - p|^2 + simple(x) } with r = h'(p) + pull. For a
quadratic h, gradients at old points give the same bound at every combination of them, maximised in closed form; and
where its Hessian has a factor, the minimum itself is known. A combination that reaches far beyond points that lie close
together multiplies the rounding of their gradients: what that can do is kept small while maximising, and subtracted
afterwards. So is rounding of the pull: `error` bounds it in norm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from saddleslide import certificates
from saddleslide.arrays.base import Array, inner_product, length_of
from saddleslide.arrays.state import State
from saddleslide.certificates.candidate import Linearisation
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import Box, FullSpace
from saddleslide.domains.norms import Ball
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.functions.constants import list_declared_forms, modulus_for_bounds, smoothness_at_hand
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.factor import Factor, factor_of
from saddleslide.functions.lifted import rough_curvature
from saddleslide.functions.minimum import tilted_minimum
from saddleslide.functions.roundings import FEW, Errors, inner_error
from saddleslide.functions.searched import model_minimum, wrong_slope_cost
from saddleslide.functions.separable import prox
from saddleslide.functions.trust import (
    certain_modulus,
    errors_at,
    exponent,
    read_rounding,
    runs_own_code,
    value_aside,
)

if TYPE_CHECKING:
    from saddleslide.certificates.candidate import Column
    from saddleslide.certificates.cuts import Cuts, Peak

EPS = float(np.finfo(np.float64).eps)


@dataclass(eq=False, repr=False)
class CutState(State):
    """Unit directions, the Hessian along each with what rounding may have done to it, and the last linearisation."""

    ways: list[Array] = field(default_factory=list)
    turns: list[Array] = field(default_factory=list)
    noise: list[float] = field(default_factory=list)
    last: Linearisation | None = None
    last_error: float = 0.0


@dataclass(eq=False, repr=False)
class ResidualState(State):
    """What bounds rest on: directions that are known, the last margin, the curvature seen, a gradient of own code."""

    cuts: CutState = field(default_factory=CutState)
    # What was given up for rounding in the last bound.
    margin: float = 0.0
    curvature: float = 0.0
    before: Linearisation | None = None


class ResidualBound(ResidualState):
    """Bounds for h = rest + simple, where `simple` has a proximal step on the domain."""

    cuts: Cuts

    def __init__(self, rest: Function, simple: Function, domain: Domain) -> None:
        super().__init__()
        self.rest, self.simple, self.domain = rest, simple, domain
        self.modulus = modulus_for_bounds(rest, simple, domain)
        self._finite = domain.bounded or certain_modulus(simple, domain) > 0.0
        # Old gradients of a quadratic are combined; on a set, where nobody has to be believed that it is one.
        self.is_free = isinstance(simple, Zero) and isinstance(domain, FullSpace | Ball)
        certain = self.is_free or not (list_declared_forms(rest) or runs_own_code(simple))
        self.combines = rest.quadratic and self.modulus > 0.0 and certain
        if self.combines:
            self.cuts = certificates.Cuts()
        # The point that a bound was expected for last, and where.
        self._expected: tuple[Linearisation, Array, Peak] | None = None
        # Beside q/2 |x|^2 + <b, x> systems with the Hessian, shifted by q, give the minimum itself.
        form = simple.separable_form() if isinstance(domain, FullSpace) and not runs_own_code(simple) else None
        self._shift = float(form.quadratic) if form is not None and form.isotropic else math.nan
        # Of code that is not ours: its rounding goes by the curvature that was declared, and that gradients show.
        self._own = read_rounding(rest).own
        known = smoothness_at_hand(rest, domain) if self._own > 0.0 else None
        self.curvature = known.H if known is not None and known.nu == 1.0 else 0.0

    @property
    def possible(self) -> bool:
        """Whether any finite bound can come from here."""
        return self.modulus > 0.0 or self._finite

    @cached_property
    def is_rough(self) -> bool:
        """Whether the costly part has no Lipschitz gradient, so that single gradients bound little."""
        try:
            return not isinstance(self.rest, Zero) and exponent(self.rest, self.domain) < 1.0
        except InputError:
            return False

    def minimum(self, pull: Array, known: Linearisation, error: float = 0.0) -> float:
        """The best bound that `known` and its predecessors give, less a margin for rounding."""
        before, self.before = self.before, known if self._own > 0.0 else None
        if before is not None:
            way = length_of(known.point - before.point)
            turn = length_of(known.gradient - before.gradient)
            if way > 1e-6 * (known.sizes[0] + before.sizes[0]) and turn < math.inf:
                self.curvature = max(self.curvature, turn / way)
        residual = known.gradient + pull
        base = known.value + inner_product(pull, known.point)
        made = self._made(known, pull, error)
        bound, self.margin = self._minimise_linearised(base, residual, known.point, made)
        factor = self._factor(residual)
        if factor is not None:
            return self._better(bound, *self._solve_residual(factor, base, residual, known.point, made))
        peak = self._peak(residual, known, pull)
        if peak is not None:
            bound = self._better(bound, *self._minimise_combined(base, residual, known.point, made, peak))
        return bound

    def _factor(self, residual: Array) -> Factor | None:
        """Of the Hessian, where one is at hand."""
        return None if math.isnan(self._shift) else factor_of(self.rest, self.domain, residual)

    def _better(self, bound: float, other: float, margin: float) -> float:
        if other > bound:
            self.margin = margin
            return other
        return bound

    def remember(self, known: Linearisation) -> None:
        """Keep what a gradient says of the curvature, where bounds can use it."""
        if self.combines:
            self.cuts.add(known, self.errors(known).gradient)

    def remember_beside(self, known: Linearisation, other: Linearisation) -> None:
        """Keep what another gradient says of the curvature, which the next one is not compared with."""
        self._expected = None
        self.cuts.add_beside(known, other, self.errors(known).gradient + self.errors(other).gradient)

    def weights_at(self, pull: Array, known: Linearisation) -> Array:
        """Those of the directions at the point that a bound is made at."""
        peak = self._peak(known.gradient + pull, known, pull)
        return np.zeros(len(self.cuts.ways)) if peak is None else peak.weights

    def left_over(self, pull: Array, known: Linearisation) -> Array:
        """The slope that is left there."""
        return known.gradient + pull + self.cuts.at(self.weights_at(pull, known))[1]

    def foresees_at(self, known: Linearisation | None) -> bool:
        """Whether a bound can be expected for less than it takes to make it: on a set it can not, nor by a factor."""
        return self.combines and self.is_free and (known is None or not self.has_factor(known))

    def has_factor(self, known: Linearisation) -> bool:
        """Whether the minimum itself is known."""
        return self._factor(known.gradient) is not None

    def expect(self, pull: Array, known: Linearisation) -> tuple[float, float]:
        """h(p) + <pull, p> at the point of a gradient, and where the bound of `minimum` would lie but for rounding."""
        residual, base = known.gradient + pull, known.value + inner_product(pull, known.point)
        # A first direction takes a look.
        peak = self._peak(residual, known, pull)
        return base, base if peak is None else base + peak.level

    def _peak(self, residual: Array, known: Linearisation, pull: Array) -> Peak | None:
        """Where old gradients raise the bound most; None where there are none to be combined."""
        if not self.combines:
            return None
        if self._expected is not None and self._expected[0] is known and self._expected[1] is pull:
            return self._expected[2]
        self.remember(known)
        if self.is_free:
            peak = self.cuts.peak(residual, self.modulus)
        else:
            clips = isinstance(self.simple, Zero) and isinstance(self.domain, Box)
            peak = self.cuts.peak_within(residual, known.point, self.modulus, self.respond, clips)
        self._expected = None if peak is None else (known, pull, peak)
        return peak

    def respond(self, v: Array) -> tuple[Array, float]:
        """The minimiser of simple + mu/2 |. - v|^2 over the set, and the simple part there."""
        s = prox(self.simple, v, self.modulus, self.domain)
        return s, self.simple_value(s)

    def model_at(self, pull: Array, known: Linearisation, center: Array, error: float) -> tuple[float, Array, Errors]:
        """The costly part with the pull is at least base + <slope, x - center>: base, slope, and their rounding."""
        made, way = self._made(known, pull, error), center - known.point
        base = known.value + inner_product(known.gradient, way) + inner_product(pull, center)
        # The value is moved from the point of the gradient to the center.
        moved, size = length_of(way), length_of(center)
        slope, pulled = known.sizes[1], length_of(pull)
        inner = (inner_error(center.size) + FEW) * (slope * (moved + FEW * size) + pulled * size)
        lost = Errors(made.value + made.gradient * moved + error * size + inner, made.gradient)
        return base, known.gradient + pull, lost

    def scaled(self, known: Linearisation, t: float) -> Linearisation:
        """For t in [0, 1] a minorant of a sum of squares: that of the gradient with the residual times t."""
        made, (_, slope) = self.errors(known), known.sizes
        errors = made.value + FEW * abs(known.value), made.gradient + FEW * slope
        return Linearisation(known.point, (2.0 - t) * t * known.value, t * known.gradient, errors)

    @cached_property
    def _rough_curvature(self) -> float | None:
        return rough_curvature(self.rest, self.domain)

    @property
    def steepness(self) -> float:
        """About the curvature of the costly part, for a scale alone; 0 where none is known."""
        return self.curvature if self._rough_curvature is None else self._rough_curvature

    def _made(self, known: Linearisation, pull: Array, error: float) -> Errors:
        """What rounding can have done to value and slope at a point; they may be what is left of large terms."""
        (size, slope), pulled, own = known.sizes, length_of(pull), self.errors(known)
        inner = (inner_error(known.point.size) + FEW) * (slope + pulled) * size
        return Errors(
            own.value + FEW * abs(known.value) + inner + error * size, own.gradient + FEW * (slope + pulled) + error
        )

    def errors(self, known: Linearisation) -> Errors:
        """What rounding can have done to a value and a gradient as such."""
        size, slope = known.sizes
        made = errors_at(self.rest, known.point, known.value, slope) if known.errors is None else Errors(*known.errors)
        if self._own == 0.0:
            return made
        own = self._own_errors(known.value, size)
        return Errors(made.value + own.value, made.gradient + own.gradient)

    def _own_errors(self, value: float, size: float) -> Errors:
        """What rounding does to code that is not ours beside what shows in single answers."""
        # As of 1/2 |A x - b|^2 with |A|^2 the curvature.
        bent = math.sqrt(2.0 * self.curvature * abs(value)) + self._own * self.curvature * size
        return Errors(self._own * bent * size, self._own * self.curvature * size)

    def own_errors_of(self, columns: Sequence[Column]) -> Errors:
        """The same for the worst of the columns that a method remembers."""
        if self._own == 0.0:
            return Errors(0.0, 0.0)
        sizes = [length_of(column.point) for column in columns]
        return self._own_errors(max(abs(column.total) for column in columns), max(sizes))

    def simple_value(self, x: Array) -> float:
        """The simple part at x."""
        return 0.0 if isinstance(self.simple, Zero) else value_aside(self.simple, x)

    def _minimise_linearised(self, base: float, slope: Array, point: Array, made: Errors) -> tuple[float, float]:
        """Minimum over the domain of base + <slope, x - p> + mu/2 |x - p|^2 + simple(x), and what rounding took."""
        # The modulus is one on the domain; an extrapolated point may lie outside, a projection only by rounding.
        rounding = 4.0 * EPS * float(np.abs(point).sum())
        mu = self.modulus if self.domain.contains(point, rounding) else 0.0
        if mu > 0.0:
            return model_minimum(base, slope, point, mu, self.simple, self.domain, made)
        if not self._finite:
            return -math.inf, 0.0
        found = tilted_minimum(self.simple, slope, self.domain)
        distance = self.domain.radius(point) if self.domain.bounded else math.inf
        way, curved = length_of(found.point - point), certain_modulus(self.simple, self.domain)
        lost = made.value + wrong_slope_cost(made.gradient, way, distance, curved)
        return base - inner_product(slope, point) + found.lower - lost, lost + found.rounding

    def _solve_residual(
        self, factor: Factor, base: float, slope: Array, point: Array, made: Errors
    ) -> tuple[float, float]:
        """The minimum over the whole space by a factor of the Hessian, and what rounding took of it."""
        value = self.simple_value(point)
        turn = self.simple.gradient(point)
        errors = errors_at(self.simple, point, value, length_of(turn))
        slope = slope + turn
        form, mu = factor.inverse_form(slope, self._shift), self.modulus + certain_modulus(self.simple, self.domain)
        wrong = made.gradient + errors.gradient + FEW * length_of(slope)
        # <r, M^-1 d> <= |M^-1/2 r| |d| / sqrt(mu) for a slope that is wrong by d.
        lost = made.value + errors.value + wrong * math.sqrt(max(form, 0.0) / mu) + wrong * wrong / (2.0 * mu)
        lost += FEW * (abs(base) + abs(value) + form)
        return base + value - 0.5 * form - lost, lost

    def _minimise_combined(
        self, base: float, slope: Array, point: Array, made: Errors, peak: Peak
    ) -> tuple[float, float]:
        """The bound at a combination of old points: gradients of a quadratic are affine, its modulus is global."""
        move, turn, wrong = self.cuts.at(peak.weights)
        steep, length, turned = (length_of(part) for part in (slope, move, turn))
        lost = made.value + (made.gradient + 0.5 * wrong) * length
        lost += (inner_error(point.size) + FEW) * (steep + 0.5 * turned) * length
        # The point itself is rounded, and the slope with it.
        lost += FEW * (steep + turned) * (length_of(point) + length)
        there = Errors(lost, wrong + made.gradient + FEW * (steep + turned))
        value = base + inner_product(slope, move) + 0.5 * inner_product(move, turn)
        domain = FullSpace(point.shape) if self.is_free else self.domain
        return model_minimum(value, slope + turn, point + move, self.modulus, self.simple, domain, there)
