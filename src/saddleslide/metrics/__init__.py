"""The norm a block works in: identity, diagonal, diagonal in a fast basis, or an operator of the user's."""

from saddleslide.metrics.base import Entrywise, Metric
from saddleslide.metrics.given import Operator
from saddleslide.metrics.plain import Blocks, Diagonal
from saddleslide.metrics.spectral import Spectral, fit_spectral
from saddleslide.metrics.stored import from_dict

__all__ = [
    "Blocks",
    "Diagonal",
    "Entrywise",
    "Metric",
    "Operator",
    "Spectral",
    "fit_spectral",
    "from_dict",
]
