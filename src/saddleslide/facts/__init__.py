"""What is known of a problem: constants with their origins, norms, noise, costs."""

from typing import TYPE_CHECKING

from saddleslide.catalogue import load_on_demand

if TYPE_CHECKING:
    from saddleslide.facts.newton import least_forming, newton_cost
    from saddleslide.facts.requirements import find_missing

__all__ = ["find_missing", "least_forming", "newton_cost"]

# What quadratic programs alone are asked, and what methods that need something of a problem ask of it.
_HOMES = {"newton": ("least_forming", "newton_cost"), "requirements": ("find_missing",)}

if not TYPE_CHECKING:
    # Unseen by type checkers, which would take every misspelt name for one of these.
    __getattr__, __dir__ = load_on_demand(__name__, _HOMES)
