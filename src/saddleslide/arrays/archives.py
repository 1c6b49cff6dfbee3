"""Files of arrays, looked at before they are read: what a header claims must be there, and not too much.

A .npy file says in its header how large its array is, and a .npz file, a zip, how large each of its members is. NumPy
believes both and takes the memory before it reads. A few bytes can so ask for any amount.
"""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Callable
from typing import IO, Any

from numpy.lib import format as npy

# The most that a file may become in memory beyond its own length: 1 GB.
MOST_BYTES = 2**30
_HEADERS: dict[tuple[int, int], Callable[[Any], Any]] = {
    (1, 0): npy.read_array_header_1_0,
    (2, 0): npy.read_array_header_2_0,
}


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
        limit = MOST_BYTES if most is None else most
        check_size(sum(member.file_size for member in members), max(limit, _length(archive.fp)))
        for member in members:
            if member.filename.endswith(".npy"):
                with archive.open(member) as one:
                    check_npy(one, member.file_size)


def _length(file: Any) -> int:
    place = file.tell()
    length = int(file.seek(0, os.SEEK_END))
    file.seek(place)
    return length
