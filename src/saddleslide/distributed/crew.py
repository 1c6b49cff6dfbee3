"""One call of all parts: jobs for the workers, sums along the tree, and what a lost worker leaves open."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, final

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.distributed.calling import LOST, Mode
from saddleslide.distributed.counts import Counts, Repeat
from saddleslide.distributed.host import Job, Relay, Reply
from saddleslide.distributed.mailbox import Mailbox
from saddleslide.distributed.roster import Roster
from saddleslide.errors import UnreachableError
from saddleslide.functions.part_questions import WITH_ARRAY
from saddleslide.functions.trees import Block, Terms, summed, summed_in_pieces, whole_blocks

# Times that one call is repeated before the cluster counts as gone.
_MOST_ROUNDS = 50


@final
class Crew:
    """Asks all workers at once and repeats what a lost one leaves open.

    Nothing here can change a bit of an answer: sums follow the tree of `functions.trees`, whoever makes them.

    Parameters
    ----------
    client, loaders, name
        The cluster, what builds each part, and the function for messages.
    patience : float
        Seconds without an answer after which a worker counts as too slow, if another one can take over; and seconds to
        wait for any worker before the cluster counts as gone.
    fan : int
        Far hosts that get their jobs from here; the others get theirs, and x, from those.
    shared : bool
        Let arrays pass through shared memory where worker and client are on one machine.
    """

    stored: ClassVar[bool] = False

    def __init__(self, client: Any, loaders: Sequence[Any], name: str, patience: float, fan: int, shared: bool) -> None:
        self.counts = Counts()
        self.mailbox = Mailbox() if shared else None
        self.roster = Roster(client, loaders, name, patience, self.mailbox, self.counts)
        self.fan, self._parts, self._sum = fan, len(loaders), np.empty(0)
        self.roster.gather()

    def close(self) -> None:
        """Let go of the workers' parts and of shared memory."""
        self.roster.close()
        if self.mailbox is not None:
            self.mailbox.close()

    def reduced(self, operation: str, x: Array, chosen: Sequence[int] | None) -> Terms:
        """An operation summed over all parts, or the chosen ones."""
        self.roster.look()
        began = time.perf_counter()
        call = self.counts.called(operation)
        marked = None if chosen is None else frozenset(chosen)
        terms = self._collected(call, operation, x, marked)
        total = self._total(terms, x) if operation in WITH_ARRAY else summed((0, self._parts), terms.get)
        assert total is not None
        self.counts.waiting += time.perf_counter() - began
        return total

    def _total(self, terms: dict[Block, Terms], x: Array) -> Terms:
        """The sum of what the workers have summed; its array is the same one at every call."""
        if self._sum.size != x.size:
            self._sum = np.empty(x.size)
        flat = {block: (found[0], np.ravel(found[1])) for block, found in terms.items() if found[1] is not None}
        numbers, _ = summed_in_pieces((0, self._parts), flat, self._sum)
        return numbers, self._sum.reshape(x.shape)

    def _collected(self, call: int, operation: str, x: Array, chosen: frozenset[int] | None) -> dict[Block, Terms]:
        """Sums over blocks that cover all wanted parts, however often that takes."""
        wanted = set(range(self._parts)) if chosen is None else set(chosen)
        terms: dict[Block, Terms] = {}
        slowest = 0.0
        for attempt in range(_MOST_ROUNDS):
            jobs = self._jobs(operation, x, wanted, chosen, attempt)
            replies, lost = self.roster.asked("evaluate", self._sent(jobs, x), Mode.HURRIED)
            for worker, reply in replies.items():
                terms |= self._received(jobs[worker], reply, x)
                wanted -= {i for block in reply.covered for i in range(*block)}
                lost |= dict.fromkeys(reply.lost, LOST)
                slowest = max(slowest, reply.seconds)
            if not wanted:
                self.counts.computing += slowest
                return terms
            self._note(call, operation, wanted, lost)
            self.roster.without(lost)
        raise UnreachableError(
            f"{self.roster.name}: call {call} was repeated {_MOST_ROUNDS} times and lost a worker each time."
        )

    def _jobs(
        self, operation: str, x: Array, wanted: set[int], chosen: frozenset[int] | None, attempt: int
    ) -> dict[str, Job]:
        """One job for each worker that holds wanted parts; in messages from the day that shared memory is full."""
        try:
            if self.mailbox is not None and self.roster.near:
                self.mailbox.rows("x", 1, x.size)
            return self._made(operation, x, wanted, chosen, attempt)
        except OSError:
            self.roster.near.clear()
            self.mailbox = self.roster.mailbox = None
        return self._made(operation, x, wanted, chosen, attempt)

    def _made(
        self, operation: str, x: Array, wanted: set[int], chosen: frozenset[int] | None, attempt: int
    ) -> dict[str, Job]:
        jobs = {}
        for worker, parts in self.roster.held.items():
            blocks = tuple(whole_blocks(self._parts, wanted.intersection(parts)))
            if not blocks:
                continue
            job = Job(operation, x.shape, self._parts, blocks)
            if worker in self.roster.near and self.mailbox is not None:
                # A repeated call must not write where the answers of its first round still are.
                name = f"{self.roster.near[worker]}-{attempt}"
                if operation in WITH_ARRAY:
                    self.mailbox.rows(name, len(blocks), x.size)
                    job = replace(job, out_path=self.mailbox.path(name, len(blocks), x.size))
                job = replace(job, x_path=self.mailbox.path("x", 1, x.size))
            jobs[worker] = job
        return jobs

    def _sent(self, jobs: Mapping[str, Job], x: Array) -> dict[str, tuple[Job]]:
        """The jobs as they leave: x once for all hosts on this machine, and once for each of the first far ones."""
        near = {worker: job for worker, job in jobs.items() if job.x_path}
        if near and self.mailbox is not None:
            self.mailbox.rows("x", 1, x.size)[0] = x.ravel()
            self.counts.bytes_shared += x.nbytes
        far = self._relayed([worker for worker in jobs if worker not in near], jobs)
        self.counts.bytes_sent += len(far) * x.nbytes
        return {w: (job,) for w, job in near.items()} | {w: (replace(job, x=x),) for w, job in far.items()}

    def _relayed(self, workers: Sequence[str], jobs: Mapping[str, Job]) -> dict[str, Job]:
        """At most `fan` jobs, with the others inside: the first worker of each group passes on to the rest of it."""
        if len(workers) <= self.fan:
            return {worker: jobs[worker] for worker in workers}
        # Neighbours in the tree in one group: their sums join on the way back.
        workers = sorted(workers, key=lambda worker: jobs[worker].blocks[0])
        length = -(-len(workers) // self.fan)
        groups = [workers[i : i + length] for i in range(0, len(workers), length)]
        return {group[0]: replace(jobs[group[0]], relays=self._relays(group[1:], jobs)) for group in groups}

    def _relays(self, workers: Sequence[str], jobs: Mapping[str, Job]) -> tuple[Relay, ...]:
        hosts, patience = self.roster.hosts, self.roster.patience
        return tuple(Relay(w, hosts[w], job, patience) for w, job in self._relayed(workers, jobs).items())

    def _received(self, job: Job, reply: Reply, x: Array) -> dict[Block, Terms]:
        """The sums of a reply, with arrays from shared memory where they are there."""
        self.counts.bytes_passed += reply.passed * x.nbytes
        if not job.out_path:
            self.counts.bytes_received += x.nbytes * sum(array is not None for _, array in reply.terms.values())
            return reply.terms
        assert self.mailbox is not None
        rows = self.mailbox.opened(job.out_path)
        self.counts.bytes_shared += x.nbytes * len(job.blocks)
        return {block: (reply.terms[block][0], rows[row]) for row, block in enumerate(job.blocks)}

    def _note(self, call: int, operation: str, wanted: set[int], lost: Mapping[str, str]) -> None:
        """Say which parts of a call are asked again, and why."""
        for worker, reason in lost.items():
            parts = tuple(i for i in self.roster.held.get(worker, ()) if i in wanted)
            self.counts.repeats.append(Repeat(call, operation, parts, worker, reason))
