"""Several operators on one x, one block of y each; and operators that pick one of several unknowns of x."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, final

import numpy as np
import scipy

from saddleslide.arrays.base import Array, Shape, as_real, as_shape, blank, length_of, on_host
from saddleslide.arrays.base import split as views_of
from saddleslide.errors import InputError
from saddleslide.operators.algebra import Composite
from saddleslide.operators.base import Operator
from saddleslide.operators.spectrum import NormBound, SmallestSingularValue, margin_of_rounding, summation_error

_EPS = summation_error(1)


@final
class Stack(Composite):
    """Several operators on the same x, their results raveled and one after the other.

    Parameters
    ----------
    *parts : Operator, or anything that `ss.operators.as_operator` takes
        The blocks; all take arrays of one size, in the shape of the first.
    scales : sequence of float, optional
        One number per block that multiplies it.

    Examples
    --------
    >>> from saddleslide.operators import Diagonal, Identity
    >>> B = Stack(Identity((2, 2)), Diagonal([[1.0, 2.0], [3.0, 4.0]]), scales=[1.0, 0.5])
    >>> y = B.forward(np.ones((2, 2)))
    >>> y
    array([1. , 1. , 1. , 1. , 0.5, 1. , 1.5, 2. ])
    >>> B.split(y)[1].tolist()
    [[0.5, 1.0], [1.5, 2.0]]
    """

    def __init__(self, *parts: Any, scales: Sequence[float] | None = None) -> None:
        from saddleslide.operators.explicit import as_operator

        self.parts = tuple(as_operator(part, name=f"Stack: part {number}") for number, part in enumerate(parts, 1))
        if not self.parts:
            raise InputError("Stack: received no operators; expected at least one.")
        self.x_shape, self.x_dtype = self.parts[0].x_shape, self.parts[0].x_dtype
        for number, part in enumerate(self.parts, 1):
            if part.shape[1] != math.prod(self.x_shape):
                raise InputError(
                    f"Stack: part {number} takes arrays of shape {part.x_shape}; expected the size of "
                    f"{self.x_shape}, the first one's."
                )
        self.scales = as_real(
            [1.0] * len(self.parts) if scales is None else scales, "Stack: scales", (len(self.parts),)
        )
        self.y_shape = (sum(part.shape[0] for part in self.parts),)

    def __repr__(self) -> str:
        return f"Stack({', '.join(map(repr, self.parts))})"

    @property
    def y_shapes(self) -> list[Shape]:
        """Shapes of the blocks."""
        return [part.y_shape for part in self.parts]

    @property
    def row_blocks(self) -> list[tuple[Operator, float]]:
        return list(zip(self.parts, self.scales.tolist(), strict=True))

    def split(self, y: Array) -> list[Array]:
        """Views of y, one per block, in the shape of that block."""
        return views_of(y, self.y_shapes)

    def forward(self, x: Array, out: Array | None = None) -> Array:
        out = blank(self.y_shape, x) if out is None else out
        stop = 0
        for part, scale, shape in zip(self.parts, self.scales.tolist(), self.y_shapes, strict=True):
            start, stop = stop, stop + math.prod(shape)
            if on_host(x) and out.flags.c_contiguous:
                part.forward(x.reshape(part.x_shape), out[start:stop].reshape(shape))
            else:
                out[start:stop] = part.forward(x.reshape(part.x_shape)).reshape(-1)
            if scale != 1.0:
                out[start:stop] *= scale
        return out

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        out = blank(self.x_shape, y) if out is None else out
        for number, (part, scale, block) in enumerate(
            zip(self.parts, self.scales.tolist(), self.split(y), strict=True)
        ):
            pulled = part.adjoint(block).reshape(self.x_shape)
            if scale != 1.0:
                pulled *= scale
            if number:
                out += pulled
            else:
                np.copyto(out, pulled)
        return out

    def gram_symbol(self, basis: str = "dct") -> Array | None:
        total: Array | None = None
        for part, scale in zip(self.parts, self.scales.tolist(), strict=True):
            symbol = part.gram_symbol(basis)
            if symbol is None or part.x_shape != self.x_shape:
                return None
            total = scale**2 * symbol if total is None else total + scale**2 * symbol
        return total

    @cached_property
    def entries(self) -> Any:
        blocks = [part.entries for part in self.parts]
        if any(block is None for block in blocks):
            return None
        scaled = [scale * block for scale, block in zip(self.scales.tolist(), blocks, strict=True)]
        is_sparse = any(map(scipy.sparse.issparse, scaled))
        return scipy.sparse.vstack(scaled, format="csr") if is_sparse else np.concatenate(scaled)

    def dense(self) -> Array | None:
        blocks = [part.dense() for part in self.parts]
        found = [scale * block for scale, block in zip(self.scales.tolist(), blocks, strict=True) if block is not None]
        return np.concatenate(found) if len(found) == len(blocks) else None

    def entry_errors(self, x: Array, product: Array) -> Array | None:
        found, size = [], length_of(x)
        known = False
        for part, scale, block in zip(self.parts, self.scales.tolist(), self.split(product), strict=True):
            inner = block / scale if scale != 0.0 else np.zeros_like(block)
            errors = part.entry_errors(x.reshape(part.x_shape), inner)
            known = known or errors is not None
            if errors is None:
                errors = np.full(block.shape, part.bound_rounding(size, length_of(inner)))
            found.append((abs(scale) * errors + 4.0 * _EPS * np.abs(block)).ravel())
        return np.concatenate(found) if known else None

    def _norm_of_parts(self) -> tuple[float, float]:
        rounding = 1.0 + margin_of_rounding(len(self.parts))
        norms = [part.norm for part in self.parts]
        upper = math.hypot(*(scale * norm.upper for scale, norm in zip(self.scales.tolist(), norms, strict=True)))
        lower = max(abs(scale) * norm.estimate for scale, norm in zip(self.scales.tolist(), norms, strict=True))
        symbols = [symbol for symbol in map(self.gram_symbol, ("dct", "fft")) if symbol is not None]
        return rounding * min([upper, *(math.sqrt(float(symbol.max())) for symbol in symbols)]), lower

    def _error_of_parts(self) -> float:
        terms = (2.0 + len(self.parts)) * 2.0 * _EPS
        return math.hypot(
            *(
                scale * (part.product_error + terms * part.size_bound)
                for scale, part in zip(self.scales.tolist(), self.parts, strict=True)
            )
        )


@final
class Part(Operator):
    """One of several unknowns that lie in x one after the other, raveled: see `split_unknowns`.

    Parameters
    ----------
    shapes : sequence of shapes
        Those of all unknowns.
    index : int
        Which of them.

    Examples
    --------
    >>> Part([(2,), (1, 2)], 1).forward(np.array([1.0, 2.0, 3.0, 4.0]))
    array([[3., 4.]])
    """

    def __init__(self, shapes: Sequence[Any], index: int) -> None:
        self.shapes, self.index = [as_shape(shape, "Part: shape") for shape in shapes], index
        sizes = [math.prod(shape) for shape in self.shapes]
        self.x_shape, self.y_shape = (sum(sizes),), self.shapes[index]
        self.start, self.stop = sum(sizes[:index]), sum(sizes[: index + 1])

    def __repr__(self) -> str:
        return f"Part({self.start}:{self.stop} of {self.x_shape[0]} as {self.y_shape})"

    def forward(self, x: Array, out: Array | None = None) -> Array:
        found: Array = x[self.start : self.stop].reshape(self.y_shape)
        if out is None:
            return found.copy()
        np.copyto(out, found)
        return out

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        out = blank(self.x_shape, y) if out is None else out
        out.fill(0.0)
        out[self.start : self.stop] = y.reshape(-1)
        return out

    @cached_property
    def norm(self) -> NormBound:
        size = float(self.stop > self.start)
        return NormBound(size, size, "closed form")

    @property
    def product_error(self) -> float:
        return 0.0

    def smallest_singular_value(self, positive: bool = False) -> SmallestSingularValue:
        least = self.norm.upper if positive or self.stop - self.start == self.x_shape[0] else 0.0
        return SmallestSingularValue(least, least, "closed form")


def split_unknowns(*shapes: Any) -> tuple[Part, ...]:
    """Operators that pick the unknowns of an objective in several of them; x is flat and has all, one after the other.

    Parameters
    ----------
    *shapes : int or tuple of int
        One for every unknown.

    Returns
    -------
    tuple of Part
        One for every unknown: `h @ u`, `h @ (A @ u - w)` are terms, and `u @ result.x` is its part of the answer.

    Examples
    --------
    >>> import saddleslide as ss
    >>> u, w = split_unknowns(2, (1, 2))
    >>> (u - ss.operators.Identity(2) @ w) @ np.array([1.0, 2.0, 3.0, 5.0])
    array([-2., -3.])
    """
    if not shapes:
        raise InputError("split_unknowns: received no shapes; expected one for every unknown.")
    return tuple(Part(shapes, index) for index in range(len(shapes)))
