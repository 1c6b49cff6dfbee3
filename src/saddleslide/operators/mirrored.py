"""The coupling seen from the other player: -B^T."""

from __future__ import annotations

from functools import cached_property
from typing import final

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.operators.base import AdjointTest, Coupling, is_own_code
from saddleslide.operators.spectrum import NormBound


@final
class Mirrored(Coupling):
    """-B^T, so that min over y, max over x of g(y) + <x, -B^T y> - f(x) is the same problem with the roles exchanged.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> Mirrored(ss.operators.as_coupling(np.array([[1.0, 2.0]]))).forward(np.array([1.0]))
    array([-1., -2.])
    """

    def __init__(self, original: Coupling) -> None:
        self.original = original
        self.x_shape, self.y_shape = original.y_shape, original.x_shape

    @property
    def runs_own_code(self) -> bool:  # type: ignore[override]
        return is_own_code(self.original)

    @property
    def adjoint_test(self) -> AdjointTest:
        return self.original.adjoint_test

    def __repr__(self) -> str:
        return f"Mirrored({self.original!r})"

    def forward(self, x: Array, out: Array | None = None) -> Array:
        product = self.original.adjoint(x, out)
        return np.negative(product, out=product)

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        product = self.original.forward(y, out)
        return np.negative(product, out=product)

    def dense(self) -> Array | None:
        matrix = self.original.dense()
        return None if matrix is None else -matrix.T

    @property
    def product_error(self) -> float:
        return self.original.product_error

    @property
    def norm_at_hand(self) -> bool:
        return self.original.norm_at_hand

    @cached_property
    def norm(self) -> NormBound:
        return self.original.norm
