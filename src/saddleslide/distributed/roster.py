"""The hosts of one function: on which workers they are, and which parts each of them holds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, final

from saddleslide.distributed.calling import SLOW, Mode, alive, asked, delivered, refuse_closed
from saddleslide.distributed.counts import Counts
from saddleslide.distributed.engine import pickled
from saddleslide.distributed.host import Host, Reply
from saddleslide.distributed.mailbox import Mailbox
from saddleslide.distributed.placement import Placement, levelled, placed
from saddleslide.errors import UnreachableError

# Seconds between two looks at who is there, between calls.
_LOOK = 2.0
# Seconds between two tries to find a worker.
_PAUSE = 0.1


@final
class Roster:
    """Keeps every part on a living worker.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster.
    loaders : sequence
        What builds each part.
    name : str
        The function, for messages.
    patience : float
        Seconds to wait for any worker before the cluster counts as gone.
    mailbox : Mailbox or None
        Shared memory, for workers on this machine.
    counts : Counts
        Where workers and builds are counted.
    """

    stored: ClassVar[bool] = False

    def __init__(
        self,
        client: Any,
        loaders: Sequence[Any],
        name: str,
        patience: float,
        mailbox: Mailbox | None,
        counts: Counts,
    ) -> None:
        self.client, self.loaders, self.name, self.patience = client, tuple(loaders), name, patience
        self.counts, self.mailbox = counts, mailbox
        self.hosts: dict[str, Any] = {}
        # Workers that see the mailbox, and a name that no host has had before for each.
        self.near: dict[str, str] = {}
        self.held: Placement = {}
        self._futures: dict[str, Any] = {}
        self._slow: set[str] = set()
        self._hires, self._closed = 0, False
        self._looked = -math.inf

    def close(self) -> None:
        """Let go of all hosts; their workers forget the parts."""
        self._closed = True
        for known in (self.hosts, self.near, self.held, self._futures):
            known.clear()

    def asked(
        self, method: str, jobs: Mapping[str, tuple[Any, ...]], mode: Mode = Mode.PATIENT
    ) -> tuple[dict[str, Reply], dict[str, str]]:
        """Replies of hosts, and the workers without one; what a part raised is raised here."""
        replies, lost = asked(self.client, self.hosts, method, jobs, self.patience, mode)
        for worker, reply in replies.items():
            if reply.error is not None:
                reply.error.add_note(f"saddleslide: raised by part {reply.failed} of {self.name} on {worker}.")
                raise reply.error
        return replies, lost

    def answers(self, question: Callable[[Any], Any]) -> list[Any]:
        """The answers of all parts to a question about them, in their order."""
        self.look()
        found: dict[int, Any] = {}
        while len(found) < len(self.loaders):
            missing = {worker: [i for i in parts if i not in found] for worker, parts in self.held.items()}
            jobs = {worker: (question, parts) for worker, parts in missing.items() if parts}
            replies, lost = self.asked("answer", jobs)
            found |= {i: one for reply in replies.values() for i, one in reply.answers.items()}
            if lost:
                self.without(lost)
        return [found[i] for i in range(len(self.loaders))]

    def look(self) -> None:
        """From time to time: workers that came get their share, the parts of those that went are built elsewhere."""
        refuse_closed(self._closed, self.name)
        if time.monotonic() - self._looked < _LOOK:
            return
        self._looked = time.monotonic()
        known = alive(self.client)
        if known is not None and known - self._slow != set(self.hosts):
            self.gather()

    def without(self, lost: Mapping[str, str]) -> None:
        """Give workers up and build their parts elsewhere."""
        for worker, reason in lost.items():
            self._forget(worker)
            if reason == SLOW:
                self._slow.add(worker)
        self.gather()

    def gather(self) -> None:
        """Every part on a living worker, built; waits for workers where there are none."""
        deadline = time.monotonic() + self.patience
        while True:
            found = alive(self.client)
            known = found or frozenset()
            usable = sorted(known - self._slow) or sorted(known)
            if usable and self._settled(usable):
                self._looked = time.monotonic()
                return
            if time.monotonic() > deadline or self.client.status == "closed":
                raise UnreachableError(
                    f"{self.name}: the cluster is gone: "
                    + ("its scheduler does not answer" if found is None else "it has no worker that answers")
                    + f", for {self.patience:g} s. Start it again, and resume the run from its checkpoint."
                )
            time.sleep(_PAUSE)

    def _settled(self, workers: Sequence[str]) -> bool:
        """Place all parts on these workers and build what is missing; False when one was lost meanwhile."""
        for worker in set(self.hosts) - set(workers):
            self._forget(worker)
        new = [worker for worker in workers if worker not in self.hosts]
        if not all(self._hired(worker) for worker in new):
            return False
        count = len(self.loaders)
        level = levelled(count, self.held, workers) if new else placed(count, workers, self.held)
        missing = {w: [i for i in parts if i not in self.held.get(w, ())] for w, parts in level.items()}
        jobs = {w: ({i: pickled(self.loaders[i]) for i in parts}, self.name) for w, parts in missing.items() if parts}
        replies, lost = self.asked("build", jobs)
        self.counts.built += sum(len(missing[worker]) for worker in replies)
        for worker in lost:
            self._forget(worker)
        for worker in set(level) - set(lost):
            spare = [i for i in self.held.get(worker, ()) if i not in level[worker]]
            self.held[worker] = level[worker]
            if spare:
                self.hosts[worker].drop(spare)
        return not lost

    def _hired(self, worker: str) -> bool:
        """Put a host on a worker; False where the worker is gone."""
        try:
            with self.client.as_current():
                future = self.client.submit(Host, actor=True, workers=[worker], allow_other_workers=False, pure=False)
                actor = delivered(self.client, future, worker)
        except Exception:
            # Whatever went wrong: there is no host on that worker.
            return False
        box = self.mailbox
        if actor is None:
            return False
        sees, lost = ({}, {}) if box is None else self._sees(worker, actor, box)
        if lost:
            return False
        self.counts.joined += self.counts.calls > 0
        self._futures[worker], self.hosts[worker] = future, actor
        self._hires += 1
        if sees.get(worker):
            self.near[worker] = f"out{self._hires}"
        return True

    def _sees(self, worker: str, actor: Any, box: Mailbox) -> tuple[dict[str, bool], dict[str, str]]:
        return asked(self.client, {worker: actor}, "sees", {worker: (box.folder, box.token)}, self.patience)

    def _forget(self, worker: str) -> None:
        self.counts.lost += worker in self.hosts
        for known in (self.hosts, self.near, self.held, self._futures):
            known.pop(worker, None)
