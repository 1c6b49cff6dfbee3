"""Proximal steps in the norm |v|_P: a step of the function's own where that is one, else a small problem in P."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from saddleslide.arrays.base import split
from saddleslide.domains.entrywise import Box, FullSpace
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.separable import prox
from saddleslide.metrics.base import Blocks, Entrywise
from saddleslide.oracles.calls import RunEnded

if TYPE_CHECKING:
    from saddleslide.arrays.base import Array
    from saddleslide.domains.base import Domain
    from saddleslide.functions.base import Function
    from saddleslide.methods.sliding.recursion import Base, Writer
    from saddleslide.metrics.base import Metric

# A step no longer than this part of the point is rounding; so many are enough for a condition number of 1e8.
_ROUNDING, _MOST = 8.0 * float(np.finfo(np.float64).eps), 200_000


def is_direct(simple: Function, metric: Metric | None, domain: Domain) -> bool:
    """Whether a step of the function's own, or a projection, is the step in the norm of the metric."""
    if metric is None or isinstance(metric, Blocks) or (isinstance(domain, FullSpace) and isinstance(simple, Zero)):
        return True
    stepwise = simple.separable_form() is not None or simple.has_entry_steps
    return isinstance(metric, Entrywise) and isinstance(domain, FullSpace | Box) and stepwise


class BlockNorms(NamedTuple):
    """Sets and their norms |v|_P, Euclidean where None. In them a recursion has P^-1 of every slope as its slope."""

    sets: Sequence[Domain]
    norms: Sequence[Metric | None]

    @property
    def are_plain(self) -> bool:
        """Whether all are Euclidean."""
        return all(metric is None for metric in self.norms)

    def invert(self, z: Array, block: int | None = None) -> None:
        """Replace the parts of a flat slope, or that of one block, by P^-1 of them."""
        for i, (metric, part) in enumerate(zip(self.norms, split(z, [Z.shape for Z in self.sets]), strict=True)):
            if metric is not None and block in (None, i):
                metric.invert(part)

    def dual(self, write: Writer) -> Writer:
        """A writer of slopes as P^-1 of them."""
        if self.are_plain:
            return write

        def write_dual(z: Array, out: Array) -> None:
            write(z, out)
            self.invert(out)

        return write_dual

    def base(self, simple: Sequence[Function]) -> Base:
        """The base case with a simple term for each block."""
        shapes = [Z.shape for Z in self.sets]

        def minimise(centers: Array, weights: Array) -> None:
            parts = zip(simple, self.norms, self.sets, split(centers, shapes), weights, strict=True)
            for term, metric, Z, part, weight in parts:
                resolve(term, metric, Z, part, float(weight))

        return minimise

    def project(self) -> Base | None:
        """The projection in the norms; None where it is the Euclidean one."""
        nothing = Zero()
        if all(is_direct(nothing, metric, Z) for metric, Z in zip(self.norms, self.sets, strict=True)):
            return None
        return self.base([nothing] * len(self.sets))


def resolve(simple: Function, metric: Metric | None, domain: Domain, x: Array, weight: float) -> None:
    """Replace x by the point v of the domain that minimises simple(v) + weight/2 |v - x|_P^2."""
    if metric is None or is_direct(simple, metric, domain):
        entries = metric.weight(1.0, 0.0) if isinstance(metric, Entrywise) else 1.0
        prox(simple, x, weight * entries, domain, out=x)
        return
    # Accelerated proximal gradients, begun anew whenever the momentum points uphill: no oracle of the problem is asked.
    L, center, t = metric.largest, x.copy(), 1.0
    point = ahead = np.array(prox(simple, center, weight * L, domain))
    for _ in range(_MOST):
        new = np.array(prox(simple, ahead - metric.product(ahead - center) / L, weight * L, domain))
        step = new - ahead
        if float(np.max(np.abs(step), initial=0.0)) <= _ROUNDING * float(np.max(np.abs(new), initial=0.0)):
            np.copyto(x, new)
            return
        if float(np.vdot(step, new - point)) < 0.0:
            t = 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        ahead, point, t = new + (t - 1.0) / following * (new - point), new, following
    raise RunEnded("NUMERICAL_LIMIT")
