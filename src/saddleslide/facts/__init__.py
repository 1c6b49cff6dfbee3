"""What is known of a problem: constants with their origins, norms, noise, costs."""

from typing import TYPE_CHECKING

from saddleslide.catalogue import load_on_demand

if TYPE_CHECKING:
    from saddleslide.facts.newton import least_forming, newton_cost

__all__ = ["least_forming", "newton_cost"]

# What quadratic programs alone are asked.
_HOMES = {"newton": ("least_forming", "newton_cost")}

if not TYPE_CHECKING:
    # Unseen by type checkers, which would take every misspelt name for one of these.
    __getattr__, __dir__ = load_on_demand(__name__, _HOMES)
