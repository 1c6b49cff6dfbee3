"""Carrying an adaptive plan out: the method, the judge, the limits and the history of one run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.arrays.kinds import to_host
from saddleslide.certificates.candidate import Candidate, Split
from saddleslide.certificates.judge import Judge
from saddleslide.certificates.verdict import Certificate, Status
from saddleslide.errors import InputError, UnknownConstantError
from saddleslide.functions import Function, Zero, split_simple
from saddleslide.functions.at_hand import exponent, smoothness_at_hand
from saddleslide.kernels.switch import prepare
from saddleslide.methods.metric_choice import built_metric
from saddleslide.methods.sliding.adaptive import AdaptiveSliding, Settings
from saddleslide.methods.sliding.coupling_loop import CouplingLoop
from saddleslide.methods.sliding.inner import Inner, Linearised, Proximal, Slid
from saddleslide.methods.sliding.primal_dual import PrimalDual
from saddleslide.metrics import Blocks, Entrywise, Metric, Spectral, from_dict
from saddleslide.operators import Mirrored
from saddleslide.oracles.oracles import Calls, Oracles
from saddleslide.problem import SaddleProblem
from saddleslide.runs.control import EARLY, Control, Watch, where_in
from saddleslide.runs.result import Moment, Result
from saddleslide.theory.adaptive import METHODS, AdaptivePlan

# A restart pays when the gap has fallen by this factor since the last one (Applegate et al.: 0.2).
_SUFFICIENT = 0.2
# Steps without a better gap after which the inner work is doubled.
_PATIENCE = 12
# Over so many steps the gap must halve.
_STRIDE = 40
# Without a finite gap after this many steps there will be none.
_HOPELESS = 256
# So many times out of patience at a gap this small is the end of what rounding allows.
_MOST_STALLS, _TINY = 12, 1e-10
# Or a gap within this factor of what rounding takes of the bounds.
_SLACK = 8.0


def carry_out(
    problem: SaddleProblem, plan: AdaptivePlan, start: tuple[Any, Any] | None = None, control: Control | None = None
) -> Result:
    """Run an adaptive plan."""
    return AdaptiveRun(problem, plan, problem.start(start), control or Control()).carry_out()


@dataclass
class Pace:
    """How a run has been getting on: what decides when to work harder, to restart, or to give up."""

    best: float = math.inf
    waited: int = 0
    stalls: int = 0
    mark: int = 0
    marked: float = math.inf
    restart_gap: float = math.inf
    previous: float = math.inf


class AdaptiveRun:
    """One adaptive run: the method, the judge, the limits and the history. All of its state is in its attributes."""

    restored_first: ClassVar[tuple[str, ...]] = ("plan", "plans", "origin", "begun")

    def __init__(
        self, problem: SaddleProblem, plan: AdaptivePlan, origin: tuple[Array, Array], control: Control
    ) -> None:
        self.plan, self.control = plan, control
        self.problem = mirror(problem) if plan.mirrored else problem
        origin = problem.placed(origin)
        self.origin = (origin[1], origin[0]) if plan.mirrored else origin
        self.watch = Watch(control, self, self._calls, plan.mirrored)
        self.oracles = Oracles(self.problem, self.watch.gate, control.dry, guarded=True)
        # Where g is slid inside the steps on f: the oracles of that method, the roles of x and y exchanged.
        self.nested: Oracles | None = None
        self.split = _split(self.problem, plan)
        self.history: list[Moment] = []
        self.judge = Judge(
            self.problem, self.split, plan.tol, plan.rtol, self.origin, control.dry, self.watch.gate, self.watch.left
        )
        self.smooth = _is_smooth(self.split.f_rest, self.problem)
        self.slack_floor = 0.0 if self.smooth else self._slack_floor()
        self.plans = [plan]
        prepare(transforms=plan.metric not in ("blocks", "diagonal"))
        self.pace = Pace()
        self.begun = False
        self.method: AdaptiveSliding | PrimalDual | None = None

    def rebuild(self) -> None:
        """The method of the plan that was under way, before its state is restored."""
        if not self.begun:
            return
        self.split = _split(self.problem, self.plan)
        self.judge.resplit(self.split)
        self.method = self._first_method()

    def _slack_floor(self) -> float:
        """A relative target is 0 until the gap at the start is known to be positive; f itself gives its scale."""
        smoothness = smoothness_at_hand(self.split.f_rest, self.problem.X)
        if smoothness is None:
            return 0.0
        radius = self.problem.X.radius(self.origin[0])
        reach = radius if math.isfinite(radius) else 1.0
        return 1e-3 * max(self.plan.rtol, 1e-12) * smoothness.H * float(reach ** (1.0 + smoothness.nu))

    def carry_out(self) -> Result:
        """Run to the target or a limit, from where the run stands."""
        if not math.isfinite(self.problem.coupling.norm.upper):
            return self._result(Status.NON_FINITE)
        status = self.watch.carried_out(self._iterate, self._where)
        if not self.history and status in EARLY:
            self.control.judge_late(self.judge.judge_start)
        if status is Status.SOLVED:
            status = self.watch.carried_out(self._confirmed, self._where)
        met = self.judge.solved and status is not Status.INCONSISTENT
        return self._result(self.judge.certificate().claim if met else status)

    def _confirmed(self) -> Status:
        self.judge.confirm()
        return Status.SOLVED

    def _where(self) -> str:
        if self.nested is not None and self.nested.active:
            own = {"f": "g", "g": "f"}.get(self.nested.active, "B")
            earlier = getattr(self.oracles.calls, own)
            return where_in(
                self.plan, len(self.history), self.nested, mirrored=not self.plan.mirrored, earlier=earlier
            )  # fmt: skip
        return where_in(self.plan, len(self.history), self.oracles, self.judge.oracles, self.plan.mirrored)

    def _timed(self, work: Callable[[], Any]) -> Any:
        with self.control.clock.phase("method"):
            return work()

    def _judged(self, work: Callable[[], Any]) -> Any:
        with self.control.clock.phase("certificate"):
            return work()

    def _iterate(self) -> Status:
        if self.method is None:
            self._judged(self.judge.open)
            stop = self.watch.between_steps(0)
            if stop is not None:
                return stop
            self.judge.doubt(self.watch.test_adjoint(self.oracles))
            self.method = self._timed(self._first_method)
            self.begun = True
            if isinstance(self.method, PrimalDual):
                self._judged(lambda: self.judge.gap_at(Candidate(*self.origin, 0.0)))
                if self.judge.solved:
                    return Status.SOLVED
        while True:
            stop = self.watch.between_steps(len(self.history))
            if stop is not None:
                return stop
            status = self._adaptive_step() if isinstance(self.method, AdaptiveSliding) else self._primal_dual_step()
            if status is not None:
                return status

    def _first_method(self) -> AdaptiveSliding | PrimalDual:
        return self._primal_dual() if self.plan.method == METHODS[1] else self._method(self.plan, self.origin)

    def _adaptive_step(self) -> Status | None:
        method = self.method
        assert isinstance(method, AdaptiveSliding)
        if not self.smooth:
            # Nesterov (2015): a Hölder gradient passes the curvature test up to a part of the target.
            method.slack = 0.25 * max(self.judge.target, self.slack_floor) / method.t
        candidate = self._timed(method.advance)
        if not self.oracles.finite(candidate.x, candidate.y):
            # Oracles are asked first, so these numbers are our own.
            return Status.NUMERICAL_LIMIT
        if not math.isfinite(candidate.value):
            raise self.oracles.not_finite("f", candidate.x)
        if not isinstance(method.metric, Entrywise) and not self.problem.X.contains(candidate.x):
            self.method = self._in_blocks(method)
            return None
        self.judge.latest = (candidate.x, candidate.y)
        if len(self.history) >= _HOPELESS and not math.isfinite(self.judge.gap):
            return Status.NO_CERTIFICATE
        self.judge.allowance = self.oracles.calls
        solved = self._judged(lambda: self.judge.consider(candidate))
        if self._record():
            return Status.STOPPED
        if solved:
            return Status.SOLVED
        if self.judge.at_rounding:
            return Status.NUMERICAL_LIMIT
        return self._paced(method, candidate)

    def _paced(self, method: AdaptiveSliding, candidate: Candidate) -> Status | None:
        """More inner work where the gap creeps; a status when nothing helps any more."""
        pace = self.pace
        if self.judge.gap < 0.9 * pace.best:
            pace.best, pace.waited, pace.stalls = self.judge.gap, 0, 0
        else:
            pace.waited += 1
        if len(self.history) >= pace.mark + _STRIDE:
            # Creeping is not converging: the inner loop may be too short for the coupling.
            if self.judge.gap > 0.5 * pace.marked:
                method.inner.work_harder()
            pace.mark, pace.marked = len(self.history), self.judge.gap
        if pace.waited < _PATIENCE:
            return None
        method.inner.work_harder()
        pace.waited = 0
        pace.stalls += 1
        if self._settled(candidate):
            return Status.SOLVED
        least = max(_TINY * self.judge.magnitude, _SLACK * self.judge.margins)
        rounding = pace.stalls >= _MOST_STALLS and self.judge.gap <= least
        return Status.NUMERICAL_LIMIT if rounding else None

    def _settled(self, candidate: Candidate) -> bool:
        """No progress: perhaps only the cheap bounds lag. Spend as many gradients on judging as the method has."""
        left = int(self.oracles.calls.f - self.judge.oracles.calls.f)
        if left < _PATIENCE:
            return False
        return bool(self._judged(lambda: self.judge.settle(candidate, 0.1 * self.judge.target, left)))

    def _in_blocks(self, method: AdaptiveSliding) -> AdaptiveSliding:
        """The constraint became active: go on from the last point with a block metric."""
        self.plan = replace(
            self.plan,
            metric="blocks",
            given=None,
            curvature=first_curvature(self.problem),
            reasons=(*self.plan.reasons, f"revised: an iterate left X, so the {self.plan.metric} metric was given up"),
        )
        self.plans.append(self.plan)
        self.split = _split(self.problem, self.plan)
        self.judge.resplit(self.split)
        return self._method(self.plan, (self.problem.X.project(method.before.x), method.y))

    def _method(self, plan: AdaptivePlan, start: tuple[Array, Array]) -> AdaptiveSliding:
        metric = self._metric(plan, start[0])
        rest = self.split.f_rest
        modulus = rest.strong_convexity(self.problem.X) / metric.largest
        inner = self._inner(plan, metric, start)
        return AdaptiveSliding(self.oracles, metric, self.split, start, plan.curvature, modulus, inner)

    def _inner(self, plan: AdaptivePlan, metric: Metric, start: tuple[Array, Array]) -> Inner:
        """How g is treated inside a step: by its proximal step, slid in its turn, or linearised."""
        tolerance, rest = Settings().inner_tolerance, self.split.g_rest
        if plan.g_steps > 0 and isinstance(metric, Entrywise):
            method, coupling = self._seen_from_y(plan, (start[1], start[0]))
            return Slid(method, coupling, self.oracles, metric, plan.g_steps, Settings().nested_tolerance)
        loop = CouplingLoop(self.oracles, metric, self.split)
        if isinstance(rest, Zero):
            return Proximal(loop, plan.inner_steps, tolerance)
        return Linearised(
            loop, self.oracles, rest, start[1], plan.inner_steps, tolerance, Settings().model_tolerance
        )  # fmt: skip

    def _seen_from_y(self, plan: AdaptivePlan, start: tuple[Array, Array]) -> tuple[AdaptiveSliding, Proximal]:
        """The method with the roles of x and y exchanged, and its coupling loop."""
        seen = mirror(self.problem)
        split = Split(self.split.g_rest, self.split.g_simple, Zero(), self.split.f_simple)
        oracles = Oracles(seen, self._gate_from_y, self.oracles.dry, guarded=True)
        self.nested, metric = oracles, Blocks(1.0, seen.coupling.norm.upper)
        coupling = Proximal(CouplingLoop(oracles, metric, split), plan.steps_per_g, Settings().nested_tolerance)
        modulus = split.f_rest.strong_convexity(seen.X)
        # Many steps per step on f, all on the same g: what is known of its curvature lasts.
        rules = Settings(forgiven=0)
        method = AdaptiveSliding(
            oracles, metric, split, start, first_curvature(seen), modulus, coupling, settings=rules
        )  # fmt: skip
        return method, coupling

    def _gate_from_y(self, name: str, count: float) -> None:
        """The gate for calls made from y's side, under the names that they have on this side."""
        self.oracles.gate({"f": "g", "g": "f"}.get(name, name), count)

    def _metric(self, plan: AdaptivePlan, x: Array) -> Metric:
        """The metric of the plan: fitted on the host, used where x lies."""
        return self._built_metric(plan, to_host(x)).beside(x)

    def _built_metric(self, plan: AdaptivePlan, x: Array) -> Metric:
        if plan.given is not None:
            given = plan.given if isinstance(plan.given, Metric) else from_dict(plan.given)
            return given.attached(self.problem.coupling)
        if plan.metric == "blocks":
            return Blocks(1.0, self.problem.coupling.norm.upper)
        if self.oracles.dry and plan.metric != "diagonal":
            # The fitted symbol is restored.
            basis = "fft" if plan.metric == "fft" else "dct"
            return Spectral(np.ones(x.shape), basis=basis).attached(self.problem.coupling)
        return built_metric(plan.metric, self.oracles, self.split.f_rest, x, plan.seed)

    def _primal_dual(self) -> PrimalDual:
        radii = self.problem.X.radius(self.origin[0]), self.problem.Y.radius(self.origin[1])
        usable = all(math.isfinite(radius) and radius > 0.0 for radius in radii)
        norm = self.problem.coupling.norm.upper
        return PrimalDual(self.oracles, self.origin, norm, radii[1] / radii[0] if usable else 1.0)

    def _primal_dual_step(self) -> Status | None:
        method, pace = self.method, self.pace
        assert isinstance(method, PrimalDual)
        candidates = self._timed(method.advance)
        if not all(self.oracles.finite(c.x, c.y) for c in candidates):
            return Status.NUMERICAL_LIMIT
        self.judge.latest = (candidates[0].x, candidates[0].y)
        gaps = self._judged(lambda: [self.judge.gap_at(candidate) for candidate in candidates])
        if len(self.history) >= _HOPELESS and not math.isfinite(self.judge.gap):
            return Status.NO_CERTIFICATE
        if self._record():
            return Status.STOPPED
        if self.judge.solved:
            return Status.SOLVED
        if self.judge.at_rounding:
            return Status.NUMERICAL_LIMIT
        best = min(gaps)
        chosen = candidates[gaps.index(best)]
        stalled = pace.previous < best < 0.8 * pace.restart_gap
        long = method.length >= 0.36 * method.chunk * len(self.history)
        if best <= _SUFFICIENT * pace.restart_gap or stalled or long:
            method.restart((chosen.x, chosen.y))
            pace.restart_gap, pace.previous = best, math.inf
        else:
            pace.previous = best
        method.chunk = min(1024, max(16, len(self.history)))
        return None

    def _calls(self) -> Calls:
        total = self.oracles.calls + self.judge.oracles.calls
        if self.nested is not None:
            # What has not been handed over yet.
            total += Calls(self.nested.calls.g, self.nested.calls.f, self.nested.calls.B)
        return (Calls(total.g, total.f, total.B) if self.plan.mirrored else total) + self.control.spent_before

    def _record(self) -> bool:
        """Add a row to the history and call the callback; True when it asks to stop."""
        self.history.append(Moment(len(self.history) + 1, self._calls(), self.control.clock.elapsed, self.judge.gap))
        return self.watch.stops(lambda: self._result(Status.RUNNING))

    def _result(self, status: Status) -> Result:
        seen = self.judge.certificate()
        x, y = self.judge.point
        if status is Status.INCONSISTENT:
            seen = Certificate(reason=self.watch.reason, calls=seen.calls)
        if self.plan.mirrored:
            x, y = y, x
            calls = Calls(seen.calls.g, seen.calls.f, seen.calls.B)
            seen = Certificate(
                -seen.upper,
                -seen.lower,
                seen.kind,
                seen.error,
                seen.reason,
                calls,
                mirror(self.problem).assumptions * bool(seen.assumes),
            )
        return Result(
            np.array(x),
            np.array(y),
            status,
            seen,
            self._calls(),
            self.control.clock.elapsed,
            tuple(self.plans),
            tuple(self.history),
            self.judge.target,
            timings=self.control.clock.timings,
            time_limit=self.control.time_limit,
            detail=self.watch.reason if status is Status.NON_FINITE else "",
        )


def _is_smooth(f: Function, problem: SaddleProblem) -> bool:
    try:
        return exponent(f, problem.X) == 1.0
    except UnknownConstantError:
        # It may have kinks, and slack does little harm where it has none.
        return False
    except InputError:
        return True


def _split(problem: SaddleProblem, plan: AdaptivePlan) -> Split:
    given = plan.given if plan.given is None or isinstance(plan.given, Metric) else from_dict(plan.given)
    if plan.metric in ("spectral", "fft") or not (given is None or isinstance(given, Entrywise)):
        return Split(problem.f, Zero(), *split_simple(problem.g, problem.Y))
    return Split(*split_simple(problem.f, problem.X), *split_simple(problem.g, problem.Y))


def mirror(problem: SaddleProblem) -> SaddleProblem:
    """The same problem with the roles of x and y exchanged.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> box, zero = ss.domains.Box(-1.0, 1.0, shape=2), ss.functions.Zero()
    >>> mirror(ss.SaddleProblem(f=zero, g=ss.functions.Huber(1.0), B=np.eye(2), X=box, Y=box)).f
    Huber(1)
    """
    return SaddleProblem(
        f=problem.g, g=problem.f, B=Mirrored(problem.coupling), X=problem.Y, Y=problem.X, arrays=problem.arrays
    )


def first_curvature(problem: SaddleProblem) -> float:
    """A first estimate of the curvature of f; backtracking corrects it either way."""
    rest, _ = split_simple(problem.f, problem.X)
    smoothness = smoothness_at_hand(rest, problem.X)
    if smoothness is None:
        return 1.0
    if smoothness.nu == 1.0 and smoothness.H > 0.0:
        return smoothness.H
    return max(smoothness.H, 1e-12)
