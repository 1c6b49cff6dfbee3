"""The few functions of the array API that methods need, for each library: operators do most of the work."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache
from typing import Any, final

# Libraries whose slices share memory with the whole, so that writing to a slice changes the whole.
_SHARING = ("torch", "cupy")


@final
class Namespace:
    """Functions of a library under the names of the array API; arrays in and out are the library's own."""

    def __init__(self, library: str) -> None:
        self.library = library
        self.xp: Any = importlib.import_module("jax.numpy" if library == "jax" else library)
        self.shares = library in _SHARING
        self.float64 = self.xp.float64
        self.bool: Any = self.xp.bool if library == "torch" else getattr(self.xp, "bool", None) or self.xp.bool_

    def function(self, *names: str) -> Any:
        """The first of these names that the library has."""
        for name in names:
            if hasattr(self.xp, name):
                return getattr(self.xp, name)
        raise AttributeError(f"{self.library} has none of {names}.")

    def full(self, shape: Sequence[int], value: float, like: Any) -> Any:
        """A constant array on the device of another one."""
        made = self.function(f"{'zeros' if value == 0.0 else 'full'}")
        fill = () if value == 0.0 else (float(value),)
        return made(tuple(shape), *fill, dtype=self.float64, **self.place(like))

    def place(self, like: Any) -> dict[str, Any]:
        """Where an array lies, as an argument of creation; CuPy asks its present device."""
        return {} if self.library in ("cupy", "numpy") else {"device": like.device}

    def as_float(self, x: Any) -> Any:
        """Truth values as 0 and 1."""
        if self.library == "torch":
            return x.to(self.float64)
        return x.astype(self.float64) if hasattr(x, "astype") else self.xp.astype(x, self.float64)

    def is_bool(self, x: Any) -> bool:
        """Whether the entries are truth values."""
        return bool(x.dtype == self.bool)

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        """Entries of x or of y; numbers become arrays first."""
        x, y = (self.full((), part, condition) if isinstance(part, float | int) else part for part in (x, y))
        return self.xp.where(condition, x, y)

    def sum(self, x: Any, axis: int | None = None) -> Any:
        """Sum of all entries or along an axis."""
        x = self.as_float(x) if self.is_bool(x) else x
        if axis is None:
            return self.xp.sum(x)
        return self.xp.sum(x, dim=axis) if self.library == "torch" else self.xp.sum(x, axis=axis)

    def extreme(self, name: str, x: Any, axis: int | None = None) -> Any:
        """Largest or smallest entry ("max", "min"), or where it is ("argmax", "argmin")."""
        if axis is None:
            return getattr(self.xp, name)(x)
        if self.library == "torch":
            return getattr(self.xp, name if name.startswith("arg") else f"a{name}")(x, dim=axis)
        return getattr(self.xp, name)(x, axis=axis)

    def sort(self, x: Any) -> Any:
        """Ascending, along the last axis."""
        found = self.xp.sort(x)
        return found.values if self.library == "torch" else found

    def cumulative_sum(self, x: Any) -> Any:
        """Of a vector."""
        if self.library == "torch":
            return self.xp.cumsum(x, dim=0)
        return self.function("cumulative_sum", "cumsum")(x)

    def flip(self, x: Any) -> Any:
        """A vector from its end to its beginning."""
        return self.xp.flip(x, dims=(0,)) if self.library == "torch" else self.xp.flip(x)

    def stack(self, parts: Sequence[Any], axis: int) -> Any:
        """Arrays of one shape along a new axis."""
        return self.xp.stack(list(parts), dim=axis) if self.library == "torch" else self.xp.stack(parts, axis=axis)

    def take_along(self, x: Any, indices: Any, axis: int) -> Any:
        """Entries chosen along an axis."""
        if self.library == "torch":
            return self.xp.take_along_dim(x, indices, dim=axis)
        return self.xp.take_along_axis(x, indices, axis=axis)

    def transposed(self, x: Any) -> Any:
        """All axes in the opposite order."""
        axes = tuple(range(x.ndim))[::-1]
        return self.function("permute_dims", "permute", "transpose")(x, axes)

    def copy(self, x: Any) -> Any:
        """A copy that nobody else can change; libraries that never write in place need none."""
        if self.library == "torch":
            return x.clone()
        return x.copy() if self.shares else x

    def replaced(self, x: Any, key: Any, new: Any) -> Any:
        """The array with other entries at a key: a new one, or the old one where slices share memory."""
        if self.library == "jax":
            return x.at[key].set(new)
        x = x if self.shares else self.xp.asarray(x, copy=True)
        x[key] = new
        return x

    def contiguous(self, x: Any) -> bool:
        """Whether another shape of the array shares its memory."""
        return bool(x.is_contiguous() if self.library == "torch" else x.flags.c_contiguous)


@cache
def namespace(library: str) -> Namespace:
    """The functions of a library, which is imported now."""
    return Namespace(library)
