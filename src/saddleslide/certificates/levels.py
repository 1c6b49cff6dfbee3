"""Bounded sets that contain every solution, from what the functions are: rules and proofs in docs/certificates.md.

With U >= the saddle value and any y_0 of Y, every solution has F(x, y_0) <= U. Where F(., y_0) grows, that is a bounded
set, and the minimum of F(., y) over it is a lower bound on the saddle value although the set X has no end. For y the
same with the roles exchanged. Nothing here is believed that code of the caller's declares, and all is rounded outwards.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse

from saddleslide.arrays.base import Array, length_of
from saddleslide.arrays.kinds import NUMPY
from saddleslide.certificates.candidate import Linearisation, Split
from saddleslide.certificates.within import least_within
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import Box, FullSpace
from saddleslide.domains.norms import Ball
from saddleslide.domains.simplices import Simplex
from saddleslide.functions.base import Function
from saddleslide.functions.constants import smoothness_at_hand, takes_products
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.roundings import FEW, Errors, inner_error
from saddleslide.functions.scaled import Scaled
from saddleslide.functions.sums import Sum
from saddleslide.functions.trust import is_ours, is_own_class, read_rounding, runs_own_code, terms_of
from saddleslide.operators.base import Mirrored, Operator
from saddleslide.operators.explicit import Matrix
from saddleslide.operators.spectrum import margin_of_rounding
from saddleslide.problem import SaddleProblem

# Longest short side, and most entries, of a matrix whose singular values are worth their time.
_SIDE, _ENTRIES = 300, 200_000
# Where a function is linear, F is so along its block: a set twice as large proves that residuals are small as well.
_WIDENED = 2.0
# Of a function of which nothing is known: it is at least -inf |x|.
_UNKNOWN = -math.inf, 0.0


class Growth(NamedTuple):
    """Weights w and k with h(x) + <tilt, x> >= sum w |x| - k on the set; w is 0 where entries have two ends.

    Where the sets are balls, all other w are one number, and it is that times |x|.
    """

    weights: Array
    offset: float


class Level(NamedTuple):
    """All x with sum w |x| <= size, or sum w x^2 <= size^2; entries with w = 0 are bounded by the set itself."""

    weights: Array
    size: float
    is_square: bool
    words: str


class LevelSets:
    """What bounds the solutions in one block: `rest` + `simple` on its set, `other` on that of the other block."""

    def __init__(
        self, rest: Function, simple: Function, domain: Domain, other: Function, beyond: Domain, B: Operator, name: str
    ) -> None:
        self.rest, self.simple, self.domain, self.other, self.beyond, self.B = rest, simple, domain, other, beyond, B
        self.name = name
        self._applies: bool | None = None
        trusted = not any(runs_own_code(part) or part.convex_on_trust for part in (rest, simple))
        self._form = simple.separable_form() if trusted else None
        # The functions are at least c |x| - k.
        (slow, lost), (steep, more) = (growth_of(part, domain) if trusted else _UNKNOWN for part in (rest, simple))
        self._low = -lost if slow >= 0.0 else -math.inf
        self._slope, self._offset = slow + steep - 4.0 * FEW * (abs(slow) + abs(steep)), lost + more
        lower, upper = enclose(domain)
        has_form = self._form is not None and self._low > -math.inf
        # Whether the sets are balls: no bound entry by entry is at hand, and the function grows as |x|.
        self._is_round = self._slope > 0.0 and not (has_form and bool(np.any(self._kinks[0] > 0.0)))
        self.is_possible = (has_form or self._is_round) and not domain.bounded
        if self.is_possible:
            self._lower, self._upper = lower, upper
            self._endless = np.isinf(lower) | np.isinf(upper)
            # How far the set goes to both sides of 0, where it has an end there.
            self._ends = tuple(np.maximum(np.where(np.isinf(side), 0.0, side), 0.0) for side in (-lower, upper))
            self._widened = _WIDENED if rest.linear and simple.linear else 1.0

    @cached_property
    def _kinks(self) -> tuple[Array, Array]:
        """Of the simple part: its slopes at 0 to both sides less the linear part, and the linear part."""
        if self._form is None:
            return np.zeros(self.domain.shape), np.zeros(self.domain.shape)
        kinks = sum((np.asarray(w) for w, nu in self._form.powers if nu == 0.0), start=np.zeros(self.domain.shape))
        return kinks, np.broadcast_to(np.asarray(self._form.linear), self.domain.shape)

    def growth(self, tilt: Array | float = 0.0, error: float = 0.0) -> Growth:
        """How the function with a tilt grows; `error` bounds what the tilt is wrong by."""
        if self._is_round:
            steep = (1.0 + inner_error(self.domain.size) + 4.0 * FEW) * length_of(np.asarray(tilt)) + error
            weight = self._slope - steep - FEW * (self._slope + steep)
            return Growth(np.where(self._endless, weight, 0.0), round_up(self._offset, 0.0))
        assert self._form is not None
        kinks, linear = self._kinks
        # A Huber function is at least |x| less half its width.
        hubers, lost = sum(v for v, _ in self._form.hubers), sum(0.5 * v * delta for v, delta in self._form.hubers)
        slope, kinks = linear + tilt, kinks + hubers
        doubt = error + FEW * (kinks + np.abs(linear) + np.abs(tilt))
        right, left = kinks + slope - doubt, kinks - slope - doubt
        rising = np.minimum(
            np.where(self._upper == np.inf, right, np.inf), np.where(self._lower == -np.inf, left, np.inf)
        )
        weights = np.where(self._endless, rising, 0.0)
        ends = self._ends[0] * np.maximum(weights - left, 0.0) + self._ends[1] * np.maximum(weights - right, 0.0)
        offset = float(np.sum(ends)) + self.domain.size * lost - self._low
        return Growth(weights, (1.0 + 4.0 * inner_error(self.domain.size)) * offset)

    def rule(self, other: LevelSets) -> str:
        """Why the solutions in this block are bounded, whatever a run meets; empty where nothing says so."""
        if not self.is_possible:
            return ""
        function = "f" if self.name == "x" else "g"
        has_zero = not runs_own_code(self.other) and self.beyond.violation(np.zeros(self.beyond.shape)) == 0.0
        if has_zero and isinstance(other.rest, Zero):
            if self._is_round:
                return f"every solution has a bound on |{self.name}|: {function} grows as that does"
            if self._grows:
                return f"every solution has a bound on sum w |{self.name}|: {function} grows as that does"
            if math.isfinite(self._flat) and self._columns is not None:
                return f"every solution has a bound on {self.name}_j |A e_j|: A >= 0 and {self.name} >= 0"
        if self._inner_radius > 0.0 and math.isfinite(self._flat) and self._smallest > 0.0:
            return f"every solution has a bound on |{self.name}|: B has full rank, and 0 lies inside the other set"
        if self.is_onto(other):
            return f"every solution has a bound on |{self.name}|: B is onto, and the other function is quadratic"
        return ""

    @property
    def may_meet_a_margin(self) -> bool:
        """Whether a point of the other block with a margin in every constraint would bound this one."""
        is_linear = self.rest.linear and self.simple.linear
        return self.is_possible and is_linear and not np.any(np.isinf(self._lower) & np.isinf(self._upper))

    def is_better(self, new: Growth, old: Growth | None, reach: float) -> bool:
        """Whether the new one bounds all entries that the set does not, and by half of what the old one does."""
        smallest = float(np.min(new.weights[self._endless]))
        if old is None or not smallest > 0.0:
            return smallest > 0.0
        last = float(np.min(old.weights[self._endless]))
        if math.isinf(reach):
            return smallest > 2.0 * last
        return 2.0 * max(reach + new.offset, 0.0) / smallest < max(reach + old.offset, 0.0) / last

    def level(self, growth: Growth, excess: float) -> Level:
        """The solutions have h(x) + <tilt, x> <= excess: where the function grows, a bounded set."""
        size = self._widened * max(round_up(excess + growth.offset, abs(excess) + abs(growth.offset)), 0.0)
        rising = growth.weights[self._endless]
        smallest, largest = float(np.min(rising)), float(np.max(rising))
        if self._is_round:
            return self._ball(size / smallest)
        if largest <= smallest * (1.0 + 1e-9):
            return Level(growth.weights, size, False, f"sum |{self.name}| <= {size / smallest:.4g}")
        words = f"sum w |{self.name}| <= {size:.4g} with w from {smallest:.3g} to {largest:.3g}"
        return Level(growth.weights, size, False, words)

    @cached_property
    def _growth_at_zero(self) -> Growth:
        return self.growth()

    @cached_property
    def _grows(self) -> bool:
        """Whether the function bounds all entries that the set does not, with nothing added."""
        return bool(np.all(self._growth_at_zero.weights[self._endless] > 0.0))

    @cached_property
    def _flat(self) -> float:
        """A number that the function is never below the negative of; infinite where nothing says so."""
        growth = self._growth_at_zero
        return growth.offset if np.all(growth.weights[self._endless] >= 0.0) else math.inf

    @cached_property
    def _columns(self) -> tuple[Array, float] | None:
        """Squares of the norms of the columns of least squares with A >= 0 on x >= 0, rounded down, and |b|."""
        if np.any(self._lower < 0.0):
            return None
        squares, data = np.zeros(self.domain.size), 0.0
        for weight, part in terms_of(self.rest):
            residual = None if is_own_class(part) else part.squared_residual
            if residual is None or type(residual[0]) is not Matrix:
                continue
            A, b = residual
            entries = A.entries
            if (entries.data if scipy.sparse.issparse(entries) else entries).min(initial=0.0) < 0.0:
                continue
            found = (
                entries.multiply(entries).sum(axis=0)
                if scipy.sparse.issparse(entries)
                else np.square(entries).sum(axis=0)
            )
            squares += weight * np.asarray(found).ravel()
            data += weight * float(np.vdot(b, b))
        kept = (1.0 - 4.0 * inner_error(squares.size + 1)) * squares.reshape(self.domain.shape)
        return (np.where(self._endless, kept, 0.0), math.sqrt(data)) if np.all(kept[self._endless] > 0.0) else None

    @cached_property
    def _smallest(self) -> float:
        """The smallest singular value of B, from below, where all of them are positive and cheap to have."""
        B = self.B.original if isinstance(self.B, Mirrored) else self.B
        rows, columns = math.prod(B.y_shape), math.prod(B.x_shape)
        if type(B) is not Matrix or min(rows, columns) > _SIDE or rows * columns > _ENTRIES:
            return 0.0
        values = B.singular_values
        return max(float(values[-1]) - float(values[0]) * margin_of_rounding(max(rows, columns)), 0.0)

    @cached_property
    def _inner_radius(self) -> float:
        """Half the side of a cube around 0 in the other set, where its function is linear; 0 where there is none."""
        own, others = math.prod(self.domain.shape), math.prod(self.beyond.shape)
        if not isinstance(self.beyond, Box) or runs_own_code(self.other) or not self.other.linear or others < own:
            return 0.0
        return float(min(np.min(-self.beyond.lower, initial=math.inf), np.min(self.beyond.upper, initial=math.inf)))

    def at_zero(self, excess: float) -> list[Level]:
        """Sets that follow from h(x) + max over the other set of <., Bx> - other <= excess, with 0 in the other set."""
        if not math.isfinite(excess + self._flat):
            return []
        found = [self.level(self._growth_at_zero, excess)] if self._grows else []
        left = max(round_up(excess + self._flat, abs(excess) + abs(self._flat)), 0.0)
        if self._columns is not None:
            squares, data = self._columns
            # |A x| <= |b| + |A x - b|, and the square of |A x| is at least that of its parts x_j A e_j.
            size = round_up(data + math.sqrt(2.0 * left), data)
            words = f"|x_j| <= {size:.4g} / |A e_j|".replace("x", self.name)
            found.append(Level(squares, size, True, words))
        return found

    def by_rank(self, excess: float) -> list[Level]:
        """The set that follows where the other set has 0 inside, and B no kernel."""
        if not (self._inner_radius > 0.0 and math.isfinite(excess + self._flat) and self._smallest > 0.0):
            return []
        left = max(round_up(excess + self._flat, abs(excess) + abs(self._flat)), 0.0)
        center = length_of(self.other.gradient(np.zeros(self.beyond.shape)))
        return [self._ball(self._widened * (center + left / self._inner_radius) / self._smallest)]

    @cached_property
    def _ones(self) -> Array:
        return np.where(self._endless, 1.0, 0.0)

    def _ball(self, size: float) -> Level:
        size = round_up(size, 0.0)
        return Level(self._ones, size, True, f"|{self.name}| <= {size:.4g}")

    def smallest(self, levels: list[Level]) -> list[Level]:
        """Of several balls the smallest alone: the others hold it."""
        balls = sorted((level for level in levels if level.weights is self._ones), key=lambda level: level.size)
        return balls[:1] + [level for level in levels if level.weights is not self._ones]

    def is_onto(self, other: LevelSets) -> bool:
        """Whether `onto` applies: multipliers of Bx = b on free spaces, B onto, f quadratic with a Lipschitz part."""
        if self._applies is None:
            free = isinstance(self.domain, FullSpace) and isinstance(other.domain, FullSpace)
            is_linear = self.rest.linear and self.simple.linear and isinstance(self.rest, Zero)
            fits = free and is_linear and other.is_possible and other.rest.quadratic
            fits = fits and other.domain.size >= self.domain.size and other._is_lipschitz and math.isfinite(other._flat)
            known = smoothness_at_hand(other.rest, other.domain) if fits else None
            self._applies = known is not None and self._smallest > 0.0
        return self._applies

    def onto(self, other: LevelSets, value: float, slope: float, moved: float, missed: float) -> Level:
        """The multipliers, from bounds on f at a point, on its |Bx - b|, and on |f'| of its costly part so far away."""
        form, known = other._form, smoothness_at_hand(other.rest, other.domain)
        assert form is not None and known is not None
        kinks, tilt = other._kinks
        steep = length_of(kinks + sum(v for v, _ in form.hubers) + np.abs(tilt))
        # A point with Bx = b is not farther than this, and there f is at most so much above its least value.
        way, L = missed / self._smallest, known.H
        most = value + (slope + L * moved + steep) * way + 0.5 * L * way * way + other._flat
        most = max(round_up(most, abs(value) + abs(other._flat)), 0.0)
        return self._ball(self._widened * (math.sqrt(2.0 * L * most) + steep) / self._smallest)

    @property
    def linear_part(self) -> Array:
        """That of the simple part."""
        return self._kinks[1]

    def best_scale(self, known: Linearisation, pull: Array) -> float:
        """The t in [0, 1] whose minorant, (2t - t^2) h(p) + t <h'(p), x - p>, says most of those that the kinks hold.

        Of a sum of squares h alone; 1, the gradient itself, where there is none.
        """
        is_square = self._form is not None and self.rest.quadratic and self._low == 0.0
        if not (is_square and known.value > 0.0):
            return 1.0
        (kinks, linear), up, down = self._kinks, self._upper == np.inf, self._lower == -np.inf
        slope, tilt = known.gradient, linear + pull
        rates, ends = np.append(-slope[up], slope[down]), np.append((kinks + tilt)[up], (kinks - tilt)[down])
        rising, falling = rates > 0.0, rates < 0.0
        most = float(np.min(ends[rising] / rates[rising], initial=1.0))
        least = float(np.max(ends[falling] / rates[falling], initial=0.0))
        if not least <= most or bool((ends[rates == 0.0] < 0.0).any()):
            return 1.0
        best = 1.0 - float(np.vdot(slope, known.point)) / (2.0 * known.value)
        found: float = max(min(best, most), least)
        return found

    def least(self, level: Level, model: tuple[float, Array, Errors], center: Array) -> tuple[float, float]:
        """The least of base + <slope, x - center> + simple(x) over the level set from below, and what rounding took."""
        base, slope, made = model
        kinks, linear = self._kinks
        total, here = slope + linear, length_of(center)
        right, left = np.maximum(-total - kinks, 0.0), np.maximum(total - kinks, 0.0)
        # What an entry can gain per unit of its size, where the set has points on that side of 0.
        gain = np.maximum(np.where(self._upper > 0.0, right, 0.0), np.where(self._lower < 0.0, left, 0.0))
        sizes = np.where(self._endless, 0.0, np.maximum(*self._ends))
        ended, gain = float(np.sum(gain * sizes)), gain[self._endless]
        weights = level.weights[self._endless]
        longest = level.size / float(np.min(np.sqrt(weights) if level.is_square else weights))
        if level.is_square:
            fall = level.size * length_of(gain / np.sqrt(weights))
        else:
            fall = level.size * float(np.max(gain / weights))
        size, reach = length_of(slope), math.hypot(longest, length_of(sizes))
        inner = inner_error(center.size) + FEW
        if self._form is None:
            # The set lies within this of 0, and the model is moved there.
            moved = made.value + made.gradient * here + inner * (abs(base) + 2.0 * size * here)
            base, origin, made = base - float(np.vdot(slope, center)), 0.0 * center, Errors(moved, made.gradient)
            near = least_within(base, slope, origin, round_up(reach, 0.0), self.simple, self.domain, made, math.nan)
            return near.value, near.margin
        wrong = made.gradient + FEW * (size + length_of(linear) + length_of(kinks))
        margin = made.value + wrong * (reach + here) + inner * (abs(base) + 2.0 * size * here + fall + ended)
        found = base - float(np.vdot(slope, center)) - fall - ended - margin
        # Made of kinks at 0 and a linear part the bound is tight already.
        is_polyhedral = self._is_lipschitz and not self._form.hubers
        if not is_polyhedral and math.isfinite(reach):
            near = least_within(base, slope, center, reach + here, self.simple, self.domain, made, math.nan)
            return (near.value, near.margin) if near.value > found else (found, margin)
        return found, margin

    @cached_property
    def _is_lipschitz(self) -> bool:
        """Whether the simple part is known to be so on the whole space."""
        if self._form is None:
            return False
        return not np.any(np.asarray(self._form.quadratic) > 0.0) and all(nu == 0.0 for _, nu in self._form.powers)


def level_sets(problem: SaddleProblem, split: Split) -> tuple[LevelSets, LevelSets]:
    """What bounds the solutions in both blocks."""
    names = "yx" if isinstance(problem.coupling, Mirrored) else "xy"
    B, X, Y = problem.coupling, problem.X, problem.Y
    found = (
        LevelSets(split.f_rest, split.f_simple, X, problem.g, Y, B, names[0]),
        LevelSets(split.g_rest, split.g_simple, Y, problem.f, X, B, names[1]),
    )
    for sets in found:
        # Weights lie on the host.
        sets.is_possible = sets.is_possible and problem.arrays == NUMPY
    return found


def growth_of(function: Function, domain: Domain) -> tuple[float, float]:
    """Numbers c and k with f(x) >= c |x| - k on the set, from what the function is; c is -inf where nothing says so."""
    if function.is_sum_of_squares and not is_own_class(function):
        # Whoever makes its products.
        return 0.0, 0.0
    if is_ours(function, Scaled):
        slope, offset = growth_of(function.function, domain) if function.factor > 0.0 else (0.0, 0.0)
        return function.factor * slope, function.factor * offset
    if is_ours(function, Sum):
        slopes, offsets = zip(*(growth_of(part, domain) for part in function.parts), strict=True)
        # The sum is rounded down.
        return sum(slopes) - FEW * sum(map(abs, slopes)), sum(offsets)
    if runs_own_code(function) or function.convex_on_trust or takes_products(function):
        return _UNKNOWN
    slope = 0.0 if isinstance(function, Zero) else function.growth(domain)
    if slope > -math.inf:
        return slope - (inner_error(domain.size) + FEW) * abs(slope), 0.0
    constant, along, spread = read_rounding(function).floor
    return (0.0, constant) if along == spread == 0.0 else _UNKNOWN


def enclose(domain: Domain) -> tuple[Array, Array]:
    """Sides of a box around the set, infinite where nothing is known."""
    if is_ours(domain, Box):
        return domain.lower, domain.upper
    if is_ours(domain, Simplex):
        return np.zeros(domain.shape), np.ones(domain.shape)
    if is_ours(domain, Ball):
        center = np.zeros(domain.shape) if domain.center is None else domain.center
        return center - domain.ball_radius * (1.0 + FEW), center + domain.ball_radius * (1.0 + FEW)
    if not is_own_class(domain) and domain.blocks[0] is not domain:
        sides = [[side.ravel() for side in enclose(block)] for block in domain.blocks]
        return np.concatenate([side[0] for side in sides]), np.concatenate([side[1] for side in sides])
    return np.full(domain.shape, -np.inf), np.full(domain.shape, np.inf)


def round_up(value: float, terms: float) -> float:
    """Not less than what the value would be without rounding of terms of these sizes."""
    return value + 16.0 * FEW * (abs(value) + terms)
