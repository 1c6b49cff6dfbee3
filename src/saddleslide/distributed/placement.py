"""Which worker holds which parts: whole blocks of the tree, so that few partial sums travel; and keeping it so."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, final

from saddleslide.distributed.cluster import SLOW, Actors, living_workers, to_pickle
from saddleslide.distributed.host import Host, Reply
from saddleslide.distributed.shared_memory import SharedArrays
from saddleslide.functions.parts import Block, halves, whole_blocks

Placement = dict[str, list[int]]
# Seconds between two looks at who is there, between calls.
_LOOK = 2.0


def place(count: int, workers: Sequence[str], kept: Mapping[str, Iterable[int]] | None = None) -> Placement:
    """Parts by worker: what is kept stays where it is, the rest goes to those with the least, block by block."""
    held: Placement = {worker: sorted((kept or {}).get(worker, ())) for worker in workers}
    known = {i for parts in held.values() for i in parts}
    missing = [i for i in range(count) if i not in known]
    for block in cut(whole_blocks(count, missing), _fair_share(count, workers)):
        least = min(held, key=lambda worker: len(held[worker]))
        held[least] = sorted([*held[least], *range(*block)])
    return held


def _fair_share(count: int, workers: Sequence[str]) -> int:
    return -(-count // max(len(workers), 1))


def cut(blocks: Sequence[Block], most: int) -> list[Block]:
    """The blocks, halved until none has more than so many parts; the largest first."""
    found, waiting = [], list(blocks)
    while waiting:
        block = waiting.pop()
        if block[1] - block[0] > max(most, 1):
            waiting += halves(block)
        else:
            found.append(block)
    return sorted(found, key=lambda block: (block[0] - block[1], block[0]))


def level(count: int, placement: Mapping[str, Sequence[int]], workers: Sequence[str]) -> Placement:
    """Parts by worker after workers have come or gone: those with more than their share give the rest away."""
    share = _fair_share(count, workers)
    kept = {worker: list(parts)[:share] for worker, parts in placement.items() if worker in workers}
    return place(count, workers, kept)


@final
class Hosts(Actors[str]):
    """The hosts of one function, by worker: every part is kept on a living one, built there by its loader.

    `held` says which parts each of them has. `near` are those that see our shared memory, with a name for each that no
    host has had before.
    """

    def __init__(
        self, client: Any, loaders: Sequence[Any], name: str, patience: float, shared: SharedArrays | None
    ) -> None:
        super().__init__(client, name, patience)
        self.loaders, self.shared = tuple(loaders), shared
        self.near: dict[str, str] = {}
        self.held: Placement = {}
        self._made, self._looked = 0, -math.inf

    def blame(self, key: str, reply: Reply) -> str:
        return f"part {reply.failed} of {self.name}"

    def release(self, key: str) -> None:
        super().release(key)
        self.near.pop(key, None)
        self.held.pop(key, None)

    def answers(self, question: Callable[[Any], Any]) -> list[Any]:
        """The answers of all parts to a question about them, in their order."""
        self.look()
        found: dict[int, Any] = {}
        while len(found) < len(self.loaders):
            missing = {worker: [i for i in parts if i not in found] for worker, parts in self.held.items()}
            jobs = {worker: (question, parts) for worker, parts in missing.items() if parts}
            replies, lost = self.ask("answer", jobs)
            found |= {i: one for reply in replies.values() for i, one in reply.answers.items()}
            if lost:
                self.give_up(lost)
        return [found[i] for i in range(len(self.loaders))]

    def look(self) -> None:
        """From time to time: workers that came get their share, the parts of those that went are built elsewhere."""
        self.refuse_closed()
        if time.monotonic() - self._looked < _LOOK:
            return
        self._looked = time.monotonic()
        known = living_workers(self.client)
        if known is not None and known - self._slow != set(self.actors):
            self.gather()

    def give_up(self, lost: Mapping[str, str]) -> None:
        """Give workers up and build their parts elsewhere."""
        self.forget(lost)
        self._slow |= {worker for worker, reason in lost.items() if reason == SLOW}
        self.gather()

    def settle(self, workers: Sequence[str]) -> bool:
        """Place all parts on these workers and build what is missing; False when one was lost meanwhile."""
        self.forget(set(self.actors) - set(workers))
        new = [worker for worker in workers if worker not in self.actors]
        if not all(self._make_host(worker) for worker in new):
            return False
        count = len(self.loaders)
        wanted = level(count, self.held, workers) if new else place(count, workers, self.held)
        missing = {w: [i for i in parts if i not in self.held.get(w, ())] for w, parts in wanted.items()}
        jobs = {w: ({i: to_pickle(self.loaders[i]) for i in parts}, self.name) for w, parts in missing.items() if parts}
        replies, lost = self.ask("build", jobs)
        self.counts.built += sum(len(missing[worker]) for worker in replies)
        self.forget(lost)
        for worker in set(wanted) - set(lost):
            spare = [i for i in self.held.get(worker, ()) if i not in wanted[worker]]
            self.held[worker] = wanted[worker]
            if spare:
                self.actors[worker].drop(spare)
        self._looked = self._looked if lost else time.monotonic()
        return not lost

    def _make_host(self, worker: str) -> bool:
        """Put a host on a worker; False where the worker is gone."""
        if not self.make(Host, {worker: worker}):
            return False
        sees: dict[str, bool] = {}
        if self.shared is not None:
            sees, lost = self.call("can_see", {worker: (self.shared.folder, self.shared.token)})
            if lost:
                self.release(worker)
                return False
        self.counts.joined += self.counts.calls > 0
        self._made += 1
        if sees.get(worker):
            self.near[worker] = f"out{self._made}"
        return True
