"""What happens inside one step on f: the coupling, and g where it has no proximal step.

Three ways, one verb. A g with a proximal step needs the coupling loop alone. A costly g is linearised, again and again
within a step if once is not enough; or, in entrywise metrics, slid in its own turn: adaptive sliding on g, the roles of
x and y exchanged, with momentum and curvature of its own, so that its gradients grow like the root of its condition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, final

import numpy as np

from saddleslide.certificates.candidate import Linearisation
from saddleslide.methods.base import State
from saddleslide.methods.sliding.coupling_loop import CouplingLoop, CouplingProblem, DualModel
from saddleslide.oracles.calls import MOST_SHORTENED, SHORTER

if TYPE_CHECKING:
    from saddleslide.arrays.base import Array
    from saddleslide.arrays.state import XArray, YArray
    from saddleslide.methods.adaptive_sliding import Iterate, Iteration
    from saddleslide.metrics import Entrywise

    # Sliding on g is seen from y.
    MirroredIterate: TypeAlias = Iterate

# Inner work is never more than this, nor to a smaller tolerance.
_MOST_STEPS, _LEAST_TOLERANCE = 4096, 1e-3
# A costly g is linearised again when the error of its model exceeds this part of the dual step.
_MODEL_ERROR = 0.1


@dataclass
class Work(State):
    """How hard to work inside a step, and what the last one knew that the next need not ask for.

    At most `steps` steps on the coupling, or on g where that is slid, and no more below `tolerance` of the way. `known`
    are products; value, slope and curvature a model of a linearised g at the last y; `inside` is where sliding on g is.
    """

    steps: int
    tolerance: float
    known: tuple[tuple[YArray, XArray], ...] = ()
    value: float = math.nan
    slope: YArray | None = None
    curvature: float = 0.0
    inside: MirroredIterate | None = None

    def harder(self) -> Work:
        """Twice the work from now on, to half the tolerance."""
        tolerance = max(0.5 * self.tolerance, min(self.tolerance, _LEAST_TOLERANCE))
        inside = None if self.inside is None else replace(self.inside, work=self.inside.work.harder())
        return replace(self, steps=min(2 * self.steps, _MOST_STEPS), tolerance=tolerance, inside=inside)


class Inside(NamedTuple):
    """What the inside of a step has found: coordinates of x, x and y, products, and what is known of a costly g."""

    X: Array
    x: Array
    y: Array
    Bx: Array | None
    BTy: Array | None
    g_value: float | None = None
    g_linearisation: Linearisation | None = None
    g_error: float | None = None


@final
class Proximal:
    """g by its proximal step, possibly beside a fixed model: the coupling loop does it all."""

    def __init__(self, loop: CouplingLoop, steps: int, tolerance: float) -> None:
        self.loop, self.first = loop, Work(steps, tolerance)

    def begin(self, x: Array, y: Array) -> Work:
        """The work as it begins at a point."""
        return self.first

    def solve(self, step: CouplingProblem, work: Work) -> tuple[Inside, Work]:
        """What a step on f finds, f being a linear model there; and the work of the next one."""
        found = self.loop.solve(step, work.steps, work.tolerance, work.known)
        return Inside(found.X, found.x, found.y, found.Bx, found.BTy), replace(work, known=found.known)


@final
class Linearised:
    """A costly g linearised at y, and again while the error of its model exceeds a part of the dual step."""

    def __init__(self, loop: CouplingLoop, steps: int, tolerance: float) -> None:
        self.loop, self.first = loop, Work(steps, tolerance)
        self.oracles, self.g = loop.oracles, loop.split.g_rest

    def begin(self, x: Array, y: Array) -> Work:
        """As in `Proximal`."""
        value, slope = self.oracles.g_value_and_gradient(self.g, y)
        return replace(self.first, value=value, slope=slope)

    def solve(self, step: CouplingProblem, work: Work) -> tuple[Inside, Work]:
        """As in `Proximal`."""
        (X, y), left, shortened = step.origin, work.steps, 0
        center = y
        while True:
            assert work.slope is not None
            model = DualModel(work.slope, work.curvature, center)
            found = self.loop.solve(replace(step, start=(X, y), model=model), left, work.tolerance, work.known)
            X, y, left, work = found.X, found.y, left - found.taken, replace(work, known=found.known)
            known = partial(self._known, y)
            answer = self.oracles.tried(known) if shortened < MOST_SHORTENED else known()
            if answer is None:
                # g overflows there, and is finite at the center: nearer to that.
                shortened, left, (X, y) = shortened + 1, work.steps, (step.origin[0], center)
                work = replace(work, curvature=SHORTER * max(work.curvature, 1.0 / step.rho))
                continue
            value, slope = answer
            way = y - center
            square = float(np.vdot(way, way))
            distance = max(value - work.value - float(np.vdot(model.slope, way)), 0.0)
            error = float(np.linalg.norm(slope - model.slope - work.curvature * way))
            curvature = max(2.0 * distance / square if square > 0.0 else 0.0, 0.5 * work.curvature)
            work = replace(work, value=value, slope=slope, curvature=curvature)
            travelled = float(np.linalg.norm(y - step.origin[1]))
            center = y
            if left <= 0 or step.rho * error <= _MODEL_ERROR * travelled:
                break
        return Inside(X, found.x, y, found.Bx, found.BTy, value, Linearisation(y, value, slope)), work

    def _known(self, y: Array) -> tuple[float, Array]:
        """Value and slope at y, both finite."""
        value, slope = self.oracles.g_value_and_gradient(self.g, y)
        if not math.isfinite(value):
            raise self.oracles.not_finite("g", y)
        return value, slope


@final
class Slid:
    """A costly g as the outer function of adaptive sliding on the linearised step, seen from y."""

    def __init__(self, iteration: Iteration, metric: Entrywise, steps: int, tolerance: float) -> None:
        self.iteration, self.metric, self.steps, self.tolerance = iteration, metric, steps, tolerance

    def begin(self, x: Array, y: Array) -> Work:
        """As in `Proximal`."""
        return Work(self.steps, self.tolerance, inside=self.iteration.begin(y, x))

    def solve(self, step: CouplingProblem, work: Work) -> tuple[Inside, Work]:
        """As in `Proximal`."""
        inside = work.inside
        assert inside is not None
        model = DualModel(step.gradient, self.metric.weight(step.L, 0.0), step.center)
        for taken in range(1, work.steps + 1):
            before = inside
            inside, found = self.iteration.step(before, beside=model)
            x, y = found.y, found.x
            if not self.iteration.oracles.finite(x, y):
                break
            change = step.L * self.metric.squared_norm(x - before.y) + inside.L * _square(y - before.here.x)
            way = step.L * self.metric.squared_norm(x - step.origin[0]) + inside.L * _square(y - step.origin[1])
            if taken >= 2 and change <= work.tolerance**2 * way:
                break
        # From y's side the coupling is -B^T, and x is its dual variable.
        Bx = None if found.BTy is None else -found.BTy
        BTy = None if found.Bx is None else -found.Bx
        of_g = found.value, found.linearisation, found.error
        return Inside(x, x, y, Bx, BTy, *of_g), replace(work, inside=inside)


Inner = Proximal | Linearised | Slid


def _square(v: Array) -> float:
    return float(np.vdot(v, v))
