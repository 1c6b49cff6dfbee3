"""Functions, couplings and agents on a Dask cluster. Dask is imported when one of them is used."""

from saddleslide.distributed.consensus import consensus
from saddleslide.distributed.counts import Counts, Repeat
from saddleslide.distributed.couplings import dask_coupling
from saddleslide.distributed.dask_sum import DaskSum
from saddleslide.distributed.engine import connect, local
from saddleslide.distributed.loaders import Shard
from saddleslide.distributed.spreading import spread

__all__ = ["Counts", "DaskSum", "Repeat", "Shard", "connect", "consensus", "dask_coupling", "local", "spread"]
