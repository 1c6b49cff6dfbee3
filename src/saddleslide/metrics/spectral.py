"""P diagonal in a fast orthonormal basis of the grid of x, possibly beside weights of the entries."""

from __future__ import annotations

from copy import copy
from typing import Any, final

import numpy as np
import scipy

from saddleslide import arrays
from saddleslide.arrays.base import Array, Shape, as_real, beside, on_host
from saddleslide.arrays.kinds import Remote
from saddleslide.errors import InputError
from saddleslide.metrics.base import Symbol
from saddleslide.operators.base import Operator

BASES = ("dct", "fft", "entries")


@final
class Spectral(Symbol):
    """P = K T' diag(symbol) T K, with T a fast orthonormal transform and K = diag(scale).

    T is the cosine transform (DCT-II, for grids with free ends) or the Fourier one (periodic grids), or none. The
    coordinates of x are T K x; those of gradients, which are dual to them, T K^-1 g.

    Parameters
    ----------
    symbol : array
        Eigenvalues of P, > 0, on the grid of the transform; about those of the Hessian of f.
    basis : "dct", "fft" or "entries"
        The Fourier basis is used in its real (Hartley) form, in which every real, even symbol is diagonal.
    scale : array, optional
        One number > 0 per entry of x: where curvatures of the entries differ.

    Examples
    --------
    >>> import numpy as np
    >>> metric = Spectral(np.array([1.0, 4.0]))
    >>> metric.norm_squared(metric.to_basis(np.array([1.0, 1.0]))).__round__(12)
    2.0
    >>> periodic = Spectral(np.array([1.0, 3.0, 3.0]), basis="fft")
    >>> periodic.from_basis(periodic.to_basis(np.array([1.0, 2.0, 5.0]))).round(12).tolist()
    [1.0, 2.0, 5.0]
    >>> uneven = Spectral(np.array([1.0, 1.0]), scale=[1.0, 3.0])
    >>> uneven.product(np.array([1.0, 1.0])).round(12).tolist()
    [1.0, 9.0]
    """

    name = "spectral"

    def __init__(self, symbol: Any, coupling_symbol: Array | float = 0.0, basis: str = "dct", scale: Any = 1.0) -> None:
        if basis not in BASES:
            raise InputError(f"Spectral: basis is {basis!r}; expected one of {BASES}.")
        values = as_real(symbol, "Spectral: symbol")
        weights = 1.0 if isinstance(scale, float) else as_real(scale, "Spectral: scale")
        for name, numbers in (("eigenvalue", values), ("scale", np.asarray(weights))):
            if not np.all(numbers > 0.0):
                raise InputError(f"Spectral: the smallest {name} is {np.min(numbers, initial=np.inf):g}; expected > 0.")
        if basis == "fft" and not np.allclose(values, _reflect(values), rtol=1e-8):
            raise InputError("Spectral: the symbol is not even in the frequency; expected that of a real symmetric P.")
        self.symbol: Array = values
        self.coupling_symbol, self.basis, self.scale = coupling_symbol, basis, weights
        # Where x is a vector on a grid.
        self.grid: Shape | None = None

    def on_grid(self, grid: Shape) -> Spectral:
        """The same for vectors of the numbers on a grid."""
        found = copy(self)
        found.grid = grid
        if np.ndim(self.symbol):
            found.symbol = self.symbol.reshape(-1)
        if not isinstance(self.scale, float):
            found.scale = self.scale.reshape(-1)
        return found

    @property
    def numbers(self) -> tuple[Array | float, ...]:
        return self.symbol, self.coupling_symbol, self.scale, float(BASES.index(self.basis))

    def with_numbers(self, *numbers: Array | float) -> Spectral:
        found = copy(self)
        symbol, found.coupling_symbol, found.scale, basis = numbers
        found.symbol, found.basis = symbol, BASES[int(basis)]  # type: ignore[assignment]
        return found

    def beside(self, x: Array) -> Spectral:
        symbol, coupling_symbol, scale, basis = self.numbers
        return self.with_numbers(*(beside(x, part) for part in (symbol, coupling_symbol, scale)), basis)

    def to_dict(self) -> dict[str, Any]:
        scale = {} if isinstance(self.scale, float) else {"scale": np.asarray(self.scale).tolist()}
        return {"kind": self.name, "symbol": np.asarray(self.symbol).tolist(), "basis": self.basis, **scale}

    def with_coupling(self, coupling: Operator) -> Spectral:
        found, above = copy(self), None
        if self.basis != "entries" and isinstance(self.scale, float):
            above = coupling.gram_symbol(self.basis)
        elif self.basis != "entries":
            above = coupling.scaled_gram_symbol(np.reciprocal(self.scale).reshape(coupling.x_shape), self.basis)
        found.coupling_symbol = (
            self.spread * coupling.norm.upper**2 if above is None else above.reshape(self.symbol.shape)
        )
        return found

    def to_basis(self, x: Array) -> Array:
        x = x if isinstance(self.scale, float) else self.scale * x
        return to_coordinates(x.reshape(self.grid or x.shape), self.basis).reshape(x.shape)

    def to_dual(self, g: Array) -> Array:
        g = g if isinstance(self.scale, float) else g / self.scale
        return to_coordinates(g.reshape(self.grid or g.shape), self.basis).reshape(g.shape)

    def from_basis(self, X: Array) -> Array:
        x: Array = from_coordinates(X.reshape(self.grid or X.shape), self.basis).reshape(X.shape)
        return x if isinstance(self.scale, float) else x / self.scale

    def product(self, x: Array) -> Array:
        found = self.apply(self.to_basis(x))
        found = from_coordinates(found.reshape(self.grid or found.shape), self.basis).reshape(x.shape)
        return found if isinstance(self.scale, float) else self.scale * found

    @property
    def is_diagonal(self) -> bool:
        """Whether P is diagonal in the entries, and the symbol its diagonal."""
        return self.basis == "entries" and isinstance(self.scale, float)

    def without_symbol(self, coupling: Operator) -> Spectral:
        """P = 0 beside an S in the cosine basis."""
        found = Spectral(np.ones(self.symbol.shape)).with_coupling(coupling)
        found.symbol, found.grid = np.zeros(self.symbol.shape), self.grid
        return found

    @property
    def keeps_identity(self) -> bool:
        return isinstance(self.scale, float)

    @property
    def spread(self) -> float:
        return 1.0 if isinstance(self.scale, float) else 1.0 / float(self.scale.min()) ** 2

    @property
    def largest(self) -> float:
        return super().largest * float(np.max(self.scale)) ** 2

    @property
    def typical(self) -> float:
        return super().typical / self.spread

    @property
    def balance(self) -> float:
        return super().balance if isinstance(self.scale, float) else super().balance * self.spread

    def invert(self, x: Array) -> None:
        plain = self.basis == "dct" and self.grid is None and isinstance(self.scale, float)
        if not plain or not on_host(x) or not x.flags.c_contiguous:
            super().invert(x)
            return
        # Both transforms may use the memory of x itself.
        found = scipy.fft.dctn(x, norm="ortho", overwrite_x=True)
        found /= self.symbol
        found = scipy.fft.idctn(found, norm="ortho", overwrite_x=True)
        if not np.may_share_memory(found, x):
            np.copyto(x, found)


def to_coordinates(x: Array, basis: str) -> Array:
    """Orthonormal cosine or Hartley transform, or none."""
    if basis == "entries":
        return x
    if isinstance(x, Remote):
        return arrays.cosine_transform(x) if basis == "dct" else arrays.hartley_transform(x)
    return np.asarray(scipy.fft.dctn(x, norm="ortho")) if basis == "dct" else _hartley(x)


def from_coordinates(X: Array, basis: str) -> Array:
    """The inverse of `to_coordinates`; the Hartley transform is its own."""
    if basis == "entries":
        return X.copy()
    if isinstance(X, Remote):
        return arrays.cosine_transform(X, inverse=True) if basis == "dct" else arrays.hartley_transform(X)
    return np.asarray(scipy.fft.idctn(X, norm="ortho")) if basis == "dct" else _hartley(X)


def _hartley(x: Array) -> Array:
    spectrum = scipy.fft.fftn(x, norm="ortho")
    return np.asarray(spectrum.real - spectrum.imag)


def _reflect(values: Array) -> Array:
    """Entry at -k for every frequency k."""
    for axis, n in enumerate(values.shape):
        values = np.take(values, -np.arange(n) % n, axis=axis)
    return values
