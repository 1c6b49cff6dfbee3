"""The innermost level with anchor terms in one compiled call: as `innermost`, with the products that `Images` knows."""

from __future__ import annotations

from functools import partial

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.kernels import arguments
from saddleslide.kernels.arguments import Above, Anchoring, Buffers
from saddleslide.kernels.switch import jit_enabled
from saddleslide.methods.sliding.images import Images
from saddleslide.methods.sliding.innermost import (
    PRODUCTS,
    Outer,
    Sweep,
    chunks_of,
    kernels_for,
    own_weights,
    weights_of,
)
from saddleslide.methods.sliding.known import known_parts
from saddleslide.methods.sliding.thrift import Ends, products_spared, spared_by
from saddleslide.methods.sliding.view import View
from saddleslide.oracles.oracles import Oracles
from saddleslide.theory import Level


def anchored_sweep(oracles: Oracles, level: Level, view: View, images: Images) -> Sweep | None:
    """The coupling's level with p_3 as one compiled loop; None where some part is of no known kind.

    Per active anchor an iteration takes one product besides the operator's four, and an entry one more.
    """
    problem, p_3, parts = oracles.problem, images.anchors, known_parts(view)
    if not jit_enabled() or parts is None:
        return None
    kernel = kernels_for(parts, "sweeps").anchored_sweep
    alphas, own, size = weights_of(level.T), own_weights(level), parts.n + problem.Y.size
    buffers = Buffers(np.empty(size), np.empty(size), images.scratch)
    anchors = Anchoring(
        p_3.beta_x, p_3.beta_y, p_3.at_f, p_3.at_g, np.empty(size), images.point, images.average, images.base
    )

    def sweep(Gamma: float, above: Outer, z: Array, average: Array, ends: Ends) -> None:
        average[:] = z
        outer = Above(above.base, above.pull, above.slope, above.weights)
        for part in chunks_of(level.T, problem):
            length, begins, at = part.stop - part.start, int(part.start == 0), ends.of(part, level.T)
            spares = spared_by(at, z, parts.n)
            steps = arguments.Level(Gamma, level.step, own, alphas(part), spares)
            work = partial(kernel, parts, anchors, steps, outer, z, average, buffers, begins + at.first)
            # The averages above are 0 at the first entry of a run.
            spared = products_spared(spares) + at.first * p_3.active
            oracles.products((PRODUCTS + p_3.active) * length + begins * p_3.active, work, spared)

    return Sweep(sweep)
