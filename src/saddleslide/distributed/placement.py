"""Which worker holds which parts: whole blocks of the tree, so that few partial sums travel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from saddleslide.functions.trees import Block, halves, whole_blocks

Placement = dict[str, list[int]]


def placed(count: int, workers: Sequence[str], kept: Mapping[str, Iterable[int]] | None = None) -> Placement:
    """Parts by worker: what is kept stays where it is, the rest goes to those with the least, block by block.

    Examples
    --------
    >>> placed(8, ["a", "b"])
    {'a': [0, 1, 2, 3], 'b': [4, 5, 6, 7]}
    >>> placed(8, ["b", "c"], {"b": [4, 5, 6, 7]})
    {'b': [4, 5, 6, 7], 'c': [0, 1, 2, 3]}
    """
    held: Placement = {worker: sorted((kept or {}).get(worker, ())) for worker in workers}
    known = {i for parts in held.values() for i in parts}
    missing = [i for i in range(count) if i not in known]
    fair = -(-count // max(len(workers), 1))
    for block in cut(whole_blocks(count, missing), fair):
        least = min(held, key=lambda worker: len(held[worker]))
        held[least] = sorted([*held[least], *range(*block)])
    return held


def cut(blocks: Sequence[Block], most: int) -> list[Block]:
    """The blocks, halved until none has more than so many parts; the largest first.

    Examples
    --------
    >>> cut([(0, 8)], 3)
    [(0, 2), (2, 4), (4, 6), (6, 8)]
    """
    found, waiting = [], list(blocks)
    while waiting:
        block = waiting.pop()
        if block[1] - block[0] > max(most, 1):
            waiting += halves(block)
        else:
            found.append(block)
    return sorted(found, key=lambda block: (block[0] - block[1], block[0]))


def levelled(count: int, placement: Mapping[str, Sequence[int]], workers: Sequence[str]) -> Placement:
    """Parts by worker after workers have come or gone: those with more than their share give the rest away.

    Examples
    --------
    >>> levelled(8, {"a": [0, 1, 2, 3], "b": [4, 5, 6, 7]}, ["a", "b", "c"])
    {'a': [0, 1, 2], 'b': [4, 5, 6], 'c': [3, 7]}
    """
    share = -(-count // max(len(workers), 1))
    kept = {worker: list(parts)[:share] for worker, parts in placement.items() if worker in workers}
    return placed(count, workers, kept)
