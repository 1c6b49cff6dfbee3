"""An agent on a worker: its own function, its neighbours, and what they say to each other."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from saddleslide.arrays.base import Array
from saddleslide.distributed.engine import CutShort, sendable
from saddleslide.functions import Function
from saddleslide.functions.part_questions import OPERATIONS, built_part
from saddleslide.functions.trees import Terms


@dataclass(frozen=True)
class Told:
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

    def build(self, loader: bytes, name: str) -> Told:
        """Build the function and keep it."""
        try:
            self._function = built_part(pickle.loads(loader), self._index, name)
        except (Exception, SystemExit) as error:
            return Told(error=sendable(error))
        return Told()

    def meet(self, neighbours: Mapping[int, Any], weights: Mapping[int, float]) -> Told:
        """Learn who the neighbours are, and the roots of the weights of the edges to them."""
        self._neighbours, self._weights = dict(neighbours), dict(weights)
        for actor in neighbours.values():
            # An actor finds the way to its worker at the first look, and that may block: here, not in a round.
            assert callable(actor.hear)
        return Told()

    def answer(self, question: Callable[[Function], Any]) -> Told:
        """The answer of the function to a question about it."""
        assert self._function is not None
        try:
            return Told(answer=question(self._function))
        except (Exception, SystemExit) as error:
            return Told(error=sendable(error))

    def evaluate(self, operation: str, x: Array) -> Told:
        """An operation of `functions.parts` on the own function."""
        assert self._function is not None
        try:
            return Told(terms=OPERATIONS[operation](self._function, x, None))
        except (Exception, SystemExit) as error:
            return Told(error=sendable(error))

    def present(self) -> Told:
        """Say that this agent is there."""
        return Told()

    async def hear(self, number: int, sender: int, array: Array) -> None:
        """Take a neighbour's message of an exchange."""
        async with self._news:
            self._heard = {key: one for key, one in self._heard.items() if key[0] >= number - 2}
            self._heard[number, sender] = array
            self._latest = max(self._latest, number)
            self._news.notify_all()

    async def differences(self, number: int, x: Array) -> Told:
        """B x on the own edges: x to neighbours with smaller numbers, who own the edges, and theirs from above."""
        below = [j for j in self._neighbours if j < self._index]
        above = sorted(j for j in self._neighbours if j > self._index)
        await self._tell(number, dict.fromkeys(below, x))
        heard = await self._hear_from(number, above)
        return Told(arrays={j: self._weights[j] * (x - heard[j]) for j in above}, sent=len(below) * x.nbytes)

    async def pull(self, number: int, edges: Mapping[int, Array], blank: Array) -> Told:
        """B^T y at this agent: the values of the own edges to their other ends, and theirs from below."""
        below = sorted(j for j in self._neighbours if j < self._index)
        await self._tell(number, edges)
        heard = await self._hear_from(number, below)
        total = blank.copy()
        for j in sorted(self._neighbours):
            total += self._weights[j] * edges[j] if j > self._index else -self._weights[j] * heard[j]
        return Told(arrays={self._index: total}, sent=sum(value.nbytes for value in edges.values()))

    async def _tell(self, number: int, messages: Mapping[int, Array]) -> None:
        try:
            await asyncio.gather(*(self._neighbours[j].hear(number, self._index, one) for j, one in messages.items()))
        except (Exception, asyncio.CancelledError) as error:
            # Whatever went wrong on the way: this agent is here, and a neighbour is not.
            raise CutShort(f"exchange {number}: {error}") from None

    async def _hear_from(self, number: int, senders: Sequence[int]) -> dict[int, Array]:
        async with self._news:
            await self._news.wait_for(lambda: self._complete(number, senders) or self._latest > number)
            if not self._complete(number, senders):
                raise CutShort(f"exchange {number}: another one has begun")
            return {j: self._heard.pop((number, j)) for j in senders}

    def _complete(self, number: int, senders: Sequence[int]) -> bool:
        return all((number, j) in self._heard for j in senders)
