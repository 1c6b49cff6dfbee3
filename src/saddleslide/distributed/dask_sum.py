"""A sum of functions whose parts live on the workers of a cluster."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self, TypeVar, final

import numpy as np

from saddleslide.arrays.base import Array, as_number
from saddleslide.distributed.cluster import LOST, Mode, check_client
from saddleslide.distributed.counts import Counts, Repeat
from saddleslide.distributed.host import Job, Relay, Reply
from saddleslide.distributed.placement import Hosts
from saddleslide.distributed.shared_memory import SharedArrays
from saddleslide.errors import UnreachableError, raise_all
from saddleslide.functions import Function, Partitioned
from saddleslide.functions.parts import WITH_ARRAY, Block, Terms, summed, summed_in_pieces, whole_blocks
from saddleslide.runs.checkpoint import digest_of

_Answer = TypeVar("_Answer")
# Times that one call is repeated before the cluster counts as gone.
_MOST_ROUNDS = 50
# Far workers that get x from this process; see docs/scaling.md.
_FAN = 4
_PATIENCE = 60.0


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
        self,
        client: Any,
        parts: Sequence[Any],
        combine: str = "sum",
        shape: Any = None,
        *,
        patience: float = _PATIENCE,
        fan: int = _FAN,
        shared: bool = True,
    ) -> None:
        check_client(client, "DaskSum")
        super().__init__(len(parts), combine, shape, "DaskSum")
        self.parts = tuple(parts)
        raise_all("DaskSum", _complaints(self.parts, fan))
        seconds = as_number(patience, "DaskSum: patience", 0.0)
        self._remote = _RemoteParts(client, self.parts, "DaskSum", seconds, int(fan), bool(shared))
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
        self._remote.close()

    def fingerprinted(self) -> list[Any]:
        """What a checkpoint knows it by: the numbers of the built parts, wherever they came from."""
        return [self.combine, self.shape, self.over_parts(digest_of)]

    @property
    def counts(self) -> Counts:
        """What all calls have cost so far: a copy."""
        return self._remote.counts.copy()

    @property
    def placement(self) -> dict[str, list[int]]:
        """Numbers of the parts that each worker holds."""
        return {worker: list(parts) for worker, parts in self._remote.hosts.held.items()}

    def over_parts(self, question: Callable[[Function], _Answer]) -> list[_Answer]:
        return self._remote.answers(question)

    def reduced(self, operation: str, x: Array, chosen: Sequence[int] | None = None) -> Terms:
        return self._remote.reduce(operation, x, chosen)


def _complaints(parts: Sequence[Any], fan: Any) -> list[str]:
    found = [
        f"part {i} is {type(part).__name__}; expected a callable that builds a function, or a function."
        for i, part in enumerate(parts)
        if not callable(part) and not isinstance(part, Function)
    ]
    if isinstance(fan, bool) or not isinstance(fan, Integral) or fan < 1:
        found.append(f"fan is {fan!r}; expected a whole number >= 1.")
    return found


class _RemoteParts:
    """Asks all workers at once and repeats what a lost one leaves open.

    Nothing here can change a bit of an answer: sums follow the tree of `functions.trees`, whoever makes them. At most
    `fan` far hosts get their jobs from here; the others get theirs, and x, from those. Where it is wanted, arrays pass
    through shared memory between worker and client on one machine.
    """

    stored: ClassVar[bool] = False

    def __init__(self, client: Any, loaders: Sequence[Any], name: str, patience: float, fan: int, shared: bool) -> None:
        self.hosts = Hosts(client, loaders, name, patience, SharedArrays() if shared else None)
        self.counts = self.hosts.counts
        self.fan, self._parts, self._sum = fan, len(loaders), np.empty(0)
        # By the pickled question: the parts do not change.
        self._answers: dict[bytes, list[Any]] = {}
        self.hosts.gather()

    def close(self) -> None:
        """Let go of the workers' parts and of shared memory."""
        self.hosts.close()
        if self.hosts.shared is not None:
            self.hosts.shared.close()

    def answers(self, question: Callable[[Function], Any]) -> list[Any]:
        """The answers of all parts to a question, which is asked once."""
        key = pickle.dumps(question)
        if key not in self._answers:
            self._answers[key] = self.hosts.answers(question)
        return self._answers[key]

    def reduce(self, operation: str, x: Array, chosen: Sequence[int] | None) -> Terms:
        """An operation summed over all parts, or the chosen ones; its array is the same one at every call."""
        self.hosts.look()
        began = time.perf_counter()
        call = self.counts.called(operation)
        wanted = range(self._parts) if chosen is None else chosen
        terms = self._collect(call, operation, x, set(wanted))
        everything = (0, self._parts)
        if operation in WITH_ARRAY:
            if self._sum.size != x.size:
                self._sum = np.empty(x.size)
            flat = {block: (found[0], np.ravel(found[1])) for block, found in terms.items() if found[1] is not None}
            numbers, _ = summed_in_pieces(everything, flat, self._sum)
            total: Terms | None = (numbers, self._sum.reshape(x.shape))
        else:
            total = summed(everything, terms.get)
        assert total is not None
        self.counts.waiting += time.perf_counter() - began
        return total

    def _collect(self, call: int, operation: str, x: Array, wanted: set[int]) -> dict[Block, Terms]:
        """Sums over blocks that cover all wanted parts, however often that takes."""
        terms: dict[Block, Terms] = {}
        slowest = 0.0
        for attempt in range(_MOST_ROUNDS):
            jobs = self._jobs(operation, x, wanted, attempt)
            replies, lost = self.hosts.ask("evaluate", self._send(jobs, x), Mode.HURRIED)
            for worker, reply in replies.items():
                terms |= self._receive(jobs[worker], reply, x)
                wanted -= {i for block in reply.covered for i in range(*block)}
                lost |= dict.fromkeys(reply.lost, LOST)
                slowest = max(slowest, reply.seconds)
            if not wanted:
                self.counts.computing += slowest
                return terms
            for worker, reason in lost.items():
                parts = tuple(i for i in self.hosts.held.get(worker, ()) if i in wanted)
                self.counts.repeats.append(Repeat(call, operation, parts, worker, reason))
            self.hosts.give_up(lost)
        raise UnreachableError(
            f"{self.hosts.name}: call {call} was repeated {_MOST_ROUNDS} times and lost a worker each time."
        )

    def _jobs(self, operation: str, x: Array, wanted: set[int], attempt: int) -> dict[str, Job]:
        """One job for each worker that holds wanted parts; in messages from the day that shared memory is full."""
        try:
            return self._make_jobs(operation, x, wanted, attempt)
        except OSError:
            self.hosts.near.clear()
            self.hosts.shared = None
        return self._make_jobs(operation, x, wanted, attempt)

    def _make_jobs(self, operation: str, x: Array, wanted: set[int], attempt: int) -> dict[str, Job]:
        shared, near = self.hosts.shared, self.hosts.near
        jobs = {}
        for worker, parts in self.hosts.held.items():
            blocks = tuple(whole_blocks(self._parts, wanted.intersection(parts)))
            if not blocks:
                continue
            paths: dict[str, Any] = {}
            if shared is not None and worker in near:
                paths["x_path"] = shared.path("x", 1, x.size)
                if operation in WITH_ARRAY:
                    # A repeated call must not write where the answers of its first round still are.
                    paths["out_path"] = shared.path(f"{near[worker]}-{attempt}", len(blocks), x.size)
            jobs[worker] = Job(operation, x.shape, self._parts, blocks, **paths)
        return jobs

    def _send(self, jobs: Mapping[str, Job], x: Array) -> dict[str, tuple[Job]]:
        """The jobs as they leave: x once for all hosts on this machine, and once for each of the first far ones."""
        near = {worker: job for worker, job in jobs.items() if job.x_path}
        if near and self.hosts.shared is not None:
            self.hosts.shared.rows(next(iter(near.values())).x_path)[0] = x.ravel()
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
        actors, patience = self.hosts.actors, self.hosts.patience
        found = {}
        for i in range(0, len(workers), length):
            first, *rest = workers[i : i + length]
            relays = tuple(Relay(w, actors[w], job, patience) for w, job in self._relay(rest, jobs).items())
            found[first] = replace(jobs[first], relays=relays)
        return found

    def _receive(self, job: Job, reply: Reply, x: Array) -> dict[Block, Terms]:
        """The sums of a reply, with arrays from shared memory where they are there."""
        self.counts.bytes_passed += reply.passed * x.nbytes
        if not job.out_path:
            self.counts.bytes_received += x.nbytes * sum(array is not None for _, array in reply.terms.values())
            return reply.terms
        assert self.hosts.shared is not None
        rows = self.hosts.shared.rows(job.out_path)
        self.counts.bytes_shared += x.nbytes * len(job.blocks)
        return {block: (reply.terms[block][0], rows[row]) for row, block in enumerate(job.blocks)}
