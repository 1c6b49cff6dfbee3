"""A memory of cuts: what gradients at old points say together, at no call.

Of a quadratic h with h'' >= mu, differences of gradients along differences of points are exact products with h''. With
unit directions D and T = h'' D, the bound of residuals.py holds at every point x + D c,

    h(x) + <q, x> + <r, D c> + <c, D^T T c> / 2 - |r + T c|^2 / (2 mu)     with r = h'(x) + q,

and is maximised over c in closed form from the inner products of directions, of which each step adds one row. Nothing
in it depends on q but r: directions that were met with other y are as good.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.arrays.state import State
from saddleslide.certificates.candidate import Linearisation
from saddleslide.domains import Box
from saddleslide.functions.roundings import FEW

# Directions that are kept: more add little, since the last ones are along those in which the residual still lies.
_MOST = 6
# Points nearer than this part of their size have no direction; curvatures below this part of the largest no inverse.
_SAME, _SINGULAR = 1e-14, 1e-13
# Changes of what is active in a box.
_ROUNDS = 2


@dataclass(eq=False, repr=False)
class CutState(State):
    """Unit directions, the Hessian along each with what rounding may have done to it, and the last linearisation."""

    ways: list[Array] = field(default_factory=list)
    turns: list[Array] = field(default_factory=list)
    noise: list[float] = field(default_factory=list)
    last: Linearisation | None = None
    last_error: float = 0.0


class Peak(NamedTuple):
    """Weights of the directions at which a bound is largest, and by how much it is raised there."""

    weights: Array
    gain: float


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
        if last is None:
            return
        way = known.point - last.point
        size = float(np.linalg.norm(way))
        if _SAME * (1.0 + known.sizes[0]) < size < math.inf:
            self._keep(way / size, (known.gradient - last.gradient) / size, (self.last_error + before) / size)

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
            bent = [float(np.vdot(way, self.turns[k])) for way in self.ways[: k + 1]]
            turned = [float(np.vdot(turn, self.turns[k])) for turn in self.turns[: k + 1]]
            self._bent, self._turned = _bordered(self._bent, bent), _bordered(self._turned, turned)
        return self._bent, self._turned

    def peak(self, slope: Array, mu: float) -> Peak | None:
        """Where the bound is largest, for the slope r; None where no direction is known."""
        if not self.ways:
            return None
        bent, turned = self._products()
        along, across = (np.array([float(np.vdot(row, slope)) for row in rows]) for rows in (self.ways, self.turns))
        noise, linear = np.array(self.noise), along - across / mu
        quadratic = turned / mu - bent
        quadratic[np.diag_indices_from(quadratic)] += len(noise) * noise**2 / mu
        values, vectors = np.linalg.eigh(quadratic)
        # Directions that hardly differ, or along which the curvature is mu, are left out: any weights are allowed.
        good = values > _SINGULAR * float(turned.diagonal().max()) / mu
        found = (vectors.T @ linear)[good]
        weights = vectors[:, good] @ (found / values[good])
        return Peak(weights, 0.5 * float(found @ (found / values[good])))

    def peak_in_box(self, slope: Array, point: Array, mu: float, box: Box) -> Peak | None:
        """The same where the model of the bound is minimised over a box, by Newton steps on which sides are active.

        At x + D c the least of <r + T c, .> + mu/2 |.|^2 over the box has entries that are free, as above, and others
        at a side s from x, where (r + T c)(s - D c) + mu/2 (s - D c)^2 is left. The gain is not known.
        """
        if not self.ways:
            return None
        D, T = (np.stack([row.ravel() for row in rows]) for rows in (self.ways, self.turns))
        (bent, _), noise, r, x = self._products(), np.array(self.noise), slope.ravel(), point.ravel()
        weights, before = np.zeros(len(D)), None
        for _ in range(_ROUNDS):
            here, tilt = x + weights @ D, r + weights @ T
            there = here - tilt / mu
            end = box.project(there.reshape(point.shape)).ravel()
            held = end != there
            if before is not None and np.array_equal(held, before):
                break
            before, side = held, end - x
            free, Da = (~held).astype(np.float64), D * held
            cross = Da @ T.T
            quadratic = (T * free) @ T.T / mu - bent + cross + cross.T - mu * (Da @ D.T)
            quadratic[np.diag_indices_from(quadratic)] += len(noise) * noise**2 / mu
            linear = D @ (r * free) - T @ (r * free) / mu + T @ (side * held) - mu * (Da @ side)
            values, vectors = np.linalg.eigh(quadratic)
            good = values > _SINGULAR * abs(values[-1])
            weights = vectors[:, good] @ ((vectors[:, good].T @ linear) / values[good])
        return Peak(weights, math.nan)

    def at(self, weights: Array) -> tuple[Array, Array, float]:
        """The sum of the directions with these weights, the Hessian along it, and a bound on the rounding of that."""
        parts = list(zip(weights.tolist(), self.ways, self.turns, strict=True))
        (first, way, turn), rest = parts[0], parts[1:]
        move, turned = first * way, first * turn
        for weight, way, turn in rest:
            move, turned = move + weight * way, turned + weight * turn
        return move, turned, float(np.array(self.noise) @ np.abs(weights))


def _bordered(square: Array, row: list[float]) -> Array:
    """A symmetric matrix with one more row and column."""
    size = len(row)
    made = np.empty((size, size))
    made[:-1, :-1], made[-1, :], made[:, -1] = square, row, row
    return made
