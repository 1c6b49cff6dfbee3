"""Turning what callers pass into the arrays we work on: real, finite, double precision, never aliased."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import scipy

from saddleslide.arrays.kinds import NUMPY, Remote, to_host
from saddleslide.errors import InputError

Array: TypeAlias = npt.NDArray[np.float64]
Shape: TypeAlias = tuple[int, ...]
# Entries of a large array that are worked on at a time: few enough for BLAS to keep to one thread.
_PIECE = 2**13
# A problem of so many numbers has large arrays; and the largest one from whose release the C library learns.
_LARGE, _MOST_LEARNT = 2**16, 2**22 - 2**10


def as_shape(value: Any, name: str) -> Shape:
    """Read a length or a sequence of lengths as a shape."""
    refusal = InputError(f"{name}: shape is {value!r}; expected a length or a tuple of lengths >= 0.")
    try:
        lengths = (value,) if np.isscalar(value) else tuple(value)
        wrong = not lengths or any(isinstance(n, bool) or int(n) != n or n < 0 for n in lengths)
    except (TypeError, ValueError, OverflowError):
        raise refusal from None
    if wrong:
        raise refusal
    return tuple(int(n) for n in lengths)


def as_grid(value: Any, name: str, axes: int | None = None) -> Shape:
    """Lengths of at least 1, of so many axes where that matters."""
    found = as_shape(value, name)
    if 0 in found or axes not in (None, len(found)):
        expected = "lengths of at least 1" if axes is None else "(rows, columns), both at least 1"
        raise InputError(f"{name}: shape is {value!r}; expected {expected}.")
    return found


def as_real(value: Any, name: str, shape: Shape | None = None, finite: bool = True) -> Array:
    """Copy `value` into a new read-only float64 array and refuse what is not real, not finite or of the wrong shape."""
    try:
        array = to_host(value)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    except ValueError:
        raise InputError(f"{name}: received rows of different lengths; expected an array of real numbers.") from None
    if array.dtype.kind not in "biuf":
        hint = (
            " Pass ss.operators.to_real(z): complex numbers are pairs of real ones." if array.dtype.kind == "c" else ""
        )
        raise InputError(f"{name}: dtype is {array.dtype}; expected real numbers.{hint}")
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


def to_real(z: Any) -> Array:
    """Complex numbers of shape s as pairs of real ones, of shape (*s, 2): the inner product becomes Re <z, w>.

    A view where memory allows; `to_complex` is the way back.

    Examples
    --------
    >>> to_real([1 + 2j, 3j]).tolist()
    [[1.0, 2.0], [0.0, 3.0]]
    """
    array = np.asarray(z, dtype=np.complex128)
    return np.ascontiguousarray(array).view(np.float64).reshape(*array.shape, 2)


def to_complex(pairs: Any) -> npt.NDArray[np.complex128]:
    """Pairs of real numbers, along the last axis, as complex ones; a view where memory allows.

    Examples
    --------
    >>> to_complex([[1.0, 2.0], [0.0, 3.0]]).tolist()
    [(1+2j), 3j]
    """
    array = np.ascontiguousarray(pairs, dtype=np.float64)
    if array.shape[-1:] != (2,):
        raise InputError(f"to_complex: shape is {np.shape(pairs)}; expected pairs, with 2 as the last length.")
    return array.view(np.complex128)[..., 0]


def as_pairs(value: Any, name: str) -> tuple[Array, bool]:
    """Copy real numbers, or complex ones as pairs of them, as `as_real` does; and whether they are complex."""
    try:
        host = to_host(value)
    except (InputError, ValueError):
        return as_real(value, name), False
    if host.dtype.kind != "c":
        return as_real(value, name), False
    if host.ndim == 0:
        raise InputError(f"{name}: received one complex number, {value!r}; expected a real one, or an array.")
    return as_real(to_real(host), name), True


def as_number(value: Any, name: str, minimum: float = -np.inf, finite: bool = True) -> float:
    """Read one real number, at least `minimum`."""
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
    """A short key of the values of arrays, to tell whether two are the same."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def split(flat: Array, shapes: Sequence[Shape]) -> list[Array]:
    """Views of a flat vector, one per block, in the shape of that block."""
    views, start = [], 0
    for shape in shapes:
        stop = start + math.prod(shape)
        views.append(flat[start:stop].reshape(shape))
        start = stop
    return views


def as_floats(array: Any) -> Array:
    """An array in double precision, where it lies; the array itself if it is one."""
    return cast(Array, array if isinstance(array, Remote) else np.asarray(array, dtype=np.float64))


def coarseness(value: Any) -> float:
    """How far rounding alone may have moved the entries of a point, relative to them: to the sixth digit in float32."""
    return 1e-6 if str(getattr(value, "dtype", "")).endswith("float32") else 0.0


def frozen(array: Array) -> Array:
    """A new array that nobody can write to: remote arrays keep a copy of such a one."""
    made = array.copy()
    if isinstance(made, np.ndarray):
        made.flags.writeable = False
    return made


def read_only(array: Array) -> Array:
    """A view that user code can not write to."""
    return cast(Array, array.closed() if isinstance(array, Remote) else NUMPY.wrap(array))


def blank(shape: Shape, near: Array) -> Array:
    """A new array of a shape, where another one lies; its entries are not set."""
    return cast(Array, near.new(shape) if isinstance(near, Remote) else np.empty(shape))


def zeros(shape: Shape | int, near: Array) -> Array:
    """Zeros, where another array lies."""
    return cast(Array, near.new(shape) if isinstance(near, Remote) else np.zeros(shape))


@cache
def no_rows(size: int) -> Any:
    """A sparse matrix without rows: one takes a while to make, and nobody changes it."""
    return scipy.sparse.csr_array((0, size))


def inner_product(a: Array, b: Array) -> float:
    """<a, b>, in pieces where it is long: threads meet late on a busy machine, and how many they are changes bits."""
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.size == b.size > _PIECE):
        return float(np.vdot(a, b))
    a, b, whole = a.reshape(-1), b.reshape(-1), a.size // _PIECE * _PIECE
    # Unlike products of vectors, those of stacks say what overflows.
    with np.errstate(over="ignore", invalid="ignore"):
        pieces = np.matmul(a[:whole].reshape(-1, 1, _PIECE), b[:whole].reshape(-1, _PIECE, 1))
        return float(pieces.sum() + np.dot(a[whole:], b[whole:]))


def length_of(v: Any) -> float:
    """|v|."""
    if not (isinstance(v, np.ndarray) and v.dtype == np.float64):
        return float(np.linalg.norm(v))
    if v.size > _PIECE:
        return math.sqrt(inner_product(v, v))
    # As NumPy does it, without its questions: small arrays are many.
    flat = v.ravel(order="K")
    return math.sqrt(flat.dot(flat))


def moved_product(a: Array, b: Array, c: Array, d: Array) -> float:
    """<a - b, c - d> without an array of that size: large ones take longer to come by than to fill."""
    if not all(isinstance(v, np.ndarray) and v.flags.c_contiguous and v.size > _PIECE for v in (a, b, c, d)):
        return inner_product(a - b, c - d)
    a, b, c, d = (v.reshape(-1) for v in (a, b, c, d))
    pieces = [slice(k, k + _PIECE) for k in range(0, a.size, _PIECE)]
    return math.fsum(float(np.dot(a[k] - b[k], c[k] - d[k])) for k in pieces)


def keep_memory(size: int) -> None:
    """Before work on arrays of so many numbers: memory of large ones that are released stays with the process.

    The C library of Linux hands it back and takes it anew, page by page, which takes longer than to fill it. From the
    release of one block of just below 32 MB, whose pages nobody has touched, it learns to keep twice as much.
    """
    if size >= _LARGE:
        np.empty(_MOST_LEARNT)


def on_host(array: Array) -> bool:
    """Whether an array is NumPy's own, so that compiled loops can take it."""
    return not isinstance(array, Remote)


def beside(near: Array, array: Any) -> Any:
    """An array of the host where another one lies; anything else, and for NumPy everything, as it is."""
    if isinstance(near, Remote) and isinstance(array, np.ndarray) and array.ndim:
        return near.kind.hold(near.native_of(array))
    return array


def receive(value: Any, shape: Shape, name: str, out: Array | None = None, near: Array | None = None) -> Array:
    """Copy what user code returned, refusing other shapes and kinds of numbers; to where `near` lies, if given."""
    try:
        array = value if isinstance(value, Remote) else to_host(value)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    if array.dtype.kind not in "biuf" or array.shape != shape:
        hint = (
            " Complex code is taken by ss.operators.as_operator(..., dtype=complex)." if array.dtype.kind == "c" else ""
        )
        raise InputError(
            f"{name}: received shape {array.shape}, dtype {array.dtype}; expected real numbers of shape {shape}.{hint}"
        )
    if out is not None:
        np.copyto(out, array)
        return out
    return cast(Array, beside(near, array)) if isinstance(near, Remote) else np.array(array, dtype=np.float64)


def receive_number(value: Any, name: str) -> float:
    """One real number that user code returned, possibly infinite or NaN."""
    try:
        array = np.asarray(to_host(value))
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    if array.dtype.kind not in "biuf" or array.size != 1:
        raise InputError(f"{name}: received shape {array.shape}, dtype {array.dtype}; expected one real number.")
    return float(array.reshape(-1)[0])
