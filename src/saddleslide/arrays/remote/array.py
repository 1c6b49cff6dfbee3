"""An array of another library that NumPy's functions and operators accept: they run where it lies.

NumPy hands its functions over to arguments that ask for it (`__array_ufunc__`, `__array_function__`). So the methods of
this package, written in NumPy's functions, are at the same time methods for every library in `functions.py`. Writing
into an array, or into a slice or another shape of it, means the same as in NumPy, also where the library's own arrays
never change. What no table knows is computed on the host and counted. What never changes on the host is brought to the
other side once, and kept there as long as it lives here.
"""

from __future__ import annotations

import math
import operator
import weakref
from collections.abc import Callable, Hashable, Iterator
from types import SimpleNamespace
from typing import Any, final

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from saddleslide.arrays.kinds import COUNTS, ArrayKind, Remote
from saddleslide.arrays.remote.namespaces import Namespace, namespace

# By the owner's id and what was made of it, with a reference that tells when the owner is gone.
_KEPT: dict[Hashable, tuple[Any, Any]] = {}


def kept(owner: Any, key: Hashable, make: Callable[[], Any]) -> Any:
    """What was made for an owner under this key, made now if it was not; dropped with the owner."""
    full = (id(owner), key)
    found = _KEPT.get(full)
    if found is None or found[0]() is not owner:
        found = _KEPT[full] = (weakref.ref(owner, lambda _: _KEPT.pop(full, None)), make())
    return found[1]


def constant(kind: ArrayKind, array: Any) -> Any:
    """An array of the host on the other side: brought there once where it can not change, else at every use."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if array.flags.writeable or owner.flags.writeable or owner.base is not None:
        return kind.upload(array)
    key = (kind, array.ctypes.data, array.shape, array.strides)
    return kept(owner, key, lambda: kind.upload(array))


def plain_key(key: Any, ndim: int) -> Any:
    """A key with all axes named, or an ellipsis for the rest of them; integers are Python's."""

    def plain(part: Any) -> Any:
        if isinstance(part, slice):
            return slice(*(None if end is None else operator.index(end) for end in (part.start, part.stop, part.step)))
        return operator.index(part) if isinstance(part, np.integer) else part

    parts = [plain(part) for part in (key if isinstance(key, tuple) else (key,))]
    whole = any(part is Ellipsis for part in parts) or sum(part is not None for part in parts) >= ndim
    return tuple(parts) if whole else (*parts, ...)


# Functions of a remote array and of the arguments, by name and by function; `functions.py` fills them in.
UFUNCS: dict[str, Callable[..., Any]] = {}
FUNCTIONS: dict[Any, Callable[..., Any]] = {}


@final
class RemoteArray(Remote, NDArrayOperatorsMixin):
    """A remote array of a kind; `native` is the library's own, of float64 or truth values, which nobody else writes to.

    A slice or another shape of an array is read from its `parent` when it is asked for: the whole may be written to.
    """

    __slots__ = ("__weakref__", "_key", "_native", "_parent", "kind", "shape", "writeable")

    def __init__(
        self, kind: ArrayKind, native: Any, parent: RemoteArray | None = None, key: Any = None, writeable: bool = True
    ) -> None:
        self.kind, self._parent, self._key, self.writeable = kind, parent, key, writeable
        self._native: Any = native if parent is None else None
        self.shape: tuple[int, ...] = tuple(int(n) for n in native.shape)

    @property
    def space(self) -> Namespace:
        """The functions of the library."""
        return namespace(self.kind.library)

    @property
    def native(self) -> Any:
        if self._parent is None:
            return self._native
        with self.kind.scope():
            whole = self._parent.native
            return whole[self._key] if self._key is not None else self.space.xp.reshape(whole, self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(str(self.native.dtype).rpartition(".")[2])

    @property
    def flags(self) -> SimpleNamespace:
        """As far as methods ask."""
        return SimpleNamespace(writeable=self.writeable, c_contiguous=True)

    @property
    def T(self) -> RemoteArray:
        """All axes in the opposite order; a copy."""
        axes = tuple(range(self.ndim))[::-1]
        return self.made(self.space.function("permute_dims", "permute", "transpose"), self.native, axes)

    def made(self, function: Callable[..., Any], *arguments: Any) -> RemoteArray:
        """A new array from a function of the library."""
        with self.kind.scope():
            return RemoteArray(self.kind, function(*arguments))

    def new(self, shape: Any, value: float = 0.0) -> RemoteArray:
        lengths = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
        return self.made(self.space.full, lengths, value, self.native)

    def native_of(self, value: Any) -> Any:
        if isinstance(value, RemoteArray):
            return value.native
        if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
            return value.item()
        if isinstance(value, np.ndarray):
            return constant(self.kind, value)
        return value

    def number(self, native: Any) -> Any:
        """An array of one entry as a number of Python."""
        value = native.item() if hasattr(native, "item") else native
        if isinstance(value, bool | int | float):
            return value
        return bool(value) if self.space.is_bool(native) else float(value)

    def view(self) -> RemoteArray:
        """The same entries, which can be closed to writing."""
        if self._parent is None and self.space.shares:
            return RemoteArray(self.kind, self._native)
        return RemoteArray(self.kind, self.native, self, ...)

    def closed(self) -> RemoteArray:
        view = self.view()
        view.writeable = False
        return view

    def copy(self) -> RemoteArray:
        return self.made(self.space.copy, self.native)

    def reshape(self, *shape: Any) -> RemoteArray:
        lengths = shape[0] if len(shape) == 1 and not isinstance(shape[0], int | np.integer) else shape
        with self.kind.scope():
            native = self.native
            found = self.space.xp.reshape(native, tuple(int(n) for n in lengths))
        if self.space.shares and self._parent is None:
            is_contiguous = native.is_contiguous() if self.kind.library == "torch" else native.flags.c_contiguous
            if is_contiguous:
                return RemoteArray(self.kind, found, writeable=self.writeable)
        return RemoteArray(self.kind, found, self, None, self.writeable)

    def ravel(self) -> RemoteArray:
        return self if self.ndim == 1 else self.reshape(-1)

    def fill(self, value: float) -> None:
        self.write(value)

    def write(self, value: Any) -> None:
        """Set the entries to a number or to those of an array of the library."""
        if not self.writeable:
            raise ValueError("assignment destination is read-only")
        space = self.space
        with self.kind.scope():
            if isinstance(value, bool | int | float):
                value = space.full(self.shape, value, self.native)
            elif tuple(value.shape) != self.shape:
                value = space.xp.broadcast_to(value, self.shape)
            if self._parent is not None:
                whole = self._parent
                if self._key is None:
                    whole.write(space.xp.reshape(value, whole.shape))
                else:
                    whole.write(space.put(whole.native, self._key, value))
            elif not space.shares:
                self._native = value
            elif value is not self._native:
                self._native[...] = value

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice) and key == slice(None, None, -1):
            return self.made(self.space.xp.flip, self.native, *([(0,)] if self.kind.library == "torch" else []))
        key = plain_key(key, self.ndim)
        with self.kind.scope():
            found = self.native[key]
        if self.ndim and not tuple(found.shape) and all(isinstance(part, int) for part in key):
            return self.number(found)
        if self.space.shares and self._parent is None:
            return RemoteArray(self.kind, found, writeable=self.writeable)
        return RemoteArray(self.kind, found, self, key, self.writeable)

    def __setitem__(self, key: Any, value: Any) -> None:
        key = plain_key(key, self.ndim)
        with self.kind.scope():
            given = self.native_of(value)
            if isinstance(given, bool | int | float):
                given = self.space.full((), given, self.native)
            given = self.space.xp.broadcast_to(given, tuple(self.native[key].shape))
            changed = self.space.put(self.native, key, given)
        self.write(changed)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __float__(self) -> float:
        return float(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def item(self) -> Any:
        """The only entry."""
        return self.number(self.native)

    def sum(self, axis: int | None = None) -> Any:
        return np.sum(self, axis=axis)

    def mean(self, axis: int | None = None) -> Any:
        return np.mean(self, axis=axis)

    def max(self) -> Any:
        return np.max(self)

    def min(self) -> Any:
        return np.min(self)

    def any(self) -> bool:
        with self.kind.scope():
            return bool(self.space.xp.any(self.native))

    def all(self) -> bool:
        with self.kind.scope():
            return bool(self.space.xp.all(self.native))

    def host(self) -> Any:
        COUNTS.down += 1
        return np.array(self.kind.download(self.native))

    def tolist(self) -> Any:
        """The entries on the host, as numbers of Python."""
        return self.host().tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.host(), dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        known = UFUNCS.get(ufunc.__name__) if method == "__call__" and not options else None
        if known is None:
            return on_host(self, getattr(ufunc, method), inputs, options, out)
        with self.kind.scope():
            answer = RemoteArray(self.kind, known(self, *(self.native_of(value) for value in inputs)))
        return answer if out is None else store(answer, out[0])

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        known = FUNCTIONS.get(function)
        if known is None:
            out = kwargs.pop("out", None)
            return on_host(self, function, args, kwargs, out)
        with self.kind.scope():
            return known(self, *args, **kwargs)

    def __reduce__(self) -> Any:
        raise TypeError("RemoteArray: lies on another library's side; copy it to the host first.")

    def __copy__(self) -> RemoteArray:
        return self.copy()


def store(answer: Any, out: Any) -> Any:
    """The answer written to `out`, wherever that lies."""
    if isinstance(out, RemoteArray):
        out.write(answer.native if isinstance(answer, RemoteArray) else out.native_of(answer))
    else:
        np.copyto(out, answer.host() if isinstance(answer, RemoteArray) else answer)
    return out


def on_host(near: RemoteArray, function: Any, args: Any, kwargs: Any, out: Any = None) -> Any:
    """What no table knows: computed on the host, arrays brought back afterwards."""

    def down(value: Any) -> Any:
        if isinstance(value, RemoteArray):
            return value.host()
        return type(value)(map(down, value)) if isinstance(value, tuple | list) else value

    answer = function(*down(args), **{name: down(value) for name, value in kwargs.items()})
    target = out[0] if isinstance(out, tuple) else out
    if isinstance(answer, np.ndarray) and answer.ndim and answer.dtype.kind in "bf":
        answer = RemoteArray(near.kind, near.kind.upload(answer))
    return answer if target is None else store(answer, target)
