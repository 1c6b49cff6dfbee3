"""States: what is kept of a run, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from saddleslide.arrays.base import Array

    # Arrays of a state by the block they belong to: a checkpoint looks at the name of the annotation, and takes no
    # array of another shape. `Array` alone is one whose shape a fresh state has.
    XArray: TypeAlias = Array
    YArray: TypeAlias = Array
    # The same as vectors, and x and y in one.
    XVector: TypeAlias = Array
    YVector: TypeAlias = Array
    ZVector: TypeAlias = Array
else:
    XArray = YArray = XVector = YVector = ZVector = Any


@dataclass
class State:
    """Where something stands: a dataclass of arrays, numbers, words, tuples of them, and other states.

    A checkpoint is its fields, and nothing else: what can be had from the problem or the settings is no part of it.

    Examples
    --------
    >>> @dataclass
    ... class Counter(State):
    ...     steps: int = 0
    >>> Counter(3)
    Counter(steps=3)
    """
