"""The theory as scalar arithmetic: levels, bounds, budgets, plans. No arrays, no NumPy."""

from typing import TYPE_CHECKING

from saddleslide.catalogue import load_on_demand

if TYPE_CHECKING:
    from saddleslide.theory.bounds import (
        budget,
        loop_counts,
        printed_holder_bound,
        printed_inexact_bound,
        proved_kappa,
        sharp_bound,
        sorted_by_budget,
    )
    from saddleslide.theory.hypotheses import Constant
    from saddleslide.theory.levels import Level, Term, alpha, alpha_sequence, place
    from saddleslide.theory.plan import Plan
    from saddleslide.theory.schedule import Schedule

__all__ = [
    "Constant", "Level", "Plan", "Schedule", "Term", "alpha", "alpha_sequence", "budget", "loop_counts", "place",
    "printed_holder_bound", "printed_inexact_bound", "proved_kappa", "sharp_bound", "sorted_by_budget",
]  # fmt: skip

# Where each name lives. A plan without a schedule needs few of them.
_HOMES = {
    "bounds": (
        "budget", "loop_counts", "printed_holder_bound", "printed_inexact_bound", "proved_kappa", "sharp_bound",
        "sorted_by_budget",
    ),
    "hypotheses": ("Constant",),
    "levels": ("Level", "Term", "alpha", "alpha_sequence", "place"),
    "plan": ("Plan",),
    "schedule": ("Schedule",),
}  # fmt: skip

if not TYPE_CHECKING:
    # Unseen by type checkers, which would take every misspelt name for one of these.
    __getattr__, __dir__ = load_on_demand(__name__, _HOMES)
