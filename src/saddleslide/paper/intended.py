"""The plan that the settings of a run ask for, and what a table may ask of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from saddleslide.methods.schedule.planner import theorem_plan
from saddleslide.paper.instances import Instance
from saddleslide.paper.spec import Run, loops_of
from saddleslide.theory import Plan, budget
from saddleslide.theory.restarts import CONTRACTION

# Options of `ss.plan` that a specification may state.
OPTIONS = ("order", "kappa", "proved", "factor", "regime", "metric", "constants", "anchors", "anchor_batch")


def intended_plan(given: Instance, run: Run) -> Plan:
    """The plan that the settings ask for; the paper's conventions where they are silent."""
    settings = run.settings
    asked: dict[str, Any] = {"metric": "identity", "regime": "degenerate"}
    asked |= {name: settings[name] for name in OPTIONS if name in settings}
    if given.solution is not None:
        asked["Psi0"] = given.Psi(*given.problem.start())
    if settings.get("all_stages", False):
        return _with_all_stages(theorem_plan(given.problem, settings["tol"], **asked))
    loops = loops_of(run.problem, settings)
    if loops is not None:
        asked["loops"] = loops
    return theorem_plan(given.problem, settings.get("tol"), **asked)


def _with_all_stages(intended: Plan) -> Plan:
    """The same stages with a target that no certificate meets, so that the run makes all of them."""
    return replace(intended, tol=5e-324)


def has_restarts(intended: Plan) -> bool:
    """Whether a plan has stages; else it is one run of the recursion."""
    return intended.schedule is not None and intended.schedule.has_restarts


def about(intended: Plan, steps: int) -> dict[str, Any]:
    """What a table may ask of a plan: budgets R_i, or stages planned and made and the calls of all of them."""
    assert intended.schedule is not None
    stages, tol = intended.schedule.stages, intended.tol
    if not has_restarts(intended):
        levels = intended.schedule.levels
        return {} if tol is None else {"budgets": {level.term.name: budget(level.term, tol) for level in levels}}
    made = total = 0
    for stage in stages:
        made, total = made + (total < steps), total + stage.levels[0].T
    planned = intended.predicted_calls
    count = max(len(stages), 1)
    last = stages[-1] if stages else None
    return {
        "stages": {"planned": len(stages), "made": made},
        "planned": planned,
        "per_restart": {name: calls / count for name, calls in planned.items()},
        "anchor_batch": last.anchor_batch if last else 0,
        "floor": last.anchor_error / (1.0 - CONTRACTION) if last else 0.0,
    }
