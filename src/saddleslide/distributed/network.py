"""All agents of a network: where they are, rounds of exchange, and what happens when one is lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, final

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.distributed.agent import Agent, Told
from saddleslide.distributed.calling import CUT, Mode, alive, asked, delivered, refuse_closed
from saddleslide.distributed.counts import Counts, Repeat
from saddleslide.distributed.engine import pickled
from saddleslide.errors import UnreachableError

_MOST_ROUNDS = 50
_PAUSE = 0.1


@final
class Network:
    """Agents on the workers of a cluster, by number; a lost one is built again elsewhere and met by its neighbours.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster.
    loaders : sequence
        What builds each agent's function.
    W : array
        The gossip matrix: its entries off the diagonal are minus the weights of the edges.
    patience : float
        Seconds to wait for any worker before the cluster counts as gone.
    """

    stored: ClassVar[bool] = False

    def __init__(self, client: Any, loaders: Sequence[Any], W: Array, patience: float) -> None:
        self.client, self.loaders, self.patience = client, tuple(loaders), patience
        roots = np.sqrt(np.maximum(-W, 0.0))
        np.fill_diagonal(roots, 0.0)
        self.weights = [{int(j): float(roots[i, j]) for j in np.flatnonzero(roots[i])} for i in range(len(W))]
        # Edges by their lower end.
        self.edges = [(i, j) for i, near in enumerate(self.weights) for j in near if j > i]
        self.counts, self.exchanges = Counts(), 0
        self._agents: dict[int, Any] = {}
        self._futures: dict[int, Any] = {}
        self._home: dict[int, str] = {}
        self._number, self._closed = 0, False
        self.gather()

    def close(self) -> None:
        """Let go of all agents; a call after this one is refused."""
        self._closed = True
        for known in (self._agents, self._futures, self._home):
            known.clear()

    def answers(self, question: Callable[[Any], Any]) -> list[Any]:
        """The answers of all agents to a question about their functions."""
        told = self._all("answer", dict.fromkeys(range(len(self.loaders)), (question,)), "answer")
        return [told[i].answer for i in range(len(self.loaders))]

    def evaluated(self, operation: str, x: Array) -> dict[int, Told]:
        """An operation on every agent's function at its own block of x."""
        return self._all("evaluate", {i: (operation, x[i]) for i in range(len(self.loaders))}, operation, x.nbytes)

    @property
    def rounds(self) -> float:
        """Rounds of communication: one vector each way along every edge, that is a product with B and one with B^T."""
        return self.exchanges / 2.0

    def exchanged(self, method: str, job: Callable[[int], tuple[Any, ...]], size: int) -> dict[int, Told]:
        """One exchange between neighbours, which all agents take part in: one vector along every edge."""
        told = self._all(method, job, method, size)
        self.exchanges += 1
        self.counts.bytes_passed += sum(one.sent for one in told.values())
        return told

    def _all(self, method: str, jobs: Any, operation: str, size: int = 0) -> dict[int, Told]:
        """Ask all agents at once, as often as it takes: a round that lost one is begun anew."""
        refuse_closed(self._closed, "consensus")
        began = time.perf_counter()
        call = self.counts.called(operation)
        for _ in range(_MOST_ROUNDS):
            self._number += 1
            sent = {i: (self._number, *jobs(i)) for i in self._agents} if callable(jobs) else jobs
            together = Mode.TOGETHER if callable(jobs) else Mode.PATIENT
            told, lost = self._asked(method, sent, together)
            if not lost:
                self.counts.waiting += time.perf_counter() - began
                self.counts.bytes_sent += size
                self.counts.bytes_received += size
                return told
            self._note(call, operation, lost)
            self.gather()
        raise UnreachableError(f"consensus: a call was repeated {_MOST_ROUNDS} times and lost an agent each time.")

    def _note(self, call: int, operation: str, lost: Mapping[int, str]) -> None:
        """Give up the workers of lost agents, and say which agents are asked again; those cut short are still there."""
        if CUT in lost.values():
            lost = self._asked("present", dict.fromkeys(self._agents, ()), Mode.PATIENT)[1] or lost
        for worker, reason in {self._home[i]: reason for i, reason in lost.items()}.items():
            agents = tuple(i for i, home in self._home.items() if home == worker)
            self.counts.repeats.append(Repeat(call, operation, agents, worker, reason))
        self._forget(self._home[i] for i in lost)

    def _asked(self, method: str, jobs: Mapping[int, Any], mode: Mode) -> tuple[dict[int, Told], dict[int, str]]:
        told, lost = asked(self.client, self._agents, method, jobs, self.patience, mode, self._home)
        for i, one in told.items():
            if one.error is not None:
                one.error.add_note(f"saddleslide: raised by the function of agent {i} on {self._home[i]}.")
                raise one.error
        return told, lost

    def gather(self) -> None:
        """Every agent on a living worker; waits for workers where there are none."""
        deadline = time.monotonic() + self.patience
        while True:
            known = alive(self.client)
            if known and self._settled(sorted(known)):
                return
            if time.monotonic() > deadline or self.client.status == "closed":
                raise UnreachableError(
                    f"consensus: the cluster is gone: no worker answers, for {self.patience:g} s. Start it again, and "
                    "resume the run from its checkpoint."
                )
            time.sleep(_PAUSE)

    def _settled(self, workers: Sequence[str]) -> bool:
        """Put missing agents on workers, those with the fewest first; False when one was lost meanwhile."""
        self._forget(set(self._home.values()) - set(workers))
        new = [i for i in range(len(self.loaders)) if i not in self._agents]
        if not self._hired(new, workers):
            return False
        builds = {i: (pickled(self.loaders[i]), "consensus") for i in new}
        met = {i: ({j: self._agents[j] for j in near}, near) for i, near in enumerate(self.weights)}
        for method, jobs in (("build", builds), ("meet", met if new else {})):
            _, lost = self._asked(method, jobs, Mode.PATIENT)
            if lost:
                self._forget(self._home[i] for i in lost)
                return False
        self.counts.built += len(new)
        return True

    def _hired(self, new: Sequence[int], workers: Sequence[str]) -> bool:
        """Put agents on the workers with the fewest; False where a worker is gone."""
        try:
            with self.client.as_current():
                for i in new:
                    homes = list(self._home.values())
                    self._home[i] = min(workers, key=homes.count)
                    self._futures[i] = self.client.submit(Agent, i, actor=True, workers=[self._home[i]], pure=False)
                found = {i: delivered(self.client, self._futures[i], self._home[i]) for i in new}
        except Exception:
            # Whatever went wrong: there is no agent on that worker.
            found = {}
        complete = len(found) == len(new) and None not in found.values()
        for i in new:
            # All of them or none: who is known here has its function, or gets it at once.
            if complete:
                self._agents[i] = found[i]
            else:
                self._release(i)
        return complete

    def _forget(self, workers: Iterable[str]) -> None:
        """All agents on these workers."""
        gone = set(workers)
        self.counts.lost += len(gone & {self._home[i] for i in self._agents})
        for i in [i for i, home in self._home.items() if home in gone]:
            self._release(i)

    def _release(self, i: int) -> None:
        for known in (self._agents, self._futures, self._home):
            known.pop(i, None)
