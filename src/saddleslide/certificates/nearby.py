"""The claim within radii: the gap over products of balls around a point, where nothing bounds a set (within.py)."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from saddleslide.arrays.base import Array, length_of, read_only
from saddleslide.certificates.candidate import Linearisation
from saddleslide.certificates.certificate import EPS
from saddleslide.certificates.rays import seek
from saddleslide.certificates.unbounded import Around, Lengths
from saddleslide.certificates.within import Block, blocks_of, can_split, least_in_blocks, size_of
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.separable import finite_slope
from saddleslide.functions.trust import certain_modulus, runs_own_code
from saddleslide.operators.base import Mirrored

if TYPE_CHECKING:
    from saddleslide.certificates.bounds import Bounds
    from saddleslide.certificates.certificate import Side
    from saddleslide.certificates.inspection import Inspection, Questions
    from saddleslide.certificates.residuals import ResidualBound
    from saddleslide.certificates.unbounded import Rays

# A length never falls below this part of the largest one.
_KEPT = 0.1
# Rays speak of points so many times as far as claims within radii do.
_FAR = 1e4


class Nearby(Around):
    """Gaps within radii, `radius` times as long as the blocks are large; 0 asks for none."""

    def __init__(
        self,
        asked: Questions,
        bounds: Bounds,
        below: ResidualBound,
        above: ResidualBound,
        start: tuple[Array, Array],
        radius: float,
    ) -> None:
        super().__init__(bounds)
        self._asked, self._sides, self._start, self._radius = asked, (below, above), start, radius
        self._given: Lengths | None = None

    @cached_property
    def blocks(self) -> tuple[tuple[Block, ...], tuple[Block, ...]]:
        """Those of x and of y."""
        return _blocks_of_both(self._asked)

    @cached_property
    def _diameters(self) -> Lengths:
        """How long the sets of the blocks are; infinite where they have no end, or are a point."""
        x, y = (
            tuple((block.domain.bounded and block.domain.diameter()) or math.inf for block in blocks)
            for blocks in self.blocks
        )
        return x, y

    def give(self, radii: tuple[float, ...] | None) -> None:
        if radii is not None:
            of_y, blocks = radii[1:], self.blocks[1]
            self._given = radii[:1], of_y if len(of_y) == len(blocks) else (min(of_y),) * len(blocks)

    def keep_scale(self, former: Around, is_mirrored: bool) -> None:
        if former.radii is not None:
            # A bound on a whole set has no radius, and plans may see other blocks.
            x, y = (tuple(r / self._radius if r < math.inf else 0.0 for r in each) for each in former.radii)
            both = zip((y, x) if is_mirrored else (x, y), self.blocks, strict=True)
            x, y = (each if len(each) == len(blocks) else (max(each),) * len(blocks) for each, blocks in both)
            self.largest = x, y

    def look(self, at: Inspection) -> bool:
        open_sides = [
            side for side, bound in zip(self._sides, (at.lower, at.upper), strict=True) if not math.isfinite(bound)
        ]
        # Where a bound on the whole set is possible, it is waited for.
        if self._radius == 0.0 or not open_sides or any(side.possible for side in open_sides) or at.f_known is None:
            return False
        f_known, g_known = at.f_known, self._gradient_of_g(at)
        if self.first_slopes is None and g_known is not None:
            self.first_slopes = self._slopes_at_start()
            self.met_slopes = self._slopes(at.x, at.y, f_known.gradient + at.pull, g_known.gradient - at.Bx)
        sizes, present = self._measure_sizes(at)
        radii = self._given or self._lengths(_larger(sizes, self._least_sizes(at, sizes)))
        # Where nothing has a scale, at a minimum of 0, a gap is one that no radius makes larger: one of 0.
        whole = math.isfinite(at.lower), math.isfinite(at.upper)
        has_scale = all(known or all(each) for known, each in zip(whole, radii, strict=True))
        if not has_scale:
            radii = tuple(r or 1.0 for r in radii[0]), tuple(r or 1.0 for r in radii[1])
        if all(known or all(r < math.inf for r in each) for known, each in zip(whole, radii, strict=True)):
            self._measure(at, f_known, g_known, radii, self._sizes_of_worth(sizes, present), has_scale)
        return True

    def seek_rays(self, at: Inspection, rays: Rays) -> None:
        if self.first_slopes is not None:
            seek(rays, at, self._asked, self.blocks, self._far(at))

    def _measure(
        self, at: Inspection, f_known: Linearisation, g_known: Linearisation | None, radii: Lengths, sizes: Lengths,
        has_scale: bool,
    ) -> None:  # fmt: skip
        """The gap of a candidate within these radii, whose blocks have these sizes; kept where it is the smallest."""
        (below, above), blocks = self._sides, self.blocks
        lower, upper, taus = at.lower, at.upper, list(self.taus or _fill(blocks, math.nan))
        margins, infinite = [self._bounds.margin_below, self._bounds.margin_above], _fill(blocks, math.inf)
        if not math.isfinite(lower):
            base, slope, lost = below.model_at(at.pull, f_known, at.x, at.pull_error)
            least, margin, taus[0] = least_in_blocks(
                base, slope, at.x, radii[0], below.simple, blocks[0], lost, taus[0]
            )
            rounding = 16.0 * EPS * (abs(at.g_value) + abs(least))
            margins[0] = margin + at.g_error + rounding
            lower = least - at.g_value - at.g_error - rounding
        else:
            radii = infinite[0], radii[1]
        if not math.isfinite(upper) and g_known is not None:
            base, slope, lost = above.model_at(-at.Bx, g_known, at.y, at.Bx_error)
            least, margin, taus[1] = least_in_blocks(
                base, slope, at.y, radii[1], above.simple, blocks[1], lost, taus[1]
            )
            rounding = 16.0 * EPS * (abs(at.value) + abs(least))
            margins[1] = margin + at.error + rounding
            upper = at.value - least + at.error + rounding
        else:
            radii = radii[0], infinite[1]
        self.taus = taus[0], taus[1]
        # Written so that a NaN is never accepted; a bound above the other is rounding, or a contradiction.
        self.last_gap = abs(upper - lower) if math.isfinite(upper - lower) else math.inf
        self.last_gap = self.last_gap if has_scale or self.last_gap == 0.0 else math.inf
        if lower <= upper and self.last_gap < self.gap:
            self.point, self.lower, self.upper, self.margin = (at.x, at.y), lower, upper, sum(margins)
            self.radii, self.worth, self.fall = radii, self._worth(at, sizes, f_known, g_known), at.fall

    def _gradient_of_g(self, at: Inspection) -> Linearisation | None:
        """That of the costly part, asked for where the first slopes or an upper bound need it."""
        asked, known = self._asked, at.g_known
        if known is None and (at.upper == math.inf or self.first_slopes is None):
            work = asked.split.g_rest.value_and_gradient
            known = Linearisation(at.y, *asked.oracles.made("g", 1, lambda: work(read_only(at.y))))
        return known

    def _slopes_at_start(self) -> Lengths:
        """Those of the start: where first steps lead to in units that do not fit, slopes can be anything."""
        (x, y), oracles, split = self._start, self._asked.oracles, self._asked.split
        slopes = []
        for name, rest, point in (("f", split.f_rest, x), ("g", split.g_rest, y)):
            is_costly = not isinstance(rest, Zero)
            slopes.append(oracles.gradient(name, rest, point) if is_costly else np.zeros_like(point))
        return self._slopes(x, y, slopes[0] + oracles.pull(y), slopes[1] - oracles.image(x))

    def _slopes(self, x: Array, y: Array, f_slope: Array, g_slope: Array) -> Lengths:
        """The sizes of both slopes at a point, block by block."""
        problem, split = self._asked.problem, self._asked.split
        f_slope = f_slope + finite_slope(split.f_simple, x, problem.X)
        g_slope = g_slope + finite_slope(split.g_simple, y, problem.Y)
        return _norms(f_slope, self.blocks[0]), _norms(g_slope, self.blocks[1])

    def _measure_sizes(self, at: Inspection) -> tuple[Lengths, Lengths]:
        """How large the blocks are, from the point and the first slopes; first with a part of what was met on the way.

        Multipliers of a problem that is constraints alone may shrink for ever. What a target is relative to goes by the
        point alone: steps in units that do not fit may have been anywhere.
        """
        assert self.first_slopes is not None and self.met_slopes is not None
        present = self._sizes_by(at, self.first_slopes)
        if not all(map(all, present)):
            # Slopes of the first point that was judged are a scale only where there is no other.
            present = _first_positive(present, self._sizes_by(at, self.met_slopes))
        self.largest = largest = _larger(self.largest or present, present)
        kept = tuple(_KEPT * size for size in largest[0]), tuple(_KEPT * size for size in largest[1])
        return _larger(present, kept), present

    def _sizes_by(self, at: Inspection, slopes: Lengths) -> Lengths:
        found = []
        for block, point in enumerate((at.x, at.y)):
            steep, others = (
                self._sides[block].steepness,
                list(zip(slopes[1 - block], self.blocks[1 - block], strict=True)),
            )
            moved, sizes = point - self._start[block], []
            for part, own, longest in zip(self.blocks[block], slopes[block], self._diameters[block], strict=True):
                size = max(length_of(part.of(point)), length_of(part.of(moved)))
                # How far a first step would go, and what the other block asks for.
                size = max(size, own / steep if 0.0 < steep < math.inf else 0.0)
                for other, beyond in others:
                    norm = min(part.norm, beyond.norm)
                    size = max(size, other / norm if norm > 0.0 else 0.0)
                sizes.append(min(size, longest))
            found.append(tuple(sizes))
        return found[0], found[1]

    def _lengths(self, sizes: Lengths) -> Lengths:
        """The radii that a claim speaks of: multiples of the sizes of all blocks."""
        x, y = (
            tuple(
                # All of a bounded block: within less than that its best response would not count.
                max(self._radius * size, longest if size > 0.0 and longest < math.inf else 0.0)
                for size, longest in zip(each, lengths, strict=True)
            )
            for each, lengths in zip(sizes, self._diameters, strict=True)
        )
        return x, y

    def _far(self, at: Inspection) -> Lengths:
        """Many times the radii that follow from the sizes alone."""
        x, y = self._lengths(self._measure_sizes(at)[0])
        return tuple(_FAR * radius for radius in x), tuple(_FAR * radius for radius in y)

    def _least_sizes(self, at: Inspection, sizes: Lengths) -> Lengths:
        """Sizes of multipliers at which a constraint that is missed by as much as its terms costs as much as F.

        Within them a target relative to F asks for residuals that are small beside their terms, however large a
        constant F has, and whether or not multipliers of any size were met. So too where nothing is known of a simple
        part of the caller's, or of a support function.
        """
        found = []
        for block, (side, point) in enumerate(((self._asked.f, at.x), (self._asked.g, at.y))):
            parts, others = self.blocks[block], list(zip(self.blocks[1 - block], sizes[1 - block], strict=True))
            pulls = [math.hypot(*(min(part.norm, other.norm) * size for other, size in others)) for part in parts]
            slopes = self._linear_slopes(side, point, parts) if isinstance(self._sides[block].rest, Zero) else ()
            found.append(
                tuple(
                    1.0 / math.hypot(slope, pull) if slope + pull > 0.0 else 0.0
                    for slope, pull in zip(slopes or (math.inf,) * len(parts), pulls, strict=True)
                )
            )
        # Costly functions are not linear.
        is_asked = any(map(any, found)) and isinstance(self._asked.split.g_rest, Zero)
        size = abs(at.value + at.coupled - at.g_value) if is_asked else 0.0
        return tuple(size * one for one in found[0]), tuple(size * one for one in found[1])

    def _linear_slopes(self, side: Side, point: Array, blocks: tuple[Block, ...]) -> list[float]:
        """Slopes of the blocks on which a function is linear, 0 where nothing is known of it.

        Infinite where it has a scale of its own: a bounded set, a modulus; and where it is 0.
        """
        whole, found = side.function, []
        parts = [part for part, _ in whole.blocks_on(side.domain)] if len(blocks) > 1 else [whole]
        if len(parts) < len(blocks) or (whole.linear and not runs_own_code(whole)):
            slopes = _norms(whole.gradient(point), blocks) if whole.linear else ()
            return [slope or math.inf for slope in slopes or (0.0,) * len(blocks)]
        for part, block in zip(parts, blocks, strict=True):
            if part.linear and not runs_own_code(part):
                found.append(length_of(part.gradient(block.of(point))) or math.inf)
            else:
                is_scaled = block.domain.bounded or certain_modulus(part, block.domain) > 0.0
                found.append(math.inf if is_scaled else 0.0)
        return found

    def _sizes_of_worth(self, sizes: Lengths, present: Lengths) -> Lengths:
        """Those of the point; of multipliers of constraints alone, which shrink for ever, those that radii have."""
        x, y = (
            size if _is_constant(side) else now
            for side, size, now in zip((self._asked.g, self._asked.f), sizes, present, strict=True)
        )
        return x, y

    def _worth(self, at: Inspection, sizes: Lengths, f_known: Linearisation, g_known: Linearisation | None) -> float:
        """What slopes of f and g are worth: the scale of F where it is 0 at the start."""
        problem, split = self._asked.problem, self._asked.split
        slopes = (
            f_known.gradient + finite_slope(split.f_simple, at.x, problem.X),
            (0.0 if g_known is None else g_known.gradient) + finite_slope(split.g_simple, at.y, problem.Y),
        )
        return sum(
            size * slope
            for each, blocks, lengths in zip(slopes, self.blocks, sizes, strict=True)
            for size, slope, block in zip(lengths, _norms(each, blocks), blocks, strict=True)
            # Along a single point nothing changes.
            if not (block.domain.bounded and block.domain.diameter() == 0.0)
        )


def _blocks_of_both(asked: Questions) -> tuple[tuple[Block, ...], tuple[Block, ...]]:
    """Those of x and of y. What the caller calls y has as many as its set or its function; x is one."""
    problem, B = asked.problem, asked.problem.coupling
    size = size_of(B)
    x, y = (Block(None, problem.X, size),), (Block(None, problem.Y, size),)
    if isinstance(B, Mirrored):
        found = blocks_of(problem.X, asked.f.function, B.original)
        return (found, y) if can_split(asked.split.f_simple, found) else (x, y)
    found = blocks_of(problem.Y, asked.g.function, B)
    return (x, found) if can_split(asked.split.g_simple, found) else (x, y)


def _is_constant(side: Side) -> bool:
    return (f := side.function).linear and not runs_own_code(f) and not np.any(f.gradient(np.zeros(side.domain.shape)))


def _norms(point: Array, blocks: tuple[Block, ...]) -> tuple[float, ...]:
    return tuple(length_of(block.of(point)) for block in blocks)


def _fill(blocks: tuple[tuple[Block, ...], tuple[Block, ...]], value: float) -> Lengths:
    return (value,) * len(blocks[0]), (value,) * len(blocks[1])


def _larger(one: Lengths, other: Lengths) -> Lengths:
    return tuple(map(max, one[0], other[0])), tuple(map(max, one[1], other[1]))


def _first_positive(one: Lengths, other: Lengths) -> Lengths:
    """The first of two, number by number, where it is not 0."""
    x, y = (tuple(a if a > 0.0 else b for a, b in zip(*both, strict=True)) for both in zip(one, other, strict=True))
    return x, y
