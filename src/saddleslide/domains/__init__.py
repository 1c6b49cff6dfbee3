"""Closed convex sets X and Y: a catalogue, products, and the user's own."""

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
    "Affine",
    "Ball",
    "Box",
    "CappedSimplex",
    "Custom",
    "Domain",
    "FullSpace",
    "GroupBalls",
    "HalfSpace",
    "L1Ball",
    "NonNegative",
    "NuclearBall",
    "PSDCone",
    "Product",
    "SecondOrderCone",
    "Simplex",
    "SpectralBall",
    "Treeplex",
]


def __dir__() -> list[str]:
    return __all__
