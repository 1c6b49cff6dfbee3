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

from saddleslide.arrays.base import Array, inner_product, length_of, zeros
from saddleslide.arrays.kinds import NUMPY
from saddleslide.certificates.candidate import Linearisation, Split
from saddleslide.domains.entrywise import Box, FullSpace
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.separable import SeparableForm, prox
from saddleslide.kernels.arguments import DualUpdate, PrimalUpdate
from saddleslide.kernels.switch import jit_enabled, load
from saddleslide.methods.base import State
from saddleslide.methods.sliding.known import known_curve, known_set, spread
from saddleslide.metrics.base import Entrywise, Metric
from saddleslide.metrics.memory import Memory, Remembered
from saddleslide.metrics.spectral import Spectral
from saddleslide.operators.structured import FiniteDifferences
from saddleslide.oracles.calls import MOST_SHORTENED, SHORTER
from saddleslide.oracles.oracles import Oracles

if TYPE_CHECKING:
    from saddleslide.arrays.state import XArray, YArray
    from saddleslide.domains.base import Domain
    from saddleslide.functions.base import Function
    from saddleslide.methods.adaptive_sliding import Iterate, Iteration

    # Sliding on g is seen from y.
    MirroredIterate: TypeAlias = Iterate

# Inner work is never more than this, nor to a smaller tolerance.
_MOST_STEPS, _LEAST_TOLERANCE = 4096, 1e-3
# A costly g is linearised again when the error of its model exceeds this part of the dual step.
_MODEL_ERROR = 0.1
# The weight of a normal changes by this factor at most from one step to the next.
_SWING = 3.0


@dataclass(frozen=True)
class DualModel:
    """Model of a function of y: <slope, y> + <y - center, curvature (y - center)> / 2, curvature entry by entry."""

    slope: Array
    curvature: Array | float
    center: Array


@dataclass(frozen=True)
class InnerProblem:
    """min_x max_y <gradient, x> + |x - center|^2 / 2 + f_simple + <y, Bx> - g_simple - model, and where to begin.

    The norm is that of `hessian`. Points x are in the coordinates of the metric. The way travelled is measured from
    `origin`.
    """

    gradient: Array
    center: Array
    hessian: Remembered
    start: tuple[Array, Array]
    origin: tuple[Array, Array]
    rho: float
    model: DualModel | None


class Inside(NamedTuple):
    """What the inside of a step has found: coordinates of x, x and y, the steps taken, and products.

    Of a costly g there are value, linearisation and error.
    """

    X: Array
    x: Array
    y: Array
    taken: int
    Bx: Array | None
    BTy: Array | None
    g_value: float | None = None
    g_linearisation: Linearisation | None = None
    g_error: float | None = None


class InnerLoop:
    """Approximate solutions of coupling problems.

    In the coupling metric diag(rho S, I/rho), with S an upper bound on B^T B that is diagonal in the metric's basis,
    the coupling has norm 1:

        x+ = argmin ... + rho/2 |x' - x|_S^2 with B^T (2 y - y_previous),   y+ = prox at y + rho B x+.

    In entrywise metrics the first is a proximal step of f_simple on X; in others x is free, beside a `Copy`.
    """

    def __init__(self, oracles: Oracles, metric: Metric, split: Split) -> None:
        self.oracles, self.metric, self.split = oracles, metric, split
        self.copy = (
            None if isinstance(metric, Entrywise) else Copy(split.f_simple, oracles.problem.X, metric.keeps_identity)
        )
        # Where P is diagonal in the entries, the copy minimises the model of f; steps in the basis of B are left.
        self.plain, X = None, oracles.problem.X
        separable = isinstance(X, Box | FullSpace) and split.f_simple.separable_form() is not None
        if isinstance(metric, Spectral) and metric.is_diagonal and separable:
            self.plain = metric.without_symbol(oracles.problem.coupling)
        used = self.plain or metric
        found = CompiledSteps.made(oracles, used, split, self.copy)
        self.steps: Any = PlainSteps(oracles, used, split, self.copy) if found is None else found

    def solve(self, given: InnerProblem, work: Work, most: int) -> tuple[Inside, Work]:
        """Steps until there are `most`, or one, not the first, changes (x, y) by less than the tolerance of the way.

        It ends with B^T y, for the judge and for the first step of the next loop. Where that begins is kept too, in
        case that it is repeated.
        """
        start, origin, steps, copy, taken = given.start[1], given.origin[0], self.steps, self.copy, 0
        first = next((pull for point, pull in work.known if point is start or np.array_equal(point, start)), None)
        if first is None and not start.any():
            first = zeros(self.oracles.problem.X.shape, start)
        if copy is not None:
            copy.begin(given.start[0], work.normal, work.sigma, given.hessian.L * self.metric.typical)
            if self.plain is not None:
                copy.take(given)
                given = self._without_model(given, self.plain)
        steps.begin(given)
        pull = first
        while True:
            change, way = steps.advance(pull)
            taken, pull = taken + 1, None
            if not (taken >= most or (taken >= 2 and change <= work.tolerance**2 * way)):
                continue
            if copy is None or copy.sigma > 0.0 or copy.holds(steps.x):
                break
            # Constraints that nobody looked at matter: once more.
            copy.look(steps.x, given.hessian.L * self.metric.typical)
            steps.begin(given)
            taken, pull = 0, first
        X, x, y, Bx, BTy = steps.end()
        known = ((y, BTy),) if first is None else ((y, BTy), (start, first))
        work = replace(work, known=known)
        if copy is not None and copy.sigma > 0.0:
            work = replace(work, normal=copy.normal, sigma=copy.balance(self.metric.from_basis(origin)))
            if not np.array_equal(copy.point, x):
                X, x, Bx = self.metric.to_basis(copy.point), copy.point, None
        return Inside(X, x, y, taken, Bx, BTy), work

    def _without_model(self, given: InnerProblem, metric: Metric) -> InnerProblem:
        """The inner problem without the model of f, in the coordinates of the steps."""
        start, origin = ((metric.to_basis(X), y) for X, y in (given.start, given.origin))
        none = zeros(given.center.shape, given.center)
        hessian = Remembered(metric, 1.0, Memory())
        return replace(given, gradient=none, center=none, hessian=hessian, start=start, origin=origin)


@final
class Copy:
    """A copy of x that takes the proximal step of f_simple on X, where metrics mix the entries of x.

    That both are equal is one more block of B: with the identity for B, sigma for rho and a normal of f_simple and X
    for y. Nothing is done while sigma is 0: constraints alone are looked at once an x has left them.
    """

    def __init__(self, term: Function, X: Domain, solves: bool) -> None:
        form, self.X = term.separable_form(), X
        # A multiple of |x|^2 is part of what is solved for x, where the metric can do that.
        self.form = form if form is not None and form.isotropic and solves else SeparableForm()
        self.term = term if self.form is not form else Zero()
        self.sigma = 0.0
        # Of a model of f with a diagonal Hessian: that, and the slope at 0.
        self.bent: Array | float = 0.0
        self.slope: Array | float = 0.0

    def holds(self, x: Array) -> bool:
        """Whether x lies in X."""
        return np.array_equal(self.X.project(x), x)

    def begin(self, near: Array, normal: Array | None, sigma: float, typical: float) -> None:
        """Where the last inner problem has ended; a bent term is looked at from the start."""
        self.sigma = sigma
        if normal is not None:
            self.start = self.normal = self.ahead = normal
        elif not isinstance(self.term, Zero):
            self.look(near, typical)

    def take(self, given: InnerProblem) -> None:
        """The model of f, which has a diagonal Hessian: the copy minimises it, and x is free of it."""
        model = given.hessian
        self.bent = model.metric.weight(model.L, 0.0)  # type: ignore[attr-defined]
        self.slope = given.gradient - self.bent * given.center
        if self.sigma == 0.0:
            self.look(given.start[0], model.L * model.metric.typical)

    def look(self, near: Array, typical: float) -> None:
        """From now on, with a first sigma as large as the metric."""
        self.start = self.normal = self.ahead = np.zeros_like(near)
        self.sigma = typical

    def advance(self, x: Array) -> tuple[float, float]:
        """A step of the normal; squares of it and of the way."""
        shifted, weight = x + self.normal / self.sigma, self.sigma + self.bent
        self.point = prox(self.term, (self.sigma * shifted - self.slope) / weight, weight, self.X)
        normal = self.sigma * (shifted - self.point)
        step, way = normal - self.normal, normal - self.start
        self.normal, self.ahead = normal, normal + step
        return _square(step) / self.sigma, _square(way) / self.sigma

    def balance(self, origin: Array) -> float:
        """The next sigma, sqrt(sigma |dn| / |dx|): both travel equally far. One problem is weak evidence."""
        turned, moved = (math.sqrt(_square(way)) for way in (self.normal - self.start, self.point - origin))
        wanted = math.sqrt(self.sigma * turned / moved) if moved > 0.0 else self.sigma
        return min(max(wanted, self.sigma / _SWING), self.sigma * _SWING)


@final
class PlainSteps:
    """Steps in NumPy, for every metric, function and domain with proximal steps: the twin of compiled ones."""

    def __init__(self, oracles: Oracles, metric: Metric, split: Split, copy: Copy | None) -> None:
        self.oracles, self.metric, self.split, self.copy = oracles, metric, split, copy

    def begin(self, given: InnerProblem) -> None:
        """At the start of a problem."""
        self.given, copy = given, self.copy
        self.X, self.y = given.start
        self.y_ahead = self.y
        self.base = given.hessian.apply(given.center) - given.gradient
        if copy is not None:
            self.base = _without(self.base, self.metric, copy.form.linear)
            self.solver = given.hessian.solver(given.rho, copy.sigma + copy.form.quadratic)

    def advance(self, pull: Array | None) -> tuple[float, float]:
        """One step; squares of it and of the way from the origin, in the norm L P + I / rho.

        `pull` is B^T y at the start, for a first step that need not make this product.
        """
        metric, L, rho, origin, copy = self.metric, self.given.hessian.L, self.given.rho, self.given.origin, self.copy
        problem, model = self.oracles.problem, self.given.model
        pull = self.oracles.adjoint(self.y_ahead) if pull is None else pull
        sigma = 0.0 if copy is None else copy.sigma
        pull = pull if copy is None or sigma == 0.0 else pull + copy.ahead
        target = self.base - metric.to_dual(pull) + metric.apply_near(self.X, rho, sigma)
        if copy is None:
            assert isinstance(metric, Entrywise)
            weight = metric.weight(L, rho)
            X = self.x = prox(self.split.f_simple, target / weight, weight, problem.X)
        else:
            X = self.solver.solve(target)
            self.x = metric.from_basis(X)
        Bx = self.Bx = self.oracles.forward(self.x)
        if model is None:
            y = prox(self.split.g_simple, self.y + rho * Bx, 1.0 / rho, problem.Y)
        else:
            total = 1.0 / rho + model.curvature
            center = (1.0 / rho * self.y + model.curvature * model.center + Bx - model.slope) / total
            y = prox(self.split.g_simple, center, total, problem.Y)
        step, way = y - self.y, y - origin[1]
        change = L * metric.norm_squared(X - self.X) + inner_product(step, step) / rho
        outer = L * metric.norm_squared(X - origin[0]) + inner_product(way, way) / rho
        self.y_ahead = y + step
        self.X, self.y = X, y
        return _sum((change, outer), copy, self.x)

    def end(self) -> tuple[Array, Array, Array, Array, Array]:
        """Coordinates and point of x, y, B x and B^T y; valid for good."""
        return self.X, self.x, self.y, self.Bx, self.oracles.adjoint(self.y)


def _without(base: Array, metric: Metric, linear: Array | float) -> Array:
    """Less a linear term of x, in coordinates."""
    if isinstance(linear, float | int):
        return base if linear == 0.0 else base - metric.to_dual(linear + np.zeros_like(base))
    return base - metric.to_dual(linear)


def _sum(squares: tuple[float, float], copy: Copy | None, x: Array) -> tuple[float, float]:
    """The same with those of a copy of x, where there is one."""
    if copy is None or copy.sigma == 0.0:
        return squares
    change, way = copy.advance(x)
    return squares[0] + change, squares[1] + way


@final
class CompiledSteps:
    """The steps of `PlainSteps` in two passes each, one per block, besides products and transforms."""

    def __init__(
        self, oracles: Oracles, metric: Spectral | Entrywise, f: SeparableForm, g: SeparableForm, sets: tuple[Any, Any],
        copy: Copy | None,
    ) -> None:  # fmt: skip
        problem = oracles.problem
        self.oracles, self.metric, self.f, self.g, self.sets, self.copy = oracles, metric, f, g, sets, copy
        self.curves = known_curve(f), known_curve(g)
        self.kernels, self.products = load("primal_dual"), load("products")
        self.x_shape, self.y_shape, n, m = problem.X.shape, problem.Y.shape, problem.X.size, problem.Y.size
        self.P, self.S = (spread(symbol, self.x_shape) for symbol in (metric.symbol, metric.coupling_symbol))
        self.two_X, self.two_y = [np.empty(n) for _ in range(2)], [np.empty(m) for _ in range(2)]
        self.ahead, self.pulled, self.image = np.empty(m), np.empty(n), np.empty(m)

    @classmethod
    def made(cls, oracles: Oracles, metric: Metric, split: Split, copy: Copy | None) -> CompiledSteps | None:
        """Where metrics are diagonal, sets boxes or full spaces, and simple parts without curves."""
        problem = oracles.problem
        f = split.f_simple.separable_form() if copy is None else copy.form
        g = split.g_simple.separable_form()
        entries = sum(operator.entry_count or 0 for operator, _ in split.f_rest.operators)
        if not jit_enabled(problem.X.size + problem.Y.size, entries) or problem.arrays != NUMPY:
            return None
        if not isinstance(metric, Spectral | Entrywise):
            return None
        if f is None or g is None or known_curve(f) is None or known_curve(g) is None:
            return None
        # Beside a copy x itself is free.
        X = problem.X if copy is None else FullSpace(1)
        if not isinstance(X, Box | FullSpace) or not isinstance(problem.Y, Box | FullSpace):
            return None
        return cls(oracles, metric, f, g, (known_set(X), known_set(problem.Y)), copy)

    def begin(self, given: InnerProblem) -> None:
        hessian, rho, model, copy = given.hessian, given.rho, given.model, self.copy
        self.X, self.y = (_contiguous(part) for part in given.start)
        origin = tuple(_contiguous(part) for part in given.origin)
        self.y_ahead = self.y
        base = _without(hessian.apply(given.center) - given.gradient, self.metric, self.f.linear)
        sigma, stiff = 0.0 if copy is None else copy.sigma, self.f.quadratic
        weight, near = hessian.L * self.P, rho * self.S + self.metric.spread * sigma
        inverse = 1.0 / (weight + near + (stiff.reshape(-1) if isinstance(stiff, np.ndarray) and stiff.ndim else stiff))
        self.solver = hessian.solver(rho, sigma + stiff)
        self.primal = PrimalUpdate(_contiguous(base), origin[0], near, inverse, weight)
        constant: Array | float = -self.g.linear
        stiffness: Array | float = 1.0 / rho + self.g.quadratic
        if model is not None:
            constant = constant + model.curvature * model.center - model.slope
            stiffness = stiffness + model.curvature
        inverse_y = spread(np.divide(1.0, stiffness), self.y_shape)
        self.dual = DualUpdate(spread(constant, self.y_shape), origin[1], inverse_y, 1.0 / rho)

    def advance(self, pull: Array | None) -> tuple[float, float]:
        pull, copy = self._adjoint(self.y_ahead) if pull is None else pull, self.copy
        pull = pull if copy is None or copy.sigma == 0.0 else pull + copy.ahead
        pulled, base, near = _contiguous(self.metric.to_dual(pull)), self.primal.base, self.primal.near
        if self.solver.remembers:
            pulled = pulled + self.solver.correction(base - pulled + near * self.X).reshape(-1)
        X = self.two_X[0] if self.X is not self.two_X[0] else self.two_X[1]
        squares = self.kernels.primal_step(X, pulled, self.X, self.primal, self.curves[0], self.sets[0])
        self.x = self.metric.from_basis(X.reshape(self.x_shape))
        self.Bx = self._forward(self.x)
        y = self.two_y[0] if self.y is not self.two_y[0] else self.two_y[1]
        given = y, self.ahead, self.y, self.Bx, self.dual, self.curves[1], self.sets[1]
        dual_squares = self.kernels.dual_step(*given)
        self.X, self.y, self.y_ahead = X, y, self.ahead
        return _sum((squares[0] + dual_squares[0], squares[1] + dual_squares[1]), copy, self.x)

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
    # A normal of f_simple and X at x, and the weight of its steps: 0 where constraints have not been met.
    normal: XArray | None = None
    sigma: float = 0.0

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
        return self.loop.solve(step, work, work.steps)


@final
class Linearised:
    """A costly g linearised at y, and again while the error of its model exceeds a part of the dual step."""

    def __init__(self, loop: InnerLoop, steps: int, tolerance: float) -> None:
        self.loop, self.first = loop, Work(steps, tolerance)
        self.oracles, self.g = loop.oracles, loop.split.g_rest

    def begin(self, x: Array, y: Array) -> Work:
        value, slope = self.oracles.value_and_gradient("g", self.g, y)
        return replace(self.first, value=value, slope=slope)

    def solve(self, step: InnerProblem, work: Work) -> tuple[Inside, Work]:
        (X, y), left, shortened = step.origin, work.steps, 0
        center = y
        while True:
            assert work.slope is not None
            model = DualModel(work.slope, work.curvature, center)
            found, work = self.loop.solve(replace(step, start=(X, y), model=model), work, left)
            X, y, left = found.X, found.y, left - found.taken
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
            distance = max(value - work.value - inner_product(model.slope, way), 0.0)
            error = length_of(slope - model.slope - work.curvature * way)
            curvature = max(2.0 * distance / square if square > 0.0 else 0.0, 0.5 * work.curvature)
            work = replace(work, value=value, slope=slope, curvature=curvature)
            travelled = length_of(y - step.origin[1])
            center = y
            if left <= 0 or step.rho * error <= _MODEL_ERROR * travelled:
                break
        return found._replace(g_value=value, g_linearisation=Linearisation(y, value, slope)), work

    def _known(self, y: Array) -> tuple[float, Array]:
        """Value and slope at y, both finite."""
        value, slope = self.oracles.value_and_gradient("g", self.g, y)
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
        model = DualModel(step.gradient, self.metric.weight(step.hessian.L, 0.0), step.center)
        for taken in range(1, work.steps + 1):
            before = inside
            inside, found = self.iteration.step(before, beside=model)
            x, y = found.y, found.x
            if not self.iteration.oracles.finite(x, y):
                break
            L = step.hessian.L
            change = L * self.metric.norm_squared(x - before.y) + inside.L * _square(y - before.here.x)
            way = L * self.metric.norm_squared(x - step.origin[0]) + inside.L * _square(y - step.origin[1])
            if taken >= 2 and change <= work.tolerance**2 * way:
                break
        # From y's side the coupling is -B^T, and x is its dual variable.
        Bx = None if found.BTy is None else -found.BTy
        BTy = None if found.Bx is None else -found.Bx
        of_g = found.value, found.linearisation, found.error
        return Inside(x, x, y, taken, Bx, BTy, *of_g), replace(work, inside=inside)


Inner = Proximal | Linearised | Slid


def _square(v: Array) -> float:
    return inner_product(v, v)
