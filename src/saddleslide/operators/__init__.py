"""Linear maps B: what users have, made into two products with shapes and a norm bound; and those people look for."""

from saddleslide.arrays.base import to_complex, to_real
from saddleslide.operators.algebra import (
    Composition,
    Diagonal,
    Identity,
    Paired,
    Part,
    Scaled,
    Stack,
    Sum,
    Transposed,
    split_unknowns,
)
from saddleslide.operators.base import Mirrored, Operator, adjoint_mismatch, check_adjoint
from saddleslide.operators.explicit import ForeignMatrix, Matrix, Products, as_operator
from saddleslide.operators.spectrum import NormBound, SmallestSingularValue
from saddleslide.operators.structured import FiniteDifferences, Gossip, Marginals, SymmetricGradient
from saddleslide.operators.transforms import Convolution, Fourier, Wavelet

__all__ = [
    "Composition",
    "Convolution",
    "Diagonal",
    "FiniteDifferences",
    "ForeignMatrix",
    "Fourier",
    "Gossip",
    "Identity",
    "Marginals",
    "Matrix",
    "Mirrored",
    "NormBound",
    "Operator",
    "Paired",
    "Part",
    "Products",
    "Scaled",
    "SmallestSingularValue",
    "Stack",
    "Sum",
    "SymmetricGradient",
    "Transposed",
    "Wavelet",
    "adjoint_mismatch",
    "as_operator",
    "check_adjoint",
    "split_unknowns",
    "to_complex",
    "to_real",
]


def __dir__() -> list[str]:
    return __all__
