"""How a run is carried out: a plan of the recursion, another method, a plan alone, the library's own solver."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from saddleslide.api.runner import run as carry_out
from saddleslide.api.solver import solve
from saddleslide.facts.facts import Facts
from saddleslide.functions import tilted_minimum
from saddleslide.gallery.tomography import HOLDER_COEFFICIENT, HOLDER_EXPONENT, TV_WEIGHT
from saddleslide.methods.base import Method, Revision, State
from saddleslide.methods.catalogue import by_name
from saddleslide.methods.sliding.stages import SlidingState
from saddleslide.oracles.calls import Calls
from saddleslide.oracles.oracles import Oracles
from saddleslide.paper.instances import Instance
from saddleslide.paper.intended import about, has_restarts, intended_plan
from saddleslide.paper.judge import Curve, Judge, Outcome
from saddleslide.paper.one_level import OneLevel
from saddleslide.paper.sampled import sampled
from saddleslide.paper.spec import Run
from saddleslide.runs.result import Result
from saddleslide.theory import Plan


def carried_out(run: Run, given: Instance, judge: Judge) -> Outcome:
    """The run as its method wants it: a kind of its own, or one of the library's other methods."""
    return KINDS.get(run.method, _other)(run, given, judge)


def _recursion(run: Run, given: Instance, judge: Judge) -> Outcome:
    """A plan of the paper carried out `repeats` times, inspected every `inspect` outer steps if asked.

    Counts are those of the paper, with the few products that the run spares.
    """
    settings = run.settings
    intended = intended_plan(given, run)
    curve: Curve = []
    inspect = int(settings.get("inspect", 0))

    def look(result: Result) -> None:
        if inspect and result.nit % inspect == 0:
            curve.append([*_counts(result.counted), judge.look(result.x, result.y)])

    seconds = []
    for _ in range(int(settings.get("repeats", 1))):
        curve.clear()
        result = carry_out(given.problem, intended, callback=look if inspect else None)
        _require_all_steps(intended, result)
        seconds.append(result.timings["method"])
    more = {"status_of_run": result.status.name, **about(intended, result.nit)}
    data = None if has_restarts(intended) else intended.to_dict()
    return Outcome(result.x, result.y, result.counted, seconds, data, intended.order, _bound(intended), curve, more)


def _bound(intended: Plan) -> float:
    """The bound as printed; of restarts that of the plan."""
    assert intended.schedule is not None
    return intended.bound if has_restarts(intended) else intended.schedule.printed_bound


def _require_all_steps(intended: Plan, result: Result) -> None:
    """A plan of one stage that something cut short is no evidence of its counts: the run has failed."""
    if not has_restarts(intended) and result.counted.by_oracle != intended.predicted_calls:
        raise RuntimeError(f"{result.nit} of {intended.loops[0]} outer steps were made: {result.message}")


def _plan_only(run: Run, given: Instance, judge: Judge) -> Outcome:
    """No run: the plan and what it promises, at the starting point."""
    intended = intended_plan(given, run)
    more = {"planned": intended.predicted_calls, **about(intended, 0)}
    return Outcome(*given.problem.start(), Calls(), [0.0], None, intended.order, _bound(intended), more=more)


def _adaptive(run: Run, given: Instance, judge: Judge) -> Outcome:
    """The library's own method on the same problem, until it certifies the relative target itself."""
    result = solve(given.problem, rtol=float(run.settings["rtol"]))
    more = {"certificate_calls": vars(result.certificate_calls), "status_of_run": result.status.name}
    return Outcome(result.x, result.y, result.calls, [result.timings["method"]], more=more)


def _without_coupling(run: Run, given: Instance, judge: Judge) -> Outcome:
    """The minimiser of f alone, with the best reply of y or with y = 0: what ignoring the coupling would return."""
    problem = given.problem
    x = tilted_minimum(problem.f, np.zeros(problem.X.shape), problem.X, problem.start()[0]).point
    if not run.settings.get("reply", True):
        return Outcome(x, problem.start()[1], Calls(), [0.0])
    reply = tilted_minimum(problem.g, -problem.coupling.forward(x), problem.Y, problem.start()[1]).point
    return Outcome(x, reply, Calls(), [0.0])


def _other(run: Run, given: Instance, judge: Judge) -> Outcome:
    """Another method: `iterations` steps, or until a gap inspected every `inspect` steps is at most `stop`."""
    settings = run.settings
    inspect, stop = int(settings.get("inspect", 0)), float(settings.get("stop", -math.inf))
    seconds = []
    for _ in range(int(settings.get("repeats", 1))):
        method, oracles = _method(run.method)(**settings.get("options", {})), Oracles(given.problem)
        curve: Curve = []
        clock = -time.perf_counter()
        facts, tol = Facts(given.problem), float(settings.get("tol", 0.0))
        state = method.init(oracles, facts, given.problem.start(), tol)
        notes, iterations, step = method.notes(state, facts), _iterations(state, settings), 0
        while not (method.is_finished(state) or step >= iterations):
            found = method.step(state, oracles)
            assert not isinstance(found, Revision)
            state = found
            step += 1
            if inspect and step % inspect == 0:
                clock += time.perf_counter()
                curve.append([*_counts(oracles.calls), judge.look(*method.point(state, oracles))])
                clock -= time.perf_counter()
                if curve[-1][-1] <= stop:
                    break
        x, y = method.point(state, oracles)
        seconds.append(clock + time.perf_counter())
    return Outcome(x, y, oracles.calls, seconds, curve=curve, more={"notes": list(notes)})


def _method(name: str) -> type[Method]:
    return OneLevel if name == OneLevel.description.name else by_name[name]


def _iterations(state: State, settings: dict[str, Any]) -> float:
    """How many steps to make: as stated, or through the first stage of an ablation, or until it is finished."""
    if settings.get("stages") == 1 and isinstance(state, SlidingState):
        return state.stages[0][0].T
    return float(settings.get("iterations", math.inf))


def _counts(calls: Calls) -> list[float]:
    return [calls.f, calls.g, calls.B]


def _diagnostics(run: Run, given: Instance, judge: Judge) -> Outcome:
    """How far g' is from Lipschitz at an accurate saddle point of the Hölder regime (paper, "Hölder diagnostics")."""
    result = solve(given.problem, rtol=float(run.settings["rtol"]))
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
    }
    return Outcome(result.x, result.y, result.calls, [result.timings["method"]], more=more)


KINDS: dict[str, Callable[[Run, Instance, Judge], Outcome]] = {
    "recursion": _recursion,
    "plan": _plan_only,
    "sampled": sampled,
    "saddleslide": _adaptive,
    "without coupling": _without_coupling,
    "diagnostics": _diagnostics,
}
