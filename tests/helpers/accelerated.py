"""A stand-in for CuPy, which needs an accelerator: NumPy behind a wall that nothing passes silently."""

from __future__ import annotations

import operator

import numpy as np


def inside(value):
    """The values of an array of the stand-in; arrays of the host are refused, as CuPy refuses them."""
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(value, tuple | list):
        return type(value)(inside(part) for part in value)
    return value.values if isinstance(value, Accelerated) else value


def lifted(function):
    """A function of the stand-in from NumPy's, on the device that is in use."""

    def run(*args, **kwargs):
        answer = function(*inside(args), **{name: inside(value) for name, value in kwargs.items()})
        return Accelerated(answer, Cupy.cuda.Device.used[-1])

    return run


def operation(name):
    return lambda self, *others: lifted(getattr(operator, name))(self, *others)


def reflected(name):
    return lambda self, other: lifted(getattr(operator, name))(other, self)


class Accelerated:
    """What this package uses of a CuPy array: it refuses NumPy's silent conversion, `get` copies to the host."""

    __module__ = "cupy"
    __array_ufunc__ = None

    def __init__(self, values, device=0):
        self.values, self.number = np.asarray(values), device

    shape = property(lambda self: self.values.shape)
    ndim = property(lambda self: self.values.ndim)
    dtype = property(lambda self: self.values.dtype)
    flags = property(lambda self: self.values.flags)
    device = property(lambda self: type("Device", (), {"id": self.number})())
    T = property(lambda self: Accelerated(self.values.T, self.number))

    def __dlpack__(self):
        raise BufferError("not on this machine")

    def __array__(self, *_, **__):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __getitem__(self, key):
        return Accelerated(self.values[key], self.number)

    def __setitem__(self, key, value):
        self.values[key] = inside(value)

    def __bool__(self):
        return bool(self.values)

    def item(self):
        return self.values.item()

    def copy(self):
        return Accelerated(self.values.copy(), self.number)

    def astype(self, dtype):
        return Accelerated(self.values.astype(dtype), self.number)

    def get(self):
        return np.array(self.values)


for name in ("add", "sub", "mul", "truediv", "pow", "and_", "or_", "gt", "ge", "lt", "le", "eq", "ne", "matmul"):
    setattr(Accelerated, f"__{name.rstrip('_')}__", operation(name))
    setattr(Accelerated, f"__r{name.rstrip('_')}__", reflected(name))
for name in ("neg", "abs", "invert"):
    setattr(Accelerated, f"__{name}__", operation(name))


class Cupy:
    """The module as far as this package uses it."""

    float64, bool_ = np.float64, np.bool_

    class cuda:
        class Device:
            used = [0]  # noqa: RUF012

            def __init__(self, number):
                self.number = number

            def __enter__(self):
                self.used.append(self.number)
                return self

            def __exit__(self, *_):
                self.used.pop()

    @staticmethod
    def array(values, dtype):
        return Accelerated(np.array(values, dtype=dtype), Cupy.cuda.Device.used[-1])


# Names that CuPy has of those that NumPy has.
for name in [
    *("zeros", "full", "where", "sum", "clip", "reshape", "broadcast_to", "any", "all", "sqrt", "exp", "expm1", "log"),
    *("log1p", "sign", "isfinite", "isnan", "isinf", "copysign", "logaddexp", "maximum", "minimum", "max", "min"),
    *("argmax", "argmin", "concatenate", "stack", "take_along_axis", "sort", "cumsum", "flip", "transpose"),
]:
    setattr(Cupy, name, staticmethod(lifted(getattr(np, name))))
