"""The innermost level with compiled halves of its steps and products in between: for norms of x that mix entries.

P^-1 of a spectral metric takes two fast transforms of the whole grid, each one batched call of SciPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.kernels import arguments
from saddleslide.kernels.arguments import Above, Blocks, Buffers
from saddleslide.kernels.switch import load
from saddleslide.methods.sliding.component import Writer
from saddleslide.methods.sliding.thrift import Ends, Thrift
from saddleslide.theory import Level, alpha

if TYPE_CHECKING:
    from saddleslide.methods.sliding.innermost import Entry, Outer


def stepwise_sweep(level: Level, blocks: Blocks, write: Writer, thrift: Thrift, size: int) -> Entry:
    """All iterations of the coupling's level; `write` gives Q, with P^-1 on its x part, of z with `size` entries."""
    kernels, own = load("sweeps"), np.array(level.term.weights, dtype=np.float64)
    buffers = Buffers(*(np.empty(size) for _ in range(3)))

    def sweep(Gamma: float, above: Outer, z: Array, average: Array, ends: Ends) -> None:
        average[:] = z
        outer = Above(above.base, above.pull, above.slope, above.weights)
        kernels.fold_above(blocks, outer, buffers.fold)
        for j in range(level.T):
            here = ends.at(j, level.T)
            step = arguments.Level(Gamma, level.step, own, np.array([alpha(j)]), 0)
            (thrift.write_first if here.first else write)(z, buffers.q)
            kernels.approach(blocks, step, outer, 0, z, average, buffers)
            if here.last:
                thrift.left_out()
                return
            write(buffers.moved, buffers.q)
            kernels.put_right(blocks, step, outer, 0, z, buffers)

    return sweep
