"""The plan that the settings of a run ask for, and what a table may ask of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from saddleslide.methods.schedule.planner import theorem_plan
from saddleslide.paper.instances import Instance
from saddleslide.paper.spec import Run, loops_of
from saddleslide.theory import budget
from saddleslide.theory.restarts import CONTRACTION
from saddleslide.theory.sliding_plan import Schedule, SlidingPlan

# Options of `ss.plan` that a specification may state.
OPTIONS = ("order", "kappa", "proved", "factor", "regime", "metric", "constants", "anchors", "anchor_batch")


def intended_plan(given: Instance, run: Run) -> Schedule:
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


def _with_all_stages(intended: Schedule) -> Schedule:
    """The same stages with a target that no certificate meets, so that the run makes all of them."""
    return replace(intended, tol=5e-324)


def about(intended: Schedule, steps: int) -> dict[str, Any]:
    """What a table may ask of a plan: budgets R_i, or stages planned and made and the calls of all of them."""
    if isinstance(intended, SlidingPlan):
        tol = intended.tol
        return {} if tol is None else {"budgets": {le.term.name: budget(le.term, tol) for le in intended.levels}}
    made = total = 0
    for stage in intended.runs:
        made, total = made + (total < steps), total + stage.levels[0].T
    planned = intended.predicted_calls
    count = max(len(intended.runs), 1)
    last = intended.runs[-1] if intended.runs else None
    return {
        "stages": {"planned": len(intended.runs), "made": made},
        "planned": planned,
        "per_restart": {name: calls / count for name, calls in planned.items()},
        "anchor_batch": last.anchor_batch if last else 0,
        "floor": last.anchor_error / (1.0 - CONTRACTION) if last else 0.0,
    }
