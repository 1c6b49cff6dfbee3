"""The innermost level with primal-dual steps: two products each, the same bound (docs/theory.md)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias, final

import numpy as np

from saddleslide.arrays.base import Array, on_host, zeros
from saddleslide.kernels import arguments
from saddleslide.kernels.arguments import ZERO_Y, Above, Differences, DualBuffers, Parts
from saddleslide.kernels.switch import jit_enabled, updates
from saddleslide.methods.sliding.innermost import (
    Outer,
    Sweep,
    bands_of,
    chunks_of,
    kernels_for,
    own_weights,
    weights_of,
)
from saddleslide.methods.sliding.known import known_parts
from saddleslide.methods.sliding.thrift import Ends, spared_by
from saddleslide.methods.sliding.view import View
from saddleslide.oracles.oracles import Oracles
from saddleslide.theory import Level
from saddleslide.theory import alpha as alpha_of

PRODUCTS = 2
# Some steps, with the levels above, of z and its average.
_Call: TypeAlias = Callable[[arguments.Level, Above, Array, Array], None]


@final
class PrimalDualLevel(Sweep):
    """All iterations of the coupling's level, where it is the innermost one.

    x+ is the base case of x with B^T (y + theta (y - y_previous)), y+ that of y with B x+. Steps are numbered along the
    whole run, and theta is the ratio of their etas, so the last step of y and its eta stay from one entry to the next.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> box, q = ss.domains.Box(-1.0, 1.0, shape=3), ss.functions.Quadratic(1.0)
    >>> problem = ss.SaddleProblem(f=q, g=q, B=np.eye(3), X=box, Y=box)
    >>> plan = ss.plan(problem, order="fgB", loops=(4, 2, 3), coupling_step="primal-dual")
    >>> ss.run(problem, plan, start=(np.ones(3), np.ones(3))).method_calls
    Calls(f=4, g=8, B=48)
    """

    def __init__(self, oracles: Oracles, level: Level, view: View, near: Array) -> None:
        problem = oracles.problem
        self.oracles, self.level, self.view, self.n = oracles, level, view, problem.X.size
        self.shapes = [problem.X.shape, problem.Y.shape]
        self.alphas, self.own = weights_of(level.T), own_weights(level)
        size = problem.X.size + problem.Y.size
        self.fold, self.q = zeros(size, near), zeros(size, near)
        self.lag, self.eta = zeros(problem.Y.size, near), math.inf
        self.parts = known_parts(view) if jit_enabled() and on_host(near) else None
        self.blocks, self.kernels = view.blocks(), updates(near)
        self.scratch = zeros(size if self.parts is None else 0, near)
        self.sweep = None if self.parts is None else self._compiled_sweep(self.parts)

    def _compiled_sweep(self, parts: Parts) -> _Call:
        """Some steps of an entry: they share passes over a large picture, or are made one after the other."""
        kernels = kernels_for(parts, "pictures" if isinstance(parts.coupling, Differences) else "sweeps")
        given: tuple[Any, ...]
        if isinstance(parts.coupling, Differences):
            rows, columns = parts.coupling
            sweep, given = kernels.picture_sweep, (parts, bands_of(parts, self.level.T))
            margins = np.zeros(rows + 2 * columns)
        else:
            sweep, given, margins = kernels.primal_dual_sweep, (parts,), np.zeros(0)

        def steps(level: arguments.Level, above: Above, z: Array, average: Array) -> None:
            buffers = DualBuffers(self.lag, self.fold, self.q, margins)
            self.eta = sweep(*given, level, above, z, average, buffers, self.eta)

        return steps

    def save(self) -> tuple[Array | None, float]:
        return self.lag.copy(), self.eta

    def load(self, lag: Array | None, eta: float) -> None:
        assert lag is not None
        self.lag[:], self.eta = lag, float(eta)

    @property
    def compiled(self) -> bool:
        """Whether all steps of an entry are one compiled call."""
        return self.sweep is not None

    def __call__(self, Gamma: float, above: Outer, z: Array, average: Array, ends: Ends) -> None:
        average[:] = z
        # Of what a run may spare there is B^T y at the start: no step has a correction.
        spares = spared_by(ends, z, self.n) & ZERO_Y
        if self.sweep is None:
            self._step_by_step(Gamma, above, z, average, spares)
            return
        outer = Above(above.base, above.pull, above.slope, above.weights)
        for part in chunks_of(self.level.T, self.oracles.problem):
            length, here = part.stop - part.start, spares if part.start == 0 else 0
            level = arguments.Level(Gamma, self.level.step, self.own, self.alphas(part), here)
            self.oracles.products(PRODUCTS * length, partial(self.sweep, level, outer, z, average), int(here > 0))

    def _step_by_step(self, Gamma: float, above: Outer, z: Array, average: Array, spares: int) -> None:
        np.subtract(above.pull, above.slope, out=self.fold)
        (fold_x, fold_y), (q_x, q_y), (x, y) = ((v[: self.n], v[self.n :]) for v in (self.fold, self.q, z))
        for j in range(self.level.T):
            alpha = alpha_of(j)
            eta = Gamma * alpha * self.level.step
            etas = eta * self.own
            weights = etas + above.weights
            if spares and j == 0:
                q_x[:] = 0.0
                self.oracles.spare(1)
            else:
                self.kernels.combine(q_y, 1.0, y, eta / self.eta, self.lag, self.scratch[self.n :])
                self._adjoint(q_y, q_x)
            self._resolve(0, x, etas[0], fold_x, -1.0, q_x, weights[0])
            self._forward(x, q_y)
            self.lag[:] = y
            self._resolve(1, y, etas[1], fold_y, 1.0, q_y, weights[1])
            np.subtract(y, self.lag, out=self.lag)
            self.kernels.combine(average, alpha, z, 1.0 - alpha, average, self.scratch)
            self.eta = eta

    def _adjoint(self, y: Array, out: Array) -> None:
        x = out.reshape(self.shapes[0])
        self.oracles.adjoint(y.reshape(self.shapes[1]), x)
        if self.view.metric is not None:
            self.view.metric.invert(x)

    def _forward(self, x: Array, out: Array) -> None:
        self.oracles.forward(x.reshape(self.shapes[0]), out.reshape(self.shapes[1]))

    def _resolve(self, block: int, v: Array, eta: float, fold: Array, sign: float, q: Array, weight: float) -> None:
        """Write v = the base case around (eta v + fold + sign q) / weight."""
        scratch = self.scratch[: v.size]
        self.kernels.combine(v, eta / weight, v, 1.0 / weight, fold, scratch)
        self.kernels.combine(v, 1.0, v, sign / weight, q, scratch)
        self.blocks[block](v.reshape(self.shapes[block]), float(weight))
