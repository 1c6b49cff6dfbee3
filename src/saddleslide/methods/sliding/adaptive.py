"""Adaptive sliding: one accelerated outer loop on f, the coupling (and g) slid inside, nothing to tune.

Practice in place of theory, in five points: the curvature of f is found by backtracking and may fall again; momentum
restarts when it points uphill; the inner loop stops when more of it would not pay; the weight between x and y follows
the distances that both travel; and a g without proximal step is linearised, once per outer step where that is enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.certificates.candidate import Candidate, Linearisation, Split
from saddleslide.functions import bounding_modulus
from saddleslide.functions.base import value_aside
from saddleslide.functions.roundings import FEW, inner_error
from saddleslide.methods.sliding.inner import Inner, LinearisedStep
from saddleslide.metrics import Metric
from saddleslide.oracles.calls import RunEnded
from saddleslide.oracles.oracles import MOST_SHORTENED, SHORTER, Oracles

# Relative size below which a difference of two numbers is rounding.
_NOISE = 1e-14
# Relative size below which the image of a step under B may be rounding.
_UNSEEN = 1e-10
# The weight between the blocks stays within this factor of its first value.
_RHO_RANGE = 1e8
_MOST_CAUTION = 20


@dataclass(frozen=True)
class Settings:
    """Rules of thumb; none depends on the problem.

    Parameters
    ----------
    shrink : float
        Factor on the curvature estimate after an accepted step.
    margin : float
        Factor above the measured curvature after a violated one.
    shorten : float
        A curvature violated by at most this factor shortens the step instead of repeating it.
    inner_tolerance : float
        The inner loop stops when a step is below this part of the outer step.
    forgiven : int
        After so many violations the curvature estimate falls more slowly.
    nested_tolerance : float
        The same for the steps on g, and for the coupling inside these.
    model_tolerance : float
        g is linearised again when the error of its model exceeds this part of the dual step.

    Examples
    --------
    >>> Settings().shrink
    0.9
    """

    shrink: float = 0.9
    margin: float = 1.05
    shorten: float = 2.0
    inner_tolerance: float = 0.03
    nested_tolerance: float = 0.1
    model_tolerance: float = 0.1
    forgiven: int = 100


@dataclass
class Point:
    """An iterate with its coordinates and its lift; with its gradient where that came along and is affine."""

    x: Array
    coordinates: Array
    lift: Array
    gradient: Array | None = None
    # Sizes of the points whose lifts this one is made of: what its rounding is relative to.
    reach: float = 0.0


class AdaptiveSliding:
    """The method as an iterator: `advance()` makes one outer step and returns a Candidate.

    Parameters
    ----------
    oracles : Oracles
        Counted access to the problem.
    metric : Metric
        Of the x block.
    split : Split
        Costly and simple parts of f and g; f must have a costly part.
    start : (x, y)
        Feasible.
    curvature : float
        First estimate of the curvature of f in the metric.
    modulus : float
        Proved strong convexity of the costly part of f in the metric.
    inner : Inner
        How the linearised steps are solved.
    slack : float
        Allowed violation of the curvature test, for f with nu < 1.
    """

    def __init__(
        self,
        oracles: Oracles,
        metric: Metric,
        split: Split,
        start: tuple[Array, Array],
        curvature: float,
        modulus: float,
        inner: Inner,
        slack: float = 0.0,
        settings: Settings | None = None,
    ) -> None:
        self.oracles, self.metric, self.split = oracles, metric, split
        self.settings = settings or Settings()
        self.f = oracles.lifted(split.f_rest)
        self.inner = inner
        self.L, self.modulus, self.slack = curvature, modulus, slack
        x, y = start
        self.here = Point(x, metric.to_basis(x), self.f.lift(x), reach=float(np.linalg.norm(x)))
        self.before = self.here
        self.y = y
        self.momentum, self.t = 0.0, 1.0
        self.rho = self.first_rho = math.nan
        # Gradients at iterates are kept only where they are affine, hence reusable.
        self.gradient = self.f.gradient(x, self.here.lift) if self.f.affine_gradient else None
        self.gradient_before = self.gradient
        self.outer_steps = self.restarts = self.violations = 0
        self.average: tuple[float, Array, Array] | None = None
        # Averaged models bound the minimum over x where strong convexity does not.
        X = oracles.problem.X
        self.averaging = X.bounded and bounding_modulus(split.f_rest, split.f_simple, X) == 0.0

    def advance(self) -> Candidate:
        """One outer step."""
        v, lift_v, C, reach, gradient, value_v = self._linearised()
        G = self.metric.to_basis(gradient)
        if math.isnan(self.rho):
            self.rho = self.first_rho = self._first_rho(G)
        new, y, failed = self._step(v, lift_v, C, gradient, G, value_v, reach)
        Bx = self.inner.forward_product
        errors = self.f.errors(v, lift_v, value_v, gradient, reach)
        if self.averaging:
            self._average_models(value_v, gradient, v, y, errors)
        self._balance(new, y)
        self._accelerate(new, C, failed)
        self.before, self.here, self.y = self.here, new, y
        self.outer_steps += 1
        value = self.f.value(new.x, new.lift)
        known = Linearisation(v, value_v, gradient, errors)
        if self.gradient is not None:
            found = self.f.gradient(new.x, new.lift) if new.gradient is None else new.gradient
            self.gradient_before, self.gradient = self.gradient, found
            errors = self.f.errors(new.x, new.lift, value, found, new.reach)
            known = Linearisation(new.x, value, self.gradient, errors)
        g_simple, g_value = self.split.g_simple, self.inner.g_value
        g_value = None if g_value is None else g_value + value_aside(g_simple, y)
        BTy = self.inner.adjoint_product
        at_x = errors if known.point is new.x else self.f.errors(new.x, new.lift, value, None, new.reach)
        return Candidate(
            new.x, y, value, Bx, known, self.average, g_value, self.inner.g_linearisation, BTy, at_x[0],
            g_error=self.inner.g_error,
        )  # fmt: skip

    def _linearised(self) -> tuple[Array, Array, Array, float, Array, float]:
        """The extrapolated point with gradient and value; the last iterate where f is not finite beyond it."""
        if self.momentum > 0.0:
            found = self.oracles.tried(self._extrapolated_gradient)
            if found is not None:
                return found
            self.t, self.momentum = 1.0, 0.0
        return self._extrapolated_gradient()

    def _extrapolated_gradient(self) -> tuple[Array, Array, Array, float, Array, float]:
        v, lift_v, C, reach = self._extrapolated()
        gradient, value = self._gradient(v, lift_v), self.f.value(v, lift_v)
        if not math.isfinite(value):
            raise self.oracles.not_finite("f", v)
        return v, lift_v, C, reach, gradient, value

    def _extrapolated(self) -> tuple[Array, Array, Array, float]:
        b, here, before = self.momentum, self.here, self.before
        if b == 0.0:
            return here.x, here.lift, here.coordinates, here.reach
        if self.f.plain:
            # Nothing is reused, so the point can be kept where f is sure to be defined.
            v = self.oracles.problem.X.project(here.x + b * (here.x - before.x))
            return v, v, self.metric.to_basis(v), 0.0
        return (
            here.x + b * (here.x - before.x),
            here.lift + b * (here.lift - before.lift),
            here.coordinates + b * (here.coordinates - before.coordinates),
            (1.0 + b) * here.reach + b * before.reach,
        )

    def _gradient(self, v: Array, lift_v: Array) -> Array:
        """Gradient at the extrapolated point; an affine one is the same combination of gradients at iterates."""
        if self.gradient is None or self.gradient_before is None:
            return self.f.gradient(v, lift_v)
        return self.gradient + self.momentum * (self.gradient - self.gradient_before)

    def _first_rho(self, G: Array) -> float:
        """Ratio of the dual radius to the image of a first step, or what the curvatures say."""
        if self.inner.curvature_of_y > 0.0:
            return 1.0 / self.inner.curvature_of_y
        problem = self.oracles.problem
        step = self.metric.from_basis(self.metric.solve(G, self.L, 0.0))
        image = float(np.linalg.norm(self.oracles.forward(step)))
        # A step that B does not see, as of agents that agree from the start, leaves rounding as its image.
        rounding = _UNSEEN * problem.coupling.norm.upper * float(np.linalg.norm(step))
        radius = problem.Y.radius(self.y)
        if math.isfinite(radius) and radius > 0.0 and image > rounding:
            return radius / image
        modulus = problem.g.strong_convexity(problem.Y)
        if modulus > 0.0:
            return 1.0 / modulus
        balance = self.metric.balance
        return self.L * balance if math.isfinite(balance) else 1.0

    def _step(
        self, v: Array, lift_v: Array, C: Array, gradient: Array, G: Array, value_v: float, reach: float
    ) -> tuple[Point, Array, bool]:
        """Inner loop and curvature test; repeated only when the test fails badly."""
        failed, shortened = False, 0
        while True:
            origin = (self.here.coordinates, self.y)
            X, x, y = self.inner.solve(LinearisedStep(G, C, self.L, origin, self.rho))
            if not self.oracles.finite(x, y):
                # Compiled loops do not say so themselves, and no oracle is to be blamed for the answer at such a point.
                raise RunEnded("NUMERICAL_LIMIT", "a step left the range of double precision")
            trial = partial(self._trial, x, X, v, lift_v, gradient)
            found = self.oracles.tried(trial) if shortened < MOST_SHORTENED else trial()
            if found is None:
                # f overflows there, and is finite where we stand: nearer.
                failed, shortened, self.L = True, shortened + 1, SHORTER * self.L
                continue
            new, excess = found[0], found[1] - self.slack
            D = X - C
            square = self.metric.squared_norm(D)
            # What can not be told from rounding of the values says nothing about the curvature.
            noise = _NOISE * abs(value_v)
            measured = 2.0 * excess / square if square > 0.0 and excess > noise else 0.0
            if measured <= self.L * (1.0 + 1e-9):
                if self.outer_steps == 0 and not failed and 0.0 < measured < 0.1 * self.L:
                    # The first estimate was far too large: there is no need to creep down to the truth.
                    self.L = self.settings.margin * measured
                return new, y, failed
            failed = True
            self.violations += 1
            if measured <= self.settings.shorten * self.L and self.slack == 0.0:
                part = self._shortened(v, lift_v, C, D, new, gradient, measured, reach)
                # An extrapolated v may lie outside X, and so may a point between it and x.
                rounding = _NOISE * (1.0 + float(np.max(np.abs(part.x), initial=0.0)))
                if self.oracles.problem.X.contains(part.x, rounding):
                    return part, y, failed
                continue
            self.L = self.settings.margin * min(measured, 1e3 * self.L)

    def _trial(self, x: Array, X: Array, v: Array, lift_v: Array, gradient: Array) -> tuple[Point, float]:
        """A new iterate, and by how much f exceeds its linear model there."""
        new = self._lifted(x, X)
        excess = self.f.bregman(x, new.lift, v, lift_v, gradient)
        if not math.isfinite(excess):
            raise self.oracles.not_finite("f", x)
        return new, excess

    def _lifted(self, x: Array, X: Array) -> Point:
        """A new iterate with its lift; where one pass gives its gradient too, that will be wanted next."""
        if self.f.one_pass and self.f.affine_gradient:
            lift, gradient = self.f.lift_and_gradient(x)
            return Point(x, X, lift, gradient, float(np.linalg.norm(x)))
        return Point(x, X, self.f.lift(x), reach=float(np.linalg.norm(x)))

    def _shortened(
        self, v: Array, lift_v: Array, C: Array, D: Array, new: Point, gradient: Array, measured: float, reach: float
    ) -> Point:
        """Go only part of the way, where the test holds: lifts along the segment cost nothing."""
        square = self.metric.squared_norm(D)
        while True:
            part = self.L / measured
            x_part, lift_part = v + part * (new.x - v), lift_v + part * (new.lift - lift_v)
            if self.f.affine_gradient:
                break
            excess = self.f.bregman(x_part, lift_part, v, lift_v, gradient)
            if 2.0 * excess <= measured * part * part * square * (1.0 + 1e-9):
                break
            measured *= 1.2
        self.L = self.settings.margin * measured
        self.inner.forward_product = None
        gradient_part = None if new.gradient is None else gradient + part * (new.gradient - gradient)
        return Point(x_part, C + part * D, lift_part, gradient_part, (1.0 - part) * reach + part * new.reach)

    def _average_models(self, value: float, slope: Array, v: Array, y: Array, errors: tuple[float, float]) -> None:
        """Running average of the lower models of f and of y, with the weights of the accelerated scheme."""
        X, steep = self.oracles.problem.X, float(np.linalg.norm(slope))
        lost = errors[0] + errors[1] * X.radius(v)
        # Of the averaged slope and constant, every step rounds once more.
        lost += (inner_error(v.size) + FEW) * (abs(value) + steep * (float(np.linalg.norm(v)) + X.radius_at_zero))
        constant = value - float(np.vdot(slope, v)) - lost
        weight = min(1.0, 1.0 / self.t)
        if self.average is None or weight == 1.0:
            self.average = (constant, slope, y)
            return
        old_constant, old_slope, old_y = self.average
        keep = 1.0 - weight
        self.average = (
            keep * old_constant + weight * constant,
            keep * old_slope + weight * slope,
            keep * old_y + weight * y,
        )

    def _balance(self, new: Point, y: Array) -> None:
        """Set rho to sqrt(rho |dy| / |B dx|): the weight that makes both blocks travel equally far."""
        dual = float(np.linalg.norm(y - self.y))
        primal = math.sqrt(self.metric.coupling_squared_norm(new.coordinates - self.here.coordinates))
        size = math.sqrt(self.metric.coupling_squared_norm(new.coordinates))
        dual_moves = dual > _NOISE * float(np.linalg.norm(y))
        primal_moves = primal > _NOISE * size
        if not (dual_moves or primal_moves):
            return
        # One step is weak evidence: move by a factor of ten at most. A block that rests leaves all room to the other.
        resting = math.inf if dual_moves else 0.0
        wanted = math.sqrt(self.rho * dual / primal) if dual_moves and primal_moves else resting
        self.rho = min(max(wanted, 0.1 * self.rho), 10.0 * self.rho)
        self.rho = min(max(self.rho, self.first_rho / _RHO_RANGE), self.first_rho * _RHO_RANGE)

    def _shrinkage(self) -> float:
        """Violated curvatures are known ones: the estimate falls more slowly after each, but never stands still."""
        caution = min(max(self.violations - self.settings.forgiven, 0), _MOST_CAUTION)
        return float(self.settings.shrink ** (1.0 / (1.0 + caution)))

    def _accelerate(self, new: Point, C: Array, failed: bool) -> None:
        """Next curvature and momentum; restart when the step points against the last one."""
        next_L = self.L if failed else self._shrinkage() * self.L
        next_L = max(next_L, self.modulus)
        travelled = new.coordinates - self.here.coordinates
        uphill = float(np.vdot(self.metric.apply(C - new.coordinates), travelled)) > 0.0
        if uphill and self.momentum > 0.0:
            self.t, self.momentum = 1.0, 0.0
            self.restarts += 1
        else:
            ratio = min(self.modulus / next_L, 0.999)
            a = 1.0 - ratio * self.t**2
            grown = 4.0 * self.t**2 * next_L / self.L
            root = math.sqrt(a * a + grown)
            # The positive root, written so that it does not cancel to 0 where a is large and negative.
            t = 0.5 * (a + root) if a >= 0.0 else 0.5 * grown / (root - a)
            self.momentum = max(0.0, (self.t - 1.0) / t * (1.0 - t * ratio) / (1.0 - ratio))
            self.t = t
        self.L = next_L
