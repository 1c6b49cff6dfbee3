"""Fewest calls that bounds on bounded domains can ask for: quick to find, so that forecasts need not ask further."""

from __future__ import annotations

from typing import TYPE_CHECKING

from saddleslide.methods.field import calls_of
from saddleslide.oracles.calls import Calls
from saddleslide.theory.budgets import budget

if TYPE_CHECKING:
    from saddleslide.facts.facts import Facts

# No bound of this package has constants that make it smaller than this part of the budgets (test_choice.py).
_PART = 0.25


def fewest_on_bounded(facts: Facts, tol: float) -> Calls | None:
    """A part of the budgets of Corollary 3.6, each in the norm that makes it smallest; None on unbounded domains."""
    if not (facts.f.domain.bounded and facts.g.domain.bounded):
        return None
    if not facts.budget_terms:
        return Calls()
    f, g, B = (_PART * budget(term, tol) for term in facts.budget_terms)
    # Four products a step.
    return calls_of(facts, f, g, 4.0 * B)
