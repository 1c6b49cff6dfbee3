"""An array of another library that NumPy's functions and operators accept: they run where it lies.

NumPy hands its functions over to arguments that ask for it (`__array_ufunc__`, `__array_function__`). So the methods of
this package, written in NumPy's functions, are at the same time methods for every library in `functions.py`. Writing
into an array, or into a slice or another shape of it, means the same as in NumPy, also where the library's own arrays
never change. What no table knows is computed on the host and counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, final

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from saddleslide.arrays.remote.constants import Kind, brought, constant
from saddleslide.arrays.remote.keys import of_integers, plain_key
from saddleslide.arrays.remote.namespaces import Namespace, namespace
from saddleslide.arrays.remote.traffic import COUNTS

# Functions of an array that lies elsewhere and of the arguments, by name and by function; `functions.py` fills them in.
UFUNCS: dict[str, Callable[..., Any]] = {}
FUNCTIONS: dict[Any, Callable[..., Any]] = {}


@final
class Elsewhere(NDArrayOperatorsMixin):
    """An array that lies elsewhere; `native` is the library's own.

    Parameters
    ----------
    kind : ArrayKind
        Library and device.
    native : array of that library
        Values, float64 or truth values. Nobody else may write to it.

    Examples
    --------
    >>> import numpy as np
    >>> from saddleslide.arrays.kinds import ArrayKind
    >>> kind = ArrayKind("numpy")
    >>> x = Elsewhere(kind, np.array([3.0, 4.0]))
    >>> float(np.linalg.norm(2.0 * x)), type(x + 1.0).__name__
    (10.0, 'Elsewhere')
    """

    __slots__ = ("__weakref__", "_key", "_native", "_parent", "kind", "shape", "writeable")

    def __init__(
        self, kind: Kind, native: Any, parent: Elsewhere | None = None, key: Any = None, writeable: bool = True
    ) -> None:
        self.kind, self._native, self._parent, self._key, self.writeable = kind, native, parent, key, writeable
        self.shape: tuple[int, ...] = tuple(int(n) for n in native.shape)
        if parent is not None:
            # Read again when it is asked for: the whole may have been written to.
            self._native = None

    @property
    def space(self) -> Namespace:
        """The functions of the library."""
        return namespace(self.kind.library)

    @property
    def native(self) -> Any:
        """The library's own array: not to be written to."""
        if self._parent is None:
            return self._native
        with self.kind.scope():
            whole = self._parent.native
            return whole[self._key] if self._key is not None else self.space.xp.reshape(whole, self.shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's name for the kind of entries."""
        return np.dtype(str(self.native.dtype).rpartition(".")[2])

    @property
    def flags(self) -> SimpleNamespace:
        """As far as methods ask."""
        return SimpleNamespace(writeable=self.writeable, c_contiguous=True)

    @property
    def T(self) -> Elsewhere:
        """All axes in the opposite order; a copy."""
        return self.made(self.space.transposed, self.native)

    def made(self, function: Callable[..., Any], *arguments: Any) -> Elsewhere:
        """A new array from a function of the library."""
        with self.kind.scope():
            return Elsewhere(self.kind, function(*arguments))

    def new(self, shape: Any, value: float = 0.0) -> Elsewhere:
        """A new array beside this one."""
        lengths = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
        return self.made(self.space.full, lengths, value, self.native)

    def native_of(self, value: Any) -> Any:
        """A number, or an array on this side; arrays of the host are brought here."""
        if isinstance(value, Elsewhere):
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

    def view(self) -> Elsewhere:
        """The same entries, which can be closed to writing."""
        if self._parent is None and self.space.shares:
            return Elsewhere(self.kind, self._native)
        return Elsewhere(self.kind, self.native, self, ...)

    def closed(self) -> Elsewhere:
        """The same entries, closed to writing."""
        view = self.view()
        view.writeable = False
        return view

    def copy(self) -> Elsewhere:
        """A new array with the same values."""
        return self.made(self.space.copy, self.native)

    def reshape(self, *shape: Any) -> Elsewhere:
        """The same entries in another shape."""
        lengths = shape[0] if len(shape) == 1 and not isinstance(shape[0], int | np.integer) else shape
        with self.kind.scope():
            native = self.native
            found = self.space.xp.reshape(native, tuple(int(n) for n in lengths))
        if self.space.shares and self._parent is None and self.space.contiguous(native):
            return Elsewhere(self.kind, found, writeable=self.writeable)
        return Elsewhere(self.kind, found, self, None, self.writeable)

    def ravel(self) -> Elsewhere:
        """The same entries as a vector."""
        return self if self.ndim == 1 else self.reshape(-1)

    def fill(self, value: float) -> None:
        """Set all entries."""
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
                key = self._key
                whole.write(
                    space.xp.reshape(value, whole.shape) if key is None else space.replaced(whole.native, key, value)
                )
            elif not space.shares:
                self._native = value
            elif value is not self._native:
                self._native[...] = value

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice) and key == slice(None, None, -1):
            return self.made(self.space.flip, self.native)
        with self.kind.scope():
            native = self.native
            found = native[plain_key(key, self.ndim)]
        if self.ndim and not tuple(found.shape) and of_integers(key):
            return self.number(found)
        if self.space.shares and self._parent is None:
            return Elsewhere(self.kind, found, writeable=self.writeable)
        return Elsewhere(self.kind, found, self, plain_key(key, self.ndim), self.writeable)

    def __setitem__(self, key: Any, value: Any) -> None:
        with self.kind.scope():
            given = self.native_of(value)
            if isinstance(given, bool | int | float):
                given = self.space.full((), given, self.native)
            target = self.native[plain_key(key, self.ndim)]
            given = self.space.xp.broadcast_to(given, tuple(target.shape))
            changed = self.space.replaced(self.native, plain_key(key, self.ndim), given)
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
        """As `np.sum`."""
        return np.sum(self, axis=axis)

    def mean(self, axis: int | None = None) -> Any:
        """As `np.mean`."""
        return np.mean(self, axis=axis)

    def max(self) -> Any:
        """Largest entry."""
        return np.max(self)

    def min(self) -> Any:
        """Smallest entry."""
        return np.min(self)

    def any(self) -> bool:
        """Whether any entry is true."""
        with self.kind.scope():
            return bool(self.space.xp.any(self.native))

    def all(self) -> bool:
        """Whether all entries are true."""
        with self.kind.scope():
            return bool(self.space.xp.all(self.native))

    def host(self) -> Any:
        """A copy on the host."""
        COUNTS.down += 1
        return np.array(self.kind.downloaded(self.native))

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
            answer = Elsewhere(self.kind, known(self, *(self.native_of(value) for value in inputs)))
        return answer if out is None else stored(answer, out[0])

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        known = FUNCTIONS.get(function)
        if known is None:
            out = kwargs.pop("out", None)
            return on_host(self, function, args, kwargs, out)
        with self.kind.scope():
            return known(self, *args, **kwargs)

    def __reduce__(self) -> Any:
        raise TypeError("Elsewhere: lies on another library's side; copy it to the host first.")

    def __copy__(self) -> Elsewhere:
        return self.copy()


def stored(answer: Any, out: Any) -> Any:
    """The answer written to `out`, wherever that lies."""
    if isinstance(out, Elsewhere):
        out.write(answer.native if isinstance(answer, Elsewhere) else out.native_of(answer))
    else:
        np.copyto(out, answer.host() if isinstance(answer, Elsewhere) else answer)
    return out


def on_host(near: Elsewhere, function: Any, args: Any, kwargs: Any, out: Any = None) -> Any:
    """What no table knows: computed on the host, arrays brought back afterwards."""
    answer = function(*_down(args), **{name: _down(value) for name, value in kwargs.items()})
    target = out[0] if isinstance(out, tuple) else out
    if isinstance(answer, np.ndarray) and answer.ndim and answer.dtype.kind in "bf":
        answer = Elsewhere(near.kind, brought(near.kind, answer))
    return answer if target is None else stored(answer, target)


def _down(value: Any) -> Any:
    if isinstance(value, Elsewhere):
        return value.host()
    return type(value)(_down(item) for item in value) if isinstance(value, tuple | list) else value
