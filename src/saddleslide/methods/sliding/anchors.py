"""The gradient of the anchor terms p_3 from products that are made anyway: Q of an average is the average of the Qs.

In norms P of the blocks the terms of p_3 are lengths in the dual norms, and every slope stands as P^-1 of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from saddleslide.arrays.base import Array, split, zeros
from saddleslide.arrays.state import State, XVector, YVector
from saddleslide.kernels.updates import updates
from saddleslide.oracles.oracles import Oracles


@dataclass
class Anchors(State):
    """What the anchor terms p_3 = beta_x/2 |Bx - at_g|^2 + beta_y/2 |B^T y + at_f|^2 need; off where beta is 0."""

    beta_x: float
    beta_y: float
    at_f: XVector
    at_g: YVector

    @property
    def active(self) -> int:
        """How many of the two terms are there."""
        return (self.beta_x > 0.0) + (self.beta_y > 0.0)


@final
class AnchorTerms:
    """p_3 at the points of a level, wherever among the levels the coupling stands.

    Its gradient is taken at a z + b average + base. Q(z) is part of the step, and so is Q(z~), of which the average is
    made. Q(base) takes one product per active anchor at every entry of the level. So the gradient costs one product per
    active anchor, not two. `average`, `base` and `point` hold Q of what they are called after.
    """

    def __init__(self, oracles: Oracles, anchors: Anchors, near: Array, invert: Callable[..., None]) -> None:
        problem = oracles.problem
        self.oracles, self.anchors, self.kernels, self.invert = oracles, anchors, updates(near), invert
        self.at = np.concatenate([anchors.at_f, anchors.at_g])
        invert(self.at)
        self.shapes = [problem.X.shape, problem.Y.shape]
        size = problem.X.size + problem.Y.size
        self.average, self.base, self.point, self.scratch = (zeros(size, near) for _ in range(4))

    def enter(self, base: Array, first: bool) -> None:
        """An entry of the level: products at the averages above, which have weight 0 at the first one of a run."""
        if first:
            self.base[:] = 0.0
            self.oracles.spare(self.anchors.active)
            return
        (x, y), (out_x, out_y) = split(base, self.shapes), split(self.base, self.shapes)
        if self.anchors.beta_x > 0.0:
            self.oracles.forward(x, out_y)
            np.negative(out_y, out=out_y)
        if self.anchors.beta_y > 0.0:
            self.oracles.adjoint(y, out_x)
        self.invert(self.base)

    def write_gradient(self, a: float, here: Array, b: float, out: Array) -> None:
        """The gradient of p_3 at a z + b average + base, where `here` is Q(z)."""
        p_3, point = self.anchors, self.point
        self.kernels.combine(point, b, self.average, 1.0, self.base, self.scratch)
        self.kernels.combine(point, a, here, 1.0, point, self.scratch)
        (of_y, of_x), (out_x, out_y) = split(point, self.shapes), split(out, self.shapes)
        at_f, at_g = split(self.at, self.shapes)
        if p_3.beta_x > 0.0:
            of_x += at_g
            of_x *= -p_3.beta_x
            self.oracles.adjoint(of_x, out_x)
            self.invert(out, 0)
        if p_3.beta_y > 0.0:
            of_y += at_f
            of_y *= p_3.beta_y
            self.oracles.forward(of_y, out_y)
            self.invert(out, 1)

    def follow(self, alpha: float, ahead: Array) -> None:
        """The running average with z~, where `ahead` is Q(z~)."""
        self.kernels.combine(self.average, alpha, ahead, 1.0 - alpha, self.average, self.scratch)
