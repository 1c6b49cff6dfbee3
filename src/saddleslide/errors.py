"""What the caller did wrong. An error here is raised before any work, but for three.

Outcomes of work are not errors: they are statuses (`saddleslide.runs.result`). `strict=True` turns those that are no
success into an OutcomeError. What user code returns is looked at when it does, and refused with an InputError.
A cluster that is gone is an UnreachableError outside of a run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

__all__ = [
    "CheckpointError", "InputError", "MissingAdjointError", "MissingExtraError", "NoExactMinimumError", "OutcomeError",
    "OutputLostError", "SaddleslideError", "UnknownConstantError", "UnreachableError",
]  # fmt: skip

# What NumPy, Cython, Numba, pybind11 and PyTorch say of an array that they want to write to.
_UNWRITABLE = re.compile(r"read.?only|writ(e)?able", re.IGNORECASE)
_COPY = "saddleslide: arguments are read-only views. Give code that wants to write its own copy, np.array(x)."


class SaddleslideError(Exception):
    """Base of all errors that saddleslide raises on purpose.

    Examples
    --------
    >>> issubclass(InputError, SaddleslideError)
    True
    """


class InputError(SaddleslideError, ValueError):
    """An argument can not be used; the message names it, what came, what was expected and what to do.

    Examples
    --------
    >>> import saddleslide as ss
    >>> ss.domains.Ball(-1.0, shape=3)
    Traceback (most recent call last):
    ...
    saddleslide.errors.InputError: Ball: radius is -1.0; expected a finite number >= 0.
    """


class MissingAdjointError(InputError):
    """An operator was given without its adjoint.

    Examples
    --------
    >>> import saddleslide as ss
    >>> ss.operators.as_operator(lambda x: x, x_shape=(2,), y_shape=(2,))
    Traceback (most recent call last):
    ...
    saddleslide.errors.MissingAdjointError: B: received one callable; expected a pair ...
    """


class UnknownConstantError(InputError):
    """A constant of a function was neither declared nor can it be computed.

    Examples
    --------
    >>> import saddleslide as ss
    >>> ss.functions.Custom(gradient=lambda x: x).smoothness(ss.domains.FullSpace(2))
    Traceback (most recent call last):
    ...
    saddleslide.errors.UnknownConstantError: Custom: smoothness was not declared; pass smoothness=Holder(nu, H).
    """


class NoExactMinimumError(SaddleslideError):
    """A function has no exact minimum on this domain that we know how to certify.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f = ss.functions.Logistic(np.eye(2), np.array([1, -1]))
    >>> ss.functions.tilted_minimum(f, np.zeros(2), ss.domains.FullSpace(2))
    Traceback (most recent call last):
    ...
    saddleslide.errors.NoExactMinimumError: Logistic on FullSpace: ...
    """


class MissingExtraError(SaddleslideError, ImportError):
    """An optional package is not installed; the message names the extra that brings it.

    Examples
    --------
    >>> issubclass(MissingExtraError, ImportError)
    True
    """


class UnreachableError(SaddleslideError, ConnectionError):
    """A cluster does not answer any more. Inside a run it becomes the status UNREACHABLE.

    Examples
    --------
    >>> issubclass(UnreachableError, OSError)
    True
    """


class OutcomeError(SaddleslideError, RuntimeError):
    """With `strict=True`: a run ended without what was asked. It says the status, and `result` is the whole result.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(3), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.diag([1.0, 2.0, 3.0]), X=simplex, Y=simplex)
    >>> try:
    ...     ss.solve(game, tol=1e-9, max_steps=1, strict=True)
    ... except ss.errors.OutcomeError as error:
    ...     print(error.result.status.name, error.result.gap < 1.0)
    STEP_LIMIT True
    """

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(message)
        self.result = result


class OutputLostError(SaddleslideError):
    """The output can not be written; `left` says that its reader went away, who wants no message either.

    Examples
    --------
    >>> OutputLostError(BrokenPipeError()).left, OutputLostError(OSError(28, "No space left on device")).left
    (True, False)
    """

    def __init__(self, error: OSError) -> None:
        super().__init__(f"the output can not be written: {error.strerror or error}.")
        self.left = isinstance(error, BrokenPipeError)


class CheckpointError(InputError):
    """A checkpoint can not be used: damaged, of another version, or of another problem.

    Examples
    --------
    >>> issubclass(CheckpointError, InputError)
    True
    """


def explain_read_only(error: BaseException) -> None:
    """Tell code that wants to write to its argument what it was given: once, as a note on its exception."""
    # A file system may be read-only too.
    unwritable = _UNWRITABLE.search(str(error)) is not None and not isinstance(error, OSError)
    if unwritable and _COPY not in getattr(error, "__notes__", ()):
        error.add_note(_COPY)


def raise_all(subject: str, complaints: Sequence[str]) -> None:
    """Raise one InputError that lists every complaint, or do nothing when there is none."""
    if not complaints:
        return
    if len(complaints) == 1:
        raise InputError(f"{subject}: {complaints[0]}")
    raise InputError(f"{subject}: {len(complaints)} mismatches.\n" + "\n".join(f"  - {c}" for c in complaints))


def __dir__() -> list[str]:
    return __all__
