"""The innermost level with compiled halves of its steps and products in between: for norms of x that mix entries.

P^-1 of a spectral metric takes two fast transforms of the whole grid, each one batched call of SciPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from saddleslide.arrays import Array
from saddleslide.kernels.switch import load
from saddleslide.planning import Level, alpha
from saddleslide.sliding.component import Writer
from saddleslide.sliding.thrift import Ends, Thrift

if TYPE_CHECKING:
    from saddleslide.sliding.innermost import Above, Known, Sweep


def stepwise_sweep(level: Level, known: Known, write: Writer, thrift: Thrift, n: int, size: int) -> Sweep:
    """All iterations of the coupling's level; `write` gives Q, with P^-1 on its x part; x has n of `size` entries."""
    kernels = load("sweeps")
    own = np.array(level.term.weights, dtype=np.float64)
    fold, moved, q = (np.empty(size) for _ in range(3))

    def sweep(Gamma: float, above: Above, z: Array, average: Array, ends: Ends) -> None:
        average[:] = z
        kernels.folded(fold, above.pull, above.slope, *known.terms, n)
        for j in range(level.T):
            here = ends.at(j, level.T)
            scalars = kernels.step_scalars(alpha(j), Gamma, level.step, own, above.weights)
            (thrift.write_first if here.first else write)(z, q)
            kernels.approach(n, *known.sets, *known.terms, scalars, z, average, fold, q, moved)
            if here.last:
                thrift.left_out()
                return
            write(moved, q)
            kernels.put_right(n, *known.sets, scalars, z, moved, q)

    return sweep
