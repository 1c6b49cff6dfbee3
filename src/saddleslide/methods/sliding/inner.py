"""What happens inside one step of adaptive sliding on f: the coupling, and g where it has no proximal step.

The coupling loop makes primal-dual steps until more of them would not pay: in NumPy for everything with proximal steps,
with compiled updates where metric, functions and sets are of known kinds. A g with a proximal step needs that loop
alone. A costly g is linearised, again and again within a step if once is not enough; or, in entrywise metrics, slid in
its own turn: adaptive sliding on g, the roles of x and y exchanged, with momentum and curvature of its own, so that its
gradients grow like the root of its condition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, final

import numpy as np

from saddleslide.arrays.base import Array, zeros
from saddleslide.arrays.kinds import NUMPY
from saddleslide.certificates.candidate import Linearisation, Split
from saddleslide.domains import Box, FullSpace
from saddleslide.functions.separable import SeparableForm, prox
from saddleslide.kernels.arguments import DualUpdate, PrimalUpdate
from saddleslide.kernels.switch import jit_enabled, load
from saddleslide.methods.base import State
from saddleslide.methods.sliding.known import known_curve, known_set, spread
from saddleslide.metrics import Entrywise, Metric, Spectral
from saddleslide.operators.structured import FiniteDifferences
from saddleslide.oracles.calls import MOST_SHORTENED, SHORTER
from saddleslide.oracles.oracles import Oracles

if TYPE_CHECKING:
    from saddleslide.arrays.state import XArray, YArray
    from saddleslide.methods.adaptive_sliding import Iterate, Iteration

    # Sliding on g is seen from y.
    MirroredIterate: TypeAlias = Iterate

# Points y with their products B^T y.
Pulls = tuple[tuple[Array, Array], ...]
# Inner work is never more than this, nor to a smaller tolerance.
_MOST_STEPS, _LEAST_TOLERANCE = 4096, 1e-3
# A costly g is linearised again when the error of its model exceeds this part of the dual step.
_MODEL_ERROR = 0.1


@dataclass(frozen=True)
class DualModel:
    """Model of a function of y: <slope, y> + <y - center, curvature (y - center)> / 2, curvature entry by entry."""

    slope: Array
    curvature: Array | float
    center: Array


@dataclass(frozen=True)
class InnerProblem:
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


class Inside(NamedTuple):
    """What the inside of a step has found: coordinates of x, x and y, the steps taken, and products.

    Products are also `known` to the next one; of a costly g there are value, linearisation and error.
    """

    X: Array
    x: Array
    y: Array
    taken: int
    Bx: Array | None
    BTy: Array | None
    known: Pulls = ()
    g_value: float | None = None
    g_linearisation: Linearisation | None = None
    g_error: float | None = None


class InnerLoop:
    """Approximate solutions of coupling problems.

    In the coupling metric diag(rho S, I/rho), with S an upper bound on B^T B that is diagonal in the metric's basis,
    the coupling has norm 1:

        x+ = argmin ... + rho/2 |x' - x|_S^2 with B^T (2 y - y_previous),   y+ = prox at y + rho B x+.
    """

    def __init__(self, oracles: Oracles, metric: Metric, split: Split) -> None:
        self.oracles, self.split = oracles, split
        self.steps = CompiledSteps.made(oracles, metric, split) or PlainSteps(oracles, metric, split)

    def solve(self, given: InnerProblem, most: int, tolerance: float, known: Pulls = ()) -> Inside:
        """Steps until there are `most`, or one, not the first, changes (x, y) by less than `tolerance` of the way.

        It ends with B^T y, for the judge and for the first step of the next loop. Where that begins is kept too, in
        case that it is repeated.
        """
        start, steps, taken = given.start[1], self.steps, 0
        first = next((pull for point, pull in known if point is start or np.array_equal(point, start)), None)
        if first is None and not start.any():
            first = zeros(self.oracles.problem.X.shape, start)
        steps.begin(given)
        pull = first
        while True:
            change, way = steps.advance(pull)
            taken, pull = taken + 1, None
            if taken >= most or (taken >= 2 and change <= tolerance**2 * way):
                break
        X, x, y, Bx, BTy = steps.end()
        return Inside(X, x, y, taken, Bx, BTy, ((y, BTy),) if first is None else ((y, BTy), (start, first)))


@final
class PlainSteps:
    """Steps in NumPy, for every metric, function and domain with proximal steps: the twin of compiled ones."""

    def __init__(self, oracles: Oracles, metric: Metric, split: Split) -> None:
        self.oracles, self.metric, self.split = oracles, metric, split

    def begin(self, given: InnerProblem) -> None:
        """At the start of a problem."""
        self.given = given
        self.X, self.y = given.start
        self.y_ahead = self.y
        self.base = given.L * self.metric.apply(given.center) - given.gradient

    def advance(self, pull: Array | None) -> tuple[float, float]:
        """One step; squares of it and of the way from the origin, in the norm L P + I / rho.

        `pull` is B^T y at the start, for a first step that need not make this product.
        """
        metric, L, rho, origin = self.metric, self.given.L, self.given.rho, self.given.origin
        problem, model = self.oracles.problem, self.given.model
        pull = self.oracles.adjoint(self.y_ahead) if pull is None else pull
        target = self.base - metric.to_basis(pull) + rho * metric.apply_coupling(self.X)
        if isinstance(metric, Entrywise):
            weight = metric.weight(L, rho)
            X = self.x = prox(self.split.f_simple, target / weight, weight, problem.X)
        else:
            X = metric.solve(target, L, rho)
            self.x = metric.from_basis(X)
        Bx = self.Bx = self.oracles.forward(self.x)
        if model is None:
            y = prox(self.split.g_simple, self.y + rho * Bx, 1.0 / rho, problem.Y)
        else:
            total = 1.0 / rho + model.curvature
            center = (1.0 / rho * self.y + model.curvature * model.center + Bx - model.slope) / total
            y = prox(self.split.g_simple, center, total, problem.Y)
        step, way = y - self.y, y - origin[1]
        change = L * metric.norm_squared(X - self.X) + float(np.vdot(step, step)) / rho
        outer = L * metric.norm_squared(X - origin[0]) + float(np.vdot(way, way)) / rho
        self.y_ahead = y + step
        self.X, self.y = X, y
        return change, outer

    def end(self) -> tuple[Array, Array, Array, Array, Array]:
        """Coordinates and point of x, y, B x and B^T y; valid for good."""
        return self.X, self.x, self.y, self.Bx, self.oracles.adjoint(self.y)


@final
class CompiledSteps:
    """The steps of `PlainSteps` in two passes each, one per block, besides products and transforms."""

    def __init__(
        self, oracles: Oracles, metric: Spectral | Entrywise, f: SeparableForm, g: SeparableForm, sets: tuple[Any, Any]
    ) -> None:
        problem = oracles.problem
        self.oracles, self.metric, self.f, self.g, self.sets = oracles, metric, f, g, sets
        self.curves = known_curve(f), known_curve(g)
        self.kernels, self.products = load("primal_dual"), load("products")
        self.x_shape, self.y_shape, n, m = problem.X.shape, problem.Y.shape, problem.X.size, problem.Y.size
        self.P, self.S = (spread(symbol, self.x_shape) for symbol in (metric.symbol, metric.coupling_symbol))
        self.two_X, self.two_y = [np.empty(n) for _ in range(2)], [np.empty(m) for _ in range(2)]
        self.ahead, self.pulled, self.image = np.empty(m), np.empty(n), np.empty(m)

    @classmethod
    def made(cls, oracles: Oracles, metric: Metric, split: Split) -> CompiledSteps | None:
        """Where metrics are diagonal, sets boxes or full spaces, and simple parts without curves."""
        problem = oracles.problem
        f, g = split.f_simple.separable_form(), split.g_simple.separable_form()
        if not jit_enabled() or problem.arrays != NUMPY or not isinstance(metric, Spectral | Entrywise):
            return None
        if f is None or g is None or known_curve(f) is None or known_curve(g) is None:
            return None
        # X in the coordinates of a spectral metric has no constraints: they are inactive, or the metric is given up.
        X = problem.X if isinstance(metric, Entrywise) else FullSpace(1)
        if not isinstance(X, Box | FullSpace) or not isinstance(problem.Y, Box | FullSpace):
            return None
        sets = known_set(X), known_set(problem.Y)
        return cls(oracles, metric, f if isinstance(metric, Entrywise) else SeparableForm(), g, sets)

    def begin(self, given: InnerProblem) -> None:
        L, rho, model = given.L, given.rho, given.model
        self.X, self.y = (_contiguous(part) for part in given.start)
        origin = tuple(_contiguous(part) for part in given.origin)
        self.y_ahead = self.y
        base = L * self.metric.apply(given.center) - given.gradient - self.f.linear
        weight, near = L * self.P, rho * self.S
        stiff = self.f.quadratic
        inverse = 1.0 / (weight + near + (stiff.reshape(-1) if isinstance(stiff, np.ndarray) and stiff.ndim else stiff))
        self.primal = PrimalUpdate(_contiguous(base), origin[0], near, inverse, weight)
        constant: Array | float = -self.g.linear
        stiffness: Array | float = 1.0 / rho + self.g.quadratic
        if model is not None:
            constant = constant + model.curvature * model.center - model.slope
            stiffness = stiffness + model.curvature
        inverse_y = spread(np.divide(1.0, stiffness), self.y_shape)
        self.dual = DualUpdate(spread(constant, self.y_shape), origin[1], inverse_y, 1.0 / rho)

    def advance(self, pull: Array | None) -> tuple[float, float]:
        pulled = _contiguous(self.metric.to_basis(self._adjoint(self.y_ahead) if pull is None else pull))
        X = self.two_X[0] if self.X is not self.two_X[0] else self.two_X[1]
        change, way = self.kernels.primal_step(X, pulled, self.X, self.primal, self.curves[0], self.sets[0])
        self.x = self.metric.from_basis(X.reshape(self.x_shape))
        self.Bx = self._forward(self.x)
        y = self.two_y[0] if self.y is not self.two_y[0] else self.two_y[1]
        given = y, self.ahead, self.y, self.Bx, self.dual, self.curves[1], self.sets[1]
        dual_change, dual_way = self.kernels.dual_step(*given)
        self.X, self.y, self.y_ahead = X, y, self.ahead
        return change + dual_change, way + dual_way

    def end(self) -> tuple[Array, Array, Array, Array, Array]:
        X, y = self.X.reshape(self.x_shape).copy(), self.y.reshape(self.y_shape).copy()
        x, Bx = X if isinstance(self.metric, Entrywise) else self.x, self.Bx.copy().reshape(self.y_shape)
        return X, x, y, Bx, self._adjoint(self.y).copy()

    def _adjoint(self, y: Array) -> Array:
        """B^T y, in the shape of x."""
        coupling, out = self.oracles.problem.coupling, self.pulled.reshape(self.x_shape)
        if not isinstance(coupling, FiniteDifferences):
            return self.oracles.adjoint(y.reshape(self.y_shape), out)
        if coupling.is_picture:
            self.oracles.products(1, lambda: self.products.difference_adjoint(*coupling.x_shape, y, self.pulled))
        else:
            grid, width = np.array(coupling.grid), math.prod(coupling.trailing)
            self.oracles.products(1, lambda: self.products.grid_adjoint(grid, width, y, self.pulled))
        return out

    def _forward(self, x: Array) -> Array:
        """B x, flat."""
        coupling, flat = self.oracles.problem.coupling, x.reshape(-1)
        if not isinstance(coupling, FiniteDifferences):
            return _contiguous(self.oracles.forward(x, self.image.reshape(self.y_shape)))
        if coupling.is_picture:
            self.oracles.products(1, lambda: self.products.difference_forward(*coupling.x_shape, 1.0, flat, self.image))
        else:
            grid, width = np.array(coupling.grid), math.prod(coupling.trailing)
            self.oracles.products(1, lambda: self.products.grid_forward(grid, width, 1.0, flat, self.image))
        return self.image


def _contiguous(value: Array) -> Array:
    """Flat, as compiled steps take it."""
    return np.ascontiguousarray(value, dtype=np.float64).reshape(-1)


@dataclass
class Work(State):
    """How hard to work inside a step, and what the last one knew that the next need not ask for.

    At most `steps` steps on the coupling, or on g where that is slid, and no more below `tolerance` of the way. `known`
    are products; value, slope and curvature a model of a linearised g at the last y; `inside` is where sliding on g is.
    """

    steps: int
    tolerance: float
    known: tuple[tuple[YArray, XArray], ...] = ()
    value: float = math.nan
    slope: YArray | None = None
    curvature: float = 0.0
    inside: MirroredIterate | None = None

    def harder(self) -> Work:
        """Twice the work from now on, to half the tolerance."""
        tolerance = max(0.5 * self.tolerance, min(self.tolerance, _LEAST_TOLERANCE))
        inside = None if self.inside is None else replace(self.inside, work=self.inside.work.harder())
        return replace(self, steps=min(2 * self.steps, _MOST_STEPS), tolerance=tolerance, inside=inside)


@final
class Proximal:
    """g by its proximal step, possibly beside a fixed model: the coupling loop does it all."""

    def __init__(self, loop: InnerLoop, steps: int, tolerance: float) -> None:
        self.loop, self.first = loop, Work(steps, tolerance)

    def begin(self, x: Array, y: Array) -> Work:
        """The work as it begins at a point."""
        return self.first

    def solve(self, step: InnerProblem, work: Work) -> tuple[Inside, Work]:
        """What a step on f finds, f being a linear model there; and the work of the next one."""
        found = self.loop.solve(step, work.steps, work.tolerance, work.known)
        return found, replace(work, known=found.known)


@final
class Linearised:
    """A costly g linearised at y, and again while the error of its model exceeds a part of the dual step."""

    def __init__(self, loop: InnerLoop, steps: int, tolerance: float) -> None:
        self.loop, self.first = loop, Work(steps, tolerance)
        self.oracles, self.g = loop.oracles, loop.split.g_rest

    def begin(self, x: Array, y: Array) -> Work:
        value, slope = self.oracles.g_value_and_gradient(self.g, y)
        return replace(self.first, value=value, slope=slope)

    def solve(self, step: InnerProblem, work: Work) -> tuple[Inside, Work]:
        (X, y), left, shortened = step.origin, work.steps, 0
        center = y
        while True:
            assert work.slope is not None
            model = DualModel(work.slope, work.curvature, center)
            found = self.loop.solve(replace(step, start=(X, y), model=model), left, work.tolerance, work.known)
            X, y, left, work = found.X, found.y, left - found.taken, replace(work, known=found.known)
            known = partial(self._known, y)
            answer = self.oracles.try_out(known) if shortened < MOST_SHORTENED else known()
            if answer is None:
                # g overflows there, and is finite at the center: nearer to that.
                shortened, left, (X, y) = shortened + 1, work.steps, (step.origin[0], center)
                work = replace(work, curvature=SHORTER * max(work.curvature, 1.0 / step.rho))
                continue
            value, slope = answer
            way = y - center
            square = _square(way)
            distance = max(value - work.value - float(np.vdot(model.slope, way)), 0.0)
            error = float(np.linalg.norm(slope - model.slope - work.curvature * way))
            curvature = max(2.0 * distance / square if square > 0.0 else 0.0, 0.5 * work.curvature)
            work = replace(work, value=value, slope=slope, curvature=curvature)
            travelled = float(np.linalg.norm(y - step.origin[1]))
            center = y
            if left <= 0 or step.rho * error <= _MODEL_ERROR * travelled:
                break
        return found._replace(g_value=value, g_linearisation=Linearisation(y, value, slope)), work

    def _known(self, y: Array) -> tuple[float, Array]:
        """Value and slope at y, both finite."""
        value, slope = self.oracles.g_value_and_gradient(self.g, y)
        if not math.isfinite(value):
            raise self.oracles.not_finite("g", y)
        return value, slope


@final
class Slid:
    """A costly g as the outer function of adaptive sliding on the linearised step, seen from y."""

    def __init__(self, iteration: Iteration, metric: Entrywise, steps: int, tolerance: float) -> None:
        self.iteration, self.metric, self.steps, self.tolerance = iteration, metric, steps, tolerance

    def begin(self, x: Array, y: Array) -> Work:
        return Work(self.steps, self.tolerance, inside=self.iteration.begin(y, x))

    def solve(self, step: InnerProblem, work: Work) -> tuple[Inside, Work]:
        inside = work.inside
        assert inside is not None
        model = DualModel(step.gradient, self.metric.weight(step.L, 0.0), step.center)
        for taken in range(1, work.steps + 1):
            before = inside
            inside, found = self.iteration.step(before, beside=model)
            x, y = found.y, found.x
            if not self.iteration.oracles.finite(x, y):
                break
            change = step.L * self.metric.norm_squared(x - before.y) + inside.L * _square(y - before.here.x)
            way = step.L * self.metric.norm_squared(x - step.origin[0]) + inside.L * _square(y - step.origin[1])
            if taken >= 2 and change <= work.tolerance**2 * way:
                break
        # From y's side the coupling is -B^T, and x is its dual variable.
        Bx = None if found.BTy is None else -found.BTy
        BTy = None if found.Bx is None else -found.Bx
        of_g = found.value, found.linearisation, found.error
        return Inside(x, x, y, taken, Bx, BTy, (), *of_g), replace(work, inside=inside)


Inner = Proximal | Linearised | Slid


def _square(v: Array) -> float:
    return float(np.vdot(v, v))
