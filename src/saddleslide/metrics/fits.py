"""Spectral metrics fitted to a Hessian: probes say which shape of symbol explains what it does to vectors.

A probe v and its image u = H v ask of a candidate P how far P^-1 u is from parallel to v,

    s(P; v, u) = log(|v|_P^2 |u|_(P^-1)^2 / <v, u>^2) >= 0,

which is blind to the scale of P. A candidate is fitted to all probes but one and asked about that one, for each.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy

from saddleslide.arrays.base import Array, Shape, inner_product
from saddleslide.metrics.spectral import Spectral, from_coordinates, to_coordinates
from saddleslide.operators.base import Operator

_Indices: TypeAlias = npt.NDArray[np.intp]
# Smallest fitted eigenvalue relative to the largest: noise of a few probes is of this size. Of weights of entries.
_FLOOR, _LEAST_SCALE = 1e-3, 0.1
# Others than shells along all axes are tried above this surprise (measured: round Hessians of tomography stay below
# 0.1), on grids of so many axes; weights of entries are taken if the surprise falls below this part.
_SURPRISING, _MOST_AXES, _WORTH = 0.15, 4, 0.95
# Widths of smoothed symbols, in frequencies.
_WIDTHS = (2.0, 4.0)
# Entries of grids whose shells are remembered: on larger ones finding them is little beside a product.
_MOST_KEPT = 2**16


class Form(NamedTuple):
    """What P may look like: how ratios of probes are averaged, in which basis, beside which weights of the entries."""

    smooth: Callable[[Array], Array]
    basis: str
    scale: Array | float = 1.0


def fit_spectral(
    hessian: Callable[[Array], Array], shape: Shape, coupling: Operator, modulus: float, rng: np.random.Generator,
    probes: int = 2, basis: str = "dct", diagonal: Callable[[], Array | None] = lambda: None,
) -> Spectral:  # fmt: skip
    """Fit a spectral metric to a Hessian by a few products with random signs.

    `hessian` takes a stack of all probes, since one pass over a matrix may serve several of them. E[v * T H T^-1 v] is
    the diagonal for random signs v; the average is smoothed over shells of equal frequency and kept above a floor and
    above `modulus`, a known lower bound of the Hessian. Where shells along all axes do not explain what one probe says
    of another, other candidates may: shells along some axes, symbols that are smoothed only, one number an entry of x,
    and with `diagonal`, that of the Hessian, symbols beside weights of the entries.
    """
    signs = 2.0 * rng.integers(0, 2, size=(probes, *shape)) - 1.0
    points = np.stack([from_coordinates(v, basis) for v in signs])
    images = hessian(points)

    def fit(kind: Form, pairs: Sequence[tuple[Array, Array]]) -> Array:
        least = modulus / float(np.max(kind.scale)) ** 2
        if kind.basis == basis and isinstance(kind.scale, float):
            ratio = kind.smooth(sum((a * b - least for a, b in pairs), np.zeros(shape)) / len(pairs))
        else:
            weights = sum((a * a for a, _ in pairs), np.zeros(shape))
            ratio = kind.smooth(sum((a * b for a, b in pairs), np.zeros(shape)) - least * weights)
            ratio = ratio / np.maximum(kind.smooth(weights), np.finfo(float).tiny)
        return np.asarray(np.maximum(ratio, _FLOOR * float(ratio.max())) + least)

    def pairs_of(kind: Form) -> list[tuple[Array, Array]]:
        """Probes and their images in the coordinates of a candidate."""
        if kind.basis == basis and isinstance(kind.scale, float):
            return [(v, to_coordinates(image, basis)) for v, image in zip(signs, images, strict=True)]
        return [
            (to_coordinates(kind.scale * v, kind.basis), to_coordinates(image / kind.scale, kind.basis))
            for v, image in zip(points, images, strict=True)
        ]

    def surprise(kind: Form) -> float:
        """How far P^-1 H v is from parallel to v, on average over probes that P was not fitted to; 0 if it is."""
        total, pairs = 0.0, pairs_of(kind)
        for k, (a, b) in enumerate(pairs):
            symbol = fit(kind, pairs[:k] + pairs[k + 1 :])
            size = inner_product(a, b)
            total += math.log(float(np.sum(symbol * a * a)) * float(np.sum(b * b / symbol)) / (size * size))
        return total / probes

    chosen = every = Form(partial(_smooth, tuple(range(len(shape))), basis), basis)
    comparable = probes > 1 and 1 < len(shape) <= _MOST_AXES and min(inner_product(i, i) for i in images) > 0.0
    if comparable and (worst := surprise(every)) > _SURPRISING:
        found = {kind: surprise(kind) for kind in _shapes(shape, basis)} | {every: worst}
        # A Hessian is diagonal in the entries or it is not: nothing is learnt beside that.
        found = {kind: level for kind, level in found.items() if kind.basis == basis or level < _SURPRISING}
        chosen = min(found, key=lambda kind: found[kind])
        weights = None if chosen.basis == "entries" else diagonal()
        if weights is not None:
            scale = np.sqrt(weights.reshape(shape) / float(weights.mean()))
            scale = np.maximum(scale, _LEAST_SCALE * float(scale.max()))
            scaled = chosen._replace(scale=scale)
            if surprise(scaled) < _WORTH * found[chosen]:
                chosen = scaled
    symbol = fit(chosen, pairs_of(chosen))
    return Spectral(symbol, basis=chosen.basis, scale=chosen.scale).with_coupling(coupling)


def _shapes(shape: Shape, basis: str) -> Iterator[Form]:
    """Candidates beside shells along all axes."""
    every = range(len(shape))
    for count in every[1:]:
        for axes in itertools.combinations(every, count):
            yield Form(partial(_smooth, axes, basis), basis)
    if basis == "dct":
        for width in _WIDTHS:
            yield Form(partial(_blur, width), basis)
    yield Form(np.asarray, "entries")


def _blur(width: float, values: Array) -> Array:
    """Gaussian averages over neighbouring frequencies; near frequency 0, which has few, those over shells."""
    spectrum, radius = scipy.fft.dctn(values), np.zeros(())
    for k in np.ogrid[tuple(slice(0, n) for n in values.shape)]:
        # Axes with one point have the frequency 0 alone.
        spectrum = spectrum * np.exp(-0.5 * (width * math.pi * k / k.size) ** 2)
        radius = radius + (k / k.size) ** 2
    near = np.exp(-0.5 * radius * (max(values.shape) / (2.0 * width)) ** 2)
    return np.asarray((1.0 - near) * scipy.fft.idctn(spectrum) + near * shell_average(values))


def _smooth(axes: tuple[int, ...], basis: str, values: Array) -> Array:
    """Averages over shells of frequencies along some axes, and over all of the others."""
    others = tuple(axis for axis in range(values.ndim) if axis not in axes)
    if not others:
        return shell_average(values, basis)
    found = np.expand_dims(shell_average(np.mean(values, axis=others), basis), others)
    return np.broadcast_to(found, values.shape)


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
