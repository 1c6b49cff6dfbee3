"""Arrays from the files that users have: .npy, .npz, .csv, .txt, .mtx, and pictures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from saddleslide.errors import InputError
from saddleslide.gallery.pictures import read_picture


def read_array(name: str | Path) -> Any:
    """The array in a file: dense, or sparse from a .mtx of coordinates. `file.npz:key` picks one of several.

    Examples
    --------
    >>> read_array("table.xls")
    Traceback (most recent call last):
    ...
    saddleslide.errors.InputError: 'table.xls' has an unknown kind '.xls'; expected one of .csv, .jpg, ...
    """
    path, _, key = str(name).partition(".npz:")
    file = Path(path + ".npz" if key else path)
    reader = _READERS.get(file.suffix.lower())
    if reader is None:
        raise InputError(
            f"{str(name)!r} has an unknown kind {file.suffix!r}; expected one of {', '.join(sorted(_READERS))}."
        )
    try:
        return reader(file, key)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{str(name)!r} can not be read: {error}. Expected numbers in a {file.suffix} file."
        ) from error


def read_matrix(name: str | Path) -> Any:
    """The matrix in a file: as `read_array`, and a table of one line is a matrix of one row.

    Examples
    --------
    >>> read_matrix("table.xls")
    Traceback (most recent call last):
    ...
    saddleslide.errors.InputError: 'table.xls' has an unknown kind '.xls'; expected one of .csv, .jpg, ...
    """
    found = read_array(name)
    if Path(name).suffix.lower() not in _DELIMITERS or np.ndim(found) != 1:
        return found
    # One number on each line, or all of them on one.
    return found[None, :] if _lines(Path(name)) == 1 else found[:, None]


def read_dense(name: str | Path) -> Any:
    """The matrix in a file with all of its entries, as pictures, kernels and costs are needed.

    Examples
    --------
    >>> read_dense("table.xls")
    Traceback (most recent call last):
    ...
    saddleslide.errors.InputError: 'table.xls' has an unknown kind '.xls'; expected one of .csv, .jpg, ...
    """
    found = read_matrix(name)
    return found.toarray() if scipy.sparse.issparse(found) else found


def read_archive(name: str | Path) -> dict[str, Any]:
    """All arrays of a .npz file by name; none for a file of another kind, or with one of its arrays picked.

    Examples
    --------
    >>> read_archive("table.csv")
    {}
    """
    if Path(name).suffix.lower() != ".npz":
        return {}
    try:
        with np.load(name, allow_pickle=False) as stored:
            return {key: stored[key] for key in stored}
    except Exception as error:
        raise InputError(f"{str(name)!r} can not be read: {error}. Expected arrays in a .npz file.") from error


def _archive(file: Path, key: str) -> Any:
    with np.load(file, allow_pickle=False) as stored:
        names = list(stored)
        if not names:
            raise ValueError("it is empty")
        if not key and len(names) != 1:
            raise InputError(f"{str(file)!r} holds {names}; expected one array. Name it, as in {file.name}:{names[0]}.")
        if key and key not in names:
            raise InputError(f"{str(file)!r} holds {names}; expected {key!r} among them.")
        return stored[key or names[0]]


def _lines(file: Path) -> int:
    """Lines of a table that hold numbers."""
    with file.open(encoding="utf-8") as lines:
        return sum(bool(line.partition("#")[0].strip()) for line in lines)


def _table(file: Path) -> Any:
    if not _lines(file):
        raise ValueError("it is empty")
    return np.loadtxt(file, delimiter=_DELIMITERS[file.suffix.lower()], ndmin=1)


_DELIMITERS = {".csv": ",", ".txt": None}
_READERS: dict[str, Callable[[Path, str], Any]] = {
    ".npy": lambda file, key: np.load(file, allow_pickle=False),
    ".npz": _archive,
    ".csv": lambda file, key: _table(file),
    ".txt": lambda file, key: _table(file),
    ".mtx": lambda file, key: scipy.io.mmread(file),
    ".png": lambda file, key: read_picture(file),
    ".jpg": lambda file, key: read_picture(file),
}
