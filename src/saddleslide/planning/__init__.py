"""The theory as scalar arithmetic: levels, bounds, budgets, plans. No arrays, no NumPy."""

from saddleslide.planning.adaptive import AdaptivePlan
from saddleslide.planning.alphas import alpha, alpha_sequence
from saddleslide.planning.bounds import printed_holder_bound, printed_inexact_bound, sharp_bound
from saddleslide.planning.budgets import budget, loop_counts, proved_kappa, sorted_by_budget
from saddleslide.planning.levels import Level, Term, place
from saddleslide.planning.plan import Constant, Plan
from saddleslide.planning.restart_plan import RestartPlan
from saddleslide.planning.stored import plan_from_dict

__all__ = [
    "AdaptivePlan",
    "Constant",
    "Level",
    "Plan",
    "RestartPlan",
    "Term",
    "alpha",
    "alpha_sequence",
    "budget",
    "loop_counts",
    "place",
    "plan_from_dict",
    "printed_holder_bound",
    "printed_inexact_bound",
    "proved_kappa",
    "sharp_bound",
    "sorted_by_budget",
]
