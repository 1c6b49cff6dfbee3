"""Couplings B: what users have, made into two products with shapes and a norm bound."""

from saddleslide.operators.base import Coupling, adjoint_mismatch, check_adjoint
from saddleslide.operators.differences import FiniteDifferences
from saddleslide.operators.explicit import Matrix, Products, as_coupling
from saddleslide.operators.foreign import ForeignMatrix
from saddleslide.operators.gossip import Gossip
from saddleslide.operators.marginals import Marginals
from saddleslide.operators.mirrored import Mirrored
from saddleslide.operators.spectrum import NormBound, SmallestSingularValue

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
