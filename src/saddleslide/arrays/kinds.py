"""Arrays of other libraries (PyTorch, JAX, CuPy, the array API): where they came from, there and back."""

from __future__ import annotations

import importlib
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any, Self, final

import numpy as np

from saddleslide import arrays
from saddleslide.errors import InputError, MissingExtraError, explain_read_only

SINGLE, DOUBLE, UNSAID = "float32", "float64", ""
_NAMES = ("numpy", "torch", "jax", "cupy")


@dataclass
class Traffic:
    """Arrays copied to the host and from it; numbers that steer a method are not counted."""

    down: int = 0
    up: int = 0

    def __sub__(self, other: Traffic) -> Traffic:
        return Traffic(self.down - other.down, self.up - other.up)

    @property
    def total(self) -> int:
        """Both ways."""
        return self.down + self.up


# State of the process.
COUNTS = Traffic()


def traffic() -> Traffic:
    """What has been copied so far in this process."""
    return Traffic(COUNTS.down, COUNTS.up)


class Remote:
    """An array on another library's side, as far as the package asks; `arrays/remote` runs NumPy's functions there.

    Not an abstract class by its metaclass, which would make every `isinstance` several times as slow.
    """

    __slots__ = ()
    kind: ArrayKind
    shape: tuple[int, ...]

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """NumPy's name for the kind of entries."""

    @property
    @abstractmethod
    def native(self) -> Any:
        """The library's own array: not to be written to."""

    @abstractmethod
    def native_of(self, value: Any) -> Any:
        """A number, or an array on this side; arrays of the host are brought here."""

    @abstractmethod
    def new(self, shape: Any, value: float = 0.0) -> Remote:
        """A new array beside this one."""

    @abstractmethod
    def copy(self) -> Remote:
        """The same entries in an array of their own."""

    @abstractmethod
    def closed(self) -> Remote:
        """The same entries, closed to writing."""

    @abstractmethod
    def host(self) -> Any:
        """A copy on the host."""

    @abstractmethod
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """A copy on the host, for functions that have no word for remote arrays."""


def precision_of(*values: Any) -> str:
    """What the arrays among the values call for: single where all are single, double where one is; else neither.

    Numbers, lists of numbers and arrays of integers say nothing, as in NumPy's own rules.
    """
    said = set()
    for value in _inner(values):
        own = _PRECISIONS.get(value.dtype) if type(value) is np.ndarray and value.ndim else None
        if own is None and not isinstance(own := getattr(value, "precision", None), str):
            # A number with a dtype is still a number, and NumPy's own text also tells the order of bytes.
            dtype = getattr(value, "dtype", "") if getattr(value, "shape", ()) else ""
            dtype = getattr(dtype, "name", str(dtype))
            own = UNSAID if "float" not in dtype else SINGLE if dtype.endswith("float32") else DOUBLE
        said.add(own)
    return DOUBLE if DOUBLE in said else max(said, default=UNSAID)


# Of the types that are met at every turn.
_PRECISIONS: dict[Any, str] = {np.dtype(np.float64): DOUBLE, np.dtype(np.float32): SINGLE}
_PLAIN = (float, int, str, type(None))


def _inner(values: Iterable[Any]) -> Iterator[Any]:
    """Arrays and things built of arrays, out of mappings and lists of them."""
    for value in values:
        if isinstance(value, np.ndarray | Built):
            yield value
        elif isinstance(value, tuple | list):
            yield from _inner(value)
        elif isinstance(value, Mapping):
            yield from _inner(value.values())
        elif not isinstance(value, _PLAIN):
            yield value


@final
@dataclass(frozen=True)
class ArrayKind:
    """A library of arrays and one of its devices; knows the way there and back, in double precision."""

    library: str
    device: Any = None

    def __repr__(self) -> str:
        return self.library if self.device is None else f"{self.library} on {self.device}"

    def wrap(self, array: Any) -> Any:
        """A new array of this kind with the values of a given one; a read-only view for NumPy itself."""
        if isinstance(array, Remote):
            if array.kind.library == self.library != "numpy":
                return array.copy().native if self.library != "jax" else array.native
            array = array.host()
        if self.library == "numpy":
            view = array.view()
            view.flags.writeable = False
            return view
        return self.upload(array)

    def upload(self, array: Any) -> Any:
        """A new array of this kind with the values of a NumPy array; integers become numbers in double precision."""
        COUNTS.up += 1
        module = importlib.import_module(self.library)
        name = "float64" if array.dtype.kind in "iu" else array.dtype.name
        if self.library == "torch":
            return module.tensor(array, dtype=getattr(module, name), device=self.device)
        with self.scope():
            if self.library == "jax":
                return module.device_put(module.numpy.array(array, dtype=name), self.device)
            if self.library == "cupy":
                return module.array(array, dtype=name)
        return module.asarray(array, dtype=getattr(module, name), device=self.device, copy=True)

    def download(self, native: Any) -> Any:
        """The values of an array of this kind on the host."""
        return to_host(native)

    def place(self, array: Any) -> Any:
        """A NumPy array as one that methods compute with on this side; for NumPy the array itself."""
        if self.library == "numpy" or isinstance(array, Remote):
            return array
        return self.hold(self.upload(np.asarray(array, dtype=np.float64)))

    def hold(self, native: Any) -> Remote:
        """An array of the library as one that methods compute with."""
        return arrays.RemoteArray(self, native)

    @property
    def has_sparse(self) -> bool:
        """Whether the library has sparse matrices of its own."""
        return self.library in ("torch", "jax", "cupy")

    def scope(self) -> AbstractContextManager[Any]:
        """Where code of this kind runs: JAX rounds to single precision unless told otherwise, CuPy has devices."""
        scope: AbstractContextManager[Any] = nullcontext()
        if self.library == "cupy":
            scope = importlib.import_module("cupy").cuda.Device(self.device)
        elif self.library == "jax":
            scope = importlib.import_module("jax").enable_x64(True)
        return scope

    def call(self, function: Callable[[Any], Any], array: Any) -> Any:
        """What the function returns for the values of an array: on the host again, or where the array lies."""
        with self.scope():
            return self.receive(self.hand(function, array), array)

    def hand(self, function: Callable[..., Any], array: Any, *others: Any) -> Any:
        """What code of the caller's returns for an array that it can not write to, as it is."""
        try:
            return function(self.wrap(array), *others)
        except Exception as error:
            explain_read_only(error)
            raise

    def receive(self, answer: Any, near: Any) -> Any:
        """An array that code of this kind returned: on the host, or where `near` lies if that is of this kind too."""
        with self.scope():
            if isinstance(near, Remote) and kind_of(answer).library == near.kind.library:
                return near.kind.hold(as_computed(answer))
            COUNTS.down += kind_of(answer) != NUMPY
            return to_host(answer)


NUMPY = ArrayKind("numpy")


def kind_of(value: Any) -> ArrayKind:
    """The kind of an array; NumPy for everything that is no array of another library."""
    if isinstance(value, Remote):
        return value.kind
    if isinstance(value, np.ndarray | np.generic) or not hasattr(type(value), "__dlpack__"):
        return NUMPY
    package = type(value).__module__.partition(".")[0]
    library = {"jaxlib": "jax"}.get(package, package)
    if library not in _NAMES:
        if not hasattr(value, "__array_namespace__"):
            return NUMPY
        library = value.__array_namespace__().__name__
    device = getattr(value, "device", None)
    # CuPy's device is an object with a number, the others' are passed on as they are.
    return ArrayKind(library, getattr(device, "id", 0) if library == "cupy" else device)


def to_host(value: Any) -> Any:
    """The values of an array of any library as a NumPy array, without a copy where they lie on the host."""
    if isinstance(value, Remote):
        return value.host()
    library = kind_of(value).library
    if library == "torch":
        if str(value.layout) != "torch.strided":
            layout = f"received a tensor of layout {value.layout}"
            raise InputError(f"{layout}; expected a dense one. Use scipy.sparse for sparse matrices.")
        here = value.detach().cpu()
        # NumPy has no bfloat16.
        return (here.double() if here.is_floating_point() else here).numpy()
    if library == "cupy":
        return value.get()
    if library not in ("numpy", "jax"):
        try:
            return np.from_dlpack(value)
        except BufferError:
            # NumPy 2.0 has no word for read-only memory, and what can not be handed over can be copied where it lies.
            return np.from_dlpack(value.__array_namespace__().asarray(value, copy=True))
    refuse_masked(value)
    return np.asarray(value)


def refuse_masked(value: Any) -> None:
    """An error for entries that a mask hides; a mask that hides nothing is none."""

    def hidden(part: Any) -> int:
        # NumPy would give what lies under the mask, also of arrays in a list.
        if isinstance(part, np.ma.MaskedArray):
            return int(np.count_nonzero(np.ma.getmaskarray(part)))
        return sum(map(hidden, part)) if isinstance(part, list | tuple) else 0

    if masked := hidden(value):
        raise InputError(
            f"received a masked array with {masked} masked entries; expected all entries. Fill them with .filled(...), "
            "or leave their rows out."
        )


def as_computed(native: Any) -> Any:
    """A copy of what a function of another library returned, in double precision and without a tape of gradients."""
    library = kind_of(native).library
    if library == "torch":
        return native.detach().to(importlib.import_module("torch").float64, copy=True)
    if library in ("jax", "cupy"):
        return native.astype("float64")
    space = native.__array_namespace__()
    return space.astype(native, space.float64)


def as_kind(like: Any, name: str) -> ArrayKind:
    """The kind that "torch", "jax", "cupy" or an array of that library stands for."""
    if like is None or isinstance(like, ArrayKind):
        return like or NUMPY
    if not isinstance(like, str):
        return kind_of(like)
    if like not in _NAMES:
        raise InputError(f"{name} is {like!r}; expected one of {', '.join(_NAMES)}, or an array of that library.")
    try:
        importlib.import_module(like)
    except ImportError as missing:
        raise MissingExtraError(f"{name}: {like} is not installed; expected it for its arrays.") from missing
    return ArrayKind(like, {"torch": "cpu", "cupy": 0}.get(like))


def origin_of(*values: Any) -> ArrayKind:
    """The one kind beside NumPy among arrays, things built of arrays, and lists of them."""
    found: ArrayKind = NUMPY
    for value in _inner(values):
        kind = value.origin if isinstance(value, Built) else kind_of(value)
        if kind is NUMPY:
            continue
        if kind.library not in ("numpy", found.library) and found != NUMPY:
            raise InputError(f"received arrays of {found.library} and of {kind.library}; expected one kind.")
        found = kind if found == NUMPY else found
    return found


class Built:
    """What remembers the kind of arrays that it was built of, and their precision."""

    origin: ArrayKind = NUMPY
    precision: str = UNSAID

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        made = super().__new__(cls)
        if not (args or kwargs):
            return made
        if cls.__init__ is object.__init__:
            # Python itself would take them, and forget them.
            raise InputError(
                f"{cls.__name__}: received {len(args) + len(kwargs)} arguments; expected none. What scales or moves it "
                f"is said around it: weight * {cls.__name__}(), {cls.__name__}() @ K."
            )
        parts = list(_inner((*args, *kwargs.values())))
        kind = origin_of(*parts)
        if kind != NUMPY:
            # Some of them are frozen.
            object.__setattr__(made, "origin", kind)
        precision = precision_of(*parts)
        if precision != UNSAID:
            object.__setattr__(made, "precision", precision)
        return made

    def stays_on_host(self, kind: ArrayKind) -> tuple[str, ...]:
        """What of this runs on the host although the arrays of the problem are of a kind; in words."""
        return ()


def is_callers(part: object) -> bool:
    """Whether an object does what the caller wrote: its class is not one of ours, or a method was put in its place.

    Where a class says that it comes from does not matter: it is ours if it is found there.
    """
    kind: Any = type(part)
    methods = _methods_of(kind)
    return methods is None or not methods.isdisjoint(getattr(part, "__dict__", ()))


@cache
def _methods_of(kind: Any) -> frozenset[str] | None:
    """Names of what can be called on a class of ours; None of any other."""
    is_found = getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind
    if not kind.__module__.startswith("saddleslide.") or not is_found:
        return None
    return frozenset(name for name in dir(kind) if callable(getattr(kind, name, None)))
