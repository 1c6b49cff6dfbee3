"""What is counted: the only door to f, g and B."""

from typing import TYPE_CHECKING

from saddleslide.catalogue import load_on_demand

if TYPE_CHECKING:
    from saddleslide.oracles.lifts import CountedLift, count_lift

__all__ = ["CountedLift", "count_lift"]

# What methods ask for that keep products with the matrix inside of f.
_HOMES = {"lifts": ("CountedLift", "count_lift")}

if not TYPE_CHECKING:
    # Unseen by type checkers, which would take every misspelt name for one of these.
    __getattr__, __dir__ = load_on_demand(__name__, _HOMES)
