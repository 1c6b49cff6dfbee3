"""Whether an adjoint is the transpose of its forward product: what a pair of products shows of the difference."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from saddleslide.arrays.base import Array, Shape, beside, length_of
from saddleslide.errors import InputError

if TYPE_CHECKING:
    from saddleslide.operators.base import Operator

# A difference of operators may show little at one pair: what shows counts this many times.
_DOUBT = 30.0
# What no operator in double precision shows, and the rounding of a product in single precision; relative to sizes.
_NOT_DOUBLE, _SINGLE = 1e-12, 8.0 * float(np.finfo(np.float32).eps)
# Rounding of two products and two sums, relative to their sizes.
_EXPLAINED = 32.0 * float(np.finfo(np.float64).eps)


class AdjointTest(NamedTuple):
    """What a pair of signs (x, y) shows of the difference between an adjoint and the transpose."""

    # The difference of <Bx, y> and <x, B^T y> over the sizes of the products.
    relative: float
    # A bound on the norm of the difference of the operators; 0 where rounding explains what was seen.
    bound: float


def sign_vector(shape: Shape) -> Array:
    """Seeded signs times numbers from 1 to 4/3 that single precision does not hold: no wrong entry is small there."""
    rng = np.random.default_rng(0)
    sizes = 1.0 + rng.random(shape) / 3.0
    return np.where(rng.random(shape) < 0.5, -sizes, sizes)


def signs_of(Bx: Array) -> Array:
    """The y of the test, on the side of Bx: an independent one may be orthogonal to it and hide a wrong scale."""
    signs: Array = (np.sign(Bx) + (Bx == 0.0)) * np.abs(beside(Bx, sign_vector(Bx.shape)))
    return signs


def adjoint_test_from(x: Array, Bx: Array, y: Array, BTy: Array) -> AdjointTest:
    """The test from its products. At such signs, <y, E x> has the size of the Frobenius norm of a difference E."""
    difference = measure_mismatch(x, Bx, y, BTy)
    relative = difference / max(_norm(Bx) * _norm(y), _norm(BTy) * _norm(x), difference) if difference > 0.0 else 0.0
    bound = _DOUBT * difference
    if relative > _NOT_DOUBLE:
        # Rounding in single precision shows by chance at one pair, and may be larger at others.
        bound = max(bound, _SINGLE * max(_norm(Bx), _norm(BTy)))
    return AdjointTest(relative, bound)


def pair_mismatch(x: Array, Bx: Array, y: Array, BTy: Array) -> float:
    """The same bound from products at any pair: no difference is smaller than what it shows there."""
    sizes = _norm(x) * _norm(y)
    return _DOUBT * measure_mismatch(x, Bx, y, BTy) / sizes if 0.0 < sizes < math.inf else 0.0


def measure_mismatch(x: Array, Bx: Array, y: Array, BTy: Array) -> float:
    """|<Bx, y> - <x, B^T y>|, or 0 where rounding in double precision explains it."""
    difference = abs(float(np.vdot(Bx, y)) - float(np.vdot(x, BTy)))
    return difference if difference > _EXPLAINED * (_norm(Bx) * _norm(y) + _norm(x) * _norm(BTy)) else 0.0


def _norm(v: Array) -> float:
    return length_of(v)


def adjoint_mismatch(coupling: Operator, rng: int | np.random.Generator | None = 0) -> float:
    """Relative size of <Bx, y> - <x, B^T y> at one random pair (two products). About 1e-16 for a true adjoint.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> wrong = ss.operators.as_operator((lambda x: 2 * x, lambda y: 3 * y), x_shape=(4,), y_shape=(4,))
    >>> ss.operators.adjoint_mismatch(wrong) > 0.01
    True
    """
    generator = np.random.default_rng(rng)
    x, y = generator.standard_normal(coupling.x_shape), generator.standard_normal(coupling.y_shape)
    Bx = coupling.forward(x)
    if _norm(Bx) > 0.0:
        # A y that leans towards Bx: an independent one may be orthogonal to it and hide a wrong scale.
        y += _norm(y) / _norm(Bx) * Bx
    BTy = coupling.adjoint(y)
    scale = _norm(Bx) * _norm(y) + _norm(x) * _norm(BTy)
    difference = float(np.vdot(Bx, y)) - float(np.vdot(x, BTy))
    return abs(difference) / scale if scale > 0.0 or math.isnan(scale) else 0.0


def check_adjoint(coupling: Operator, rng: int | np.random.Generator | None = 0, tolerance: float = 1e-6) -> None:
    """Raise when the adjoint of an operator is not the transpose of its forward product (seeded, two products).

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> ss.operators.check_adjoint(ss.operators.FiniteDifferences((4, 5)))
    """
    from saddleslide.operators.base import Operator

    if not isinstance(coupling, Operator):
        raise InputError(
            f"check_adjoint: coupling is {type(coupling).__name__}; expected an Operator: make one with "
            "ss.operators.as_operator first."
        )
    mismatch = adjoint_mismatch(coupling, rng)
    if not mismatch <= tolerance:
        raise InputError(
            f"B: <Bx, y> and <x, B^T y> differ by {mismatch:.1e} relative; expected at most {tolerance:.0e}. "
            "The adjoint is not the transpose of the forward product: check signs, scaling and boundary handling."
        )
