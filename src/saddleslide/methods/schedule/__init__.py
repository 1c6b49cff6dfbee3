"""Schedules of recursive sliding: levels, loops, stages, and the theorem behind them."""

from typing import TYPE_CHECKING

from saddleslide.catalogue import load_on_demand

if TYPE_CHECKING:
    from saddleslide.methods.schedule.fitting import bound_expected_gap, fit
    from saddleslide.methods.schedule.planner import theorem_plan
    from saddleslide.methods.schedule.regimes import PSI_PER_GAP, REGIMES
    from saddleslide.methods.schedule.request import Request

__all__ = ["PSI_PER_GAP", "REGIMES", "Request", "bound_expected_gap", "fit", "theorem_plan"]

# What plans of the theorems need, and no other run.
_HOMES = {
    "fitting": ("bound_expected_gap", "fit"),
    "planner": ("theorem_plan",),
    "regimes": ("PSI_PER_GAP", "REGIMES"),
    "request": ("Request",),
}

if not TYPE_CHECKING:
    # Unseen by type checkers, which would take every misspelt name for one of these.
    __getattr__, __dir__ = load_on_demand(__name__, _HOMES)
