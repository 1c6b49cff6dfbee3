"""Raw rows as JSON lines: appended one by one, read back even if the last line was cut off."""

from __future__ import annotations

import base64
import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.errors import InputError

FILE = "rows.jsonl"
Row = dict[str, Any]


def append_row(folder: Path, row: Row) -> None:
    """Add a row and make sure that it is on the disk."""
    with (folder / FILE).open("a+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 1, 0))
        # A line that an interrupt cut off must not swallow the next one.
        broken = size > 0 and file.read(1) != b"\n"
        file.write((("\n" if broken else "") + json.dumps(plain(row), allow_nan=False) + "\n").encode())
        file.flush()
        os.fsync(file.fileno())


def read_rows(folder: Path) -> dict[str, Row]:
    """The last row of every key; lines that are not complete rows are left out."""
    path, found = folder / FILE, dict[str, Row]()
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else ():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        whole = isinstance(row, dict) and "key" in row and "status" in row
        # A later failure does not take back what was done.
        if whole and (row["status"] == "done" or found.get(row["key"], {}).get("status") != "done"):
            found[row["key"]] = row
    return found


def require_rows(folder: Path) -> dict[str, Row]:
    """The rows of a folder, or an error that says how to make some."""
    if found := read_rows(folder):
        return found
    expected = "expected what `saddleslide paper run NAME --out DIR` wrote"
    raise InputError(f"paper: {str(folder / FILE)!r} holds no rows; {expected}.")


def field_of(row: Row, dotted: str) -> Any:
    """A value inside a row; None where it is absent."""
    value: Any = row
    for name in dotted.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def pack(picture: Array) -> dict[str, Any]:
    """A picture inside a row, in single precision."""
    data = base64.b64encode(np.ascontiguousarray(picture, dtype="<f4").tobytes()).decode()
    return {"shape": list(picture.shape), "float32": data}


def unpack(packed: dict[str, Any]) -> Array:
    """The picture that `pack` wrote."""
    return np.frombuffer(base64.b64decode(packed["float32"]), dtype="<f4").astype(float).reshape(packed["shape"])


def plain(value: Any) -> Any:
    """JSON has no word for an unknown number but null, and none for NumPy's types."""
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return [plain(part) for part in value] if isinstance(value, Iterable) and not isinstance(value, str) else value


def share_costs(rows: Mapping[str, Row]) -> dict[str, Row]:
    """Rows with their latencies replaced by the medians over all rows of the same problem.

    They are measured beside each run. Comparing methods at prices of different minutes would compare the load of the
    machine.
    """
    seen: dict[str, list[dict[str, float]]] = {}
    problems = {key: json.dumps(row["problem"], sort_keys=True) for key, row in rows.items() if "prices" in row}
    for key, problem in problems.items():
        seen.setdefault(problem, []).append(rows[key]["prices"])
    shared = {problem: {o: median(p[o] for p in found) for o in "fgB"} for problem, found in seen.items()}
    return {key: row | {"prices": shared[problems[key]]} if key in problems else row for key, row in rows.items()}
