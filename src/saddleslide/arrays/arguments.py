"""What callers pass beside arrays: flags, words, whole numbers, names, mappings and files, refused before any work."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from saddleslide.errors import InputError


def as_flag(value: Any, name: str) -> bool:
    """True or False, and nothing that only looks like it."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} is {value!r}; expected True or False.")
    return bool(value)


def as_whole(value: Any, name: str, least: int) -> int:
    """A whole number, at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{name} is {value!r}; expected a whole number >= {least}.")
    return int(value)


def as_word(value: Any, name: str, words: Collection[str]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in words:
        raise InputError(f"{name} is {value!r}; expected one of {tuple(words)}.")
    return value


def as_names(value: Any, name: str, known: Collection[str]) -> tuple[str, ...]:
    """Some names of a list, each a string; one string is read letter by letter."""
    usable = isinstance(value, Collection) and not isinstance(value, bytes | np.ndarray)
    if not usable:
        raise InputError(f"{name} is {value!r}; expected names among {sorted(known)}.")
    unknown = [one for one in value if not (isinstance(one, str) and one in known)]
    if unknown:
        raise InputError(f"{name} has {unknown}; expected names among {sorted(known)}.")
    return tuple(value)


def as_mapping(value: Any, name: str, example: str) -> Mapping[str, Any]:
    """A mapping; None is an empty one."""
    if value is not None and not isinstance(value, Mapping):
        raise InputError(f"{name} is {value!r}; expected a mapping such as {example}.")
    return value or {}


def as_path(value: Any, name: str, example: str) -> Path:
    """The path of a file."""
    # No system takes a name with a NUL in it.
    if not isinstance(value, str | os.PathLike) or "\0" in str(value):
        raise InputError(f"{name} is {value!r}; expected the path of a file such as {example!r}.")
    return Path(value)
