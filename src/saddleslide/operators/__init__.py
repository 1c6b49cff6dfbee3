"""Linear maps B: what users have, made into two products with shapes and a norm bound."""

from saddleslide.operators.base import Coupling as Coupling
from saddleslide.operators.base import Mirrored, Operator, adjoint_mismatch, check_adjoint
from saddleslide.operators.explicit import ForeignMatrix, Matrix, Products, as_operator
from saddleslide.operators.spectrum import NormBound, SmallestSingularValue
from saddleslide.operators.structured import FiniteDifferences, Gossip, Marginals

__all__ = [
    "FiniteDifferences",
    "ForeignMatrix",
    "Gossip",
    "Marginals",
    "Matrix",
    "Mirrored",
    "NormBound",
    "Operator",
    "Products",
    "SmallestSingularValue",
    "adjoint_mismatch",
    "as_operator",
    "check_adjoint",
]

as_coupling = as_operator


def __dir__() -> list[str]:
    return __all__
