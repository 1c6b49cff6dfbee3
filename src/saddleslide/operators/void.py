"""The operator onto nothing: B of a problem without y."""

from __future__ import annotations

import math
from typing import Any, final

from saddleslide.arrays.base import Array, as_shape, blank, no_rows, zeros
from saddleslide.operators.base import Operator
from saddleslide.operators.spectrum import NormBound


@final
class Void(Operator):
    """x to the array without entries."""

    def __init__(self, shape: Any) -> None:
        self.x_shape, self.y_shape = as_shape(shape, "Void"), (0,)

    def __repr__(self) -> str:
        return f"Void({self.x_shape})"

    def forward(self, x: Array, out: Array | None = None) -> Array:
        return blank((0,), x) if out is None else out

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        if out is None:
            return zeros(self.x_shape, y)
        out.fill(0.0)
        return out

    @property
    def entries(self) -> Any:
        return no_rows(math.prod(self.x_shape))

    @property
    def norm(self) -> NormBound:
        return NormBound(0.0, 0.0, "closed form")
