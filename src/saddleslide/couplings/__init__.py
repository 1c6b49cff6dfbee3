"""Couplings B: what users have, made into two products with shapes and a norm bound."""

from saddleslide.couplings.base import Coupling, adjoint_mismatch, check_adjoint
from saddleslide.couplings.differences import FiniteDifferences
from saddleslide.couplings.explicit import Matrix, Products, as_coupling
from saddleslide.couplings.foreign import ForeignMatrix
from saddleslide.couplings.gossip import Gossip
from saddleslide.couplings.marginals import Marginals
from saddleslide.couplings.mirrored import Mirrored
from saddleslide.couplings.spectrum import NormBound, SmallestSingularValue

__all__ = [
    "Coupling",
    "FiniteDifferences",
    "ForeignMatrix",
    "Gossip",
    "Marginals",
    "Matrix",
    "Mirrored",
    "NormBound",
    "Products",
    "SmallestSingularValue",
    "adjoint_mismatch",
    "as_coupling",
    "check_adjoint",
]
