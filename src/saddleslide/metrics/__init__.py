"""The norm a block works in: identity, diagonal, diagonal in a fast basis, or an operator of the user's."""

from typing import TYPE_CHECKING

from saddleslide.catalogue import load_on_demand

if TYPE_CHECKING:
    from saddleslide.metrics.base import Blocks, Diagonal, Entrywise, Metric, Operator
    from saddleslide.metrics.fits import fit_spectral as fit_spectral
    from saddleslide.metrics.record import from_dict
    from saddleslide.metrics.spectral import Spectral

__all__ = ["Blocks", "Diagonal", "Entrywise", "Metric", "Operator", "Spectral", "from_dict"]

# Where each name lives. A module of the catalogue is read when one of its names is first asked for.
_HOMES = {
    "base": ("Blocks", "Diagonal", "Entrywise", "Metric", "Operator"),
    "fits": ("fit_spectral",),
    "record": ("from_dict",),
    "spectral": ("Spectral",),
}

if not TYPE_CHECKING:
    # Unseen by type checkers, which would take every misspelt name for one of these.
    __getattr__, __dir__ = load_on_demand(__name__, _HOMES)
