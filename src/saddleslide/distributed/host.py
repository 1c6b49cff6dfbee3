"""What lives on a worker: the parts that were given to it, and the sums over them."""

from __future__ import annotations

import math
import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

from saddleslide.arrays.base import Array, Shape, read_only
from saddleslide.distributed.cluster import sendable
from saddleslide.distributed.shared_memory import is_here, open_array
from saddleslide.functions.base import Function
from saddleslide.functions.parts import Block, Terms, built_part, evaluate_parts, sum_block, whole_blocks


@dataclass(frozen=True)
class Job:
    """One call: an operation at a point x of a shape, for blocks of the tree over `count` parts.

    x travels with the message, or lies in the mapped file `x_path`; answers then go to `out_path`, one row per block.
    `relays` are calls to pass on to other hosts, which get x from here.
    """

    operation: str
    shape: Shape
    count: int
    blocks: tuple[Block, ...]
    x: Array | None = None
    x_path: str = ""
    out_path: str = ""
    relays: tuple[Relay, ...] = ()


@dataclass(frozen=True)
class Relay:
    """A job for another host, with what reaches it, and how many seconds it has."""

    worker: str
    actor: Any
    job: Job
    patience: float


@dataclass(frozen=True)
class Reply:
    """What a host answers: numbers and arrays by block, the seconds it computed, or what a part raised.

    `covered` are the blocks that it speaks for. `lost` names the workers that did not answer when the job was passed on
    to them, and `passed` how many arrays moved that way. `sees` says that arrays can pass through shared files.
    """

    terms: dict[Block, Terms] = field(default_factory=dict)
    covered: tuple[Block, ...] = ()
    seconds: float = 0.0
    failed: int = -1
    error: BaseException | None = None
    answers: dict[int, Any] = field(default_factory=dict)
    lost: tuple[str, ...] = ()
    passed: int = 0
    sees: bool = False


@final
class Host:
    """Holds parts on a worker. A Dask actor: calls go to it directly, not through the scheduler.

    What a part raises is returned, not raised: an exception of the call itself then always means a lost worker.
    """

    def __init__(self) -> None:
        self._parts: dict[int, Function] = {}
        self._maps: dict[str, Array] = {}

    def build(self, loaders: Mapping[int, bytes], name: str, folder: str = "", token: str = "") -> Reply:
        """Build parts from pickled loaders and keep them; says whether arrays can pass through files of a folder."""
        for i, loader in loaders.items():
            try:
                # Here and not in the message: what can not be read on a worker is an error, not a lost worker.
                self._parts[i] = built_part(pickle.loads(loader), i, name)
            except (Exception, SystemExit) as error:
                return Reply(failed=i, error=sendable(error))
        return Reply(sees=is_here(folder, token))

    def drop(self, parts: Sequence[int]) -> None:
        """Forget parts that another worker has now."""
        for i in parts:
            self._parts.pop(i, None)

    def answer(self, question: Callable[[Function], Any], parts: Sequence[int]) -> Reply:
        """Answers of parts to a question about them."""
        found = {}
        for i in parts:
            try:
                found[i] = question(self._parts[i])
            except (Exception, SystemExit) as error:
                return Reply(failed=i, error=sendable(error))
        return Reply(answers=found)

    def evaluate(self, job: Job) -> Reply:
        """The sums over the blocks of a job, those of the hosts that it is passed on to added in."""
        size = math.prod(job.shape)
        x = read_only(job.x if job.x is not None else self._map(job.x_path, 1, size)[0].reshape(job.shape))
        waiting = [(relay, relay.actor.evaluate(replace(relay.job, x=x))) for relay in job.relays]
        replies = [self._sum(job, x, self._map(job.out_path, len(job.blocks), size) if job.out_path else None)]
        for relay, future in waiting:
            try:
                replies.append(future.result(timeout=relay.patience))
            except Exception:
                # Without its reply, the workers behind it count as not asked.
                replies.append(Reply(lost=(relay.worker,)))
        broken = [reply for reply in replies if reply.error is not None]
        if broken or not waiting:
            return (broken or replies)[0]
        # Neighbouring blocks of the tree are added, so that few arrays travel on.
        terms = {block: found for reply in replies for block, found in reply.terms.items()}
        arrays = sum(found[1] is not None for reply in replies[1:] for found in reply.terms.values())
        covered = tuple(block for reply in replies for block in reply.covered)
        return Reply(
            add_blocks(job.count, terms, covered),
            covered,
            max(reply.seconds for reply in replies),
            lost=tuple(worker for reply in replies for worker in reply.lost),
            passed=len(waiting) + arrays + sum(reply.passed for reply in replies),
        )

    def _sum(self, job: Job, x: Array, out: Array | None) -> Reply:
        terms, seconds, current = {}, 0.0, -1

        def part_at(i: int) -> Function:
            nonlocal current
            current = i
            return self._parts[i]

        try:
            for row, block in enumerate(job.blocks):
                target = None if out is None else out[row].reshape(job.shape)
                began = time.perf_counter()
                found = evaluate_parts(part_at, job.operation, x, block, out=target)
                seconds += time.perf_counter() - began
                assert found is not None
                if target is not None and found[1] is not None:
                    if found[1] is not target:
                        target[...] = found[1]
                    found = (found[0], None)
                terms[block] = found
        except (Exception, SystemExit) as error:
            return Reply(failed=current, error=sendable(error))
        return Reply(terms, job.blocks, seconds)

    def _map(self, path: str, rows: int, size: int) -> Array:
        if path not in self._maps:
            self._maps[path] = open_array(path, rows, size)
        return self._maps[path]


def add_blocks(count: int, terms: Mapping[Block, Terms], covered: Sequence[Block]) -> dict[Block, Terms]:
    """Sums over blocks of the tree over `count` parts, with every two halves of a larger block added."""
    whole = whole_blocks(count, (i for block in covered for i in range(*block)))
    return {block: both for block in whole if (both := sum_block(block, terms.get)) is not None}
