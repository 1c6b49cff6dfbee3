"""P diagonal in a fast orthonormal basis of the grid of x, given or fitted to a Hessian."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt
import scipy

from saddleslide.arrays.base import Array, Shape, as_real, on_host
from saddleslide.arrays.remote import Remote
from saddleslide.arrays.remote.products import cosine_transform, hartley_transform
from saddleslide.errors import InputError
from saddleslide.metrics.base import Symbol
from saddleslide.operators import Operator

_Indices: TypeAlias = npt.NDArray[np.intp]
BASES = ("dct", "fft")
# Smallest fitted eigenvalue relative to the largest: noise of a few probes is of this size.
_FLOOR = 1e-3
# Entries of grids whose shells are remembered: on larger ones finding them is little beside a product.
_MOST_KEPT = 2**16


@final
class Spectral(Symbol):
    """P diagonal in the cosine basis (DCT-II, for grids with free ends) or the Fourier basis (periodic grids).

    Parameters
    ----------
    symbol : array
        Eigenvalues of P, > 0, on the grid of the transform; about those of the Hessian of f.
    basis : "dct" or "fft"
        The Fourier basis is used in its real (Hartley) form, in which every real, even symbol is diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> metric = Spectral(np.array([1.0, 4.0]))
    >>> metric.norm_squared(metric.to_basis(np.array([1.0, 1.0]))).__round__(12)
    2.0
    >>> periodic = Spectral(np.array([1.0, 3.0, 3.0]), basis="fft")
    >>> periodic.from_basis(periodic.to_basis(np.array([1.0, 2.0, 5.0]))).round(12).tolist()
    [1.0, 2.0, 5.0]
    """

    name = "spectral"

    def __init__(self, symbol: Any, coupling_symbol: Array | float = 0.0, basis: str = "dct") -> None:
        if basis not in BASES:
            raise InputError(f"Spectral: basis is {basis!r}; expected one of {BASES}.")
        values = as_real(symbol, "Spectral: symbol")
        if not np.all(values > 0.0):
            raise InputError(f"Spectral: the smallest eigenvalue is {np.min(values, initial=np.inf):g}; expected > 0.")
        if basis == "fft" and not np.allclose(values, _reflect(values), rtol=1e-8):
            raise InputError("Spectral: the symbol is not even in the frequency; expected that of a real symmetric P.")
        self.symbol: Array = values
        self.coupling_symbol, self.basis = coupling_symbol, basis

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.name, "symbol": np.asarray(self.symbol).tolist(), "basis": self.basis}

    def with_coupling(self, coupling: Operator) -> Spectral:
        above = coupling.gram_symbol(self.basis)
        return Spectral(self.symbol, coupling.norm.upper * coupling.norm.upper if above is None else above, self.basis)

    def to_basis(self, x: Array) -> Array:
        return to_coordinates(x, self.basis)

    def from_basis(self, X: Array) -> Array:
        return from_coordinates(X, self.basis)

    def invert(self, x: Array) -> None:
        if self.basis != "dct" or not on_host(x) or not x.flags.c_contiguous:
            super().invert(x)
            return
        # Both transforms may use the memory of x itself.
        found = scipy.fft.dctn(x, norm="ortho", overwrite_x=True)
        found /= self.symbol
        found = scipy.fft.idctn(found, norm="ortho", overwrite_x=True)
        if not np.may_share_memory(found, x):
            np.copyto(x, found)


def to_coordinates(x: Array, basis: str) -> Array:
    """Orthonormal cosine or Hartley transform."""
    if isinstance(x, Remote):
        return cosine_transform(x) if basis == "dct" else hartley_transform(x)
    return np.asarray(scipy.fft.dctn(x, norm="ortho")) if basis == "dct" else _hartley(x)


def from_coordinates(X: Array, basis: str) -> Array:
    """The inverse of `to_coordinates`; the Hartley transform is its own."""
    if isinstance(X, Remote):
        return cosine_transform(X, inverse=True) if basis == "dct" else hartley_transform(X)
    return np.asarray(scipy.fft.idctn(X, norm="ortho")) if basis == "dct" else _hartley(X)


def _hartley(x: Array) -> Array:
    spectrum = scipy.fft.fftn(x, norm="ortho")
    return np.asarray(spectrum.real - spectrum.imag)


def _reflect(values: Array) -> Array:
    """Entry at -k for every frequency k."""
    for axis, n in enumerate(values.shape):
        values = np.take(values, -np.arange(n) % n, axis=axis)
    return values


def fit_spectral(
    hessian: Callable[[Array], Array], shape: Shape, coupling: Operator, modulus: float, rng: np.random.Generator,
    probes: int = 2, basis: str = "dct",
) -> Spectral:  # fmt: skip
    """Fit the diagonal of a Hessian in a fast basis from a few products with random signs.

    `hessian` takes a stack of all probes, since one pass over a matrix may serve several of them.
    E[v * T H T^-1 v] is the diagonal for random signs v; the average is smoothed over shells of equal frequency and
    kept above a floor and above `modulus`, a known lower bound of the Hessian.
    """
    signs = 2.0 * rng.integers(0, 2, size=(probes, *shape)) - 1.0
    points = np.stack([from_coordinates(v, basis) for v in signs])
    diagonal = sum(v * to_coordinates(image, basis) for v, image in zip(signs, hessian(points), strict=True))
    smooth = shell_average(diagonal / probes - modulus, basis)
    symbol = np.maximum(smooth, _FLOOR * float(smooth.max())) + modulus
    return Spectral(symbol, basis=basis).with_coupling(coupling)


def shell_average(values: Array, basis: str = "dct") -> Array:
    """Average over shells of equal radius in frequency, linearly interpolated between radii."""
    inner, near_outer, weight = (_kept if values.size <= _MOST_KEPT else _shells)(values.shape, basis)
    profile = _shell_sums(inner, near_outer, values.ravel()) / weight
    return ((1.0 - near_outer) * profile[inner] + near_outer * profile[inner + 1]).reshape(values.shape)


def _shell_sums(inner: _Indices, near_outer: Array, values: Array) -> Array:
    """Sums over shells; a frequency between two radii counts for both, in parts."""
    count = int(inner.max()) + 2
    inside = np.bincount(inner, (1.0 - near_outer) * values, count)
    return np.add(inside, np.bincount(inner + 1, near_outer * values, count), dtype=np.float64)


def _shells(shape: Shape, basis: str) -> tuple[_Indices, Array, Array]:
    """The radius just inside of each frequency, how near it is to the next one, and the sums of ones."""
    axes = np.ogrid[tuple(slice(0, n) for n in shape)]
    if basis == "fft":
        # Frequencies k and n - k are the same up to sign, and half as many steps of the cosine basis make one of these.
        axes = tuple(2 * np.minimum(axis, n - axis) for axis, n in zip(axes, shape, strict=True))
    squares = sum((axis / n) ** 2 for axis, n in zip(axes, shape, strict=True))
    radius = np.sqrt(squares).ravel() * max(shape)
    inner = np.floor(radius).astype(np.intp)
    # No frequency may lie near the last radius.
    return inner, radius - inner, np.maximum(_shell_sums(inner, radius - inner, np.ones(inner.size)), 1e-300)


_kept = lru_cache(maxsize=8)(_shells)
