"""Minima of convex quadratics in rational arithmetic: what certified bounds are held against."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np

import saddleslide as ss

Matrix = list[list[Fraction]]
Vector = list[Fraction]


def fractions(array: Any) -> Any:
    """The numbers of an array or a list, to the last bit."""
    array = np.asarray(array, dtype=np.float64)
    return [fractions(row) for row in array] if array.ndim else Fraction(float(array))


def product(A: Matrix, x: Vector) -> Vector:
    return [sum((a * b for a, b in zip(row, x, strict=True)), Fraction(0)) for row in A]


def transposed(A: Matrix) -> Matrix:
    return [list(column) for column in zip(*A, strict=True)]


def times(A: Matrix, B: Matrix) -> Matrix:
    return transposed([product(A, column) for column in transposed(B)])


def dot(a: Vector, b: Vector) -> Fraction:
    return sum((u * v for u, v in zip(a, b, strict=True)), Fraction(0))


def solved(A: Matrix, b: Vector) -> Vector:
    """Gaussian elimination; A is regular."""
    rows = [[*row, right] for row, right in zip(A, b, strict=True)]
    n = len(rows)
    for k in range(n):
        pivot = next(i for i in range(k, n) if rows[i][k] != 0)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [entry / rows[k][k] for entry in rows[k]]
        for i in range(n):
            if i != k and rows[i][k] != 0:
                rows[i] = [u - rows[i][k] * v for u, v in zip(rows[i], rows[k], strict=True)]
    return [row[n] for row in rows]


class Bowl:
    """1/2 <x, Q x> + <c, x> + constant, with rational numbers."""

    def __init__(self, Q: Matrix, c: Vector, constant: Fraction = Fraction(0)) -> None:
        self.Q, self.c, self.constant = Q, c, constant

    @classmethod
    def squares(cls, A: Any, b: Any, ridge: float = 0.0) -> Bowl:
        """1/2 |A x - b|^2 + ridge/2 |x|^2."""
        A, b = fractions(A), fractions(b)
        Q = times(transposed(A), A)
        for i in range(len(Q)):
            Q[i][i] += Fraction(ridge)
        return cls(Q, [-entry for entry in product(transposed(A), b)], dot(b, b) / 2)

    @classmethod
    def form(cls, Q: Any, c: Any) -> Bowl:
        """1/2 <x, Q x> + <c, x>; of Q the symmetric part counts."""
        Q = fractions(Q)
        symmetric = [[(Q[i][j] + Q[j][i]) / 2 for j in range(len(Q))] for i in range(len(Q))]
        return cls(symmetric, fractions(c))

    def __add__(self, other: Bowl) -> Bowl:
        Q = [[a + b for a, b in zip(*rows, strict=True)] for rows in zip(self.Q, other.Q, strict=True)]
        return Bowl(Q, [a + b for a, b in zip(self.c, other.c, strict=True)], self.constant + other.constant)

    def __rmul__(self, factor: float) -> Bowl:
        t = Fraction(factor)
        return Bowl([[t * a for a in row] for row in self.Q], [t * a for a in self.c], t * self.constant)

    def value(self, x: Vector) -> Fraction:
        return dot(x, product(self.Q, x)) / 2 + dot(self.c, x) + self.constant

    def minimum(self, domain: ss.domains.Domain) -> tuple[Fraction, Fraction]:
        """Bounds on the minimum that agree to about 20 digits, and are equal but on balls."""
        if isinstance(domain, ss.domains.Box):
            return (self._on_box(fractions(domain.lower), fractions(domain.upper)),) * 2
        free = solved(self.Q, [-entry for entry in self.c])
        if isinstance(domain, ss.domains.FullSpace):
            return (self.value(free),) * 2
        assert isinstance(domain, ss.domains.Ball) and domain.center is None
        square = Fraction(domain.ball_radius) ** 2
        return (self.value(free),) * 2 if dot(free, free) <= square else self._on_sphere(square)

    def _on_box(self, lower: Vector, upper: Vector) -> Fraction:
        """The best of all faces: one of them holds the minimiser."""
        n, best = len(self.c), None
        for sides in itertools.product((-1, 0, 1), repeat=n):
            inside = [i for i in range(n) if sides[i] == 0]
            x = [(lower[i] if sides[i] < 0 else upper[i]) if sides[i] else Fraction(0) for i in range(n)]
            pull = [-entry for entry in product(self.Q, x)]
            if inside:
                part = solved([[self.Q[i][j] for j in inside] for i in inside], [pull[i] - self.c[i] for i in inside])
                for i, entry in zip(inside, part, strict=True):
                    x[i] = entry
            if all(low <= entry <= high for low, entry, high in zip(lower, x, upper, strict=True)):
                value = self.value(x)
                best = value if best is None else min(best, value)
        assert best is not None
        return best

    def _on_sphere(self, square: Fraction) -> tuple[Fraction, Fraction]:
        """The dual function at a multiplier that is right to 25 digits, and a feasible point beside it."""

        def at(m: Fraction) -> Vector:
            Q = [[entry + (m if i == j else 0) for j, entry in enumerate(row)] for i, row in enumerate(self.Q)]
            return solved(Q, [-entry for entry in self.c])

        low, high = Fraction(0), Fraction(1)
        while dot(point := at(high), point) > square:
            low, high = high, 4 * high
        while high - low > high / 10**25:
            middle = (low + high) / 2
            point = at(middle)
            low, high = (middle, high) if dot(point, point) > square else (low, middle)
        point = at(high)
        dual = self.value(point) + high * (dot(point, point) - square) / 2
        return dual, self.value(point)
