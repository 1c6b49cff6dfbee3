"""The conditions of optimality of a quadratic program as one monotone system, and what solves Newton's equations of it.

All that is optimised is one vector u = (x, y, s, m): s are the slopes of kinks, m the multipliers of equations; x and y
hold what squares such as |Ax - b|^2 / 2 bring along (`lift_squares`). With q and c from `Program`, the point solves the
monotone system

    q u + c + K u = z_lower - z_upper,    (u - lower) z_lower = (upper - u) z_upper = 0,

where K is skew: B, its transpose, and what ties slopes and multipliers to x and y. A step of Newton's method on it
comes down to one symmetric system in x or in y, whichever is smaller and safe to form: theta_x + B^T B / theta_y, or
its mirror.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from saddleslide.domains.program import Program, lift_squares, program_of
from saddleslide.facts.newton import is_formed_in_x, is_written_out
from saddleslide.functions.trust import inside
from saddleslide.methods.base import Array, Point
from saddleslide.operators.factor import SymmetricMatrix
from saddleslide.operators.gram import SparseGram

if TYPE_CHECKING:
    from saddleslide.methods.base import Oracles
    from saddleslide.problem import SaddleProblem

# What the diagonal of the system has at least, relative to its largest entry: a proximal term, made good by refinement.
_PROXIMAL = 1e-13
_REFINEMENTS = 3
# The equations are solved where so small a part of their terms is left.
_SOLVED = 1e-12


class Rows:
    """A matrix of blocks of rows, dense or sparse each; the Gram matrix of one is kept for divisors that are equal."""

    def __init__(self, blocks: list[Any], grams: Sequence[tuple[Any, Array]] = ()) -> None:
        if is_written_out(blocks):
            blocks = [block.toarray() if scipy.sparse.issparse(block) else block for block in blocks]
        self.blocks, self.transposes = blocks, [block.T for block in blocks]
        ends = list(itertools.accumulate((block.shape[0] for block in blocks), initial=0))
        self.places = [slice(*ends) for ends in itertools.pairwise(ends)]
        self.shape = int(ends[-1]), int(blocks[0].shape[1])
        known = [(k, gram) for k, block in enumerate(blocks) for A, gram in grams if A is block]
        self._kept: dict[int, Any] = dict(known)
        self._patterns: dict[bool, SparseGram | None] = {}

    @cached_property
    def whole(self) -> Any:
        """All of it as one matrix."""
        if len(self.blocks) == 1:
            return self.blocks[0]
        if all(scipy.sparse.issparse(block) for block in self.blocks):
            return scipy.sparse.vstack(self.blocks, format="csr")
        return np.vstack([block.toarray() if scipy.sparse.issparse(block) else block for block in self.blocks])

    def forward(self, x: Array) -> Array:
        """Its product with x."""
        if len(self.blocks) == 1:
            return self.blocks[0] @ x  # type: ignore[no-any-return]
        return np.concatenate([block @ x for block in self.blocks])

    def adjoint(self, y: Array) -> Array:
        """Its transpose's product with y."""
        if len(self.blocks) == 1:
            return self.transposes[0] @ y  # type: ignore[no-any-return]
        found: Array = sum(
            turned @ y[place] for turned, place in zip(self.transposes[1:], self.places[1:], strict=True)
        )
        found += self.transposes[0] @ y[self.places[0]]
        return found

    def _pattern(self, in_x: bool) -> SparseGram | None:
        """Of the system in x or in y, where all of it is sparse; made once, since patterns do not change."""
        if in_x not in self._patterns:
            side = self.whole if in_x else self.whole.T
            side = scipy.sparse.csr_array(side) if scipy.sparse.issparse(side) else None
            self._patterns[in_x] = SparseGram(side) if side is not None and SparseGram.takes(side) else None
        return self._patterns[in_x]

    def normal(self, in_x: bool, a: Array, b: Array, once: bool = False) -> SymmetricMatrix:
        """B^T diag(1 / b) B + diag(a), or B diag(1 / a) B^T + diag(b); `once`: without a pattern for the next ones."""
        pattern = None if once else self._pattern(in_x)
        if pattern is not None:
            return pattern.weighted(1.0 / (b if in_x else a), a if in_x else b)
        if not in_x:
            return SymmetricMatrix(with_diagonal([weighted_gram(self.whole.T, a)], b))
        parts = [self._gram_of(k, b[place]) for k, place in enumerate(self.places)]
        return SymmetricMatrix(with_diagonal(parts, a))

    def _gram_of(self, k: int, divisor: Array) -> Any:
        """B_k^T diag(1 / divisor) B_k of a block; that for equal ones is made once."""
        if not (divisor == divisor[:1]).all():
            return weighted_gram(self.blocks[k], divisor)
        if k not in self._kept:
            self._kept[k] = self.transposes[k] @ self.blocks[k]
        return self._kept[k] if divisor.size == 0 or divisor[0] == 1.0 else self._kept[k] * (1.0 / divisor[0])


class System:
    """The optimality conditions of a problem as one monotone system in u = (x, y, s, m) between bounds."""

    def __init__(
        self, f: Program, g: Program, matrix: Any, parts: tuple[Program, Program, list[Any]],
        grams: Sequence[tuple[Any, Array]] = (),
    ) -> None:  # fmt: skip
        self.own = f.size, g.size
        # Which functions the squares belong to: a product with their matrices is part of a gradient.
        self.costly = [name for name, side in (("f", f), ("g", g)) if side.squares]
        self._calls = [(name, 1) for name in self.costly] + [("B", 2)] * (min(self.own) > 0) or [("B", 0)]
        squares = ([A for A, _ in side.squares] for side in (f, g))
        a, c = (max(map(_largest, matrices), default=0.0) for matrices in squares)
        given, (f, g, blocks) = (f, g), parts
        self.B, self.sides = Rows(blocks, grams), (f.size, g.size)
        total = f.size + g.size
        # One row for each kink that is there: its entry of (x, y).
        kinks = [(offset, kink) for offset, part in ((0, f), (f.size, g)) for kink in part.kinks]
        where = [offset + np.flatnonzero(kink.weight) for offset, kink in kinks]
        weights, centers, bends = (
            np.concatenate([np.zeros(0), *(getattr(kink, name)[kink.weight > 0.0] for _, kink in kinks)])
            for name in ("weight", "center", "bend")
        )
        self.kinked = np.concatenate([np.zeros(0, dtype=np.intp), *where])
        self._is_shared = np.unique(self.kinked).size < self.kinked.size
        p = f.totals.size + g.totals.size
        # Few, and borders of a dense factor.
        self.rows = np.zeros((p, total))
        if p:
            both = scipy.sparse.block_diag([scipy.sparse.csr_array(one.rows) for one in (f, g)])
            self.rows = both.toarray()
        free = np.full(p, np.inf)
        self.q = np.concatenate([f.quadratic, g.quadratic, bends, np.zeros(p)])
        self.c = np.concatenate([f.linear, g.linear, centers, f.totals, g.totals])
        self.lower = np.concatenate([f.lower, g.lower, -weights, -free])
        self.upper = np.concatenate([f.upper, g.upper, weights, free])
        # The entries with a lower bound, then those with an upper one; bounds are said by their signs from there on.
        below, above = (np.flatnonzero(np.isfinite(end)) for end in (self.lower, self.upper))
        self.bounded, self._below = np.concatenate([below, above]), below.size
        self.signs = np.repeat([1.0, -1.0], [below.size, above.size])
        self._bounds = np.concatenate([self.lower[below], self.upper[above]])
        self._ends = np.cumsum([f.size, g.size, weights.size]).tolist()
        # x, y, what squares bring along with each, slopes of f and of g, multipliers of X and of Y.
        of_f = int((self.kinked < self.sides[0]).sum())
        counts = (
            self.own[0], f.size - self.own[0], self.own[1], g.size - self.own[1], of_f, weights.size - of_f,
            f.totals.size, g.totals.size,
        )  # fmt: skip
        ends = np.cumsum([0, *counts]).tolist()
        # Whether F is smallest over an entry, or largest.
        self._is_least = np.repeat([True, True, False, False, False, True, False, True], counts)
        self.starts = [a for a, b in itertools.pairwise(ends) if b > a]
        self._counts = np.diff([*self.starts, ends[-1]])
        # Typical sizes of each; known where no squares tell them.
        x, y, steep = 1.0, 1.0, _largest(matrix)
        self._worth = steep or 1.0
        if not self.costly:
            x, y = _lengths(*given, steep)
            # Without products a problem is worth what its own slopes are.
            self._worth = steep * x * y or max(_steepness(given[0]) * x, _steepness(given[1]) * y) or x * y
        dual = self._worth / x, self._worth / y
        self.units = np.repeat([x, 1.0, y, 1.0, *dual, *dual], counts)
        typical = self._worth / x**2, 1.0, self._worth / y**2, 1.0
        ends = ends[:5]
        floors = zip(itertools.pairwise(ends), typical, strict=True)
        self._floors = [(slice(a, b), size) for (a, b), size in floors if b > a]
        self._damping = self._find_damping(a, steep, c)

    @classmethod
    def of(cls, problem: SaddleProblem) -> System:
        """The system of a problem that an interior-point method applies to."""
        f, g = program_of(problem.f, problem.X), program_of(problem.g, problem.Y)
        assert f is not None and g is not None
        matrix = problem.coupling.entries
        return cls(f, g, matrix, lift_squares(f, g, matrix), grams_of(problem))

    def room(self, u: Array) -> Array:
        """Distances to the bounds that are there."""
        found: Array = self.signs * (u[self.bounded] - self._bounds)
        return found

    def gather(self, values: Array, sign: float) -> Array:
        """For each entry the value of its lower bound, and `sign` times that of its upper one."""
        found = np.zeros_like(self.q)
        found[self.bounded[: self._below]] = values[: self._below]
        found[self.bounded[self._below :]] += sign * values[self._below :]
        return found

    def split(self, u: Array) -> list[Array]:
        """x, y, slopes and multipliers."""
        n, total, slopes = self._ends
        return [u[:n], u[n:total], u[total:slopes], u[slopes:]]

    def point(self, u: Array, problem: SaddleProblem) -> Point:
        """X and y in their sets, where the problem's arrays lie."""
        x, y, _, _ = self.split(u)
        x, y = x[: self.own[0]], y[: self.own[1]]
        return problem.place(
            (problem.X.project(x.reshape(problem.X.shape)), problem.Y.project(y.reshape(problem.Y.shape)))
        )

    def turn(self, u: Array) -> Array:
        """K u."""
        (n, both, slopes), out = self._ends, np.empty_like(u)
        out[:n] = self.B.adjoint(u[n:both])
        np.negative(self.B.forward(u[:n]), out=out[n:both])
        if both < slopes:
            self.spread(out, u[both:slopes])
            out[both:slopes] = -u[self.kinked]
        if slopes < u.size:
            out[:both] += u[slopes:] @ self.rows
            out[slopes:] = -(self.rows @ u[:both])
        return out

    def spread(self, u: Array, values: Array) -> None:
        """Add the values of kinks to the entries that they belong to."""
        if self._is_shared:
            np.add.at(u, self.kinked, values)
        else:
            u[self.kinked] += values

    def residual(self, u: Array, oracles: Oracles) -> Array:
        """Q u + c + K u, by two counted products, and a gradient of each function with squares."""
        for name, count in self._calls[1:]:
            oracles.made(name, count, lambda: None)
        found: Array = self.q * u + self.c + oracles.made(*self._calls[0], lambda: self.turn(u))
        return found

    def value(self, u: Array, wrong: Array) -> float:
        """F at u but for constants, from what is wrong there: products of K with both sides of u cancel."""
        return -float(0.5 * ((self.q * u) @ u) + np.where(self._is_least, wrong, self.c) @ u)

    def solution(self) -> tuple[Array, Array] | None:
        """What solves the equations alone, where that lies between the bounds; None where it does not, or may not."""
        if self.kinked.size or not float(np.min(self.q[: self.sides[0]], initial=np.inf)) > 0.0:
            return None
        u = self.factorise(self.q, once=True)(-self.c)
        miss = self.q * u + self.c + self.turn(u)
        if not ((self.room(u) > 0.0).all() and _norm(miss) <= 1e2 * _SOLVED * (_norm(self.c) + _norm(self.q * u))):
            return None
        # Multipliers of bounds that are far away.
        return u, np.full(self.bounded.size, float(np.mean(np.abs(self.c))) * _SOLVED)

    def begin(self) -> tuple[Array, Array]:
        """Well between the bounds, at the size of a damped solution of the equations alone; multipliers to match."""
        guess = self.factorise(self.q + self._damping)(-self.c)
        sizes, low, high = np.abs(guess), self.lower, self.upper
        scale = self._means(sizes) + 1e-3 * np.maximum.reduceat(sizes, self.starts)
        width = np.minimum(self._each(scale, self.units), 0.4 * (high - low))
        u = np.maximum(np.minimum(guess, high - width), low + width)
        slopes = self.q * u + self.c + self.turn(u)
        scale = self._each(self._means(np.abs(slopes)), self._worth / self.units)
        return u, np.maximum(self.signs * slopes[self.bounded], scale[self.bounded])

    def _means(self, values: Array) -> Array:
        """The mean of each block."""
        found: Array = np.add.reduceat(values, self.starts) / self._counts
        return found

    def _each(self, scales: Array, other: Array) -> Array:
        """For every entry the scale of its block, or the other one where that is 0."""
        found = np.repeat(scales, self._counts)
        return np.where(found > 0.0, found, other)

    def _find_damping(self, a: float, b: float, c: float) -> Array | float:
        """What is added to q for a first guess, for each block in its own units."""
        if not self.costly:
            return self._worth / self.units**2
        d_x = a * a or ((b / c) ** 2 if b and c else b) or 1.0
        d_y = c * c or b * b / d_x or 1.0
        found, (n, m) = np.zeros_like(self.q), self.own
        found[:n], found[self.sides[0] : self.sides[0] + m] = d_x, d_y
        slopes = slice(self._ends[1], self._ends[2])
        found[slopes] = np.where(self.kinked < self.sides[0], 1.0 / d_x, 1.0 / d_y)
        return found

    def factorise(self, theta: Array, once: bool = False) -> Callable[[Array], Array]:
        """What solves (diag(theta) + K) du = r, refined; `once`: the only one of its run."""
        n, both, slopes = self._ends
        theta_xy = theta[:both].copy()
        # Slopes are eliminated entry by entry.
        theta_s = np.maximum(theta[both:slopes], 1e-300)
        self.spread(theta_xy, 1.0 / theta_s)
        floored = self._floor(theta_xy)
        core = Core(self.B, theta_xy[:n], theta_xy[n:], floored[:n], floored[n:], once)
        has_rows = slopes < theta.size
        bordered = core.solve(self.rows.T) if has_rows else self.rows.T
        inverse = _inverse(self.rows @ bordered) if has_rows else None

        def eliminate(r: Array) -> Array:
            found, top, s = np.empty_like(r), r[:both], r[both:slopes]
            if s.size:
                top = top.copy()
                self.spread(top, s / -theta_s)
            w = core.solve(top)
            if inverse is not None:
                # -rows w = e after w - bordered m.
                found[slopes:] = inverse @ (r[slopes:] + self.rows @ w)
                w -= bordered @ found[slopes:]
            found[:both] = w
            if s.size:
                found[both:slopes] = (s + w[self.kinked]) / theta_s
            return found

        def solve(r: Array) -> Array:
            du = eliminate(r)
            miss = r - theta * du - self.turn(du)
            size, enough = _norm(self.units * miss), _SOLVED * _norm(self.units * r)
            for _ in range(_REFINEMENTS):
                if size <= enough:
                    break
                better = du + eliminate(miss)
                rest = r - theta * better - self.turn(better)
                # A miss that is no number stays one.
                if not (left := _norm(self.units * rest)) < 0.5 * size:
                    break
                du, miss, size = better, rest, left
            return du

        return solve

    def _floor(self, theta_xy: Array) -> Array:
        """The diagonal with a floor for x, y and what squares bring along with each, so that it can be divided by.

        A number stands for one of 0; what squares bring along has units of its own.
        """
        found = np.minimum(theta_xy, 1e300)
        for place, typical in self._floors:
            top = float(theta_xy[place].max()) or typical
            np.maximum(found[place], _PROXIMAL * top, out=found[place])
        return found


class Core:
    """(theta_x, B^T; -B, theta_y) by one symmetric factor, in x or in y."""

    def __init__(self, B: Rows, theta_x: Array, theta_y: Array, a: Array, b: Array, once: bool = False) -> None:
        self.B, self.n, self.a, self.b = B, theta_x.size, a, b
        self.in_x = is_formed_in_x(B.shape, theta_x, theta_y)
        self.factor = B.normal(self.in_x, a, b, once)
        self.shift, size = 0.0, self.factor.largest
        while not self.factor.has_factor(self.shift) and self.shift < size:
            self.shift = 1e-14 * size if self.shift == 0.0 else 100.0 * self.shift

    def solve(self, r: Array) -> Array:
        """The solution for one right side, or one for each column."""
        if not r.size or not self.factor.has_factor(self.shift):
            return np.full_like(r, np.nan)
        a, b = (self.a, self.b) if r.ndim == 1 else (self.a[:, None], self.b[:, None])
        found, top, bottom = np.empty(r.shape), r[: self.n], r[self.n :]
        if self.in_x:
            found[: self.n] = dx = self.factor.solve(top - self.B.adjoint(bottom / b), self.shift)
            found[self.n :] = (bottom + self.B.forward(dx)) / b
        else:
            found[self.n :] = dy = self.factor.solve(bottom + self.B.forward(top / a), self.shift)
            found[: self.n] = (top - self.B.adjoint(dy)) / a
        return found


def weighted_gram(B: Any, divisor: Array) -> Any:
    """B^T diag(1 / divisor) B."""
    if scipy.sparse.issparse(B):
        scaled = scipy.sparse.diags_array(1.0 / divisor) @ B
        return (B.T @ scaled).tocsr()
    scaled = B * (1.0 / np.sqrt(divisor))[:, None]
    return scaled.T @ scaled


def with_diagonal(parts: list[Any], diagonal: Array) -> Any:
    """The sum of the parts and of diag(diagonal), sparse where all parts are."""
    if all(scipy.sparse.issparse(part) for part in parts):
        return sum(parts, start=scipy.sparse.diags_array(diagonal)).tocsr()
    dense = [part for part in parts if not scipy.sparse.issparse(part)]
    found = dense[0].copy()
    for part in (*dense[1:], *(part for part in parts if scipy.sparse.issparse(part))):
        found += part
    found.reshape(-1)[:: diagonal.size + 1] += diagonal
    return found


def _largest(matrix: Any) -> float:
    numbers = matrix.data if scipy.sparse.issparse(matrix) else matrix
    return float(np.abs(numbers).max(initial=0.0))


def _lengths(f: Program, g: Program, steep: float) -> tuple[float, float]:
    """Typical sizes of x and of y, in whatever units both are: at which products with B balance the other's slopes.

    Where the other has none, the sizes that the set of a block has; else those at which both blocks are worth the same.
    """
    found = []
    for own, other in ((f, g), (g, f)):
        wide = np.isfinite(own.upper - own.lower)
        balanced = _steepness(other) / (steep or 1.0)
        of_set = _most(own.totals, *(kink.center for kink in own.kinks)) or (
            float(np.median((own.upper - own.lower)[wide])) if wide.any() else 0.0
        )
        # Where B is 0, the slopes of one block say nothing about the other's size.
        found.append(balanced or of_set if steep > 0.0 else of_set or balanced)
    x, y = found
    # What y is where x is 1.
    bent_x, bent_y, steep = _most(f.quadratic), _most(g.quadratic), steep or 1.0
    ratio = bent_x / steep if bent_x > 0.0 else steep / bent_y if bent_y > 0.0 else 1.0
    x = x or (y / ratio if y > 0.0 else 1.0)
    return x, y or ratio * x


def _steepness(part: Program) -> float:
    return _most(part.linear, *(kink.weight for kink in part.kinks))


def _most(*arrays: Array) -> float:
    return max((float(np.max(np.abs(array), initial=0.0)) for array in arrays), default=0.0)


def _norm(values: Array) -> float:
    return math.sqrt(float(values @ values))


def _inverse(matrix: Array) -> Array:
    """The inverse of a small matrix; where equations say the same twice, what leaves these alone."""
    with np.errstate(all="ignore"), contextlib.suppress(np.linalg.LinAlgError):
        found = np.linalg.inv(matrix)
        if np.abs(found).max() * np.abs(matrix).max() < 1e8:
            return np.asarray(found, dtype=np.float64)
    return np.asarray(np.linalg.pinv(matrix, rcond=1e-15), dtype=np.float64)


def grams_of(problem: SaddleProblem) -> list[tuple[Any, Array]]:
    """Matrices of squares with their Gram matrices: a modulus has asked for these, or nothing is lost."""
    parts = [part.gram for function in (problem.f, problem.g) for part in inside(function)]
    return [gram for gram in parts if gram is not None]
