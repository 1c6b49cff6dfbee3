"""Operators by fast transforms: convolutions, Fourier samples, wavelet coefficients. They are computed on the host."""

from __future__ import annotations

import importlib
import math
from abc import abstractmethod
from functools import cached_property
from typing import Any, final

import numpy as np
import numpy.typing as npt

from saddleslide.arrays.arguments import as_whole, as_word
from saddleslide.arrays.base import Array, Shape, as_grid, as_real, receive, to_complex, to_real
from saddleslide.arrays.kinds import NUMPY, ArrayKind, to_host
from saddleslide.errors import InputError, MissingExtraError
from saddleslide.operators.base import COMPLEX, REAL, Operator
from saddleslide.operators.complex import is_complex
from saddleslide.operators.spectrum import (
    NormBound,
    SmallestSingularValue,
    margin_of_rounding,
    power_estimate,
    summation_error,
)

_BOUNDARIES = ("periodic", "zero", "reflect")
_CLOSED = "closed form"


def transform_error(size: int) -> float:
    """Rounding error of a fast Fourier transform, relative to sizes: some roundings for each of log2(size) stages."""
    return 32.0 * summation_error(1) * (1.0 + math.log2(max(size, 2)))


class HostTransform(Operator):
    """An operator whose products are computed by NumPy code, wherever the arrays lie."""

    def stays_on_host(self, kind: ArrayKind) -> tuple[str, ...]:
        return () if kind == NUMPY else (f"{type(self).__name__}: a transform on the host",)

    def forward(self, x: Array, out: Array | None = None) -> Array:
        return receive(self._forward(to_host(x)), self.y_shape, f"{type(self).__name__} x", out, x)

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        return receive(self._adjoint(to_host(y)), self.x_shape, f"{type(self).__name__}^T y", out, y)

    @abstractmethod
    def _forward(self, x: Array) -> Array: ...

    @abstractmethod
    def _adjoint(self, y: Array) -> Array: ...


@final
class Convolution(HostTransform):
    """Convolution with a kernel, by fast Fourier transforms: y_i = sum over j of kernel_j x_{i + c - j}, c = n // 2.

    Parameters
    ----------
    kernel : array
        Real numbers; its middle, entry n // 2 of n along every axis, is the one at distance 0.
    shape : tuple of int
        Shape of x and y. Axes beyond those of the kernel are channels, each convolved apart.
    boundary : "periodic", "zero" or "reflect"
        What lies beyond the ends: x again, zeros, or x mirrored (d c b a | a b c d | d c b a). Results are those of
        `scipy.ndimage.convolve` with "wrap", "constant" and "reflect".
    dtype : float or complex, optional
        With `complex`, x is the view of a complex array of that shape: (*shape, 2).

    Examples
    --------
    >>> import numpy as np
    >>> Convolution([1.0, 2.0, 3.0], 4, boundary="zero").forward(np.array([0.0, 1.0, 0.0, 0.0])).round(12) + 0.0
    array([1., 2., 3., 0.])
    """

    def __init__(self, kernel: Any, shape: Any, boundary: str = "periodic", dtype: Any = float) -> None:
        self.kernel, whole = as_real(kernel, "Convolution: kernel"), as_grid(shape, "Convolution")
        self.boundary = as_word(boundary, "Convolution: boundary", _BOUNDARIES)
        pairs = is_complex(dtype, "Convolution")
        axes, sides = self.kernel.ndim, self.kernel.shape
        if not 1 <= axes <= len(whole) or any(not 1 <= m <= n for m, n in zip(sides, whole, strict=False)):
            raise InputError(
                f"Convolution: kernel has shape {sides}, x has shape {whole}; expected a kernel that is no larger than "
                "x along any axis. Crop it, or pad x."
            )
        self.x_shape = self.y_shape = whole + (2,) * pairs
        self.x_dtype = self.y_dtype = COMPLEX if pairs else REAL
        self._axes, self._sides = tuple(range(axes)), whole[:axes]
        # Beyond the ends lie m - 1 points, so that nothing comes round to where it is read.
        self._wide = tuple(n + m - 1 for n, m in zip(self._sides, sides, strict=True))
        self._before = tuple(m - 1 - m // 2 for m in sides)
        if boundary == "periodic":
            self._period, placed = self._sides, _centre(self.kernel, self._sides)
        else:
            fast = importlib.import_module("scipy.fft").next_fast_len
            self._period, placed = tuple(fast(n, real=True) for n in self._wide), self.kernel
        transform = np.fft.rfftn(placed, self._period, self._axes)
        self._symbol = transform.reshape(transform.shape + (1,) * (len(self.x_shape) - axes))

    def __repr__(self) -> str:
        return f"Convolution({self.kernel.shape} on {self.x_shape}, {self.boundary})"

    def _forward(self, x: Array) -> Array:
        if self.boundary == "periodic":
            return self._convolve(x, self._symbol)
        width = [(b, m - 1 - b) for b, m in zip(self._before, self.kernel.shape, strict=True)]
        width += [(0, 0)] * (x.ndim - len(width))
        wide = np.pad(x, width, mode="constant" if self.boundary == "zero" else "symmetric")
        return self._convolve(wide, self._symbol)[self._read]

    def _adjoint(self, y: Array) -> Array:
        if self.boundary == "periodic":
            return self._convolve(y, self._symbol.conj())
        placed = np.zeros(self._period + y.shape[len(self._period) :])
        placed[self._read] = y
        wide = self._convolve(placed, self._symbol.conj())
        for axis, (before, n, length) in enumerate(zip(self._before, self._sides, self._wide, strict=True)):
            wide = np.moveaxis(wide, axis, 0)
            inside, after = wide[before : before + n].copy(), length - before - n
            if self.boundary == "reflect":
                inside[:before] += wide[:before][::-1]
                inside[n - after :] += wide[before + n : length][::-1]
            wide = np.moveaxis(inside, 0, axis)
        return wide

    @property
    def _read(self) -> tuple[slice, ...]:
        """Where the result lies on the wide grid."""
        return tuple(slice(m - 1, m - 1 + n) for n, m in zip(self._sides, self.kernel.shape, strict=True))

    def _convolve(self, x: Array, symbol: npt.NDArray[np.complex128]) -> Array:
        spectrum = np.fft.rfftn(x, self._period, self._axes)
        spectrum *= symbol
        return np.fft.irfftn(spectrum, self._period, self._axes)

    @property
    def _is_even(self) -> bool:
        """Whether the kernel is the same mirrored along each of its axes, so that cosines are its eigenvectors."""
        odd = all(m % 2 for m in self.kernel.shape)
        return odd and all(np.array_equal(self.kernel, np.flip(self.kernel, axis)) for axis in self._axes)

    @cached_property
    def _size(self) -> float:
        """Sum of |kernel|: no eigenvalue is larger, and rounding is relative to it."""
        return float(np.abs(self.kernel).sum()) * (1.0 + summation_error(self.kernel.size))

    @property
    def _slack(self) -> float:
        """Error of an eigenvalue."""
        return transform_error(2 ** len(self._sides) * math.prod(self._period)) * self._size

    def _eigenvalues(self, basis: str) -> Array | None:
        """Sizes of the eigenvalues in a basis, on its grid, where that makes it diagonal."""
        if self.boundary == "periodic" and basis == "fft":
            return np.abs(np.fft.fftn(_centre(self.kernel, self._sides)))
        if self.boundary == "reflect" and basis == "dct" and self._is_even:
            twice = np.fft.fftn(_centre(self.kernel, tuple(2 * n for n in self._sides)))
            return np.abs(twice[tuple(slice(n) for n in self._sides)].real)
        return None

    def gram_symbol(self, basis: str = "dct") -> Array | None:
        """For periodic ends in the Fourier basis, and for mirrored ends and an even kernel in the cosine basis."""
        values = self._eigenvalues(basis)
        if values is None:
            return None
        squares = (values + self._slack).reshape(values.shape + (1,) * (len(self.x_shape) - values.ndim)) ** 2
        return np.array(np.broadcast_to(squares, self.x_shape))

    @cached_property
    def norm(self) -> NormBound:
        """Exact for periodic ends, and for mirrored ends and an even kernel; else an upper bound."""
        values = self._eigenvalues("fft" if self.boundary == "periodic" else "dct")
        if values is not None:
            exact = float(values.max())
            return NormBound(min(exact + self._slack, self._size), min(exact, self._size), _CLOSED)
        if self.boundary == "zero":
            # Zeros are put around x and cut off again: the norm is at most that on the wide, periodic grid.
            upper = min(float(np.abs(self._symbol).max()) + self._slack, self._size)
        else:
            # |B|^2 is at most the largest sum of a row times that of a column, in absolute values.
            sizes = Convolution(np.abs(self.kernel), self._sides, self.boundary)
            largest = float(sizes.adjoint(np.ones(self._sides)).max())
            error = sizes.product_error * math.sqrt(math.prod(self._sides))
            upper = math.sqrt(self._size * (largest + error)) * (1.0 + margin_of_rounding(4))
        return NormBound(upper, min(power_estimate(self), upper), "sums of the kernel")

    @property
    def product_error(self) -> float:
        # Mirrored, x has up to 2 copies along every axis.
        copies = 2.0 ** (0.5 * len(self._sides)) if self.boundary == "reflect" else 1.0
        return 4.0 * transform_error(math.prod(self._period)) * copies * self._size


def _centre(kernel: Array, period: Shape) -> Array:
    """A kernel on a periodic grid, its middle at 0."""
    placed = np.zeros(period)
    placed[tuple(map(slice, kernel.shape))] = kernel
    return np.roll(placed, [-(m // 2) for m in kernel.shape], tuple(range(kernel.ndim)))


@final
class Fourier(HostTransform):
    """The orthonormal discrete Fourier transform, or some samples of it.

    Parameters
    ----------
    shape : tuple of int
        Shape of x; it is taken as pairs of real numbers, (*shape, 2).
    mask : array of bool, optional
        Which frequencies are kept, frequency 0 first as in `numpy.fft.fftn`; y has one complex number for each, in the
        order of `spectrum[mask]`. All of them by default, in the shape of x.
    dtype : complex or float, optional
        With `float`, x is real, of that shape, and the adjoint takes the real part.

    Examples
    --------
    >>> import numpy as np
    >>> F = Fourier(4, mask=[True, False, True, False])
    >>> (F @ np.array([1.0 + 0j, 1.0, 1.0, 1.0])).round(12) + 0
    array([2.+0.j, 0.+0.j])
    """

    def __init__(self, shape: Any, mask: Any = None, dtype: Any = complex) -> None:
        self.grid = as_grid(shape, "Fourier")
        self.mask = None if mask is None else np.array(to_host(mask))
        if self.mask is not None and (self.mask.dtype != np.bool_ or self.mask.shape != self.grid):
            received_one = f"mask has shape {self.mask.shape}, dtype {self.mask.dtype}"
            raise InputError(f"Fourier: {received_one}; expected True or False for every entry of {self.grid}.")
        self.x_dtype, self.y_dtype = COMPLEX if is_complex(dtype, "Fourier") else REAL, COMPLEX
        kept = self.grid if self.mask is None else (int(self.mask.sum()),)
        self.x_shape = (*self.grid, 2) if self.x_dtype == COMPLEX else self.grid
        self.y_shape = (*kept, 2)

    def __repr__(self) -> str:
        return f"Fourier({self.x_shape} -> {self.y_shape})"

    def _forward(self, x: Array) -> Array:
        spectrum = np.fft.fftn(to_complex(x) if self.x_dtype == COMPLEX else x, norm="ortho")
        return to_real(spectrum if self.mask is None else spectrum[self.mask])

    def _adjoint(self, y: Array) -> Array:
        spectrum = to_complex(y)
        if self.mask is not None:
            samples, spectrum = spectrum, np.zeros(self.grid, np.complex128)
            spectrum[self.mask] = samples
        found = np.fft.ifftn(spectrum, norm="ortho")
        return to_real(found) if self.x_dtype == COMPLEX else found.real

    def gram_symbol(self, basis: str = "dct") -> Array | None:
        """For real x the mean of what is kept at k and at -k, exactly; for complex x the larger one, an upper bound."""
        if basis != "fft":
            return None
        kept = np.ones(self.grid) if self.mask is None else self.mask.astype(float)
        mirrored = kept
        for axis, n in enumerate(self.grid):
            mirrored = np.take(mirrored, -np.arange(n) % n, axis=axis)
        if self.x_dtype == REAL:
            return 0.5 * (kept + mirrored)
        return np.repeat(np.maximum(kept, mirrored)[..., None], 2, axis=-1)

    @cached_property
    def norm(self) -> NormBound:
        symbol = self.gram_symbol("fft")
        assert symbol is not None
        exact = math.sqrt(float(symbol.max()))
        return NormBound(exact * (1.0 + margin_of_rounding(4)), exact, _CLOSED)

    @property
    def product_error(self) -> float:
        return transform_error(math.prod(self.grid)) * self.norm.upper

    def smallest_singular_value(self, positive: bool = False) -> SmallestSingularValue:
        symbol = self.gram_symbol("fft")
        assert symbol is not None
        if self.x_dtype == COMPLEX and self.mask is not None:
            # F^H M F is a projection.
            value = float(self.mask.any() if positive else self.mask.all())
        else:
            value = math.sqrt(float(symbol[symbol > 0.0].min(initial=1.0) if positive else symbol.min()))
            value *= bool(symbol.any())
        return SmallestSingularValue(value * (1.0 - margin_of_rounding(4)), value, _CLOSED)


@final
class Wavelet(HostTransform):
    """Coefficients of an orthogonal wavelet transform with periodic ends (PyWavelets), flat.

    Their order is that of `pywt.ravel_coeffs(pywt.wavedecn(x, wavelet, "periodization", levels))`. Lengths that are no
    multiples of 2^levels are filled up with zeros, so that W^T W is the identity for every shape.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of x, any number of axes.
    wavelet : str
        Name of an orthogonal wavelet: "haar", "db2", "sym4", "coif1", ...
    levels : int, optional
        Number of levels; by default as many as `pywt.dwtn_max_level` says.
    dtype : float or complex, optional
        With `complex`, x and the coefficients are complex, as pairs of real numbers along one more axis.

    Examples
    --------
    >>> import numpy as np
    >>> Wavelet(4, "haar").forward(np.array([1.0, 1.0, 1.0, 3.0])).round(12).tolist()
    [3.0, -1.0, 0.0, -1.414213562373]
    """

    def __init__(self, shape: Any, wavelet: str = "db2", levels: int | None = None, dtype: Any = float) -> None:
        self.grid, pairs = as_grid(shape, "Wavelet"), is_complex(dtype, "Wavelet")
        try:
            self._pywt = importlib.import_module("pywt")
        except ImportError as missing:
            raise MissingExtraError(
                "Wavelet: PyWavelets is not installed; expected it for wavelets. Install saddleslide[wavelets]."
            ) from missing
        is_known = wavelet in self._pywt.wavelist(kind="discrete")
        self.wavelet = wavelet
        self._filters: Any = self._pywt.Wavelet(wavelet) if is_known else None
        if self._filters is None or not self._filters.orthogonal:
            raise InputError(
                f'Wavelet: wavelet is {wavelet!r}; expected an orthogonal one: "haar", "db2", "sym4", "coif1", ...'
            )
        most = self._pywt.dwtn_max_level(self.grid, self._filters)
        self.levels = most if levels is None else as_whole(levels, "Wavelet: levels", 0)
        self._padded = tuple(-(-n // 2**self.levels) * 2**self.levels for n in self.grid)
        trailing = (2,) * pairs
        self.x_shape, self.y_shape = (*self.grid, *trailing), (math.prod(self._padded), *trailing)
        self.x_dtype = self.y_dtype = COMPLEX if pairs else REAL

    def __repr__(self) -> str:
        return f"Wavelet({self.x_shape}, {self.wavelet!r}, levels={self.levels})"

    @property
    def _axes(self) -> tuple[int, ...]:
        return tuple(range(len(self.grid)))

    def _forward(self, x: Array) -> Array:
        trailing = self.x_shape[len(self.grid) :]
        coarse = np.zeros(self._padded + trailing)
        coarse[tuple(map(slice, self.grid))] = x
        blocks: list[Array] = []
        for _ in range(self.levels):
            found = self._pywt.dwtn(coarse, self._filters, "periodization", self._axes)
            coarse = found.pop("a" * len(self.grid))
            blocks = [found[word] for word in sorted(found)] + blocks
        return np.concatenate([block.reshape(-1, *trailing) for block in (coarse, *blocks)])

    def _adjoint(self, y: Array) -> Array:
        trailing, axes = self.x_shape[len(self.grid) :], len(self.grid)
        words = [f"{k:0{axes}b}".replace("0", "a").replace("1", "d") for k in range(1, 2**axes)]
        shape = tuple(n >> self.levels for n in self._padded)
        stop = math.prod(shape)
        coarse = y[:stop].reshape(*shape, *trailing)
        for _ in range(self.levels):
            found = {"a" * axes: coarse}
            for word in words:
                start, stop = stop, stop + math.prod(shape)
                found[word] = y[start:stop].reshape(*shape, *trailing)
            coarse = self._pywt.idwtn(found, self._filters, "periodization", self._axes)
            shape = tuple(2 * n for n in shape)
        return np.array(coarse[tuple(map(slice, self.grid))])

    @cached_property
    def _deviation(self) -> float:
        """How far the squares of singular values are from 1: printed filters are orthogonal to some digits."""
        low, high = np.array(self._filters.dec_lo), np.array(self._filters.dec_hi)
        total = 0.0
        for first, second, same in ((low, low, 1.0), (high, high, 1.0), (low, high, 0.0)):
            products = np.correlate(first, second, "full")[(len(low) - 1) % 2 :: 2]
            products[(len(low) - 1) // 2] -= same
            total += float(np.abs(products).sum()) * (1.0 if same else 2.0)
        one = total + summation_error(8 * len(low))
        return math.expm1(self.levels * len(self.grid) * math.log1p(one))

    @cached_property
    def norm(self) -> NormBound:
        upper = math.sqrt(1.0 + self._deviation) * (1.0 + margin_of_rounding(4))
        return NormBound(upper, math.sqrt(max(1.0 - self._deviation, 0.0)), "orthogonal filters")

    def gram_symbol(self, basis: str = "dct") -> Array:
        """That of the identity."""
        return np.full(self.x_shape, self.norm.upper**2)

    @property
    def product_error(self) -> float:
        terms = self._filters.dec_len * self.levels * len(self.grid)
        # The sums of |filter| bound what one pass makes of rounding errors.
        growth = float(np.abs(self._filters.dec_lo).sum())
        return summation_error(2 * terms) * growth ** len(self.grid) * self.norm.upper

    def smallest_singular_value(self, positive: bool = False) -> SmallestSingularValue:
        lower = math.sqrt(max(1.0 - self._deviation, 0.0)) * (1.0 - margin_of_rounding(4))
        return SmallestSingularValue(lower, 1.0, "orthogonal filters")
