"""The few functions of the array API that methods need, for each library: operators do most of the work."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache
from typing import Any, final


@final
class Namespace:
    """Functions of a library under the names of the array API; arrays in and out are the library's own."""

    def __init__(self, library: str) -> None:
        self.library = library
        self.xp: Any = importlib.import_module("jax.numpy" if library == "jax" else library)
        # Slices share memory with the whole, so that writing to a slice changes the whole.
        self.shares = library in ("torch", "cupy")
        self.bool: Any = self.xp.bool if library == "torch" else getattr(self.xp, "bool", None) or self.xp.bool_

    def function(self, *names: str) -> Any:
        """The first of these names that the library has."""
        for name in names:
            if hasattr(self.xp, name):
                return getattr(self.xp, name)
        raise AttributeError(f"{self.library} has none of {names}.")

    def full(self, shape: Sequence[int], value: float, like: Any) -> Any:
        """A constant array on the device of another one; CuPy asks its present device."""
        place = {} if self.library in ("cupy", "numpy") else {"device": like.device}
        if value == 0.0:
            return self.xp.zeros(tuple(shape), dtype=self.xp.float64, **place)
        return self.xp.full(tuple(shape), float(value), dtype=self.xp.float64, **place)

    def as_float(self, x: Any) -> Any:
        """Truth values as 0 and 1."""
        if self.library == "torch":
            return x.to(self.xp.float64)
        return x.astype(self.xp.float64) if hasattr(x, "astype") else self.xp.astype(x, self.xp.float64)

    def is_bool(self, x: Any) -> bool:
        """Whether the entries are truth values."""
        return bool(x.dtype == self.bool)

    def copy(self, x: Any) -> Any:
        """A copy that nobody else can change; libraries that never write in place need none."""
        if self.library == "torch":
            return x.clone()
        return x.copy() if self.shares else x

    def put(self, x: Any, key: Any, new: Any) -> Any:
        """The array with other entries at a key: a new one, or the old one where slices share memory."""
        if self.library == "jax":
            return x.at[key].set(new)
        x = x if self.shares else self.xp.asarray(x, copy=True)
        x[key] = new
        return x


@cache
def namespace(library: str) -> Namespace:
    """The functions of a library, which is imported now."""
    return Namespace(library)
