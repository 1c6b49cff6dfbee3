"""P diagonal in a fast orthonormal basis of the grid of x, given or fitted to a Hessian."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, final

import numpy as np
import scipy

from saddleslide.arrays.base import Array, Shape, as_real, on_host
from saddleslide.arrays.remote import Elsewhere
from saddleslide.arrays.remote.transforms import cosine_transform, hartley_transform
from saddleslide.errors import InputError
from saddleslide.metrics.base import Symbol
from saddleslide.metrics.shells import shell_average

if TYPE_CHECKING:
    from saddleslide.operators import Coupling

BASES = ("dct", "fft")
# Smallest fitted eigenvalue relative to the largest (facts of the fit: noise of a few probes is of this size).
_FLOOR = 1e-3


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
    >>> metric.squared_norm(metric.to_basis(np.array([1.0, 1.0]))).__round__(12)
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
        if basis == "fft" and not np.allclose(values, _reflected(values), rtol=1e-8):
            raise InputError("Spectral: the symbol is not even in the frequency; expected that of a real symmetric P.")
        self.symbol: Array = values
        self.coupling_symbol, self.basis = coupling_symbol, basis

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.name, "symbol": np.asarray(self.symbol).tolist(), "basis": self.basis}

    def attached(self, coupling: Coupling) -> Spectral:
        return Spectral(self.symbol, _above_gram(coupling, self.basis), self.basis)

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
    if isinstance(x, Elsewhere):
        return cosine_transform(x) if basis == "dct" else hartley_transform(x)
    return np.asarray(scipy.fft.dctn(x, norm="ortho")) if basis == "dct" else _hartley(x)


def from_coordinates(X: Array, basis: str) -> Array:
    """The inverse of `to_coordinates`; the Hartley transform is its own."""
    if isinstance(X, Elsewhere):
        return cosine_transform(X, inverse=True) if basis == "dct" else hartley_transform(X)
    return np.asarray(scipy.fft.idctn(X, norm="ortho")) if basis == "dct" else _hartley(X)


def _above_gram(coupling: Coupling, basis: str) -> Array | float:
    """Symbol of an S that is at least B^T B."""
    gram = coupling.gram_symbol(basis)
    return coupling.norm.upper * coupling.norm.upper if gram is None else gram


def _hartley(x: Array) -> Array:
    spectrum = scipy.fft.fftn(x, norm="ortho")
    return np.asarray(spectrum.real - spectrum.imag)


def _reflected(values: Array) -> Array:
    """Entry at -k for every frequency k."""
    for axis, n in enumerate(values.shape):
        values = np.take(values, -np.arange(n) % n, axis=axis)
    return values


def fit_spectral(
    hessian: Callable[[Array], Array],
    shape: Shape,
    coupling: Coupling,
    modulus: float,
    rng: np.random.Generator,
    probes: int = 2,
    basis: str = "dct",
) -> Spectral:
    """Fit the diagonal of a Hessian in a fast basis from a few products with random signs.

    `hessian` takes a stack of all probes, since one pass over a matrix may serve several of them.
    E[v * T H T^-1 v] is the diagonal for random signs v; the average is smoothed over shells of equal frequency and
    kept above a floor and above `modulus`, a known lower bound of the Hessian.

    Examples
    --------
    >>> import numpy as np
    >>> import saddleslide as ss
    >>> B = ss.operators.FiniteDifferences((8, 8))
    >>> metric = fit_spectral(lambda v: 3.0 * v, (8, 8), B, 0.0, np.random.default_rng(0))
    >>> bool(np.allclose(metric.symbol, 3.0))
    True
    """
    signs = 2.0 * rng.integers(0, 2, size=(probes, *shape)) - 1.0
    points = np.stack([from_coordinates(v, basis) for v in signs])
    images = hessian(points)
    diagonal = sum(v * to_coordinates(image, basis) for v, image in zip(signs, images, strict=True))
    smooth = shell_average(diagonal / probes - modulus, basis)
    symbol = np.maximum(smooth, _FLOOR * float(smooth.max())) + modulus
    return Spectral(symbol, _above_gram(coupling, basis), basis)
