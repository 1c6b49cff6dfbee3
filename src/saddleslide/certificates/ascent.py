"""A better y for what gradients have shown, and one product more where that decides.

The bound on min over x of F(x, y) that old gradients of a quadratic f give (cuts.py) is concave in y and the weights c
of the directions together, with the gradient B s - g'(y) in y at the minimiser s behind it. A y that a method has found
for a model of its own is not the best one: a few accelerated proximal steps raise the bound for two products of B each.
What is left then is the residual t that no direction reaches. A product with the Hessian along P^-1 t, P the metric of
the method, takes most of it away where P is close to the Hessian: a run may end some steps before its own y would prove
its point. Bounds are made at the new y as at any other, so nothing here has to be exact.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from saddleslide.arrays.base import inner_product, length_of, read_only
from saddleslide.certificates.candidate import Linearisation
from saddleslide.certificates.inspection import Inspection
from saddleslide.certificates.looks import FIRST_GAIN, FIRST_RAISED, AscentState
from saddleslide.domains.entrywise import FullSpace
from saddleslide.functions.separable import prox
from saddleslide.metrics.memory import Rows

if TYPE_CHECKING:
    from saddleslide.arrays.base import Array
    from saddleslide.certificates.inspection import Questions
    from saddleslide.certificates.judge import Judge
    from saddleslide.certificates.residuals import ResidualBound
    from saddleslide.metrics.base import Metric

# Accelerated steps of a climb, and the part of the Lipschitz constant that they go by: they are stable up to 3/4.
_STEPS, _STABLE = 8, 0.75
# What a climb and a product are hoped for in any case; a gap of so many targets is worth another climb.
_LEAST, _NEARLY = 1.2, 1.3


class Ascent(AscentState):
    """Raises lower bounds where f is a quadratic and g has a proximal step."""

    def __init__(self, asked: Questions, below: ResidualBound) -> None:
        super().__init__()
        self.asked, self.below = asked, below

    def hopes(self, ratio: float, rate: float) -> bool:
        """Whether the gap may be divided by so much, and not by the next step at this rate if that costs a product."""
        reach = self.raised * (self.gain if ratio > self.raised and self.may_spend(ratio, rate) else 1.0)
        return 1.0 < ratio <= reach

    def may_spend(self, ratio: float, rate: float) -> bool:
        """Whether a product with the Hessian may be made, where no set is in its way: to save steps at a known rate."""
        asked = self.asked
        is_affordable = asked.oracles.calls.f + 1.0 <= asked.f_allowance and asked.left("f") >= 2.0
        return is_affordable and isinstance(asked.problem.X, FullSpace) and 0.0 < rate < math.log(ratio)

    def raise_lower(self, judge: Judge, at: Inspection) -> None:
        known, rate = at.candidate.linearisation, judge.looks.rate
        rough = at.value + at.coupled - at.g_value
        if known is None or not self.hopes(judge.part_of_target(min(rough, judge.upper)), rate):
            return
        judge.lower_upper_exactly(at)
        first = judge.part_of_target(judge.upper)
        if not self.hopes(first, rate):
            return
        # Of two points of y the one with the better bound.
        higher = self._raised(judge, at, known, at.y if at.lower >= judge.lower else judge.y)
        if higher is None:
            return
        second = judge.part_of_target(judge.upper)
        self.raised = _learnt(first / second, FIRST_RAISED) if second > 0.0 else self.raised
        other = None
        if 1.0 < second <= self.gain and self.may_spend(first, rate):
            other = self.spend(known, higher.pull, at.candidate.metric)
        elif not 1.0 < second <= _NEARLY:
            return
        if other is not None:
            judge.pair_f.look(other)
        self._raised(judge, at, known, higher.y)
        third = judge.part_of_target(judge.upper)
        self.gain = self.gain if other is None or third <= 0.0 else _learnt(second / third, FIRST_GAIN)

    def _raised(self, judge: Judge, at: Inspection, known: Linearisation, y: Array) -> Inspection | None:
        """A candidate with the y that a climb leads to, whose bound has been made."""
        pull = at.pull if y is at.y else None
        candidate = replace(at.candidate, y=y, Bx=at.Bx, BTy=pull, g_value=None, g_error=None)
        y_above = self.climb(Inspection(candidate, self.asked), known)
        if y_above is None:
            return None
        higher = Inspection(replace(candidate, y=y_above, BTy=None), self.asked)
        judge.raise_lower_by_gradient(higher)
        return higher

    def climb(self, at: Inspection, known: Linearisation) -> Array | None:
        """The y that some accelerated steps lead to from that of an inspection; None where none can be made."""
        asked, below, coupling = self.asked, self.below, self.asked.problem.coupling
        # A norm is never bounded for this alone.
        is_known = coupling.norm_at_hand or coupling.product_error > 0.0
        if not (below.cuts.ways and is_known and asked.left("B") > 2 * _STEPS + 2) or below.has_factor(known):
            return None
        weight = _STABLE * coupling.norm.upper**2 / below.modulus
        if not 0.0 < weight < math.inf:
            return None
        model, y, ahead, t = Model(below, known, below.weights_at(at.pull, known)), at.y, at.y, 1.0
        for k in range(_STEPS):
            pull = asked.oracles.adjoint(ahead) if k else at.pull
            reply = asked.oracles.forward(model.respond(pull))
            new = prox(asked.split.g_simple, ahead + reply / weight, weight, asked.problem.Y)
            step = new - y
            after = 1.0 if inner_product(ahead - new, step) > 0.0 else 0.5 + math.sqrt(0.25 + t * t)
            y, ahead, t = new, new + (t - 1.0) / after * step, after
        return y

    def spend(self, known: Linearisation, pull: Array, metric: Metric | None) -> Linearisation | None:
        """One product with the Hessian, along what is left of the slope: as a gradient elsewhere."""
        rest, way = self.asked.split.f_rest, self.below.left_over(pull, known)
        # As far away as the point is large, so that rounding of the gradients says little.
        length = known.sizes[0] or length_of(way) / self.below.modulus
        if metric is not None:
            way = metric.from_basis(metric.solve(metric.to_dual(way), 1.0, 0.0))
        size = length_of(way)
        if not 0.0 < size < math.inf:
            return None
        point = known.point + length / size * way
        found = self.asked.oracles.made("f", 1, lambda: rest.value_and_gradient(read_only(point)))
        other = Linearisation(point, *found)
        self.below.remember_beside(known, other)
        return other


def _learnt(factor: float, first: float) -> float:
    """What a factor says of the next one."""
    return min(max(factor, _LEAST), 2.0 * first)


class Model:
    """The minimiser s behind a bound, and the weights c that it is best for, as y moves."""

    def __init__(self, below: ResidualBound, known: Linearisation, weights: Array) -> None:
        self.below, self.known, self.weights, mu, cuts = below, known, weights, below.modulus, below.cuts
        self.reach = Rows([way - turn / mu for way, turn in zip(cuts.ways, cuts.turns, strict=True)])
        self.across, self.inverse = self.reach.products(Rows(cuts.ways)), cuts.inverse(mu)

    def respond(self, pull: Array) -> Array:
        """The minimiser for B^T y, at weights that are best for it where x is free, and better ones elsewhere."""
        below, point, mu = self.below, self.known.point, self.below.modulus
        down = (self.known.gradient + pull) / -mu
        if below.is_free:
            self.weights = -mu * (self.inverse @ self.reach.along(down))
            return point + down + self.reach.combine(self.weights)
        s, _ = below.respond(point + down + self.reach.combine(self.weights))
        up = self.across @ self.weights - self.reach.along(s - point)
        self.weights = self.weights + mu * (self.inverse @ up)
        return below.respond(point + down + self.reach.combine(self.weights))[0]
