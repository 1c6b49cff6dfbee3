"""NumPy's functions on remote arrays, in terms of operators and a few functions of the array API."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saddleslide.arrays.remote.array import FUNCTIONS, UFUNCS, Remote, on_host, stored

# A function of the array that it runs beside and of arrays of the library, or numbers.
Native = Callable[..., Any]


def _arithmetic(operation: Callable[..., Any]) -> Native:
    """An operator; truth values count as 0 and 1."""

    def run(here: Remote, *values: Any) -> Any:
        space = here.space
        return operation(*(space.as_float(v) if _is_bool(here, v) else v for v in values))

    return run


def _named(name: str) -> Native:
    """A function of the library; numbers become arrays first."""

    def run(here: Remote, *values: Any) -> Any:
        shape = next(tuple(v.shape) for v in values if not isinstance(v, float | int))
        like = next(v for v in values if not isinstance(v, float | int))
        full = (here.space.full(shape, v, like) if isinstance(v, float | int) else v for v in values)
        return here.space.function(name)(*full)

    return run


def _extreme(name: str) -> Native:
    """Largest or smallest of two; against a number it is a clip, which makes no second array."""

    def run(here: Remote, first_value: Any, second: Any) -> Any:
        if isinstance(first_value, float | int):
            first_value, second = second, first_value
        if not isinstance(second, float | int):
            return getattr(here.space.xp, name)(first_value, second)
        limits = (float(second), None) if name == "maximum" else (None, float(second))
        return here.space.xp.clip(first_value, *limits)

    return run


def _is_bool(here: Remote, value: Any) -> bool:
    return not isinstance(value, bool | int | float) and here.space.is_bool(value)


_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "power": operator.pow,
    "negative": operator.neg,
    "absolute": operator.abs,
    "matmul": operator.matmul,
}
_COMPARISONS: dict[str, Callable[..., Any]] = {
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "less": operator.lt,
    "less_equal": operator.le,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "logical_and": operator.and_,
    "logical_or": operator.or_,
    "invert": operator.invert,
    "logical_not": operator.invert,
}
_NAMES = ("sqrt", "exp", "expm1", "log", "log1p", "sign", "isfinite", "isnan", "isinf", "copysign", "logaddexp")
_UFUNCS: dict[str, Native] = {
    **{name: _arithmetic(operation) for name, operation in _OPERATORS.items()},
    **{name: lambda here, *values, run=operation: run(*values) for name, operation in _COMPARISONS.items()},
    **{name: _named(name) for name in _NAMES},
    "maximum": _extreme("maximum"),
    "minimum": _extreme("minimum"),
    "square": lambda here, x: x * x,
}


def _array(here: Remote, value: Any) -> Any:
    """An array of the library from anything with entries."""
    native = here.native_of(np.asarray(value) if isinstance(value, list) else value)
    return here.space.full((), native, here.native) if isinstance(native, bool | int | float) else native


def _reduced(here: Remote, native: Any, axis: Any, out: Any = None) -> Any:
    """A number for a whole array, an array for an axis."""
    if axis is None:
        return here.number(native)
    made = Remote(here.kind, native)
    return made if out is None else stored(made, out)


def _sum(here: Remote, a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return _reduced(here, here.space.sum(_array(here, a), axis), axis, out)


def _mean(here: Remote, a: Any, axis: Any = None) -> Any:
    count = a.size if axis is None else a.shape[axis]
    return _sum(here, a, axis) / count


def _largest(name: str) -> Native:
    def run(here: Remote, a: Any, axis: Any = None, out: Any = None, initial: float | None = None) -> Any:
        if axis is not None:
            return _reduced(here, here.space.extreme(name, _array(here, a), axis), axis, out)
        if a.size == 0 and initial is not None:
            return initial
        found = here.number(here.space.extreme(name, _array(here, a)))
        better = max if name == "max" else min
        return found if initial is None or math.isnan(found) else better(found, initial)

    return run


def _where_extreme(name: str) -> Native:
    def run(here: Remote, a: Any, axis: Any = None) -> Any:
        found = here.space.extreme(name, _array(here, a), axis)
        return int(here.number(found)) if axis is None else Remote(here.kind, found)

    return run


def _vdot(here: Remote, a: Any, b: Any) -> float:
    flat = [here.space.xp.reshape(_array(here, part), (-1,)) for part in (a, b)]
    return float(here.number(flat[0] @ flat[1]))


def _norm(here: Remote, x: Any, ord: Any = None, axis: Any = None) -> Any:
    if ord is not None or axis is not None:
        return on_host(here, np.linalg.norm, (x, ord, axis), {})
    return math.sqrt(_vdot(here, x, x))


def _dot(here: Remote, a: Any, b: Any, out: Any = None) -> Any:
    product = Remote(here.kind, _array(here, a) @ _array(here, b))
    return product if out is None else stored(product, out)


def _where(here: Remote, condition: Any, x: Any, y: Any) -> Any:
    chosen, *native = (here.native_of(part) for part in (condition, x, y))
    if isinstance(chosen, bool | int | float):
        chosen = here.space.full((), float(chosen), here.native) != 0.0
    return Remote(here.kind, here.space.where(chosen, *native))


def _clip(here: Remote, a: Any, a_min: Any, a_max: Any, out: Any = None) -> Any:
    clipped = np.minimum(np.maximum(a, a_min), a_max)
    return clipped if out is None else stored(clipped, out)


def _concatenate(here: Remote, arrays: Sequence[Any], axis: int = 0) -> Any:
    join = here.space.function("concat", "concatenate")
    return Remote(here.kind, join([_array(here, part) for part in arrays]))


_FUNCTIONS: dict[Any, Native] = {
    np.sum: _sum,
    np.mean: _mean,
    np.max: _largest("max"),
    np.min: _largest("min"),
    np.argmax: _where_extreme("argmax"),
    np.argmin: _where_extreme("argmin"),
    np.vdot: _vdot,
    np.dot: _dot,
    np.linalg.norm: _norm,
    np.where: _where,
    np.copyto: lambda here, dst, src: stored(src, dst),
    np.clip: _clip,
    np.empty_like: lambda here, prototype, dtype=None: here.new(prototype.shape),
    np.zeros_like: lambda here, a, dtype=None: here.new(a.shape),
    np.ones_like: lambda here, a, dtype=None: here.new(a.shape, 1.0),
    np.full_like: lambda here, a, fill_value, dtype=None: here.new(a.shape, fill_value),
    np.concatenate: _concatenate,
    np.stack: lambda here, arrays, axis=0: here.made(here.space.stack, [_array(here, part) for part in arrays], axis),
    np.take_along_axis: lambda here, arr, indices, axis: here.made(
        here.space.take_along, _array(here, arr), _array(here, indices), axis
    ),
    np.sort: lambda here, a: here.made(here.space.sort, _array(here, a)),
    np.cumsum: lambda here, a: here.made(here.space.cumulative_sum, _array(here, a)),
    np.count_nonzero: lambda here, a: int(here.number(here.space.sum(_array(here, a)))),
    np.array_equal: lambda here, a1, a2: np.shape(a1) == np.shape(a2) and bool((a1 == a2).all()),
    np.broadcast_to: lambda here, array, shape: here.made(
        here.space.xp.broadcast_to, _array(here, array), tuple(shape)
    ),
    np.any: lambda here, a: a.any(),
    np.all: lambda here, a: a.all(),
    np.shape: lambda here, a: a.shape,
    np.ndim: lambda here, a: a.ndim,
    np.size: lambda here, a: a.size,
    np.ravel: lambda here, a: a.ravel(),
    np.reshape: lambda here, a, shape: a.reshape(shape),
    np.isneginf: lambda here, x: x == -math.inf,
}


def fill_in() -> None:
    """Let remote arrays find these functions."""
    UFUNCS.update(_UFUNCS)
    FUNCTIONS.update(_FUNCTIONS)
