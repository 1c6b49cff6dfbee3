"""Both functions simple and the entries of B at hand: a primal-dual interior-point method (Mehrotra 1992).

All that is optimised is one vector u = (x, y, s, m): s are the slopes of kinks, m the multipliers of equations. With
q and c from `Program`, the point solves the monotone system

    q u + c + K u = z_lower - z_upper,    (u - lower) z_lower = (upper - u) z_upper = 0,

where K is skew: B, its transpose, and what ties slopes and multipliers to x and y. A step of Newton's method on it
comes down to one symmetric system in x or in y, whichever is smaller and safe to form: theta_x + B^T B / theta_y, or
its mirror.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
import scipy

from saddleslide.certificates.verdict import Status
from saddleslide.domains.program import Program, program_of
from saddleslide.methods.base import EXACTLY, Array, Candidate, Description, Method, Point, State
from saddleslide.operators import Matrix
from saddleslide.operators.factor import COLUMNS, SymmetricMatrix, band_width

if TYPE_CHECKING:
    from saddleslide.methods.base import Facts, Judge, Oracles
    from saddleslide.problem import SaddleProblem

# Equations of X and Y are eliminated one by one: a few, as of simplices and small treeplexes.
_MOST_ROWS = 500
# Multiplications that forming a large sparse system may take.
_MOST_FORMED = 5e6
# Operations on the dense matrices of a step take this part of those on vectors, of which there are so many an entry.
_DENSE, _VECTORS = 0.05, 200.0
# A step goes this part of the way to the nearest bound.
_NEARLY = 0.995
# What the diagonal of the system has at least, relative to its largest entry: a proximal term, made good by refinement.
_PROXIMAL = 1e-13
_REFINEMENTS = 3
# Steps without a smaller gap after which rounding has taken over.
_PATIENCE = 8
_STEPS = 200


@dataclass
class InteriorState(State):
    """A point strictly between its bounds with the multipliers of these, and the best point seen."""

    u: Array
    z_lower: Array
    z_upper: Array
    points: tuple[Candidate, ...]
    best: Point
    best_gap: float = math.inf
    idle: int = 0
    steps: int = 0


@final
@dataclass(frozen=True, repr=False)
class InteriorPoint(Method):
    """Predictor and corrector steps of Mehrotra, with one factorisation each.

    Examples
    --------
    >>> import saddleslide as ss
    >>> result = ss.solve(ss.gallery.matrix_game([[2.0, -1.0], [-1.0, 1.0]]), tol=1e-9, method="interior-point")
    >>> result.status.name, len(result.history) < 20
    ('SOLVED', True)
    """

    description = Description(
        name="interior-point",
        needs=("prox of f", "prox of g", "quadratic program of f", "quadratic program of g", "entries of B"),
        guarantee="None for predictor and corrector steps; in practice 10 to 40 of them, whatever the conditioning.",
        reference="Mehrotra, On the implementation of a primal-dual interior point method, SIAM J. Optim. 2 (1992)",
    )
    on_host = True
    judged = EXACTLY

    def lacks(self, facts: Facts) -> list[str]:
        found = super().lacks(facts)
        return found or _without_inside(facts.problem) or _too_large(facts.problem)

    def init(self, oracles: Oracles, facts: Facts, start: Point, tol: float) -> InteriorState:
        system = System.of(oracles.problem)
        u, z_lower, z_upper = system.begin()
        points = (Candidate(*start, 0.0),)
        return InteriorState(u, z_lower, z_upper, points, start)

    def step(self, state: InteriorState, oracles: Oracles) -> InteriorState:
        system = oracles.workspace(lambda: System.of(oracles.problem), InteriorPoint)
        u, z_lower, z_upper = state.u, state.z_lower, state.z_upper
        below, above = u - system.lower, system.upper - u
        # Infinite bounds have no multipliers.
        to_lower, to_upper = z_lower / below, z_upper / above
        solve = system.factorise(system.q + to_lower + to_upper)
        wrong = -system.residual(u, oracles)
        gap = (z_lower * system.finite(below)).sum() + (z_upper * system.finite(above)).sum()
        pairs = max(system.pairs, 1)

        def direction(aim: float, push_lower: Any = 0.0, push_upper: Any = 0.0) -> tuple[Array, Array, Array]:
            """Newton's step towards products of `aim`; the pushes are what the products of the predictor leave."""
            pull_lower = system.has_lower * (aim - push_lower) / below
            pull_upper = system.has_upper * (aim - push_upper) / above
            du = solve(wrong + pull_lower - pull_upper)
            return du, pull_lower - z_lower - to_lower * du, pull_upper - z_upper + to_upper * du

        du, dl, dh = direction(0.0)
        length = min(1.0, _longest(below, du), _longest(above, -du), _longest(z_lower, dl), _longest(z_upper, dh))
        left = (system.finite(below + length * du) * (z_lower + length * dl)).sum()
        left += (system.finite(above - length * du) * (z_upper + length * dh)).sum()
        center = (max(left, 0.0) / gap) ** 3 if gap > 0.0 else 0.0
        du, dl, dh = direction(center * gap / pairs, du * dl, -du * dh)
        length = min(_longest(below, du), _longest(above, -du), _longest(z_lower, dl), _longest(z_upper, dh))
        length = min(1.0, _NEARLY * length)
        u, z_lower, z_upper = u + length * du, z_lower + length * dl, z_upper + length * dh
        x, y = system.point(u, oracles.problem)
        points = (Candidate(x, y, 0.0),)
        return replace(state, u=u, z_lower=z_lower, z_upper=z_upper, points=points, steps=state.steps + 1)

    def point(self, state: InteriorState, oracles: Oracles) -> Point:
        return state.best

    def candidates(self, state: InteriorState, oracles: Oracles) -> tuple[Candidate, ...]:
        return state.points

    def learn(
        self, state: InteriorState, gaps: Sequence[float], judge: Judge, oracles: Oracles
    ) -> InteriorState | Status:
        """Keep the best point; end where steps no longer come nearer."""
        if not np.isfinite(state.u).all():
            return Status.NUMERICAL_LIMIT
        (gap,), (seen,) = gaps, state.points
        if gap < state.best_gap or not math.isfinite(state.best_gap):
            return replace(
                state, best=(seen.x, seen.y), best_gap=gap, idle=0 if gap < state.best_gap else state.idle + 1
            )
        return replace(state, idle=state.idle + 1)

    def is_finished(self, state: InteriorState) -> bool:
        return (math.isfinite(state.best_gap) and state.idle >= _PATIENCE) or state.steps >= _STEPS


class System:
    """The optimality conditions of a problem as one monotone system in u = (x, y, s, m) between bounds."""

    def __init__(self, f: Program, g: Program, matrix: Any) -> None:
        self.B, self.BT, self.sides = matrix, matrix.T, (f.size, g.size)
        total = f.size + g.size
        # One row for each kink that is there: its entry of (x, y).
        kinks = [(offset, kink) for offset, part in ((0, f), (f.size, g)) for kink in part.kinks]
        where = [offset + np.flatnonzero(kink.weight) for offset, kink in kinks]
        weights, centers, bends = (
            np.concatenate([np.zeros(0), *(getattr(kink, name)[kink.weight > 0.0] for _, kink in kinks)])
            for name in ("weight", "center", "bend")
        )
        self.kinked = np.concatenate([np.zeros(0, dtype=np.intp), *where])
        rows = scipy.sparse.block_diag([f.rows, g.rows], format="csr")
        self.rows = rows[:, :total]
        p = self.rows.shape[0]
        free = np.full(p, np.inf)
        self.q = np.concatenate([f.quadratic, g.quadratic, bends, np.zeros(p)])
        self.c = np.concatenate([f.linear, g.linear, centers, f.totals, g.totals])
        self.lower = np.concatenate([f.lower, g.lower, -weights, -free])
        self.upper = np.concatenate([f.upper, g.upper, weights, free])
        self.has_lower, self.has_upper = np.isfinite(self.lower), np.isfinite(self.upper)
        self.pairs = int(self.has_lower.sum() + self.has_upper.sum())
        self._ends = np.cumsum([f.size, g.size, weights.size])

    @classmethod
    def of(cls, problem: SaddleProblem) -> System:
        """The system of a problem that an interior-point method applies to."""
        f, g = program_of(problem.f, problem.X), program_of(problem.g, problem.Y)
        assert f is not None and g is not None
        return cls(f, g, problem.coupling.entries)

    @staticmethod
    def finite(distances: Array) -> Array:
        """Distances to bounds, 0 where there is none."""
        return np.where(np.isfinite(distances), distances, 0.0)

    def split(self, u: Array) -> list[Array]:
        """x, y, slopes and multipliers."""
        return np.split(u, self._ends)

    def point(self, u: Array, problem: SaddleProblem) -> Point:
        """X and y in their sets."""
        x, y, _, _ = self.split(u)
        return problem.X.project(x.reshape(problem.X.shape)), problem.Y.project(y.reshape(problem.Y.shape))

    def turn(self, u: Array, pull: Any = None, image: Any = None) -> Array:
        """K u, with B^T y and B x where they are known."""
        x, y, s, m = self.split(u)
        out = np.empty_like(u)
        top = out[: self._ends[1]]
        top[: self.sides[0]] = self.BT @ y if pull is None else pull
        top[self.sides[0] :] = -(self.B @ x if image is None else image)
        np.add.at(top, self.kinked, s)
        top += self.rows.T @ m
        both = u[: self._ends[1]]
        out[self._ends[1] : self._ends[2]] = -both[self.kinked]
        out[self._ends[2] :] = -(self.rows @ both)
        return out

    def residual(self, u: Array, oracles: Oracles) -> Array:
        """Q u + c + K u, by two counted products."""
        x, y, _, _ = self.split(u)
        X, Y = oracles.problem.X, oracles.problem.Y
        pull, image = oracles.adjoint(y.reshape(Y.shape)), oracles.forward(x.reshape(X.shape))
        found: Array = self.q * u + self.c + self.turn(u, pull.ravel(), image.ravel())
        return found

    def begin(self) -> tuple[Array, Array, Array]:
        """Well between the bounds, at the size of a damped solution of the equations alone; multipliers to match."""
        size = abs(self.B).max() if min(self.B.shape) else 0.0
        damping = size or 1.0
        guess = self.factorise(self.q + damping)(-self.c)
        u = guess.copy()
        for block in self.blocks():
            scale = (
                float(np.mean(np.abs(guess[block]))) + 1e-3 * float(np.max(np.abs(guess[block]), initial=0.0)) or 1.0
            )
            low, high, inside = self.lower[block], self.upper[block], guess[block]
            width = np.minimum(scale, 0.4 * (high - low))
            u[block] = np.maximum(np.minimum(inside, high - width), low + width)
        slopes = self.q * u + self.c + self.turn(u)
        z_lower, z_upper = np.zeros_like(u), np.zeros_like(u)
        for block in self.blocks():
            scale = float(np.mean(np.abs(slopes[block]))) or 1.0
            z_lower[block] = self.has_lower[block] * np.maximum(slopes[block], scale)
            z_upper[block] = self.has_upper[block] * np.maximum(-slopes[block], scale)
        return u, z_lower, z_upper

    def blocks(self) -> list[slice]:
        """x, y, slopes and multipliers as parts of u."""
        ends = [0, *self._ends.tolist(), self.q.size]
        return [slice(a, b) for a, b in itertools.pairwise(ends) if b > a]

    def factorise(self, theta: Array) -> Any:
        """What solves (diag(theta) + K) du = r, refined."""
        n, m = self.sides
        theta_xy, theta_s = theta[: n + m].copy(), theta[self._ends[1] : self._ends[2]]
        # Slopes are eliminated entry by entry.
        theta_s = np.maximum(theta_s, 1e-300)
        np.add.at(theta_xy, self.kinked, 1.0 / theta_s)
        core = Core(self.B, theta_xy[:n], theta_xy[n:])
        border = self.rows.toarray().T
        bordered = core.solve(border) if border.shape[1] else border
        small = self.rows @ bordered

        def eliminate(r: Array) -> Array:
            top, s, e = r[: n + m].copy(), r[self._ends[1] : self._ends[2]], r[self._ends[2] :]
            np.subtract.at(top, self.kinked, s / theta_s)
            w = core.solve(top)
            multipliers = np.zeros(0)
            if e.size:
                # -rows w = e after w - bordered m.
                multipliers = np.linalg.lstsq(small, e + self.rows @ w, rcond=1e-15)[0]
                w = w - bordered @ multipliers
            return np.concatenate([w, (s + w[self.kinked]) / theta_s, multipliers])

        def solve(r: Array) -> Array:
            du = eliminate(r)
            miss = r - theta * du - self.turn(du)
            for _ in range(_REFINEMENTS):
                size = float(np.linalg.norm(miss))
                better = du + eliminate(miss)
                rest = r - theta * better - self.turn(better)
                if not float(np.linalg.norm(rest)) < 0.5 * size:
                    break
                du, miss = better, rest
            return du

        return solve


class Core:
    """(theta_x, B^T; -B, theta_y) by one symmetric factor, in x or in y."""

    def __init__(self, B: Any, theta_x: Array, theta_y: Array) -> None:
        self.B, self.n = B, theta_x.size
        self.a, self.b = _lifted(theta_x), _lifted(theta_y)
        self.in_x = _is_in_x(B.shape, theta_x, theta_y)
        normal = weighted_gram(B, self.b, self.a) if self.in_x else weighted_gram(B.T, self.a, self.b)
        self.factor = SymmetricMatrix(normal)
        self.shift, size = 0.0, float(np.max(normal.diagonal(), initial=0.0))
        while not self.factor.has_factor(self.shift) and self.shift < size:
            self.shift = 1e-14 * size if self.shift == 0.0 else 100.0 * self.shift

    def solve(self, r: Array) -> Array:
        """The solution for one right side, or one for each column."""
        if r.ndim == 2:
            return np.stack([self.solve(column) for column in r.T], axis=1)
        top, bottom = r[: self.n], r[self.n :]
        if not r.size or not self.factor.has_factor(self.shift):
            return np.full_like(r, np.nan)
        if self.in_x:
            dx = self.factor.solve(top - self.B.T @ (bottom / self.b), self.shift)
            return np.concatenate([dx, (bottom + self.B @ dx) / self.b])
        dy = self.factor.solve(bottom + self.B @ (top / self.a), self.shift)
        return np.concatenate([(top - self.B.T @ dy) / self.a, dy])


def weighted_gram(B: Any, divisor: Array, diagonal: Array) -> Any:
    """B^T diag(1 / divisor) B + diag(diagonal)."""
    if scipy.sparse.issparse(B):
        scaled = scipy.sparse.diags_array(1.0 / divisor) @ B
        return (B.T @ scaled + scipy.sparse.diags_array(diagonal)).tocsr()
    scaled = B / np.sqrt(divisor)[:, None]
    normal: Array = scaled.T @ scaled
    normal.reshape(-1)[:: diagonal.size + 1] += diagonal
    return normal


def _lifted(theta: Array) -> Array:
    """The diagonal with a floor, so that it can be divided by."""
    top = float(np.max(theta, initial=0.0)) or 1.0
    return np.clip(theta, _PROXIMAL * top, 1e300)


def _is_in_x(shape: tuple[int, int], theta_x: Array, theta_y: Array) -> bool:
    """Whether the system is formed in x: where y alone can be divided out, or both can and x is smaller."""
    safe_x, safe_y = float(np.min(theta_x, initial=np.inf)) > 0.0, float(np.min(theta_y, initial=np.inf)) > 0.0
    return shape[1] <= shape[0] if safe_x == safe_y else safe_y


def _longest(distance: Array, way: Array) -> float:
    """How far one may go before a positive number is used up."""
    falling = (way < 0.0) & np.isfinite(distance) & (distance > 0.0)
    return float(np.min(distance[falling] / -way[falling], initial=np.inf))


def step_cost(problem: SaddleProblem) -> float:
    """Operations of one step, in units of those on vectors; infinite where the factor would be too large."""
    system = System.of(problem)
    B, rows = system.B, int(system.rows.shape[0])
    kinked = np.zeros(sum(system.sides), dtype=bool)
    kinked[system.kinked] = True
    ends = system.has_lower | system.has_upper | (system.q > 0.0)
    held = (ends[: kinked.size] | kinked).astype(np.float64)
    in_x = _is_in_x(B.shape, held[: system.sides[0]], held[system.sides[0] :])
    A = B if in_x else B.T
    size, vectors = int(A.shape[1]), _VECTORS * float(system.q.size)
    if rows > _MOST_ROWS or not (size <= COLUMNS or scipy.sparse.issparse(A)):
        return math.inf
    solving = 2.0 * _DENSE * (4.0 + rows) * size**2
    if not scipy.sparse.issparse(A):
        return _DENSE * size**2 * (float(A.shape[0]) + size / 3.0) + solving + vectors
    counts = np.bincount(A.tocoo().row, minlength=1).astype(np.float64)
    forming = float(counts @ counts)
    if size > COLUMNS and forming > _MOST_FORMED:
        return math.inf
    pattern = A.astype(bool).astype(np.float64)
    width = band_width((pattern.T @ pattern).tocsr())
    if width is not None:
        return 4.0 * forming + size * (width + 1.0) * (width + 4.0 + rows) + vectors
    return math.inf if size > COLUMNS else 4.0 * forming + _DENSE * size**3 / 3.0 + solving + vectors


def _without_inside(problem: SaddleProblem) -> list[str]:
    """Which sets fix entries, so that no point lies between their bounds."""
    sides = (("X", problem.f, problem.X), ("Y", problem.g, problem.Y))
    found = [(name, program_of(function, domain)) for name, function, domain in sides]
    return [
        f"{name} fixes {int((said.lower >= said.upper).sum())} entries; expected lower < upper everywhere."
        for name, said in found
        if said is not None and (said.lower >= said.upper).any()
    ]


def _too_large(problem: SaddleProblem) -> list[str]:
    """Why the factor would be too dear; nothing where it is not."""
    B, (rows, columns) = problem.coupling, problem.coupling.shape
    if min(rows, columns) == 0:
        return ["B has no entries; expected x and y with at least one each."]
    # Pictures and volumes: the band of their factors is too wide, and finding that out takes longer than a solution.
    is_grid = sum(n > 1 for n in B.x_shape) > 1 and not isinstance(B, Matrix)
    if (is_grid and min(rows, columns) > COLUMNS) or not math.isfinite(step_cost(problem)):
        return [
            f"the factor of a system of {min(rows, columns)} unknowns would be too large; expected at most {COLUMNS}, "
            f"or a narrow band, and at most {_MOST_ROWS} equations in X and Y."
        ]
    return []
