"""Averages over frequencies of equal radius: what smooths a symbol that was fitted from a few probes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from saddleslide.arrays.base import Array, Shape

# Entries of grids whose shells are remembered: on larger ones finding them is little beside a product.
_MOST_KEPT = 2**16


@dataclass(frozen=True)
class Shells:
    """Between which two radii each frequency lies, and how near to the outer one."""

    inner: npt.NDArray[np.intp]
    outer: npt.NDArray[np.intp]
    inner_part: Array
    outer_part: Array
    weight: Array

    def sums(self, values: Array) -> Array:
        """Sums over shells; a frequency between two radii counts for both, in parts."""
        inside = np.bincount(self.inner, self.inner_part * values, self.weight.size)
        outside = np.bincount(self.outer, self.outer_part * values, self.weight.size)
        return np.add(inside, outside, dtype=np.float64)

    def spread(self, profile: Array) -> Array:
        """Values between radii, linearly interpolated."""
        return self.inner_part * profile[self.inner] + self.outer_part * profile[self.outer]


def shell_average(values: Array, basis: str = "dct") -> Array:
    """Average over shells of equal radius in frequency, linearly interpolated between radii.

    Examples
    --------
    >>> import numpy as np
    >>> shell_average(np.ones((3, 3))).tolist()[0]
    [1.0, 1.0, 1.0]
    """
    found = (_kept if values.size <= _MOST_KEPT else _shells)(values.shape, basis)
    return found.spread(found.sums(values.ravel()) / found.weight).reshape(values.shape)


def _shells(shape: Shape, basis: str) -> Shells:
    axes = np.ogrid[tuple(slice(0, n) for n in shape)]
    if basis == "fft":
        # Frequencies k and n - k are the same up to sign, and half as many steps of the cosine basis make one of these.
        axes = tuple(2 * np.minimum(axis, n - axis) for axis, n in zip(axes, shape, strict=True))
    squares = sum((axis / n) ** 2 for axis, n in zip(axes, shape, strict=True))
    radius = np.sqrt(squares).ravel() * max(shape)
    inner = np.floor(radius).astype(np.intp)
    outer_part = radius - inner
    made = Shells(inner, inner + 1, 1.0 - outer_part, outer_part, np.zeros(int(inner.max()) + 2))
    # No frequency may lie near the last radius.
    made = replace(made, weight=np.maximum(made.sums(np.ones(inner.size)), 1e-300))
    for part in vars(made).values():
        part.flags.writeable = False
    return made


_kept = lru_cache(maxsize=8)(_shells)
