"""NumPy's functions on remote arrays, in terms of operators and a few functions of the array API."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from saddleslide.arrays.remote.array import FUNCTIONS, UFUNCS, RemoteArray, on_host, store

# A function of the array that it runs beside and of arrays of the library, or numbers.
Native = Callable[..., Any]


def _arithmetic(operation: Callable[..., Any]) -> Native:
    """An operator; truth values count as 0 and 1."""

    def run(here: RemoteArray, *values: Any) -> Any:
        def as_number(value: Any) -> Any:
            is_truth = not isinstance(value, bool | int | float) and here.space.is_bool(value)
            return here.space.as_float(value) if is_truth else value

        return operation(*map(as_number, values))

    return run


def _call_named(name: str) -> Native:
    """A function of the library; numbers become arrays first."""

    def run(here: RemoteArray, *values: Any) -> Any:
        like = next(v for v in values if not isinstance(v, float | int))
        full = (here.space.full(like.shape, v, like) if isinstance(v, float | int) else v for v in values)
        return here.space.function(name)(*full)

    return run


def _extreme(name: str) -> Native:
    """Largest or smallest of two; against a number it is a clip, which makes no second array."""

    def run(here: RemoteArray, one: Any, other: Any) -> Any:
        if isinstance(one, float | int):
            one, other = other, one
        if not isinstance(other, float | int):
            return getattr(here.space.xp, name)(one, other)
        return here.space.xp.clip(one, *((float(other), None) if name == "maximum" else (None, float(other))))

    return run


_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "power": operator.pow, "negative": operator.neg, "absolute": operator.abs, "matmul": operator.matmul,
}  # fmt: skip
_COMPARISONS: dict[str, Callable[..., Any]] = {
    "greater": operator.gt, "greater_equal": operator.ge, "less": operator.lt, "less_equal": operator.le,
    "equal": operator.eq, "not_equal": operator.ne, "bitwise_and": operator.and_, "bitwise_or": operator.or_,
    "logical_and": operator.and_, "logical_or": operator.or_, "invert": operator.invert,
    "logical_not": operator.invert,
}  # fmt: skip
_NAMES = ("sqrt", "exp", "expm1", "log", "log1p", "sign", "isfinite", "isnan", "isinf", "copysign", "logaddexp")
UFUNCS.update({name: _arithmetic(operation) for name, operation in _OPERATORS.items()})
UFUNCS.update({name: lambda here, *values, run=run: run(*values) for name, run in _COMPARISONS.items()})
UFUNCS.update({name: _call_named(name) for name in _NAMES})
UFUNCS.update({name: _extreme(name) for name in ("maximum", "minimum")}, square=lambda here, x: x * x)


def _array(here: RemoteArray, value: Any) -> Any:
    """An array of the library from anything with entries."""
    native = here.native_of(np.asarray(value) if isinstance(value, list) else value)
    return here.space.full((), native, here.native) if isinstance(native, bool | int | float) else native


def _told(here: RemoteArray, native: Any, out: Any = None) -> Any:
    """An array of the library as a remote one, in `out` where it is given."""
    return RemoteArray(here.kind, native) if out is None else store(RemoteArray(here.kind, native), out)


def _sum(here: RemoteArray, a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    space, native = here.space, _array(here, a)
    native = space.as_float(native) if space.is_bool(native) else native
    # PyTorch takes `axis` for its `dim`, here and below.
    return here.number(space.xp.sum(native)) if axis is None else _told(here, space.xp.sum(native, axis=axis), out)


def _extremal(name: str) -> Native:
    """Largest or smallest entry ("max", "min"), or where it is ("argmax", "argmin")."""

    def run(here: RemoteArray, a: Any, axis: Any = None, out: Any = None, initial: float | None = None) -> Any:
        if axis is not None:
            # Along an axis, PyTorch's max also tells where.
            return _told(here, here.space.function(f"a{name}", name)(_array(here, a), axis=axis), out)
        if a.size == 0 and initial is not None:
            return initial
        found = here.number(getattr(here.space.xp, name)(_array(here, a)))
        if name.startswith("arg"):
            return int(found)
        better = max if name == "max" else min
        return found if initial is None or math.isnan(found) else better(found, initial)

    return run


def _vdot(here: RemoteArray, a: Any, b: Any) -> float:
    flat = [here.space.xp.reshape(_array(here, part), (-1,)) for part in (a, b)]
    return float(here.number(flat[0] @ flat[1]))


def _norm(here: RemoteArray, x: Any, ord: Any = None, axis: Any = None) -> Any:
    if ord is not None or axis is not None:
        return on_host(here, np.linalg.norm, (x, ord, axis), {})
    return math.sqrt(_vdot(here, x, x))


def _where(here: RemoteArray, condition: Any, x: Any, y: Any) -> Any:
    chosen, *native = (here.native_of(part) for part in (condition, x, y))
    if isinstance(chosen, bool | int | float):
        chosen = here.space.full((), float(chosen), here.native) != 0.0
    x, y = (here.space.full((), part, chosen) if isinstance(part, float | int) else part for part in native)
    return RemoteArray(here.kind, here.space.xp.where(chosen, x, y))


def _clip(here: RemoteArray, a: Any, a_min: Any, a_max: Any, out: Any = None) -> Any:
    clipped = np.minimum(np.maximum(a, a_min), a_max)
    return clipped if out is None else store(clipped, out)


def _join_by(*names: str) -> Native:
    """A function of several arrays, along an axis."""

    def run(here: RemoteArray, arrays: Any, axis: int = 0) -> Any:
        return _told(here, here.space.function(*names)([_array(here, part) for part in arrays], axis=axis))

    return run


def _take_along_axis(here: RemoteArray, arr: Any, indices: Any, axis: int) -> Any:
    take = here.space.function("take_along_dim", "take_along_axis")
    return _told(here, take(_array(here, arr), _array(here, indices), axis=axis))


def _sort(here: RemoteArray, a: Any) -> Any:
    found = here.space.xp.sort(_array(here, a))
    return _told(here, found.values if here.kind.library == "torch" else found)


_FUNCTIONS: dict[Any, Native] = {
    np.sum: _sum,
    np.mean: lambda here, a, axis=None: _sum(here, a, axis) / (a.size if axis is None else a.shape[axis]),
    np.max: _extremal("max"),
    np.min: _extremal("min"),
    np.argmax: _extremal("argmax"),
    np.argmin: _extremal("argmin"),
    np.vdot: _vdot,
    np.dot: lambda here, a, b, out=None: _told(here, _array(here, a) @ _array(here, b), out),
    np.linalg.norm: _norm,
    np.where: _where,
    np.copyto: lambda here, dst, src: store(src, dst),
    np.clip: _clip,
    np.empty_like: lambda here, prototype, dtype=None: here.new(prototype.shape),
    np.zeros_like: lambda here, a, dtype=None: here.new(a.shape),
    np.ones_like: lambda here, a, dtype=None: here.new(a.shape, 1.0),
    np.full_like: lambda here, a, fill_value, dtype=None: here.new(a.shape, fill_value),
    np.concatenate: _join_by("concat", "concatenate"),
    np.stack: _join_by("stack"),
    np.take_along_axis: _take_along_axis,
    np.sort: _sort,
    np.cumsum: lambda here, a: _told(here, here.space.function("cumulative_sum", "cumsum")(_array(here, a), axis=0)),
    np.count_nonzero: lambda here, a: int(_sum(here, a)),
    np.array_equal: lambda here, a1, a2: np.shape(a1) == np.shape(a2) and bool((a1 == a2).all()),
    np.broadcast_to: lambda here, array, shape: here.made(here.space.xp.broadcast_to, array.native, tuple(shape)),
    np.any: lambda here, a: a.any(),
    np.all: lambda here, a: a.all(),
    np.shape: lambda here, a: a.shape,
    np.ndim: lambda here, a: a.ndim,
    np.size: lambda here, a: a.size,
    np.ravel: lambda here, a: a.ravel(),
    np.reshape: lambda here, a, shape: a.reshape(shape),
    np.isneginf: lambda here, x: x == -math.inf,
}
FUNCTIONS.update(_FUNCTIONS)
