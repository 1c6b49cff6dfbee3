"""Linear constraints: half-spaces and solutions of linear systems."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, final

import numpy as np
import scipy

from saddleslide.arrays.base import Array, as_number, as_real, beside, length_of, zeros
from saddleslide.arrays.kinds import to_host
from saddleslide.domains.base import Domain, Unbounded, infinite
from saddleslide.domains.entrywise import Box
from saddleslide.domains.program import Program
from saddleslide.errors import InputError

_EPS = 2.0**-52
# What is left of a direction below this part of it is rounding, and no direction.
_NOISE = 1e-8
# Steps of a sparse projection, and what its matrix is regularised with, relative to its largest entry.
_STEPS, _RIDGE = 30, 1e-9


@final
class HalfSpace(Unbounded):
    """Arrays with <a, x> <= b.

    Examples
    --------
    >>> import numpy as np
    >>> HalfSpace([1.0, 1.0], 2.0).project(np.array([3.0, 3.0]))
    array([1., 1.])
    """

    def __init__(self, a: Any, b: float) -> None:
        self.a, self.b = as_real(a, "HalfSpace: a"), as_number(b, "HalfSpace: b")
        self.shape = self.a.shape
        scale = float(np.max(np.abs(self.a), initial=0.0))
        if scale == 0.0 or not self.shape:
            raise InputError("HalfSpace: a is 0 or a number; expected an array with entries other than 0.")
        unit = self.a / scale
        square = math.fsum((unit * unit).ravel().tolist())
        length = math.sqrt(square)
        self.normal, self.level = unit / length, self.b / scale / length
        self._foot = unit * (self.b / scale / square)

    def __repr__(self) -> str:
        return f"HalfSpace(shape={self.shape}, b={self.b})"

    def shrunk(self, scale: float) -> Domain:
        return HalfSpace(self.a, self.b / scale)

    def as_rows(self) -> tuple[Array, Domain]:
        return self.normal.reshape(1, -1), Box(-math.inf, self.level, shape=1)

    def project(self, point: Array, out: Array | None = None) -> Array:
        out, normal = self._out(out, point), beside(point, self.normal)
        np.copyto(out, point)
        excess = float(np.vdot(normal, out)) - self.level
        if excess > 0.0:
            out -= excess * normal
            # From far away the first step lands beside the plane, on either side, by its rounding.
            out -= (float(np.vdot(normal, out)) - self.level) * normal
        return out

    def maximizer(self, direction: Array) -> Array:
        found: Array = beside(direction, self._foot) if self._is_outward(direction) else infinite(direction)
        return found

    def _is_outward(self, direction: Array) -> bool:
        """Whether the direction is c a with c >= 0, to the last bit: beside it nothing is bounded."""
        flat, a = to_host(direction).ravel(), self.a.ravel()
        pivot = int(np.argmax(np.abs(a)))
        factor = float(flat[pivot] / a[pivot])
        if factor < 0.0 or not np.allclose(flat, factor * a, rtol=4.0 * _EPS, atol=0.0):
            return False
        first, other = Fraction(float(flat[pivot])), Fraction(float(a[pivot]))
        return all(
            Fraction(c) * other == Fraction(part) * first for c, part in zip(flat.tolist(), a.tolist(), strict=True)
        )

    def recession(self, direction: Array) -> Array:
        normal = beside(direction, self.normal)
        outward = float(np.vdot(normal, direction))
        if outward <= 0.0:
            return direction
        along: Array = direction - outward * normal
        if length_of(along) <= _NOISE * outward:
            return zeros(self.shape, direction)
        along -= max(float(np.vdot(normal, along)), 0.0) * normal
        return along

    def violation(self, point: Array) -> float:
        """How far the point is outside."""
        return max(float(np.vdot(beside(point, self.normal), point)) - self.level, 0.0)


@final
class Affine(Unbounded):
    """Vectors with A x = b.

    The matrix is factorised once. Rows that depend on others are allowed where b agrees with them.

    Parameters
    ----------
    A : array or sparse matrix
        One row for each equation.
    b : array
        Right sides.

    Examples
    --------
    >>> import numpy as np
    >>> Affine([[1.0, 1.0, 1.0]], [3.0]).project(np.zeros(3))
    array([1., 1., 1.])
    >>> Affine([[1.0, 1.0], [2.0, 2.0]], [1.0, 3.0])
    Traceback (most recent call last):
    ...
    saddleslide.errors.InputError: Affine: A x = b has no solution: the nearest x misses b by 0.35 in units of the \
rows; expected a consistent system.
    """

    projects_on_host = True

    def __init__(self, A: Any, b: Any) -> None:
        self.sparse = scipy.sparse.issparse(A)
        if self.sparse:
            matrix = scipy.sparse.csr_array(A, dtype=np.float64)
            as_real(matrix.data, "Affine: A")
        else:
            matrix = as_real(A, "Affine: A")
        if matrix.ndim != 2 or matrix.shape[1] == 0:
            raise InputError(f"Affine: A has shape {matrix.shape}; expected a matrix, one row for each equation.")
        right = as_real(b, "Affine: b", (matrix.shape[0],))
        # Rows of length 1: an equation is broken by as much as the point is away from it.
        lengths = scipy.sparse.linalg.norm(matrix, axis=1) if self.sparse else np.linalg.norm(matrix, axis=1)
        scale = 1.0 / np.where(lengths > 0.0, lengths, 1.0)
        self.matrix = matrix.multiply(scale[:, None]).tocsr() if self.sparse else matrix * scale[:, None]
        self.right, self.shape = right * scale, (matrix.shape[1],)
        self._rank = 0
        self._factorise()
        self.nearest_to_zero = self.project(np.zeros(self.shape))
        missed = self.violation(self.nearest_to_zero)
        if missed > 1e-9 * (1.0 + float(np.max(np.abs(self.nearest_to_zero)))):
            raise InputError(
                f"Affine: A x = b has no solution: the nearest x misses b by {missed:.2g} in units of the rows; "
                "expected a consistent system."
            )

    def _factorise(self) -> None:
        rows, columns = self.matrix.shape
        if self.sparse:
            gram = (self.matrix @ self.matrix.T).tocsc()
            ridge = _RIDGE * scipy.sparse.eye_array(rows, format="csc")
            self._solver = scipy.sparse.linalg.splu(gram + ridge)
            return
        basis, upper, order = scipy.linalg.qr(self.matrix.T, mode="economic", pivoting=True)
        sizes = np.abs(np.diag(upper))
        self._rank = int(np.count_nonzero(sizes > max(rows, columns) * _EPS * max(sizes, default=0.0)))
        self._basis = np.ascontiguousarray(basis[:, : self._rank])
        leading, right = upper[: self._rank, : self._rank], self.right[order[: self._rank]]
        # Older versions of SciPy solve no equations of size 0.
        self._level = scipy.linalg.solve_triangular(leading, right, trans="T") if self._rank else right

    def __repr__(self) -> str:
        rows, columns = self.matrix.shape
        return f"Affine({rows} equations, shape={(columns,)})"

    def shrunk(self, scale: float) -> Domain:
        return Affine(self.matrix, self.right / scale)

    def as_rows(self) -> tuple[Any, Domain]:
        return self.matrix, Box(self.right, self.right)

    def as_program(self) -> Program:
        return Program.on(self.size, rows=self.matrix, totals=self.right)

    def project(self, point: Array, out: Array | None = None) -> Array:
        out, found = self._out(out, point), to_host(point)
        # The second time takes the rounding of the first away.
        for _ in range(2):
            found = found - self._normal_part(found, 1.0)
        np.copyto(out, found)
        return out

    def _normal_part(self, point: Array, level: float) -> Array:
        """What lies between a point and A x = level b: the shortest d with A (point - d) = level b."""
        if not self.sparse:
            part: Array = self._basis @ (self._basis.T @ point - level * self._level)
            return part
        weights, missed = np.zeros(self.matrix.shape[0]), self.matrix @ point - level * self.right
        left, most = missed, math.inf
        # The ridge makes dependent rows harmless; each step takes all but a part of it away.
        for _ in range(_STEPS):
            size = length_of(left)
            if not size < 0.5 * most:
                break
            weights, most = weights + self._solver.solve(left), size
            left = missed - self.matrix @ (self.matrix.T @ weights)
        found: Array = self.matrix.T @ weights
        return found

    def maximizer(self, direction: Array) -> Array:
        attained = self._is_point or not direction.any()
        found: Array = beside(direction, self.nearest_to_zero) if attained else infinite(direction)
        return found

    @property
    def _is_point(self) -> bool:
        return self._rank == self.size

    def squared_radius(self, point: Array) -> float:
        if not self._is_point:
            return math.inf
        offset = point - beside(point, self.nearest_to_zero)
        return float(np.vdot(offset, offset))

    def diameter(self) -> float:
        return 0.0 if self._is_point else math.inf

    def magnitude(self) -> float:
        return float(np.max(np.abs(self.nearest_to_zero))) if self._is_point else math.inf

    def recession(self, direction: Array) -> Array:
        here = to_host(direction)
        along = here - self._normal_part(here, 0.0)
        along = along - self._normal_part(along, 0.0)
        noise = length_of(along) <= _NOISE * length_of(here)
        return zeros(self.shape, direction) if noise else beside(direction, along)

    def violation(self, point: Array) -> float:
        """How far the point is from the worst of the equations."""
        return float(np.max(np.abs(self.matrix @ to_host(point) - self.right), initial=0.0))
