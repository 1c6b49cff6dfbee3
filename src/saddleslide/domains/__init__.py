"""Closed convex sets X and Y: a catalogue, products, and the user's own."""

from typing import TYPE_CHECKING

from saddleslide.catalogue import load_on_demand

if TYPE_CHECKING:
    from saddleslide.domains.base import Domain
    from saddleslide.domains.cones import PSDCone, SecondOrderCone
    from saddleslide.domains.custom import Custom
    from saddleslide.domains.entrywise import Box, FullSpace, NonNegative
    from saddleslide.domains.matrices import NuclearBall, SpectralBall
    from saddleslide.domains.norms import Ball, GroupBalls, L1Ball
    from saddleslide.domains.planes import Affine, HalfSpace
    from saddleslide.domains.product import Product
    from saddleslide.domains.simplices import CappedSimplex, Simplex
    from saddleslide.domains.treeplex import Treeplex

__all__ = [
    "Affine", "Ball", "Box", "CappedSimplex", "Custom", "Domain", "FullSpace", "GroupBalls", "HalfSpace", "L1Ball",
    "NonNegative", "NuclearBall", "PSDCone", "Product", "SecondOrderCone", "Simplex", "SpectralBall", "Treeplex",
]  # fmt: skip

# Where each name lives. A module of the catalogue is read when one of its names is first asked for.
_HOMES = {
    "base": ("Domain",),
    "cones": ("PSDCone", "SecondOrderCone"),
    "custom": ("Custom",),
    "entrywise": ("Box", "FullSpace", "NonNegative"),
    "matrices": ("NuclearBall", "SpectralBall"),
    "norms": ("Ball", "GroupBalls", "L1Ball"),
    "planes": ("Affine", "HalfSpace"),
    "product": ("Product",),
    "simplices": ("CappedSimplex", "Simplex"),
    "treeplex": ("Treeplex",),
}

if not TYPE_CHECKING:
    # Unseen by type checkers, which would take every misspelt name for one of these.
    __getattr__, __dir__ = load_on_demand(__name__, _HOMES)
