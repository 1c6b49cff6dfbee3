"""Groups of entries, along an axis or along several: their norms, and steps that shorten them."""

from __future__ import annotations

import string
from numbers import Integral
from typing import Any

import numpy as np

from saddleslide.arrays.base import Array, Shape, as_floats, beside, on_host
from saddleslide.errors import InputError


def as_axes(axis: Any, name: str) -> tuple[int, ...]:
    """One axis or several different ones."""
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    whole = all(isinstance(k, Integral) and not isinstance(k, bool) for k in axes)
    if not axes or not whole or len({int(k) for k in axes}) != len(axes):
        raise InputError(f"{name}: axis is {axis!r}; expected an axis, or a tuple of different axes that form a group.")
    return tuple(int(k) for k in axes)


def pair_axes(axes: tuple[int, ...]) -> tuple[int, ...]:
    """Axes of groups of complex numbers among those of their pairs: the last one, of the pairs, joins every group."""
    return (*(k if k >= 0 else k - 1 for k in axes), -1)


def axes_in(axes: tuple[int, ...], shape: Shape, name: str) -> tuple[int, ...]:
    """The axes of arrays of a shape, counted from the first one."""
    found = tuple(sorted({k % len(shape) for k in axes if -len(shape) <= k < len(shape)}))
    if len(found) != len(axes):
        raise InputError(f"{name}: axis is {axes}; expected different axes of an array of shape {shape}.")
    return found


def group_norms(x: Array, axes: tuple[int, ...], name: str) -> Array:
    """The norm of every group, over the axes that are left, in a shape that goes with x."""
    axes = axes_in(axes, x.shape, name)
    if on_host(x):
        # In one pass, and without an array of squares.
        letters = string.ascii_lowercase[: x.ndim]
        left = "".join(letter for k, letter in enumerate(letters) if k not in axes)
        squares = np.asarray(np.einsum(f"{letters},{letters}->{left}", x, x))
    else:
        squares = as_floats(np.sum(x * x, axis=axes))
    norms: Array = np.sqrt(squares).reshape(tuple(1 if k in axes else n for k, n in enumerate(x.shape)))
    return norms


def spread(weights: Array | float, norms: Array, name: str) -> Any:
    """Numbers of the groups in the shape of their norms."""
    if not isinstance(weights, np.ndarray):
        return weights
    if weights.size != norms.size:
        raise InputError(
            f"{name}: weights has shape {weights.shape}; expected a number for each of {norms.size} groups."
        )
    return beside(norms, weights.reshape(norms.shape))


def shorten_groups(x: Array, norms: Array, by: Array | float) -> Array:
    """Groups shorter by a length, those that are no longer than that at 0."""
    # Nothing is divided by 0: a group of zeros stays one.
    factors = 1.0 - np.minimum(by / np.maximum(norms, 1e-300), 1.0)
    moved: Array = x * factors
    return moved
