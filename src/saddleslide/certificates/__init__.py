"""What is proved: bounds on the gap of a point, and what is known of it. Knows no method."""

from typing import TYPE_CHECKING

from saddleslide.catalogue import load_on_demand

if TYPE_CHECKING:
    from saddleslide.certificates.ascent import Ascent
    from saddleslide.certificates.certification import certify_within
    from saddleslide.certificates.cuts import Cuts
    from saddleslide.certificates.hull import look_over_hull
    from saddleslide.certificates.levels import level_sets
    from saddleslide.certificates.nearby import Nearby
    from saddleslide.certificates.rays import excludes
    from saddleslide.certificates.solutions import Solutions

__all__ = ["Ascent", "Cuts", "Nearby", "Solutions", "certify_within", "excludes", "level_sets", "look_over_hull"]

# What quadratics, sets without an end, rough functions, and results that are rounded or meant otherwise ask for, and
# no other run.
_HOMES = {
    "ascent": ("Ascent",),
    "certification": ("certify_within",),
    "cuts": ("Cuts",),
    "hull": ("look_over_hull",),
    "levels": ("level_sets",),
    "nearby": ("Nearby",),
    "rays": ("excludes",),
    "solutions": ("Solutions",),
}

if not TYPE_CHECKING:
    # Unseen by type checkers, which would take every misspelt name for one of these.
    __getattr__, __dir__ = load_on_demand(__name__, _HOMES)
