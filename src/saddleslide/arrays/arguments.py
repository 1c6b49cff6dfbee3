"""What callers pass beside arrays: flags, words, whole numbers, names, mappings and files, refused before any work."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Collection, Mapping
from numbers import Integral
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from saddleslide.errors import InputError

# The most that a file may become in memory beyond its own length: 1 GB.
MOST_BYTES = 2**30
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def check_size(size: float, most: float = MOST_BYTES) -> None:
    """Refuse what would be larger than a limit, with both sizes."""
    if not size <= most:
        raise ValueError(
            f"it would take {size / 1e6:,.0f} MB of memory; expected at most {most / 1e6:,.0f} MB. Save it "
            "uncompressed or in parts, or read it in Python and pass the array"
        )


def check_npy(file: IO[bytes], size: int) -> None:
    """Refuse an array whose header and length contradict each other; the file ends after `size` bytes."""
    version = npy.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"its header has version {version}")
    shape, _, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise ValueError(f"its numbers are Python objects ({dtype}), which are not loaded")
    needed, there = math.prod(shape) * dtype.itemsize, size - file.tell()
    if needed != there or any(side < 0 for side in shape):
        raise ValueError(f"its header tells of {needed} bytes in the shape {shape}, and {there} follow")


def check_npz(file: str | os.PathLike[str] | IO[bytes], most: float | None = None) -> None:
    """Refuse an archive whose members are no whole arrays, or together larger than both the file and a limit."""
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        content: Any = archive.fp
        place = content.tell()
        length = content.seek(0, os.SEEK_END)
        content.seek(place)
        check_size(sum(member.file_size for member in members), max(MOST_BYTES if most is None else most, length))
        for member in members:
            if member.filename.endswith(".npy"):
                with archive.open(member) as one:
                    check_npy(one, member.file_size)


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
    if not isinstance(value, Collection) or isinstance(value, bytes | np.ndarray):
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
