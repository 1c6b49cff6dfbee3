"""Linear maps B: what users have, made into two products with shapes and a norm bound; and those people look for."""

from typing import TYPE_CHECKING

from saddleslide.arrays.base import to_complex, to_real
from saddleslide.catalogue import load_on_demand

if TYPE_CHECKING:
    from saddleslide.operators.adjoint_test import adjoint_mismatch, check_adjoint
    from saddleslide.operators.algebra import Composition, Paired, Scaled, Sum, Transposed
    from saddleslide.operators.base import Mirrored, Operator
    from saddleslide.operators.complex import read_dtype as read_dtype
    from saddleslide.operators.diagonal import Diagonal, Identity
    from saddleslide.operators.explicit import ForeignMatrix, Matrix, Products, as_operator
    from saddleslide.operators.foreign import adapt as adapt
    from saddleslide.operators.sparse import largest_row as largest_row
    from saddleslide.operators.sparse import passes_of as passes_of
    from saddleslide.operators.sparse import read_sparse as read_sparse
    from saddleslide.operators.sparse import with_small_indices as with_small_indices
    from saddleslide.operators.spectrum import NormBound, SmallestSingularValue
    from saddleslide.operators.stacks import Part, Stack, split_unknowns
    from saddleslide.operators.structured import FiniteDifferences, Gossip, Marginals, SymmetricGradient
    from saddleslide.operators.transforms import Convolution, Fourier, Wavelet

__all__ = [
    "Composition", "Convolution", "Diagonal", "FiniteDifferences", "ForeignMatrix", "Fourier", "Gossip", "Identity",
    "Marginals", "Matrix", "Mirrored", "NormBound", "Operator", "Paired", "Part", "Products", "Scaled",
    "SmallestSingularValue", "Stack", "Sum", "SymmetricGradient", "Transposed", "Wavelet", "adjoint_mismatch",
    "as_operator", "check_adjoint", "split_unknowns", "to_complex", "to_real",
]  # fmt: skip

# Where each name lives. A module of the catalogue is read when one of its names is first asked for.
_HOMES = {
    "adjoint_test": ("adjoint_mismatch", "check_adjoint"),
    "algebra": ("Composition", "Paired", "Scaled", "Sum", "Transposed"),
    "base": ("Mirrored", "Operator"),
    "complex": ("read_dtype",),
    "diagonal": ("Diagonal", "Identity"),
    "explicit": ("ForeignMatrix", "Matrix", "Products", "as_operator"),
    "foreign": ("adapt",),
    "sparse": ("largest_row", "passes_of", "read_sparse", "with_small_indices"),
    "spectrum": ("NormBound", "SmallestSingularValue"),
    "stacks": ("Part", "Stack", "split_unknowns"),
    "structured": ("FiniteDifferences", "Gossip", "Marginals", "SymmetricGradient"),
    "transforms": ("Convolution", "Fourier", "Wavelet"),
}

if not TYPE_CHECKING:
    # Unseen by type checkers, which would take every misspelt name for one of these.
    __getattr__, __dir__ = load_on_demand(__name__, _HOMES)
