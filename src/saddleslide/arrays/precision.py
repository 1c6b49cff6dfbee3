"""Single or double: the precision of the arrays that a problem is made of. All computing is in double precision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SINGLE, DOUBLE, UNSAID = "float32", "float64", ""


def precision_of(*values: Any) -> str:
    """What the arrays among the values call for: single where all are single, double where one is; else neither.

    Numbers, lists of numbers and arrays of integers say nothing, as in NumPy's own rules.
    """
    said = {_said(value) for value in values} - {UNSAID}
    return DOUBLE if DOUBLE in said else max(said, default=UNSAID)


def _said(value: Any) -> str:
    if isinstance(value, Mapping):
        return precision_of(*value.values())
    if isinstance(value, tuple | list):
        return precision_of(*(part for part in value if not isinstance(part, float | int | str)))
    own = getattr(value, "precision", None)
    if isinstance(own, str):
        return own
    # A number with a dtype is still a number.
    dtype = getattr(value, "dtype", "") if getattr(value, "shape", ()) else ""
    # NumPy's own text also tells the order of bytes.
    dtype = getattr(dtype, "name", str(dtype))
    if "float" not in dtype:
        return UNSAID
    return SINGLE if dtype.endswith("float32") else DOUBLE
