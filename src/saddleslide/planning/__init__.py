"""The theory as scalar arithmetic: levels, bounds, budgets, plans. No arrays, no NumPy."""

from saddleslide.planning.alphas import alpha_sequence
from saddleslide.planning.bounds import printed_holder_bound, printed_inexact_bound, sharp_bound
from saddleslide.planning.budgets import budget, loop_counts, proved_kappa, sorted_by_budget
from saddleslide.planning.levels import Level, Term, place
from saddleslide.planning.plan import Constant, Plan

__all__ = [
    "Constant",
    "Level",
    "Plan",
    "Term",
    "alpha_sequence",
    "budget",
    "loop_counts",
    "place",
    "printed_holder_bound",
    "printed_inexact_bound",
    "proved_kappa",
    "sharp_bound",
    "sorted_by_budget",
]
