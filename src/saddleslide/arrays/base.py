"""Turning what callers pass into the arrays we work on: real, finite, double precision, never aliased."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from saddleslide.arrays.kinds import NUMPY, to_host
from saddleslide.arrays.remote import Elsewhere
from saddleslide.errors import InputError

Array: TypeAlias = npt.NDArray[np.float64]
Shape: TypeAlias = tuple[int, ...]


def as_shape(value: Any, name: str) -> Shape:
    """Read a length or a sequence of lengths as a shape.

    Examples
    --------
    >>> as_shape(60, "X"), as_shape((4, 5), "X")
    ((60,), (4, 5))
    """
    refusal = InputError(f"{name}: shape is {value!r}; expected a length or a tuple of lengths >= 0.")
    try:
        lengths = (value,) if np.isscalar(value) else tuple(value)
        wrong = not lengths or any(isinstance(n, bool) or int(n) != n or n < 0 for n in lengths)
    except (TypeError, ValueError, OverflowError):
        raise refusal from None
    if wrong:
        raise refusal
    return tuple(int(n) for n in lengths)


def as_real(value: Any, name: str, shape: Shape | None = None, finite: bool = True) -> Array:
    """Copy `value` into a new read-only float64 array and refuse what is not real, not finite or of the wrong shape.

    Examples
    --------
    >>> as_real([1, 2], "b")
    array([1., 2.])
    """
    try:
        array = to_host(value)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    except ValueError:
        raise InputError(f"{name}: received rows of different lengths; expected an array of real numbers.") from None
    if array.dtype == object or array.dtype.kind not in "biuf":
        raise InputError(f"{name}: dtype is {array.dtype}; expected real numbers.")
    if shape is not None and array.shape != shape:
        raise InputError(f"{name}: shape is {array.shape}; expected {shape}.")
    result = np.array(array, dtype=np.float64, order="C")
    if np.isnan(result).any():
        raise InputError(f"{name}: contains NaN ({int(np.isnan(result).sum())} of {result.size} entries).")
    if finite and not np.isfinite(result).all():
        raise InputError(f"{name}: contains infinite entries; expected finite numbers.")
    # What was validated stays as it was.
    result.flags.writeable = False
    return result


def as_number(value: Any, name: str, minimum: float = -np.inf, finite: bool = True) -> float:
    """Read one real number, at least `minimum`.

    Examples
    --------
    >>> as_number(2, "ridge", minimum=0.0)
    2.0
    """
    expected = ("a finite number" if finite else "a number") + ("" if minimum == -np.inf else f" >= {minimum:g}")
    try:
        # float() would read "3" and True as numbers.
        unreadable = isinstance(value, str | bytes | bool | np.bool_) or np.ma.is_masked(value)
        number = math.nan if unreadable else float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} is {value!r}; expected {expected}.") from None
    if np.isnan(number) or number < minimum or (finite and not np.isfinite(number)):
        raise InputError(f"{name} is {value!r}; expected {expected}.")
    return number


def key_of(*arrays: Array) -> str:
    """A short key of the values of arrays, to tell whether two are the same.

    Examples
    --------
    >>> key_of(np.zeros(2)) == key_of(np.zeros(2)), key_of(np.zeros(2)) == key_of(np.ones(2))
    (True, False)
    """
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def split(flat: Array, shapes: Sequence[Shape]) -> list[Array]:
    """Views of a flat vector, one per block, in the shape of that block.

    Examples
    --------
    >>> [block.shape for block in split(np.zeros(10), [(2, 2), (6,)])]
    [(2, 2), (6,)]
    """
    views, start = [], 0
    for shape in shapes:
        stop = start + math.prod(shape)
        views.append(flat[start:stop].reshape(shape))
        start = stop
    return views


def as_floats(array: Any) -> Array:
    """An array in double precision, where it lies; the array itself if it is one.

    Examples
    --------
    >>> as_floats([1, 2])
    array([1., 2.])
    """
    return array if isinstance(array, Elsewhere) else np.asarray(array, dtype=np.float64)  # type: ignore[return-value]


def coarseness(value: Any) -> float:
    """How far rounding alone may have moved the entries of a point, relative to them: to the sixth digit in float32.

    Examples
    --------
    >>> coarseness(np.ones(2)), coarseness(np.ones(2, dtype=np.float32))
    (0.0, 1e-06)
    """
    return 1e-6 if str(getattr(value, "dtype", "")).endswith("float32") else 0.0


def frozen(array: Array) -> Array:
    """A new array that nobody can write to: arrays elsewhere keep a copy of such a one.

    Examples
    --------
    >>> frozen(np.ones(2)).flags.writeable
    False
    """
    made = array.copy()
    if isinstance(made, np.ndarray):
        made.flags.writeable = False
    return made


def read_only(array: Array) -> Array:
    """A view that user code can not write to.

    Examples
    --------
    >>> read_only(np.zeros(2)).flags.writeable
    False
    """
    view: Any = array.closed() if isinstance(array, Elsewhere) else NUMPY.wrap(array)
    return view  # type: ignore[no-any-return]


def blank(shape: Shape, near: Array) -> Array:
    """A new array of a shape, where another one lies; its entries are not set.

    Examples
    --------
    >>> blank((2, 3), np.zeros(5)).shape
    (2, 3)
    """
    made: Any = near.new(shape) if isinstance(near, Elsewhere) else np.empty(shape)
    return made  # type: ignore[no-any-return]


def zeros(shape: Shape | int, near: Array) -> Array:
    """Zeros, where another array lies.

    Examples
    --------
    >>> zeros(2, np.ones(5))
    array([0., 0.])
    """
    made: Any = near.new(shape) if isinstance(near, Elsewhere) else np.zeros(shape)
    return made  # type: ignore[no-any-return]


def on_host(array: Array) -> bool:
    """Whether an array is NumPy's own, so that compiled loops can take it.

    Examples
    --------
    >>> on_host(np.zeros(2))
    True
    """
    return not isinstance(array, Elsewhere)


def beside(near: Array, array: Any) -> Any:
    """An array of the host where another one lies; anything else, and for NumPy everything, as it is.

    Examples
    --------
    >>> beside(np.zeros(2), np.ones(2))
    array([1., 1.])
    """
    if isinstance(near, Elsewhere) and isinstance(array, np.ndarray) and array.ndim:
        return Elsewhere(near.kind, near.native_of(array))
    return array


def received(value: Any, shape: Shape, name: str, out: Array | None = None, near: Array | None = None) -> Array:
    """Copy what user code returned, refusing other shapes and kinds of numbers; to where `near` lies, if that is given.

    Examples
    --------
    >>> received([1, 2], (2,), "B x")
    array([1., 2.])
    """
    try:
        array = value if isinstance(value, Elsewhere) else to_host(value)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    if array.dtype.kind not in "biuf" or array.shape != shape:
        raise InputError(
            f"{name}: received shape {array.shape}, dtype {array.dtype}; expected real numbers of shape {shape}."
        )
    if out is not None:
        np.copyto(out, array)
        return out
    if isinstance(near, Elsewhere):
        kept: Array = beside(near, array)
        return kept
    return np.array(array, dtype=np.float64)


def received_number(value: Any, name: str) -> float:
    """One real number that user code returned, possibly infinite or NaN.

    Examples
    --------
    >>> received_number(np.array([2.0]), "value")
    2.0
    """
    try:
        array = np.asarray(to_host(value))
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    if array.dtype.kind not in "biuf" or array.size != 1:
        raise InputError(f"{name}: received shape {array.shape}, dtype {array.dtype}; expected one real number.")
    return float(array.reshape(-1)[0])
