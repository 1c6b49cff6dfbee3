"""The inner loop of adaptive sliding: primal-dual steps on the coupling until more of them would not pay.

In NumPy for everything with proximal steps; with compiled updates where metric, functions and sets are of known kinds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from saddleslide.arrays.base import zeros
from saddleslide.arrays.kinds import NUMPY
from saddleslide.domains import Box, FullSpace
from saddleslide.functions.separable import SeparableForm, prox
from saddleslide.kernels.arguments import DualUpdate, PrimalUpdate
from saddleslide.kernels.switch import jit_enabled, load
from saddleslide.methods.sliding.known import known_curve, known_set, spread
from saddleslide.metrics import Entrywise, Spectral
from saddleslide.operators.structured import FiniteDifferences

if TYPE_CHECKING:
    from saddleslide.arrays.base import Array
    from saddleslide.certificates.candidate import Split
    from saddleslide.metrics import Metric
    from saddleslide.oracles.oracles import Oracles

# Points y with their products B^T y.
Pulls = tuple[tuple["Array", "Array"], ...]
# X in the coordinates of a spectral metric has no constraints: they are inactive, or the metric is given up.
_FREE = known_set(FullSpace(1))


@dataclass(frozen=True)
class DualModel:
    """Model of a function of y: <slope, y> + <y - center, curvature (y - center)> / 2, curvature entry by entry."""

    slope: Array
    curvature: Array | float
    center: Array


@dataclass(frozen=True)
class CouplingProblem:
    """min_x max_y <gradient, x> + L/2 |x - center|_P^2 + f_simple + <y, Bx> - g_simple - model, and where to begin.

    Points x are in the coordinates of the metric. The way travelled is measured from `origin`.
    """

    gradient: Array
    center: Array
    L: float
    start: tuple[Array, Array]
    origin: tuple[Array, Array]
    rho: float
    model: DualModel | None


class Solved(NamedTuple):
    """Where a loop ended: coordinates and point of x, y, the steps taken, both products; and what the next may know."""

    X: Array
    x: Array
    y: Array
    taken: int
    Bx: Array
    BTy: Array
    known: Pulls


class CouplingLoop:
    """Approximate solutions of coupling problems.

    In the coupling metric diag(rho S, I/rho), with S an upper bound on B^T B that is diagonal in the metric's basis,
    the coupling has norm 1:

        x+ = argmin ... + rho/2 |x' - x|_S^2 with B^T (2 y - y_previous),   y+ = prox at y + rho B x+.
    """

    def __init__(self, oracles: Oracles, metric: Metric, split: Split) -> None:
        self.oracles, self.metric, self.split = oracles, metric, split
        self.workshop = workshop(oracles, metric, split)

    def solve(self, given: CouplingProblem, most: int, tolerance: float, known: Pulls = (), least: int = 2) -> Solved:
        """Steps until there are `most`, or one changes (x, y) by less than `tolerance` of the way from the origin.

        It ends with B^T y, for the judge and for the first step of the next loop. Where that begins is kept too, in
        case that it is repeated.
        """
        steps: PlainSteps | FusedSteps
        if self.workshop is None:
            steps = PlainSteps(self.oracles, self.metric, self.split, given)
        else:
            steps = FusedSteps(self.workshop, given)
        start, taken = given.start[1], 0
        pull = first = self._known_pull(start, known)
        while True:
            change, way = steps.advance(pull)
            taken, pull = taken + 1, None
            if taken >= most or (taken >= least and change <= tolerance**2 * way):
                break
        X, x, y, Bx = steps.output()
        BTy = steps.pull()
        return Solved(X, x, y, taken, Bx, BTy, ((y, BTy),) if first is None else ((y, BTy), (start, first)))

    def _known_pull(self, y: Array, known: Pulls) -> Array | None:
        for point, pull in known:
            if point is y or np.array_equal(point, y):
                return pull
        return None if y.any() else zeros(self.oracles.problem.X.shape, y)


@final
class PlainSteps:
    """Steps in NumPy, for every metric, function and domain with proximal steps: the twin of compiled ones."""

    def __init__(self, oracles: Oracles, metric: Metric, split: Split, given: CouplingProblem) -> None:
        self.oracles, self.metric, self.split, self.given = oracles, metric, split, given
        self.X, self.y = given.start
        self.y_ahead = self.y
        self.base = given.L * metric.apply(given.center) - given.gradient

    def advance(self, pull: Array | None = None) -> tuple[float, float]:
        """One step; squares of it and of the way from the origin, in the norm L P + I / rho.

        `pull` is B^T y at the start, for a first step that need not make this product.
        """
        metric, L, rho, origin = self.metric, self.given.L, self.given.rho, self.given.origin
        pull = self.oracles.adjoint(self.y_ahead) if pull is None else pull
        target = self.base - metric.to_basis(pull) + rho * metric.coupling_apply(self.X)
        if isinstance(metric, Entrywise):
            weight = metric.weight(L, rho)
            X = self.x = prox(self.split.f_simple, target / weight, weight, self.oracles.problem.X)
        else:
            X = metric.solve(target, L, rho)
            self.x = metric.from_basis(X)
        self.Bx = self.oracles.forward(self.x)
        y = self._dual(self.y, self.Bx, 1.0 / rho, self.given.model)
        step, way = y - self.y, y - origin[1]
        change = L * metric.squared_norm(X - self.X) + float(np.vdot(step, step)) / rho
        outer = L * metric.squared_norm(X - origin[0]) + float(np.vdot(way, way)) / rho
        self.y_ahead = y + step
        self.X, self.y = X, y
        return change, outer

    def _dual(self, y: Array, Bx: Array, weight: float, model: DualModel | None) -> Array:
        if model is None:
            return prox(self.split.g_simple, y + self.given.rho * Bx, weight, self.oracles.problem.Y)
        total = weight + model.curvature
        center = (weight * y + model.curvature * model.center + Bx - model.slope) / total
        return prox(self.split.g_simple, center, total, self.oracles.problem.Y)

    def pull(self) -> Array:
        """B^T at the last y; valid for good."""
        return self.oracles.adjoint(self.y)

    def output(self) -> tuple[Array, Array, Array, Array]:
        """Coordinates and point of x, y, and B x; valid for good."""
        return self.X, self.x, self.y, self.Bx


class Workshop:
    """What all compiled steps of a run share: kernels, kinds, and vectors to work in."""

    def __init__(
        self, oracles: Oracles, metric: Spectral | Entrywise, f: SeparableForm, g: SeparableForm, sets: tuple[Any, Any]
    ) -> None:
        self.oracles, self.metric, self.f, self.g, self.sets = oracles, metric, f, g, sets
        self.curves = known_curve(f), known_curve(g)
        self.kernels, self.products = load("primal_dual"), load("products")
        problem = oracles.problem
        self.x_shape, self.y_shape = problem.X.shape, problem.Y.shape
        self.P, self.S = (spread(symbol, self.x_shape) for symbol in (metric.symbol, metric.coupling_symbol))
        self.X = [np.empty(problem.X.size) for _ in range(2)]
        self.y = [np.empty(problem.Y.size) for _ in range(2)]
        self.ahead, self.pulled, self.Bx = np.empty(problem.Y.size), np.empty(problem.X.size), np.empty(problem.Y.size)

    def adjoint(self, y: Array) -> Array:
        """B^T y, in the shape of x."""
        coupling = self.oracles.problem.coupling
        out = self.pulled.reshape(self.x_shape)
        if not isinstance(coupling, FiniteDifferences):
            return self.oracles.adjoint(y.reshape(self.y_shape), out)
        self.oracles.products(1, lambda: self.products.difference_adjoint(*coupling.x_shape, y, self.pulled))
        return out

    def forward(self, x: Array) -> Array:
        """B x, flat."""
        coupling = self.oracles.problem.coupling
        if not isinstance(coupling, FiniteDifferences):
            return _contiguous(self.oracles.forward(x, self.Bx.reshape(self.y_shape)))
        flat = x.reshape(-1)
        self.oracles.products(1, lambda: self.products.difference_forward(*coupling.x_shape, 1.0, flat, self.Bx))
        return self.Bx


@final
class FusedSteps:
    """The steps of `PlainSteps` in two passes each, one per block, besides products and transforms."""

    def __init__(self, at: Workshop, given: CouplingProblem) -> None:
        self.at, self.metric = at, at.metric
        L, rho, model = given.L, given.rho, given.model
        self.X, self.y = (_contiguous(part) for part in given.start)
        origin = tuple(_contiguous(part) for part in given.origin)
        self.y_ahead = self.y
        base = L * self.metric.apply(given.center) - given.gradient - at.f.linear
        weight, near = L * at.P, rho * at.S
        stiff = at.f.quadratic
        inverse = 1.0 / (weight + near + (stiff.reshape(-1) if isinstance(stiff, np.ndarray) and stiff.ndim else stiff))
        self.primal = PrimalUpdate(_contiguous(base), origin[0], near, inverse, weight)
        constant: Array | float = -at.g.linear
        stiffness: Array | float = 1.0 / rho + at.g.quadratic
        if model is not None:
            constant = constant + model.curvature * model.center - model.slope
            stiffness = stiffness + model.curvature
        inverse_y = spread(np.divide(1.0, stiffness), at.y_shape)
        self.dual = DualUpdate(spread(constant, at.y_shape), origin[1], inverse_y, 1.0 / rho)

    def advance(self, pull: Array | None = None) -> tuple[float, float]:
        """As in `PlainSteps`."""
        at = self.at
        pull = at.adjoint(self.y_ahead) if pull is None else pull
        pulled = _contiguous(self.metric.to_basis(pull))
        X = at.X[0] if self.X is not at.X[0] else at.X[1]
        change, way = at.kernels.primal_step(X, pulled, self.X, self.primal, at.curves[0], at.sets[0])
        self.x = self.metric.from_basis(X.reshape(at.x_shape))
        self.Bx = at.forward(self.x)
        y = at.y[0] if self.y is not at.y[0] else at.y[1]
        given = y, at.ahead, self.y, self.Bx, self.dual, at.curves[1], at.sets[1]
        dual_change, dual_way = at.kernels.dual_step(*given)
        self.X, self.y, self.y_ahead = X, y, at.ahead
        return change + dual_change, way + dual_way

    def pull(self) -> Array:
        """As in `PlainSteps`."""
        return self.at.adjoint(self.y).copy()

    def output(self) -> tuple[Array, Array, Array, Array]:
        """As in `PlainSteps`."""
        at = self.at
        X, y, Bx = self.X.reshape(at.x_shape).copy(), self.y.reshape(at.y_shape).copy(), self.Bx.copy()
        x = X if isinstance(self.metric, Entrywise) else self.x
        return X, x, y, Bx.reshape(at.y_shape)


def workshop(oracles: Oracles, metric: Metric, split: Split) -> Workshop | None:
    """Where compiled steps can be made: diagonal metrics, boxes or full spaces, and simple parts without curves."""
    problem = oracles.problem
    f, g = split.f_simple.separable_form(), split.g_simple.separable_form()
    if not jit_enabled() or problem.arrays != NUMPY or not isinstance(metric, Spectral | Entrywise):
        return None
    if f is None or g is None or known_curve(f) is None or known_curve(g) is None:
        return None
    entrywise = isinstance(metric, Entrywise)
    if not isinstance(problem.Y, Box | FullSpace) or not (isinstance(problem.X, Box | FullSpace) or not entrywise):
        return None
    sets = known_set(problem.X) if entrywise else _FREE, known_set(problem.Y)
    return Workshop(oracles, metric, f if entrywise else SeparableForm(), g, sets)


def _contiguous(value: Array) -> Array:
    """Flat, as compiled steps take it."""
    return np.ascontiguousarray(value, dtype=np.float64).reshape(-1)
