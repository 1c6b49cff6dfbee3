"""How a run is carried out: a plan of the recursion, sampled gradients, another method, the library's own solver."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, final

import numpy as np
import scipy

import saddleslide as ss
from saddleslide.arrays.base import Array
from saddleslide.certificates.certification import certify
from saddleslide.facts.facts import Facts
from saddleslide.functions.minimum import tilted_minimum
from saddleslide.gallery.tomography import BETA, HOLDER_COEFFICIENT, HOLDER_EXPONENT, NONLOCAL, TV_WEIGHT
from saddleslide.methods.base import Description, Revision, option
from saddleslide.methods.catalogue import by_name
from saddleslide.methods.recursive_sliding import Ablation, SlidingState, problem_terms, whole_levels
from saddleslide.methods.schedule.planner import theorem_plan
from saddleslide.oracles.calls import Calls
from saddleslide.oracles.oracles import Oracles
from saddleslide.paper.instances import Instance
from saddleslide.paper.spec import Run, loops_of
from saddleslide.problem import SaddleProblem
from saddleslide.runs.result import Result
from saddleslide.theory.bounds import budget
from saddleslide.theory.levels import Level, place
from saddleslide.theory.plan import Plan
from saddleslide.theory.restarts import CONTRACTION
from saddleslide.theory.schedule import Schedule

# Inner solves of a relative gap stop at this part of the gap at the start: four digits below the smallest target.
RELATIVE_ACCURACY, CURVE_ACCURACY = 1e-9, 1e-6
# A target that no certificate meets: all stages are carried out, and their counts can be compared.
NEVER_MET = 5e-324
# A mean lies below a bound when it does so with this many standard errors added.
ERRORS = 2.0
# Options of `ss.plan` that a specification may state.
OPTIONS = ("order", "kappa", "proved", "factor", "regime", "metric", "constants", "anchors", "anchor_batch")
Curve = list[list[float]]


@dataclass
class Outcome:
    """What a method did: the point, the calls, the time, and what was seen on the way."""

    x: Array
    y: Array
    calls: Calls
    seconds: list[float]
    plan: dict[str, Any] | None = None
    order: str = ""
    bound: float = math.nan
    curve: Curve = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)


class Gaps:
    """Gaps of points of one instance, absolute or relative to the gap at the start."""

    def __init__(self, given: Instance, relative: bool) -> None:
        self.problem, self.relative = given.judged or given.problem, relative
        self.scale = certify(self.problem, *self.problem.start()).gap if relative else 1.0

    def __call__(self, x: Array, y: Array, accuracy: float = RELATIVE_ACCURACY) -> float:
        """The gap of a point; a relative one with inner solves of this accuracy."""
        absolute = accuracy * self.scale if self.relative else 0.0
        return certify(self.problem, x, y, accuracy=absolute).gap / self.scale

    def point(self, calls: Calls, x: Array, y: Array) -> list[float]:
        """A point of a curve: calls of f', g' and B, and a gap that is good enough for it."""
        return [calls.f, calls.g, calls.B, self(x, y, CURVE_ACCURACY)]


def make_plan(given: Instance, run: Run) -> Plan:
    """The plan that the settings ask for; the paper's conventions where they are silent."""
    settings = run.settings
    asked: dict[str, Any] = {"metric": "identity", "regime": "degenerate"}
    asked |= {name: settings[name] for name in OPTIONS if name in settings}
    if given.solution is not None:
        asked["Psi0"] = given.Psi(*given.problem.start())
    if settings.get("all_stages", False):
        return replace(theorem_plan(given.problem, settings["tol"], **asked), tol=NEVER_MET)
    if (loops := loops_of(run.problem, settings)) is not None:
        asked["loops"] = loops
    return theorem_plan(given.problem, settings.get("tol"), **asked)


def schedule_of(intended: Plan) -> Schedule:
    """The schedule that every plan of the recursion has."""
    assert intended.schedule is not None
    return intended.schedule


def describe(intended: Plan, steps: int) -> dict[str, Any]:
    """What a table may ask of a plan: budgets R_i, or stages planned and made and the calls of all of them."""
    schedule, planned, tol = schedule_of(intended), intended.predicted_calls, intended.tol
    if not schedule.has_restarts:
        return {} if tol is None else {"budgets": {one.term.name: budget(one.term, tol) for one in schedule.levels}}
    stages = schedule.stages
    # Outer steps before each stage: those that begin within the steps of the run were made.
    begins = [0, *itertools.accumulate(stage.levels[0].T for stage in stages)][:-1]
    return {
        "stages": {"planned": len(stages), "made": sum(begin < steps for begin in begins)},
        "planned": planned,
        "per_restart": {name: calls / max(len(stages), 1) for name, calls in planned.items()},
        "anchor_batch": stages[-1].anchor_batch if stages else 0,
        "floor": stages[-1].anchor_error / (1.0 - CONTRACTION) if stages else 0.0,
    }


@final
@dataclass(frozen=True, repr=False)
class OneLevel(Ablation):
    """One level with all three parts; `scale` multiplies the whole prox weight, L and M.

    With n = 1 the recursion is Accelerated Mirror-Prox iterate by iterate, and a Hölder g enters through its
    (delta, L)-oracle at N iterations (eq. Holder_delta_star).
    """

    description = Description(
        name="one-level",
        needs=("Hölder f", "Hölder g", "bounded X", "bounded Y"),
        guarantee="Theorem 3.3 with one level; a scale below 1 leaves it.",
        reference="Chen, Lan and Ouyang, Accelerated schemes for a class of variational inequalities, Math. Program. "
        "165 (2017)",
    )
    steps: int = option(1, "iterations", whole=True)
    scale: float = option(1.0, "factor on the prox weight")
    metric: str = option("balanced", "both domains equally large, or the Euclidean norm", ("balanced", "identity"))

    @property
    def is_explicit(self) -> bool:
        return True

    def levels(self, problem: SaddleProblem, start: tuple[Any, Any], eps: float) -> tuple[Level, ...]:
        terms = problem_terms(problem, start, eps, self.metric)
        # f and g act on different blocks: the larger constant serves both.
        parts = [place([terms[name]], (self.steps,))[0] for name in "fg"]
        oracle = max(part.delta for part in parts), self.scale * max(part.L for part in parts)
        merged = replace(terms["B"], name="fgB", M=self.scale * terms["B"].M, inexact=oracle)
        return whole_levels([merged], [self.steps])


def _recursion(run: Run, given: Instance, gaps: Gaps) -> Outcome:
    """A plan of the paper carried out `repeats` times, inspected every `inspect` outer steps if asked.

    Counts are those of the paper, with the few products that the run spares.
    """
    intended = make_plan(given, run)
    schedule, curve, seconds = schedule_of(intended), Curve(), []
    inspect = int(run.settings.get("inspect", 0))

    def look(result: Result) -> None:
        if result.nit % inspect == 0:
            curve.append(gaps.point(result.counted, result.x, result.y))

    for _ in range(int(run.settings.get("repeats", 1))):
        curve.clear()
        result = ss.run(given.problem, intended, callback=look if inspect else None)
        if not schedule.has_restarts and result.counted.by_oracle != intended.predicted_calls:
            # Cut short, it is no evidence of its counts.
            raise RuntimeError(f"{result.nit} of {intended.loops[0]} outer steps were made: {result.message}")
        seconds.append(result.timings["method"])
    more = {"status_of_run": result.status.name, **describe(intended, result.nit)}
    data = None if schedule.has_restarts else intended.to_dict()
    return Outcome(result.x, result.y, result.counted, seconds, data, intended.order, _bound(intended), curve, more)


def _bound(intended: Plan) -> float:
    """The bound as printed; of restarts that of the plan."""
    schedule = schedule_of(intended)
    return intended.bound if schedule.has_restarts else schedule.printed_bound


def _plan_only(run: Run, given: Instance, gaps: Gaps) -> Outcome:
    """No run: the plan and what it promises, at the starting point."""
    intended = make_plan(given, run)
    more = {"planned": intended.predicted_calls, **describe(intended, 0)}
    return Outcome(*given.problem.start(), Calls(), [0.0], None, intended.order, _bound(intended), more=more)


def _run_sampled(run: Run, given: Instance, gaps: Gaps) -> Outcome:
    """`draws` runs of one plan: means with their standard errors beside what the theory promises of them."""
    intended = make_plan(given, run)
    draws = range(int(run.settings["draws"]))
    if schedule_of(intended).has_restarts:
        pairs = [_trace_stages(given, replace(intended, tol=NEVER_MET), draw) for draw in draws]
        results = [result for result, _ in pairs]
        measured = compare_means([trace for _, trace in pairs], promises(intended))
    else:
        results = [ss.run(given.problem, intended, rng=draw) for draw in draws]
        measured = compare_means([[result.gap] for result in results], [intended.bound])
    last, planned = results[-1], (intended.predicted_calls, intended.predicted_samples)
    more = {
        **describe(intended, last.nit),
        "planned": planned[0],
        "draws": len(results),
        "exact_draws": sum((one.counted.by_oracle, asdict(one.samples)) == planned for one in results),
        "monte_carlo": measured,
        "samples": asdict(last.samples),
        "planned_samples": planned[1],
    }
    seconds = [result.timings["method"] for result in results]
    return Outcome(last.x, last.y, last.counted, seconds, None, intended.order, intended.bound, more=more)


def compare_means(found: Sequence[Sequence[float]], promised: Sequence[float]) -> dict[str, Any]:
    """Means over the draws, their standard errors, and the worst (mean + 2 errors) / promise."""
    values = np.array(found)
    mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))
    share = float(np.max((mean + ERRORS * error) / np.array(promised)))
    return {"mean": mean.tolist(), "standard_error": error.tolist(), "promised": list(promised), "share": share}


def promises(intended: Plan) -> list[float]:
    """What E[Psi] shall be at most at the end of every stage: 3/4 Gamma_s + C_anc Delta_anc / b."""
    return [CONTRACTION * stage.Omega + stage.anchor_error for stage in schedule_of(intended).stages]


def _trace_stages(given: Instance, intended: Plan, draw: int) -> tuple[Result, list[float]]:
    """The run, and Psi at the end of every stage."""
    ends = set(itertools.accumulate(stage.levels[0].T for stage in schedule_of(intended).stages))
    trace: list[float] = []

    def look(result: Result) -> None:
        if result.nit in ends:
            trace.append(given.Psi(result.x, result.y))

    return ss.run(given.problem, intended, callback=look, rng=draw), trace


def _adaptive(run: Run, given: Instance, gaps: Gaps) -> Outcome:
    """The library's own method on the same problem, until it certifies the relative target itself."""
    result = ss.solve(given.problem, reduction=float(run.settings["reduction"]))
    more = {"certificate_calls": vars(result.certificate_calls), "status_of_run": result.status.name}
    return Outcome(result.x, result.y, result.calls, [result.timings["method"]], more=more)


def _without_coupling(run: Run, given: Instance, gaps: Gaps) -> Outcome:
    """The minimiser of f alone, with the best reply of y or with y = 0: what ignoring the coupling would return."""
    problem, (x, y) = given.problem, given.problem.start()
    x = tilted_minimum(problem.f, np.zeros(problem.X.shape), problem.X, x).point
    if run.settings.get("reply", True):
        y = tilted_minimum(problem.g, -problem.coupling.forward(x), problem.Y, y).point
    return Outcome(x, y, Calls(), [0.0])


def _diagnostics(run: Run, given: Instance, gaps: Gaps) -> Outcome:
    """How far g' is from Lipschitz at an accurate saddle point of the Hölder regime (paper, "Hölder diagnostics")."""
    result = ss.solve(given.problem, reduction=float(run.settings["reduction"]))
    size, nu = np.abs(result.y), HOLDER_EXPONENT
    inner = np.ones(size.shape, dtype=bool)
    # Differences beyond the last column and row are zero by definition, and so is y there.
    inner[0, :, -1] = inner[1, -1, :] = False
    quotient = HOLDER_COEFFICIENT * np.maximum(size[inner], np.finfo(float).tiny) ** (nu - 1.0)
    more = {
        "share_small": float(np.mean(size <= 0.01 * TV_WEIGHT)),
        "quotient_99": float(np.percentile(quotient, 99.0)),
        "holder_quotient": float(np.linalg.norm(given.problem.g.gradient(result.y)) / np.linalg.norm(result.y) ** nu),
        "H_y": given.problem.g.smoothness(given.problem.Y).H,
        "norm": float(np.linalg.norm(result.x)),
        "error": certify(given.problem, result.x, result.y).error,
    }
    return Outcome(result.x, result.y, result.calls, [result.timings["method"]], more=more)


def _scope(run: Run, given: Instance, gaps: Gaps) -> Outcome:
    """Sizes of an instance, and the budgets of Corollary 3.6 in the Euclidean norm (paper, paragraph "Scope").

    At the relative gap `eps` read as an absolute one, as the paper does, and at the absolute gap that it stands for.
    """
    problem, eps = given.problem, float(run.settings["eps"])
    x, y = problem.start()
    terms = problem_terms(problem, (x, y), eps, "identity")
    absolute = eps * gaps.scale
    (nonlocal_part,) = [part for _, part in problem.g.terms() if part.operators]
    laplacian = nonlocal_part.operators[0][0]
    more = {
        "R": math.sqrt(problem.X.squared_radius(x)),
        "entries": int(scipy.sparse.csr_array(laplacian.entries).nnz),
        "quadratic": BETA + 2.0 * NONLOCAL,
        "coefficient": HOLDER_COEFFICIENT,
        "absolute": absolute,
        **{f"budget_{name}": budget(term, eps) for name, term in terms.items()},
        **{f"absolute_{name}": budget(term, absolute) for name, term in terms.items()},
    }
    return Outcome(x, y, Calls(), [0.0], more=more)


def _other(run: Run, given: Instance, gaps: Gaps) -> Outcome:
    """Another method: `iterations` steps, or until a gap inspected every `inspect` steps is at most `stop`."""
    settings = run.settings
    inspect, stop = int(settings.get("inspect", 0)), float(settings.get("stop", -math.inf))
    kind = OneLevel if run.method == OneLevel.description.name else by_name[run.method]
    seconds = []
    for _ in range(int(settings.get("repeats", 1))):
        method, oracles = kind(**settings.get("options", {})), Oracles(given.problem)
        curve: Curve = []
        clock = -time.perf_counter()
        facts = Facts(given.problem)
        state = method.init(oracles, facts, given.problem.start(), float(settings.get("tol", 0.0)))
        notes = method.notes(state, facts)
        # As stated, or through the first stage of an ablation, or until it is finished.
        iterations = float(settings.get("iterations", math.inf))
        if settings.get("stages") == 1 and isinstance(state, SlidingState):
            iterations = state.stages[0][0].T
        step = 0
        while not (method.is_finished(state) or step >= iterations):
            found = method.step(state, oracles)
            assert not isinstance(found, Revision)
            state = found
            step += 1
            if inspect and step % inspect == 0:
                clock += time.perf_counter()
                curve.append(gaps.point(oracles.calls, *method.point(state, oracles)))
                clock -= time.perf_counter()
                if curve[-1][-1] <= stop:
                    break
        x, y = method.point(state, oracles)
        seconds.append(clock + time.perf_counter())
    return Outcome(x, y, oracles.calls, seconds, curve=curve, more={"notes": list(notes)})


def apply_method(run: Run, given: Instance, gaps: Gaps) -> Outcome:
    """The run as its method wants it: in a way of its own, or as one of the library's other methods."""
    own = {
        "recursion": _recursion, "plan": _plan_only, "sampled": _run_sampled, "saddleslide": _adaptive,
        "without coupling": _without_coupling, "diagnostics": _diagnostics, "scope": _scope,
    }  # fmt: skip
    return own.get(run.method, _other)(run, given, gaps)
