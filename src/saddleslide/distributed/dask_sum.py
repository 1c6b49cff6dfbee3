"""A sum of functions whose parts live on the workers of a cluster, and which worker holds which of them.

Parts are placed in whole blocks of the tree that they are added along, so that few partial sums travel.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Self, TypeVar, final

import numpy as np

from saddleslide.arrays.base import Array, as_number
from saddleslide.distributed.cluster import LOST, SLOW, Actors, Counts, Mode, Repeat, check_client, find_workers
from saddleslide.distributed.host import Host, Job, Relay, Reply
from saddleslide.distributed.shared_memory import SharedArrays
from saddleslide.errors import UnreachableError, raise_all
from saddleslide.functions.base import Function
from saddleslide.functions.parts import (
    WITH_ARRAY,
    Block,
    Partitioned,
    Terms,
    halves,
    sum_block,
    sum_in_pieces,
    whole_blocks,
)
from saddleslide.runs.checkpoint import digest_of

_Answer = TypeVar("_Answer")
Placement = dict[str, list[int]]
# Times that one call is repeated before the cluster counts as gone.
_MOST_ROUNDS = 50
# Far workers that get x from this process; see docs/scaling.md.
_FAN = 4
# Seconds between two looks at who is there, between calls.
_LOOK = 2.0


@final
class DaskSum(Partitioned):
    """f_1 + ... + f_n, or their mean, with every part built on a worker of a Dask cluster and kept there.

    A function like any other, for plans, runs, certificates and, through `ss.functions.SampledParts`, sampling. The
    parts are added along a tree that depends on their number alone: the bits are those of `ss.functions.PartSum` on the
    same parts, whatever workers there are, come, or go.

    Parameters
    ----------
    client : distributed.Client
        Of a running cluster: `ss.distributed.local()`, `ss.distributed.connect(address)`, or your own.
    parts : sequence of callable or Function
        Callables without arguments that build a function where they are called, such as `ss.distributed.Shard`; or
        functions, which are sent whole. Both are kept here: a lost part is built again from them.
    combine : "sum" or "mean", optional
        How the parts become one function.
    shape : int or tuple of int, optional
        Shape of x, where no part says it.
    patience : float, optional
        Seconds without an answer after which a worker is given up for another one; and seconds to wait for any worker
        before the cluster counts as gone.
    fan : int, optional
        Workers on other machines that get x from this process; they pass it on to the rest.
    shared : bool, optional
        Let x and the gradients pass through shared memory where workers are on this machine.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> parts = [ss.functions.Quadratic(1.0), ss.functions.Quadratic(3.0)]
    >>> with ss.distributed.local(workers=1) as client, ss.distributed.DaskSum(client, parts, shape=2) as f:
    ...     f.value_and_gradient(np.array([1.0, 0.0]))
    (2.0, array([4., 0.]))
    """

    def __init__(
        self, client: Any, parts: Sequence[Any], combine: str = "sum", shape: Any = None, *, patience: float = 60.0,
        fan: int = _FAN, shared: bool = True,
    ) -> None:  # fmt: skip
        check_client(client, "DaskSum")
        super().__init__(len(parts), combine, shape, "DaskSum")
        self.parts = tuple(parts)
        complaints = [
            f"part {i} is {type(part).__name__}; expected a callable that builds a function, or a function."
            for i, part in enumerate(parts)
            if not callable(part) and not isinstance(part, Function)
        ]
        if isinstance(fan, bool) or not isinstance(fan, Integral) or fan < 1:
            complaints.append(f"fan is {fan!r}; expected a whole number >= 1.")
        raise_all("DaskSum", complaints)
        seconds = as_number(patience, "DaskSum: patience", 0.0)
        self._hosts = Hosts(client, self.parts, seconds, int(fan), bool(shared))
        try:
            self._learn()
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"DaskSum({self.combine} of {self.count} parts, shape {self.shape or 'any'})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the workers forget the parts. The cluster goes on; a call after this one is refused."""
        self._hosts.close()

    def list_numbers(self) -> list[Any]:
        """What a checkpoint knows it by: the numbers of the built parts, wherever they came from."""
        return [self.combine, self.shape, self.over_parts(digest_of)]

    @property
    def counts(self) -> Counts:
        """What all calls have cost so far: a copy."""
        return self._hosts.counts.copy()

    @property
    def placement(self) -> dict[str, list[int]]:
        """Numbers of the parts that each worker holds."""
        return {worker: list(parts) for worker, parts in self._hosts.held.items()}

    def over_parts(self, question: Callable[[Function], _Answer]) -> list[_Answer]:
        return self._hosts.answers(question)

    def sum_parts(self, operation: str, x: Array, chosen: Sequence[int] | None = None) -> Terms:
        return self._hosts.reduce(operation, x, chosen)


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
    host has had before: arrays pass through it where it is wanted. At most `fan` far hosts get their jobs from here,
    the others get theirs, and x, from those. Nothing here can change a bit of an answer: sums follow the tree of
    `functions.parts`, whoever makes them.
    """

    def __init__(self, client: Any, loaders: Sequence[Any], patience: float, fan: int, shared: bool) -> None:
        super().__init__(client, "DaskSum", loaders, patience)
        self.fan, self.shared = fan, SharedArrays() if shared else None
        self.near: dict[str, str] = {}
        self.held: Placement = {}
        self._named, self._looked, self._sum = 0, -math.inf, np.empty(0)
        self.gather()

    def close(self) -> None:
        super().close()
        if self.shared is not None:
            self.shared.close()

    def blame(self, key: str, reply: Reply) -> str:
        return f"part {reply.failed} of {self.name}"

    def release(self, key: str) -> None:
        super().release(key)
        self.near.pop(key, None)
        self.held.pop(key, None)

    def ask_functions(self, question: Callable[[Any], Any]) -> list[Any]:
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
        known = find_workers(self.client)
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
        if not self.make(Host, dict(zip(new, new, strict=True))):
            return False
        self.counts.joined += len(new) if self.counts.calls else 0
        count = len(self.loaders)
        wanted = level(count, self.held, workers) if new else place(count, workers, self.held)
        missing = {w: [i for i in parts if i not in self.held.get(w, ())] for w, parts in wanted.items()}
        files = () if self.shared is None else (self.shared.folder, self.shared.token)
        jobs = {w: (self.pickle_parts(parts), self.name, *files) for w, parts in missing.items() if parts}
        replies, lost = self.ask("build", jobs)
        for worker, reply in replies.items():
            self.counts.built += len(missing[worker])
            if reply.sees and worker not in self.near:
                self._named += 1
                self.near[worker] = f"out{self._named}"
        self.forget(lost)
        for worker in set(wanted) - set(lost):
            spare = [i for i in self.held.get(worker, ()) if i not in wanted[worker]]
            self.held[worker] = wanted[worker]
            if spare:
                self.actors[worker].drop(spare)
        self._looked = self._looked if lost else time.monotonic()
        return not lost

    def reduce(self, operation: str, x: Array, chosen: Sequence[int] | None) -> Terms:
        """An operation summed over all parts, or the chosen ones; its array is the same one at every call."""
        self.look()
        began = time.perf_counter()
        everything = (0, len(self.loaders))
        terms = self._collect_terms(operation, x, set(range(*everything) if chosen is None else chosen))
        if operation in WITH_ARRAY:
            if self._sum.size != x.size:
                self._sum = np.empty(x.size)
            flat = {block: (found[0], np.ravel(found[1])) for block, found in terms.items() if found[1] is not None}
            numbers, _ = sum_in_pieces(everything, flat, self._sum)
            total: Terms | None = (numbers, self._sum.reshape(x.shape))
        else:
            total = sum_block(everything, terms.get)
        assert total is not None
        self.counts.waiting += time.perf_counter() - began
        return total

    def _collect_terms(self, operation: str, x: Array, wanted: set[int]) -> dict[Block, Terms]:
        """Sums over blocks that cover all wanted parts, however often that takes."""
        call = self.counts.count_call(operation)
        terms: dict[Block, Terms] = {}
        slowest = 0.0
        for attempt in range(_MOST_ROUNDS):
            jobs = self._jobs(operation, x, wanted, attempt)
            replies, lost = self.ask("evaluate", self._send(jobs, x), Mode.HURRIED)
            for worker, reply in replies.items():
                terms |= self._receive(jobs[worker], reply, x)
                wanted -= {i for block in reply.covered for i in range(*block)}
                lost |= dict.fromkeys(reply.lost, LOST)
                slowest = max(slowest, reply.seconds)
            if not wanted:
                self.counts.computing += slowest
                return terms
            for worker, reason in lost.items():
                parts = tuple(i for i in self.held.get(worker, ()) if i in wanted)
                self.counts.repeats.append(Repeat(call, operation, parts, worker, reason))
            self.give_up(lost)
        raise UnreachableError(f"DaskSum: call {call} was repeated {_MOST_ROUNDS} times and lost a worker each time.")

    def _jobs(self, operation: str, x: Array, wanted: set[int], attempt: int) -> dict[str, Job]:
        """One job for each worker that holds wanted parts; in messages from the day that shared memory is full."""
        jobs = {}
        for worker, parts in self.held.items():
            blocks = tuple(whole_blocks(len(self.loaders), wanted.intersection(parts)))
            x_path = out_path = ""
            try:
                if blocks and self.shared is not None and worker in self.near:
                    x_path = self.shared.path("x", 1, x.size)
                    if operation in WITH_ARRAY:
                        # A repeated call must not write where the answers of its first round still are.
                        out_path = self.shared.path(f"{self.near[worker]}-{attempt}", len(blocks), x.size)
            except OSError:
                self.near.clear()
                self.shared = None
                return self._jobs(operation, x, wanted, attempt)
            if blocks:
                jobs[worker] = Job(operation, x.shape, len(self.loaders), blocks, None, x_path, out_path)
        return jobs

    def _send(self, jobs: Mapping[str, Job], x: Array) -> dict[str, tuple[Job]]:
        """The jobs as they leave: x once for all hosts on this machine, and once for each of the first far ones."""
        near = {worker: job for worker, job in jobs.items() if job.x_path}
        if near and self.shared is not None:
            self.shared.rows(next(iter(near.values())).x_path)[0] = x.ravel()
            self.counts.bytes_shared += x.nbytes
        far = self._relay([worker for worker in jobs if worker not in near], jobs)
        self.counts.bytes_sent += len(far) * x.nbytes
        return {w: (job,) for w, job in near.items()} | {w: (replace(job, x=x),) for w, job in far.items()}

    def _relay(self, workers: Sequence[str], jobs: Mapping[str, Job]) -> dict[str, Job]:
        """At most `fan` jobs, with the others inside: the first worker of each group passes on to the rest of it."""
        if len(workers) <= self.fan:
            return {worker: jobs[worker] for worker in workers}
        # Neighbours in the tree in one group: their sums join on the way back.
        workers = sorted(workers, key=lambda worker: jobs[worker].blocks[0])
        length = -(-len(workers) // self.fan)
        found = {}
        for i in range(0, len(workers), length):
            first, *rest = workers[i : i + length]
            relays = tuple(Relay(w, self.actors[w], job, self.patience) for w, job in self._relay(rest, jobs).items())
            found[first] = replace(jobs[first], relays=relays)
        return found

    def _receive(self, job: Job, reply: Reply, x: Array) -> dict[Block, Terms]:
        """The sums of a reply, with arrays from shared memory where they are there."""
        self.counts.bytes_passed += reply.passed * x.nbytes
        if not job.out_path:
            self.counts.bytes_received += x.nbytes * sum(array is not None for _, array in reply.terms.values())
            return reply.terms
        assert self.shared is not None
        rows = self.shared.rows(job.out_path)
        self.counts.bytes_shared += x.nbytes * len(job.blocks)
        return {block: (reply.terms[block][0], rows[row]) for row, block in enumerate(job.blocks)}
