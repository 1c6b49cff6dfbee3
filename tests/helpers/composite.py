"""A recursion with proximal steps of its own, written against the paper alone."""

from __future__ import annotations

import itertools

import numpy as np

from saddleslide.methods.sliding import Recursion


class Composite(Recursion):
    """The recursion with thresholds |x|_1 and |y|_1 in the base case, and, wrongly, in the correction if asked."""

    def __init__(self, *arguments, thresholds, in_correction=False):
        super().__init__(*arguments)
        self.thresholds, self.in_correction = thresholds, in_correction

    def prox(self, center, weights):
        parts = [slice(*edges) for edges in itertools.pairwise(self.edges)]
        for part, threshold, weight in zip(parts, self.thresholds, weights, strict=True):
            center[part] = np.sign(center[part]) * np.maximum(np.abs(center[part]) - threshold / weight, 0.0)
        return self.domain.project(center)

    def _resolve(self, above):
        weights = np.repeat(above.weights, self.sizes)
        self.solution[:] = self.prox((above.pull - above.slope) / weights, above.weights)
        return self.solution

    def _correct(self, level, eta, ahead):
        super()._correct(level, eta, ahead)
        if self.in_correction and level.write_operator is not None:
            level.iterate[:] = self.prox(level.iterate, eta * level.own_weights)
