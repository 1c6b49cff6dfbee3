"""A memory of cuts: what gradients at old points say together, at no call.

Of a quadratic h with h'' >= mu, differences of gradients along differences of points are exact products with h''. With
unit directions D and T = h'' D, the bound of residuals.py holds at every point z = x + D c, with t = r + T c there:

    h(x) + <q, x> + <r, D c> + <c, D^T T c> / 2 + min over s of <t, s - z> + mu/2 |s - z|^2 + simple(s),

where r = h'(x) + q. It is concave in c, with the gradient (T - mu D)^T (s - z) at the minimiser s. Nothing in it
depends on q but r: directions that were met with other y are as good.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from saddleslide.arrays.base import Array, inner_product, length_of
from saddleslide.certificates.candidate import Linearisation
from saddleslide.certificates.residuals import CutState
from saddleslide.functions.roundings import FEW

# Directions that are kept: more add little, since the last ones are along those in which the residual still lies.
_MOST = 12
# Points nearer than this part of their size have no direction; curvatures below this part of the largest no inverse.
_SAME, _SINGULAR = 1e-14, 1e-13
# Steps of an ascent on a set; one that raises the bound by less than this part of the first is the last.
_ROUNDS, _LITTLE = 4, 0.02


class Peak(NamedTuple):
    """Weights of the directions at which a bound is large, and the bound there less h(x) + <q, x>, but for rounding."""

    weights: Array
    level: float


class Cuts(CutState):
    """Directions along which a quadratic is known."""

    def __init__(self) -> None:
        super().__init__()
        # <D_i, T_j> and <T_i, T_j>; can be had again from the directions.
        self._bent, self._turned = np.zeros((0, 0)), np.zeros((0, 0))

    def add(self, known: Linearisation, error: float) -> None:
        """One more gradient, whose rounding is bounded by `error`: the direction from the last point to this one."""
        last, before = self.last, self.last_error
        if last is not None and last.point is known.point:
            return
        self.last, self.last_error = known, error + FEW * known.sizes[1]
        if last is not None:
            self._join(last, known, self.last_error + before)

    def add_beside(self, known: Linearisation, other: Linearisation, error: float) -> None:
        """The direction between two points, which the next one does not begin at; both gradients round by `error`."""
        self._join(known, other, error + FEW * (known.sizes[1] + other.sizes[1]))

    def _join(self, first: Linearisation, last: Linearisation, error: float) -> None:
        way = last.point - first.point
        size = length_of(way)
        if _SAME * (1.0 + last.sizes[0]) < size < math.inf:
            self._keep(way / size, (last.gradient - first.gradient) / size, error / size)

    def _keep(self, way: Array, turn: Array, noise: float) -> None:
        if len(self.ways) == _MOST:
            del self.ways[0], self.turns[0], self.noise[0]
            self._bent, self._turned = self._bent[1:, 1:], self._turned[1:, 1:]
        self.ways, self.turns = [*self.ways, way], [*self.turns, turn]
        self.noise = [*self.noise, noise]

    def _products(self) -> tuple[Array, Array]:
        """Inner products of directions and turns; only those of new directions are made."""
        count = len(self.ways)
        for k in range(len(self._bent), count):
            bent = [inner_product(way, self.turns[k]) for way in self.ways[: k + 1]]
            turned = [inner_product(turn, self.turns[k]) for turn in self.turns[: k + 1]]
            self._bent, self._turned = _border(self._bent, bent), _border(self._turned, turned)
        return self._bent, self._turned

    def peak(self, slope: Array, mu: float) -> Peak | None:
        """Where the bound on the whole space is largest, for the slope r; None where no direction is known."""
        if not self.ways:
            return None
        bent, turned = self._products()
        along, across = (np.array([inner_product(row, slope) for row in rows]) for rows in (self.ways, self.turns))
        up = along - across / mu
        weights = self._solution(turned / mu - bent, up, mu)
        return Peak(weights, 0.5 * float(weights @ up) - inner_product(slope, slope) / (2.0 * mu))

    def peak_within(
        self, slope: Array, point: Array, mu: float, respond: Callable[[Array], tuple[Array, float]], clips: bool
    ) -> Peak | None:
        """The same on a set: `respond` maps v to the minimiser s of simple + mu/2 |. - v|^2 over it, and simple(s).

        With J the derivative of s, 0 <= J <= 1, the bound curves as -(T - mu D)^T (D + J (T - mu D) / mu). J = 1 gives
        steps that always raise it. Where the set `clips` entries one by one, J is known, and Newton steps are tried
        first.
        """
        if not self.ways:
            return None
        bent, turned = self._products()
        W = [turn - mu * way for way, turn in zip(self.ways, self.turns, strict=True)]
        straight = bent - mu * _inner(self.ways, self.ways)

        def at(weights: Array) -> tuple[float, Array, Array]:
            """The bound, s - z, and which entries of s move with v."""
            move, turn, _ = self.at(weights)
            z, tilt = point + move, slope + turn
            v = z - tilt / mu
            s, last = respond(v)
            step = s - z
            level = inner_product(slope, move) + 0.5 * float(weights @ bent @ weights) + last
            return level + inner_product(tilt, step) + 0.5 * mu * inner_product(step, step), step, s == v

        weights = np.zeros(len(W))
        level, step, free = at(weights)
        start = level
        for _ in range(_ROUNDS):
            up = _inner(W, [step])[:, 0]
            curvatures = [turned / mu - bent]
            if clips:
                curvatures.insert(0, straight + _inner([row * free for row in W], W) / mu)
            for curvature in curvatures:
                trial = weights + self._solution(curvature, up, mu)
                found = at(trial)
                if found[0] > level:
                    break
            else:
                break
            gained, same = found[0] - level, clips and np.array_equal(found[2], free)
            weights, (level, step, free) = trial, found
            if same or gained <= _LITTLE * (level - start):
                break
        return Peak(weights, level)

    def inverse(self, mu: float) -> Array:
        """Of the curvature of the bound in the weights on the whole space; on a set that is less."""
        bent, turned = self._products()
        values, vectors = self._decompose(turned / mu - bent, mu)
        return np.asarray(vectors / values @ vectors.T)

    def _solution(self, curvature: Array, up: Array, mu: float) -> Array:
        """The Newton step."""
        values, vectors = self._decompose(curvature, mu)
        step: Array = vectors @ ((vectors.T @ up) / values)
        return step

    def _decompose(self, curvature: Array, mu: float) -> tuple[Array, Array]:
        """Eigenvalues and vectors. Directions that hardly differ, or along which the curvature is mu, are left out."""
        noise = np.array(self.noise)
        curvature = 0.5 * (curvature + curvature.T)
        curvature[np.diag_indices_from(curvature)] += len(noise) * noise**2 / mu
        values, vectors = np.linalg.eigh(curvature)
        good = values > _SINGULAR * float(self._turned.diagonal().max()) / mu
        return values[good], vectors[:, good]

    def at(self, weights: Array) -> tuple[Array, Array, float]:
        """The sum of the directions with these weights, the Hessian along it, and a bound on the rounding of that."""
        parts = list(zip(weights.tolist(), self.ways, self.turns, strict=True))
        (first, way, turn), rest = parts[0], parts[1:]
        move, turned = first * way, first * turn
        for weight, way, turn in rest:
            move, turned = move + weight * way, turned + weight * turn
        return move, turned, float(np.array(self.noise) @ np.abs(weights))


def _inner(rows: list[Array], others: list[Array]) -> Array:
    """Inner products, on the host wherever the arrays lie."""
    return np.array([[inner_product(row, other) for other in others] for row in rows])


def _border(square: Array, row: list[float]) -> Array:
    """A symmetric matrix with one more row and column."""
    size = len(row)
    made = np.empty((size, size))
    made[:-1, :-1], made[-1, :], made[:, -1] = square, row, row
    return made
