"""Bounds over bounded domains: the fewest calls that they can ask for, quick to find, and where they do not apply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from saddleslide.methods.base import Method
from saddleslide.methods.field import calls_of
from saddleslide.oracles.calls import Calls
from saddleslide.theory.bounds import budget

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


@dataclass(frozen=True, repr=False)
class BoundedMethod(Method):
    """A method whose bound is one over bounded domains."""

    def fewest_calls(self, facts: Facts, tol: float) -> Calls | None:
        return fewest_on_bounded(facts, tol)


def unpromised(facts: Facts, blocks: str = "XY") -> tuple[str, ...]:
    """A note for the plan where a bound over the domains does not apply."""
    domains = {"X": facts.f.domain, "Y": facts.g.domain}
    free = [name for name in blocks if not domains[name].bounded]
    verb = "are" if len(free) > 1 else "is"
    return (f"{' and '.join(free)} {verb} unbounded: the bound on the gap does not apply",) if free else ()
