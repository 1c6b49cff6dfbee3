"""Fewest calls that bounds on bounded domains can ask for: quick to find, so that forecasts need not ask further."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from saddleslide.oracles.calls import Calls
from saddleslide.theory.budgets import budget
from saddleslide.theory.holder import Holder
from saddleslide.theory.levelwise import levelwise_terms

if TYPE_CHECKING:
    from saddleslide.facts.facts import Facts

# No bound of this package has constants that make it smaller than this part of the budgets (test_choice.py).
_PART = 0.25


def fewest_on_bounded(facts: Facts, tol: float) -> Calls | None:
    """A part of the budgets of Corollary 3.6, each in the norm that makes it smallest; None on unbounded domains."""
    if not (facts.f.domain.bounded and facts.g.domain.bounded):
        return None
    squares, flat = facts.sizes.squared_radii, Holder(1.0, 0.0)
    # Without curvature on a block there are no level-wise norms, and on a single point none is the smallest.
    if min(facts.norm, *squares) <= 0.0:
        return Calls()
    terms = levelwise_terms(facts.f.holder or flat, facts.g.holder or flat, facts.norm, *squares)
    f, g, B = (_PART * budget(term, tol) for term in terms)
    if not all(map(math.isfinite, (f, g, B))):
        return None
    # Four products a step.
    return Calls(0 if facts.f.is_zero else math.ceil(f), 0 if facts.g.is_zero else math.ceil(g), math.ceil(4.0 * B))
