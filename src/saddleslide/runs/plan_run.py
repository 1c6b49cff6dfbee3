"""One run of a theorem's plan: its stages, what they spend, and what their result is worth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from saddleslide.arrays.base import Array, key_of, split
from saddleslide.arrays.kinds import to_host
from saddleslide.certificates.certificate import certified, feasible, judged
from saddleslide.certificates.guards import PairGuard, check_adjoint_of
from saddleslide.certificates.verdict import Certificate, Status
from saddleslide.errors import InputError, UnknownConstantError, UnreachableError
from saddleslide.facts.metric_constants import noise_in
from saddleslide.functions import LowerModel
from saddleslide.functions.remembered import Remembered
from saddleslide.methods.schedule.regimes import regularised_problem
from saddleslide.methods.schedule.settings import Setting
from saddleslide.methods.sliding import Recursion, bilinear_recursion, carried_models
from saddleslide.methods.sliding.bilinear import taken_anchors
from saddleslide.methods.sliding.innermost import Anchors
from saddleslide.methods.sliding.view import View, view_of
from saddleslide.metrics import Metric, from_dict
from saddleslide.oracles.oracles import Calls, Oracles
from saddleslide.oracles.sampling import Samples, drawn_problem
from saddleslide.problem import SaddleProblem
from saddleslide.runs.control import EARLY, Control, Watch, where_in
from saddleslide.runs.result import Moment, Result
from saddleslide.theory import Constant, Level
from saddleslide.theory.hypotheses import all_hold
from saddleslide.theory.noise import rests_on_estimate
from saddleslide.theory.restart_plan import RestartPlan
from saddleslide.theory.restarts import Stage
from saddleslide.theory.sliding_plan import PRIMAL_DUAL, Schedule, SlidingPlan

# A certificate may always take this many gradients; beyond, no more than the plan itself.
_FEWEST_GRADIENTS = 25
# A practical stage that leaves more than this part of the gap was too short: budgets double, at most so often.
_TOO_LITTLE, _MOST_RAISES = 0.9, 4
# What may end a run in the middle of a stage.
_UNJUDGED = (*EARLY, Status.INTERRUPTED, Status.NON_FINITE, Status.NUMERICAL_LIMIT)


class PlanRun:
    """One run of a theorem's plan: oracles, recursion, clock and history. All of its state is in its attributes."""

    restored_first: ClassVar[tuple[str, ...]] = ("plans", "plan", "done", "step", "stage_start", "anchors")

    def __init__(
        self,
        problem: SaddleProblem,
        plan: Schedule,
        start: tuple[Any, Any] | None,
        control: Control,
        rng: np.random.Generator,
    ) -> None:
        self.problem, self.control, self.rng = problem, control, rng
        origin = problem.start(start)
        self.plan = plan = _fitted(plan, problem, origin)
        extra = plan.regularisation if isinstance(plan, RestartPlan) else None
        self.promises = _promises(plan, problem, origin)
        self.samples = Samples()
        self.view = _view(problem, plan)
        self.watch = Watch(control, self, self._spent)
        seen = drawn_problem(self.view.problem, rng, self.samples)
        whole = seen if extra is None else regularised_problem(seen, extra, origin)
        self.oracles = Oracles(whole, self.watch.gate, control.dry, guarded=True)
        self.origin = problem.placed(origin)
        self.last_finite = np.concatenate([part.ravel() for part in self.origin])
        self.plans: list[Schedule] = [plan]
        self.raises = 0
        self.history: list[Moment] = []
        self.judged = Certificate(reason="not judged yet")
        self.judged_point: tuple[Array, Array] | None = None
        self.models: dict[str, LowerModel] = {}
        # Stages done, and where the present one stands.
        self.done = self.step = 0
        self.stage_start: tuple[Array, Array] | None = None
        self.anchors: Anchors | None = None
        self.recursion: Recursion | None = None

    def rebuild(self) -> None:
        """The recursion of the stage under way, before its state is restored."""
        if self.stage_start is not None:
            stage, sizes = self.plan.runs[self.done], (self.problem.X.size, self.problem.Y.size)
            assert self.anchors is not None
            # Compiled loops read as many entries as the blocks have.
            if tuple(part.size for part in (*self.stage_start, self.anchors.at_f, self.anchors.at_g)) != 2 * sizes:
                raise ValueError(f"a stage begins at arrays of other sizes than {sizes}")
            self.recursion = bilinear_recursion(self.oracles, stage, self.stage_start, self.view, self.anchors)

    def check_restored(self) -> None:
        """Models that a stage carries along must be of the block of the function that their level is about."""
        shapes = {"f": self.problem.X.shape, "g": self.problem.Y.shape}
        for rung in () if self.recursion is None else self.recursion.rungs:
            for i, (_, slope) in rung.models.items():
                if slope.shape != shapes[self.plan.runs[self.done].levels[i].term.name]:
                    raise ValueError(f"a model of level {i} has the shape {slope.shape}")

    def carry_out(self) -> Result:
        """All stages, or fewer when a certificate meets the target between two of them."""
        status = self.watch.carried_out(self._work, self._where)
        if self._solved() or (status is Status.COMPLETED and self.plan.tol is None):
            status = self.watch.carried_out(lambda: self._confirmed(status), self._where)
        if status in _UNJUDGED:
            # Cut short in the middle of a stage: the point is judged as at any other end.
            status = self.watch.carried_out(lambda: self._judged_as(status), self._where)
        if status in _UNJUDGED:
            self._take_up()
        if status is Status.UNREACHABLE:
            self._go_back()
        if status is Status.INCONSISTENT:
            self.judged = Certificate(reason=self.watch.reason, calls=self.judged.calls)
        return self.result(self.judged.claim if self._solved() else status)

    def _confirmed(self, status: Status) -> Status:
        """Own code that the plan has hardly called is probed before a success is claimed; part of judging."""
        problem, oracles = self.problem, Oracles(self.problem, errors=self.watch.errors)
        self.watch.judging = oracles
        sides = ("f", problem.f, problem.X), ("g", problem.g, problem.Y)
        try:
            for (name, function, domain), point, began in zip(sides, self.point(), self.origin, strict=True):
                # The recursion has compared its own calls, which were all at one point where it never left the start.
                guard = PairGuard(name, function, domain)
                guard.seen = 0 if np.array_equal(point, began) else int(getattr(self.oracles.calls, name))
                guard.probe(oracles, point, math.inf)
        finally:
            self.judged = replace(self.judged, calls=self.judged.calls + oracles.calls)
        return status

    def _go_back(self) -> None:
        """Oracles are out of reach: back to the last point that was judged, or can be from what was heard of f."""
        if self.judged_point is None:
            try:
                self._judge_from_memory()
            except (UnreachableError, UnknownConstantError):
                # g or B is out of reach as well, or a constant of f was never asked.
                return
        self._return_to_judged()

    def _take_up(self) -> None:
        """Cut short in its first outermost step: what no bound judges is taken from the levels below."""
        judged = math.isfinite(self.judged.upper), math.isfinite(self.judged.lower)
        if self.recursion is None or self.history or all(judged):
            return
        start, sides = self.point(), (self.problem.X, self.problem.Y)
        for rung in self.recursion.rungs[1:]:
            found = split(rung.average, [domain.shape for domain in sides])
            moved = any(not np.array_equal(new, old) for new, old in zip(found, start, strict=True))
            inside = all(domain.contains(part, 1e-9) for domain, part in zip(sides, found, strict=True))
            if moved and inside:
                parts = [old if known else new for old, new, known in zip(start, found, judged, strict=True)]
                self.last_finite = np.concatenate([part.ravel() for part in parts])
                return

    def _return_to_judged(self) -> None:
        """Back to the point that was judged last; a block that no bound speaks of stays where it is."""
        if self.judged_point is None:
            return
        known = math.isfinite(self.judged.upper), math.isfinite(self.judged.lower)
        parts = [old if kept else new for old, new, kept in zip(self.judged_point, self.point(), known, strict=True)]
        self.last_finite = np.concatenate([part.ravel() for part in parts])

    def _judge_from_memory(self) -> None:
        """Judge the last point where f was called: its value is known, and the lower model of all calls so far."""
        if self.recursion is not None:
            self._keep_models(self.recursion, self.plan.runs[self.done])
        heard = self.oracles.heard
        if heard.point is None or "f" not in self.models or self.plan.sampled:
            return
        remembered = Remembered(self.problem.f, heard, self.problem.X)
        point = self.problem.X.project(heard.point), self.point()[1]
        rest = replace(self.problem, f=remembered, B=self.problem.coupling)
        found = judged(rest, *point, models=self.models)
        if found.kind != "none":
            self.judged, self.judged_point = found, point

    def _where(self) -> str:
        return where_in(self.plan, len(self.history), self.oracles, self.watch.judging)

    def _spent(self) -> Calls:
        return self.oracles.calls + self.control.spent_before

    def _work(self) -> Status:
        if self.control.check_adjoint and not self.history:
            check_adjoint_of(self.oracles)
        while self.done < len(self.plan.runs):
            outcome = self._carry_out_stage(self.plan.runs[self.done])
            if outcome in _UNJUDGED:
                return outcome
            self.done += 1
            before = self.judged.gap
            self._judge()
            if self._solved():
                return Status.SOLVED
            if outcome is not None:
                return outcome
            self._raise_budgets(self.done, before)
        if self.done == 0:
            self._judge()
        if self.judged.kind != "none":
            return Status.COMPLETED
        promised = self.plan.tol is not None and self._expected_gap() <= self.plan.tol
        return Status.EXPECTED if promised else Status.NO_CERTIFICATE

    def _raise_budgets(self, done: int, before: float) -> None:
        """Longer stages from here on, when the certificate says that a practical stage gained too little."""
        if not isinstance(self.plan, RestartPlan) or self.plan.fixed or done >= len(self.plan.stages):
            return
        if math.isfinite(before) and self.judged.gap > _TOO_LITTLE * before and self.raises < _MOST_RAISES:
            self.raises += 1
            self.plan = self.plan.raised(done)
            self.plans.append(self.plan)

    def _judge(self) -> None:
        """Judge the last point; what that costs adds up over the stages."""
        spent = self.judged.calls
        own = self.oracles.calls
        # Judging may not cost more gradients than the plan itself.
        self._certify(self.models, int(max(own.f - spent.f, own.g - spent.g, _FEWEST_GRADIENTS)))

    def _certify(self, models: Mapping[str, LowerModel], most: int) -> None:
        """A certificate of the last point; its calls are counted also where it is cut short."""
        before, aside = self.judged, self.control.books.take()
        # What overflows here is no bound, and says nothing about the run; own code keeps its settings.
        settings = {**self.watch.errors, "over": "ignore", "invalid": "ignore"}
        with np.errstate(**settings):
            oracles = self.watch.judging = Oracles(self.problem, errors=self.watch.errors)
        try:
            with np.errstate(**settings), self.control.clock.phase("certificate"):
                self.judged = certified(oracles, *feasible(self.problem, *self.point()), models, 0.0, most)
            self.judged_point = self.point()
        finally:
            # Norms that judging asked for are its own.
            spent = oracles.calls + self.control.books.take()
            self.judged = replace(self.judged, calls=before.calls + spent)
            self.control.books.calls = aside

    def _judged_as(self, status: Status) -> Status:
        if status in (Status.INTERRUPTED, Status.TIME_LIMIT):
            self.control.books.extend()
            self._judge_at_once()
        else:
            self._judge()
        return status

    def _judge_at_once(self) -> None:
        """After Ctrl-C, or late: back to the point that was judged last, or a certificate without a search."""
        if self.judged_point is not None:
            self._return_to_judged()
            return
        # Models of a step that was cut short may be half written, so they are left out.
        self._certify({}, 1)

    def _solved(self) -> bool:
        return self.plan.tol is not None and self.judged.gap <= self.plan.tol

    def _carry_out_stage(self, stage: Stage) -> Status | None:
        """Run all outermost steps of a stage; a status when the run must end here."""
        if self.recursion is None:
            stop = self.watch.between_steps(len(self.history))
            if stop is not None:
                return stop
            self.anchors = taken_anchors(self.oracles, stage, self.point())
            self.recursion = bilinear_recursion(self.oracles, stage, self.point(), self.view, self.anchors)
            self.step, self.stage_start = 0, self.point()
        recursion = self.recursion
        while self.step < stage.levels[0].T:
            status = self.watch.between_steps(len(self.history)) or self._outermost_step(recursion)
            if status is not None:
                return status
        self._keep_models(recursion, stage)
        self.recursion, self.stage_start = None, None
        return None

    def _outermost_step(self, recursion: Recursion) -> Status | None:
        with self.control.clock.phase("method"):
            average = recursion.step(self.step)
        self.step += 1
        if not np.isfinite(average).all():
            # Oracles are asked first, so these numbers are our own.
            return Status.NUMERICAL_LIMIT
        np.copyto(self.last_finite, average)
        spent = self.oracles.calls.copy(), self.control.clock.elapsed
        self.history.append(Moment(len(self.history) + 1, *spent, samples=self.samples.copy()))
        return Status.STOPPED if self.watch.stops(lambda: self.result(Status.RUNNING)) else None

    def _keep_models(self, recursion: Recursion, stage: Stage) -> None:
        """Lower models of f and g at the end of a stage; those of a regularised function are not f's or g's own."""
        extra = self.plan.regularisation if isinstance(self.plan, RestartPlan) else None
        changed = {"x": "f", "y": "g"}[extra.block] if extra is not None else ""
        found = carried_models(recursion, stage, self.problem)
        self.models = {name: model for name, model in found.items() if name != changed}

    def _expected_gap(self) -> float:
        """What the plan proves on average over all draws; NaN where nothing is drawn."""
        if not self.plan.sampled:
            return math.nan
        return self.plan.bound if self.promises else math.inf

    def point(self) -> tuple[Array, Array]:
        x, y = split(self.last_finite, [self.problem.X.shape, self.problem.Y.shape])
        return x.copy(), y.copy()

    def result(self, status: Status) -> Result:
        x, y = map(to_host, self.point())
        return Result(
            x,
            y,
            status,
            self.judged,
            self._spent(),
            self.control.clock.elapsed,
            tuple(self.plans),
            tuple(self.history),
            samples=self.samples.copy(),
            expected_gap=self._expected_gap(),
            floor=self.plan.constants["floor"].value if "floor" in self.plan.constants else 0.0,
            timings=self.control.clock.timings,
            time_limit=self.control.time_limit,
            spared=self.oracles.spared,
            detail=self.watch.reason if status is Status.NON_FINITE else "",
        )


def _metric(plan: Schedule, problem: SaddleProblem) -> Metric | None:
    if plan.given is None or isinstance(plan.given, Metric):
        return plan.given
    return from_dict(plan.given).attached(problem.coupling)


def _view(problem: SaddleProblem, plan: Schedule) -> View:
    """What the recursion of a plan sees of the problem."""
    return view_of(problem, plan.simple, _metric(plan, problem), plan.coupling_step == PRIMAL_DUAL)


def _fitted(plan: Schedule, problem: SaddleProblem, origin: tuple[Array, Array]) -> Schedule:
    """The plan for this problem and start: refused if made for another problem, its Omegas those of this start."""
    shapes = (problem.X.shape, problem.Y.shape)
    if plan.shapes is not None and plan.shapes != shapes:
        raise InputError(
            f"run: the plan was made for x, y of shapes {plan.shapes}; expected {shapes}. Plan this problem anew."
        )
    levels = plan.runs[0].levels if plan.runs else ()
    if levels and not any(level.term.M > 0.0 for level in levels) and problem.coupling.norm.upper > 0.0:
        raise InputError("run: the plan was made for B = 0; expected a plan with a coupling. Plan this problem anew.")
    if isinstance(plan, RestartPlan):
        if plan.given is not None and any(stage.beta_x > 0.0 or stage.beta_y > 0.0 for stage in plan.stages):
            raise InputError("run: the plan has anchors and a metric; expected one of them. Plan with anchors=False.")
        # Psi at the plan's start says nothing about another one.
        elsewhere = plan.start_key not in ("", key_of(*origin))
        return replace(plan, proof_constants=False) if elsewhere and plan.proof_constants else plan
    assert isinstance(plan, SlidingPlan)
    squares = Setting(problem, plan.simple, _metric(plan, problem), origin, {}).squares
    return replace(plan, levels=tuple(_measured_from(level, squares) for level in plan.levels))


def _promises(plan: Schedule, problem: SaddleProblem, origin: tuple[Array, Array]) -> bool:
    """Whether what the plan proves on average is about this run: no estimate, the plan's start, no more noise."""
    if not plan.sampled or rests_on_estimate(plan.constants) or not all_hold(plan.hypotheses):
        return False
    if isinstance(plan, RestartPlan) and plan.start_key not in ("", key_of(*origin)):
        return False
    noise = {
        sigma2: Constant(function.variance(domain, point).value, "")
        for sigma2, function, domain, point in (
            ("sigma2_x", problem.f, problem.X, origin[0]),
            ("sigma2_y", problem.g, problem.Y, origin[1]),
        )
        if function.sampled
    }
    known = noise_in(_metric(plan, problem), noise, problem.X.shape)
    planned = {name: plan.constants[name].value if name in plan.constants else 0.0 for name in known}
    return all(constant.value <= planned[name] * (1.0 + 1e-9) for name, constant in known.items())


def _measured_from(level: Level, squares: tuple[float, float]) -> Level:
    """The level with the Omega of another start. Its steps stay, so its (delta, L)-oracle is frozen."""
    Omega = float(sum(w * square for w, square in zip(level.term.weights, squares, strict=True) if w > 0.0))
    if Omega == level.term.Omega or math.isclose(Omega, level.term.Omega, rel_tol=1e-12):
        return level
    return replace(level, term=replace(level.term, Omega=Omega, inexact=(level.delta, level.L)))
