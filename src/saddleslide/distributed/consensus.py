"""Decentralised optimisation with real agents: functions on workers, products as exchanges between neighbours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any, final

import numpy as np

from saddleslide.arrays.base import Array, Shape, as_number, as_shape
from saddleslide.distributed.cluster import check_client
from saddleslide.distributed.counts import Counts
from saddleslide.distributed.network import AgentReply, Network
from saddleslide.domains import Domain, FullSpace
from saddleslide.errors import InputError, UnknownConstantError, raise_all
from saddleslide.functions import Function
from saddleslide.functions.blockwise import joined_smoothness
from saddleslide.functions.parts import PartConstants, part_constants, part_facts, part_rounding
from saddleslide.functions.roundings import Rounding, joined
from saddleslide.gallery.consensus import agreement_problem, dual_guess, gossip_matrix, require_connected
from saddleslide.operators import Coupling, Gossip, NormBound, SmallestSingularValue
from saddleslide.problem import SaddleProblem
from saddleslide.runs.checkpoint import digest_of
from saddleslide.theory.holder import Holder

_PATIENCE = 60.0


@final
class AgentFunctions(Function):
    """f_1(x[0]) + ... + f_n(x[n - 1]), each on its agent; `ss.functions.Blockwise` far away."""

    def __init__(self, network: Network, shape: Shape, has_value: bool, linear: bool, own: tuple[bool, bool]) -> None:
        self.network, self._shape, self.shape = network, shape, shape
        self.has_value, self.linear = has_value, linear
        self._own_code, self._on_trust = own

    def __repr__(self) -> str:
        return f"AgentFunctions({self._shape[0]} agents, points of shape {self._shape[1:]})"

    def fingerprinted(self) -> list[Any]:
        """What a checkpoint knows it by: the numbers of the agents' functions."""
        return [self._shape, self._digests]

    @cached_property
    def _digests(self) -> list[str]:
        return self.network.answers(digest_of)

    @property
    def counts(self) -> Counts:
        """What all calls and rounds have cost so far: a copy."""
        return self.network.counts.copy()

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        told = self.network.evaluate("both", x)
        return math.fsum(one.terms[0][0] for one in told.values()), self._stack(told, out)

    def gradient(self, x: Array, out: Array | None = None) -> Array:
        return self._stack(self.network.evaluate("gradient", x), out)

    def _stack(self, told: Mapping[int, AgentReply], out: Array | None) -> Array:
        out = np.empty(self._shape) if out is None else out
        for i, one in told.items():
            out[i] = one.terms[1]
        return out

    def value(self, x: Array) -> float:
        return math.fsum(one.terms[0][0] for one in self.network.evaluate("value", x).values())

    def value_and_magnitude(self, x: Array) -> tuple[float, float]:
        told = [one.terms[0] for one in self.network.evaluate("sized", x).values()]
        return math.fsum(value for value, _ in told), math.fsum(magnitude for _, magnitude in told)

    @property
    def own_code(self) -> bool:
        return self._own_code

    @property
    def convex_on_trust(self) -> bool:
        return self._on_trust

    @property
    def value_cost(self) -> float:
        return self.lone_value_cost

    @cached_property
    def _constants(self) -> list[PartConstants]:
        """Constants on the full space of each block, so on every domain; asked once."""
        return self.network.answers(partial(part_constants, domain=FullSpace(self._shape[1:])))

    def smoothness(self, domain: Domain) -> Holder:
        found: list[Holder] = []
        for i, constants in enumerate(self._constants):
            if isinstance(constants.smoothness, str):
                raise UnknownConstantError(f"consensus: agent {i} has no known smoothness: {constants.smoothness}")
            found.append(constants.smoothness)
        return joined_smoothness(found, domain)

    def strong_convexity(self, domain: Domain) -> float:
        return min(constants.strong_convexity for constants in self._constants)

    def certain_convexity(self, domain: Domain) -> float:
        return min(constants.certain_convexity for constants in self._constants)

    @cached_property
    def rounding(self) -> Rounding:
        return joined(self.network.answers(part_rounding))


@final
class AgentEdges(Coupling):
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
        for i, one in told.items():
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
    client: Any,
    parts: Sequence[Any],
    graph: Any,
    shape: Any = None,
    *,
    bound: float | None = None,
    patience: float = _PATIENCE,
) -> SaddleProblem:
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
        block = _block([fact.shape for fact in facts], shape)
        known = all(fact.has_value for fact in facts), all(fact.linear for fact in facts)
        own = any(fact.own_code for fact in facts), any(fact.convex_on_trust for fact in facts)
        f, root = AgentFunctions(network, (len(W), *block), *known, own), Gossip(W, block)
        B = AgentEdges(network, root)
        R = dual_guess(f, root) if bound is None else as_number(bound, "consensus: bound", 0.0)
    except BaseException:
        network.close()
        raise
    return agreement_problem(f, B, W, R)


def _block(shapes: Sequence[Shape | None], asked: Any) -> Shape:
    """Shape of one agent's point."""
    known = {shape for shape in shapes if shape is not None}
    if asked is not None:
        known.add(as_shape(asked, "consensus: shape"))
    if len(known) != 1:
        raise InputError(f"consensus: functions take arrays of the shapes {sorted(known)}; expected one. Pass shape=.")
    return known.pop()
