"""The theory as scalar arithmetic: levels, bounds, budgets, plans. No arrays, no NumPy."""

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
    "Constant",
    "Level",
    "Plan",
    "Schedule",
    "Term",
    "alpha",
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
