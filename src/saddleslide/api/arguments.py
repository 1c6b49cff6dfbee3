"""Arguments that are missing or unknown, refused as wrong ones are."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from saddleslide.errors import InputError


def check_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function for callers: a call that does not fit its signature is told what it takes."""
    expected = inspect.signature(function)

    @wraps(function)
    def called(*given: Any, **named: Any) -> Any:
        try:
            return function(*given, **named)
        except TypeError:
            # Looked at only now: binding takes a part of the time of a small problem.
            try:
                expected.bind(*given, **named)
            except TypeError as error:
                bare = (p.replace(annotation=p.empty, default=p.empty) for p in expected.parameters.values())
                name, takes = function.__name__, ", ".join(map(str, bare))
                wrong = f"{name}: {error}; expected {takes}. help(ss.{name}) explains them."
                raise InputError(wrong) from None
            raise

    # Where callers find it: a process that it is sent to looks for it there.
    called.__module__ = "saddleslide"
    return called
