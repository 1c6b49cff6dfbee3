"""Adaptive sliding: one accelerated outer loop on f, the coupling (and g) slid inside, nothing to tune.

Practice in place of theory, in five points: the curvature of f is found by backtracking and may fall again; momentum
restarts when it points uphill; the inner loop stops when more of it would not pay; the weight between x and y follows
the distances that both travel; and a g without proximal step is slid in its turn, or linearised.

Of a quadratic f, each step says what its Hessian does along it. In metrics that mix the entries of x the last steps
become part of the metric, which is exact along them: f at an extrapolated point would be the same model, so there is no
momentum, and nothing is ever repeated.

`AdaptiveSliding` is the method: its settings, and what a run teaches it. `Iteration` is one outer step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from saddleslide.arrays.base import inner_product, length_of
from saddleslide.arrays.kinds import to_host
from saddleslide.certificates.candidate import Candidate, Linearisation, Split
from saddleslide.certificates.verdict import Status
from saddleslide.functions.constants import modulus_for_bounds
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.roundings import FEW, inner_error
from saddleslide.functions.trust import value_aside
from saddleslide.kernels.switch import prepare
from saddleslide.methods.base import BOUNDS, Description, Former, Method, State, option
from saddleslide.methods.metric_choice import build_metric, first_curvature, grid_of
from saddleslide.methods.sliding.inner import InnerLoop, InnerProblem, Linearised, Proximal, Slid
from saddleslide.metrics.base import Blocks, Diagonal, Entrywise, Metric
from saddleslide.metrics.memory import Memory, Remembered
from saddleslide.metrics.record import from_dict
from saddleslide.metrics.spectral import Spectral
from saddleslide.oracles.calls import MOST_SHORTENED, SHORTER, RunEnded
from saddleslide.theory.plan import ADAPTIVE_SLIDING, Plan

if TYPE_CHECKING:
    from saddleslide.arrays.base import Array
    from saddleslide.arrays.state import XArray, YArray
    from saddleslide.certificates.judge import Judge
    from saddleslide.facts.facts import Facts
    from saddleslide.methods.sliding.inner import DualModel, Inner, Inside, Work
    from saddleslide.oracles.lifts import CountedLift
    from saddleslide.oracles.oracles import Oracles
    from saddleslide.problem import SaddleProblem

METRICS = ("blocks", "diagonal", "spectral", "fft", "given")
# Rules of thumb, none of which depends on the problem. A coupling step, and a step on g inside one on f, is small
# enough below this part of the outer step.
_INNER_TOLERANCE, _NESTED_TOLERANCE = 0.03, 0.1
# Beside weights of entries, where S is no close bound, so many times as many inner steps; and where the Hessian is
# diagonal in the entries, so that the inner problem is all there is, so many to this tolerance.
_BESIDE_WEIGHTS, _ON_ENTRIES, _EXACT_TOLERANCE = 2, 48, 0.01
# Factors on the curvature estimate: after an accepted step, and above the measured one after a violated one. One that
# is violated by at most the third shortens the step instead of repeating it.
_SHRINK, _MARGIN, _SHORTEN = 0.9, 1.05, 2.0
# The same with a memory, which learns where L is too small: it falls faster, but not below what was measured on a step
# of which more than this part was new. Only a first step in wrong units is repeated.
_SHRINK_LEARNING, _NEWS, _UNITS = 0.8, 1e-2, 100.0
# After so many violations the curvature estimate falls more slowly, but by no more than that.
_FORGIVEN, _MOST_CAUTION = 100, 20
# Relative size below which a difference of two numbers is rounding; the same of the image of a step under B.
_NOISE, _UNSEEN = 1e-14, 1e-10
# The weight between the blocks stays within this factor of its first value; when it stalls it comes back to within
# the second one.
_RHO_RANGE, _RHO_RANGE_STALLED = 1e8, 1e2
# Steps without a better gap after which the inner work is doubled; over so many steps the gap must halve.
_PATIENCE, _STRIDE = 12, 40
# Of steps that nobody looks at, every so many counts as one.
_NOBODY_LOOKS = 4
# So many times out of patience at a gap this small, or within the factor of what rounding takes of the bounds, is the
# end of what rounding allows.
_MOST_STALLS, _TINY, _SLACK = 12, 1e-10, 8.0


@dataclass
class Point(State):
    """A point with its coordinates and its lift; of a quadratic f with the gradient, and the coordinates of that."""

    x: Array
    coordinates: Array
    lift: Array
    gradient: XArray | None = None
    slope: XArray | None = None
    # Sizes of the points whose lifts this one is made of: what its rounding is relative to.
    term_size: float = 0.0


class Model(NamedTuple):
    """f at an extrapolated point: with its gradient and its value."""

    x: Array
    coordinates: Array
    lift: Array
    term_size: float
    gradient: Array
    slope: Array | None
    value: float


@dataclass
class Iterate(State):
    """Where sliding on one function stands: the last two points, and all that it has learnt of curvature and weights.

    `average` is a lower model of f, constant and slope, with the y of the same weights; `at_zero` what the oracles have
    asked of a quadratic of the caller's.
    """

    here: Point
    before: Point
    y: Array
    L: float
    work: Work
    at_zero: tuple[float, XArray] | None
    t: float = 1.0
    momentum: float = 0.0
    rho: float = math.nan
    first_rho: float = math.nan
    steps: int = 0
    violations: int = 0
    average: tuple[float, XArray, YArray] | None = None
    memory: Memory = field(default_factory=Memory)


@dataclass
class Pace(State):
    """How a run has been getting on: what decides when to work harder, and when to give up."""

    steps: int = 0
    best: float = math.inf
    waited: int = 0
    stalls: int = 0
    mark: int = 0
    marked: float = math.inf


@dataclass
class AdaptiveState(State):
    """The iterate, the numbers of the fitted metric, the point to be judged, the target, and the pace.

    `slack_floor` is the least slack of the curvature test in units of a step; None where f is smooth and needs none.
    """

    iterate: Iterate
    metric: tuple[Array | float, ...]
    found: Candidate
    target: float
    slack_floor: float | None
    pace: Pace = field(default_factory=Pace)


@final
@dataclass(frozen=True, repr=False)
class AdaptiveSliding(Method):
    """What `solve` runs where f or g has a costly part; `f` has one from the side that the run sees."""

    description = Description(
        name=ADAPTIVE_SLIDING,
        needs=(),
        guarantee="None in advance: the certificate is the proof.",
        reference="Algorithm 1 with two or three levels, in practice (docs/solve.md)",
    )
    judged = BOUNDS

    metric: str = option("blocks", "the norm of x", METRICS)
    inner_steps: int = option(16, "most coupling steps per step on f", whole=True)
    curvature: float = option(1.0, "first estimate in the metric")
    g_steps: int = option(0, "most steps on a costly g inside one on f; 0: it is linearised", minimum=-1.0, whole=True)
    steps_per_g: int = option(0, "most coupling steps per step on g", minimum=-1.0, whole=True)
    given: Metric | None = None
    seed: int = 0
    reduction: float = 0.0
    # What the settings come from: a change of course is another plan.
    plan: Plan | None = field(default=None, compare=False)

    @classmethod
    def of(cls, plan: Plan) -> AdaptiveSliding:
        """The method of a plan, with all that it needs loaded, so that no clock of a run is charged with that."""
        prepare(transforms=plan.metric not in ("blocks", "diagonal"))
        settings, given = dict(plan.settings), plan.settings.get("given")
        settings["given"] = from_dict(given) if isinstance(given, Mapping) else given
        return cls(**settings, seed=plan.seed, reduction=max(plan.reduction, plan.rtol), plan=plan)

    def init(
        self, oracles: Oracles, facts: Facts, start: tuple[Array, Array], tol: float,
        fitted: tuple[Array | float, ...] | None = None,
    ) -> AdaptiveState:  # fmt: skip
        rest, floor = facts.f.rest, None
        if rest.may_have_kinks:
            # A relative target is 0 until the gap at the start is known to be positive; f itself gives its scale.
            radius, holder = rest.domain.radius(start[0]), rest.holder_at_hand
            radius, part = radius if math.isfinite(radius) else 1.0, 1e-3 * max(self.reduction, 1e-12)
            floor = 0.0 if holder is None else part * holder.H * float(radius ** (1.0 + holder.nu))
        return AdaptiveState(*self._begin(oracles, start, fitted), Candidate(*start, math.nan), tol, floor)

    def take_over(
        self, former: Former, oracles: Oracles, facts: Facts, start: tuple[Array, Array], tol: float
    ) -> AdaptiveState:
        """The fitted symbol, the curvature in its metric, and the weight between the blocks."""
        known: AdaptiveState = former.state
        same = former.plan.settings.get("metric") == self.metric != "given"
        if not (same and 0.0 < known.iterate.L < math.inf):
            return self.init(oracles, facts, start, tol)
        fitted = None
        if self.metric in ("spectral", "fft"):
            fitted = tuple(to_host(part) if np.ndim(part) else part for part in known.metric)
        state = replace(self, curvature=known.iterate.L).init(oracles, facts, start, tol, fitted)
        iterate = replace(state.iterate, rho=known.iterate.rho, first_rho=known.iterate.first_rho)
        return replace(state, iterate=iterate)

    def _begin(
        self, oracles: Oracles, start: tuple[Array, Array], fitted: tuple[Array | float, ...] | None = None
    ) -> tuple[Iterate, tuple[Array | float, ...]]:
        """The first iterate, and the numbers of the metric, which is fitted on the host and used where x lies."""
        x, metric = start[0], self._kind(oracles.problem)
        if self.metric in ("blocks", "given"):
            metric = metric.with_coupling(oracles.problem.coupling)
        elif fitted is not None or (oracles.dry and self.metric != "diagonal"):
            # What was fitted is known, or will be restored.
            numbers = fitted or (np.ones(x.shape), *metric.numbers[1:])
            metric = metric.with_numbers(*numbers).with_coupling(oracles.problem.coupling)
        else:
            metric = build_metric(self.metric, oracles, self._split(oracles).f_rest, to_host(x), self.seed)
        numbers = metric.beside(x).numbers
        return self._iteration(oracles, numbers).begin(*start, self.curvature), numbers

    def _kind(self, problem: SaddleProblem) -> Metric:
        """The metric as it was given, or one of the kind that was asked for."""
        if self.given is not None:
            return self.given
        if self.metric in ("spectral", "fft"):
            metric, grid = Spectral(1.0, basis="fft" if self.metric == "fft" else "dct"), grid_of(problem)
            return metric if grid is None or grid == problem.X.shape else metric.on_grid(grid)
        return Diagonal(1.0) if self.metric == "diagonal" else Blocks(1.0, 0.0)

    def _split(self, oracles: Oracles) -> Split:
        return Split(*oracles.problem.f_parts, *oracles.problem.g_parts)

    def _iteration(self, oracles: Oracles, numbers: tuple[Array | float, ...]) -> Iteration:
        """What the steps of a run share; made anew where a run goes on from a stored state."""

        def make() -> Iteration:
            split, metric = self._split(oracles), self._kind(oracles.problem).with_numbers(*numbers)
            if self.g_steps == 0 or not isinstance(metric, Entrywise):
                kind = Proximal if isinstance(split.g_rest, Zero) else Linearised
                # Steps are worth remembering where inner problems can be solved well: in the basis of the coupling.
                remembers = not isinstance(metric, Entrywise) and oracles.make_lift(split.f_rest).affine_gradient
                loop = InnerLoop(oracles, metric, split)
                inner, learns = kind(loop, *self._inner_work(metric)), loop.plain is None
                return Iteration(oracles, metric, split, inner, remembers, learns=learns)
            # g as the outer function, seen from y.
            seen = oracles.mirrored()
            near = Blocks(1.0, seen.problem.coupling.norm.upper)
            across = Split(split.g_rest, split.g_simple, Zero(), split.f_simple)
            coupling = Proximal(InnerLoop(seen, near, across), self.steps_per_g, _NESTED_TOLERANCE)
            # Many steps per step on f, all on the same g: what is known of its curvature lasts.
            inside = Iteration(seen, near, across, coupling, forgiven=0)
            return Iteration(oracles, metric, split, Slid(inside, metric, self.g_steps, _NESTED_TOLERANCE))

        return oracles.workspace(make, self, numbers)

    def _inner_work(self, metric: Metric) -> tuple[int, float]:
        """Most steps on the coupling in one on f, and their tolerance."""
        if isinstance(metric, Spectral) and metric.is_diagonal:
            return max(self.inner_steps, _ON_ENTRIES), _EXACT_TOLERANCE
        weighted = isinstance(metric, Spectral) and not metric.keeps_identity
        return self.inner_steps * (_BESIDE_WEIGHTS if weighted else 1), _INNER_TOLERANCE

    def step(self, state: AdaptiveState, oracles: Oracles) -> AdaptiveState:
        slack = 0.0
        if state.slack_floor is not None:
            # Nesterov (2015): a Hölder gradient passes the curvature test up to a part of the target.
            slack = 0.25 * max(state.target, state.slack_floor) / state.iterate.t
        iteration = self._iteration(oracles, state.metric)
        iterate, found = iteration.step(state.iterate, slack)
        if oracles.finite(found.x, found.y) and not math.isfinite(found.value):
            raise oracles.not_finite("f", found.x)
        return replace(state, iterate=iterate, found=found)

    def point(self, state: AdaptiveState, oracles: Oracles) -> tuple[Array, Array]:
        return state.found.x, state.found.y

    def candidates(self, state: AdaptiveState, oracles: Oracles) -> tuple[Candidate, ...]:
        return (replace(state.found, metric=self._iteration(oracles, state.metric).metric),)

    def learn(
        self, state: AdaptiveState, gaps: Sequence[float], judge: Judge, oracles: Oracles
    ) -> AdaptiveState | Status:
        """More inner work where the gap creeps; a status when nothing helps any more."""
        pace, work, gap = replace(state.pace, steps=state.pace.steps + 1), state.iterate.work, judge.known_gap
        rho, first_rho = state.iterate.rho, state.iterate.first_rho
        if gap < 0.9 * pace.best:
            pace.best, pace.waited, pace.stalls = gap, 0, 0
        elif not judge.looks.has_waited or pace.steps % _NOBODY_LOOKS == 0:
            # Where nobody looks since no look can succeed, that is slow news too.
            pace.waited += 1
        # Where nobody has looked, the gap is an old one.
        if pace.steps >= pace.mark + _STRIDE and not judge.looks.has_waited:
            # Creeping is not converging: the inner loop may be too short for the coupling.
            if gap > 0.5 * pace.marked:
                work = work.harder()
            pace.mark, pace.marked = pace.steps, gap
        if pace.waited >= _PATIENCE:
            work = work.harder()
            pace.waited, pace.stalls = 0, pace.stalls + 1
            # A weight that followed rounding, which leaves one block no room, comes back.
            rho = min(max(rho, first_rho / _RHO_RANGE_STALLED), first_rho * _RHO_RANGE_STALLED)
            # Perhaps only the cheap bounds lag: spend as many gradients on judging as the method has.
            left = int(oracles.calls.f - judge.oracles.calls.f)
            if left >= _PATIENCE and judge.judge_exactly(state.found, 0.1 * judge.target, left):
                return Status.SOLVED
            least = max(_TINY * judge.magnitude, _SLACK * judge.margins)
            if pace.stalls >= _MOST_STALLS and judge.known_gap <= least:
                return Status.NUMERICAL_LIMIT
        return replace(state, iterate=replace(state.iterate, work=work, rho=rho), pace=pace, target=judge.target)


class Iteration:
    """Outer steps on one function in one metric: what all of them share, and can be had again from the problem.

    f must have a costly part. After `forgiven` violations the curvature estimate falls more slowly.
    """

    def __init__(
        self, oracles: Oracles, metric: Metric, split: Split, inner: Inner, remembers: bool = False,
        forgiven: int = _FORGIVEN, learns: bool = True,
    ) -> None:  # fmt: skip
        self.oracles, self.metric, self.split, self.inner = oracles, metric, split, inner
        self.remembers, self.forgiven, self.learns = remembers, forgiven, learns
        X = oracles.problem.X
        # Proved strong convexity of the costly part of f in the metric.
        self.modulus = split.f_rest.strong_convexity(X) / metric.largest
        # Averaged models bound the minimum over x where strong convexity does not.
        self.averaging = X.bounded and modulus_for_bounds(split.f_rest, split.f_simple, X) == 0.0

    @cached_property
    def f(self) -> CountedLift:
        """The costly part of f through its lift."""
        return self.oracles.make_lift(self.split.f_rest)

    def begin(self, x: Array, y: Array, curvature: float | None = None) -> Iterate:
        """At a feasible point, with a first estimate of the curvature of f in the metric."""
        work = self.inner.begin(x, y)
        here = Point(x, self.metric.to_basis(x), self.f.lift(x), term_size=length_of(x))
        # Gradients at iterates are kept only where they are affine, hence reusable.
        if self.f.affine_gradient:
            self._complete(here)
        L = first_curvature(self.oracles.problem) if curvature is None else curvature
        return Iterate(here, here, y, L, work, self.oracles.at_zero)

    def step(self, state: Iterate, slack: float = 0.0, beside: DualModel | None = None) -> tuple[Iterate, Candidate]:
        """One outer step, and the point it ends at.

        `slack` is an allowed violation of the curvature test, for f with nu < 1; `beside` a model that is added to g.
        """
        self.oracles.at_zero = self.oracles.at_zero or state.at_zero
        state, v = self._linearise(state)
        G = self.metric.to_dual(v.gradient) if v.slope is None else v.slope
        if math.isnan(state.rho):
            rho = self._first_rho(state, G, beside)
            state = replace(state, rho=rho, first_rho=rho)
        state, new, inside, failed = self._solve_inner(state, v, G, slack, beside)
        errors = self.f.errors(v.x, v.lift, v.value, v.gradient, v.term_size)
        average = self._average(state, v, inside.y, errors) if self.averaging else None
        rho = self._balance(state, new, inside.y)
        L, t, momentum = self._accelerate(state, new, v.coordinates, failed)
        value = self.f.value(new.x, new.lift)
        known, earlier = Linearisation(v.x, v.value, v.gradient, errors), None
        if self.f.affine_gradient:
            earlier = known if state.steps == 0 else None
            gradient = self._complete(new)
            errors = self.f.errors(new.x, new.lift, value, gradient, new.term_size)
            known = Linearisation(new.x, value, gradient, errors)
        at_x = errors if known.point is new.x else self.f.errors(new.x, new.lift, value, None, new.term_size)
        g_value = None if inside.g_value is None else inside.g_value + value_aside(self.split.g_simple, inside.y)
        found = Candidate(
            new.x, inside.y, value, inside.Bx, known, average, g_value, inside.g_linearisation, inside.BTy, at_x[0],
            g_error=inside.g_error, earlier=earlier,
        )  # fmt: skip
        state = replace(
            state, here=new, before=state.here, y=inside.y, L=L, t=t, momentum=momentum, rho=rho,
            steps=state.steps + 1, average=average,
        )  # fmt: skip
        return state, found

    def _complete(self, point: Point) -> Array:
        """The gradient of a quadratic at a point, made with its coordinates where it is not known yet."""
        if point.gradient is None:
            point.gradient = self.f.gradient(point.x, point.lift)
        if point.slope is None and self.remembers:
            point.slope = self.metric.to_dual(point.gradient)
        return point.gradient

    def _linearise(self, state: Iterate) -> tuple[Iterate, Model]:
        """The extrapolated point; the last iterate, without momentum, where f is not finite beyond it."""
        if state.momentum > 0.0:
            found = self.oracles.try_out(partial(self._extrapolate, state))
            if found is not None:
                return state, found
            state = replace(state, t=1.0, momentum=0.0)
        return state, self._extrapolate(state)

    def _extrapolate(self, state: Iterate) -> Model:
        b, here, before = state.momentum, state.here, state.before
        if b == 0.0:
            v, C, lift, term_size = here.x, here.coordinates, here.lift, here.term_size
        elif self.f.plain:
            # Nothing is reused, so the point can be kept where f is sure to be defined.
            v = lift = self.oracles.problem.X.project(here.x + b * (here.x - before.x))
            C, term_size = self.metric.to_basis(v), 0.0
        else:
            v = here.x + b * (here.x - before.x)
            C = here.coordinates + b * (here.coordinates - before.coordinates)
            lift = here.lift + b * (here.lift - before.lift)
            term_size = (1.0 + b) * here.term_size + b * before.term_size
        slope = None
        if here.gradient is None or before.gradient is None:
            gradient = self.f.gradient(v, lift)
        elif b == 0.0:
            gradient, slope = here.gradient, here.slope
        else:
            # An affine one is the same combination of gradients at iterates.
            gradient = here.gradient + b * (here.gradient - before.gradient)
        value = self.f.value(v, lift)
        if not math.isfinite(value):
            raise self.oracles.not_finite("f", v)
        return Model(v, C, lift, term_size, gradient, slope, value)

    def _first_rho(self, state: Iterate, G: Array, beside: DualModel | None) -> float:
        """Ratio of the dual radius to the image of a first step, or what the curvatures say."""
        if beside is not None and float(np.mean(beside.curvature)) > 0.0:
            return 1.0 / float(np.mean(beside.curvature))
        problem = self.oracles.problem
        step = self.metric.from_basis(self.metric.solve(G, state.L, 0.0))
        image = length_of(self.oracles.forward(step))
        # A step that B does not see, as of agents that agree from the start, leaves rounding as its image.
        rounding = _UNSEEN * problem.coupling.norm.upper * length_of(step)
        radius = problem.Y.radius(state.y)
        if math.isfinite(radius) and radius > 0.0 and image > rounding:
            return radius / image
        modulus = problem.g.strong_convexity(problem.Y)
        if modulus > 0.0:
            return 1.0 / modulus
        balance = self.metric.balance
        return state.L * balance if math.isfinite(balance) else 1.0

    def _solve_inner(
        self, state: Iterate, v: Model, G: Array, slack: float, beside: DualModel | None
    ) -> tuple[Iterate, Point, Inside, bool]:
        """Inner loop and curvature test; repeated only when the test fails badly, which is the last that is said."""
        L, work, violations, failed, shortened = state.L, state.work, state.violations, False, 0
        origin = state.here.coordinates, state.y
        while True:
            hessian = Remembered(self.metric, L, state.memory)
            given = InnerProblem(G, v.coordinates, hessian, origin, origin, state.rho, beside)
            inside, work = self.inner.solve(given, work)
            if not self.oracles.finite(inside.x, inside.y):
                # Compiled loops do not say so themselves, and no oracle is to be blamed for the answer at such a point.
                raise RunEnded("NUMERICAL_LIMIT", "a step left the range of double precision")
            trial = partial(self._trial, inside.x, inside.X, v)
            found = self.oracles.try_out(trial) if shortened < MOST_SHORTENED else trial()
            if found is None:
                # f overflows there, and is finite where we stand: nearer.
                failed, shortened, L = True, shortened + 1, SHORTER * L
                continue
            new, excess = found[0], found[1] - slack
            D = inside.X - v.coordinates
            if self.remembers:
                square, bent, exact, memory = self._compare(state.memory, hessian, v, new, D)
            else:
                # What can not be told from rounding of the values says nothing about the curvature.
                bent = 2.0 * excess if excess > _NOISE * abs(v.value) else 0.0
                square, exact, memory = self.metric.norm_squared(D), 0.0, state.memory
            measured = bent / square if square > 0.0 else 0.0
            if measured <= L * (1.0 + 1e-9):
                if state.steps == 0 and not failed and 0.0 < measured < 0.1 * L:
                    # The first estimate was far too large: there is no need to creep down to the truth.
                    L = _MARGIN * measured
                elif self.remembers and not failed and square > _NEWS * self.metric.norm_squared(D):
                    L = max(_SHRINK_LEARNING * L, measured)
                break
            failed = True
            violations += 1
            if self.remembers and (state.steps > 0 or measured <= _UNITS * L):
                # What a quadratic has answered is remembered, so nothing is repeated but a first step in wrong units.
                new, L = self._part_of(state.here, new, (L * square + exact) / (bent + exact)), _MARGIN * measured
                inside = inside._replace(Bx=None)
                break
            if measured <= _SHORTEN * L and slack == 0.0 and not self.remembers:
                new, L = self._shorten(v, new, D, square, L, measured)
                # An extrapolated v may lie outside X, and so may a point between it and x.
                rounding = _NOISE * (1.0 + float(np.max(np.abs(new.x), initial=0.0)))
                if self.oracles.problem.X.contains(new.x, rounding):
                    inside = inside._replace(Bx=None)
                    break
                continue
            L = _MARGIN * min(measured, 1e3 * L)
            work = replace(work, normal=state.work.normal, sigma=state.work.sigma)
        return replace(state, L=L, work=work, violations=violations, memory=memory), new, inside, failed

    def _compare(
        self, memory: Memory, hessian: Remembered, v: Model, new: Point, D: Array
    ) -> tuple[float, float, float, Memory]:
        """Of a step on a quadratic: square and curvature of what is new, curvature of the rest, and what is learnt."""
        self._complete(new)
        assert new.slope is not None and v.slope is not None
        image = new.slope - v.slope
        (step, bent), whole = hessian.beyond(D, image), inner_product(D, image)
        rounding = _NOISE * length_of(v.slope) * length_of(D)
        if not whole > rounding:
            return 0.0, 0.0, 0.0, memory
        return (
            hessian.square_beyond(step),
            bent,
            whole - bent,
            memory.with_step(D, image, whole) if self.learns else memory,
        )

    def _trial(self, x: Array, X: Array, v: Model) -> tuple[Point, float]:
        """A new iterate with its lift, and by how much f exceeds its linear model there."""
        gradient = None
        if self.f.one_pass and self.f.affine_gradient:
            # One pass gives the gradient too, which will be wanted next.
            lift, gradient = self.f.lift_and_gradient(x)
        else:
            lift = self.f.lift(x)
        excess = self.f.bregman(x, lift, v.x, v.lift, v.gradient)
        if not math.isfinite(excess):
            raise self.oracles.not_finite("f", x)
        return Point(x, X, lift, gradient, None, length_of(x)), excess

    def _shorten(self, v: Model, new: Point, D: Array, square: float, L: float, measured: float) -> tuple[Point, float]:
        """Go only part of the way, where the test holds, and the next L: lifts along the segment cost nothing."""
        while True:
            part = L / measured
            x, lift = v.x + part * (new.x - v.x), v.lift + part * (new.lift - v.lift)
            if self.f.affine_gradient:
                break
            excess = self.f.bregman(x, lift, v.x, v.lift, v.gradient)
            if 2.0 * excess <= measured * part * part * square * (1.0 + 1e-9):
                break
            measured *= 1.2
        gradient = None if new.gradient is None else v.gradient + part * (new.gradient - v.gradient)
        term_size = (1.0 - part) * v.term_size + part * new.term_size
        return Point(x, v.coordinates + part * D, lift, gradient, None, term_size), _MARGIN * measured

    def _part_of(self, here: Point, new: Point, part: float) -> Point:
        """So much of the way from one iterate of a quadratic to the next."""
        self._complete(new)
        between: list[Any] = [
            (1.0 - part) * getattr(here, entry.name) + part * getattr(new, entry.name) for entry in fields(Point)
        ]
        return Point(*between)

    def _average(self, state: Iterate, v: Model, y: Array, errors: tuple[float, float]) -> tuple[float, Array, Array]:
        """Running average of the lower models of f and of y, with the weights of the accelerated scheme."""
        slope, value, X = v.gradient, v.value, self.oracles.problem.X
        steep = length_of(slope)
        lost = errors[0] + errors[1] * X.radius(v.x)
        # Of the averaged slope and constant, every step rounds once more.
        lost += (inner_error(v.x.size) + FEW) * (abs(value) + steep * (length_of(v.x) + X.radius_at_zero))
        constant = value - inner_product(slope, v.x) - lost
        weight = min(1.0, 1.0 / state.t)
        if state.average is None or weight == 1.0:
            return constant, slope, y
        (old_constant, old_slope, old_y), keep = state.average, 1.0 - weight
        return keep * old_constant + weight * constant, keep * old_slope + weight * slope, keep * old_y + weight * y

    def _balance(self, state: Iterate, new: Point, y: Array) -> float:
        """The next rho, sqrt(rho |dy| / |B dx|): the weight that makes both blocks travel equally far."""
        rho, dual = state.rho, length_of(y - state.y)
        primal = math.sqrt(self.metric.product_norm_squared(new.coordinates - state.here.coordinates))
        dual_moves = dual > _NOISE * length_of(y)
        primal_moves = primal > _NOISE * math.sqrt(self.metric.product_norm_squared(new.coordinates))
        if not (dual_moves or primal_moves):
            return rho
        # One step is weak evidence: move by a factor of ten at most. A block that rests leaves all room to the other.
        resting = math.inf if dual_moves else 0.0
        wanted = math.sqrt(rho * dual / primal) if dual_moves and primal_moves else resting
        rho = min(max(wanted, 0.1 * rho), 10.0 * rho)
        return min(max(rho, state.first_rho / _RHO_RANGE), state.first_rho * _RHO_RANGE)

    def _accelerate(self, state: Iterate, new: Point, C: Array, failed: bool) -> tuple[float, float, float]:
        """The next L, t and momentum, which restarts when the step points against the last one."""
        if self.remembers:
            # The model of a quadratic that is exact along the last steps is the same at every point that they span.
            return max(state.L, self.modulus), 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * state.t**2)), 0.0
        # Violated curvatures are known ones: the estimate falls more slowly after each, but never stands still.
        caution = min(max(state.violations - self.forgiven, 0), _MOST_CAUTION)
        next_L = max(state.L if failed else float(_SHRINK ** (1.0 / (1.0 + caution))) * state.L, self.modulus)
        travelled = new.coordinates - state.here.coordinates
        uphill = inner_product(self.metric.apply(C - new.coordinates), travelled) > 0.0
        if uphill and state.momentum > 0.0:
            return next_L, 1.0, 0.0
        ratio = min(self.modulus / next_L, 0.999)
        a = 1.0 - ratio * state.t**2
        grown = 4.0 * state.t**2 * next_L / state.L
        root = math.sqrt(a * a + grown)
        # The positive root, written so that it does not cancel to 0 where a is large and negative.
        t = 0.5 * (a + root) if a >= 0.0 else 0.5 * grown / (root - a)
        return next_L, t, max(0.0, (state.t - 1.0) / t * (1.0 - t * ratio) / (1.0 - ratio))
