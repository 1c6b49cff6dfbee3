"""The innermost level with anchor terms in one compiled call: as `innermost`, with the products that `Images` knows."""

from __future__ import annotations

from functools import partial

import numpy as np

from saddleslide.arrays import Array
from saddleslide.kernels.switch import jit_enabled, load
from saddleslide.oracles import Oracles
from saddleslide.planning import Level
from saddleslide.sliding.images import Images
from saddleslide.sliding.innermost import PRODUCTS, Above, Sweep, chunks_of, known_parts, weights_of
from saddleslide.sliding.known import known_coupling
from saddleslide.sliding.thrift import Ends, products_spared, spared_by
from saddleslide.sliding.view import View


def anchored_sweep(oracles: Oracles, level: Level, view: View, images: Images) -> Sweep | None:
    """The coupling's level with p_3 as one compiled loop; None where some part is of no known kind.

    Per active anchor an iteration takes one product besides the operator's four, and an entry one more.
    """
    problem, p_3 = oracles.problem, images.anchors
    known, coupling = known_parts(view), known_coupling(problem.coupling)
    if not jit_enabled() or known is None or coupling is None:
        return None
    kernel, alphas, n = load("anchored_sweeps").anchored_sweep, weights_of(level.T), problem.X.size
    own, held = np.array(level.term.weights, dtype=np.float64), (p_3.beta_x, p_3.beta_y, p_3.at_f, p_3.at_g)
    fold, moved, here = (np.empty(n + problem.Y.size) for _ in range(3))
    vectors = (fold, moved, here, images.scratch, images.point, images.average, images.base)

    def sweep(Gamma: float, above: Above, z: Array, average: Array, ends: Ends) -> None:
        average[:] = z
        for part in chunks_of(level.T, problem):
            length, begins, at = part.stop - part.start, int(part.start == 0), ends.of(part, level.T)
            spares = spared_by(at, z, n)
            work = partial(
                kernel, coupling, *known.sets, *known.terms, n, held, begins + at.first, length, spares, Gamma,
                level.step, alphas(part), own, above.weights, above.base, above.pull, above.slope, z, average, *vectors,
            )  # fmt: skip
            # The averages above are 0 at the first entry of a run.
            spared = products_spared(spares) + at.first * p_3.active
            oracles.products((PRODUCTS + p_3.active) * length + begins * p_3.active, work, spared)

    return sweep
