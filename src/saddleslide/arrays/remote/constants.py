"""What never changes on the host is brought to the other side once, and kept there as long as it lives here."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from saddleslide.arrays.remote.traffic import COUNTS


class Kind(Protocol):
    """What is needed of a library and a device: see `ArrayKind`."""

    @property
    def library(self) -> str: ...
    def uploaded(self, array: Any) -> Any: ...
    def downloaded(self, native: Any) -> Any: ...
    def scope(self) -> AbstractContextManager[Any]: ...


# By the owner's id and what was made of it, with a reference that tells when the owner is gone.
_KEPT: dict[Hashable, tuple[Any, Any]] = {}


def kept(owner: Any, key: Hashable, make: Callable[[], Any]) -> Any:
    """What was made for an owner under this key, made now if it was not; dropped with the owner.

    Examples
    --------
    >>> owner = np.ones(2)
    >>> kept(owner, "sum", lambda: 2.0), kept(owner, "sum", lambda: 3.0)
    (2.0, 2.0)
    """
    full = (id(owner), key)
    found = _KEPT.get(full)
    if found is None or found[0]() is not owner:
        found = _KEPT[full] = (weakref.ref(owner, lambda _: _KEPT.pop(full, None)), make())
    return found[1]


def brought(kind: Kind, array: Any) -> Any:
    """A new array of the library with the values of one of the host; counted."""
    COUNTS.up += 1
    return kind.uploaded(array)


def constant(kind: Kind, array: Any) -> Any:
    """An array of the host on the other side: brought there once where it can not change, else at every use."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if array.flags.writeable or owner.flags.writeable or owner.base is not None:
        return brought(kind, array)
    key = (kind, array.ctypes.data, array.shape, array.strides)
    return kept(owner, key, lambda: brought(kind, array))
