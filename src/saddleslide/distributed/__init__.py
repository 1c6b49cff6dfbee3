"""Functions, couplings and agents on a Dask cluster. Dask is imported when one of them is used."""

from saddleslide.distributed.counts import Counts, Repeat
from saddleslide.distributed.dask_sum import DaskSum
from saddleslide.distributed.engine import connect, local

__all__ = ["Counts", "DaskSum", "Repeat", "connect", "local"]
