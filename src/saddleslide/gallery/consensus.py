"""Decentralised optimisation: agents on a graph minimise the sum of their functions and talk to neighbours only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
import scipy

import saddleslide as ss
from saddleslide.arrays.base import Array, as_number, as_real, as_shape
from saddleslide.domains.entrywise import FullSpace
from saddleslide.domains.norms import Ball
from saddleslide.errors import InputError, MissingExtraError
from saddleslide.functions.base import Function
from saddleslide.functions.blockwise import Blockwise
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.trust import known_smoothness
from saddleslide.gallery.constrained import multiplier_guess
from saddleslide.gallery.solution import Fact, ResultArray, Solution, keep_kind
from saddleslide.operators.base import Operator
from saddleslide.operators.sparse import check_sparse
from saddleslide.operators.structured import Gossip
from saddleslide.plots import STYLES
from saddleslide.problem import Enclosure, SaddleProblem

# A matrix of all pairs of so many agents is 3 GB.
MOST_AGENTS = 20_000


@final
@dataclass(frozen=True, eq=False, repr=False)
class ConsensusSolution(Solution):
    """What the agents agreed on, how well, and what it took.

    Examples
    --------
    >>> import saddleslide as ss
    >>> local = [ss.functions.Quadratic(1.0) + ss.functions.Linear([-c]) for c in (1.0, 2.0, 6.0)]
    >>> problem = ss.gallery.consensus(local, [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> solution = problem.read(ss.solve(problem, tol=1e-8))
    >>> solution.point.round(5), solution.consensus_error < 1e-5
    (array([3.]), True)
    """

    f: Function
    W: Array
    around: Enclosure
    result: ss.Result
    points = ResultArray("x", "One point per agent.")

    @property
    def bound(self) -> float:
        """Radius of the ball of the dual variable."""
        return self.around.radius

    @property
    def point(self) -> Array:
        """The average of the agents' points."""
        return np.asarray(self.points.mean(axis=0))

    @property
    def consensus_error(self) -> float:
        """Largest distance of an agent's point from the average."""
        apart = (self.points - self.point).reshape(len(self.points), -1)
        return float(np.linalg.norm(apart, axis=1).max())

    @property
    def objective(self) -> float:
        """Sum of all functions at the average point: an upper bound on the minimum; `result.lower` is a lower one."""
        return self.f.value(np.broadcast_to(self.point, self.points.shape).copy())

    @property
    def local_gradients(self) -> float:
        """Gradients per agent."""
        return float(self.result.calls.f)

    @property
    def rounds(self) -> float:
        """Rounds of communication: a product with B and one with B^T are one product with W."""
        return float(self.result.calls.B) / 2.0

    @property
    def inside(self) -> bool:
        """Whether the dual variable stayed away from its bound; if not, agreement was not enforced: raise `bound`."""
        return self.around.holds(self.result.y)

    def facts(self) -> dict[str, Fact]:
        return {
            "objective": self.objective,
            "minimum at least": self.result.lower,
            "consensus error": self.consensus_error,
            "gradients per agent": self.local_gradients,
            "rounds of communication": self.rounds,
            "agreement enforced": self.inside,
        }

    def arrays(self) -> dict[str, Array]:
        return {"point": self.point} | super().arrays()

    def draw(self, figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        turn = 2.0 * np.pi * np.arange(len(self.W)) / len(self.W)
        place = np.column_stack([np.cos(turn), np.sin(turn)])
        for i, j in np.argwhere(np.triu(self.W, 1) != 0.0):
            left.plot(*place[[i, j]].T, color="0.75", linewidth=0.8, zorder=1)
        left.scatter(*place.T, color=STYLES[0][0], s=30, zorder=2)
        left.set(title=f"{len(self.W)} agents", xticks=[], yticks=[], aspect="equal")
        rows = [(m.calls.B / 2.0, m.gap) for m in self.result.history if np.isfinite(m.gap) and m.gap > 0.0]
        right.plot(*np.array(rows).reshape(-1, 2).T, color=STYLES[1][0], marker="o", markersize=3)
        right.set(title="certified gap", xlabel="rounds of communication", yscale="log")


@keep_kind
def consensus(
    functions: Sequence[Function], graph: Any, shape: Any = None, *, bound: float | None = None
) -> SaddleProblem[ConsensusSolution]:
    """Minimise f_1(x) + ... + f_n(x), with f_i known to agent i only, and agents that talk to their neighbours.

    Parameters
    ----------
    functions : sequence of Function
        One per agent.
    graph : networkx.Graph or n x n array
        A graph; or an adjacency matrix (entries >= 0, zero diagonal); or a gossip matrix W (W >= 0, W 1 = 0), such as a
        Laplacian.
    shape : int or tuple of int, optional
        Shape of x, where no function says it.
    bound : float, optional
        Radius of the ball of the dual variable. By default ten times a first guess of its norm; the solution says
        whether it was large enough.

    Returns
    -------
    SaddleProblem
        With B = sqrt(W); `problem.read(result)` is a ConsensusSolution.

    Examples
    --------
    >>> import saddleslide as ss
    >>> consensus([ss.functions.Quadratic(1.0)] * 3, [[0, 1, 0], [1, 0, 0], [0, 0, 0]], shape=2)
    Traceback (most recent call last):
    ...
    saddleslide.errors.InputError: consensus: the graph falls into 2 parts, such as agents [0, 1] and [2]; ...
    """
    if isinstance(functions, Function) or not isinstance(functions, Iterable):
        kind = type(functions).__name__
        raise InputError(f"consensus: functions is {kind}; expected a list, one function per agent.")
    local = list(functions)
    for i, one in enumerate(local):
        if not isinstance(one, Function):
            raise InputError(f"consensus: function {i} is {type(one).__name__}; expected a function from ss.functions.")
    W = gossip_matrix(graph)
    if len(local) != len(W):
        raise InputError(f"consensus: received {len(local)} functions for {len(W)} agents; expected one per agent.")
    if len(W) < 2:
        raise InputError("consensus: received 1 agent; expected at least 2. Nobody is there to agree with.")
    require_connected(W)
    known = [part.shape for part in local if part.shape is not None]
    if shape is None and not known:
        raise InputError("consensus: no function says the shape of x; pass shape=.")
    block = known[0] if shape is None else as_shape(shape, "consensus: shape")
    f, B = Blockwise(local, block), Gossip(W, block)
    R = dual_guess(f, B) if bound is None else as_number(bound, "consensus: bound", 0.0)
    return agreement_problem(f, B, W, R)


def agreement_problem(f: Function, B: Operator, W: Array, R: float) -> SaddleProblem[ConsensusSolution]:
    """The problem of agents with the gossip matrix W = B^T B, their dual variable in a ball of radius R."""
    # x = 0 agrees, so that nothing can be infeasible: only R can be too small.
    around = Enclosure(R, "the multipliers", "that all agents agree")
    X, Y, reader = FullSpace(B.x_shape), Ball(R, B.y_shape), partial(ConsensusSolution, f, W, around)
    return SaddleProblem(f=f, g=Zero(), B=B, X=X, Y=Y, reader=reader, enclosure=around)


def gossip_matrix(graph: Any) -> Array:
    """The gossip matrix of a networkx graph, an adjacency matrix or a gossip matrix."""
    if hasattr(graph, "nodes") and hasattr(graph, "edges"):
        try:
            from networkx import to_numpy_array
        except ImportError as missing:
            raise MissingExtraError(
                "consensus: networkx is not installed; pass an adjacency matrix instead."
            ) from missing
        if graph.is_directed():
            raise InputError("consensus: graph is directed; expected an undirected one. Pass graph.to_undirected().")
        graph = to_numpy_array(graph)
    is_sparse = scipy.sparse.issparse(graph)
    if is_sparse:
        check_sparse(graph, "consensus: graph")
    matrix = graph if is_sparse else as_real(graph, "consensus: graph")
    # Before a sparse graph is written out: the root of a gossip matrix has all entries.
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise InputError(f"consensus: graph has shape {matrix.shape}; expected a square matrix, one row per agent.")
    if matrix.shape[0] > MOST_AGENTS:
        raise InputError(f"consensus: graph has {matrix.shape[0]:,} agents; expected at most {MOST_AGENTS:,}.")
    matrix = as_real(graph.toarray(), "consensus: graph") if is_sparse else matrix
    if not np.array_equal(matrix, matrix.T):
        raise InputError("consensus: graph is not symmetric; expected edges in both directions.")
    is_adjacency = matrix.min() >= 0.0 and not matrix.diagonal().any()
    return np.diag(matrix.sum(axis=1)) - matrix if is_adjacency else matrix


def require_connected(W: Array) -> None:
    """Refuse a gossip matrix whose agents can not all hear of each other."""
    parts, label = scipy.sparse.csgraph.connected_components(scipy.sparse.csr_array(W != 0.0), directed=False)
    if parts > 1:
        shown = " and ".join(str(np.flatnonzero(label == part)[:5].tolist()) for part in (0, 1))
        raise InputError(
            f"consensus: the graph falls into {parts} parts, such as agents {shown}; expected a connected graph, or "
            "the parts can not agree. Add an edge between them."
        )


def dual_guess(f: Function, B: Gossip) -> float:
    """A bound on the dual variable: the guess at 0 and after one averaged gradient step, whichever is larger."""
    origin = np.zeros(B.x_shape)
    slope = np.broadcast_to(f.gradient(origin).mean(axis=0), B.x_shape)
    known = known_smoothness(f, FullSpace(B.x_shape))
    step = origin - slope / known.H if known is not None and known.H > 0.0 else origin
    return max(multiplier_guess(f, B, point) for point in (origin, step))
