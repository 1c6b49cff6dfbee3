"""One run into one row: builds the problem, runs the method, judges the point, writes down what came."""

from __future__ import annotations

import math
import platform
import statistics
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy

import saddleslide
from saddleslide.arrays import Array
from saddleslide.baselines import Method, methods
from saddleslide.baselines.staged import Staged
from saddleslide.certificate import certify
from saddleslide.driver import run as carry_out
from saddleslide.functions import tilted_minimum
from saddleslide.oracles import Calls, Oracles
from saddleslide.paper.instances import Instance, instance
from saddleslide.paper.one_level import OneLevel
from saddleslide.paper.rows import Row, pack
from saddleslide.paper.spec import Run, loops_of
from saddleslide.planner import plan
from saddleslide.planning import Plan, budget
from saddleslide.planning.restart_plan import RestartPlan
from saddleslide.reporting import psnr
from saddleslide.result import Result
from saddleslide.solver import solve

# Inner solves of a relative gap stop at this part of the gap at the start: four digits below the smallest target.
RELATIVE_ACCURACY = 1e-9
CURVE_ACCURACY = 1e-6
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


class Judge:
    """Gaps of points of one instance, absolute or relative to the gap at the start."""

    def __init__(self, given: Instance, relative: bool) -> None:
        self.problem, self.scale, self.accuracy = given.judged or given.problem, 1.0, 0.0
        self.on_the_way = 0.0
        if relative:
            self.scale = certify(self.problem, *self.problem.start()).gap
            self.accuracy, self.on_the_way = RELATIVE_ACCURACY * self.scale, CURVE_ACCURACY * self.scale

    def __call__(self, x: Array, y: Array) -> float:
        """The gap of a point."""
        return certify(self.problem, x, y, accuracy=self.accuracy).gap / self.scale

    def look(self, x: Array, y: Array) -> float:
        """The gap of a point on the way, good enough for a curve."""
        return certify(self.problem, x, y, accuracy=self.on_the_way).gap / self.scale


def perform(run: Run) -> Row:
    """Carry out one run; a crash becomes a row with the status "failed".

    Examples
    --------
    >>> row = perform(Run("budgets", "main", "recursion", {"family": "synthetic", "nu_x": 1.0, "nu_y": 0.5}, {"tol": 0.5}))
    >>> row["status"], row["order"], row["calls"]
    ('done', 'fgB', {'f': 16, 'g': 96, 'B': 1920})
    """
    row: Row = {"key": run.key, **run.identity(), "seed": run.problem.get("seed"), "versions": versions()}
    began = time.perf_counter()
    try:
        row |= {"status": "done", **_carried_out(run)}
    except Exception as error:  # noqa: BLE001
        trace = traceback.format_exc(limit=-4)
        row |= {"status": "failed", "error": f"{type(error).__name__}: {error}", "trace": trace}
    return row | {"total_seconds": time.perf_counter() - began}


def versions() -> dict[str, str]:
    """Versions that a number may depend on.

    Examples
    --------
    >>> sorted(versions())
    ['numpy', 'python', 'saddleslide', 'scipy']
    """
    return {
        "saddleslide": saddleslide.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }


def _carried_out(run: Run) -> Row:
    given = instance(run.problem)
    judge = Judge(given, bool(run.settings.get("relative", False)))
    found = KINDS.get(run.method, _other)(run, given, judge)
    row: Row = {
        "calls": vars(found.calls),
        "gap": judge(found.x, found.y),
        "seconds": statistics.median(found.seconds),
        "curve": found.curve,
        "plan": found.plan,
        "order": found.order,
        "bound": found.bound,
        **found.more,
    }
    if given.truth is not None:
        row["psnr"] = psnr(found.x, given.truth)
    if run.settings.get("prices", False):
        row["prices"] = prices(given)
    if run.settings.get("picture", False):
        row["picture"] = pack(found.x)
    return row


def _recursion(run: Run, given: Instance, judge: Judge) -> Outcome:
    """A plan of the paper carried out `repeats` times, inspected every `inspect` outer steps if asked."""
    settings = run.settings
    intended = _plan(given, run)
    curve: Curve = []
    inspect = int(settings.get("inspect", 0))

    def look(result: Result) -> None:
        if inspect and result.nit % inspect == 0:
            curve.append([*_counts(result.calls), judge.look(result.x, result.y)])

    seconds = []
    for _ in range(int(settings.get("repeats", 1))):
        curve.clear()
        result = carry_out(given.problem, intended, callback=look if inspect else None)
        seconds.append(result.seconds)
    more = {"status_of_run": result.status.name, **_about(intended, result.nit)}
    bound = intended.printed_bound if isinstance(intended, Plan) else intended.bound
    data = intended.to_dict() if isinstance(intended, Plan) else None
    return Outcome(result.x, result.y, result.calls, seconds, data, intended.order, bound, curve, more)


def _about(intended: Plan | RestartPlan, steps: int) -> dict[str, Any]:
    """What a table may ask of a plan: budgets R_i, or stages planned and made and the calls of all of them."""
    if isinstance(intended, Plan):
        tol = intended.tol
        return {} if tol is None else {"budgets": {le.term.name: budget(le.term, tol) for le in intended.levels}}
    made = total = 0
    for stage in intended.stages:
        made, total = made + (total < steps), total + stage.levels[0].T
    planned = intended.predicted_calls
    count = max(len(intended.stages), 1)
    return {
        "stages": {"planned": len(intended.stages), "made": made},
        "planned": planned,
        "per_restart": {name: calls / count for name, calls in planned.items()},
    }


def _plan_only(run: Run, given: Instance, judge: Judge) -> Outcome:
    """No run: the plan and what it promises, at the starting point."""
    intended = _plan(given, run)
    assert isinstance(intended, Plan)
    start = given.problem.start()
    return Outcome(*start, Calls(), [0.0], None, intended.order, intended.printed_bound, more=_about(intended, 0))


def _adaptive(run: Run, given: Instance, judge: Judge) -> Outcome:
    """The library's own method on the same problem, until it certifies the relative target itself."""
    result = solve(given.problem, rtol=float(run.settings["rtol"]))
    more = {"certificate_calls": vars(result.certificate_calls), "status_of_run": result.status.name}
    return Outcome(result.x, result.y, result.calls, [result.seconds], more=more)


def _without_coupling(run: Run, given: Instance, judge: Judge) -> Outcome:
    """The minimiser of f alone, with the best reply of y: what a method that ignores the coupling would return."""
    problem = given.problem
    x = tilted_minimum(problem.f, np.zeros(problem.X.shape), problem.X, problem.start()[0]).point
    reply = tilted_minimum(problem.g, -problem.coupling.forward(x), problem.Y, problem.start()[1]).point
    return Outcome(x, reply, Calls(), [0.0])


def _plan(given: Instance, run: Run) -> Plan | RestartPlan:
    """The plan that the settings ask for; the paper's conventions where they are silent."""
    settings = run.settings
    names = ("order", "kappa", "proved", "factor", "regime", "metric", "constants")
    asked: dict[str, Any] = {"metric": "identity", "regime": "degenerate"}
    asked |= {name: settings[name] for name in names if name in settings}
    if settings.get("all_stages", False):
        return _with_all_stages(plan(given.problem, settings["tol"], **asked))
    loops = loops_of(run.problem, settings)
    if loops is not None:
        asked["loops"] = loops
    return plan(given.problem, settings.get("tol"), **asked)


def _with_all_stages(intended: Plan | RestartPlan) -> Plan | RestartPlan:
    """The same stages with a target that no certificate meets, so that the run makes all of them."""
    return replace(intended, tol=5e-324)


def _other(run: Run, given: Instance, judge: Judge) -> Outcome:
    """Another method: `iterations` steps, or until a gap inspected every `inspect` steps is at most `stop`."""
    settings = run.settings
    inspect, stop = int(settings.get("inspect", 0)), float(settings.get("stop", -math.inf))
    seconds = []
    for _ in range(int(settings.get("repeats", 1))):
        method, oracles = _method(run.method)(**settings.get("options", {})), Oracles(given.problem)
        curve: Curve = []
        clock = -time.perf_counter()
        method.start(oracles, given.problem.start(), float(settings.get("tol", 0.0)))
        iterations = _iterations(method, settings)
        step = 0
        while not (method.finished or step >= iterations):
            method.advance()
            step += 1
            if inspect and step % inspect == 0:
                clock += time.perf_counter()
                curve.append([*_counts(oracles.calls), judge.look(*method.output())])
                clock -= time.perf_counter()
                if curve[-1][-1] <= stop:
                    break
        x, y = method.output()
        seconds.append(clock + time.perf_counter())
    return Outcome(x, y, oracles.calls, seconds, curve=curve, more={"notes": list(method.notes)})


def _method(name: str) -> type[Method]:
    return OneLevel if name == OneLevel.description.name else methods[name]


def _iterations(method: Method, settings: dict[str, Any]) -> float:
    """How often to advance: as stated, or through the first stage of an ablation, or until it is finished."""
    if settings.get("stages") == 1 and isinstance(method, Staged):
        return method.left
    return float(settings.get("iterations", math.inf))


def _counts(calls: Calls) -> list[float]:
    return [calls.f, calls.g, calls.B]


def prices(given: Instance) -> dict[str, float]:
    """Median isolated latencies of f', g' and one product, in seconds.

    Examples
    --------
    >>> sorted(prices(instance({"family": "synthetic"})))
    ['B', 'f', 'g']
    """
    oracles = Oracles(given.problem)
    rng = np.random.default_rng(0)
    x = given.problem.X.project(rng.standard_normal(given.problem.X.shape))
    y = given.problem.Y.project(rng.standard_normal(given.problem.Y.shape))
    into_x, into_y = np.empty_like(x), np.empty_like(y)
    calls = {
        "f": [lambda: oracles.f_gradient(x, into_x)],
        "g": [lambda: oracles.g_gradient(y, into_y)],
        "B": [lambda: oracles.forward(x, into_y), lambda: oracles.adjoint(y, into_x)],
    }
    return {name: statistics.median(_latency(call) for call in pair for _ in range(60)) for name, pair in calls.items()}


def _latency(call: Any) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


KINDS: dict[str, Callable[[Run, Instance, Judge], Outcome]] = {
    "recursion": _recursion,
    "plan": _plan_only,
    "saddleslide": _adaptive,
    "without coupling": _without_coupling,
}
