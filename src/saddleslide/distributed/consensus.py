"""Decentralised optimisation with real agents: functions on workers, products as exchanges between neighbours."""

from __future__ import annotations

import asyncio
import math
import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, final

import numpy as np

from saddleslide.arrays.base import Array, Shape, as_number, as_shape
from saddleslide.distributed.cluster import CUT, Actors, Counts, CutShort, Mode, Repeat, check_client, sendable
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import FullSpace
from saddleslide.errors import InputError, UnknownConstantError, UnreachableError, raise_all
from saddleslide.functions.base import Function
from saddleslide.functions.blockwise import join_smoothness
from saddleslide.functions.parts import (
    OPERATIONS,
    PartConstants,
    PartFacts,
    Terms,
    built_part,
    part_constants,
    part_facts,
    part_rounding,
)
from saddleslide.functions.roundings import Rounding, join
from saddleslide.gallery.consensus import agreement_problem, dual_guess, gossip_matrix, require_connected
from saddleslide.operators.base import Operator
from saddleslide.operators.spectrum import NormBound, SmallestSingularValue
from saddleslide.operators.structured import Gossip
from saddleslide.problem import SaddleProblem
from saddleslide.runs.checkpoint import digest_of
from saddleslide.theory.holder import Holder

_MOST_ROUNDS = 50


@dataclass(frozen=True)
class AgentReply:
    """What an agent answers, or what its function raised; arrays by edge, and the bytes it sent to neighbours."""

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

    def answer(self, question: Callable[..., Any], *given: Any) -> AgentReply:
        """The answer of the function to a question about it."""
        try:
            return AgentReply(answer=question(self._function, *given))
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


def _evaluate(function: Function, operation: str, x: Array) -> Terms:
    return OPERATIONS[operation](function, x, None)


@final
class Network(Actors[int]):
    """Agents on the workers of a cluster, by number; a lost one is built again elsewhere and met by its neighbours.

    Entries of the gossip matrix W off its diagonal are minus the weights of the edges.
    """

    def __init__(self, client: Any, loaders: Sequence[Any], W: Array, patience: float) -> None:
        super().__init__(client, "consensus", loaders, patience)
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

    def ask_functions(self, question: Callable[[Any], Any]) -> list[Any]:
        jobs = dict.fromkeys(range(len(self.loaders)), (question,))
        return [one.answer for one in self._ask_all("answer", jobs, "answer")]

    def evaluate(self, operation: str, x: Array) -> list[Terms]:
        """An operation on every agent's function at its own block of x: numbers and an array of each."""
        jobs = {i: (_evaluate, operation, x[i]) for i in range(len(self.loaders))}
        return [one.answer for one in self._ask_all("answer", jobs, operation, x.nbytes)]

    @property
    def rounds(self) -> float:
        """Rounds of communication: one vector each way along every edge, that is a product with B and one with B^T."""
        return self.exchanges / 2.0

    def exchange(self, method: str, job: Callable[[int], tuple[Any, ...]], size: int) -> list[AgentReply]:
        """One exchange between neighbours, which all agents take part in: one vector along every edge."""
        told = self._ask_all(method, job, method, size)
        self.exchanges += 1
        self.counts.bytes_passed += sum(one.sent for one in told)
        return told

    def _ask_all(self, method: str, jobs: Any, operation: str, size: int = 0) -> list[AgentReply]:
        """Ask all agents at once, as often as it takes: a round that lost one is begun anew."""
        self.refuse_closed()
        began = time.perf_counter()
        call = self.counts.count_call(operation)
        for _ in range(_MOST_ROUNDS):
            self._number += 1
            sent = {i: (self._number, *jobs(i)) for i in self.actors} if callable(jobs) else jobs
            told, lost = self.ask(method, sent, Mode.TOGETHER if callable(jobs) else Mode.PATIENT)
            if not lost:
                self.counts.waiting += time.perf_counter() - began
                self.counts.bytes_sent += size
                self.counts.bytes_received += size
                return [told[i] for i in range(len(self.loaders))]
            if CUT in lost.values():
                # Those that were cut short are still there.
                lost = self.ask("present", dict.fromkeys(self.actors, ()))[1] or lost
            for worker, reason in {self.homes[i]: reason for i, reason in lost.items()}.items():
                agents = tuple(i for i, home in self.homes.items() if home == worker)
                self.counts.repeats.append(Repeat(call, operation, agents, worker, reason))
            self.forget(self.homes[i] for i in lost)
            self.gather()
        raise UnreachableError(f"consensus: a call was repeated {_MOST_ROUNDS} times and lost an agent each time.")

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
        builds = {i: (loader, self.name) for i, loader in self.pickle_parts(new).items()}
        met = {i: ({j: self.actors[j] for j in near}, near) for i, near in enumerate(self.weights)}
        for method, jobs in (("build", builds), ("meet", met if new else {})):
            _, lost = self.ask(method, jobs)
            if lost:
                self.forget(self.homes[i] for i in lost)
                return False
        self.counts.built += len(new)
        return True


@final
class AgentFunctions(Function):
    """f_1(x[0]) + ... + f_n(x[n - 1]), each on its agent; `ss.functions.Blockwise` far away."""

    shape: Shape = ()
    has_value: bool = True
    own_code: bool = False
    convex_on_trust: bool = False

    def __init__(self, network: Network, facts: Sequence[PartFacts], block: Shape) -> None:
        self.network, self.shape = network, (len(facts), *block)
        self.has_value, self.linear = all(fact.has_value for fact in facts), all(fact.linear for fact in facts)
        self.own_code = any(fact.own_code for fact in facts)
        self.convex_on_trust = any(fact.convex_on_trust for fact in facts)

    def __repr__(self) -> str:
        return f"AgentFunctions({self.shape[0]} agents, points of shape {self.shape[1:]})"

    def list_numbers(self) -> list[Any]:
        """What a checkpoint knows it by: the numbers of the agents' functions."""
        return [self.shape, self.network.answers(digest_of)]

    @property
    def counts(self) -> Counts:
        """What all calls and rounds have cost so far: a copy."""
        return self.network.counts.copy()

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        told = self.network.evaluate("both", x)
        return math.fsum(value for (value,), _ in told), self._stack(told, out)

    def gradient(self, x: Array, out: Array | None = None) -> Array:
        return self._stack(self.network.evaluate("gradient", x), out)

    def _stack(self, told: Sequence[Terms], out: Array | None) -> Array:
        out = np.empty(self.shape) if out is None else out
        for i, (_, slope) in enumerate(told):
            out[i] = slope
        return out

    def value(self, x: Array) -> float:
        return math.fsum(value for (value,), _ in self.network.evaluate("value", x))

    def value_and_magnitude(self, x: Array) -> tuple[float, float]:
        told = [numbers for numbers, _ in self.network.evaluate("sized", x)]
        return math.fsum(value for value, _ in told), math.fsum(magnitude for _, magnitude in told)

    @property
    def value_cost(self) -> float:
        return self.lone_value_cost

    @property
    def _constants(self) -> list[PartConstants]:
        """Constants on the full space of each block, so on every domain."""
        return self.network.answers(partial(part_constants, domain=FullSpace(self.shape[1:])))

    def smoothness(self, domain: Domain) -> Holder:
        found: list[Holder] = []
        for i, constants in enumerate(self._constants):
            if isinstance(constants.smoothness, str):
                raise UnknownConstantError(f"consensus: agent {i} has no known smoothness: {constants.smoothness}")
            found.append(constants.smoothness)
        return join_smoothness(found, domain)

    def strong_convexity(self, domain: Domain) -> float:
        return min(constants.strong_convexity for constants in self._constants)

    def certain_convexity(self, domain: Domain) -> float:
        return min(constants.certain_convexity for constants in self._constants)

    @cached_property
    def error_model(self) -> Rounding:
        return join(self.network.answers(part_rounding))


@final
class AgentEdges(Operator):
    """B x: the difference along each edge times the root of its weight, so that B^T B = W; a product is an exchange.

    The square root of W, which `ss.operators.Gossip` forms, has the same singular values, and maps to the same points
    up to a rotation: runs from y = 0 have the same x and the same B^T y.
    """

    def __init__(self, network: Network, root: Gossip) -> None:
        self.network, self._root = network, root
        self.x_shape = root.x_shape
        self.y_shape = (len(network.edges), *root.x_shape[1:])

    def __repr__(self) -> str:
        return f"AgentEdges({self.x_shape[0]} agents, {self.y_shape[0]} edges, points of shape {self.x_shape[1:]})"

    def forward(self, x: Array, out: Array | None = None) -> Array:
        told = self.network.exchange("differences", lambda i: (x[i],), x.nbytes)
        out = np.empty(self.y_shape) if out is None else out
        for e, (i, j) in enumerate(self.network.edges):
            out[e] = told[i].arrays[j]
        return out

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        own: list[dict[int, Array]] = [{} for _ in range(self.x_shape[0])]
        for e, (i, j) in enumerate(self.network.edges):
            own[i][j] = y[e]
        blank = np.zeros(self.x_shape[1:])
        told = self.network.exchange("pull", lambda i: (own[i], blank), y.nbytes)
        out = np.empty(self.x_shape) if out is None else out
        for i, one in enumerate(told):
            out[i] = one.arrays[i]
        return out

    @property
    def norm(self) -> NormBound:
        return self._root.norm

    @property
    def product_error(self) -> float:
        return self._root.product_error

    def smallest_singular_value(self, positive: bool = False) -> SmallestSingularValue:
        return self._root.smallest_singular_value(positive)


def consensus(
    client: Any, parts: Sequence[Any], graph: Any, shape: Any = None, *, bound: float | None = None,
    patience: float = 60.0,
) -> SaddleProblem:  # fmt: skip
    """`ss.gallery.consensus` with real agents: Dask actors that hold their functions and talk to their neighbours.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster. Agents are spread evenly over its workers.
    parts : sequence of callable or Function
        One per agent: a function, or what builds it there.
    graph : networkx.Graph or n x n array
        A graph, an adjacency matrix, or a gossip matrix without positive entries off its diagonal.
    shape : int or tuple of int, optional
        Shape of x, where no function says it.
    bound : float, optional
        Radius of the ball of the dual variable; as in `ss.gallery.consensus`.
    patience : float, optional
        Seconds to wait for any worker before the cluster counts as gone.

    Returns
    -------
    SaddleProblem
        `problem.f.counts` and `problem.f.network.rounds` say what was sent; `problem.read(result)` is a
        ConsensusSolution.

    Examples
    --------
    >>> import saddleslide as ss
    >>> local = [ss.functions.Quadratic(1.0) + ss.functions.Linear([-c]) for c in (1.0, 2.0, 6.0)]
    >>> with ss.distributed.local(workers=1) as client:
    ...     problem = ss.distributed.consensus(client, local, [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    ...     problem.read(ss.solve(problem, tol=1e-2)).point.round(1)
    array([3.])
    """
    check_client(client, "consensus")
    W = gossip_matrix(graph)
    wrong = [] if len(parts) == len(W) else [f"received {len(parts)} functions for {len(W)} agents; expected equal."]
    if (W - np.diag(W.diagonal()) > 0.0).any():
        wrong.append("graph has a positive entry off the diagonal of W; expected weights of edges, W_ij <= 0.")
    raise_all("consensus", wrong)
    require_connected(W)
    network = Network(client, parts, W, as_number(patience, "consensus: patience", 0.0))
    try:
        facts = network.answers(part_facts)
        shapes = {fact.shape for fact in facts if fact.shape is not None}
        if shape is not None:
            shapes.add(as_shape(shape, "consensus: shape"))
        if len(shapes) != 1:
            raise InputError(
                f"consensus: functions take arrays of the shapes {sorted(shapes)}; expected one. Pass shape=."
            )
        block = shapes.pop()
        f, root = AgentFunctions(network, facts, block), Gossip(W, block)
        B = AgentEdges(network, root)
        R = dual_guess(f, root) if bound is None else as_number(bound, "consensus: bound", 0.0)
    except BaseException:
        network.close()
        raise
    return agreement_problem(f, B, W, R)
