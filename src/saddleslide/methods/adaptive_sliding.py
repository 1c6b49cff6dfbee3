"""Adaptive sliding as `solve` runs it: the iteration with its metric, its inner work and its pace.

`sliding/adaptive.py` has the iteration itself. Here stands what it is built from, and what a run teaches it: to work
harder inside where the gap creeps, to give up a metric that leads out of X, to end where nothing helps any more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.arrays.kinds import to_host
from saddleslide.certificates.candidate import Candidate, Split
from saddleslide.certificates.judge import Judge
from saddleslide.certificates.verdict import Status
from saddleslide.errors import InputError, UnknownConstantError
from saddleslide.functions import Function, Zero, split_simple
from saddleslide.functions.at_hand import exponent, smoothness_at_hand
from saddleslide.kernels.switch import prepare
from saddleslide.methods.base import BOUNDS, Description, Method, Revision
from saddleslide.methods.metric_choice import built_metric
from saddleslide.methods.sliding.adaptive import AdaptiveSliding, Settings
from saddleslide.methods.sliding.coupling_loop import CouplingLoop
from saddleslide.methods.sliding.inner import Inner, Linearised, Proximal, Slid
from saddleslide.metrics import Blocks, Entrywise, Metric, Spectral, from_dict
from saddleslide.oracles.oracles import Oracles
from saddleslide.problem import SaddleProblem
from saddleslide.theory.plan import Plan as AdaptivePlan

# Steps without a better gap after which the inner work is doubled.
_PATIENCE = 12
# Over so many steps the gap must halve.
_STRIDE = 40
# So many times out of patience at a gap this small is the end of what rounding allows.
_MOST_STALLS, _TINY = 12, 1e-10
# Or a gap within this factor of what rounding takes of the bounds.
_SLACK = 8.0


@dataclass
class Pace:
    """How a run has been getting on: what decides when to work harder, and when to give up."""

    steps: int = 0
    best: float = math.inf
    waited: int = 0
    stalls: int = 0
    mark: int = 0
    marked: float = math.inf


@final
class Adaptive(Method):
    """The method of an adaptive plan.

    Parameters
    ----------
    plan : AdaptivePlan
        Metric, first curvature and inner work.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> from saddleslide.oracles.oracles import Oracles
    >>> f, box = ss.functions.LeastSquares(np.eye(2), [1.0, -1.0]), ss.domains.Box(-1.0, 1.0, shape=2)
    >>> problem = ss.SaddleProblem(f=f, g=ss.functions.Zero(), B=np.eye(2), X=box, Y=box)
    >>> method = Adaptive(AdaptivePlan("adaptive sliding", "blocks", False, 8, 1.0, tol=1e-3, rtol=0.0))
    >>> method.start(Oracles(problem), problem.start(), tol=1e-3)
    >>> for _ in range(20):
    ...     revision = method.advance()
    >>> bool(abs(method.output()[0]).max() < 1e-3)
    True
    """

    description = Description(
        name="adaptive sliding",
        needs=(),
        guarantee="None in advance: the certificate is the proof.",
        reference="Algorithm 1 with two or three levels, in practice (docs/solve.md)",
    )
    judged = BOUNDS

    def __init__(self, plan: AdaptivePlan) -> None:
        super().__init__()
        self.plan = plan
        prepare(transforms=plan.metric not in ("blocks", "diagonal"))

    def split(self, problem: SaddleProblem) -> Split:
        """A spectral metric leaves f whole."""
        f = split_simple(problem.f, problem.X) if _keeps_simple_terms(self.plan) else (problem.f, Zero())
        return Split(*f, *split_simple(problem.g, problem.Y))

    def start(self, oracles: Oracles, origin: tuple[Array, Array], tol: float) -> None:
        self.oracles, self.target, self.pace = oracles, tol, Pace()
        rest, problem = self.split(oracles.problem).f_rest, oracles.problem
        self.smooth = _is_smooth(rest, problem)
        self.slack_floor = 0.0 if self.smooth else self._slack_floor(rest, problem.X.radius(origin[0]))
        self.iteration = self._iteration(origin)
        self.found = Candidate(*origin, math.nan)

    def _slack_floor(self, rest: Function, radius: float) -> float:
        """A relative target is 0 until the gap at the start is known to be positive; f itself gives its scale."""
        smoothness = smoothness_at_hand(rest, self.oracles.problem.X)
        if smoothness is None:
            return 0.0
        reach = radius if math.isfinite(radius) else 1.0
        return 1e-3 * max(self.plan.rtol, 1e-12) * smoothness.H * float(reach ** (1.0 + smoothness.nu))

    def advance(self) -> Revision | None:
        iteration = self.iteration
        if not self.smooth:
            # Nesterov (2015): a Hölder gradient passes the curvature test up to a part of the target.
            iteration.slack = 0.25 * max(self.target, self.slack_floor) / iteration.t
        found = iteration.advance()
        if self.oracles.finite(found.x, found.y):
            if not math.isfinite(found.value):
                raise self.oracles.not_finite("f", found.x)
            if not isinstance(iteration.metric, Entrywise) and not self.oracles.problem.X.contains(found.x):
                return self._in_blocks()
        self.found = found
        return None

    def _in_blocks(self) -> Revision:
        """The constraint became active: go on from the last point with a block metric, at the same pace."""
        problem, last = self.oracles.problem, self.iteration
        self.plan = replace(
            self.plan,
            metric="blocks",
            given=None,
            curvature=first_curvature(problem),
            reasons=(*self.plan.reasons, f"revised: an iterate left X, so the {self.plan.metric} metric was given up"),
        )
        self.iteration = self._iteration((problem.X.project(last.before.x), last.y))
        return Revision(self.plan, self)

    def output(self) -> tuple[Array, Array]:
        return self.found.x, self.found.y

    def candidates(self) -> tuple[Candidate, ...]:
        return (self.found,)

    def learn(self, gaps: Sequence[float], judge: Judge) -> Status | None:
        """More inner work where the gap creeps; a status when nothing helps any more."""
        self.target = judge.target
        pace, gap = self.pace, judge.gap
        pace.steps += 1
        if gap < 0.9 * pace.best:
            pace.best, pace.waited, pace.stalls = gap, 0, 0
        else:
            pace.waited += 1
        if pace.steps >= pace.mark + _STRIDE:
            # Creeping is not converging: the inner loop may be too short for the coupling.
            if gap > 0.5 * pace.marked:
                self.iteration.inner.work_harder()
            pace.mark, pace.marked = pace.steps, gap
        if pace.waited < _PATIENCE:
            return None
        self.iteration.inner.work_harder()
        pace.waited = 0
        pace.stalls += 1
        if self._settled(judge):
            return Status.SOLVED
        least = max(_TINY * judge.magnitude, _SLACK * judge.margins)
        return Status.NUMERICAL_LIMIT if pace.stalls >= _MOST_STALLS and judge.gap <= least else None

    def _settled(self, judge: Judge) -> bool:
        """No progress: perhaps only the cheap bounds lag. Spend as many gradients on judging as the method has."""
        left = int(self.oracles.calls.f - judge.oracles.calls.f)
        found = left >= _PATIENCE and judge.settle(self.found, 0.1 * judge.target, left)
        self.target = judge.target
        return found

    def _iteration(self, start: tuple[Array, Array]) -> AdaptiveSliding:
        """The iteration of the present plan."""
        split, metric = self.split(self.oracles.problem), self._metric(start[0])
        modulus = split.f_rest.strong_convexity(self.oracles.problem.X) / metric.largest
        inner = self._inner(split, metric, start)
        return AdaptiveSliding(self.oracles, metric, split, start, self.plan.curvature, modulus, inner)

    def _inner(self, split: Split, metric: Metric, start: tuple[Array, Array]) -> Inner:
        """How g is treated inside a step: by its proximal step, slid in its turn, or linearised."""
        plan, rules, oracles = self.plan, Settings(), self.oracles
        if plan.g_steps > 0 and isinstance(metric, Entrywise):
            iteration, coupling = self._seen_from_y(split, (start[1], start[0]))
            return Slid(iteration, coupling, oracles, metric, plan.g_steps, rules.nested_tolerance)
        loop = CouplingLoop(oracles, metric, split)
        if isinstance(split.g_rest, Zero):
            return Proximal(loop, plan.inner_steps, rules.inner_tolerance)
        return Linearised(
            loop, oracles, split.g_rest, start[1], plan.inner_steps, rules.inner_tolerance, rules.model_tolerance
        )  # fmt: skip

    def _seen_from_y(self, split: Split, start: tuple[Array, Array]) -> tuple[AdaptiveSliding, Proximal]:
        """The iteration with the roles of x and y exchanged, and its coupling loop."""
        seen = self.oracles.problem.mirrored()
        split = Split(split.g_rest, split.g_simple, Zero(), split.f_simple)
        oracles = Oracles(seen, self._gate_from_y, self.oracles.dry, guarded=True)
        self.inside, metric = oracles, Blocks(1.0, seen.coupling.norm.upper)
        # Many steps per step on f, all on the same g: what is known of its curvature lasts.
        rules = Settings(forgiven=0)
        coupling = Proximal(CouplingLoop(oracles, metric, split), self.plan.steps_per_g, rules.nested_tolerance)
        modulus = split.f_rest.strong_convexity(seen.X)
        iteration = AdaptiveSliding(
            oracles, metric, split, start, first_curvature(seen), modulus, coupling, settings=rules
        )  # fmt: skip
        return iteration, coupling

    def _gate_from_y(self, name: str, count: float) -> None:
        """The gate for calls made from y's side, under the names that they have on this side."""
        self.oracles.gate({"f": "g", "g": "f"}.get(name, name), count)

    def _metric(self, x: Array) -> Metric:
        """The metric of the plan: fitted on the host, used where x lies."""
        return self._built_metric(to_host(x)).beside(x)

    def _built_metric(self, x: Array) -> Metric:
        plan, oracles = self.plan, self.oracles
        coupling = oracles.problem.coupling
        given = _given_metric(plan)
        if given is not None:
            return given.attached(coupling)
        if plan.metric == "blocks":
            return Blocks(1.0, coupling.norm.upper)
        if oracles.dry and plan.metric != "diagonal":
            # The fitted symbol is restored.
            basis = "fft" if plan.metric == "fft" else "dct"
            return Spectral(np.ones(x.shape), basis=basis).attached(coupling)
        return built_metric(plan.metric, oracles, self.split(oracles.problem).f_rest, x, plan.seed)


def _given_metric(plan: AdaptivePlan) -> Metric | None:
    """The metric that the caller gave, which a plan from a file has as data."""
    return plan.given if plan.given is None or isinstance(plan.given, Metric) else from_dict(plan.given)


def _keeps_simple_terms(plan: AdaptivePlan) -> bool:
    """Whether proximal steps of f stay simple in the metric of the plan."""
    given = _given_metric(plan)
    return plan.metric not in ("spectral", "fft") and (given is None or isinstance(given, Entrywise))


def _is_smooth(f: Function, problem: SaddleProblem) -> bool:
    try:
        return exponent(f, problem.X) == 1.0
    except UnknownConstantError:
        # It may have kinks, and slack does little harm where it has none.
        return False
    except InputError:
        return True


def first_curvature(problem: SaddleProblem) -> float:
    """A first estimate of the curvature of f; backtracking corrects it either way.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f, box = ss.functions.LeastSquares(2.0 * np.eye(2), [1.0, 1.0]), ss.domains.Box(-1.0, 1.0, shape=2)
    >>> round(first_curvature(ss.SaddleProblem(f=f, g=ss.functions.Zero(), B=np.eye(2), X=box, Y=box)), 3)
    4.0
    """
    rest, _ = split_simple(problem.f, problem.X)
    smoothness = smoothness_at_hand(rest, problem.X)
    if smoothness is None:
        return 1.0
    if smoothness.nu == 1.0 and smoothness.H > 0.0:
        return smoothness.H
    return max(smoothness.H, 1e-12)
