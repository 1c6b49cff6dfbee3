"""Keys of entries and slices as the array API takes them."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np


def plain_key(key: Any, ndim: int) -> Any:
    """A key with all axes named, or an ellipsis for the rest of them; integers are Python's.

    Examples
    --------
    >>> plain_key(np.int64(1), 2), plain_key((None, slice(np.int64(2), None)), 1)
    ((1, Ellipsis), (None, slice(2, None, None)))
    """
    parts = [_index(part) for part in (key if isinstance(key, tuple) else (key,))]
    open_ended = any(part is Ellipsis for part in parts)
    named = sum(part is not None for part in parts)
    return tuple(parts) if open_ended or named >= ndim else (*parts, ...)


def of_integers(key: Any) -> bool:
    """Whether a key names one index per axis and nothing else.

    Examples
    --------
    >>> of_integers((0, 1)), of_integers(slice(2))
    (True, False)
    """
    return all(isinstance(part, int | np.integer) for part in (key if isinstance(key, tuple) else (key,)))


def _index(part: Any) -> Any:
    if isinstance(part, slice):
        return slice(*(None if end is None else operator.index(end) for end in (part.start, part.stop, part.step)))
    return operator.index(part) if isinstance(part, np.integer) else part
