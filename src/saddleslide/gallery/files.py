"""Arrays from the files that users have: .npy, .npz, .csv, .txt, .mtx, and pictures."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from saddleslide.arrays.arguments import check_npy, check_npz, check_size
from saddleslide.errors import InputError
from saddleslide.gallery.pictures import read_picture
from saddleslide.operators.sparse import check_sparse

_TABLES = (".csv", ".txt")
_KINDS = (".csv", ".jpg", ".mtx", ".npy", ".npz", ".png", ".txt")


def read_array(name: str | Path) -> Any:
    """The array in a file: dense, or sparse from a .mtx of coordinates. `file.npz:key` picks one of several."""
    path, _, key = str(name).partition(".npz:")
    file = Path(path + ".npz" if key else path)
    if file.suffix.lower() not in _KINDS:
        raise InputError(f"{str(name)!r} has an unknown kind {file.suffix!r}; expected one of {', '.join(_KINDS)}.")
    try:
        return _read(file, key)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{str(name)!r} can not be read: {str(error).rstrip('.')}. Expected numbers in a {file.suffix} file."
        ) from error


def read_matrix(name: str | Path) -> Any:
    """The matrix in a file: as `read_array`, and a table of one line is a matrix of one row."""
    found = read_array(name)
    if Path(name).suffix.lower() not in _TABLES or np.ndim(found) != 1:
        return found
    # One number on each line, or all of them on one.
    return found[None, :] if _lines(Path(name)) == 1 else found[:, None]


def read_dense(name: str | Path) -> Any:
    """The matrix in a file with all of its entries, as pictures, kernels and costs are needed."""
    found = read_matrix(name)
    if not scipy.sparse.issparse(found):
        return found
    check_sparse(found, repr(str(name)))
    try:
        check_size(8.0 * math.prod(found.shape))
    except ValueError as error:
        raise InputError(f"{str(name)!r} has the shape {found.shape}, and all entries are needed: {error}.") from None
    return found.toarray()


def read_archive(name: str | Path) -> dict[str, Any]:
    """All arrays of a .npz file by name; none for a file of another kind, or with one of its arrays picked."""
    if Path(name).suffix.lower() != ".npz":
        return {}
    try:
        check_npz(name)
        with np.load(name, allow_pickle=False) as stored:
            return {key: stored[key] for key in stored}
    except Exception as error:
        raise InputError(f"{str(name)!r} can not be read: {error}. Expected arrays in a .npz file.") from error


def _read(file: Path, key: str) -> Any:
    match file.suffix.lower():
        case ".npy":
            with file.open("rb") as content:
                check_npy(content, file.stat().st_size)
            return np.load(file, allow_pickle=False)
        case ".npz":
            check_npz(file)
            with np.load(file, allow_pickle=False) as stored:
                names = list(stored)
                if not names:
                    raise ValueError("it is empty")
                if not key and len(names) != 1:
                    hint = f"expected one array. Name it, as in {file.name}:{names[0]}."
                    raise InputError(f"{str(file)!r} holds {names}; {hint}")
                if key and key not in names:
                    raise InputError(f"{str(file)!r} holds {names}; expected {key!r} among them.")
                return stored[key or names[0]]
        case ".mtx":
            # The first lines say how many rows, columns and entries there are.
            rows, columns, entries, form, *_ = scipy.io.mminfo(file)
            length = file.stat().st_size
            # A number takes two characters at least, half of a symmetric matrix is left out.
            if entries > 2 * length:
                raise ValueError(f"its header tells of {entries} entries, and {length} bytes are not enough for them")
            # Rows and columns of a sparse matrix have starts of their own, in both directions.
            check_size(16.0 * (rows + columns) + 48.0 * entries if form == "coordinate" else 16.0 * entries)
            with warnings.catch_warnings():
                # Of the kind of sparse matrix that comes, which SciPy is about to change: either will do.
                warnings.filterwarnings("ignore", "The default value for `spmatrix`")
                return scipy.io.mmread(file)
        case ".csv" | ".txt" as suffix:
            if not _lines(file):
                raise ValueError("it is empty")
            return np.loadtxt(file, delimiter="," if suffix == ".csv" else None, ndmin=1)
        case _:
            return read_picture(file)


def _lines(file: Path) -> int:
    """Lines of a table that hold numbers."""
    with file.open(encoding="utf-8") as lines:
        return sum(bool(line.partition("#")[0].strip()) for line in lines)
