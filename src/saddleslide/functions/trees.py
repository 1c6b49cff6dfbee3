"""Sums along a fixed binary tree: the order of additions depends on the number of terms and on nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import numpy as np

from saddleslide.arrays.base import Array

# Numbers and an array (or none) that are added together, and a range of terms: first, and one past the last.
Terms: TypeAlias = tuple[tuple[float, ...], Array | None]
Block: TypeAlias = tuple[int, int]
# Entries that are added at a time: of several arrays such pieces fit in a processor's own cache.
_PIECE = 1 << 15


def middle(block: Block) -> int:
    """Where a block of the tree falls in two: after the largest power of two of terms that leaves some over."""
    first, last = block
    return first + (1 << (last - first - 1).bit_length() - 1)


def halves(block: Block) -> tuple[Block, Block]:
    """The two blocks below a block of at least two terms."""
    cut = middle(block)
    return (block[0], cut), (cut, block[1])


def summed(block: Block, known: Callable[[Block], Terms | None], out: Array | None = None) -> Terms | None:
    """The sum over a block: what is `known` of it, or the sum of its halves; None where all of it is left out.

    What is known may belong to a part and is never written to; sums of it are added in place, the last ones in `out`
    where it is given. A sum of one term is that term, wherever it is.
    """
    found = _summed(block, known, out)
    return None if found is None else found[0]


def summed_in_pieces(block: Block, terms: Mapping[Block, Terms], out: Array) -> Terms:
    """The sum over a block of terms with arrays of one dimension, in `out`: piece by piece, and to the same bits."""
    numbers: tuple[float, ...] = ()
    for first in range(0, max(out.size, 1), _PIECE):
        cut = slice(first, first + _PIECE)
        pieces = {key: (found[0], None if found[1] is None else found[1][cut]) for key, found in terms.items()}
        target = out[cut]
        total = summed(block, pieces.get, target)
        assert total is not None
        numbers = total[0]
        if total[1] is not target:
            target[...] = total[1]
    return numbers, out


def _summed(
    block: Block, known: Callable[[Block], Terms | None], out: Array | None = None
) -> tuple[Terms, bool] | None:
    """The sum over a block, and whether its array may be written to."""
    found = known(block)
    if found is not None:
        return found, False
    if block[1] - block[0] == 1:
        return None
    left, right = (_summed(half, known) for half in halves(block))
    if left is None or right is None:
        return right if left is None else left
    return added(left[0], right[0], left[0][1] if left[1] and out is None else out), True


def added(left: Terms, right: Terms, out: Array | None = None) -> Terms:
    """Both together; the array in `out` where it is given, which may be the left one's."""
    numbers = tuple(a + b for a, b in zip(left[0], right[0], strict=True))
    if left[1] is None or right[1] is None:
        return numbers, None
    return numbers, np.add(left[1], right[1], out=out)


def whole_blocks(total: int, held: Iterable[int]) -> list[Block]:
    """The largest blocks of the tree over `total` terms of which every term is held, in order."""
    terms = set(held)
    found: list[Block] = []
    waiting: list[Block] = [(0, total)]
    while waiting:
        block = waiting.pop()
        missing = any(i not in terms for i in range(*block))
        if not missing:
            found.append(block)
        elif block[1] - block[0] > 1:
            waiting += reversed(halves(block))
    return found
