"""The innermost level with anchor terms: products of averaged points are the same averages of products made already."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, final

import numpy as np

from saddleslide.arrays import Array, on_host, zeros
from saddleslide.kernels.switch import jit_enabled, load
from saddleslide.oracles import Oracles
from saddleslide.planning import Level
from saddleslide.planning import alpha as alpha_of
from saddleslide.sliding.innermost import PRODUCTS, Above, Anchors, chunks_of, known_parts, weights_of
from saddleslide.sliding.known import known_coupling
from saddleslide.sliding.thrift import Ends, Thrift, products_spared, spared_by
from saddleslide.sliding.view import View

if TYPE_CHECKING:
    from saddleslide.sliding.component import Writer


@final
class AnchoredLevel:
    """All iterations of the coupling's level with p_3, where it is the innermost one and x has no norm of its own.

    Per active anchor an iteration takes one product besides the operator's four, and an entry one more. B at the point
    of p_3' is a combination of B at z, at the average and at the averages of the levels above.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> free, q = ss.domains.FullSpace(2), ss.functions.Quadratic([1.0, 4.0])
    >>> problem = ss.SaddleProblem(f=q, g=q, B=2.0 * np.eye(2), X=free, Y=free)
    >>> options = dict(regime="restarts", anchors=True, start=(np.ones(2), np.ones(2)))
    >>> plan = ss.plan(problem, 1e-2, **options)
    >>> ss.run(problem, plan, start=options["start"]).success
    True
    """

    def __init__(
        self, oracles: Oracles, level: Level, view: View, anchors: Anchors, operator: Writer, thrift: Thrift,
        near: Array,
    ) -> None:  # fmt: skip
        problem = oracles.problem
        self.oracles, self.level, self.view, self.anchors, self.operator = oracles, level, view, anchors, operator
        self.thrift = thrift
        self.n, self.shapes = problem.X.size, [problem.X.shape, problem.Y.shape]
        size = problem.X.size + problem.Y.size
        self.alphas = weights_of(level.T)
        self.own = np.array(level.term.weights, dtype=np.float64)
        self.fold, self.moved, self.here, self.q, self.point = (zeros(size, near) for _ in range(5))
        self.image, self.base_image = zeros(size, near), zeros(size, near)
        self.known = known_parts(view) if jit_enabled() and on_host(near) else None
        self.coupling = known_coupling(problem.coupling) if self.known is not None else None
        self.blocks = view.blocks()
        self.sweep = load("anchored_sweeps").anchored_sweep if self.coupling is not None else None

    @property
    def compiled(self) -> bool:
        """Whether all steps of an entry are one compiled call."""
        return self.coupling is not None

    def __call__(self, Gamma: float, above: Above, z: Array, average: Array, ends: Ends) -> None:
        average[:] = z
        if self.coupling is None:
            self._step_by_step(Gamma, above, z, average, ends)
        else:
            self._at_once(Gamma, above, z, average, ends)

    def _at_once(self, Gamma: float, above: Above, z: Array, average: Array, ends: Ends) -> None:
        sweep, known, p_3 = self.sweep, self.known, self.anchors
        assert known is not None and sweep is not None
        held = (p_3.beta_x, p_3.beta_y, p_3.at_f, p_3.at_g)
        scratch = (self.fold, self.moved, self.here, self.q, self.point, self.image, self.base_image)
        for part in chunks_of(self.level.T, self.oracles.problem):
            length, entry = part.stop - part.start, int(part.start == 0)
            here = ends.of(part, self.level.T)
            spares = spared_by(here, z, self.n)
            work = partial(
                sweep, self.coupling, *known.sets, *known.terms, self.n, held, entry + here.first, length, spares,
                Gamma, self.level.step, self.alphas(part), self.own, above.weights, above.base, above.pull,
                above.slope, z, average, *scratch,
            )  # fmt: skip
            # The averages above are 0 at the first entry of a run.
            spared = products_spared(spares) + here.first * p_3.active
            self.oracles.products((PRODUCTS + p_3.active) * length + entry * p_3.active, work, spared)

    def _step_by_step(self, Gamma: float, above: Above, z: Array, average: Array, ends: Ends) -> None:
        np.subtract(above.pull, above.slope, out=self.fold)
        if ends.first:
            self.base_image[:] = 0.0
            self.oracles.spare(self.anchors.active)
        else:
            self._write_image(above.base, self.base_image)
        for j in range(self.level.T):
            alpha, at = alpha_of(j), ends.at(j, self.level.T)
            (self.thrift.write_first if at.first else self.operator)(z, self.here)
            if j == 0:
                self.image[:] = self.here
            point = Gamma * alpha * self.here + Gamma * (1.0 - alpha) * self.image + self.base_image
            etas = Gamma * alpha * self.level.step * self.own
            ahead = self._base_case(z, self.here + self._anchor_slope(point), etas, etas + above.weights)
            average *= 1.0 - alpha
            average += alpha * ahead
            if at.last:
                self.thrift.left_out()
                return
            self.operator(z - ahead, self.q)
            self.image *= 1.0 - alpha
            self.image += alpha * (self.here - self.q)
            for block, part in enumerate(self._parts()):
                z[part] = ahead[part] + self.q[part] / etas[block]
            self._project(z)

    def _parts(self) -> tuple[slice, slice]:
        return slice(0, self.n), slice(self.n, None)

    def _base_case(self, z: Array, slope: Array, etas: Array, weights: Array) -> Array:
        center = self.fold - slope
        for block, part in enumerate(self._parts()):
            center[part] += etas[block] * z[part]
            center[part] /= weights[block]
            self.blocks[block](center[part].reshape(self.shapes[block]), float(weights[block]))
        return center

    def _project(self, z: Array) -> None:
        problem = self.oracles.problem
        for domain, part, shape in zip((problem.X, problem.Y), self._parts(), self.shapes, strict=True):
            v = z[part].reshape(shape)
            domain.project(v, out=v)

    def _write_image(self, v: Array, out: Array) -> None:
        """The parts of Q(v) that active anchors need."""
        x, y = (v[part].reshape(shape) for part, shape in zip(self._parts(), self.shapes, strict=True))
        if self.anchors.beta_x > 0.0:
            np.negative(self.oracles.forward(x).ravel(), out=out[self.n :])
        if self.anchors.beta_y > 0.0:
            out[: self.n] = self.oracles.adjoint(y).ravel()

    def _anchor_slope(self, image: Array) -> Array:
        """The gradient of p_3 from Q at its point."""
        p_3, n, slope = self.anchors, self.n, np.zeros_like(image)
        if p_3.beta_x > 0.0:
            away = p_3.beta_x * (-image[n:] - p_3.at_g)
            slope[:n] = self.oracles.adjoint(away.reshape(self.shapes[1])).ravel()
        if p_3.beta_y > 0.0:
            away = p_3.beta_y * (image[:n] + p_3.at_f)
            slope[n:] = self.oracles.forward(away.reshape(self.shapes[0])).ravel()
        return slope
