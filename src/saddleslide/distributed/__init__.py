"""Functions, couplings and agents on a Dask cluster. Dask is imported when one of them is used."""

from saddleslide.distributed.cluster import Counts, Repeat, connect, local
from saddleslide.distributed.consensus import consensus
from saddleslide.distributed.dask_matrix import dask_coupling
from saddleslide.distributed.dask_sum import DaskSum
from saddleslide.distributed.shards import Shard, spread

__all__ = ["Counts", "DaskSum", "Repeat", "Shard", "connect", "consensus", "dask_coupling", "local", "spread"]
