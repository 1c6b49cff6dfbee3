"""The norm a level works in: scaled identity, or diagonal in the cosine basis of a grid."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import final

import numpy as np
import scipy.fft

from saddleslide.arrays import Array, Shape

# Smallest fitted eigenvalue relative to the largest (facts of the fit: noise of a few probes is of this size).
_FLOOR = 1e-3


class Metric(ABC):
    """|x|_P^2 = sum of symbol * X^2 over the coordinates X of x in the metric's basis.

    `symbol` is P and `coupling_symbol` an upper bound on B^T B, both diagonal there: numbers or arrays.

    Examples
    --------
    >>> import numpy as np
    >>> Blocks(scale=2.0, coupling_norm=3.0).squared_norm(np.ones(2))
    4.0
    """

    name: str
    symbol: Array | float
    coupling_symbol: Array | float

    @abstractmethod
    def to_basis(self, x: Array) -> Array:
        """Coordinates of x."""

    @abstractmethod
    def from_basis(self, X: Array) -> Array:
        """Point with these coordinates."""

    def squared_norm(self, X: Array) -> float:
        """|x|_P^2 from coordinates."""
        return float(np.sum(self.symbol * X * X))

    def coupling_squared_norm(self, X: Array) -> float:
        """Upper bound on |Bx|^2 from coordinates."""
        return float(np.sum(self.coupling_symbol * X * X))


@final
class Blocks(Metric):
    """P = scale * identity on the x block.

    Examples
    --------
    >>> Blocks(scale=1.0, coupling_norm=2.0).coupling_symbol
    4.0
    """

    name = "blocks"

    def __init__(self, scale: float, coupling_norm: float) -> None:
        self.symbol, self.coupling_symbol = scale, coupling_norm**2

    def to_basis(self, x: Array) -> Array:
        return x

    def from_basis(self, X: Array) -> Array:
        return X


@final
class Spectral(Metric):
    """P diagonal in the orthonormal cosine basis (DCT-II) of the grid of x.

    Examples
    --------
    >>> import numpy as np
    >>> metric = Spectral(np.array([1.0, 4.0]), coupling_symbol=0.0)
    >>> metric.squared_norm(metric.to_basis(np.array([1.0, 1.0]))).__round__(12)
    2.0
    """

    name = "spectral"

    def __init__(self, symbol: Array, coupling_symbol: Array | float) -> None:
        self.symbol, self.coupling_symbol = symbol, coupling_symbol

    def to_basis(self, x: Array) -> Array:
        return np.asarray(scipy.fft.dctn(x, norm="ortho"))

    def from_basis(self, X: Array) -> Array:
        return np.asarray(scipy.fft.idctn(X, norm="ortho"))


def fit_spectral(
    hessian: Callable[[Array], Array],
    shape: Shape,
    coupling_symbol: Array | float,
    modulus: float,
    rng: np.random.Generator,
    probes: int = 4,
) -> Spectral:
    """Fit the diagonal of a Hessian in the cosine basis from a few products with random signs.

    E[v * T H T^-1 v] is the diagonal for random signs v; the average is smoothed over shells of equal frequency and
    kept above a floor and above `modulus`, a known lower bound of the Hessian.

    Examples
    --------
    >>> import numpy as np
    >>> metric = fit_spectral(lambda v: 3.0 * v, (8, 8), 0.0, 0.0, np.random.default_rng(0))
    >>> bool(np.allclose(metric.symbol, 3.0))
    True
    """
    diagonal = np.zeros(shape)
    for _ in range(probes):
        signs = rng.choice([-1.0, 1.0], size=shape)
        image = hessian(np.asarray(scipy.fft.idctn(signs, norm="ortho")))
        diagonal += signs * np.asarray(scipy.fft.dctn(image, norm="ortho"))
    smooth = shell_average(diagonal / probes - modulus)
    return Spectral(np.maximum(smooth, _FLOOR * float(smooth.max())) + modulus, coupling_symbol)


def shell_average(values: Array) -> Array:
    """Average over shells of equal radius in frequency, linearly interpolated between radii.

    Examples
    --------
    >>> import numpy as np
    >>> shell_average(np.ones((3, 3))).tolist()[0]
    [1.0, 1.0, 1.0]
    """
    axes = np.ogrid[tuple(slice(0, n) for n in values.shape)]
    radius = np.sqrt(sum((axis / n) ** 2 for axis, n in zip(axes, values.shape, strict=True))) * max(values.shape)
    inner = np.floor(radius).astype(np.intp)
    outer_part = radius - inner
    count = int(inner.max()) + 2
    total = np.bincount(inner.ravel(), ((1.0 - outer_part) * values).ravel(), count)
    total += np.bincount(inner.ravel() + 1, (outer_part * values).ravel(), count)
    weight = np.bincount(inner.ravel(), (1.0 - outer_part).ravel(), count)
    weight += np.bincount(inner.ravel() + 1, outer_part.ravel(), count)
    profile = total / np.maximum(weight, 1e-300)
    return np.asarray((1.0 - outer_part) * profile[inner] + outer_part * profile[inner + 1])
