"""A network of agents: actors with a function each, who talk to their neighbours, and what happens when one is lost."""

from __future__ import annotations

import asyncio
import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.distributed.cluster import CUT, Actors, CutShort, Mode, sendable, to_pickle
from saddleslide.distributed.counts import Repeat
from saddleslide.errors import UnreachableError
from saddleslide.functions import Function
from saddleslide.functions.parts import OPERATIONS, Terms, built_part

_MOST_ROUNDS = 50


@dataclass(frozen=True)
class AgentReply:
    """What an agent answers: numbers and an array, or what its function raised; and the bytes it sent to neighbours."""

    terms: Terms = ((), None)
    answer: Any = None
    arrays: dict[int, Array] = field(default_factory=dict)
    sent: int = 0
    error: BaseException | None = None


@final
class Agent:
    """One agent of a network. A Dask actor: it speaks to its neighbours directly, worker to worker.

    Its edges are those to neighbours with a larger number. An exchange has a number of its own: what is left of one
    that was cut short is never taken for another one's.
    """

    def __init__(self, index: int) -> None:
        self._index = index
        self._function: Function | None = None
        self._weights: dict[int, float] = {}
        self._neighbours: dict[int, Any] = {}
        self._heard: dict[tuple[int, int], Array] = {}
        self._latest = 0
        self._news = asyncio.Condition()

    def build(self, loader: bytes, name: str) -> AgentReply:
        """Build the function and keep it."""
        try:
            self._function = built_part(pickle.loads(loader), self._index, name)
        except (Exception, SystemExit) as error:
            return AgentReply(error=sendable(error))
        return AgentReply()

    def meet(self, neighbours: Mapping[int, Any], weights: Mapping[int, float]) -> AgentReply:
        """Learn who the neighbours are, and the roots of the weights of the edges to them."""
        self._neighbours, self._weights = dict(neighbours), dict(weights)
        for actor in neighbours.values():
            # An actor finds the way to its worker at the first look, and that may block: here, not in a round.
            assert callable(actor.hear)
        return AgentReply()

    def answer(self, question: Callable[[Function], Any]) -> AgentReply:
        """The answer of the function to a question about it."""
        assert self._function is not None
        try:
            return AgentReply(answer=question(self._function))
        except (Exception, SystemExit) as error:
            return AgentReply(error=sendable(error))

    def evaluate(self, operation: str, x: Array) -> AgentReply:
        """An operation of `functions.parts` on the own function."""
        assert self._function is not None
        try:
            return AgentReply(terms=OPERATIONS[operation](self._function, x, None))
        except (Exception, SystemExit) as error:
            return AgentReply(error=sendable(error))

    def present(self) -> AgentReply:
        """Say that this agent is there."""
        return AgentReply()

    async def hear(self, number: int, sender: int, array: Array) -> None:
        """Take a neighbour's message of an exchange."""
        async with self._news:
            self._heard = {key: one for key, one in self._heard.items() if key[0] >= number - 2}
            self._heard[number, sender] = array
            self._latest = max(self._latest, number)
            self._news.notify_all()

    async def differences(self, number: int, x: Array) -> AgentReply:
        """B x on the own edges: x to neighbours with smaller numbers, who own the edges, and theirs from above."""
        below = [j for j in self._neighbours if j < self._index]
        above = sorted(j for j in self._neighbours if j > self._index)
        heard = await self._exchange(number, dict.fromkeys(below, x), above)
        return AgentReply(arrays={j: self._weights[j] * (x - heard[j]) for j in above}, sent=len(below) * x.nbytes)

    async def pull(self, number: int, edges: Mapping[int, Array], blank: Array) -> AgentReply:
        """B^T y at this agent: the values of the own edges to their other ends, and theirs from below."""
        below = sorted(j for j in self._neighbours if j < self._index)
        heard = await self._exchange(number, edges, below)
        total = blank.copy()
        for j in sorted(self._neighbours):
            total += self._weights[j] * edges[j] if j > self._index else -self._weights[j] * heard[j]
        return AgentReply(arrays={self._index: total}, sent=sum(value.nbytes for value in edges.values()))

    async def _exchange(self, number: int, messages: Mapping[int, Array], senders: Sequence[int]) -> dict[int, Array]:
        """Tell neighbours, and hear from others."""
        try:
            await asyncio.gather(*(self._neighbours[j].hear(number, self._index, one) for j, one in messages.items()))
        except (Exception, asyncio.CancelledError) as error:
            # Whatever went wrong on the way: this agent is here, and a neighbour is not.
            raise CutShort(f"exchange {number}: {error}") from None

        def has_heard() -> bool:
            return all((number, j) in self._heard for j in senders)

        async with self._news:
            await self._news.wait_for(lambda: has_heard() or self._latest > number)
            if not has_heard():
                raise CutShort(f"exchange {number}: another one has begun")
            return {j: self._heard.pop((number, j)) for j in senders}


@final
class Network(Actors[int]):
    """Agents on the workers of a cluster, by number; a lost one is built again elsewhere and met by its neighbours.

    Entries of the gossip matrix W off its diagonal are minus the weights of the edges.
    """

    def __init__(self, client: Any, loaders: Sequence[Any], W: Array, patience: float) -> None:
        super().__init__(client, "consensus", patience)
        self.loaders = tuple(loaders)
        roots = np.sqrt(np.maximum(-W, 0.0))
        np.fill_diagonal(roots, 0.0)
        self.weights = [{int(j): float(roots[i, j]) for j in np.flatnonzero(roots[i])} for i in range(len(W))]
        # Edges by their lower end.
        self.edges = [(i, j) for i, near in enumerate(self.weights) for j in near if j > i]
        self.exchanges = self._number = 0
        self.gather()

    def blame(self, key: int, reply: AgentReply) -> str:
        return f"the function of agent {key}"

    def describe_loss(self, known: frozenset[str] | None) -> str:
        return "no worker answers"

    def answers(self, question: Callable[[Any], Any]) -> list[Any]:
        """The answers of all agents to a question about their functions."""
        told = self._ask_all("answer", dict.fromkeys(range(len(self.loaders)), (question,)), "answer")
        return [told[i].answer for i in range(len(self.loaders))]

    def evaluate(self, operation: str, x: Array) -> dict[int, AgentReply]:
        """An operation on every agent's function at its own block of x."""
        jobs = {i: (operation, x[i]) for i in range(len(self.loaders))}
        return self._ask_all("evaluate", jobs, operation, x.nbytes)

    @property
    def rounds(self) -> float:
        """Rounds of communication: one vector each way along every edge, that is a product with B and one with B^T."""
        return self.exchanges / 2.0

    def exchange(self, method: str, job: Callable[[int], tuple[Any, ...]], size: int) -> dict[int, AgentReply]:
        """One exchange between neighbours, which all agents take part in: one vector along every edge."""
        told = self._ask_all(method, job, method, size)
        self.exchanges += 1
        self.counts.bytes_passed += sum(one.sent for one in told.values())
        return told

    def _ask_all(self, method: str, jobs: Any, operation: str, size: int = 0) -> dict[int, AgentReply]:
        """Ask all agents at once, as often as it takes: a round that lost one is begun anew."""
        self.refuse_closed()
        began = time.perf_counter()
        call = self.counts.called(operation)
        for _ in range(_MOST_ROUNDS):
            self._number += 1
            sent = {i: (self._number, *jobs(i)) for i in self.actors} if callable(jobs) else jobs
            told, lost = self.ask(method, sent, Mode.TOGETHER if callable(jobs) else Mode.PATIENT)
            if not lost:
                self.counts.waiting += time.perf_counter() - began
                self.counts.bytes_sent += size
                self.counts.bytes_received += size
                return told
            self._give_up(call, operation, lost)
            self.gather()
        raise UnreachableError(f"consensus: a call was repeated {_MOST_ROUNDS} times and lost an agent each time.")

    def _give_up(self, call: int, operation: str, lost: Mapping[int, str]) -> None:
        """Give up the workers of lost agents, and say which agents are asked again; those cut short are still there."""
        if CUT in lost.values():
            lost = self.ask("present", dict.fromkeys(self.actors, ()))[1] or lost
        for worker, reason in {self.homes[i]: reason for i, reason in lost.items()}.items():
            agents = tuple(i for i, home in self.homes.items() if home == worker)
            self.counts.repeats.append(Repeat(call, operation, agents, worker, reason))
        self.forget(self.homes[i] for i in lost)

    def settle(self, workers: Sequence[str]) -> bool:
        """Put missing agents on workers, those with the fewest first; False when one was lost meanwhile."""
        self.forget(set(self.homes.values()) - set(workers))
        new = [i for i in range(len(self.loaders)) if i not in self.actors]
        homes = list(self.homes.values())
        for _ in new:
            homes.append(min(workers, key=homes.count))
        if not self.make(Agent, dict(zip(new, homes[-len(new) :], strict=True)) if new else {}, new):
            return False
        # Who is known here has its function, or gets it at once.
        builds = {i: (to_pickle(self.loaders[i]), "consensus") for i in new}
        met = {i: ({j: self.actors[j] for j in near}, near) for i, near in enumerate(self.weights)}
        for method, jobs in (("build", builds), ("meet", met if new else {})):
            _, lost = self.ask(method, jobs)
            if lost:
                self.forget(self.homes[i] for i in lost)
                return False
        self.counts.built += len(new)
        return True
